/* SPDX-License-Identifier: MIT */
// C++ shapes: exceptions through patched frames and calls, virtual calls; see victims.h.
#include "tests/patch/victims.h"
#include <stdexcept>
#include <string>

#if defined(__clang__)
#define VICTIM __attribute__((noinline))
#else
#define VICTIM __attribute__((noinline, noclone, noipa))
#endif
#define VISIT(name) (victim_visits[V_##name]++)

namespace {
struct guard {
	uint64_t &h;
	explicit guard(uint64_t &hash) : h(hash) {}
	~guard() { h = h * 31 + 7; }
};
struct shape {
	virtual uint64_t area(uint64_t a) const = 0;
	virtual ~shape() {}
};
struct square final : shape {
	uint64_t area(uint64_t a) const override { return a * a; }
};
struct line final : shape {
	uint64_t area(uint64_t a) const override
	{
		if (a & 1)
			throw std::string("odd");
		return a;
	}
};
} // namespace

extern "C" VICTIM uint64_t v_thrower(uint64_t a, uint64_t *h)
{
	VISIT(thrower);
	guard g(*h);
	if (a % 3 == 1)
		throw std::runtime_error("third");
	if (a % 3 == 2)
		throw a;
	return a + 1;
}

extern "C" VICTIM uint64_t v_catcher(uint64_t a)
{
	uint64_t h = a;

	VISIT(catcher);
	for (uint64_t i = 0; i < 4; i++) {
		try {
			h += v_thrower(a + i, &h);
		} catch (const std::runtime_error &e) {
			h = h * 17 + (uint64_t)e.what()[0];
		} catch (uint64_t v) {
			h ^= v;
		}
	}
	return h;
}

extern "C" VICTIM uint64_t v_virtual_(const void *object, uint64_t a)
{
	VISIT(virtual_);
	return static_cast<const shape *>(object)->area(a);
}

uint64_t victims_run_cxx(uint64_t seed)
{
	square s;
	line l;
	uint64_t h = v_catcher(seed);

	h = h * 3 + v_virtual_(static_cast<const shape *>(&s), seed);
	try {
		h = h * 3 + v_virtual_(static_cast<const shape *>(&l), seed);
	} catch (const std::string &e) {
		h += e.size();
	}
	return h;
}

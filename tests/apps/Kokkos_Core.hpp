// SPDX-License-Identifier: MIT
// As much of Kokkos as examples/kokkos.cpp needs, for machines without it: it calls the hooks of
// KOKKOS_TOOLS_LIBS as Kokkos does.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>
#define KOKKOS_LAMBDA [=]

namespace Kokkos {
inline void *tool;
template <class... Types> void call(const char *name, Types... values)
{
	void *hook = tool ? dlsym(tool, name) : nullptr;

	if (hook)
		reinterpret_cast<void (*)(Types...)>(hook)(values...);
}
struct ScopeGuard {
	ScopeGuard(int, char **)
	{
		const char *path = std::getenv("KOKKOS_TOOLS_LIBS");

		tool = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : nullptr;
		call("kokkosp_init_library", 0, std::uint64_t{ 20211015 }, std::uint32_t{ 0 }, static_cast<void *>(nullptr));
	}
	~ScopeGuard() { call("kokkosp_finalize_library"); }
};
template <class Type> struct View {
	double *data;
	View(const char *, int n) : data(new double[n]()) {} // Kokkos would free it
	double &operator()(int i) const { return data[i]; }
};
template <class Type> void deep_copy(View<Type> &, View<Type> &) {}
namespace Profiling {
inline void pushRegion(const char *name) { call("kokkosp_push_profile_region", name); }
inline void popRegion() { call("kokkosp_pop_profile_region"); }
}
template <class Body> void parallel_for(const char *name, int n, Body body)
{
	std::uint64_t id = 0;

	call("kokkosp_begin_parallel_for", name, std::uint32_t{ 1 }, &id);
	for (int i = 0; i < n; i++)
		body(i);
	call("kokkosp_end_parallel_for", id);
}
template <class Body> void parallel_reduce(const char *name, int n, Body body, double &sum)
{
	std::uint64_t id = 0;

	sum = 0;
	call("kokkosp_begin_parallel_reduce", name, std::uint32_t{ 1 }, &id);
	for (int i = 0; i < n; i++)
		body(i, sum);
	call("kokkosp_end_parallel_reduce", id);
}
}

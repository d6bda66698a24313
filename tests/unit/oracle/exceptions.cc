// SPDX-License-Identifier: MIT
// C++: exceptions through frames that clean up, rethrown and caught by base; virtual calls, containers, streams.
#include "oracle.h"
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static volatile unsigned sink;

struct counted {
	~counted()
	{
		sink = sink + 1;
	}
};

struct shape {
	virtual ~shape() = default;
	virtual double area(int n) const = 0;
};
struct square : shape {
	double area(int n) const override
	{
		if (n < 0)
			throw std::out_of_range("negative");
		return n * 2.0;
	}
};
struct both : square, std::vector<int> {
	double area(int n) const override
	{
		return square::area(n) + size();
	}
};

// the call of what throws is the last instruction
[[noreturn]] __attribute__((noinline)) static void fail(const char *why)
{
	counted here;
	throw std::runtime_error(why);
}

__attribute__((noinline)) static int passes(int depth)
{
	counted here;
	std::string text(depth * 10 + 1, 'x');

	if (depth == 0)
		fail("deep");
	return passes(depth - 1) + (int)text.size();
}

__attribute__((noinline)) static void again(int depth)
{
	try {
		passes(depth);
	} catch (const std::logic_error &) {
		sink = sink + 2;
	} catch (...) {
		sink = sink + 3;
		throw;
	}
}

__attribute__((noinline)) static double measure(const shape &what, int n)
{
	return what.area(n);
}

__attribute__((noinline)) static void contains()
{
	std::map<std::string, int> words;
	std::vector<std::string> list;
	std::ostringstream out;

	for (int i = 0; i < 6; i++) {
		words["word " + std::to_string(i * 7 % 5)] += i;
		list.push_back(std::to_string(i * 7919 % 31));
	}
	std::sort(list.begin(), list.end(), [](const std::string &a, const std::string &b) { return a > b; });
	for (const auto &word : words)
		out << word.first << '=' << word.second << ' ' << 0.5 * word.second;
	sink = sink + out.str().size();
}

static void all()
{
	std::unique_ptr<shape> what = std::make_unique<both>();

	try {
		again(3);
	} catch (const std::exception &e) {
		sink = sink + *e.what();
	}
	try {
		measure(*what, 3);
		measure(*what, -1);
	} catch (const std::exception &) {
		sink = sink + 1;
	}
	contains();
}

extern "C" void oracle_work(void (*begin)(void), void (*end)(void))
{
	for (int i = 0; i < 2; i++) {
		begin();
		all();
		end();
	}
}

/* SPDX-License-Identifier: MIT */
/* A program that knows nothing of progress points and does everything a known number of times;
 * for tests/integration/progress.sh. It prints nothing. Lines that the test names carry a mark. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 2000, FEW = 1500, INNER = 7 }; /* as progress.sh expects */

volatile uint64_t sink;

static void pass(unsigned milliseconds)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		for (int i = 0; i < 1000; i++)
			sink += (uint64_t)i;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < milliseconds);
}

__attribute__((noinline)) int handle_one(int n)
{
	if (n % 3 == 0)
		return n + 1;
	sink += (uint64_t)n; /* MARK: third */
	return n;
}

__attribute__((noinline)) int handle_two(int n)
{
	sink += handle_one(n) > n; /* MARK: call */
	return n * 2;
}

static inline __attribute__((always_inline)) void tiny(int n)
{
	sink ^= (uint64_t)n; /* MARK: tiny */
}

__attribute__((noinline)) void looped(void)
{
	for (int i = 0; i < INNER; i++) /* MARK: for */
		sink += (uint64_t)i * sink;
}

__attribute__((noinline, noipa)) int leaf(int n)
{
	return n;
}

/* Ends by a jump to another function where that is optimised. */
__attribute__((noinline)) int tail(int n)
{
	sink++;
	return handle_one(n);
}

static int (*plugin(const char *path))(int)
{
	void *library = path ? dlopen(path, RTLD_NOW) : NULL;
	void *symbol = library ? dlsym(library, "plugged") : NULL;
	int (*function)(int);

	memcpy(&function, &symbol, sizeof function);
	return function;
}

int main(int argc, char **argv)
{
	int (*plugged)(int) = plugin(argc > 1 ? argv[1] : NULL);

	pass(400); /* libraries that were opened late have been looked at by then */
	for (int i = 0; i < ROUNDS; i++) {
		handle_two(i); /* MARK: body */
		tiny(i);
		looped();
		tiny(i + 1);
		if (i < FEW)
			leaf(tail(i));
		if (plugged)
			plugged(i); /* MARK: plugged */
		if (i % 100 == 0)   /* MARK: often */
			pass(60);   /* MARK: seldom */
	}
	return 0;
}

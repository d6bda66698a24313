/* SPDX-License-Identifier: MIT */
/* What the tiny programs share: checks, a clock, some work in a function that can be selected,
 * and a progress point behind each piece of it. */
#ifndef CA_TESTS_APP_H
#define CA_TESTS_APP_H
#include <causal.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                                     \
	do {                                                                                                 \
		if (!(condition)) {                                                                          \
			printf("%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);   \
			fflush(stdout);                                                                      \
			_exit(99);                                                                           \
		}                                                                                            \
	} while (0)

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Some 50 us. */
__attribute__((noinline, unused)) static void piece_of_work(void)
{
	for (volatile int i = 0; i < 30000; i++)
		;
}

__attribute__((noinline, unused)) static void other_work(void)
{
	for (volatile int i = 0; i < 20000; i++)
		;
}

__attribute__((unused)) static void work_once(void)
{
	piece_of_work();
	other_work();
	CAUSAL_PROGRESS_NAMED("work");
}

/* Returns how many pieces it did. */
__attribute__((unused)) static long work_for(double seconds)
{
	double end = now() + seconds;
	long n = 0;

	for (; now() < end; n++)
		work_once();
	return n;
}

struct app_case {
	const char *name;
	void (*run)(void);
};

/* The case that the first argument names. */
__attribute__((unused)) static int run_case(const struct app_case *cases, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (name && !strcmp(cases[i].name, name)) {
			cases[i].run();
			printf("%s: good\n", name);
			return 0;
		}
	printf("no such case: %s\n", name ? name : "");
	return 98;
}
#define RUN_CASE(cases, argc, argv)                                                                          \
	run_case(cases, sizeof(cases) / sizeof *(cases), (argc) > 1 ? (argv)[1] : NULL)

#endif

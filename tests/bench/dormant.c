/* SPDX-License-Identifier: MIT */
/* What points in the code cost: 50 multiplications of matrices of 100 x 100 have 500,000 innermost loops, each
 * with a point before and behind it. The same work as NERSC's instrumentation-benchmark has, for which
 * timemory's authors have published (dormant): timemory +42 %, TAU +262 %, Caliper +397 %.
 *   dormant [TIMES]     the mean of TIMES (100) such measurements of each variant, in turns
 * Without causal the points are dormant; under `causal trace` they are active. */
#include <causal.h>
#include <causal_trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 100, MULTIPLIES = 50, POINTS = SIZE * SIZE * MULTIPLIES, WARM_UP = 2 };

static double a[SIZE * SIZE], b[SIZE * SIZE], c[SIZE * SIZE];

/* The innermost loop between BEFORE and BEHIND. */
#define MULTIPLY(name, before, behind)                                                                       \
	static __attribute__((noinline)) void name(void)                                                     \
	{                                                                                                    \
		for (int i = 0; i < SIZE; i++)                                                               \
			for (int j = 0; j < SIZE; j++) {                                                     \
				before;                                                                      \
				for (int k = 0; k < SIZE; k++)                                               \
					a[i * SIZE + j] += b[i * SIZE + k] * c[k * SIZE + j];                \
				behind;                                                                      \
			}                                                                                    \
	}
MULTIPLY(plain, (void)0, (void)0)
/* What lies between two innermost loops keeps the compiler from joining them (gcc takes two products at once),
 * were it only this. The rest is what points cost. */
MULTIPLY(apart, __asm__ volatile("" ::: "memory"), __asm__ volatile("" ::: "memory"))
MULTIPLY(progress, (void)0, CAUSAL_PROGRESS_NAMED("product"))
MULTIPLY(latency, CAUSAL_BEGIN("item"), CAUSAL_END("item"))
MULTIPLY(region, CAUSAL_TRACE_BEGIN("region"), CAUSAL_TRACE_END("region"))
MULTIPLY(scope, CAUSAL_TRACE_SCOPE(scope, 1), (void)0)

static const struct variant {
	const char *name;
	void (*multiply)(void);
} variants[] = {
	{ "no points", plain },
	{ "no points, loops apart", apart },
	{ "CAUSAL_PROGRESS", progress },
	{ "CAUSAL_BEGIN, CAUSAL_END", latency },
	{ "CAUSAL_TRACE_BEGIN, _END", region },
	{ "CAUSAL_TRACE_SCOPE", scope },
};
enum { APART = 1, VARIANTS = sizeof variants / sizeof *variants };

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double measure(void (*multiply)(void))
{
	double begin = cpu_seconds();

	for (int i = 0; i < MULTIPLIES; i++)
		multiply();
	return cpu_seconds() - begin;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 100;
	double sum[VARIANTS] = { 0 };

	for (int i = 0; i < SIZE * SIZE; i++)
		a[i] = b[i] = c[i] = 1;
	for (int i = 0; i < WARM_UP; i++)
		measure(plain);
	for (int i = 0; i < times; i++)
		for (int v = 0; v < VARIANTS; v++)
			sum[v] += measure(variants[v].multiply);
	printf("%-26s %11s %12s %12s\n", "", "", "over none", "over apart");
	for (int v = 0; v < VARIANTS; v++)
		printf("%-26s %8.3f ms %+10.1f %% %+10.1f %% %7.2f ns a point or pair\n", variants[v].name,
		       sum[v] / times * 1e3, 100 * (sum[v] / sum[0] - 1), 100 * (sum[v] / sum[APART] - 1),
		       (sum[v] - sum[APART]) / times / POINTS * 1e9);
	return 0;
}

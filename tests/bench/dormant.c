/* SPDX-License-Identifier: MIT */
/* What points in the code cost: 50 multiplications of matrices of 100 x 100 have 500,000 innermost loops, each
 * with a point before and behind it. NERSC's instrumentation-benchmark (source/matmul.c) does the same: a
 * function that gets its matrices by pointers, points around its innermost loop, 50 multiplications a
 * measurement. timemory's authors have published for it (dormant): timemory +42 %, TAU +262 %, Caliper +397 %.
 *   dormant [TIMES]     the mean of TIMES (100) such measurements of each variant, in turns
 * Without causal the points are dormant; under `causal trace` they are active. */
#include <causal.h>
#include <causal_trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SIZE = 100, MULTIPLIES = 50, POINTS = SIZE * SIZE * MULTIPLIES, WARM_UP = 2 };

/* The innermost loop between BEFORE and BEHIND. noipa: of each matrix it knows no more than that. */
#define MULTIPLY(name, before, behind)                                                                       \
	static __attribute__((NO_IPA)) void name(long s, double *a, const double *b, const double *c)        \
	{                                                                                                    \
		for (long i = 0; i < s; i++)                                                                 \
			for (long j = 0; j < s; j++) {                                                       \
				before;                                                                      \
				for (long k = 0; k < s; k++)                                                 \
					a[i * s + j] += b[i * s + k] * c[k * s + j];                         \
				behind;                                                                      \
			}                                                                                    \
	}
#ifdef __clang__
#define NO_IPA noinline
#else
#define NO_IPA noipa
#endif
MULTIPLY(plain, (void)0, (void)0)
/* The time stamp counter alone, which whoever measures a pair has to read twice: what is left is ours. */
static unsigned long long stamps;
MULTIPLY(two_stamps, unsigned long long begin = __builtin_ia32_rdtsc(),
	 stamps += __builtin_ia32_rdtsc() - begin)
MULTIPLY(progress, (void)0, CAUSAL_PROGRESS_NAMED("product"))
MULTIPLY(latency, CAUSAL_BEGIN("item"), CAUSAL_END("item"))
MULTIPLY(region, CAUSAL_TRACE_BEGIN("region"), CAUSAL_TRACE_END("region"))
MULTIPLY(scope, CAUSAL_TRACE_SCOPE(scope, 1), (void)0)

static const struct variant {
	const char *name;
	void (*multiply)(long s, double *a, const double *b, const double *c);
} variants[] = {
	{ "no points", plain },
	{ "no points, two rdtsc", two_stamps },
	{ "CAUSAL_PROGRESS", progress },
	{ "CAUSAL_BEGIN, CAUSAL_END", latency },
	{ "CAUSAL_TRACE_BEGIN, _END", region },
	{ "CAUSAL_TRACE_SCOPE", scope },
};
enum { VARIANTS = sizeof variants / sizeof *variants };

static double *a, *b, *c;

static double cpu_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double measure(const struct variant *of)
{
	double begin = cpu_seconds();

	for (int i = 0; i < MULTIPLIES; i++)
		of->multiply(SIZE, a, b, c);
	return cpu_seconds() - begin;
}

int main(int argc, char **argv)
{
	int times = argc > 1 ? atoi(argv[1]) : 100;
	double sum[VARIANTS] = { 0 };

	a = malloc(sizeof *a * SIZE * SIZE);
	b = malloc(sizeof *b * SIZE * SIZE);
	c = malloc(sizeof *c * SIZE * SIZE);
	if (!a || !b || !c)
		return 1;
	for (int i = 0; i < SIZE * SIZE; i++)
		a[i] = b[i] = c[i] = 1;
	for (int i = 0; i < WARM_UP; i++)
		measure(&variants[0]);
	for (int i = 0; i < times; i++)
		for (int v = 0; v < VARIANTS; v++)
			sum[v] += measure(&variants[v]);
	for (int v = 0; v < VARIANTS; v++)
		printf("%-26s %8.3f ms %+10.1f %% %7.2f ns a point or pair\n", variants[v].name,
		       sum[v] / times * 1e3, 100 * (sum[v] / sum[0] - 1),
		       (sum[v] - sum[0]) / times / POINTS * 1e9);
	free(a);
	free(b);
	free(c);
	return 0;
}

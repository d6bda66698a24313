/* SPDX-License-Identifier: MIT */
/* What walking a stack costs, in ns a frame: warm, again and again; and cold, after other data has been through the
 * caches. Medians. The stacks are of this program, through qsort and functions of several sizes. */
#include "sampler/unwind.h"
#include "tests/unit/sampler_fixture.h"
#include <time.h>
#include <ucontext.h>

enum { TIMES = 400, WARM_UP = 2000, DEPTH = 24, OTHERS = 64 << 20, LINE = 64 };

enum { MAIN_STACK = 64 << 20 };
extern void *__libc_stack_end;

static struct ca_stack stack;
static char *others; /* more than the caches hold */
static volatile unsigned sink;
static double taken[2][TIMES];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void flush(void)
{
	for (size_t i = 0; i < OTHERS; i += LINE)
		others[i]++;
}

static double walk(const struct ca_registers *r)
{
	double from = now();

	ca_unwind(r, false, &stack);
	return (now() - from) / stack.depth;
}

static __attribute__((noinline)) void measure(void)
{
	struct ca_registers r = { 0 };
	uintptr_t all[16];
	ucontext_t here;

	getcontext(&here);
	ca_unwind_registers(&r, all, &here);
	for (unsigned i = 0; i < WARM_UP; i++)
		walk(&r);
	for (unsigned i = 0; i < TIMES; i++)
		taken[0][i] = walk(&r);
	for (unsigned i = 0; i < TIMES; i++) {
		flush();
		taken[1][i] = walk(&r);
	}
}

static int inner(const void *a, const void *b);

static __attribute__((noinline)) void sorts(unsigned depth)
{
	unsigned two[] = { depth, depth };

	if (depth)
		qsort(two, 2, sizeof *two, inner);
	else
		measure();
	sink += two[1];
}

static __attribute__((noinline)) int inner(const void *a, const void *b)
{
	volatile char room[200];

	room[0] = 1;
	sorts(*(const unsigned *)a - 1);
	return *(const unsigned *)b + (unsigned)room[0] > 0;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

int main(void)
{
	others = malloc(OTHERS);
	if (!others || sampler_set_up(NULL))
		return 1;
	ca_modules_scan();
	sampler_index_all();
	stack.own_high = (uintptr_t)__libc_stack_end; /* as the runtime does */
	stack.own_low = stack.own_high - MAIN_STACK;
	sorts(DEPTH / 4);
	for (unsigned i = 0; i < 2; i++)
		qsort(taken[i], TIMES, sizeof **taken, by_value);
	printf("%.1f %.1f %u %d\n", taken[0][TIMES / 2], taken[1][TIMES / 2], stack.depth, stack.complete);
	free(others);
	return sampler_tear_down(NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/library/counters.c: reading counters without the kernel. SIMULATED: machines without hardware counters
 * have no rdpmc, so a function takes its place, and the kernel's pages are made by hand. What a reading costs is
 * measured with the time-stamp counter in the place of rdpmc, an instruction of the same kind, and compared with what it
 * spares: a call of the kernel. */
#include <stdint.h>

static uint64_t simulated(uint32_t counter);
#define CA_RDPMC simulated
#include "causal/library/counters.c"
#include "core/cpu.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 48, BATCH = 1000, BATCHES = 2000 };

static struct perf_event_mmap_page page[CAUSAL_COUNTERS];
static struct causal_counters set;
static uint64_t pmc[CAUSAL_COUNTERS];
static unsigned readings, disturb; /* while read number `disturb`, the kernel changes the page */
static bool clocked;

static uint64_t simulated(uint32_t counter)
{
	if (clocked)
		return ca_cpu_cycles();
	if (++readings == disturb) {
		page[0].lock += 2;
		page[0].offset = 7000;
	}
	return pmc[counter];
}

void ca_library_say(const char *format, ...)
{
	(void)format;
}

void ca_library_point(const char *name, uint64_t value)
{
	(void)name, (void)value;
}

static int set_up(void **state)
{
	(void)state;
	memset(page, 0, sizeof page);
	set = (struct causal_counters){ .n = CAUSAL_COUNTERS, .direct = true };
	for (unsigned i = 0; i < CAUSAL_COUNTERS; i++) {
		page[i].index = i + 1;
		page[i].offset = 1000 * (int64_t)i;
		page[i].pmc_width = WIDTH;
		set.page[i] = &page[i];
		set.fd[i] = -1;
		pmc[i] = 10 + i;
	}
	readings = disturb = 0;
	clocked = false;
	return 0;
}

/* What the kernel has counted so far, and what the processor has since: that may be negative. */
static void test_values(void **state)
{
	uint64_t value[CAUSAL_COUNTERS];

	(void)state;
	pmc[2] = (UINT64_C(1) << WIDTH) - 5;
	assert_int_equal(causal_counters_read(&set, value), CAUSAL_COUNTERS);
	assert_int_equal(value[0], 10);
	assert_int_equal(value[1], 1011);
	assert_int_equal(value[2], 1995);
	assert_string_equal(causal_counters_way(&set), "rdpmc");
}

/* The thread went to another processor between two loads. */
static void test_changed(void **state)
{
	uint64_t value[CAUSAL_COUNTERS];

	(void)state;
	disturb = 1;
	assert_int_equal(causal_counters_read(&set, value), CAUSAL_COUNTERS);
	assert_int_equal(value[0], 7010);
	assert_int_equal(readings, CAUSAL_COUNTERS + 1);
}

/* One that is not on a register now has to be asked for; here there is nobody to ask. */
static void test_away(void **state)
{
	uint64_t value[CAUSAL_COUNTERS];

	(void)state;
	page[1].index = 0;
	assert_int_equal(causal_counters_read(&set, value), 0);
}

static void of_the_set(void)
{
	uint64_t value[CAUSAL_COUNTERS];

	causal_counters_read(&set, value);
	__asm__ volatile("" : : "r"(value) : "memory");
}

static void of_the_kernel(void)
{
	(void)syscall(SYS_getppid);
}

/* Nanoseconds that a reading takes when nothing comes between. */
static double least(void (*reading)(void))
{
	double best = INFINITY;

	for (unsigned b = 0; b < BATCHES; b++) {
		struct timespec from, to;

		clock_gettime(CLOCK_MONOTONIC, &from);
		for (unsigned i = 0; i < BATCH; i++)
			reading();
		clock_gettime(CLOCK_MONOTONIC, &to);
		best = fmin(best,
			    ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
				    BATCH);
	}
	return best;
}

static void test_cost(void **state)
{
	double one, four, asked;

	(void)state;
	clocked = true;
	four = least(of_the_set);
	set.n = 1;
	one = least(of_the_set);
	asked = least(of_the_kernel);
	print_message(
		"simulated rdpmc: %.1f ns for one counter, %.1f for a group of %d, a system call %.1f\n", one,
		four, CAUSAL_COUNTERS, asked);
	assert_true(one < asked);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_values, set_up),
		cmocka_unit_test_setup(test_changed, set_up),
		cmocka_unit_test_setup(test_away, set_up),
		cmocka_unit_test_setup(test_cost, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

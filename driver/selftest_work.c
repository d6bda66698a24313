/* SPDX-License-Identifier: MIT */
/* The programs with an analytic answer that `causal selftest` profiles: this executable,
 * started again. Not for: anything else; the accuracy suite has its own programs.
 *
 * serial: 600 in the region, 400 outside, one thread: X % faster gives 0.6 X.
 * barrier: one side 1000 (the region), the other 800: X % faster gives min(X, 20). */
#include "driver/selftest.h"
#include <causal.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define NOINLINE __attribute__((noinline))
enum { PER_UNIT = 150 }; /* iterations that make about a microsecond */

void ca_selftest_region(unsigned units);

static atomic_int stop;
static volatile uint64_t sink;
static pthread_barrier_t meet;

/* Bound by the latency of the multiplications, so that a busy hyper-thread next door hardly
 * changes its speed. */
static NOINLINE void spin(unsigned units)
{
	uint64_t x = units | 1;

	for (uint64_t n = (uint64_t)units * PER_UNIT; n > 0; n--) {
		for (int i = 0; i < 8; i++)
			x *= x;
		__asm__ volatile("" : "+r"(x));
	}
	sink = x;
}

/* The region: found by its name, so not static. */
NOINLINE void ca_selftest_region(unsigned units)
{
	spin(units);
	__asm__ volatile(""); /* no tail call: it must be on the stack */
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int work_serial(double seconds)
{
	for (double until = now() + seconds; now() < until;) {
		ca_selftest_region(600);
		spin(400);
		CAUSAL_PROGRESS_NAMED("selftest");
	}
	return 0;
}

static void *short_side(void *unused)
{
	(void)unused;
	for (;;) {
		spin(800);
		pthread_barrier_wait(&meet);
		if (atomic_load(&stop))
			return NULL;
		pthread_barrier_wait(&meet);
	}
}

static int work_barrier(double seconds)
{
	double until = now() + seconds;
	pthread_t other;

	pthread_barrier_init(&meet, NULL, 2);
	if (pthread_create(&other, NULL, short_side, NULL))
		return 1;
	while (!atomic_load(&stop)) {
		ca_selftest_region(1000);
		CAUSAL_PROGRESS_NAMED("selftest");
		if (now() >= until)
			atomic_store(&stop, 1);
		pthread_barrier_wait(&meet);
		if (!atomic_load(&stop))
			pthread_barrier_wait(&meet);
	}
	pthread_join(other, NULL);
	return 0;
}

int ca_selftest_work(const char *name, double seconds)
{
	if (!strcmp(name, "serial"))
		return work_serial(seconds);
	if (!strcmp(name, "barrier"))
		return work_barrier(seconds);
	return 2;
}

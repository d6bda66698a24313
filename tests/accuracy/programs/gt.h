/* SPDX-License-Identifier: MIT */
/* Shared plumbing of the programs with known answers.
 *
 * Every program has one or more regions. A region is a noinline function
 * region_<name>() that is called from exactly one source line, which carries the
 * comment "GT_REGION <name>"; so it can be addressed by line (the call site) or by
 * function. inline.c is the deliberate exception: its region is a line that is
 * inlined at several sites.
 *
 *   --region NAME   the region that --scale applies to
 *   --scale X       make that region really X % shorter (0 <= X < 100)
 *   --seconds S     run for S seconds (default 3)
 *
 * Output: one line of key=value pairs: progress_rate (visits a second), visits,
 * seconds, and latency_us where the program has a latency. Rates are counted after a
 * warm-up of GT_WARM seconds, so that full queues are full and no thread is starting.
 *
 * Work is counted in iterations of one loop (GT_IPU iterations are one nominal
 * microsecond), so the ratio of the regions does not depend on a calibration. */
#ifndef GT_H
#define GT_H
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <atomic>
using namespace std;
#else
#include <stdatomic.h>
#endif

#if defined(USE_COZ)
#include <coz.h>
#define GT_PROGRESS(name) COZ_PROGRESS_NAMED(name)
#define GT_BEGIN(name)    COZ_BEGIN(name)
#define GT_END(name)      COZ_END(name)
#elif defined(USE_CAUSAL)
#include "causal.h"
#define GT_PROGRESS(name) CAUSAL_PROGRESS_NAMED(name)
#define GT_BEGIN(name)    CAUSAL_BEGIN(name)
#define GT_END(name)      CAUSAL_END(name)
#else
#define GT_PROGRESS(name) ((void)0)
#define GT_BEGIN(name)    ((void)0)
#define GT_END(name)      ((void)0)
#endif

#define GT_IPU  150 /* iterations per nominal microsecond: about 24 cycles each */
#define GT_WARM 0.2
#ifdef __clang__
#define GT_NOINLINE __attribute__((noinline))
#else
#define GT_NOINLINE __attribute__((noinline, noclone))
#endif

static const char *gt_region_name;
static double gt_scale;
static double gt_seconds = 3;
static double gt_t0;
static atomic_int gt_stop;
static atomic_long gt_visits;
static atomic_long gt_latency_ns, gt_latency_count;
static struct {
	double time;
	long visits, latency_ns, latency_count;
} gt_warm, gt_end;

static inline double gt_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* NAME-VARIANT: the programs of one source are links to one executable. */
static inline const char *gt_variant(void)
{
	const char *dash = strchr(program_invocation_short_name, '-');

	return dash ? dash + 1 : "";
}

static inline struct timespec gt_timespec(double t)
{
	return (struct timespec){ (time_t)t, (long)((t - (double)(time_t)t) * 1e9) };
}

/* One iteration of the loop that all regions share: a chain of dependent multiplications. It is
 * bound by latency, not by issue width, so that a busy hyper-thread next door hardly changes its
 * speed (coefficient of variation 0.4 %, against 22 % for an add loop of one cycle). */
#define GT_STEP(x)                                                                                           \
	do {                                                                                                 \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		x *= x;                                                                                      \
		__asm__ volatile("" : "+r"(x));                                                              \
	} while (0)

static GT_NOINLINE uint64_t gt_spin(uint64_t n)
{
	uint64_t x = n | 1;

	while (n--)
		GT_STEP(x);
	return x;
}

/* Iterations for `us` nominal microseconds in region `name`, with --scale applied. */
static inline uint64_t gt_amount(const char *name, double us)
{
	if (!strcmp(name, gt_region_name))
		us *= 1 - gt_scale / 100;
	return (uint64_t)(us * GT_IPU);
}

/* How long `us` nominal microseconds take here, in seconds: for limits in real time that are
 * to be in proportion to the work. The median of some tries counts. */
static inline double gt_real(double us)
{
	enum { TRIES = 41, US = 500 };
	double took[TRIES];

	for (int i = 0; i < TRIES; i++) {
		double from = gt_now(), t;
		int at = i;

		gt_spin(US * GT_IPU);
		t = gt_now() - from;
		for (; at > 0 && took[at - 1] > t; at--)
			took[at] = took[at - 1];
		took[at] = t;
	}
	return took[TRIES / 2] * us / (double)US;
}

#define GT_DEFINE_REGION(name)                                                                               \
	static volatile uint64_t gt_sink_##name;                                                             \
	static GT_NOINLINE void region_##name(uint64_t n)                                                    \
	{                                                                                                    \
		gt_sink_##name = gt_spin(n);                                                                 \
	}

/* One visit of the progress point. */
#define GT_VISIT()                                                                                           \
	do {                                                                                                 \
		GT_PROGRESS("work");                                                                         \
		atomic_fetch_add_explicit(&gt_visits, 1, memory_order_relaxed);                              \
	} while (0)

static inline void gt_latency(double begin)
{
	long ns = (long)((gt_now() - begin) * 1e9);

	atomic_fetch_add_explicit(&gt_latency_ns, ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&gt_latency_count, 1, memory_order_relaxed);
}

static inline void gt_start(int argc, char **argv, const char *default_region)
{
	gt_region_name = default_region;
	for (int i = 1; i < argc; i++) {
		if (i + 1 < argc && !strcmp(argv[i], "--scale")) {
			gt_scale = atof(argv[++i]);
		} else if (i + 1 < argc && !strcmp(argv[i], "--seconds")) {
			gt_seconds = atof(argv[++i]);
		} else if (i + 1 < argc && !strcmp(argv[i], "--region")) {
			gt_region_name = argv[++i];
		} else {
			fprintf(stderr, "usage: %s [--region NAME] [--scale X] [--seconds S]\n", argv[0]);
			exit(2);
		}
	}
	gt_t0 = gt_now();
}

#define GT_SNAPSHOT(into)                                                                                    \
	do {                                                                                                 \
		(into).time = gt_now();                                                                      \
		(into).visits = atomic_load(&gt_visits);                                                     \
		(into).latency_ns = atomic_load(&gt_latency_ns);                                             \
		(into).latency_count = atomic_load(&gt_latency_count);                                       \
	} while (0)

/* For programs whose main thread does the work itself: is the time over? */
static inline int gt_expired(void)
{
	double t = gt_now() - gt_t0;

	if (gt_warm.time == 0 && t >= GT_WARM)
		GT_SNAPSHOT(gt_warm);
	if (t >= gt_seconds) {
		GT_SNAPSHOT(gt_end);
		atomic_store(&gt_stop, 1);
	}
	return atomic_load_explicit(&gt_stop, memory_order_relaxed);
}

static inline void gt_sleep_until(double t)
{
	double left;

	while ((left = t - gt_now()) > 0) {
		struct timespec ts = gt_timespec(left);

		nanosleep(&ts, NULL);
	}
}

/* For programs whose main thread only waits. */
static inline void gt_wait(void)
{
	gt_sleep_until(gt_t0 + GT_WARM);
	GT_SNAPSHOT(gt_warm);
	gt_sleep_until(gt_t0 + gt_seconds);
	GT_SNAPSHOT(gt_end);
	atomic_store(&gt_stop, 1);
}

static inline int gt_report(void)
{
	double s = gt_end.time - gt_warm.time;
	long v = gt_end.visits - gt_warm.visits;
	long n = gt_end.latency_count - gt_warm.latency_count;

	printf("progress_rate=%.3f visits=%ld seconds=%.4f", (double)v / s, v, s);
	if (n > 0)
		printf(" latency_us=%.3f",
		       (double)(gt_end.latency_ns - gt_warm.latency_ns) / (double)n / 1000);
	putchar('\n');
	return 0;
}
#endif

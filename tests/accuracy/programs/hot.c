/* SPDX-License-Identifier: MIT */
/* Hot code: regions that are entered over a million times a second, 0.8 nominal microseconds each. The
 * variant, in the program's name, says what the rest of the program is like:
 *
 *   mutex    two threads, 600 of S under a mutex, 400 outside, as locks.h: slope 1 to 33 %, then 1/2
 *   spin     the same with a spin lock that the program has built itself
 *   inline   as mutex, with S inlined: it has no entry and no exit
 *   barrier  two threads that meet after 1000 of S and 800 of something else: slope 1 to 20 %, then 0
 *   pipe     three stages over queues, 400, 700 of S, 500: slope 1 to 2/7, then 0; the queues drained
 *            and two cores for three threads make the measured truth count
 *   omp      a parallel loop of two halves, 800 of S and 480 of something else: slope 1 to 40 %, then 0
 *   system   S makes system calls: 500 of S, most of it in the kernel, 500 of something else (measured)
 *   deep     S calls itself three times: 600 of S, 400 of something else: slope 0.6
 *   crowd    eight threads on two cores, 300 of S, 200 of something else: slope 0.6
 *   miss     two threads; S adds to a place of a table that no cache holds, and nobody waits for that: by a time
 *            stamp at its exit it has hardly begun. So many visits are left out, as what S has under way at once
 *            takes as long for half of it (measured) */
#include "queue.h"
#include "two.h"
#include <sys/syscall.h>

enum { VISIT = 120, CROWD = 8, DEPTH = 3, CALLS = 8, TABLE = 1 << 23, BESIDE = 500 };
GT_DEFINE_REGION(rest)

/* Each visit needs the result of the one before: else the processor works at two of them at once, and S
 * takes less time than its work. */
static GT_NOINLINE uint64_t region_tiny(uint64_t x, uint64_t n)
{
	for (x |= 1; n--;)
		GT_STEP(x);
	return x;
}

static uint64_t length; /* iterations of a visit, with --scale applied */

/* Nominal microseconds of S, in visits. */
static inline void tiny(unsigned us)
{
	uint64_t x = us;

	for (unsigned i = 0; i < us * GT_IPU / VISIT; i++)
		x = region_tiny(x, length); /* GT_REGION tiny */
	gt_sink_rest = x;
}

static inline void rest(double us)
{
	region_rest((uint64_t)(us * GT_IPU));
}

/* ---- locks --------------------------------------------------------------------------------- */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int taken;

static GT_NOINLINE void spin_lock(void)
{
	while (atomic_exchange_explicit(&taken, 1, memory_order_acquire))
		while (atomic_load_explicit(&taken, memory_order_relaxed))
			__builtin_ia32_pause();
}

static void *with_mutex(void *p)
{
	while (!atomic_load(&gt_stop)) {
		pthread_mutex_lock(&mutex);
		tiny(600);
		pthread_mutex_unlock(&mutex);
		rest(400);
		GT_VISIT();
	}
	return p;
}

static void *with_spin(void *p)
{
	while (!atomic_load(&gt_stop)) {
		spin_lock();
		tiny(600);
		atomic_store_explicit(&taken, 0, memory_order_release);
		rest(400);
		GT_VISIT();
	}
	return p;
}

/* clang-format off */
static inline __attribute__((always_inline)) uint64_t inlined(uint64_t x, uint64_t n)
{
	while (n--) GT_STEP(x); /* GT_REGION inlined */
	return x;
}
/* clang-format on */

static void *with_inline(void *p)
{
	uint64_t x = 3, n = gt_amount("inlined", VISIT / (double)GT_IPU);

	while (!atomic_load(&gt_stop)) {
		pthread_mutex_lock(&mutex);
		for (int i = 0; i < 600 * GT_IPU / VISIT; i++)
			x = inlined(x | 1, n);
		pthread_mutex_unlock(&mutex);
		rest(400);
		GT_VISIT();
	}
	gt_sink_rest = x;
	return p;
}

/* ---- phases, stages, loops ------------------------------------------------------------------ */
static void *slow(void *p)
{
	do {
		tiny(1000);
		GT_VISIT();
	} while (two_meet(1));
	return p;
}

static void *fast(void *p)
{
	do {
		rest(800);
	} while (two_meet(0));
	return p;
}

static struct queue q1 = QUEUE_INIT, q2 = QUEUE_INIT;

static void *stage1(void *p)
{
	while (!atomic_load(&gt_stop)) {
		rest(400);
		queue_put(&q1);
	}
	queue_close(&q1);
	return p;
}

static void *stage2(void *p)
{
	while (queue_get(&q1)) {
		tiny(700);
		queue_put(&q2);
	}
	queue_close(&q2);
	return p;
}

static void *stage3(void *p)
{
	while (queue_get(&q2)) {
		rest(500);
		GT_VISIT();
	}
	return p;
}

static void omp(void)
{
	while (!gt_expired()) {
#pragma omp parallel for schedule(static) num_threads(2)
		for (int i = 0; i < 8; i++) {
			if (i < 4)
				tiny(200);
			else
				rest(120);
		}
		GT_VISIT();
	}
}

/* ---- other regions ---------------------------------------------------------------------------- */
static volatile long sink;

static GT_NOINLINE void region_asking(uint64_t calls)
{
	while (calls--)
		sink = syscall(SYS_getppid);
}

static void asking(void)
{
	uint64_t calls = strcmp(gt_region_name, "asking") ? CALLS : (uint64_t)(CALLS * (1 - gt_scale / 100));

	while (!gt_expired()) {
		for (int i = 0; i < 400; i++)
			region_asking(calls); /* GT_REGION asking */
		rest(500);
		GT_VISIT();
	}
}

static GT_NOINLINE uint64_t region_deep(uint64_t x, int depth, uint64_t n)
{
	x = region_tiny(x, n);
	if (depth > 0)
		x = region_deep(x, depth - 1, n);
	sink = (long)x; /* no call at the end */
	return x;
}

static void deep(void)
{
	uint64_t n = gt_amount("deep", VISIT / (double)GT_IPU) / DEPTH, x = 1;

	while (!gt_expired()) {
		for (int i = 0; i < 600 * GT_IPU / VISIT; i++)
			x = region_deep(x, DEPTH - 1, n); /* GT_REGION deep */
		rest(400);
		GT_VISIT();
	}
}

static void *in_a_crowd(void *p)
{
	while (!atomic_load(&gt_stop)) {
		tiny(300);
		rest(200);
		GT_VISIT();
	}
	return p;
}

static GT_NOINLINE void region_filling(uint32_t *table, uint64_t x)
{
	table[(x >> 20) % TABLE] += 1;
}

/* More instructions than a processor has under way while it waits for memory. */
static GT_NOINLINE uint64_t beside_filling(uint64_t x)
{
	for (int i = 0; i < BESIDE; i++) {
		x = x * UINT64_C(6364136223846793005) + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

static void *with_misses(void *p)
{
	uint64_t left_out = strcmp(gt_region_name, "filling") ? 0 : (uint64_t)gt_scale, x = 1;
	uint32_t *table = malloc(TABLE * sizeof *table);

	if (!table)
		abort();
	memset(table, 1, TABLE * sizeof *table);
	while (!atomic_load(&gt_stop)) {
		for (uint64_t i = 0; i < 400; i++) {
			if (i * left_out / 100 == (i + 1) * left_out / 100)
				region_filling(table, x); /* GT_REGION filling */
			x = beside_filling(x);
		}
		GT_VISIT();
	}
	free(table);
	return p;
}

static int threads(void *(*const *start)(void *), int n)
{
	pthread_t t[CROWD];

	for (int i = 0; i < n; i++)
		if (pthread_create(&t[i], NULL, start[i], NULL))
			return 1;
	gt_wait();
	for (int i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	return gt_report();
}

int main(int argc, char **argv)
{
	static void *(*const stages[])(void *) = { stage1, stage2, stage3 };
	static void *(*const crowd[])(void *) = { in_a_crowd, in_a_crowd, in_a_crowd, in_a_crowd,
						  in_a_crowd, in_a_crowd, in_a_crowd, in_a_crowd };
	const char *variant = gt_variant();

	gt_start(argc, argv, "tiny");
	length = (uint64_t)(VISIT * (strcmp(gt_region_name, "tiny") ? 1 : 1 - gt_scale / 100) + 0.5);
	if (!strcmp(variant, "mutex"))
		return two_threads(with_mutex, with_mutex);
	if (!strcmp(variant, "spin"))
		return two_threads(with_spin, with_spin);
	if (!strcmp(variant, "inline"))
		return two_threads(with_inline, with_inline);
	if (!strcmp(variant, "pipe"))
		return threads(stages, 3);
	if (!strcmp(variant, "crowd"))
		return threads(crowd, CROWD);
	if (!strcmp(variant, "miss"))
		return two_threads(with_misses, with_misses);
	if (!strcmp(variant, "barrier"))
		return two_threads(slow, fast);
	if (!strcmp(variant, "omp"))
		omp();
	else if (!strcmp(variant, "system"))
		asking();
	else
		deep();
	return gt_report();
}

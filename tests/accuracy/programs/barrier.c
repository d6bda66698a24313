/* SPDX-License-Identifier: MIT */
/* Two threads that meet at a barrier: slow 1000, fast 800.
 *
 * Expected: the period is max(slow, fast) = 1000. slow: min(X, 20), for below 800 the
 * other side leads. fast: 0. */
#include "two.h"

GT_DEFINE_REGION(slow)
GT_DEFINE_REGION(fast)
static pthread_barrier_t bar;
static int over;

static void *slow(void *p)
{
	uint64_t n = gt_amount("slow", 1000);

	for (;;) {
		region_slow(n); /* GT_REGION slow */
		GT_VISIT();
		over = atomic_load(&gt_stop);
		pthread_barrier_wait(&bar);
		if (over)
			return p;
		pthread_barrier_wait(&bar);
	}
}

static void *fast(void *p)
{
	uint64_t n = gt_amount("fast", 800);

	for (;;) {
		region_fast(n); /* GT_REGION fast */
		pthread_barrier_wait(&bar);
		if (over)
			return p;
		pthread_barrier_wait(&bar);
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "slow");
	pthread_barrier_init(&bar, NULL, 2);
	return two_threads(slow, fast);
}

/* SPDX-License-Identifier: MIT */
/* The body of mutex.c, futex.c, spinlock.c and rust_lock.rs's model: two threads, each with
 * a critical section of 600 and a parallel section of 400; the lock is the bottleneck.
 *
 * Expected: a thread's own period is c + 400, the lock's is 2c for two visits; the larger
 * one leads: per pair max(2c, c + 400). critical: X = 25: c = 450, max(900, 850) = 900
 * against 1200: 25. X = 50: c = 300, max(600, 700) = 700: 41.7. X = 75: c = 150, 550: 54.2.
 * In general min(X, 33.3 + (X - 33.3) / 2). parallel: 0, the lock is always busy. */
#include "two.h"

GT_DEFINE_REGION(critical)
GT_DEFINE_REGION(parallel)

static void *worker(void *p)
{
	uint64_t nc = gt_amount("critical", 600), np = gt_amount("parallel", 400);

	while (!atomic_load(&gt_stop)) {
		LOCK();
		region_critical(nc); /* GT_REGION critical */
		UNLOCK();
		region_parallel(np); /* GT_REGION parallel */
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "critical");
	return two_threads(worker, worker);
}

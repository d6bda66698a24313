/* SPDX-License-Identifier: MIT */
/* A data-parallel phase: two threads work 600 each at the same time (region work), meet at a
 * barrier, then one of them runs 400 alone (region alone) and they meet again.
 *
 * Expected: the period is 600 + 400 = 1000. work: 0.6 X, both threads are in S at once and
 * neither owes for the other. alone: 0.4 X. */
#include "two.h"

GT_DEFINE_REGION(work)
GT_DEFINE_REGION(alone)
static pthread_barrier_t bar;
static int over;

static void *worker(void *me)
{
	uint64_t nw = gt_amount("work", 600), na = gt_amount("alone", 400);

	for (;;) {
		region_work(nw); /* GT_REGION work */
		pthread_barrier_wait(&bar);
		if (!me) {
			region_alone(na); /* GT_REGION alone */
			GT_VISIT();
			over = atomic_load(&gt_stop);
		}
		pthread_barrier_wait(&bar);
		if (over)
			return me;
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "work");
	pthread_barrier_init(&bar, NULL, 2);
	return two_threads(worker, worker);
}

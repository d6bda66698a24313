/* SPDX-License-Identifier: MIT */
/* Four independent threads, each 300 (region work) and 200 (region rest): on two cores, twice
 * as many busy threads as cores and no synchronisation at all.
 *
 * Expected: all cores are always busy, so the rate is cores / (work + rest) on up to four
 * cores: work 0.6 X, rest 0.4 X. Two threads are often in S at once (union); a payer that
 * sleeps would hand its core to another thread and the slow-down would evaporate. */
#include "gt.h"

enum { CROWD = 4 };
GT_DEFINE_REGION(work)
GT_DEFINE_REGION(rest)

static void *worker(void *p)
{
	uint64_t nw = gt_amount("work", 300), nr = gt_amount("rest", 200);

	while (!atomic_load(&gt_stop)) {
		region_work(nw); /* GT_REGION work */
		region_rest(nr); /* GT_REGION rest */
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t[CROWD];

	gt_start(argc, argv, "work");
	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&t[i], NULL, worker, NULL))
			return 1;
	gt_wait();
	for (int i = 0; i < CROWD; i++)
		pthread_join(t[i], NULL);
	return gt_report();
}

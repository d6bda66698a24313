/* SPDX-License-Identifier: MIT */
/* Two busy threads that have nothing to do with each other, on one CPU: 400 (region work) and 100 (region rest) in one
 * of them, whose rate it is; the other's work, 300 (region beside) and 200, never ends.
 *
 * Expected: each has half of the CPU, whatever it does with it, so the rate is half of what the thread would have alone:
 * work 0.8 X, rest 0.2 X, beside 0. In real time S has more of the CPU than virtual time allows, and nobody
 * pays for that while he waits for the CPU himself. */
#include "gt.h"
#include <sched.h>

GT_DEFINE_REGION(work)
GT_DEFINE_REGION(rest)
GT_DEFINE_REGION(beside)
GT_DEFINE_REGION(aside)

static void *worker(void *p)
{
	uint64_t nw = gt_amount("work", 400), nr = gt_amount("rest", 100);

	while (!atomic_load(&gt_stop)) {
		region_work(nw); /* GT_REGION work */
		region_rest(nr); /* GT_REGION rest */
		GT_VISIT();
	}
	return p;
}

static void *other(void *p)
{
	uint64_t nb = gt_amount("beside", 300), na = gt_amount("aside", 200);

	while (!atomic_load(&gt_stop)) {
		region_beside(nb); /* GT_REGION beside */
		region_aside(na);
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t a, b;
	cpu_set_t cpus;

	gt_start(argc, argv, "work");
	CPU_ZERO(&cpus);
	CPU_SET((unsigned)sched_getcpu(), &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus) || pthread_create(&a, NULL, worker, NULL) ||
	    pthread_create(&b, NULL, other, NULL))
		return 1;
	gt_wait();
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return gt_report();
}

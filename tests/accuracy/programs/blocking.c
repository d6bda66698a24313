/* SPDX-License-Identifier: MIT */
/* One thread computes (400), then sleeps (600 nominal): region io is off the CPU.
 *
 * Expected: the kernel adds timer slack of some 50 us and a nominal microsecond is not
 * quite a real one, so with c the compute time and s the sleep, cpu: X c / (c + s) and io:
 * X (s - slack) / (c + s); about 0.4 X and 0.55 X. The measured truth counts. */
#include "gt.h"

GT_DEFINE_REGION(cpu)

static GT_NOINLINE void region_io(double us)
{
	struct timespec ts = { 0, (long)(us * 1000) };

	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
}

static void *worker(void *p)
{
	uint64_t n = gt_amount("cpu", 400);
	double us = (double)gt_amount("io", 600) / GT_IPU;

	while (!atomic_load(&gt_stop)) {
		region_cpu(n); /* GT_REGION cpu */
		region_io(us); /* GT_REGION io */
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t t;

	gt_start(argc, argv, "io");
	pthread_create(&t, NULL, worker, NULL);
	gt_wait();
	pthread_join(t, NULL);
	return gt_report();
}

/* SPDX-License-Identifier: MIT */
/* Start two threads, wait, join, report: the main() of most programs here. */
#ifndef TWO_H
#define TWO_H
#include "gt.h"

static pthread_barrier_t two_barrier;
static int two_over;

/* The two wait for each other; 0: that was the last time, as the first thread saw. */
static inline int two_meet(int is_first)
{
	if (is_first)
		two_over = atomic_load(&gt_stop);
	pthread_barrier_wait(&two_barrier);
	if (two_over)
		return 0;
	pthread_barrier_wait(&two_barrier); /* both have seen that it goes on */
	return 1;
}

static inline int two_threads(void *(*first)(void *), void *(*second)(void *))
{
	pthread_t a, b;

	pthread_barrier_init(&two_barrier, NULL, 2);
	if (pthread_create(&a, NULL, first, (void *)0) || pthread_create(&b, NULL, second, (void *)1))
		return 1;
	gt_wait();
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return gt_report();
}
#endif

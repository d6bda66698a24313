/* SPDX-License-Identifier: MIT */
/* Start two threads, wait, join, report: the main() of most programs here. */
#ifndef TWO_H
#define TWO_H
#include "gt.h"

static inline int two_threads(void *(*first)(void *), void *(*second)(void *))
{
	pthread_t a, b;

	if (pthread_create(&a, NULL, first, (void *)0) || pthread_create(&b, NULL, second, (void *)1))
		return 1;
	gt_wait();
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	return gt_report();
}
#endif

/* SPDX-License-Identifier: MIT */
/* Requests that one thread issues and another serves in order: what latency.c and openloop.c measure. */
#ifndef REQUESTS_H
#define REQUESTS_H
#include "two.h"

enum { REQUESTS_MAX = 64 };
static struct {
	pthread_mutex_t m;
	pthread_cond_t can_issue, can_serve;
	double begun[REQUESTS_MAX];
	unsigned head, tail, over;
} requests = { .m = PTHREAD_MUTEX_INITIALIZER,
	       .can_issue = PTHREAD_COND_INITIALIZER,
	       .can_serve = PTHREAD_COND_INITIALIZER };

/* `n` at once, as soon as at most `most` are in the system. Those for which there is no place are lost. */
static inline void requests_issue(unsigned n, unsigned most)
{
	pthread_mutex_lock(&requests.m);
	while (requests.head - requests.tail > most)
		pthread_cond_wait(&requests.can_issue, &requests.m);
	while (n-- && requests.head - requests.tail < REQUESTS_MAX) {
		GT_BEGIN("request");
		requests.begun[requests.head++ % REQUESTS_MAX] = gt_now();
	}
	pthread_cond_signal(&requests.can_serve);
	pthread_mutex_unlock(&requests.m);
}

static inline void requests_close(void)
{
	pthread_mutex_lock(&requests.m);
	requests.over = 1;
	pthread_cond_signal(&requests.can_serve);
	pthread_mutex_unlock(&requests.m);
}

/* Wait for one to serve, and for when it was issued; 0: there will be none. */
static inline int requests_get(double *begin)
{
	int ok;

	pthread_mutex_lock(&requests.m);
	while (requests.head == requests.tail && !requests.over)
		pthread_cond_wait(&requests.can_serve, &requests.m);
	ok = requests.head != requests.tail;
	*begin = requests.begun[requests.tail % REQUESTS_MAX];
	pthread_mutex_unlock(&requests.m);
	return ok;
}

/* It is served. Only now: a request in service is still in the system. */
static inline void requests_end(double begin)
{
	pthread_mutex_lock(&requests.m);
	requests.tail++;
	pthread_cond_signal(&requests.can_issue);
	pthread_mutex_unlock(&requests.m);
	GT_END("request");
	gt_latency(begin);
	GT_VISIT();
}
#endif

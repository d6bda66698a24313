/* SPDX-License-Identifier: MIT */
/* A bounded queue of tokens: pthread mutex and two condition variables. */
#ifndef QUEUE_H
#define QUEUE_H
#include <pthread.h>

enum { QUEUE_CAPACITY = 32 };
struct queue {
	pthread_mutex_t m;
	pthread_cond_t can_put, can_get;
	int n, closed;
};
#define QUEUE_INIT                                                                                           \
	{                                                                                                    \
		PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0          \
	}

static inline void queue_put(struct queue *q)
{
	pthread_mutex_lock(&q->m);
	while (q->n == QUEUE_CAPACITY && !q->closed)
		pthread_cond_wait(&q->can_put, &q->m);
	q->n++;
	pthread_cond_signal(&q->can_get);
	pthread_mutex_unlock(&q->m);
}

static inline int queue_get(struct queue *q)
{
	int ok;

	pthread_mutex_lock(&q->m);
	while (q->n == 0 && !q->closed)
		pthread_cond_wait(&q->can_get, &q->m);
	ok = q->n > 0 && !q->closed;
	if (ok)
		q->n--;
	pthread_cond_signal(&q->can_put);
	pthread_mutex_unlock(&q->m);
	return ok;
}

static inline void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->m);
	q->closed = 1;
	pthread_cond_broadcast(&q->can_put);
	pthread_cond_broadcast(&q->can_get);
	pthread_mutex_unlock(&q->m);
}
#endif

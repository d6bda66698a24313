/* SPDX-License-Identifier: MIT */
/* A latency point: one thread thinks (3000), then issues three requests at once; the other
 * serves them in order, each 500 (region lookup) and 300 more (region format).
 *
 * Expected: a request is in the system for 800, 1600 or 2400: 1600 on average (Little's
 * law over begin and end). lookup: 500 X per request of 800: latency 0.625 X; throughput 0,
 * the thinker leads. think: latency 0 as long as the server keeps up (X < 20), throughput
 * min(X, 20). */
#include "two.h"

GT_DEFINE_REGION(think)
GT_DEFINE_REGION(lookup)
GT_DEFINE_REGION(format)

enum { BURST = 3, SLOTS = 64 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t can_put = PTHREAD_COND_INITIALIZER, can_get = PTHREAD_COND_INITIALIZER;
static double begun[SLOTS];
static unsigned head, tail, over;

static void *client(void *p)
{
	uint64_t n = gt_amount("think", 3000);

	while (!atomic_load(&gt_stop)) {
		region_think(n); /* GT_REGION think */
		pthread_mutex_lock(&m);
		while (head - tail > 2 * BURST)
			pthread_cond_wait(&can_put, &m);
		for (int i = 0; i < BURST; i++) {
			GT_BEGIN("request");
			begun[head++ % SLOTS] = gt_now();
		}
		pthread_cond_signal(&can_get);
		pthread_mutex_unlock(&m);
	}
	pthread_mutex_lock(&m);
	over = 1;
	pthread_cond_signal(&can_get);
	pthread_mutex_unlock(&m);
	return p;
}

static void *server(void *p)
{
	uint64_t nl = gt_amount("lookup", 500), nf = gt_amount("format", 300);

	for (;;) {
		double begin;

		pthread_mutex_lock(&m);
		while (head == tail && !over)
			pthread_cond_wait(&can_get, &m);
		if (head == tail) {
			pthread_mutex_unlock(&m);
			return p;
		}
		begin = begun[tail % SLOTS];
		pthread_mutex_unlock(&m);
		region_lookup(nl); /* GT_REGION lookup */
		region_format(nf); /* GT_REGION format */
		pthread_mutex_lock(&m);
		tail++; /* only now: a request in service is still in the system */
		pthread_cond_signal(&can_put);
		pthread_mutex_unlock(&m);
		GT_END("request");
		gt_latency(begin);
		GT_VISIT();
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "lookup");
	return two_threads(client, server);
}

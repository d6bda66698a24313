/* SPDX-License-Identifier: MIT */
/* An open loop: two requests arrive every 2.5 ms by the clock (TIMER_ABSTIME), whatever
 * happens; a server takes them from a queue, each 600 (region serve) and 200 (region rest).
 *
 * Expected: the server keeps up, so the clock decides the throughput: 0. A request is in the
 * system for 800 or 1600, 1200 on average, of which serve is three quarters: latency 0.75 X,
 * less the wake-up of the server. */
#include "two.h"

GT_DEFINE_REGION(serve)
GT_DEFINE_REGION(rest)

enum { BURST = 2, SLOTS = 64 };
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t can_get = PTHREAD_COND_INITIALIZER;
static double begun[SLOTS];
static unsigned head, tail, over;

static void *arrivals(void *p)
{
	double next = gt_now();

	while (!atomic_load(&gt_stop)) {
		struct timespec ts = gt_timespec(next += 2.5e-3);

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		pthread_mutex_lock(&m);
		for (int i = 0; i < BURST && head - tail < SLOTS; i++) {
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
	uint64_t ns = gt_amount("serve", 600), nr = gt_amount("rest", 200);

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
		region_serve(ns); /* GT_REGION serve */
		region_rest(nr);  /* GT_REGION rest */
		pthread_mutex_lock(&m);
		tail++; /* only now: a request in service is still in the system */
		pthread_mutex_unlock(&m);
		GT_END("request");
		gt_latency(begin);
		GT_VISIT();
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "serve");
	return two_threads(arrivals, server);
}

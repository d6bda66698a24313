/* SPDX-License-Identifier: MIT */
/* An open loop: two requests arrive every 2.5 ms by the clock (TIMER_ABSTIME), whatever
 * happens; a server takes them from a queue, each 600 (region serve) and 200 (region rest).
 *
 * Expected: the server keeps up, so the clock decides the throughput: 0. A request is in the
 * system for 800 or 1600, 1200 on average, of which serve is three quarters: latency 0.75 X,
 * less the wake-up of the server. */
#include "requests.h"

GT_DEFINE_REGION(serve)
GT_DEFINE_REGION(rest)

enum { BURST = 2 };

static void *arrivals(void *p)
{
	double next = gt_now();

	while (!atomic_load(&gt_stop)) {
		struct timespec ts = gt_timespec(next += 2.5e-3);

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
			;
		requests_issue(BURST, REQUESTS_MAX);
	}
	requests_close();
	return p;
}

static void *server(void *p)
{
	uint64_t ns = gt_amount("serve", 600), nr = gt_amount("rest", 200);
	double begin;

	while (requests_get(&begin)) {
		region_serve(ns); /* GT_REGION serve */
		region_rest(nr);  /* GT_REGION rest */
		requests_end(begin);
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "serve");
	return two_threads(arrivals, server);
}

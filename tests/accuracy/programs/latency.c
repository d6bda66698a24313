/* SPDX-License-Identifier: MIT */
/* A latency point: one thread thinks (3000), then issues three requests at once; the other
 * serves them in order, each 500 (region lookup) and 300 more (region format).
 *
 * Expected: a request is in the system for 800, 1600 or 2400: 1600 on average (Little's
 * law over begin and end). lookup: 500 X per request of 800: latency 0.625 X; throughput 0,
 * the thinker leads. think: latency 0 as long as the server keeps up (X < 20), throughput
 * min(X, 20). */
#include "requests.h"

GT_DEFINE_REGION(think)
GT_DEFINE_REGION(lookup)
GT_DEFINE_REGION(format)

enum { BURST = 3 };

static void *client(void *p)
{
	uint64_t n = gt_amount("think", 3000);

	while (!atomic_load(&gt_stop)) {
		region_think(n); /* GT_REGION think */
		requests_issue(BURST, 2 * BURST);
	}
	requests_close();
	return p;
}

static void *server(void *p)
{
	uint64_t nl = gt_amount("lookup", 500), nf = gt_amount("format", 300);
	double begin;

	while (requests_get(&begin)) {
		region_lookup(nl); /* GT_REGION lookup */
		region_format(nf); /* GT_REGION format */
		requests_end(begin);
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "lookup");
	return two_threads(client, server);
}

/* SPDX-License-Identifier: MIT */
/* Two threads in lock-step over two pipes (blocking reads): ping 700, pong 300.
 *
 * Expected: never both at once, so the period is 1000 and two wake-ups. ping: 0.7 X,
 * pong: 0.3 X, a little less for the wake-ups. Nobody ever owes: whoever is not in S waits. */
#include "token.h"
#include "two.h"

GT_DEFINE_REGION(ping)
GT_DEFINE_REGION(pong)
static int there[2], back[2];

static void *ping(void *p)
{
	uint64_t n = gt_amount("ping", 700);

	while (!atomic_load(&gt_stop)) {
		region_ping(n); /* GT_REGION ping */
		token_put(there[1], 1);
		token_get(back[0]);
		GT_VISIT();
	}
	token_put(there[1], 0);
	return p;
}

static void *pong(void *p)
{
	uint64_t n = gt_amount("pong", 300);

	while (token_get(there[0])) {
		region_pong(n); /* GT_REGION pong */
		token_put(back[1], 1);
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "ping");
	if (pipe(there) || pipe(back))
		return 1;
	return two_threads(ping, pong);
}

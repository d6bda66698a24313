/* SPDX-License-Identifier: MIT */
/* A hand-off by spinning with sched_yield: ping 700 and pong 300 in turn; whoever is not in
 * turn yields in a loop. Always runnable, always on a CPU.
 *
 * Expected: ping 0.7 X, pong 0.3 X. The spinner owes p for the time in which the other is
 * in S, and pays while it has nothing to do anyway: a payment that goes on after the turn
 * came is the error to watch (one lump, p x period, per round). */
#include "two.h"
#include <sched.h>

GT_DEFINE_REGION(ping)
GT_DEFINE_REGION(pong)
static atomic_int turn; /* 0 ping, 1 pong, 2 over */

static void *ping(void *p)
{
	uint64_t n = gt_amount("ping", 700);

	while (!atomic_load(&gt_stop)) {
		region_ping(n); /* GT_REGION ping */
		atomic_store(&turn, 1);
		while (atomic_load(&turn) == 1)
			sched_yield();
		GT_VISIT();
	}
	atomic_store(&turn, 2);
	return p;
}

static void *pong(void *p)
{
	uint64_t n = gt_amount("pong", 300);

	for (;;) {
		int t;

		while ((t = atomic_load(&turn)) == 0)
			sched_yield();
		if (t == 2)
			return p;
		region_pong(n); /* GT_REGION pong */
		atomic_store(&turn, 0);
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "ping");
	return two_threads(ping, pong);
}

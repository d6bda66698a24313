/* SPDX-License-Identifier: MIT */
/* Ping-pong over a condition variable with tiny sections: 60 and 40 nominal microseconds a
 * turn, so thousands of hand-offs a second, many of them between two samples.
 *
 * Expected: never both at once. With w the cost of a wake-up (5 to 50 us, the machine's):
 * ping: 60 X / (100 + 2 w), pong: 40 X / (100 + 2 w). The measured truth counts. */
#include "two.h"

GT_DEFINE_REGION(ping)
GT_DEFINE_REGION(pong)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int turn; /* 0 ping, 1 pong, 2 over */

static int pass(int to, int until)
{
	int t;

	pthread_mutex_lock(&m);
	turn = to;
	pthread_cond_signal(&changed);
	while (turn != until && turn != 2)
		pthread_cond_wait(&changed, &m);
	t = turn;
	pthread_mutex_unlock(&m);
	return t;
}

static void *ping(void *p)
{
	uint64_t n = gt_amount("ping", 60);

	while (!atomic_load(&gt_stop)) {
		region_ping(n); /* GT_REGION ping */
		pass(1, 0);
		GT_VISIT();
	}
	pass(2, 2);
	return p;
}

static void *pong(void *p)
{
	uint64_t n = gt_amount("pong", 40);

	while (pass(0, 1) != 2)
		region_pong(n); /* GT_REGION pong */
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "ping");
	return two_threads(ping, pong);
}

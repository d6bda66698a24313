/* SPDX-License-Identifier: MIT */
/* A holder does tasks under a lease; a monitor waits for the end of each, 1700 at most, then
 * takes the lease away, and the task counts for nothing. Tasks are 1000, 1400, 2200 and 2600
 * in turn (region task), each followed by 200 without a lease (region rest).
 *
 * Expected: of four tasks 2 are in time; with X = 25 (750, 1050, 1650, 1950) 3, from X = 35 on
 * all (the monitor wakes up some 90 late, which is in between everywhere). So per visit 8000 / 2;
 * 25: 6200 / 3, 48.3. 50: 4400 / 4, 72.5. 75: 2600 / 4, 83.8. */
#include "two.h"

GT_DEFINE_REGION(task)
GT_DEFINE_REGION(rest)
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t begun = PTHREAD_COND_INITIALIZER, ended;
static int held, revoked, over;
static double deadline;

/* Was it in time? */
static int end_task(void)
{
	int in_time;

	pthread_mutex_lock(&m);
	in_time = !revoked;
	held = revoked = 0;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&m);
	return in_time;
}

static void begin_task(double lease)
{
	pthread_mutex_lock(&m);
	held = 1;
	deadline = gt_now() + lease;
	pthread_cond_signal(&begun);
	pthread_mutex_unlock(&m);
}

static void *holder(void *p)
{
	uint64_t n[] = { gt_amount("task", 1000), gt_amount("task", 1400), gt_amount("task", 2200),
			 gt_amount("task", 2600) };
	uint64_t rest = gt_amount("rest", 200);
	double lease = gt_real(1700);

	for (unsigned i = 0; !atomic_load(&gt_stop); i++) {
		begin_task(lease);
		region_task(n[i % 4]); /* GT_REGION task */
		if (end_task())
			GT_VISIT();
		region_rest(rest); /* GT_REGION rest */
	}
	pthread_mutex_lock(&m);
	over = 1;
	pthread_cond_signal(&begun);
	pthread_mutex_unlock(&m);
	return p;
}

static void *monitor(void *p)
{
	pthread_mutex_lock(&m);
	while (!over) {
		double mine = deadline;
		struct timespec ts = gt_timespec(mine);

		if (!held || revoked)
			pthread_cond_wait(&begun, &m);
		else if (pthread_cond_timedwait(&ended, &m, &ts) == ETIMEDOUT && held && deadline == mine)
			revoked = 1;
	}
	pthread_mutex_unlock(&m);
	return p;
}

int main(int argc, char **argv)
{
	pthread_condattr_t attr;

	gt_start(argc, argv, "task");
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&ended, &attr);
	return two_threads(holder, monitor);
}

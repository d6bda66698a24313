/* SPDX-License-Identifier: MIT */
/* Works for a number of seconds, and says after each tenth of one how many pieces of work it did in
 * it, how long it was held (us): in pieces that took much more CPU time than a piece does, and how
 * much CPU time it has had (us). One thread runs what can be selected, the other is delayed. */
#include "tests/apps/app.h"
#include <pthread.h>

enum { HELD = 4 }; /* us; a piece takes 1, and ten times that at 90 % */

static double until;

__attribute__((noinline)) static void chosen(void)
{
	for (volatile int i = 0; i < 2000000; i++) /* long enough for probes at entry and exit */
		;
}

static void *chooses(void *unused)
{
	while (now() < until)
		chosen();
	return unused;
}

static double seconds_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Returns how long it was held, s, since the piece before it: also where it looked at a clock. */
static double piece(void)
{
	static double before;
	double took, here;

	for (volatile int i = 0; i < 2000; i++)
		;
	CAUSAL_PROGRESS_NAMED("piece");
	here = seconds_of(CLOCK_THREAD_CPUTIME_ID);
	took = here - before;
	before = here;
	return 1e6 * took > HELD ? took : 0;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, start = now();
	pthread_t thread;

	until = start + seconds;
	CHECK(!pthread_create(&thread, NULL, chooses, NULL));
	for (int tenth = 1; tenth <= (int)(seconds * 10); tenth++) {
		long pieces = 0;
		double held = 0;

		for (; now() < start + tenth / 10.0; pieces++)
			held += piece();
		/* the time as /proc/uptime tells it; that needs --clock real */
		printf("%d %.3f %ld %.0f %.0f\n", tenth, seconds_of(CLOCK_BOOTTIME), pieces, 1e6 * held,
		       1e6 * seconds_of(CLOCK_PROCESS_CPUTIME_ID));
		fflush(stdout);
	}
	CHECK(!pthread_join(thread, NULL));
	return 0;
}

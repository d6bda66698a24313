/* SPDX-License-Identifier: MIT */
/* What each part is worth is known: large() takes 3/5 of a round, small() 1/5, the rest is neither;
 * aside() runs beside some of the rounds, and is waited for when it is long done. Runs for a number
 * of seconds; with a second argument it does requests instead: all begin with large() and small(), every
 * eighth goes on with rare(), which is as long as three of them. */
#include "tests/apps/app.h"
#include <pthread.h>
#include <semaphore.h>

enum { UNIT = 10000, LOT = 200 }; /* a round takes some 100 us */

static sem_t begun, ended;

/* In registers, and in one place only: loops with memory differ in speed by where they lie. */
__attribute__((noinline)) static void spin(int n)
{
	unsigned x = 1;

	for (int i = 0; i < n; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(x));
}

__attribute__((noinline)) static void large(void)
{
	spin(6 * UNIT);
}

__attribute__((noinline)) static void small(void)
{
	spin(2 * UNIT);
}

__attribute__((noinline)) static void aside(void)
{
	spin(3 * LOT * UNIT);
}

/* What it returns makes room for a probe before its end. */
__attribute__((noinline)) static unsigned rare(void)
{
	spin(24 * UNIT);
	return 24 * UNIT;
}

static void requests(double end)
{
	for (unsigned i = 0, done = 0; now() < end; i++) {
		CAUSAL_BEGIN("request");
		large();
		small();
		if (i % 8 == 0)
			done += rare();
		CAUSAL_END("request");
		CHECK(done);
	}
}

static void *helps(void *unused)
{
	for (;;) {
		sem_wait(&begun);
		aside();
		sem_post(&ended);
	}
	return unused;
}

int main(int argc, char **argv)
{
	double end = now() + (argc > 1 ? atof(argv[1]) : 1);
	pthread_t helper;

	if (argc > 2) {
		requests(end);
		return 0;
	}
	sem_init(&begun, 0, 0);
	sem_init(&ended, 0, 0);
	CHECK(!pthread_create(&helper, NULL, helps, NULL));
	while (now() < end) {
		sem_post(&begun);
		for (int i = 0; i < LOT; i++) {
			large();
			small();
			spin(2 * UNIT);
			CAUSAL_PROGRESS_NAMED("round");
		}
		sem_wait(&ended);
	}
	return 0;
}

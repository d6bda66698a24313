/* SPDX-License-Identifier: MIT */
/* A program that has never heard of progress points: two workers take units from a counter, a third
 * thread polls and spins. Runs for a number of units, or, with a second argument, of seconds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static atomic_long next;
static long units;
static double until;
static atomic_int over;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void first_half(void)
{
	for (volatile int i = 0; i < 100000; i++)
		;
}

__attribute__((noinline)) static void second_half(void)
{
	for (volatile int i = 0; i < 60000; i++)
		;
}

static void *work(void *p)
{
	while (until > 0 ? now() < until : atomic_fetch_add(&next, 1) < units) {
		first_half(); /* MARK: unit */
		second_half();
	}
	return p;
}

/* Goes on whether work is done or not, in bursts. */
static void *poll_for_news(void *p)
{
	while (!atomic_load(&over)) {
		struct timespec pause = { 0, 1000000 + 30000000 * (long)(rand() % 8 == 0) };

		for (volatile int i = 0; i < rand() % 20000; i++)
			;
		nanosleep(&pause, NULL);
	}
	return p;
}

int main(int argc, char **argv)
{
	pthread_t worker[2], poller;

	units = argc > 1 ? atol(argv[1]) : 10000;
	if (argc > 2)
		until = now() + atof(argv[2]);
	if (pthread_create(&poller, NULL, poll_for_news, NULL))
		return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&worker[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(worker[i], NULL);
	atomic_store(&over, 1);
	pthread_join(poller, NULL);
	return 0;
}

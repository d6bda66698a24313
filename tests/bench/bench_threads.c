/* SPDX-License-Identifier: MIT */
/* What a thread costs: bench_threads [ALIVE] creates and joins threads, with ALIVE others waiting, and prints
 * the least time for one that a round of them took, in us. tests/bench/threads.sh compares. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 20, THREADS = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t over = PTHREAD_COND_INITIALIZER;
static int is_over;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void *ends(void *unused)
{
	return unused;
}

static void *waits(void *unused)
{
	pthread_mutex_lock(&lock);
	while (!is_over)
		pthread_cond_wait(&over, &lock);
	pthread_mutex_unlock(&lock);
	return unused;
}

static pthread_t begin(const pthread_attr_t *small, void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, small, run, NULL))
		abort();
	return thread;
}

int main(int argc, char **argv)
{
	int alive = argc > 1 ? atoi(argv[1]) : 0;
	pthread_t *other = calloc((size_t)alive + 1, sizeof *other);
	pthread_attr_t small;
	double least = 1e9;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < alive; i++)
		other[i] = begin(&small, waits);
	for (int round = 0; round < ROUNDS; round++) {
		double from = now(), took;

		for (int i = 0; i < THREADS; i++)
			pthread_join(begin(NULL, ends), NULL);
		took = (now() - from) / THREADS;
		least = took < least ? took : least;
	}
	pthread_mutex_lock(&lock);
	is_over = 1;
	pthread_cond_broadcast(&over);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < alive; i++)
		pthread_join(other[i], NULL);
	free(other);
	printf("%.1f\n", least);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* Many threads for causal sample: `alive N MS`: N at once, each with a name of its own, and so much CPU time;
 * `short N`: N one after the other, two at a time, some 100 us each; `long SECONDS [MS]`: two that work and wait for
 * each other, with pauses of so many ms, and short ones all the time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

enum { STACK = 65536, US = 1000, MS = 1000000 };

static pthread_barrier_t together;
static pthread_attr_t small;
static unsigned ms;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static __attribute__((noinline)) void burn(uint64_t ns)
{
	uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 20000;
		     i++) /* the clock is the kernel's, where perf sees nothing */
			;
}

static void *one_of_many(void *unused)
{
	pthread_barrier_wait(&together);
	burn((uint64_t)ms * MS);
	pthread_barrier_wait(&together);
	return unused;
}

static void *short_one(void *unused)
{
	burn(100 * US);
	return unused;
}

static pthread_t begin(void *(*run)(void *))
{
	pthread_t thread;
	int error = pthread_create(&thread, &small, run, NULL);

	if (error) {
		fprintf(stderr, "no more threads: %s\n", strerror(error));
		exit(1);
	}
	return thread;
}

static void alive(unsigned n)
{
	pthread_t *thread = calloc(n, sizeof *thread);

	pthread_barrier_init(&together, NULL, n);
	for (unsigned i = 0; i < n; i++) {
		char name[16];

		snprintf(name, sizeof name, "t%u", i); /* which it inherits */
		prctl(PR_SET_NAME, name, 0, 0, 0);
		thread[i] = begin(one_of_many);
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	free(thread);
}

static void short_ones(unsigned n)
{
	for (unsigned i = 0; i < n; i += 2) {
		pthread_t one = begin(short_one), other = begin(short_one);

		pthread_join(one, NULL);
		pthread_join(other, NULL);
	}
}

static uint64_t end;

static void pause_for(unsigned ms_long)
{
	struct timespec pause = { ms_long / 1000, ms_long % 1000 * MS };

	nanosleep(&pause, NULL);
}

static void *in_turns(void *unused)
{
	while (read_clock(CLOCK_MONOTONIC) < end) {
		pthread_barrier_wait(&together);
		burn(2 * MS);
		if (ms)
			pause_for(ms);
	}
	exit(0); /* the other may wait */
	return unused;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	ms = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 0;
	if (n && !strcmp(argv[1], "alive")) {
		alive(n);
	} else if (n && !strcmp(argv[1], "short")) {
		short_ones(n);
	} else if (n && !strcmp(argv[1], "long")) {
		end = read_clock(CLOCK_MONOTONIC) + (uint64_t)n * 1000 * MS;
		pthread_barrier_init(&together, NULL, 2);
		begin(in_turns);
		begin(in_turns);
		while (read_clock(CLOCK_MONOTONIC) < end) {
			short_ones(2);
			pause_for(20);
		}
	} else {
		fputs("sampled_threads alive N MS | short N | long SECONDS [MS]\n", stderr);
		return 2;
	}
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* A program whose shares of CPU time and whose waits are known: three quarters of the CPU time in `most`, a
 * quarter in `rest`; `consume` waits for `produce`, `nap` sleeps. It prints how long the waits took, in ns. Or it ends
 * while threads wait. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, ROUNDS = 20, PAGE = 4096, CANCEL = 100 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int queue;
static size_t pages;
static uint64_t consuming, napping;

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Inlined, so that the time is the caller's own; looks at the clock seldom. */
__attribute__((always_inline)) static inline void burn(uint64_t ns)
{
	uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + ns;
	volatile unsigned k = 0;

	while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		for (int i = 0; i < 100000; i++)
			k++;
}

__attribute__((noinline)) static void most(uint64_t ns)
{
	burn(3 * ns);
	__asm__("");
}

__attribute__((noinline)) static void rest(uint64_t ns)
{
	burn(ns);
	__asm__("");
}

__attribute__((noinline)) static void produce(void)
{
	pthread_mutex_lock(&lock);
	queue++;
	pthread_cond_signal(&filled);
	pthread_mutex_unlock(&lock);
	__asm__("");
}

__attribute__((noinline)) static void consume(void)
{
	uint64_t began = read_clock(CLOCK_MONOTONIC);

	pthread_mutex_lock(&lock);
	while (!queue)
		pthread_cond_wait(&filled, &lock);
	queue--;
	pthread_mutex_unlock(&lock);
	consuming += read_clock(CLOCK_MONOTONIC) - began;
}

__attribute__((noinline)) static void nap(void)
{
	uint64_t began = read_clock(CLOCK_MONOTONIC);

	usleep(150000);
	napping += read_clock(CLOCK_MONOTONIC) - began;
}

__attribute__((noinline)) static void wait_for_nobody(void)
{
	pthread_mutex_lock(&lock);
	for (;;)
		pthread_cond_wait(&filled, &lock);
}

/* Now and then at first, without an end then. */
__attribute__((noinline)) static void listen_to_nobody(void)
{
	for (int i = 0; i < 400; i++)
		poll(NULL, 0, i < 399 ? 0 : -1);
}

static void *wait_for_ever(void *listens)
{
	usleep(50000);
	if (listens)
		listen_to_nobody();
	wait_for_nobody();
	return NULL;
}

__attribute__((noinline)) static void *call(void *unused)
{
	static char block[1 << 20];
	uint64_t end = read_clock(CLOCK_THREAD_CPUTIME_ID) + 100 * (uint64_t)MS;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (fd >= 0 && read_clock(CLOCK_THREAD_CPUTIME_ID) < end)
		if (read(fd, block, sizeof block) < 0)
			break;
	close(fd);
	return unused;
}

/* 100 ms of reads each, one thread after the other. */
static int call_in_threads(void)
{
	pthread_t thread;

	for (int i = 0; i < 5; i++)
		if (pthread_create(&thread, NULL, call, NULL) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

/* 50 ms of a sleep that ends, and 250 ms of two waits that do not. */
static int end_in_waits(int sig)
{
	pthread_t thread[2];

	pthread_create(&thread[0], NULL, wait_for_ever, NULL);
	pthread_create(&thread[1], NULL, wait_for_ever, thread);
	usleep(300000);
	if (sig == CANCEL) {
		for (int i = 0; i < 2; i++) {
			pthread_cancel(thread[i]);
			pthread_join(thread[i], NULL);
		}
		return call_in_threads();
	}
	if (sig)
		kill(getpid(), sig);
	_exit(0);
}

/* So many pages that were not there. */
__attribute__((noinline)) static void touch(void)
{
	volatile char *at =
		mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise((void *)(uintptr_t)at, pages * PAGE, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < pages; i++)
		at[i * PAGE] = 1;
}

static void *work(void *ms)
{
	uint64_t ns = (uint64_t)strtol(ms, NULL, 10) * MS / ROUNDS / 4;

	if (pages)
		touch();
	for (int i = 0; i < ROUNDS; i++) {
		most(ns);
		rest(ns);
		produce();
	}
	return NULL;
}

static void *short_one(void *unused)
{
	burn(100000);
	return unused;
}

static int have_many(long n)
{
	pthread_t thread;

	while (n-- > 0)
		if (pthread_create(&thread, NULL, short_one, NULL) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

/* sampled MS [PAGES]: so much CPU time; so many pages are touched. sampled waits SIGNAL: ends of that, or of itself (0);
 * with 100, cancels who waits, and goes on.
 * sampled threads N: has so many, of 100 us each, one after the other. */
int main(int argc, char **argv)
{
	pthread_t worker;

	if (argc > 2 && !strcmp(argv[1], "waits"))
		return end_in_waits((int)strtol(argv[2], NULL, 10));
	if (argc > 2 && !strcmp(argv[1], "threads"))
		return have_many(strtol(argv[2], NULL, 10));
	pages = argc > 2 ? (size_t)strtol(argv[2], NULL, 10) : 0;
	if (pthread_create(&worker, NULL, work, argc > 1 ? argv[1] : (char[]){ "400" }))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		consume();
	pthread_join(worker, NULL);
	nap();
	printf("%llu %llu\n", (unsigned long long)consuming, (unsigned long long)napping);
	return 0;
}

/* SPDX-License-Identifier: MIT */
/* How long a thread stands still, by its own clock: bench_held SECONDS. One thread runs selected(), others, one
 * after the other, read the time-stamp counter without a break. A line for each gap between two readings: the
 * thread, CLOCK_MONOTONIC at its end and its length in ns, how long of that the thread waited for a CPU, in ns, the
 * signal that came in it (0: none), and how many signals this thread had before. tests/bench/held.py adds the
 * delays that causal says to have inserted. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

enum {
	LEAST = 300,      /* ns; shorter gaps are none */
	LIFE = 500,       /* ms of one thread, so that there are many first signals, too */
	GAPS = 200000,    /* of one thread */
	STACK = 64 * 1024 /* bytes for handlers */
};

struct gap {
	uint64_t end, length, off; /* ns */
	int signal;
};

static struct gap gap[GAPS];
static double cycles; /* in a ns */
static atomic_bool over;
static __thread volatile int *came; /* where the kernel puts the number of a signal that comes */

/* Past libc, whose clocks causal slows down, and whose calls are meetings. */
static long call(long number, long a, const void *b, long c, long d)
{
	register long r10 __asm__("r10") = d;

	__asm__ volatile("syscall"
			 : "+a"(number)
			 : "D"(a), "S"(b), "d"(c), "r"(r10)
			 : "rcx", "r11", "memory");
	return number;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	call(SYS_clock_gettime, CLOCK_MONOTONIC, &t, 0, 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* How long the thread has waited for a CPU so far: its clock of CPU time also leaves out, too late, what the host of
 * a virtual machine took. */
static uint64_t waited(int schedstat)
{
	char text[96];
	long n = call(SYS_pread64, schedstat, text, sizeof text - 1, 0);

	if (n <= 0)
		abort();
	text[n] = 0;
	return strtoul(strchr(text, ' '), NULL, 10);
}

static void find_place(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	came = &info->si_signo;
}

/* All signals of this thread come on a stack of their own, so that each writes to the same place. */
static void prepare_stack(char *stack)
{
	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = STACK }, NULL);
	raise(SIGUSR1);
	if (!came || (char *)came < stack || (char *)came >= stack + STACK)
		abort();
	*came = 0;
}

static void print(unsigned gaps)
{
	int tid = gettid();

	for (unsigned i = 0, signals = 0; i < gaps; i++) {
		printf("%d %lu %lu %lu %d %u\n", tid, gap[i].end, gap[i].length, gap[i].off, gap[i].signal,
		       signals);
		signals += gap[i].signal != 0;
	}
}

static void *watch(void *stack)
{
	uint64_t last, before, end, until, least = (uint64_t)(LEAST * cycles);
	int schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	unsigned gaps = 0;

	prepare_stack(stack);
	before = waited(schedstat);
	end = now_ns();
	until = end + LIFE * UINT64_C(1000000);
	last = __rdtsc();
	while (end < until && gaps < GAPS) {
		uint64_t now = __rdtsc();

		if (now - last > least) {
			uint64_t all = waited(schedstat);

			end = now_ns();
			gap[gaps++] = (struct gap){ end, (uint64_t)((double)(now - last) / cycles),
						    all - before, *came };
			before = waited(schedstat); /* without what came since then */
			*came = 0;
			now = __rdtsc();
		}
		last = now;
	}
	close(schedstat);
	sigaltstack(&(stack_t){ .ss_flags = SS_DISABLE }, NULL);
	print(gaps);
	return NULL;
}

__attribute__((noinline)) void selected(void)
{
	for (int i = 0; i < 10000; i++)
		__asm__ volatile("pause");
}

__attribute__((noinline)) void unselected(void)
{
	for (int i = 0; i < 10000; i++)
		__asm__ volatile("pause");
}

static void *work(void *unused)
{
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		selected();
		unselected();
	}
	return unused;
}

static void calibrate(void)
{
	uint64_t from = now_ns(), first = __rdtsc(), to;

	do
		to = now_ns();
	while (to - from < 50000000);
	cycles = (double)(__rdtsc() - first) / (double)(to - from);
}

int main(int argc, char **argv)
{
	uint64_t until = now_ns() + strtoul(argc > 1 ? argv[1] : "10", NULL, 10) * 1000000000;
	char *stack = malloc(STACK);
	pthread_t worker, watcher;

	calibrate();
	sigaction(SIGUSR1,
		  &(struct sigaction){ .sa_sigaction = find_place, .sa_flags = SA_SIGINFO | SA_ONSTACK },
		  NULL);
	if (!stack || pthread_create(&worker, NULL, work, NULL))
		return 1;
	while (now_ns() < until) {
		if (pthread_create(&watcher, NULL, watch, stack))
			return 1;
		pthread_join(watcher, NULL);
	}
	atomic_store(&over, 1);
	pthread_join(worker, NULL);
	free(stack);
	return 0;
}

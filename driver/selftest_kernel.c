/* SPDX-License-Identifier: MIT */
/* What the kernel lets `causal selftest` do, tried as the runtime does it: perf events, timers,
 * writing into text. Driver's process, one thread. */
#include "causal/conductor/backend.h"
#include "core/clock.h"
#include "driver/selftest.h"
#include "sampler/switches.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, GAPS = 15, PAGE = 4096 };
static const uint64_t never = UINT64_C(1) << 50; /* ns: days */

void ca_selftest_perf(struct ca_selftest_check *check)
{
	struct ca_switches log;
	struct ca_err why = { .text = "context switches are not recorded" };

	check->name = "perf events";
	if (ca_backend_perf(&why) == CA_OK && ca_switches_open(&log) == CA_OK) {
		ca_switches_close(&log);
		snprintf(check->text, sizeof check->text,
			 "task-clock samples and context switches are allowed");
		return;
	}
	check->grade = CA_SELFTEST_DOUBT;
	snprintf(check->text, sizeof check->text,
		 "not to be had: timers give the samples, and who was on a CPU is known less exactly");
	snprintf(check->to_do, sizeof check->to_do, "%.230s", why.text);
}

static long number_in(const char *path)
{
	FILE *file = fopen(path, "re");
	long number = -1;

	if (file && fscanf(file, "%ld", &number) != 1)
		number = -1;
	if (file)
		fclose(file);
	return number;
}

/* Threads that get all of their events, up to `most`; *error: why there are no more. */
static unsigned threads_with_events(unsigned most, int *error)
{
	struct ca_tick *tick = calloc(most, sizeof *tick);
	struct ca_switches *log = calloc(most, sizeof *log);
	unsigned n = 0;

	*error = 0;
	while (tick && log && n < most) {
		if (ca_tick_start(&tick[n], CA_BACKEND_PERF, never, never, SIGURG)) {
			*error = tick[n].error;
			break;
		}
		if (ca_switches_open(&log[n])) {
			ca_tick_stop(&tick[n]);
			break;
		}
		n++;
	}
	for (unsigned i = 0; i < n; i++) {
		ca_tick_stop(&tick[i]);
		ca_switches_close(&log[i]);
	}
	free(tick);
	free(log);
	return n;
}

#define COST "each locks 12 KiB of memory and keeps no descriptor"

/* A thread's events take three pages of locked memory, and a descriptor for a moment. */
void ca_selftest_room(struct ca_selftest_check *check)
{
	enum { MANY = 512, FEW = 64 };
	int error;
	unsigned n;

	ca_tick_init();
	n = threads_with_events(MANY, &error);
	check->name = "room for threads";
	if (n == MANY) {
		snprintf(check->text, sizeof check->text, "perf events for %d threads and more: " COST, MANY);
		return;
	}
	if (n == 0 && error != EMFILE && error != ENFILE) {
		snprintf(check->text, sizeof check->text, "none have perf events");
		return;
	}
	check->grade = n < FEW ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text,
		 "perf events for %u threads at a time, timers for further ones: " COST, n);
	if (error == EMFILE || error == ENFILE)
		snprintf(check->to_do, sizeof check->to_do, "raise the limit of open files: ulimit -n 1024");
	else if (error != EACCES && error != EPERM)
		snprintf(
			check->to_do, sizeof check->to_do,
			"for programs with more threads, as root, do sysctl kernel.perf_event_mlock_kb=16384 "
			"(now %ld), or ulimit -l unlimited",
			number_in("/proc/sys/kernel/perf_event_mlock_kb"));
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Between two signals of a CPU-clock timer that would like to be faster, on the wall: the median.
 * ns; 0: none came in half a second. */
static uint64_t timer_period(void)
{
	const struct timespec at_once = { 0, 0 };
	uint64_t gap[GAPS], last = 0, from = ca_clock_now();
	struct ca_tick tick = { 0 };
	sigset_t set, old;
	unsigned n = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	if (sigprocmask(SIG_BLOCK, &set, &old))
		return 0;
	if (ca_tick_start(&tick, CA_BACKEND_TIMER, MS / 10, MS / 10, SIGRTMIN) == CA_OK) {
		for (uint64_t t = from; n < GAPS && t - from < UINT64_C(500) * MS;) {
			bool came = sigtimedwait(&set, NULL, &at_once) == SIGRTMIN;

			t = ca_clock_now();
			if (came && last)
				gap[n++] = t - last;
			if (came)
				last = t;
		}
		ca_tick_stop(&tick);
		while (sigtimedwait(&set, NULL, &at_once) == SIGRTMIN)
			;
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	qsort(gap, n, sizeof *gap, by_value);
	return n ? gap[n / 2] : 0;
}

/* The kernel looks at CPU-clock timers at its own tick, which is what its coarse clocks go by. That
 * is told rather than what was seen, which is more where others take the CPU. */
static double tick_of(uint64_t seen)
{
	struct timespec step = { 0, 0 };

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) || step.tv_sec || step.tv_nsec < MS / 2)
		return (double)seen / MS;
	return (double)step.tv_nsec / MS;
}

void ca_selftest_timer(struct ca_selftest_check *check)
{
	uint64_t seen = timer_period();
	double ms = seen ? tick_of(seen) : 0;
	enum ca_selftest_grade poor = ca_backend_perf(NULL) ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;

	check->name = "timer ticks";
	if (ms <= 0) {
		check->grade = poor;
		snprintf(check->text, sizeof check->text,
			 "no timer on a thread's CPU time works, so samples can come from perf only");
		return;
	}
	check->grade = ms > 5.5 ? poor : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text,
		 "every %.1f ms of CPU time (CONFIG_HZ %.0f): without perf, predictions are less exact", ms,
		 1000 / ms);
	if (ms > 5.5)
		snprintf(check->to_do, sizeof check->to_do,
			 "use perf events, or twice as many runs (-n), or a kernel with CONFIG_HZ=250 or "
			 "more");
}

/* On a byte of our own that stays as it is. */
static const char *way_to_write(void)
{
	int (*function)(const char *, double) = ca_selftest_work;
	unsigned char *at, byte;
	int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	bool written;
	void *page;

	memcpy(&at, &function, sizeof at);
	byte = *at;
	written = fd >= 0 && pwrite(fd, &byte, 1, (off_t)(uintptr_t)at) == 1;
	if (fd >= 0)
		close(fd);
	if (written)
		return "/proc/self/mem";
	page = (void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
	if (mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		return NULL;
	*(volatile unsigned char *)at = byte;
	mprotect(page, PAGE, PROT_READ | PROT_EXEC);
	return "mprotect";
}

void ca_selftest_patching(struct ca_selftest_check *check)
{
	void *body = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const char *way = way_to_write();

	check->name = "code patching";
	if (way && body != MAP_FAILED) {
		snprintf(check->text, sizeof check->text, "allowed (by way of %s)", way);
	} else {
		check->grade = CA_SELFTEST_DOUBT;
		snprintf(check->text, sizeof check->text,
			 "not allowed (%s): only samples tell which code runs, "
			 "and progress points must be macros",
			 way ? "no new memory may be executed" : "neither /proc/self/mem nor mprotect works");
		snprintf(check->to_do, sizeof check->to_do,
			 "let the sandbox allow writing to /proc/self/mem, or have SELinux allow it: as "
			 "root, do "
			 "setsebool selinuxuser_execmod=1 selinuxuser_execmem=1");
	}
	if (body != MAP_FAILED)
		munmap(body, PAGE);
}

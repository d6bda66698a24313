/* SPDX-License-Identifier: MIT */
/* What `causal selftest` looks at before it measures: permissions, timers, clock, cores, and
 * who else is busy. Driver's process, one thread. */
#include "causal/conductor/backend.h"
#include "driver/selftest.h"
#include "sampler/switches.h"
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAPS = 60, CLOCK_READS = 20000 };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void read_line(const char *path, char *text, size_t size)
{
	FILE *f = fopen(path, "r");

	text[0] = '\0';
	if (!f)
		return;
	if (!fgets(text, (int)size, f))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(f);
}

static void look_at_perf(struct ca_selftest_check *check)
{
	struct ca_switches log;
	struct ca_err why = { .text = "context switches are not recorded" };

	check->name = "perf events";
	if (ca_backend_perf(&why) == CA_OK && ca_switches_open(&log) == CA_OK) {
		ca_switches_close(&log);
		snprintf(check->text, sizeof check->text,
			 "task-clock samples and context switches are available");
		return;
	}
	check->grade = CA_SELFTEST_DOUBT;
	snprintf(check->text, sizeof check->text, "%.180s; who was on a CPU is known less exactly", why.text);
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How late does a sleep of 1 ms end? Delays are paid by sleeping and spinning. */
static void look_at_timers(struct ca_selftest_check *check)
{
	const struct timespec nap = { 0, 1000000 };
	double late[NAPS], median, worst;

	for (int i = 0; i < NAPS; i++) {
		double from = now();

		nanosleep(&nap, NULL);
		late[i] = (now() - from) * 1e6 - 1000;
	}
	qsort(late, NAPS, sizeof *late, by_value);
	median = late[NAPS / 2];
	worst = late[NAPS - NAPS / 20 - 1];
	check->name = "timers";
	check->grade = median > 1000 ? CA_SELFTEST_BAD : worst > 2000 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text,
		 "a sleep of 1 ms ends %.0f us late (median), %.0f us (95 %%)", median, worst);
}

static void look_at_clock(struct ca_selftest_check *check)
{
	char source[64];
	double from = now(), each;

	for (int i = 0; i < CLOCK_READS; i++)
		now();
	each = (now() - from) / CLOCK_READS * 1e9;
	read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof source);
	check->name = "clock";
	check->grade = each > 1500 ? CA_SELFTEST_BAD : each > 200 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text, "%.0f ns to read (clock source %s)%s", each,
		 source[0] ? source : "unknown",
		 each > 200 ? ": a system call each time, so short regions look longer" : "");
}

/* Busy and stolen CPU seconds of all cores together since boot. */
static double machine(double *stolen)
{
	unsigned long long v[8] = { 0 };
	double tick = (double)sysconf(_SC_CLK_TCK);
	FILE *f = fopen("/proc/stat", "r");

	if (f) {
		if (fscanf(f, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
			   &v[4], &v[5], &v[6], &v[7]) != 8)
			memset(v, 0, sizeof v);
		fclose(f);
	}
	*stolen = (double)v[7] / tick;
	return (double)(v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / tick;
}

double ca_selftest_stolen(void)
{
	double stolen;

	machine(&stolen);
	return stolen;
}

static int usable_cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof set, &set) ? 1 : CPU_COUNT(&set);
}

/* Cores that a control group allows; 0: no limit. */
static double quota(void)
{
	char text[64];
	long long limit, of;

	read_line("/sys/fs/cgroup/cpu.max", text, sizeof text);
	return sscanf(text, "%lld %lld", &limit, &of) == 2 && of > 0 ? (double)limit / (double)of : 0;
}

static void look_at_cores(struct ca_selftest_check *check)
{
	int cores = usable_cores();
	double limit = quota();

	check->name = "cores";
	if (cores < 2)
		check->grade = CA_SELFTEST_DOUBT;
	if (limit > 0 && limit < cores)
		check->grade = CA_SELFTEST_DOUBT;
	if (limit > 0)
		snprintf(check->text, sizeof check->text, "%d usable, %.1f allowed by the control group%s",
			 cores, limit,
			 limit < cores ? ": a program with more busy threads is throttled" : "");
	else
		snprintf(check->text, sizeof check->text, "%d usable%s", cores,
			 cores < 2 ? ": threads can only take turns" : "");
}

/* We sleep for a while: whatever is busy is not us. */
static void look_at_others(struct ca_selftest_check *check)
{
	const struct timespec nap = { 0, 400000000 };
	double stolen, stolen_before, busy = machine(&stolen_before), from = now();
	double elapsed, share;

	nanosleep(&nap, NULL);
	elapsed = now() - from;
	busy = (machine(&stolen) - busy - (stolen - stolen_before)) / elapsed;
	share = 100 * busy / (double)sysconf(_SC_NPROCESSORS_ONLN);
	check->name = "other processes";
	check->grade = share > 25 ? CA_SELFTEST_BAD : share > 8 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text, "use %.0f %% of the machine%s", share,
		 share > 8 ? ": the program competes with them, and results scatter" : "");
}

size_t ca_selftest_look(struct ca_selftest_check check[CA_SELFTEST_CHECKS])
{
	static void (*const look[])(struct ca_selftest_check *) = {
		look_at_perf, look_at_timers, look_at_clock, look_at_cores, look_at_others,
	};
	size_t n = sizeof look / sizeof *look;

	for (size_t i = 0; i < n; i++) {
		check[i] = (struct ca_selftest_check){ .grade = CA_SELFTEST_GOOD };
		look[i](&check[i]);
	}
	return n;
}

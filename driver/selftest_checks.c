/* SPDX-License-Identifier: MIT */
/* What `causal selftest` looks at before it measures: what the kernel allows (selftest_kernel.c),
 * sleeps, clock, cores, wake-ups, and who else is busy. Driver's process, one thread; a second one sleeps and is woken. */
#include "causal/conductor/quota.h"
#include "driver/selftest.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { NAPS = 60, CLOCK_READS = 20000, ROUNDS = 20, HOPS = 32, WAKES = 200 };

double ca_selftest_now(void)
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

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* How late does a sleep of 1 ms end? Delays are paid by sleeping and spinning. */
static void look_at_sleeps(struct ca_selftest_check *check)
{
	const struct timespec nap = { 0, 1000000 };
	int slack = prctl(PR_GET_TIMERSLACK);
	double late[NAPS], median, worst;

	for (int i = 0; i < NAPS; i++) {
		double from = ca_selftest_now();

		nanosleep(&nap, NULL);
		late[i] = (ca_selftest_now() - from) * 1e6 - 1000;
	}
	qsort(late, NAPS, sizeof *late, by_value);
	median = late[NAPS / 2];
	worst = late[NAPS - NAPS / 20 - 1];
	check->name = "sleeps";
	check->grade = median > 1000 ? CA_SELFTEST_BAD : worst > 2000 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text,
		 "of 1 ms end %.0f us late (median), %.0f us (95 %%); timer slack %.0f us", median, worst,
		 slack / 1e3);
	if (check->grade != CA_SELFTEST_GOOD)
		snprintf(check->to_do, sizeof check->to_do, "%s",
			 slack > 1000000 ? "the shell was started with a large timer slack: use another one"
					 : "stop other programs; a virtual machine needs CPUs of its own");
}

/* The largest step back that the clock makes from core to core, in us: 0 where it is steady. */
static double steps_back(void)
{
	double last = ca_selftest_now(), back = 0;
	cpu_set_t all, one;
	int hops = 0;

	if (sched_getaffinity(0, sizeof all, &all))
		return 0;
	for (int round = 0; round < ROUNDS && hops < ROUNDS * HOPS; round++)
		for (size_t core = 0; core < CPU_SETSIZE && hops < ROUNDS * HOPS; core++) {
			double t;

			if (!CPU_ISSET(core, &all))
				continue;
			CPU_ZERO(&one);
			CPU_SET(core, &one);
			if (sched_setaffinity(0, sizeof one, &one))
				continue;
			hops++;
			t = ca_selftest_now();
			back = fmax(back, (last - t) * 1e6);
			last = t;
		}
	sched_setaffinity(0, sizeof all, &all);
	return back;
}

static bool has_word(const char *path, const char *before, const char *word)
{
	FILE *f = fopen(path, "re");
	char line[4096];
	bool found = false;

	while (f && !found && fgets(line, sizeof line, f))
		found = !strncmp(line, before, strlen(before)) && strstr(line, word);
	if (f)
		fclose(f);
	return found;
}

#define SOURCES "/sys/devices/system/clocksource/clocksource0/"

static void look_at_clock(struct ca_selftest_check *check)
{
	bool invariant = has_word("/proc/cpuinfo", "flags", " constant_tsc") &&
			 has_word("/proc/cpuinfo", "flags", " nonstop_tsc");
	double from = ca_selftest_now(), each, back;
	char source[64];

	for (int i = 0; i < CLOCK_READS; i++)
		ca_selftest_now();
	each = (ca_selftest_now() - from) / CLOCK_READS * 1e9;
	back = steps_back();
	read_line(SOURCES "current_clocksource", source, sizeof source);
	check->name = "clock";
	check->grade = each > 1500 || back > 1 ? CA_SELFTEST_BAD
		       : each > 200            ? CA_SELFTEST_DOUBT
					       : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text,
		 "%.0f ns to read%s; source %s, TSC %sinvariant; %s between cores", each,
		 each > 200 ? ", a system call each time, so short regions look longer" : "",
		 source[0] ? source : "unknown", invariant ? "" : "not ", back > 1 ? "not steady" : "steady");
	if (back > 1)
		snprintf(check->to_do, sizeof check->to_do, "keep the program on one core: taskset -c 0");
	else if (each > 200 && has_word(SOURCES "available_clocksource", "", "tsc"))
		snprintf(check->to_do, sizeof check->to_do,
			 "if the machine's TSC can be trusted, as root, do echo tsc >" SOURCES
			 "current_clocksource");
	else if (each > 200)
		snprintf(check->to_do, sizeof check->to_do,
			 "no faster clock is offered here: use regions that take long");
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

/* The limit of one group, where it has one: version 2 has both numbers in one file, version 1 in two. */
static double limit_of(const char *folder)
{
	char path[700], text[64];
	long long limit, of;

	snprintf(path, sizeof path, "%s/cpu.max", folder);
	read_line(path, text, sizeof text);
	if (sscanf(text, "%lld %lld", &limit, &of) == 2 && of > 0)
		return (double)limit / (double)of;
	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
	read_line(path, text, sizeof text);
	limit = atoll(text);
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
	read_line(path, text, sizeof text);
	of = atoll(text);
	return limit > 0 && of > 0 ? (double)limit / (double)of : 0;
}

static void take_least(const char *folder, void *arg)
{
	double limit = limit_of(folder), *least = arg;

	if (limit > 0 && (*least <= 0 || limit < *least))
		*least = limit;
}

double ca_selftest_quota(const char *self, const char *root)
{
	double least = 0;

	ca_quota_each_group(self, root, take_least, &least);
	return least;
}

static void look_at_cores(struct ca_selftest_check *check)
{
	long all = sysconf(_SC_NPROCESSORS_ONLN);
	double limit = ca_selftest_quota("/proc/self/cgroup", "/sys/fs/cgroup");
	int cores = usable_cores();
	char allowed[64] = "";

	check->name = "cores";
	if (limit > 0)
		snprintf(allowed, sizeof allowed, ", %.1f allowed by the control group", limit);
	snprintf(check->text, sizeof check->text, "%d of %ld can be used%s%s", cores, all, allowed,
		 limit > 0 && limit < cores ? ": a program with more busy threads is throttled"
		 : cores < 2                ? ": threads can only take turns"
					    : "");
	if (limit > 0 && limit < cores) {
		check->grade = CA_SELFTEST_DOUBT;
		snprintf(check->to_do, sizeof check->to_do,
			 "raise the limit (docker run --cpus=%d), or keep to fewer cores: taskset -c 0-%d",
			 cores, limit < 2 ? 0 : (int)limit - 1);
	} else if (cores < 2) {
		check->grade = CA_SELFTEST_DOUBT;
		if (all > 1)
			snprintf(check->to_do, sizeof check->to_do,
				 "give it more: taskset -c 0-%ld causal ...", all - 1);
	}
}

/* Takes what comes until that is the end. */
static void *sleeper(void *fd)
{
	uint64_t n = 0;

	while (n < UINT32_MAX && read(*(int *)fd, &n, sizeof n) == sizeof n)
		;
	return NULL;
}

/* us that a write to fd takes, median; before each, whoever reads it is given the time to fall asleep. */
static double time_of_writes(int fd, double pause)
{
	const uint64_t one = 1;
	double took[WAKES];

	for (int i = 0; i < WAKES; i++) {
		double from = ca_selftest_now();

		while (ca_selftest_now() - from < pause)
			;
		from = ca_selftest_now();
		if (write(fd, &one, sizeof one) != sizeof one)
			return 0;
		took[i] = (ca_selftest_now() - from) * 1e6;
	}
	qsort(took, WAKES, sizeof *took, by_value);
	return took[WAKES / 2];
}

/* A thread of this process on another core than ours; false: there is none, or we may not say where. */
static bool start_apart(pthread_t *thread, int *fd)
{
	pthread_attr_t attributes;
	cpu_set_t all, one[2];
	bool started;
	int found = 0;

	if (sched_getaffinity(0, sizeof all, &all))
		return false;
	for (size_t core = 0; core < CPU_SETSIZE && found < 2; core++)
		if (CPU_ISSET(core, &all)) {
			CPU_ZERO(&one[found]);
			CPU_SET(core, &one[found++]);
		}
	if (found < 2 || sched_setaffinity(0, sizeof one[0], &one[0]))
		return false;
	pthread_attr_init(&attributes);
	pthread_attr_setaffinity_np(&attributes, sizeof one[1], &one[1]);
	started = !pthread_create(thread, &attributes, sleeper, fd);
	pthread_attr_destroy(&attributes);
	return started;
}

#define HALT_POLL "/module/haltpoll/parameters/guest_halt_poll_ns"
#define IDLE      "/devices/system/cpu/cpuidle/"

/* A guest's cores poll if the kernel has a driver for idle cores, its governor is haltpoll, and polling is not off. */
const char *ca_selftest_wake_advice(const char *sys)
{
	char path[256], driver[32], governor[32], poll[32];

	snprintf(path, sizeof path, "%s" IDLE "current_driver", sys);
	read_line(path, driver, sizeof driver);
	snprintf(path, sizeof path, "%s" IDLE "current_governor", sys);
	read_line(path, governor, sizeof governor);
	snprintf(path, sizeof path, "%s" HALT_POLL, sys);
	read_line(path, poll, sizeof poll);
	if (!*poll)
		return "nothing, if threads seldom wait for each other; on the host, let idle guests poll "
		       "(kvm.halt_poll_ns)";
	if (!*driver || !strcmp(driver, "none"))
		return "boot the kernel with cpuidle_haltpoll.force=1, so that idle cores poll before they "
		       "halt";
	if (strcmp(governor, "haltpoll") != 0)
		return "as root, let idle cores poll before they halt: echo haltpoll >/sys" IDLE
		       "current_governor";
	return strcmp(poll, "0")
		       ? "as root, let idle cores poll for longer: echo 5000000 >/sys" HALT_POLL
		       : "as root, let idle cores poll before they halt: echo 200000 >/sys" HALT_POLL;
}

/* What it takes to wake a thread on a core that does nothing: of a virtual machine, the hypervisor has to be asked. What
 * waits for S is woken less often where S is faster, and that is in no prediction. */
static void look_at_wakes(struct ca_selftest_check *check)
{
	int fd = eventfd(0, EFD_CLOEXEC), alone = eventfd(0, EFD_CLOEXEC);
	const uint64_t end = UINT32_MAX;
	double plain, woken = 0;
	cpu_set_t before;
	pthread_t thread;

	check->name = "wake-ups";
	snprintf(check->text, sizeof check->text, "not measured: there is no second core");
	if (fd < 0 || alone < 0 || sched_getaffinity(0, sizeof before, &before))
		return;
	if (start_apart(&thread, &fd)) {
		plain = time_of_writes(alone, 0);
		woken = time_of_writes(fd, 300e-6) - plain;
		if (write(fd, &end, sizeof end) == sizeof end)
			pthread_join(thread, NULL);
		check->grade = woken > 3 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
		snprintf(check->text, sizeof check->text,
			 "of a thread on an idle core take the waker %.1f us%s", woken,
			 woken > 3 ? ": code that others wait for may bring more than is predicted" : "");
	}
	if (woken > 3)
		snprintf(check->to_do, sizeof check->to_do, "%s", ca_selftest_wake_advice("/sys"));
	sched_setaffinity(0, sizeof before, &before);
	close(alone);
	close(fd);
}

/* We sleep for a while: whatever is busy is not us. */
static void look_at_others(struct ca_selftest_check *check)
{
	const struct timespec nap = { 0, 400000000 };
	double stolen, stolen_before, busy = machine(&stolen_before), from = ca_selftest_now();
	double elapsed, share;

	nanosleep(&nap, NULL);
	elapsed = ca_selftest_now() - from;
	busy = (machine(&stolen) - busy - (stolen - stolen_before)) / elapsed;
	share = 100 * busy / (double)sysconf(_SC_NPROCESSORS_ONLN);
	check->name = "other programs";
	check->noise = true;
	check->grade = share > 25 ? CA_SELFTEST_BAD : share > 8 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check->text, sizeof check->text, "use %.0f %% of the machine (%.2f cores)%s", share, busy,
		 share > 8 ? ": the program competes with them, and results scatter" : "");
	if (share > 8)
		snprintf(check->to_do, sizeof check->to_do,
			 "stop them (top shows which), or give the program CPUs of its own (taskset -c ...)");
}

size_t ca_selftest_look(struct ca_selftest_check check[CA_SELFTEST_CHECKS])
{
	static void (*const look[])(struct ca_selftest_check *) = {
		ca_selftest_perf,     ca_selftest_room, ca_selftest_timer, look_at_clock,  look_at_sleeps,
		ca_selftest_patching, look_at_cores,    look_at_wakes,     look_at_others,
	};
	size_t n = sizeof look / sizeof *look;

	_Static_assert(sizeof look / sizeof *look <= CA_SELFTEST_CHECKS, "there is room for all");
	for (size_t i = 0; i < n; i++) {
		check[i] = (struct ca_selftest_check){ .grade = CA_SELFTEST_GOOD };
		look[i](&check[i]);
		ca_selftest_show(&check[i]);
	}
	return n;
}

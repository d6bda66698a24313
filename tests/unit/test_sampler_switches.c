/* SPDX-License-Identifier: MIT */
/* sampler/switches.c: times off the CPU from rings of records made by hand, and from the kernel. */
#include "sampler/perf.h"
#include "sampler/switches.h"
#include "tests/unit/forbidden.h"
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, RECORDS = PAGE / 16, NEWEST = RECORDS - 8 };

static _Alignas(PAGE) char memory[2 * PAGE];
static const struct ca_switches made = { memory };
static bool no_perf;

static void put(uint64_t number, uint64_t time, bool out, bool runnable)
{
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record = { { .misc = (uint16_t)((out ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
					  (runnable ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0)),
		       .size = 16 },
		     time };

	memcpy(memory + PAGE + number % RECORDS * 16, &record, 16);
	((struct perf_event_mmap_page *)(void *)memory)->data_head = 16 * (number + 1);
}

static const struct {
	uint64_t a, b;
	unsigned max, n;
	struct ca_interval off[3];
} cases[] = {
	/* out at 100, in at 200, out at 300 for others, in at 400, out at 500 */
	{ 0, 1000, 4, 3, { { 100, 200, 0 }, { 300, 400, 1 }, { 500, 1000, 0 } } },
	{ 0, 100, 4, 0, { { 0, 0, 0 } } },
	{ 0, 101, 4, 1, { { 100, 101, 0 } } },
	{ 100, 200, 4, 1, { { 100, 200, 0 } } },
	{ 150, 160, 4, 1, { { 150, 160, 0 } } },
	{ 199, 200, 4, 1, { { 199, 200, 0 } } },
	{ 200, 300, 4, 0, { { 0, 0, 0 } } },
	{ 200, 301, 4, 1, { { 300, 301, 1 } } },
	{ 150, 350, 4, 2, { { 150, 200, 0 }, { 300, 350, 1 } } },
	{ 250, 260, 4, 0, { { 0, 0, 0 } } },
	{ 600, 700, 4, 1, { { 600, 700, 0 } } },
	{ 0, 1000, 2, 2, { { 100, 200, 0 }, { 300, 400, 1 } } },
	{ 0, 1000, 1, 1, { { 100, 200, 0 } } },
	{ 150, 150, 4, 0, { { 0, 0, 0 } } },
	{ 160, 150, 4, 0, { { 0, 0, 0 } } },
};

static void test_made(void **state)
{
	struct ca_interval off[4];

	(void)state;
	assert_int_equal(ca_switches_off(&made, 0, 1000, off, 4), 0); /* empty */
	assert_int_equal(ca_switches_off(&(struct ca_switches){ NULL }, 0, 1000, off, 4), 0);
	for (unsigned i = 0; i < 5; i++)
		put(i, 100 * (i + 1), i % 2 == 0, i == 2);
	assert_int_equal(ca_switches_count(&made), 2);
	assert_int_equal(ca_switches_count(&(struct ca_switches){ NULL }), 0);
	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		unsigned n = ca_switches_off(&made, cases[c].a, cases[c].b, off, cases[c].max);

		if (n != cases[c].n || memcmp(off, cases[c].off, n * sizeof *off) != 0)
			fail_msg("[%lu, %lu): %u times, [%lu, %lu)", cases[c].a, cases[c].b, n, off[0].from,
				 off[0].to);
	}
}

/* The oldest records are overwritten, and those next to them about to be: on the CPU. */
static void test_overwritten(void **state)
{
	static struct ca_interval off[RECORDS];
	const uint64_t last = 1001;
	unsigned n;

	(void)state;
	for (uint64_t i = 0; i <= last; i++)
		put(i, 10 * i, i % 2 == 0, false);
	n = ca_switches_off(&made, 0, 100000, off, RECORDS);
	assert_int_equal(n, NEWEST / 2);
	assert_int_equal(off[0].from, 10 * (last + 1 - NEWEST));
	assert_int_equal(off[n - 1].from, 10 * (last - 1));
	assert_int_equal(off[n - 1].to, 10 * last);
	/* in the middle of what is gone */
	assert_int_equal(ca_switches_off(&made, 5, 15, off, RECORDS), 0);
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* The kernel's own: asleep is off. */
static void test_real(void **state)
{
	struct ca_interval off[64];
	struct ca_switches log;
	uint64_t from, slept = 0;
	unsigned n;

	(void)state;
	if (ca_switches_open(&log) != CA_OK) {
		no_perf = true;
		return;
	}
	from = now();
	for (int i = 0; i < 3; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 3000000 }, NULL);
	n = ca_switches_off(&log, from, now(), off, 64);
	assert_true(n >= 3);
	for (unsigned i = 0; i < n; i++) {
		assert_true(off[i].from < off[i].to && off[i].from >= (i ? off[i - 1].to : from));
		slept += off[i].to - off[i].from;
	}
	assert_true(slept >= 8000000);
	ca_switches_close(&log);
	assert_null(log.page);
	assert_int_equal(ca_switches_off(&log, 0, UINT64_MAX, off, 64), 0);
	ca_switches_close(&log);
}

static void denied(void **state)
{
	struct ca_switches log = { memory };

	(void)state;
	assert_int_equal(ca_switches_open(&log), CA_ERR_PERMISSION);
	assert_null(log.page);
}

static void unknown(void **state)
{
	struct ca_switches log = { memory };

	(void)state;
	assert_int_equal(ca_switches_open(&log), CA_ERR_UNSUPPORTED);
	assert_null(log.page);
}

static void test_forbidden(void **state)
{
	(void)state;
	without_call(SYS_perf_event_open, EACCES, denied);
	without_call(SYS_perf_event_open, EPERM, denied);
	without_call(SYS_perf_event_open, EINVAL, unknown);
}

/* In this thread only. Returns whether it was so before. */
static bool set_ipc_lock(bool on)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct may[2];
	bool was;

	assert_int_equal(syscall(SYS_capget, &header, may), 0);
	was = may[0].effective >> CAP_IPC_LOCK & 1;
	may[0].effective =
		on ? may[0].effective | 1u << CAP_IPC_LOCK : may[0].effective & ~(1u << CAP_IPC_LOCK);
	assert_int_equal(syscall(SYS_capset, &header, may), 0);
	return was;
}

/* Not in a user namespace of its own, where capabilities count for less? */
static bool is_outside(void)
{
	FILE *map = fopen("/proc/self/uid_map", "r");
	char line[64] = "";
	bool all = map && fgets(line, sizeof line, map) && strstr(line, " 4294967295");

	if (map)
		fclose(map);
	return all;
}

/* What a process may lock is not all for us: the buffers of io_uring count, too. Who may lock all is not held up. */
static void test_leaves_half(void **state)
{
	bool privileged = set_ipc_lock(false);
	struct rlimit before, limit;
	struct ca_switches log[12];
	unsigned n = 0;

	(void)state;
	if (no_perf)
		return;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &before), 0);
	limit = before;
	limit.rlim_cur = 64 << 10;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	ca_perf_init();
	while (n < CA_COUNT(log) && ca_switches_open(&log[n]) == CA_OK)
		n++;
	assert_int_equal(n, 4); /* 8 pages of 16 */
	ca_switches_close(&log[0]);
	assert_int_equal(ca_switches_open(&log[0]), CA_OK);
	assert_int_equal(ca_switches_open(&log[n]), CA_ERR_UNSUPPORTED);
	ca_perf_forget(); /* as in the child of a fork */
	while (n < CA_COUNT(log) && ca_switches_open(&log[n]) == CA_OK)
		n++;
	assert_int_equal(n, 8);
	while (n > 0)
		ca_switches_close(&log[--n]);
	if (privileged)
		set_ipc_lock(true);
	if (privileged && is_outside()) {
		ca_perf_init();
		while (n < CA_COUNT(log) && ca_switches_open(&log[n]) == CA_OK)
			n++;
		assert_int_equal(n, CA_COUNT(log));
		while (n > 0)
			ca_switches_close(&log[--n]);
	}
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &before), 0);
	ca_perf_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_made),      cmocka_unit_test(test_overwritten),
		cmocka_unit_test(test_real),      cmocka_unit_test(test_leaves_half),
		cmocka_unit_test(test_forbidden),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (failed || !no_perf)
		return failed;
	fprintf(stderr, "SKIP: perf cannot be used here, only rings made by hand were tested\n");
	return 77;
}

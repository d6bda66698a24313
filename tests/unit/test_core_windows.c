/* SPDX-License-Identifier: MIT */
/* core/windows.c: what may be written, and when windows are open, by clocks of our own. */
#include "core/settings.h"
#include "core/windows.h"
#include "tests/unit/unit.h"
#include <string.h>

#define S UINT64_C(1000000000)
enum { BEGAN = 100 }; /* s */

static uint64_t cpu; /* ns */

static uint64_t cpu_time(void *context)
{
	(void)context;
	return cpu;
}

/* periods, delay, duration: as the user writes them */
static struct ca_settings settings_of(const char *periods, const char *delay, const char *duration)
{
	struct ca_settings settings;
	struct ca_err err;

	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	assert_int_equal(
		ca_settings_set(&settings, CA_SETTING_PERIODS, periods, CA_ORIGIN_COMMAND, NULL, &err),
		CA_OK);
	assert_int_equal(ca_settings_set(&settings, CA_SETTING_DELAY, delay, CA_ORIGIN_COMMAND, NULL, &err),
			 CA_OK);
	assert_int_equal(
		ca_settings_set(&settings, CA_SETTING_DURATION, duration, CA_ORIGIN_COMMAND, NULL, &err),
		CA_OK);
	return settings;
}

static struct ca_windows *make(const char *periods, const char *delay, const char *duration)
{
	struct ca_settings settings = settings_of(periods, delay, duration);
	struct ca_windows *windows = ca_windows_new(&settings, cpu_time, NULL);

	assert_non_null(windows);
	ca_settings_fini(&settings);
	return windows;
}

/* Each half second from the beginning on: '+' open, '-' not, '.' over. steps: looked at so often. */
static void trace(struct ca_windows *w, char *text, unsigned halves)
{
	for (unsigned i = 0; i < halves; i++) {
		uint64_t now = BEGAN * S + i * S / 2;

		if (i)
			ca_windows_step(w, now);
		else
			ca_windows_begin(w, now);
		text[i] = ca_windows_is_over(w) ? '.' : ca_windows_is_open(w) ? '+' : '-';
		assert_int_equal(ca_windows_holds(w, now), text[i] == '+');
	}
	text[halves] = '\0';
}

static void test_groups(void **state)
{
	static const struct {
		const char *periods, *delay, *duration, *shown;
		bool ends;
	} cases[] = {
		{ "", "0", "0", "++++++++++", false },
		{ "", "1", "0", "--++++++++", false },
		{ "", "0", "2", "++++......", true },
		{ "", "1", "2", "--++++....", true },
		{ "1:1:2:monotonic", "0", "0", "--++--++..", true },
		{ "monotonic:1:1:2", "0", "0", "--++--++..", true },
		{ "CLOCK_MONOTONIC:1:.5:0", "0", "0", "--+--+--+-", false },
		{ "1:1:1:1", "0", "0", "--++......", true }, /* by number */
		{ "0:1:1:monotonic;0:1:1:monotonic", "0", "0", "++++......", true },
		{ "monotonic:.5:.5:2 monotonic:1:1:1", "0", "0", "-+-+--++..", true },
		{ ":1:2:monotonic", "1", "0", "--++--++..", true },   /* its delay is --wait */
		{ "monotonic:1", "0", "1.5", "--+++.....", true },    /* its duration --duration */
		{ "monotonic:1:0", "0", "1.5", "--++++++++", false }, /* 0 is none */
		{ "monotonic:0:1:3", "0", "0", "++++++....", true },
	};
	char shown[32];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_settings settings =
			settings_of(cases[i].periods, cases[i].delay, cases[i].duration);
		struct ca_windows *w = make(cases[i].periods, cases[i].delay, cases[i].duration);

		trace(w, shown, 10);
		assert_string_equal(shown, cases[i].shown);
		assert_int_equal(ca_windows_do_end(&settings), cases[i].ends);
		assert_int_equal(ca_windows_are_all(&settings), i == 0);
		ca_windows_free(w);
		ca_settings_fini(&settings);
	}
}

/* Whoever looks seldom finds the same windows. */
static void test_late(void **state)
{
	struct ca_windows *w = make("monotonic:1:2:2", "0", "0");

	(void)state;
	ca_windows_begin(w, BEGAN * S);
	assert_int_equal(ca_windows_due(w), (BEGAN + 1) * S);
	ca_windows_step(w, (BEGAN + 20) * S);
	assert_true(ca_windows_is_over(w));
	assert_int_equal(ca_windows_first(w), (BEGAN + 1) * S);
	assert_false(ca_windows_holds(w, (BEGAN + 1) * S - 1));
	assert_true(ca_windows_holds(w, (BEGAN + 1) * S));
	assert_false(ca_windows_holds(w, (BEGAN + 3) * S));
	assert_true(ca_windows_holds(w, (BEGAN + 5) * S));
	assert_int_equal(ca_windows_until(w, BEGAN * S), 0);
	assert_int_equal(ca_windows_until(w, (BEGAN + 2) * S), 1 * S);
	assert_int_equal(ca_windows_until(w, (BEGAN + 5) * S), 3 * S);
	assert_int_equal(ca_windows_until(w, (BEGAN + 50) * S), 4 * S);
	ca_windows_free(w);
}

static void test_cpu_time(void **state)
{
	struct ca_windows *w = make("cputime:1:2:1 monotonic:1:1:1", "0", "0");
	uint64_t now = BEGAN * S;

	(void)state;
	cpu = 7 * S;
	ca_windows_begin(w, now);
	ca_windows_step(w, now + 50 * S);
	assert_false(ca_windows_is_open(w));
	assert_int_equal(ca_windows_due(w), UINT64_MAX);
	cpu = 8 * S;
	ca_windows_step(w, now + 60 * S);
	assert_true(ca_windows_is_open(w));
	cpu = 10 * S + 5;
	ca_windows_step(w, now + 61 * S);
	assert_false(ca_windows_is_open(w));
	assert_int_equal(ca_windows_until(w, now + 61 * S), 1 * S);
	/* the other clock from then on */
	assert_int_equal(ca_windows_due(w), now + 62 * S);
	ca_windows_step(w, now + 62 * S);
	assert_true(ca_windows_is_open(w));
	ca_windows_step(w, now + 63 * S);
	assert_true(ca_windows_is_over(w));
	ca_windows_free(w);
}

static void test_pause(void **state)
{
	struct ca_windows *w = make("", "0", "4");
	uint64_t now = BEGAN * S;

	(void)state;
	ca_windows_begin(w, now);
	ca_windows_pause(w, true, now + 1 * S);
	assert_false(ca_windows_is_open(w));
	assert_false(ca_windows_holds(w, now + 2 * S));
	ca_windows_pause(w, false, now + 2 * S);
	assert_true(ca_windows_is_open(w));
	assert_int_equal(ca_windows_until(w, now + 3 * S), 2 * S);
	ca_windows_end(w, now + 3 * S);
	assert_true(ca_windows_is_over(w));
	assert_false(ca_windows_is_open(w));
	assert_int_equal(ca_windows_until(w, now + 9 * S), 2 * S);
	ca_windows_free(w);
}

/* Old ones are forgotten, their sum is not. */
static void test_many(void **state)
{
	struct ca_windows *w = make("monotonic:.5:.5:0", "0", "0");
	uint64_t now = BEGAN * S, seconds = 30000;

	(void)state;
	ca_windows_begin(w, now);
	ca_windows_step(w, now + seconds * S);
	assert_int_equal(ca_windows_until(w, now + seconds * S), seconds * S / 2);
	assert_true(ca_windows_holds(w, now + (seconds - 1000) * S + S / 2));
	ca_windows_free(w);
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *periods, *why;
	} cases[] = {
		{ "realtime:x:1:1", "'x' is no time" },
		{ "1:-1", "'-1' is no time" },
		{ "1:1:-1", "'-1' is no number of cycles" },
		{ "1:1:1.5", "'1.5' is no number of cycles" },
		{ "1:1:1:sundial",
		  "there is no clock 'sundial'; choose from: realtime monotonic process_cput" },
		{ "sundial:1:1:1", "there is no clock 'sundial'" },
		{ "1:1:1:99", "there is no clock '99'" },
		{ "1:2:3:monotonic:5", "four fields" },
		{ "1:1 1:1:1:no", "'1:1:1:no': there is no clock 'no'" },
	};
	struct ca_err err;
	clockid_t clock;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(ca_windows_check(cases[i].periods, &err), CA_ERR_USAGE);
		assert_non_null(strstr(err.text, cases[i].why));
		assert_null(strchr(err.text, '\n'));
	}
	assert_int_equal(ca_windows_check(" \t,;", &err), CA_OK);
	assert_int_equal(ca_windows_clock("CLOCK_PROCESS_CPUTIME_ID", &clock, &err), CA_OK);
	assert_int_equal(clock, CLOCK_PROCESS_CPUTIME_ID);
	assert_int_equal(ca_windows_clock("BOOTTIME", &clock, &err), CA_OK);
	assert_int_equal(clock, CLOCK_BOOTTIME);
	assert_int_equal(ca_windows_clock("", &clock, &err), CA_ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_groups), cmocka_unit_test(test_late), cmocka_unit_test(test_cpu_time),
		cmocka_unit_test(test_pause),  cmocka_unit_test(test_many), cmocka_unit_test(test_mistakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

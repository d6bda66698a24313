/* SPDX-License-Identifier: MIT */
/* core/settings*.c, core/speedups.c, core/suggest.c: the table, checks, precedence, files. */
#include "core/session.h"
#include "core/settings.h"
#include "core/speedups.h"
#include "core/suggest.h"
#include "sampler/tick.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* All long options, each of which finds its row. */
static void names_are(enum ca_setting_id id, const char *expected)
{
	char option[64], all[256] = "";

	for (size_t i = 0; ca_settings_option(ca_settings_get(id), i, option, sizeof option); i++) {
		assert_ptr_equal(ca_settings_find_option(option), ca_settings_get(id));
		snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", option);
	}
	assert_string_equal(all, expected);
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *row = ca_settings_get((enum ca_setting_id)i);
		char option[64];

		assert_int_equal(row->id, i);
		assert_true(ca_settings_option(row, 0, option, sizeof option));
		assert_ptr_equal(ca_settings_find_option(option), row);
		assert_ptr_equal(ca_settings_find_option(row->member), row);
		if (*row->letter)
			assert_ptr_equal(ca_settings_find_letter(row->letter), row);
		if (row->use != CA_USE_COMMAND)
			assert_ptr_equal(ca_settings_find_key(row->env), row);
		else
			assert_null(ca_settings_find_key(row->env));
		assert_true(strlen(row->help) > 10);
		/* Options without an argument are exactly the switches. */
		assert_int_equal(row->type == CA_TYPE_BOOL, !*row->argument);
		assert_int_equal(row->type == CA_TYPE_CHOICE, !!*row->choices);
	}
	assert_null(ca_settings_find_letter(""));
	names_are(CA_SETTING_DELAY, "wait delay");
	names_are(CA_SETTING_OUTPUT, "output output-name");
	names_are(CA_SETTING_DRY_RUN, "dry-run");
	assert_null(ca_settings_find_option("nonsense"));
	assert_ptr_equal(ca_settings_find_option("output-name"), ca_settings_get(CA_SETTING_OUTPUT));
}

/* The choices stand in the order of the enums. */
static void test_enums(void **state)
{
	static const struct {
		enum ca_setting_id id;
		const char *text;
		int value;
	} cases[] = {
		{ CA_SETTING_MODE, "function", CA_MODE_FUNCTION },
		{ CA_SETTING_MODE, "func", CA_MODE_FUNCTION },
		{ CA_SETTING_MODE, "LINE", CA_MODE_LINE },
		{ CA_SETTING_BACKEND, "auto", CA_BACKEND_AUTO },
		{ CA_SETTING_BACKEND, "perf", CA_BACKEND_PERF },
		{ CA_SETTING_BACKEND, "timer", CA_BACKEND_TIMER },
	};
	struct ca_settings settings;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(
			ca_settings_set(&settings, cases[i].id, cases[i].text, CA_ORIGIN_COMMAND, NULL, &err),
			CA_OK);
		assert_int_equal(cases[i].id == CA_SETTING_MODE ? settings.mode : settings.backend,
				 cases[i].value);
	}
	ca_settings_fini(&settings);
}

static void test_defaults(void **state)
{
	struct ca_settings settings;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	assert_int_equal(settings.mode, CA_MODE_FUNCTION);
	assert_int_equal(settings.iterations, 1);
	assert_int_equal(settings.period, 1000000);
	assert_int_equal(settings.single, -1);
	assert_true(settings.exact);
	assert_true(settings.function_exclude_defaults);
	assert_true(settings.experiment_min == 0.25);
	assert_string_equal(settings.binary_scope, "");
	assert_int_equal(settings.fixed_speedup.count, 0);
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *row = ca_settings_get((enum ca_setting_id)i);
		char *text = ca_settings_text(&settings, row->id);

		assert_string_equal(text, row->standard);
		assert_int_equal(settings.origin[i], CA_ORIGIN_DEFAULT);
		free(text);
	}
	ca_settings_fini(&settings);
}

static void test_values(void **state)
{
	static const struct {
		enum ca_setting_id id;
		const char *text;
		const char *result; /* NULL: an error */
	} cases[] = {
		{ CA_SETTING_DEBUG, "Yes", "true" },
		{ CA_SETTING_DEBUG, "off", "false" },
		{ CA_SETTING_DEBUG, "1", "true" },
		{ CA_SETTING_DEBUG, "2", NULL },
		{ CA_SETTING_DEBUG, "", NULL },
		{ CA_SETTING_ITERATIONS, "20", "20" },
		{ CA_SETTING_ITERATIONS, "0", NULL },
		{ CA_SETTING_ITERATIONS, "-3", NULL },
		{ CA_SETTING_ITERATIONS, "20x", NULL },
		{ CA_SETTING_ITERATIONS, " 20", NULL },
		{ CA_SETTING_ITERATIONS, "", NULL },
		{ CA_SETTING_ITERATIONS, "99999999999999999999", NULL },
		{ CA_SETTING_PERIOD, "2000000", "2000000" },
		{ CA_SETTING_PERIOD, "1ms", "1000000" },
		{ CA_SETTING_PERIOD, "0.5 ms", "500000" },
		{ CA_SETTING_PERIOD, "250us", "250000" },
		{ CA_SETTING_PERIOD, "1", NULL },
		{ CA_SETTING_PERIOD, "5 weeks", NULL },
		{ CA_SETTING_DELAY, "1.5", "1.5" },
		{ CA_SETTING_DELAY, "200ms", "0.2" },
		{ CA_SETTING_DELAY, "2min", "120" },
		{ CA_SETTING_DELAY, "-1", NULL },
		{ CA_SETTING_DELAY, "nan", NULL },
		{ CA_SETTING_DELAY, "inf", NULL },
		{ CA_SETTING_COOL_OFF, "1s", "1000" },
		{ CA_SETTING_UNTIL, "2%", "2" },
		{ CA_SETTING_UNTIL, "1.5 %", "1.5" },
		{ CA_SETTING_UNTIL, "2%%", NULL },
		{ CA_SETTING_UNTIL, "2s", NULL },
		{ CA_SETTING_UNTIL, "two", NULL },
		{ CA_SETTING_ITERATIONS, "2%", NULL },
		{ CA_SETTING_MODE, "fun", "function" },
		{ CA_SETTING_MODE, "fu", NULL },
		{ CA_SETTING_MODE, "functions", NULL },
		{ CA_SETTING_FUNCTION_SCOPE, "a;b(c|d)", "a;b(c|d)" },
		{ CA_SETTING_FUNCTION_SCOPE, "a;b(", NULL },
		{ CA_SETTING_FUNCTION_SCOPE, "", "" },
		{ CA_SETTING_FIXED_SPEEDUP, "0,10-30:10", "0,10,20,30" },
		{ CA_SETTING_FIXED_SPEEDUP, "0,101", NULL },
		{ CA_SETTING_SINKS, "", "" },
		{ CA_SETTING_SINKS, "print,print=x", "print,print=x" },
		{ CA_SETTING_SINKS, "print,paper", NULL },
		{ CA_SETTING_SINKS, "print=", NULL },
	};
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_settings settings;
		enum ca_status status;

		assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
		status =
			ca_settings_set(&settings, cases[i].id, cases[i].text, CA_ORIGIN_COMMAND, "-x", &err);
		if (cases[i].result) {
			char *text = ca_settings_text(&settings, cases[i].id);

			assert_int_equal(status, CA_OK);
			assert_string_equal(text, cases[i].result);
			free(text);
		} else {
			/* One line that names the option and the value. */
			assert_int_equal(status, CA_ERR_USAGE);
			assert_ptr_equal(strstr(err.text, "-x: "), err.text);
			assert_non_null(strstr(err.text, "; "));
			assert_null(strchr(err.text, '\n'));
			assert_int_equal(settings.origin[cases[i].id], CA_ORIGIN_DEFAULT);
		}
		ca_settings_fini(&settings);
	}
}

static void test_speedups(void **state)
{
	static const struct {
		const char *text, *result; /* NULL: an error */
	} cases[] = {
		{ "", "" },
		{ "0", "0" },
		{ "100", "100" },
		{ "0,0,5,10", "0,0,5,10" },
		{ "20-50", "20,25,30,35,40,45,50" },
		{ "0-40:10", "0,10,20,30,40" },
		{ "0-45:10", "0,10,20,30,40" },
		{ "50-20", "50" },
		{ "7-7:3", "7" },
		{ "0 10;20\t30\r\n40", "0,10,20,30,40" },
		{ ",,5,", "5" },
		{ "95-100", "95,100" },
		{ "0-100:100", "0,100" },
		{ "0,50%", "0,50" },
		{ "0-40%:10%", "0,10,20,30,40" },
		{ "50%%", NULL },
		{ "%", NULL },
		{ "101", NULL },
		{ "0-101", NULL },
		{ "-5", NULL },
		{ "5-", NULL },
		{ "5-10:", NULL },
		{ "5-10:0", NULL },
		{ "5:2", NULL },
		{ "5-10-15", NULL },
		{ "1.5", NULL },
		{ "ten", NULL },
		{ "99999999999999999999", NULL },
		{ "0-10:4294967295", "0" },
	};
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_speedups pool;
		enum ca_status status = ca_speedups_parse(&pool, cases[i].text, &err);
		char *text;

		assert_int_equal(status, cases[i].result ? CA_OK : CA_ERR_USAGE);
		if (status)
			continue;
		text = ca_speedups_text(&pool);
		assert_string_equal(text, cases[i].result);
		free(text);
		ca_speedups_fini(&pool);
	}
}

static void test_speedups_many(void **state)
{
	char text[5 * 4200] = "";
	struct ca_speedups pool;
	struct ca_err err;

	(void)state;
	for (char *at = text; at < text + 2 * 4200; at += 2)
		memcpy(at, "7,", 3);
	assert_int_equal(ca_speedups_parse(&pool, text, &err), CA_ERR_USAGE);
}

static void test_precedence(void **state)
{
	static const enum ca_origin orders[][3] = {
		{ CA_ORIGIN_FILE, CA_ORIGIN_ENVIRONMENT, CA_ORIGIN_COMMAND },
		{ CA_ORIGIN_COMMAND, CA_ORIGIN_ENVIRONMENT, CA_ORIGIN_FILE },
		{ CA_ORIGIN_ENVIRONMENT, CA_ORIGIN_COMMAND, CA_ORIGIN_FILE },
	};
	static const char *const by_origin[] = { "1", "2", "3", "4" };
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(orders); i++) {
		struct ca_settings settings;

		assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
		for (size_t j = 0; j < 3; j++) {
			const char *text = by_origin[orders[i][j]];

			assert_int_equal(ca_settings_set(&settings, CA_SETTING_ITERATIONS, text, orders[i][j],
							 NULL, &err),
					 CA_OK);
			assert_int_equal(
				ca_settings_set(&settings, CA_SETTING_OUTPUT, text, orders[i][j], NULL, &err),
				CA_OK);
		}
		assert_int_equal(settings.iterations, 4);
		assert_string_equal(settings.output, "4");
		assert_int_equal(settings.origin[CA_SETTING_ITERATIONS], CA_ORIGIN_COMMAND);
		/* Weaker, but still checked. */
		assert_int_equal(
			ca_settings_set(&settings, CA_SETTING_ITERATIONS, "x", CA_ORIGIN_FILE, NULL, &err),
			CA_ERR_USAGE);
		ca_settings_fini(&settings);
	}
}

static char *write_file(const char *text)
{
	static char path[] = "/tmp/test_settings.XXXXXX";
	int fd;

	strcpy(path + sizeof path - 7, "XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static void test_file(void **state)
{
	struct ca_settings settings;
	struct ca_err err;
	char *path = write_file("\xef\xbb\xbf# a comment in UTF-8, with its mark\n"
				"\n"
				"  CAUSAL_MODE = line  # behind\n"
				"iterations=7\n"
				"causal_output = \"a \\\"dir\\\" # \\\\\"\n"
				"CAUSAL_FUNCTION_SCOPE = 'a;b\\.c' # x\n"
				"source_scope = a#b\n"
				"CAUSAL_SINKS =\n");

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	assert_int_equal(ca_settings_read_files(&settings, path, &err), CA_OK);
	assert_int_equal(settings.mode, CA_MODE_LINE);
	assert_int_equal(settings.iterations, 7);
	assert_string_equal(settings.output, "a \"dir\" # \\");
	assert_string_equal(settings.function_scope, "a;b\\.c");
	assert_string_equal(settings.source_scope, "a#b");
	assert_int_equal(settings.origin[CA_SETTING_MODE], CA_ORIGIN_FILE);
	assert_int_equal(settings.origin[CA_SETTING_SINKS], CA_ORIGIN_FILE);
	ca_settings_fini(&settings);
	unlink(path);
}

static void test_bad_files(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "CAUSAL_MOED = line\n", "did you mean CAUSAL_MODE?" },
		{ "\nmode\n", ":2: 'mode' is not of the form KEY = VALUE" },
		{ "mode = lines\n", "there is no 'lines'; choose from: function line" },
		{ "output = \"x\n", "the closing quote" },
		{ "output = \"x\" y\n", "the closing quote" },
		{ "CAUSAL_SINGLE = 1\n", "no setting 'CAUSAL_SINGLE'" },
		{ "CAUSAL_DRY_RUN = 1\n", "no setting 'CAUSAL_DRY_RUN'" },
	};
	struct ca_settings settings;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char *path = write_file(cases[i].text);

		assert_int_equal(ca_settings_read_file(&settings, path, &err), CA_ERR_USAGE);
		assert_non_null(strstr(err.text, cases[i].says));
		assert_non_null(strstr(err.text, path));
		unlink(path);
	}
	assert_int_equal(ca_settings_read_file(&settings, "/nonexistent/x", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "/nonexistent/x"));
	assert_int_equal(ca_settings_read_file(&settings, "/", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "(Is a directory)"));
	ca_settings_fini(&settings);
}

static char warned[256];

static void note(const char *text)
{
	snprintf(warned, sizeof warned, "%s", text);
}

static void test_environment(void **state)
{
	static const char *const environment[] = {
		"PATH=/bin",
		"CAUSAL_MODE=line",
		"CAUSAL_ITERATIONS=", /* empty: as if not set */
		"CAUSAL_FUNCTION_SCOPE=mine",
		"CAUSAL_FILE=name",
		"CAUSAL_SINGLE=3", /* option only */
		"CAUSAL_SESSION=/x",
		"CAUSAL_LAUNCHER=causal",
		"COZ_OUTPUT=profile.coz",
		NULL,
	};
	struct ca_settings settings;
	struct ca_err err;
	static const char *const misspelt[] = { "CAUSAL_BACKENT=timer", NULL };
	static const char *const bad[] = { "CAUSAL_BACKEND=magic", NULL };

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	warned[0] = '\0';
	assert_int_equal(ca_settings_read_env(&settings, environment, note, &err), CA_OK);
	assert_string_equal(warned, "");
	assert_int_equal(settings.mode, CA_MODE_LINE);
	assert_int_equal(settings.iterations, 1);
	assert_int_equal(settings.single, -1);
	assert_string_equal(settings.launcher, "");
	assert_string_equal(settings.function_scope, "mine");
	assert_int_equal(settings.origin[CA_SETTING_MODE], CA_ORIGIN_ENVIRONMENT);
	assert_int_equal(ca_settings_read_env(&settings, misspelt, note, &err), CA_OK);
	assert_string_equal(warned, "there is no variable CAUSAL_BACKENT; did you mean "
				    "CAUSAL_BACKEND?");
	assert_int_equal(ca_settings_read_env(&settings, bad, note, &err), CA_ERR_USAGE);
	assert_string_equal(err.text, "CAUSAL_BACKEND: there is no 'magic'; choose from: auto perf "
				      "timer");
	ca_settings_fini(&settings);
}

static void test_coz_names(void **state)
{
	static const struct {
		const char *entry, *other;
		enum ca_setting_id id;
		const char *result;
	} cases[] = {
		{ "COZ_BINARY_SCOPE=MAIN\t%/lib.so", NULL, CA_SETTING_BINARY_SCOPE, "MAIN;^.*/lib\\.so$" },
		{ "COZ_SOURCE_SCOPE=/src/%", NULL, CA_SETTING_SOURCE_SCOPE, "^/src/.*$" },
		{ "COZ_FIXED_LINE=toy.c:42", NULL, CA_SETTING_SOURCE_SCOPE, "(^|/)toy\\.c:42$" },
		{ "COZ_FIXED_LINE=toy.c:42", NULL, CA_SETTING_MODE, "line" },
		{ "COZ_FIXED_SPEEDUP=25", NULL, CA_SETTING_FIXED_SPEEDUP, "25" },
		{ "COZ_OUTPUT=profile.coz", NULL, CA_SETTING_OUTPUT, "profile" },
		{ "COZ_OUTPUT=d/p.jsonl", NULL, CA_SETTING_OUTPUT, "d/p" },
		{ "COZ_OUTPUT=other", NULL, CA_SETTING_OUTPUT, "other" },
		{ "COZ_END_TO_END=1", NULL, CA_SETTING_END_TO_END, "true" },
		/* Our own name wins, wherever it stands. */
		{ "CAUSAL_OUTPUT=mine", "COZ_OUTPUT=theirs", CA_SETTING_OUTPUT, "mine" },
		{ "COZ_OUTPUT=theirs", "CAUSAL_OUTPUT=mine", CA_SETTING_OUTPUT, "mine" },
	};
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const char *environment[] = { cases[i].entry, cases[i].other, NULL };
		struct ca_settings settings;
		char *text;

		assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
		assert_int_equal(ca_settings_read_env(&settings, environment, NULL, &err), CA_OK);
		text = ca_settings_text(&settings, cases[i].id);
		assert_string_equal(text, cases[i].result);
		free(text);
		ca_settings_fini(&settings);
	}
}

static void test_nearest(void **state)
{
	static const struct {
		const char *name, *near;
	} cases[] = {
		{ "speedup", "speedups" }, { "spedups", "speedups" }, { "iteration", "iterations" },
		{ "dryrun", "dry-run" },   { "dry_rum", "dry-run" },  { "verboes", "verbose" },
		{ "hlep", "help" },        { "iter", "iterations" },  { "xyzzyplugh", NULL },
	};

	(void)state;
	assert_int_equal(ca_suggest_distance("abc", "abc"), 0);
	assert_int_equal(ca_suggest_distance("abc", "acb"), 1);
	assert_int_equal(ca_suggest_distance("", "abc"), 3);
	assert_int_equal(ca_suggest_distance("kitten", "sitting"), 3);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const char *near = ca_settings_near_option(cases[i].name);

		if (cases[i].near) {
			assert_non_null(near);
			assert_string_equal(near, cases[i].near);
		} else {
			assert_null(near);
		}
	}
}

static void test_copy(void **state)
{
	struct ca_settings one, two;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_settings_init(&one, &err), CA_OK);
	assert_int_equal(ca_settings_set(&one, CA_SETTING_OUTPUT, "x", CA_ORIGIN_COMMAND, NULL, &err), CA_OK);
	assert_int_equal(ca_settings_copy(&two, &one, &err), CA_OK);
	assert_string_equal(two.output, "x");
	assert_ptr_not_equal(two.output, one.output);
	ca_settings_fini(&one);
	assert_string_equal(two.output, "x");
	ca_settings_fini(&two);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),      cmocka_unit_test(test_enums),
		cmocka_unit_test(test_defaults),   cmocka_unit_test(test_values),
		cmocka_unit_test(test_speedups),   cmocka_unit_test(test_speedups_many),
		cmocka_unit_test(test_precedence), cmocka_unit_test(test_file),
		cmocka_unit_test(test_bad_files),  cmocka_unit_test(test_environment),
		cmocka_unit_test(test_coz_names),  cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_copy),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* driver/options.c: the command line. */
#include "driver/again.h"
#include "driver/options.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words of a line, split at blanks; "''" is an empty one. Shared storage. */
static char **words(const char *line)
{
	static char text[512], *argv[64];
	size_t n = 0;

	snprintf(text, sizeof text, "causal %s", line);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		if (!strcmp(word, "''"))
			*word = '\0';
		argv[n++] = word;
	}
	argv[n] = NULL;
	return argv;
}

/* What was understood, as one line: assignments, axes, command. */
static void describe(const struct ca_options *options, char *buffer, size_t size)
{
	FILE *out = fmemopen(buffer, size, "w");

	assert_non_null(out);
	if (options->action != CA_ACTION_RUN)
		fprintf(out, "%s%s", options->action == CA_ACTION_HELP ? "help" : "version", options->topic);
	for (size_t i = 0; i < options->assignments; i++)
		fprintf(out, "%s=%s ", ca_settings_get(options->assignment[i].id)->member,
			options->assignment[i].text);
	for (size_t i = 0; i < CA_AXES; i++) {
		if (!options->axis[i].count)
			continue;
		fprintf(out, "%s[", ca_settings_get((enum ca_setting_id)(CA_AXIS_FIRST + i))->letter);
		for (size_t j = 0; j < options->axis[i].count; j++)
			fprintf(out, "%s%s", j ? "|" : "", options->axis[i].group[j]);
		fputs("] ", out);
	}
	if (options->command) {
		fputs("--", out);
		for (char **word = options->command; *word; word++)
			fprintf(out, " %s", *word);
	}
	fclose(out);
}

static void test_understood(void **state)
{
	static const struct {
		const char *line, *result;
	} cases[] = {
		{ "", "" },
		{ "--", "" },
		{ "-n 1 -- ./toy", "iterations=1 -- ./toy" },
		{ "./toy -n 3", "-- ./toy -n 3" },
		{ "./toy --help", "-- ./toy --help" },
		{ "sh -c x -- y", "-- sh -c x -- y" },
		{ "-- ./toy -- -n 3", "-- ./toy -- -n 3" },
		{ "-n 3 ./toy -n 5", "iterations=3 -- ./toy -n 5" },
		{ "--iterations=3 -- x", "iterations=3 -- x" },
		{ "-n20 -w1.5 -- x", "iterations=20 delay=1.5 -- x" },
		{ "-n=20 -- x", "iterations=20 -- x" },
		{ "-n 2 -n 3 -- x", "iterations=2 iterations=3 -- x" },
		{ "--wait 2 --delay 3 -- x", "delay=2 delay=3 -- x" },
		{ "--seed 7 --random-seed 8 -- x", "random_seed=7 random_seed=8 -- x" },
		{ "-e -r -- x", "end_to_end=true reset=true -- x" },
		{ "-e false -- x", "end_to_end=false -- x" },
		{ "-e false", "end_to_end=true -- false" },
		{ "--debug=no --no-exact -- x", "debug=no exact=false -- x" },
		{ "--no-defaults --no-no-defaults -- x", "no_defaults=true no_defaults=false -- x" },
		{ "-v -- x", "verbose=1 -- x" },
		{ "-v 3 -- x", "verbose=3 -- x" },
		{ "-v -1 -- x", "verbose=-1 -- x" },
		{ "-v x", "verbose=1 -- x" },
		{ "--single -- x", "single=0 -- x" },
		{ "--single=2 -- x", "single=2 -- x" },
		{ "--single 2", "single=0 -- 2" },
		{ "-g -- x", "generate_configs= -- x" },
		{ "-g d -- x", "generate_configs=d -- x" },
		{ "-g -n 2 -- x", "generate_configs= iterations=2 -- x" },
		{ "-c a b -c d -- x", "config_file=a:b:d -- x" },
		{ "-c -- x", "-- x" },
		{ "-s 0 0,10,20-50 -- x", "s[0|0,10,20-50] -- x" },
		{ "-s 0 -e -s 5 -- x", "end_to_end=true s[0|5] -- x" },
		{ "-B MAIN -BE a;b c -F -SE s -- x", "BE[a;b|c] SE[s] B[MAIN] -- x" },
		{ "-F=-x --function-scope=y -- x", "F[-x|y] -- x" },
		{ "-F '' -- x", "F[] -- x" },
		{ "--function_scope f -- x", "F[f] -- x" },
		{ "--sinks print,x=y -- x", "sinks=print,x=y -- x" },
		{ "-h", "help" },
		{ "-?", "help" },
		{ "-n 3 --help", "helpiterations=3 " },
		{ "--help=man", "helpman" },
		{ "--version -- x", "version" },
		{ "--mode line -m func -- x", "mode=line mode=func -- x" },
	};
	struct ca_options options;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char result[512] = "";

		assert_int_equal(ca_options_parse(&options, words(cases[i].line), &err), CA_OK);
		describe(&options, result, sizeof result);
		assert_string_equal(result, cases[i].result);
		ca_options_fini(&options);
	}
}

static void test_mistakes(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{ "--speedup 5 -- x", "unknown option --speedup; did you mean --speedups?" },
		{ "--itertions=5 -- x", "unknown option --itertions; did you mean --iterations?" },
		{ "--zzzzz -- x", "unknown option --zzzzz; causal --help" },
		{ "-z -- x", "unknown option -z; causal --help" },
		{ "-verbose 3 -- x", "unknown option -verbose; did you mean --verbose?" },
		{ "-F5 -- x", "unknown option -F5" },
		{ "-n -- x", "-n needs a value: -n N" },
		{ "-n", "-n needs a value: -n N" },
		{ "-o -r -- x", "-o needs a value: -o DIR" },
		{ "-s -- x", "-s needs speedups" },
		{ "--no-debug=yes -- x", "--no-debug takes no value" },
		{ "--no-mode -- x", "unknown option --no-mode" },
		{ "-n 3 stray -- x", "'stray' is not an option" },
	};
	struct ca_options options;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(ca_options_parse(&options, words(cases[i].line), &err), CA_ERR_USAGE);
		assert_ptr_equal(strstr(err.text, cases[i].says), err.text);
	}
}

static void test_apply(void **state)
{
	struct ca_options options;
	struct ca_settings settings;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_settings_init(&settings, &err), CA_OK);
	assert_int_equal(ca_options_parse(&options, words("-n 2 -n 3 -m line -F a b -- x"), &err), CA_OK);
	assert_int_equal(ca_options_apply(&options, &settings, &err), CA_OK);
	assert_int_equal(settings.iterations, 3);
	assert_int_equal(settings.mode, CA_MODE_LINE);
	assert_string_equal(settings.function_scope, ""); /* axes are not settings */
	assert_string_equal(ca_options_text(&options, CA_SETTING_ITERATIONS), "3");
	assert_null(ca_options_text(&options, CA_SETTING_OUTPUT));
	ca_options_fini(&options);

	assert_int_equal(ca_options_parse(&options, words("--iterations 2x -- x"), &err), CA_OK);
	assert_int_equal(ca_options_apply(&options, &settings, &err), CA_ERR_USAGE);
	assert_string_equal(err.text, "--iterations: '2x' is not a whole number; write one, like 1");
	ca_options_fini(&options);

	assert_int_equal(ca_options_parse(&options, words("-F a ( -- x"), &err), CA_OK);
	assert_int_equal(ca_options_apply(&options, &settings, &err), CA_ERR_USAGE);
	assert_ptr_equal(strstr(err.text, "-F: bad regular expression '('"), err.text);
	ca_options_fini(&options);
	ca_settings_fini(&settings);
}

/* The rows that are axes, and no others, are the combinatorial group. */
static void test_axes(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		const struct ca_setting *row = ca_settings_get((enum ca_setting_id)i);
		bool axis = i >= (size_t)CA_AXIS_FIRST && i <= (size_t)CA_AXIS_LAST;

		assert_int_equal(row->group == CA_GROUP_COMBINATORIAL, axis);
		assert_true(!axis || row->use == CA_USE_RUN);
	}
}

/* The command to run next: what was given stays, each word as a shell takes it. */
static void test_again(void **state)
{
	static const struct {
		const char *line, *result;
	} cases[] = {
		{ "./toy", "causal -s 0,50 -n 10 -- ./toy" },
		{ "-n 3 -s 0,10 20 -- ./toy -n 3", "causal -s 0,50 -n 10 -- ./toy -n 3" },
		{ "-F ^a b -m line -- ./toy", "causal -m line -F '^a' -F b -s 0,50 -n 10 -- ./toy" },
		{ "-e -r --dry-run -- ./toy", "causal -e -s 0,50 -n 10 -- ./toy" },
		{ "--no-exact --single=2 -- ./toy", "causal --exact=false -s 0,50 -n 10 -- ./toy" },
		{ "-v 2 -o a&b -- ./toy", "causal --verbose=2 -o 'a&b' -s 0,50 -n 10 -- ./toy" },
		{ "-F=-x -- ./toy", "causal --function-scope=-x -s 0,50 -n 10 -- ./toy" },
		{ "-- sh -c '' it's $HOME *", "causal -s 0,50 -n 10 -- sh -c '' 'it'\\''s' '$HOME' '*'" },
		{ "-- echo \033[1mit's\\ \177",
		  "causal -s 0,50 -n 10 -- echo $'\\033[1mit\\'s\\\\' $'\\177'" },
		{ "-- echo \303\244", "causal -s 0,50 -n 10 -- echo '\303\244'" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_options options;
		struct ca_err err;
		char *line;

		assert_int_equal(ca_options_parse(&options, words(cases[i].line), &err), CA_OK);
		line = ca_again_line(&options, "-s 0,50 -n 10");
		assert_string_equal(line, cases[i].result);
		free(line);
		ca_options_fini(&options);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_understood), cmocka_unit_test(test_again),
		cmocka_unit_test(test_mistakes),   cmocka_unit_test(test_apply),
		cmocka_unit_test(test_axes),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}

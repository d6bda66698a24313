/* SPDX-License-Identifier: MIT */
/* driver/variants.c: the product of groups, its order, end-to-end, configuration files. */
#include "driver/configs.h"
#include "driver/variants.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
	char text[2048];
	char *argv[400];
	struct ca_options options;
	struct ca_settings settings;
	struct ca_variants variants;
	struct ca_err err;
};

/* Options only; the command is added. Returns the status of the last step. */
static enum ca_status open_fixture(struct fixture *f, const char *line)
{
	size_t n = 0;

	snprintf(f->text, sizeof f->text, "causal %s -- x", line);
	for (char *word = strtok(f->text, " "); word; word = strtok(NULL, " "))
		f->argv[n++] = word;
	f->argv[n] = NULL;
	assert_int_equal(ca_options_parse(&f->options, f->argv, &f->err), CA_OK);
	assert_int_equal(ca_settings_init(&f->settings, &f->err), CA_OK);
	assert_int_equal(ca_options_apply(&f->options, &f->settings, &f->err), CA_OK);
	return ca_variants_init(&f->variants, &f->options, &f->settings, &f->err);
}

static void close_fixture(struct fixture *f)
{
	ca_variants_fini(&f->variants);
	ca_settings_fini(&f->settings);
	ca_options_fini(&f->options);
}

/* The values of a variant in the table's order, joined by '/', variants by ' '. */
static void list(const struct fixture *f, char *buffer, size_t size)
{
	FILE *out = fmemopen(buffer, size, "w");

	assert_non_null(out);
	for (size_t i = 0; i < f->variants.total; i++) {
		struct ca_variant variant;
		const char *before = "";

		ca_variants_get(&f->variants, i, &variant);
		assert_int_equal(variant.index, i);
		fputs(i ? " " : "", out);
		for (size_t j = 0; j < CA_PATTERN_AXES; j++)
			if (variant.pattern[j]) {
				fprintf(out, "%s%s", before, variant.pattern[j]);
				before = "/";
			}
		if (variant.speedups) {
			char *text = ca_speedups_text(variant.speedups);

			fprintf(out, "%s%s", before, text);
			free(text);
		}
	}
	fclose(out);
}

static void test_lists(void **state)
{
	static const struct {
		const char *line, *result;
	} cases[] = {
		{ "", "" },
		{ "-n 3", "  " },
		{ "-s 0 0,10,20-50 0-40:10", "0 0,10,20,25,30,35,40,45,50 0,10,20,30,40" },
		{ "-n 2 -B MAIN -F foo bar", "MAIN/foo MAIN/bar MAIN/foo MAIN/bar" },
		{ "-s 0 10 -F a b", "a/0 b/0 a/10 b/10" },
		{ "-s 0 10 -F a b -S x y", "x/a/0 y/a/0 x/b/0 y/b/0 x/a/10 y/a/10 x/b/10 y/b/10" },
		{ "-FE f g -BE b c -SE s", "b/s/f c/s/f b/s/g c/s/g" },
		{ "-e -s 0,10,20-30", "0 10 20 25 30" },
		{ "-s 0,10,20-30 -e", "0 10 20 25 30" },
		{ "-e -s 0,0 5", "0 0 5" },
		{ "-s 0,0,5", "0,0,5" },
		{ "-F a;b c", "a;b c" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char result[512] = "";

		assert_int_equal(open_fixture(&f, cases[i].line), CA_OK);
		list(&f, result, sizeof result);
		assert_string_equal(result, cases[i].result);
		close_fixture(&f);
	}
}

static void test_totals(void **state)
{
	static const struct {
		const char *line;
		size_t total;
	} cases[] = {
		{ "-n 20 -s 0-100", 20 },
		{ "-n 3 -e -s 0-70 -F a b", 90 },
		{ "-n 5 -F a b c -S x", 15 },
		{ "-n 1000000", 1000000 },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_variant last;

		assert_int_equal(open_fixture(&f, cases[i].line), CA_OK);
		assert_int_equal(f.variants.total, cases[i].total);
		ca_variants_get(&f.variants, cases[i].total - 1, &last);
		assert_int_equal(last.iteration, f.settings.iterations);
		close_fixture(&f);
	}
	assert_int_equal(open_fixture(&f, "-n 500001 -F a b"), CA_ERR_USAGE);
	close_fixture(&f);
}

/* Of three axes with a hundred groups each, and then some speedups: a million runs are allowed,
 * and what comes after the million counts, too. */
static void test_limit(void **state)
{
	static const struct {
		const char *speedups;
		enum ca_status status;
	} cases[] = {
		{ "-s 0", CA_OK },
		{ "-s 0 10", CA_ERR_USAGE },
		{ "-s 0 10 20", CA_ERR_USAGE },
	};
	char groups[500] = "";
	struct fixture f;

	(void)state;
	for (int i = 0; i < 100; i++)
		snprintf(groups + strlen(groups), sizeof groups - strlen(groups), " g%d", i);
	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		char line[2000];

		snprintf(line, sizeof line, "-B%s -S%s -F%s %s", groups, groups, groups, cases[c].speedups);
		assert_int_equal(open_fixture(&f, line), cases[c].status);
		if (!cases[c].status)
			assert_int_equal(f.variants.total, CA_VARIANTS_MAX);
		close_fixture(&f);
	}
}

/* A pool that is not from the command line is a group all the same. */
static void test_base_pool(void **state)
{
	struct fixture f;
	char result[512] = "";

	(void)state;
	assert_int_equal(open_fixture(&f, "-e"), CA_OK);
	ca_variants_fini(&f.variants);
	assert_int_equal(ca_settings_set(&f.settings, CA_SETTING_FIXED_SPEEDUP, "0,50-60",
					 CA_ORIGIN_ENVIRONMENT, NULL, &f.err),
			 CA_OK);
	assert_int_equal(ca_variants_init(&f.variants, &f.options, &f.settings, &f.err), CA_OK);
	list(&f, result, sizeof result);
	assert_string_equal(result, "0 50 55 60");
	close_fixture(&f);
}

static void test_settings_of_variant(void **state)
{
	struct fixture f;
	struct ca_variant variant;
	struct ca_settings settings;
	char *line;

	(void)state;
	assert_int_equal(open_fixture(&f, "-n 6 -m line -s 0 10-20 -F a b"), CA_OK);
	ca_variants_get(&f.variants, 11, &variant);
	assert_int_equal(variant.iteration, 3);
	assert_int_equal(ca_variants_settings(&variant, &f.settings, &settings, &f.err), CA_OK);
	line = ca_settings_text(&settings, CA_SETTING_FIXED_SPEEDUP);
	assert_string_equal(line, "10,15,20");
	free(line);
	assert_string_equal(settings.function_scope, "b");
	assert_int_equal(settings.mode, CA_MODE_LINE);
	assert_int_equal(settings.origin[CA_SETTING_FUNCTION_SCOPE], CA_ORIGIN_COMMAND);
	ca_settings_fini(&settings);
	line = ca_variants_line(&f.variants, &variant);
	assert_string_equal(line, "11: iteration=3 CAUSAL_FUNCTION_SCOPE=b "
				  "CAUSAL_FIXED_SPEEDUP=10,15,20");
	free(line);
	ca_variants_get(&f.variants, 1, &variant);
	line = ca_variants_line(&f.variants, &variant);
	assert_string_equal(line, " 1: iteration=1 CAUSAL_FUNCTION_SCOPE=b CAUSAL_FIXED_SPEEDUP=0");
	free(line);
	close_fixture(&f);
}

/* A generated file reads back to the same settings. */
/* People read these files: what all variants share comes first, then what makes this one. */
static void check_order(const char *path)
{
	static const char *const order[] = { "# causal common settings\n", "CAUSAL_MODE",
					     "\n\n# causal variant settings\n", "CAUSAL_FUNCTION_SCOPE" };
	char text[2048], *at = text;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	for (size_t i = 0; i < CA_COUNT(order); i++) {
		char *found = strstr(at, order[i]);

		if (!found)
			fail_msg("no %s behind %s", order[i], i ? order[i - 1] : "the beginning");
		else
			at = found + strlen(order[i]);
	}
}

static void test_configs(void **state)
{
	char folder[] = "/tmp/test_variants.XXXXXX", *path;
	struct fixture f;
	struct ca_variant variant;
	struct ca_settings settings, again;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(open_fixture(&f, "-n 5 -m line -w 1.25 -s 0 10-20 -F a\"\\\\b;c#d b"), CA_OK);
	ca_variants_get(&f.variants, 2, &variant);
	assert_int_equal(ca_variants_settings(&variant, &f.settings, &settings, &f.err), CA_OK);
	assert_int_equal(ca_configs_write(folder, &settings, &variant, f.variants.total, &path, &f.err),
			 CA_OK);
	assert_non_null(strstr(path, "/causal-02.cfg"));
	assert_int_equal(ca_settings_init(&again, &f.err), CA_OK);
	assert_int_equal(ca_settings_read_file(&again, path, &f.err), CA_OK);
	for (size_t i = 0; i < CA_SETTING_COUNT; i++) {
		char *one, *two;

		if (ca_settings_get((enum ca_setting_id)i)->use != CA_USE_RUN)
			continue;
		one = ca_settings_text(&settings, (enum ca_setting_id)i);
		two = ca_settings_text(&again, (enum ca_setting_id)i);
		assert_string_equal(one, two);
		free(one);
		free(two);
	}
	assert_string_equal(again.function_scope, "a\"\\\\b;c#d");
	check_order(path);
	ca_settings_fini(&settings);
	ca_settings_fini(&again);
	unlink(path);
	free(path);
	rmdir(folder);
	close_fixture(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_totals),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_base_pool),
		cmocka_unit_test(test_settings_of_variant),
		cmocka_unit_test(test_configs),
	};

	return cmocka_run_group_tests_name("variants", tests, NULL, NULL);
}

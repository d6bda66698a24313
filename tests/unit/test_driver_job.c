/* SPDX-License-Identifier: MIT */
/* driver/job.c: what is said of a sweep, and by which exit status it is known. */
#include "causal/results/results.h"
#include "driver/job.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];
static struct ca_err err;

/* A directory with one run, in which nothing happened. */
static int set_up(void **state)
{
	static const char *const command[] = { "./app", NULL };
	struct ca_run_info info = { .run = 1,
				    .iteration = 1,
				    .command = command,
				    .mode = "function",
				    .backend = "perf",
				    .speedups = "0,50",
				    .seed = 1 };
	struct ca_catalog catalog = { 0 };
	struct ca_results *results;

	(void)state;
	strcpy(dir, "/tmp/ca-job-XXXXXX");
	if (!mkdtemp(dir) || ca_results_open(&results, dir, &info, &catalog, &err) != CA_OK)
		return -1;
	return ca_results_close(results, &(struct ca_run_summary){ 0 }, &err) != CA_OK;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

static FILE *heard;
static int standard_error;

static void listen(void)
{
	heard = tmpfile();
	assert_non_null(heard);
	fflush(stderr);
	standard_error = dup(STDERR_FILENO);
	assert_int_equal(dup2(fileno(heard), STDERR_FILENO), STDERR_FILENO);
}

static const char *said(void)
{
	static char text[8192];

	assert_int_equal(dup2(standard_error, STDERR_FILENO), STDERR_FILENO);
	close(standard_error);
	rewind(heard);
	text[fread(text, 1, sizeof text - 1, heard)] = '\0';
	fclose(heard);
	return text;
}

static void test_messages(void **state)
{
	static const struct {
		int verbosity, level;
		bool shown;
	} cases[] = { { -1, 0, false }, { -1, 1, false }, { 0, 0, true }, { 0, 1, false },
		      { 1, 1, true },   { 1, 2, false },  { 4, 0, true }, { 4, 4, true } };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_job job = { .level = cases[i].verbosity };

		listen();
		ca_job_message(&job, cases[i].level, "a word");
		assert_string_equal(said(), cases[i].shown ? "causal: a word\n" : "");
	}
}

static void test_results(void **state)
{
	char path[128];

	(void)state;
	for (int level = -1; level <= 1; level++) {
		struct ca_job job = { .dir = dir, .level = level };
		const char *text;

		listen();
		assert_int_equal(ca_job_results(&job, true, NULL), 0);
		text = said();
		if (level < 0) {
			assert_string_equal(text, "");
		} else {
			assert_non_null(strstr(text, "\n1 run"));
			assert_non_null(strstr(text, "causal: results are in "));
		}
		snprintf(path, sizeof path, "%s/profile.json", dir);
		assert_int_equal(unlink(path), 0);
	}
}

/* Neither verbosity hides that there is no profile. */
static void test_no_results(void **state)
{
	char path[128];

	(void)state;
	snprintf(path, sizeof path, "%s/profile.json", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (int level = -1; level <= 0; level++) {
		struct ca_job job = { .dir = dir, .level = level };
		const char *text;

		listen();
		assert_int_equal(ca_job_results(&job, true, NULL), 1);
		text = said();
		assert_non_null(strstr(text, "profile.json"));
		assert_null(strstr(text, "results are in"));
	}
	for (int level = -1; level <= 0; level++) {
		char missing[] = "/proc/self/missing";
		struct ca_job job = { .dir = missing, .level = level };

		listen();
		assert_int_equal(ca_job_results(&job, true, NULL), 1);
		assert_non_null(strstr(said(), missing));
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages),
		TEST(test_results),
		TEST(test_no_results),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

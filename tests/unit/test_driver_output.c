/* SPDX-License-Identifier: MIT */
/* driver/output.c: the directory of a sweep's results, made or found, and emptied. */
#include "driver/output.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char root[64], before[4096];
static struct ca_settings settings;
static struct ca_err err;

static int set_up(void **state)
{
	(void)state;
	strcpy(root, "/tmp/ca-output-XXXXXX");
	if (!mkdtemp(root) || !getcwd(before, sizeof before) || chdir(root))
		return -1;
	return ca_settings_init(&settings, &err) != CA_OK;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	ca_settings_fini(&settings);
	snprintf(command, sizeof command, "rm -rf '%s'", root);
	return chdir(before) || system(command);
}

static void set(enum ca_setting_id id, const char *text)
{
	assert_int_equal(ca_settings_set(&settings, id, text, CA_ORIGIN_COMMAND, NULL, &err), CA_OK);
}

static void make(const char *dir, const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static bool is_there(const char *dir, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	return access(path, F_OK) == 0;
}

static void test_given(void **state)
{
	unsigned first = 77;
	char *dir = NULL;

	(void)state;
	set(CA_SETTING_OUTPUT, "one/two");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_OK);
	assert_string_equal(dir, "one/two");
	assert_int_equal(first, 1);
	assert_int_equal(rmdir("one/two"), 0); /* nothing is left in it */
	free(dir);
}

static void test_default(void **state)
{
	char *dir[3];
	unsigned first;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		dir[i] = NULL;
		assert_int_equal(ca_output_open(&settings, "app", &dir[i], &first, &err), CA_OK);
		assert_int_equal(strncmp(dir[i], "causal-out/app-", 15), 0);
		assert_int_equal(access(dir[i], W_OK), 0);
		assert_int_equal(first, 1);
		for (unsigned k = 0; k < i; k++) /* within one second, too */
			assert_string_not_equal(dir[i], dir[k]);
	}
	for (unsigned i = 0; i < 3; i++)
		free(dir[i]);
}

/* Runs are counted on; what is not ours stays, also where results are removed. */
static void test_earlier_results(void **state)
{
	static const struct {
		const char *name;
		bool ours;
	} files[] = {
		{ "run-0001.jsonl", true }, { "run-0012.jsonl", true },     { "profile.json", true },
		{ "profile.coz", true },    { "progress.json", true },      { "run-x.jsonl", false },
		{ "run-99.json", false },   { "run-98.jsonl~", false },     { "notes.txt", false },
		{ "profile.svg", false },   { "progress.json.old", false },
	};
	unsigned first = 0;
	char *dir = NULL;

	(void)state;
	assert_int_equal(mkdir("out", 0700), 0);
	for (size_t i = 0; i < CA_COUNT(files); i++)
		make("out", files[i].name);
	set(CA_SETTING_OUTPUT, "out");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_OK);
	free(dir);
	assert_int_equal(first, 13);
	for (size_t i = 0; i < CA_COUNT(files); i++)
		assert_true(is_there("out", files[i].name));
	set(CA_SETTING_RESET, "1");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_OK);
	free(dir);
	assert_int_equal(first, 1);
	for (size_t i = 0; i < CA_COUNT(files); i++) /* a mistake may yet be found */
		assert_true(is_there("out", files[i].name));
	assert_int_equal(ca_output_clear("out", &err), CA_OK);
	for (size_t i = 0; i < CA_COUNT(files); i++)
		if (is_there("out", files[i].name) == files[i].ours)
			fail_msg("%s is %s", files[i].name, files[i].ours ? "still there" : "gone");
}

static void test_unusable(void **state)
{
	unsigned first;
	char *dir;

	(void)state;
	make(".", "file");
	set(CA_SETTING_OUTPUT, "file/out");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "'file/out' is not writable"));
	set(CA_SETTING_OUTPUT, "file");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_ERR_USAGE);
	assert_int_equal(mkdir("out", 0700), 0);
	assert_int_equal(mkdir("out/run-0001.jsonl", 0700), 0);
	assert_int_equal(ca_output_clear("out", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "'out' is not writable"));
	assert_int_equal(ca_output_clear("missing", &err), CA_ERR_USAGE);
	/* nobody can, not even root */
	set(CA_SETTING_OUTPUT, "/proc/self/fdinfo");
	assert_int_equal(ca_output_open(&settings, "app", &dir, &first, &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "/proc/self/fdinfo"));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_given),
		TEST(test_default),
		TEST(test_earlier_results),
		TEST(test_unusable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

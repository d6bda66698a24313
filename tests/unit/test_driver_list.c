/* SPDX-License-Identifier: MIT */
/* driver/list.c: what -P list says beside the points, and its exit status. tests/integration/scope.sh
 * has the points themselves. */
#include "driver/child.h"
#include "driver/list.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"

static int make_programs(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("lib.c", "int work(int n) { return n / 3; }\n");
	fixture_write("app.c", "int work(int);\nint main(int argc, char **argv) { (void)argv; return "
			       "work(argc); }\n");
	fixture_write("empty", "");
	fixture_write("script", "#!/usr/bin/env sh\nexit 0\n");
	fixture_write("text", "no program\n");
	return fixture_run("chmod +x empty script text && "
			   "%s -w -g -shared -fPIC -Wl,-soname,libwork.so -o libwork.so lib.c && "
			   "%s -w -g -Wl,-rpath,'$ORIGIN' -o app app.c ./libwork.so",
			   fixture_cc(), fixture_cc());
}

static char printed[16384], said[4096];
static FILE *heard[2];
static int kept[2];

static void listen(void)
{
	for (int i = 0; i < 2; i++) {
		fflush(i ? stderr : stdout);
		heard[i] = tmpfile();
		assert_non_null(heard[i]);
		kept[i] = dup(STDOUT_FILENO + i);
		assert_int_equal(dup2(fileno(heard[i]), STDOUT_FILENO + i), STDOUT_FILENO + i);
	}
}

static void stop_listening(void)
{
	for (int i = 0; i < 2; i++) {
		char *to = i ? said : printed;
		size_t room = i ? sizeof said : sizeof printed;

		fflush(i ? stderr : stdout);
		dup2(kept[i], STDOUT_FILENO + i);
		close(kept[i]);
		rewind(heard[i]);
		to[fread(to, 1, room - 1, heard[i])] = '\0';
		fclose(heard[i]);
	}
}

/* The exit status; printed and said: what it has left. */
static int list(const char *name, const char *binaries, const char *filter)
{
	char arguments[2][8] = { "causal", "-B" }, given[64], end[] = "--", program[] = "x";
	char *all[] = { arguments[0], arguments[1], given, end, program, NULL };
	char *none[] = { arguments[0], end, program, NULL };
	struct ca_job job = { .program = fixture_path(name) };
	struct ca_err err;
	int status;

	snprintf(given, sizeof given, "%s", binaries);
	assert_int_equal(ca_options_parse(&job.options, *binaries ? all : none, &err), CA_OK);
	assert_int_equal(ca_settings_init(&job.settings, &err), CA_OK);
	assert_int_equal(ca_options_apply(&job.options, &job.settings, &err), CA_OK);
	assert_int_equal(ca_variants_init(&job.variants, &job.options, &job.settings, &err), CA_OK);
	listen();
	status = ca_list_show(&job, filter);
	stop_listening();
	ca_variants_fini(&job.variants);
	ca_settings_fini(&job.settings);
	ca_options_fini(&job.options);
	return status;
}

/* Which of the libraries are listed, and that there are more. */
static void test_libraries(void **state)
{
	static const struct {
		const char *binaries;
		bool main, work;
		const char *said; /* "": nothing */
	} cases[] = {
		{ "", true, false, "causal: these are points of app itself; it needs libwork.so" },
		{ "MAIN;libwork", true, true, "" },
		{ "libwork", true, true, "" },
		{ "libnone", true, false,
		  "causal: -B names none of the libraries that app needs: libwork.so" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(list("app", cases[i].binaries, ""), 0);
		assert_int_equal(!strstr(printed, "main"), !cases[i].main);
		assert_int_equal(!strstr(printed, "libwork.so!work"), !cases[i].work);
		if (*cases[i].said ? strncmp(said, cases[i].said, strlen(cases[i].said)) != 0 : *said != 0)
			fail_msg("-B '%s': %s", cases[i].binaries, said);
	}
}

/* Whatever stands in the way, there is a line that names the file. */
static void test_no_points(void **state)
{
	static const struct {
		const char *name, *filter;
		int status;
		const char *said;
	} cases[] = {
		{ "app", "nothing_like_it", CA_EXIT_USAGE, "nothing in app matches 'nothing_like_it'" },
		{ "empty", "", CA_EXIT_USAGE, "/empty" },
		{ "text", "", CA_EXIT_USAGE, "/text" },
		{ "script", "", CA_EXIT_USAGE,
		  "/script is a script; the program that runs is its "
		  "interpreter: causal -P list -- sh\n" },
		{ "missing", "", 1, "there is no file " },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(list(cases[i].name, "", cases[i].filter), cases[i].status);
		assert_string_equal(printed, "");
		assert_int_equal(strncmp(said, "causal: ", 8), 0);
		if (!strstr(said, cases[i].said) || !strstr(said, cases[i].name))
			fail_msg("%s: %s", cases[i].name, said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_libraries),
					    cmocka_unit_test(test_no_points) };

	return cmocka_run_group_tests(tests, make_programs, fixture_remove);
}

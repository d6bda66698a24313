/* SPDX-License-Identifier: MIT */
/* driver/cmd_selftest.c: what it makes of predictions that are right, wrong or missing. In place of
 * causal it runs a script here, which "predicts" what each case says. */
#include "driver/selftest.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Called as "fake ... -o DIR -- fake selftest workload NAME SECONDS". The words in NAME.says are
 * for one call each: an effect, "null", or what else there is below. */
static const char fake[] =
	"#!/bin/sh\n"
	"here=${0%/*}\n"
	"while [ \"$1\" != -o ]; do shift; done\n"
	"dir=$2 name=$7\n"
	"[ \"$5 $6\" = \"selftest workload\" ] || exit 9\n"
	"read -r word rest <\"$here/$name.says\" || [ -n \"$word\" ] || exit 8\n"
	"echo \"$rest\" >\"$here/$name.says\"\n"
	"echo \"$name\" >>\"$here/calls\"\n"
	"mkdir -p \"$dir\"\n"
	"curve() {\n"
	"	echo '{\"regions\":[{\"progress\":[{\"curve\":['\"$1\"']}]}],\"cause\":\"too hot\"}'\n"
	"}\n"
	"at() { echo '{\"speedup\":'$1',\"effect\":'$2',\"low\":-99,\"high\":null}'; }\n"
	"case $word in\n"
	"fails) echo 'causal: a reason' >&2; echo >&2; exit 3 ;;\n"
	"late) curve \"$(at 50 30)\"; echo 'causal: but then' >&2; exit 3 ;;\n"
	"dies) kill -9 $$ ;;\n"
	"nothing) ;;\n"
	"empty) echo '{\"regions\":[],\"cause\":\"too short\"}' ;;\n"
	"torn) echo '{\"regions\":[' ;;\n"
	"elsewhere) curve \"$(at 25 30)\" ;;\n"
	"*) curve \"$(at 0 90),$(at 50 \"$word\")\" ;;\n"
	"esac >\"$dir/profile.json\"\n"
	"test \"$word\" != nothing || rm \"$dir/profile.json\"\n";

static char folder[] = "/tmp/causal-test-selftest-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[4][128];
	static unsigned next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof path[next], "%s/%s", folder, name);
	return path[next];
}

static void put(const char *name, const char *text)
{
	FILE *file = fopen(in_folder(name), "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static char *take(const char *name)
{
	static char text[4096];
	FILE *file = fopen(in_folder(name), "r");
	size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;

	text[n] = '\0';
	if (file)
		fclose(file);
	unlink(in_folder(name));
	return text;
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	put("fake", fake);
	return mkdir(in_folder("scratch"), 0700) | chmod(in_folder("fake"), 0700);
}

static int tear_down(void **state)
{
	(void)state;
	unlink(in_folder("serial.says"));
	unlink(in_folder("barrier.says"));
	unlink(in_folder("fake"));
	/* nothing is left in either */
	return rmdir(in_folder("scratch")) | rmdir(folder);
}

/* Standard output goes to a file meanwhile. */
static int hush(void)
{
	int out = dup(STDOUT_FILENO), fd = open(in_folder("out"), O_CREAT | O_WRONLY, 0600);

	fflush(stdout);
	assert_true(out >= 0 && fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
	close(fd);
	return out;
}

static void speak(int out)
{
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	close(out);
}

static void test_predicts(void **state)
{
	static const struct {
		const char *serial, *barrier; /* right: 30 and 20, 5 off at most */
		bool right;
		const char *calls, *says;
	} cases[] = {
		{ "30", "20", true, "serial\nbarrier\n", "  good   serial " },
		{ "25.1", "24.9", true, "serial\nbarrier\n", "predicted 24.9 %" },
		{ "40 31", "20", true, "serial\nserial\nbarrier\n", "predicted 40.0 %; once more" },
		{ "30", "-20 20", true, "serial\nbarrier\nbarrier\n", "predicted -20.0 %; once more" },
		{ "36 36 30", "20", false, "serial\nserial\nbarrier\n", "  BAD    serial " },
		{ "30", "10 14 20", false, "serial\nbarrier\nbarrier\n", "  BAD    barrier " },
		{ "0 0", "0 0", false, "serial\nserial\nbarrier\nbarrier\n",
		  "must give 20 %, predicted 0.0 %" },
		{ "empty", "20", false, "serial\nbarrier\n", "no prediction (too short)" },
		{ "null", "20", false, "serial\nbarrier\n", "no prediction (too hot)" },
		{ "elsewhere", "20", false, "serial\nbarrier\n", "no prediction (too hot)" },
		{ "fails", "20", false, "serial\nbarrier\n", "no prediction (causal: a reason)" },
		{ "late", "20", false, "serial\nbarrier\n", "no prediction (causal: but then)" },
		{ "nothing", "20", false, "serial\nbarrier\n", "no prediction ()" },
		{ "torn", "20", false, "serial\nbarrier\n", "no prediction ()" },
		{ "30", "dies", false, "serial\nbarrier\n", "  BAD    barrier " },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		bool right;
		char *text;
		int out;

		put("serial.says", cases[i].serial);
		put("barrier.says", cases[i].barrier);
		out = hush();
		right = ca_selftest_predicts(in_folder("fake"), in_folder("scratch"));
		speak(out);
		text = take("out");
		if (right != cases[i].right || !strstr(text, cases[i].says))
			fail_msg("%s, %s: %d\n%s", cases[i].serial, cases[i].barrier, right, text);
		assert_string_equal(take("calls"), cases[i].calls);
	}
}

static void test_verdict(void **state)
{
	static const struct {
		enum ca_selftest_grade grade[3];
		bool right;
		int status;
		const char *says;
	} cases[] = {
		{ { 0, 0, 0 }, true, 0, "Predictions can be trusted here.\n" },
		{ { 0, 0, CA_SELFTEST_DOUBT }, true, 0, "if you use more runs than usual" },
		{ { CA_SELFTEST_BAD, 0, 0 }, true, 0, "if you use more runs than usual" },
		{ { 0, 0, 0 }, false, 1, "cannot be trusted here, and nothing above explains it" },
		{ { 0, CA_SELFTEST_DOUBT, 0 }, false, 1, "cannot be trusted here now; likely reasons" },
		{ { 0, 0, CA_SELFTEST_BAD }, false, 1, "cannot be trusted here now; likely reasons" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_selftest_check check[3] = { 0 };
		int out = hush(), status;

		for (size_t j = 0; j < CA_COUNT(check); j++)
			check[j].grade = cases[i].grade[j];
		status = ca_selftest_verdict(check, CA_COUNT(check), cases[i].right);
		speak(out);
		assert_int_equal(status, cases[i].status);
		assert_non_null(strstr(take("out"), cases[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicts),
		cmocka_unit_test(test_verdict),
	};

	return cmocka_run_group_tests_name("selftest", tests, set_up, tear_down);
}

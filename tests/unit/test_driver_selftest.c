/* SPDX-License-Identifier: MIT */
/* driver/cmd_selftest.c and its parts: what it sees of the machine, and what it makes of predictions
 * that are right, wrong or missing. In place of causal it runs a script here, which "predicts" what
 * each case says. */
#include "driver/selftest.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Called as "fake -b BACKEND ... -o DIR -- fake selftest workload NAME SECONDS". The words in NAME.says are
 * for one call each: an effect, "null", or what else there is below. */
static const char fake[] =
	"#!/bin/sh\n"
	"here=${0%/*}\n"
	"backend=$2\n"
	"while [ \"$1\" != -o ]; do shift; done\n"
	"dir=$2 name=$7\n"
	"[ \"$5 $6\" = \"selftest workload\" ] || exit 9\n"
	"read -r word rest <\"$here/$name.says\" || [ -n \"$word\" ] || exit 8\n"
	"echo \"$rest\" >\"$here/$name.says\"\n"
	"echo \"$name\" >>\"$here/calls\"\n"
	"echo \"$backend\" >\"$here/backend\"\n"
	"mkdir -p \"$dir\"\n"
	"curve() {\n"
	"	echo '{\"regions\":[{\"progress\":[{\"curve\":['\"$1\"']}]}],\"cause\":\"too hot\",'\n"
	"	echo '\"funnel\":{\"experiments_finished\":9,\"experiments_disturbed\":2}}'\n"
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
	static char path[4][256];
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
		unsigned silent;
	} cases[] = {
		{ "30", "20", true, "serial\nbarrier\n", "  good   serial " },
		{ "25.1", "24.9", true, "serial\nbarrier\n", "predicted 24.9 %" },
		{ "40 31", "20", true, "serial\nserial\nbarrier\n", "predicted 40.0 %; once more" },
		{ "30", "-20 20", true, "serial\nbarrier\nbarrier\n", "predicted -20.0 %; once more" },
		{ "36 36 30", "20", false, "serial\nserial\nbarrier\n", "  BAD    serial " },
		{ "30", "10 14 20", false, "serial\nbarrier\nbarrier\n", "  BAD    barrier " },
		{ "0 0", "0 0", false, "serial\nserial\nbarrier\nbarrier\n",
		  "must give 20 %, predicted 0.0 %" },
		{ "empty", "20", false, "serial\nbarrier\n", "no prediction (too short)", 1 },
		{ "null", "20", false, "serial\nbarrier\n", "no prediction (too hot)", 1 },
		{ "elsewhere", "20", false, "serial\nbarrier\n", "no prediction (too hot)", 1 },
		{ "fails", "20", false, "serial\nbarrier\n", "no prediction (causal: a reason)", 1 },
		{ "late", "20", false, "serial\nbarrier\n", "no prediction (causal: but then)", 1 },
		{ "nothing", "20", false, "serial\nbarrier\n", "no prediction ()", 1 },
		{ "torn", "20", false, "serial\nbarrier\n", "no prediction ()", 1 },
		{ "30", "dies", false, "serial\nbarrier\n", "  BAD    barrier ", 1 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_selftest_known known;
		char *text;
		int out;

		put("serial.says", cases[i].serial);
		put("barrier.says", cases[i].barrier);
		out = hush();
		known = ca_selftest_predicts(in_folder("fake"), in_folder("scratch"), CA_BACKEND_TIMER,
					     ca_selftest_now() + 60);
		speak(out);
		text = take("out");
		if (known.right != cases[i].right || !strstr(text, cases[i].says))
			fail_msg("%s, %s: %d\n%s", cases[i].serial, cases[i].barrier, known.right, text);
		assert_int_equal(known.silent, cases[i].silent);
		assert_string_equal(take("calls"), cases[i].calls);
		assert_string_equal(take("backend"), "timer\n");
	}
}

/* How far off: the larger of miss and half the interval, of the worst program; a second try counts
 * as much as the first. What the script says lies between -99 and nothing: no interval. */
static void test_error(void **state)
{
	static const struct {
		const char *serial, *barrier;
		double error; /* -1: none */
	} cases[] = {
		{ "30", "20", 0 },      { "31", "18.5", 1.5 }, { "40 30", "20", 5 },
		{ "30", "26 27", 6.5 }, { "null", "22", 2 },   { "null", "empty", -1 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_selftest_known known;
		int out;

		put("serial.says", cases[i].serial);
		put("barrier.says", cases[i].barrier);
		out = hush();
		known = ca_selftest_predicts(in_folder("fake"), in_folder("scratch"), CA_BACKEND_PERF,
					     ca_selftest_now() + 60);
		speak(out);
		take("out");
		if (cases[i].error < 0)
			assert_true(isnan(known.error));
		else
			assert_true(fabs(known.error - cases[i].error) < 0.01);
		take("calls");
		assert_string_equal(take("backend"), "perf\n");
	}
}

static struct ca_selftest_known in_time(double seconds, char **text)
{
	struct ca_selftest_known known;
	int out;

	put("serial.says", "40 30");
	put("barrier.says", "20");
	out = hush();
	known = ca_selftest_predicts(in_folder("fake"), in_folder("scratch"), CA_BACKEND_PERF,
				     ca_selftest_now() + seconds);
	speak(out);
	take("backend");
	*text = take("out"); /* one buffer for all */
	return known;
}

/* Nothing is begun when the time is over, and no second try when it nearly is. */
static void test_time(void **state)
{
	struct ca_selftest_known known;
	char *text;

	(void)state;
	known = in_time(-1, &text);
	assert_false(known.right);
	assert_int_equal(known.silent, 2);
	assert_non_null(strstr(text, "no prediction (there was no time left)"));
	assert_string_equal(take("calls"), "");
	known = in_time(4, &text);
	assert_false(known.right);
	assert_int_equal(known.silent, 0);
	assert_null(strstr(text, "once more"));
	assert_string_equal(take("calls"), "serial\nbarrier\n");
	/* those that other programs disturbed are counted */
	assert_int_equal(known.finished, 18);
	assert_int_equal(known.disturbed, 4);
}

static void test_verdict(void **state)
{
	static const struct ca_selftest_known right = { true, 0, 1.2, 9, 0 }, wrong = { false, 0, 9, 9, 0 },
					      silent = { false, 1, NAN, 9, 0 };
	static const struct {
		enum ca_selftest_grade grade[3];
		bool noise;
		const struct ca_selftest_known *perf, *timer;
		int status;
		const char *says;
	} cases[] = {
		{ { 0, 0, 0 }, true, &right, &right, 0, "Predictions can be trusted here.\n" },
		{ { 0, 0, 0 }, true, &right, &wrong, 0, "Predictions can be trusted here.\n" },
		{ { 0, 0, 0 },
		  true,
		  &right,
		  &silent,
		  0,
		  "Predictions here: about +-2 points with perf, cannot tell with the timer\n" },
		{ { 0, 0, 0 },
		  true,
		  NULL,
		  &right,
		  0,
		  "Predictions here: about +-2 points with the timer\nPredictions can be trusted here.\n" },
		{ { 0, 0, 0 },
		  true,
		  &wrong,
		  &right,
		  1,
		  "Predictions here: about +-9 points with perf, about +-2 points with the timer\n" },
		{ { 0, 0, CA_SELFTEST_DOUBT }, true, &right, &right, 0, "if you use more runs than usual" },
		{ { CA_SELFTEST_BAD, 0, 0 }, false, &right, &right, 0, "if you use more runs than usual" },
		{ { 0, 0, 0 },
		  true,
		  &wrong,
		  &wrong,
		  1,
		  "cannot be trusted here, and nothing above explains it" },
		{ { 0, CA_SELFTEST_DOUBT, 0 },
		  false,
		  &wrong,
		  &right,
		  1,
		  "cannot be trusted here now; likely" },
		{ { 0, 0, CA_SELFTEST_BAD }, false, NULL, &wrong, 1, "cannot be trusted here now; likely" },
		{ { 0, 0, CA_SELFTEST_BAD },
		  true,
		  NULL,
		  &wrong,
		  1,
		  "Cannot tell whether predictions can be" },
		{ { 0, 0, 0 }, true, &silent, &right, 1, "Cannot tell whether predictions can be" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_selftest_check check[3] = { 0 };
		int out = hush(), status;

		for (size_t j = 0; j < CA_COUNT(check); j++) {
			check[j].grade = cases[i].grade[j];
			check[j].noise = cases[i].noise;
		}
		status = ca_selftest_verdict(check, CA_COUNT(check), cases[i].perf, cases[i].timer);
		speak(out);
		assert_int_equal(status, cases[i].status);
		assert_non_null(strstr(take("out"), cases[i].says));
	}
}

/* Every check has a name and says something, whatever this machine is like; a doubt is shown with
 * what to do. */
static void test_look(void **state)
{
	static const char *const names[] = { "perf events", "room for threads", "timer ticks",
					     "clock",       "sleeps",           "code patching",
					     "cores",       "wake-ups",         "other programs" };
	struct ca_selftest_check check[CA_SELFTEST_CHECKS];
	int out = hush();
	size_t n = ca_selftest_look(check);
	char *text;

	(void)state;
	speak(out);
	text = take("out");
	assert_int_equal(n, CA_COUNT(names));
	for (size_t i = 0; i < n; i++) {
		char line[400];

		assert_string_equal(check[i].name, names[i]);
		assert_true(check[i].text[0]);
		assert_true(check[i].grade <= CA_SELFTEST_BAD);
		snprintf(line, sizeof line, " %-16s %s\n%s%s", check[i].name, check[i].text,
			 check[i].to_do[0] ? "         To do: " : "", check[i].to_do);
		if (!strstr(text, line))
			fail_msg("%s is not in:\n%s", line, text);
	}
}

/* In a child, whose limits are its own. Without a descriptor to be had no thread gets perf events. */
static void test_room(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		struct rlimit none = { 3, 3 };
		struct ca_selftest_check check = { .name = "" };

		if (setrlimit(RLIMIT_NOFILE, &none))
			_exit(2);
		ca_selftest_room(&check);
		_exit(!strncmp(check.text, "none have perf", 14) ? 77
		      : check.grade == CA_SELFTEST_DOUBT &&
				      !strncmp(check.text, "perf events for 0 threads", 25) &&
				      strstr(check.to_do, "ulimit -n")
			      ? 0
			      : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int remove_one(const char *path, const struct stat *what, int type, struct FTW *where)
{
	(void)what, (void)type, (void)where;
	return remove(path);
}

static int remove_tree(const char *path)
{
	return nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void put_group(const char *path, const char *text)
{
	char name[128];

	for (const char *end = path; (end = strchr(end, '/')); end++) {
		snprintf(name, sizeof name, "%.*s", (int)(end - path), path);
		mkdir(in_folder(name), 0700);
	}
	put(path, text);
}

/* The advice fits the kernel: setting how long idle cores poll does nothing where they have no driver. */
static void test_wake_advice(void **state)
{
	static const struct {
		const char *driver, *governor, *poll, *says;
	} cases[] = {
		{ "none\n", "haltpoll\n", NULL, "on the host" },
		{ "none\n", "haltpoll\n", "200000\n", "cpuidle_haltpoll.force=1" },
		{ "", "", "200000\n", "cpuidle_haltpoll.force=1" },
		{ "haltpoll\n", "menu\n", "200000\n", "echo haltpoll >/sys/" },
		{ "haltpoll\n", "haltpoll\n", "0\n", "echo 200000 >/sys/module/" },
		{ "haltpoll\n", "haltpoll\n", "200000\n", "for longer: echo" },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		mkdir(in_folder("sys"), 0700);
		put_group("sys/devices/system/cpu/cpuidle/current_driver", cases[i].driver);
		put_group("sys/devices/system/cpu/cpuidle/current_governor", cases[i].governor);
		if (cases[i].poll)
			put_group("sys/module/haltpoll/parameters/guest_halt_poll_ns", cases[i].poll);
		assert_non_null(strstr(ca_selftest_wake_advice(in_folder("sys")), cases[i].says));
		assert_int_equal(remove_tree(in_folder("sys")), 0);
	}
}

/* Control groups of both versions; the least limit of a group and of those around it counts. */
static void test_quota(void **state)
{
	static const struct {
		const char *self, *file[4][2];
		double cores;
	} cases[] = {
		{ "0::/\n", { { "cpu.max", "max 100000\n" } }, 0 },
		{ "0::/\n", { { "cpu.max", "150000 100000\n" } }, 1.5 },
		{ "0::/a/b\n",
		  { { "a/b/cpu.max", "max 100000\n" }, { "a/cpu.max", "50000 100000\n" } },
		  0.5 },
		{ "0::/a/b\n", { { "a/b/cpu.max", "20000 10000\n" }, { "a/cpu.max", "50000 10000\n" } }, 2 },
		{ "0::/a\n", { { "a/cpu.max", "max 100000\n" }, { "b/cpu.max", "50000 100000\n" } }, 0 },
		{ "0::/not/here\n", { { "cpu.max", "300000 100000\n" } }, 3 },
		{ "4:memory:/m\n1:cpu,cpuacct:/c\n0::/\n",
		  { { "cpu/c/cpu.cfs_quota_us", "250000\n" }, { "cpu/c/cpu.cfs_period_us", "100000\n" } },
		  2.5 },
		{ "1:cpu:/\n",
		  { { "cpu/cpu.cfs_quota_us", "-1\n" }, { "cpu/cpu.cfs_period_us", "100000\n" } },
		  0 },
		{ "4:memory:/\n", { { "cpu.max", "150000 100000\n" } }, 0 },
		{ "", { { "cpu.max", "150000 100000\n" } }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		double cores;

		mkdir(in_folder("groups"), 0700);
		put("self", cases[i].self);
		for (size_t f = 0; f < 4 && cases[i].file[f][0]; f++) {
			char path[64];

			snprintf(path, sizeof path, "groups/%s", cases[i].file[f][0]);
			put_group(path, cases[i].file[f][1]);
		}
		cores = ca_selftest_quota(in_folder("self"), in_folder("groups"));
		if (fabs(cores - cases[i].cores) > 1e-6)
			fail_msg("%zu: %f", i, cores);
		assert_int_equal(remove_tree(in_folder("groups")), 0);
	}
	unlink(in_folder("self"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_predicts), cmocka_unit_test(test_error),
		cmocka_unit_test(test_time),     cmocka_unit_test(test_verdict),
		cmocka_unit_test(test_look),     cmocka_unit_test(test_room),
		cmocka_unit_test(test_quota),    cmocka_unit_test(test_wake_advice),
	};

	return cmocka_run_group_tests_name("selftest", tests, set_up, tear_down);
}

/* SPDX-License-Identifier: MIT */
/* `causal selftest`: looks at the machine, profiles two built-in programs whose answer is
 * known on paper through the command itself, and says whether predictions can be trusted.
 *
 * Not for: judging the method (tests/accuracy does). Driver's process, one thread. */
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/selftest.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOLERANCE    5.0 /* points */
#define WORK_SECONDS "4"
enum { TRIES = 2, PATH_SIZE = 512 };

static const struct paper_case {
	const char *name, *what;
	double answer; /* percent, at 50 % */
} cases[] = {
	{ "serial", "one thread, 60 % of the time", 30 },
	{ "barrier", "the slow side of a barrier, 100 : 80", 20 },
};
enum { CASES = sizeof cases / sizeof *cases };

struct outcome {
	double effect, low, high; /* percent; NAN: none */
	char reason[200];         /* why there is none */
};

/* In the child. The user's own settings must not change the test. */
static void clear_settings(void)
{
	extern char **environ;

	for (char **e = environ; *e;) {
		char name[128];
		size_t n = strcspn(*e, "=");

		if ((!strncmp(*e, "CAUSAL_", 7) || !strncmp(*e, "COZ_", 4)) && n < sizeof name &&
		    strncmp(*e, "CAUSAL_RUNTIME=", 15)) {
			memcpy(name, *e, n);
			name[n] = '\0';
			unsetenv(name);
			e = environ; /* it moved */
		} else {
			e++;
		}
	}
}

/* Runs ourselves over the workload. Returns the exit status, -1 if it could not start. */
static int profile(const char *self, const char *name, const char *dir)
{
	char log[PATH_SIZE + 16];
	int status;
	pid_t pid;

	snprintf(log, sizeof log, "%s.log", dir);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

		clear_settings();
		if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
			_exit(126);
		execl(self, self, "-n", "1", "-m", "function", "-F", "^ca_selftest_region$", "-s", "0,50",
		      "-o", dir, "--", self, "selftest", "workload", name, WORK_SECONDS, (char *)NULL);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* The last line of the log that says something, for the reason. */
static void last_words(const char *dir, char *text, size_t size)
{
	char path[PATH_SIZE + 16], line[256];
	FILE *f;

	snprintf(path, sizeof path, "%s.log", dir);
	f = fopen(path, "r");
	text[0] = '\0';
	while (f && fgets(line, sizeof line, f)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0])
			snprintf(text, size, "%.*s", (int)size - 1, line);
	}
	if (f)
		fclose(f);
}

/* A number at path, of objects' keys and arrays' first elements; NAN if there is none. */
static double number(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) || !value)
		return NAN;
	return json_object_get_double(value);
}

static struct json_object *first(struct json_object *object, const char *key)
{
	struct json_object *array;

	if (!object || !json_object_object_get_ex(object, key, &array) ||
	    !json_object_is_type(array, json_type_array))
		return NULL;
	return json_object_array_get_idx(array, 0);
}

static void read_outcome(const char *dir, struct outcome *outcome)
{
	char path[PATH_SIZE + 32];
	struct json_object *root, *point, *curve = NULL, *cause;

	snprintf(path, sizeof path, "%s/profile.json", dir);
	root = json_object_from_file(path);
	point = first(first(root, "regions"), "progress");
	if (point)
		json_object_object_get_ex(point, "curve", &curve);
	for (size_t i = 0; curve && i < json_object_array_length(curve); i++) {
		struct json_object *at = json_object_array_get_idx(curve, i);

		if (fabs(number(at, "speedup") - 50) > 0.01)
			continue;
		outcome->effect = number(at, "effect");
		outcome->low = number(at, "low");
		outcome->high = number(at, "high");
	}
	if (isnan(outcome->effect) && root && json_object_object_get_ex(root, "cause", &cause) && cause)
		snprintf(outcome->reason, sizeof outcome->reason, "%s", json_object_get_string(cause));
	json_object_put(root);
}

static void remove_dir(const char *dir)
{
	DIR *d = opendir(dir);
	char path[PATH_SIZE + 300];

	for (struct dirent *e; d && (e = readdir(d));) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		unlink(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static struct outcome measure(const char *self, const struct paper_case *c, const char *scratch)
{
	struct outcome outcome = { NAN, NAN, NAN, "" };
	char dir[PATH_SIZE], log[PATH_SIZE + 16];
	int status;

	snprintf(dir, sizeof dir, "%s/%s", scratch, c->name);
	snprintf(log, sizeof log, "%s.log", dir);
	status = profile(self, c->name, dir);
	if (status == 0)
		read_outcome(dir, &outcome);
	if (isnan(outcome.effect) && !outcome.reason[0])
		last_words(dir, outcome.reason, sizeof outcome.reason);
	remove_dir(dir);
	unlink(log);
	return outcome;
}

static bool is_right(const struct outcome *outcome, const struct paper_case *c)
{
	return fabs(outcome->effect - c->answer) <= TOLERANCE;
}

/* A case that misses gets one more try: one disturbed run must not condemn a machine, and a
 * machine on which predictions are wrong fails both. */
static bool run_case(const char *self, const struct paper_case *c, const char *scratch)
{
	struct outcome outcome;

	for (int try = 1; try <= TRIES; try++) {
		outcome = measure(self, c, scratch);
		if (isnan(outcome.effect)) {
			printf("  BAD    %-16s %s: no prediction (%s)\n", c->name, c->what, outcome.reason);
			return false;
		}
		printf("  %-6s %-16s %s: 50 %% less time must give %.0f %%, predicted %.1f %%",
		       is_right(&outcome, c) ? "good" : "BAD", c->name, c->what, c->answer, outcome.effect);
		if (!isnan(outcome.low) && !isnan(outcome.high))
			printf(" (%.1f to %.1f)", outcome.low, outcome.high);
		printf("%s\n", is_right(&outcome, c) || try == TRIES ? "" : "; once more");
		fflush(stdout);
		if (is_right(&outcome, c))
			return true;
	}
	return false;
}

bool ca_selftest_predicts(const char *self, const char *scratch)
{
	size_t right = 0;

	for (size_t i = 0; i < CASES; i++)
		right += run_case(self, &cases[i], scratch);
	return right == CASES;
}

static void print_check(const struct ca_selftest_check *check)
{
	static const char *const grade[] = { "good", "doubt", "BAD" };

	printf("  %-6s %-16s %s\n", grade[check->grade], check->name, check->text);
	fflush(stdout);
}

int ca_selftest_verdict(const struct ca_selftest_check *check, size_t checks, bool right)
{
	bool doubts = false;

	for (size_t i = 0; i < checks; i++)
		doubts = doubts || check[i].grade != CA_SELFTEST_GOOD;
	if (right && !doubts)
		printf("Predictions can be trusted here.\n");
	else if (right)
		printf("Predictions can be trusted here if you use more runs than usual; see the "
		       "doubts above.\n");
	else if (doubts)
		printf("Predictions cannot be trusted here now; likely reasons are the checks "
		       "above that are not good.\n");
	else
		printf("Predictions cannot be trusted here, and nothing above explains it: please "
		       "report this output.\n");
	return right ? 0 : 1;
}

static int run_selftest(void)
{
	struct ca_selftest_check check[CA_SELFTEST_CHECKS + 1];
	size_t checks;
	bool right;
	char scratch[] = "/tmp/causal-selftest-XXXXXX";
	char *self = ca_child_self();
	double stolen, share;
	struct timespec from, to;

	if (!self || !mkdtemp(scratch)) {
		fprintf(stderr,
			"causal: selftest: cannot create a scratch directory in /tmp "
			"(%s)\n",
			strerror(errno));
		free(self);
		return 1;
	}
	printf("The machine\n");
	checks = ca_selftest_look(check);
	for (size_t i = 0; i < checks; i++)
		print_check(&check[i]);
	printf("Programs with known answers\n");
	stolen = ca_selftest_stolen();
	clock_gettime(CLOCK_MONOTONIC, &from);
	right = ca_selftest_predicts(self, scratch);
	clock_gettime(CLOCK_MONOTONIC, &to);
	share = 100 * (ca_selftest_stolen() - stolen) /
		((double)(to.tv_sec - from.tv_sec) * (double)sysconf(_SC_NPROCESSORS_ONLN) + 1e-3);
	check[checks] = (struct ca_selftest_check){ .name = "stolen time" };
	check[checks].grade = share > 5 ? CA_SELFTEST_BAD : share > 1 ? CA_SELFTEST_DOUBT : CA_SELFTEST_GOOD;
	snprintf(check[checks].text, sizeof check[checks].text,
		 "the hypervisor took %.1f %% of the machine during the measurement", share);
	print_check(&check[checks]);
	checks++;
	remove_dir(scratch);
	free(self);
	return ca_selftest_verdict(check, checks, right);
}

int ca_cmd_selftest(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "workload")) /* what it profiles */
		return ca_selftest_work(argv[2], atof(argv[3]));
	if (argc == 1)
		return run_selftest();
	fprintf(stderr, "causal: selftest takes no arguments; to run a program of that name, write "
			"causal -- selftest\n");
	return CA_EXIT_USAGE;
}

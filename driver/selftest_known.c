/* SPDX-License-Identifier: MIT */
/* The second half of `causal selftest`: profiles two built-in programs whose answer is known on
 * paper, through the command itself.
 *
 * Not for: judging the method (tests/accuracy does). Driver's process, one thread. */
#include "driver/child.h"
#include "driver/say.h"
#include "driver/selftest.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TOLERANCE    5.0 /* points */
#define WORK_SECONDS "4"
enum { TRIES = 2, PATH_SIZE = 512, RUN_SECONDS = 5 /* of work, and around it */ };

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
	unsigned long finished, disturbed;
};

static const char *name_of(enum ca_backend backend)
{
	return backend == CA_BACKEND_PERF ? "perf" : "timer";
}

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

/* The work ends by the clock, and what is around it soon after; if it does not, we end it. */
static int wait_for(pid_t pid)
{
	const struct timespec nap = { 0, 10000000 };
	double until = ca_selftest_now() + 2 * RUN_SECONDS;
	int status, signal = SIGTERM;

	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);

		if (got == pid)
			return ca_child_exit_status(status);
		if (got < 0 && errno != EINTR)
			return -1;
		if (ca_selftest_now() > until) {
			kill(pid, signal);
			signal = SIGKILL;
			until += 1;
		}
		nanosleep(&nap, NULL);
	}
}

/* Runs ourselves over the workload. Returns the exit status, -1 if it could not start. */
static int profile(const char *self, const char *name, const char *backend, const char *dir)
{
	char log[PATH_SIZE + 16];
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
		execl(self, self, "-b", backend, "-n", "1", "-m", "function", "-F", "^ca_selftest_region$",
		      "-s", "0,50", "-o", dir, "--", self, "selftest", "workload", name, WORK_SECONDS,
		      (char *)NULL);
		_exit(127);
	}
	return wait_for(pid);
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

static unsigned long count(struct json_object *object, const char *key)
{
	double value = number(object, key);

	return value > 0 ? (unsigned long)value : 0;
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
	struct json_object *root, *point, *curve = NULL, *cause, *funnel;

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
	if (root && json_object_object_get_ex(root, "funnel", &funnel) && funnel) {
		outcome->finished = count(funnel, "experiments_finished");
		outcome->disturbed = count(funnel, "experiments_disturbed");
	}
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

static struct outcome measure(const char *self, const struct paper_case *c, const char *backend,
			      const char *scratch)
{
	struct outcome outcome = { .effect = NAN, .low = NAN, .high = NAN };
	char dir[PATH_SIZE], log[PATH_SIZE + 16];
	int status;

	snprintf(dir, sizeof dir, "%s/%s", scratch, c->name);
	snprintf(log, sizeof log, "%s.log", dir);
	status = profile(self, c->name, backend, dir);
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

/* What is off, or may be. */
static double error_of(const struct outcome *outcome, const struct paper_case *c)
{
	double miss = fabs(outcome->effect - c->answer);

	return fmax(miss, (outcome->high - outcome->low) / 2); /* fmax: NAN is no interval */
}

static void print_outcome(const struct outcome *outcome, const struct paper_case *c, const char *backend,
			  const char *after)
{
	printf("  %-6s %-7s %-8s %s: ", is_right(outcome, c) ? "good" : "BAD", c->name, backend, c->what);
	if (isnan(outcome->effect)) {
		printf("no prediction (%s)\n", outcome->reason);
	} else {
		printf("50 %% less time must give %.0f %%, predicted %.1f %%", c->answer, outcome->effect);
		if (!isnan(outcome->low) && !isnan(outcome->high))
			printf(" (%.1f to %.1f)", outcome->low, outcome->high);
		printf("%s\n", after);
	}
	fflush(stdout);
}

static void say_progress(const struct paper_case *c, const char *backend)
{
	char text[128];

	if (!isatty(STDERR_FILENO))
		return;
	fflush(stdout);
	snprintf(text, sizeof text, "profiling %s (%s) for " WORK_SECONDS " s", c->name, backend);
	ca_say_progress(text);
}

/* A case that misses gets one more try where there is time: one disturbed run must not condemn a
 * machine, and a machine on which predictions are wrong fails both. The error is the mean of both. */
static void run_case(struct ca_selftest_known *known, const char *self, const struct paper_case *c,
		     const char *backend, const char *scratch, double until)
{
	struct outcome outcome = { .effect = NAN, .reason = "there was no time left" };
	double error = 0;
	bool again = ca_selftest_now() < until;

	if (!again)
		print_outcome(&outcome, c, backend, "");
	for (int try = 1; again; try++) {
		say_progress(c, backend);
		outcome = measure(self, c, backend, scratch);
		if (isatty(STDERR_FILENO))
			ca_say_progress(NULL);
		known->finished += outcome.finished;
		known->disturbed += outcome.disturbed;
		error += (error_of(&outcome, c) - error) / try;
		again = fabs(outcome.effect - c->answer) > TOLERANCE && try < TRIES &&
			ca_selftest_now() < until - RUN_SECONDS;
		print_outcome(&outcome, c, backend, again ? "; once more" : "");
	}
	known->silent += isnan(outcome.effect) ? 1 : 0;
	known->right = known->right && is_right(&outcome, c);
	if (!isnan(outcome.effect))
		known->error = fmax(known->error, error);
}

struct ca_selftest_known ca_selftest_predicts(const char *self, const char *scratch, enum ca_backend backend,
					      double until)
{
	struct ca_selftest_known known = { .right = true, .error = NAN };

	for (size_t i = 0; i < CASES; i++)
		run_case(&known, self, &cases[i], name_of(backend), scratch, until);
	return known;
}

/* SPDX-License-Identifier: MIT */
/* Rates of two programs that do not end; see verify_rate.h. A program that is left alone tells nobody how often
 * it has passed a point. So each runs in a sweep that only counts (--count-only), and is told to end, as a sweep is,
 * by SIGTERM. */
#include "driver/verify_rate.h"
#include "causal/points/choice.h"
#include "causal/results/compare.h"
#include "core/clock.h"
#include "driver/child.h"
#include "driver/input.h"
#include "driver/say.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WORDS = 16, /* of our own */
	START = 1,  /* s that a program may take to come to its work */
	GRACE = 20, /* s to end after SIGTERM */
	LOOK = 50   /* ms between two looks whether it has ended */
};

static size_t count(char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* Which points: as they were named, or chosen. NULL: those in the code. Owned by the caller. */
static char *points_of(const struct ca_verify_rate *v)
{
	static const char option[] = "--progress=";
	char **given = v->profile->run[v->profile->runs - 1].options, *text = NULL, *names;
	struct ca_choice choice;

	for (; given && *given; given++)
		if (!strncmp(*given, option, sizeof option - 1))
			text = *given;
	if (text)
		return strdup(text);
	if (ca_choice_read(&choice, v->dir, NULL) != CA_OK)
		return NULL;
	names = ca_choice_names(&choice);
	if (names && *names && asprintf(&text, "%s%s", option, names) < 0)
		text = NULL;
	free(names);
	ca_choice_fini(&choice);
	return text;
}

static bool has_ended(pid_t child, int *status, int seconds)
{
	struct timespec nap = { 0, LOOK * 1000000L };

	for (int i = 0; i < seconds * 1000 / LOOK; i++) {
		pid_t got = waitpid(child, status, WNOHANG);

		if (got == child || (got < 0 && errno != EINTR))
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

/* For so long, or until it ends. */
static bool run_for(char **argv, double seconds, const char *name, const char *log)
{
	posix_spawn_file_actions_t actions;
	char input[CA_INPUT_PATH];
	int status = 0, error;
	pid_t child;

	posix_spawn_file_actions_init(&actions); /* in glibc this cannot fail */
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, ca_input_path(input), O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log,
							 O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (!error)
		error = posix_spawn(&child, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		ca_say("verify: %s cannot be run (%s)", argv[0], strerror(error));
		return false;
	}
	if (!has_ended(child, &status, (int)ceil(seconds) + START)) {
		kill(child, SIGTERM);
		if (!has_ended(child, &status, GRACE)) {
			ca_say("verify: %s does not end on SIGTERM within %d s; it may still run", name,
			       GRACE);
			kill(child, SIGKILL);
			waitpid(child, &status, 0);
			return false;
		}
	}
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == CA_EXIT_USAGE || WEXITSTATUS(status) >= CA_EXIT_NOT_EXECUTABLE)) {
		ca_say("verify: %s could not be run (exit status %d): see %s", name, WEXITSTATUS(status),
		       log);
		return false;
	}
	return true;
}

static bool run_one(const struct ca_verify_rate *v, char *self, char *points, int which, bool first)
{
	static char quiet[] = "--quiet", counts[] = "--count-only", once[] = "--iterations=1",
		    anew[] = "--reset", go_on[] = "--keep-going", end[] = "--";
	char **argv = calloc(WORDS + count(v->command[which]), sizeof *argv);
	char *output = NULL, *duration = NULL, *log = NULL;
	size_t n = 0;
	bool ok = false;

	if (argv && asprintf(&output, "--output=%s/verify-%s", v->dir, which ? "new" : "old") >= 0 &&
	    asprintf(&log, "%s/verify.log", v->dir) >= 0 &&
	    asprintf(&duration, "--duration=%g", v->seconds) >= 0) {
		argv[n++] = self;
		argv[n++] = quiet;
		argv[n++] = counts;
		argv[n++] = once;
		argv[n++] = go_on;
		argv[n++] = output;
		argv[n++] = duration;
		if (points)
			argv[n++] = points;
		if (first)
			argv[n++] = anew;
		argv[n++] = end;
		for (char *const *word = v->command[which]; *word; word++)
			argv[n++] = *word;
		ok = run_for(argv, v->seconds, v->command[which][0], log);
	}
	free(output);
	free(log);
	free(duration);
	free(argv);
	return ok;
}

static struct ca_profile *load(const struct ca_verify_rate *v, const char *which)
{
	struct ca_profile *profile = NULL;
	struct ca_err err;
	char *dir;

	if (asprintf(&dir, "%s/verify-%s", v->dir, which) < 0)
		return NULL;
	if (ca_profile_load(&profile, dir, &err) != CA_OK)
		ca_say("verify: %s", err.text);
	free(dir);
	return profile;
}

static bool compare(struct ca_verify_rate *v)
{
	struct ca_profile *old = load(v, "old"), *new = load(v, "new");
	struct ca_compare both = { 0 };
	bool found = false;

	if (old && new &&ca_compare_make(&both, old, new) == CA_OK)
		for (size_t i = 0; i < both.rates && !found; i++) {
			const struct ca_compare_rate *rate = &both.rate[i];

			if (rate->percent || isnan(rate->change) ||
			    strcmp(rate->a->name, v->row->point->name) != 0)
				continue;
			v->came = -rate->change;
			v->half = (rate->high - rate->low) / 2;
			found = true;
		}
	if (old && new && !found)
		ca_say("verify: the progress point %s was not passed in both programs; are they under load? "
		       "causal compare %s/verify-old %s/verify-new says what was",
		       v->row->point->name, v->dir, v->dir);
	ca_compare_fini(&both);
	ca_profile_free(old);
	ca_profile_free(new);
	return found;
}

/* Old, new, new, old, ...: a machine or a load that changes does so for both. */
bool ca_verify_rate(struct ca_verify_rate *v)
{
	char *self = ca_child_self(), *points = points_of(v);
	bool ok = self;

	for (int i = 0; ok && i < v->runs; i++)
		for (int k = 0; ok && k < 2; k++)
			ok = run_one(v, self, points, (i + k) % 2, i == 0);
	ok = ok && compare(v);
	free(self);
	free(points);
	return ok;
}

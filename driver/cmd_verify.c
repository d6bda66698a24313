/* SPDX-License-Identifier: MIT */
/* `causal verify`: what was predicted beside what came. The command of the recorded runs and the optimised
 * one run natively, in alternation, so that a machine that becomes slower does so for both.
 * Driver's process, one thread. */
#include "causal/results/compare.h"
#include "core/clock.h"
#include "core/regex.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/input.h"
#include "driver/say.h"
#include "driver/verify_rate.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS_MAX = 1000, NAMES_SHOWN = 8 };

struct verify {
	const struct ca_profile_row *row;
	double speedup;     /* percent */
	char **old, **new;  /* commands */
	int runs;           /* of each */
	double *seconds[2]; /* logarithms, of old and new */
};

/* ---- what was predicted -------------------------------------------------------------*/

/* The one region whose name is `text`, or else that the pattern matches; with its best point. */
static const struct ca_profile_row *find_row(const struct ca_profile *profile, const char *text)
{
	const struct ca_profile_row *found = NULL;
	regex_t pattern;

	for (size_t r = 0; r < profile->rows; r++)
		if (!strcmp(profile->row[r].region->name, text))
			return &profile->row[r];
	if (!ca_regex_compile(&pattern, text)) {
		bool several = false;

		for (size_t r = 0; r < profile->rows; r++) {
			const struct ca_profile_row *row = &profile->row[r];

			if (regexec(&pattern, row->region->name, 0, NULL, 0) != 0)
				continue;
			several = several || (found && found->region != row->region);
			found = found ? found : row;
		}
		regfree(&pattern);
		if (several)
			found = NULL;
	}
	if (found)
		return found;
	ca_say("verify: '%s' is not the name of one region; these are the first:", text);
	for (size_t r = 0, shown = 0; r < profile->rows && shown < NAMES_SHOWN; r++)
		if (ca_profile_is_first(profile, r)) {
			ca_say("verify:   %s", profile->row[r].region->name);
			shown++;
		}
	return NULL;
}

/* On the curve, with lines between what is known. */
static double on_curve(const double *at, double percent)
{
	double before = 0, value = 0;

	for (int i = 0; i < CA_AT; i++) {
		double here = ca_estimate_at[i] / 1e4;

		if (percent <= here)
			return value + (at[i] - value) * (percent - before) / (here - before);
		before = here;
		value = at[i];
	}
	return value;
}

/* ---- what came ----------------------------------------------------------------------*/

/* The program has our output, and our input if that is a file: else it would have it only once. */
static bool run_once(char **command, double *seconds)
{
	posix_spawn_file_actions_t actions;
	char input[CA_INPUT_PATH];
	uint64_t begun = ca_clock_now();
	int status = 0, error;
	pid_t child;

	posix_spawn_file_actions_init(&actions); /* in glibc this cannot fail */
	error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, ca_input_path(input), O_RDONLY, 0);
	if (!error)
		error = posix_spawnp(&child, command[0], &actions, NULL, command, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (error) {
		ca_say("verify: %s cannot be run (%s)", command[0], strerror(error));
		return false;
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	*seconds = (double)(ca_clock_now() - begun) / 1e9;
	if (!status)
		return true;
	ca_say("verify: %s ended with exit status %d; what fails is not measured", command[0],
	       ca_child_exit_status(status));
	return false;
}

/* Once for the caches, then old, new, new, old, ... */
static bool run_all(struct verify *v)
{
	double seconds, longest = 0;

	if (!run_once(v->old, &seconds) || !run_once(v->new, &seconds))
		return false;
	for (int i = 0; i < v->runs; i++)
		for (int k = 0; k < 2; k++) {
			int which = (i + k) % 2;

			if (!run_once(which ? v->new : v->old, &seconds))
				return false;
			v->seconds[which][i] = log(seconds);
			longest = fmax(longest, seconds);
		}
	if (longest < 0.1)
		ca_say("verify: the program takes %.3f s: give it more to do, else this measures its start",
		       longest);
	return true;
}

/* how: what came stands on. */
static int tell(const struct verify *v, double came, double half_came, const char *how)
{
	const struct ca_curve *curve = v->row->curve;
	double predicted = on_curve(curve->at, v->speedup);
	double half = (on_curve(curve->at_high, v->speedup) - on_curve(curve->at_low, v->speedup)) / 2;
	bool agree;

	agree = !(fabs(predicted - came) > hypot(isfinite(half) ? half : 0, half_came));
	ca_say_line("  %s, %g %% less time in it:", v->row->region->name, v->speedup);
	if (isfinite(half))
		ca_say_line("  predicted  %6.1f ± %.1f %% program speedup (%s)", predicted, half,
			    v->row->point->name);
	else
		ca_say_line("  predicted  %6.1f %% program speedup (%s), how sure is not known", predicted,
			    v->row->point->name);
	ca_say_line("  came       %6.1f ± %.1f %% (%s)", came, half_came, how);
	ca_say_line("  %s", agree ? "as predicted"
				  : "not as predicted: see with causal compare whether the region takes that "
				    "much less time now, and whether something else has changed");
	return agree ? 0 : 1;
}

/* ---- arguments ------------------------------------------------------------------------*/

static int tell_times(const struct verify *v)
{
	double change, less, more;
	char how[100];

	ca_compare_means(v->seconds[0], (size_t)v->runs, v->seconds[1], (size_t)v->runs, &change, &less,
			 &more);
	snprintf(how, sizeof how, "%d runs each, %.3f s before, %.3f s now", v->runs,
		 exp(v->seconds[0][v->runs / 2]), exp(v->seconds[1][v->runs / 2]));
	return tell(v, -change, (more - less) / 2, how);
}

/* Programs that do not end. */
static int verify_rate(const struct verify *v, const struct ca_profile *profile, const char *dir,
		       double seconds)
{
	struct ca_verify_rate rate = { .dir = dir,
				       .profile = profile,
				       .row = v->row,
				       .command = { v->old, v->new },
				       .seconds = seconds,
				       .runs = v->runs };
	char how[100];

	if (!ca_verify_rate(&rate))
		return 1;
	snprintf(how, sizeof how, "%d times %g s each", v->runs, seconds);
	return tell(v, rate.came, rate.half, how);
}

static int verify(struct verify *v)
{
	int code = 1;

	v->seconds[0] = calloc((size_t)v->runs, sizeof(double));
	v->seconds[1] = calloc((size_t)v->runs, sizeof(double));
	if (v->seconds[0] && v->seconds[1] && run_all(v))
		code = tell_times(v);
	free(v->seconds[0]);
	free(v->seconds[1]);
	return code;
}

static int usage(void)
{
	ca_say("verify: name results, the region that was changed, by how many percent less time it takes, "
	       "and the new command, as in: causal verify causal-out/DIR --region parse --speedup 30 -- "
	       "./app-optimised");
	return CA_EXIT_USAGE;
}

int ca_cmd_verify(int argc, char **argv)
{
	const char *region = NULL, *speedup = NULL, *runs = NULL, *duration = NULL;
	const struct ca_argument list[] = { { "--region", &region },
					    { "--speedup", &speedup },
					    { "-n", &runs },
					    { "-d", &duration },
					    { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = CA_EXIT_USAGE;
	struct ca_profile *profile;
	struct verify v = { 0 };
	double number, seconds = 0;

	if (words < 0)
		return CA_EXIT_USAGE;
	if (words < 3 || strcmp(argv[2], "--") != 0 || !region || !speedup)
		return usage();
	if (!ca_arguments_number("verify", "--speedup", speedup, 0, 100, &v.speedup) ||
	    (duration && !ca_arguments_number("verify", "-d", duration, 1, 1e6, &seconds)) ||
	    !ca_arguments_number("verify", "-n",
				 runs       ? runs
				 : duration ? "3"
					    : "10",
				 2, RUNS_MAX, &number))
		return CA_EXIT_USAGE;
	profile = ca_arguments_profile("verify", argv[1]);
	if (!profile)
		return CA_EXIT_USAGE;
	v.runs = (int)number;
	v.old = profile->run[0].word;
	v.new = argv + 3;
	v.row = find_row(profile, region);
	if (v.row && v.old && isfinite(v.row->curve->at[0]))
		code = duration ? verify_rate(&v, profile, argv[1], seconds) : verify(&v);
	else if (v.row)
		ca_say("verify: nothing is predicted for %s: run more experiments first",
		       v.row->region->name);
	ca_profile_free(profile);
	return code;
}

/* SPDX-License-Identifier: MIT */
/* Jobs; see driver/job.h. The order of the checks is the order in which a user would want to
 * hear of mistakes: the command, the values, the places. */
#include "driver/job.h"
#include "causal/results/profile.h"
#include "causal/results/what_if.h"
#include "core/clock.h"
#include "core/memstream.h"
#include "core/path.h"
#include "core/regex.h"
#include "core/windows.h"
#include "driver/again.h"
#include "driver/child.h"
#include "driver/configs.h"
#include "driver/keys.h"
#include "driver/metadata.h"
#include "driver/output.h"
#include "driver/runtime.h"
#include "driver/say.h"
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { IN_MAIN = 5 }; /* a fifth of the samples is worth a line */

static bool generates_configs(const struct ca_settings *settings)
{
	return settings->origin[CA_SETTING_GENERATE_CONFIGS] != CA_ORIGIN_DEFAULT;
}

static const char *config_folder(const struct ca_settings *settings)
{
	return *settings->generate_configs ? settings->generate_configs : "causal-config";
}

static int exit_status_of(enum ca_status status)
{
	return status == CA_OK ? 0 : status == CA_ERR_USAGE ? CA_EXIT_USAGE : 1;
}

static void warn(const char *text)
{
	ca_say("%s", text);
}

/* Options before the files, to know which; the order does not decide what wins. */
static enum ca_status read_settings(struct ca_job *job, struct ca_err *err)
{
	enum ca_status status = ca_options_apply(&job->options, &job->settings, err);

	if (!status)
		status = ca_settings_read_env(&job->settings, (const char *const *)environ, warn, err);
	if (!status)
		status = ca_settings_read_files(&job->settings, job->settings.config_file, err);
	return status;
}

/* Short enough to be typed, and exact in every reader of JSON. */
static int64_t new_seed(void)
{
	uint32_t seed = 0;

	if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
		seed = (uint32_t)(ca_clock_now() / 1000);
	return seed ? seed : 1;
}

/* An example for the subcommand that was named, or that we are called after. */
static int say_no_command(const char *called, struct ca_err *err)
{
	static const char *const once[] = { "trace", "sample" }; /* without -n */
	static const char prefix[] = "causal-";
	const char *name = ca_path_base(called);

	if (!strncmp(name, prefix, sizeof prefix - 1))
		name += sizeof prefix - 1;
	for (size_t i = 0; i < sizeof once / sizeof *once; i++)
		if (!strcmp(name, once[i])) {
			ca_err_set(err, CA_ERR_USAGE,
				   "no command to run; write it after --, as in: causal %s -- ./app", name);
			return CA_EXIT_USAGE;
		}
	ca_err_set(err, CA_ERR_USAGE, "no command to run; write it after --, as in: causal -n 20 -- ./app");
	return CA_EXIT_USAGE;
}

static int check_command(const struct ca_job *job, const char *called, struct ca_err *err)
{
	if (!job->options.command)
		return say_no_command(called, err);
	if (ca_options_text(&job->options, CA_SETTING_DRY_RUN))
		return 0;
	return ca_child_check(job->options.command[0], err);
}

/* Patterns were checked when they were set. */
static bool matches(const char *pattern, const char *text)
{
	regex_t compiled;
	bool found;

	if (ca_regex_compile(&compiled, pattern))
		return false;
	found = !regexec(&compiled, text, 0, NULL, 0);
	regfree(&compiled);
	return found;
}

static enum ca_status find_program(struct ca_job *job, struct ca_err *err)
{
	for (char **word = job->options.command; *word; word++)
		if (!*job->settings.launcher || matches(job->settings.launcher, *word)) {
			job->program = *word;
			job->app = ca_path_base(*word);
			return CA_OK;
		}
	return ca_err_set(err, CA_ERR_USAGE,
			  "-l '%s' matches no word of the command; give a pattern that matches the "
			  "program to profile",
			  job->settings.launcher);
}

int ca_job_init(struct ca_job *job, char **argv, struct ca_err *err)
{
	int code;
	enum ca_status status;

	memset(job, 0, sizeof *job);
	status = ca_options_parse(&job->options, argv, err);
	if (status)
		return exit_status_of(status);
	if (job->options.action != CA_ACTION_RUN)
		return 0;
	status = ca_settings_init(&job->settings, err);
	if (status)
		goto fail;
	code = check_command(job, *argv ? *argv : "", err);
	if (code) {
		ca_job_fini(job);
		return code;
	}
	status = read_settings(job, err);
	if (!status)
		status = find_program(job, err);
	if (!status)
		status = ca_variants_init(&job->variants, &job->options, &job->settings, err);
	if (!status && job->settings.single >= (int64_t)job->variants.total)
		status = ca_err_set(err, CA_ERR_USAGE,
				    "--single=%lld: there are only variants 0 to %zu; see --dry-run",
				    (long long)job->settings.single, job->variants.total - 1);
	if (!status && job->settings.single >= 0 && *job->settings.load)
		status = ca_err_set(err, CA_ERR_USAGE,
				    "--load: with --single the program has the driver's process, and nobody "
				    "starts its load; leave out one of them");
	if (status)
		goto fail;
	if (job->settings.frequency)
		job->settings.period = 1000000000 / job->settings.frequency;
	if (!job->settings.random_seed)
		job->settings.random_seed = new_seed();
	job->level = ca_settings_level(&job->settings);
	job->show_environment =
		job->settings.origin[CA_SETTING_VERBOSE] != CA_ORIGIN_DEFAULT || job->settings.debug;
	return 0;
fail:
	ca_job_fini(job);
	return exit_status_of(status);
}

void ca_job_fini(struct ca_job *job)
{
	ca_variants_fini(&job->variants);
	ca_settings_fini(&job->settings);
	ca_options_fini(&job->options);
	free(job->command);
	free(job->self);
	free(job->runtime);
	free(job->dir);
	ca_again_free(job->again);
	memset(job, 0, sizeof *job);
}

/* With -l, "<self> --" goes before the first word that matches. */
static int make_command(struct ca_job *job, struct ca_err *err)
{
	char **given = job->options.command;
	size_t count = 0, to = 0, from = 0;

	while (given[count])
		count++;
	job->command = calloc(count + 3, sizeof *job->command);
	if (!job->command) {
		ca_err_set(err, CA_ERR_NOMEM, "no memory for the command");
		return 1;
	}
	if (*job->settings.launcher) {
		while (given[from] != job->program)
			job->command[to++] = given[from++];
		job->command[to++] = job->self;
		job->command[to++] = "--";
	}
	while (given[from])
		job->command[to++] = given[from++];
	return 0;
}

static enum ca_status expand(const struct ca_job *job, char **text, struct ca_err *err)
{
	char *made = ca_keys_expand(*text, &job->settings, job->options.command);

	if (!made)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a name");
	free(*text);
	*text = made;
	return CA_OK;
}

enum ca_status ca_job_expand(struct ca_job *job, struct ca_err *err)
{
	enum ca_status status = expand(job, &job->settings.output_prefix, err);

	return status ? status : expand(job, &job->settings.output, err);
}

int ca_job_prepare(struct ca_job *job, struct ca_err *err)
{
	enum ca_status status = job->dir ? CA_OK : ca_job_expand(job, err);

	job->self = ca_child_self();
	if (status)
		return 1;
	if (!job->self) {
		ca_err_set(err, CA_ERR_IO, "/proc/self/exe cannot be read; mount /proc");
		return 1;
	}
	if (make_command(job, err))
		return 1;
	job->again = ca_again_words(&job->options);
	if (!*job->settings.launcher)
		status = ca_runtime_find(&job->settings, &job->runtime, err);
	if (!status && generates_configs(&job->settings))
		status = ca_configs_prepare(config_folder(&job->settings), err);
	if (!status && !job->dir)
		status = ca_output_open(&job->settings, job->app, &job->dir, &job->first_run, err);
	if (!status && job->settings.metadata)
		status = ca_metadata_write(&job->settings, job->dir, job->program, job->command, err);
	return exit_status_of(status);
}

/* Only the file's name is handed on, none of the variables that it replaces. */
static enum ca_status use_config(const struct ca_job *job, const struct ca_variant *variant,
				 const struct ca_settings *settings, struct ca_environ *environment,
				 struct ca_err *err)
{
	char *file = NULL, *joined = NULL;
	enum ca_status status;

	for (size_t i = environment->count; i-- > 0;) {
		char name[64];
		size_t length = strcspn(environment->entry[i], "=");

		if (strncmp(environment->entry[i], "CAUSAL_", 7) || length >= sizeof name)
			continue;
		memcpy(name, environment->entry[i], length);
		name[length] = '\0';
		ca_environ_unset(environment, name);
	}
	status =
		ca_configs_write(config_folder(settings), settings, variant, job->variants.total, &file, err);
	if (status)
		return status;
	if (asprintf(&joined, "%s%s%s", settings->config_file, *settings->config_file ? ":" : "", file) < 0)
		status = ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
	else
		status = ca_environ_set(environment, "CAUSAL_CONFIG_FILE", joined, err);
	if (!status)
		free(joined);
	free(file);
	return status;
}

enum ca_status ca_job_environ(const struct ca_job *job, const struct ca_variant *variant,
			      const struct ca_settings *settings, const char *session,
			      struct ca_environ *environment, struct ca_err *err)
{
	enum ca_status status = ca_environ_init(environment, err);

	if (status)
		return status;
	if (generates_configs(settings)) {
		status = use_config(job, variant, settings, environment, err);
	} else {
		status = ca_environ_set(environment, "CAUSAL_LAUNCHER", "causal", err);
		if (!status)
			status = ca_environ_add_settings(environment, settings, err);
	}
	if (!status && session)
		status = ca_environ_set(environment, "CAUSAL_SESSION", session, err);
	if (!status && job->runtime)
		status = ca_environ_preload(environment, job->runtime, err);
	if (status)
		ca_environ_fini(environment);
	return status;
}

void ca_job_show(const struct ca_job *job, const struct ca_environ *environment, const char *prefix)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out;

	if (!job->show_environment || job->level < 0)
		return;
	ca_environ_print(environment, prefix, job->level >= 1);
	if (job->level < 1)
		return;
	out = open_memstream(&text, &size);
	if (!out)
		return;
	for (const char **word = job->command; *word; word++)
		fprintf(out, "%s%s", word == job->command ? "" : " ", *word);
	if (ca_memstream_end(out, &text))
		ca_say_line("%sExecuting '%s'...", prefix, text);
	free(text);
}

void ca_job_message(void *context, int level, const char *text)
{
	const struct ca_job *job = context;

	if (job->level >= 0 && level <= job->level)
		ca_say("%s", text);
}

enum ca_status ca_job_clear(void *context, struct ca_err *err)
{
	const struct ca_job *job = context;

	return ca_output_clear(job->dir, err);
}

/* The remedy as a whole command, where it is one. */
static void say_command(const struct ca_job *job, const struct ca_profile *profile)
{
	const char *options = ca_funnel_options(profile);
	char *line = options ? ca_again_line(&job->options, options) : NULL;

	if (line)
		ca_say("run this: %s", line);
	free(line);
}

/* The command that tries the lines of a function. Owned by the caller; NULL without memory. */
static char *lines_of(const struct ca_job *job, const char *function)
{
	const char *output = ca_options_text(&job->options, CA_SETTING_OUTPUT);
	char *pattern, *word, *options = NULL, *line = NULL, *place = NULL;

	pattern = ca_again_pattern(function);
	word = pattern ? ca_again_word(pattern) : NULL;
	/* elsewhere: lines and functions do not go together */
	if (output && asprintf(&place, "%s-lines", output) >= 0) {
		char *quoted = ca_again_word(place);

		if (word && quoted && asprintf(&options, "-m line -F %s -o %s", word, quoted) < 0)
			options = NULL;
		free(quoted);
		free(place);
	} else if (!output && word && asprintf(&options, "-m line -F %s", word) < 0) {
		options = NULL;
	}
	if (options)
		line = ca_again_line(&job->options, options);
	free(options);
	free(word);
	free(pattern);
	return line;
}

/* Which lines of the best row; where they are known. */
static void say_lines(const struct ca_job *job, const struct ca_profile *profile)
{
	const struct ca_profile_row *row = profile->row;
	char *line;

	if (!profile->rows || row->verdict != CA_VERDICT_WORTH || row->region->kind != CA_REGION_FUNCTION ||
	    !row->region->line || job->settings.end_to_end)
		return;
	line = lines_of(job, row->region->name);
	if (line)
		ca_say("which lines of it: %s", line);
	free(line);
}

/* What no function of the table stands for. */
static void say_main(const struct ca_job *job, const struct ca_profile *profile)
{
	const struct ca_funnel *f = &profile->funnel;
	char *line = f->in_main && IN_MAIN * f->in_main >= f->samples ? lines_of(job, "main") : NULL;

	if (line)
		ca_say("%.0f %% of the samples are in main itself, which is no row; its lines, if built with "
		       "-g: %s",
		       100 * (double)f->in_main / (double)f->samples, line);
	free(line);
}

bool ca_job_is_open_ended(const struct ca_job *job)
{
	return job->settings.origin[CA_SETTING_ITERATIONS] == CA_ORIGIN_DEFAULT;
}

/* The runs that were asked for are over, and they were too few. */
static void say_more(const struct ca_job *job, const struct ca_profile *profile)
{
	const struct ca_profile_row *open;
	double points = job->settings.until, half, seconds;
	size_t runs = ca_profile_runs_wanted(profile, points, &open);
	bool several;
	char *word;

	/* without experiments at 0 % no number of runs will do; the table says what will */
	if (!runs || (!profile->funnel.zeros && open->curve->how < CA_HOW_OWN) || ca_job_is_open_ended(job) ||
	    ca_windows_do_end(&job->settings) || job->settings.single >= 0 ||
	    !(word = ca_again_word(job->dir)))
		return;
	several = profile->points > 1;
	half = (open->curve->at_high[1] - open->curve->at_low[1]) / 2;
	seconds = (double)profile->funnel.runtime / 1e9 / (double)profile->runs * (double)runs;
	if (isfinite(half))
		ca_say("%s%s%s is known to ± %.0f; about %zu more runs (%.0f s) make that ± %g: causal "
		       "resume "
		       "%s -n %zu; without -n, causal stops by itself when it knows",
		       open->region->name, several ? " for " : "", several ? open->point->name : "", half,
		       runs, seconds, points, word, runs);
	else
		ca_say("nothing is known of %s%s%s yet; about %zu more runs (%.0f s) are needed: causal "
		       "resume "
		       "%s -n %zu; without -n, causal stops by itself when it knows",
		       open->region->name, several ? " for " : "", several ? open->point->name : "", runs,
		       seconds, word, runs);
	free(word);
}

static void say_next(const struct ca_job *job, const struct ca_profile *profile)
{
	char *word = ca_again_word(job->dir);

	say_lines(job, profile);
	say_main(job, profile);
	if (word && profile->rows)
		ca_say("curves, call chains, source: causal report %s", word);
	free(word);
	say_more(job, profile);
}

int ca_job_results(const struct ca_job *job, bool show, const char *why)
{
	struct ca_profile *profile;
	struct ca_err err;
	enum ca_status status = ca_profile_load(&profile, job->dir, &err);

	if (status) {
		ca_say("%s", err.text);
		return 1;
	}
	status = ca_profile_write(profile, job->dir, &err);
	ca_say_progress(NULL);
	if (job->level >= 0) {
		if (show) {
			if (!ca_results_print(profile, STDERR_FILENO, ca_say_width(),
					      ca_say_colours(&job->settings)))
				ca_say("no memory for the table; what it shows is in %s/profile.json",
				       job->dir);
			ca_what_if_print(profile, job->settings.what_if, stderr);
			say_command(job, profile);
			say_next(job, profile);
		}
		if (why)
			ca_say("%s", why);
		if (!status && show)
			ca_say("results are in %s (profile.json, profile.coz, run-*.jsonl)", job->dir);
	}
	if (status)
		ca_say("%s", err.text);
	ca_profile_free(profile);
	return status ? 1 : 0;
}

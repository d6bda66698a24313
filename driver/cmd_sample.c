/* SPDX-License-Identifier: MIT */
/* `causal sample`: where the time goes, on a CPU and off it. One run, no experiments.
 * Driver's process, one thread. */
#include "causal/conductor/conductor.h"
#include "causal/results/samples.h"
#include "core/memstream.h"
#include "core/windows.h"
#include "driver/again.h"
#include "driver/commands.h"
#include "driver/once.h"
#include "driver/output.h"
#include "driver/say.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { ROWS = 25 };

struct sampling {
	struct ca_samples *samples;
	struct ca_conductor_traced traced;
	struct ca_suggestion suggestion;
	bool told;
	int code;
};

static bool is_meant(enum ca_setting_id id)
{
	switch (id) {
	case CA_SETTING_SUGGEST:
	case CA_SETTING_RESET:
	case CA_SETTING_UNWINDER:
	case CA_SETTING_CPUTIME:
	case CA_SETTING_REALTIME:
	case CA_SETTING_OVERFLOW:
	case CA_SETTING_TIDS:
	case CA_SETTING_METRICS:
	case CA_SETTING_USE_TEMPORARY_FILES:
	case CA_SETTING_TEMPORARY_FILES_SIZE:
		return true;
	default:
		return ca_once_is_general(id);
	}
}

/* One folder, one kind of results, and one profile: else nobody knows which to export. */
static enum ca_status check_taken(const struct ca_job *job, struct ca_err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/run-0001.jsonl", job->dir);
	if (!access(path, F_OK))
		return ca_err_set(err, CA_ERR_USAGE,
				  "sample: %s holds the results of a sweep; name another folder with -o",
				  job->dir);
	snprintf(path, sizeof path, "%s/" CA_SAMPLES_FILE, job->dir);
	if (!job->settings.reset && !access(path, F_OK))
		return ca_err_set(err, CA_ERR_USAGE,
				  "sample: %s holds a profile of samples already; name another folder with "
				  "-o, or replace it with -r",
				  job->dir);
	return CA_OK;
}

/* What is worth an experiment is told by CPU time. */
static enum ca_status check_suggest(const struct ca_settings *set, struct ca_err *err)
{
	if (set->suggest && !*set->cputime && (*set->realtime || *set->overflow))
		return ca_err_set(
			err, CA_ERR_USAGE,
			"sample: --suggest goes by CPU time, which is not sampled with --%s alone; add "
			"--cputime 0",
			*set->realtime ? "realtime" : "overflow");
	return CA_OK;
}

/* Until we end. Where folders cannot be locked, nobody is kept out. */
static enum ca_status lock(const char *dir, struct ca_err *err)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
		return ca_err_set(
			err, CA_ERR_USAGE,
			"sample: another causal sample writes to %s now; name another folder with -o", dir);
	return CA_OK;
}

static bool copy_command(struct ca_samples *samples, char **word)
{
	size_t n = 0;

	while (word[n])
		n++;
	samples->command = calloc(n + 1, sizeof *samples->command);
	for (size_t i = 0; samples->command && i < n; i++)
		if (!(samples->command[i] = strdup(word[i])))
			return false;
	return samples->command;
}

static enum ca_status open_sample(struct ca_job *job, struct ca_conductor_options *options, void *context,
				  struct ca_err *err)
{
	struct sampling *s = context;
	enum ca_status status = check_suggest(&job->settings, err);

	if (!status)
		status = ca_job_expand(job, err);
	if (!status)
		status = ca_output_open(&job->settings, job->app, &job->dir, &job->first_run, err);
	if (!status)
		status = lock(job->dir, err);
	if (!status)
		status = check_taken(job, err);
	if (status)
		return status;
	s->samples = ca_samples_new();
	if (!s->samples || !copy_command(s->samples, job->options.command))
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a profile");
	options->samples = s->samples;
	options->traced = &s->traced;
	if (job->settings.suggest)
		options->suggestion = &s->suggestion;
	return CA_OK;
}

static void say_next(const char *dir)
{
	char *word = ca_again_word(dir);

	if (word)
		ca_say("the profile is in %s (sample.json). Flame graph: causal report %s; for other "
		       "programs: causal "
		       "export %s --format folded (speedscope, pprof, tree, csv, markdown, json)",
		       dir, word, word);
	free(word);
}

static void put_option(FILE *out, const char *option, const char *text)
{
	char *word = text ? ca_again_word(text) : NULL;

	if (word)
		fprintf(out, "%s %s", option, word);
	free(word);
}

/* The functions as patterns that match them alone; NULL: none. */
static char *patterns_of(const struct ca_suggestion *s)
{
	char *text = NULL;
	size_t size;
	FILE *out = s->codes ? open_memstream(&text, &size) : NULL;

	for (size_t i = 0; out && i < s->codes; i++) {
		char *pattern = ca_again_pattern(s->code[i].name);

		fprintf(out, "%s%s", i ? ";" : "", pattern ? pattern : "");
		free(pattern);
	}
	if (out)
		ca_memstream_end(out, &text);
	return text;
}

static void say_reasons(const struct ca_suggestion *s)
{
	for (size_t i = 0; i < s->codes; i++)
		ca_say("worth an experiment: %s (%.0f %% of the samples, %.0f %% in it itself)",
		       s->code[i].name, s->code[i].total, s->code[i].own);
	if (s->own_points)
		ca_say("the program passes progress points of its own");
	else if (s->alone)
		ca_say("one thread does all: no progress point is needed");
	else if (!s->points)
		ca_say("no progress point was found%s%s: experiments measure whole runs (-e)",
		       s->reason ? ", since " : "", s->reason ? s->reason : "");
}

static void say_suggestion(const struct ca_job *job, const struct ca_suggestion *s)
{
	char *line = NULL, *patterns = patterns_of(s);
	size_t size;
	FILE *out = patterns ? open_memstream(&line, &size) : NULL;

	if (!patterns)
		ca_say("nothing to suggest: too few samples in code that could be changed; let the program "
		       "run "
		       "longer, or name its binaries with -B");
	if (out) {
		say_reasons(s);
		fputs("causal", out);
		put_option(out, " -B", s->binaries);
		put_option(out, " -F", patterns);
		put_option(out, " -P", s->points);
		fputs(s->points || s->own_points || s->alone ? " --" : " -e --", out);
		for (char **word = job->options.command; *word; word++)
			put_option(out, "", *word);
		if (ca_memstream_end(out, &line))
			ca_say("run this: %s", line);
	}
	free(line);
	free(patterns);
}

static void tell(struct ca_job *job, struct sampling *s)
{
	struct ca_err err;

	s->told = true;
	if (job->level >= 0) {
		fflush(stdout);
		if (!ca_samples_print(s->samples, ROWS, ca_say_width(), stderr))
			ca_say("no memory for the table");
	}
	if (!s->traced.processes)
		ca_say("the runtime was not in the program: see the limits in the README");
	if (s->samples->failed)
		ca_say("there was not enough memory: parts of the profile are missing");
	if (ca_samples_write(s->samples, job->dir, &err) != CA_OK) {
		ca_say("%s", err.text);
		s->code = 1;
	} else if (job->level >= 0) {
		say_next(job->dir);
		if (job->settings.suggest)
			say_suggestion(job, &s->suggestion);
	}
}

static void step(struct ca_job *job, const struct ca_conductor *conductor, void *context)
{
	struct sampling *s = context;

	if (!s->told && ca_conductor_has_left(conductor))
		tell(job, s);
}

static int close_sample(struct ca_job *job, const struct rusage *usage, void *context)
{
	struct sampling *s = context;

	if (s->told)
		return s->code;
	if (ca_windows_are_all(&job->settings)) {
		s->samples->user = (uint64_t)usage->ru_utime.tv_sec * 1000000000 +
				   (uint64_t)usage->ru_utime.tv_usec * 1000;
		s->samples->system = (uint64_t)usage->ru_stime.tv_sec * 1000000000 +
				     (uint64_t)usage->ru_stime.tv_usec * 1000;
	}
	tell(job, s);
	return s->code;
}

int ca_cmd_sample(int argc, char **argv)
{
	struct sampling s = { 0 };
	const struct ca_once once = { "sample", is_meant, open_sample, step, close_sample, &s };
	int code = ca_once(&once, argv);

	(void)argc;
	ca_samples_free(s.samples);
	ca_conductor_suggestion_fini(&s.suggestion);
	return code;
}

/* SPDX-License-Identifier: MIT */
/* The runs of a sweep; see driver/runs.h. Waiting for the child, for signals and for the
 * conductor's next step is all done here. */
#include "driver/runs.h"
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "driver/child.h"
#include "driver/progress_line.h"
#include "driver/say.h"
#include "driver/signals.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct runs {
	struct ca_job *job;
	struct ca_sweep *sweep;
	struct ca_signals signals;
	struct ca_progress_line progress;
	size_t recorded; /* runs that have a file */
	int stopped;     /* the signal that ends the sweep, or 0 */
};

/* "<n>/<total>: [<parent> -> <child>] ", or "0: " for a lone variant. */
static void make_prefix(const struct runs *runs, size_t index, pid_t child, char *buffer, size_t size)
{
	size_t total = runs->job->variants.total;

	if (total == 1)
		snprintf(buffer, size, "0: ");
	else
		snprintf(buffer, size, "%*zu/%zu: [%d -> %d] ", ca_variants_width(total), index + 1, total,
			 (int)getpid(), (int)child);
}

/* Each step of the driver, and with level 4 all that a status says. */
static void diagnose(const struct runs *runs, const char *prefix, int status)
{
	int level = runs->job->level;

	if (level >= 3)
		ca_say_line("%sended with exit status %d", prefix, ca_child_exit_status(status));
	if (level >= 4)
		ca_say_line("%sstatus 0x%x: exited %d (code %d), signalled %d (signal %d, core %d)", prefix,
			    (unsigned)status, !!WIFEXITED(status), WEXITSTATUS(status), !!WIFSIGNALED(status),
			    WIFSIGNALED(status) ? WTERMSIG(status) : 0,
			    WIFSIGNALED(status) && WCOREDUMP(status));
}

static void handle_signal(struct runs *runs, pid_t child, int number, bool terminal)
{
	if (number == SIGCHLD)
		return;
	runs->stopped = number;
	/* A key press has reached the child as well, if it is in the foreground with us. */
	if (terminal && getpgid(child) == getpgrp())
		return;
	kill(child, number);
}

/* Until the child has been waited for. */
static int attend(struct runs *runs, struct ca_conductor *conductor, pid_t child,
		  struct ca_conductor_status *last)
{
	int status;

	for (;;) {
		int ms = ca_conductor_step(conductor), number;
		bool terminal;

		ca_conductor_status(conductor, last);
		ca_progress_line_update(&runs->progress, last);
		number = ca_signals_wait(&runs->signals, ms, &terminal);
		if (number)
			handle_signal(runs, child, number, terminal);
		if (waitpid(child, &status, WNOHANG) == child)
			return status;
	}
}

/* From the fork to the end of the child. Returns its exit status. */
static int run_child(struct runs *runs, struct ca_conductor *conductor, size_t index,
		     struct ca_environ *environment, int *wait_status, struct ca_err *err)
{
	struct ca_job *job = runs->job;
	struct ca_conductor_status last = { 0 };
	struct ca_child child;
	char prefix[96];
	int code;

	*wait_status = 0;
	if (ca_child_start(&child, job->command, environment->entry, &runs->signals.old, err))
		return 1;
	ca_conductor_started(conductor, child.pid);
	make_prefix(runs, index, child.pid, prefix, sizeof prefix);
	ca_job_show(job, environment, prefix);
	if (job->level >= 3)
		ca_say_line("%sstarted", prefix);
	if (ca_child_release(&child, job->command[0], &code, err)) {
		waitpid(child.pid, wait_status, 0);
		return code;
	}
	ca_progress_line_begin(&runs->progress);
	*wait_status = attend(runs, conductor, child.pid, &last);
	last.region = NULL; /* was the conductor's until its next step */
	ca_progress_line_end(&runs->progress, &last);
	diagnose(runs, prefix, *wait_status);
	return ca_child_exit_status(*wait_status);
}

static int fail(enum ca_status status, const struct ca_err *err)
{
	ca_say("%s", err->text);
	return ca_child_exit_code(status);
}

static int run_variant(struct runs *runs, const struct ca_variant *variant,
		       const struct ca_settings *settings)
{
	struct ca_job *job = runs->job;
	struct ca_err err = { .text = "" };
	struct ca_environ environment;
	struct ca_conductor *conductor;
	struct ca_conductor_options options = {
		.settings = settings,
		.dir = job->dir,
		.run = job->first_run + (unsigned)variant->index,
		.iteration = (unsigned)variant->iteration,
		.command = job->command,
		.sweep = runs->sweep,
		.message = ca_job_message,
		.clear = job->settings.reset && !runs->recorded ? ca_job_clear : NULL,
		.context = job,
	};
	enum ca_status status = ca_conductor_open(&conductor, &options, &err);
	int code, wait_status = 0;

	if (status)
		return fail(status, &err);
	runs->recorded++;
	status = ca_job_environ(job, variant, settings, ca_conductor_session_path(conductor), &environment,
				&err);
	if (status) {
		code = fail(status, &err);
	} else {
		code = run_child(runs, conductor, variant->index, &environment, &wait_status, &err);
		ca_environ_fini(&environment);
		if (*err.text)
			ca_say("%s", err.text);
	}
	status = ca_conductor_close(conductor, wait_status, &err);
	if (status) {
		int closing = fail(status, &err);

		code = code ? code : closing;
	}
	return code;
}

static int run_index(struct runs *runs, size_t index)
{
	struct ca_variant variant;
	struct ca_settings settings;
	struct ca_err err;
	enum ca_status status;
	int code;

	ca_variants_get(&runs->job->variants, index, &variant);
	status = ca_variants_settings(&variant, &runs->job->settings, &settings, &err);
	if (status)
		return fail(status, &err);
	code = run_variant(runs, &variant, &settings);
	ca_settings_fini(&settings);
	return code;
}

/* With -v 3: the environment of every variant before any of them runs. */
static void show_all(const struct runs *runs)
{
	const struct ca_job *job = runs->job;

	for (size_t i = 0; job->level >= 3 && i < job->variants.total; i++) {
		struct ca_variant variant;
		char *line;

		ca_variants_get(&job->variants, i, &variant);
		line = ca_variants_line(&job->variants, &variant);
		ca_say_line("%s", line ? line : "");
		free(line);
	}
}

int ca_runs_all(struct ca_job *job)
{
	struct runs runs = { .job = job };
	struct ca_err err;
	bool terminal;
	int code = 0, results = 0;

	if (ca_signals_open(&runs.signals, &err)) {
		ca_say("%s", err.text);
		return 1;
	}
	runs.sweep = ca_sweep_new((uint64_t)job->settings.random_seed);
	if (!runs.sweep) {
		ca_say("no memory for the sweep");
		ca_signals_close(&runs.signals);
		return 1;
	}
	ca_progress_line_init(&runs.progress, job->variants.total, job->level >= 0, job->settings.end_to_end);
	show_all(&runs);
	for (size_t i = 0; i < job->variants.total && !runs.stopped; i++) {
		int this_code = run_index(&runs, i), number;

		code = code ? code : this_code;
		if (this_code && !job->settings.keep_going)
			break;
		/* One that came between two runs. */
		while ((number = ca_signals_wait(&runs.signals, 0, &terminal)))
			if (number != SIGCHLD)
				runs.stopped = number;
	}
	ca_say_progress(NULL);
	if (runs.recorded)
		results = ca_job_results(job);
	else
		rmdir(job->dir); /* if there is nothing in it */
	ca_sweep_free(runs.sweep);
	ca_signals_close(&runs.signals);
	if (runs.stopped)
		ca_signals_die(runs.stopped);
	return code ? code : results;
}

/* SPDX-License-Identifier: MIT */
/* The runs of a sweep; see driver/runs.h. Waiting for the child, for signals and for the
 * conductor's next step is all done here. */
#include "driver/runs.h"
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/windows.h"
#include "driver/child.h"
#include "driver/control.h"
#include "driver/input.h"
#include "driver/progress_line.h"
#include "driver/say.h"
#include "driver/server_load.h"
#include "driver/signals.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LEFT_ALONE = 1500000000, /* ns that a program goes on without experiments, until that is told */
	HOPELESS = 10            /* runs of a variant without an experiment */
};

struct runs {
	struct ca_job *job;
	struct ca_sweep *sweep;
	struct ca_signals signals;
	struct ca_progress_line progress;
	struct ca_control control;
	struct ca_input input;
	struct ca_server_load load;
	uint64_t started; /* ns */
	size_t done;      /* runs that have ended */
	size_t recorded;  /* runs that have a file */
	size_t executed;  /* runs whose command could be executed */
	int ended;        /* wait status of the last one */
	int stopped;      /* the signal that ends the sweep, or 0 */
	bool asked;       /* ... or the user, by ctl */
	bool shown;       /* the last results, of a program that goes on */
	/* of the last run, as it is or was at its end */
	struct ca_conductor_status last;
};

/* Variants that have not had a run yet, after this one. */
static bool has_untried(const struct runs *runs)
{
	return runs->done + 1 < runs->job->variants.product && !runs->asked && !runs->stopped;
}

/* "<n>/<total>: [<parent> -> <child>] ", or "0: " for a lone variant; "<n>: ..." if nobody knows how many. */
static void make_prefix(const struct runs *runs, size_t index, pid_t child, char *buffer, size_t size)
{
	size_t total = runs->job->variants.total;

	if (ca_job_is_open_ended(runs->job) && (index || total > 1))
		snprintf(buffer, size, "%zu: [%d -> %d] ", index + 1, (int)getpid(), (int)child);
	else if (total == 1)
		snprintf(buffer, size, "0: ");
	else
		snprintf(buffer, size, "%*zu/%zu: [%d -> %d] ", ca_variants_width(total), index + 1, total,
			 (int)getpid(), (int)child);
}

/* We ask filters that are installed by libc's functions whether they mind ours. */
static void tell_of_filter(int status)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		ca_say("the program was killed for a system call that a filter of its own (seccomp) forbids; "
		       "if it "
		       "is not so without causal, it installs that by other means than libc's prctl and "
		       "syscall, "
		       "and cannot be profiled");
}

/* "the program was ended by signal 11 (...) in run 1"; after the results, which do not show it. */
static void tell_end(const struct runs *runs, bool stops)
{
	int status = runs->ended;

	/* of a command that could not be executed that was said */
	if (runs->job->level < 0 || runs->stopped || runs->executed < runs->done)
		return;
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGSYS)
		ca_say("the program was ended by signal %d (%s) in run %zu%s. Does it do so without causal?",
		       WTERMSIG(status), strsignal(WTERMSIG(status)), runs->done,
		       stops ? "; causal stops there" : "");
	else if (WIFEXITED(status) && WEXITSTATUS(status) && stops)
		ca_say("the program ended with exit status %d in run %zu; causal stops there. Does it do so "
		       "without causal? --keep-going goes on all the same",
		       WEXITSTATUS(status), runs->done);
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

/* It is too short, or none of its code is in scope. */
static bool is_hopeless(const struct runs *runs)
{
	return runs->done >= HOPELESS * runs->job->variants.product && !ca_sweep_experiments(runs->sweep);
}

static const double almost = 0.95; /* of a budget: it is spent */

/* "the first three rows are decided", with what it took; for a sweep that ends by itself. */
static void tell_why(const struct runs *runs, enum ca_conductor_end end, char *text, size_t size)
{
	static const char *const number[] = { "no code matters", "the first row is decided",
					      "the first two rows are decided",
					      "the first three rows are decided" };
	double spent = (double)(ca_clock_now() - runs->started) / 1e9, budget = runs->job->settings.budget;
	char took[120];
	unsigned rows;

	snprintf(took, sizeof took, "%zu run%s, %llu experiments, %.0f s", runs->recorded,
		 runs->recorded == 1 ? "" : "s", (unsigned long long)ca_sweep_experiments(runs->sweep),
		 spent);
	if (end == CA_CONDUCTOR_DECIDED && ca_sweep_is_decided(runs->sweep, &rows))
		snprintf(text, size, "%s; stopped: %s%s", took, number[rows < 3 ? rows : 3],
			 ca_sweep_is_vague(runs->sweep) ? ", as far as more runs could" : "");
	else if (end == CA_CONDUCTOR_ASKED)
		snprintf(text, size, "%s; stopped: it was asked for", took);
	else if (runs->job->settings.max_runs && runs->done >= (size_t)runs->job->settings.max_runs)
		snprintf(text, size, "%s; stopped: that is all of --max-runs %lld", took,
			 (long long)runs->job->settings.max_runs);
	else if (is_hopeless(runs))
		snprintf(text, size,
			 "%s; stopped: no experiment could be made in these; give the program more to do",
			 took);
	else
		snprintf(text, size, "%s; stopped: %s of %.3g s%s; --budget %.3g for more", took,
			 spent < almost * budget ? "another run does not fit into the budget" : "the budget",
			 budget, spent < almost * budget ? "" : " is spent",
			 spent > 1.5 * budget ? 2 * ceil(spent) : 2 * budget);
}

/* Experiments have ended, and the program goes on: it may do so for ever. */
static void show_so_far(struct runs *runs, enum ca_conductor_end end)
{
	char why[300];

	if (has_untried(runs)) {
		ca_job_results(runs->job, true,
			       end == CA_CONDUCTOR_SPENT ? "its part of the budget is spent"
							 : "its rows are decided");
		ca_say("the program runs on undisturbed; variant %zu of %zu begins when it has ended",
		       runs->done + 2, runs->job->variants.product);
		return;
	}
	tell_why(runs, end, why, sizeof why);
	ca_job_results(runs->job, true, why);
	ca_say("the program runs on undisturbed");
	runs->shown = true;
	if (!runs->progress.json) /* that was the last word */
		runs->progress.shown = false;
}

/* Until the child has been waited for. */
static int attend(struct runs *runs, struct ca_conductor *conductor, struct ca_environ *environment,
		  pid_t child, struct ca_conductor_status *last)
{
	uint64_t ended = 0;
	bool told = false;
	int status;

	for (;;) {
		int ms = ca_conductor_step(conductor);

		ca_conductor_status(conductor, last);
		ca_progress_line_update(&runs->progress, last);
		runs->asked |= ca_control_obey(&runs->control, &runs->signals, conductor);
		ca_server_load_step(&runs->load, environment, &runs->signals, child,
				    last->end != CA_CONDUCTOR_GOES_ON || runs->stopped);
		if (last->end > CA_CONDUCTOR_DURATION && !ended)
			ended = ca_clock_now();
		if (ended && !runs->load.command && !told && ca_clock_now() - ended > LEFT_ALONE) {
			show_so_far(runs, last->end);
			told = true;
		}
		if (ca_signals_attend(&runs->signals, ms, child, &runs->stopped, &status))
			return status;
	}
}

/* From the fork to the end of the child. Returns its exit status. */
static int run_child(struct runs *runs, struct ca_conductor *conductor, size_t index,
		     struct ca_environ *environment, int *wait_status, struct ca_err *err)
{
	struct ca_job *job = runs->job;
	struct ca_conductor_status *last = &runs->last;
	struct ca_child child;
	char prefix[96];
	int code;

	*wait_status = 0;
	ca_input_begin(&runs->input);
	ca_server_load_open(&runs->load, &job->settings);
	if (ca_child_start(&child, job->command, environment->entry, &runs->signals, err))
		return 1;
	ca_conductor_started(conductor, child.pid);
	make_prefix(runs, index, child.pid, prefix, sizeof prefix);
	ca_job_show(job, environment, prefix);
	if (job->level >= 3)
		ca_say_line("%sstarted", prefix);
	if (ca_child_release(&child, job->command[0], &code, err)) {
		waitpid(child.pid, wait_status, 0);
		ca_server_load_close(&runs->load, wait_status);
		return code;
	}
	runs->executed++;
	ca_progress_line_begin(&runs->progress);
	*wait_status = attend(runs, conductor, environment, child.pid, last);
	diagnose(runs, prefix, *wait_status);
	tell_of_filter(*wait_status);
	code = ca_server_load_close(&runs->load, wait_status);
	if (runs->load.done && ca_windows_do_end(&job->settings) && last->end == CA_CONDUCTOR_GOES_ON)
		ca_say("the load has come to its end, and with it the run: one that goes on gives more "
		       "experiments, and is stopped when they are over");
	return code ? code : ca_child_exit_status(*wait_status);
}

static int fail(enum ca_status status, const struct ca_err *err)
{
	ca_say("%s", err->text);
	return ca_child_exit_code(status);
}

/* ns of experiments; 0: no limit. Each variant of the first round gets its part, later runs the rest. */
static uint64_t budget_of_run(const struct runs *runs)
{
	double budget = runs->job->settings.budget * 1e9, spent = (double)(ca_clock_now() - runs->started);

	if (budget <= 0)
		return 0;
	if (runs->done < runs->job->variants.product)
		return (uint64_t)(budget / (double)runs->job->variants.product);
	return spent < budget ? (uint64_t)(budget - spent) : 1;
}

/* A program that is too short for experiments inside a run: what the plan wants to know next. */
static void use_whole(struct runs *runs, struct ca_conductor_options *options)
{
	const struct ca_settings *set = options->settings;
	const struct ca_region *doubted;
	unsigned percent;

	/* speedups that were asked for are dealt by the conductor */
	if (set->end_to_end || set->count_only || *set->what_if || set->fixed_speedup.count ||
	    set->origin[CA_SETTING_SPEEDUP_DIVISIONS] != CA_ORIGIN_DEFAULT)
		return;
	if (ca_sweep_why_whole(runs->sweep, &doubted, &percent) && !doubted)
		options->whole = ca_sweep_next_whole(runs->sweep, options->variant, &options->region,
						     &options->speedup);
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
		.arguments = (const char *const *)job->again,
		.sweep = runs->sweep,
		.message = ca_job_message,
		.clear = job->settings.reset && !runs->recorded ? ca_job_clear : NULL,
		.context = job,
		.variant = variant->index % job->variants.product,
		.ends = ca_job_is_open_ended(job),
		.budget = budget_of_run(runs),
	};
	enum ca_status status;
	size_t before = runs->executed;
	int code;

	runs->ended = 0;
	runs->last = (struct ca_conductor_status){ 0 };
	use_whole(runs, &options);
	status = ca_conductor_open(&conductor, &options, &err);
	if (status)
		return fail(status, &err);
	runs->recorded++;
	status = ca_job_environ(job, variant, settings, ca_conductor_session_path(conductor), &environment,
				&err);
	if (status) {
		code = fail(status, &err);
	} else {
		code = run_child(runs, conductor, variant->index, &environment, &runs->ended, &err);
		ca_environ_fini(&environment);
		if (*err.text)
			ca_say("%s", err.text);
	}
	status = ca_conductor_close(conductor, runs->ended, &runs->last, &err);
	if (runs->executed > before)
		ca_progress_line_end(&runs->progress, &runs->last);
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

/* "causal ... < FILE", for who gave the input by a pipe. */
static bool has_input(const struct runs *runs)
{
	const char *command = runs->job->command[0];

	if (!runs->done || !ca_input_is_used_up(&runs->input))
		return true;
	ca_say("no more runs: standard input is not a file, and the first run has read it to its end; with a "
	       "file, each run reads it from where the first did: causal ... -- %s ... < FILE",
	       command);
	return false;
}

/* Whole runs cannot be cut to their part of a budget. */
static void tell_round(const struct runs *runs)
{
	size_t product = runs->job->variants.product;

	if (ca_job_is_open_ended(runs->job) && runs->done == 1 && product > 1 && !runs->stopped &&
	    runs->progress.budget && runs->progress.spent * product > runs->progress.budget)
		ca_say("each of the %zu variants runs once, which takes longer than the budget of %.3g s",
		       product, runs->job->settings.budget);
}

/* One more run? *end: why not, for a sweep that ends by itself. */
static bool goes_on(struct runs *runs, enum ca_conductor_end *end)
{
	const struct ca_settings *settings = &runs->job->settings;
	double spent = (double)(ca_clock_now() - runs->started) / 1e9;
	unsigned rows;

	if (runs->stopped)
		return false;
	if (runs->asked) {
		*end = CA_CONDUCTOR_ASKED;
		return false;
	}
	if (!ca_job_is_open_ended(runs->job))
		return runs->done < runs->job->variants.total;
	if (runs->done < runs->job->variants.product)
		return true;
	if (!ca_sweep_is_useful(runs->sweep)) /* the results say why */
		return false;
	if (ca_windows_do_end(settings)) /* experiments within a run */
		return false;
	if (ca_sweep_is_decided(runs->sweep, &rows) && !ca_steady_is_open(ca_sweep_steady(runs->sweep)))
		*end = CA_CONDUCTOR_DECIDED;
	/* a run that would not end within it is not begun */
	else if (is_hopeless(runs) || (settings->max_runs && runs->done >= (size_t)settings->max_runs) ||
		 (settings->budget > 0 && spent + spent / (double)runs->done > settings->budget))
		*end = CA_CONDUCTOR_SPENT;
	return *end == CA_CONDUCTOR_GOES_ON;
}

/* Would there have been another run? */
static bool would_go_on(struct runs *runs)
{
	enum ca_conductor_end end = CA_CONDUCTOR_GOES_ON;

	return goes_on(runs, &end);
}

int ca_runs_all(struct ca_job *job)
{
	struct runs runs = { .job = job };
	struct ca_err err;
	enum ca_conductor_end end = CA_CONDUCTOR_GOES_ON;
	char why[300] = "";
	bool terminal, failed = false, show;
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
	ca_progress_line_init(&runs.progress, ca_job_is_open_ended(job) ? 0 : job->variants.total,
			      job->level >= 0 && !job->settings.quiet);
	runs.progress.json = job->settings.progress_format == CA_PROGRESS_JSON;
	runs.progress.budget = (uint64_t)(job->settings.budget * 1e9);
	runs.progress.least = job->variants.product;
	show_all(&runs);
	ca_control_open(&runs.control, job->dir);
	runs.control.paused = job->settings.paused;
	ca_signals_toggle(&runs.signals, job->settings.toggle_signal);
	runs.started = ca_clock_now();
	ca_input_open(&runs.input);
	for (size_t i = 0; goes_on(&runs, &end) && has_input(&runs); i++) {
		int this_code = run_index(&runs, i), number;

		runs.done++;
		tell_round(&runs);
		code = code ? code : this_code;
		failed = this_code && !job->settings.keep_going;
		if (failed)
			break;
		/* One that came between two runs. */
		while ((number = ca_signals_wait(&runs.signals, 0, &terminal)))
			if (number != SIGCHLD)
				runs.stopped = number;
	}
	ca_say_progress(NULL);
	ca_control_close(&runs.control);
	if (runs.recorded && end != CA_CONDUCTOR_GOES_ON)
		tell_why(&runs, end, why, sizeof why);
	show = runs.executed && !runs.shown;
	if (runs.recorded)
		results = ca_job_results(job, show, *why && show ? why : NULL);
	else
		rmdir(job->dir); /* if there is nothing in it */
	if (failed)
		tell_end(&runs, would_go_on(&runs));
	ca_sweep_free(runs.sweep);
	ca_signals_close(&runs.signals);
	if (runs.stopped)
		ca_signals_die(runs.stopped);
	return code ? code : results;
}

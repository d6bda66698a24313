/* SPDX-License-Identifier: MIT */
/* One run without experiments; see once.h. */
#include "driver/once.h"
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/control.h"
#include "driver/metadata.h"
#include "driver/say.h"
#include "driver/signals.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct running {
	const struct ca_once *once;
	struct ca_job *job;
	struct ca_conductor *conductor;
	struct ca_signals *signals;
	struct ca_control control;
	struct rusage usage;
	struct ca_metadata_maps maps;
	int wait_status, stopped; /* stopped: the signal that we got meanwhile, or 0 */
	bool executed;            /* the command could be */
};

bool ca_once_is_general(enum ca_setting_id id)
{
	enum ca_setting_group group = ca_settings_get(id)->group;

	switch (id) {
	case CA_SETTING_BACKEND:
	case CA_SETTING_OUTPUT:
	case CA_SETTING_PROGRESS:
	case CA_SETTING_PERIOD:
	case CA_SETTING_FREQUENCY:
	case CA_SETTING_DELAY:
	case CA_SETTING_DURATION:
	case CA_SETTING_PERIODS:
	case CA_SETTING_PERIOD_CLOCK:
	case CA_SETTING_PAUSED:
	case CA_SETTING_TOGGLE_SIGNAL:
		return true;
	case CA_SETTING_SUGGEST:
	case CA_SETTING_DRY_RUN:
	case CA_SETTING_SINGLE:
	case CA_SETTING_GENERATE_CONFIGS:
		return false;
	default:
		return group == CA_GROUP_DEBUG || group == CA_GROUP_GENERAL;
	}
}

static enum ca_status check_options(const struct ca_once *once, const struct ca_options *options,
				    struct ca_err *err)
{
	const char *name = NULL;

	for (size_t i = 0; i < options->assignments && !name; i++)
		if (!once->is_meant(options->assignment[i].id))
			name = options->assignment[i].name;
	for (size_t i = 0; i < CA_AXES && !name; i++)
		name = options->axis[i].name;
	return name ? ca_err_set(err, CA_ERR_USAGE, "%s: %s is for experiments, and there are none",
				 once->command, name)
		    : CA_OK;
}

/* Until the child has been waited for. */
static void attend(struct running *r, pid_t child)
{
	bool over = false;

	while (!over) {
		int ms = ca_conductor_step(r->conductor);

		if (r->job->settings.metadata)
			ca_metadata_look(&r->maps, child);
		if (r->once->step)
			r->once->step(r->job, r->conductor, r->once->context);
		if (!ca_conductor_has_left(r->conductor))
			ca_control_obey(&r->control, r->signals, r->conductor);
		over = ca_signals_attend(r->signals, ms, child, &r->stopped, &r->wait_status);
	}
	getrusage(RUSAGE_CHILDREN, &r->usage);
}

static int run_child(struct running *r, struct ca_err *err)
{
	const struct ca_job *job = r->job;
	struct ca_variant variant;
	struct ca_environ environment;
	struct ca_child child;
	int code = 0;

	ca_variants_get(&job->variants, 0, &variant);
	if (ca_job_environ(job, &variant, &job->settings, ca_conductor_session_path(r->conductor),
			   &environment, err))
		return 1;
	if (ca_child_start(&child, job->command, environment.entry, r->signals, err)) {
		ca_environ_fini(&environment);
		return 1;
	}
	ca_control_open(&r->control, job->dir);
	r->control.paused = job->settings.paused;
	ca_conductor_started(r->conductor, child.pid);
	ca_job_show(job, &environment, "");
	if (ca_child_release(&child, job->command[0], &code, err)) {
		waitpid(child.pid, &r->wait_status, 0);
	} else {
		r->executed = true;
		attend(r, child.pid);
		code = ca_child_exit_status(r->wait_status);
	}
	ca_environ_fini(&environment);
	ca_control_close(&r->control);
	return code;
}

static int fail(enum ca_status status, const struct ca_err *err)
{
	ca_say("%s", err->text);
	return ca_child_exit_code(status);
}

static int run(struct running *r, struct ca_conductor_options *options)
{
	struct ca_err err = { .text = "" };
	enum ca_status status = ca_conductor_open(&r->conductor, options, &err);
	int code, closed;

	if (status)
		return fail(status, &err);
	code = run_child(r, &err);
	if (*err.text)
		ca_say("%s", err.text);
	ca_conductor_close(r->conductor, r->wait_status, NULL, NULL);
	if (ca_metadata_add_maps(&r->job->settings, r->job->dir, &r->maps, &err))
		ca_say("%s", err.text);
	closed = r->executed ? r->once->close(r->job, &r->usage, r->once->context) : code;
	if (r->stopped) {
		ca_signals_close(r->signals);
		ca_signals_die(r->stopped);
	}
	return code ? code : closed;
}

static int prepare(const struct ca_once *once, struct ca_job *job)
{
	struct ca_conductor_options options = {
		.settings = &job->settings,
		.run = 1,
		.iteration = 1,
		.message = ca_job_message,
		.context = job,
	};
	struct ca_signals signals;
	struct running r = { .once = once, .job = job, .signals = &signals };
	struct ca_sweep *sweep;
	struct ca_err err;
	enum ca_status status = check_options(once, &job->options, &err);
	int code;

	if (!status)
		status = once->open(job, &options, once->context, &err);
	if (status)
		return fail(status, &err);
	code = ca_job_prepare(job, &err);
	if (code) {
		ca_say("%s", err.text);
		return code;
	}
	sweep = ca_sweep_new((uint64_t)job->settings.random_seed);
	if (!sweep || ca_signals_open(&signals, &err)) {
		ca_say("%s", sweep ? err.text : "no memory for the run");
		ca_sweep_free(sweep);
		return 1;
	}
	ca_signals_toggle(&signals, job->settings.toggle_signal);
	options.sweep = sweep;
	options.command = job->command;
	options.dir = job->dir;
	code = run(&r, &options);
	ca_signals_close(&signals);
	ca_sweep_free(sweep);
	return code;
}

static const struct ca_once *asked; /* once in the life of this process */

static int run_asked(struct ca_job *job)
{
	return prepare(asked, job);
}

int ca_once(const struct ca_once *once, char **argv)
{
	asked = once;
	return ca_cmd_sweep_by(argv, run_asked);
}

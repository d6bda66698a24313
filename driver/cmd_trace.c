/* SPDX-License-Identifier: MIT */
/* `causal trace`: a run without experiments, whose events go to sinks. Driver's process, one thread. */
#include "causal/conductor/conductor.h"
#include "causal/conductor/sweep.h"
#include "core/path.h"
#include "core/sink.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/job.h"
#include "driver/say.h"
#include "driver/signals.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Means something without experiments? */
static bool is_meant(enum ca_setting_id id)
{
	const struct ca_setting *setting = ca_settings_get(id);

	switch (id) {
	case CA_SETTING_BACKEND:
	case CA_SETTING_OUTPUT:
	case CA_SETTING_PROGRESS:
	case CA_SETTING_PERIOD:
		return true;
	case CA_SETTING_DRY_RUN:
	case CA_SETTING_SINGLE:
	case CA_SETTING_GENERATE_CONFIGS:
		return false;
	default:
		return setting->group == CA_GROUP_DEBUG || setting->group == CA_GROUP_GENERAL;
	}
}

static enum ca_status check_options(const struct ca_options *options, struct ca_err *err)
{
	const char *name = NULL;

	for (size_t i = 0; i < options->assignments && !name; i++)
		if (!is_meant(options->assignment[i].id))
			name = options->assignment[i].name;
	for (size_t i = 0; i < CA_AXES && !name; i++)
		name = options->axis[i].name;
	return name ? ca_err_set(err, CA_ERR_USAGE, "trace: %s is for experiments, and there are none", name)
		    : CA_OK;
}

static enum ca_status open_dir(struct ca_job *job, struct ca_err *err)
{
	enum ca_status status = ca_job_expand(job, err);
	const char *output = job->settings.output;

	if (status)
		return status;
	if (*output && mkdir(output, 0777) && errno != EEXIST)
		return ca_err_set(err, CA_ERR_IO, "%s cannot be made: %s", output, strerror(errno));
	job->dir = strdup(*output ? output : ".");
	return job->dir ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
}

static int run_child(const struct ca_job *job, struct ca_conductor *conductor, struct ca_signals *signals,
		     int *wait_status, int *stopped, struct ca_err *err)
{
	struct ca_variant variant;
	struct ca_environ environment;
	struct ca_child child;
	int code = 0;

	ca_variants_get(&job->variants, 0, &variant);
	if (ca_job_environ(job, &variant, &job->settings, ca_conductor_session_path(conductor), &environment,
			   err))
		return 1;
	if (ca_child_start(&child, job->command, environment.entry, signals, err)) {
		ca_environ_fini(&environment);
		return 1;
	}
	ca_conductor_started(conductor, child.pid);
	ca_job_show(job, &environment, "");
	if (ca_child_release(&child, job->command[0], &code, err)) {
		waitpid(child.pid, wait_status, 0);
	} else {
		while (!ca_signals_attend(signals, ca_conductor_step(conductor), child.pid, stopped,
					  wait_status))
			;
		code = ca_child_exit_status(*wait_status);
	}
	ca_environ_fini(&environment);
	return code;
}

/* Where it is, and what it is for. */
static void say_file(char *item, const char *stem)
{
	static const char *const viewers[][2] = {
		{ "perfetto", ": open it at https://ui.perfetto.dev, which keeps it in the browser" },
		{ "json", ": open it at https://ui.perfetto.dev or with Speedscope" },
		{ "paraver", ": open it with wxparaver" },
		{ "binary", ": causal convert makes other files of it" },
		{ "dot", ": dot -Tsvg makes a picture of it" },
	};
	char *target = strchr(item, '=');
	const struct ca_sink_ops *sink;
	const char *what = "";

	if (target)
		*target++ = '\0';
	sink = ca_sink_find(item);
	if (!sink || (!target && !sink->extension))
		return;
	for (size_t i = 0; i < sizeof viewers / sizeof *viewers; i++)
		if (!strcmp(viewers[i][0], item))
			what = viewers[i][1];
	if (target) /* Paraver looks for its three files by their endings */
		ca_say("%s%s%s", target,
		       !strcmp(item, "paraver") && !ca_path_ends(target, sink->extension) ? sink->extension
											  : "",
		       what);
	else
		ca_say("%s%s%s", stem, sink->extension, what);
}

static const char *s_if(uint64_t n, const char *plural)
{
	return n == 1 ? "" : plural;
}

static void say_result(const struct ca_conductor_traced *t)
{
	char *spec = strdup(t->sinks), *rest = spec, *item;

	ca_say("%llu event%s of %llu thread%s in %llu process%s%s", (unsigned long long)t->events,
	       s_if(t->events, "s"), (unsigned long long)t->threads, s_if(t->threads, "s"),
	       (unsigned long long)t->processes, s_if(t->processes, "es"), t->lost ? "" : ", none missing");
	if (!t->processes)
		ca_say("the runtime was not in the program: see the limits in the README");
	while (rest && (item = strsep(&rest, ",")))
		if (*item)
			say_file(item, t->stem);
	free(spec);
}

static int fail(enum ca_status status, const struct ca_err *err)
{
	ca_say("%s", err->text);
	return ca_child_exit_code(status);
}

static int trace(struct ca_job *job, struct ca_sweep *sweep, struct ca_signals *signals)
{
	struct ca_conductor_traced traced = { 0 };
	struct ca_conductor_options options = {
		.settings = &job->settings,
		.dir = job->dir,
		.run = 1,
		.iteration = 1,
		.command = job->command,
		.sweep = sweep,
		.message = ca_job_message,
		.context = job,
		.traced = &traced,
	};
	int code, wait_status = 0, stopped = 0;
	struct ca_conductor *conductor;
	struct ca_err err = { .text = "" };
	enum ca_status status = ca_conductor_open(&conductor, &options, &err);

	if (status)
		return fail(status, &err);
	code = run_child(job, conductor, signals, &wait_status, &stopped, &err);
	if (*err.text)
		ca_say("%s", err.text);
	ca_conductor_close(conductor, wait_status, NULL);
	if (job->level >= 0)
		say_result(&traced);
	if (stopped) {
		ca_signals_close(signals);
		ca_signals_die(stopped);
	}
	return code;
}

static int run(struct ca_job *job)
{
	struct ca_signals signals;
	struct ca_sweep *sweep;
	struct ca_err err;
	enum ca_status status = check_options(&job->options, &err);
	int code;

	if (!status)
		status = open_dir(job, &err);
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
	code = trace(job, sweep, &signals);
	ca_signals_close(&signals);
	ca_sweep_free(sweep);
	return code;
}

int ca_cmd_trace(int argc, char **argv)
{
	(void)argc;
	return ca_cmd_sweep_by(argv, run);
}

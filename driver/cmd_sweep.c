/* SPDX-License-Identifier: MIT */
/* `causal sweep`, and causal without a subcommand: runs a program under experiments. The parts
 * are in the other files of this folder; this one only says what comes after what. */
#include "causal/points/point_list.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/help.h"
#include "driver/job.h"
#include "driver/list.h"
#include "driver/runs.h"
#include "driver/say.h"
#include "driver/single.h"
#include <stdio.h>
#include <stdlib.h>

static int show_help(const char *topic)
{
	if (!ca_help_print(stdout, topic)) {
		ca_say("there is no help on '%s'; choose from: man bash config", topic);
		return CA_EXIT_USAGE;
	}
	return fflush(stdout) ? 1 : 0;
}

static int show_variants(const struct ca_job *job)
{
	for (size_t i = 0; i < job->variants.total; i++) {
		struct ca_variant variant;
		char *line;

		ca_variants_get(&job->variants, i, &variant);
		line = ca_variants_line(&job->variants, &variant);
		if (!line)
			return 1;
		puts(line);
		free(line);
	}
	return fflush(stdout) ? 1 : 0;
}

static int run(struct ca_job *job)
{
	const char *filter;
	struct ca_err err;
	int code;

	if (job->settings.suggest) {
		ca_say("--suggest is for causal sample: causal sample --suggest -- ./app");
		return CA_EXIT_USAGE;
	}
	if (job->settings.dry_run)
		return show_variants(job);
	if (ca_point_list_is_asked(job->settings.progress, &filter))
		return ca_list_show(job, filter);
	if (ca_single_is_inner(job))
		return ca_single_join(job);
	code = ca_job_prepare(job, &err);
	if (code) {
		ca_say("%s", err.text);
		return code;
	}
	if (job->settings.single >= 0)
		return ca_single_run(job, (size_t)job->settings.single);
	return ca_runs_all(job);
}

int ca_cmd_sweep_by(char **argv, int (*run_job)(struct ca_job *job))
{
	struct ca_job job;
	struct ca_err err = { .text = "" };
	int code;

	code = ca_job_init(&job, argv, &err);
	if (code) {
		ca_say("%s", err.text);
		return code;
	}
	switch (job.options.action) {
	case CA_ACTION_HELP:
		code = show_help(job.options.topic);
		break;
	case CA_ACTION_VERSION:
		code = puts("causal " PACKAGE_VERSION) < 0;
		break;
	case CA_ACTION_RUN:
		code = run_job(&job);
		break;
	}
	ca_job_fini(&job);
	return code;
}

int ca_cmd_sweep(int argc, char **argv)
{
	(void)argc;
	return ca_cmd_sweep_by(argv, run);
}

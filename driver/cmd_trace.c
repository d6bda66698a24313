/* SPDX-License-Identifier: MIT */
/* `causal trace`: a run without experiments, whose events go to sinks. Driver's process, one thread. */
#include "causal/conductor/conductor.h"
#include "core/sink.h"
#include "driver/commands.h"
#include "driver/once.h"
#include "driver/output.h"
#include "driver/say.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tracing {
	struct ca_conductor_traced traced;
	bool told; /* where the files are */
};

static enum ca_status open_trace(struct ca_job *job, struct ca_conductor_options *options, void *context,
				 struct ca_err *err)
{
	enum ca_status status = ca_job_expand(job, err);
	char *output = job->settings.output;
	struct tracing *tracing = context;
	int error;

	if (status)
		return status;
	error = *output ? ca_output_make(output, true) : 0;
	if (error)
		return ca_err_set(err, CA_ERR_USAGE, "%s cannot be made (%s); give another one with -o",
				  output, strerror(error));
	options->traced = &tracing->traced;
	job->dir = strdup(*output ? output : ".");
	return job->dir ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
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
	char path[PATH_MAX];

	if (target)
		*target++ = '\0';
	sink = ca_sink_find(item);
	if (!sink || (!target && !sink->extension))
		return;
	for (size_t i = 0; i < sizeof viewers / sizeof *viewers; i++)
		if (!strcmp(viewers[i][0], item))
			what = viewers[i][1];
	if (target)
		ca_sink_path(sink, target, path, sizeof path);
	else
		snprintf(path, sizeof path, "%s%s", stem, sink->extension);
	ca_say("%s%s", path, what);
}

static const char *s_if(uint64_t n, const char *plural)
{
	return n == 1 ? "" : plural;
}

static void say_result(const struct ca_conductor_traced *t)
{
	char *spec = strdup(t->sinks), *rest = spec, *item, outside[64] = "";

	if (t->outside)
		snprintf(outside, sizeof outside, "; %llu outside of the time windows left out",
			 (unsigned long long)t->outside);
	ca_say("%llu event%s of %llu thread%s in %llu process%s%s%s", (unsigned long long)t->events,
	       s_if(t->events, "s"), (unsigned long long)t->threads, s_if(t->threads, "s"),
	       (unsigned long long)t->processes, s_if(t->processes, "es"), t->lost ? "" : ", none missing",
	       outside);
	if (!t->processes)
		ca_say("the runtime was not in the program: see the limits in the README");
	while (rest && (item = strsep(&rest, ",")))
		if (*item)
			say_file(item, t->stem);
	free(spec);
}

static void tell(const struct ca_job *job, struct tracing *t)
{
	if (job->level >= 0 && !t->told)
		say_result(&t->traced);
	t->told = true;
}

static void step(struct ca_job *job, const struct ca_conductor *conductor, void *context)
{
	if (ca_conductor_has_left(conductor))
		tell(job, context);
}

static int close_trace(struct ca_job *job, const struct rusage *usage, void *context)
{
	(void)usage;
	tell(job, context);
	return 0;
}

int ca_cmd_trace(int argc, char **argv)
{
	struct tracing tracing = { .told = false };
	const struct ca_once once = { "trace", ca_once_is_general, open_trace, step, close_trace, &tracing };

	(void)argc;
	return ca_once(&once, argv);
}

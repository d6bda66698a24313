/* SPDX-License-Identifier: MIT */
/* `causal convert`: a trace that the binary sink has written, for other sinks.
 * Driver's process, one thread. */
#include "core/trace.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

static bool choose(struct ca_dict *dict, const char *events)
{
	struct ca_err err;

	if (!ca_dict_select(dict, events, &err) && !ca_dict_prefixes(dict, events, &err))
		return true;
	ca_say("convert: --events: %s", err.text);
	return false;
}

/* As the setting of that name. */
static bool choose_size(const char *size)
{
	static const char *const known[] = { "constant", "linear", "log" };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(size, known[i])) {
			ca_sink_dot_size((int)i);
			return true;
		}
	ca_say("convert: --node-size: '%s' is none; choose from: constant, linear, log", size);
	return false;
}

static void say_left_out(const struct ca_trace *trace, const char *dir)
{
	if (trace->names_missing)
		ca_say("convert: %s has no names: keys and values of the program are shown as numbers", dir);
	if (trace->headless)
		ca_say("convert: %s: %u files have no whole header and are left out", dir, trace->headless);
	for (size_t i = 0; i < trace->threads; i++) {
		const struct ca_trace_thread *thread = &trace->thread[i];

		if (thread->left_out || thread->torn)
			ca_say("convert: %s ends too early: %" PRIu64
			       " events and the %u bytes of a torn one "
			       "are left out",
			       thread->path, thread->left_out, thread->torn);
	}
}

static int convert(const struct ca_trace *trace, const char *spec, const char *stem)
{
	struct ca_sinks *sinks;
	struct ca_err err;
	int code = 0;

	if (ca_sink_open(&sinks, spec, stem, trace->dict, NULL, &err)) {
		ca_say("convert: %s", err.text);
		return CA_EXIT_USAGE;
	}
	if (ca_trace_feed(trace, sinks, &err)) {
		ca_say("convert: %s", err.text);
		code = 1;
	}
	if (ca_sink_close(sinks, &err)) {
		ca_say("convert: %s", err.text);
		code = 1;
	}
	return code;
}

int ca_cmd_convert(int argc, char **argv)
{
	const char *spec = "paraver", *events = NULL, *output = NULL, *size = "constant";
	const struct ca_argument list[] = { { "--sinks", &spec },
					    { "--events", &events },
					    { "--node-size", &size },
					    { "-o", &output },
					    { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code;
	char stem[PATH_MAX];
	struct ca_trace *trace;
	struct ca_err err;

	if (words != 1) {
		if (words >= 0)
			ca_say("convert: give one folder that the binary sink has written, as in: causal "
			       "convert causal-out/DIR/run-0001.trace --sinks paraver,json");
		return CA_EXIT_USAGE;
	}
	if (ca_sink_check(spec, &err)) {
		ca_say("convert: --sinks: %s", err.text);
		return CA_EXIT_USAGE;
	}
	if (!choose_size(size))
		return CA_EXIT_USAGE;
	if (ca_trace_open(&trace, argv[1], &err)) {
		ca_say("convert: %s", err.text);
		return CA_EXIT_USAGE;
	}
	say_left_out(trace, argv[1]);
	/* beside the folder, and named like it */
	snprintf(stem, sizeof stem, "%s", output ? output : argv[1]);
	for (size_t n = strlen(stem); !output && n > 1 && stem[n - 1] == '/'; n--)
		stem[n - 1] = '\0';
	if (!output && strlen(stem) > 6 && !strcmp(stem + strlen(stem) - 6, ".trace"))
		stem[strlen(stem) - 6] = '\0';
	code = events && !choose(trace->dict, events) ? CA_EXIT_USAGE : convert(trace, spec, stem);
	ca_trace_free(trace);
	return code;
}

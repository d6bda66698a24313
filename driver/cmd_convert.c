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

/* Is there a key that begins like this? Else a message with those that there are. */
static bool is_prefix(const struct ca_dict *dict, const char *prefix, size_t length)
{
	char names[1024] = "";

	for (uint32_t key = CA_KEY_DISABLED + 1; key < ca_dict_count(dict); key++) {
		const char *name = ca_dict_get(dict, key)->name;
		size_t used = strlen(names);

		if (!strncmp(name, prefix, length))
			return true;
		snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name);
	}
	ca_say("convert: --events: no key of this trace begins with '%.*s'; choose from: %s", (int)length,
	       prefix, names);
	return false;
}

static bool choose(struct ca_dict *dict, const char *events)
{
	struct ca_err err;

	if (ca_dict_select(dict, events, &err)) {
		ca_say("convert: --events: %s", err.text);
		return false;
	}
	for (const char *step = events; *step;) {
		size_t length = strcspn(step, ",");

		if ((*step == '+' || *step == '-') && !is_prefix(dict, step + 1, length - 1))
			return false;
		step += length + (step[length] == ',');
	}
	return true;
}

static void say_left_out(const struct ca_trace *trace, const char *dir)
{
	if (trace->names_missing)
		ca_say("convert: %s has no names: keys and values of the program are shown as numbers", dir);
	if (trace->headless)
		ca_say("convert: %s: %u files are shorter than their header and are left out", dir,
		       trace->headless);
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
	const char *spec = "paraver", *events = NULL, *output = NULL;
	const struct ca_argument list[] = {
		{ "--sinks", &spec }, { "--events", &events }, { "-o", &output }, { NULL, NULL }
	};
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

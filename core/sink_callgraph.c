/* SPDX-License-Identifier: MIT */
/* The call graph as sinks, one for each form, written when the run is over: on stderr, or into the file that
 * the target names, whose ending chooses the format. Driver's process, one thread. */
#include "core/callgraph.h"
#include "core/sink_file.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_callgraph, ca_sink_callgraph_flat, ca_sink_callgraph_timeline;

struct sink {
	struct ca_callgraph graph;
	const char *name;
	FILE *file;
	char *target;
};

static enum ca_status open_form(enum ca_callgraph_form form, const char *name, void **state,
				const char *target, const struct ca_dict *dict, struct ca_err *err)
{
	struct sink *sink = calloc(1, sizeof *sink);

	if (!sink || (target && !(sink->target = strdup(target)))) {
		free(sink);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the %s sink", name);
	}
	sink->name = name;
	sink->file = target ? ca_sink_file_stream(name, target, err) : stderr;
	if (!sink->file) {
		free(sink->target);
		free(sink);
		return CA_ERR_USAGE;
	}
	ca_callgraph_init(&sink->graph, form, dict);
	*state = sink;
	return CA_OK;
}

static enum ca_status open_tree(void **state, const char *target, const struct ca_dict *dict,
				const void *context, struct ca_err *err)
{
	(void)context;
	return open_form(CA_CALLGRAPH_TREE, ca_sink_callgraph.name, state, target, dict, err);
}

static enum ca_status open_flat(void **state, const char *target, const struct ca_dict *dict,
				const void *context, struct ca_err *err)
{
	(void)context;
	return open_form(CA_CALLGRAPH_FLAT, ca_sink_callgraph_flat.name, state, target, dict, err);
}

static enum ca_status open_timeline(void **state, const char *target, const struct ca_dict *dict,
				    const void *context, struct ca_err *err)
{
	(void)context;
	return open_form(CA_CALLGRAPH_TIMELINE, ca_sink_callgraph_timeline.name, state, target, dict, err);
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	ca_callgraph_take(&((struct sink *)state)->graph, from, event, n);
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	(void)process_name;
	if (thread_name)
		ca_callgraph_name(&((struct sink *)state)->graph, from, thread_name);
}

static void take_laps(void *state, const struct ca_source *from, const struct ca_lap *lap, uint32_t first,
		      size_t n)
{
	ca_callgraph_add(&((struct sink *)state)->graph, from, lap, first, n);
}

static bool wants(void *state, uint32_t key)
{
	return !ca_callgraph_throttled(&((struct sink *)state)->graph, key);
}

static enum ca_status close_sink(void *state, struct ca_err *err)
{
	struct sink *sink = state;
	bool ok, memory;

	ca_callgraph_end(&sink->graph);
	ca_callgraph_write(&sink->graph, sink->target, sink->file);
	memory = !sink->graph.rows.failed;
	ok = fflush(sink->file) == 0 && !ferror(sink->file);
	if (sink->file != stderr && fclose(sink->file))
		ok = false;
	if (!ok || !memory)
		ca_err_set(err, CA_ERR_IO, "the %s sink could not write all of %s (%s)", sink->name,
			   sink->target ? sink->target : "its table", strerror(memory ? errno : ENOMEM));
	ca_callgraph_fini(&sink->graph);
	free(sink->target);
	free(sink);
	return ok && memory ? CA_OK : CA_ERR_IO;
}

#define SINK(object, called, opens, counted, what)                                                           \
	const struct ca_sink_ops object = {                                                                  \
		.name = called,                                                                              \
		.description = what,                                                                         \
		.open = opens,                                                                               \
		.events = take_events,                                                                       \
		.laps = counted,                                                                             \
		.rename = take_name,                                                                         \
		.wants = wants,                                                                              \
		.close = close_sink,                                                                         \
	}
SINK(ca_sink_callgraph, "callgraph", open_tree, take_laps,
     "how often and how long each key was open inside each, on stderr or into =FILE (.json, .tree.json, "
     ".md, .folded, else text)");
SINK(ca_sink_callgraph_flat, "callgraph-flat", open_flat, take_laps, "the same of each key");
SINK(ca_sink_callgraph_timeline, "callgraph-timeline", open_timeline, NULL, "the same of each call");

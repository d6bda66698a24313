/* SPDX-License-Identifier: MIT */
/* The dot sink: the graph of tasks for Graphviz, written when the run is over. A node is a task (a burst of
 * the key `task`: its value is its id), or a thread where what passes between threads does not belong to
 * one. An edge leads from who delivered to who received, and says how often. Driver's process, one
 * thread. */
#include "core/settings.h"
#include "core/sink_file.h"
#include "core/sink_tracks.h"
#include "core/utf8.h"
#include "core/vec.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_dot;

/* More than that nobody looks at, and Graphviz does not lay out. Halves: ends without the other one. */
enum { MOST_NODES = 1 << 16, MOST_EDGES = 1 << 16, MOST_HALVES = 1 << 16, NONE = UINT16_MAX + 1 };

struct node {
	uint32_t process_index;
	bool task;
	uint64_t id; /* of the task, or the thread's index */
	uint64_t time, runs;
};

struct edge {
	uint32_t from, to, key;
	uint64_t count;
};

struct half {
	uint64_t flow;
	uint32_t node; /* NONE: the other one has come */
	bool delivered;
};

struct name {
	uint32_t index;
	bool process;
	char *text;
};

struct dot {
	FILE *file;
	char *target;
	const struct ca_dict *dict;
	uint32_t task; /* key */
	struct ca_sink_tracks tracks;
	struct ca_map node_of, edge_of, half_of;
	struct ca_vec nodes, edges, halves, names;
	uint64_t left_out; /* there was no room for them */
	uint64_t alone;    /* ends of which the other one did not come */
	uint64_t longest;  /* of the tasks */
};

static int node_size;

void ca_sink_dot_size(int how)
{
	node_size = how;
}

static enum ca_status open_dot(void **state, const char *target, const struct ca_dict *dict,
			       const void *context, struct ca_err *err)
{
	struct dot *dot = calloc(1, sizeof *dot);

	(void)context;
	if (!dot || !(dot->target = strdup(target))) {
		free(dot);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the dot sink");
	}
	dot->dict = dict;
	dot->nodes.size = sizeof(struct node);
	dot->edges.size = sizeof(struct edge);
	dot->halves.size = sizeof(struct half);
	dot->names.size = sizeof(struct name);
	dot->file = ca_sink_file_stream("dot", target, err);
	if (dot->file) {
		*state = dot;
		return CA_OK;
	}
	free(dot->target);
	free(dot);
	return CA_ERR_USAGE;
}

/* The index of what is at that place of the map, added if need be; NONE: there is no more room. */
static uint32_t get(struct ca_map *map, struct ca_vec *vec, size_t most, uint64_t key, bool *known)
{
	const uint32_t *found = ca_map_find(map, key);
	uint32_t *at;

	*known = found;
	if (found)
		return *found;
	if (vec->n >= most)
		return NONE;
	at = ca_map_add(map, key, known);
	*known = false;
	if (!at)
		return NONE;
	*at = ca_vec_push(vec) ? (uint32_t)(vec->n - 1) : NONE;
	return *at;
}

static uint32_t get_node(struct dot *dot, const struct ca_source *from, bool task, uint64_t id)
{
	uint64_t mixed =
		(id << 1 ^ task ^ (uint64_t)from->process_index << 45) * UINT64_C(0x9e3779b97f4a7c15);
	bool known;
	uint32_t at = get(&dot->node_of, &dot->nodes, MOST_NODES, mixed ? mixed : 1, &known);

	if (at == NONE)
		dot->left_out++;
	else if (!known)
		((struct node *)dot->nodes.at)[at] = (struct node){ from->process_index, task, id, 0, 0 };
	return at;
}

static void add_edge(struct dot *dot, uint32_t from, uint32_t to, uint32_t key)
{
	uint64_t id = UINT64_C(1) << 63 | (uint64_t)from << 46 | (uint64_t)to << 29 | (key & 0x1fffffff);
	bool known;
	uint32_t at = get(&dot->edge_of, &dot->edges, MOST_EDGES, id, &known);
	struct edge *edge = (struct edge *)dot->edges.at + at;

	if (at == NONE) {
		dot->left_out++;
		return;
	}
	if (!known)
		*edge = (struct edge){ from, to, key, 0 };
	edge->count++;
}

/* Forgets pairs; should few be pairs, the older half of what waits for its other end. */
static void forget(struct dot *dot)
{
	struct ca_vec kept = { .size = sizeof(struct half) };
	const struct half *half = dot->halves.at;
	size_t waiting = 0, skip;

	for (size_t i = 0; i < dot->halves.n; i++)
		waiting += half[i].node != NONE;
	skip = waiting > MOST_HALVES / 2 ? waiting - MOST_HALVES / 2 : 0;
	dot->alone += skip;
	ca_map_free(&dot->half_of);
	for (size_t i = 0; i < dot->halves.n; i++) {
		bool known;
		uint32_t *at;

		if (half[i].node == NONE || (skip && skip--))
			continue;
		at = ca_map_add(&dot->half_of, half[i].flow, &known);
		if (at && ca_vec_add(&kept, &half[i], 1))
			*at = (uint32_t)(kept.n - 1);
	}
	ca_vec_free(&dot->halves);
	dot->halves = kept;
}

static void take_flow(struct dot *dot, uint32_t node, const struct ca_event *event)
{
	bool delivered = event->kind == CA_PTP_BEGIN, known;
	uint64_t flow = ca_sink_flow(event);
	struct half *half;
	uint32_t at;

	if (dot->halves.n >= MOST_HALVES)
		forget(dot);
	at = get(&dot->half_of, &dot->halves, MOST_HALVES, flow, &known);
	if (at == NONE || node == NONE) {
		dot->left_out++;
		return;
	}
	half = (struct half *)dot->halves.at + at;
	if (!known || half->node == NONE || half->delivered == delivered) {
		*half = (struct half){ flow, node, delivered };
		return;
	}
	add_edge(dot, delivered ? node : half->node, delivered ? half->node : node, event->key);
	half->node = NONE;
}

static void end_task(struct dot *dot, const struct ca_sink_track *track, const struct ca_sink_open *open,
		     uint64_t time)
{
	uint32_t at = get_node(dot, &track->from, true, open->value);

	if (at == NONE)
		return;
	((struct node *)dot->nodes.at)[at].time += time - open->time;
	((struct node *)dot->nodes.at)[at].runs++;
}

static void take_event(struct dot *dot, struct ca_sink_track *track, const struct ca_event *event)
{
	if (event->kind == CA_PTP_BEGIN || event->kind == CA_PTP_END) {
		bool task = track->depth > 0;
		uint64_t id = task ? track->open[track->depth - 1].value : track->from.thread_index;

		take_flow(dot, get_node(dot, &track->from, task, id), event);
	} else if (event->key == dot->task && dot->task && event->kind == CA_BURST_BEGIN) {
		ca_sink_tracks_begin(track, event);
	} else if (event->key == dot->task && dot->task && event->kind == CA_BURST_END && track->depth) {
		end_task(dot, track, &track->open[track->depth - 1], event->time);
		ca_sink_tracks_close(track, track->depth - 1);
	}
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct dot *dot = state;
	bool known;
	struct ca_sink_track *track = ca_sink_tracks_get(&dot->tracks, from, &known);

	if (!dot->task && dot->dict) /* it may have been registered by now */
		dot->task = ca_dict_find(dot->dict, "task");
	for (size_t i = 0; track && i < n; i++) {
		take_event(dot, track, &event[i]);
		track->last = event[i].time;
	}
}

static void keep_name(struct dot *dot, uint32_t index, bool process, const char *text)
{
	struct name *name = text ? ca_vec_push(&dot->names) : NULL;

	if (name)
		*name = (struct name){ index, process, strdup(text) };
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	keep_name(state, from->process_index, true, process_name);
	keep_name(state, from->thread_index, false, thread_name);
}

/* Inside double quotes. */
static void put_text(FILE *file, const char *text)
{
	while (*text) {
		if (*text == '"' || *text == '\\')
			putc('\\', file);
		text = ca_utf8_put(file, text);
	}
}

/* " NAME", the last one, if there is one. */
static void put_name(const struct dot *dot, uint32_t index, bool process)
{
	const struct name *name = dot->names.at;

	for (size_t i = dot->names.n; i-- > 0;)
		if (name[i].index == index && name[i].process == process && name[i].text) {
			putc(' ', dot->file);
			put_text(dot->file, name[i].text);
			return;
		}
}

/* 0.5 to 5 inches, more where the label is longer. */
static double width_of(uint64_t time, uint64_t longest)
{
	double share = longest ? (double)time / (double)longest : 0;

	if (node_size == CA_NODE_LOG)
		share = longest > 1 && time ? log((double)time) / log((double)longest) : 0;
	return 0.5 + 4.5 * share;
}

static void put_node(const struct dot *dot, size_t i)
{
	const struct node *node = (const struct node *)dot->nodes.at + i;
	const char *name =
		dot->dict && node->task ? ca_dict_value_name(dot->dict, dot->task, node->id) : NULL;

	fprintf(dot->file, "\t\tn%zu [label=\"%s %" PRIu64, i, node->task ? "task" : "thread", node->id);
	if (name)
		putc(' ', dot->file);
	put_text(dot->file, name ? name : "");
	if (!node->task)
		put_name(dot, (uint32_t)node->id, false);
	if (node->task)
		fprintf(dot->file, "\\n%" PRIu64 " ns in %" PRIu64, node->time, node->runs);
	fputs(node->task ? "\"" : "\", shape=ellipse", dot->file);
	if (node->task && node_size != CA_NODE_CONSTANT)
		fprintf(dot->file, ", width=%.2f, height=%.2f", width_of(node->time, dot->longest),
			width_of(node->time, dot->longest) / 2);
	fputs("];\n", dot->file);
}

/* A frame around each process. */
static void put_nodes(const struct dot *dot)
{
	const struct node *node = dot->nodes.at;
	struct ca_map done = { 0 };
	bool known = true;

	for (size_t first = 0; first < dot->nodes.n; first++) {
		uint32_t process = node[first].process_index;

		if (!ca_map_add(&done, UINT64_C(1) + process, &known) || known)
			continue;
		fprintf(dot->file, "\tsubgraph cluster_%" PRIu32 " {\n\t\tlabel=\"process %" PRIu32, process,
			process);
		put_name(dot, process, true);
		fputs("\";\n", dot->file);
		for (size_t i = first; i < dot->nodes.n; i++)
			if (node[i].process_index == process)
				put_node(dot, i);
		fputs("\t}\n", dot->file);
	}
	ca_map_free(&done);
}

static void put_graph(const struct dot *dot)
{
	const struct edge *edge = dot->edges.at;
	char buffer[CA_SINK_KEY_NAME];

	fprintf(dot->file, "digraph causal {\n\tlabel=\"%zu nodes, %zu edges", dot->nodes.n, dot->edges.n);
	if (dot->left_out)
		fprintf(dot->file, "; %" PRIu64 " events are left out", dot->left_out);
	if (dot->alone)
		fprintf(dot->file, "; %" PRIu64 " ends without the other one", dot->alone);
	fputs("\";\n\tnode [shape=box];\n", dot->file);
	put_nodes(dot);
	for (size_t i = 0; i < dot->edges.n; i++) {
		fprintf(dot->file, "\tn%" PRIu32 " -> n%" PRIu32 " [label=\"", edge[i].from, edge[i].to);
		put_text(dot->file, ca_sink_key_name(dot->dict, edge[i].key, buffer));
		fprintf(dot->file, " %" PRIu64 "\"];\n", edge[i].count);
	}
	fputs("}\n", dot->file);
}

static void free_dot(struct dot *dot)
{
	struct name *name = dot->names.at;

	for (size_t i = 0; i < dot->names.n; i++)
		free(name[i].text);
	ca_vec_free(&dot->names);
	ca_vec_free(&dot->nodes);
	ca_vec_free(&dot->edges);
	ca_vec_free(&dot->halves);
	ca_map_free(&dot->node_of);
	ca_map_free(&dot->edge_of);
	ca_map_free(&dot->half_of);
	ca_sink_tracks_free(&dot->tracks);
	free(dot->target);
	free(dot);
}

static enum ca_status close_dot(void *state, struct ca_err *err)
{
	struct dot *dot = state;
	enum ca_status status = CA_OK;
	const struct half *half = dot->halves.at;
	const struct node *node;
	bool ok;

	for (size_t i = 0; i < dot->tracks.count; i++) {
		const struct ca_sink_track *track = &dot->tracks.track[i];

		for (size_t at = track->depth; at-- > 0;)
			end_task(dot, track, &track->open[at], track->last);
	}
	for (size_t i = 0; i < dot->halves.n; i++)
		dot->alone += half[i].node != NONE;
	node = dot->nodes.at;
	for (size_t i = 0; i < dot->nodes.n; i++)
		if (node[i].task && node[i].time > dot->longest)
			dot->longest = node[i].time;
	put_graph(dot);
	ok = !ferror(dot->file);
	ok = fclose(dot->file) == 0 && ok;
	if (!ok)
		status = ca_err_set(err, CA_ERR_IO, "the dot sink could not write all of %s (%s)",
				    dot->target, strerror(errno));
	free_dot(dot);
	return status;
}

const struct ca_sink_ops ca_sink_dot = {
	.name = "dot",
	.description = "the graph of tasks, and of what passes between them, for Graphviz, into a file",
	.extension = ".dot",
	.open = open_dot,
	.events = take_events,
	.rename = take_name,
	.close = close_dot,
};

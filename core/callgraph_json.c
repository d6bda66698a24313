/* SPDX-License-Identifier: MIT */
/* The call graph as JSON, with the keys that timemory gave such files, so that its readers' shapes fit:
 * flat, a list of rows with their depth, or as a tree. Written by hand: the numbers are known, and there
 * may be many. See callgraph.h. */
#include "core/callgraph.h"
#include "core/sink_tracks.h"
#include "core/utf8.h"
#include <inttypes.h>
#include <math.h>

/* Exact in a reader's floating point numbers. */
enum { HASH_SHIFT = 11 };

struct json {
	const struct ca_callgraph *graph;
	FILE *file;
};

static void put_text(FILE *file, const char *text)
{
	putc('"', file);
	while (*text) {
		if (*text == '"' || *text == '\\')
			putc('\\', file);
		text = ca_utf8_put(file, text);
	}
	putc('"', file);
}

static const struct ca_callgraph_thread *thread_at(const struct ca_callgraph *graph, uint32_t i)
{
	return (const struct ca_callgraph_thread *)graph->threads.at + i;
}

/* Of a row with all those around it, the same in every run. */
static uint64_t rolling(const struct ca_callgraph *graph, const struct ca_callgraph_row *row)
{
	uint64_t hash = ca_map_key(1, row->label);

	while ((row = ca_callgraph_get(graph, row->above)))
		hash = hash * 31 + ca_map_key(1, row->label);
	return hash >> HASH_SHIFT;
}

static void put_stats(FILE *file, uint64_t count, uint64_t sum, uint64_t min, uint64_t max, double mean,
		      double m2)
{
	double variance = count > 1 ? m2 / (double)(count - 1) : 0;

	fprintf(file,
		"\"stats\":{\"sum\":%" PRIu64 ",\"count\":%" PRIu64 ",\"min\":%" PRIu64 ",\"max\":%" PRIu64
		",\"sqr\":%.17g,\"mean\":%.17g,\"stddev\":%.17g,\"variance\":%.17g}",
		sum, count, count ? min : 0, max, m2 + mean * mean * (double)count, mean, sqrt(variance),
		variance);
}

static void put_entry(FILE *file, uint64_t laps, uint64_t value, uint64_t accum)
{
	fprintf(file,
		"\"entry\":{\"laps\":%" PRIu64 ",\"value\":%" PRIu64 ",\"accum\":%" PRIu64
		",\"repr_data\":%" PRIu64 ",\"repr_display\":%" PRIu64 "}",
		laps, value, accum, accum, accum);
}

static void put_name(const struct json *json, const struct ca_callgraph_row *row)
{
	fprintf(json->file, "\"hash\":%" PRIu64 ",\"prefix\":", ca_map_key(1, row->label) >> HASH_SHIFT);
	put_text(json->file, row->label);
	fprintf(json->file, ",\"depth\":%" PRIu32 ",", row->depth);
}

static void put_flat(const struct json *json, const struct ca_callgraph_thread *thread)
{
	const struct ca_callgraph_row *row = ca_callgraph_get(json->graph, thread->first);
	size_t n = 0;

	fputs("\"graph\":[", json->file);
	for (; row; row = ca_callgraph_after(json->graph, row)) {
		fputs(n++ ? ",\n{" : "\n{", json->file);
		put_name(json, row);
		if (json->graph->form == CA_CALLGRAPH_TIMELINE)
			fprintf(json->file, "\"begin\":%" PRIu64 ",", row->begin - json->graph->begin);
		put_entry(json->file, row->count, row->last, row->sum);
		putc(',', json->file);
		put_stats(json->file, row->count, row->sum, row->min, row->max, row->mean, row->m2);
		fprintf(json->file, ",\"self\":%.17g,\"rolling_hash\":%" PRIu64 "}", ca_callgraph_self(row),
			rolling(json->graph, row));
	}
	fprintf(json->file, "],\"graph_size\":%zu", n);
}

static void put_tree(const struct json *json, uint32_t first)
{
	const struct ca_callgraph_row *row;

	for (uint32_t at = first; (row = ca_callgraph_get(json->graph, at)); at = row->next) {
		uint64_t self = row->sum > row->inner ? row->sum - row->inner : 0;

		fputs(at == first ? "\n{\"node\":{" : ",\n{\"node\":{", json->file);
		put_name(json, row);
		fputs("\"inclusive\":{", json->file);
		put_entry(json->file, row->count, row->last, row->sum);
		putc(',', json->file);
		put_stats(json->file, row->count, row->sum, row->min, row->max, row->mean, row->m2);
		fputs("},\"exclusive\":{", json->file);
		put_entry(json->file, row->count, self, self);
		fputs("}},\"children\":[", json->file);
		put_tree(json, row->first);
		fputs("]}", json->file);
	}
}

static void put_graph(const struct json *json, const struct ca_callgraph_thread *thread, bool tree)
{
	if (!tree) {
		put_flat(json, thread);
		return;
	}
	fputs("\"graph\":[", json->file);
	put_tree(json, thread->first);
	fputs("]", json->file);
}

static void put_notes(const struct json *json)
{
	const struct ca_callgraph *graph = json->graph;
	char buffer[CA_SINK_KEY_NAME];
	bool any = false;

	fprintf(json->file,
		"\"open\":%" PRIu64 ",\"ends_without_beginning\":%" PRIu64 ",\"left_out\":%" PRIu64
		",\"throttled\":[",
		graph->open, graph->ends, graph->left_out);
	for (uint32_t key = 0; key < graph->hot.n; key++) {
		uint64_t calls = ca_callgraph_throttled(graph, key);

		if (!calls)
			continue;
		fputs(any ? ",{\"key\":" : "{\"key\":", json->file);
		put_text(json->file, ca_sink_key_name(graph->dict, key, buffer));
		fprintf(json->file, ",\"laps\":%" PRIu64 "}", calls);
		any = true;
	}
	putc(']', json->file);
}

void ca_callgraph_write_json(const struct ca_callgraph *graph, FILE *file, bool tree)
{
	static const char *const forms[] = { "tree", "flat", "timeline" };
	const struct json json = { graph, file };
	const uint32_t *shown = graph->shown.at;
	uint32_t processes = 0;

	for (size_t i = 0; i < graph->shown.n; i++)
		if (thread_at(graph, shown[i])->from.process_index > processes)
			processes = thread_at(graph, shown[i])->from.process_index;
	fprintf(file,
		"{\"causal\":{\"wall_clock\":{\"properties\":{\"form\":\"%s\"},\"type\":\"wall_clock\","
		"\"description\":\"time between the begin and the end of a burst\",\"unit_value\":1,"
		"\"unit_repr\":\"nsec\",\"thread_scope_only\":false,\"thread_count\":%zu,\"mpi_size\":1,"
		"\"process_count\":%" PRIu32 ",\"num_ranks\":1,\"concurrency\":%zu,",
		forms[graph->form], graph->shown.n, processes, graph->shown.n);
	put_notes(&json);
	/* all threads together, where that means something */
	fputs(",\n\"ranks\":[", file);
	if (graph->shown.n && graph->form != CA_CALLGRAPH_TIMELINE) {
		fputs("{\"rank\":0,", file);
		put_graph(&json,
			  thread_at(graph, graph->merged == CA_CALLGRAPH_NONE ? shown[0] : graph->merged),
			  tree);
		putc('}', file);
	}
	fputs("],\n\"threads\":[", file);
	for (size_t i = 0; i < graph->shown.n; i++) {
		const struct ca_callgraph_thread *thread = thread_at(graph, shown[i]);

		fprintf(file, "%s{\"thread\":%" PRIu32 ",\"process\":%" PRIu32 ",\"name\":", i ? ",\n" : "",
			thread->from.thread_index, thread->from.process_index);
		put_text(file, thread->name ? thread->name : "");
		putc(',', file);
		put_graph(&json, thread, tree);
		putc('}', file);
	}
	fputs("]}}}\n", file);
}

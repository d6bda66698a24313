/* SPDX-License-Identifier: MIT */
/* Two call graphs, as the callgraph sinks write them into .json files: row by row, by the names of those that
 * lie around it. Driver's process, one thread. */
#include "causal/results/results_json.h"
#include "causal/results/text.h"
#include "core/vec.h"
#include "driver/child.h"
#include "driver/diff.h"
#include "driver/say.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLD, NOW, BOTH, LABEL = 60 };

struct row {
	char *path;
	double count[BOTH], sum[BOTH], mean[BOTH], self[BOTH]; /* self: ns */
	bool in[BOTH];
};

struct table {
	struct ca_vec rows;
	struct json_object *by_path; /* numbers of rows */
};

static struct json_object *clock_of(struct json_object *file)
{
	return ca_results_json_get(ca_results_json_get(file, "causal"), "wall_clock");
}

static bool is_callgraph(struct json_object *file)
{
	return json_object_is_type(ca_results_json_get(clock_of(file), "ranks"), json_type_array);
}

/* The rows of all threads together; NULL: it has none. */
static struct json_object *graph_of(struct json_object *file)
{
	struct json_object *ranks = ca_results_json_get(clock_of(file), "ranks");
	struct json_object *graph = ca_results_json_get(json_object_array_get_idx(ranks, 0), "graph");

	return json_object_is_type(graph, json_type_array) ? graph : NULL;
}

static struct row *get_row(struct table *table, const char *path)
{
	struct json_object *at = ca_results_json_get(table->by_path, path);
	struct row *row =
		at ? (struct row *)table->rows.at + json_object_get_int64(at) : ca_vec_push(&table->rows);

	if (!row || at)
		return row;
	row->path = strdup(path);
	json_object_object_add(table->by_path, path, json_object_new_int64((int64_t)table->rows.n - 1));
	return row;
}

static void take_row(struct table *table, const char *path, struct json_object *from, unsigned of)
{
	struct json_object *stats = ca_results_json_get(from, "stats");
	struct row *row = get_row(table, path);

	if (!row)
		return;
	row->in[of] = true;
	row->count[of] = ca_results_json_double(stats, "count");
	row->sum[of] = ca_results_json_double(stats, "sum");
	row->mean[of] = ca_results_json_double(stats, "mean");
	row->self[of] = ca_results_json_double(from, "self") / 100 * row->sum[of];
}

/* Rows stand in the order of a walk; how deep each lies tells which are around it. False: it is none. */
static bool take_graph(struct table *table, struct json_object *graph, unsigned of)
{
	struct ca_vec path = { .size = 1 }, ends = { .size = sizeof(size_t) };
	bool good = true;

	for (size_t i = 0; good && i < json_object_array_length(graph); i++) {
		struct json_object *from = json_object_array_get_idx(graph, i);
		uint64_t depth = ca_results_json_u64(from, "depth");
		const char *label = ca_results_json_string(from, "prefix");

		good = depth <= ends.n && label && ca_results_json_get(from, "stats");
		if (!good)
			break;
		ends.n = depth;
		path.n = depth ? ((size_t *)ends.at)[depth - 1] : 0;
		if (depth)
			ca_vec_add(&path, " > ", 3);
		ca_vec_add(&path, label, strlen(label));
		ca_vec_add(&ends, &path.n, 1);
		ca_vec_add(&path, "", 1);
		good = !path.failed && !ends.failed;
		if (good)
			take_row(table, path.at, from, of);
	}
	ca_vec_free(&path);
	ca_vec_free(&ends);
	return good && !table->rows.failed;
}

static void print_signed(double change, int width, int decimals)
{
	double least = decimals ? 0.05 : 0.5;

	if (fabs(change) < least)
		printf(" %*d", width, 0);
	else
		printf(" %+*.*f", width, decimals, change);
}

static void print_row(const struct row *row)
{
	double percent = row->sum[OLD] > 0 ? 100 * (row->sum[NOW] / row->sum[OLD] - 1) : 0;

	ca_text_put(stdout, row->path, LABEL);
	print_signed(row->count[NOW] - row->count[OLD], 11, 0);
	print_signed(row->sum[NOW] - row->sum[OLD], 16, 0);
	if (row->in[OLD] && row->in[NOW])
		print_signed(percent, 8, 1);
	else
		printf(" %8s", row->in[NOW] ? "new" : "gone");
	print_signed(row->mean[NOW] - row->mean[OLD], 14, 1);
	print_signed(row->self[NOW] - row->self[OLD], 16, 0);
	putchar('\n');
}

static int by_change(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	double of_x = fabs(x->sum[NOW] - x->sum[OLD]), of_y = fabs(y->sum[NOW] - y->sum[OLD]);

	return of_x != of_y ? (of_x > of_y ? -1 : 1) : strcmp(x->path, y->path);
}

static int print_table(struct table *table)
{
	struct row *row = table->rows.at;

	for (size_t i = 0; i < table->rows.n; i++)
		if (!row[i].path)
			return 1;
	if (table->rows.n)
		qsort(row, table->rows.n, sizeof *row, by_change);
	printf("%-*s %11s %16s %8s %14s %16s\n", LABEL, "NEW - OLD, ns", "COUNT", "SUM", "%", "MEAN", "SELF");
	for (size_t i = 0; i < table->rows.n; i++)
		print_row(&row[i]);
	return 0;
}

static int print_callgraph(struct json_object *old, struct json_object *now)
{
	struct table table = { .rows = { .size = sizeof(struct row) }, .by_path = json_object_new_object() };
	struct json_object *graph[BOTH] = { graph_of(old), graph_of(now) };
	int code = CA_EXIT_USAGE;

	if (!graph[OLD] || !graph[NOW])
		ca_say("diff: the %s one has no rows of several calls; make it with the sink callgraph or "
		       "callgraph-flat",
		       graph[OLD] ? "new" : "old");
	else if (!take_graph(&table, graph[OLD], OLD) || !take_graph(&table, graph[NOW], NOW))
		ca_say("diff: one of them has no rows with a depth, as FILE.json has, and FILE.tree.json has "
		       "not");
	else if ((code = print_table(&table)))
		ca_say("diff: no memory");
	for (size_t i = 0; i < table.rows.n; i++)
		free(((struct row *)table.rows.at)[i].path);
	ca_vec_free(&table.rows);
	json_object_put(table.by_path);
	return code;
}

const struct ca_diff_kind ca_diff_callgraph = {
	.name = "call graph",
	.is = is_callgraph,
	.print = print_callgraph,
};

/* SPDX-License-Identifier: MIT */
/* The call graph as text, Markdown and folded stacks; see callgraph.h. */
#include "core/callgraph.h"
#include "core/path.h"
#include "core/sink_tracks.h"
#include "core/utf8.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 10, CELL = 24, LABEL = 300, INDENT = 100 };
static const struct column {
	const char *name;
	int width;
} columns[COLUMNS] = { { "BEGIN", 14 }, { "COUNT", 10 }, { "DEPTH", 5 }, { "SUM", 15 },    { "MEAN", 14 },
		       { "MIN", 14 },   { "MAX", 14 },   { "VAR", 12 },  { "STDDEV", 14 }, { "% SELF", 6 } };

/* Where to, and how. */
struct page {
	const struct ca_callgraph *graph;
	FILE *file;
	bool markdown;
	int width; /* of labels */
};

static const struct ca_callgraph_thread *thread_at(const struct ca_callgraph *graph, uint32_t i)
{
	return (const struct ca_callgraph_thread *)graph->threads.at + i;
}

/* `|all>>> |_inner`, as far to the right as it lies deep. */
static void label_of(const struct ca_callgraph *graph, const struct ca_callgraph_row *row, char text[LABEL])
{
	unsigned indent = row->depth > 1 ? 2 * (row->depth - 1) : 0;
	char who[16] = "all";

	if (row->thread != graph->merged)
		snprintf(who, sizeof who, "%" PRIu32, thread_at(graph, row->thread)->from.thread_index);
	snprintf(text, LABEL, "|%s>>> %*s%s%s", who, (int)(indent < INDENT ? indent : INDENT), "",
		 row->depth ? "|_" : "", row->label);
}

static void cells_of(const struct page *page, const struct ca_callgraph_row *row, char cell[COLUMNS][CELL])
{
	double variance = ca_callgraph_variance(row);

	snprintf(cell[0], CELL, "%" PRIu64, row->begin - page->graph->begin);
	snprintf(cell[1], CELL, "%" PRIu64, row->count);
	snprintf(cell[2], CELL, "%" PRIu32, row->depth);
	snprintf(cell[3], CELL, "%" PRIu64, row->sum);
	snprintf(cell[4], CELL, "%.1f", row->mean);
	snprintf(cell[5], CELL, "%" PRIu64, row->min);
	snprintf(cell[6], CELL, "%" PRIu64, row->max);
	snprintf(cell[7], CELL, "%.6g", variance);
	snprintf(cell[8], CELL, "%.1f", sqrt(variance));
	snprintf(cell[9], CELL, "%.1f", ca_callgraph_self(row));
}

static void put_label(const struct page *page, const char *text)
{
	int left = page->width;

	fputs(page->markdown ? "| " : "", page->file);
	for (; *text; left--) {
		if (page->markdown && *text == '|')
			putc('\\', page->file);
		text = ca_utf8_put(page->file, text);
	}
	for (; !page->markdown && left > 0; left--)
		putc(' ', page->file);
}

static void put_cells(const struct page *page, const char *(*text)(size_t, void *), void *of)
{
	/* when it began says something of single calls only */
	for (size_t i = page->graph->form != CA_CALLGRAPH_TIMELINE; i < COLUMNS; i++)
		fprintf(page->file, page->markdown ? " | %*s" : " %*s", page->markdown ? 0 : columns[i].width,
			text(i, of));
	fputs(page->markdown ? " |\n" : "\n", page->file);
}

static const char *cell_at(size_t i, void *of)
{
	return ((char(*)[CELL])of)[i];
}

static const char *name_at(size_t i, void *of)
{
	(void)of;
	return columns[i].name;
}

static const char *rule_at(size_t i, void *of)
{
	(void)i;
	(void)of;
	return "--:";
}

static void put_head(const struct page *page)
{
	put_label(page, "LABEL");
	put_cells(page, name_at, NULL);
	if (page->markdown) {
		put_label(page, ":--");
		put_cells(page, rule_at, NULL);
	}
}

static void put_rows(const struct page *page, uint32_t thread)
{
	const struct ca_callgraph_row *row =
		ca_callgraph_get(page->graph, thread_at(page->graph, thread)->first);
	char text[LABEL], cell[COLUMNS][CELL];

	for (; row; row = ca_callgraph_after(page->graph, row)) {
		label_of(page->graph, row, text);
		cells_of(page, row, cell);
		put_label(page, text);
		put_cells(page, cell_at, cell);
	}
}

static void set_width(struct page *page)
{
	char text[LABEL];

	page->width = 24;
	for (uint32_t i = 0; i < page->graph->rows.n; i++) {
		int n = 0;

		label_of(page->graph, ca_callgraph_get(page->graph, i), text);
		for (const char *at = text; *at; at++)
			n += ((unsigned char)*at & 0xc0) != 0x80;
		page->width = page->width > n ? page->width : n;
	}
}

/* What a reader has to know of the figures, a line each. */
static void put_notes(const struct page *page)
{
	const struct ca_callgraph *graph = page->graph;
	const char *line = page->markdown ? "- " : "";
	char buffer[CA_SINK_KEY_NAME];

	fprintf(page->file, "%scall graph of %zu threads: wall_clock, lengths in ns", line, graph->shown.n);
	if (graph->open)
		fprintf(page->file, "; %" PRIu64 " bursts did not end", graph->open);
	if (graph->ends)
		fprintf(page->file, "; %" PRIu64 " ended without a beginning", graph->ends);
	if (graph->left_out)
		fprintf(page->file, "; %" PRIu64 " calls found no row, and their time is their callers'",
			graph->left_out);
	putc('\n', page->file);
	for (uint32_t key = 0; key < graph->hot.n; key++) {
		uint64_t calls = ca_callgraph_throttled(graph, key);

		if (!calls)
			continue;
		fprintf(page->file, "%sthrottled: ", line);
		for (const char *at = ca_sink_key_name(graph->dict, key, buffer); *at;)
			at = ca_utf8_put(page->file, at);
		fprintf(page->file,
			": %" PRIu64 " calls took less than %d ns on average; further ones are not counted, "
			"and their time is their callers'\n",
			calls, CA_RINGS_SHORT);
	}
	fputs(page->markdown ? "\n" : "", page->file);
}

static void put_page(struct page *page)
{
	const struct ca_callgraph *graph = page->graph;
	const uint32_t *shown = graph->shown.at;

	set_width(page);
	put_notes(page);
	put_head(page);
	if (graph->merged != CA_CALLGRAPH_NONE)
		put_rows(page, graph->merged);
	for (size_t i = 0; i < graph->shown.n; i++)
		put_rows(page, shown[i]);
}

/* `main;solve;relax 1200`: what was spent in each row itself, ns, of all threads. */
static void put_folded(const struct ca_callgraph *graph, FILE *file)
{
	const uint32_t *shown = graph->shown.at;
	uint32_t *path = calloc(CA_CALLGRAPH_DEPTH + 2, sizeof *path);

	for (size_t i = 0; path && i < graph->shown.n; i++) {
		const struct ca_callgraph_row *row =
			ca_callgraph_get(graph, thread_at(graph, shown[i])->first);

		for (; row; row = ca_callgraph_after(graph, row)) {
			uint64_t self = row->sum > row->inner ? row->sum - row->inner : 0;

			path[row->depth] = (uint32_t)(row - (struct ca_callgraph_row *)graph->rows.at);
			for (uint32_t at = 0; self && at <= row->depth; at++) {
				const char *text = ca_callgraph_get(graph, path[at])->label;

				fputs(at ? ";" : "", file);
				while (*text)
					text = *text == ';' ? (putc(':', file), text + 1)
							    : ca_utf8_put(file, text);
			}
			if (self)
				fprintf(file, " %" PRIu64 "\n", self);
		}
	}
	free(path);
}

void ca_callgraph_write(const struct ca_callgraph *graph, const char *path, FILE *file)
{
	struct page page = { graph, file, path && ca_path_ends(path, ".md"), 0 };

	if (path && ca_path_ends(path, ".json"))
		ca_callgraph_write_json(graph, file, ca_path_ends(path, ".tree.json"));
	else if (path && ca_path_ends(path, ".folded"))
		put_folded(graph, file);
	else
		put_page(&page);
}

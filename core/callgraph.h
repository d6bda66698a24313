/* SPDX-License-Identifier: MIT */
/* The call graph of bursts: who lay inside whom, how often, and how long. Made of events in the order of
 * each thread's time, written when the run is over. For the sinks of core/sink_callgraph.c.
 *
 * A row is a key inside a row: its name, and that of its value where it has one other than 1. Lengths are
 * in ns. Driver's process, one thread. */
#ifndef CA_CORE_CALLGRAPH_H
#define CA_CORE_CALLGRAPH_H
#include "core/dict.h"
#include "core/laps.h"
#include "core/map.h"
#include "core/sink.h"
#include "core/vec.h"
#include <stdio.h>

enum ca_callgraph_form {
	CA_CALLGRAPH_TREE,    /* a row for each key inside each row */
	CA_CALLGRAPH_FLAT,    /* a row for each key */
	CA_CALLGRAPH_TIMELINE /* a row for each call */
};

#define CA_CALLGRAPH_NONE UINT32_MAX
enum {
	CA_CALLGRAPH_ROWS = 1 << 18, /* of all threads; what finds none is counted */
	CA_CALLGRAPH_DEPTH = 1024    /* the same */
};

/* Mean and m2 as Welford has them: m2 is the sum of squared distances from the mean. */
struct ca_callgraph_row {
	char *label;
	uint32_t above, first, next; /* rows */
	uint32_t recent;             /* that was found last inside it */
	uint32_t depth, thread;      /* thread: number in .threads */
	uint32_t key;
	bool open;      /* when its thread was over */
	uint64_t value; /* that has a name; else 1 */
	uint64_t begin; /* of the first call */
	uint64_t count, sum, min, max, last;
	uint64_t inner; /* of the sum, what lies in the rows inside */
	double mean, m2;
};

struct ca_callgraph_thread {
	struct ca_source from;
	char *name;
	uint64_t last;        /* time of its last event */
	uint32_t first;       /* row */
	uint32_t recent;      /* the outermost one that was found last */
	struct ca_vec frames; /* what is open, the outermost first */
};

struct ca_callgraph {
	enum ca_callgraph_form form;
	const struct ca_dict *dict;
	struct ca_vec rows, threads, hot; /* hot: by key */
	struct ca_vec shown;              /* numbers of the threads that have rows, by index; at the end */
	struct ca_map by_place, by_thread, by_lap;
	uint32_t merged;     /* all threads in one, the last of .threads; NONE: there is only one, or each
			      * call has its row */
	uint64_t begin;      /* time of the first burst */
	uint64_t open, ends; /* bursts without an end, or without a beginning */
	uint64_t left_out;   /* calls that found no row */
};

/* Keys with so many calls and more, which take less than CA_RINGS_SHORT on average, are not looked at any
 * further. 0, as at the start: all are. */
void ca_callgraph_throttle(uint64_t calls);

void ca_callgraph_init(struct ca_callgraph *graph, enum ca_callgraph_form form, const struct ca_dict *dict);
void ca_callgraph_fini(struct ca_callgraph *graph);
void ca_callgraph_take(struct ca_callgraph *graph, const struct ca_source *from, const struct ca_event *event,
		       size_t n);
/* What was counted where it was raised: as ca_callgraph_take of the bursts. Not of timelines. */
void ca_callgraph_add(struct ca_callgraph *graph, const struct ca_source *from, const struct ca_lap *lap,
		      uint32_t first, size_t n);
void ca_callgraph_name(struct ca_callgraph *graph, const struct ca_source *from, const char *name);
/* How many calls of the key were counted before it was throttled; 0: it is not. */
uint64_t ca_callgraph_throttled(const struct ca_callgraph *graph, uint32_t key);
/* What is still open ends with its thread's last event; threads are merged; rows get their order: the
 * longest first, or that of time where each call has one. Nothing is taken from then on. */
void ca_callgraph_end(struct ca_callgraph *graph);

/* As the ending of `path` wants it: .json, .tree.json, .md, .folded, else text; NULL is text. */
void ca_callgraph_write(const struct ca_callgraph *graph, const char *path, FILE *file);
void ca_callgraph_write_json(const struct ca_callgraph *graph, FILE *file, bool tree);

/* For both of them. Percent of a row that lies in none inside it; its variance. */
double ca_callgraph_self(const struct ca_callgraph_row *row);
double ca_callgraph_variance(const struct ca_callgraph_row *row);
/* The next row of the same thread, each before those inside it; NULL: that was the last. */
const struct ca_callgraph_row *ca_callgraph_after(const struct ca_callgraph *graph,
						  const struct ca_callgraph_row *row);
static inline const struct ca_callgraph_row *ca_callgraph_get(const struct ca_callgraph *graph, uint32_t row)
{
	return row == CA_CALLGRAPH_NONE ? NULL : (const struct ca_callgraph_row *)graph->rows.at + row;
}

#endif

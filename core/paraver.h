/* SPDX-License-Identifier: MIT */
/* What the parts of the paraver sink share while they write the three files of a trace: labels
 * (paraver_labels.c), records (paraver_records.c) and the sink itself. Driver's process, one thread.
 *
 * The records of a .prv are in the order of time. There is one stream of states and one of events for
 * each thread, and one of communications; each is in order, and the earliest of all is written next.
 * Processes are tasks of application 1, in the order of their indices; causal itself is application 2.
 * Numbers of types are made of the names of keys, so that they mean the same in every trace. */
#ifndef CA_CORE_PARAVER_H
#define CA_CORE_PARAVER_H
#include "core/map.h"
#include "core/sink_file.h"
#include "core/trace.h"
#include <stdio.h>

/* Types of events: sub-states of the key `state` as Nanos++ numbers them; those of keys begin there. */
enum { CA_PARAVER_SUBSTATE = 9000004, CA_PARAVER_FIRST = 9200000, CA_PARAVER_TYPES = 700000 };

struct ca_paraver_place {
	unsigned application, task, thread; /* from 1 */
};

struct ca_paraver_message {
	uint64_t send, receive; /* times */
	const struct ca_trace_thread *from, *to;
	uint32_t key, send_cpu, receive_cpu;
};

struct ca_paraver {
	const struct ca_trace *trace;
	struct ca_sink_file prv;
	struct ca_paraver_place *place; /* of the trace's threads */
	const struct ca_trace_thread **by_place;
	uint64_t first, last;                     /* times */
	uint32_t state, cpu;                      /* keys; 0: there is none */
	uint32_t cpus;                            /* the highest number of one */
	uint32_t *type, *used;                    /* of the dictionary's keys */
	struct ca_map unknown;                    /* the other keys, plus 1 */
	struct ca_map flows;                      /* index into sent[] */
	struct ca_paraver_message *sent, **order; /* order: the whole ones by the time they were sent */
	size_t sent_count, whole, order_at;
};

/* False, here and below: no memory. */
bool ca_paraver_labels_number(struct ca_paraver *w);
uint32_t ca_paraver_labels_type(struct ca_paraver *w, uint32_t key);
/* The first line of the .prv, in two parts. */
void ca_paraver_labels_head(struct ca_paraver *w);
bool ca_paraver_labels_places(struct ca_paraver *w);
void ca_paraver_labels_pcf(struct ca_paraver *w, FILE *file);
void ca_paraver_labels_row(struct ca_paraver *w, FILE *file);

/* A first look at all of it: cpus, and what goes from thread to thread. */
void ca_paraver_records_survey(struct ca_paraver *w, const struct ca_trace_thread *thread);
bool ca_paraver_records_order(struct ca_paraver *w);
bool ca_paraver_records_put(struct ca_paraver *w);

#endif

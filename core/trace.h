/* SPDX-License-Identifier: MIT */
/* A trace on disk: a folder with one file of events for each thread, and their names. What the binary
 * sink writes, and `causal convert` and the paraver sink read. Driver's process, one thread.
 *
 * thread-P-T.bin, P and T being the indices of process and thread: a header, then events as they are in
 * memory, in the order of their time. names: a text, fields between tabs, bytes in them escaped as %XX:
 *   key NUMBER LEVEL COUNTER NAME DESCRIPTION, value KEY NUMBER NAME, process INDEX NAME,
 *   thread INDEX NAME */
#ifndef CA_CORE_TRACE_H
#define CA_CORE_TRACE_H
#include "core/dict.h"
#include "core/sink.h"
#include "core/vec.h"

#define CA_TRACE_MAGIC "causaltr"
enum { CA_TRACE_VERSION = 1, CA_TRACE_ORDER = 0x01020304 /* of bytes */ };

struct ca_trace_header {
	char magic[8];
	uint32_t version, order;
	uint32_t header_size, event_size; /* bytes */
	uint64_t events;                  /* that were written */
	struct ca_source from;
	uint64_t wall; /* when it was begun, seconds of the calendar */
	uint64_t spare;
};

struct ca_trace_thread {
	struct ca_source from;
	char *path;
	uint64_t events;            /* that can be read */
	uint64_t left_out;          /* that were written, and are not there */
	unsigned torn;              /* bytes at the end that are no whole event; they are left out, too */
	uint64_t wall, first, last; /* first and last: times; 0 without events */
};

struct ca_trace {
	struct ca_dict *dict;
	struct ca_trace_thread *thread; /* by index */
	size_t threads;
	struct ca_vec names; /* of processes and threads: struct ca_trace_name */
	uint32_t *key;       /* of the dictionary, by the file's */
	size_t keys;
	bool names_missing;
	unsigned headless; /* files whose header was not written, or not wholly; they are left out */
	int lock;          /* the folder; -1: none */
};

struct ca_trace_name {
	uint32_t index;
	bool process;
	char *name;
};

/* Reads the headers and names, and looks at every event. CA_ERR_NOT_FOUND: there is no trace;
 * CA_ERR_FORMAT: the text has the file and the offset of what is wrong. What a torn file lacks is no
 * error: the members say so. */
enum ca_status ca_trace_open(struct ca_trace **trace, const char *dir, struct ca_err *err);
void ca_trace_free(struct ca_trace *trace); /* NULL is fine */

enum { CA_TRACE_BUFFER = 64 };
/* One place in the file of one thread. Starts as {.trace, .thread}. */
struct ca_trace_cursor {
	const struct ca_trace *trace;
	const struct ca_trace_thread *thread;
	uint64_t next; /* event to be read */
	unsigned at, n;
	struct ca_event event[CA_TRACE_BUFFER];
};
/* The next event, which stays the next until ca_trace_skip. NULL: there is none, or it can no longer be
 * read. */
const struct ca_event *ca_trace_peek(struct ca_trace_cursor *cursor);
void ca_trace_skip(struct ca_trace_cursor *cursor);

/* All names, then all events of enabled keys in the order of their time. */
enum ca_status ca_trace_feed(const struct ca_trace *trace, struct ca_sinks *sinks, struct ca_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Sinks: where events go on the way out.
 *
 * A sink is one file with one struct ca_sink_ops, and one row in core/sinks.def.
 * All callbacks run in the driver's process, on one thread. Any may be NULL. */
#ifndef CA_CORE_SINK_H
#define CA_CORE_SINK_H
#include "core/event.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>

struct ca_dict;
struct ca_lap;

/* Where an event came from. Borrowed for the call. The kernel uses its ids again; the indices
 * are sequent from 1, in the order in which processes and threads came to life, so that they mean
 * the same in the next run. All are 0 for what the conductor itself raises. */
struct ca_source {
	uint32_t process, thread; /* kernel ids */
	uint32_t process_index;   /* among all processes */
	uint32_t thread_index;    /* among all threads of all processes */
};

struct ca_sink_ops {
	const char *name;        /* as in --sinks=NAME */
	const char *description; /* one line */
	const char *extension;   /* of the file that it writes without a target; NULL: none */
	/* target: what stood after "NAME=", or the stem with the extension, or NULL; *state is the
	 * sink's own; context: what ca_sink_open was given: the conductor's struct ca_catalog. */
	enum ca_status (*open)(void **state, const char *target, const struct ca_dict *dict,
			       const void *context, struct ca_err *err);
	/* Of one thread in the order of time; threads come in turns, so between them time goes back.
	 * Keys and values of one call are consecutive events with the same time. */
	void (*events)(void *state, const struct ca_source *from, const struct ca_event *event, size_t n);
	/* Bursts of one thread, counted where they were raised (core/laps.h); only where all open sinks have
	 * this, and then no bursts come by themselves. Keys are the dictionary's. */
	void (*laps)(void *state, const struct ca_source *from, const struct ca_lap *lap, uint32_t first,
		     size_t n);
	/* What they are called from now on; NULL: that did not change. Borrowed. */
	void (*rename)(void *state, const struct ca_source *from, const char *process_name,
		       const char *thread_name);
	/* Is it to get events of the key from now on? NULL: it is. */
	bool (*wants)(void *state, uint32_t key);
	/* CA_ERR_IO with a text: what was lost. The state is gone in any case. */
	enum ca_status (*close)(void *state, struct ca_err *err);
};

/* The i-th that --sinks knows; NULL: there are not so many. */
const struct ca_sink_ops *ca_sink_get(size_t i);
/* NULL: none has that name. */
const struct ca_sink_ops *ca_sink_find(const char *name);
/* The file that it writes for the target: Paraver looks for its three files by their endings. */
void ca_sink_path(const struct ca_sink_ops *ops, const char *target, char *path, size_t size);
/* Is it a specification of known ones? CA_ERR_USAGE: the text says which are. Opens nothing. */
enum ca_status ca_sink_check(const char *spec, struct ca_err *err);

/* How large tasks are drawn from now on: enum ca_node_size (core/settings.h). */
void ca_sink_dot_size(int how);

struct ca_sinks; /* several open sinks that receive the same events; NULL: none */

/* spec: comma-separated names, each optionally "=target"; "" opens none. stem: the beginning of the
 * names of files for which no target is given. The sinks look names up in dict when they need them. */
enum ca_status ca_sink_open(struct ca_sinks **sinks, const char *spec, const char *stem,
			    const struct ca_dict *dict, const void *context, struct ca_err *err);
/* Add one that is open: the same callbacks, state given. */
enum ca_status ca_sink_add(struct ca_sinks *sinks, const struct ca_sink_ops *ops, void *state);
void ca_sink_events(struct ca_sinks *sinks, const struct ca_source *from, const struct ca_event *event,
		    size_t n);
/* Can all of them take laps? Not if there are none. */
bool ca_sink_takes_laps(const struct ca_sinks *sinks);
void ca_sink_laps(struct ca_sinks *sinks, const struct ca_source *from, const struct ca_lap *lap,
		  uint32_t first, size_t n);
void ca_sink_name(struct ca_sinks *sinks, const struct ca_source *from, const char *process_name,
		  const char *thread_name);
/* Is there one that wants them? */
bool ca_sink_wants(const struct ca_sinks *sinks, uint32_t key);
/* All, whatever becomes of them: the first bad status, and the texts of all that lost something. */
enum ca_status ca_sink_close(struct ca_sinks *sinks, struct ca_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Sinks: where events go on the way out.
 *
 * A sink is one file with one struct ca_sink_ops, and one row in core/sinks.def.
 * All callbacks run in the driver's process, on one thread. Any may be NULL. */
#ifndef CA_CORE_SINK_H
#define CA_CORE_SINK_H
#include "core/event.h"
#include "core/status.h"
#include <stddef.h>

struct ca_dict;

/* Where an event came from. Borrowed for the call. */
struct ca_source {
	uint32_t process; /* kernel process id; 0: the conductor itself */
	uint32_t thread;  /* kernel thread id; 0: the conductor itself */
};

struct ca_sink_ops {
	const char *name;        /* as in --sinks=NAME */
	const char *description; /* one line */
	/* target: what stood after "NAME=" or NULL; *state is the sink's own;
	 * context: what ca_sink_open was given: the conductor's struct ca_catalog. */
	enum ca_status (*open)(void **state, const char *target, const struct ca_dict *dict,
			       const void *context, struct ca_err *err);
	void (*events)(void *state, const struct ca_source *from, const struct ca_event *event, size_t n);
	void (*close)(void *state);
};

/* The i-th that --sinks knows; NULL: there are not so many. */
const struct ca_sink_ops *ca_sink_get(size_t i);
/* Is it a specification of known ones? CA_ERR_USAGE: the text says which are. Opens nothing. */
enum ca_status ca_sink_check(const char *spec, struct ca_err *err);

struct ca_sinks; /* several open sinks that receive the same events */

/* spec: comma-separated names, each optionally "=target"; "" opens none. */
enum ca_status ca_sink_open(struct ca_sinks **sinks, const char *spec, const struct ca_dict *dict,
			    const void *context, struct ca_err *err);
/* Add one that is open: the same callbacks, state given. */
enum ca_status ca_sink_add(struct ca_sinks *sinks, const struct ca_sink_ops *ops, void *state);
void ca_sink_events(struct ca_sinks *sinks, const struct ca_source *from, const struct ca_event *event,
		    size_t n);
void ca_sink_close(struct ca_sinks *sinks); /* NULL is fine */

#endif

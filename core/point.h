/* SPDX-License-Identifier: MIT */
/* The session's table of progress points: finding or adding a row. Both sides use it: the
 * runtime for the points that code names itself, the conductor for those of the command line. */
#ifndef CA_CORE_POINT_H
#define CA_CORE_POINT_H
#include "core/status.h"
#include <stdatomic.h>
#include <stdint.h>

enum { CA_MAX_POINTS = 128 };

/* Of rows in the session's tables. */
enum ca_slot_state { CA_SLOT_FREE, CA_SLOT_CLAIMED, CA_SLOT_LIVE };

enum ca_point_kind { CA_POINT_THROUGHPUT = 1, CA_POINT_BEGIN, CA_POINT_END };
/* What the notes of causal.h's macros call it: the kind by its provider's name; 0: not one of them. */
CA_SIGSAFE enum ca_point_kind ca_point_kind_of(const char *provider);
/* A progress point. Total visits = shared + the sum of count[] over all slots. */
struct ca_progress_point {
	_Atomic uint32_t state; /* enum ca_slot_state */
	uint32_t kind;          /* enum ca_point_kind */
	char name[240];
	/* Coz's struct {count, backoff}; any thread adds with relaxed order */
	_Atomic uint64_t shared;
	uint64_t backoff;
	_Atomic uint64_t trapped; /* visits, of all processes, that cost an int3 */
	uint32_t latency; /* begin and end points: 1 + their row in latency[]; 0: there was none left */
};

struct ca_session;
/* The row of that kind and name, added if need be by compare-and-swap; any thread of any process
 * of the run, at any time. Names are cut to the row's room. NULL: the table is full. */
CA_SIGSAFE struct ca_progress_point *ca_point_get(struct ca_session *session, enum ca_point_kind kind,
						  const char *name);

#endif

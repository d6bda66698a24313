/* SPDX-License-Identifier: MIT */
/* The S log as the conductor reads it: for how long at least one thread was in S.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_SELECTION_LOG_H
#define CA_CAUSAL_CONDUCTOR_SELECTION_LOG_H
#include <stdbool.h>
#include <stdint.h>

struct ca_session;
struct ca_selection_log;

struct ca_selection_log_sum {
	uint64_t s_time; /* ns of the window in which S was active; sampled: their estimate */
	uint64_t
		still; /* so much S time would have delayed the run by as much as all of it stood still, ns */
	uint64_t probes;  /* ... as S's probes did, while it held them up, ns */
	uint64_t entries; /* threads that entered S, or hits */
	bool overflow;    /* entries were lost: s_time is not known */
};

struct ca_selection_log *ca_selection_log_new(struct ca_session *session);
void ca_selection_log_free(struct ca_selection_log *log);
/* A new selection: forget everything, read on from its first entry. */
void ca_selection_log_restart(struct ca_selection_log *log, uint64_t first);
/* Take in what has been appended since; often enough that the log does not wrap. Returns
 * how many there were, those that were lost included. */
uint64_t ca_selection_log_read(struct ca_selection_log *log);
/* S time in [start, end), then forget what is older than end. Entries that tell of the past
 * may arrive a little late: call this after the cool-off. */
struct ca_selection_log_sum ca_selection_log_sum(struct ca_selection_log *log, uint64_t start, uint64_t end);
/* The same as far as is known by now; nothing is forgotten. 0 also where there is no memory. */
struct ca_selection_log_sum ca_selection_log_peek(struct ca_selection_log *log, uint64_t start, uint64_t end);

#endif

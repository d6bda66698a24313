/* SPDX-License-Identifier: MIT */
/* The progress line: which run, what it does, what is known so far, and the time to go. */
#ifndef CA_DRIVER_PROGRESS_LINE_H
#define CA_DRIVER_PROGRESS_LINE_H
#include "causal/conductor/conductor.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_progress_line {
	bool shown, terminal;
	bool json;                     /* an object per line instead */
	uint64_t budget;               /* of all runs, ns; 0: none */
	uint64_t begun;                /* of the first run, ns; 0: not yet */
	size_t total, finished;        /* total 0: nobody knows how many */
	size_t least;                  /* ... but these, whatever the budget */
	uint64_t started;              /* of the open run, ns */
	uint64_t last;                 /* time of the last line, ns */
	uint64_t told;                 /* ... of the last one of a run */
	uint64_t spent;                /* by finished runs, ns */
	uint64_t experiments, dropped; /* of finished runs */
};

void ca_progress_line_init(struct ca_progress_line *progress, size_t total, bool shown);
void ca_progress_line_begin(struct ca_progress_line *progress);
/* Rewrites the line on a terminal, a few times a second. */
void ca_progress_line_update(struct ca_progress_line *progress, const struct ca_conductor_status *status);
/* A line where there is no terminal: for each of the first runs and for the last one, else every few seconds. */
void ca_progress_line_end(struct ca_progress_line *progress, const struct ca_conductor_status *status);

/* The time until all runs have ended, `elapsed` ns after the open one began, from the mean of the
 * finished ones; "unknown time" before there is one. */
void ca_progress_line_to_go(const struct ca_progress_line *progress, uint64_t elapsed, char *buffer,
			    size_t size);
/* "8 s", "1 min 20 s", "2 h 5 min" */
void ca_progress_line_time(double seconds, char *buffer, size_t size);

#endif

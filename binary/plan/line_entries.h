/* SPDX-License-Identifier: MIT */
/* Where in the code of a line its visits are to be counted. Driver's process. */
#ifndef CA_BINARY_PLAN_LINE_ENTRIES_H
#define CA_BINARY_PLAN_LINE_ENTRIES_H
#include "binary/index/index.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_text; /* of the module: binary/plan/text.h */

/* `run` holds the stretches of code, sorted, that one copy of a line (or of an inlined function)
 * consists of, all within the function [low, high). Fills out with the addresses that one
 * execution passes once: what only continues an execution is left out, and so is what a loop
 * does before its first round where the rest of the line is in the loop. Where the code cannot
 * be decoded: all runs' first addresses. loops: a loop in the line itself counts by its rounds
 * (false: by its entry). Returns how many, at most max. */
size_t ca_line_entries_find(struct ca_text *text, uint64_t low, uint64_t high,
			    const struct ca_index_span *run, size_t runs, bool loops, uint64_t *out,
			    size_t max);
/* Does whoever executes `from` reach `to` next, by instructions that follow each other, and
 * nobody else reach `to` by a direct jump in [low, high)? Both begin instructions. */
bool ca_line_entries_straight(struct ca_text *text, uint64_t low, uint64_t high, uint64_t from, uint64_t to);

#endif

/* SPDX-License-Identifier: MIT */
/* The loops of a function: where each round begins, and which code belongs to it. Driver's
 * process. */
#ifndef CA_BINARY_PLAN_LOOPS_H
#define CA_BINARY_PLAN_LOOPS_H
#include "binary/index/index.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_text; /* of the module: binary/plan/text.h */

enum { CA_LOOP_SPANS = 8 };
struct ca_loop {
	uint64_t head;                            /* the instruction that each round passes once */
	struct ca_index_span span[CA_LOOP_SPANS]; /* its code, sorted; the last one may hold more */
	unsigned spans;
	unsigned insns;
	bool calls; /* other code, by any kind of call */
};

/* The loops of the function [low, high), longest stretch of code first; returns how many, at most
 * max. None where its code cannot be decoded. */
size_t ca_loops_find(struct ca_text *text, uint64_t low, uint64_t high, struct ca_loop *out, size_t max);
/* Is the address in the code of the loop? */
bool ca_loops_cover(const struct ca_loop *loop, uint64_t address);

#endif

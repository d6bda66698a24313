/* SPDX-License-Identifier: MIT */
/* What a thread publishes of itself while S is timed by the fine sampler: code that the runtime
 * generates (causal/runtime/patch_code.c) writes here at each entry and exit of S, without a call.
 *
 * In the session: a thread that takes a hit asks all others here whether they are in S. Times are readings of the
 * time-stamp counter. */
#ifndef CA_CORE_FINE_H
#define CA_CORE_FINE_H
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Written by the thread itself, but for `exempt`. The generated code knows these offsets. */
struct ca_fine {
	_Alignas(64) _Atomic uint64_t outer; /* stack pointer of its outermost activation of S; 0: not in S */
	_Atomic uint64_t entered;            /* it began then; stands before `outer` does */
	_Atomic uint64_t left;               /* the last one that is over ended then */
	_Atomic int64_t sum;                 /* cycles in S since the last hit ... */
	_Atomic int64_t limit;               /* ... and how many of them make the next one */
	_Atomic uint32_t visits;             /* of S; also where each is logged */
	_Atomic uint32_t
		passes; /* of its exits by who was not in S: at edges these are ways of others, too */
	_Atomic uint64_t exempt;    /* ns of S time of others, ever, at which it was in S too: added
					      * by whoever took the hit, before the hit is in the log */
	_Atomic uint64_t selection; /* selection.seq that all this belongs to */
	/* ... in another line: so many visits are to come that are counted only, and have no times; 0: each has */
	_Atomic uint32_t counting;
};
enum {
	CA_FINE_ENTERED = offsetof(struct ca_fine, entered),
	CA_FINE_LEFT = offsetof(struct ca_fine, left),
	CA_FINE_SUM = offsetof(struct ca_fine, sum),
	CA_FINE_LIMIT = offsetof(struct ca_fine, limit),
	CA_FINE_VISITS = offsetof(struct ca_fine, visits),
	CA_FINE_PASSES = offsetof(struct ca_fine, passes),
	CA_FINE_COUNTING = offsetof(struct ca_fine, counting)
};

#endif

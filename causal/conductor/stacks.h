/* SPDX-License-Identifier: MIT */
/* The stacks of a sweep, added up: a tree of regions, outermost at its root. It says which of them a person
 * can change (doc/METHOD.md, section 11). Numbers in, numbers out: no names, no files.
 * Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_STACKS_H
#define CA_CAUSAL_CONDUCTOR_STACKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_stacks;

/* NULL: no memory. */
struct ca_stacks *ca_stacks_new(void);
void ca_stacks_free(struct ca_stacks *stacks);
/* A sample of `weight` periods; regions from the innermost to the outermost, none twice. waiting: the
 * thread was not on a CPU, which makes nothing a row that only holds others: event loops wait. spinning: it was, and the
 * innermost region waited for another thread, which is no work of its own either. */
void ca_stacks_add(struct ca_stacks *stacks, const uint32_t *region, unsigned n, unsigned weight,
		   bool waiting, bool spinning);
/* The region belongs to a runtime that has threads of its own call the code of others (OpenMP's). Whoever
 * made such a team has all of that code's samples, wherever they are; what is called from here is no other
 * caller's, and the runtime's own functions that only hold others can be changed by nobody. */
void ca_stacks_set_team(struct ca_stacks *stacks, uint32_t region);
/* A run begins: its own counts start at 0. */
void ca_stacks_begin_run(struct ca_stacks *stacks);

/* Percent of its samples: code that has less for itself does its work in what it calls. */
enum { CA_STACKS_NO_OWN = 5 };
/* ... and code that has so much of them in loops that wait for other threads does nothing else. */
enum { CA_STACKS_SPIN = 80 };

enum ca_stacks_role {
	CA_STACKS_SMALL,    /* too few samples to matter */
	CA_STACKS_ROW,      /* to be tried */
	CA_STACKS_VIA,      /* has hardly any samples that are not another's, further in */
	CA_STACKS_CONTAINS, /* only holds others that are tried */
	CA_STACKS_SPINS     /* waits for other threads, and is no faster if it is */
};

/* One region. Counts are of periods, over all runs. */
struct ca_stacks_code {
	uint32_t region;
	enum ca_stacks_role role;
	uint64_t samples, own; /* on the stack; innermost */
	double depth;          /* regions around it, on average */
	uint32_t row;          /* VIA: whose, else 0 */
};
/* All that are not small, those with the largest share first. Borrowed until the next call. */
size_t ca_stacks_judge(struct ca_stacks *stacks, const struct ca_stacks_code **code);
/* As it was judged last: periods with `inner` inside of `outer`; both not small. */
uint64_t ca_stacks_inside(const struct ca_stacks *stacks, uint32_t outer, uint32_t inner);
/* Of all runs, with a region on the stack. */
uint64_t ca_stacks_total(const struct ca_stacks *stacks);
/* Periods of this run with the region innermost; spinning: that waited for another thread there. */
uint64_t ca_stacks_own(const struct ca_stacks *stacks, uint32_t region, bool spinning);
/* The most frequent whole stacks of this run, at most `most`: told outermost region first. */
void ca_stacks_tell(const struct ca_stacks *stacks, size_t most,
		    void (*told)(void *context, const uint32_t *region, size_t n, uint64_t count),
		    void *context);

#endif

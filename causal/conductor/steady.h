/* SPDX-License-Identifier: MIT */
/* Is what experiments inside a run see the rate that would stay? Numbers in, doubts out; kept for all
 * runs of a sweep. Driver's process, one thread; doc/METHOD.md, section 8.
 *
 * A stage behind a long queue that gets faster lives on what is stored, and the experiment is over before
 * that is used up. Then the program spends less CPU time per visit than at 0 %, where the queue fills
 * again: the stages before the queue do not keep up. A stage before a queue fills it, and then it is
 * the experiments at 0 % that live on it. But work per visit also changes where threads spin while
 * they wait. What tells the two apart is a run with that speedup from its beginning to its end, and one
 * without: there, nothing is stored that was not made at that speedup. */
#ifndef CA_CAUSAL_CONDUCTOR_STEADY_H
#define CA_CAUSAL_CONDUCTOR_STEADY_H
#include "causal/results/catalog.h"
#include <stdbool.h>
#include <stddef.h>

/* One experiment, as the point saw it that was visited most. */
struct ca_steady_window {
	unsigned percent; /* speedup */
	bool whole;       /* a whole run */
	double cost;      /* ns of virtual time ... */
	double visits;    /* ... that so many visits took */
	double work;      /* ns of CPU time of the program, less what it paid; or where both ends of a
			   * queue have a point, how many arrived while these left; 0: not known */
};

struct ca_steady_logs { /* of work per visit */
	double n, sum, squares;
};
struct ca_steady_region {
	struct ca_steady_logs logs;          /* above 0 % */
	unsigned whole;                      /* whole runs above 0 % */
	double cost[2][101], visits[2][101]; /* inside runs, of whole runs; by percent */
	enum ca_steadiness { CA_STEADY_UNKNOWN, CA_STEADY_IN_DOUBT, CA_STEADY, CA_STEADY_NOT } state;
};
struct ca_steady {
	struct ca_catalog regions;
	struct ca_steady_region *region; /* by id - 1; owned */
	struct ca_steady_logs zeros;     /* of all regions */
};

void ca_steady_fini(struct ca_steady *steady);
void ca_steady_add(struct ca_steady *steady, const struct ca_region *region,
		   const struct ca_steady_window *window);
/* Is there a doubt yet, or too little known by whole runs of what experiments cannot tell? */
bool ca_steady_is_open(const struct ca_steady *steady);
/* A region that whole runs should be made of, at 0 % and beside it at *percent (0: at any): what is seen
 * of it inside runs is in doubt, or known to be wrong. NULL: none. Borrowed until the next call. */
const struct ca_region *ca_steady_wants(const struct ca_steady *steady, unsigned *percent);

#endif

/* SPDX-License-Identifier: MIT */
/* Is what experiments inside a run see the rate that would stay? Numbers in, doubts out; kept for all
 * runs of a sweep. Driver's process, one thread; doc/METHOD.md, section 8.
 *
 * A stage behind a long queue that gets faster lives on what is stored, and the experiment is over before
 * that is used up. Then the program spends less CPU time per visit than at 0 %, where the queue fills
 * again: the stages before the queue do not keep up. A stage before a queue fills it, and then it is
 * the experiments at 0 % that live on it. But work per visit also changes where threads spin while
 * they wait. What tells the two apart is a run with that speedup from its beginning to its end, and one
 * without: there, nothing is stored that was not made at that speedup.
 *
 * Work per visit also changes from place to place of a run, more than that. So an experiment is compared with
 * those at 0 % before and behind it.
 *
 * Whole runs are also made of what is right inside, and varies too much: the plan asks for them. */
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
	double inserted;  /* D, of the time that it took: 0..1 */
};

enum { CA_STEADY_WAITING = 32, CA_STEADY_NEAR = 4 };
struct ca_steady_region {
	struct ca_steady_sums {
		/* Work per visit relative to that at 0 % around it, o: a logarithm; and what was inserted, x. Number, and
		 * sums of squares and products */
		double n, oo, xo, xx;
	} all, near[CA_STEADY_NEAR]; /* above 0 %; and at about a quarter, half, three quarters, all */
	unsigned tries;              /* experiments inside runs above 0 % in which much was inserted ... */
	bool seen;                   /* ... and work per visit is known */
	unsigned whole;              /* whole runs above 0 % */
	unsigned too_long;           /* percent at which a whole run took too long; 0: at none */
	double cost[2][101], visits[2][101]; /* inside runs, of whole runs; by percent */
	enum ca_steadiness { CA_STEADY_UNKNOWN, CA_STEADY_IN_DOUBT, CA_STEADY, CA_STEADY_NOT } state;
	bool coarse;  /* what experiments inside runs see is right, but varies more than whole runs do */
	bool settled; /* whole runs tell enough; set by who knows (sweep.c) */
};
struct ca_steady {
	struct ca_catalog regions;
	struct ca_steady_region *region; /* by id - 1; owned */
	double zero;                     /* logarithm of work per visit in the run's last one at 0 % */
	bool any;                        /* ... there was one */
	double steps, squares; /* from each to the next one: number, and 3/4 of the sum of squares */
	struct ca_steady_waiting {
		uint32_t region;
		unsigned percent;
		double work, inserted;
	} waiting
		[CA_STEADY_WAITING]; /* those since, for the next one at 0 %; if there are too many, the first */
	size_t waits;
	bool cheap; /* whole runs are short, for the time that is left */
	bool left;  /* doubts are left as they are: there is no time for whole runs */
};

void ca_steady_fini(struct ca_steady *steady);
void ca_steady_begin(struct ca_steady *steady); /* a run */
void ca_steady_end(struct ca_steady *steady);
void ca_steady_add(struct ca_steady *steady, const struct ca_region *region,
		   const struct ca_steady_window *window);
/* Of all regions that were tried as often as it takes to decide, and could live on what is stored: are there experiments
 * enough for a doubt to have come up? */
bool ca_steady_is_seen(const struct ca_steady *steady);
/* Is there a doubt yet, or too little known by whole runs of what experiments cannot tell? */
bool ca_steady_is_open(const struct ca_steady *steady);
/* A region that whole runs should be made of, at 0 % and beside it at *percent (0: at any): what is seen
 * of it inside runs is in doubt, or known to be wrong. NULL: none. Borrowed until the next call. */
const struct ca_region *ca_steady_wants(const struct ca_steady *steady, unsigned *percent);
/* Percent, of its next whole run above 0 %: the one that tells most, and hardly takes longer, until there is an interval;
 * then 0, any, for the rest of the curve, unless such a run has taken too long. */
unsigned ca_steady_next(const struct ca_steady *steady, const struct ca_region *region);

/* Experiments inside runs vary so much that whole runs are to be made of it, until they tell enough, and not too many. */
void ca_steady_ask(struct ca_steady *steady, const struct ca_region *region);
/* A whole run at that speedup takes too long: those that are wanted further are at smaller ones. */
void ca_steady_limit(struct ca_steady *steady, const struct ca_region *region, unsigned percent);
/* Was it asked for so? */
bool ca_steady_is_coarse(const struct ca_steady *steady, const struct ca_region *region);

#endif

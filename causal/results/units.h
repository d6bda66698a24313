/* SPDX-License-Identifier: MIT */
/* Is what a progress point counts a unit of work? Runs that were measured as a whole tell, and experiments inside runs.
 * Numbers in, answer out; any thread. */
#ifndef CA_CAUSAL_RESULTS_UNITS_H
#define CA_CAUSAL_RESULTS_UNITS_H
#include "causal/results/estimate.h"
#include "causal/results/results.h"
#include <stdbool.h>
#include <stddef.h>

struct ca_units_run {
	bool zero;      /* no code was sped up in it */
	double visits;  /* of the point */
	double seconds; /* of virtual time, from its beginning to its end */
};

/* Each run passes the point as often, but those in which some code is faster more or less often, as it does where it
 * counts how work was shared out (polls of a scheduler, wake-ups, batches): then the run itself is the unit. A program
 * that runs for a given time has more visits, too, but in runs that are as long as those at 0 %: there the point is
 * right. False also where too few runs tell. */
bool ca_units_are_refuted(const struct ca_units_run *run, size_t n);

/* Inside runs: visits take more or less CPU time where some code is faster, while that code is entered as often as
 * before for a second of CPU time. So it is the visits that are dearer or cheaper, all in all, and CPU time is the unit.
 * Where threads spin, or live on what is stored, the code's own entries stay with the visits instead (doc/METHOD.md,
 * section 8). o: in the order in which they were made. False also where too few tell. */
bool ca_units_are_uneven(const struct ca_observation *o, size_t n);
/* CPU time is the unit of this one, instead of visits; an experiment of which that is not known counts no more. */
void ca_units_count_work(struct ca_observation *o);
/* Time itself is the unit, and this was taken of it. */
void ca_units_take_off(struct ca_observation *o, struct ca_results_taken taken);

#endif

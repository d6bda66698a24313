/* SPDX-License-Identifier: MIT */
/* Is what a progress point counts a unit of work? Runs that were measured as a whole tell. Numbers in, answer out; any
 * thread. */
#ifndef CA_CAUSAL_RESULTS_UNITS_H
#define CA_CAUSAL_RESULTS_UNITS_H
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

#endif

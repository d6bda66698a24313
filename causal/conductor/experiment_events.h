/* SPDX-License-Identifier: MIT */
/* An experiment as events, for sinks that tell what happens when: one group when its measured part
 * begins, one when it has settled. The run file is not made from them (results.h).
 *
 *   BURST_BEGIN EXPERIMENT  index, at its start
 *   POINT SELECTION, SPEEDUP
 *   ...
 *   POINT S_TIME, INSERTED, PAID, OWED, ENTRIES, EXACT
 *   for each progress point: POINT PROGRESS; latency: also ARRIVALS, IN_FLIGHT
 *   BURST_END EXPERIMENT    index, at its end; flags: enum ca_experiment_flag
 *
 * Keys that the dictionary has switched off are left out; without one, none.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_EXPERIMENT_EVENTS_H
#define CA_CAUSAL_CONDUCTOR_EXPERIMENT_EVENTS_H
#include "causal/results/results.h"
#include "core/sink.h"

/* value of PROGRESS, ARRIVALS and IN_FLIGHT (millionths): point << 48 | number */
#define CA_OF_POINT(point, number) ((uint64_t)(point) << 48 | ((uint64_t)(number)&0xffffffffffffu))

struct ca_dict;
void ca_experiment_events_begin(struct ca_sinks *sinks, const struct ca_dict *dict,
				const struct ca_experiment_record *record);
void ca_experiment_events_end(struct ca_sinks *sinks, const struct ca_dict *dict,
			      const struct ca_experiment_record *record);

#endif

/* A finished experiment as a group of events, and back. The conductor emits it once to all
 * sinks; the results sink, the first of them, writes the run file from it.
 *
 *   BURST_BEGIN EXPERIMENT  index, at its start
 *   POINT SELECTION, SPEEDUP, S_TIME, INSERTED, PAID, OWED, ENTRIES, EXACT
 *   for each progress point: POINT PROGRESS; latency: also ARRIVALS, IN_FLIGHT
 *   BURST_END EXPERIMENT    index, at its end; flags: enum ca_experiment_flag
 *
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_EXPERIMENT_EVENTS_H
#define CA_CAUSAL_CONDUCTOR_EXPERIMENT_EVENTS_H
#include "causal/results/results.h"
#include "core/sink.h"

/* value of PROGRESS, ARRIVALS and IN_FLIGHT (millionths): point << 48 | number */
#define CA_OF_POINT(point, number) ((uint64_t)(point) << 48 | ((uint64_t)(number) & 0xffffffffffffu))
#define CA_POINT_OF(value) ((uint32_t)((value) >> 48))
#define CA_NUMBER_OF(value) ((value) & 0xffffffffffffu)

void ca_experiment_emit(struct ca_sinks *sinks, const struct ca_experiment_record *record);

/* The results sink; its state is made by ca_results_sink_new from an open run file, which it
 * borrows, and freed by its close. */
extern const struct ca_sink_ops ca_sink_results;
void *ca_results_sink_new(struct ca_results *results);
/* The first error since the last call, or CA_OK. */
enum ca_status ca_results_sink_error(void *state, struct ca_err *err);

#endif

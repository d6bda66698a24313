/* SPDX-License-Identifier: MIT */
/* What the calling thread has used since its sample before: events that go with this one. Handlers, and ordinary
 * context with the guard held. */
#ifndef CA_CAUSAL_RUNTIME_MEASURE_H
#define CA_CAUSAL_RUNTIME_MEASURE_H
#include "causal/runtime/rt.h"

/* Write one; returns 1. metric: enum ca_metric, or a counter behind these. */
CA_HIDDEN CA_SIGSAFE unsigned ca_measure_add(struct ca_event *event, uint64_t now, unsigned metric,
					     uint64_t value);
/* All that the session wants; returns how many events that is, CA_METRIC_COUNT at most. */
CA_HIDDEN CA_SIGSAFE unsigned ca_measure_all(struct ca_thread *t, uint64_t now, struct ca_event *event);

#endif

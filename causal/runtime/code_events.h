/* SPDX-License-Identifier: MIT */
/* Events that the program's own code raises by the macros of causal_trace.h. */
#ifndef CA_CAUSAL_RUNTIME_CODE_EVENTS_H
#define CA_CAUSAL_RUNTIME_CODE_EVENTS_H
#include "causal/runtime/rt.h"
#include "include/causal_trace.h"

/* What a place in the program raises; the pointer in its module leads here. Ordinary context, or a
 * signal handler of the program's. */
CA_HIDDEN void ca_code_events_raise(const struct causal_trace_key_ *key, const struct causal_trace_key_ *of,
				    unsigned long long value);

#endif

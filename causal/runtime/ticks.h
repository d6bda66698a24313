/* SPDX-License-Identifier: MIT */
/* A thread's ticks, and the switch log that comes with perf's: how many it needs now, and from where. */
#ifndef CA_CAUSAL_RUNTIME_TICKS_H
#define CA_CAUSAL_RUNTIME_TICKS_H
#include "causal/runtime/rt.h"

/* The calling thread joins at `now`. Its clocks and its random numbers are ready. */
CA_HIDDEN void ca_ticks_begin(struct ca_thread *t, uint64_t now);
/* At a tick: at the rate that the selection asks for. Sampled S needs all of them; where S is
 * probed, they only carry what no meeting has paid, and a quarter of them do. */
CA_HIDDEN CA_SIGSAFE void ca_ticks_adjust(struct ca_thread *t);
/* After a wait, not in S: a thread without a tick so far may have worked between those of the kernel only. */
CA_HIDDEN void ca_ticks_look_at_young(struct ca_thread *t, uint64_t now);
/* The calling thread creates one. Outside handlers. */
CA_HIDDEN void ca_ticks_creates(void);

#endif

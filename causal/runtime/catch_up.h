/* SPDX-License-Identifier: MIT */
/* Virtual time catches up with real time while the whole session waits for somebody outside. */
#ifndef CA_CAUSAL_RUNTIME_CATCH_UP_H
#define CA_CAUSAL_RUNTIME_CATCH_UP_H
#include "causal/runtime/rt.h"

/* The calling thread begins a wait; lag: that with which what it waits for is in step, so that virtual time
 * may not catch up below; 0: it waits for others of the session, or for who sends by himself. */
CA_HIDDEN CA_SIGSAFE void ca_catch_up_waits(struct ca_thread *t, uint64_t lag);
/* It has a time limit that is in step with that lag. */
CA_HIDDEN void ca_catch_up_waits_until(struct ca_thread *t, uint64_t lag);
/* It runs. */
CA_HIDDEN CA_SIGSAFE void ca_catch_up_runs(struct ca_thread *t);
/* A timer that the kernel keeps is in step with that lag. */
CA_HIDDEN CA_SIGSAFE void ca_catch_up_timed(uint64_t lag);
/* The thread owes that for a wait, of which virtual time lags by `lag` now: by how much it has caught up
 * instead, ns. 0 while anybody else is at work. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_catch_up(struct ca_thread *t, uint64_t owed, uint64_t lag);

#endif

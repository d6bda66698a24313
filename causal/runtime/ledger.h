/* SPDX-License-Identifier: MIT */
/* The ledger: who owes how much delay, and paying it. */
#ifndef CA_CAUSAL_RUNTIME_LEDGER_H
#define CA_CAUSAL_RUNTIME_LEDGER_H
#include "causal/runtime/rt.h"

/* A new selection or experiment since the last look? */
CA_HIDDEN CA_SIGSAFE void ca_ledger_follow(struct ca_thread *t);
/* Bring the account up to `now`. wait: NULL: the time since the last look was spent
 * running; else how it was spent. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_accrue(struct ca_thread *t, uint64_t now, const enum ca_wait *wait);
/* Pay what is owed unless the thread is in S (then returns at once). Returns the time when that was done. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_pay(struct ca_thread *t);
/* For so long the whole run stands still, and the thread holds its CPU; shorter if it loses it. In an experiment above
 * 0 %, not in S. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_stand_still(struct ca_thread *t, uint64_t ns);
/* At the end of an external wait: pay by waiting on, which takes no CPU from others; while the whole session
 * waits, virtual time catches up instead (catch_up.h). A few small debts are left. Returns how long it
 * slept, ns. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_wait_on(struct ca_thread *t);
/* A wait for a time in virtual time is over; lag: by how much that lags now; length: of the wait, ns, if
 * known. Who has only waited longer has been slowed, too, and counts as if it had been paying: by what
 * the lag has grown since its last such wait, in which it was in step. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_limit(struct ca_thread *t, uint64_t lag, uint64_t length);
/* A wait with a time limit begins, whether it comes to that or not. */
CA_HIDDEN CA_SIGSAFE void ca_ledger_limited(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_ledger_log(enum ca_log_type type, struct ca_thread *t, uint64_t time,
					uint64_t value);
/* A thread that is new: it knows what the others know. */
CA_HIDDEN void ca_ledger_join(struct ca_thread *t, uint32_t creator);
/* By how much virtual time lags behind real time now, ns: D of all experiments so far. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_lag(struct ca_thread *t, uint64_t now);
/* ... and when its account was last brought up. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_lag_then(const struct ca_thread *t);
/* Can more have been inserted than when this thread last looked? Cheap. */
CA_HIDDEN CA_SIGSAFE bool ca_ledger_lag_moves(const struct ca_thread *t);
/* Virtual time since the experiment began, up to `now`, ns. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_ledger_virtual(struct ca_thread *t, uint64_t now);
CA_HIDDEN CA_SIGSAFE bool ca_ledger_open(void); /* an experiment with speedup > 0 is open */

#endif

/* SPDX-License-Identifier: MIT */
/* The fine sampler: S known by probes that only add up its time, and by hits of what they add up. For
 * code that is entered too often for the log. The probes themselves are generated (patch_code.c). */
#ifndef CA_CAUSAL_RUNTIME_FINE_H
#define CA_CAUSAL_RUNTIME_FINE_H
#include "causal/runtime/rt.h"

/* In the constructor: what a probe costs here. */
CA_HIDDEN void ca_fine_init(void);
/* A thread that has just got its record. */
CA_HIDDEN void ca_fine_join(struct ca_thread *t);
/* Is the thread in S, as far as these probes know? */
CA_SIGSAFE static inline bool ca_fine_is_in(const struct ca_thread *t)
{
	return __builtin_expect(atomic_load_explicit(&t->fine->outer, memory_order_relaxed) != 0, 0);
}

/* The hook: S has just been left, and a hit is due, or the selection is another one now. With the guard held,
 * like all that follows. */
CA_HIDDEN CA_SIGSAFE void ca_fine_due(struct ca_thread *t);
/* In S: take what it has come to so far. */
CA_HIDDEN CA_SIGSAFE void ca_fine_tell(struct ca_thread *t);
/* In S, about to wait: out of S meanwhile. Returns what ca_fine_resume is to be given. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_fine_suspend(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_fine_resume(struct ca_thread *t, uint64_t outer);
/* In S no longer: left by longjmp or an exception just now; or at a time that nobody knows. */
CA_HIDDEN CA_SIGSAFE void ca_fine_left(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_fine_forget(struct ca_thread *t);
/* The same for all threads of the process, whose probes have been taken out. */
CA_HIDDEN CA_SIGSAFE void ca_fine_forget_all(void);

#endif

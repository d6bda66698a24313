/* SPDX-License-Identifier: MIT */
/* Hooks of patched code, and placing the sites that call them. */
#ifndef CA_CAUSAL_RUNTIME_PROBE_H
#define CA_CAUSAL_RUNTIME_PROBE_H
#include "causal/runtime/rt.h"

CA_HIDDEN void ca_probe_init(void);
/* Is the thread, with this stack, in S as far as its hooks know? It may have been in it when the
 * sites were placed: once per selection. Of one that goes from stack to stack: each time. */
CA_HIDDEN CA_SIGSAFE void ca_probe_check(struct ca_thread *t, const struct ca_stack *stack);
/* The same before it waits: who does so most of the time has hardly ever a tick. Ordinary context. */
CA_HIDDEN void ca_probe_check_here(struct ca_thread *t);
CA_HIDDEN CA_SIGSAFE void ca_probe_service(void); /* carry out the conductor's patch request */
/* Is there one to be carried out in this process? For those that were blocked, and got no tick. */
CA_SIGSAFE static inline bool ca_probe_is_behind(void)
{
	const struct ca_session *s = ca_rt.session;

	return atomic_load_explicit(&s->process[ca_rt.process].patched, memory_order_relaxed) !=
	       atomic_load_explicit(&s->selection.seq, memory_order_relaxed);
}
CA_HIDDEN void ca_probe_forked(void);

#endif

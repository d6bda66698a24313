/* SPDX-License-Identifier: MIT */
/* Hooks of patched code, and placing the sites that call them. */
#ifndef CA_CAUSAL_RUNTIME_PROBE_H
#define CA_CAUSAL_RUNTIME_PROBE_H
#include "causal/runtime/rt.h"

CA_HIDDEN void ca_probe_init(void);
/* Is the thread, with this stack, in S as far as its hooks know? It may have been in it when the
 * sites were placed: once per selection. Of one that goes from stack to stack: each time. */
CA_HIDDEN CA_SIGSAFE void ca_probe_check(struct ca_thread *t, const struct ca_stack *stack);
CA_HIDDEN CA_SIGSAFE void ca_probe_service(void); /* carry out the conductor's patch request */
CA_HIDDEN void ca_probe_forked(void);

#endif

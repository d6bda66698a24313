/* SPDX-License-Identifier: MIT */
/* What threads look at while they spin, and where the code is that writes there. */
#ifndef CA_CAUSAL_RUNTIME_SPINS_H
#define CA_CAUSAL_RUNTIME_SPINS_H
#include "causal/runtime/rt.h"

/* At a tick, with the thread's stack in t->stack: if it was in a spin loop, its slot says what it looked at there.
 * all: the registers, by the numbers of unwind rows. */
CA_HIDDEN CA_SIGSAFE void ca_spins_look(struct ca_thread *t, const uintptr_t all[16]);
/* At a tick of any thread: if the conductor asks where some code lies, say so. */
CA_HIDDEN CA_SIGSAFE void ca_spins_answer(void);

#endif

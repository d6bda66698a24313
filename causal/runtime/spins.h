/* SPDX-License-Identifier: MIT */
/* What threads look at while they spin, and where the code is that writes there. */
#ifndef CA_CAUSAL_RUNTIME_SPINS_H
#define CA_CAUSAL_RUNTIME_SPINS_H
#include "causal/runtime/rt.h"

/* The thread is at that address. If that is in a spin loop, its slot says what it looks at there. all: the registers, by the
 * numbers of unwind rows; `known`: those of them that are, a bit each. */
CA_HIDDEN CA_SIGSAFE void ca_spins_look(struct ca_thread *t, uintptr_t pc, const uintptr_t all[16],
					unsigned known);
/* At a tick of any thread: if the conductor asks where some code lies, say so. */
CA_HIDDEN CA_SIGSAFE void ca_spins_answer(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Samples of which the driver walks the stack (--unwinder libunwind): what it needs for that goes into the thread's
 * trace ring, in front of the sample. With the guard held; safe in handlers. */
#ifndef CA_CAUSAL_RUNTIME_COPIES_H
#define CA_CAUSAL_RUNTIME_COPIES_H
#include "causal/runtime/rt.h"

/* reg: by DWARF number. After the walk of the stack, whose scratch it uses. */
CA_HIDDEN CA_SIGSAFE void ca_copies_take(struct ca_thread *t, const uintptr_t reg[16], uintptr_t pc);

#endif

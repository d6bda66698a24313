/* SPDX-License-Identifier: MIT */
/* Threads that may be cancelled at any instruction. */
#ifndef CA_CAUSAL_RUNTIME_CANCEL_H
#define CA_CAUSAL_RUNTIME_CANCEL_H
#include "causal/runtime/rt.h"

/* The calling thread may from now on be cancelled anywhere, or no longer; before somebody
 * is cancelled; at each tick. */
CA_HIDDEN void ca_cancel_type(bool anywhere);
CA_HIDDEN void ca_cancel_before(pthread_t target);
CA_HIDDEN CA_SIGSAFE void ca_cancel_service(struct ca_thread *t);

#endif

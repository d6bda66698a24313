/* SPDX-License-Identifier: MIT */
/* Joining a run: at birth, and in the child of a fork. */
#ifndef CA_CAUSAL_RUNTIME_START_H
#define CA_CAUSAL_RUNTIME_START_H
#include "causal/runtime/rt.h"

/* Join the run, once: in our constructor, or before another library's starts a thread. */
CA_HIDDEN void ca_start_once(void);
CA_HIDDEN void ca_start_forked(void); /* in the child of a fork */
/* The process ends: our destructor, or a call that ends it without destructors. */
CA_HIDDEN void ca_start_leave(void);

#endif

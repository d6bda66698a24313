/* SPDX-License-Identifier: MIT */
/* The tick handler. */
#ifndef CA_CAUSAL_RUNTIME_HANDLER_H
#define CA_CAUSAL_RUNTIME_HANDLER_H
#include "causal/runtime/rt.h"

CA_HIDDEN bool ca_handler_install(void);
/* A tick came while a wrapper of a clock call was at work, which is about to return: the sample is its
 * caller's. Not in signal context. */
CA_HIDDEN void ca_handler_late(struct ca_thread *t);

#endif

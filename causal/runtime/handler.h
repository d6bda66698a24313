/* SPDX-License-Identifier: MIT */
/* The tick handler. */
#ifndef CA_CAUSAL_RUNTIME_HANDLER_H
#define CA_CAUSAL_RUNTIME_HANDLER_H
#include "causal/runtime/rt.h"

CA_HIDDEN bool ca_handler_install(void);

#endif

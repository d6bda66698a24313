/* SPDX-License-Identifier: MIT */
/* Can samples come from perf here? Driver's process, whose rights the program inherits. */
#ifndef CA_CAUSAL_CONDUCTOR_BACKEND_H
#define CA_CAUSAL_CONDUCTOR_BACKEND_H
#include "core/status.h"

/* CA_OK, or the text says why not, and what would change it. */
enum ca_status ca_backend_perf(struct ca_err *err);

#endif

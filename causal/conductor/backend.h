/* SPDX-License-Identifier: MIT */
/* Can samples come from perf here, and what does its switch log cost? Driver's process, whose rights the program
 * inherits; its main thread. */
#ifndef CA_CAUSAL_CONDUCTOR_BACKEND_H
#define CA_CAUSAL_CONDUCTOR_BACKEND_H
#include "core/status.h"
#include <stdint.h>

/* CA_OK, or the text says why not, and what would change it. */
enum ca_status ca_backend_perf(struct ca_err *err);
/* ns by which the switch log makes it longer to leave a CPU and come back, where two threads share one, at least; 0: not
 * known. Measured at the first call, some 20 ms. */
uint32_t ca_backend_switch_cost(void);

#endif

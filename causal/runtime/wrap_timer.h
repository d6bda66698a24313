/* SPDX-License-Identifier: MIT */
/* Reading a timer's descriptor. */
#ifndef CA_CAUSAL_RUNTIME_WRAP_TIMER_H
#define CA_CAUSAL_RUNTIME_WRAP_TIMER_H
#include "causal/runtime/rt.h"
#include <sys/types.h>

/* False: it is no timer of ours; else *result and errno are read's. */
CA_HIDDEN bool ca_wrap_timer_read(int fd, void *data, size_t n, ssize_t *result);

#endif

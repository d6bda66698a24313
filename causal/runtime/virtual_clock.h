/* SPDX-License-Identifier: MIT */
/* What the program sees of time: virtual time, v(t) = t - D(t), where D is all that experiments have
 * inserted so far (doc/METHOD.md, "Time"). One clock for all threads and processes of a run, which
 * never goes back; the real one while nothing was delayed. Ordinary context; with guards, as the
 * wrappers. */
#ifndef CA_CAUSAL_RUNTIME_VIRTUAL_CLOCK_H
#define CA_CAUSAL_RUNTIME_VIRTUAL_CLOCK_H
#include "causal/runtime/rt.h"
#include <time.h>

/* clock_gettime: 0, or -1 with errno. Clocks of CPU time are real. A place where debts are paid. */
CA_HIDDEN int ca_virtual_clock(clockid_t clock, struct timespec *now);
/* By how much virtual time lags now, ns. Pays first, but not inside a wait. */
CA_HIDDEN uint64_t ca_virtual_lag(void);

#endif

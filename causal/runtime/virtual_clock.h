/* SPDX-License-Identifier: MIT */
/* What the program sees of time: virtual time, v(t) = t - D(t), where D is all that experiments have
 * inserted so far (doc/METHOD.md, "Time"). One clock for all threads and processes of a run, which
 * never goes back; the real one while nothing was delayed. Ordinary context; with guards, as the
 * wrappers. */
#ifndef CA_CAUSAL_RUNTIME_VIRTUAL_CLOCK_H
#define CA_CAUSAL_RUNTIME_VIRTUAL_CLOCK_H
#include "causal/runtime/rt.h"
#include <time.h>

/* clock_gettime: 0, or -1 with errno. Clocks of CPU time are real. Who owes should pay first, lest his
 * own work seems to have taken no time. */
CA_HIDDEN int ca_virtual_clock(clockid_t clock, struct timespec *now);
/* By how much virtual time lags now, ns. */
CA_HIDDEN uint64_t ca_virtual_lag(void);
/* Does it measure CPU time, or is it none of the usual ones? Those stay real. */
CA_HIDDEN bool ca_virtual_is_of_cpu(clockid_t clock);
/* By how much another clock is ahead of CLOCK_MONOTONIC, ns, at real time `now`. */
CA_HIDDEN int64_t ca_virtual_ahead(clockid_t clock, uint64_t now);

#endif

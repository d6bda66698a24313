/* SPDX-License-Identifier: MIT */
/* Timers that the kernel keeps for the program: they come by virtual time (virtual_clock.h). The kernel
 * is told the real time at which that will be as far as is known, and told again when delays have been
 * inserted meanwhile. Ordinary context, and the tick handler where said. */
#ifndef CA_CAUSAL_RUNTIME_TIMERS_H
#define CA_CAUSAL_RUNTIME_TIMERS_H
#include "causal/runtime/rt.h"
#include <time.h>

enum ca_timers_kind { CA_TIMERS_FD = 1, CA_TIMERS_POSIX, CA_TIMERS_ITIMER };

/* The program has made one; id: descriptor, the kernel's number, or 0. Of a kind and id there is one. */
CA_HIDDEN void ca_timers_made(enum ca_timers_kind kind, long id, clockid_t clock);
CA_HIDDEN void ca_timers_gone(enum ca_timers_kind kind, long id);
/* Arm it. False: it is none that goes by virtual time, so the real function is to be called. Else
 * *result: 0, or -errno. old may be NULL. */
CA_HIDDEN bool ca_timers_set(enum ca_timers_kind kind, long id, bool absolute,
			     const struct itimerspec *wanted, struct itimerspec *old, long *result);
CA_HIDDEN bool ca_timers_get(enum ca_timers_kind kind, long id, struct itimerspec *now);
/* It seems to have expired. True: in virtual time it has not; it is armed once more. Else *times: how
 * often it has, 0: not known. The next expiry then is known to be one to come. */
CA_HIDDEN bool ca_timers_early(enum ca_timers_kind kind, long id, uint64_t *times);
/* A descriptor of that kind seems to be ready to be read. True: in virtual time it is not, and has been armed once more;
 * nothing is taken off it otherwise. */
CA_HIDDEN bool ca_timers_not_yet(int fd);
/* Is there any? Cheap. */
CA_HIDDEN bool ca_timers_any(void);
/* From now on there is none, and no clock is read for them. */
CA_HIDDEN void ca_timers_forget(void);
CA_HIDDEN bool ca_timers_has(enum ca_timers_kind kind, long id);
/* Before a wait, and at ticks: those that send signals are armed anew if delays were inserted. */
CA_HIDDEN CA_SIGSAFE void ca_timers_adjust(uint64_t now, uint64_t lag);

#endif

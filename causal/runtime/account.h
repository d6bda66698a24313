/* SPDX-License-Identifier: MIT */
/* How much S time there was since a thread's last look at the log, and for how much of it the thread owes.
 * Any thread, with its guard held. */
#ifndef CA_CAUSAL_RUNTIME_ACCOUNT_H
#define CA_CAUSAL_RUNTIME_ACCOUNT_H
#include "causal/runtime/rt.h"

enum {
	CA_ACCOUNT_OFFS = 16,     /* off-CPU intervals looked at per stretch of time */
	CA_ACCOUNT_UNSURE = 50000 /* ns by which the CPU clock may be behind for no reason */
};

/* Account for what happened up to `now`; of that, what comes after `end` is nobody's. wait: NULL: the time since
 * the last look was spent running; else how it was spent. */
CA_HIDDEN CA_SIGSAFE void ca_account_bring(struct ca_thread *t, uint64_t now, uint64_t end,
					   const enum ca_wait *wait);
/* The thread's own CPU clock, for those without a switch log. Sets cpu_read, ns, and returns the time that it belongs to:
 * `now`, or if the kernel had to be asked, which costs more than many calls of the program, what it is after that.
 * What the kernel has told in the last 50 us holds, and the thread has been on a CPU since: who has lost it for longer
 * is found out by the next reading. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_account_read_cpu(struct ca_thread *t, uint64_t now);
/* Was the thread with that slot off the CPU at `ns`, not long ago? unknown: the answer where it cannot be told,
 * as of threads of other processes. */
CA_HIDDEN CA_SIGSAFE bool ca_account_was_off(uint32_t number, uint64_t ns, bool unknown);
/* Until no other thread reads that one's switch log, as long as it is a moment: the log may then go. */
CA_HIDDEN CA_SIGSAFE void ca_account_wait_for_readers(struct ca_thread *t);
/* Length of the union of two sorted lists of intervals, ns. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_account_union(const struct ca_interval *x, unsigned nx,
					       const struct ca_interval *y, unsigned ny);

#endif

/* SPDX-License-Identifier: MIT */
/* Shares of a CPU. A scheduler gives the threads that share a CPU equal parts of it, by the CPU time that they have
 * used; in virtual time, a part of that is none: what is saved in S, and what is paid. Who has used less of it than
 * the others of its CPU would get more virtual time than they. So now and then such a thread lets all of the run stand
 * still for a moment, in which it holds its CPU: doc/METHOD.md, section 2. The thread itself, with its guard held; at
 * ticks and meetings. */
#ifndef CA_CAUSAL_RUNTIME_LEVEL_H
#define CA_CAUSAL_RUNTIME_LEVEL_H
#include "causal/runtime/rt.h"

/* At a tick: which part of the time does it wait for a CPU? Makes system calls that open a file. */
CA_HIDDEN CA_SIGSAFE void ca_level_tick(struct ca_thread *t);
/* When it has paid, and is in no wait: is it behind? Then it makes up for that, by 10 ms at most. Returns the time. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_level_make_up(struct ca_thread *t, uint64_t now);

#endif

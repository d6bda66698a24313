/* SPDX-License-Identifier: MIT */
/* What the files of waits share. By wait_told.c the timeline and samples are told of a wait: what the thread does
 * meanwhile, how long it is off a CPU, and who ends it. As wait.h, of which this is a part. */
#ifndef CA_CAUSAL_RUNTIME_WAIT_PARTS_H
#define CA_CAUSAL_RUNTIME_WAIT_PARTS_H
#include "causal/runtime/wait.h"

enum {
	CA_WAIT_NOTHING = 5000, /* ns; so quickly comes back who need not wait */
	CA_WAIT_LOOKS = 16      /* times off a CPU in one wait that are looked at */
};

/* Where somebody wants events: what the thread does from now on, and no longer from now on (ns). */
CA_HIDDEN void ca_wait_told_begin(struct ca_waiting *w);
CA_HIDDEN void ca_wait_told_end(const struct ca_waiting *w, uint64_t now);
/* How long was the thread off a CPU, apart from waits inside this one? ns */
CA_HIDDEN CA_SIGSAFE uint64_t ca_wait_told_off_cpu(const struct ca_waiting *w, uint64_t now);

#endif

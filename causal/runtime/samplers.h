/* SPDX-License-Identifier: MIT */
/* Which samples of a profile are due. */
#ifndef CA_CAUSAL_RUNTIME_SAMPLERS_H
#define CA_CAUSAL_RUNTIME_SAMPLERS_H
#include "causal/runtime/rt.h"

/* Is any sampler of the thread's wanted at this moment? */
CA_HIDDEN CA_SIGSAFE bool ca_samplers_any(const struct ca_thread *t);
/* A tick that stands for so many periods, with its stack in t->stack: a sample, if one is due. */
CA_HIDDEN CA_SIGSAFE void ca_samplers_tick(struct ca_thread *t, uint64_t now, uint64_t weight);
/* Events of --overflow since the last look; 0: the signal is not theirs. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_samplers_overflow(struct ca_thread *t);
/* ... a sample of them, likewise. */
CA_HIDDEN CA_SIGSAFE void ca_samplers_overflowed(struct ca_thread *t, uint64_t now, uint64_t events);

/* The thread begins; its signals end. */
CA_HIDDEN CA_SIGSAFE void ca_samplers_begin(struct ca_thread *t, uint64_t now);
CA_HIDDEN CA_SIGSAFE void ca_samplers_stop(struct ca_thread *t);

#endif

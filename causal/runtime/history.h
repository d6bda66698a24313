/* SPDX-License-Identifier: MIT */
/* Who else is in S at the instant of a sample? It is not known what the others are at, but they leave a history: how
 * often each of them is found in S, and how often just when another thread is. Each layer of S has its own.
 * doc/METHOD.md, section 3. Any thread, with its guard held. */
#ifndef CA_CAUSAL_RUNTIME_HISTORY_H
#define CA_CAUSAL_RUNTIME_HISTORY_H
#include "causal/runtime/rt.h"

/* S is sampled: the thread was looked at, and was in so many layers of S; `times`: for so many looks. */
CA_HIDDEN CA_SIGSAFE void ca_history_looked(struct ca_thread *t, uint64_t now, unsigned layers,
					    uint64_t times);
/* ... by a tick of its own. */
CA_HIDDEN CA_SIGSAFE void ca_history_looked_at_tick(struct ca_thread *t, uint64_t now, unsigned layers,
						    uint64_t times);
/* It was in that one, and stands for so much of its CPU time, ns. Returns how much S time that is, for the log; by what
 * others do not owe of it they are exempt from now on. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_history_hit(struct ca_thread *t, unsigned layer, uint64_t now,
					     uint64_t weight);
/* Another region is selected: that one's history counts, as far as there is one. 0: none. */
CA_HIDDEN CA_SIGSAFE void ca_history_select(struct ca_thread *t, uint32_t region);

#endif

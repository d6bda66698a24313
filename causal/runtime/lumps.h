/* SPDX-License-Identifier: MIT */
/* What a thread owes for samples of S. A sample stands for a period of S; owed at once that is a lump, late at the
 * one meeting and nothing at the next ones. So it is paid over some periods, by each meeting as much as its like have
 * had to pay on average: doc/METHOD.md, section 5. The thread itself, with its guard held; times in ns, what is due in
 * ns of S. */
#ifndef CA_CAUSAL_RUNTIME_LUMPS_H
#define CA_CAUSAL_RUNTIME_LUMPS_H
#include "causal/runtime/rt.h"

/* It is about to meet others there (an address in the program; 0: no place of its own): what is to be paid for
 * samples becomes owed. */
CA_HIDDEN CA_SIGSAFE void ca_lumps_meet(struct ca_thread *t, uint64_t now, uintptr_t site);
/* It has paid there; what came meanwhile is of that place, too. */
CA_HIDDEN CA_SIGSAFE void ca_lumps_paid(struct ca_thread *t, uintptr_t site);
/* At a tick: what no meeting will pay soon. */
CA_HIDDEN CA_SIGSAFE void ca_lumps_tick(struct ca_thread *t, uint64_t now);
/* The thread is about to end: the account at which it pays for the last time is that of the threads before it that have
 * run the same. Returns the place to meet others at; 0: all is owed at once. Then ... */
CA_HIDDEN uintptr_t ca_lumps_last(struct ca_thread *t, uint64_t now);
/* ... it has paid there, and leaves the account to the next one. */
CA_HIDDEN void ca_lumps_leave(struct ca_thread *t);
/* An experiment ends: all of it. */
CA_HIDDEN CA_SIGSAFE void ca_lumps_end(struct ca_thread *t);
/* One begins: nothing is due. For another selection, nothing is known of its places. */
CA_HIDDEN CA_SIGSAFE void ca_lumps_begin(struct ca_thread *t, bool anew);

#endif

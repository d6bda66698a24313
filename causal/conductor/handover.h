/* SPDX-License-Identifier: MIT */
/* Which plain stores hand something over to threads that spin. What one of them looks at is watched for a moment in
 * other threads of its process, with breakpoints of the processor; who writes there is told by its address. Nothing of
 * that is noticed by the program: the breakpoints are perf's, and belong to the driver. Where perf is not allowed,
 * nothing is found. Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_HANDOVER_H
#define CA_CAUSAL_CONDUCTOR_HANDOVER_H
#include "core/session.h"

struct ca_handover;

/* in_vain: how many watches of this sweep have found nothing new since one has; borrowed. Each run has a few, at
 * least. NULL: no memory. */
struct ca_handover *ca_handover_new(struct ca_session *session, unsigned *in_vain);
void ca_handover_free(struct ca_handover *handover); /* NULL is fine */
/* To be called every few ms. True: a thread has handed something over by a store that ends at *end. The same
 * store may be told several times. */
bool ca_handover_step(struct ca_handover *handover, uint64_t now, ca_place *end);
/* Is there something to see within a few ms? */
bool ca_handover_is_busy(const struct ca_handover *handover);
/* That one was new: there may be more. */
void ca_handover_was_new(struct ca_handover *handover);

#endif

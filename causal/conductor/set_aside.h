/* SPDX-License-Identifier: MIT */
/* Samples that are added up later (--use-temporary-files): until then they lie in a file without a name in $TMPDIR.
 * What comes out is the same, since they come back in the same order, and in the same portions.
 * Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_SET_ASIDE_H
#define CA_CAUSAL_CONDUCTOR_SET_ASIDE_H
#include "causal/conductor/sampling.h"
#include "core/status.h"

struct ca_set_aside;

/* For that one, which is borrowed. `most`: bytes; then they are added up, and the file begins anew. */
enum ca_status ca_set_aside_new(struct ca_set_aside **aside, struct ca_sampling *sampling, uint64_t most,
				struct ca_err *err);
void ca_set_aside_free(struct ca_set_aside *aside); /* NULL is fine */
/* Instead of ca_sampling_take and ca_sampling_step. Where the file takes no more, they are added up at once. */
void ca_set_aside_take(struct ca_set_aside *aside, const struct ca_source *from, const struct ca_event *event,
		       size_t n);
void ca_set_aside_step(struct ca_set_aside *aside, uint64_t drained);
/* All that lies there goes on to the sampling. */
void ca_set_aside_empty(struct ca_set_aside *aside);

#endif

/* SPDX-License-Identifier: MIT */
/* --unwinder libunwind: walks the stacks that came as copies (causal/runtime/copies.h). Driver's process, the
 * conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_WALKS_H
#define CA_CAUSAL_CONDUCTOR_WALKS_H
#include "core/event.h"
#include "core/sink.h"
#include "core/status.h"

struct ca_session;
struct ca_walks;

/* session: borrowed. CA_ERR_UNSUPPORTED: built without libunwind. */
enum ca_status ca_walks_new(struct ca_walks **walks, const struct ca_session *session, struct ca_err *err);
void ca_walks_free(struct ca_walks *walks); /* NULL is fine */
/* Events of one thread, as a rings' reader hands them on: the same without the copies, each sample with the frames
 * that libunwind found in place of those that came. Borrowed until the next call. */
const struct ca_event *ca_walks_take(struct ca_walks *walks, const struct ca_source *from,
				     const struct ca_event *event, size_t *n);
struct ca_walks_count {
	uint64_t stacks, same, incomplete; /* same: as by our rows; incomplete: not walked to the end */
};
struct ca_walks_count ca_walks_count(const struct ca_walks *walks);

#endif

/* SPDX-License-Identifier: MIT */
/* Channels on which somebody outside sends by himself, who cannot be slowed: what he sends arrives too
 * early for the dilated world, the more so the more virtual time lags, and is held back here. */
#ifndef CA_CAUSAL_RUNTIME_FEED_H
#define CA_CAUSAL_RUNTIME_FEED_H
#include "causal/runtime/rt.h"

/* About to read from the channel of that name. lag: of virtual time, ns. */
CA_HIDDEN void ca_feed_before(uint64_t key, int fd, uint64_t now, uint64_t lag);
/* `taken` bytes were read, which is all that was wanted: ns until they may be seen. */
CA_HIDDEN uint64_t ca_feed_after(uint64_t key, int fd, uint64_t taken, uint64_t now, uint64_t lag);
/* Something was awaited from him and has come: by how much virtual time lagged when he was in step with us, ns;
 * who was never heard of was so when the wait began, with lag `before`. */
CA_HIDDEN uint64_t ca_feed_in_step(uint64_t key, uint64_t before, uint64_t lag);
/* Something was taken, more than one message for all that is known, which cannot be held back. waited: it
 * was not there when it was asked for. Otherwise, unless it was awaited before that, he may have waited for
 * room, and is taken to be in step. */
CA_HIDDEN void ca_feed_taken(uint64_t key, bool waited, uint64_t lag);
/* Bytes that are there to be read. */
CA_HIDDEN uint64_t ca_feed_unread(int fd);
/* Is he held back by anything? Cheap. */
CA_HIDDEN bool ca_feed_is_known(uint64_t key);
/* He is in step with us: what comes next is not too early. */
CA_HIDDEN void ca_feed_forget(uint64_t key);

#endif

/* SPDX-License-Identifier: MIT */
/* The binaries of a run: the session's modules and their indexes, made on request.
 *
 * Indexing runs in a thread of its own in the driver's process, so that the conductor's
 * heart never stops for it; everything else here is called by the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_OBJECTS_H
#define CA_CAUSAL_CONDUCTOR_OBJECTS_H
#include "binary/index/index.h"
#include "binary/scope.h"
#include "causal/points/requested.h"

struct ca_session;
struct ca_objects;
struct ca_text; /* binary/plan/text.h */

/* scope and progress are borrowed; progress has joined the session. warning may be called from the indexing thread. */
enum ca_status ca_objects_new(struct ca_objects **objects, struct ca_session *session,
			      const struct ca_scope *scope, struct ca_requested *progress,
			      ca_index_warning *warning, void *context, struct ca_err *err);
void ca_objects_free(struct ca_objects *objects);
/* NULL: not indexed (yet), or it cannot be. Borrowed. */
const struct ca_index *ca_objects_index(struct ca_objects *objects, uint32_t module);
/* The text of a module that is indexed, for the conductor's thread; NULL: it cannot be read. Borrowed. */
struct ca_text *ca_objects_text(struct ca_objects *objects, uint32_t module);
/* May code of this module be selected? */
bool ca_objects_in_scope(struct ca_objects *objects, uint32_t module);
/* Take a module into the scope, whatever the scope says of it. The index that there was stays
 * valid; the new one, with all that is known, comes by and by: see ca_objects_taken. */
void ca_objects_take(struct ca_objects *objects, uint32_t module);
enum ca_objects_taken { CA_OBJECTS_NOT_ASKED, CA_OBJECTS_PENDING, CA_OBJECTS_TAKEN, CA_OBJECTS_FAILED };
enum ca_objects_taken ca_objects_taken(struct ca_objects *objects, uint32_t module);

#endif

/* SPDX-License-Identifier: MIT */
/* The binaries of a run: the session's modules and their indexes, made on request.
 *
 * Indexing runs in a thread of its own in the driver's process, so that the conductor's
 * heart never stops for it; everything else here is called by the conductor's thread. */
#ifndef CA_BINARY_OBJECTS_H
#define CA_BINARY_OBJECTS_H
#include "binary/index/index.h"
#include "binary/scope.h"

struct ca_session;
struct ca_objects;
struct ca_text; /* binary/plan/text.h */
struct ca_texts;

/* Who plans sites in binaries before the program may run in them. Called by the indexing thread. */
struct ca_objects_planner {
	/* Does it need the debug information of this binary? */
	bool (*wants)(void *context, const char *path, bool main);
	/* Does the binary hold what it looks for? Only then its text is opened. */
	bool (*is_named)(void *context, const struct ca_index *index, uint32_t module);
	/* Plan, and publish. text: NULL if it cannot be read. */
	void (*index)(void *context, const struct ca_index *index, struct ca_text *text, uint32_t module);
	void *context;
};

/* scope, session and texts are borrowed, planner is copied. warning may be called from the indexing thread. */
enum ca_status ca_objects_new(struct ca_objects **objects, struct ca_session *session,
			      const struct ca_scope *scope, struct ca_texts *texts,
			      const struct ca_objects_planner *planner, ca_index_warning *warning,
			      void *context, struct ca_err *err);
void ca_objects_free(struct ca_objects *objects);
/* To be called again and again: is there a new module, or one to be taken? The indexing thread, which looks by itself
 * only at the start of a program, is woken for it. NULL: nothing. */
void ca_objects_look(struct ca_objects *objects);
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

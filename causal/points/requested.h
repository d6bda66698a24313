/* SPDX-License-Identifier: MIT */
/* Progress points named on the command line (--progress): what each name stands for in a binary's
 * index, and the sites that count its visits. What may be written: doc/PROGRESS.md.
 *
 * Driver's process. ca_requested_is_named and ca_requested_index are called by the indexing thread,
 * too, everything else by the conductor's. */
#ifndef CA_CAUSAL_POINTS_REQUESTED_H
#define CA_CAUSAL_POINTS_REQUESTED_H
#include "binary/index/index.h"
#include "binary/objects.h"
#include "binary/scope.h"
#include <stdbool.h>
#include <stdint.h>

struct ca_session;
struct ca_site;
struct ca_point_name;
struct ca_requested;
struct ca_text;

/* What the setting's text asks for. */
enum ca_requested_mode {
	CA_REQUESTED_AUTO, /* "", "auto": choose where there are no macros */
	CA_REQUESTED_ASK,  /* let the user choose */
	CA_REQUESTED_NONE, /* only macros */
	CA_REQUESTED_NAMED
};
enum ca_requested_mode ca_requested_mode(const char *names);

/* names: as in the setting, separated by ';', tab or newline. scope is borrowed. CA_ERR_USAGE: one
 * of them cannot be understood. */
enum ca_status ca_requested_new(struct ca_requested **progress, const char *names,
				const struct ca_scope *scope, struct ca_err *err);
void ca_requested_free(struct ca_requested *progress);

/* Before the run: is anything in the command's own binary? tell (may be NULL) hears of each name
 * that will not be found. CA_ERR_USAGE: that goes for all of them. others: binaries besides the
 * command's are in scope. */
enum ca_status ca_requested_check(const struct ca_requested *progress, const struct ca_index *index,
				  const char *path, bool others,
				  void (*tell)(void *context, const char *text), void *context,
				  struct ca_err *err);
/* It plans sites in binaries as they are indexed (binary/objects.h). */
struct ca_objects_planner ca_requested_planner(struct ca_requested *progress);
/* From now on sites go to this session; before its first process starts. */
void ca_requested_join(struct ca_requested *progress, struct ca_session *session, bool others);
/* May names mean functions or lines of this binary, so that its debug information is needed? */
bool ca_requested_wants(struct ca_requested *progress, const char *path, bool main);
/* Does a name mean something in this module? Else its text is not needed. */
bool ca_requested_is_named(struct ca_requested *progress, const struct ca_index *index, uint32_t module);
/* Publish the sites of a module that has been indexed, before its state says so. text (NULL: it
 * cannot be read) is borrowed until this returns. */
void ca_requested_index(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			uint32_t module);
/* More names, as in ca_requested_new; before ca_requested_join. */
enum ca_status ca_requested_add(struct ca_requested *progress, const char *names, struct ca_err *err);
/* One more, while the program runs: its sites in the modules that are indexed by now are to be
 * published by ca_requested_index, for modules that come later that is done as for the others.
 * The name is owned here from now on, whatever the result. */
enum ca_status ca_requested_take(struct ca_requested *progress, struct ca_point_name *name,
				 struct ca_err *err);

/* Names to be tried out, all borrowed: the i-th counts in row first_row + i, which has no entry in
 * the session's table of points. In place of ca_requested_new and _join. NULL: no memory. */
struct ca_requested *ca_requested_try(const struct ca_point_name *const *name, size_t n,
				      const struct ca_scope *scope, struct ca_session *session,
				      uint32_t first_row);
/* Their sites in a module, for a selection: never an int3, and gone with the selection. */
size_t ca_requested_sites(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			  uint32_t module, struct ca_site *out, size_t max);

/* After the run: tell of each name that was not found, or could not be counted. */
void ca_requested_report(const struct ca_requested *progress, void (*tell)(void *context, const char *text),
			 void *context);

#endif

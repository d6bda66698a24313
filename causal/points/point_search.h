/* SPDX-License-Identifier: MIT */
/* The point search: in a program that nobody has given a progress point, it gathers stacks, takes the
 * functions and loops on them as candidates, has them counted, and says which to use.
 * Driver's process, the conductor's thread; the conductor places the sites. */
#ifndef CA_CAUSAL_POINTS_POINT_SEARCH_H
#define CA_CAUSAL_POINTS_POINT_SEARCH_H
#include "binary/objects.h"
#include "binary/scope.h"
#include "causal/points/candidates.h"
#include "causal/points/point_name.h"
#include "core/event.h"

struct ca_session;
struct ca_point_search;

enum ca_point_search_wish {
	CA_POINT_SEARCH_WAIT,  /* nothing to do */
	CA_POINT_SEARCH_PLACE, /* put its sites in place, in place of those before, then call _placed */
	CA_POINT_SEARCH_DONE   /* see ca_point_search_choose */
};

/* All borrowed. works: the program is known to have work on a CPU, so that stacks of waiting threads alone will hardly
 * do. NULL: no memory. */
struct ca_point_search *ca_point_search_new(struct ca_session *session, struct ca_objects *objects,
					    const struct ca_scope *scope, bool works);
void ca_point_search_free(struct ca_point_search *search);
/* A stack, innermost frame first; waiting: of a thread that was not on a CPU. */
void ca_point_search_sample(struct ca_point_search *search, const ca_place *frame, unsigned frames,
			    bool waiting);
/* now: ns. To be called every few ms. */
enum ca_point_search_wish ca_point_search_step(struct ca_point_search *search, uint64_t now);
const struct ca_site *ca_point_search_sites(const struct ca_point_search *search, size_t *n);
void ca_point_search_placed(struct ca_point_search *search, uint64_t now);
/* From what there is by now; returns how many are chosen. *candidates is borrowed. */
size_t ca_point_search_choose(struct ca_point_search *search, const struct ca_candidates **candidates,
			      size_t chosen[CA_CANDIDATES_CHOSEN]);
/* Does it wait for stacks? */
bool ca_point_search_gathers(const struct ca_point_search *search);
/* Were its candidates found on the stacks of waiting threads? */
bool ca_point_search_saw_waits(const struct ca_point_search *search);
/* It will not do after all: the next choice is made among the others. */
void ca_point_search_reject(struct ca_point_search *search, size_t candidate);
/* The name of a chosen candidate. Owned by the caller from now on; the candidate's own, which is
 * its text, lasts as long. */
struct ca_point_name ca_point_search_take(struct ca_point_search *search, size_t candidate);
/* Why there is no choice. Borrowed. */
const char *ca_point_search_reason(const struct ca_point_search *search);

#endif

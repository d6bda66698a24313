/* SPDX-License-Identifier: MIT */
/* Regions: from the places that samples show to the code that may be selected, and from a
 * selected region to its address ranges and patch sites. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_REGIONS_H
#define CA_CAUSAL_CONDUCTOR_REGIONS_H
#include "binary/objects.h"
#include "binary/scope.h"
#include "causal/conductor/heat.h"
#include "causal/conductor/region_meetings.h"
#include "causal/conductor/stacks.h"
#include "causal/results/catalog.h"
#include "core/event.h"
#include "core/selection.h"
#include "core/settings.h"
#include "core/vec.h"
#include <stdbool.h>

struct ca_regions;

enum ca_status ca_regions_new(struct ca_regions **regions, enum ca_mode mode, const struct ca_scope *scope,
			      struct ca_objects *objects, struct ca_catalog *catalog, struct ca_err *err);
void ca_regions_free(struct ca_regions *regions);

/* Count one sample of `weight` with these frames, innermost first, for every region in scope on
 * its stack (each once); waiting: the thread was not on a CPU. Returns whether there was any. */
bool ca_regions_count(struct ca_regions *regions, const ca_place *frame, unsigned frames, unsigned weight,
		      bool waiting);
/* Did a thread that was on a CPU there wait for another one: in a loop that looks at one word and pauses, or in what
 * such loops call (sched_yield)? */
bool ca_regions_spin(struct ca_regions *regions, const ca_place *frame, unsigned frames);
/* Tell it of each counted sample from now on. Borrowed. */
void ca_regions_keep_stacks(struct ca_regions *regions, struct ca_stacks *stacks);
/* The module of the session that has it; 0: none in this run yet. */
uint32_t ca_regions_module(const struct ca_regions *regions, uint32_t region);
/* The module has come into scope: forget that nothing in it may be selected. */
void ca_regions_rescope(struct ca_regions *regions, uint32_t module);
/* Samples of this run whose innermost code in the scope's binaries is main, which no function stands for. */
uint64_t ca_regions_in_main(const struct ca_regions *regions);
/* Samples counted for a region in this run; and those in which its thread did not wait. */
uint64_t ca_regions_samples(const struct ca_regions *regions, uint32_t region);
uint64_t ca_regions_at_work(const struct ca_regions *regions, uint32_t region);
/* The region with that identity if its binary is part of this run by now, else 0. */
uint32_t ca_regions_find(struct ca_regions *regions, const struct ca_region *like);
/* Is the binary of a region of the catalog part of this run by now? */
bool ca_regions_has(struct ca_regions *regions, uint32_t region);
/* How often it is entered; CA_HEAT_UNKNOWN until it has been tried. */
enum ca_heat ca_regions_heat(const struct ca_regions *regions, uint32_t region);
void ca_regions_set_heat(struct ca_regions *regions, uint32_t region, enum ca_heat heat);
/* What is found out is kept there, and what is there already is known: uint8_t by region number - 1.
 * Borrowed. */
void ca_regions_keep_heat(struct ca_regions *regions, struct ca_vec *heat);
/* The same for stores that hand something over: struct ca_region_store. Borrowed. */
void ca_regions_keep_stores(struct ca_regions *regions, struct ca_vec *stores);
/* One ends there. True: from the next selection on threads pay before it; false: that was so before, or cannot be. */
bool ca_regions_hand_over(struct ca_regions *regions, ca_place end);
/* Fill ranges and, if exact is wanted and possible, sites, `exact` and `fine` of the selection: the
 * sites log each visit only where the region is known to be cool.
 * *why: a phrase when sites were wanted and are not possible (static text), else NULL. */
void ca_regions_select(struct ca_regions *regions, uint32_t region, bool exact, struct ca_selection *out,
		       const char **why);
/* Several regions as one that is called `name`: each at so many percent, in ascending order; when that one is
 * selected, at the last of these, they are its parts. 0: no memory. */
uint32_t ca_regions_join(struct ca_regions *regions, const char *name, const uint32_t *part,
			 const unsigned *percent, unsigned parts);
/* Sample the region from now on instead of probing it; why: static text. */
void ca_regions_sample(struct ca_regions *regions, uint32_t region, const char *why);
/* The regions of this run that the user's filters name, whether or not a sample has shown them. Fills at most
 * max; returns how many there are, or max + 1. */
size_t ca_regions_named(struct ca_regions *regions, uint32_t *region, size_t max);
/* Does the index hold anything that the scope lets through? */
bool ca_regions_index_in_scope(const struct ca_scope *scope, enum ca_mode mode, const struct ca_index *index);

#endif

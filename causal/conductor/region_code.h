/* SPDX-License-Identifier: MIT */
/* The code of one region: its address ranges, and the sites at which it is entered and left.
 * Not for: which code is a region (regions.h). Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_REGION_CODE_H
#define CA_CAUSAL_CONDUCTOR_REGION_CODE_H
#include "binary/index/index.h"
#include "binary/plan/plan.h"
#include "causal/results/catalog.h"
#include "core/selection.h"
#include <stdbool.h>

struct ca_region_code {
	uint32_t module;
	bool sampled; /* no sites: not possible */
	bool edges;   /* some are at edges of the code, not at a function's ends or at calls */
	const char *why;
	struct ca_range *range;
	unsigned ranges;
	struct ca_site *site;
	size_t sites;
};

/* Find the ranges of code of which only the module is known. Returns how many of them, the first, are those of the region
 * itself; the others are of its inlined copies. */
unsigned ca_region_code_find(struct ca_region_code *code, const struct ca_region *region,
			     const struct ca_index *index);
/* Plan its sites, after which the ranges are sorted and apart. own: what ca_region_code_find returned; text may
 * be NULL. */
void ca_region_code_plan(struct ca_region_code *code, const struct ca_region *region, unsigned own,
			 struct ca_text *text);
void ca_region_code_fini(struct ca_region_code *code);
/* Does the site share a byte with one of the region's? */
bool ca_region_code_overlaps(const struct ca_region_code *code, const struct ca_site *site);
/* Fill ranges and, if exact is wanted and possible, sites, `exact` and `fine` of the selection; log: the sites
 * may log each visit. */
void ca_region_code_select(const struct ca_region_code *code, bool exact, bool log, struct ca_selection *out);

#endif

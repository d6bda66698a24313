/* SPDX-License-Identifier: MIT */
/* The sites of one plan. Driver's process. */
#ifndef CA_BINARY_PLAN_SITES_H
#define CA_BINARY_PLAN_SITES_H
#include "core/site.h"
#include <stdbool.h>
#include <stddef.h>

/* Where they go; site[n] is the one under construction. */
struct ca_sites {
	struct ca_site *site;
	size_t max, n;
	uint32_t module;
};

/* Does [low, high) touch a site that has been planned already? */
bool ca_sites_overlap(const struct ca_sites *sites, uint64_t low, uint64_t high);
/* site[n] is done. Too short for a jump of its own: rather no site than an int3 that stays, unless
 * its code is rarely run. */
void ca_sites_finish(struct ca_sites *sites, bool rare);

#endif

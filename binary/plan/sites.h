/* SPDX-License-Identifier: MIT */
/* The sites of one plan. Driver's process. */
#ifndef CA_BINARY_PLAN_SITES_H
#define CA_BINARY_PLAN_SITES_H
#include "binary/plan/insn.h"
#include "core/site.h"
#include <stdbool.h>
#include <stddef.h>

struct ca_text;

/* Where they go; site[n] is the one under construction. */
struct ca_sites {
	struct ca_site *site;
	size_t max, n;
	uint32_t module;
};

/* Does [low, high) touch a site that has been planned already? */
bool ca_sites_overlap(const struct ca_sites *sites, uint64_t low, uint64_t high);
/* The nop behind a site whose code does not go on is never run: a jump may take its place. known: it, or NULL, where
 * it lies behind the function. False: there is none, or no room. */
bool ca_sites_append_pad(struct ca_site *site, struct ca_text *text, const struct ca_insn *known);
/* site[n] is done. Too short for a jump of its own: rather no site than an int3 that stays, unless
 * its code is rarely run. */
void ca_sites_finish(struct ca_sites *sites, bool rare);

#endif

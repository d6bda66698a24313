/* SPDX-License-Identifier: MIT */
/* Which region of one profile is which of another, though lines have moved between two builds. */
#ifndef CA_CAUSAL_RESULTS_MATCH_H
#define CA_CAUSAL_RESULTS_MATCH_H
#include "causal/results/catalog.h"

/* For each region of b, by its id, the id of the same one in a, or 0. Owned by the caller; NULL: no
 * memory. */
uint32_t *ca_match_regions(const struct ca_catalog *a, const struct ca_catalog *b);

#endif

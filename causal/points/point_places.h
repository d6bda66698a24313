/* SPDX-License-Identifier: MIT */
/* Where a progress point's name leads in an index. Driver's process: the conductor's thread and
 * the indexing thread. */
#ifndef CA_CAUSAL_POINTS_POINT_PLACES_H
#define CA_CAUSAL_POINTS_POINT_PLACES_H
#include "causal/points/point_name.h"

struct ca_text; /* binary/plan/text.h */

/* Where visits are counted. */
struct ca_point_place {
	uint64_t address;
	uint64_t low, high; /* of the function around it; 0, 0: not known */
	size_t function;    /* its number in the index; SIZE_MAX: none */
	bool entry;         /* it is the function's entry */
};
struct ca_point_places {
	struct ca_point_place *place; /* owned */
	size_t n;
};

/* Does the index hold it at all? Quick: no code is read. */
bool ca_point_places_any(const struct ca_point_name *name, const struct ca_index *index);
/* All places, sorted and without doubles; returns how many. */
size_t ca_point_places_find(const struct ca_point_name *name, const struct ca_index *index,
			    struct ca_text *text, struct ca_point_places *out);

#endif

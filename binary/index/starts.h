/* SPDX-License-Identifier: MIT */
/* Where functions begin of which nothing says so. */
#ifndef CA_BINARY_INDEX_STARTS_H
#define CA_BINARY_INDEX_STARTS_H
#include "binary/index/object.h"
#include "core/vec.h"

/* Text that is known, relative to the object's base. */
struct ca_known {
	uint32_t low, high;
};
/* Append to `starts` (uint32_t, relative to the object's base; sorted, each once) where functions begin outside of
 * all that is known (struct ca_known, in any order: it is sorted here). */
void ca_starts_find(const struct ca_object *object, struct ca_vec *known, struct ca_vec *starts);

#endif

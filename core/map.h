/* SPDX-License-Identifier: MIT */
/* A hash map from numbers to numbers. Driver's process; one thread each. */
#ifndef CA_CORE_MAP_H
#define CA_CORE_MAP_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys are not 0: addresses of objects, places, ids. Starts as {0}. */
struct ca_map {
	struct ca_map_slot {
		uint64_t key; /* 0: free */
		uint32_t value;
	} * slot;
	size_t slots, used;
};
/* The value of the key, which is added with the value 0 if it was not there (*known: it was).
 * Valid until the next key is added; NULL when memory runs out. */
uint32_t *ca_map_add(struct ca_map *map, uint64_t key, bool *known);
/* NULL: the key is not there. */
const uint32_t *ca_map_find(const struct ca_map *map, uint64_t key);
void ca_map_free(struct ca_map *map);

/* A key that goes on from `key` with a text (FNV-1a). The same in every run. */
uint64_t ca_map_key(uint64_t key, const char *text);

#endif

/* SPDX-License-Identifier: MIT */
/* A hash map: open addressing, at most half full; see map.h. */
#include "core/map.h"
#include <stdlib.h>

/* Where the key is, or would be put. */
static struct ca_map_slot *slot_of(const struct ca_map *map, uint64_t key)
{
	size_t at = (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 20) & (map->slots - 1);

	while (map->slot[at].key && map->slot[at].key != key)
		at = (at + 1) & (map->slots - 1);
	return &map->slot[at];
}

static bool grow(struct ca_map *map)
{
	struct ca_map new = { .slots = map->slots ? 2 * map->slots : 1024, .used = map->used };

	new.slot = calloc(new.slots, sizeof *new.slot);
	if (!new.slot)
		return false;
	for (size_t i = 0; i < map->slots; i++)
		if (map->slot[i].key)
			*slot_of(&new, map->slot[i].key) = map->slot[i];
	free(map->slot);
	*map = new;
	return true;
}

uint32_t *ca_map_add(struct ca_map *map, uint64_t key, bool *known)
{
	struct ca_map_slot *slot;

	if (2 * map->used >= map->slots && !grow(map))
		return NULL;
	slot = slot_of(map, key);
	*known = slot->key != 0;
	map->used += !*known;
	slot->key = key;
	return &slot->value;
}

const uint32_t *ca_map_find(const struct ca_map *map, uint64_t key)
{
	const struct ca_map_slot *slot = map->slots ? slot_of(map, key) : NULL;

	return slot && slot->key ? &slot->value : NULL;
}

void ca_map_free(struct ca_map *map)
{
	free(map->slot);
	*map = (struct ca_map){ 0 };
}

uint64_t ca_map_key(uint64_t key, const char *text)
{
	for (; *text; text++)
		key = (key ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return key;
}

/* Containers of the index builder, see table.h. Driver's process; no locks. */
#include "core/table.h"
#include <stdlib.h>
#include <string.h>

static bool vec_grow(struct ca_vec *vec, size_t wanted)
{
	size_t room = vec->room ? vec->room : 64;

	while (room < wanted)
		room *= 2;
	void *at = room > SIZE_MAX / vec->size ? NULL : realloc(vec->at, room * vec->size);
	if (!at) {
		vec->failed = true;
		return false;
	}
	vec->at = at;
	vec->room = room;
	return true;
}

void *ca_vec_push(struct ca_vec *vec)
{
	if (vec->n == vec->room && !vec_grow(vec, vec->n + 1))
		return NULL;
	return memset((char *)vec->at + vec->n++ * vec->size, 0, vec->size);
}

bool ca_vec_add(struct ca_vec *vec, const void *records, size_t n)
{
	if (n > vec->room - vec->n && !vec_grow(vec, vec->n + n))
		return false;
	if (n > 0)
		memcpy((char *)vec->at + vec->n * vec->size, records, n * vec->size);
	vec->n += n;
	return true;
}

void ca_vec_free(struct ca_vec *vec)
{
	free(vec->at);
	*vec = (struct ca_vec){ .size = vec->size };
}

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static uint32_t key_of(const char *record)
{
	uint32_t key;

	memcpy(&key, record, sizeof(key));
	return key;
}

static bool is_sorted(const struct ca_vec *vec)
{
	const char *at = vec->at;

	for (size_t i = 1; i < vec->n; i++)
		if (key_of(at + i * vec->size) < key_of(at + (i - 1) * vec->size))
			return false;
	return true;
}

static void sort_digit(const struct ca_vec *vec, const char *from, char *to, unsigned shift)
{
	size_t start[DIGITS] = { 0 }, sum = 0;

	for (size_t i = 0; i < vec->n; i++)
		start[key_of(from + i * vec->size) >> shift & (DIGITS - 1)]++;
	for (size_t i = 0; i < DIGITS; i++) {
		size_t count = start[i];
		start[i] = sum;
		sum += count;
	}
	for (size_t i = 0; i < vec->n; i++) {
		const char *record = from + i * vec->size;
		size_t place = start[key_of(record) >> shift & (DIGITS - 1)]++;
		memcpy(to + place * vec->size, record, vec->size);
	}
}

bool ca_vec_sort(struct ca_vec *vec)
{
	if (vec->n < 2 || is_sorted(vec))
		return true;
	char *from = vec->at, *to = malloc(vec->n * vec->size);
	if (!to) {
		vec->failed = true;
		return false;
	}
	for (unsigned shift = 0; shift < 32; shift += DIGIT_BITS) {
		sort_digit(vec, from, to, shift);
		char *swap = from;
		from = to;
		to = swap;
	}
	free(to);
	vec->at = from;
	vec->room = vec->n;
	return true;
}

static uint64_t hash_bytes(const char *text, size_t length)
{
	uint64_t hash = length * 0x9e3779b97f4a7c15u, word;

	for (; length >= 8; text += 8, length -= 8) {
		memcpy(&word, text, 8);
		hash = (hash ^ word) * 0xff51afd7ed558ccdu;
		hash ^= hash >> 32;
	}
	word = 0;
	memcpy(&word, text, length);
	hash = (hash ^ word) * 0xff51afd7ed558ccdu;
	return hash ^ hash >> 29;
}

static bool strings_rehash(struct ca_strings *strings)
{
	size_t slots = strings->slots ? strings->slots * 2 : 1024;
	uint32_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return false;
	for (size_t i = 0; i < strings->slots; i++) {
		if (!strings->slot[i])
			continue;
		const char *text = strings->at + strings->slot[i];
		size_t at = hash_bytes(text, strlen(text)) & (slots - 1);
		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = strings->slot[i];
	}
	free(strings->slot);
	strings->slot = slot;
	strings->slots = slots;
	return true;
}

static bool strings_reserve(struct ca_strings *strings, size_t length)
{
	if (strings->used * 2 >= strings->slots && !strings_rehash(strings))
		return false;
	size_t room = strings->room ? strings->room : 4096;
	while (room - strings->n < length + 2)
		room *= 2;
	if (room == strings->room)
		return true;
	char *at = room > UINT32_MAX ? NULL : realloc(strings->at, room);
	if (!at)
		return false;
	if (strings->n == 0)
		at[strings->n++] = '\0';
	strings->at = at;
	strings->room = room;
	return true;
}

uint32_t ca_strings_add(struct ca_strings *strings, const char *text, size_t length)
{
	/* also without a string the table has its "" */
	if (!strings_reserve(strings, length)) {
		strings->failed = true;
		return 0;
	}
	if (length == 0)
		return 0;
	size_t at = hash_bytes(text, length) & (strings->slots - 1);
	for (uint32_t offset; (offset = strings->slot[at]) != 0;
	     at = (at + 1) & (strings->slots - 1))
		if (strncmp(strings->at + offset, text, length) == 0 &&
		    strings->at[offset + length] == '\0')
			return offset;
	uint32_t offset = (uint32_t)strings->n;
	memcpy(strings->at + offset, text, length);
	strings->at[offset + length] = '\0';
	strings->n += length + 1;
	strings->slot[at] = offset;
	strings->used++;
	return offset;
}

uint32_t ca_strings_put(struct ca_strings *strings, const char *text)
{
	return ca_strings_add(strings, text ? text : "", text ? strlen(text) : 0);
}

const char *ca_strings_get(const struct ca_strings *strings, uint32_t offset)
{
	return offset < strings->n ? strings->at + offset : "";
}

void ca_strings_free(struct ca_strings *strings)
{
	free(strings->at);
	free(strings->slot);
	*strings = (struct ca_strings){ 0 };
}

static size_t pointer_slot(const struct ca_pointers *map, const void *key)
{
	uint64_t hash = (uintptr_t)key * 0x9e3779b97f4a7c15u;
	size_t at = (size_t)(hash >> 20) & (map->slots - 1);

	while (map->slot[at].key && map->slot[at].key != key)
		at = (at + 1) & (map->slots - 1);
	return at;
}

static bool pointers_rehash(struct ca_pointers *map)
{
	struct ca_pointers new = { .slots = map->slots ? map->slots * 2 : 1024, .used = map->used };

	new.slot = calloc(new.slots, sizeof(*new.slot));
	if (!new.slot)
		return false;
	for (size_t i = 0; i < map->slots; i++)
		if (map->slot[i].key)
			new.slot[pointer_slot(&new, map->slot[i].key)] = map->slot[i];
	free(map->slot);
	*map = new;
	return true;
}

uint32_t *ca_pointers_find(struct ca_pointers *map, const void *key, bool *known)
{
	if (map->used * 2 >= map->slots && !pointers_rehash(map))
		return NULL;
	struct ca_pointers_slot *slot = &map->slot[pointer_slot(map, key)];
	*known = slot->key;
	if (!slot->key) {
		slot->key = key;
		map->used++;
	}
	return &slot->value;
}

void ca_pointers_free(struct ca_pointers *map)
{
	free(map->slot);
	*map = (struct ca_pointers){ 0 };
}

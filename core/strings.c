/* SPDX-License-Identifier: MIT */
/* A table of strings; see strings.h. */
#include "core/strings.h"
#include <string.h>

static uint64_t hash_of(const char *text, size_t length)
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

static bool is_at(const struct ca_strings *strings, uint32_t offset, const char *text, size_t length)
{
	const char *there = ca_strings_get(strings, offset);

	return strncmp(there, text, length) == 0 && there[length] == '\0';
}

/* The text's place in the map; its value is 0 if the text is new. NULL when memory runs out.
 * Another text of the same hash has the next key. */
static uint32_t *place_of(struct ca_strings *strings, const char *text, size_t length)
{
	uint64_t key = hash_of(text, length) | 1;
	uint32_t *offset;
	bool known;

	while ((offset = ca_map_add(&strings->offsets, key, &known)) && *offset &&
	       !is_at(strings, *offset, text, length))
		key += 2;
	return offset;
}

static bool append(struct ca_strings *strings, const char *text, size_t length)
{
	size_t before = strings->text.n;

	if (ca_vec_add(&strings->text, text, length) && ca_vec_add(&strings->text, "", 1))
		return true;
	strings->text.n = before;
	return false;
}

uint32_t ca_strings_add(struct ca_strings *strings, const char *text, size_t length)
{
	uint32_t *offset, at;

	strings->text.size = 1;
	/* also without a string the table has its "" */
	strings->failed |= strings->text.n == 0 && !append(strings, "", 0);
	if (length == 0 || strings->text.n == 0)
		return 0;
	offset = place_of(strings, text, length);
	if (offset && *offset)
		return *offset;
	at = (uint32_t)strings->text.n;
	if (!offset || strings->text.n + length + 1 > UINT32_MAX || !append(strings, text, length)) {
		strings->failed = true;
		return 0;
	}
	return *offset = at;
}

uint32_t ca_strings_put(struct ca_strings *strings, const char *text)
{
	return ca_strings_add(strings, text ? text : "", text ? strlen(text) : 0);
}

const char *ca_strings_get(const struct ca_strings *strings, uint32_t offset)
{
	return offset < strings->text.n ? (const char *)strings->text.at + offset : "";
}

void ca_strings_free(struct ca_strings *strings)
{
	ca_vec_free(&strings->text);
	ca_map_free(&strings->offsets);
	strings->failed = false;
}

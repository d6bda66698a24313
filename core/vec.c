/* SPDX-License-Identifier: MIT */
/* Growing arrays; see vec.h. */
#include "core/vec.h"
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

void *ca_vec_reach(struct ca_vec *vec, size_t i)
{
	while (vec->n <= i)
		if (!ca_vec_push(vec))
			return NULL;
	return (char *)vec->at + i * vec->size;
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

/* The room is always the next power of two. */
void *ca_vec_more(void *array, size_t n, size_t size)
{
	size_t room = n ? 2 * n : 1;

	if (n & (n - 1))
		return array;
	return room > SIZE_MAX / size ? NULL : realloc(array, room * size);
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

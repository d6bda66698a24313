/* SPDX-License-Identifier: MIT */
/* Growing arrays, and a stable sort by address. Driver's process; one thread each. */
#ifndef CA_CORE_VEC_H
#define CA_CORE_VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An array of records of `size` bytes. Starts as {.size = sizeof(record)}. */
struct ca_vec {
	void *at;
	size_t n, room, size;
	bool failed; /* memory ran out: records are missing */
};
/* A zeroed record at the end, valid until the next push; NULL when memory runs out. */
void *ca_vec_push(struct ca_vec *vec);
/* Record number i, with zeroed ones up to it where there are fewer; valid until the next push. NULL when memory runs
 * out. */
void *ca_vec_reach(struct ca_vec *vec, size_t i);
/* Append n records. */
bool ca_vec_add(struct ca_vec *vec, const void *records, size_t n);
void ca_vec_free(struct ca_vec *vec);
/* Stable; by the uint32_t that each record starts with. */
bool ca_vec_sort(struct ca_vec *vec);

/* For arrays that keep their type and grow by single records: the array of n records of `size`
 * bytes, with room for one more. NULL when memory runs out; then the array stays as it is. */
void *ca_vec_more(void *array, size_t n, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/* Records by numbers that only grow, most of which are over soon: those of threads. What was dropped costs next to
 * nothing. Driver's process; one thread each. */
#ifndef CA_CORE_BY_INDEX_H
#define CA_CORE_BY_INDEX_H
#include <stddef.h>
#include <stdint.h>

/* Starts as {.size = sizeof(record)}. */
struct ca_by_index {
	struct ca_by_index_page **page; /* NULL: none of its records is there */
	size_t pages, size;
};
/* Record number i; made, with zeros, if need be. It stays where it is until it is dropped. NULL: no memory. */
void *ca_by_index_get(struct ca_by_index *records, uint32_t i);
/* NULL: it is not there. */
void *ca_by_index_find(const struct ca_by_index *records, uint32_t i);
/* The first one from number *i on, and its number; NULL: there is none. */
void *ca_by_index_next(const struct ca_by_index *records, uint32_t *i);
void ca_by_index_drop(struct ca_by_index *records, uint32_t i);
void ca_by_index_free(struct ca_by_index *records);

#endif

/* Growing arrays, a table of strings without duplicates, a map from pointers, and a stable
 * sort by address: what building an index needs. Driver's process; one thread each. */
#ifndef CA_CORE_TABLE_H
#define CA_CORE_TABLE_H
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
/* Append n records. */
bool ca_vec_add(struct ca_vec *vec, const void *records, size_t n);
void ca_vec_free(struct ca_vec *vec);
/* Stable; by the uint32_t that each record starts with. */
bool ca_vec_sort(struct ca_vec *vec);

/* NUL-terminated strings, each once; offset 0 is "". */
struct ca_strings {
	char *at;
	size_t n, room;
	uint32_t *slot; /* offsets; 0: free */
	size_t slots, used;
	bool failed;
};
/* The offset of the text (of `length` bytes without NUL); 0 when memory runs out. */
uint32_t ca_strings_add(struct ca_strings *strings, const char *text, size_t length);
uint32_t ca_strings_put(struct ca_strings *strings, const char *text); /* NULL: "" */
const char *ca_strings_get(const struct ca_strings *strings, uint32_t offset);
void ca_strings_free(struct ca_strings *strings);

/* From a non-null pointer to a number. */
struct ca_pointers {
	struct ca_pointers_slot {
		const void *key;
		uint32_t value;
	} * slot;
	size_t slots, used;
};
/* The value of the key; *known says whether it was there, else it is made, with value 0.
 * Valid until the next call; NULL when memory runs out. */
uint32_t *ca_pointers_find(struct ca_pointers *map, const void *key, bool *known);
void ca_pointers_free(struct ca_pointers *map);

#endif

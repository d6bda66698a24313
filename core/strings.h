/* SPDX-License-Identifier: MIT */
/* A table of strings without duplicates. Driver's process; one thread each. */
#ifndef CA_CORE_STRINGS_H
#define CA_CORE_STRINGS_H
#include "core/map.h"
#include "core/vec.h"

/* NUL-terminated strings, each once; offset 0 is "". Starts as {0}. */
struct ca_strings {
	struct ca_vec text;    /* bytes */
	struct ca_map offsets; /* by a hash of the string */
	bool failed;           /* memory ran out: strings are missing */
};
/* The offset of the text (of `length` bytes without NUL); 0 when memory runs out. */
uint32_t ca_strings_add(struct ca_strings *strings, const char *text, size_t length);
uint32_t ca_strings_put(struct ca_strings *strings, const char *text); /* NULL: "" */
/* Valid until the next string is added. */
const char *ca_strings_get(const struct ca_strings *strings, uint32_t offset);
void ca_strings_free(struct ca_strings *strings);

#endif

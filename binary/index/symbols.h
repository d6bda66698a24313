/* SPDX-License-Identifier: MIT */
/* The functions of a binary. */
#ifndef CA_BINARY_INDEX_SYMBOLS_H
#define CA_BINARY_INDEX_SYMBOLS_H
#include "binary/index/object.h"
#include "core/strings.h"

/* Append functions (struct ca_record_function, `parent` not set) from the object's symbols, then
 * from `subprograms` (struct ca_subprogram), then from `frames` (struct ca_frame), both sorted. */
void ca_symbols_read(const struct ca_object *object, const struct ca_vec *subprograms,
		     const struct ca_vec *frames, struct ca_strings *strings, struct ca_vec *functions);

#endif

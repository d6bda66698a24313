/* SPDX-License-Identifier: MIT */
/* Unwind rows of functions without call frame information. */
#ifndef CA_BINARY_INDEX_BARE_ROWS_H
#define CA_BINARY_INDEX_BARE_ROWS_H
#include "binary/index/object.h"
#include "core/vec.h"

/* Add rows, read from the instructions, for those functions (struct ca_record_function) in which `rows` (struct
 * ca_unwind_row, sorted) knows nothing. */
void ca_bare_rows_add(const struct ca_object *object, const struct ca_vec *functions, struct ca_vec *rows);

#endif

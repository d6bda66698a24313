/* SPDX-License-Identifier: MIT */
/* Call frame information: where unwind rows come from. */
#ifndef CA_BINARY_INDEX_CFI_H
#define CA_BINARY_INDEX_CFI_H
#include "binary/index/object.h"
#include "binary/index/warnings.h"
#include "core/vec.h"

/* The range of an FDE, relative to the object's base. */
struct ca_frame {
	uint32_t low, high;
};
/* Append the rows of .eh_frame, else .debug_frame (struct ca_unwind_row), and the ranges that
 * they are for (struct ca_frame), both sorted. */
void ca_cfi_read(const struct ca_object *object, struct ca_vec *rows, struct ca_vec *frames,
		 struct ca_warnings *warnings);

#endif

/* SPDX-License-Identifier: MIT */
/* One frame description entry, and running it. Used by cfi.c. */
#ifndef CA_BINARY_INDEX_CFI_RUN_H
#define CA_BINARY_INDEX_CFI_RUN_H
#include "binary/index/cursor.h"
#include "core/vec.h"

struct ca_cie {
	const uint8_t *start;  /* identity */
	struct ca_cursor code; /* initial instructions */
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra_column;
	uint8_t fde_encoding;
	bool has_augmentation_data, is_signal;
};
struct ca_fde {
	uint32_t low, high; /* relative to the object's base */
	const uint8_t *cie; /* start of the CIE's entry */
	struct ca_cursor code;
};

/* Run an FDE of a section: append rows for [low, high) to `rows` (struct ca_unwind_row). base: of
 * the object. False if the instructions are broken; the rows up to there are kept, the rest is
 * CA_UNWIND_NONE. */
bool ca_cfi_run(const struct ca_fde *fde, const struct ca_cie *cie, const struct ca_cursor_section *section,
		uint64_t base, struct ca_vec *rows);

#endif

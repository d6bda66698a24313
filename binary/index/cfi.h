/* Call frame information: its encoding (cfi.c) and its instructions (cfi_run.c). Private. */
#ifndef CA_BINARY_INDEX_CFI_H
#define CA_BINARY_INDEX_CFI_H
#include <stdbool.h>
#include <stdint.h>

/* Reads never pass the end: they yield 0 and set bad. */
struct ca_cursor {
	const uint8_t *at, *end;
	bool bad;
};
uint64_t ca_cursor_fixed(struct ca_cursor *cursor, unsigned bytes);
uint64_t ca_cursor_uleb(struct ca_cursor *cursor);
int64_t ca_cursor_sleb(struct ca_cursor *cursor);

struct ca_cie {
	const uint8_t *start;  /* identity */
	struct ca_cursor code; /* initial instructions */
	uint64_t code_factor;
	int64_t data_factor;
	uint64_t ra_column;
	uint8_t fde_encoding, lsda_encoding;
	bool has_augmentation_data, is_signal;
};
struct ca_fde {
	uint32_t low, high; /* relative to the build's base */
	const uint8_t *cie; /* start of the CIE's entry */
	struct ca_cursor code;
};

struct ca_vec;
/* Where addresses in DW_CFA_set_loc are relative to. */
struct ca_cfi_place {
	const uint8_t *data; /* start of the section */
	uint64_t address;    /* where it is loaded */
	uint64_t base;       /* of the build */
};
/* An encoded pointer (DW_EH_PE_*). */
uint64_t ca_cfi_pointer(struct ca_cursor *cursor, uint8_t encoding,
			const struct ca_cfi_place *place);
/* Run an FDE: append rows for [low, high) to `rows` (struct ca_unwind_row). False if the
 * instructions are broken; the rows up to there are kept, the rest is CA_UNWIND_NONE. */
bool ca_cfi_run(const struct ca_fde *fde, const struct ca_cie *cie,
		const struct ca_cfi_place *place, struct ca_vec *rows);

#endif

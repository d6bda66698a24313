/* SPDX-License-Identifier: MIT */
/* Reading the bytes of a section, one field after the other. Driver's process. */
#ifndef CA_BINARY_INDEX_CURSOR_H
#define CA_BINARY_INDEX_CURSOR_H
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
/* A string up to its NUL; "" and bad if it does not end. */
const char *ca_cursor_text(struct ca_cursor *cursor);
/* Step over bytes; returns where they begin. */
const uint8_t *ca_cursor_skip(struct ca_cursor *cursor, uint64_t bytes);

/* A section, and where it is loaded. */
struct ca_cursor_section {
	const uint8_t *data;
	uint64_t address;
};
/* An encoded pointer (DW_EH_PE_*), absolute or relative to its own address. */
uint64_t ca_cursor_pointer(struct ca_cursor *cursor, uint8_t encoding,
			   const struct ca_cursor_section *section);

#endif

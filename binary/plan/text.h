/* SPDX-License-Identifier: MIT */
/* The text of a module as planning reads it: an ELF file's executable bytes, symbols, pointers and
 * stack depths. Opened once for a module by whoever holds its index, and borrowed by plans
 * (plan.h), loops and line entries. Driver's process; one thread at a time. */
#ifndef CA_BINARY_PLAN_TEXT_H
#define CA_BINARY_PLAN_TEXT_H
#include "binary/plan/insn.h"
#include "core/status.h"

struct ca_text;
struct ca_index; /* binary/index/index.h */

/* CA_ERR_UNSUPPORTED: not an x86-64 ELF file. */
enum ca_status ca_text_open(struct ca_text **text, const char *path, struct ca_err *err);
/* Functions that the file's own symbols do not tell, as in a stripped one; sorted by address. Once, before any plan.
 * Without memory some stay unknown. */
struct ca_text_function {
	uint64_t low, high;
	bool part;     /* of another function, that the compiler split off */
	bool nameless; /* known by its frame alone: it may be such a part */
};
void ca_text_add(struct ca_text *text, const struct ca_text_function *function, size_t n);
/* Those that the index of the same file knows: of its frames, or of a file with its debug information. */
void ca_text_learn(struct ca_text *text, const struct ca_index *index);
void ca_text_close(struct ca_text *text);
/* Decode the instruction at a file address. False: no text there, or not decodable. */
bool ca_text_decode(struct ca_text *text, uint64_t address, struct ca_insn *out);
/* All instructions of [low, high), targets of their own jumps marked; owned by the caller
 * (free). NULL: some byte does not decode. */
struct ca_insn *ca_text_decode_all(struct ca_text *text, uint64_t low, uint64_t high, size_t *n);
/* The function that covers the address; false: none is known. */
bool ca_text_function(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high);
/* Does a function (or a linkage table's entry) begin at the address? */
bool ca_text_is_entry(struct ca_text *text, uint64_t address);
/* Nothing but padding from here to the next function: what looks like a progress point there is none. */
bool ca_text_pads_to_entry(struct ca_text *text, uint64_t address);
/* Is the address in a part that the compiler split off (foo.cold)? Fills its bounds. */
bool ca_text_is_cold(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high);
/* Executable part i of the file; false past the end. The bytes live as long as the text. */
bool ca_text_part(struct ca_text *text, unsigned i, uint64_t *low, uint64_t *high, const uint8_t **bytes);
/* Bytes as they are in the file; false: not all of them are there. */
bool ca_text_read(struct ca_text *text, uint64_t address, void *to, size_t n);
/* The pointer stored at an address, as a file address; false: none. */
bool ca_text_pointer(struct ca_text *text, uint64_t address, uint64_t *value);
/* Is the address a descriptor of a restartable sequence, whose code must stay in place? */
bool ca_text_is_rseq(struct ca_text *text, uint64_t address);
/* Distance from the stack pointer up to the frame's CFA before the instruction at the address;
 * 0: counted from another register; -1: not known. */
enum { CA_TEXT_RETURN_ONLY = 8 /* nothing but the return address is there */ };
int ca_text_depth(struct ca_text *text, uint64_t address);
/* The same from the frame pointer. */
int ca_text_depth_from_fp(struct ca_text *text, uint64_t address);

/* The function with that name, or FILE:NAME. Returns how many there are, up to 2; the first is filled in.
 * local: other files do not see it. */
unsigned ca_text_find(struct ca_text *text, const char *name, uint64_t *low, uint64_t *high, bool *local);
/* Has gcc compiled all of it? */
bool ca_text_is_gcc(struct ca_text *text);
/* Where plan.h keeps what it has found in all of it; freed with the text. */
void **ca_text_found(struct ca_text *text);

#endif

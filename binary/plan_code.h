/* Reading a binary's text for planning, and making displaced instructions relocatable.
 * Private to plan*.c. Driver's process. */
#ifndef CA_BINARY_PLAN_CODE_H
#define CA_BINARY_PLAN_CODE_H
#include "core/session.h"
#include <capstone.h>
#include <stdbool.h>

/* One decoded instruction. */
struct ca_insn {
	uint64_t address;
	uint64_t target;  /* direct jump, conditional jump or call: where to; else 0 */
	uint8_t size;
	uint8_t bytes[15];
	uint8_t kind;     /* enum ca_insn_kind */
	uint8_t disp_at;  /* offset of the displacement of a rip-relative operand, 0: none */
	bool is_target;   /* a direct jump of its function leads here */
	bool uses_sp;     /* reads or writes the stack pointer, explicitly or not */
	uint64_t memory;  /* address of the rip-relative operand */
};
enum ca_insn_kind {
	CA_INSN_PLAIN,
	CA_INSN_CALL,          /* direct */
	CA_INSN_CALL_INDIRECT,
	CA_INSN_JUMP,          /* direct */
	CA_INSN_JUMP_IF,
	CA_INSN_JUMP_INDIRECT,
	CA_INSN_RETURN,
	CA_INSN_END,           /* control does not go on: ud2, hlt */
	CA_INSN_STRANGE        /* cannot be moved: loop, jrcxz, xbegin, ... */
};

struct ca_text; /* an ELF file: its executable bytes, symbols, capstone */
enum ca_status ca_text_open(struct ca_text **text, const char *path, struct ca_err *err);
void ca_text_close(struct ca_text *text);
/* Decode the instruction at a file address. False: no text there, or not decodable. */
bool ca_text_decode(struct ca_text *text, uint64_t address, struct ca_insn *out);
/* All instructions of [low, high), targets marked; owned by the caller (free). NULL: some byte
 * does not decode. */
struct ca_insn *ca_text_decode_all(struct ca_text *text, uint64_t low, uint64_t high, size_t *n);
/* The function symbol that covers the address; false: none is known. */
bool ca_text_function(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high);
/* Executable part i of the file; false past the end. */
bool ca_text_part(struct ca_text *text, unsigned i, uint64_t *low, uint64_t *high);

/* A site under construction. */
void ca_code_begin(struct ca_site *site, uint32_t module, enum ca_site_kind kind, uint64_t address);
bool ca_code_hook(struct ca_site *site, enum ca_site_kind kind); /* before what comes next */
/* Append the displaced instruction's copy. False: it cannot be moved, or there is no room. */
bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn);
/* Append only what stands in the text, and the copy's start, for a copy of the caller's own. */
bool ca_code_displace(struct ca_site *site, const struct ca_insn *insn);
bool ca_code_bytes(struct ca_site *site, const uint8_t *bytes, unsigned n);
/* Append an opcode of n bytes and a 4-byte distance to `target`. */
bool ca_code_relative(struct ca_site *site, const uint8_t *opcode, unsigned n,
		      enum ca_fixup_type type, uint64_t target);
bool ca_code_jump_back(struct ca_site *site); /* to behind the site's bytes */

#endif

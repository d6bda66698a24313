/* Reading a binary's text for planning, and making displaced instructions relocatable.
 * Private to plan*.c. Driver's process, one thread per opened file. */
#ifndef CA_BINARY_PLAN_PLAN_CODE_H
#define CA_BINARY_PLAN_PLAN_CODE_H
#include "core/site.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>

enum { CA_JUMP_LENGTH = 5 };

/* One decoded instruction. */
struct ca_insn {
	uint64_t address;
	uint64_t target;  /* direct jump, conditional jump or call: where to; else 0 */
	uint64_t memory;  /* address of the rip-relative operand */
	uint64_t table;   /* address that a jump table may have: lea x(%rip), x(,%reg,8); else 0 */
	uint8_t size;
	uint8_t bytes[15];
	uint8_t kind;     /* enum ca_insn_kind */
	uint8_t disp_at;  /* offset of the displacement of a rip-relative operand, 0: none */
	uint8_t modrm_at; /* offset of the ModRM byte, 0: none */
	bool is_target;   /* a jump of its function leads here */
	bool is_split;    /* ... or behind its first byte (a jump past a lock prefix) */
	bool is_pad;      /* a nop or int3, as put behind code that does not go on */
	bool uses_sp;     /* reads or writes the stack pointer, explicitly or not */
	bool sp_operand;  /* names it in an operand */
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

/* ---- plan_text.c: an ELF file: its executable bytes, symbols, tables, capstone */
struct ca_text;
enum ca_status ca_text_open(struct ca_text **text, const char *path, struct ca_err *err);
void ca_text_close(struct ca_text *text);
/* Decode the instruction at a file address. False: no text there, or not decodable. */
bool ca_text_decode(struct ca_text *text, uint64_t address, struct ca_insn *out);
/* All instructions of [low, high), targets of their own jumps marked; owned by the caller
 * (free). NULL: some byte does not decode. */
struct ca_insn *ca_text_decode_all(struct ca_text *text, uint64_t low, uint64_t high, size_t *n);
/* The function symbol that covers the address; false: none is known. */
bool ca_text_function(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high);
/* Does a function (or a linkage table's entry) begin at the address? */
bool ca_text_is_entry(struct ca_text *text, uint64_t address);
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
/* Distance from the stack pointer up to the frame's CFA before the instruction at the address:
 * 8 where only the return address is there; 0: counted from another register; -1: not known. */
int ca_text_depth(struct ca_text *text, uint64_t address);

/* ---- plan_code.c: instructions, and a site under construction */
struct ca_disassembler;
struct ca_disassembler *ca_insn_open(void); /* NULL: no memory */
void ca_insn_close(struct ca_disassembler *d);
/* Decode one instruction; false: not one. */
bool ca_insn_decode(struct ca_disassembler *d, const uint8_t *code, size_t left, uint64_t address,
		    struct ca_insn *out);
/* Mark the target of a jump in a sorted list. True: an instruction begins there. */
bool ca_insn_mark(struct ca_insn *insn, size_t n, uint64_t target);
/* What progress points compile to: left alone, for it may be patched on its own. */
bool ca_insn_is_point(const struct ca_insn *insn);
/* May it be displaced together with others? Calls are better left where they are. */
bool ca_insn_is_movable(const struct ca_insn *insn);

void ca_code_begin(struct ca_site *site, uint32_t module, enum ca_site_kind kind, uint64_t address);
bool ca_code_hook(struct ca_site *site, enum ca_site_kind kind); /* before what comes next */
/* Append the displaced instruction's copy. False: it cannot be moved, or there is no room. */
bool ca_code_copy(struct ca_site *site, const struct ca_insn *insn);
/* The same for an instruction that may leave the function: with an EXIT hook when it does. */
bool ca_code_copy_leaving(struct ca_site *site, const struct ca_insn *insn);
/* The same for a call reached by CA_SITE_BY_CALL: a jump to where it calls. */
bool ca_code_copy_called(struct ca_site *site, const struct ca_insn *insn);
bool ca_code_jump_back(struct ca_site *site); /* to behind the site's bytes */

#endif

/* SPDX-License-Identifier: MIT */
/* Instructions, decoded. Driver's process; one disassembler for each thread. */
#ifndef CA_BINARY_PLAN_INSN_H
#define CA_BINARY_PLAN_INSN_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A general register as the ABI's unwind rows number it: rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15. */
enum { CA_INSN_REGISTERS = 16, CA_INSN_NO_REGISTER = 0xff };

/* One decoded instruction. */
struct ca_insn {
	uint64_t address;
	uint64_t target; /* direct jump, conditional jump or call: where to; else 0 */
	uint64_t memory; /* address of the rip-relative operand */
	uint64_t table;  /* address that a jump table may have: lea x(%rip), x(,%reg,8); else 0 */
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
	bool is_pause;    /* of a spin loop */
	bool is_atomic;   /* reads and writes memory in one step */
	bool reads;       /* memory, by the operand below ... */
	bool writes;      /* ... or writes it */
	/* At base + scale * index + disp lie `width` bytes; of a rip-relative one see `memory`. Width 0: there is no
	 * such operand, or it is of another kind (segments, addresses of 32 bits). */
	uint8_t width, base, index, scale;
	int32_t disp;
	/* General registers that it may write, a bit each; of a call those it need not keep. */
	uint16_t changes;
};
enum ca_insn_kind {
	CA_INSN_PLAIN,
	CA_INSN_CALL, /* direct */
	CA_INSN_CALL_INDIRECT,
	CA_INSN_JUMP, /* direct */
	CA_INSN_JUMP_IF,
	CA_INSN_JUMP_INDIRECT,
	CA_INSN_RETURN,
	CA_INSN_END,    /* control does not go on: ud2, hlt */
	CA_INSN_STRANGE /* cannot be moved: loop, jrcxz, xbegin, ... */
};

struct ca_disassembler;
struct ca_disassembler *ca_insn_open(void); /* NULL: no memory */
void ca_insn_close(struct ca_disassembler *d);
/* Decode one instruction; false: not one. */
bool ca_insn_decode(struct ca_disassembler *d, const uint8_t *code, size_t left, uint64_t address,
		    struct ca_insn *out);
/* Mark the target of a jump in a sorted list. True: an instruction begins there. */
bool ca_insn_mark(struct ca_insn *insn, size_t n, uint64_t target);
/* The instruction that begins at the address, in a sorted list; -1: none does. */
long ca_insn_find(const struct ca_insn *insn, size_t n, uint64_t address);
bool ca_insn_is_jump(const struct ca_insn *insn); /* to one place, on a condition or not */
/* May the next instruction run after it? */
bool ca_insn_falls_through(const struct ca_insn *insn);
/* What progress points compile to: left alone, for it may be patched on its own. */
bool ca_insn_is_point(const struct ca_insn *insn);
/* May it be displaced together with others? Calls are better left where they are. */
bool ca_insn_is_movable(const struct ca_insn *insn);
/* ... or be the last of a site: a call comes back by a return address of its own, behind it. */
bool ca_insn_may_end(const struct ca_insn *insn);

#endif

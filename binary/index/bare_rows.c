/* SPDX-License-Identifier: MIT */
/* Unwind rows of functions without call frame information, as assembly often has none: where the return address is
 * follows from the instructions that move the stack pointer, along all jumps from the entry on. Where that cannot be
 * followed (an aligned stack, a frame of a variable size) it follows from rbp, if that holds the frame, or from a former
 * stack pointer that is kept in a register or on the aligned stack; else there is no row. Code that nothing leads to is
 * taken to have the frame of the last indirect jump before it, which mostly leads there, else that of the entry. x86-64.
 * Driver's process, any thread. */
#include "binary/index/bare_rows.h"
#include "binary/index/index_file.h"
#include "binary/plan/insn.h"
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 1 << 20, /* bytes of one function */
	ALL = 16 << 20, /* ... of all of them: a second */
	WORD = 8,
	AX = 0, /* registers as instructions number them */
	CX = 1,
	DX = 2,
	BX = 3,
	SP = 4,
	FP = 5,
	SI = 6,
	DI = 7,
	NOWHERE = UINT8_MAX,
	UNKNOWN = -1
};
/* ... and as unwind rows do. */
static const uint8_t dwarf_of[] = {
	[AX] = 0, [CX] = 2, [DX] = 1, [BX] = 3, [SP] = 7, [FP] = 6, [SI] = 4, [DI] = 5,
	8,        9,        10,       11,       12,       13,       14,       15
};

/* What an instruction finds. Offsets are down from the CFA, in bytes. */
struct state {
	int32_t depth;        /* of the stack pointer, or UNKNOWN; aligned: down from where it was aligned */
	int32_t fp_at, bx_at; /* where rbp and rbx were saved; 0: they were not */
	int32_t copy;         /* of a former stack pointer, or UNKNOWN, which is ... */
	int32_t slot;         /* ... so far down from where it was aligned, if it is stored; */
	uint8_t in;           /* ... in this register, or NOWHERE */
	int32_t mark;         /* rbp, or UNKNOWN: so far down from where the stack was aligned */
	bool aligned;
	bool stored;
	bool known;
	bool frame; /* rbp is CFA - 16 */
};
struct walk {
	const struct ca_object *object;
	size_t budget;
	struct ca_disassembler *disassembler;
	struct ca_insn *insn;
	struct state *state; /* before each */
	size_t *todo;        /* of which what follows is to be seen */
	size_t n, room, waiting;
	struct ca_vec *out;
};

static const struct state entry = { .depth = WORD, .in = NOWHERE, .mark = UNKNOWN, .known = true };

/* ---- one instruction -------------------------------------------------------------------------*/
static void lose(struct state *s)
{
	s->depth = UNKNOWN;
	s->stored = false;
}

static bool knows_cfa(const struct state *s)
{
	return !s->aligned && s->depth != UNKNOWN;
}

/* A register is stored at `depth`. What it holds the first time is its caller's, unless it is the former stack
 * pointer. */
static void save(struct state *s, unsigned reg, int32_t depth)
{
	if (reg == s->in && s->aligned && !s->stored) {
		s->stored = true;
		s->slot = depth;
	} else if (reg == FP && !s->fp_at && !s->frame) {
		s->fp_at = depth;
		if (!knows_cfa(s)) /* nobody could tell where */
			s->copy = UNKNOWN;
	} else if (reg == BX && !s->bx_at) {
		s->bx_at = knows_cfa(s) ? depth : INT32_MAX;
	}
}

static void become_former(struct state *s, int32_t depth)
{
	s->depth = depth >= 0 ? depth : UNKNOWN;
	s->aligned = s->stored = false;
}

/* It has its caller's value again, or the former stack pointer. */
static void restore(struct state *s, unsigned reg, int32_t depth)
{
	if (s->stored && depth == s->slot) {
		if (reg == SP)
			become_former(s, s->copy);
		else
			s->in = (uint8_t)reg;
		return;
	}
	if (reg == SP)
		lose(s);
	if (!knows_cfa(s))
		return;
	if (reg == FP && depth == s->fp_at)
		s->fp_at = 0;
	if (reg == BX && depth == s->bx_at)
		s->bx_at = 0;
}

static void push(struct state *s, unsigned reg)
{
	if (s->depth == UNKNOWN)
		return;
	s->depth += WORD;
	save(s, reg, s->depth);
}

static void pop(struct state *s, unsigned reg)
{
	restore(s, reg, s->depth);
	if (reg != SP && s->depth != UNKNOWN)
		s->depth -= WORD;
}

static int32_t number(const uint8_t *at, bool wide)
{
	int32_t value;

	if (!wide)
		return (int8_t)*at;
	memcpy(&value, at, sizeof value);
	return value;
}

/* The stack pointer becomes what lies `value` above it, or above rbp. */
static void move(struct state *s, bool from_fp, int32_t value)
{
	if (from_fp && s->frame)
		become_former(s, 2 * WORD);
	else if (from_fp && s->aligned && s->mark != UNKNOWN)
		s->depth = s->mark;
	else if (from_fp)
		lose(s);
	if (s->depth != UNKNOWN && value <= s->depth)
		s->depth -= value;
	else
		lose(s);
}

static void align(struct state *s)
{
	lose(s);
	s->aligned = s->in != NOWHERE;
	if (s->aligned)
		s->depth = 0;
}

/* How far above a register the operand of a ModRM byte is. False: it is another register's, or not known. */
static bool above(unsigned reg, const uint8_t *m, uint8_t rex, int32_t *value)
{
	unsigned mod = *m >> 6;

	if (mod == 3 || ((*m & 7U) | (rex & 1U) << 3) != reg || (rex & 2))
		return false;
	if ((*m & 7) == 4 && *++m != 0x24)
		return false;
	if (mod == 0 && (reg & 7) == FP)
		return false;
	*value = mod ? number(m + 1, mod == 2) : 0;
	return true;
}

static void load_address(struct state *s, unsigned reg, const uint8_t *m, uint8_t rex)
{
	int32_t value;

	if (above(SP, m, rex, &value)) {
		if (reg == SP) {
			move(s, false, value);
		} else if (knows_cfa(s) && value <= s->depth) {
			s->in = (uint8_t)reg;
			s->copy = s->depth - value;
		}
	} else if (reg == SP) {
		if (s->in != NOWHERE && above(s->in, m, rex, &value))
			become_former(s, s->copy - value);
		else if (above(FP, m, rex, &value))
			move(s, true, value);
		else
			lose(s);
	}
}

static void copy(struct state *s, unsigned to, unsigned from)
{
	if (to == FP && from == SP && s->aligned)
		s->mark = s->depth;
	if (to == FP && from == SP && knows_cfa(s) && s->depth == 2 * WORD && s->fp_at == 2 * WORD) {
		s->frame = true;
	} else if (from == SP && to != SP && knows_cfa(s)) {
		s->in = (uint8_t)to;
		s->copy = s->depth;
	} else if (to == SP && from == s->in) {
		become_former(s, s->copy);
	} else if (to == SP && from == FP) {
		move(s, true, 0);
	} else if (to == SP) {
		lose(s);
	}
}

/* Instructions with a ModRM byte at m, which may write to the stack pointer or set up a frame. */
static void apply_modrm(struct state *s, uint8_t opcode, const uint8_t *m, uint8_t rex, bool wide)
{
	bool is_reg = *m >> 6 == 3;
	unsigned reg = (*m >> 3 & 7U) | (rex & 4U) << 1, rm = (*m & 7U) | (rex & 1U) << 3;
	int32_t value;

	switch (opcode) {
	case 0x81:
	case 0x83:
		if (!is_reg || rm != SP || reg == 7) /* cmp */
			break;
		if (reg == 5) /* sub */
			move(s, false, -number(m + 1, wide));
		else if (reg == 0) /* add */
			move(s, false, number(m + 1, wide));
		else if (reg == 4) /* and */
			align(s);
		else
			lose(s);
		break;
	case 0x8d: /* lea */
		load_address(s, reg, m, rex);
		break;
	case 0x8b:
		if (is_reg)
			copy(s, reg, rm);
		else if ((rex & 8) && s->depth != UNKNOWN && above(SP, m, rex, &value))
			restore(s, reg, s->depth - value);
		else if (reg == SP)
			lose(s);
		break;
	case 0x89:
		if (is_reg)
			copy(s, rm, reg);
		else if ((rex & 8) && s->depth != UNKNOWN && above(SP, m, rex, &value))
			save(s, reg, s->depth - value);
		break;
	case 0x8f:
		pop(s, UINT16_MAX);
		break;
	case 0xff:
		if ((reg & 7) == 6)
			push(s, UINT16_MAX);
		break;
	case 0x01:
	case 0x09:
	case 0x29:
	case 0x31:
	case 0xc1:
	case 0xd1:
		if (is_reg && rm == SP)
			lose(s);
		break;
	case 0x21: /* and */
		if (is_reg && rm == SP)
			align(s);
		break;
	case 0x03:
	case 0x0b:
	case 0x2b:
	case 0x33:
		if (reg == SP)
			lose(s);
		break;
	case 0x23:
		if (reg == SP)
			align(s);
		break;
	case 0x87:
		if (is_reg && (reg == SP || rm == SP))
			lose(s);
		break;
	default:
		break;
	}
}

static struct state after(const struct state *before, const struct ca_insn *insn)
{
	struct state s = *before;
	const uint8_t *b = insn->bytes;
	uint8_t rex = (*b & 0xf0) == 0x40 ? *b++ : 0;

	if (s.in != NOWHERE && (insn->changes >> dwarf_of[s.in] & 1))
		s.in = NOWHERE;
	if (insn->uses_sp && *b == 0xc9) { /* leave */
		move(&s, true, 0);
		pop(&s, FP);
	}
	if (insn->changes >> dwarf_of[FP] & 1) {
		s.frame = false;
		s.mark = UNKNOWN;
	}
	if (!insn->uses_sp || *b == 0xc9)
		return s;
	if ((*b & 0xf8) == 0x50) {
		push(&s, (*b & 7U) | (rex & 1U) << 3);
	} else if ((*b & 0xf8) == 0x58) {
		pop(&s, (*b & 7U) | (rex & 1U) << 3);
	} else if (*b == 0x68 || *b == 0x6a || *b == 0x9c) {
		push(&s, UINT16_MAX);
	} else if (*b == 0x9d) {
		pop(&s, UINT16_MAX);
	} else {
		apply_modrm(&s, *b, b + 1, rex, *b == 0x81);
	}
	return s;
}

/* ---- one function ----------------------------------------------------------------------------*/
static bool make_room(struct walk *w)
{
	size_t room = w->room ? 2 * w->room : 256;
	struct ca_insn *insn = realloc(w->insn, room * sizeof *insn);
	struct state *state = insn ? realloc(w->state, room * sizeof *state) : NULL;
	size_t *todo = state ? realloc(w->todo, room * sizeof *todo) : NULL;

	w->insn = insn ? insn : w->insn;
	w->state = state ? state : w->state;
	w->todo = todo ? todo : w->todo;
	w->room = todo ? room : w->room;
	return todo;
}

/* Vector instructions that the disassembler does not know, by their prefix (VEX, EVEX): none of them moves the
 * stack pointer. 0: it is none. */
static size_t vector_size(const uint8_t *code, size_t left)
{
	size_t prefix = *code == 0x62 ? 4 : *code == 0xc4 ? 3 : *code == 0xc5 ? 2 : 0;
	size_t size = prefix + 2; /* opcode, ModRM */
	uint8_t map, opcode, mod, rm;

	if (!prefix || left < 15)
		return 0;
	map = *code == 0xc5 ? 1 : code[1] & 7;
	opcode = code[prefix];
	mod = code[prefix + 1] >> 6;
	rm = code[prefix + 1] & 7;
	if (map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
				      opcode == 0xc4 || opcode == 0xc5 || opcode == 0xc6)))
		size++; /* a number */
	if (mod != 3 && rm == 4)
		size++; /* SIB */
	if (mod == 2 || (mod == 0 && rm == 5) || (mod == 0 && rm == 4 && (code[prefix + 2] & 7) == 5))
		size += 4;
	else if (mod == 1)
		size++;
	return size;
}

static bool decode_one(struct walk *w, const uint8_t *code, size_t left, uint64_t address)
{
	struct ca_insn *insn = &w->insn[w->n];

	if (ca_insn_decode(w->disassembler, code, left, address, insn))
		return true;
	*insn = (struct ca_insn){ .address = address, .size = (uint8_t)vector_size(code, left) };
	return insn->size;
}

/* Up to the first byte that is no instruction. */
static void decode(struct walk *w, uint64_t low, uint64_t high)
{
	size_t before, left = 0;
	const uint8_t *code = ca_object_bytes(w->object, low, &before, &left);

	w->n = 0;
	while (code && low < high && left && (w->n < w->room || make_room(w)) &&
	       decode_one(w, code, left, low)) {
		size_t size = w->insn[w->n++].size;

		low += size;
		code += size;
		left -= size;
	}
	if (w->n)
		memset(w->state, 0, w->n * sizeof *w->state);
}

static void reach(struct walk *w, long at, const struct state *state)
{
	if (at < 0 || (size_t)at >= w->n || w->state[at].known)
		return;
	w->state[at] = *state;
	w->todo[w->waiting++] = (size_t)at;
}

static void follow(struct walk *w)
{
	while (w->waiting) {
		size_t at = w->todo[--w->waiting];
		const struct ca_insn *insn = &w->insn[at];
		struct state next = after(&w->state[at], insn);

		if (ca_insn_is_jump(insn))
			reach(w, ca_insn_find(w->insn, w->n, insn->target), &next);
		else if (insn->kind == CA_INSN_CALL)
			reach(w, ca_insn_find(w->insn, w->n, insn->target), &entry);
		if (ca_insn_falls_through(insn))
			reach(w, (long)at + 1, &next);
	}
}

static void follow_all(struct walk *w)
{
	struct state otherwise = entry;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->state[i].known) {
			reach(w, (long)i, &otherwise);
			follow(w);
		}
		if (w->insn[i].kind == CA_INSN_JUMP_INDIRECT)
			otherwise = w->state[i];
	}
}

static struct ca_unwind_row row_of(const struct state *s, uint32_t address)
{
	struct ca_unwind_row row = { .address = address, .kind = CA_UNWIND_NONE };
	int32_t bx = s->bx_at / WORD, depth = s->frame ? 2 * WORD : knows_cfa(s) ? s->depth : s->copy;
	int32_t slot = s->depth - s->slot;

	if (depth < (knows_cfa(s) ? WORD : 0) || depth > WORD * INT16_MAX || s->fp_at > INT16_MAX)
		return row;
	row.fp_offset = (int16_t)(s->frame ? -depth : -s->fp_at);
	row.cfa_offset = (int16_t)(depth <= INT16_MAX ? depth : depth / WORD);
	if (s->frame || (!knows_cfa(s) && s->in == FP && depth <= INT16_MAX)) {
		row.kind = CA_UNWIND_FP;
	} else if (knows_cfa(s)) {
		row.kind = depth <= INT16_MAX ? CA_UNWIND_SP : CA_UNWIND_SP8;
	} else if (s->stored && slot >= 0 && slot <= INT16_MAX && depth % WORD == 0 && depth / WORD < 16) {
		row.kind = CA_UNWIND_SP_DEREF;
		row.reg = (unsigned)depth / WORD & 15;
		row.cfa_offset = (int16_t)slot;
	} else if (s->in != NOWHERE && depth <= INT16_MAX) {
		row.kind = CA_UNWIND_REG;
		row.reg = dwarf_of[s->in] & 15U;
	} else {
		return (struct ca_unwind_row){ .address = address, .kind = CA_UNWIND_NONE };
	}
	row.ra_offset = -WORD;
	row.bx_words = bx < -CA_UNWIND_LOST ? (int8_t)-bx : CA_UNWIND_LOST;
	return row;
}

static void emit(struct walk *w, uint32_t low, uint32_t high)
{
	struct ca_unwind_row last = { 0 }, row;
	uint32_t end = low;

	for (size_t i = 0; i < w->n; i++) {
		row = row_of(&w->state[i], (uint32_t)(w->insn[i].address - w->object->base));
		end = row.address + w->insn[i].size;
		last.address = row.address;
		if (i && !memcmp(&row, &last, sizeof row))
			continue;
		last = row;
		ca_vec_add(w->out, &row, 1);
	}
	if (w->n)
		ca_vec_add(w->out, &(struct ca_unwind_row){ .address = end < high ? end : high }, 1);
}

/* ---- all of them -----------------------------------------------------------------------------*/
static const struct ca_unwind_row *row_at(const struct ca_vec *rows, uint32_t address)
{
	const struct ca_unwind_row *row = rows->at;
	size_t from = 0, to = rows->n;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (row[middle].address <= address)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? &row[from - 1] : NULL;
}

/* Nothing is known from low to high. */
static bool is_bare(const struct ca_vec *rows, uint32_t low, uint32_t high)
{
	const struct ca_unwind_row *row = row_at(rows, low), *end;

	if (!row)
		return !rows->n || ((const struct ca_unwind_row *)rows->at)->address >= high;
	end = (const struct ca_unwind_row *)rows->at + rows->n;
	return row->kind == CA_UNWIND_NONE && !row->reg && (row + 1 == end || row[1].address >= high);
}

/* Of two rows for an address the later one counts: an old one says that nothing is known from there on. */
static void drop_replaced(struct ca_vec *rows)
{
	struct ca_unwind_row *row = rows->at;
	size_t n = 0;

	for (size_t i = 0; i < rows->n; i++) {
		bool again = n && row[n - 1].address == row[i].address;

		if (again && row[i].kind == CA_UNWIND_NONE && !row[i].reg)
			continue;
		row[again ? n - 1 : n++] = row[i];
	}
	rows->n = n;
}

void ca_bare_rows_add(const struct ca_object *object, const struct ca_vec *functions, struct ca_vec *rows)
{
	const struct ca_record_function *f = functions->at;
	struct ca_vec out = { .size = sizeof(struct ca_unwind_row) };
	struct walk w = { .object = object, .budget = ALL, .out = &out };

	for (size_t i = 0; i < functions->n; i++) {
		if (f[i].high - f[i].low > MOST || f[i].high - f[i].low > w.budget ||
		    !is_bare(rows, f[i].low, f[i].high))
			continue;
		if (!w.disassembler && !(w.disassembler = ca_insn_open()))
			break;
		w.budget -= f[i].high - f[i].low;
		decode(&w, object->base + f[i].low, object->base + f[i].high);
		follow_all(&w);
		emit(&w, f[i].low, f[i].high);
	}
	ca_insn_close(w.disassembler);
	if (out.n) {
		if (!rows->n) /* before the first */
			ca_vec_add(rows, &(struct ca_unwind_row){ 0 }, 1);
		ca_vec_add(rows, out.at, out.n);
		rows->failed |= out.failed;
		ca_vec_sort(rows);
		drop_replaced(rows);
	}
	ca_vec_free(&out);
	free(w.insn);
	free(w.state);
	free(w.todo);
}

/* SPDX-License-Identifier: MIT */
/* The instructions of call frame information (DWARF 5 section 6.4.2), run for what
 * a row holds: the CFA, the saved frame pointer and rbx, the return address.
 * What does not fit into a row (other expressions, values in registers) becomes
 * CA_UNWIND_NONE, where the walk of a stack ends. Driver's process. */
#include "binary/index/cfi_run.h"
#include "binary/index/index.h"
#include <dwarf.h>
#include <string.h>

enum { REG_BX = 3, REG_FP = 6, REG_SP = 7, REG_PC = 16, REMEMBERED = 32 };

enum rule_kind { RULE_SAME, RULE_UNDEFINED, RULE_OFFSET, RULE_EXPRESSION, RULE_OTHER };
struct rule {
	enum rule_kind kind;
	int64_t offset;
	const uint8_t *expression;
	uint64_t length;
};
struct state {
	bool cfa_is_expression;
	uint64_t cfa_reg;
	int64_t cfa_offset;
	const uint8_t *expression;
	uint64_t length;
	struct rule fp, bx, ra;
};
struct machine {
	struct state state, initial, remembered[REMEMBERED];
	unsigned depth;
	uint64_t ra_column;
	const struct ca_cie *cie;
	const struct ca_cursor_section *section;
	uint64_t base;
	bool bad;
};

static bool fits(int64_t value)
{
	return value >= INT16_MIN && value <= INT16_MAX;
}

/* fp + offset, and optionally what lies there: gcc's realigned frames. */
static bool is_fp_expression(const uint8_t *at, uint64_t length, bool deref, int64_t *offset)
{
	struct ca_cursor cursor = { .at = at, .end = at + length };

	if (ca_cursor_fixed(&cursor, 1) != DW_OP_breg0 + REG_FP)
		return false;
	*offset = ca_cursor_sleb(&cursor);
	if (deref && ca_cursor_fixed(&cursor, 1) != DW_OP_deref)
		return false;
	return !cursor.bad && cursor.at == cursor.end;
}

/* What lies at sp + offset, plus some words: assembly's realigned frames. */
static bool is_sp_expression(const uint8_t *at, uint64_t length, int64_t *offset, uint64_t *words)
{
	struct ca_cursor cursor = { .at = at, .end = at + length };
	uint64_t add = 0;

	if (ca_cursor_fixed(&cursor, 1) != DW_OP_breg0 + REG_SP)
		return false;
	*offset = ca_cursor_sleb(&cursor);
	if (ca_cursor_fixed(&cursor, 1) != DW_OP_deref)
		return false;
	if (cursor.at != cursor.end) {
		if (ca_cursor_fixed(&cursor, 1) != DW_OP_plus_uconst)
			return false;
		add = ca_cursor_uleb(&cursor);
	}
	*words = add / 8;
	return !cursor.bad && cursor.at == cursor.end && add % 8 == 0 && add / 8 < 16;
}

/* sp + 8 + ((pc & 15) >= limit) * 8, in the words that all linkers use. */
static bool is_plt_expression(const uint8_t *at, uint64_t length, unsigned *limit)
{
	static const uint8_t before[] = { DW_OP_breg0 + REG_SP, 8,        DW_OP_breg0 + REG_PC, 0,
					  DW_OP_lit15,          DW_OP_and };
	static const uint8_t after[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };

	if (length != sizeof(before) + 1 + sizeof(after) || memcmp(at, before, sizeof(before)) != 0 ||
	    memcmp(at + sizeof(before) + 1, after, sizeof(after)) != 0)
		return false;
	uint8_t op = at[sizeof(before)];
	if (op < DW_OP_lit0 || op > DW_OP_lit15)
		return false;
	*limit = (unsigned)(op - DW_OP_lit0);
	return true;
}

static bool cfa_to_row(const struct state *state, struct ca_unwind_row *row)
{
	int64_t offset = state->cfa_offset;
	uint64_t words;
	unsigned limit;

	if (state->cfa_is_expression) {
		if (is_plt_expression(state->expression, state->length, &limit)) {
			row->kind = CA_UNWIND_PLT;
			row->reg = limit & 15;
			offset = 8;
		} else if (is_fp_expression(state->expression, state->length, true, &offset)) {
			row->kind = CA_UNWIND_DEREF;
		} else if (is_sp_expression(state->expression, state->length, &offset, &words)) {
			row->kind = CA_UNWIND_SP_DEREF;
			row->reg = words & 15;
		} else {
			return false;
		}
	} else if (state->cfa_reg == REG_SP) {
		row->kind = CA_UNWIND_SP;
		if (!fits(offset) && offset % 8 == 0 && fits(offset / 8)) {
			row->kind = CA_UNWIND_SP8; /* a frame with a large array */
			offset /= 8;
		}
	} else if (state->cfa_reg == REG_FP) {
		row->kind = CA_UNWIND_FP;
	} else if (state->cfa_reg < REG_PC) {
		row->kind = CA_UNWIND_REG;
		row->reg = state->cfa_reg & 15;
	} else {
		return false;
	}
	row->cfa_offset = (int16_t)offset;
	return fits(offset);
}

static bool fp_to_row(const struct state *state, struct ca_unwind_row *row)
{
	int64_t offset;

	switch (state->fp.kind) {
	case RULE_SAME:
	case RULE_UNDEFINED:
		return row->kind != CA_UNWIND_DEREF;
	case RULE_OFFSET:
		row->fp_offset = (int16_t)state->fp.offset;
		return row->kind != CA_UNWIND_DEREF && fits(state->fp.offset) && state->fp.offset != 0;
	case RULE_EXPRESSION:
		row->kind = row->kind == CA_UNWIND_SP    ? CA_UNWIND_SP_BY_FP
			    : row->kind == CA_UNWIND_REG ? CA_UNWIND_REG_BY_FP
							 : row->kind;
		if (!ca_index_saves_by_fp(row->kind) ||
		    !is_fp_expression(state->fp.expression, state->fp.length, false, &offset))
			return false;
		row->fp_offset = (int16_t)offset;
		return fits(offset);
	default:
		return false;
	}
}

/* Nothing but rbx itself is lost where it does not fit. */
static int8_t bx_to_words(const struct state *state, const struct ca_unwind_row *row)
{
	const struct rule *bx = &state->bx;
	int64_t offset = bx->offset;

	if (bx->kind == RULE_SAME || bx->kind == RULE_UNDEFINED)
		return 0;
	if (ca_index_saves_by_fp(row->kind)
		    ? bx->kind != RULE_EXPRESSION ||
			      !is_fp_expression(bx->expression, bx->length, false, &offset)
		    : bx->kind != RULE_OFFSET)
		return CA_UNWIND_LOST;
	return offset % 8 || !offset || offset / 8 <= INT8_MIN || offset / 8 > INT8_MAX
		       ? CA_UNWIND_LOST
		       : (int8_t)(offset / 8);
}

static void push_row(const struct machine *machine, uint32_t address, struct ca_vec *rows)
{
	struct ca_unwind_row row = { .address = address };
	const struct rule *ra = &machine->state.ra;

	if (machine->cie->is_signal) {
		row.kind = CA_UNWIND_SIGNAL;
	} else if (ra->kind == RULE_UNDEFINED) {
		row.reg = 1; /* the outermost frame */
	} else if (!cfa_to_row(&machine->state, &row) || !fp_to_row(&machine->state, &row) ||
		   ra->kind != RULE_OFFSET || !fits(ra->offset) || ra->offset == 0) {
		row = (struct ca_unwind_row){ .address = address };
	} else {
		row.ra_offset = (int16_t)ra->offset;
		row.bx_words = bx_to_words(&machine->state, &row);
	}
	ca_vec_add(rows, &row, 1);
}

/* The rule of a register that we follow, or NULL. */
static struct rule *rule_of(struct machine *machine, struct state *state, uint64_t reg)
{
	if (reg == machine->ra_column)
		return &state->ra;
	return reg == REG_FP ? &state->fp : reg == REG_BX ? &state->bx : NULL;
}

static void set_rule(struct machine *machine, uint64_t reg, enum rule_kind kind, int64_t offset)
{
	struct rule *rule = rule_of(machine, &machine->state, reg);

	if (rule)
		*rule = (struct rule){ .kind = kind, .offset = offset };
}

static void restore_rule(struct machine *machine, uint64_t reg)
{
	struct rule *rule = rule_of(machine, &machine->state, reg);

	if (rule)
		*rule = *rule_of(machine, &machine->initial, reg);
}

static const uint8_t *take_block(struct ca_cursor *code, uint64_t *length)
{
	*length = ca_cursor_uleb(code);
	return ca_cursor_skip(code, *length);
}

static int64_t factored(const struct machine *machine, int64_t value)
{
	return (int64_t)((uint64_t)value * (uint64_t)machine->cie->data_factor);
}

static void set_cfa(struct machine *machine, uint64_t reg, int64_t offset)
{
	machine->state.cfa_is_expression = false;
	machine->state.cfa_reg = reg;
	machine->state.cfa_offset = offset;
}

static void set_expression_rule(struct machine *machine, struct ca_cursor *code, enum rule_kind kind)
{
	struct rule *rule = rule_of(machine, &machine->state, ca_cursor_uleb(code));
	uint64_t length;
	const uint8_t *at = take_block(code, &length);

	if (rule)
		*rule = (struct rule){ .kind = kind, .expression = at, .length = length };
}

/* Instructions that change the CFA. False if it is not one of them. */
static bool run_cfa(struct machine *machine, struct ca_cursor *code, uint8_t op)
{
	struct state *state = &machine->state;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = ca_cursor_uleb(code);
		set_cfa(machine, reg, (int64_t)ca_cursor_uleb(code));
		return true;
	case DW_CFA_def_cfa_sf:
		reg = ca_cursor_uleb(code);
		set_cfa(machine, reg, factored(machine, ca_cursor_sleb(code)));
		return true;
	case DW_CFA_def_cfa_register:
		set_cfa(machine, ca_cursor_uleb(code), state->cfa_offset);
		return true;
	case DW_CFA_def_cfa_offset:
		set_cfa(machine, state->cfa_reg, (int64_t)ca_cursor_uleb(code));
		return true;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(machine, state->cfa_reg, factored(machine, ca_cursor_sleb(code)));
		return true;
	case DW_CFA_def_cfa_expression:
		state->expression = take_block(code, &state->length);
		state->cfa_is_expression = true;
		return true;
	default:
		return false;
	}
}

/* Instructions that change the rule of a register. False if it is not one of them. */
static bool run_rule(struct machine *machine, struct ca_cursor *code, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_offset_extended:
		reg = ca_cursor_uleb(code);
		set_rule(machine, reg, RULE_OFFSET, factored(machine, (int64_t)ca_cursor_uleb(code)));
		return true;
	case DW_CFA_offset_extended_sf:
		reg = ca_cursor_uleb(code);
		set_rule(machine, reg, RULE_OFFSET, factored(machine, ca_cursor_sleb(code)));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		reg = ca_cursor_uleb(code);
		set_rule(machine, reg, RULE_OFFSET, -factored(machine, (int64_t)ca_cursor_uleb(code)));
		return true;
	case DW_CFA_restore_extended:
		restore_rule(machine, ca_cursor_uleb(code));
		return true;
	case DW_CFA_undefined:
		set_rule(machine, ca_cursor_uleb(code), RULE_UNDEFINED, 0);
		return true;
	case DW_CFA_same_value:
		set_rule(machine, ca_cursor_uleb(code), RULE_SAME, 0);
		return true;
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		reg = ca_cursor_uleb(code);
		ca_cursor_uleb(code); /* a signed number has the same length */
		set_rule(machine, reg, RULE_OTHER, 0);
		return true;
	case DW_CFA_expression:
		set_expression_rule(machine, code, RULE_EXPRESSION);
		return true;
	case DW_CFA_val_expression:
		set_expression_rule(machine, code, RULE_OTHER);
		return true;
	default:
		return false;
	}
}

static void run_other(struct machine *machine, struct ca_cursor *code, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_remember_state:
		if (machine->depth == REMEMBERED)
			machine->bad = true;
		else
			machine->remembered[machine->depth++] = machine->state;
		break;
	case DW_CFA_restore_state:
		if (machine->depth == 0)
			machine->bad = true;
		else
			machine->state = machine->remembered[--machine->depth];
		break;
	case DW_CFA_GNU_args_size:
		ca_cursor_uleb(code);
		break;
	default:
		machine->bad = true;
	}
}

/* If op moves the location: its new value in *to. */
static bool run_advance(const struct machine *machine, struct ca_cursor *code, uint8_t op, uint64_t at,
			uint64_t *to)
{
	unsigned bytes = op == DW_CFA_advance_loc1   ? 1
			 : op == DW_CFA_advance_loc2 ? 2
			 : op == DW_CFA_advance_loc4 ? 4
						     : 0;

	if ((op & 0xc0) == DW_CFA_advance_loc)
		*to = at + (op & 0x3f) * machine->cie->code_factor;
	else if (bytes > 0)
		*to = at + ca_cursor_fixed(code, bytes) * machine->cie->code_factor;
	else if (op == DW_CFA_set_loc)
		*to = ca_cursor_pointer(code, machine->cie->fde_encoding & 0x7f, machine->section) -
		      machine->base;
	else
		return false;
	return true;
}

/* rows NULL: initial instructions, where the location does not move. */
static bool run(struct machine *machine, struct ca_cursor code, uint32_t low, uint32_t high,
		struct ca_vec *rows)
{
	uint64_t at = low, to;

	while (code.at < code.end && !code.bad && !machine->bad) {
		uint8_t op = (uint8_t)ca_cursor_fixed(&code, 1);
		if (run_advance(machine, &code, op, at, &to)) {
			if (code.bad || !rows || to < at || to > high)
				return false;
			if (to > at)
				push_row(machine, (uint32_t)at, rows);
			at = to;
		} else if ((op & 0xc0) == DW_CFA_offset) {
			set_rule(machine, op & 0x3f, RULE_OFFSET,
				 factored(machine, (int64_t)ca_cursor_uleb(&code)));
		} else if ((op & 0xc0) == DW_CFA_restore) {
			restore_rule(machine, op & 0x3f);
		} else if (!run_cfa(machine, &code, op) && !run_rule(machine, &code, op)) {
			run_other(machine, &code, op);
		}
	}
	if (code.bad || machine->bad)
		return false;
	if (rows && at < high)
		push_row(machine, (uint32_t)at, rows);
	return true;
}

bool ca_cfi_run(const struct ca_fde *fde, const struct ca_cie *cie, const struct ca_cursor_section *section,
		uint64_t base, struct ca_vec *rows)
{
	struct machine machine = {
		.ra_column = cie->ra_column, .cie = cie, .section = section, .base = base
	};
	size_t before = rows->n;

	machine.state.cfa_reg = UINT64_MAX;
	if (run(&machine, cie->code, 0, 0, NULL)) {
		machine.initial = machine.state;
		if (run(&machine, fde->code, fde->low, fde->high, rows))
			return true;
	}
	/* what follows the last good row is unknown; nothing at all: the whole range is */
	struct ca_unwind_row none = { .address = fde->low };
	if (rows->n > before) {
		const struct ca_unwind_row *last = (struct ca_unwind_row *)rows->at + rows->n - 1;
		none.address = last->address + 1;
	}
	ca_vec_add(rows, &none, 1);
	return false;
}

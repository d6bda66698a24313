/* SPDX-License-Identifier: MIT */
/* Unwind rows against libdw's own reading of call frame information, for every row of this
 * test, of the libraries that it has loaded, and of code with unusual frames; and those of
 * instructions that compilers seldom or never write, and of damaged ones. */
#include "binary/index/cfi_run.h"
#include "core/vec.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>

/* Functions whose frames are not everyday ones. */
static const char unusual[] =
	"#include <alloca.h>\n"
	"typedef int v8 __attribute__((vector_size(32)));\n"
	"extern void use(void *);\n"
	"int realigned(int n) { v8 a; int *p = alloca(n); use(&a); use(p); return a[0]; }\n"
	"int large(void) { char b[100000]; use(b); return b[1]; }\n"
	"int huge(void) { static int x; char b[1000000]; use(b); return b[1] + x; }\n"
	"int dynamic(int n) { char b[n]; use(b); return b[0]; }\n"
	"void use(void *p) { *(volatile char *)p = 1; }\n"
	"int main(int c, char **v) { (void)v; return realigned(c) + large() + huge() + dynamic(c); "
	"}\n";

static int fits(Dwarf_Sword value)
{
	return value >= INT16_MIN && value <= INT16_MAX;
}

/* From the operations that libdw makes of a rule for a register saved at CFA + offset. */
static int cfa_relative(const Dwarf_Op *ops, size_t n, Dwarf_Sword *offset)
{
	*offset = 0;
	if (n == 0 || n > 2 || ops[0].atom != DW_OP_call_frame_cfa)
		return 0;
	if (n == 2 && ops[1].atom != DW_OP_plus_uconst)
		return 0;
	if (n == 2)
		*offset = (Dwarf_Sword)ops[1].number;
	return 1;
}

static int fp_relative(const Dwarf_Op *ops, size_t n, size_t wanted, Dwarf_Sword *offset)
{
	if (n != wanted || ops[0].atom != DW_OP_breg6)
		return 0;
	*offset = (Dwarf_Sword)ops[0].number;
	return n == 1 || ops[1].atom == DW_OP_deref;
}

static int set_cfa(Dwarf_Frame *frame, struct ca_unwind_row *row)
{
	Dwarf_Op *ops;
	size_t n;
	Dwarf_Sword offset;

	if (dwarf_frame_cfa(frame, &ops, &n) != 0)
		return 0;
	if (fp_relative(ops, n, 2, &offset)) {
		row->kind = CA_UNWIND_DEREF;
	} else if ((n == 2 || (n == 3 && ops[2].atom == DW_OP_plus_uconst)) && ops[0].atom == DW_OP_breg7 &&
		   ops[1].atom == DW_OP_deref &&
		   (n == 2 || (ops[2].number % 8 == 0 && ops[2].number < 128))) {
		row->kind = CA_UNWIND_SP_DEREF;
		row->reg = n == 3 ? ops[2].number / 8 & 15 : 0;
		offset = (Dwarf_Sword)ops[0].number;
	} else if (n == 9 && ops[0].atom == DW_OP_breg7 && ops[5].atom == DW_OP_ge) {
		row->kind = CA_UNWIND_PLT;
		row->reg = (unsigned)(ops[4].atom - DW_OP_lit0) & 15;
		offset = 8;
	} else if (n == 1 && ops[0].atom == DW_OP_bregx) {
		offset = (Dwarf_Sword)ops[0].number2;
		row->kind = ops[0].number == 7   ? CA_UNWIND_SP
			    : ops[0].number == 6 ? CA_UNWIND_FP
						 : CA_UNWIND_REG;
		row->reg = row->kind == CA_UNWIND_REG ? ops[0].number & 15 : 0;
		if (row->kind == CA_UNWIND_SP && !fits(offset) && offset % 8 == 0) {
			row->kind = CA_UNWIND_SP8;
			offset /= 8;
		}
	} else {
		return 0;
	}
	row->cfa_offset = (int16_t)offset;
	return fits(offset);
}

/* Saved at fp + offset. libdw pushes the CFA in front of an expression, as the standard has it. */
static bool is_by_fp(const Dwarf_Op *ops, size_t n, Dwarf_Sword *offset)
{
	return n == 2 && ops[0].atom == DW_OP_call_frame_cfa && fp_relative(ops + 1, 1, 1, offset);
}

static int8_t bx_of(Dwarf_Frame *frame, unsigned kind)
{
	Dwarf_Op memory[3], *ops;
	Dwarf_Sword offset = 0;
	size_t n;

	if (dwarf_frame_register(frame, 3, memory, &ops, &n) != 0)
		return CA_UNWIND_LOST;
	if (n == 0)
		return 0;
	if (!(ca_index_saves_by_fp(kind) ? is_by_fp(ops, n, &offset) : cfa_relative(ops, n, &offset)) ||
	    !offset || offset % 8 || offset / 8 <= INT8_MIN || offset / 8 > INT8_MAX)
		return CA_UNWIND_LOST;
	return (int8_t)(offset / 8);
}

/* What the row of an address should be. */
static struct ca_unwind_row expected(Dwarf_Frame *frame)
{
	struct ca_unwind_row row = { 0 }, none = { 0 };
	Dwarf_Op memory[3], *ops;
	size_t n;
	Dwarf_Sword offset;
	bool signal = false;
	int ra = dwarf_frame_info(frame, NULL, NULL, &signal);

	if (signal)
		return (struct ca_unwind_row){ .kind = CA_UNWIND_SIGNAL };
	if (dwarf_frame_register(frame, ra, memory, &ops, &n) != 0)
		return none;
	if (n == 0 && ops == memory)
		return (struct ca_unwind_row){ .reg = 1 };
	if (!cfa_relative(ops, n, &offset) || offset == 0 || !fits(offset) || !set_cfa(frame, &row))
		return none;
	row.ra_offset = (int16_t)offset;
	if (dwarf_frame_register(frame, 6, memory, &ops, &n) != 0)
		return none;
	if (is_by_fp(ops, n, &offset)) {
		row.kind = row.kind == CA_UNWIND_SP    ? CA_UNWIND_SP_BY_FP
			   : row.kind == CA_UNWIND_REG ? CA_UNWIND_REG_BY_FP
						       : row.kind;
		if (!ca_index_saves_by_fp(row.kind))
			return none;
	} else if (row.kind == CA_UNWIND_DEREF) {
		return none;
	} else if (n == 0) {
		offset = 0;
	} else if (!cfa_relative(ops, n, &offset) || offset == 0) {
		return none;
	}
	row.fp_offset = (int16_t)offset;
	row.bx_words = bx_of(frame, row.kind);
	return row;
}

static void check_address(const struct ca_index *index, Dwarf_CFI *cfi, uint64_t address, unsigned *compared)
{
	const struct ca_unwind_row *row = ca_index_find_row(index, address);
	struct ca_unwind_row wanted;
	Dwarf_Frame *frame = NULL;

	assert_non_null(row);
	/* else there is no row, or one from the instructions: test_binary_bare */
	if (dwarf_cfi_addrframe(cfi, address, &frame) != 0)
		return;
	wanted = expected(frame);
	(*compared)++;
	if (row->kind != wanted.kind || row->cfa_offset != wanted.cfa_offset ||
	    row->fp_offset != wanted.fp_offset || row->ra_offset != wanted.ra_offset ||
	    row->reg != wanted.reg || row->bx_words != wanted.bx_words)
		fail_msg("%s %#llx: kind %d cfa %d fp %d bx %d ra %d reg %d, libdw: %d %d %d %d %d %d",
			 ca_index_binary(index), (unsigned long long)address, row->kind, row->cfa_offset,
			 row->fp_offset, row->bx_words, row->ra_offset, row->reg, wanted.kind,
			 wanted.cfa_offset, wanted.fp_offset, wanted.bx_words, wanted.ra_offset, wanted.reg);
	free(frame);
}

/* Every row's first and last byte, of at most `limit` rows spread over the file. */
static void check_file(const char *path, size_t limit)
{
	struct ca_index *index = fixture_open(path, CA_INDEX_UNWIND);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	unsigned compared = 0;

	assert_non_null(index);
	assert_non_null(cfi);
	size_t n = ca_index_rows(index), step = n / limit + 1;
	assert_true(n > 0);
	for (size_t i = 0; i + 1 < n; i += step) {
		uint64_t base = ca_index_base(index);
		check_address(index, cfi, base + ca_index_row_at(index, i)->address, &compared);
		check_address(index, cfi, base + ca_index_row_at(index, i + 1)->address - 1, &compared);
	}
	assert_true(compared > n / step / 2);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
	ca_index_close(index);
}

static int check_library(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	(void)data;
	if (info->dlpi_name[0] == '/')
		check_file(info->dlpi_name, 20000);
	return 0;
}

static void test_loaded_libraries(void **state)
{
	(void)state;
	dl_iterate_phdr(check_library, NULL);
}

static void test_this_program(void **state)
{
	(void)state;
	check_file("/proc/self/exe", 20000);
}

static size_t count_kind(const struct ca_index *index, enum ca_unwind_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < ca_index_rows(index); i++)
		n += ca_index_row_at(index, i)->kind == (uint8_t)kind;
	return n;
}

static void test_unusual_frames(void **state)
{
	struct ca_index *index;

	(void)state;
	fixture_write("u.c", unusual);
	assert_int_equal(fixture_run("%s -mavx2 -O1 -w -fcf-protection=none -o u u.c", fixture_cc()), 0);
	check_file(fixture_path("u"), 1000000);
	index = fixture_open("u", CA_INDEX_UNWIND);
	assert_true(count_kind(index, CA_UNWIND_DEREF) > 0);
	assert_true(count_kind(index, CA_UNWIND_SP8) > 0);
	ca_index_close(index);
}

/* Without .eh_frame the rows come from .debug_frame. */
static void test_debug_frame(void **state)
{
	struct ca_index *index;
	const struct ca_unwind_row *row;
	struct ca_index_function function;
	bool found = false;

	(void)state;
	fixture_write("d.c", "int f(int x) { return x * 2; }\nvoid _start(void) { f(1); for (;;); }\n");
	assert_int_equal(fixture_run("%s -g -O0 -w -fno-asynchronous-unwind-tables -nostdlib "
				     "-static -o d d.c",
				     fixture_cc()),
			 0);
	index = fixture_open("d", CA_INDEX_UNWIND);
	assert_non_null(index);
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &function);
		if (strcmp(function.name, "f") != 0)
			continue;
		found = true;
		row = ca_index_find_row(index, function.low);
		assert_non_null(row);
		assert_int_equal(row->kind, CA_UNWIND_SP);
		assert_int_equal(row->cfa_offset, 8);
		assert_int_equal(row->ra_offset, -8);
		row = ca_index_find_row(index, function.low + 5);
		assert_int_equal(row->kind, CA_UNWIND_FP);
		assert_int_equal(row->fp_offset, -16);
	}
	assert_true(found);
	ca_index_close(index);
}

/* ---- instructions one by one ------------------------------------------------------------*/
enum { RBX = 3, FP = 6, R10 = 10, RA = 16, END = 1000 };
#define ADVANCE(n)     (DW_CFA_advance_loc | (n))
#define OFFSET(reg, n) (DW_CFA_offset | (reg)), (n)
#define RESTORE(reg)   (DW_CFA_restore | (reg))
/* The CFA lies at reg - 16, the frame pointer at reg + n. */
#define CFA_BY(reg, op) DW_CFA_def_cfa_expression, 3, DW_OP_breg0 + (reg), 0x70, (op)
#define FP_BY(reg, n)   DW_CFA_expression, FP, 2, DW_OP_breg0 + (reg), (n)

#define ROW(at, kind_, cfa, fp)                                                                              \
	{                                                                                                    \
		(at), (cfa), (fp), CA_UNWIND_##kind_, 0, 0, -8                                               \
	}
#define RBX_AT(at, kind_, words)                                                                             \
	{                                                                                                    \
		(at), 8, 0, CA_UNWIND_##kind_, 0, (words), -8                                                \
	}
#define FIRST         ROW(0, SP, 8, 0) /* as behind a call */
#define SAVED(at, fp) ROW(at, SP, 8, fp)
#define UNKNOWN(at)                                                                                          \
	{                                                                                                    \
		(at), 0, 0, CA_UNWIND_NONE, 0, 0, 0                                                          \
	}

static const struct program {
	const char *what;
	uint8_t code[24];
	size_t n;
	struct ca_unwind_row row[5];
	size_t rows;
	bool damaged;
} programs[] = {
#define COUNT_OF(type, ...) (sizeof((type[]){ __VA_ARGS__ }) / sizeof(type))
#define RUN(what_, ...)     .what = (what_), .code = { __VA_ARGS__ }, .n = COUNT_OF(uint8_t, __VA_ARGS__)
#define ROWS(...)           .row = { __VA_ARGS__ }, .rows = COUNT_OF(struct ca_unwind_row, __VA_ARGS__)
	{ RUN("nothing", DW_CFA_nop), ROWS(FIRST) },
	{ RUN("push and move", ADVANCE(1), DW_CFA_def_cfa_offset, 16, OFFSET(FP, 2), ADVANCE(3),
	      DW_CFA_def_cfa_register, FP, ADVANCE(10), DW_CFA_def_cfa, 7, 8),
	  ROWS(FIRST, ROW(1, SP, 16, -16), ROW(4, FP, 16, -16), SAVED(14, -16)) },
	{ RUN("advances", DW_CFA_advance_loc1, 200, OFFSET(FP, 2), DW_CFA_advance_loc2, 44, 1, OFFSET(FP, 3),
	      DW_CFA_advance_loc4, 44, 1, 0, 0, OFFSET(FP, 4)),
	  ROWS(FIRST, SAVED(200, -16), SAVED(500, -24), SAVED(800, -32)) },
	{ RUN("no advance", ADVANCE(0), OFFSET(FP, 2), ADVANCE(5), DW_CFA_GNU_args_size, 0x90, 1),
	  ROWS(SAVED(0, -16), SAVED(5, -16)) },
	{ RUN("set_loc", DW_CFA_set_loc, 9, 0x10, 0, 0, 0, 0, 0, 0, OFFSET(FP, 2)),
	  ROWS(FIRST, SAVED(9, -16)) },
	/* the saved frame pointer */
	{ RUN("same value", OFFSET(FP, 2), ADVANCE(1), DW_CFA_same_value, FP),
	  ROWS(SAVED(0, -16), SAVED(1, 0)) },
	{ RUN("undefined", OFFSET(FP, 2), ADVANCE(1), DW_CFA_undefined, FP),
	  ROWS(SAVED(0, -16), SAVED(1, 0)) },
	{ RUN("restored", OFFSET(FP, 2), ADVANCE(1), RESTORE(FP)), ROWS(SAVED(0, -16), SAVED(1, 0)) },
	{ RUN("restored, extended", OFFSET(FP, 2), ADVANCE(1), DW_CFA_restore_extended, FP),
	  ROWS(SAVED(0, -16), SAVED(1, 0)) },
	{ RUN("offset, extended", DW_CFA_offset_extended, FP, 3), ROWS(SAVED(0, -24)) },
	{ RUN("with a sign", DW_CFA_offset_extended_sf, FP, 0x7d), ROWS(SAVED(0, 24)) },
	{ RUN("the other way", DW_CFA_GNU_negative_offset_extended, FP, 3), ROWS(SAVED(0, 24)) },
	{ RUN("in a register", DW_CFA_register, FP, RBX), ROWS(UNKNOWN(0)) },
	{ RUN("as a value", DW_CFA_val_offset, FP, 2), ROWS(UNKNOWN(0)) },
	{ RUN("as a value with a sign", DW_CFA_val_offset_sf, FP, 0x7d), ROWS(UNKNOWN(0)) },
	{ RUN("as an expression's value", DW_CFA_val_expression, FP, 2, DW_OP_breg0 + FP, 0),
	  ROWS(UNKNOWN(0)) },
	{ RUN("by an expression", FP_BY(FP, 0)), ROWS(ROW(0, SP_BY_FP, 8, 0)) },
	{ RUN("by another register's expression", FP_BY(RBX, 0)), ROWS(UNKNOWN(0)) },
	{ RUN("at the CFA itself", OFFSET(FP, 0)), ROWS(UNKNOWN(0)) },
	{ RUN("far", DW_CFA_offset_extended, FP, 0x81, 0x20), ROWS(UNKNOWN(0)) },
	{ RUN("a register that nobody follows", OFFSET(R10, 3), DW_CFA_register, R10, RBX, DW_CFA_same_value,
	      R10, DW_CFA_undefined, R10),
	  ROWS(FIRST) },
	/* the saved rbx */
	{ RUN("rbx saved", OFFSET(RBX, 3), ADVANCE(1), RESTORE(RBX)),
	  ROWS(RBX_AT(0, SP, -3), ROW(1, SP, 8, 0)) },
	{ RUN("rbx in a register", DW_CFA_register, RBX, R10), ROWS(RBX_AT(0, SP, CA_UNWIND_LOST)) },
	{ RUN("rbx far", DW_CFA_offset_extended, RBX, 0x81, 1), ROWS(RBX_AT(0, SP, CA_UNWIND_LOST)) },
	{ RUN("rbx by an expression", FP_BY(FP, 0), DW_CFA_expression, RBX, 2, DW_OP_breg0 + FP, 0x78),
	  ROWS(RBX_AT(0, SP_BY_FP, -1)) },
	/* the return address */
	{ RUN("outermost", ADVANCE(1), DW_CFA_undefined, RA),
	  ROWS(FIRST, { 1, 0, 0, CA_UNWIND_NONE, 1, 0, 0 }) },
	{ RUN("not saved", DW_CFA_same_value, RA, ADVANCE(1), DW_CFA_restore_extended, RA),
	  ROWS(UNKNOWN(0), SAVED(1, 0)) },
	{ RUN("returns to a register", DW_CFA_register, RA, RBX), ROWS(UNKNOWN(0)) },
	{ RUN("elsewhere", OFFSET(RA, 2)), ROWS({ 0, 8, 0, CA_UNWIND_SP, 0, 0, -16 }) },
	/* the CFA */
	{ RUN("of another register", DW_CFA_def_cfa, R10, 24),
	  ROWS({ 0, 24, 0, CA_UNWIND_REG, R10, 0, -8 }) },
	{ RUN("of none", DW_CFA_def_cfa, RA, 24), ROWS(UNKNOWN(0)) },
	{ RUN("factored", DW_CFA_def_cfa_sf, FP, 0x7d, ADVANCE(1), DW_CFA_def_cfa_offset_sf, 0x7e),
	  ROWS(ROW(0, FP, 24, 0), ROW(1, FP, 16, 0)) },
	{ RUN("large", DW_CFA_def_cfa_offset, 0x80, 0x80, 4, ADVANCE(1), DW_CFA_def_cfa_offset, 0x81, 0x80,
	      4),
	  ROWS(ROW(0, SP8, 8192, 0), UNKNOWN(1)) },
	{ RUN("realigned", CFA_BY(FP, DW_OP_deref), FP_BY(FP, 0)), ROWS(ROW(0, DEREF, -16, 0)) },
	{ RUN("fp beside it", CFA_BY(FP, DW_OP_deref), FP_BY(FP, 8)), ROWS(ROW(0, DEREF, -16, 8)) },
	{ RUN("fp lost", CFA_BY(FP, DW_OP_deref)), ROWS(UNKNOWN(0)) },
	{ RUN("fp by another", CFA_BY(FP, DW_OP_deref), FP_BY(RBX, 0)), ROWS(UNKNOWN(0)) },
	{ RUN("CFA by another", CFA_BY(RBX, DW_OP_deref), FP_BY(FP, 0)), ROWS(UNKNOWN(0)) },
	{ RUN("not what lies there", CFA_BY(FP, DW_OP_neg), FP_BY(FP, 0)), ROWS(UNKNOWN(0)) },
	{ RUN("and something more", DW_CFA_def_cfa_expression, 4, DW_OP_breg0 + FP, 0x70, DW_OP_deref,
	      DW_OP_neg, FP_BY(FP, 0)),
	  ROWS(UNKNOWN(0)) },
	{ RUN("realigned by assembly", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 0x98, 1, DW_OP_deref,
	      DW_OP_plus_uconst, 8, OFFSET(FP, 3)),
	  ROWS({ 0, 152, -24, CA_UNWIND_SP_DEREF, 1, 0, -8 }) },
	{ RUN("to the CFA itself", DW_CFA_def_cfa_expression, 3, DW_OP_breg7, 16, DW_OP_deref),
	  ROWS(ROW(0, SP_DEREF, 16, 0)) },
	{ RUN("not by words", DW_CFA_def_cfa_expression, 5, DW_OP_breg7, 16, DW_OP_deref, DW_OP_plus_uconst,
	      9),
	  ROWS(UNKNOWN(0)) },
	{ RUN("too many of them", DW_CFA_def_cfa_expression, 6, DW_OP_breg7, 16, DW_OP_deref,
	      DW_OP_plus_uconst, 0x80, 1),
	  ROWS(UNKNOWN(0)) },
	{ RUN("more, not plus", DW_CFA_def_cfa_expression, 4, DW_OP_breg7, 16, DW_OP_deref, DW_OP_deref),
	  ROWS(UNKNOWN(0)) },
	{ RUN("an empty one", DW_CFA_def_cfa_expression, 0), ROWS(UNKNOWN(0)) },
	/* a state that comes back */
	{ RUN("remembered", OFFSET(FP, 2), DW_CFA_remember_state, ADVANCE(1), DW_CFA_def_cfa, FP, 32,
	      RESTORE(FP), ADVANCE(1), DW_CFA_restore_state),
	  ROWS(SAVED(0, -16), ROW(1, FP, 32, 0), SAVED(2, -16)) },
	/* damaged: what was good stays, what follows is unknown */
	{ RUN("never remembered", ADVANCE(4), DW_CFA_restore_state), ROWS(FIRST, UNKNOWN(1)), true },
	{ RUN("no such instruction", ADVANCE(4), 0x3b), ROWS(FIRST, UNKNOWN(1)), true },
	{ RUN("torn", ADVANCE(4), DW_CFA_def_cfa, FP), ROWS(FIRST, UNKNOWN(1)), true },
	{ RUN("a block beyond the end", DW_CFA_expression, FP, 3, 1, 2), ROWS(UNKNOWN(0)), true },
	{ RUN("beyond the function", DW_CFA_advance_loc2, 0xe9, 3), ROWS(UNKNOWN(0)), true },
	{ RUN("backwards", ADVANCE(8), OFFSET(FP, 2), DW_CFA_set_loc, 7, 0x10, 0, 0, 0, 0, 0, 0),
	  ROWS(FIRST, UNKNOWN(1)), true },
};

static void test_instructions(void **state)
{
	static const uint8_t entry[] = { DW_CFA_def_cfa, 7, 8, OFFSET(RA, 1) };
	static const struct ca_cursor_section place;
	const struct ca_cie cie = { .code = { entry, entry + sizeof entry, false },
				    .code_factor = 1,
				    .data_factor = -8,
				    .ra_column = RA };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(programs); i++) {
		const struct program *p = &programs[i];
		struct ca_fde fde = { .low = 0, .high = END, .code = { p->code, p->code + p->n, false } };
		struct ca_vec rows = { .size = sizeof(struct ca_unwind_row) };

		if (ca_cfi_run(&fde, &cie, &place, 0x1000, &rows) == p->damaged)
			fail_msg("%s: %s", p->what, p->damaged ? "taken" : "refused");
		if (rows.n != p->rows)
			fail_msg("%s: %zu rows", p->what, rows.n);
		for (size_t k = 0; k < rows.n; k++) {
			const struct ca_unwind_row *row = (const struct ca_unwind_row *)rows.at + k;
			const struct ca_unwind_row *wanted = &p->row[k];

			if (row->address != wanted->address || row->kind != wanted->kind ||
			    row->reg != wanted->reg || row->cfa_offset != wanted->cfa_offset ||
			    row->fp_offset != wanted->fp_offset || row->ra_offset != wanted->ra_offset ||
			    row->bx_words != wanted->bx_words)
				fail_msg("%s, row %zu: %u: kind %d reg %d cfa %d fp %d bx %d ra %d", p->what,
					 k, row->address, row->kind, row->reg, row->cfa_offset,
					 row->fp_offset, row->bx_words, row->ra_offset);
		}
		ca_vec_free(&rows);
	}
}

/* The look-up against a plain search, also where no row is. */
static void test_find_row(void **state)
{
	struct ca_index *index = fixture_open("/proc/self/exe", CA_INDEX_UNWIND);
	size_t n, at = 0;

	(void)state;
	assert_non_null(index);
	n = ca_index_rows(index);
	uint64_t base = ca_index_base(index);
	for (uint32_t a = 0; a < ca_index_row_at(index, n - 1)->address + 100; a++) {
		while (at + 1 < n && ca_index_row_at(index, at + 1)->address <= a)
			at++;
		assert_ptr_equal(ca_index_find_row(index, base + a), ca_index_row_at(index, at));
	}
	assert_null(ca_index_find_row(index, base - 1));
	assert_null(ca_index_find_row(index, base + (UINT64_C(1) << 33)));
	assert_null(ca_index_find_row(index, UINT64_MAX));
	ca_index_close(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_this_program),   cmocka_unit_test(test_loaded_libraries),
		cmocka_unit_test(test_unusual_frames), cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_find_row),       cmocka_unit_test(test_instructions),
	};

	elf_version(EV_CURRENT);
	return cmocka_run_group_tests(tests, fixture_make, fixture_remove);
}

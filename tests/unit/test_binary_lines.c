/* SPDX-License-Identifier: MIT */
/* binary/index/line_table.c on tables made by hand: what compilers seldom write, and what nobody should. */
#include "binary/index/index_file.h"
#include "binary/index/line_table.h"
#include "tests/unit/unit.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* ---- making tables ------------------------------------------------------------------------*/
static uint8_t section[4096];
static size_t used;

static void put(const void *bytes, size_t n)
{
	assert_true(used + n <= sizeof section);
	memcpy(section + used, bytes, n);
	used += n;
}

static void fixed(uint64_t value, unsigned bytes)
{
	put(&value, bytes);
}

static void byte(unsigned value)
{
	fixed(value, 1);
}

static void text(const char *value)
{
	put(value, strlen(value) + 1);
}

static void patch(size_t at, uint64_t value, unsigned bytes)
{
	memcpy(section + at, &value, bytes);
}

/* A header up to its tables of names, as gcc writes it but for what a case wants otherwise. */
struct header {
	unsigned version, max_ops, line_range, opcode_base;
	bool wide;
};
static const struct header usual = { 5, 1, 14, 13, false };
static size_t length_at, header_at;

static void begin(const struct header *h)
{
	static const uint8_t operands[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

	used = 0;
	if (h->wide)
		fixed(UINT32_MAX, 4);
	length_at = used;
	fixed(0, h->wide ? 8 : 4);
	fixed(h->version, 2);
	if (h->version >= 5) {
		byte(8);
		byte(0);
	}
	header_at = used;
	fixed(0, h->wide ? 8 : 4);
	byte(1); /* the shortest instruction */
	if (h->version >= 4)
		byte(h->max_ops);
	byte(1); /* is_stmt */
	byte((unsigned)-5 & 255);
	byte(h->line_range);
	byte(h->opcode_base);
	put(operands, sizeof operands);
	for (size_t i = sizeof operands + 1; i < h->opcode_base; i++)
		byte(2);
}

static void end_header(const struct header *h)
{
	unsigned word = h->wide ? 8 : 4;

	patch(header_at, used - header_at - word, word);
}

static void end(const struct header *h)
{
	unsigned word = h->wide ? 8 : 4;

	patch(length_at, used - length_at - word, word);
}

/* One folder and one file, of DWARF 5. */
static void plain_names(void)
{
	byte(1), byte(DW_LNCT_path), byte(DW_FORM_string);
	byte(1), text("/src");
	byte(2), byte(DW_LNCT_path), byte(DW_FORM_string), byte(DW_LNCT_directory_index), byte(DW_FORM_udata);
	byte(1), text("a.c"), byte(0);
}

/* ---- reading them ---------------------------------------------------------------------------*/
static char text_section[] = "zero\0one\0";
static Elf_Data line_data = { .d_buf = section },
		text_data = { .d_buf = text_section, .d_size = sizeof text_section };
static const struct ca_line_sections sections = { &line_data, &text_data, &text_data };
static struct ca_strings strings;
static struct ca_line_table table;

static bool read_header(void)
{
	line_data.d_size = used;
	return ca_line_table_read(&table, &sections, 0, "/unit", "main.c", &strings);
}

static const char *file_name(uint64_t number)
{
	return ca_strings_get(&strings, ca_line_table_file(&table, number));
}

static int tear_down(void **state)
{
	(void)state;
	ca_line_table_free(&table);
	ca_strings_free(&strings);
	memset(&strings, 0, sizeof strings);
	return 0;
}

/* Whatever else is said of a file, its name comes behind it. */
static void test_forms(void **state)
{
	static const struct {
		uint8_t form;
		size_t n;
		uint8_t bytes[20];
	} cases[] = {
		{ DW_FORM_udata, 3, { 0x81, 0x82, 0x03 } },
		{ DW_FORM_data1, 1, { 7 } },
		{ DW_FORM_data2, 2, { 7, 7 } },
		{ DW_FORM_data4, 4, { 7, 7, 7, 7 } },
		{ DW_FORM_data8, 8, { 7, 7, 7, 7, 7, 7, 7, 7 } },
		{ DW_FORM_data16, 16, { 7 } },
		{ DW_FORM_block, 4, { 3, 7, 7, 7 } },
		{ DW_FORM_string, 4, { 'x', 'y', 'z', 0 } },
		{ DW_FORM_line_strp, 4, { 5 } },
		{ DW_FORM_strp, 4, { 5 } },
		{ DW_FORM_strp_sup, 4, { 5 } },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		for (unsigned k = 0; k < 2; k++) {
			begin(&usual);
			byte(1), byte(DW_LNCT_path), byte(DW_FORM_string);
			byte(2), text("/src"), text("inc");
			byte(3), byte(k ? DW_LNCT_timestamp : DW_LNCT_MD5), byte(cases[i].form);
			byte(DW_LNCT_path), byte(DW_FORM_string), byte(DW_LNCT_directory_index),
				byte(DW_FORM_data1);
			byte(2);
			put(cases[i].bytes, cases[i].n), text("a.c"), byte(1);
			put(cases[i].bytes, cases[i].n), text("../b.c"), byte(0);
			end_header(&usual);
			end(&usual);
			if (!read_header())
				fail_msg("form %#x", cases[i].form);
			assert_string_equal(file_name(0), "/src/inc/a.c");
			assert_string_equal(file_name(1), "/b.c");
			assert_int_equal(ca_line_table_file(&table, 2), 0);
			tear_down(state);
		}
	}
}

/* The same folders and files, in all versions and both formats. */
static void test_versions(void **state)
{
	for (unsigned version = 2; version <= 5; version++)
		for (unsigned wide = 0; wide < 2; wide++) {
			struct header h = usual;

			h.version = version;
			h.wide = wide;
			begin(&h);
			if (version == 5) {
				byte(1), byte(DW_LNCT_path), byte(DW_FORM_line_strp);
				byte(2), fixed(0, wide ? 8 : 4), fixed(5, wide ? 8 : 4);
				byte(2), byte(DW_LNCT_path), byte(DW_FORM_string);
				byte(DW_LNCT_directory_index), byte(DW_FORM_data2);
				byte(3), text("main.c"), fixed(0, 2), text("main.c"), fixed(0, 2),
					text("a.c"), fixed(1, 2);
			} else {
				text("zero/one"), text("");
				text("main.c"), byte(0), byte(0), byte(0);
				text("a.c"), byte(1), byte(0x85), byte(1), byte(9);
				byte(0);
			}
			end_header(&h);
			end(&h);
			assert_true(read_header());
			assert_int_equal(table.version, version);
			assert_string_equal(file_name(1),
					    version == 5 ? "/unit/zero/main.c" : "/unit/main.c");
			assert_string_equal(file_name(2), "/unit/zero/one/a.c");
			tear_down(state);
		}
}

/* Folder and file become one path, without detours where that can be. */
static void test_paths(void **state)
{
	static const struct {
		const char *folder, *file, *wanted;
	} cases[] = {
		{ "", "b.c", "b.c" },
		{ "a", "b.c", "a/b.c" },
		{ "/a", "b.c", "/a/b.c" },
		{ "/a", "/b.c", "/b.c" },
		{ "a", "/b.c", "/b.c" },
		{ "a/./b//", "./c//d.c", "a/b/c/d.c" },
		/* up, from names of one letter, too */
		{ "a", "../b.c", "b.c" },
		{ "ab", "../b.c", "b.c" },
		{ "/a", "../b.c", "/b.c" },
		{ "a/b", "../c.c", "a/c.c" },
		{ "a/b", "../../c.c", "c.c" },
		{ "a/..", "b.c", "b.c" },
		{ "..a", "../b.c", "b.c" },
		/* nothing is above the root; above a relative folder there is */
		{ "/a", "../../b.c", "/b.c" },
		{ "a", "../../b.c", "../b.c" },
		{ "", "../b.c", "../b.c" },
		{ "..", "../b.c", "../../b.c" },
		{ "../..", "../b.c", "../../../b.c" },
		{ "../a", "../b.c", "../b.c" },
	};
	struct header h = usual;

	h.version = 4;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		begin(&h);
		text("");
		text(cases[i].file), byte(0), byte(0), byte(0);
		byte(0);
		end_header(&h);
		end(&h);
		line_data.d_size = used;
		assert_true(ca_line_table_read(&table, &sections, 0, cases[i].folder, "main.c", &strings));
		assert_string_equal(file_name(1), cases[i].wanted);
		tear_down(state);
	}
}

/* ---- headers that cannot be ----------------------------------------------------------------------*/
enum damage {
	NONE,
	LENGTH,
	TORN,
	VERSION_1,
	VERSION_6,
	ADDRESS_4,
	SEGMENTS,
	HEADER,
	RANGE,
	BASE,
	FORMATS,
	FORM,
	COUNT
};

static void test_damaged_headers(void **state)
{
	for (unsigned wide = 0; wide < 2; wide++)
		for (unsigned d = NONE; d <= COUNT; d++) {
			struct header h = usual;
			unsigned word = wide ? 8 : 4;

			h.wide = wide;
			h.version = d == VERSION_1 ? 1 : d == VERSION_6 ? 6 : 5;
			h.line_range = d == RANGE ? 0 : 14;
			begin(&h);
			if (d == FORMATS) {
				byte(17);
				for (unsigned i = 0; i < 17; i++)
					byte(DW_LNCT_path), byte(DW_FORM_string);
			} else if (d == FORM) {
				byte(1), byte(DW_LNCT_path), byte(DW_FORM_addr);
				byte(1), text("/source");
			} else if (d == COUNT) {
				byte(1), byte(DW_LNCT_path), byte(DW_FORM_string);
				byte(100), text("/src");
			}
			plain_names();
			end_header(&h);
			end(&h);
			if (d == LENGTH)
				patch(length_at, used - length_at - word + 1, word);
			if (d == TORN)
				used = length_at + word - 1;
			if (d == ADDRESS_4)
				section[length_at + word + 2] = 4;
			if (d == SEGMENTS)
				section[length_at + word + 3] = 1;
			if (d == HEADER)
				patch(header_at, used - header_at - word + 1, word);
			if (d == BASE)
				section[header_at + word + 5] = 0;
			if (read_header() != (d == NONE))
				fail_msg("damage %u of a%s table", d, wide ? " wide" : "");
			tear_down(state);
		}
	line_data.d_size = 0;
	assert_false(ca_line_table_read(&table, &sections, 0, NULL, NULL, &strings));
	assert_false(ca_line_table_read(&table, &sections, 100, NULL, NULL, &strings));
	tear_down(state);
}

/* ---- programs ------------------------------------------------------------------------------------*/
enum { LOW = 0x10000, HIGH = 0x20000, BASE_ADDRESS = 0x8000 };
#define SPECIAL(lines, operations) (uint8_t)(13 + 5 + (lines) + 14 * (operations))
#define ADVANCE(n)                 DW_LNS_advance_pc, (n)
#define SET_LOW(byte)              0, 9, DW_LNE_set_address, (byte), 0, 1, 0, 0, 0, 0, 0 /* LOW + byte */
#define BEGIN                      SET_LOW(0)
#define END                        0, 1, DW_LNE_end_sequence

static const struct program {
	const char *what;
	uint8_t code[48];
	size_t n;
	struct {
		uint32_t low, high, line; /* relative to LOW */
		bool plain;               /* no statement */
	} range[4];
	unsigned max_ops;
	bool damaged;
} programs[] = {
#define RUN(what_, ...) .what = (what_), .code = { __VA_ARGS__ }, .n = sizeof((uint8_t[]){ __VA_ARGS__ })
	{ RUN("special opcodes", BEGIN, SPECIAL(1, 0), SPECIAL(2, 4), SPECIAL(-3, 2), ADVANCE(10), END),
	  { { 0, 4, 2 }, { 4, 6, 4 }, { 6, 16, 1 } } },
	{ RUN("standard opcodes", BEGIN, DW_LNS_advance_line, 0x88, 1, DW_LNS_copy, DW_LNS_fixed_advance_pc,
	      0, 2, DW_LNS_advance_line, 0x7f, DW_LNS_copy, DW_LNS_const_add_pc, END),
	  { { 0, 512, 137 }, { 512, 529, 136 } } },
	{ RUN("one line in several rows", BEGIN, DW_LNS_copy, SPECIAL(0, 3), SPECIAL(0, 3), ADVANCE(4), END),
	  { { 0, 10, 1 } } },
	{ RUN("what is no statement", BEGIN, DW_LNS_negate_stmt, DW_LNS_copy, DW_LNS_negate_stmt,
	      SPECIAL(0, 3), ADVANCE(4), END),
	  { { 0, 3, 1, true }, { 3, 7, 1 } } },
	{ RUN("a statement that begins in a row of its own", BEGIN, DW_LNS_copy, DW_LNS_negate_stmt,
	      DW_LNS_copy, ADVANCE(4), END),
	  { { 0, 4, 1 } } },
	{ RUN("line 0 is none", BEGIN, SPECIAL(-1, 0), SPECIAL(1, 4), ADVANCE(4), END), { { 4, 8, 1 } } },
	{ RUN("two sequences", BEGIN, DW_LNS_advance_line, 5, DW_LNS_copy, ADVANCE(4), END, BEGIN, ADVANCE(8),
	      DW_LNS_copy, ADVANCE(4), END),
	  { { 0, 4, 6 }, { 8, 12, 1 } } },
	{ RUN("code that the linker has dropped", DW_LNS_copy, SPECIAL(1, 4), END) },
	{ RUN("what is of no use", BEGIN, DW_LNS_set_column, 0x81, 1, DW_LNS_set_basic_block,
	      DW_LNS_set_prologue_end, DW_LNS_set_epilogue_begin, DW_LNS_set_isa, 3, 0, 3,
	      DW_LNE_set_discriminator, 0x81, 1, 0, 2, 0x80, 7, DW_LNS_copy, ADVANCE(4), END),
	  { { 0, 4, 1 } } },
	{ RUN("another file", BEGIN, DW_LNS_copy, DW_LNS_set_file, 0, ADVANCE(4), DW_LNS_copy, ADVANCE(4),
	      END),
	  { { 0, 4, 1 }, { 4, 8, 1 } } },
	{ RUN("an address of four bytes", 0, 5, DW_LNE_set_address, 8, 0, 1, 0, DW_LNS_copy, ADVANCE(4), END),
	  { { 8, 12, 1 } } },
	{ RUN("an end that is missing", BEGIN, DW_LNS_copy, SPECIAL(1, 4)), { { 0, 4, 1 } } },
	/* nothing of a damaged one */
	{ RUN("an address of two bytes", BEGIN, DW_LNS_copy, SPECIAL(1, 4), 0, 3, DW_LNE_set_address, 8, 0,
	      DW_LNS_copy, ADVANCE(4), END),
	  .damaged = true },
	{ RUN("torn", BEGIN, DW_LNS_copy, SPECIAL(1, 4), ADVANCE(0x80)), .damaged = true },
	{ RUN("torn in an extended opcode", BEGIN, DW_LNS_copy, SPECIAL(1, 4), 0, 9, DW_LNE_set_address, 0,
	      0),
	  .damaged = true },
	/* several operations in one instruction: addresses grow by whole ones; where an address is
	 * set or advanced by itself, the next instruction begins */
	{ RUN("operations", BEGIN, DW_LNS_copy, ADVANCE(7), SPECIAL(1, 0), SPECIAL(1, 1), ADVANCE(8), END),
	  { { 0, 1, 1 }, { 1, 2, 2 }, { 2, 4, 3 } },
	  .max_ops = 4 },
	{ RUN("a fixed advance", BEGIN, DW_LNS_copy, ADVANCE(3), DW_LNS_fixed_advance_pc, 8, 0, SPECIAL(1, 1),
	      ADVANCE(3), END),
	  { { 0, 8, 1 }, { 8, 9, 2 } },
	  .max_ops = 4 },
	{ RUN("a new address", BEGIN, DW_LNS_copy, ADVANCE(3), SET_LOW(8), SPECIAL(1, 1), ADVANCE(3), END),
	  { { 0, 8, 1 }, { 8, 9, 2 } },
	  .max_ops = 4 },
};

static void check_program(const struct program *p)
{
	struct ca_object_text code = { LOW, HIGH, false };
	struct ca_object object = { .text = &code, .texts = 1, .base = BASE_ADDRESS };
	struct ca_record_line before = { 1, 2, 3, 4 };
	struct ca_vec lines = { .size = sizeof(struct ca_record_line) };
	const struct ca_record_line *line;
	struct header h = usual;
	size_t n = 0;

	h.max_ops = p->max_ops ? p->max_ops : 1;
	begin(&h);
	plain_names();
	end_header(&h);
	put(p->code, p->n);
	end(&h);
	assert_true(read_header());
	assert_true(ca_vec_add(&lines, &before, 1));
	if (ca_line_table_run(&table, &object, &lines) == p->damaged)
		fail_msg("%s: %s", p->what, p->damaged ? "taken" : "refused");
	while (n < CA_COUNT(p->range) && p->range[n].high)
		n++;
	if (lines.n != n + 1)
		fail_msg("%s: %zu ranges", p->what, lines.n - 1);
	line = lines.at;
	assert_memory_equal(line, &before, sizeof before);
	for (size_t i = 0; i < n; i++) {
		line++;
		if (line->low != p->range[i].low + LOW - BASE_ADDRESS ||
		    line->high != p->range[i].high + LOW - BASE_ADDRESS ||
		    line->line != (p->range[i].line | (p->range[i].plain ? 0 : CA_LINE_IS_STMT)))
			fail_msg("%s, range %zu: %#x to %#x, line %#x", p->what, i, line->low + BASE_ADDRESS,
				 line->high + BASE_ADDRESS, line->line);
	}
	ca_vec_free(&lines);
}

static void test_programs(void **state)
{
	for (size_t i = 0; i < CA_COUNT(programs); i++) {
		check_program(&programs[i]);
		tear_down(state);
	}
}

/* Standard opcodes of the future say how many operands they have. */
static void test_unknown_opcode(void **state)
{
	static const uint8_t code[] = { BEGIN, 13, 0x81, 1, 5, DW_LNS_copy, ADVANCE(4), END };
	struct ca_object_text all = { LOW, HIGH, false };
	struct ca_object object = { .text = &all, .texts = 1, .base = BASE_ADDRESS };
	struct ca_vec lines = { .size = sizeof(struct ca_record_line) };
	struct header h = usual;

	(void)state;
	h.opcode_base = 14;
	begin(&h);
	plain_names();
	end_header(&h);
	put(code, sizeof code);
	end(&h);
	assert_true(read_header());
	assert_true(ca_line_table_run(&table, &object, &lines));
	assert_int_equal(lines.n, 1);
	assert_int_equal(((struct ca_record_line *)lines.at)->high, LOW + 4 - BASE_ADDRESS);
	ca_vec_free(&lines);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_forms, tear_down),
		cmocka_unit_test_teardown(test_versions, tear_down),
		cmocka_unit_test_teardown(test_paths, tear_down),
		cmocka_unit_test_teardown(test_damaged_headers, tear_down),
		cmocka_unit_test_teardown(test_programs, tear_down),
		cmocka_unit_test_teardown(test_unknown_opcode, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

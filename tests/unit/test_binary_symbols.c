/* SPDX-License-Identifier: MIT */
/* binary/index/symbols.c: which symbols become functions, under which name, from where to where. */
#include "tests/unit/unit.h"

#include "tests/unit/asm_fixture.h"

/* Sized functions of one byte each, in one section, unless told. */
#define FUNCTION(bind, name) "." bind " " name "\n.type " name ",@function\n" name ": ret\n.size " name ",1\n"
#define ALIAS(bind, name, of)                                                                                \
	"." bind " " name "\n.type " name ",@function\n.set " name "," of "\n.size " name ",1\n"

static const char source_x[] = ".file \"x.c\"\n.text\n.byte 0xc3\n"
	/* of several names the one that people know */
	FUNCTION("globl", "__write") ALIAS("globl", "write", "__write")
		ALIAS("globl", "__GI_write", "__write") FUNCTION("globl", "c") ALIAS("globl", "__c", "c")
			FUNCTION("globl", "___b") ALIAS("globl", "_b", "___b") FUNCTION("weak", "soft")
				ALIAS("globl", "hard", "soft") FUNCTION("local", "inner")
					ALIAS("weak", "outer", "inner")
	/* a function's name goes before a label's, whatever it looks like */
	".globl label\nlabel:\n" FUNCTION("local", "__real")
	/* a label inside a function is none, one behind it is */
	".globl wide\n.type wide,@function\nwide: nop\n.globl within\nwithin: nop\nret\n.size wide,3\n"
	".globl behind\nbehind: ret\n"
	/* a local label that says nothing of itself is never one */
	"quiet: ret\n"
	/* the longest of its names */
	".globl long\n.type long,@function\n.globl longer\n.type longer,@function\n"
	"long:\nlonger: nop\nret\n.size long,1\n.size longer,2\n"
	/* without a size: up to what comes next */
	".globl open\n.type open,@function\nopen: nop\nnop\nret\n" FUNCTION("globl", "next")
	/* resolvers; but a name of its own makes it a function again */
	".globl chosen\n.type chosen,@gnu_indirect_function\nchosen: ret\n.size chosen,1\n"
	".globl picked\n.type picked,@gnu_indirect_function\npicked:\n.size picked,1\n" FUNCTION(
		"local", "pick") ".globl sel\n.type sel,@gnu_indirect_function\nsel:\n.size sel,1\n.globl "
				 "__label\n__label: ret\n"
	/* split off: of its own source's function, of a global one of another */
	FUNCTION("local", "twin") FUNCTION("local", "twin.cold") FUNCTION("globl", "far")
		FUNCTION("local", "far.cold.7") FUNCTION("local", "far.coldish")
			FUNCTION("local", "nobody.cold")
	/* without a size, but with a frame, or one behind them that has no name */
	".globl framed\n.type framed,@function\nframed: "
	".cfi_startproc\nnop\nret\n.cfi_endproc\nnop\nnop\n" FUNCTION(
		"globl", "after") ".globl bare\n.type bare,@function\nbare: "
				  "nop\nret\n.cfi_startproc\nnop\nnop\nret\n.cfi_endproc\n"
				  /* longer than its section */
				  ".section tail_code,\"ax\"\n.globl tail\n.type tail,@function\ntail: "
				  "ret\n.size tail,100\n"
				  "tail_end:\n.data\n.globl object\n.type object,@function\nobject: .byte "
				  "0\n.size object,1\n"
				  ".section .note.GNU-stack,\"\",@progbits\n";
static const char source_y[] =
	".file \"y.c\"\n.text\n" FUNCTION("local", "twin") FUNCTION("local", "twin.cold")
		FUNCTION("local", "far.cold") ".section .note.GNU-stack,\"\",@progbits\n";

static int set_up(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("x.s", source_x);
	fixture_write("y.s", source_y);
	return fixture_run("%s -nostdlib -shared -Wl,-z,norelro -o xy.so x.s y.s 2>log", fixture_cc());
}

static const struct {
	const char *name;
	uint64_t size;
	bool part;
} wanted[] = {
	{ "write", 1, false },
	{ "c", 1, false },
	{ "_b", 1, false },
	{ "hard", 1, false },
	{ "outer", 1, false },
	{ "__real", 1, false },
	{ "wide", 3, false },
	{ "behind", 2, false },
	{ "long", 2, false },
	{ "open", 3, false },
	{ "next", 1, false },
	{ "pick", 1, false },
	{ "__label", 1, false },
	{ "twin", 1, false },
	{ "twin", 1, true },
	{ "far", 1, false },
	{ "far", 1, true },
	{ "far.coldish", 1, false },
	{ "nobody.cold", 1, false },
	{ "framed", 2, false },
	{ "after", 1, false },
	{ "bare", 2, false },
	{ "sub_", 3, false },
	/* y.c */
	{ "twin", 1, false },
	{ "twin", 1, true },
	{ "far", 1, true },
	{ "tail", 1, false },
};

static void test_names(void **state)
{
	struct ca_index *index = fixture_open("xy.so", CA_INDEX_UNWIND);
	struct ca_index_function f;
	struct ca_index_span span[4];

	(void)state;
	assert_non_null(index);
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		if (i >= CA_COUNT(wanted) || strncmp(f.name, wanted[i].name, strlen(wanted[i].name)) != 0 ||
		    f.high - f.low != wanted[i].size || f.part != wanted[i].part ||
		    f.synthetic != (strncmp(wanted[i].name, "sub_", 4) == 0))
			fail_msg("function %zu: %s, %lu bytes%s", i, f.name, f.high - f.low,
				 f.part ? ", a part" : "");
		assert_string_equal(f.linkage, f.synthetic ? "" : wanted[i].name);
	}
	assert_int_equal(ca_index_functions(index), CA_COUNT(wanted));
	/* each part with its own; far has two */
	assert_int_equal(ca_index_function_ranges(index, 13, span, 4), 2);
	ca_index_function_at(index, 14, &f);
	assert_int_equal(span[1].low, f.low);
	assert_int_equal(ca_index_function_ranges(index, 23, span, 4), 2);
	ca_index_function_at(index, 24, &f);
	assert_int_equal(span[1].low, f.low);
	assert_int_equal(ca_index_function_ranges(index, 15, span, 4), 3);
	assert_int_equal(ca_index_function_ranges(index, 17, span, 4), 1);
	ca_index_close(index);
}

/* Symbols away: DWARF knows the functions, be it the very first byte of the program. */
static void test_first_subprogram(void **state)
{
	static const char *const names[] = { "first", "second", "third" };
	struct ca_index *index;
	struct ca_index_function f;

	(void)state;
	fixture_write(
		"s.c",
		"int first(int x)\n{\n\treturn x + 1;\n}\nint second(int x)\n{\n\treturn x * first(x);\n}\n"
		"int third(int x)\n{\n\treturn second(x) - 1;\n}\n");
	assert_int_equal(
		fixture_run("%s -g -O1 -fno-inline -fno-asynchronous-unwind-tables -fcf-protection=none "
			    "-nostdlib -static -no-pie -fno-pie "
			    "-Wl,-N,--build-id=none,-Ttext=0x401000,-e,first -o full s.c 2>log && "
			    "objcopy -N first -N third full gone",
			    fixture_cc()),
		0);
	index = fixture_open("gone", CA_INDEX_FULL);
	assert_non_null(index);
	assert_int_equal(ca_index_base(index), 0x401000);
	assert_int_equal(ca_index_functions(index), 3);
	asm_read_labels("full");
	for (size_t i = 0; i < 3; i++) {
		ca_index_function_at(index, i, &f);
		assert_string_equal(f.name, names[i]);
		assert_int_equal(f.low, asm_at(names[i]));
		assert_int_equal(f.line, 1 + 4 * i);
		assert_string_equal(f.file, fixture_path("s.c"));
		assert_false(f.synthetic || f.part);
	}
	ca_index_close(index);
}

/* A label inside the last function that has a symbol does not reach over what only DWARF knows behind
 * it, as it would if the label were a function: there is no other end to it. */
static void test_subprogram_behind_label(void **state)
{
	static const char *const names[] = { "known", "hidden" };
	struct ca_index *index;
	struct ca_index_function f;

	(void)state;
	fixture_write("k.s", ".text\n.globl known\n.type known,@function\nknown: nop\n.globl within\n"
			     "within: nop\nret\n.size known,3\n"
			     ".section .note.GNU-stack,\"\",@progbits\n");
	fixture_write("h.c", "int hidden(int x)\n{\n\treturn x + 1;\n}\n");
	assert_int_equal(fixture_run("%s -g -O1 -fno-asynchronous-unwind-tables -fcf-protection=none "
				     "-nostdlib -static -no-pie -fno-pie -Wl,--build-id=none,-e,known "
				     "-o all k.s h.c 2>log && objcopy -N hidden -R .debug_frame all some",
				     fixture_cc()),
			 0);
	index = fixture_open("some", CA_INDEX_FULL);
	assert_non_null(index);
	asm_read_labels("all");
	assert_true(asm_at("hidden") > asm_at("within"));
	assert_int_equal(ca_index_functions(index), 2);
	for (size_t i = 0; i < 2; i++) {
		ca_index_function_at(index, i, &f);
		assert_string_equal(f.name, names[i]);
		assert_int_equal(f.low, asm_at(names[i]));
		assert_false(f.synthetic || f.part);
	}
	assert_int_equal(f.line, 1);
	assert_true(f.high > f.low);
	ca_index_close(index);
}

/* Assembly as in a stripped library: `lead` has a symbol without a size, the others none at all. They begin
 * where a call, a computed address or a pointer leads; not at what is not aligned, has nothing ended before it,
 * or lies in a function that is known. */
static void test_assembly(void **state)
{
	static const char *const begin[] = { "known", "lead", "called", "computed", "pointed" };
	static const char *const end[] = { "known_end", "called", "computed", "pointed", "all_end" };
	struct ca_index *index;
	struct ca_index_function f;
	char name[32];

	(void)state;
	fixture_write("asm.s",
		      ".text\n.globl known\n.type known,@function\nknown: .cfi_startproc\n"
		      "call called\nlea computed(%rip),%rax\nlea 1+computed(%rip),%rax\n"
		      "call unended\nlea unaligned(%rip),%rdx\nret\n.p2align 4\n"
		      "inner: ret\n.cfi_endproc\nknown_end: .size known,.-known\n.p2align 4\n.globl lead\n"
		      "lead: nop\ncall inner\n.p2align 4,0xf4\nunended: nop\nret\n.p2align 4\n"
		      "called: .fill 100,1,0xf4\nret\nunaligned: hlt\nret\n.p2align 4\n"
		      "computed: .fill 100,1,0xf4\nret\n.p2align 4\n"
		      "pointed: .fill 100,1,0xf4\nret\nall_end:\n"
		      ".data\n.quad pointed, inner, 8+pointed\n.section .note.GNU-stack,\"\",@progbits\n");
	assert_int_equal(fixture_run("%s -nostdlib -shared -Wl,-Bsymbolic -o asm.so asm.s 2>log && "
				     "strip -o bare.so asm.so",
				     fixture_cc()),
			 0);
	asm_read_labels("asm.so");
	index = fixture_open("bare.so", CA_INDEX_UNWIND);
	assert_non_null(index);
	assert_int_equal(ca_index_functions(index), CA_COUNT(begin));
	for (size_t i = 0; i < CA_COUNT(begin); i++) {
		ca_index_function_at(index, i, &f);
		assert_int_equal(f.low, asm_at(begin[i]));
		assert_int_equal(f.high, asm_at(end[i]));
		assert_int_equal(f.synthetic, i >= 2);
		snprintf(name, sizeof name, "sub_%lx", f.low);
		assert_string_equal(f.name, i < 2 ? begin[i] : name);
	}
	ca_index_close(index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_first_subprogram),
		cmocka_unit_test(test_subprogram_behind_label),
		cmocka_unit_test(test_assembly),
	};

	return cmocka_run_group_tests(tests, set_up, fixture_remove);
}

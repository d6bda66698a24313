/* SPDX-License-Identifier: MIT */
/* binary/plan/loops.c and binary/plan/line_entries.c: the loops of small functions, and where lines are counted,
 * against what one reads off their assembly. */
#include "binary/plan/line_entries.h"
#include "binary/plan/loops.h"
#include "binary/plan/text.h"
#include "tests/unit/unit.h"

#include "tests/unit/asm_fixture.h"

static const char source[] = ASM_MACROS
	"fn straight\n nop\n ret\nstraight_end: end straight\n"
	/* the first round is not tested */
	"fn one\n xor %eax,%eax\none_head: inc %eax\n cmp $9,%eax\n jne one_head\none_ret: ret\n"
	"one_end: end one\n"
	/* the function's first instruction is the loop's */
	"fn entry\n dec %edi\n jne entry\nentry_ret: ret\nentry_end: end entry\n"
	/* the test stands at the end, and is jumped to at first */
	"fn last\n xor %eax,%eax\n jmp last_test\nlast_body: inc %eax\n call *%rdx\n"
	"last_test: cmp %eax,%edi\n jne last_body\nlast_ret: ret\nlast_end: end last\n"
	"fn nested\n xor %eax,%eax\nn_outer: xor %ecx,%ecx\nn_inner: inc %ecx\n cmp $5,%ecx\n"
	" jne n_inner\nn_mid: inc %eax\n cmp $5,%eax\n jne n_outer\nn_ret: ret\n"
	"nested_end: end nested\n"
	/* two ways back to one head, one of them by a call's line */
	"fn ways\n nop\nw_head: dec %edi\n test $1,%edi\n je w_head\nw_more: call straight\n"
	" jne w_head\nw_ret: ret\nways_end: end ways\n"
	/* a part lies behind the function's return */
	"fn gap\n nop\ng_head: dec %edi\n js g_far\ng_back: jne g_head\ng_ret: ret\n"
	"g_far: neg %edi\n jmp g_back\ngap_end: end gap\n"
	/* entered at two places: no instruction that each round passes */
	"fn two\n nop\n test %edi,%edi\n je t_b\nt_a: inc %eax\nt_b: dec %edi\n jne t_a\n ret\n"
	"two_end: end two\n"
	"fn cases\n nop\nc_head: dec %edi\n jmp *%rax\nc_one: inc %eax\n jmp c_test\n"
	"c_pad: xchg %ax,%ax\n nop\nc_two: inc %ecx\nc_test: cmp %eax,%ecx\n jne c_head\nc_ret: "
	"ret\ncases_end: end cases\n"
	/* a handler of exceptions, which nothing leads to, with a loop */
	"fn handler\n call straight\nh_ret: ret\n nop\nh_pad: inc %eax\nh_head: dec %eax\n jne h_head\n"
	"h_done: ret\nhandler_end: end handler\n"
	/* more pieces than are kept */
	"fn many\n nop\nm_head: dec %edi\n.rept 10\n jns 1f\n ret\n1: inc %eax\n.endr\n jne m_head\n"
	"m_ret: ret\nmany_end: end many\n"
	"fn dead\n inc %eax\n ret\nd_part: inc %eax\n ret\ndead_end: end dead\n"
	"fn broken\n nop\n.byte 0x06\n jmp broken\nbroken_end: end broken\n"
	/* the two halves of an if, and what comes after both */
	"fn split\n test %edi,%edi\n je s_else\ns_then: inc %eax\n jmp s_after\ns_else: dec %eax\n"
	"s_after: inc %ecx\n call straight\ns_tail: inc %edx\n ret\nsplit_end: end split\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static struct ca_text *code;

static int set_up(void **state)
{
	struct ca_err err;

	if (fixture_make(state) != 0)
		return -1;
	asm_make("flow", source);
	return ca_text_open(&code, fixture_path("flow.so"), &err) != CA_OK;
}

static int tear_down(void **state)
{
	ca_text_close(code);
	return fixture_remove(state);
}

static uint64_t end_of(const char *function)
{
	char name[64];

	snprintf(name, sizeof name, "%s_end", function);
	return asm_at(name);
}

/* ---- loops --------------------------------------------------------------------------------*/
static const struct {
	const char *function;
	struct {
		const char *head;
		unsigned insns;
		bool calls;
		const char *span[4]; /* low, high */
	} loop[2];
} found[] = {
	{ "straight", { { 0 } } },
	{ "one", { { "one_head", 3, false, { "one_head", "one_ret" } } } },
	{ "entry", { { "entry", 2, false, { "entry", "entry_ret" } } } },
	{ "last", { { "last_test", 4, true, { "last_body", "last_ret" } } } },
	{ "nested",
	  { { "n_outer", 7, false, { "n_outer", "n_ret" } },
	    { "n_inner", 3, false, { "n_inner", "n_mid" } } } },
	{ "ways", { { "w_head", 5, true, { "w_head", "w_ret" } } } },
	{ "gap", { { "g_head", 5, false, { "g_head", "g_ret", "g_far", "gap_end" } } } },
	{ "two", { { 0 } } },
	{ "cases", { { "c_head", 7, false, { "c_head", "c_pad", "c_two", "c_ret" } } } },
	{ "handler", { { "h_head", 2, false, { "h_head", "h_done" } } } },
	{ "broken", { { 0 } } },
};

static void test_loops(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(found); i++) {
		const char *function = found[i].function;
		struct ca_loop loop[4];
		size_t n, wanted = 0;

		while (wanted < CA_COUNT(found[i].loop) && found[i].loop[wanted].head)
			wanted++;
		n = ca_loops_find(code, asm_at(function), end_of(function), loop, 4);
		if (n != wanted)
			fail_msg("%s: %zu loops", function, n);
		for (size_t k = 0; k < n; k++) {
			unsigned spans = found[i].loop[k].span[2] ? 2 : 1;

			if (loop[k].head != asm_at(found[i].loop[k].head) ||
			    loop[k].insns != found[i].loop[k].insns ||
			    loop[k].calls != found[i].loop[k].calls || loop[k].spans != spans)
				fail_msg("%s: loop %zu: head %#lx, %u instructions, %u spans", function, k,
					 loop[k].head, loop[k].insns, loop[k].spans);
			for (unsigned s = 0; s < spans; s++) {
				assert_int_equal(loop[k].span[s].low, asm_at(found[i].loop[k].span[2 * s]));
				assert_int_equal(loop[k].span[s].high,
						 asm_at(found[i].loop[k].span[2 * s + 1]));
				assert_true(ca_loops_cover(&loop[k], loop[k].span[s].low));
				assert_true(ca_loops_cover(&loop[k], loop[k].span[s].high - 1));
				assert_false(ca_loops_cover(&loop[k], loop[k].span[s].high));
				assert_false(ca_loops_cover(&loop[k], loop[k].span[s].low - 1));
			}
		}
	}
}

/* The longest one, where there is room for one; and one with more pieces than are kept. */
static void test_limits(void **state)
{
	struct ca_loop loop[2];

	(void)state;
	assert_int_equal(ca_loops_find(code, asm_at("nested"), end_of("nested"), loop, 1), 1);
	assert_int_equal(loop[0].head, asm_at("n_outer"));
	assert_int_equal(ca_loops_find(code, asm_at("many"), end_of("many"), loop, 2), 1);
	assert_int_equal(loop[0].insns, 22);
	assert_int_equal(loop[0].spans, CA_LOOP_SPANS);
	assert_int_equal(loop[0].span[0].low, asm_at("m_head"));
	assert_int_equal(loop[0].span[CA_LOOP_SPANS - 1].high, asm_at("m_ret"));
}

/* ---- starts -------------------------------------------------------------------------------*/
static const struct {
	const char *function;
	const char *run[6];   /* low, high */
	const char *each[3];  /* a loop counts by its rounds */
	const char *entry[3]; /* ... or by its entry */
} counted[] = {
	{ "straight", { "straight", "straight_end" }, { "straight" }, { "straight" } },
	{ "one", { "one", "one_ret" }, { "one_head" }, { "one" } },
	{ "one", { "one_head", "one_ret" }, { "one_head" }, { "one_head" } },
	/* for (i = 0; test; i++): what comes before, and the test in the loop */
	{ "last", { "last", "last_body", "last_test", "last_ret" }, { "last_test" }, { "last" } },
	{ "last", { "last_body", "last_test" }, { "last_body" }, { "last_body" } },
	{ "nested", { "n_outer", "n_inner", "n_mid", "n_ret" }, { "n_outer" }, { "n_outer" } },
	{ "nested", { "n_inner", "n_mid" }, { "n_inner" }, { "n_inner" } },
	{ "nested", { "nested", "nested_end" }, { "n_inner" }, { "nested" } },
	/* both halves; with what comes before; with what comes after */
	{ "split",
	  { "s_then", "s_else", "s_else", "s_after" },
	  { "s_then", "s_else" },
	  { "s_then", "s_else" } },
	{ "split", { "split", "s_then", "s_then", "s_else" }, { "split" }, { "split" } },
	{ "split",
	  { "s_then", "s_else", "s_after", "s_tail" },
	  { "s_then", "s_after" },
	  { "s_then", "s_after" } },
	{ "split", { "s_after", "s_tail", "s_tail", "split_end" }, { "s_after" }, { "s_after" } },
	/* a jump back into what is entered elsewhere, too, is no loop */
	{ "two", { "t_a", "two_end" }, { "t_a" }, { "t_a" } },
	/* an exception of the call leads there; nothing that is known leads to a part of its own */
	{ "handler", { "handler", "h_ret", "h_pad", "h_head" }, { "handler" }, { "handler" } },
	{ "dead", { "dead", "d_part", "d_part", "dead_end" }, { "dead", "d_part" }, { "dead", "d_part" } },
	{ "cases", { "c_one", "c_two", "c_two", "c_test" }, { "c_one", "c_two" }, { "c_one", "c_two" } },
	/* not decoded: wherever the line has code */
	{ "broken", { "broken", "broken_end" }, { "broken" }, { "broken" } },
};

static void test_starts(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * CA_COUNT(counted); i++) {
		const char *function = counted[i / 2].function;
		const char *const *wanted = i % 2 ? counted[i / 2].entry : counted[i / 2].each;
		struct ca_index_span run[3];
		size_t runs = 0, n, k = 0;
		uint64_t out[4];

		for (; runs < 3 && counted[i / 2].run[2 * runs]; runs++) {
			run[runs].low = asm_at(counted[i / 2].run[2 * runs]);
			run[runs].high = asm_at(counted[i / 2].run[2 * runs + 1]);
		}
		n = ca_line_entries_find(code, asm_at(function), end_of(function), run, runs, i % 2 == 0, out,
					 4);
		while (k < n && k < 3 && wanted[k] && out[k] == asm_at(wanted[k]))
			k++;
		if (k != n || (k < 3 && wanted[k]))
			fail_msg("case %zu of %s: %zu starts, the first %zu right", i, function, n, k);
	}
}

static void test_most_starts(void **state)
{
	struct ca_index_span run[] = { { asm_at("s_then"), asm_at("s_else") },
				       { asm_at("s_else"), asm_at("s_after") } };
	uint64_t out[2] = { 0, 7 };

	(void)state;
	assert_int_equal(ca_line_entries_find(code, asm_at("split"), end_of("split"), run, 2, true, out, 1),
			 1);
	assert_int_equal(out[0], asm_at("s_then"));
	assert_int_equal(out[1], 7);
	/* what cannot be decoded */
	run[0].low = asm_at("broken");
	run[1].low = asm_at("broken") + 1;
	assert_int_equal(ca_line_entries_find(code, asm_at("broken"), end_of("broken"), run, 2, true, out, 1),
			 1);
	assert_int_equal(out[0], asm_at("broken"));
	assert_int_equal(out[1], 7);
	assert_int_equal(ca_line_entries_find(code, asm_at("broken"), end_of("broken"), run, 2, true, out, 2),
			 2);
	assert_int_equal(out[1], asm_at("broken") + 1);
}

static void test_straight(void **state)
{
	static const struct {
		const char *function, *from, *to;
		bool straight;
	} cases[] = {
		{ "one", "one", "one", true },
		{ "one", "one", "one_head", false }, /* jumped to */
		{ "one", "one_head", "one_head", true },
		{ "one", "one_head", "one_ret", false }, /* behind a condition */
		{ "nested", "n_mid", "n_outer", false },
		{ "split", "s_tail", "s_tail", true },
		{ "split", "s_after", "s_tail", false }, /* a call between */
		{ "straight", "straight", "straight_end", false },
		{ "handler", "h_pad", "h_pad", true },
		{ "broken", "broken", "broken", false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		if (ca_line_entries_straight(code, asm_at(cases[i].function), end_of(cases[i].function),
					     asm_at(cases[i].from), asm_at(cases[i].to)) != cases[i].straight)
			fail_msg("%s: from %s to %s", cases[i].function, cases[i].from, cases[i].to);
	assert_true(ca_line_entries_straight(code, asm_at("straight"), end_of("straight"), asm_at("straight"),
					     asm_at("straight") + 1));
}

static void test_refused(void **state)
{
	struct ca_text *none = NULL;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_text_open(&none, fixture_path("flow.s"), &err), CA_ERR_UNSUPPORTED);
	assert_int_equal(ca_text_open(&none, fixture_path("missing"), &err), CA_ERR_IO);
	assert_null(none);
	ca_text_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loops),    cmocka_unit_test(test_limits),
		cmocka_unit_test(test_starts),   cmocka_unit_test(test_most_starts),
		cmocka_unit_test(test_straight), cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

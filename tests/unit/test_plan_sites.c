/* SPDX-License-Identifier: MIT */
/* binary/plan*.c: the sites of small functions, one by one, and why there are none. test_plan_function.c
 * checks that whatever is planned for whole binaries is right. */
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "tests/unit/unit.h"

#include "tests/unit/asm_fixture.h"

static const char source[] = ASM_MACROS
	"fn leaf\n xor %eax,%eax\n inc %eax\n inc %eax\nleaf_ret: ret\n nop\n nop\n nop\n nop\nleaf_end: end "
	"leaf\n"
	/* left by a jump to another function, and by a return on the other way */
	"fn tail\n push %rbx\n.cfi_def_cfa_offset 16\n mov %edi,%ebx\n cmp $1000,%edi\n pop %rbx\n"
	".cfi_def_cfa_offset 8\ntail_if: .byte 0x0f,0x85\n.long leaf-.-4\ntail_back: mov $7,%eax\n "
	"ret\ntail_end: end tail\n"
	"fn endbr\n endbr64\nendbr_body: mov $1,%eax\n ret\nendbr_end: end endbr\n"
	/* a progress point at the entry is left alone */
	"fn pointed\n.byte 0x0f,0x1f,0x44,0,0\npointed_body: mov $1,%eax\n ret\npointed_end: end pointed\n"
	/* padding up to the next function may look like one; what is followed by code is none */
	"fn padded\n test %edi,%edi\n je padded_ret\n inc %eax\npadded_ret: ret\npadded_end: end padded\n"
	".byte 0x0f,0x1f,0x44,0,0\n nop\n"
	"fn unsure\n test %edi,%edi\n je unsure_ret\n inc %eax\nunsure_ret: ret\nunsure_end: end unsure\n"
	".byte 0x0f,0x1f,0x44,0,0\n inc %eax\n ret\n"
	"fn traps\n ud2\ntraps_end: end traps\n"
	"fn falls\n mov $1,%eax\n inc %eax\nfalls_end: end falls\n"
	"fn unknown\n push %rbx\n.cfi_def_cfa_offset 16\n mov $1,%eax\n jmp *%rax\nunknown_end: end unknown\n"
	/* the same jump with nothing but the return address on the stack is a call at the end */
	"fn called\n mov $1,%eax\n jmp *%rax\ncalled_end: end called\n"
	/* most functions that call another one begin like one of these: there is no room without the call */
	"fn pushed\n push %rax\n.cfi_def_cfa_offset 16\n call *pushed_end(%rip)\n xor $1,%rax\npop %rcx\n"
	".cfi_def_cfa_offset 8\n ret\npushed_end: end pushed\n"
	"fn kept\n push %rbx\n.cfi_def_cfa_offset 16\n mov %rdi,%rbx\n call leaf\n mov %rbx,%rdi\npop "
	"%rbx\n.cfi_def_cfa_offset 8\n jmp leaf\nkept_end: end kept\n"
	"fn looks\n push %rbx\n.cfi_def_cfa_offset 16\n call *8(%rsp)\n pop %rbx\n.cfi_def_cfa_offset 8\n "
	"ret\n"
	"looks_end: end looks\n"
	/* only a jump table's jump has the prefix */
	"fn table\n push %rbx\n.cfi_def_cfa_offset 16\n mov $1,%eax\n notrack jmp *%rax\n pop %rbx\n"
	".cfi_def_cfa_offset 8\n mov $1,%ecx\n ret\ntable_end: end table\n"
	"fn pushes\n mov $1,%eax\n push %rax\n.cfi_def_cfa_offset 16\n ret\npushes_end: end pushes\n"
	"fn inside\n push %rbx\n.cfi_def_cfa_offset 16\n mov $1,%eax\n jmp leaf\ninside_end: end inside\n"
	"fn broken\n mov $1,%eax\n.byte 6\n ret\nbroken_end: end broken\n"
	/* spin loops: two in a row are one site */
	"fn spin\ns_one: pause\n dec %edi\n jne s_one\ns_two: pause\n pause\n dec %edi\n jne s_two\n ret\n"
	"spin_end: end spin\n"
	"fn lines\nl_call: call leaf\nl_back: mov $1,%eax\n inc %eax\n.rept 39\n inc %eax\n.endr\nl_more: "
	"nop\n"
	"l_loop: dec %eax\n jne l_loop\nl_ret: ret\nlines_end: end lines\n"
	/* what others can notice at once, and what only looks or is written like it */
	"fn atoms\na_add: lock addl $1,(%rdi)\n mov $1,%eax\na_cas: lock cmpxchg %rcx,(%rdi)\n jne a_cas\n"
	"a_set: xchg %eax,(%rdi)\n mov $1,%eax\na_old: lock xadd %r8,8(%rdi)\na_bit: lock btsq $3,(%rdi)\n"
	"a_two: lock cmpxchg16b (%rdi)\na_half: lock incw (%rdi)\n nop\n mfence\n"
	"a_far: lock orl $1,atoms_end(%rip)\n ret\n"
	"atoms_end: end atoms\n"
	"fn others\n xchg %eax,%ecx\n lock orq $0,(%rsp)\n mov $0x9fff0,%eax\n mov %eax,(%rdi)\n"
	" mov $0x0187,%eax\n incl (%rdi)\n ret\nothers_end: end others\n"
	/* too short for a jump, before what is jumped to */
	"fn brief\n jmp sh_end\nsh_xchg: xchg %al,(%rdi)\nsh_end: ret\nbrief_end: end brief\n"
	/* what spinning threads look at: a word of the program's, one that a register points to, none that changes
	 * with each turn; and stores behind which others go on */
	"fn yields\n rdtsc\n mov %eax,%ebx\nyi_loop: mov 0(%rbp),%rax\n test %rax,%rax\n jne yi_over\n"
	"yi_call: call leaf\n rdtsc\n sub %ebx,%eax\n jae yi_loop\nyi_over: nop\nyi_next: mov (%rbx),%rbx\n"
	"yi_list: call leaf\n test %rbx,%rbx\n jne yi_next\nyi_once: call leaf\n ret\nyields_end: end "
	"yields\n"
	"fn waits\nwa_own: mov waits_word(%rip),%eax\n test %eax,%eax\n je wa_over\nwa_pause: pause\n jmp "
	"wa_own\nwa_over: "
	"nop\n"
	"wa_ptr: pause\n cmpq $0,8(%rdi,%rsi,4)\n jne wa_ptr\nwa_list: pause\n mov (%rdx),%rdx\n test "
	"%rdx,%rdx\n"
	" jne wa_list\nwa_call: pause\n call leaf\n cmpb $0,(%r11)\n jne wa_call\n ret\nwaits_end: end "
	"waits\n"
	/* calls that come back to where no jump fits */
	"fn comes\n sub $8,%rsp\n.cfi_def_cfa_offset 16\n test %edi,%edi\n je co_far\n"
	"co_call: call leaf\nco_back: jmp co_on\nco_next: call leaf\n jmp co_on\nco_mark: call leaf\n"
	" jmp co_point\nco_short: call leaf\nco_two: xor %eax,%eax\nco_far: mov $1,%eax\n"
	"co_on: mov $2,%eax\nco_point: .byte 0x0f,0x1f,0x44,0,0\nco_after: mov $3,%eax\n"
	" add $8,%rsp\n.cfi_def_cfa_offset 8\n ret\ncomes_end: end comes\n"
	"fn hands\n mov $1,%eax\nha_store: movl $0,waits_word(%rip)\nha_on: mov $2,%eax\n ret\nhands_end: "
	"end "
	"hands\n"
	/* two that give a lock back, before padding and before code */
	"fn gives\n movb $0,(%rdi)\ngi_ret: ret\ngives_end: end gives\n nopw 0(%rax,%rax,1)\n"
	"fn gives_on\n movb $0,(%rdi)\ngo_ret: ret\ngives_on_end: end gives_on\n"
	".bss\nwaits_word: .zero 8\n.text\n"
	/* code inside of others: with a way around its end, a loop, a way out of the function */
	"fn around\n push %rbx\n.cfi_def_cfa_offset 16\n mov $9,%ecx\nar_in: mov $1,%eax\n test %eax,%eax\n"
	" je ar_out\nar_loop: dec %ecx\n jne ar_loop\nar_last: mov $2,%edx\nar_out: mov $3,%edx\n pop %rbx\n"
	".cfi_def_cfa_offset 8\nar_ret: ret\naround_end: end around\n"
	"fn looped\nlo_before: mov $9,%ecx\nlo_in: dec %ecx\n jne lo_in\nlo_out: mov $1,%eax\nlo_on: inc "
	"%eax\n ret\nlooped_end: end looped\n"
	"fn jumped\n mov $9,%ecx\n test %edi,%edi\n je ju_in\n mov $8,%ecx\nju_in: dec %ecx\n jne ju_in\n"
	"ju_out: mov $1,%eax\n ret\njumped_end: end jumped\n"
	/* out of it for one short instruction */
	"fn short_way\nsw_in: mov $9,%ecx\nsw_out: or $1,%edx\nsw_again: mov $1,%eax\n inc %eax\nsw_end: mov "
	"$2,%eax\n ret\nshort_way_end: end short_way\n"
	"fn framed\n push %rbp\n.cfi_def_cfa_offset 16\n mov %rsp,%rbp\n.cfi_def_cfa_register 6\n"
	"fr_in: mov $1,%eax\nfr_out: mov $2,%eax\n pop %rbp\n.cfi_def_cfa 7, 8\n ret\nframed_end: end "
	"framed\n"
	/* a stack that is aligned anew */
	"fn aligned\n lea 8(%rsp),%r10\n.cfi_def_cfa 10, 0\n and $-32,%rsp\nal_in: mov $1,%eax\n"
	"al_out: mov $2,%eax\n lea -8(%r10),%rsp\n.cfi_def_cfa 7, 8\n ret\naligned_end: end aligned\n"
	/* what a compiler has split off: another function's frame is there when it begins */
	"fn split\n.cfi_def_cfa_offset 16\n mov $1,%eax\n inc %eax\n inc %eax\n pop %rbx\n"
	".cfi_def_cfa_offset 8\n ret\nsplit_end: end split\n"
	".section .note.GNU-stack,\"\",@progbits\n";

enum { SITES = 24 };
static struct ca_text *text;
static struct ca_site site[SITES];
static struct ca_err err;

static int open_text(void)
{
	asm_read_labels("plan.so");
	return ca_text_open(&text, fixture_path("plan.so"), &err) != CA_OK;
}

static int set_up(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("plan.s", source);
	if (fixture_run("%s -nostdlib -shared -Wl,-Bsymbolic -o plan.so plan.s", fixture_cc()) != 0)
		return -1;
	return open_text();
}

/* The same without a symbol, as programs are installed: what is known are its frames. */
static int set_up_stripped(void **state)
{
	struct ca_index *index;
	uint64_t low, high;

	if (fixture_make(state) != 0)
		return -1;
	fixture_write("plan.s", source);
	fixture_write("none.map", "{ local: *; };");
	if (fixture_run("%s -nostdlib -shared -Wl,--version-script=none.map -o plan.so plan.s",
			fixture_cc()) != 0 ||
	    open_text() != 0 || fixture_run("strip plan.so") != 0)
		return -1;
	ca_text_close(text);
	if (ca_text_open(&text, fixture_path("plan.so"), &err) != CA_OK)
		return -1;
	assert_false(ca_text_function(text, asm_at("leaf"), &low, &high));
	index = fixture_open("plan.so", CA_INDEX_UNWIND);
	assert_non_null(index);
	ca_text_learn(text, index);
	ca_index_close(index);
	return 0;
}

static int tear_down(void **state)
{
	ca_text_close(text);
	return fixture_remove(state);
}

static struct ca_range range_of(const char *from, const char *to)
{
	return (struct ca_range){ .module = 1, .low = asm_at(from), .high = asm_at(to) };
}

static struct ca_range function(const char *name)
{
	char end[64];

	snprintf(end, sizeof end, "%s_end", name);
	return range_of(name, end);
}

/* ---- functions ----------------------------------------------------------------------------*/
static const struct {
	const char *name, *why; /* NULL: it is planned */
	struct {
		const char *at;
		unsigned kind, length, exits;
	} site[3];
} functions[] = {
	/* a return takes the nops behind it, or what comes before it */
	{ "leaf", NULL, { { "leaf", CA_SITE_ENTER, 6, 0 }, { "leaf_ret", CA_SITE_EXIT, 5, 1 } } },
	{ "tail",
	  NULL,
	  { { "tail", CA_SITE_ENTER, 9, 0 },
	    { "tail_if", CA_SITE_EXIT, 6, 1 },
	    { "tail_back", CA_SITE_EXIT, 6, 1 } } },
	{ "endbr", NULL, { { "endbr_body", CA_SITE_ENTER, 5, 0 }, { 0 } } },
	{ "pointed", NULL, { { "pointed_body", CA_SITE_ENTER, 5, 0 }, { 0 } } },
	{ "padded", NULL, { { "padded", CA_SITE_ENTER, 6, 0 }, { "padded_ret", CA_SITE_EXIT, 6, 1 } } },
	{ "unsure", NULL, { { "unsure", CA_SITE_ENTER, 6, 0 }, { "unsure_ret", CA_SITE_EXIT, 1, 1 } } },
	{ "called", NULL, { { "called", CA_SITE_ENTER, 5, 0 }, { 0 } } },
	{ "pushed", NULL, { { "pushed", CA_SITE_ENTER, 7, 0 }, { 0 } } },
	{ "kept", NULL, { { "kept", CA_SITE_ENTER, 9, 0 }, { 0 } } },
	{ "looks", NULL, { { "looks", CA_SITE_ENTER, 1, 0 }, { 0 } } },
	{ "table", NULL, { { "table", CA_SITE_ENTER, 6, 0 }, { 0 } } },
	{ "traps", "its entry cannot be patched", { { 0 } } },
	{ "falls", "control may run past its end", { { 0 } } },
	{ "unknown", "not known where it jumps to", { { 0 } } },
	{ "pushes", "not known where it jumps to", { { 0 } } },
	{ "inside", "not known where it jumps to", { { 0 } } },
	{ "broken", "cannot be decoded", { { 0 } } },
};

/* ---- parts of functions ---------------------------------------------------------------------*/
static const struct {
	const char *from, *to, *why; /* NULL: it is planned */
	struct {
		const char *at;
		unsigned hook, hook_at, words;
		bool by_fp;
	} site[3];
} edges[] = {
	{ "ar_in",
	  "ar_out",
	  NULL,
	  { { "ar_in", CA_SITE_ENTER, 0, 1 }, { "ar_out", CA_SITE_EXIT, 0, 1 }, { 0 } } },
	/* up to the return, where the frame is gone already */
	{ "ar_out",
	  "around_end",
	  NULL,
	  { { "ar_out", CA_SITE_ENTER, 0, 1 }, { "ar_ret", CA_SITE_EXIT, 0, 0 }, { 0 } } },
	/* at the head of a loop it would run each time round */
	{ "lo_in",
	  "lo_out",
	  NULL,
	  { { "lo_before", CA_SITE_ENTER, 5, 0 }, { "lo_out", CA_SITE_EXIT, 0, 0 }, { 0 } } },
	/* from the function's first instruction on */
	{ "looped",
	  "lo_out",
	  NULL,
	  { { "looped", CA_SITE_ENTER, 0, 0 }, { "lo_out", CA_SITE_EXIT, 0, 0 }, { 0 } } },
	{ "fr_in",
	  "fr_out",
	  NULL,
	  { { "fr_in", CA_SITE_ENTER, 0, 1, true }, { "fr_out", CA_SITE_EXIT, 0, 1, true }, { 0 } } },
	{ "framed",
	  "fr_out",
	  NULL,
	  { { "framed", CA_SITE_ENTER, 0, 0 }, { "fr_out", CA_SITE_EXIT, 0, 1, true }, { 0 } } },
	{ "al_in",
	  "al_out",
	  NULL,
	  { { "al_in", CA_SITE_ENTER, 0, 0 }, { "al_out", CA_SITE_EXIT, 0, 0 }, { 0 } } },
	{ "aligned", "al_out", "where the stack frame is made", { { 0 } } },
	{ "ar_loop", "ar_last", "no room before its loop", { { 0 } } },
	{ "ju_in", "ju_out", "from several places", { { 0 } } },
	{ "table", "table_end", "jumps through a table", { { 0 } } },
	{ "tail", "tail_end", "by a conditional jump", { { 0 } } },
	{ "broken", "broken_end", "cannot be decoded", { { 0 } } },
};

static void test_joined_edges(void **state)
{
	struct ca_range range[] = { range_of("sw_in", "sw_out"), range_of("sw_again", "sw_end") };
	size_t n = 0;

	(void)state;
	assert_int_equal(ca_plan_edges(text, 5, range, 2, site, SITES, &n, &err), CA_OK);
	assert_int_equal(n, 3);
	assert_int_equal(site[1].address, asm_at("sw_out"));
	assert_int_equal(site[1].length, 8);
	assert_int_equal(site[1].hooks, 2);
	assert_int_equal(site[1].hook[0].kind, CA_SITE_EXIT);
	assert_int_equal(site[1].hook[1].kind, CA_SITE_ENTER);
	assert_int_equal(site[1].hook[1].at, 3);
	assert_int_equal(site[2].address, asm_at("sw_end"));
}

static void test_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(edges); i++) {
		struct ca_range range = range_of(edges[i].from, edges[i].to);
		enum ca_status status;
		size_t n = 0;

		err.text[0] = '\0';
		status = ca_plan_edges(text, 5, &range, 1, site, SITES, &n, &err);
		if ((status == CA_OK) != !edges[i].why)
			fail_msg("%s: %s", edges[i].from, err.text);
		if (edges[i].why) {
			assert_int_equal(status, CA_ERR_UNSUPPORTED);
			if (!strstr(err.text, edges[i].why))
				fail_msg("%s: %s", edges[i].from, err.text);
			continue;
		}
		for (size_t k = 0; k < 3 && edges[i].site[k].at; k++)
			if (k >= n || site[k].address != asm_at(edges[i].site[k].at) || site[k].hooks != 1 ||
			    site[k].hook[0].kind != edges[i].site[k].hook ||
			    site[k].hook[0].at != edges[i].site[k].hook_at ||
			    site[k].words != edges[i].site[k].words || site[k].module != 5 ||
			    !(site[k].flags & CA_SITE_BY_FP) == edges[i].site[k].by_fp ||
			    !(site[k].flags & CA_SITE_NO_TRAP))
				fail_msg("%s: site %zu of %zu", edges[i].from, k, n);
		assert_true(n == 3 || !edges[i].site[n].at);
	}
}

static unsigned exits(const struct ca_site *s)
{
	unsigned n = 0;

	for (unsigned i = 0; i < s->hooks; i++)
		n += s->hook[i].kind == CA_SITE_EXIT;
	return n;
}

static void test_functions(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(functions); i++) {
		struct ca_range range = function(functions[i].name);
		enum ca_status status;
		size_t n = 0;

		err.text[0] = '\0';
		status = ca_plan_function(text, 5, &range, 1, site, SITES, &n, &err);
		if ((status == CA_OK) != !functions[i].why)
			fail_msg("%s: %s", functions[i].name, err.text);
		if (functions[i].why) {
			assert_int_equal(status, CA_ERR_UNSUPPORTED);
			assert_non_null(strstr(err.text, functions[i].why));
			continue;
		}
		for (size_t k = 0; k < 3 && functions[i].site[k].at; k++)
			if (k >= n || site[k].address != asm_at(functions[i].site[k].at) ||
			    site[k].kind != functions[i].site[k].kind ||
			    site[k].length != functions[i].site[k].length ||
			    exits(&site[k]) != functions[i].site[k].exits || site[k].module != 5)
				fail_msg("%s: site %zu of %zu: %#lx, kind %u, %u bytes, %u exits",
					 functions[i].name, k, n, site[k].address, site[k].kind,
					 site[k].length, exits(&site[k]));
		assert_true(n >= 2);
	}
}

static void test_few_sites(void **state)
{
	struct ca_range tail = function("tail"), twice[2] = { tail, tail };
	size_t n = 0, all;

	(void)state;
	assert_int_equal(ca_plan_function(text, 5, &tail, 1, site, SITES, &all, &err), CA_OK);
	assert_int_equal(ca_plan_function(text, 5, &tail, 1, site, all, &n, &err), CA_OK);
	assert_int_equal(ca_plan_function(text, 5, &tail, 1, site, all - 1, &n, &err), CA_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "too many exits"));
	assert_int_equal(ca_plan_function(text, 5, &tail, 1, site, 0, &n, &err), CA_ERR_UNSUPPORTED);
	/* an alias's range is the same code */
	assert_int_equal(ca_plan_function(text, 5, twice, 2, site, SITES, &n, &err), CA_OK);
	assert_int_equal(n, all);
}

/* ---- points and spin loops ----------------------------------------------------------------*/
static void test_count(void **state)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0, 0, 0xe9 };

	(void)state;
	assert_int_equal(ca_plan_count(text, 5, asm_at("pointed"), 9, site, &err), CA_OK);
	assert_int_equal(site->kind, CA_SITE_COUNT);
	assert_int_equal(site->address, asm_at("pointed"));
	assert_int_equal(site->point, 9);
	assert_int_equal(site->length, 5);
	assert_int_equal(site->module, 5);
	assert_int_equal(site->code_length, 10);
	assert_memory_equal(site->code, nop, sizeof nop);
	assert_int_equal(site->hooks, 1);
	assert_int_equal(site->hook[0].kind, CA_SITE_COUNT);
	assert_int_equal(site->hook[0].at, 0);
	/* other code: enough of it for a jump */
	assert_int_equal(ca_plan_count(text, 5, asm_at("leaf"), 3, site, &err), CA_OK);
	assert_int_equal(site->length, 6);
	/* a short one, before what is jumped to */
	assert_int_equal(ca_plan_count(text, 5, asm_at("l_more"), 3, site, &err), CA_OK);
	assert_int_equal(site->length, 1);
	/* no instruction begins there; nothing comes behind it; data */
	assert_int_equal(ca_plan_count(text, 5, asm_at("pointed") + 1, 9, site, &err), CA_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "cannot be patched"));
	assert_int_equal(ca_plan_count(text, 5, asm_at("traps"), 9, site, &err), CA_ERR_UNSUPPORTED);
	assert_int_equal(ca_plan_count(text, 5, 1, 9, site, &err), CA_ERR_UNSUPPORTED);
}

static void check_meeting(const struct ca_site *found, const char *label, enum ca_site_kind hook)
{
	if (found->address != asm_at(label))
		fail_msg("%#lx is not %s", (unsigned long)found->address, label);
	assert_int_equal(found->kind, CA_SITE_MEET);
	assert_int_equal(found->flags, CA_SITE_NO_TRAP);
	assert_int_equal(found->hooks, 1);
	assert_int_equal(found->hook[0].at, 0);
	assert_int_equal(found->hook[0].kind, hook);
	assert_int_equal(found->module, 6);
}

/* Those that wait come first. */
static void test_meetings(void **state)
{
	static const struct {
		const char *label;
		enum ca_site_kind hook;
	} expected[] = {
		{ "s_one", CA_SITE_MEET },    { "s_two", CA_SITE_MEET },   { "wa_pause", CA_SITE_MEET },
		{ "wa_ptr", CA_SITE_MEET },   { "wa_list", CA_SITE_MEET }, { "wa_call", CA_SITE_MEET },
		{ "a_add", CA_SITE_ATOMIC },  { "a_cas", CA_SITE_ATOMIC }, { "a_set", CA_SITE_ATOMIC },
		{ "a_old", CA_SITE_ATOMIC },  { "a_bit", CA_SITE_ATOMIC }, { "a_two", CA_SITE_ATOMIC },
		{ "a_half", CA_SITE_ATOMIC }, { "a_far", CA_SITE_ATOMIC }, { "sh_xchg", CA_SITE_ATOMIC },
	};

	(void)state;
	assert_int_equal(ca_plan_meetings(text, 6, site, SITES, NULL, NULL), CA_COUNT(expected));
	for (size_t i = 0; i < CA_COUNT(expected); i++)
		check_meeting(&site[i], expected[i].label, expected[i].hook);
	assert_int_equal(site[14].length, 2);
	assert_int_equal(ca_plan_meetings(text, 6, site, 3, NULL, NULL), 3);
	check_meeting(&site[2], "wa_pause", CA_SITE_MEET);
	assert_int_equal(ca_plan_meetings(text, 6, site, 0, NULL, NULL), 0);
}

/* By the numbers of unwind rows: rsi is 4, rdi 5. */
static void test_spins(void **state)
{
	struct ca_spin spin[8];
	size_t n = CA_COUNT(spin);
	const struct ca_spin *own = NULL, *pointed = NULL;
	uint64_t low, high;

	(void)state;
	ca_plan_meetings(text, 6, site, SITES, spin, &n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(spin[i].module, 6);
		assert_true(spin[i].low != asm_at("wa_list") && spin[i].low != asm_at("wa_call"));
		own = spin[i].low == asm_at("wa_own") ? &spin[i] : own;
		pointed = spin[i].low == asm_at("wa_ptr") ? &spin[i] : pointed;
	}
	assert_non_null(own);
	assert_int_equal(own->high, asm_at("wa_over"));
	assert_int_equal(own->width, 4);
	assert_int_equal(own->base, 0xff);
	assert_int_equal(own->index, 0xff);
	assert_int_equal(own->disp, asm_at("waits_word"));
	assert_non_null(pointed);
	assert_int_equal(pointed->high, asm_at("wa_list"));
	assert_int_equal(pointed->width, 8);
	assert_int_equal(pointed->base, 5);
	assert_int_equal(pointed->index, 4);
	assert_int_equal(pointed->scale, 4);
	assert_int_equal(pointed->disp, 8);
	n = 1;
	ca_plan_meetings(text, 6, site, 1, spin, &n);
	assert_int_equal(n, 1);
	low = asm_at("waits");
	high = asm_at("waits_end");
	assert_true(ca_plan_spins(text, low, high, asm_at("wa_own")));
	assert_true(ca_plan_spins(text, low, high, asm_at("wa_over") - 1));
	assert_true(ca_plan_spins(text, low, high, asm_at("wa_ptr")));
	assert_false(ca_plan_spins(text, low, high, asm_at("wa_list"))); /* another word each time */
	assert_false(ca_plan_spins(text, low, high, asm_at("wa_call")));
	assert_false(ca_plan_spins(text, 1, 9, 1));
}

/* Around a call that gives up the CPU: as OpenBLAS's threads wait, and where something else is looked at each time. */
static void test_waits_around(void **state)
{
	uint64_t low = asm_at("yields"), high = asm_at("yields_end");

	(void)state;
	assert_true(ca_plan_waits_around(text, asm_at("yi_call") + 4, &low, &high));
	assert_int_equal(low, asm_at("yi_loop"));
	assert_int_equal(high, asm_at("yi_over"));
	low = asm_at("yields");
	high = asm_at("yields_end");
	assert_false(ca_plan_waits_around(text, asm_at("yi_list") + 4, &low, &high));
	assert_false(ca_plan_waits_around(text, asm_at("yi_once") + 4, &low, &high));
	assert_int_equal(low, asm_at("yields"));
	assert_int_equal(high, asm_at("yields_end"));
}

static void test_store(void **state)
{
	(void)state;
	assert_int_equal(ca_plan_store(text, 6, asm_at("ha_on"), site, &err), CA_OK);
	check_meeting(site, "ha_store", CA_SITE_ATOMIC);
	assert_int_equal(ca_plan_store(text, 6, asm_at("gi_ret"), site, &err), CA_OK);
	check_meeting(site, "gives", CA_SITE_ATOMIC);
	assert_int_equal(site->length, 9);
	assert_int_equal(ca_plan_store(text, 6, asm_at("go_ret"), site, &err), CA_OK);
	assert_int_equal(site->length, 4);
	/* none that is a meeting already, no reading, nothing that ends there, no text */
	assert_int_equal(ca_plan_store(text, 6, asm_at("a_add") + 4, site, &err), CA_ERR_NOT_FOUND);
	assert_int_equal(ca_plan_store(text, 6, asm_at("ha_store"), site, &err), CA_ERR_NOT_FOUND);
	assert_non_null(strstr(err.text, "no plain store"));
	assert_int_equal(ca_plan_store(text, 6, asm_at("ha_on") - 1, site, &err), CA_ERR_NOT_FOUND);
	assert_int_equal(ca_plan_store(text, 6, 1, site, &err), CA_ERR_NOT_FOUND);
}

/* ---- lines --------------------------------------------------------------------------------*/
/* Own work: more than 20 instructions for each site, or a loop. */
static void test_lines(void **state)
{
	static const struct {
		const char *from, *to;
		size_t sites;
		bool self;
	} cases[] = {
		{ "l_call", "l_back", 2, false },   { "l_call", "l_more", 2, true },
		{ "l_back", "l_more", 0, true },    { "l_call", "l_loop", 2, true },
		{ "l_loop", "l_ret", 0, true },     { "l_more", "l_loop", 0, false },
		{ "l_ret", "lines_end", 0, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_range range = range_of(cases[i].from, cases[i].to);
		size_t n;
		bool self;

		assert_int_equal(ca_plan_line(text, 5, &range, 1, site, SITES, &n, &self, &err), CA_OK);
		if (n != cases[i].sites || self != cases[i].self)
			fail_msg("%s to %s: %zu sites, %d", cases[i].from, cases[i].to, n, self);
		if (n) {
			assert_int_equal(site[0].kind, CA_SITE_CALL);
			assert_int_equal(site[0].address, asm_at("l_call"));
			assert_int_equal(site[0].flags, CA_SITE_BY_CALL);
			assert_int_equal(site[1].kind, CA_SITE_EXIT);
			assert_int_equal(site[1].address, asm_at("l_back"));
			assert_int_equal(site[1].length, 5);
		}
	}
}

/* Where a call returns to for less than five bytes it leaves S when it comes to where there is room, once for all. */
static void test_back_later(void **state)
{
	static const struct {
		const char *from, *to, *back;
		size_t sites;
	} cases[] = {
		{ "co_call", "co_back", "co_on", 2 },
		{ "co_call", "co_mark", "co_on", 3 },
		{ "co_mark", "co_short", "co_after", 2 },
		{ "co_short", "co_two", "co_far", 2 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_range range = range_of(cases[i].from, cases[i].to);
		size_t n, exits = 0;
		bool self;

		assert_int_equal(ca_plan_line(text, 5, &range, 1, site, SITES, &n, &self, &err), CA_OK);
		assert_int_equal(n, cases[i].sites);
		for (size_t k = 0; k < n; k++)
			if (site[k].kind == CA_SITE_EXIT) {
				assert_int_equal(site[k].address, asm_at(cases[i].back));
				assert_int_equal(site[k].length, 5);
				exits++;
			}
		assert_int_equal(exits, 1);
	}
}

/* 20 instructions for a site, or where there is none, are not yet worth sampling. */
static void test_own_work(void **state)
{
	struct ca_range range = range_of("l_call", "l_back");
	size_t n;
	bool self;

	(void)state;
	assert_int_equal(ca_plan_line(text, 5, &range, 1, site, 1, &n, &self, &err), CA_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "cannot be patched"));
	for (unsigned own = 19; own <= 41; own++) {
		range.high = asm_at("l_back") + 5 + 2 * (own - 1);
		range.low = asm_at("l_back");
		assert_int_equal(ca_plan_line(text, 5, &range, 1, site, SITES, &n, &self, &err), CA_OK);
		assert_int_equal(self, own > 20);
		range.low = asm_at("l_call");
		assert_int_equal(ca_plan_line(text, 5, &range, 1, site, SITES, &n, &self, &err), CA_OK);
		assert_int_equal(self, own > 40);
	}
}

/* Without a name, a part is known by the frame that it begins with. */
static void test_part(void **state)
{
	struct ca_range range = range_of("split", "split_end");
	uint64_t low, high;
	size_t n;

	(void)state;
	assert_false(ca_text_is_entry(text, range.low));
	assert_true(ca_text_is_cold(text, range.low + 5, &low, &high));
	assert_int_equal(low, range.low);
	assert_int_equal(high, range.high);
	assert_int_equal(ca_plan_function(text, 3, &range, 1, site, SITES, &n, &err), CA_ERR_UNSUPPORTED);
	assert_non_null(strstr(err.text, "part of another function"));
	assert_true(ca_text_is_entry(text, asm_at("leaf")));
	assert_false(ca_text_is_cold(text, asm_at("leaf"), &low, &high));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),    cmocka_unit_test(test_edges),
		cmocka_unit_test(test_joined_edges), cmocka_unit_test(test_few_sites),
		cmocka_unit_test(test_count),        cmocka_unit_test(test_meetings),
		cmocka_unit_test(test_spins),        cmocka_unit_test(test_waits_around),
		cmocka_unit_test(test_store),        cmocka_unit_test(test_lines),
		cmocka_unit_test(test_back_later),   cmocka_unit_test(test_own_work),
	};

	const struct CMUnitTest parts[] = { cmocka_unit_test(test_part) };
	int failed = cmocka_run_group_tests_name("with symbols", tests, set_up, tear_down);

	failed += cmocka_run_group_tests_name("stripped", tests, set_up_stripped, tear_down);
	return failed + cmocka_run_group_tests_name("parts, stripped", parts, set_up_stripped, tear_down);
}

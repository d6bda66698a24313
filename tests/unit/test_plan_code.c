/* SPDX-License-Identifier: MIT */
/* binary/plan/insn.c and code.c: what each kind of instruction is taken for, and its relocatable copies, byte
 * by byte. test_plan_function.c holds the plans of whole binaries against capstone. */
#include "binary/plan/code.h"
#include "tests/unit/unit.h"
#include <string.h>

enum { AT = 0x401000 };

static struct ca_disassembler *disassembler;

static int set_up(void **state)
{
	(void)state;
	disassembler = ca_insn_open();
	return disassembler ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_insn_close(disassembler);
	return 0;
}

#define BYTES(...) { __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ })

struct code {
	const char *text;
	uint8_t bytes[16];
	size_t size;
};

static struct ca_insn decode(const struct code *code)
{
	struct ca_insn insn;

	if (!ca_insn_decode(disassembler, code->bytes, code->size, AT, &insn) || insn.size != code->size)
		fail_msg("%s is not decoded", code->text);
	return insn;
}

/* ---- what an instruction is -------------------------------------------------------------- */
enum { SP = 1, OPERAND = 2, PAD = 4 };

static const struct {
	struct code code;
	enum ca_insn_kind kind;
	uint64_t target, memory, table;
	unsigned disp_at, modrm_at, flags;
} decoded[] = {
	{ { "nop", BYTES(0x90) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, PAD },
	{ { "xchg %ax,%ax", BYTES(0x66, 0x90) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, PAD },
	{ { "nopl", BYTES(0x0f, 0x1f, 0x44, 0, 0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, PAD },
	{ { "pause", BYTES(0xf3, 0x90) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, 0 },
	{ { "xchg %rax,%r8", BYTES(0x49, 0x90) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, 0 },
	{ { "int3", BYTES(0xcc) }, CA_INSN_END, 0, 0, 0, 0, 0, PAD },
	{ { "ud2", BYTES(0x0f, 0x0b) }, CA_INSN_END, 0, 0, 0, 0, 0, 0 },
	{ { "hlt", BYTES(0xf4) }, CA_INSN_END, 0, 0, 0, 0, 0, 0 },
	{ { "call", BYTES(0xe8, 0xfb, 0x0f, 0, 0) }, CA_INSN_CALL, 0x402000, 0, 0, 0, 0, SP },
	{ { "call *%rax", BYTES(0xff, 0xd0) }, CA_INSN_CALL_INDIRECT, 0, 0, 0, 0, 1, SP },
	{ { "call *8(%rsp)", BYTES(0xff, 0x54, 0x24, 8) },
	  CA_INSN_CALL_INDIRECT,
	  0,
	  0,
	  0,
	  0,
	  1,
	  SP | OPERAND },
	{ { "call *0x100(%rip)", BYTES(0xff, 0x15, 0, 1, 0, 0) },
	  CA_INSN_CALL_INDIRECT,
	  0,
	  AT + 0x106,
	  0,
	  2,
	  1,
	  SP },
	{ { "jmp", BYTES(0xe9, 0xfb, 0x0f, 0, 0) }, CA_INSN_JUMP, 0x402000, 0, 0, 0, 0, 0 },
	{ { "jmp back", BYTES(0xeb, 0xfe) }, CA_INSN_JUMP, AT, 0, 0, 0, 0, 0 },
	{ { "data16 jmp", BYTES(0x66, 0xe9, 0, 0) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "je", BYTES(0x0f, 0x84, 0, 0x10, 0, 0) }, CA_INSN_JUMP_IF, AT + 0x1006, 0, 0, 0, 0, 0 },
	{ { "jne", BYTES(0x75, 0xf0) }, CA_INSN_JUMP_IF, AT - 0x0e, 0, 0, 0, 0, 0 },
	{ { "jmp *%rax", BYTES(0xff, 0xe0) }, CA_INSN_JUMP_INDIRECT, 0, 0, 0, 0, 1, 0 },
	{ { "jmp *(,%rax,8)", BYTES(0xff, 0x24, 0xc5, 0, 0x40, 0, 0) },
	  CA_INSN_JUMP_INDIRECT,
	  0,
	  0,
	  0x4000,
	  0,
	  1,
	  0 },
	{ { "ret", BYTES(0xc3) }, CA_INSN_RETURN, 0, 0, 0, 0, 0, SP },
	{ { "ret $8", BYTES(0xc2, 8, 0) }, CA_INSN_RETURN, 0, 0, 0, 0, 0, SP },
	{ { "lret", BYTES(0xcb) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, SP },
	{ { "iretq", BYTES(0x48, 0xcf) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "int $0x80", BYTES(0xcd, 0x80) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "syscall", BYTES(0x0f, 0x05) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "loop", BYTES(0xe2, 0xfe) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "jrcxz", BYTES(0xe3, 0xfe) }, CA_INSN_STRANGE, 0, 0, 0, 0, 0, 0 },
	{ { "xbegin", BYTES(0xc7, 0xf8, 0, 0, 0, 0) }, CA_INSN_STRANGE, 0, 0, 0, 0, 1, 0 },
	{ { "lcall *(%rax)", BYTES(0xff, 0x18) }, CA_INSN_STRANGE, 0, 0, 0, 0, 1, SP },
	{ { "mov (%eip),%eax", BYTES(0x67, 0x8b, 5, 0, 0, 0, 0) }, CA_INSN_STRANGE, 0, 0, 0, 0, 2, 0 },
	{ { "lea 0x100(%rip),%rax", BYTES(0x48, 0x8d, 5, 0, 1, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  AT + 0x107,
	  AT + 0x107,
	  3,
	  2,
	  0 },
	{ { "mov 0x100(%rip),%rax", BYTES(0x48, 0x8b, 5, 0, 1, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  AT + 0x107,
	  0,
	  3,
	  2,
	  0 },
	{ { "movl $7,0x100(%rip)", BYTES(0xc7, 5, 0, 1, 0, 0, 7, 0, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  AT + 0x10a,
	  0,
	  2,
	  1,
	  0 },
	{ { "mov 0x4000(,%rax,8),%rax", BYTES(0x48, 0x8b, 4, 0xc5, 0, 0x40, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  0,
	  0x4000,
	  0,
	  2,
	  0 },
	{ { "mov 0x4000(,%rax,4),%eax", BYTES(0x8b, 4, 0x85, 0, 0x40, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  0,
	  0,
	  0,
	  1,
	  0 },
	{ { "mov 0x4000(%rbx,%rax,8),%rax", BYTES(0x48, 0x8b, 0x84, 0xc3, 0, 0x40, 0, 0) },
	  CA_INSN_PLAIN,
	  0,
	  0,
	  0,
	  0,
	  2,
	  0 },
	{ { "push %rax", BYTES(0x50) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, SP },
	{ { "pop %rax", BYTES(0x58) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, SP },
	{ { "pushf", BYTES(0x9c) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, SP },
	{ { "leave", BYTES(0xc9) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, SP },
	{ { "enter", BYTES(0xc8, 8, 0, 0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 0, SP },
	{ { "mov %rsp,%rax", BYTES(0x48, 0x89, 0xe0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, SP | OPERAND },
	{ { "mov %esp,%eax", BYTES(0x89, 0xe0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 1, SP | OPERAND },
	{ { "mov %sp,%ax", BYTES(0x66, 0x89, 0xe0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, SP | OPERAND },
	{ { "mov %spl,%al", BYTES(0x40, 0x88, 0xe0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, SP | OPERAND },
	{ { "mov (%rsp),%rax", BYTES(0x48, 0x8b, 4, 0x24) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, SP | OPERAND },
	{ { "mov (%rbp),%rax", BYTES(0x48, 0x8b, 0x45, 0) }, CA_INSN_PLAIN, 0, 0, 0, 0, 2, 0 },
};

static void test_decode(void **state)
{
	static const uint8_t bad[] = { 0x06, 0x90 }, cut[] = { 0xe8, 0, 0, 0 };
	struct ca_insn insn;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(decoded); i++) {
		unsigned flags;

		insn = decode(&decoded[i].code);
		flags = (insn.uses_sp ? SP : 0u) | (insn.sp_operand ? OPERAND : 0u) |
			(insn.is_pad ? PAD : 0u);
		if (insn.kind != decoded[i].kind || insn.target != decoded[i].target ||
		    insn.memory != decoded[i].memory || insn.table != decoded[i].table ||
		    insn.disp_at != decoded[i].disp_at || insn.modrm_at != decoded[i].modrm_at ||
		    flags != decoded[i].flags)
			fail_msg("%s: kind %u target %#lx memory %#lx table %#lx displacement at %u ModRM at "
				 "%u "
				 "flags %u",
				 decoded[i].code.text, insn.kind, (unsigned long)insn.target,
				 (unsigned long)insn.memory, (unsigned long)insn.table, insn.disp_at,
				 insn.modrm_at, flags);
		assert_int_equal(insn.address, AT);
		assert_memory_equal(insn.bytes, decoded[i].code.bytes, insn.size);
		assert_false(insn.is_target || insn.is_split);
	}
	assert_false(ca_insn_decode(disassembler, bad, sizeof bad, AT, &insn));
	assert_false(ca_insn_decode(disassembler, cut, sizeof cut, AT, &insn));
}

static void test_mark(void **state)
{
	struct ca_insn insn[3] = { { .address = AT, .size = 2 },
				   { .address = AT + 2, .size = 5 },
				   { .address = AT + 7, .size = 1 } };

	(void)state;
	assert_false(ca_insn_mark(insn, 3, AT - 1));
	assert_false(ca_insn_mark(insn, 3, AT + 8));
	assert_false(ca_insn_mark(insn, 0, AT));
	for (int i = 0; i < 3; i++)
		assert_false(insn[i].is_target || insn[i].is_split);
	assert_true(ca_insn_mark(insn, 3, AT));
	assert_true(ca_insn_mark(insn, 3, AT + 7));
	assert_false(ca_insn_mark(insn, 3, AT + 6));
	assert_true(insn[0].is_target && insn[2].is_target && !insn[1].is_target);
	assert_true(insn[1].is_split && !insn[0].is_split && !insn[2].is_split);
}

static void test_movable(void **state)
{
	static const struct code point = { "nopl", BYTES(0x0f, 0x1f, 0x44, 0, 0) };
	static const struct code other = { "nopl 1", BYTES(0x0f, 0x1f, 0x44, 0, 1) };
	struct ca_insn insn = decode(&point);

	(void)state;
	assert_true(ca_insn_is_point(&insn));
	assert_false(ca_insn_is_movable(&insn));
	insn = decode(&other);
	assert_false(ca_insn_is_point(&insn));
	assert_true(ca_insn_is_movable(&insn));
	insn.is_target = true;
	assert_true(ca_insn_is_movable(&insn));
	insn.is_split = true;
	assert_false(ca_insn_is_movable(&insn));
	for (unsigned kind = CA_INSN_PLAIN; kind <= CA_INSN_STRANGE; kind++) {
		bool call = kind == CA_INSN_CALL || kind == CA_INSN_CALL_INDIRECT,
		     stays = call || kind == CA_INSN_END || kind == CA_INSN_STRANGE;

		insn = (struct ca_insn){ .kind = (uint8_t)kind, .size = 1 };
		assert_int_equal(ca_insn_is_movable(&insn), !stays);
		assert_int_equal(ca_insn_may_end(&insn), !stays || call);
		insn.is_split = true;
		assert_false(ca_insn_may_end(&insn));
	}
}

/* ---- copies ------------------------------------------------------------------------------ */
struct fixup {
	uint8_t at, end, type;
	uint64_t target;
};
struct copied {
	struct code code;
	uint8_t copy[20]; /* size 0: refused */
	size_t size;
	struct fixup fixup[3];
	int exit_at; /* of the hook; -1: none */
};

static void check_copies(const struct copied *cases, size_t n,
			 bool (*copy)(struct ca_site *, const struct ca_insn *))
{
	for (size_t i = 0; i < n; i++) {
		const struct copied *c = &cases[i];
		struct ca_insn insn = decode(&c->code);
		struct ca_site site;
		unsigned fixups = 0;
		bool done;

		ca_code_begin(&site, 3, CA_SITE_CALL, AT);
		done = copy(&site, &insn);
		if (done != (c->size > 0))
			fail_msg("%s: %s", c->code.text, done ? "copied" : "refused");
		if (!done)
			continue;
		if (site.code_length != c->size || memcmp(site.code, c->copy, c->size) != 0)
			fail_msg("%s: a wrong copy", c->code.text);
		assert_int_equal(site.length, c->code.size);
		assert_memory_equal(site.original, c->code.bytes, c->code.size);
		assert_int_equal(site.insns, 0);
		for (; fixups < CA_COUNT(c->fixup) && c->fixup[fixups].end; fixups++)
			if (site.fixup[fixups].at != c->fixup[fixups].at ||
			    site.fixup[fixups].end != c->fixup[fixups].end ||
			    site.fixup[fixups].type != c->fixup[fixups].type ||
			    site.fixup[fixups].target != c->fixup[fixups].target)
				fail_msg("%s: fixup %u is wrong", c->code.text, fixups);
		assert_int_equal(site.fixups, fixups);
		assert_int_equal(site.hooks, c->exit_at >= 0);
		if (c->exit_at >= 0) {
			assert_int_equal(site.hook[0].kind, CA_SITE_EXIT);
			assert_int_equal(site.hook[0].at, c->exit_at);
		}
		assert_int_equal(site.module, 3);
		assert_int_equal(site.kind, CA_SITE_CALL);
		assert_int_equal(site.address, AT);
	}
}

static void test_copy(void **state)
{
	static const struct copied cases[] = {
		{ { "nop", BYTES(0x90) }, BYTES(0x90), { { 0 } }, -1 },
		{ { "ret $8", BYTES(0xc2, 8, 0) }, BYTES(0xc2, 8, 0), { { 0 } }, -1 },
		{ { "mov (%rsp),%rax", BYTES(0x48, 0x8b, 4, 0x24) },
		  BYTES(0x48, 0x8b, 4, 0x24),
		  { { 0 } },
		  -1 },
		{ { "jmp", BYTES(0xeb, 0x10) },
		  BYTES(0xe9, 0, 0, 0, 0),
		  { { 1, 5, CA_FIXUP_REL, AT + 0x12 } },
		  -1 },
		{ { "jne", BYTES(0x75, 0xf0) },
		  BYTES(0x0f, 0x85, 0, 0, 0, 0),
		  { { 2, 6, CA_FIXUP_REL, AT - 0x0e } },
		  -1 },
		{ { "je,pn", BYTES(0x2e, 0x74, 2) },
		  BYTES(0x0f, 0x84, 0, 0, 0, 0),
		  { { 2, 6, CA_FIXUP_REL, AT + 5 } },
		  -1 },
		{ { "jg", BYTES(0x0f, 0x8f, 0, 0x10, 0, 0) },
		  BYTES(0x0f, 0x8f, 0, 0, 0, 0),
		  { { 2, 6, CA_FIXUP_REL, AT + 0x1006 } },
		  -1 },
		{ { "call", BYTES(0xe8, 0xfb, 0x0f, 0, 0) },
		  BYTES(0x68, 0, 0, 0, 0, 0xc7, 0x44, 0x24, 4, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0),
		  { { 1, 5, CA_FIXUP_LOW, AT + 5 },
		    { 9, 13, CA_FIXUP_HIGH, AT + 5 },
		    { 14, 18, CA_FIXUP_REL, 0x402000 } },
		  -1 },
		{ { "lea", BYTES(0x48, 0x8d, 5, 0, 1, 0, 0) },
		  BYTES(0x48, 0x8d, 5, 0, 1, 0, 0),
		  { { 3, 7, CA_FIXUP_REL, AT + 0x107 } },
		  -1 },
		{ { "movl $7,0x100(%rip)", BYTES(0xc7, 5, 0, 1, 0, 0, 7, 0, 0, 0) },
		  BYTES(0xc7, 5, 0, 1, 0, 0, 7, 0, 0, 0),
		  { { 2, 10, CA_FIXUP_REL, AT + 0x10a } },
		  -1 },
		{ { "call *%rax", BYTES(0xff, 0xd0) },
		  BYTES(0x68, 0, 0, 0, 0, 0xc7, 0x44, 0x24, 4, 0, 0, 0, 0, 0xff, 0xe0),
		  { { 1, 5, CA_FIXUP_LOW, AT + 2 }, { 9, 13, CA_FIXUP_HIGH, AT + 2 } },
		  -1 },
		{ { "call *0x100(%rip)", BYTES(0xff, 0x15, 0, 1, 0, 0) },
		  BYTES(0x68, 0, 0, 0, 0, 0xc7, 0x44, 0x24, 4, 0, 0, 0, 0, 0xff, 0x25, 0, 1, 0, 0),
		  { { 1, 5, CA_FIXUP_LOW, AT + 6 },
		    { 9, 13, CA_FIXUP_HIGH, AT + 6 },
		    { 15, 19, CA_FIXUP_REL, AT + 0x106 } },
		  -1 },
		/* what it goes by has moved */
		{ { "call *8(%rsp)", BYTES(0xff, 0x54, 0x24, 8) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "loop", BYTES(0xe2, 0xfe) }, { 0 }, 0, { { 0 } }, -1 },
	};

	(void)state;
	check_copies(cases, CA_COUNT(cases), ca_code_copy);
}

static void test_copy_leaving(void **state)
{
	static const struct copied cases[] = {
		{ { "ret", BYTES(0xc3) }, BYTES(0xc3), { { 0 } }, 0 },
		{ { "jmp *%rax", BYTES(0xff, 0xe0) }, BYTES(0xff, 0xe0), { { 0 } }, 0 },
		{ { "jmp", BYTES(0xeb, 0x10) },
		  BYTES(0xe9, 0, 0, 0, 0),
		  { { 1, 5, CA_FIXUP_REL, AT + 0x12 } },
		  0 },
		{ { "je", BYTES(0x0f, 0x84, 0, 0x10, 0, 0) },
		  BYTES(0x0f, 0x85, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0),
		  { { 2, 6, CA_FIXUP_LOCAL, 11 }, { 7, 11, CA_FIXUP_REL, AT + 0x1006 } },
		  6 },
		{ { "jne", BYTES(0x75, 0xf0) },
		  BYTES(0x0f, 0x84, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0),
		  { { 2, 6, CA_FIXUP_LOCAL, 11 }, { 7, 11, CA_FIXUP_REL, AT - 0x0e } },
		  6 },
		{ { "loop", BYTES(0xe2, 0xfe) }, { 0 }, 0, { { 0 } }, -1 },
	};

	(void)state;
	check_copies(cases, CA_COUNT(cases), ca_code_copy_leaving);
}

/* The return address is on the stack by then: an operand counted from the stack pointer would be
 * read 8 bytes off. */
static void test_copy_called(void **state)
{
	static const struct copied cases[] = {
		{ { "call", BYTES(0xe8, 0xfb, 0x0f, 0, 0) },
		  BYTES(0xe9, 0, 0, 0, 0),
		  { { 1, 5, CA_FIXUP_REL, 0x402000 } },
		  -1 },
		{ { "call *%rax", BYTES(0xff, 0xd0) }, BYTES(0xff, 0xe0), { { 0 } }, -1 },
		{ { "call *%r11", BYTES(0x41, 0xff, 0xd3) }, BYTES(0x41, 0xff, 0xe3), { { 0 } }, -1 },
		{ { "notrack call *%rax", BYTES(0x3e, 0xff, 0xd0) }, BYTES(0x3e, 0xff, 0xe0), { { 0 } }, -1 },
		{ { "call *8(%rax)", BYTES(0xff, 0x50, 8) }, BYTES(0xff, 0x60, 8), { { 0 } }, -1 },
		{ { "call *8(%r12)", BYTES(0x41, 0xff, 0x54, 0x24, 8) },
		  BYTES(0x41, 0xff, 0x64, 0x24, 8),
		  { { 0 } },
		  -1 },
		{ { "call *8(%rax,%rbx,4)", BYTES(0xff, 0x54, 0x98, 8) },
		  BYTES(0xff, 0x64, 0x98, 8),
		  { { 0 } },
		  -1 },
		{ { "call *%fs:0x10", BYTES(0x64, 0xff, 0x14, 0x25, 0x10, 0, 0, 0) },
		  BYTES(0x64, 0xff, 0x24, 0x25, 0x10, 0, 0, 0),
		  { { 0 } },
		  -1 },
		{ { "call *0x100(%rip)", BYTES(0xff, 0x15, 0, 1, 0, 0) },
		  BYTES(0xff, 0x25, 0, 1, 0, 0),
		  { { 2, 6, CA_FIXUP_REL, AT + 0x106 } },
		  -1 },
		{ { "call *(%rsp)", BYTES(0xff, 0x14, 0x24) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "call *8(%rsp)", BYTES(0xff, 0x54, 0x24, 8) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "call *0x100(%rsp)", BYTES(0xff, 0x94, 0x24, 0, 1, 0, 0) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "call *8(%rsp,%rax,8)", BYTES(0xff, 0x54, 0xc4, 8) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "call *8(%esp)", BYTES(0x67, 0xff, 0x54, 0x24, 8) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "call *%rsp", BYTES(0xff, 0xd4) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "lcall *(%rax)", BYTES(0xff, 0x18) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "jmp *%rax", BYTES(0xff, 0xe0) }, { 0 }, 0, { { 0 } }, -1 },
		{ { "nop", BYTES(0x90) }, { 0 }, 0, { { 0 } }, -1 },
	};

	(void)state;
	check_copies(cases, CA_COUNT(cases), ca_code_copy_called);
}

/* Several instructions in one site: where each stands, and what has no room any more. */
static void test_room(void **state)
{
	static const struct code nop = { "nop", BYTES(0x90) }, three = { "nopl", BYTES(0x0f, 0x1f, 0) },
				 jump = { "jmp", BYTES(0xeb, 0x10) },
				 call = { "call", BYTES(0xe8, 0, 0, 0, 0) };
	struct ca_insn insn = decode(&three);
	struct ca_site site;

	(void)state;
	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	for (unsigned i = 0; i < 8; i++)
		assert_true(ca_code_copy(&site, &insn));
	assert_int_equal(site.length, CA_SITE_BYTES);
	for (unsigned i = 0; i < 7; i++) {
		assert_int_equal(site.insn[i].offset, 3 * (i + 1));
		assert_int_equal(site.insn[i].at, 3 * (i + 1));
	}
	assert_int_equal(site.insns, 7);
	assert_false(ca_code_copy(&site, &insn));

	insn = decode(&nop);
	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	for (unsigned i = 0; i <= CA_SITE_INSNS; i++)
		assert_true(ca_code_copy(&site, &insn));
	assert_false(ca_code_copy(&site, &insn));

	insn = decode(&jump);
	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	for (unsigned i = 0; i < CA_SITE_FIXUPS; i++)
		assert_true(ca_code_copy(&site, &insn));
	assert_false(ca_code_copy(&site, &insn));
	assert_false(ca_code_jump_back(&site));

	insn = decode(&nop);
	insn.is_split = true;
	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	assert_false(ca_code_copy(&site, &insn));

	insn = decode(&call);
	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	assert_true(ca_code_copy(&site, &insn));
	assert_true(ca_code_jump_back(&site));
	assert_int_equal(site.code[18], 0xe9);
	assert_int_equal(site.fixup[3].at, 19);
	assert_int_equal(site.fixup[3].target, AT + 5);

	ca_code_begin(&site, 1, CA_SITE_ENTER, AT);
	for (unsigned i = 0; i < CA_SITE_HOOKS; i++)
		assert_true(ca_code_hook(&site, CA_SITE_COUNT));
	assert_false(ca_code_hook(&site, CA_SITE_COUNT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),       cmocka_unit_test(test_mark),
		cmocka_unit_test(test_movable),      cmocka_unit_test(test_copy),
		cmocka_unit_test(test_copy_leaving), cmocka_unit_test(test_copy_called),
		cmocka_unit_test(test_room),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

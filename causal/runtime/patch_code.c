/* SPDX-License-Identifier: MIT */
/* The trampoline of one site: hooks woven into the copies of the displaced instructions. Pure:
 * it computes bytes and touches no memory but its own.
 *
 * Not for finding memory (patch_mem.c) nor for the order in which text changes (patch.c). */
#include "causal/runtime/patch_internal.h"
#include <string.h>

struct body {
	uint8_t *out; /* NULL: measure only */
	size_t length;
	uintptr_t base; /* its run-time address */
	bool reaches;
};

static void put(struct body *b, const void *bytes, size_t n)
{
	if (b->out && b->length + n <= CA_PATCH_BODY)
		memcpy(b->out + b->length, bytes, n);
	b->length += n;
}

static void put32(struct body *b, uint32_t v)
{
	put(b, &v, 4);
}

static int32_t distance(struct body *b, uintptr_t from, uintptr_t to)
{
	int64_t d = (int64_t)(to - from);

	if (d != (int32_t)d)
		b->reaches = false;
	return (int32_t)d;
}

static void put_call_thunk(struct body *b, enum ca_thunk thunk, uintptr_t table)
{
	static const uint8_t down[] = { 0x48, 0x8d, 0x64, 0x24, 0x80 };        /* lea -128(%rsp) */
	static const uint8_t call[] = { 0xff, 0x15 };                          /* call *(%rip) */
	static const uint8_t up[] = { 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 }; /* lea 128(%rsp) */

	put(b, down, sizeof(down));
	put(b, call, sizeof(call));
	put32(b, (uint32_t)distance(b, b->base + b->length + 4, table + thunk * 8));
	put(b, up, sizeof(up));
}

/* ... with a number, which is pushed. */
static void put_call_with(struct body *b, enum ca_thunk thunk, uint32_t number, uintptr_t table)
{
	static const uint8_t down[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0x68 };  /* lea -128(%rsp); push */
	static const uint8_t call[] = { 0xff, 0x15 };                          /* call *(%rip) */
	static const uint8_t up[] = { 0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0 }; /* lea 136(%rsp) */

	put(b, down, sizeof(down));
	put32(b, number);
	put(b, call, sizeof(call));
	put32(b, (uint32_t)distance(b, b->base + b->length + 4, table + thunk * 8));
	put(b, up, sizeof(up));
}

/* Without a call and, unless nobody cares, without touching the flags. */
static void put_count(struct body *b, uint32_t point, bool flags_dead)
{
	static const uint8_t down_rax[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0x50 };
	static const uint8_t load_rax[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 }; /* mov %fs:x, %rax */
	static const uint8_t inc[] = { 0x48, 0xff, 0x80 };                  /* incq x(%rax) */
	static const uint8_t load_rcx[] = { 0x48, 0x8b, 0x88 };             /* mov x(%rax), %rcx */
	static const uint8_t add[] = { 0x48, 0x8d, 0x49, 0x01 };            /* lea 1(%rcx), %rcx */
	static const uint8_t store_rcx[] = { 0x48, 0x89, 0x88 };
	static const uint8_t push_rcx = 0x51, pop_rcx = 0x59;
	static const uint8_t rax_up[] = { 0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 };
	uintptr_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	put(b, down_rax, sizeof(down_rax));
	if (!flags_dead)
		put(b, &push_rcx, 1);
	put(b, load_rax, sizeof(load_rax));
	put32(b, (uint32_t)((uintptr_t)&ca_patch_counters - self));
	if (flags_dead) {
		put(b, inc, sizeof(inc));
		put32(b, point * 8);
	} else {
		put(b, load_rcx, sizeof(load_rcx));
		put32(b, point * 8);
		put(b, add, sizeof(add));
		put(b, store_rcx, sizeof(store_rcx));
		put32(b, point * 8);
		put(b, &pop_rcx, 1);
	}
	put(b, rax_up, sizeof(rax_up));
}

static intptr_t count_shift(const struct ca_site *site, size_t in, size_t left)
{
	bool rcx = !(site->flags & CA_SITE_FLAGS_DEAD);
	intptr_t shift = in >= 5 ? 128 : 0;

	/* lea, push rax, push rcx ... pop rcx, pop rax, lea */
	if (in >= 6 && left > 8)
		shift += 8;
	if (rcx && in >= 7 && left > 9)
		shift += 8;
	return shift;
}

/* Where the point is hot, as put_count; else as a call with it. jrcxz leaves the flags alone. The numbers are
 * those of visit_shift. */
static void put_visit(struct body *b, uint32_t point, uintptr_t table)
{
	static const uint8_t down[] = { 0x48, 0x8d, 0x64, 0x24, 0x80, 0x50, 0x51 }; /* push rax, rcx */
	static const uint8_t load_rax[] = { 0x64, 0x48, 0x8b, 0x04, 0x25 };         /* mov %fs:x, %rax */
	static const uint8_t load_rcx[] = { 0x48, 0x8b, 0x88 };                     /* mov x(%rax), %rcx */
	static const uint8_t cool[] = { 0xe3, 0x1e };                               /* jrcxz to 55 */
	static const uint8_t add[] = { 0x48, 0x8d, 0x49, 0x01 };                    /* lea 1(%rcx), %rcx */
	static const uint8_t store_rcx[] = { 0x48, 0x89, 0x88 };
	static const uint8_t counted[] = {
		0x59, 0x58, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0, 0xeb, 0x15
	};                                                   /* pop both, lea 128, jmp to 76 */
	static const uint8_t stamp[] = { 0x59, 0x58, 0x68 }; /* 55: pop both; push */
	static const uint8_t call[] = { 0xff, 0x15 };        /* call *(%rip) */
	static const uint8_t up[] = { 0x48, 0x8d, 0xa4, 0x24, 0x88, 0, 0, 0 }; /* lea 136(%rsp) */
	uintptr_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	put(b, down, sizeof(down));
	put(b, load_rax, sizeof(load_rax));
	put32(b, (uint32_t)((uintptr_t)&ca_patch_counters - self));
	put(b, load_rcx, sizeof(load_rcx));
	put32(b, (CA_PATCH_HOT + point) * 8);
	put(b, cool, sizeof(cool));
	put(b, load_rcx, sizeof(load_rcx));
	put32(b, point * 8);
	put(b, add, sizeof(add));
	put(b, store_rcx, sizeof(store_rcx));
	put32(b, point * 8);
	put(b, counted, sizeof(counted));
	put(b, stamp, sizeof(stamp));
	put32(b, point);
	put(b, call, sizeof(call));
	put32(b, (uint32_t)distance(b, b->base + b->length + 4, table + CA_THUNK_STAMP * 8));
	put(b, up, sizeof(up));
}

/* `in` bytes from the start of that, what has to be added to sp. */
static intptr_t visit_shift(size_t in)
{
	static const struct {
		uint8_t from, shift;
	} step[] = { { 5, 128 }, { 6, 136 },  { 7, 144 },  { 44, 136 }, { 45, 128 },
		     { 53, 0 },  { 55, 144 }, { 56, 136 }, { 57, 128 }, { 62, 136 } };
	intptr_t shift = 0;

	for (size_t i = 0; i < sizeof(step) / sizeof(step[0]) && step[i].from <= in; i++)
		shift = step[i].shift;
	return shift;
}

/* ---- the fine sampler: struct ca_fine, in about 10 ns each ----------------------------------- */
static const uint8_t down_3[] = { 0x48, 0x8d, 0x64, 0x24, 0x80,          /* lea -128(%rsp), %rsp */
				  0x50, 0x51, 0x52 };                    /* push %rax, %rcx, %rdx */
static const uint8_t save_flags[] = { 0x9f, 0x0f, 0x90, 0xc0, 0x50 };    /* lahf; seto %al; push %rax */
static const uint8_t restore_flags[] = { 0x58, 0x04, 0x7f, 0x9e };       /* pop %rax; add $127, %al; sahf */
static const uint8_t up_3[] = { 0x5a, 0x59, 0x58,                        /* pop %rdx, %rcx, %rax */
				0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0 }; /* lea 128(%rsp), %rsp */
/* What is under way on either side of it is done, or not begun: else a visit that waits for memory is over before most of
 * it has happened. */
static const uint8_t read_cycles[] = { 0x0f, 0xae, 0xe8,                   /* lfence */
				       0x0f, 0x31, 0x48, 0xc1, 0xe2, 0x20, /* rdtsc; shl $32, %rdx */
				       0x48, 0x09, 0xd0 };                 /* or %rdx, %rax */
static const uint8_t is_counting[] = { 0x83, 0x79, CA_FINE_COUNTING, 0 };  /* cmpl $0, x(%rcx) */

static void put_fine_begin(struct body *b, bool flags_dead)
{
	static const uint8_t load_rcx[] = { 0x64, 0x48, 0x8b, 0x0c, 0x25 }; /* mov %fs:x, %rcx */
	uintptr_t self;

	__asm__("movq %%fs:0, %0" : "=r"(self));
	put(b, down_3, sizeof(down_3));
	if (!flags_dead)
		put(b, save_flags, sizeof(save_flags));
	put(b, load_rcx, sizeof(load_rcx));
	put32(b, (uint32_t)((uintptr_t)&ca_patch_fine - self));
}

static void put_fine_end(struct body *b, bool flags_dead)
{
	if (!flags_dead)
		put(b, restore_flags, sizeof(restore_flags));
	put(b, up_3, sizeof(up_3));
}

/* The activation, named by what the stack pointer was when it began. */
static void put_name(struct body *b, const struct ca_site *site)
{
	static const uint8_t lea[] = { 0x48, 0x8d, 0x94, 0x24 }; /* lea x(%rsp), %rdx */
	static const uint8_t lea_fp[] = { 0x48, 0x8d, 0x95 };    /* lea x(%rbp), %rdx */

	if (site->flags & CA_SITE_BY_FP) {
		put(b, lea_fp, sizeof(lea_fp));
		put32(b, 8U * site->words);
		return;
	}
	put(b, lea, sizeof(lea));
	put32(b, 152 + (site->flags & CA_SITE_FLAGS_DEAD ? 0U : 8U) +
			 (site->flags & CA_SITE_BY_CALL ? 8U : 0U) + 8U * site->words);
}

/* A jump over what comes next; its length is not known yet. Returns where to write it. */
static size_t put_skip(struct body *b, uint8_t opcode)
{
	const uint8_t jump[] = { opcode, 0 };

	put(b, jump, sizeof(jump));
	return b->length;
}

static void put_skip_end(struct body *b, size_t from)
{
	if (b->out && b->length <= CA_PATCH_BODY)
		b->out[from - 1] = (uint8_t)(b->length - from);
}

/* Above all that is open: a new visit, and what was open has been left without an exit. A handler that
 * comes in between finds `entered` before `outer`. */
static void put_fine_enter(struct body *b, const struct ca_site *site)
{
	static const uint8_t compare[] = { 0x48, 0x3b, 0x11 };                     /* cmp (%rcx), %rdx */
	static const uint8_t store_time[] = { 0x48, 0x89, 0x41, CA_FINE_ENTERED }; /* mov %rax, x(%rcx) */
	static const uint8_t store_outer[] = { 0x48, 0x89, 0x11 };                 /* mov %rdx, (%rcx) */
	size_t skip, untimed;

	put_fine_begin(b, site->flags & CA_SITE_FLAGS_DEAD);
	put_name(b, site);
	put(b, compare, sizeof(compare));
	skip = put_skip(b, 0x76); /* jbe */
	put(b, is_counting, sizeof(is_counting));
	untimed = put_skip(b, 0x75); /* jne */
	put(b, read_cycles, sizeof(read_cycles));
	put(b, store_time, sizeof(store_time));
	put_name(b, site);
	put_skip_end(b, untimed);
	put(b, store_outer, sizeof(store_outer));
	put_skip_end(b, skip);
	put_fine_end(b, site->flags & CA_SITE_FLAGS_DEAD);
}

/* At the outermost activation or above it. A handler that adds to the sum does so only while `outer`
 * stands, and begins anew from `entered`: the rest may then be some ns below 0. */
static void put_fine_exit(struct body *b, const struct ca_site *site, uintptr_t table)
{
	static const uint8_t load_outer[] = { 0x48, 0x8b, 0x01,   /* mov (%rcx), %rax */
					      0x48, 0xff, 0xc8 }; /* dec %rax: 0 becomes the highest */
	static const uint8_t compare[] = { 0x48, 0x39, 0xd0 };    /* cmp %rdx, %rax */
	/* clang-format off */
	static const uint8_t add_up[] = {
		0x48, 0x89, 0x41, CA_FINE_LEFT,    /* mov %rax, x(%rcx) */
		0x48, 0xc7, 0x01, 0, 0, 0, 0,      /* movq $0, (%rcx) */
		0xff, 0x41, CA_FINE_VISITS,        /* incl x(%rcx) */
		0x48, 0x2b, 0x41, CA_FINE_ENTERED, /* sub x(%rcx), %rax */
		0x48, 0x03, 0x41, CA_FINE_SUM,     /* add x(%rcx), %rax */
		0x48, 0x89, 0x41, CA_FINE_SUM,     /* mov %rax, x(%rcx) */
		0x48, 0x3b, 0x41, CA_FINE_LIMIT    /* cmp x(%rcx), %rax */
	};
	static const uint8_t count_down[] = {
		0x48, 0xc7, 0x01, 0, 0, 0, 0, /* movq $0, (%rcx) */
		0xff, 0x41, CA_FINE_VISITS,   /* incl x(%rcx) */
		0xff, 0x49, CA_FINE_COUNTING  /* decl x(%rcx) */
	};
	/* clang-format on */
	static const uint8_t call[] = { 0xff, 0x15 };                  /* call *(%rip) */
	static const uint8_t count[] = { 0xff, 0x41, CA_FINE_PASSES }; /* incl x(%rcx) */
	size_t outside, timed, due, not_due, more, inside;

	put_fine_begin(b, site->flags & CA_SITE_FLAGS_DEAD);
	put(b, load_outer, sizeof(load_outer));
	put_name(b, site);
	put(b, compare, sizeof(compare));
	outside = put_skip(b, 0x73); /* jae */
	put(b, is_counting, sizeof(is_counting));
	timed = put_skip(b, 0x74); /* je */
	put(b, count_down, sizeof(count_down));
	due = put_skip(b, 0x74);  /* je */
	more = put_skip(b, 0xeb); /* jmp */
	put_skip_end(b, timed);
	put(b, read_cycles, sizeof(read_cycles));
	put(b, add_up, sizeof(add_up));
	not_due = put_skip(b, 0x7c); /* jl */
	put_skip_end(b, due);
	put(b, call, sizeof(call));
	put32(b, (uint32_t)distance(b, b->base + b->length + 4, table + CA_THUNK_FINE * 8));
	put_skip_end(b, not_due);
	put_skip_end(b, more);
	inside = put_skip(b, 0xeb); /* jmp */
	put_skip_end(b, outside);
	put(b, count, sizeof(count));
	put_skip_end(b, inside);
	put_fine_end(b, site->flags & CA_SITE_FLAGS_DEAD);
}

static intptr_t fine_shift(const struct ca_site *site, size_t in, size_t left)
{
	enum { LEA_DOWN = 5, LEA_UP = 8, REGISTERS = 3 };
	intptr_t shift = in >= LEA_DOWN ? 128 : 0;

	/* a push and a pop are a byte each, those last pushed nearest to the middle */
	for (unsigned i = 1; i <= REGISTERS; i++)
		if (in >= LEA_DOWN + i && left >= LEA_UP + i)
			shift += 8;
	if (!(site->flags & CA_SITE_FLAGS_DEAD) && in >= sizeof(down_3) + sizeof(save_flags) &&
	    left >= sizeof(up_3) + sizeof(restore_flags))
		shift += 8;
	return shift;
}

/* Of a call, before which a number may be pushed. */
static intptr_t call_shift(size_t in, bool number)
{
	enum { LEA = 5, PUSH = 5 };

	return in < LEA ? 0 : number && in >= LEA + PUSH ? 136 : 128;
}

intptr_t ca_patch_code_shift(const struct ca_site *site, unsigned hook, size_t in, size_t left)
{
	switch (site->hook[hook].kind) {
	case CA_SITE_COUNT:
		return count_shift(site, in, left);
	case CA_SITE_VISIT:
		return visit_shift(in);
	case CA_SITE_FINE_ENTER:
	case CA_SITE_FINE_EXIT:
		return fine_shift(site, in, left);
	case CA_SITE_ENTER:
	case CA_SITE_EXIT:
		return call_shift(in, site->words);
	case CA_SITE_STAMP:
	case CA_SITE_PART:
		return call_shift(in, true);
	default:
		return call_shift(in, false);
	}
}

static void put_hook(struct body *b, const struct ca_site *site, unsigned hook, uintptr_t table)
{
	bool called = site->flags & CA_SITE_BY_CALL, flags_dead = site->flags & CA_SITE_FLAGS_DEAD;
	bool by_fp = site->flags & CA_SITE_BY_FP;
	uint32_t point = site->hook[hook].point ? site->hook[hook].point - 1u : site->point;

	switch (site->hook[hook].kind) {
	case CA_SITE_ENTER:
		if (site->words)
			put_call_with(b, by_fp ? CA_THUNK_ENTER_ABOVE_FP : CA_THUNK_ENTER_ABOVE, site->words,
				      table);
		else
			put_call_thunk(b, called ? CA_THUNK_ENTER_CALLED : CA_THUNK_ENTER, table);
		break;
	case CA_SITE_EXIT:
		if (site->words)
			put_call_with(b, by_fp ? CA_THUNK_EXIT_ABOVE_FP : CA_THUNK_EXIT_ABOVE, site->words,
				      table);
		else
			put_call_thunk(b, called ? CA_THUNK_EXIT_CALLED : CA_THUNK_EXIT, table);
		break;
	case CA_SITE_COUNT:
		put_count(b, point, flags_dead);
		break;
	case CA_SITE_STAMP:
		put_call_with(b, CA_THUNK_STAMP, point, table);
		break;
	case CA_SITE_PART:
		put_call_with(b, CA_THUNK_STAMP, CA_MAX_POINTS + site->point, table);
		break;
	case CA_SITE_VISIT:
		put_visit(b, point, table);
		break;
	case CA_SITE_FINE_ENTER:
		put_fine_enter(b, site);
		break;
	case CA_SITE_FINE_EXIT:
		put_fine_exit(b, site, table);
		break;
	case CA_SITE_ATOMIC:
		put_call_thunk(b, CA_THUNK_ATOMIC, table);
		break;
	default:
		put_call_thunk(b, CA_THUNK_MEET, table);
	}
}

/* Lay hooks and code out; fill the maps from site to body. */
static void build(struct ca_patch_record *r, struct body *b, uintptr_t table)
{
	const struct ca_site *s = &r->site;
	size_t entry[CA_SITE_CODE + 1] = { 0 }; /* as code_at, before the hooks */
	unsigned hook = 0;

	for (size_t at = 0; at <= s->code_length; at++) {
		entry[at] = b->length;
		for (; hook < s->hooks && s->hook[hook].at == at; hook++) {
			r->hook_at[hook] = (uint16_t)b->length;
			put_hook(b, s, hook, table);
			r->hook_end[hook] = (uint16_t)b->length;
		}
		r->code_at[at] = (uint16_t)b->length;
		if (at < s->code_length)
			put(b, &s->code[at], 1);
	}
	for (unsigned i = 0; i < s->insns; i++)
		r->insn_at[i] = (uint16_t)entry[s->insn[i].at];
}

static bool valid(const struct ca_site *s)
{
	if (s->length == 0 || s->length > CA_SITE_BYTES || s->code_length > CA_SITE_CODE ||
	    s->fixups > CA_SITE_FIXUPS || s->hooks > CA_SITE_HOOKS || s->insns > CA_SITE_INSNS ||
	    s->point >= CA_MAX_POINTS)
		return false;
	for (unsigned i = 0; i < s->fixups; i++)
		if (s->fixup[i].end > s->code_length || s->fixup[i].at + 4 > s->fixup[i].end ||
		    (s->fixup[i].type == CA_FIXUP_LOCAL && s->fixup[i].target > s->code_length))
			return false;
	for (unsigned i = 0; i < s->insns; i++)
		if (s->insn[i].at > s->code_length || s->insn[i].offset >= s->length)
			return false;
	for (unsigned i = 0; i < s->hooks; i++)
		if (s->hook[i].at > s->code_length || s->hook[i].point > CA_MAX_POINTS ||
		    (i && s->hook[i].at < s->hook[i - 1].at))
			return false;
	return true;
}

size_t ca_patch_code_measure(struct ca_patch_record *r)
{
	struct body b = { .reaches = true };

	if (!valid(&r->site))
		return 0;
	build(r, &b, 0);
	return b.length <= CA_PATCH_BODY ? b.length : 0;
}

bool ca_patch_code_emit(struct ca_patch_record *r, uint8_t *out)
{
	struct body b = { .out = out, .base = r->place.body, .reaches = true };
	const struct ca_site *s = &r->site;

	build(r, &b, ca_patch_mem_thunks(r->place.body));
	for (unsigned i = 0; i < s->fixups; i++) {
		/* the last byte of an instruction never has a hook before it */
		uint8_t *at = out + r->code_at[s->fixup[i].at];
		uintptr_t end = r->place.body + r->code_at[s->fixup[i].end - 1] + 1u;
		uintptr_t target = (uintptr_t)s->fixup[i].target + r->bias;
		uint32_t value;

		switch (s->fixup[i].type) {
		case CA_FIXUP_LOW:
			value = (uint32_t)target;
			break;
		case CA_FIXUP_HIGH:
			value = (uint32_t)(target >> 32);
			break;
		case CA_FIXUP_LOCAL: {
			/* to the hooks at that offset, if it has any */
			size_t to = r->code_at[s->fixup[i].target];

			for (unsigned h = s->hooks; h-- > 0;)
				if (s->hook[h].at == s->fixup[i].target)
					to = r->hook_at[h];
			value = (uint32_t)distance(&b, end, r->place.body + to);
			break;
		}
		default:
			value = (uint32_t)distance(&b, end, target);
		}
		memcpy(at, &value, 4);
	}
	return b.reaches;
}

/* SPDX-License-Identifier: MIT */
/* Walking a stack; see unwind.h. Runtime; safe in handlers. x86-64.
 *
 * A row may be wrong, and a stack broken. What lies above the stack pointer in the thread's own stack is there
 * whatever they say, and is read directly. No other word is where a system call can copy it: that fails where
 * memory is not readable, instead of raising SIGSEGV in the program; but a call takes 14 us with cold caches.
 * Where such calls are forbidden (seccomp), words are read directly, but only between the
 * frame's stack pointer and the end of the mapping that it lies in: what is above a stack
 * pointer of a running thread stays mapped. A chain that stops moving outward ends the walk. Code without rows is gone
 * through by its frame pointer; where it was made at run time, and has none, its caller is looked for.
 *
 * After other work nothing of this is in a cache, the code neither: what most frames need is side by side, and what
 * few need is APART. */
#include "sampler/unwind.h"
#include "core/sys.h"
#include "sampler/host.h"
#include "sampler/modules.h"
#include <errno.h>
#include <string.h>
#include <ucontext.h>

enum {
	PAGE = 4096,
	LINE = 64,       /* of a cache */
	AHEAD = 4096,    /* bytes of the stack that most walks go through */
	BX = 3,          /* DWARF's number */
	SCRATCH = 0xf37, /* a bit each, by it: what a call need not keep, see rare_frame_address */
	LOOKED_AT = 256, /* words of a frame of which nothing is known, for a return address ... */
	TRIED = 8,       /* ... of which so many are followed, at most */
	FAR = 1 << 16,   /* bytes, for a caller's frame pointer */
	IN_VAIN = 16,    /* after so many stacks in a row that this did not complete, only in each such one */
	MOST_LOOKS = 64  /* for the mapping of a stack in a row without finding it */
};

/* Where the caller of the last frame is looked for, of which only the place is known. */
struct caller {
	unsigned depth; /* frames up to that one; 0: there is none */
	unsigned words; /* left to be looked at, from here on */
	unsigned tries;
	uintptr_t at, fp;
};
#define APART __attribute__((cold, noinline))
_Static_assert(sizeof(((struct ca_stack *)0)->seen) == LINE * 64, "a bit of `used` for each line");

static _Atomic bool no_copies; /* the system call is forbidden */
static _Atomic int failed_looks;

/* The stack's mapping, for reading it directly. */
static bool within_stack(struct ca_stack *w, uintptr_t address)
{
	uintptr_t low, high;
	int failed;

	if (address >= w->map_low && address + sizeof(uintptr_t) <= w->map_high)
		return true;
	/* reading the maps is slow: not again and again for a stack that is not in them */
	failed = atomic_load_explicit(&failed_looks, memory_order_relaxed);
	if (failed > MOST_LOOKS)
		return false;
	if (!ca_modules_mapping(address, &low, &high)) {
		atomic_store_explicit(&failed_looks, failed + 1, memory_order_relaxed);
		return false;
	}
	w->map_low = low;
	w->map_high = high;
	return address + sizeof(uintptr_t) <= high;
}

static bool fetch(struct ca_stack *w, uintptr_t address)
{
	/* a copy that would touch a page that cannot be read may fail as a whole */
	long got = ca_sys_peek(address, w->copy, CA_UNWIND_COPY);

	if (got == -EPERM || got == -ENOSYS) {
		atomic_store_explicit(&no_copies, true, memory_order_relaxed);
		return false;
	}
	if (got < (long)sizeof(uintptr_t)) {
		size_t left = PAGE - (address & (PAGE - 1));

		got = ca_sys_peek(address, w->copy, left < CA_UNWIND_COPY ? left : CA_UNWIND_COPY);
	}
	if (got < (long)sizeof(uintptr_t))
		return false;
	w->copy_low = address;
	w->copy_high = address + (uintptr_t)got;
	return true;
}

static APART bool load_copied(struct ca_stack *w, uintptr_t address, uintptr_t *value)
{
	if (address & 7)
		return false;
	if (address < w->copy_low || address + sizeof *value > w->copy_high) {
		if (!atomic_load_explicit(&no_copies, memory_order_relaxed) && !fetch(w, address) &&
		    !atomic_load_explicit(&no_copies, memory_order_relaxed))
			return false;
		if (atomic_load_explicit(&no_copies, memory_order_relaxed)) {
			if (address < w->stack_pointer || !within_stack(w, w->stack_pointer) ||
			    address < w->map_low || address + sizeof *value > w->map_high)
				return false;
			*value = *(const volatile uintptr_t *)address;
			return true;
		}
	}
	memcpy(value, w->copy + (address - w->copy_low), sizeof *value);
	return true;
}

static inline bool load(struct ca_stack *w, uintptr_t address, uintptr_t *value)
{
	if (address & 7 || address < w->stack_pointer || address >= w->direct_high)
		return load_copied(w, address, value);
	*value = *(const volatile uintptr_t *)address;
	return true;
}

CA_SIGSAFE void ca_unwind_registers(struct ca_registers *r, uintptr_t all[16], const void *ucontext)
{
	static const unsigned char order[16] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
						 REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
						 REG_R12, REG_R13, REG_R14, REG_R15 };
	const greg_t *g = ((const ucontext_t *)ucontext)->uc_mcontext.gregs;

	for (unsigned i = 0; i < 16; i++)
		all[i] = (uintptr_t)g[order[i]];
	r->pc = (uintptr_t)g[REG_RIP];
	r->sp = (uintptr_t)g[REG_RSP];
	r->fp = (uintptr_t)g[REG_RBP];
	r->all = all;
}

/* The signal frame that the kernel built: the ucontext stands at sp, behind the return
 * address that __restore_rt was entered by. */
static APART bool step_signal(struct ca_registers *r, struct ca_stack *w)
{
	const size_t gregs = offsetof(ucontext_t, uc_mcontext.gregs);
	uintptr_t pc, sp, fp, bx;

	/* from low to high: so they are copied at once */
	if (!load(w, r->sp + gregs + REG_RBP * 8, &fp) || !load(w, r->sp + gregs + REG_RBX * 8, &bx) ||
	    !load(w, r->sp + gregs + REG_RSP * 8, &sp) || !load(w, r->sp + gregs + REG_RIP * 8, &pc))
		return false;
	r->bx = bx;
	r->has_bx = true;
	r->pc = pc;
	r->sp = sp;
	r->fp = fp;
	r->all = NULL;
	return true;
}

static APART bool rare_frame_address(const struct ca_unwind_row *row, const struct ca_registers *r,
				     struct ca_stack *w, uintptr_t file_pc, uintptr_t *cfa)
{
	uintptr_t offset = (uintptr_t)(intptr_t)row->cfa_offset, value;

	switch (row->kind) {
	case CA_UNWIND_SP_BY_FP:
		*cfa = r->sp + offset;
		return true;
	case CA_UNWIND_SP8:
		*cfa = r->sp + 8 * offset;
		return true;
	case CA_UNWIND_REG:
	case CA_UNWIND_REG_BY_FP:
		/* a caller's frame that lies by what it cannot expect to keep knows whom it calls; what others have to
		 * keep, they may have stored */
		if (row->reg == BX ? !r->has_bx : !r->all || (r->called && !(SCRATCH >> row->reg & 1)))
			return false;
		*cfa = (row->reg == BX ? r->bx : r->all[row->reg]) + offset;
		return true;
	case CA_UNWIND_DEREF:
		if (!load(w, r->fp + offset, &value))
			return false;
		*cfa = value;
		return true;
	case CA_UNWIND_SP_DEREF:
		if (!load(w, r->sp + offset, &value))
			return false;
		*cfa = value + 8 * row->reg;
		return true;
	case CA_UNWIND_PLT:
		*cfa = r->sp + offset + ((file_pc & 15) >= row->reg ? 8 : 0);
		return true;
	default:
		return false;
	}
}

static inline bool frame_address(const struct ca_unwind_row *row, const struct ca_registers *r,
				 struct ca_stack *w, uintptr_t file_pc, uintptr_t *cfa)
{
	if (row->kind != CA_UNWIND_SP && row->kind != CA_UNWIND_FP)
		return rare_frame_address(row, r, w, file_pc, cfa);
	*cfa = (row->kind == CA_UNWIND_SP ? r->sp : r->fp) + (uintptr_t)(intptr_t)row->cfa_offset;
	return true;
}

/* A return address that is a function's first instruction, where no call can have come from: what makecontext and
 * others put below the outermost frame. */
static APART bool is_put_there(uintptr_t pc, uintptr_t file_pc)
{
	const struct ca_loaded *loaded = ca_modules_find(pc);
	const struct ca_index *index =
		loaded ? atomic_load_explicit(&loaded->index, memory_order_acquire) : NULL;
	const struct ca_unwind_row *next = index ? ca_index_find_row(index, file_pc + 1) : NULL;

	return next && next->kind != CA_UNWIND_NONE && ca_index_base(index) + next->address == file_pc + 1;
}

/* One frame outward. False: cannot, *ended tells whether it is the outermost frame. */
static bool step(const struct ca_unwind_row *row, uintptr_t file_pc, bool is_call, struct ca_registers *r,
		 struct ca_stack *w, bool *signal_frame, uintptr_t *cfa_out, bool *ended)
{
	uintptr_t cfa, saved, ra, fp = r->fp, bx = r->bx;
	bool has_bx = r->has_bx, by_fp;

	*signal_frame = false;
	*ended = false;
	if (!row || row->kind == CA_UNWIND_NONE) {
		*ended = row && (row->reg == 1 || (is_call && is_put_there(r->pc, file_pc)));
		return false;
	}
	if (row->kind == CA_UNWIND_SIGNAL) {
		*signal_frame = true;
		*cfa_out = r->sp;
		return step_signal(r, w);
	}
	if (row->ra_offset == 0) {
		*ended = true;
		return false;
	}
	if (!frame_address(row, r, w, file_pc, &cfa) || cfa <= r->sp - 128)
		return false;
	by_fp = ca_index_saves_by_fp(row->kind);
	/* from low to high, as they mostly lie: so they are copied at once */
	saved = by_fp ? r->fp : cfa;
	if (row->bx_words)
		has_bx = row->bx_words != CA_UNWIND_LOST &&
			 load(w, saved + 8 * (uintptr_t)(intptr_t)row->bx_words, &bx);
	if ((by_fp || row->fp_offset) && !load(w, saved + (uintptr_t)(intptr_t)row->fp_offset, &fp))
		return false;
	if (!load(w, cfa + (uintptr_t)(intptr_t)row->ra_offset, &ra))
		return false;
	r->bx = bx;
	r->has_bx = has_bx;
	r->pc = ra;
	r->sp = cfa;
	r->fp = fp;
	r->called = true;
	*cfa_out = cfa;
	return true;
}

static bool is_code(uintptr_t pc)
{
	return ca_modules_find(pc) || ca_modules_has_range(pc);
}

/* Its binary's rows are known: it has none. */
static APART bool is_indexed(uintptr_t pc)
{
	struct ca_loaded *loaded = ca_modules_find(pc);

	return loaded && atomic_load_explicit(&loaded->index, memory_order_acquire);
}

/* Code that was made at run time has no rows, but mostly frame pointers, and so has what a compiler of such code has put
 * in front of a binary's own (V8's). Of the innermost frame the instruction tells whether its own is set up. */
static APART bool step_without_row(struct ca_registers *r, struct ca_stack *w, bool innermost)
{
	static const unsigned char push_fp = 0x55, set_fp[] = { 0x48, 0x89, 0xe5 },
				   set_fp_too[] = { 0x48, 0x8b, 0xec };
	static const unsigned char ret = 0xc3;
	uintptr_t cfa = r->fp + 16, fp = r->fp, ra;
	unsigned char code[4] = { 0 };
	/* the next bytes may be another page, and not there */
	long n = innermost ? ca_sys_peek(r->pc, code, sizeof code) : 0;

	if (n >= 1 && (code[0] == push_fp || code[0] == ret)) {
		cfa = r->sp + 8;
	} else if (n >= 3 &&
		   (!memcmp(code, set_fp, sizeof set_fp) || !memcmp(code, set_fp_too, sizeof set_fp_too))) {
		cfa = r->sp + 16;
	} else if (r->fp < r->sp || !load(w, r->fp, &fp)) {
		return false;
	}
	if (cfa <= r->sp || !load(w, cfa - 8, &ra) || (ra && !is_code(ra - 1)))
		return false;
	r->pc = ra;
	r->sp = cfa;
	r->fp = fp;
	r->has_bx = false;
	r->all = NULL;
	return true;
}

/* Bytes of an instruction by its second one, ModRM, and the next. */
static unsigned length_by(unsigned char modrm, unsigned char sib)
{
	unsigned mod = modrm >> 6, rm = modrm & 7, base = rm == 4 ? sib & 7 : rm, n = 2;

	if (mod == 3)
		return n;
	n += rm == 4;
	if (mod == 1)
		return n + 1;
	return mod == 2 || base == 5 ? n + 4 : n;
}

/* Behind a call by a pointer, FF /2: no binary knows where code will be made. */
static bool is_behind_call(uintptr_t pc)
{
	unsigned char code[8] = { 0 };

	if (ca_sys_peek(pc - 7, code, 7) != 7)
		return false;
	for (unsigned i = 0; i < 6; i++)
		if (code[i] == 0xff && (code[i + 1] & 0x38) == 0x10 &&
		    i + length_by(code[i + 1], code[i + 2]) == 7)
			return true;
	return false;
}

/* Who called code that has neither rows nor frame pointers, as what PCRE makes of a pattern: the first word of its frame
 * that is a return address, and from where the walk comes to an end. Left behind by earlier calls there may be others;
 * most of these were made without a pointer. */
static APART bool next_caller(struct caller *c, struct ca_stack *w, struct ca_registers *r)
{
	uintptr_t ra, fp;

	while (c->words && c->tries) {
		c->words--;
		c->at += sizeof ra;
		if (!load(w, c->at - sizeof ra, &ra))
			return false;
		if (!ca_modules_find(ra - 1) || !is_behind_call(ra))
			continue;
		c->tries--;
		/* what code saves first is mostly the frame pointer */
		if (!load(w, c->at - 2 * sizeof ra, &fp) || fp < c->at || fp - c->at > FAR)
			fp = c->fp;
		*r = (struct ca_registers){ .pc = ra, .sp = c->at, .fp = fp, .called = true };
		w->depth = c->depth;
		w->cfa[w->depth - 1] = c->at;
		return true;
	}
	w->depth = c->depth;
	return false;
}

/* The place of an address, and its row, NULL: none. False: in no module. */
static APART bool search_row(struct ca_seen *seen, uintptr_t pc, ca_place *place,
			     const struct ca_unwind_row **row)
{
	const struct ca_loaded *loaded = ca_modules_find(pc);
	const struct ca_index *index;

	if (!loaded)
		return false;
	index = atomic_load_explicit(&loaded->index, memory_order_acquire);
	*place = CA_PLACE(loaded->module, pc - loaded->bias);
	*row = index ? ca_index_find_row(index, pc - loaded->bias) : NULL;
	if (*row)
		*seen = (struct ca_seen){ pc, *place, **row };
	return true;
}

/* The same. The thread's last frames are most of its next ones: those are found at once, where searching touches a
 * dozen cache lines. */
static bool find_row(struct ca_stack *w, uintptr_t pc, ca_place *place, const struct ca_unwind_row **row)
{
	unsigned slot = (pc ^ pc >> 8) % CA_UNWIND_SEEN;
	struct ca_seen *seen = &w->seen[slot];

	w->used |= (uint64_t)1 << slot * sizeof *seen / LINE;
	if (seen->pc != pc)
		return search_row(seen, pc, place, row);
	*place = seen->place;
	*row = &seen->row;
	return true;
}

/* Each frame's place and row are known by the one before only: what is not in a cache is waited for one after the
 * other, unless all of it is asked for at once. It is what the thread's last walk has used. */
static void fetch_ahead(const struct ca_stack *w)
{
	for (unsigned at = 0; at < w->depth; at += LINE / sizeof *w->place) {
		__builtin_prefetch(&w->place[at], 1);
		__builtin_prefetch(&w->cfa[at], 1);
	}
	for (uint64_t used = w->used; used; used &= used - 1)
		__builtin_prefetch((const char *)w->seen + LINE * (size_t)__builtin_ctzll(used));
	for (uintptr_t at = w->stack_pointer; at < w->direct_high && at < w->stack_pointer + AHEAD;
	     at += LINE)
		__builtin_prefetch((const void *)at);
}

/* From r outward. Where nobody knows the next frame it ends, and says where to look. */
static void walk(struct ca_registers r, bool is_call, struct ca_stack *out, struct caller *caller)
{
	uintptr_t cfa = 0;

	while (out->depth < CA_UNWIND_DEPTH && r.pc) {
		uintptr_t original, previous_sp = r.sp;
		const struct ca_unwind_row *row;
		bool signal_frame, ended, found;
		ca_place place;
		intptr_t shift;

		if (ca_sampler_host.translate && ca_sampler_host.translate(r.pc, &original, &shift)) {
			r.pc = original;
			r.sp += (uintptr_t)shift;
			previous_sp = r.sp;
		}
		r.pc -= is_call;
		found = find_row(out, r.pc, &place, &row);
		if (!found) {
			if (!ca_modules_has_range(r.pc))
				break;
			place = CA_PLACE(CA_MODULE_MADE, r.pc);
			row = NULL;
		}
		out->place[out->depth] = place;
		out->cfa[out->depth++] = r.sp;
		if (!row) {
			if (found && !is_indexed(r.pc))
				break;
			if (!step_without_row(&r, out, !is_call)) {
				if (!found)
					*caller = (struct caller){ out->depth, LOOKED_AT, TRIED, r.sp, r.fp };
				return;
			}
			out->cfa[out->depth - 1] = r.sp;
			is_call = true;
			continue;
		}
		if (!step(row, CA_PLACE_OFFSET(place), is_call, &r, out, &signal_frame, &cfa, &ended)) {
			out->complete = ended;
			break;
		}
		out->cfa[out->depth - 1] = cfa;
		is_call = !signal_frame;
		if (r.sp <= previous_sp && !signal_frame)
			break;
	}
	/* words of 0 are many: no proof that the caller which was looked for is one */
	if (!r.pc && !caller->depth)
		out->complete = true;
}

CA_SIGSAFE void ca_unwind(const struct ca_registers *start, bool is_call, struct ca_stack *out)
{
	struct ca_registers r = *start;
	int saved = errno; /* mapping an index may change it */
	struct caller caller = { 0 };

	if (r.all) {
		r.bx = r.all[BX];
		r.has_bx = true;
	}
	r.called = false;
	out->copy_low = out->copy_high = 0;
	out->stack_pointer = start->sp & ~(uintptr_t)7;
	out->direct_high = 0;
	if (out->stack_pointer >= out->own_low && out->stack_pointer < out->own_high)
		out->direct_high = out->own_high & ~(uintptr_t)7;
	fetch_ahead(out);
	if (out->scans != ca_modules_scans()) {
		out->scans = ca_modules_scans();
		memset(out->seen, 0, sizeof out->seen);
	}
	out->used = 0;
	out->depth = 0;
	out->complete = false;
	walk(r, is_call, out, &caller);
	if (!out->complete && caller.depth) {
		if (out->in_vain < IN_VAIN || out->in_vain % IN_VAIN == 0)
			while (!out->complete && next_caller(&caller, out, &r))
				walk(r, true, out, &caller);
		out->in_vain = out->complete ? 0 : out->in_vain + 1;
	}
	errno = saved;
}

/* SPDX-License-Identifier: MIT */
/* Sites of a function: where it is entered, and each instruction by which it can be left.
 *
 * What leaves is decided from the instruction, the stack depth that the call frame information
 * gives there (a tail call leaves with nothing but the return address on the stack), the
 * function symbols, and the jump tables that can be read. Whatever stays in doubt makes the
 * function unsupported: it is sampled then. */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/sites.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_RANGES = 64, MOST_ENTRIES = 1024 };

enum leaving { STAYS, LEAVES, UNKNOWN };

struct part {
	struct ca_range range;
	struct ca_insn *insn;
	size_t n;
	uint8_t *leaves; /* enum leaving of each instruction */
	bool *covered;   /* an exit that has its site */
	bool cold;       /* split off: rarely run, and not entered by calls */
};
struct function {
	struct ca_text *text;
	struct part part[MOST_RANGES];
	size_t parts;
	bool has_table;  /* of pointers into the function */
	bool tight;      /* other sites may stand near: calls are left to them */
	const char *why; /* what is unsupported, and where */
	uint64_t where;
};

static bool refuse(struct function *f, const char *why, uint64_t where)
{
	f->why = why;
	f->where = where;
	return false;
}

static bool inside(const struct function *f, uint64_t address)
{
	for (size_t i = 0; i < f->parts; i++)
		if (address >= f->part[i].range.low && address < f->part[i].range.high)
			return true;
	return false;
}

/* ---- decoding ---------------------------------------------------------------------------- */
static bool add_part(struct function *f, const struct ca_range *range, bool cold)
{
	struct part *p = &f->part[f->parts];

	if (f->parts == MOST_RANGES)
		return refuse(f, "it has too many parts", range->low);
	*p = (struct part){ .range = *range, .cold = cold };
	p->insn = ca_text_decode_all(f->text, range->low, range->high, &p->n);
	f->parts++;
	if (!p->insn)
		return refuse(f, "its code cannot be decoded", range->low);
	p->leaves = calloc(p->n, sizeof *p->leaves);
	p->covered = calloc(p->n, sizeof *p->covered);
	return (p->leaves && p->covered) || refuse(f, "out of memory", range->low);
}

/* gcc's .cold parts, when the caller does not know of them. */
static bool add_cold_parts(struct function *f)
{
	for (size_t p = 0; p < f->parts; p++) /* grows meanwhile */
		for (size_t i = 0; i < f->part[p].n; i++) {
			const struct ca_insn *in = &f->part[p].insn[i];
			struct ca_range range = { 0 };

			if (ca_insn_is_jump(in) && !inside(f, in->target) &&
			    ca_text_is_cold(f->text, in->target, &range.low, &range.high) &&
			    !add_part(f, &range, true))
				return false;
		}
	return true;
}

/* A part whose first instruction is jumped to from another one is not called, unless a function
 * symbol says so: no entry. */
static bool is_tail_part(const struct function *f, size_t part)
{
	uint64_t low = f->part[part].range.low;

	if (f->part[part].cold || ca_text_is_cold(f->text, low, &(uint64_t){ 0 }, &(uint64_t){ 0 }))
		return true;
	if (ca_text_is_entry(f->text, low))
		return false;
	for (size_t p = 0; p < f->parts; p++)
		for (size_t i = 0; p != part && i < f->part[p].n; i++)
			if (ca_insn_is_jump(&f->part[p].insn[i]) && f->part[p].insn[i].target == low)
				return true;
	return false;
}

/* ---- targets ------------------------------------------------------------------------------ */
static bool mark(struct function *f, uint64_t target)
{
	for (size_t p = 0; p < f->parts; p++)
		if (target >= f->part[p].range.low && target < f->part[p].range.high)
			return ca_insn_mark(f->part[p].insn, f->part[p].n, target);
	return false;
}

static bool starts_insn(const struct function *f, uint64_t target)
{
	for (size_t p = 0; p < f->parts; p++) {
		const struct part *part = &f->part[p];

		if (target >= part->range.low && target < part->range.high)
			return ca_insn_find(part->insn, part->n, target) >= 0;
	}
	return false;
}

static bool entry_at(const struct function *f, uint64_t table, unsigned i, bool wide, uint64_t *target)
{
	int32_t distance;

	if (wide)
		return ca_text_pointer(f->text, table + 8 * i, target);
	if (!ca_text_read(f->text, table + 4 * i, &distance, 4))
		return false;
	*target = table + (uint64_t)(int64_t)distance;
	return true;
}

/* Distances or pointers into the function. Taking other data for a table only makes sites
 * shorter. */
static void mark_table(struct function *f, uint64_t table, bool wide)
{
	uint64_t target;

	for (unsigned i = 0;
	     i < MOST_ENTRIES && entry_at(f, table, i, wide, &target) && starts_insn(f, target); i++) {
		mark(f, target);
		f->has_table = true;
	}
}

static void mark_targets(struct function *f)
{
	for (size_t p = 0; p < f->parts; p++)
		for (size_t i = 0; i < f->part[p].n; i++) {
			const struct ca_insn *in = &f->part[p].insn[i];

			if (ca_insn_is_jump(in))
				mark(f, in->target);
			if (!in->table || inside(f, in->table))
				continue;
			mark_table(f, in->table, false);
			mark_table(f, in->table, true);
		}
	/* the address of a label, as in "lea label(%rip)" */
	for (size_t p = 0; p < f->parts; p++)
		for (size_t i = 0; i < f->part[p].n; i++)
			if (f->part[p].insn[i].table && inside(f, f->part[p].insn[i].table) &&
			    f->part[p].insn[i].table != f->part[p].range.low)
				f->has_table |= mark(f, f->part[p].insn[i].table);
}

/* ---- what leaves --------------------------------------------------------------------------- */
static bool pops(const struct ca_insn *i)
{
	uint8_t byte = i->bytes[i->bytes[0] == 0x41];

	return (byte >= 0x58 && byte <= 0x5f) || byte == 0xc9; /* pop, leave */
}

/* movslq (base,index,4): the distances of a jump table, added to its address next. */
static bool loads_distance(const struct ca_insn *i)
{
	return i->bytes[0] >= 0x48 && i->bytes[0] <= 0x4f && i->bytes[1] == 0x63;
}

/* A jump through a register or memory: the compilers' jump tables stay inside. */
static enum leaving indirect_leaves(const struct function *f, const struct part *p, size_t at)
{
	const struct ca_insn *i = &p->insn[at];
	uint64_t target;
	int depth;

	if (i->bytes[0] == 0x3e) /* notrack: only jump tables have it */
		return STAYS;
	if (i->table && ca_text_pointer(f->text, i->table, &target)) {
		if (starts_insn(f, target))
			return STAYS;
		return ca_text_is_entry(f->text, target) &&
				       ca_text_depth(f->text, i->address) == CA_TEXT_RETURN_ONLY
			       ? LEAVES
			       : UNKNOWN;
	}
	for (size_t k = 1; k <= 6 && k <= at; k++)
		if (loads_distance(&p->insn[at - k]))
			return f->has_table ? STAYS : UNKNOWN;
	depth = ca_text_depth(f->text, i->address);
	if (i->disp_at &&
	    (depth == CA_TEXT_RETURN_ONLY || depth < 0)) /* a pointer in a table of the linker's */
		return LEAVES;
	if (at && pops(&p->insn[at - 1]))
		return LEAVES;
	if (depth >= 0 && depth != CA_TEXT_RETURN_ONLY) /* 0: below a frame pointer */
		return f->has_table ? STAYS : UNKNOWN;
	return depth == CA_TEXT_RETURN_ONLY && !f->has_table ? LEAVES : UNKNOWN;
}

static enum leaving direct_leaves(const struct function *f, const struct ca_insn *i)
{
	int depth;

	if (inside(f, i->target))
		return STAYS;
	depth = ca_text_depth(f->text, i->address);
	if (depth == CA_TEXT_RETURN_ONLY)
		return LEAVES;
	return depth < 0 && ca_text_is_entry(f->text, i->target) ? LEAVES : UNKNOWN;
}

/* A return that is a jump: push target; ret. */
static bool is_jump_by_return(const struct part *p, size_t at)
{
	uint8_t byte = at ? p->insn[at - 1].bytes[p->insn[at - 1].bytes[0] == 0x41] : 0;

	return (byte >= 0x50 && byte <= 0x57) || byte == 0x68;
}

static enum leaving leaves(const struct function *f, const struct part *p, size_t at)
{
	switch (p->insn[at].kind) {
	case CA_INSN_RETURN:
		return is_jump_by_return(p, at) ? UNKNOWN : LEAVES;
	case CA_INSN_JUMP:
	case CA_INSN_JUMP_IF:
		return direct_leaves(f, &p->insn[at]);
	case CA_INSN_JUMP_INDIRECT:
		return indirect_leaves(f, p, at);
	default:
		return STAYS;
	}
}

/* Does control run past the part's last instruction? Behind a call it need not come back. */
static bool falls_out(const struct part *p)
{
	size_t last = p->n;

	while (last && p->insn[last - 1].is_pad)
		last--;
	return last && (p->insn[last - 1].kind == CA_INSN_PLAIN || p->insn[last - 1].kind == CA_INSN_JUMP_IF);
}

static bool check(struct function *f)
{
	for (size_t p = 0; p < f->parts; p++) {
		const struct part *part = &f->part[p];

		if (falls_out(part))
			return refuse(f, "control may run past its end", part->insn[part->n - 1].address);
		for (size_t i = 0; i < part->n; i++) {
			if (part->insn[i].disp_at && ca_text_is_rseq(f->text, part->insn[i].memory))
				return refuse(f, "it is a restartable sequence", part->insn[i].address);
			part->leaves[i] = (uint8_t)leaves(f, part, i);
			if (part->leaves[i] == UNKNOWN)
				return refuse(f, "it is not known where it jumps to", part->insn[i].address);
		}
	}
	return true;
}

/* ---- sites --------------------------------------------------------------------------------- */
/* Append one more instruction, with an exit hook where it leaves. Nothing changes on failure. */
static bool append(struct part *p, struct ca_site *site, size_t at)
{
	bool exit = p->leaves[at] == LEAVES;
	struct ca_site before = *site;

	if (exit ? ca_code_copy_leaving(site, &p->insn[at]) : ca_code_copy(site, &p->insn[at])) {
		p->covered[at] |= exit;
		return true;
	}
	*site = before;
	return false;
}

/* Behind code which does not go on. */
static void append_pads(struct function *f, struct part *p, struct ca_site *site, size_t at)
{
	for (; site->length < CA_JUMP_LENGTH; at++)
		if ((at >= p->n && inside(f, site->address + site->length)) ||
		    !ca_sites_append_pad(site, f->text, at < p->n ? &p->insn[at] : NULL))
			return;
}

static bool goes_on(const struct ca_insn *i)
{
	return i->kind == CA_INSN_PLAIN || i->kind == CA_INSN_JUMP_IF;
}

/* Append from `at` on until a jump fits, then the way back. `first` is in the site by all means. */
static bool forward(struct function *f, struct part *p, struct ca_sites *out, struct ca_site *site, size_t at)
{
	bool on = true, first = !site->length;

	for (; at < p->n && on && site->length < CA_JUMP_LENGTH; at++, first = false) {
		const struct ca_insn *in = &p->insn[at];
		bool call = in->kind == CA_INSN_CALL || in->kind == CA_INSN_CALL_INDIRECT;

		if (!first && (in->is_target || !(f->tight ? ca_insn_is_movable(in) : ca_insn_may_end(in)) ||
			       ca_sites_overlap(out, in->address, in->address + in->size)))
			break;
		if (!append(p, site, at))
			break;
		on = goes_on(in);
		if (call)
			return true; /* comes back by its own return address */
	}
	if (!on && site->length < CA_JUMP_LENGTH) {
		unsigned length = site->length;

		append_pads(f, p, site, at);
		if (site->length == length)
			return true;
	} else if (!on) {
		return true;
	}
	return site->length && ca_code_jump_back(site);
}

static bool is_endbr(const struct ca_insn *i)
{
	static const uint8_t endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return i->size == 4 && !memcmp(i->bytes, endbr, 4);
}

static bool plan_enter(struct function *f, struct part *p, struct ca_sites *out)
{
	size_t at = p->n > 1 && is_endbr(&p->insn[0]);
	struct ca_site *site = &out->site[out->n];

	while (at < p->n && ca_insn_is_point(&p->insn[at]))
		at++;
	if (out->n == out->max)
		return refuse(f, "it has too many exits", p->range.low);
	if (at >= p->n || p->insn[at].kind == CA_INSN_END)
		return refuse(f, "its entry cannot be patched", p->range.low);
	ca_code_begin(site, out->module, CA_SITE_ENTER, p->insn[at].address);
	if (!ca_code_hook(site, CA_SITE_ENTER) || !forward(f, p, out, site, at) ||
	    ca_sites_overlap(out, site->address, site->address + site->length))
		return refuse(f, "its entry cannot be patched", p->range.low);
	ca_sites_finish(out, false);
	return true;
}

/* How far back a jump needs the instructions before insn[at], which leaves: index of the first. */
static size_t reach_back(const struct part *p, const struct ca_sites *out, size_t at)
{
	const struct ca_insn *insn = p->insn;
	unsigned bytes = insn[at].size;
	size_t first = at;

	while (bytes < CA_JUMP_LENGTH && first > 0 && !insn[first].is_target &&
	       insn[first - 1].kind == CA_INSN_PLAIN && ca_insn_is_movable(&insn[first - 1]) &&
	       !ca_sites_overlap(out, insn[first - 1].address, insn[first].address))
		bytes += insn[--first].size;
	return first;
}

static bool plan_exit(struct function *f, struct part *p, struct ca_sites *out, size_t at)
{
	struct ca_site *site = &out->site[out->n];
	size_t first = reach_back(p, out, at);
	const struct ca_insn *in = &p->insn[at];

	if (out->n == out->max)
		return refuse(f, "it has too many exits", in->address);
	if (ca_sites_overlap(out, p->insn[first].address, in->address + in->size))
		return refuse(f, "one of its exits cannot be patched", in->address);
	ca_code_begin(site, out->module, CA_SITE_EXIT, p->insn[first].address);
	for (size_t i = first; i < at; i++)
		if (!ca_code_copy(site, &p->insn[i]))
			return refuse(f, "one of its exits cannot be patched", in->address);
	if (!append(p, site, at))
		return refuse(f, "one of its exits cannot be patched", in->address);
	if (goes_on(in) ? !forward(f, p, out, site, at + 1) : site->length < CA_JUMP_LENGTH) {
		unsigned length = site->length;

		if (goes_on(in))
			return refuse(f, "one of its exits cannot be patched", in->address);
		append_pads(f, p, site, at + 1);
		if (site->length > length && !ca_code_jump_back(site))
			return refuse(f, "one of its exits cannot be patched", in->address);
	}
	ca_sites_finish(out, p->cold);
	return true;
}

static bool plan_parts(struct function *f, struct ca_sites *out)
{
	size_t from = out->n;

	for (size_t i = 0; i < f->parts; i++) {
		f->part[i].cold |= is_tail_part(f, i);
		if (!f->part[i].cold && !plan_enter(f, &f->part[i], out))
			return false;
	}
	if (out->n == from)
		return refuse(f, "it is a part of another function", f->part[0].range.low);
	for (size_t i = 0; i < f->parts; i++)
		for (size_t k = 0; k < f->part[i].n; k++)
			if (f->part[i].leaves[k] == LEAVES && !f->part[i].covered[k] &&
			    !plan_exit(f, &f->part[i], out, k))
				return false;
	return true;
}

static enum ca_status plan(struct ca_text *text, uint32_t module, const struct ca_range *range, size_t ranges,
			   bool tight, struct ca_site *out, size_t max, size_t *count, struct ca_err *err)
{
	struct ca_sites o = { .site = out, .max = max, .module = module };
	struct function *f = calloc(1, sizeof *f);
	enum ca_status status = CA_OK;
	bool ok = true;

	if (!f)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	f->text = text;
	f->tight = tight;
	for (size_t r = 0; r < ranges && ok; r++)
		if (!inside(f, range[r].low)) /* aliases come with the same range */
			ok = add_part(f, &range[r], false);
	ok = ok && add_cold_parts(f);
	if (ok) {
		mark_targets(f);
		ok = check(f) && plan_parts(f, &o);
	}
	if (ok)
		*count = o.n;
	else
		status = ca_err_set(err, CA_ERR_UNSUPPORTED, "%s (at %#lx)", f->why, (unsigned long)f->where);
	for (size_t p = 0; p < f->parts; p++) {
		free(f->part[p].insn);
		free(f->part[p].leaves);
		free(f->part[p].covered);
	}
	free(f);
	return status;
}

enum ca_status ca_plan_function(struct ca_text *text, uint32_t module, const struct ca_range *range,
				size_t ranges, struct ca_site *out, size_t max, size_t *count,
				struct ca_err *err)
{
	return plan(text, module, range, ranges, false, out, max, count, err);
}

enum ca_status ca_plan_function_tight(struct ca_text *text, uint32_t module, const struct ca_range *range,
				      size_t ranges, struct ca_site *out, size_t max, size_t *count,
				      struct ca_err *err)
{
	return plan(text, module, range, ranges, true, out, max, count, err);
}

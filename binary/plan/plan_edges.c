/* SPDX-License-Identifier: MIT */
/* Sites of code that is neither a function nor a call: inlined copies, loops, lines that do work of their
 * own. Its instructions are known; so are the places at which control comes into them from other code of
 * the same function, and the places outside that it comes to. The first enter S, the others leave it,
 * from wherever they are reached: whoever enters where he is inside already, or leaves where he is not
 * inside, changes nothing.
 *
 * Functions in which it is not known where control may go are refused; the code is sampled then. */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/sites.h"
#include "binary/plan/text.h"
#include <stdlib.h>

enum { WORD = 8, MOST_WORDS = 255 };

struct edges {
	struct ca_text *text;
	struct ca_sites *out;
	const struct ca_range *range;
	size_t ranges;
	struct ca_insn *insn; /* the whole function */
	size_t n;
	uint64_t low, high; /* of it */
	bool *inside;
	bool *edge;      /* control comes here from the other side */
	bool *loops;     /* ... and from behind, on the same side */
	size_t first;    /* of its sites */
	bool by_another; /* the frame is counted from neither the stack pointer nor a frame pointer */
	const char *why;
};

static bool refuse(struct edges *e, const char *why)
{
	e->why = why;
	return false;
}

static bool in_ranges(const struct edges *e, uint64_t address)
{
	for (size_t i = 0; i < e->ranges; i++)
		if (address >= e->range[i].low && address < e->range[i].high)
			return true;
	return false;
}

static bool leaves_function(const struct edges *e, const struct ca_insn *i)
{
	return i->kind == CA_INSN_RETURN ||
	       (ca_insn_is_jump(i) && (i->target < e->low || i->target >= e->high));
}

static bool mark_jump(struct edges *e, size_t from)
{
	long to = ca_insn_find(e->insn, e->n, e->insn[from].target);

	if (to < 0)
		return refuse(e, "it jumps into the middle of an instruction");
	if (e->inside[from] != e->inside[to])
		e->edge[to] = true;
	else if ((size_t)to <= from)
		e->loops[to] = true;
	return true;
}

static bool mark(struct edges *e)
{
	uint64_t low, high;

	e->edge[0] = e->inside[0];
	for (size_t i = 0; i < e->n; i++) {
		const struct ca_insn *in = &e->insn[i];

		if (in->kind == CA_INSN_JUMP_INDIRECT || in->kind == CA_INSN_STRANGE)
			return refuse(e, "its function jumps through a table");
		if (leaves_function(e, in)) {
			/* what is cold is seldom left for, and a tick finds it out */
			if (in->kind == CA_INSN_JUMP_IF && e->inside[i] &&
			    !ca_text_is_cold(e->text, in->target, &low, &high))
				return refuse(e, "it may leave its function by a conditional jump");
		} else if (ca_insn_is_jump(in) && !mark_jump(e, i)) {
			return false;
		}
		if (ca_insn_falls_through(in) && i + 1 < e->n && e->inside[i] != e->inside[i + 1])
			e->edge[i + 1] = true;
	}
	return true;
}

struct name {
	bool by_fp, by_another;
	uint8_t words;
};

/* Words from the stack pointer before the instruction, or from the frame pointer, up to the return address: all that
 * lies between two edges may have pushed something. Else it is named by the stack pointer as it is. */
static bool find_name(const struct edges *e, uint64_t address, struct name *name)
{
	int depth = ca_text_depth(e->text, address);

	name->by_fp = !depth;
	if (name->by_fp)
		depth = ca_text_depth_from_fp(e->text, address);
	name->by_another = !depth;
	name->by_fp &= !name->by_another;
	name->words = (uint8_t)(depth ? depth / WORD - 1 : 0);
	return depth >= 0 && depth % WORD == 0 && depth / WORD <= MOST_WORDS;
}

static bool set_name(struct edges *e, struct ca_site *site, uint64_t address)
{
	struct name name;

	if (!find_name(e, address, &name))
		return refuse(e, "its stack frame is not known");
	if (e->out->n > e->first && e->by_another != name.by_another)
		return refuse(e, "it begins or ends where the stack frame is made");
	e->by_another = name.by_another;
	site->words = name.words;
	site->flags |= name.by_fp ? CA_SITE_BY_FP : 0;
	return true;
}

static bool has_same_name(const struct edges *e, const struct ca_site *site, uint64_t address)
{
	struct name name;

	return find_name(e, address, &name) && name.words == site->words &&
	       name.by_another == e->by_another && name.by_fp == !!(site->flags & CA_SITE_BY_FP);
}

static bool leaves_by_itself(const struct edges *e, size_t i)
{
	return e->inside[i] && leaves_function(e, &e->insn[i]) && e->insn[i].kind != CA_INSN_JUMP_IF;
}

static bool begin(struct edges *e, enum ca_site_kind kind, size_t first)
{
	if (e->out->n == e->out->max)
		return refuse(e, "it has too many parts");
	ca_code_begin(&e->out->site[e->out->n], e->out->module, kind, e->insn[first].address);
	/* others may pass it far more often than those that enter or leave */
	e->out->site[e->out->n].flags |= CA_SITE_NO_TRAP;
	return true;
}

static bool finish(struct edges *e)
{
	struct ca_site *site = &e->out->site[e->out->n];

	if (ca_sites_overlap(e->out, site->address, site->address + site->length))
		return refuse(e, "its parts are too near each other");
	ca_sites_finish(e->out, false);
	return true;
}

/* Can insn[i], to which others only fall through, share the site with its hook? */
static bool join(struct edges *e, struct ca_site *site, size_t i)
{
	bool enters = e->inside[i];

	if (!e->edge[i])
		return true;
	if ((enters && e->loops[i]) || !has_same_name(e, site, e->insn[i].address) ||
	    !ca_code_hook(site, enters ? CA_SITE_ENTER : CA_SITE_EXIT))
		return false;
	e->edge[i] = false; /* done */
	return true;
}

/* Copies from insn[at] on until a jump fits, then the way back. */
static bool copy(struct edges *e, struct ca_site *site, size_t at)
{
	bool on = true;

	for (size_t i = at; i < e->n && on && site->length < CA_JUMP_LENGTH; i++) {
		const struct ca_insn *in = &e->insn[i];

		if (i > at &&
		    (in->is_target || !ca_insn_is_movable(in) || leaves_by_itself(e, i) ||
		     ca_sites_overlap(e->out, in->address, in->address + in->size) || !join(e, site, i)))
			break;
		if (!ca_code_copy(site, in))
			return false;
		on = in->kind == CA_INSN_PLAIN || in->kind == CA_INSN_JUMP_IF;
	}
	return site->length && (!on || ca_code_jump_back(site));
}

/* The hook comes before insn[at]. */
static bool plan_at(struct edges *e, size_t at, enum ca_site_kind kind)
{
	struct ca_site *site = &e->out->site[e->out->n];

	while (at + 1 < e->n && ca_insn_is_point(&e->insn[at]) && !e->edge[at + 1])
		at++;
	if (!begin(e, kind, at) || !set_name(e, site, e->insn[at].address))
		return false;
	if (!ca_code_hook(site, kind) || !copy(e, site, at))
		return refuse(e, "one of its edges cannot be patched");
	return finish(e);
}

/* The hook comes at the end of what falls into insn[at], which is the head of a loop: there it would run
 * each time round. */
static bool plan_before(struct edges *e, size_t at)
{
	struct ca_site *site = &e->out->site[e->out->n];
	unsigned bytes = 0;
	size_t first = at;

	for (size_t i = 0; i < e->n; i++) /* nobody may jump past it */
		if (!e->inside[i] && ca_insn_is_jump(&e->insn[i]) && e->insn[i].target == e->insn[at].address)
			return refuse(e, "it is a loop that is entered from several places");
	while (bytes < CA_JUMP_LENGTH && first && !e->inside[first - 1] && !e->edge[first] == (first != at) &&
	       e->insn[first - 1].kind == CA_INSN_PLAIN && ca_insn_is_movable(&e->insn[first - 1]) &&
	       (first == at || !e->insn[first].is_target))
		bytes += e->insn[--first].size;
	if (bytes < CA_JUMP_LENGTH || e->edge[first])
		return refuse(e, "there is no room before its loop");
	if (!begin(e, CA_SITE_ENTER, first))
		return false;
	for (size_t i = first; i < at; i++)
		if (!ca_code_copy(site, &e->insn[i]))
			return refuse(e, "one of its edges cannot be patched");
	if (!set_name(e, site, e->insn[at].address))
		return false;
	if (!ca_code_hook(site, CA_SITE_ENTER) || !ca_code_jump_back(site))
		return refuse(e, "one of its edges cannot be patched");
	return finish(e);
}

static bool plan(struct edges *e)
{
	for (size_t i = 0; i < e->n; i++) {
		bool ok = true;

		if (leaves_by_itself(e, i))
			ok = plan_at(e, i, CA_SITE_EXIT);
		else if (e->edge[i] && e->inside[i] && e->loops[i] && i)
			ok = plan_before(e, i);
		else if (e->edge[i] && e->inside[i])
			ok = plan_at(e, i, CA_SITE_ENTER);
		else if (e->edge[i])
			ok = plan_at(e, i, CA_SITE_EXIT);
		if (!ok)
			return false;
	}
	return true;
}

static bool plan_function(struct edges *e, uint64_t address)
{
	bool *marks, ok;

	e->first = e->out->n;
	if (!ca_text_function(e->text, address, &e->low, &e->high))
		return refuse(e, "it is not known in which function it lies");
	e->insn = ca_text_decode_all(e->text, e->low, e->high, &e->n);
	marks = calloc(3 * e->n + 3, sizeof *marks);
	ok = (e->insn && e->n && marks) || refuse(e, "its function cannot be decoded");
	if (ok) {
		e->inside = marks;
		e->edge = marks + e->n + 1;
		e->loops = marks + 2 * e->n + 2;
		for (size_t i = 0; i < e->n; i++)
			e->inside[i] = in_ranges(e, e->insn[i].address);
		ok = mark(e) && plan(e);
	}
	free(marks);
	free(e->insn);
	return ok;
}

enum ca_status ca_plan_edges(struct ca_text *text, uint32_t module, const struct ca_range *range,
			     size_t ranges, struct ca_site *out, size_t max, size_t *count,
			     struct ca_err *err)
{
	struct ca_sites o = { .site = out, .max = max, .module = module };
	struct edges e = { .text = text, .out = &o, .range = range, .ranges = ranges };

	for (size_t r = 0; r < ranges; r++) {
		bool done = false;

		for (size_t k = 0; k < r; k++) {
			uint64_t low, high;

			done |= ca_text_function(text, range[k].low, &low, &high) && range[r].low >= low &&
				range[r].low < high;
		}
		if (!done && !plan_function(&e, range[r].low))
			return ca_err_set(err, CA_ERR_UNSUPPORTED, "%s", e.why);
	}
	*count = o.n;
	return CA_OK;
}

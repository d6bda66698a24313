/* SPDX-License-Identifier: MIT */
/* Sites of a line's calls. S is what the line's calls do, not the few instructions between:
 * each call enters, and the place that it returns to leaves again, or, where that has no room for
 * a jump, one a few instructions on. Where the two are too near for two jumps they become one site. */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/sites.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

enum { OWN_WORK = 20, NONE = -1, UNKNOWN = -2 };

/* The work on one function that the line has code in. */
struct walk {
	struct ca_sites *out;
	const struct ca_insn *insn; /* the whole function */
	size_t n;
	bool whole; /* else only a piece of it: no symbol says where it ends */
	const struct ca_range *range;
	size_t ranges;
	long back; /* where the call before returns to, without a site yet; NONE */
	unsigned own;
	bool loops;
};

static bool in_ranges(const struct ca_range *range, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (address >= range[i].low && address < range[i].high)
			return true;
	return false;
}

static bool is_call(const struct ca_insn *i)
{
	return i->kind == CA_INSN_CALL || i->kind == CA_INSN_CALL_INDIRECT;
}

static unsigned bytes_between(const struct walk *w, size_t from, size_t to)
{
	return (unsigned)(w->insn[to].address - w->insn[from].address);
}

/* May it run with the return address of the call behind it on the stack already? */
static bool fits_before_call(const struct ca_insn *i)
{
	return i->kind == CA_INSN_PLAIN && ca_insn_is_movable(i) && !i->uses_sp;
}

/* The instructions before a short call that a jump's worth of bytes takes. */
static size_t reach_back(const struct walk *w, size_t call)
{
	size_t first = call, lowest = w->back == NONE ? 0 : (size_t)w->back;
	unsigned bytes = w->insn[call].size;

	while (bytes < CA_JUMP_LENGTH && first > lowest && !w->insn[first].is_target &&
	       fits_before_call(&w->insn[first - 1]) &&
	       !ca_sites_overlap(w->out, w->insn[first - 1].address, w->insn[first].address))
		bytes += w->insn[--first].size;
	return first;
}

/* Can the exit of the call before and this call be one site? */
static bool can_join(const struct walk *w, size_t back, size_t call)
{
	for (size_t i = back; i < call; i++)
		if (!fits_before_call(&w->insn[i]) || (i > back && w->insn[i].is_target))
			return false;
	return back == call || !w->insn[call].is_target;
}

static bool plan_call(struct walk *w, size_t first, size_t call, bool joined)
{
	struct ca_site *site = &w->out->site[w->out->n];
	const struct ca_insn *insn = w->insn;

	if (w->out->n == w->out->max ||
	    ca_sites_overlap(w->out, insn[first].address, insn[call].address + insn[call].size))
		return false;
	ca_code_begin(site, w->out->module, CA_SITE_CALL, insn[first].address);
	site->flags = CA_SITE_BY_CALL;
	if (joined && !ca_code_hook(site, CA_SITE_EXIT))
		return false;
	for (size_t i = first; i < call; i++)
		if (!ca_code_copy(site, &insn[i]))
			return false;
	if (!ca_code_hook(site, CA_SITE_ENTER) || !ca_code_copy_called(site, &insn[call]))
		return false;
	ca_sites_finish(w->out, false);
	return true;
}

/* The exit stands there already: of another call, which comes to the same place. */
static bool leaves_at(const struct walk *w, uint64_t address)
{
	const struct ca_sites *o = w->out;

	for (size_t i = 0; i < o->n; i++)
		if (o->site[i].kind == CA_SITE_EXIT && o->site[i].address == address)
			return true;
	return false;
}

/* An exit before insn[at], which is no progress point; unfinished. */
static bool begin_exit(struct walk *w, size_t at, uint64_t limit)
{
	struct ca_site *site = &w->out->site[w->out->n];

	if (w->out->n == w->out->max || w->insn[at].kind == CA_INSN_STRANGE ||
	    w->insn[at].kind == CA_INSN_CALL_INDIRECT || ca_insn_is_point(&w->insn[at]))
		return false;
	ca_code_begin(site, w->out->module, CA_SITE_EXIT, w->insn[at].address);
	return ca_code_hook(site, CA_SITE_EXIT) && ca_code_copy_many(site, w->insn, w->n, at, limit) &&
	       !ca_sites_overlap(w->out, site->address, site->address + site->length);
}

static bool is_own_call(const struct walk *w, size_t i)
{
	return is_call(&w->insn[i]) && in_ranges(w->range, w->ranges, w->insn[i].address);
}

/* The next place that control comes to from insn[at], with the same stack pointer; NONE: there is more than one, or
 * it is not in the function. */
static long next_place(const struct walk *w, size_t at, uint64_t limit)
{
	const struct ca_insn *in = &w->insn[at];

	if (in->kind == CA_INSN_JUMP)
		return ca_insn_find(w->insn, w->n, in->target);
	if (in->kind != CA_INSN_PLAIN || in->uses_sp || at + 1 == w->n || w->insn[at + 1].address >= limit)
		return NONE;
	return (long)at + 1;
}

/* Behind a call: the thread is back. Where it returns to there may be no room for a jump: then it leaves a few
 * instructions later, where others come by as well, who leave nothing. */
static bool plan_back(struct walk *w, size_t at, uint64_t limit)
{
	enum { LATER = 4 };
	long place = (long)at;

	for (int i = 0; i <= LATER && place != NONE && !is_own_call(w, (size_t)place); i++) {
		if (leaves_at(w, w->insn[place].address))
			return true;
		if (begin_exit(w, (size_t)place, limit) && w->out->site[w->out->n].length >= CA_JUMP_LENGTH) {
			ca_sites_finish(w->out, false);
			return true;
		}
		if (w->insn[place].kind == CA_INSN_JUMP)
			limit = UINT64_MAX;
		place = next_place(w, (size_t)place, limit);
	}
	if (!begin_exit(w, at, limit))
		return false;
	ca_sites_finish(w->out, false);
	return true;
}

/* Index of the instruction that a call at insn[at] returns to, or NONE: it does not. A progress
 * point there still counts as inside. */
static long returns_to(const struct walk *w, size_t at)
{
	size_t next = at + 1, last = w->n;

	while (next < w->n && ca_insn_is_point(&w->insn[next]))
		next++;
	while (last > next && w->insn[last - 1].is_pad)
		last--;
	if (next >= last && !w->whole)
		return UNKNOWN;
	/* at the function's end, or before ud2: the callee does not return */
	return next < last && w->insn[next].kind != CA_INSN_END ? (long)next : NONE;
}

static bool step_call(struct walk *w, size_t call)
{
	size_t first = reach_back(w, call);
	bool joined = false;

	if (w->back != NONE) {
		size_t back = (size_t)w->back;

		joined = (back == call || bytes_between(w, back, first) < CA_JUMP_LENGTH) &&
			 can_join(w, back, call);
		if (joined)
			first = back;
		else if (back == call || !plan_back(w, back, w->insn[first].address))
			return false;
	}
	if (!plan_call(w, first, call, joined))
		return false;
	w->back = returns_to(w, call);
	return w->back != UNKNOWN;
}

static bool walk(struct walk *w)
{
	w->back = NONE;
	for (size_t i = 0; i < w->n; i++) {
		const struct ca_insn *in = &w->insn[i];

		if (!in_ranges(w->range, w->ranges, in->address))
			continue;
		if (ca_insn_is_jump(in) && in->target <= in->address &&
		    in_ranges(w->range, w->ranges, in->target))
			w->loops = true;
		if (!is_call(in))
			w->own++;
		else if (!step_call(w, i))
			return false;
	}
	return w->back == NONE || plan_back(w, (size_t)w->back, UINT64_MAX);
}

/* The function around a range, or, where there is no symbol, the range and a little more. */
static struct ca_insn *decode_around(struct ca_text *text, const struct ca_range *range, uint64_t *low,
				     uint64_t *high, struct walk *w)
{
	struct ca_insn *insn;

	w->whole = true;
	if (ca_text_function(text, range->low, low, high) && range->high <= *high)
		return ca_text_decode_all(text, *low, *high, &w->n);
	w->whole = false;
	*low = range->low;
	*high = range->high + CA_SITE_BYTES;
	insn = ca_text_decode_all(text, *low, *high, &w->n);
	if (!insn) { /* the text ends there, or data follow */
		*high = range->high;
		insn = ca_text_decode_all(text, *low, *high, &w->n);
	}
	return insn;
}

enum ca_status ca_plan_line(struct ca_text *text, uint32_t module, const struct ca_range *range,
			    size_t ranges, struct ca_site *out, size_t max, size_t *count, bool *self,
			    struct ca_err *err)
{
	struct ca_sites o = { .site = out, .max = max, .module = module };
	struct walk w = { .out = &o, .range = range, .ranges = ranges };
	struct ca_range *done = calloc(ranges, sizeof *done);
	size_t dones = 0;
	bool ok = done;

	for (size_t r = 0; r < ranges && ok; r++) {
		struct ca_insn *insn;
		uint64_t low, high;

		if (in_ranges(done, dones, range[r].low))
			continue;
		insn = decode_around(text, &range[r], &low, &high, &w);
		w.insn = insn;
		ok = insn && walk(&w);
		free(insn);
		done[dones++] = (struct ca_range){ .low = low, .high = high };
	}
	free(done);
	if (!ok)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "a call on the line cannot be patched");
	*count = o.n;
	*self = w.loops || w.own > OWN_WORK * (o.n ? o.n : 1);
	return CA_OK;
}

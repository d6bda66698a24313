/* Plans for patch sites; see plan.h. What may go wrong at run time (a jump into the middle that
 * is not known here) costs a trap there, never correctness; here sites are chosen so that this
 * is rare. */
#include "binary/plan.h"
#include "binary/plan_code.h"
#include <stdlib.h>
#include <string.h>

enum { JUMP_LENGTH = 5, OWN_WORK = 20 };

struct ca_plan {
	struct ca_text *text;
};

/* Where sites go, and what has been taken. */
struct output {
	struct ca_site *site;
	size_t max, n;
	uint32_t module;
};

enum ca_status ca_plan_open(struct ca_plan **plan, const char *path, struct ca_err *err)
{
	struct ca_plan *p = calloc(1, sizeof *p);
	enum ca_status status;

	if (!p)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	status = ca_text_open(&p->text, path, err);
	if (status != CA_OK)
		free(p);
	else
		*plan = p;
	return status;
}

void ca_plan_close(struct ca_plan *plan)
{
	if (plan)
		ca_text_close(plan->text);
	free(plan);
}

/* What progress points compile to: left alone, for it may be patched on its own. */
static bool is_point(const struct ca_insn *i)
{
	static const uint8_t nop[5] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

	return i->size == 5 && !memcmp(i->bytes, nop, 5);
}

static bool ends_block(const struct ca_insn *i)
{
	return i->kind != CA_INSN_PLAIN;
}

/* May it be displaced in front of or behind others? Calls are better left where they are. */
static bool movable(const struct ca_insn *i)
{
	return i->kind != CA_INSN_CALL && i->kind != CA_INSN_CALL_INDIRECT && i->kind != CA_INSN_STRANGE &&
	       i->kind != CA_INSN_END && !is_point(i);
}

static bool in_ranges(const struct ca_range *range, size_t n, uint64_t address)
{
	for (size_t i = 0; i < n; i++)
		if (address >= range[i].low && address < range[i].high)
			return true;
	return false;
}

static bool overlaps(const struct output *out, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < out->n; i++)
		if (low < out->site[i].address + out->site[i].length && out->site[i].address < high)
			return true;
	return false;
}

/* Displace from insn[at] on until a jump fits: `first` has been hooked by the caller. Stops at
 * what cannot be moved, before known targets and at `limit` (an address). */
static bool gather_forward(struct ca_site *site, const struct ca_insn *insn, size_t n, size_t at,
			   uint64_t limit)
{
	bool falls_through = true;

	for (size_t i = at; i < n && site->length < JUMP_LENGTH; i++) {
		if (i > at && (insn[i].is_target || !movable(&insn[i]) || insn[i].address >= limit))
			break;
		if (!ca_code_copy(site, &insn[i]))
			return i > at && ca_code_jump_back(site);
		if (insn[i].kind != CA_INSN_PLAIN && insn[i].kind != CA_INSN_JUMP_IF) {
			falls_through = false;
			break;
		}
	}
	return site->length && (!falls_through || ca_code_jump_back(site));
}

/* ---- functions ------------------------------------------------------------------------- */
static bool is_endbr(const struct ca_insn *i)
{
	static const uint8_t endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa };

	return i->size == 4 && !memcmp(i->bytes, endbr, 4);
}

static bool plan_enter(struct output *out, const struct ca_insn *insn, size_t n)
{
	size_t at = n > 1 && is_endbr(&insn[0]);
	struct ca_site *site = &out->site[out->n];

	while (at < n && is_point(&insn[at]))
		at++;

	if (out->n == out->max || at >= n)
		return false;
	ca_code_begin(site, out->module, CA_SITE_ENTER, insn[at].address);
	if (!ca_code_hook(site, CA_SITE_ENTER) || !gather_forward(site, insn, n, at, UINT64_MAX))
		return false;
	out->n++;
	return true;
}

/* The last instructions up to insn[at], which leaves the function, as far back as a jump needs:
 * index of the first. */
static size_t reach_back(const struct output *out, const struct ca_insn *insn, size_t at)
{
	size_t first = at;
	unsigned bytes = insn[at].size;

	while (bytes < JUMP_LENGTH && first > 0 && !insn[first].is_target && !ends_block(&insn[first - 1]) &&
	       !is_point(&insn[first - 1]) &&
	       !overlaps(out, insn[first - 1].address, insn[at].address + insn[at].size))
		bytes += insn[--first].size;
	return first;
}

/* The instruction that leaves: its copy with the hook in front. */
static bool copy_leaving(struct ca_site *site, const struct ca_insn *i)
{
	uint8_t skip[2] = { 0x0f, 0 }, jump = 0xe9;
	unsigned condition, distance_at;

	if (i->kind != CA_INSN_JUMP_IF)
		return ca_code_hook(site, CA_SITE_EXIT) && ca_code_copy(site, i);
	/* taken: hook, leave; not taken: go on behind the site */
	condition = (i->bytes[0] & 0xf0) == 0x70 ? i->bytes[0] & 15 : i->bytes[i->size - 5] & 15;
	skip[1] = (uint8_t)(0x80 | (condition ^ 1));
	if (!ca_code_displace(site, i) || !ca_code_relative(site, skip, 2, CA_FIXUP_LOCAL, 0))
		return false;
	distance_at = site->fixups - 1u;
	if (!ca_code_hook(site, CA_SITE_EXIT) || !ca_code_relative(site, &jump, 1, CA_FIXUP_REL, i->target))
		return false;
	site->fixup[distance_at].target = site->code_length;
	return ca_code_jump_back(site);
}

static bool plan_exit(struct output *out, const struct ca_insn *insn, size_t at)
{
	size_t first = reach_back(out, insn, at);
	struct ca_site *site = &out->site[out->n];

	if (out->n == out->max || overlaps(out, insn[first].address, insn[at].address + insn[at].size))
		return false;
	ca_code_begin(site, out->module, CA_SITE_EXIT, insn[first].address);
	for (size_t i = first; i < at; i++)
		if (!ca_code_copy(site, &insn[i]))
			return false;
	if (!copy_leaving(site, &insn[at]))
		return false;
	out->n++;
	return true;
}

enum leaving { STAYS, LEAVES, UNKNOWN };

/* A jump through a register or memory: the compilers' jump tables stay inside. */
static enum leaving indirect_leaves(const struct ca_insn *insn, size_t at)
{
	const struct ca_insn *i = &insn[at];

	if (i->bytes[0] == 0x3e) /* notrack: only jump tables have it */
		return STAYS;
	if (i->disp_at) /* jmp *x(%rip): a pointer in a table of the linker's */
		return LEAVES;
	/* jmp *table(,%reg,8): ff 24 c5.. to ff 24 fd.. */
	if (i->bytes[0] == 0xff && i->bytes[1] == 0x24 && (i->bytes[2] & 0xc7) == 0xc5)
		return STAYS;
	/* an epilogue in front */
	if (at && (insn[at - 1].bytes[0] >= 0x58 && insn[at - 1].bytes[0] <= 0x5f))
		return LEAVES;
	if (at && insn[at - 1].uses_sp)
		return LEAVES;
	/* movslq (base,index,4); add base: a table of distances */
	for (size_t k = 1; k <= 6 && k <= at; k++)
		if (insn[at - k].bytes[0] >= 0x48 && insn[at - k].bytes[0] <= 0x4f && insn[at - k].bytes[1] == 0x63)
			return STAYS;
	return UNKNOWN;
}

static enum leaving leaves(const struct ca_insn *insn, size_t at, const struct ca_range *range, size_t ranges)
{
	switch (insn[at].kind) {
	case CA_INSN_RETURN:
		return LEAVES;
	case CA_INSN_JUMP:
	case CA_INSN_JUMP_IF:
		return in_ranges(range, ranges, insn[at].target) ? STAYS : LEAVES;
	case CA_INSN_JUMP_INDIRECT:
		return indirect_leaves(insn, at);
	default:
		return STAYS;
	}
}

/* A range whose first instruction is jumped to from another one (gcc's .cold) is a part of the
 * function and not called: no entry. */
static bool is_part(const struct ca_range *range, struct ca_insn *const *code, const size_t *count,
		    size_t ranges, size_t part)
{
	for (size_t r = 0; r < ranges; r++)
		for (size_t i = 0; r != part && i < count[r]; i++)
			if ((code[r][i].kind == CA_INSN_JUMP || code[r][i].kind == CA_INSN_JUMP_IF) &&
			    code[r][i].target == range[part].low)
				return true;
	return false;
}

static enum ca_status plan_range(struct output *out, const struct ca_insn *insn, size_t n, bool entry,
				 const struct ca_range *range, size_t ranges, struct ca_err *err)
{
	if (entry && !plan_enter(out, insn, n))
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "the entry at %#lx cannot be patched",
				  (unsigned long)insn[0].address);
	for (size_t i = 0; i < n; i++) {
		enum leaving how = leaves(insn, i, range, ranges);

		if (how == STAYS)
			continue;
		/* an exit inside the entry site's bytes: too short a function */
		if (how == UNKNOWN || !plan_exit(out, insn, i))
			return ca_err_set(err, CA_ERR_UNSUPPORTED, "the exit at %#lx cannot be patched",
					  (unsigned long)insn[i].address);
	}
	return CA_OK;
}

enum ca_status ca_plan_function(struct ca_plan *plan, uint32_t module, const struct ca_range *range,
				size_t ranges, struct ca_site *out, size_t max, size_t *count,
				struct ca_err *err)
{
	struct output o = { .site = out, .max = max, .module = module };
	struct ca_insn **code = calloc(ranges, sizeof *code);
	size_t *n = calloc(ranges, sizeof *n);
	enum ca_status status = code && n ? CA_OK : CA_ERR_NOMEM;

	for (size_t r = 0; r < ranges && status == CA_OK; r++) {
		code[r] = ca_text_decode_all(plan->text, range[r].low, range[r].high, &n[r]);
		if (!code[r])
			status = ca_err_set(err, CA_ERR_UNSUPPORTED, "the code at %#lx cannot be decoded",
					    (unsigned long)range[r].low);
	}
	for (size_t r = 0; r < ranges && status == CA_OK; r++)
		status = plan_range(&o, code[r], n[r], !is_part(range, code, n, ranges, r), range, ranges, err);
	for (size_t r = 0; code && r < ranges; r++)
		free(code[r]);
	free(code);
	free(n);
	if (status == CA_OK)
		*count = o.n;
	return status;
}

/* ---- lines ------------------------------------------------------------------------------ */
static bool plan_call(struct output *out, const struct ca_insn *call, bool exit_first)
{
	static const uint8_t jump = 0xe9, jump_memory[2] = { 0xff, 0x25 };
	struct ca_site *site = &out->site[out->n];

	if (out->n == out->max)
		return false;
	ca_code_begin(site, out->module, CA_SITE_CALL, call->address);
	site->flags = CA_SITE_BY_CALL;
	if (!ca_code_displace(site, call) || site->length < JUMP_LENGTH)
		return false;
	if (exit_first && !ca_code_hook(site, CA_SITE_EXIT))
		return false;
	if (!ca_code_hook(site, CA_SITE_ENTER))
		return false;
	if (call->kind == CA_INSN_CALL ? !ca_code_relative(site, &jump, 1, CA_FIXUP_REL, call->target) :
					 !ca_code_relative(site, jump_memory, 2, CA_FIXUP_REL, call->memory))
		return false;
	out->n++;
	return true;
}

/* Behind a call: the thread is back. A progress point there still counts as inside. */
static bool plan_back(struct output *out, const struct ca_insn *insn, size_t n, size_t at)
{
	struct ca_site *site = &out->site[out->n];

	while (at < n && is_point(&insn[at]))
		at++;

	if (out->n == out->max || at >= n || insn[at].kind == CA_INSN_STRANGE)
		return false;
	ca_code_begin(site, out->module, CA_SITE_EXIT, insn[at].address);
	if (!ca_code_hook(site, CA_SITE_EXIT) || !gather_forward(site, insn, n, at, UINT64_MAX))
		return false;
	out->n++;
	return true;
}

static bool is_call(const struct ca_insn *i)
{
	return i->kind == CA_INSN_CALL || i->kind == CA_INSN_CALL_INDIRECT;
}

/* All of a line's instructions in one function; `insn` is the whole function. */
static bool plan_line_in(struct output *out, const struct ca_insn *insn, size_t n,
			 const struct ca_range *range, size_t ranges, unsigned *own, bool *loops)
{
	bool exit_first = false;

	for (size_t i = 0; i < n; i++) {
		const struct ca_insn *in = &insn[i];
		bool next_call;

		if (!in_ranges(range, ranges, in->address))
			continue;
		if ((in->kind == CA_INSN_JUMP || in->kind == CA_INSN_JUMP_IF) && in->target <= in->address &&
		    in_ranges(range, ranges, in->target))
			*loops = true;
		if (!is_call(in)) {
			++*own;
			continue;
		}
		if (in->kind == CA_INSN_CALL_INDIRECT && !(in->disp_at && in->size == 6))
			return false;
		if (!plan_call(out, in, exit_first))
			return false;
		next_call = i + 1 < n && is_call(&insn[i + 1]);
		exit_first = next_call && in_ranges(range, ranges, insn[i + 1].address);
		if (exit_first)
			continue;
		if (!plan_back(out, insn, n, i + 1))
			return false;
	}
	return true;
}

enum ca_status ca_plan_line(struct ca_plan *plan, uint32_t module, const struct ca_range *range,
			    size_t ranges, struct ca_site *out, size_t max, size_t *count, bool *self,
			    struct ca_err *err)
{
	struct output o = { .site = out, .max = max, .module = module };
	uint64_t done_low = 0, done_high = 0;
	bool loops = false, ok = true;
	unsigned own = 0;

	for (size_t r = 0; r < ranges && ok; r++) {
		uint64_t low, high;
		struct ca_insn *insn;
		size_t n;

		if (range[r].low >= done_low && range[r].low < done_high)
			continue; /* the function was planned with an earlier range */
		if (!ca_text_function(plan->text, range[r].low, &low, &high)) {
			low = range[r].low;
			high = range[r].high + CA_SITE_BYTES;
		}
		insn = ca_text_decode_all(plan->text, low, high, &n);
		ok = insn && plan_line_in(&o, insn, n, range, ranges, &own, &loops);
		free(insn);
		done_low = low;
		done_high = high;
	}
	if (!ok)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "a call on the line cannot be patched");
	*count = o.n;
	*self = loops || own > OWN_WORK * (o.n ? o.n : 1);
	return CA_OK;
}

/* ---- points and spin loops ---------------------------------------------------------------- */
enum ca_status ca_plan_count(struct ca_plan *plan, uint32_t module, uint64_t address, uint32_t point,
			     struct ca_site *out, struct ca_err *err)
{
	uint64_t low = address, high = address + CA_SITE_BYTES;
	struct ca_insn *insn;
	size_t n, at = 0;
	bool ok;

	ca_text_function(plan->text, address, &low, &high);
	insn = ca_text_decode_all(plan->text, low, high, &n);
	while (insn && at < n && insn[at].address != address)
		at++;
	ca_code_begin(out, module, CA_SITE_COUNT, address);
	out->point = point;
	ok = insn && at < n && ca_code_hook(out, CA_SITE_COUNT);
	if (ok && is_point(&insn[at]))
		ok = ca_code_displace(out, &insn[at]) && ca_code_jump_back(out);
	else
		ok = ok && gather_forward(out, insn, n, at, UINT64_MAX);
	free(insn);
	return ok ? CA_OK :
		    ca_err_set(err, CA_ERR_UNSUPPORTED, "the instruction at %#lx cannot be patched",
			       (unsigned long)address);
}

enum ca_status ca_plan_pauses(struct ca_plan *plan, uint32_t module, struct ca_site *out, size_t max,
			      size_t *count, struct ca_err *err)
{
	struct output o = { .site = out, .max = max, .module = module };
	uint64_t low, high, from, to;

	(void)err;
	for (unsigned p = 0; ca_text_part(plan->text, p, &low, &high); p++)
		for (uint64_t at = low; at < high; at = to > at ? to : at + 1) {
			struct ca_insn *insn;
			size_t n;

			to = at;
			if (!ca_text_function(plan->text, at, &from, &to) || from < at)
				continue;
			insn = ca_text_decode_all(plan->text, from, to, &n);
			for (size_t i = 0; insn && i < n && o.n < max; i++) {
				struct ca_site *site = &out[o.n];

				if (insn[i].size != 2 || insn[i].bytes[0] != 0xf3 || insn[i].bytes[1] != 0x90)
					continue;
				ca_code_begin(site, module, CA_SITE_MEET, insn[i].address);
				site->flags = CA_SITE_NO_TRAP;
				if (ca_code_hook(site, CA_SITE_MEET) && gather_forward(site, insn, n, i, UINT64_MAX))
					o.n++;
			}
			free(insn);
		}
	*count = o.n;
	return CA_OK;
}

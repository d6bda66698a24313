/* SPDX-License-Identifier: MIT */
/* Where threads meet without a call: spin loops wait for others, and an atomic operation that reads
 * and writes is something that others can notice at once. Both become sites of kind MEET.
 *
 * Most plain stores are nobody's business, and none can be told from the one that hands something over.
 * So it is noted what spinning threads look at; who writes there is found out while the program runs
 * (causal/conductor/handover.c), and that store is a meeting from then on. Driver's process. */
#include "binary/plan/code.h"
#include "binary/plan/plan.h"
#include "binary/plan/sites.h"
#include "binary/plan/text.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

/* Bytes of code decoded for one module, about half a second: what is left out is paid at ticks. */
enum { MOST_CODE = 2 << 20 };
/* Instructions of a loop in which threads only spin, at most; and bytes. */
enum { LOOP = 24, LOOP_BYTES = LOOP * 15 };

/* ---- where to look: bytes that may be such an instruction ---------------------------------*/
/* The opcodes that a lock prefix may stand before. */
static bool is_lockable(const uint8_t *at, size_t left)
{
	while (left && (*at == 0x66 || (*at & 0xf0) == 0x40)) {
		at++;
		left--;
	}
	if (left < 2)
		return false;
	if (*at == 0x0f)
		switch (at[1]) {
		case 0xab: /* bts, btr, btc */
		case 0xb3:
		case 0xbb:
		case 0xba:
		case 0xb0: /* cmpxchg */
		case 0xb1:
		case 0xc0: /* xadd */
		case 0xc1:
		case 0xc7: /* cmpxchg8b, cmpxchg16b */
			return true;
		default:
			return false;
		}
	/* add, or, adc, sbb, and, sub, xor to memory; not, neg, inc, dec */
	return (*at < 0x38 && (*at & 7) < 2) || *at == 0x80 || *at == 0x81 || *at == 0x83 || *at == 0xf6 ||
	       *at == 0xf7 || *at == 0xfe || *at == 0xff;
}

static bool is_candidate(const uint8_t *at, size_t left)
{
	if (left < 2)
		return false;
	switch (*at) {
	case 0xf3:
		return at[1] == 0x90; /* pause */
	case 0xf0:
		return is_lockable(at + 1, left - 1);
	case 0x86: /* xchg, with memory */
	case 0x87:
		return at[1] < 0xc0;
	default:
		return false;
	}
}

/* ---- the sites of a function ----------------------------------------------------------------*/
struct function {
	uint64_t low, high;
	struct ca_insn *insn;
	size_t n;
	bool spins;
};

static bool is_meeting(const struct ca_insn *i)
{
	/* below the stack pointer's own frame: a fence of the compiler, or nobody else's */
	return i->is_pause || (i->is_atomic && !i->sp_operand);
}

static bool plan_one(struct ca_sites *out, const struct function *f, size_t at)
{
	enum ca_site_kind hook = f->insn[at].is_pause ? CA_SITE_MEET : CA_SITE_ATOMIC;
	struct ca_site *site = &out->site[out->n];

	ca_code_begin(site, out->module, CA_SITE_MEET, f->insn[at].address);
	if (!ca_code_hook(site, hook) || !ca_code_copy_many(site, f->insn, f->n, at, UINT64_MAX) ||
	    ca_sites_overlap(out, site->address, site->address + site->length))
		return false;
	site->flags = CA_SITE_NO_TRAP;
	return true;
}

static void plan_function(struct ca_sites *out, const struct function *f)
{
	for (size_t i = 0; i < f->n && out->n < out->max; i++)
		if (is_meeting(&f->insn[i]) && plan_one(out, f, i))
			out->n++;
}

/* ---- what is looked at in a spin loop -------------------------------------------------------*/
/* The smallest loop around that instruction: up to *last. False: there is none so small. */
static bool find_loop(const struct function *f, size_t at, size_t *first, size_t *last)
{
	size_t size = LOOP + 1;

	for (size_t j = at; j < f->n && j < at + LOOP; j++) {
		long to = ca_insn_is_jump(&f->insn[j]) && f->insn[j].target <= f->insn[at].address
				  ? ca_insn_find(f->insn, f->n, f->insn[j].target)
				  : -1;

		if (to < 0 || j - (size_t)to + 1 >= size)
			continue;
		size = j - (size_t)to + 1;
		*first = (size_t)to;
		*last = j;
	}
	return size <= LOOP;
}

static bool is_changed(unsigned changes, uint8_t reg)
{
	return reg < CA_INSN_REGISTERS && changes >> reg & 1;
}

static bool is_known(const struct ca_spin *spin, size_t spins, const struct ca_spin *s)
{
	for (size_t i = 0; i < spins; i++)
		if (spin[i].low == s->low && spin[i].disp == s->disp && spin[i].base == s->base &&
		    spin[i].index == s->index)
			return true;
	return false;
}

/* What instruction i of that loop looks at, the same in each turn. False: nothing. */
static bool looks_at(const struct function *f, size_t first, size_t last, size_t i, struct ca_spin *s)
{
	const struct ca_insn *in = &f->insn[i];
	unsigned changes = 0;

	for (size_t k = first; k <= last; k++)
		changes |= f->insn[k].changes;
	*s = (struct ca_spin){ .width = in->width,
			       .scale = in->scale,
			       .base = in->memory ? CA_INSN_NO_REGISTER : in->base,
			       .index = in->index,
			       .disp = in->memory ? (int64_t)in->memory : in->disp,
			       .low = f->insn[first].address,
			       .high = f->insn[last].address + f->insn[last].size };
	return in->reads && !in->sp_operand && in->width && in->width <= 8 &&
	       !(in->width & (in->width - 1)) && !is_changed(changes, in->base) &&
	       !is_changed(changes, in->index);
}

static void note_spin(const struct function *f, size_t at, struct ca_spin *spin, size_t *spins, size_t max)
{
	size_t first, last;
	struct ca_spin s;

	if (!find_loop(f, at, &first, &last))
		return;
	for (size_t i = first; i <= last && *spins < max; i++)
		if (looks_at(f, first, last, i, &s) && !is_known(spin, *spins, &s))
			spin[(*spins)++] = s;
}

/* The function at `at`, if threads meet in it; returns where to go on looking. */
static uint64_t read_function(struct ca_text *text, uint64_t at, struct ca_vec *functions, size_t *left)
{
	struct function f = { 0 }, *kept = NULL;
	bool meets = false;

	if (!ca_text_function(text, at, &f.low, &f.high))
		return at + 1;
	if (f.high - f.low > *left)
		return f.high;
	*left -= f.high - f.low;
	f.insn = ca_text_decode_all(text, f.low, f.high, &f.n);
	for (size_t i = 0; f.insn && i < f.n; i++) {
		meets |= is_meeting(&f.insn[i]);
		f.spins |= f.insn[i].is_pause;
	}
	if (meets)
		kept = ca_vec_push(functions);
	if (kept)
		*kept = f;
	else
		free(f.insn);
	return f.high > at ? f.high : at + 1;
}

/* All of a text; of no module yet. */
struct found {
	size_t sites, spins;
	struct ca_site site[CA_MAX_MEETINGS];
	struct ca_spin spin[CA_MAX_SPINS];
};

static void find_all(struct ca_text *text, struct found *found)
{
	struct ca_sites o = { .site = found->site, .max = CA_MAX_MEETINGS };
	struct ca_vec functions = { .size = sizeof(struct function) };
	size_t left = MOST_CODE;
	struct function *f;
	const uint8_t *bytes;
	uint64_t low, high;

	for (unsigned p = 0; ca_text_part(text, p, &low, &high, &bytes); p++)
		for (uint64_t at = low; at < high;)
			at = is_candidate(bytes + (at - low), high - at)
				     ? read_function(text, at, &functions, &left)
				     : at + 1;
	f = functions.at;
	/* where there is no room for all, those that wait come first */
	for (unsigned waits = 2; waits-- > 0;)
		for (size_t i = 0; i < functions.n; i++) {
			if (f[i].spins != waits)
				continue;
			for (size_t k = 0; k < f[i].n; k++)
				if (is_meeting(&f[i].insn[k]))
					note_spin(&f[i], k, found->spin, &found->spins, CA_MAX_SPINS);
			plan_function(&o, &f[i]);
		}
	for (size_t i = 0; i < functions.n; i++)
		free(f[i].insn);
	ca_vec_free(&functions);
	found->sites = o.n;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t ca_plan_meetings(struct ca_text *text, uint32_t module, struct ca_site *out, size_t max,
			struct ca_spin *spin, size_t *spins)
{
	void **kept = ca_text_found(text);
	struct found *found = *kept;
	size_t n;

	if (!found && (*kept = found = calloc(1, sizeof *found)))
		find_all(text, found);
	n = found ? least(found->sites, max) : 0;
	for (size_t i = 0; i < n; i++) {
		out[i] = found->site[i];
		out[i].module = module;
	}
	if (!spins)
		return n;
	*spins = found ? least(found->spins, *spins) : 0;
	for (size_t i = 0; i < *spins; i++) {
		spin[i] = found->spin[i];
		spin[i].module = module;
	}
	return n;
}

static bool has_pause(struct ca_text *text, uint64_t low, uint64_t high)
{
	static const char pause[] = { '\xf3', '\x90' };
	uint64_t from, to;
	const uint8_t *bytes;

	for (unsigned p = 0; ca_text_part(text, p, &from, &to, &bytes); p++)
		if (low >= from && high <= to)
			return memmem(bytes + (low - from), high - low, pause, sizeof pause);
	return false;
}

static bool looks_at_one(const struct function *f, size_t first, size_t last)
{
	struct ca_spin s;

	for (size_t i = first; i <= last; i++)
		if (looks_at(f, first, last, i, &s))
			return true;
	return false;
}

bool ca_plan_spins(struct ca_text *text, uint64_t low, uint64_t high, uint64_t address)
{
	struct function f = { .low = low, .high = high };
	size_t first, last;
	bool spins = false;

	/* large functions are not decoded for each place in them */
	if (!has_pause(text, low + LOOP_BYTES < address ? address - LOOP_BYTES : low,
		       address + LOOP_BYTES < high ? address + LOOP_BYTES : high))
		return false;
	f.insn = ca_text_decode_all(text, low, high, &f.n);
	for (size_t k = 0; f.insn && k < f.n && !spins; k++)
		spins = f.insn[k].is_pause && find_loop(&f, k, &first, &last) &&
			address >= f.insn[first].address &&
			address < f.insn[last].address + f.insn[last].size && looks_at_one(&f, first, last);
	free(f.insn);
	return spins;
}

bool ca_plan_waits_around(struct ca_text *text, uint64_t address, uint64_t *low, uint64_t *high)
{
	struct function f = { .low = *low, .high = *high };
	size_t first, last, k = 0;
	bool found = false;

	f.insn = ca_text_decode_all(text, f.low, f.high, &f.n);
	while (f.insn && k < f.n && f.insn[k].address + f.insn[k].size <= address)
		k++;
	if (f.insn && k < f.n && find_loop(&f, k, &first, &last) && looks_at_one(&f, first, last)) {
		*low = f.insn[first].address;
		*high = f.insn[last].address + f.insn[last].size;
		found = true;
	}
	free(f.insn);
	return found;
}

/* A short function that gives a lock back: behind its return nops may give way to a jump, for they are never run. */
static void append_pads(struct ca_text *text, const struct function *f, struct ca_site *site)
{
	uint64_t address = site->address + site->length;
	size_t at = 0;

	while (at < f->n && f->insn[at].address < address)
		at++;
	if (!at || ca_insn_falls_through(&f->insn[at - 1]))
		return;
	for (; site->length < CA_JUMP_LENGTH; at++)
		if (!ca_sites_append_pad(site, text, at < f->n ? &f->insn[at] : NULL))
			return;
}

enum ca_status ca_plan_store(struct ca_text *text, uint32_t module, uint64_t end, struct ca_site *out,
			     struct ca_err *err)
{
	struct ca_sites o = { .site = out, .max = 1, .module = module };
	enum ca_status status = CA_ERR_NOT_FOUND;
	struct function f = { 0 };

	if (ca_text_function(text, end - 1, &f.low, &f.high))
		f.insn = ca_text_decode_all(text, f.low, f.high, &f.n);
	for (size_t i = 0; f.insn && i < f.n; i++)
		if (f.insn[i].address + f.insn[i].size == end && f.insn[i].kind == CA_INSN_PLAIN &&
		    f.insn[i].writes && !is_meeting(&f.insn[i]))
			status = plan_one(&o, &f, i) ? CA_OK : CA_ERR_UNSUPPORTED;
	if (status == CA_OK)
		append_pads(text, &f, out);
	free(f.insn);
	if (status == CA_ERR_NOT_FOUND)
		return ca_err_set(err, status, "no plain store ends at %#llx", (unsigned long long)end);
	return status == CA_OK ? CA_OK
			       : ca_err_set(err, status, "the store before %#llx cannot be patched",
					    (unsigned long long)end);
}

/* SPDX-License-Identifier: MIT */
/* Plans for patch sites; see plan.h. What may go wrong at run time (a jump into the middle that
 * is not known here) costs a trap there, never correctness; here sites are chosen so that this
 * is rare. This file: points and spin loops. */
#include "binary/plan/plan.h"
#include "binary/plan/code.h"
#include "binary/plan/sites.h"
#include "binary/plan/text.h"
#include <stdlib.h>
#include <string.h>

static bool plan_visit(struct ca_sites *out, enum ca_site_kind kind, const struct ca_insn *insn, size_t n,
		       size_t at)
{
	struct ca_site *site = &out->site[out->n];

	if (out->n == out->max || at >= n || insn[at].kind == CA_INSN_END)
		return false;
	ca_code_begin(site, out->module, kind, insn[at].address);
	if (!ca_code_hook(site, kind))
		return false;
	if (ca_insn_is_point(&insn[at])) /* nothing to be copied but the way back */
		return ca_code_copy(site, &insn[at]) && ca_code_jump_back(site);
	return ca_code_copy_many(site, insn, n, at, UINT64_MAX);
}

enum ca_status ca_plan_count(struct ca_text *text, uint32_t module, uint64_t address, uint32_t point,
			     struct ca_site *out, struct ca_err *err)
{
	struct ca_sites o = { .site = out, .max = 1, .module = module };
	uint64_t low = address, high = address + CA_SITE_BYTES;
	struct ca_insn *insn;
	size_t n, at = 0;
	bool ok;

	ca_text_function(text, address, &low, &high);
	insn = ca_text_decode_all(text, low, high, &n);
	if (!insn) /* data between, or the end of the text */
		insn = ca_text_decode_all(text, address, address + 1, &n);
	while (insn && at < n && insn[at].address != address)
		at++;
	ok = insn && plan_visit(&o, CA_SITE_COUNT, insn, n, at);
	free(insn);
	if (!ok)
		return ca_err_set(err, CA_ERR_UNSUPPORTED, "the instruction at %#lx cannot be patched",
				  (unsigned long)address);
	out->point = point;
	return CA_OK;
}

/* The spin loops of the function at `at`; returns where to go on looking. */
static uint64_t pauses_of(struct ca_text *text, struct ca_sites *out, uint64_t at)
{
	struct ca_insn *insn;
	uint64_t low, high;
	size_t n;

	if (!ca_text_function(text, at, &low, &high))
		return at + 1;
	insn = ca_text_decode_all(text, low, high, &n);
	for (size_t i = 0; insn && i < n && out->n < out->max; i++) {
		if (insn[i].size != 2 || insn[i].bytes[0] != 0xf3 || insn[i].bytes[1] != 0x90)
			continue;
		if (!plan_visit(out, CA_SITE_MEET, insn, n, i) ||
		    ca_sites_overlap(out, insn[i].address, insn[i].address + out->site[out->n].length))
			continue;
		out->site[out->n++].flags = CA_SITE_NO_TRAP;
	}
	free(insn);
	return high > at ? high : at + 1;
}

size_t ca_plan_pauses(struct ca_text *text, uint32_t module, struct ca_site *out, size_t max)
{
	static const uint8_t pause[2] = { 0xf3, 0x90 };
	struct ca_sites o = { .site = out, .max = max, .module = module };
	const uint8_t *bytes;
	uint64_t low, high;

	for (unsigned p = 0; ca_text_part(text, p, &low, &high, &bytes); p++)
		for (uint64_t at = low; at < high && o.n < max;) {
			const uint8_t *found = memmem(bytes + (at - low), high - at, pause, sizeof pause);

			if (!found)
				break;
			at = pauses_of(text, &o, low + (uint64_t)(found - bytes));
		}
	return o.n;
}

/* SPDX-License-Identifier: MIT */
/* Plans for patch sites; see plan.h. What may go wrong at run time (a jump into the middle that
 * is not known here) costs a trap there, never correctness; here sites are chosen so that this
 * is rare. This file: points. */
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

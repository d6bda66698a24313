/* SPDX-License-Identifier: MIT */
/* The sites of one plan; see sites.h. */
#include "binary/plan/sites.h"
#include "binary/plan/code.h"
#include "binary/plan/text.h"

bool ca_sites_overlap(const struct ca_sites *sites, uint64_t low, uint64_t high)
{
	for (size_t i = 0; i < sites->n; i++)
		if (low < sites->site[i].address + sites->site[i].length && sites->site[i].address < high)
			return true;
	return false;
}

void ca_sites_finish(struct ca_sites *sites, bool rare)
{
	struct ca_site *site = &sites->site[sites->n++];

	if (site->length < CA_JUMP_LENGTH && !rare)
		site->flags |= CA_SITE_NO_TRAP;
}

bool ca_sites_append_pad(struct ca_site *site, struct ca_text *text, const struct ca_insn *known)
{
	uint64_t address = site->address + site->length;
	struct ca_site before = *site;
	struct ca_insn pad;

	if (known)
		pad = *known;
	else if (ca_text_is_entry(text, address) || !ca_text_decode(text, address, &pad))
		return false;
	if (!pad.is_pad || pad.is_target || pad.is_split ||
	    (ca_insn_is_point(&pad) && (known || !ca_text_pads_to_entry(text, address))))
		return false;
	if (ca_code_copy(site, &pad))
		return true;
	*site = before;
	return false;
}

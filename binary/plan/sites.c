/* SPDX-License-Identifier: MIT */
/* The sites of one plan; see sites.h. */
#include "binary/plan/sites.h"
#include "binary/plan/code.h"

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

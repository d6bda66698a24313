/* SPDX-License-Identifier: MIT */
/* Meetings in the modules of regions; see region_meetings.h. */
#include "causal/conductor/region_meetings.h"
#include <string.h>

/* Before all others: it is known to count. */
static bool put_store(struct ca_region_meetings *m, struct ca_text *text, uint32_t module, uint64_t end)
{
	struct ca_site site;
	struct ca_err err;

	if (ca_plan_store(text, module, end, &site, &err) != CA_OK)
		return false;
	for (size_t i = 0; i < m->sites; i++)
		if (m->site[i].module == module && m->site[i].address < site.address + site.length &&
		    site.address < m->site[i].address + m->site[i].length)
			return false;
	m->sites -= m->sites == CA_MAX_MEETINGS;
	memmove(m->site + 1, m->site, m->sites * sizeof site);
	m->site[0] = site;
	m->sites++;
	return true;
}

void ca_region_meetings_read(struct ca_region_meetings *m, struct ca_text *text, const struct ca_index *index,
			     uint32_t module)
{
	const struct ca_region_store *store = m->stores->at;
	size_t spins = CA_MAX_SPINS - m->spins;

	if (m->read[module])
		return;
	m->read[module] = true;
	m->sites += ca_plan_meetings(text, module, m->site + m->sites, CA_MAX_MEETINGS - m->sites,
				     m->spin + m->spins, &spins);
	m->spins += spins;
	for (size_t i = 0; i < m->stores->n; i++)
		if (!strcmp(store[i].binary, ca_index_binary(index)))
			put_store(m, text, module, store[i].end);
}

bool ca_region_meetings_add_store(struct ca_region_meetings *m, struct ca_text *text,
				  const struct ca_index *index, ca_place end)
{
	const char *binary = ca_index_binary(index);
	struct ca_region_store *store = m->stores->at;

	if (strlen(binary) >= sizeof store->binary)
		return false;
	for (size_t i = 0; i < m->stores->n; i++)
		if (store[i].end == CA_PLACE_OFFSET(end) && !strcmp(store[i].binary, binary))
			return false;
	store = ca_vec_push(m->stores);
	if (!store)
		return false;
	strcpy(store->binary, binary);
	store->end = CA_PLACE_OFFSET(end);
	return put_store(m, text, CA_PLACE_MODULE(end), store->end);
}

void ca_region_meetings_select(const struct ca_region_meetings *m, const struct ca_region_code *const *code,
			       unsigned codes, struct ca_selection *out)
{
	out->spins = (uint32_t)m->spins;
	memcpy(out->spin, m->spin, m->spins * sizeof *m->spin);
	for (size_t i = 0; i < m->sites && out->sites < CA_SELECTION_SITES; i++) {
		bool free = true;

		for (unsigned k = 0; k < codes; k++)
			free = free && !ca_region_code_overlaps(code[k], &m->site[i]);
		if (free)
			out->site[out->sites++] = m->site[i];
	}
}

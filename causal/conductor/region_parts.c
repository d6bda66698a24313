/* SPDX-License-Identifier: MIT */
/* Several regions as one selection; see region_parts.h. */
#include "causal/conductor/region_parts.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

/* ---- ranges --------------------------------------------------------------------------*/
struct edge {
	uint32_t module;
	uint64_t at;
};

static int by_place(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* Of the parts that hold that place the one with the largest speedup; `parts`: none does. */
static unsigned part_at(const struct ca_region_code *const *part, unsigned parts, const struct edge *e)
{
	for (unsigned k = parts; k-- > 0;)
		for (unsigned i = 0; i < part[k]->ranges; i++) {
			const struct ca_range *r = &part[k]->range[i];

			if (r->module == e->module && r->low <= e->at && e->at < r->high)
				return k;
		}
	return parts;
}

static void put_range(struct ca_selection *out, const struct edge *from, uint64_t high, uint32_t part)
{
	struct ca_range *last = out->ranges ? &out->range[out->ranges - 1] : NULL;

	if (last && last->module == from->module && last->high == from->at && last->part == part)
		last->high = high;
	else if (out->ranges < CA_MAX_RANGES)
		out->range[out->ranges++] = (struct ca_range){ from->module, part, from->at, high };
}

/* Sorted and apart, as the runtime's binary search needs them, though parts may lie in each other. */
static void merge_ranges(const struct ca_region_code *const *part, unsigned parts, struct ca_selection *out)
{
	size_t n = 0, edges = 0;
	struct edge *edge;

	out->ranges = 0;
	for (unsigned k = 0; k < parts; k++)
		n += 2 * (size_t)part[k]->ranges;
	edge = calloc(n + 1, sizeof *edge);
	if (!edge)
		return;
	for (unsigned k = 0; k < parts; k++)
		for (unsigned i = 0; i < part[k]->ranges; i++) {
			edge[edges++] = (struct edge){ part[k]->range[i].module, part[k]->range[i].low };
			edge[edges++] = (struct edge){ part[k]->range[i].module, part[k]->range[i].high };
		}
	if (edges)
		qsort(edge, edges, sizeof *edge, by_place);
	for (size_t i = 0; i + 1 < edges; i++) {
		unsigned k = part_at(part, parts, &edge[i]);

		if (k < parts && edge[i].module == edge[i + 1].module && edge[i].at < edge[i + 1].at)
			put_range(out, &edge[i], edge[i + 1].at, k);
	}
	free(edge);
}

/* ---- sites ---------------------------------------------------------------------------*/
/* Before each entry: whose it is. False: there is no room for that. */
static bool name_part(struct ca_site *site, unsigned part)
{
	for (unsigned h = 0; h < site->hooks; h++) {
		if (site->hook[h].kind != CA_SITE_ENTER)
			continue;
		if (site->hooks == CA_SITE_HOOKS)
			return false;
		memmove(&site->hook[h + 1], &site->hook[h], (site->hooks - h) * sizeof *site->hook);
		site->hook[h].kind = CA_SITE_PART;
		site->hook[h].point = 0;
		site->hooks++;
		site->point = part;
		h++;
	}
	return true;
}

static bool put_sites(const struct ca_region_code *const *part, unsigned parts, struct ca_selection *out)
{
	for (unsigned k = 0; k < parts; k++) {
		for (unsigned other = 0; other < k; other++)
			for (size_t i = 0; i < part[k]->sites; i++)
				if (ca_region_code_overlaps(part[other], &part[k]->site[i]))
					return false;
		for (size_t i = 0; i < part[k]->sites; i++) {
			if (out->sites == CA_MAX_SITES)
				return false;
			out->site[out->sites] = part[k]->site[i];
			if (!name_part(&out->site[out->sites++], k))
				return false;
		}
	}
	return out->sites > 0;
}

bool ca_region_parts_select(const struct ca_region_code *const *part, const unsigned *percent, unsigned parts,
			    bool exact, struct ca_selection *out)
{
	bool possible = exact;

	merge_ranges(part, parts, out);
	out->sites = out->fine = out->edges = 0;
	out->parts = parts;
	for (unsigned k = 0; k < parts; k++) {
		out->weight[k] = percent[k] * UINT32_C(1000000) / percent[parts - 1];
		possible = possible && !part[k]->sampled && !part[k]->edges;
	}
	possible = possible && put_sites(part, parts, out);
	out->exact = possible;
	if (!possible)
		out->sites = 0;
	return possible || !exact;
}

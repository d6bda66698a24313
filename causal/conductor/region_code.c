/* SPDX-License-Identifier: MIT */
/* The code of one region; see region_code.h. */
#include "causal/conductor/region_code.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

static bool add_range(struct ca_region_code *code, uint64_t low, uint64_t high)
{
	struct ca_range *more;

	if (code->ranges == CA_MAX_RANGES)
		return false;
	more = ca_vec_more(code->range, code->ranges, sizeof *more);
	if (!more)
		return false;
	code->range = more;
	code->range[code->ranges++] = (struct ca_range){ .module = code->module, .low = low, .high = high };
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct ca_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Sorted, without overlaps: what the runtime's binary search needs. */
static void merge(struct ca_region_code *code)
{
	unsigned n = 0;

	if (!code->ranges)
		return;
	qsort(code->range, code->ranges, sizeof *code->range, by_address);
	for (unsigned i = 1; i < code->ranges; i++) {
		if (code->range[i].low <= code->range[n].high) {
			if (code->range[i].high > code->range[n].high)
				code->range[n].high = code->range[i].high;
		} else {
			code->range[++n] = code->range[i];
		}
	}
	code->ranges = n + 1;
}

static void inline_ranges(struct ca_region_code *code, const struct ca_region *region,
			  const struct ca_index *index)
{
	size_t n = ca_index_inlines(index);

	for (size_t i = 0; i < n; i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if (region->kind == CA_REGION_FUNCTION
			    ? !strcmp(in.name, region->name)
			    : in.call_line == region->line && !strcmp(in.call_file, region->file))
			add_range(code, in.low, in.high);
	}
}

static void own_ranges(struct ca_region_code *code, const struct ca_region *region,
		       const struct ca_index *index)
{
	size_t n = region->kind == CA_REGION_FUNCTION ? ca_index_functions(index) : ca_index_lines(index);

	for (size_t i = 0; i < n; i++) {
		if (region->kind == CA_REGION_FUNCTION) {
			struct ca_index_function f;

			ca_index_function_at(index, i, &f);
			if (!strcmp(f.name, region->name))
				add_range(code, f.low, f.high);
		} else {
			struct ca_index_line l;

			ca_index_line_at(index, i, &l);
			if (l.line == region->line && !strcmp(l.file, region->file))
				add_range(code, l.low, l.high);
		}
	}
}

unsigned ca_region_code_find(struct ca_region_code *code, const struct ca_region *region,
			     const struct ca_index *index)
{
	unsigned own;

	own_ranges(code, region, index);
	own = code->ranges;
	inline_ranges(code, region, index);
	return own;
}

static void plan_sites(struct ca_region_code *code, const struct ca_region *region, unsigned ranges,
		       struct ca_text *text)
{
	struct ca_site site[CA_MAX_SITES];
	enum ca_status status;
	struct ca_err err;
	bool self = false;
	size_t n = 0;

	code->sampled = true;
	if (!text) {
		code->why = "its text cannot be read";
		return;
	}
	if (region->kind == CA_REGION_FUNCTION)
		status = ca_plan_function(text, code->module, code->range, ranges, site, CA_MAX_SITES, &n,
					  &err);
	else
		status = ca_plan_line(text, code->module, code->range, ranges, site, CA_MAX_SITES, &n, &self,
				      &err);
	if (status != CA_OK || !n || self) {
		code->why = self              ? "the line does work outside of calls"
			    : status == CA_OK ? "the line calls nothing"
					      : "its entries and exits cannot all be patched";
		return;
	}
	code->site = malloc(n * sizeof *site);
	if (!code->site)
		return;
	memcpy(code->site, site, n * sizeof *site);
	code->sites = n;
	code->sampled = false;
}

/* Where probes do not fit calls and functions they may fit the edges of the code. Of a function those of its
 * inlined copies come to its own sites; of a line they take the place of its calls. */
static void plan_edges(struct ca_region_code *code, const struct ca_region *region,
		       const struct ca_range *range, unsigned ranges, struct ca_text *text)
{
	size_t own = region->kind == CA_REGION_FUNCTION ? code->sites : 0, n = 0;
	struct ca_site site[CA_MAX_SITES];
	struct ca_err err;

	if (own)
		memcpy(site, code->site, own * sizeof *site);
	if (!text ||
	    ca_plan_edges(text, code->module, range, ranges, site + own, CA_MAX_SITES - own, &n, &err) !=
		    CA_OK ||
	    !n)
		return;
	free(code->site);
	code->site = malloc((own + n) * sizeof *site);
	code->sites = code->site ? own + n : 0;
	if (!code->site)
		return;
	memcpy(code->site, site, code->sites * sizeof *site);
	code->sampled = false;
	code->edges = true;
}

/* Leaves out the ranges behind the first `own` that lie in those; returns how many are left. */
static unsigned apart(struct ca_region_code *code, unsigned own)
{
	unsigned n = own;

	for (unsigned i = own; i < code->ranges; i++) {
		unsigned k = 0;

		while (k < own &&
		       (code->range[i].low < code->range[k].low || code->range[i].low >= code->range[k].high))
			k++;
		if (k == own)
			code->range[n++] = code->range[i];
	}
	code->ranges = n;
	return n - own;
}

void ca_region_code_plan(struct ca_region_code *code, const struct ca_region *region, unsigned own,
			 struct ca_text *text)
{
	bool is_function = region->kind == CA_REGION_FUNCTION;
	unsigned copies = code->ranges - own;

	if (own)
		plan_sites(code, region, own, text);
	if (copies && code->sites) {
		code->sampled = true;
		code->why = "parts of it are inlined";
	}
	if (!code->sites)
		code->sampled = true;
	if (is_function && (!own || code->sites) && (copies = apart(code, own)))
		plan_edges(code, region, code->range + own, copies, text);
	merge(code);
	if (!is_function && code->sampled && code->ranges)
		plan_edges(code, region, code->range, code->ranges, text);
}

void ca_region_code_fini(struct ca_region_code *code)
{
	free(code->range);
	free(code->site);
}

bool ca_region_code_overlaps(const struct ca_region_code *code, const struct ca_site *site)
{
	for (size_t i = 0; i < code->sites; i++)
		if (code->site[i].module == site->module &&
		    code->site[i].address < site->address + site->length &&
		    site->address < code->site[i].address + code->site[i].length)
			return true;
	return false;
}

/* The sites' other form. An int3 at each visit would cost more than all the rest. */
static void time_only(struct ca_site *site, size_t sites)
{
	for (size_t i = 0; i < sites; i++) {
		site[i].flags |= CA_SITE_NO_TRAP;
		for (unsigned h = 0; h < site[i].hooks; h++) {
			if (site[i].hook[h].kind == CA_SITE_ENTER)
				site[i].hook[h].kind = CA_SITE_FINE_ENTER;
			else if (site[i].hook[h].kind == CA_SITE_EXIT)
				site[i].hook[h].kind = CA_SITE_FINE_EXIT;
		}
	}
}

void ca_region_code_select(const struct ca_region_code *code, bool exact, bool log, struct ca_selection *out)
{
	out->ranges = code->ranges;
	if (code->ranges)
		memcpy(out->range, code->range, code->ranges * sizeof *out->range);
	out->exact = exact && !code->sampled;
	out->sites = out->exact ? (uint32_t)code->sites : 0;
	if (out->sites)
		memcpy(out->site, code->site, code->sites * sizeof *out->site);
	out->fine = out->exact && !log;
	out->edges = out->exact && code->edges;
	if (out->fine)
		time_only(out->site, out->sites);
}

/* SPDX-License-Identifier: MIT */
/* Regions; see regions.h. */
#include "causal/conductor/regions.h"
#include "binary/plan/plan.h"
#include "core/map.h"
#include "core/module.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 32, PER_PLACE = 8, STACK = 256 };

struct place {
	ca_place place;
	uint8_t n;
	uint32_t region[PER_PLACE]; /* innermost first */
};
struct info {
	uint32_t module;
	bool sampled; /* no sites: not possible */
	bool planned;
	bool timed; /* its sites can do nothing else */
	const char *why;
	uint64_t samples;
	uint64_t stamp; /* of the last sample that counted it */
	struct ca_range *range;
	unsigned ranges;
	struct ca_site *site;
	size_t sites;
};
struct ca_regions {
	enum ca_mode mode;
	const struct ca_scope *scope;
	struct ca_objects *objects;
	struct ca_catalog *catalog;
	struct ca_stacks *stacks; /* all samples are told to it, too; may be NULL */
	struct ca_vec places;     /* struct place */
	struct ca_map place_at;   /* by place: where in places */
	struct info *info;        /* by region id - 1 */
	size_t infos;
	struct ca_vec own_heat, *heat; /* uint8_t, enum ca_heat, by region id - 1 */
	uint64_t stamp;
	bool read[CA_MAX_MODULES];               /* the meetings are planned */
	struct ca_site meeting[CA_MAX_MEETINGS]; /* of the modules that were selected in */
	size_t meetings;
};

enum ca_status ca_regions_new(struct ca_regions **regions, enum ca_mode mode, const struct ca_scope *scope,
			      struct ca_objects *objects, struct ca_catalog *catalog, struct ca_err *err)
{
	struct ca_regions *r = calloc(1, sizeof *r);

	if (!r)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	r->places.size = sizeof(struct place);
	r->own_heat.size = 1;
	r->heat = &r->own_heat;
	r->mode = mode;
	r->scope = scope;
	r->objects = objects;
	r->catalog = catalog;
	*regions = r;
	return CA_OK;
}

void ca_regions_free(struct ca_regions *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->infos; i++) {
		free(r->info[i].range);
		free(r->info[i].site);
	}
	free(r->info);
	ca_vec_free(&r->places);
	ca_vec_free(&r->own_heat);
	ca_map_free(&r->place_at);
	free(r);
}

/* ---- what a place belongs to ----------------------------------------------------------*/
static uint32_t add_region(struct ca_regions *r, uint32_t module, const struct ca_region *like)
{
	const struct ca_region *region = ca_catalog_add_region(r->catalog, like);

	if (!region)
		return 0;
	while (r->infos < region->id) {
		struct info *more = ca_vec_more(r->info, r->infos, sizeof *more);

		if (!more)
			return 0;
		r->info = more;
		memset(&r->info[r->infos++], 0, sizeof *more);
	}
	r->info[region->id - 1].module = module;
	return region->id;
}

static uint32_t function_region(struct ca_regions *r, uint32_t module, const char *name, const char *file,
				unsigned line, const char *at_file, unsigned at_line)
{
	struct ca_region like = { .kind = CA_REGION_FUNCTION,
				  .name = (char *)name,
				  .file = (char *)file,
				  .function = (char *)name,
				  .line = line,
				  .binary = (char *)ca_index_binary(ca_objects_index(r->objects, module)) };

	if (!ca_scope_has_function(r->scope, name))
		return 0;
	if (ca_scope_has_source_filter(r->scope) && !ca_scope_has_line(r->scope, at_file, at_line) &&
	    !ca_scope_has_line(r->scope, file, line))
		return 0;
	return add_region(r, module, &like);
}

static uint32_t line_region(struct ca_regions *r, uint32_t module, const char *file, unsigned line,
			    const char *function)
{
	const char *slash = strrchr(file, '/');
	char name[512];
	struct ca_region like = { .kind = CA_REGION_LINE,
				  .name = name,
				  .file = (char *)file,
				  .function = (char *)function,
				  .line = line,
				  .binary = (char *)ca_index_binary(ca_objects_index(r->objects, module)) };

	if (!line || !*file || !ca_scope_has_line(r->scope, file, line) ||
	    !ca_scope_has_function(r->scope, function))
		return 0;
	snprintf(name, sizeof name, "%s:%u", slash ? slash + 1 : file, line);
	return add_region(r, module, &like);
}

static void push(struct place *p, uint32_t region)
{
	if (!region || p->n == PER_PLACE)
		return;
	for (unsigned i = 0; i < p->n; i++)
		if (p->region[i] == region)
			return;
	p->region[p->n++] = region;
}

/* Innermost first: the line or function itself, then those it was inlined into. */
static void resolve(struct ca_regions *r, struct place *p)
{
	uint32_t module = CA_PLACE_MODULE(p->place);
	uint64_t address = CA_PLACE_OFFSET(p->place);
	const struct ca_index *index = ca_objects_index(r->objects, module);
	struct ca_index_inline chain[CHAIN];
	struct ca_index_function function = { .name = "", .file = "" };
	struct ca_index_line line = { .file = "" };
	bool have_function;
	size_t n;

	if (!index || !ca_objects_in_scope(r->objects, module))
		return;
	have_function = ca_index_find_function(index, address, &function);
	ca_index_find_line(index, address, &line);
	n = ca_index_find_inlines(index, address, chain, CHAIN);
	for (size_t i = n; i-- > 0;) {
		const char *outer = i ? chain[i - 1].name : function.name;

		if (r->mode == CA_MODE_FUNCTION) {
			push(p, function_region(r, module, chain[i].name, "", 0, line.file, line.line));
		} else {
			if (i == n - 1)
				push(p, line_region(r, module, line.file, line.line, chain[i].name));
			push(p, line_region(r, module, chain[i].call_file, chain[i].call_line, outer));
		}
	}
	if (r->mode == CA_MODE_FUNCTION && have_function)
		push(p, function_region(r, module, function.name, function.file, function.line, line.file,
					line.line));
	else if (r->mode == CA_MODE_LINE && n == 0)
		push(p, line_region(r, module, line.file, line.line, function.name));
}

static const struct place *lookup(struct ca_regions *r, ca_place place)
{
	const uint32_t *known = ca_map_find(&r->place_at, place);
	struct place *p;
	uint32_t *at;
	bool there;

	if (known)
		return (struct place *)r->places.at + *known;
	/* not before the index is there, else "nothing" would be remembered */
	if (!ca_objects_index(r->objects, CA_PLACE_MODULE(place)) || !(p = ca_vec_push(&r->places)))
		return NULL;
	at = ca_map_add(&r->place_at, place, &there);
	if (!at) {
		r->places.n--;
		return NULL;
	}
	*at = (uint32_t)(r->places.n - 1);
	p->place = place;
	resolve(r, p);
	return p;
}

bool ca_regions_count(struct ca_regions *r, const ca_place *frame, unsigned frames, unsigned weight,
		      bool waiting)
{
	uint32_t stack[STACK];
	unsigned n = 0;

	r->stamp++;
	for (unsigned i = 0; i < frames; i++) {
		const struct place *p = lookup(r, frame[i]);

		for (unsigned k = 0; p && k < p->n; k++) {
			struct info *info = &r->info[p->region[k] - 1];

			if (info->stamp == r->stamp)
				continue;
			info->stamp = r->stamp;
			info->samples += weight;
			if (n < STACK)
				stack[n++] = p->region[k];
		}
	}
	if (n && r->stacks)
		ca_stacks_add(r->stacks, stack, n, weight, waiting);
	return n > 0;
}

void ca_regions_keep_stacks(struct ca_regions *r, struct ca_stacks *stacks)
{
	r->stacks = stacks;
}

void ca_regions_rescope(struct ca_regions *r, uint32_t module)
{
	struct place *place = r->places.at;

	for (size_t i = 0; i < r->places.n; i++)
		if (CA_PLACE_MODULE(place[i].place) == module) {
			place[i].n = 0;
			resolve(r, &place[i]);
		}
}

uint64_t ca_regions_samples(const struct ca_regions *r, uint32_t region)
{
	return region && region <= r->infos ? r->info[region - 1].samples : 0;
}

uint32_t ca_regions_find(struct ca_regions *r, const struct ca_region *like)
{
	for (uint32_t m = 1; m < CA_MAX_MODULES; m++) {
		const struct ca_index *index = ca_objects_index(r->objects, m);

		if (index && ca_objects_in_scope(r->objects, m) &&
		    !strcmp(ca_index_binary(index), like->binary))
			return add_region(r, m, like);
	}
	return 0;
}

bool ca_regions_has(struct ca_regions *r, uint32_t region)
{
	return (region <= r->infos && r->info[region - 1].module) ||
	       ca_regions_find(r, ca_catalog_get_region(r->catalog, region));
}

/* ---- ranges and sites -------------------------------------------------------------------*/
static bool add_range(struct info *info, uint64_t low, uint64_t high)
{
	struct ca_range *more;

	if (info->ranges == CA_MAX_RANGES)
		return false;
	more = ca_vec_more(info->range, info->ranges, sizeof *more);
	if (!more)
		return false;
	info->range = more;
	info->range[info->ranges++] = (struct ca_range){ .module = info->module, .low = low, .high = high };
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct ca_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

/* Sorted, without overlaps: what the runtime's binary search needs. */
static void merge(struct info *info)
{
	unsigned n = 0;

	if (!info->ranges)
		return;
	qsort(info->range, info->ranges, sizeof *info->range, by_address);
	for (unsigned i = 1; i < info->ranges; i++) {
		if (info->range[i].low <= info->range[n].high) {
			if (info->range[i].high > info->range[n].high)
				info->range[n].high = info->range[i].high;
		} else {
			info->range[++n] = info->range[i];
		}
	}
	info->ranges = n + 1;
}

/* Ranges of the region's inlined copies; returns how many. */
static unsigned inline_ranges(struct info *info, const struct ca_region *region, const struct ca_index *index)
{
	size_t n = ca_index_inlines(index);
	unsigned before = info->ranges;

	for (size_t i = 0; i < n; i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if (region->kind == CA_REGION_FUNCTION
			    ? !strcmp(in.name, region->name)
			    : in.call_line == region->line && !strcmp(in.call_file, region->file))
			add_range(info, in.low, in.high);
	}
	return info->ranges - before;
}

static void own_ranges(struct info *info, const struct ca_region *region, const struct ca_index *index)
{
	size_t n = region->kind == CA_REGION_FUNCTION ? ca_index_functions(index) : ca_index_lines(index);

	for (size_t i = 0; i < n; i++) {
		if (region->kind == CA_REGION_FUNCTION) {
			struct ca_index_function f;

			ca_index_function_at(index, i, &f);
			if (!strcmp(f.name, region->name))
				add_range(info, f.low, f.high);
		} else {
			struct ca_index_line l;

			ca_index_line_at(index, i, &l);
			if (l.line == region->line && !strcmp(l.file, region->file))
				add_range(info, l.low, l.high);
		}
	}
}

/* The module's text, with the meetings in it planned. */
static struct ca_text *text_of(struct ca_regions *r, uint32_t module)
{
	struct ca_text *text = ca_objects_text(r->objects, module);

	if (!text || r->read[module])
		return text;
	r->read[module] = true;
	r->meetings +=
		ca_plan_meetings(text, module, r->meeting + r->meetings, CA_MAX_MEETINGS - r->meetings);
	return text;
}

static void plan_sites(struct ca_regions *r, struct info *info, const struct ca_region *region,
		       const struct ca_range *range, unsigned ranges)
{
	struct ca_text *text = text_of(r, info->module);
	struct ca_site site[CA_MAX_SITES];
	enum ca_status status;
	struct ca_err err;
	bool self = false;
	size_t n = 0;

	info->sampled = true;
	if (!text) {
		info->why = "its text cannot be read";
		return;
	}
	if (region->kind == CA_REGION_FUNCTION)
		status = ca_plan_function(text, info->module, range, ranges, site, CA_MAX_SITES, &n, &err);
	else
		status = ca_plan_line(text, info->module, range, ranges, site, CA_MAX_SITES, &n, &self, &err);
	if (status != CA_OK || !n || self) {
		info->why = self              ? "the line does work outside of calls"
			    : status == CA_OK ? "the line calls nothing"
					      : "its entries and exits cannot all be patched";
		return;
	}
	info->site = malloc(n * sizeof *site);
	if (!info->site)
		return;
	memcpy(info->site, site, n * sizeof *site);
	info->sites = n;
	info->sampled = false;
}

/* Where probes do not fit calls and functions they may fit the edges of the code. Of a function those of its
 * inlined copies come to its own sites; of a line they take the place of its calls. */
static void plan_edges(struct ca_regions *r, struct info *info, const struct ca_region *region,
		       const struct ca_range *range, unsigned ranges)
{
	size_t own = region->kind == CA_REGION_FUNCTION ? info->sites : 0, n = 0;
	struct ca_text *text = text_of(r, info->module);
	struct ca_site site[CA_MAX_SITES];
	struct ca_err err;

	if (own)
		memcpy(site, info->site, own * sizeof *site);
	if (!text ||
	    ca_plan_edges(text, info->module, range, ranges, site + own, CA_MAX_SITES - own, &n, &err) !=
		    CA_OK ||
	    !n)
		return;
	free(info->site);
	info->site = malloc((own + n) * sizeof *site);
	info->sites = info->site ? own + n : 0;
	if (!info->site)
		return;
	memcpy(info->site, site, info->sites * sizeof *site);
	info->sampled = false;
	info->timed = true;
}

/* Leaves out the ranges behind the first `own` that lie in those; returns how many are left. */
static unsigned apart(struct info *info, unsigned own)
{
	unsigned n = own;

	for (unsigned i = own; i < info->ranges; i++) {
		unsigned k = 0;

		while (k < own &&
		       (info->range[i].low < info->range[k].low || info->range[i].low >= info->range[k].high))
			k++;
		if (k == own)
			info->range[n++] = info->range[i];
	}
	info->ranges = n;
	return n - own;
}

static void prepare(struct ca_regions *r, struct info *info, const struct ca_region *region)
{
	const struct ca_index *index = ca_objects_index(r->objects, info->module);
	bool is_function = region->kind == CA_REGION_FUNCTION;
	unsigned own, copies;

	if (info->planned || !index)
		return;
	info->planned = true;
	own_ranges(info, region, index);
	own = info->ranges;
	if (own)
		plan_sites(r, info, region, info->range, own);
	copies = inline_ranges(info, region, index);
	if (copies && info->sites) {
		info->sampled = true;
		info->why = "parts of it are inlined";
	}
	if (!info->sites)
		info->sampled = true;
	if (is_function && (!own || info->sites) && (copies = apart(info, own)))
		plan_edges(r, info, region, info->range + own, copies);
	merge(info);
	if (!is_function && info->sampled && info->ranges)
		plan_edges(r, info, region, info->range, info->ranges);
}

static bool overlaps(const struct info *info, const struct ca_site *site)
{
	for (size_t i = 0; i < info->sites; i++)
		if (info->site[i].module == site->module &&
		    info->site[i].address < site->address + site->length &&
		    site->address < info->site[i].address + info->site[i].length)
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

void ca_regions_select(struct ca_regions *r, uint32_t region, bool exact, struct ca_selection *out,
		       const char **why)
{
	struct info *info = &r->info[region - 1];
	enum ca_heat heat = ca_regions_heat(r, region);
	bool sampled;

	prepare(r, info, ca_catalog_get_region(r->catalog, region));
	sampled = info->sampled || heat == CA_HEAT_TOO_HOT;
	out->region = region;
	out->ranges = info->ranges;
	if (info->ranges)
		memcpy(out->range, info->range, info->ranges * sizeof *out->range);
	out->exact = exact && !sampled;
	out->sites = out->exact ? (uint32_t)info->sites : 0;
	if (out->sites)
		memcpy(out->site, info->site, info->sites * sizeof *out->site);
	out->fine = out->exact && (info->timed || heat != CA_HEAT_COOL);
	if (out->fine)
		time_only(out->site, out->sites);
	/* Whichever way S is known. */
	for (size_t i = 0; i < r->meetings && out->sites < CA_SELECTION_SITES; i++)
		if (!overlaps(info, &r->meeting[i]))
			out->site[out->sites++] = r->meeting[i];
	*why = !exact || !sampled ? NULL : info->sampled ? info->why : "it is entered too often";
}

void ca_regions_sample(struct ca_regions *r, uint32_t region, const char *why)
{
	r->info[region - 1].sampled = true;
	r->info[region - 1].why = why;
}

enum ca_heat ca_regions_heat(const struct ca_regions *r, uint32_t region)
{
	const uint8_t *heat = r->heat->at;

	return region <= r->heat->n ? (enum ca_heat)heat[region - 1] : CA_HEAT_UNKNOWN;
}

void ca_regions_set_heat(struct ca_regions *r, uint32_t region, enum ca_heat heat)
{
	while (r->heat->n < region)
		if (!ca_vec_push(r->heat))
			return;
	((uint8_t *)r->heat->at)[region - 1] = (uint8_t)heat;
}

void ca_regions_keep_heat(struct ca_regions *r, struct ca_vec *heat)
{
	r->heat = heat;
}

bool ca_regions_index_in_scope(const struct ca_scope *scope, enum ca_mode mode, const struct ca_index *index)
{
	bool source = ca_scope_has_source_filter(scope);

	for (size_t i = 0; i < ca_index_lines(index) && (source || mode == CA_MODE_LINE); i++) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		if (ca_scope_has_line(scope, l.file, l.line))
			return true;
	}
	for (size_t i = 0; i < ca_index_functions(index) && mode == CA_MODE_FUNCTION && !source; i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		if (ca_scope_has_function(scope, f.name))
			return true;
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if (mode == CA_MODE_LINE ? ca_scope_has_line(scope, in.call_file, in.call_line)
					 : ca_scope_has_function(scope, in.name))
			return true;
	}
	return false;
}

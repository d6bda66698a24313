/* SPDX-License-Identifier: MIT */
/* Regions; see regions.h. */
#include "causal/conductor/regions.h"
#include "causal/conductor/region_parts.h"
#include "core/map.h"
#include "core/module.h"
#include "core/path.h"
#include "core/vec.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN = 32, PER_PLACE = 8, STACK = 256, WAITS = 16 };

struct place {
	ca_place place;
	bool in, main; /* in a binary in scope; in main itself there */
	bool spins;    /* in a loop that waits for another thread */
	bool yields;   /* in what such loops call, in scope or not */
	bool calls;    /* that was called from here, and the loop has been looked for */
	uint8_t n;
	uint32_t region[PER_PLACE]; /* innermost first */
};
struct info {
	struct ca_region_code code;
	unsigned parts; /* of a region that is several others */
	uint32_t part[CA_PARTS];
	unsigned percent[CA_PARTS];
	bool planned;
	uint64_t pairs[CA_PARTS], pairs_expected[CA_PARTS]; /* as in the selection */
	uint64_t samples, at_work;                          /* at_work: of them, those that are of no wait */
	uint64_t stamp;                                     /* of the last sample that counted it */
};
struct ca_regions {
	enum ca_mode mode;
	const struct ca_scope *scope;
	struct ca_objects *objects;
	struct ca_catalog *catalog;
	struct wait { /* a loop that waits for another thread, and gives up the CPU meanwhile */
		uint32_t module;
		uint64_t low, high;
	} wait[WAITS];
	unsigned waits;
	struct ca_stacks *stacks; /* all samples are told to it, too; may be NULL */
	struct ca_vec places;     /* struct place */
	struct ca_map place_at;   /* by place: where in places */
	struct info *info;        /* by region id - 1 */
	size_t infos;
	struct ca_vec own_heat, *heat; /* uint8_t, enum ca_heat, by region id - 1 */
	uint64_t stamp, in_main;
	struct ca_region_meetings meetings;
	struct ca_vec own_stores; /* of these, until others are given */
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
	r->own_stores.size = sizeof(struct ca_region_store);
	r->meetings.stores = &r->own_stores;
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
	for (size_t i = 0; i < r->infos; i++)
		ca_region_code_fini(&r->info[i].code);
	free(r->info);
	ca_vec_free(&r->places);
	ca_vec_free(&r->own_heat);
	ca_vec_free(&r->own_stores);
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
	r->info[region->id - 1].code.module = module;
	if (r->stacks && ca_path_is_openmp(region->binary))
		ca_stacks_set_team(r->stacks, region->id);
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

static bool is_yield(const char *function)
{
	return !strcmp(function, "sched_yield") || !strcmp(function, "__sched_yield") ||
	       !strcmp(function, "thrd_yield");
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
	struct ca_text *text;
	bool have_function;
	size_t n;

	if (!index)
		return;
	have_function = ca_index_find_function(index, address, &function);
	p->yields = have_function && is_yield(function.linkage);
	if (!ca_objects_in_scope(r->objects, module))
		return;
	ca_index_find_line(index, address, &line);
	n = ca_index_find_inlines(index, address, chain, CHAIN);
	p->in = true;
	text = ca_objects_text(r->objects, module);
	p->spins = text && have_function && ca_plan_spins(text, function.low, function.high, address);
	p->main = r->mode == CA_MODE_FUNCTION && have_function && !n && !strcmp(function.name, "main");
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

static struct place *lookup(struct ca_regions *r, ca_place place)
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

static bool is_wait(const struct ca_regions *r, ca_place at)
{
	for (unsigned i = 0; i < r->waits; i++)
		if (r->wait[i].module == CA_PLACE_MODULE(at) && CA_PLACE_OFFSET(at) >= r->wait[i].low &&
		    CA_PLACE_OFFSET(at) < r->wait[i].high)
			return true;
	return false;
}

/* Somebody yields who was called from this place. */
static void note_wait(struct ca_regions *r, struct place *p)
{
	struct wait wait = { .module = CA_PLACE_MODULE(p->place) };
	struct ca_text *text =
		p->calls || r->waits == WAITS ? NULL : ca_objects_text(r->objects, wait.module);
	struct ca_index_function f;

	if (!text ||
	    !ca_index_find_function(ca_objects_index(r->objects, wait.module), CA_PLACE_OFFSET(p->place), &f))
		return;
	p->calls = true;
	wait.low = f.low;
	wait.high = f.high;
	if (!is_wait(r, p->place) &&
	    ca_plan_waits_around(text, CA_PLACE_OFFSET(p->place), &wait.low, &wait.high))
		r->wait[r->waits++] = wait;
}

/* The innermost place in scope. yields: it calls what loops call that wait; called: something else, out of scope. */
static bool spins_at(struct ca_regions *r, struct place *p, bool yields, bool called)
{
	if (yields)
		note_wait(r, p);
	return yields || p->spins || (!called && is_wait(r, p->place));
}

bool ca_regions_spin(struct ca_regions *r, const ca_place *frame, unsigned frames)
{
	bool yields = false;

	for (unsigned i = 0; i < frames; i++) {
		struct place *p = lookup(r, frame[i]);

		if (p && p->in)
			return spins_at(r, p, yields, i > 0);
		yields |= p && p->yields;
	}
	return false;
}

bool ca_regions_count(struct ca_regions *r, const ca_place *frame, unsigned frames, unsigned weight,
		      bool waiting)
{
	bool inside = false, spins = false, yields = false;
	uint32_t stack[STACK];
	unsigned n = 0;

	r->stamp++;
	for (unsigned i = 0; i < frames; i++) {
		struct place *p = lookup(r, frame[i]);

		if (!inside && p && p->in && !waiting) {
			r->in_main += p->main;
			spins = spins_at(r, p, yields, i > 0);
		}
		yields |= p && p->yields;
		inside |= p && p->in;
		for (unsigned k = 0; p && k < p->n; k++) {
			struct info *info = &r->info[p->region[k] - 1];

			if (info->stamp == r->stamp)
				continue;
			info->stamp = r->stamp;
			info->samples += weight;
			info->at_work += waiting ? 0 : weight;
			if (n < STACK)
				stack[n++] = p->region[k];
		}
	}
	if (n && r->stacks)
		ca_stacks_add(r->stacks, stack, n, weight, waiting, spins);
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

uint64_t ca_regions_in_main(const struct ca_regions *r)
{
	return r->in_main;
}

uint64_t ca_regions_at_work(const struct ca_regions *r, uint32_t region)
{
	return region && region <= r->infos ? r->info[region - 1].at_work : 0;
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

uint32_t ca_regions_module(const struct ca_regions *r, uint32_t region)
{
	return region <= r->infos ? r->info[region - 1].code.module : 0;
}

bool ca_regions_has(struct ca_regions *r, uint32_t region)
{
	return ca_regions_module(r, region) || ca_regions_find(r, ca_catalog_get_region(r->catalog, region));
}

/* ---- selecting ---------------------------------------------------------------------------*/
/* The module's text, with the meetings in it planned. */
static struct ca_text *text_of(struct ca_regions *r, uint32_t module)
{
	struct ca_text *text = ca_objects_text(r->objects, module);

	if (text)
		ca_region_meetings_read(&r->meetings, text, ca_objects_index(r->objects, module), module);
	return text;
}

bool ca_regions_hand_over(struct ca_regions *r, ca_place end)
{
	uint32_t module = CA_PLACE_MODULE(end);
	struct ca_text *text = module < CA_MAX_MODULES && r->meetings.read[module]
				       ? ca_objects_text(r->objects, module)
				       : NULL;

	return text &&
	       ca_region_meetings_add_store(&r->meetings, text, ca_objects_index(r->objects, module), end);
}

static void prepare(struct ca_regions *r, struct info *info, const struct ca_region *region)
{
	struct ca_region_code *code = &info->code;
	const struct ca_index *index = ca_objects_index(r->objects, code->module);
	unsigned own;

	if (info->planned || !index)
		return;
	info->planned = true;
	own = ca_region_code_find(code, region, index);
	ca_region_code_plan(code, region, own, code->ranges ? text_of(r, code->module) : NULL);
}

uint32_t ca_regions_join(struct ca_regions *r, const char *name, const uint32_t *part,
			 const unsigned *percent, unsigned parts)
{
	struct ca_region like = *ca_catalog_get_region(r->catalog, part[0]);
	char none[] = "";
	struct info *info;
	uint32_t id;

	like.name = like.function = (char *)name;
	like.file = none;
	like.line = 0;
	id = add_region(r, r->info[part[0] - 1].code.module, &like);
	if (!id)
		return 0;
	info = &r->info[id - 1];
	info->parts = parts;
	memcpy(info->part, part, parts * sizeof *part);
	memcpy(info->percent, percent, parts * sizeof *percent);
	return id;
}

/* The fine sampler does not know of parts. */
static void select_parts(struct ca_regions *r, uint32_t region, bool exact, struct ca_selection *out,
			 const char **why)
{
	const struct info *whole = &r->info[region - 1];
	const struct ca_region_code *code[CA_PARTS];
	bool cool = exact && ca_regions_heat(r, region) <= CA_HEAT_COOL && !whole->code.sampled;

	out->region = region;
	for (unsigned k = 0; k < whole->parts; k++) {
		struct info *info = &r->info[whole->part[k] - 1];

		prepare(r, info, ca_catalog_get_region(r->catalog, whole->part[k]));
		code[k] = &info->code;
		cool = cool && ca_regions_heat(r, whole->part[k]) == CA_HEAT_COOL;
	}
	*why = !ca_region_parts_select(code, whole->percent, whole->parts, cool, out) || cool != exact
		       ? "one of its parts cannot be logged"
		       : NULL;
	ca_region_meetings_select(&r->meetings, code, whole->parts, out);
}

/* What was selected before has come to know more of itself; and this is known already. */
static void change_pairs(struct ca_regions *r, const struct info *info, struct ca_selection *out)
{
	struct info *before = out->region && out->region <= r->infos ? &r->info[out->region - 1] : NULL;

	for (unsigned k = 0; k < CA_PARTS && before; k++) {
		before->pairs[k] = atomic_load(&out->pairs[k]);
		before->pairs_expected[k] = atomic_load(&out->pairs_expected[k]);
	}
	for (unsigned k = 0; k < CA_PARTS; k++) {
		atomic_store(&out->pairs[k], info->pairs[k]);
		atomic_store(&out->pairs_expected[k], info->pairs_expected[k]);
	}
}

void ca_regions_select(struct ca_regions *r, uint32_t region, bool exact, struct ca_selection *out,
		       const char **why)
{
	struct info *info = &r->info[region - 1];
	const struct ca_region_code *code = &info->code;
	enum ca_heat heat = ca_regions_heat(r, region);

	change_pairs(r, info, out);
	if (info->parts) {
		select_parts(r, region, exact, out, why);
		return;
	}
	out->parts = 0;
	prepare(r, info, ca_catalog_get_region(r->catalog, region));
	out->region = region;
	ca_region_code_select(code, exact && heat != CA_HEAT_TOO_HOT, heat == CA_HEAT_COOL, out);
	/* whichever way S is known */
	ca_region_meetings_select(&r->meetings, &code, 1, out);
	*why = !exact          ? NULL
	       : code->sampled ? code->why
	       : heat == CA_HEAT_TOO_HOT
		       ? "it, or a way out of it, is passed too often, or threads change stacks in "
			 "it or enter it in other ways than by its entries"
		       : NULL;
}

void ca_regions_sample(struct ca_regions *r, uint32_t region, const char *why)
{
	r->info[region - 1].code.sampled = true;
	r->info[region - 1].code.why = why;
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

void ca_regions_keep_stores(struct ca_regions *r, struct ca_vec *stores)
{
	r->meetings.stores = stores;
}

/* Tells of the first address of each line, function and inlined copy that the filters name, until one is enough.
 * Returns whether one was. */
typedef bool named_fn(void *context, uint64_t address);

static bool each_named(const struct ca_scope *scope, enum ca_mode mode, const struct ca_index *index,
		       named_fn *enough, void *context)
{
	bool source = ca_scope_has_source_filter(scope);

	for (size_t i = 0; i < ca_index_lines(index) && (source || mode == CA_MODE_LINE); i++) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		if (ca_scope_has_line(scope, l.file, l.line) && enough(context, l.low))
			return true;
	}
	for (size_t i = 0; i < ca_index_functions(index) && mode == CA_MODE_FUNCTION && !source; i++) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		if (ca_scope_has_function(scope, f.name) && enough(context, f.low))
			return true;
	}
	for (size_t i = 0; i < ca_index_inlines(index) && (mode == CA_MODE_LINE || !source); i++) {
		struct ca_index_inline in;

		ca_index_inline_at(index, i, &in);
		if ((mode == CA_MODE_LINE ? ca_scope_has_line(scope, in.call_file, in.call_line)
					  : ca_scope_has_function(scope, in.name)) &&
		    enough(context, in.low))
			return true;
	}
	return false;
}

static bool first(void *context, uint64_t address)
{
	(void)context, (void)address;
	return true;
}

bool ca_regions_index_in_scope(const struct ca_scope *scope, enum ca_mode mode, const struct ca_index *index)
{
	return each_named(scope, mode, index, first, NULL);
}

struct named {
	struct ca_regions *regions;
	uint32_t module, *region;
	size_t n, max;
};

static bool too_many(void *context, uint64_t address)
{
	struct named *named = context;
	const struct place *p = lookup(named->regions, CA_PLACE(named->module, address));

	for (unsigned k = 0; p && k < p->n; k++) {
		size_t i = 0;

		while (i < named->n && named->region[i] != p->region[k])
			i++;
		if (i == named->max)
			return true;
		named->region[i] = p->region[k];
		named->n += i == named->n;
	}
	return false;
}

size_t ca_regions_named(struct ca_regions *r, uint32_t *region, size_t max)
{
	struct named named = { .regions = r, .region = region, .max = max };

	for (named.module = 1; named.module < CA_MAX_MODULES; named.module++) {
		const struct ca_index *index = ca_objects_index(r->objects, named.module);

		if (index && ca_objects_in_scope(r->objects, named.module) &&
		    each_named(r->scope, r->mode, index, too_many, &named))
			return max + 1;
	}
	return named.n;
}

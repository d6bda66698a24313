/* SPDX-License-Identifier: MIT */
/* One DWARF unit: functions with their ranges, and the calls inlined into them. Goes only
 * where code can be: namespaces, functions, blocks; types, most of all DIEs, are stepped
 * over. Lines are in line_table.c. Runs in several threads, each with a worker and a Dwarf
 * handle of its own (libdw's handles are not for sharing). Driver's process. */
#include "binary/index/dwarf_unit.h"
#include "binary/index/demangle.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NESTING = 200 };

/* A walk over one unit. */
struct walk {
	struct ca_dwarf_worker *worker;
	struct ca_line_table table; /* what file numbers in its DIEs mean */
	Dwarf_CU *cu;
	size_t budget; /* DIEs left; more would mean a loop in broken data */
	bool broken;
};

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute))
		return dwarf_formstring(&attribute);
	return NULL;
}

static bool scope_is_function(Dwarf_Die *scope)
{
	int tag = dwarf_tag(scope);

	return tag == DW_TAG_subprogram || tag == DW_TAG_lexical_block;
}

static int line_of(Dwarf_Die *die)
{
	int line;

	return dwarf_decl_line(die, &line) == 0 ? line : 0;
}

/* Note in worker->scopes the "ns::type::" of each function that the DIE's children declare. */
static void map_scopes(struct ca_dwarf_worker *worker, Dwarf_Die *parent, const char *scope, unsigned nesting)
{
	bool known, is_local = scope_is_function(parent);
	Dwarf_Die die;
	char inner[512];

	for (int more = dwarf_child(parent, &die); more == 0; more = dwarf_siblingof(&die, &die)) {
		const char *name;
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram: {
			/* those inside of functions, as Fortran has them, people call by their own names */
			uint32_t *place =
				is_local ? NULL : ca_map_add(&worker->scopes, (uintptr_t)die.addr, &known);
			if (place)
				*place = ca_strings_put(&worker->strings, scope);
			name = dwarf_diename(&die); /* lambdas in it have classes of its own */
			snprintf(inner, sizeof(inner), "%s%.200s()::", scope, name ? name : "");
			if (name && nesting < MAX_NESTING)
				map_scopes(worker, &die, inner, nesting + 1);
			break;
		}
		case DW_TAG_lexical_block:
			if (nesting < MAX_NESTING)
				map_scopes(worker, &die, scope, nesting + 1);
			break;
		case DW_TAG_namespace:
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
			name = dwarf_diename(&die);
			if (!name && is_local)
				snprintf(inner, sizeof(inner), "%s<lambda:%d>::", scope, line_of(&die));
			else
				snprintf(inner, sizeof(inner), "%s%.200s%s", scope, name ? name : "",
					 name ? "::" : "");
			if (nesting < MAX_NESTING)
				map_scopes(worker, &die, inner, nesting + 1);
			break;
		default:
			break;
		}
	}
}

static bool has_namespaces(int language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	default:
		return true;
	}
}

/* "ns::type::name" for a function that has no linkage name. To find what is around a DIE means
 * to walk its unit, so that is done once for each unit that has such functions. */
static uint32_t scoped_name(struct ca_dwarf_worker *worker, Dwarf_Die *die, const char *name)
{
	Dwarf_Die unit;
	char text[1024];
	bool known;

	if (!dwarf_diecu(die, &unit, NULL, NULL) || !has_namespaces(dwarf_srclang(&unit)))
		return ca_strings_put(&worker->strings, name);
	if (ca_map_add(&worker->scopes, (uintptr_t)unit.addr, &known) && !known)
		map_scopes(worker, &unit, "", 0);
	const uint32_t *scope = ca_map_find(&worker->scopes, (uintptr_t)die->addr);
	snprintf(text, sizeof(text), "%s%s", scope ? ca_strings_get(&worker->strings, *scope) : "", name);
	return ca_strings_put(&worker->strings, text);
}

/* Follows abstract origin or specification once, for its scopes. */
static bool origin_of(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attribute;

	return (dwarf_attr(die, DW_AT_abstract_origin, &attribute) ||
		dwarf_attr(die, DW_AT_specification, &attribute)) &&
	       dwarf_formref_die(&attribute, origin);
}

/* What people call the function that the DIE (or its origin) declares; 0: it has no name. */
static uint32_t name_of(struct ca_dwarf_worker *worker, Dwarf_Die *die)
{
	Dwarf_Die at = *die, origin;
	bool known;

	for (int i = 0; i < 4 && origin_of(&at, &origin); i++)
		at = origin;
	uint32_t *place = ca_map_add(&worker->names, (uintptr_t)at.addr, &known);
	if (place && known)
		return *place;
	const char *linkage = linkage_name(die);
	const char *plain = dwarf_diename(die);
	char *text = linkage ? ca_demangle(linkage) : NULL;
	uint32_t name = 0;
	if (text)
		name = ca_strings_put(&worker->strings, text);
	else if (plain)
		name = scoped_name(worker, &at, plain);
	else if (linkage)
		name = ca_strings_put(&worker->strings, linkage);
	free(text);
	if (place)
		*place = name;
	return name;
}

/* Iterates over the ranges of a DIE that lie in the binary's text. */
struct range_iterator {
	ptrdiff_t offset;
	Dwarf_Addr base;
	uint32_t low, high;
	bool broken;
};

static bool next_range(const struct walk *walk, Dwarf_Die *die, struct range_iterator *at)
{
	Dwarf_Addr low, high;

	while ((at->offset = dwarf_ranges(die, at->offset, &at->base, &low, &high)) > 0)
		if (ca_object_range(walk->worker->object, low, high, &at->low, &at->high))
			return true;
	at->broken = at->offset < 0;
	return false;
}

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

static const char *text_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

/* The name of a file in another unit's table. */
static uint32_t other_file(struct ca_dwarf_worker *worker, Dwarf_CU *cu, Dwarf_Word file)
{
	Dwarf_Attribute attribute;
	Dwarf_Die die;
	Dwarf_Word offset;

	if (worker->other != cu) {
		ca_line_table_free(&worker->other_table);
		worker->other = cu;
		if (!dwarf_cu_die(cu, &die, NULL, NULL, NULL, NULL, NULL, NULL) ||
		    !dwarf_attr(&die, DW_AT_stmt_list, &attribute) ||
		    dwarf_formudata(&attribute, &offset) != 0 ||
		    !ca_line_table_read(&worker->other_table, &worker->sections, offset,
					text_of(&die, DW_AT_comp_dir), dwarf_diename(&die), &worker->strings))
			ca_line_table_free(&worker->other_table);
	}
	return ca_line_table_file(&worker->other_table, file);
}

/* The file that the function is defined in. Its number may be one of another unit's table. */
static uint32_t declaration_file(struct walk *walk, Dwarf_Die *die)
{
	struct ca_dwarf_worker *worker = walk->worker;
	Dwarf_Attribute attribute;
	uint32_t *place, path;
	Dwarf_Word file;
	bool known;

	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ||
	    dwarf_formudata(&attribute, &file) != 0)
		return 0;
	if (attribute.cu == walk->cu)
		return ca_line_table_file(&walk->table, file);
	place = ca_map_add(&worker->files, (uintptr_t)attribute.valp, &known);
	if (place && known)
		return *place;
	if (dwarf_cu_getdwarf(attribute.cu) == worker->dwarf)
		path = other_file(worker, attribute.cu, file);
	else
		path = ca_strings_put(&worker->strings, dwarf_decl_file(die));
	if (place)
		*place = path;
	return path;
}

static uint32_t declaration_line(Dwarf_Die *die)
{
	int line = 0;

	return dwarf_decl_line(die, &line) == 0 && line > 0 ? (uint32_t)line : 0;
}

/* Returns whether any of its code is in the binary. */
static bool add_subprogram(struct walk *walk, Dwarf_Die *die, uint32_t *owner)
{
	struct ca_dwarf_worker *worker = walk->worker;
	struct range_iterator at = { 0 };
	size_t first = worker->subprograms.n;
	Dwarf_Addr entry;

	while (next_range(walk, die, &at)) {
		struct ca_subprogram *new = ca_vec_push(&worker->subprograms);
		if (!new)
			return false;
		*new = (struct ca_subprogram){ .low = at.low,
					       .high = at.high,
					       .owner = worker->owners,
					       .unit = worker->unit,
					       .entry = worker->subprograms.n - 1 == first };
	}
	walk->broken |= at.broken;
	if (worker->subprograms.n == first)
		return false;
	struct ca_subprogram common = { .name = name_of(worker, die) };
	common.linkage = ca_strings_put(&worker->strings, linkage_name(die));
	if (!common.linkage)
		common.linkage = ca_strings_put(&worker->strings, dwarf_diename(die));
	common.file = declaration_file(walk, die);
	common.line = declaration_line(die);
	bool has_entry = dwarf_entrypc(die, &entry) == 0;
	for (size_t i = first; i < worker->subprograms.n; i++) {
		struct ca_subprogram *sub = (struct ca_subprogram *)worker->subprograms.at + i;
		sub->name = common.name;
		sub->linkage = common.linkage;
		sub->file = common.file;
		sub->line = common.line;
		if (has_entry && worker->subprograms.n - first > 1)
			sub->entry = sub->low + worker->object->base == entry;
	}
	*owner = worker->owners++;
	return common.name != 0;
}

static uint32_t number(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value) != 0 ||
	    value > INT32_MAX)
		return 0;
	return (uint32_t)value;
}

static void add_inlined(struct walk *walk, Dwarf_Die *die, uint32_t owner, uint32_t depth)
{
	struct ca_dwarf_worker *worker = walk->worker;
	struct ca_inlined inlined = { .depth = depth, .owner = owner };
	struct range_iterator at = { 0 };
	bool first = true;

	while (next_range(walk, die, &at)) {
		if (first) {
			uint32_t file = number(die, DW_AT_call_file);
			inlined.name = name_of(worker, die);
			inlined.file = declaration_file(walk, die);
			inlined.line = declaration_line(die);
			inlined.call_line = number(die, DW_AT_call_line);
			inlined.call_file = ca_line_table_file(&walk->table, file);
			first = false;
		}
		inlined.low = at.low;
		inlined.high = at.high;
		ca_vec_add(&worker->inlines, &inlined, 1);
	}
	walk->broken |= at.broken;
}

/* owner: the function around us, UINT32_MAX outside of any. */
static void walk_children(struct walk *walk, Dwarf_Die *parent, uint32_t owner, uint32_t depth,
			  unsigned nesting)
{
	Dwarf_Die die;
	int more = dwarf_child(parent, &die);

	if (nesting > MAX_NESTING)
		more = -1;
	for (; more == 0; more = dwarf_siblingof(&die, &die)) {
		uint32_t inner = UINT32_MAX;
		if (walk->budget-- == 0) {
			more = -1;
			break;
		}
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			if (has_code(&die) && add_subprogram(walk, &die, &inner))
				walk_children(walk, &die, inner, 0, nesting + 1);
			break;
		case DW_TAG_inlined_subroutine:
			if (owner != UINT32_MAX) {
				add_inlined(walk, &die, owner, depth + 1);
				walk_children(walk, &die, owner, depth + 1, nesting + 1);
			}
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			walk_children(walk, &die, owner, depth, nesting + 1);
			break;
		default:
			break;
		}
		if (walk->broken)
			return;
	}
	if (more < 0)
		walk->broken = true;
}

/* The unit that holds the DIEs: the split one if the DIE is a skeleton. */
static bool find_split(struct ca_dwarf_worker *worker, Dwarf_Die *die, Dwarf_Die *out)
{
	Dwarf_Attribute attribute;
	Dwarf_Die split;
	const char *name = NULL;

	*out = *die;
	if (dwarf_attr(die, DW_AT_dwo_name, &attribute) || dwarf_attr(die, DW_AT_GNU_dwo_name, &attribute))
		name = dwarf_formstring(&attribute);
	if (!name)
		return true;
	if (dwarf_cu_info(die->cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 && split.addr) {
		*out = split;
		return true;
	}
	ca_warnings_add(&worker->warnings,
			"%s: %s with its debug information is missing; only symbols and lines of it "
			"are known",
			worker->object->path, name);
	worker->incomplete = true;
	return false;
}

/* The unit's line table, run for its lines. False: it is damaged. */
static bool read_lines(struct ca_dwarf_worker *worker, Dwarf_Die *die, struct ca_line_table *table)
{
	Dwarf_Attribute attribute;
	Dwarf_Word offset;
	size_t before = worker->lines.n;

	if (!dwarf_attr(die, DW_AT_stmt_list, &attribute))
		return true;
	if (dwarf_formudata(&attribute, &offset) != 0 ||
	    !ca_line_table_read(table, &worker->sections, offset, text_of(die, DW_AT_comp_dir),
				dwarf_diename(die), &worker->strings))
		return false;
	if (dwarf_tag(die) == DW_TAG_partial_unit)
		return true; /* shares the table of the units that import it */
	bool ok = ca_line_table_run(table, worker->object, &worker->lines);
	worker->has_lines |= worker->lines.n > before;
	return ok;
}

/* Split units count files in a table of their own, if they have one. */
static void use_split_table(struct walk *walk, Dwarf_Die *skeleton, Dwarf_Die *split)
{
	Elf *elf = dwarf_getelf(dwarf_cu_getdwarf(split->cu));
	struct ca_line_sections sections = {
		.line = ca_object_section(elf, ".debug_line.dwo", NULL),
		.str = ca_object_section(elf, ".debug_str.dwo", NULL),
		.line_str = ca_object_section(elf, ".debug_line_str.dwo", NULL),
	};
	struct ca_line_table table;

	if (!sections.line)
		return;
	if (ca_line_table_read(&table, &sections, 0, text_of(skeleton, DW_AT_comp_dir), dwarf_diename(split),
			       &walk->worker->strings)) {
		ca_line_table_free(&walk->table);
		walk->table = table;
	} else {
		ca_line_table_free(&table);
	}
}

void ca_dwarf_unit_read(struct ca_dwarf_worker *worker, Dwarf_Die *die, uint32_t unit)
{
	struct walk walk = { .worker = worker };
	size_t inlines = worker->inlines.n, subprograms = worker->subprograms.n;
	Dwarf_Die full;
	bool lines = read_lines(worker, die, &walk.table);

	worker->unit = unit;
	if (find_split(worker, die, &full)) {
		if (full.addr != die->addr)
			use_split_table(&walk, die, &full);
		walk.cu = full.cu;
		walk.budget = (size_t)1 << 31;
		walk_children(&walk, &full, UINT32_MAX, 0, 0);
	}
	if (walk.broken) {
		worker->inlines.n = inlines;
		worker->subprograms.n = subprograms;
	}
	const char *name = dwarf_diename(&full);
	if (walk.broken || !lines)
		ca_warnings_add(&worker->warnings,
				"%s: the debug information of %s is damaged; its %s left out",
				worker->object->path, name ? name : "a compilation unit",
				!walk.broken ? "lines are"
				: lines      ? "functions are"
					     : "lines and functions are");
	ca_line_table_free(&walk.table);
}

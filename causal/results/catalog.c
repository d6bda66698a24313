/* SPDX-License-Identifier: MIT */
/* The catalog: see catalog.h. Driver's process, one thread. */
#include "causal/results/catalog.h"
#include "core/vec.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const char *s)
{
	return s ? s : "";
}

/* All functions of one name in a binary are one region, with their inlined copies: its code is found by name. */
static bool same(const struct ca_region *a, const struct ca_region *b)
{
	return a->kind == b->kind && !strcmp(a->name, text(b->name)) && !strcmp(a->binary, text(b->binary)) &&
	       (a->kind == CA_REGION_FUNCTION || (a->line == b->line && !strcmp(a->file, text(b->file)) &&
						  !strcmp(a->function, text(b->function))));
}

/* An inlined copy does not tell where its function stands. */
static void set_place(struct ca_region *known, const struct ca_region *region)
{
	char *file;

	if (*known->file || !*text(region->file) || !(file = strdup(region->file)))
		return;
	free(known->file);
	known->file = file;
	known->line = region->line;
}

static void region_fini(struct ca_region *region)
{
	free(region->name);
	free(region->file);
	free(region->function);
	free(region->binary);
}

/* At the end. */
static const struct ca_region *append(struct ca_catalog *catalog, const struct ca_region *region)
{
	struct ca_region copy, *array = ca_vec_more(catalog->region, catalog->regions, sizeof *array);

	if (!array)
		return NULL;
	catalog->region = array;
	copy = (struct ca_region){
		.id = (uint32_t)catalog->regions + 1,
		.kind = region->kind,
		.name = strdup(text(region->name)),
		.file = strdup(text(region->file)),
		.function = strdup(text(region->function)),
		.binary = strdup(text(region->binary)),
		.line = region->line,
	};
	if (!copy.name || !copy.file || !copy.function || !copy.binary) {
		region_fini(&copy);
		return NULL;
	}
	array[catalog->regions] = copy;
	return &array[catalog->regions++];
}

const struct ca_region *ca_catalog_find_region(const struct ca_catalog *catalog,
					       const struct ca_region *region)
{
	for (size_t i = 0; i < catalog->regions; i++)
		if (same(&catalog->region[i], region))
			return &catalog->region[i];
	return NULL;
}

const struct ca_region *ca_catalog_add_region(struct ca_catalog *catalog, const struct ca_region *region)
{
	const struct ca_region *known = ca_catalog_find_region(catalog, region);

	if (!known)
		return append(catalog, region);
	set_place(&catalog->region[known->id - 1], region);
	return known;
}

bool ca_catalog_copy(struct ca_catalog *to, const struct ca_catalog *from)
{
	while (to->regions < from->regions)
		if (!append(to, &from->region[to->regions]))
			return false;
	return true;
}

const struct ca_point_info *ca_catalog_add_point(struct ca_catalog *catalog, uint32_t id, int kind,
						 const char *name)
{
	struct ca_point_info *array;
	char *copy;

	for (size_t i = 0; i < catalog->points; i++)
		if (catalog->point[i].id == id)
			return &catalog->point[i];
	array = ca_vec_more(catalog->point, catalog->points, sizeof *array);
	if (!array)
		return NULL;
	catalog->point = array;
	copy = strdup(text(name));
	if (!copy)
		return NULL;
	array[catalog->points] = (struct ca_point_info){ .id = id, .kind = kind, .name = copy };
	return &array[catalog->points++];
}

const struct ca_region *ca_catalog_get_region(const struct ca_catalog *catalog, uint32_t id)
{
	return id >= 1 && id <= catalog->regions ? &catalog->region[id - 1] : NULL;
}

const struct ca_point_info *ca_catalog_get_point(const struct ca_catalog *catalog, uint32_t id)
{
	for (size_t i = 0; i < catalog->points; i++)
		if (catalog->point[i].id == id)
			return &catalog->point[i];
	return NULL;
}

void ca_catalog_fini(struct ca_catalog *catalog)
{
	for (size_t i = 0; i < catalog->regions; i++)
		region_fini(&catalog->region[i]);
	for (size_t i = 0; i < catalog->points; i++)
		free(catalog->point[i].name);
	free(catalog->region);
	free(catalog->point);
	*catalog = (struct ca_catalog){ 0 };
}

/* SPDX-License-Identifier: MIT */
/* Regions of two builds; see causal/results/match.h. Functions are found by their name. Lines keep their
 * place in a function: of all distances by which the function may have moved, the one counts at which
 * most of its lines meet lines of the other build. Driver's process, one thread. */
#include "causal/results/match.h"
#include "core/path.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Of the same function of the same binary, wherever that lies now; the program may be called otherwise. */
static bool is_akin(const struct ca_region *a, const struct ca_region *b)
{
	return a->kind == b->kind && !strcmp(a->function, b->function) &&
	       ((a->program && b->program) || !strcmp(ca_path_base(a->binary), ca_path_base(b->binary))) &&
	       !strcmp(ca_path_base(a->file), ca_path_base(b->file)) &&
	       (a->kind == CA_REGION_LINE || !strcmp(a->name, b->name));
}

/* Lines of b's function that meet lines of a if they were `moved` further up there. */
static size_t meetings(const struct ca_catalog *a, const struct ca_catalog *b, const struct ca_region *of,
		       int64_t moved)
{
	size_t n = 0;

	for (size_t i = 0; i < b->regions; i++) {
		bool met = false;

		for (size_t j = 0; is_akin(&b->region[i], of) && j < a->regions && !met; j++)
			met = is_akin(&a->region[j], of) &&
			      (int64_t)b->region[i].line - (int64_t)a->region[j].line == moved;
		n += met;
	}
	return n;
}

/* By how many lines the function of b's region `of` has moved down since a. */
static int64_t distance(const struct ca_catalog *a, const struct ca_catalog *b, const struct ca_region *of)
{
	int64_t best = 0;
	size_t most = meetings(a, b, of, 0);

	for (size_t i = 0; i < b->regions; i++)
		for (size_t j = 0; is_akin(&b->region[i], of) && j < a->regions; j++) {
			int64_t moved = (int64_t)b->region[i].line - (int64_t)a->region[j].line;
			size_t n;

			if (!is_akin(&a->region[j], of))
				continue;
			n = meetings(a, b, of, moved);
			if (n > most || (n == most && llabs(moved) < llabs(best))) {
				most = n;
				best = moved;
			}
		}
	return best;
}

static uint32_t find(const struct ca_catalog *a, const struct ca_region *of, int64_t moved)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < a->regions && !found; i++)
		if (is_akin(&a->region[i], of) && (of->kind == CA_REGION_FUNCTION ||
						   (int64_t)a->region[i].line + moved == (int64_t)of->line))
			found = a->region[i].id;
	return found;
}

uint32_t *ca_match_regions(const struct ca_catalog *a, const struct ca_catalog *b)
{
	uint32_t *same = calloc(b->regions + 1, sizeof *same);
	const struct ca_region *last = NULL;
	int64_t moved = 0;

	for (size_t i = 0; same && i < b->regions; i++) {
		const struct ca_region *region = &b->region[i];

		if (region->kind == CA_REGION_LINE && !(last && is_akin(last, region)))
			moved = distance(a, b, region);
		last = region;
		same[region->id] = find(a, region, moved);
	}
	return same;
}

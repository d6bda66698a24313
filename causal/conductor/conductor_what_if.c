/* SPDX-License-Identifier: MIT */
/* Several regions at once, each at a speedup of its own (doc/METHOD.md, section 1): experiments with all of
 * them, with each alone, and at 0 %, dealt like cards. The plan has no part in it. Driver's process, one
 * thread; never blocks. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "causal/points/point_name.h"
#include "causal/points/point_places.h"
#include <string.h>

enum { ZERO, ALL, FIRST }; /* cards; then each part */

bool ca_conductor_is_what_if(const struct ca_conductor *c)
{
	return c->what_if.parts > 0;
}

enum ca_status ca_conductor_what_if_open(struct ca_conductor *c, struct ca_err *err)
{
	return *c->set->what_if ? ca_what_if_parse(&c->what_if, c->set->what_if, err) : CA_OK;
}

/* What the samples have shown by now; 0: not yet. */
static uint32_t find(struct ca_conductor *c, const char *name)
{
	for (uint32_t id = 1; id <= c->catalog.regions; id++)
		if (!strcmp(ca_catalog_get_region(&c->catalog, id)->name, name) &&
		    ca_regions_has(c->regions, id))
			return id;
	return 0;
}

/* Each part comes once before they come together: by then it is known how often it is entered. */
static unsigned deal(const struct ca_conductor *c)
{
	unsigned card[FIRST + CA_PARTS], n = FIRST + c->what_if.parts;
	uint64_t before = ca_sweep_experiments(c->opt.sweep);

	for (unsigned i = 0; i < n; i++)
		card[i] = i;
	return before < c->what_if.parts ? FIRST + (unsigned)before : ca_sweep_deal(c->opt.sweep, card, n);
}

bool ca_conductor_what_if_next(struct ca_conductor *c)
{
	uint32_t part[CA_PARTS], all;
	unsigned percent[CA_PARTS], card;

	for (unsigned i = 0; i < c->what_if.parts; i++) {
		part[i] = find(c, c->what_if.part[i].name);
		percent[i] = c->what_if.part[i].percent;
		if (!part[i])
			return false;
	}
	all = ca_regions_join(c->regions, c->set->what_if, part, percent, c->what_if.parts);
	if (!all)
		return false;
	card = deal(c);
	c->planned = false;
	c->region = card >= FIRST ? part[card - FIRST] : card == ZERO && c->selected ? c->selected : all;
	c->speedup = (card >= FIRST ? percent[card - FIRST]
		      : card == ALL ? ca_what_if_percent(&c->what_if)
				    : 0) *
		     (CA_MILLION / 100);
	return true;
}

/* No code is called so, and some nearly: of a function, as loops and lines have names of their own kind. */
static bool is_mistake(const struct ca_conductor *c, const char *text, char *near, size_t size)
{
	struct ca_point_name name = { .kind = CA_POINT_NAME_FUNCTION, .name = (char *)(uintptr_t)text };
	uint32_t used = atomic_load(&c->session->modules_used);

	*near = '\0';
	if (c->set->mode != CA_MODE_FUNCTION || strpbrk(text, "+:"))
		return false;
	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++) {
		const struct ca_index *index =
			ca_objects_in_scope(c->objects, m) ? ca_objects_index(c->objects, m) : NULL;

		if (index && ca_point_places_any(&name, index))
			return false;
		if (index && !*near)
			ca_point_name_near(&name, index, near, size);
	}
	return *near;
}

enum ca_status ca_conductor_what_if_check(struct ca_conductor *c, struct ca_err *err)
{
	char near[200];

	for (unsigned i = 0; i < c->what_if.parts; i++)
		if (!find(c, c->what_if.part[i].name) &&
		    is_mistake(c, c->what_if.part[i].name, near, sizeof near))
			return ca_err_set(err, CA_ERR_USAGE,
					  "what-if: no code in scope is called %s; did you mean %s?",
					  c->what_if.part[i].name, near);
	return CA_OK;
}

void ca_conductor_what_if_close(struct ca_conductor *c)
{
	char near[200];

	for (unsigned i = 0; i < c->what_if.parts; i++)
		if (!find(c, c->what_if.part[i].name) &&
		    !is_mistake(c, c->what_if.part[i].name, near, sizeof near))
			ca_conductor_say(c, 0,
					 "what-if: no sample shows %s in code that is in scope, so nothing "
					 "can be said of "
					 "it; its name must be as in the table of causal -- %s ...",
					 c->what_if.part[i].name, c->opt.command[0]);
}

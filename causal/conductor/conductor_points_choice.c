/* SPDX-License-Identifier: MIT */
/* The progress points that are chosen: kept for later runs, told, published, and checked over the runs.
 * Driver's process, one thread. */
#include "causal/conductor/conductor_points_parts.h"
#include "causal/conductor/sweep.h"
#include "core/point.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ca_conductor_points_store(struct ca_conductor *c, struct ca_point_choice *p)
{
	struct ca_err err;

	if (!c->opt.suggestion && ca_choice_write(&p->choice, c->opt.dir, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
}

/* Whoever asked for two points wants to see both. */
static size_t unit_of(const struct ca_point_choice *p, size_t i, enum ca_choice_how how)
{
	size_t k = how == CA_CHOICE_AUTO ? 0 : i;

	while (p->set->candidate[p->chosen[k]].group != p->set->candidate[p->chosen[i]].group)
		k++;
	return k;
}

bool ca_conductor_points_fill(struct ca_conductor *c, struct ca_point_choice *p, enum ca_choice_how how)
{
	struct ca_choice *choice = &p->choice;
	bool ok;

	ca_choice_fini(choice);
	choice->how = how;
	choice->run = c->opt.run;
	ok = (choice->program = strdup(c->opt.command[0]));
	for (size_t i = 0; i < p->n && how != CA_CHOICE_END_TO_END; i++) {
		const struct ca_candidate *from = &p->set->candidate[p->chosen[i]];

		choice->point[i] = (struct ca_choice_point){ .name = strdup(from->name),
							     .rate = from->rate,
							     .spread = from->spread,
							     .coverage = from->coverage,
							     .unit = unit_of(p, i, how) };
		ok &= choice->point[i].name != NULL;
		choice->points++;
	}
	return ok;
}

static void describe(struct ca_conductor *c, const struct ca_choice *choice)
{
	const struct ca_choice_point *best = &choice->point[0];
	char others[512] = "";

	for (size_t i = 1; i < choice->points; i++)
		snprintf(others + strlen(others), sizeof others - strlen(others),
			 "%s%s (%.0f visits a second)", i > 1 ? ", " : "also: ", choice->point[i].name,
			 choice->point[i].rate);
	ca_conductor_say(c, 0,
			 "progress point %s, chosen %s: %.0f visits a second, varying by %.0f %%, "
			 "with %.0f %% of the samples inside",
			 best->name, choice->how == CA_CHOICE_USER ? "by you" : "here", best->rate,
			 100 * best->spread, 100 * best->coverage);
	if (!c->opt.suggestion)
		ca_conductor_say(c, 0,
				 "%s%sall runs in %s use this choice; to choose otherwise: -P NAME, "
				 "--progress=ask, or -e",
				 others, *others ? "; " : "", c->opt.dir);
}

bool ca_conductor_points_were_published(const struct ca_point_choice *p, const char *name)
{
	for (size_t i = 0; i < p->replaced_n; i++)
		if (p->replaced[i] && !strcmp(p->replaced[i], name))
			return true;
	return false;
}

void ca_conductor_points_publish(struct ca_conductor *c, struct ca_point_choice *p)
{
	uint32_t used = atomic_load(&c->session->modules_used);

	for (size_t i = 0; i < p->n; i++) {
		struct ca_point_name name;

		if (ca_conductor_points_were_published(p, p->choice.point[i].name))
			continue;
		name = ca_point_search_take(p->search, p->chosen[i]);
		if (name.binary)
			c->session->requested_anywhere = 1;
		ca_requested_take(c->progress, &name, NULL);
	}
	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++) {
		const struct ca_index *index = ca_objects_index(c->objects, m);

		if (index && ca_requested_is_named(c->progress, index, m))
			ca_requested_index(c->progress, index, ca_objects_text(c->objects, m), m);
	}
}

void ca_conductor_points_choose(struct ca_conductor *c, struct ca_point_choice *p, enum ca_choice_how how)
{
	if (!ca_conductor_points_fill(c, p, how))
		return;
	ca_conductor_points_store(c, p);
	describe(c, &p->choice);
	if (c->opt.sweep)
		ca_sweep_first_time(c->opt.sweep, CA_SWEEP_ASKED);
}

void ca_conductor_points_list(struct ca_conductor *c, const struct ca_point_choice *p)
{
	for (size_t i = 0; i < p->set->n; i++) {
		const struct ca_candidate *k = &p->set->candidate[i];

		ca_conductor_say(c, 2,
				 "candidate %s: %.1f a second, spread %.3f, coverage %.2f, depth "
				 "%.1f, group %u, merit %.2f, rank %.2f, "
				 "%s",
				 k->name, k->rate, k->spread, k->coverage, k->depth, k->group, k->merit,
				 k->rank, ca_candidates_fault_name(k->fault));
	}
}

static bool is_dropped(const struct ca_choice *choice, size_t i)
{
	return choice->point[i].dropped != NULL;
}

static void drop(struct ca_conductor *c, struct ca_choice *choice, size_t i)
{
	choice->point[i].dropped = strdup("its visits differ between runs as the lengths of the runs do");
	ca_conductor_say(c, 0,
			 "progress point %s is dropped: its visits differ from run to run, and the number "
			 "of units of work should not",
			 choice->point[i].name);
}

void ca_conductor_points_check_runs(struct ca_conductor *c, struct ca_point_choice *p,
				    const struct ca_visits_now *visits)
{
	enum ca_tied tied[CA_CANDIDATES_CHOSEN];
	unsigned holds = 0, fails = 0, in_use = 0;
	double count[CA_CANDIDATES_CHOSEN] = { 0 };

	for (size_t i = 0; i < p->choice.points; i++)
		for (unsigned row = 0; row < visits->points; row++)
			if (c->session->point[row].kind == CA_POINT_THROUGHPUT &&
			    !strncmp(c->session->point[row].name, p->choice.point[i].name,
				     sizeof c->session->point[row].name - 1))
				count[i] = (double)visits->total[row];
	ca_sweep_add_counts(c->opt.sweep, count, p->choice.points, (double)c->sum.runtime / 1e9, tied);
	for (size_t i = 0; i < p->choice.points; i++) {
		if (is_dropped(&p->choice, i))
			continue;
		in_use++;
		holds += tied[i] == CA_TIED;
		fails += tied[i] == CA_NOT_TIED;
	}
	if (fails && holds) {
		for (size_t i = 0; i < p->choice.points; i++)
			if (!is_dropped(&p->choice, i) && tied[i] == CA_NOT_TIED)
				drop(c, &p->choice, i);
		ca_conductor_points_store(c, p);
	} else if (fails && fails == in_use && ca_sweep_counts_follow(c->opt.sweep, p->choice.points) &&
		   ca_sweep_first_time(c->opt.sweep, CA_SWEEP_UNTIED)) {
		ca_conductor_say(c, 0,
				 "the visits of each chosen progress point differ from run to run: "
				 "if each run does the same work, name a better one with -P, or "
				 "use -e");
	}
}

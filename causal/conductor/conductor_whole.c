/* SPDX-License-Identifier: MIT */
/* Runs that are measured as a whole, although nobody has asked for it (-e): of programs too short for
 * experiments inside a run. They come in pairs of one region, at 0 % and at a speedup in turn, so that
 * both see the same machine. Not for: how such a run is recorded (conductor.c). Driver's process, one
 * thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include <stdlib.h>

enum {
	FIT = 4,             /* experiments that have to fit into a run */
	PAIRS_FROM = 1 << 30 /* numbers of pairs, among those of the sweep's choices of regions */
};

/* The pool becomes one number; 0 also where it has no other one. */
static enum ca_status use_speedup(struct ca_conductor *c, unsigned percent, struct ca_err *err)
{
	struct ca_speedups one = { .percent = &percent, .count = 1 }, copy;
	enum ca_status status = ca_speedups_copy(&copy, &one, err);

	if (status)
		return status;
	ca_speedups_fini(&c->pool);
	c->pool = copy;
	return CA_OK;
}

/* Does nobody else say what is to be measured in it? */
static bool is_ours(const struct ca_conductor *c)
{
	return c->whole && !(c->opt.whole && c->opt.region);
}

static unsigned next_pair(const struct ca_conductor *c)
{
	return PAIRS_FROM + ca_sweep_whole_runs(c->opt.sweep) / 2;
}

/* What the sweep deals next of those above 0, or 0. */
static unsigned deal(struct ca_conductor *c)
{
	unsigned *above = calloc(c->pool.count + 1, sizeof *above), percent = 0;
	size_t n = 0;

	for (size_t i = 0; above && i < c->pool.count; i++)
		if (c->pool.percent[i])
			above[n++] = c->pool.percent[i];
	if (n)
		percent = ca_sweep_deal(c->opt.sweep, above, n);
	free(above);
	return percent;
}

enum ca_status ca_conductor_whole_open(struct ca_conductor *c, struct ca_err *err)
{
	unsigned percent = c->opt.speedup;

	if (c->set->end_to_end || !(c->opt.whole || (c->opt.sweep && ca_sweep_why_whole(c->opt.sweep))))
		return CA_OK;
	c->whole = true;
	c->own_set = *c->set;
	c->own_set.end_to_end = true;
	c->set = &c->own_set;
	if (ca_conductor_points_are_open(c)) {
		ca_conductor_points_free(c);
		c->points = NULL;
	}
	if (is_ours(c)) {
		c->group = next_pair(c);
		percent = ca_sweep_whole_runs(c->opt.sweep) % 2 ? deal(c) : 0;
	}
	return use_speedup(c, percent, err);
}

/* A pair's region is drawn from the samples of the run before, so that its runs need not wait for their
 * own. */
static void draw_region(struct ca_conductor *c)
{
	uint32_t region = ca_regions_draw(c->regions, ca_sweep_draw(c->opt.sweep));

	if (region)
		ca_sweep_set_choice(c->opt.sweep, next_pair(c), ca_catalog_get_region(&c->catalog, region));
}

static bool is_too_short(const struct ca_conductor *c, uint64_t runtime)
{
	double one = c->warm_up + c->length + c->set->cool_off * 1e6;

	return !c->set->end_to_end && c->set->delay <= 0 && c->set->duration <= 0 &&
	       (double)runtime < FIT * one;
}

void ca_conductor_whole_close(struct ca_conductor *c, uint64_t runtime)
{
	if (is_ours(c))
		ca_sweep_count_whole(c->opt.sweep);
	if (is_too_short(c, runtime)) {
		if (!ca_sweep_why_whole(c->opt.sweep))
			ca_conductor_say(c, 0,
					 "the program ends after %.2g s, too soon for experiments inside a "
					 "run: more runs of it (-n) are measured as a whole, in pairs",
					 (double)runtime / 1e9);
		ca_sweep_use_whole(c->opt.sweep, "the program is too short for experiments inside a run");
	}
	if (ca_sweep_why_whole(c->opt.sweep))
		draw_region(c);
}

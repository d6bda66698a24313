/* SPDX-License-Identifier: MIT */
/* What all runs of a sweep share; see sweep.h. */
#include "causal/conductor/sweep.h"
#include "binary/plan/texts.h"
#include "causal/conductor/regions.h"
#include "core/rng.h"
#include "core/vec.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RUNS = 64 }; /* the first ones are enough */

struct variant {
	struct ca_plan *plan;
	struct ca_stacks *stacks;
	char *point;
	struct ca_sweep_time time;
	struct ca_silence silence;
	struct ca_vec silent; /* uint64_t, by region */
};

struct ca_sweep {
	struct ca_rng rng;
	uint64_t draw, pick; /* of the next experiment: its region, its card */
	unsigned iteration;
	struct ca_catalog choice; /* its last region */
	unsigned *deck;           /* what is left of the pool, and behind it what was dealt */
	size_t cards, left;
	unsigned said; /* enum ca_sweep_topic */
	bool useful;
	double count[CA_CANDIDATES_CHOSEN][RUNS], seconds[RUNS];
	size_t runs;
	struct ca_units_run unit[RUNS];
	size_t units;
	struct ca_follow follow;
	struct ca_catalog catalog;
	struct ca_texts *texts;
	struct ca_vec heat, stores; /* as ca_regions_keep_heat and ca_regions_keep_stores want them */
	unsigned in_vain;
	struct variant *variant;
	size_t variants;
	double length, lengths; /* of runs that came to their ends, s, all together; how many */
	uint64_t experiments;
	struct ca_steady steady;
	const char *why_whole;
	unsigned whole_runs;
};

static void draw_next(struct ca_sweep *sweep)
{
	sweep->draw = ca_rng_next(&sweep->rng);
	sweep->pick = ca_rng_next(&sweep->rng) >> 32; /* of so many, % is fair to a few cards */
}

struct ca_sweep *ca_sweep_new(uint64_t seed)
{
	struct ca_sweep *sweep = calloc(1, sizeof *sweep);

	if (!sweep || !(sweep->texts = ca_texts_new())) {
		free(sweep);
		return NULL;
	}
	sweep->heat.size = 1;
	sweep->stores.size = sizeof(struct ca_region_store);
	ca_rng_init(&sweep->rng, seed);
	draw_next(sweep);
	return sweep;
}

void ca_sweep_free(struct ca_sweep *sweep)
{
	if (sweep) {
		ca_catalog_fini(&sweep->choice);
		ca_follow_fini(&sweep->follow);
		ca_catalog_fini(&sweep->catalog);
		ca_texts_free(sweep->texts);
		ca_vec_free(&sweep->heat);
		ca_vec_free(&sweep->stores);
		for (size_t i = 0; i < sweep->variants; i++) {
			ca_plan_free(sweep->variant[i].plan);
			ca_stacks_free(sweep->variant[i].stacks);
			free(sweep->variant[i].point);
			ca_vec_free(&sweep->variant[i].silent);
		}
		free(sweep->variant);
		ca_steady_fini(&sweep->steady);
		free(sweep->deck);
	}
	free(sweep);
}

static int by_value(const void *a, const void *b)
{
	const unsigned *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The same cards, in whatever order? Another variant may have another pool. */
static bool same_cards(const struct ca_sweep *sweep, const unsigned *pool, size_t n)
{
	unsigned *a, *b;
	bool same = false;

	if (sweep->cards != n || !(a = malloc(2 * n * sizeof *a)))
		return false;
	b = a + n;
	memcpy(a, sweep->deck, n * sizeof *a);
	memcpy(b, pool, n * sizeof *b);
	qsort(a, n, sizeof *a, by_value);
	qsort(b, n, sizeof *b, by_value);
	same = !memcmp(a, b, n * sizeof *a);
	free(a);
	return same;
}

uint64_t ca_sweep_draw(const struct ca_sweep *sweep)
{
	return sweep->draw;
}

unsigned ca_sweep_deal(struct ca_sweep *sweep, const unsigned *pool, size_t n)
{
	if (!same_cards(sweep, pool, n)) {
		unsigned *deck = realloc(sweep->deck, n * sizeof *deck);

		if (!deck)
			return pool[sweep->pick % n];
		memcpy(deck, pool, n * sizeof *deck);
		sweep->deck = deck;
		sweep->cards = sweep->left = n;
	}
	return sweep->deck[sweep->pick % sweep->left];
}

void ca_sweep_begun(struct ca_sweep *sweep)
{
	if (sweep->left) {
		size_t i = sweep->pick % sweep->left--;
		unsigned card = sweep->deck[i];

		sweep->deck[i] = sweep->deck[sweep->left];
		sweep->deck[sweep->left] = card;
		if (!sweep->left)
			sweep->left = sweep->cards;
	}
	draw_next(sweep);
}

const struct ca_region *ca_sweep_get_choice(const struct ca_sweep *sweep, unsigned iteration)
{
	return sweep->iteration == iteration && sweep->choice.regions ? &sweep->choice.region[0] : NULL;
}

void ca_sweep_set_choice(struct ca_sweep *sweep, unsigned iteration, const struct ca_region *region)
{
	if (ca_sweep_get_choice(sweep, iteration))
		return;
	ca_catalog_fini(&sweep->choice);
	memset(&sweep->choice, 0, sizeof sweep->choice);
	ca_catalog_add_region(&sweep->choice, region);
	sweep->iteration = iteration;
}

struct ca_catalog *ca_sweep_catalog(struct ca_sweep *sweep)
{
	return &sweep->catalog;
}

static struct variant *find_variant(struct ca_sweep *sweep, size_t number)
{
	while (sweep->variants <= number) {
		struct variant *more = ca_vec_more(sweep->variant, sweep->variants, sizeof *more);

		if (!more)
			return NULL;
		sweep->variant = more;
		more[sweep->variants++] = (struct variant){ 0 };
	}
	return &sweep->variant[number];
}

struct ca_vec *ca_sweep_heat(struct ca_sweep *sweep)
{
	return &sweep->heat;
}

struct ca_vec *ca_sweep_stores(struct ca_sweep *sweep)
{
	return &sweep->stores;
}

struct ca_texts *ca_sweep_texts(struct ca_sweep *sweep)
{
	return sweep->texts;
}

unsigned *ca_sweep_in_vain(struct ca_sweep *sweep)
{
	return &sweep->in_vain;
}

struct ca_plan *ca_sweep_plan(struct ca_sweep *sweep, size_t number, const struct ca_plan_options *options,
			      struct ca_stacks **stacks)
{
	struct variant *variant = find_variant(sweep, number);

	if (!variant)
		return NULL;
	if (!variant->plan)
		variant->plan = ca_plan_new(options);
	if (!variant->stacks)
		variant->stacks = ca_stacks_new();
	if (variant->plan && sweep->lengths > 0)
		ca_plan_set_length(variant->plan, sweep->length / sweep->lengths);
	*stacks = variant->stacks;
	return *stacks ? variant->plan : NULL;
}

/* What whole runs tell as well as is asked for needs no more of them. Of those before this run only: its own codes get
 * their numbers in the sweep's catalogue when it ends, in the order of its own. */
static void settle(struct ca_sweep *sweep)
{
	struct ca_steady *steady = &sweep->steady;

	for (size_t i = 0; i < steady->regions.regions; i++) {
		const struct ca_region *region =
			ca_catalog_find_region(&sweep->catalog, &steady->regions.region[i]);
		bool settled = region && sweep->variants > 0;

		for (size_t k = 0; k < sweep->variants && settled; k++)
			settled = sweep->variant[k].plan &&
				  ca_plan_is_settled(sweep->variant[k].plan, region->id);
		steady->region[i].settled = settled;
	}
}

bool ca_sweep_is_decided(struct ca_sweep *sweep, unsigned *rows)
{
	bool decided = sweep->variants > 0;
	unsigned others;

	*rows = 0;
	if (!sweep->why_whole && !ca_sweep_is_alone(sweep) && !ca_steady_is_seen(&sweep->steady))
		return false;
	for (size_t i = 0; i < sweep->variants && decided; i++)
		decided = sweep->variant[i].plan &&
			  ca_plan_is_decided(sweep->variant[i].plan, i ? &others : rows);
	settle(sweep);
	return decided;
}

bool ca_sweep_is_vague(const struct ca_sweep *sweep)
{
	return sweep->variants && sweep->variant[0].plan && ca_plan_is_vague(sweep->variant[0].plan);
}

bool ca_sweep_next_whole(struct ca_sweep *sweep, size_t number, const struct ca_region **region,
			 unsigned *percent)
{
	struct variant *variant = find_variant(sweep, number);
	struct ca_plan_step step;

	if (!variant || !variant->plan)
		return false;
	ca_plan_use_whole(variant->plan, ca_sweep_is_alone(sweep));
	if (!ca_plan_next(variant->plan, &step))
		return false;
	ca_plan_begun(variant->plan);
	*percent = step.percent;
	*region = ca_catalog_get_region(
		&sweep->catalog, step.region ? step.region : ca_plan_draw_zero(variant->plan, sweep->draw));
	return *region;
}

void ca_sweep_count_experiment(struct ca_sweep *sweep)
{
	sweep->experiments++;
}

uint64_t ca_sweep_experiments(const struct ca_sweep *sweep)
{
	return sweep->experiments;
}

void ca_sweep_set_useful(struct ca_sweep *sweep)
{
	sweep->useful = true;
}

bool ca_sweep_is_useful(const struct ca_sweep *sweep)
{
	return sweep->useful;
}

bool ca_sweep_is_point(struct ca_sweep *sweep, size_t number, const char *name)
{
	struct variant *variant = find_variant(sweep, number);

	if (variant && !variant->point)
		variant->point = strdup(name);
	return variant && variant->point && !strcmp(variant->point, name);
}

void ca_sweep_forget_point(struct ca_sweep *sweep, size_t number)
{
	struct variant *variant = find_variant(sweep, number);

	if (!variant || !variant->point)
		return;
	free(variant->point);
	variant->point = NULL;
	variant->silence = (struct ca_silence){ 0 };
	variant->silent.n = 0;
	ca_plan_forget(variant->plan);
}

void ca_sweep_add_time(struct ca_sweep *sweep, size_t number, struct ca_sweep_time run)
{
	struct variant *variant = find_variant(sweep, number);

	if (!variant)
		return;
	variant->time.periods += run.periods;
	variant->time.squares += run.squares;
	variant->time.elapsed += run.elapsed;
	variant->time.cpu += run.cpu;
	variant->time.lost += run.lost;
}

void ca_sweep_add_silence(struct ca_sweep *sweep, size_t number, const struct ca_silence *run)
{
	struct variant *variant = find_variant(sweep, number);

	if (!variant)
		return;
	ca_estimate_silence_add(&variant->silence, run);
	if (variant->plan)
		ca_plan_set_silence(variant->plan, &variant->silence);
}

void ca_sweep_add_silent(struct ca_sweep *sweep, size_t number, uint32_t region, uint64_t samples)
{
	struct variant *variant = find_variant(sweep, number);
	uint64_t *sum;

	if (!variant)
		return;
	variant->silent.size = sizeof *sum;
	sum = ca_vec_reach(&variant->silent, region);
	if (sum)
		*sum += samples;
}

uint64_t ca_sweep_silent(const struct ca_sweep *sweep, size_t number, uint32_t region)
{
	const struct ca_vec *silent = number < sweep->variants ? &sweep->variant[number].silent : NULL;

	return silent && region < silent->n ? ((const uint64_t *)silent->at)[region] : 0;
}

struct ca_sweep_time ca_sweep_time(const struct ca_sweep *sweep, size_t number)
{
	return number < sweep->variants ? sweep->variant[number].time : (struct ca_sweep_time){ 0 };
}

double ca_sweep_length(const struct ca_sweep *sweep)
{
	return sweep->lengths > 0 ? sweep->length / sweep->lengths : 0;
}

unsigned ca_sweep_lengths(const struct ca_sweep *sweep)
{
	return (unsigned)sweep->lengths;
}

void ca_sweep_add_length(struct ca_sweep *sweep, unsigned run, double seconds)
{
	sweep->length += seconds;
	sweep->lengths++;
	for (size_t i = 0; i < sweep->variants; i++)
		if (sweep->variant[i].plan) {
			ca_plan_set_length(sweep->variant[i].plan, sweep->length / sweep->lengths);
			ca_plan_set_run(sweep->variant[i].plan, run, seconds);
		}
}

const char *ca_sweep_why_whole(const struct ca_sweep *sweep, const struct ca_region **region,
			       unsigned *percent)
{
	*percent = 0;
	*region = sweep->why_whole ? NULL : ca_steady_wants(&sweep->steady, percent);
	if (sweep->why_whole || !*region)
		return sweep->why_whole;
	return ca_steady_is_coarse(&sweep->steady, *region)
		       ? "whole runs tell sooner than experiments inside a run, which vary"
		       : "experiments inside a run may live on what is stored in queues";
}

struct ca_steady *ca_sweep_steady(struct ca_sweep *sweep)
{
	return &sweep->steady;
}

void ca_sweep_use_whole(struct ca_sweep *sweep, const char *why)
{
	if (!sweep->why_whole)
		sweep->why_whole = why;
}

unsigned ca_sweep_whole_runs(const struct ca_sweep *sweep)
{
	return sweep->whole_runs;
}

void ca_sweep_count_whole(struct ca_sweep *sweep)
{
	sweep->whole_runs++;
}

bool ca_sweep_first_time(struct ca_sweep *sweep, enum ca_sweep_topic topic)
{
	bool first = !(sweep->said & (unsigned)topic);

	sweep->said |= (unsigned)topic;
	return first;
}

bool ca_sweep_is_first(const struct ca_sweep *sweep, enum ca_sweep_topic topic)
{
	return !(sweep->said & (unsigned)topic);
}

bool ca_sweep_is_alone(const struct ca_sweep *sweep)
{
	return !ca_sweep_is_first(sweep, CA_SWEEP_ALONE) && ca_sweep_is_first(sweep, CA_SWEEP_PAID);
}

void ca_sweep_add_counts(struct ca_sweep *sweep, const double *count, size_t n, double seconds,
			 enum ca_tied *tied)
{
	size_t run = sweep->runs;

	if (run < RUNS) {
		sweep->seconds[run] = seconds;
		for (size_t i = 0; i < n; i++)
			sweep->count[i][run] = count[i];
		sweep->runs++;
	}
	for (size_t i = 0; i < n; i++)
		tied[i] = ca_candidates_tied(sweep->count[i], sweep->seconds, sweep->runs);
}

bool ca_sweep_add_unit(struct ca_sweep *sweep, const struct ca_units_run *run)
{
	if (sweep->units < RUNS)
		sweep->unit[sweep->units++] = *run;
	return ca_units_are_refuted(sweep->unit, sweep->units);
}

/* Largest to smallest, less 1. */
static double range_of(const double *value, size_t n)
{
	double low = value[0], high = value[0];

	for (size_t i = 1; i < n; i++) {
		low = value[i] < low ? value[i] : low;
		high = value[i] > high ? value[i] : high;
	}
	return low > 0 ? high / low - 1 : 0;
}

bool ca_sweep_counts_follow(const struct ca_sweep *sweep, size_t n)
{
	double rate[RUNS];

	if (sweep->runs < 2 || range_of(sweep->seconds, sweep->runs) < 0.1)
		return false;
	for (size_t i = 0; i < n; i++) {
		for (size_t run = 0; run < sweep->runs; run++)
			rate[run] = sweep->count[i][run] / sweep->seconds[run];
		if (2 * range_of(rate, sweep->runs) > range_of(sweep->count[i], sweep->runs))
			return false;
	}
	return true;
}

struct ca_follow *ca_sweep_follow(struct ca_sweep *sweep)
{
	return &sweep->follow;
}

bool ca_sweep_find_command(const char *name, char *path, size_t size)
{
	const char *list = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, size, "%s", name);
		return access(path, X_OK) == 0;
	}
	for (list = list ? list : "/usr/bin:/bin"; *list; list = *end ? end + 1 : end) {
		end = strchrnul(list, ':');
		if ((size_t)snprintf(path, size, "%.*s/%s", end > list ? (int)(end - list) : 1,
				     end > list ? list : ".", name) < size &&
		    access(path, X_OK) == 0)
			return true;
	}
	return false;
}

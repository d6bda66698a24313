/* SPDX-License-Identifier: MIT */
/* Where in the run experiments lie. What code wins may differ from one part of a run to the next, and which parts
 * a region's experiments have met is partly a matter of when the sweep began, and when it ended. So each part
 * of the run counts as much as it is long, and of parts that none has met the interval says so. The reasoning
 * is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = CA_RUN_PARTS };
enum { RUNS = 2 };                     /* in one, places are times */
static const double beyond = 1.3;      /* the farthest neighbour in place: a zero there would not count */
static const double most_weight = 3;   /* of an experiment, or least: 1 / that */
static const double silent = 0.02;     /* of a part's experiments: that is no more than chance */
static const double met = 0.5;         /* of an experiment, or of the part, that has met it */
static const double fair = 0.67;       /* of the experiments that a part would have if all had as many */
static const double least_late = 0.02; /* of a run: until then all libraries come */

/* ---- the same place in other runs ----------------------------------------------------------------*/
static int by_place(const void *a, const void *b, void *items)
{
	const struct ca_est_item *item = items, *x = &item[*(const uint32_t *)a],
				 *y = &item[*(const uint32_t *)b];

	return (x->place > y->place) - (x->place < y->place);
}

bool ca_estimate_place(struct ca_est *est)
{
	for (size_t i = 0; i < est->items; i++) {
		struct ca_est_item *item = &est->item[i];

		if (est->runs < RUNS || !(item->to > item->from) || !(item->elapsed > 0))
			return true;
		/* of what was paid, some lay on the critical path and some did not */
		item->place = item->from + (item->elapsed - (item->paying > 0 ? item->paying / 2 : 0)) / 2;
	}
	free(est->placed);
	est->placed = calloc(est->zeros + 1, sizeof *est->placed);
	if (!est->placed)
		return false;
	memcpy(est->placed, est->zero, est->zeros * sizeof *est->zero);
	qsort_r(est->placed, est->zeros, sizeof *est->placed, by_place, est->item);
	return true;
}

unsigned ca_estimate_places(const struct ca_est *est)
{
	unsigned places = CA_EST_PLACES;

	while (places && est->zeros < 4 * places)
		places = places > 2 ? places / 2 : 0;
	return est->placed ? places : 0;
}

uint32_t ca_estimate_near_place(const struct ca_est *est, size_t i, unsigned k, uint32_t *out, double *weight)
{
	const struct ca_est_item *item = &est->item[i];
	size_t low = 0, high = est->zeros;
	uint32_t n = 0, before;
	double far = 0;

	while (low < high) { /* the first zero that is not before it */
		size_t middle = (low + high) / 2;

		if (est->item[est->placed[middle]].place < item->place)
			low = middle + 1;
		else
			high = middle;
	}
	for (high = low; low > 0 && n < k / 2; low--)
		if (est->placed[low - 1] != i)
			out[n++] = est->placed[low - 1];
	for (before = n; high < est->zeros && n < before + k / 2; high++)
		if (est->placed[high] != i)
			out[n++] = est->placed[high];
	for (uint32_t z = 0; z < n; z++)
		far = fmax(far, fabs(est->item[out[z]].place - item->place));
	for (uint32_t z = 0; z < n; z++)
		weight[z] = far > 0 ? 1 - fabs(est->item[out[z]].place - item->place) / (beyond * far) : 1;
	return n;
}

/* ---- parts of the run -----------------------------------------------------------------------------*/
struct met {
	double time[PARTS];    /* s at 0 %, of experiments in it */
	double number[PARTS];  /* experiments */
	double covered[PARTS]; /* ... and how much of it they took */
};

int ca_estimate_part(double seconds, double length)
{
	double at = floor(PARTS * seconds / length);

	return at < 0 ? 0 : at >= PARTS ? PARTS - 1 : (int)at;
}

/* How much of what lies between two times of a run is in its k-th part. */
static double inside(double from, double to, double length, int k)
{
	double begin = k * length / PARTS, end = k + 1 < PARTS ? begin + length / PARTS : INFINITY;

	return fmax(0, fmin(to, end) - fmax(from, begin)) / (to - from);
}

void ca_estimate_hear(struct ca_est *est, const struct ca_observation *o, double length)
{
	bool used = o->cost > 0;

	for (int k = 0; k < PARTS && length > 0 && o->to > o->from; k++)
		est->heard[used][k] += inside(o->from, o->to, length, k);
}

/* How much of the k-th part of the run there is to know: without what the point is not passed in. */
static double weight_of(const struct ca_est *est, int k)
{
	double all = est->heard[0][k] + est->heard[1][k];

	return all > 0 ? est->heard[1][k] / all : 1;
}

/* Do all experiments together lie all over the run? Then each region's do so by chance, as a round has its codes
 * in random order, and their scatter tells what that does. */
static bool is_fair(const struct ca_est *est)
{
	double all = 0, least = INFINITY;

	for (int k = 0; k < PARTS; k++) {
		double here = est->heard[0][k] + est->heard[1][k];

		all += here;
		least = fmin(least, here);
	}
	return PARTS * least >= fair * all;
}

bool ca_estimate_is_heard(const struct ca_est *est)
{
	bool heard = est->length > 0;

	for (int k = 0; k < PARTS; k++)
		heard = heard && est->heard[1][k] >= met && !(est->heard[0][k] > silent * est->heard[1][k]);
	return heard;
}

static bool is_placed(const struct ca_est *est, const struct ca_est_item *item)
{
	return est->length > 0 && item->speedup && item->per_visit && item->to > item->from;
}

static double usual_time(const struct ca_est_item *item)
{
	return item->visits * item->base;
}

static void add(const struct ca_est *est, const struct ca_est_item *item, struct met *m)
{
	for (int k = 0; k < PARTS && is_placed(est, item); k++) {
		double part = inside(item->from, item->to, est->length, k);

		m->time[k] += part * usual_time(item);
		m->number[k] += part;
		m->covered[k] += part * (item->to - item->from) * PARTS / est->length;
	}
}

static double factor_of(const struct ca_est *est, const struct ca_est_item *item, const struct met *m)
{
	double time = 0, weight = 0, factor = 0;

	for (int k = 0; k < PARTS; k++) {
		time += m->time[k];
		weight += m->time[k] > 0 ? weight_of(est, k) : 0;
	}
	for (int k = 0; k < PARTS && weight > 0; k++)
		if (m->time[k] > 0)
			factor += inside(item->from, item->to, est->length, k) * weight_of(est, k) / weight /
				  (m->time[k] / time);
	return fmin(fmax(factor, 1 / most_weight), most_weight);
}

static void multiply(struct ca_est_item *item, double factor)
{
	double *const of[] = { &item->cost,  &item->visits,  &item->elapsed, &item->active,
			       &item->delay, &item->still,   &item->paying,  &item->limits,
			       &item->work,  &item->periods, &item->inside,  &item->lost };

	for (size_t i = 0; i < sizeof of / sizeof *of; i++)
		*of[i] *= factor;
}

bool ca_estimate_weigh_parts(struct ca_est *est)
{
	uint32_t regions = 0;
	struct met *all;

	if (is_fair(est))
		return true;
	for (size_t i = 0; i < est->items; i++)
		regions = est->item[i].region > regions ? est->item[i].region : regions;
	all = calloc((size_t)regions + 1, sizeof *all);
	for (size_t i = 0; i < est->items && all; i++)
		add(est, &est->item[i], &all[est->item[i].region]);
	for (size_t i = 0; i < est->items && all; i++)
		if (is_placed(est, &est->item[i]) && usual_time(&est->item[i]) > 0)
			multiply(&est->item[i], factor_of(est, &est->item[i], &all[est->item[i].region]));
	free(all);
	return all;
}

/* ---- parts that none of its experiments has met, or can meet ------------------------------------*/
struct missed {
	double part;  /* of the runs */
	double share; /* of S there, at most */
	double late;  /* of the runs, before there is such code: nothing is won there */
};

/* What the effect at speedup p, in `unit`, may be then: 0 to p x share in those parts. */
static void widen(double *effect, double *low, double *high, double p, double unit, const struct missed *m)
{
	double part = m->part / (1 - m->late);

	*low = *effect - hypot(*effect - *low, part * fmax(*effect, 0));
	*high = *effect + hypot(*high - *effect, part * fmax(unit * p * m->share - *effect, 0));
	*low *= 1 - m->late;
	*high *= 1 - m->late;
	*effect *= 1 - m->late;
}

/* Of the k-th part of the run, what passes before the code can be there. */
static double late_in(const struct ca_share *share, int k)
{
	double late = share && share->late > least_late ? share->late : 0;

	return fmin(fmax(PARTS * late - k, 0), 1);
}

static struct missed find_missed(const struct ca_est *est, const struct ca_share *share,
				 const uint32_t *member, size_t n)
{
	double active = 0, time = 0, periods = 0, within = 0, all = 0, of_runs;
	bool chance = is_fair(est);
	struct missed missed = { 0 };
	struct met m = { 0 };

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		if (item->off > 0) /* the samples have told of all parts (estimate_phases.c) */
			return missed;
		if (!is_placed(est, item))
			continue;
		add(est, item, &m);
		active += item->active;
		time += usual_time(item);
		periods += item->periods;
		within += item->inside;
	}
	for (int k = 0; k < PARTS; k++) {
		double weight = weight_of(est, k), late = weight * late_in(share, k);

		/* nor does it count what nobody knows of: whether points are passed there */
		all += est->heard[1][k] < met ? weight - late : weight;
		missed.late += est->heard[1][k] < met ? 0 : late;
		missed.part += chance || m.number[k] >= met || m.covered[k] >= met ? 0 : weight - late;
	}
	if (!(time > 0) || !(missed.part + missed.late > 0) || !(missed.late < all))
		return (struct missed){ 0 };
	missed.part /= all;
	missed.late /= all;
	active /= time;
	of_runs = share && within > 0 ? active * share->share / (within / periods) : active;
	if (missed.part > 0)
		missed.share =
			fmin(fmax((of_runs - (1 - missed.part - missed.late) * active) / missed.part, 0), 1);
	return missed;
}

void ca_estimate_miss_parts(const struct ca_est *est, const struct ca_estimate_options *options,
			    struct ca_estimates *out, const size_t *first, const uint32_t *member)
{
	for (size_t k = 0; k < out->curves; k++) {
		struct ca_curve *c = &out->curve[k];
		const struct ca_share *share = NULL;
		struct missed missed;

		for (size_t i = 0; i < options->shares; i++)
			if (options->share[i].region == c->region && options->share[i].share > 0)
				share = &options->share[i];
		missed = find_missed(est, share, member + first[c->first],
				     first[c->first + c->cells] - first[c->first]);
		if (!(missed.part + missed.late > 0) || c->how >= CA_HOW_OWN)
			continue;
		for (int i = 0; i < CA_AT; i++)
			widen(&c->at[i], &c->at_low[i], &c->at_high[i], ca_estimate_at[i] / 1e6, 100,
			      &missed);
		widen(&c->impact, &c->impact_low, &c->impact_high, 0.5, 100, &missed);
		widen(&c->slope, &c->slope_low, &c->slope_high, 1, 1, &missed);
		for (size_t i = c->first; i < c->first + c->cells; i++) {
			struct ca_cell *cell = &out->cell[i];

			if (cell->speedup)
				widen(&cell->effect, &cell->low, &cell->high, cell->speedup / 1e6, 100,
				      &missed);
		}
	}
}

/* SPDX-License-Identifier: MIT */
/* How far each run has got. Where all runs do the same work, what a visit costs goes by which one of its run it is, and
 * of each experiment it is known which it has met. So visits count for as many as they usually cost at 0 %. The
 * reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>

enum {
	BINS = 64,   /* of a run's visits, equally many each */
	ROUNDS = 10, /* until what overlaps is told apart */
	FOLDS = 16,  /* zeros are judged by what those outside of theirs say */
	RUNS = 2,    /* one has no other to be compared with */
	LEAST = 8,   /* zeros */
	UNKNOWN = 4, /* one of so many experiments may lie nobody knows where */
};

struct costs {
	double of[BINS]; /* s a visit at 0 % */
	double width;    /* visits */
};

/* So many visits of a run took so long without a delay: an experiment at 0 %, or the time between two. */
struct stretch {
	double before, visits, cost;
	size_t fold; /* SIZE_MAX: none */
};

static bool is_known(const struct ca_est_item *item)
{
	return item->before > 0 && item->visits > 0;
}

static bool is_zero(const struct ca_est_item *item)
{
	return is_known(item) && !item->speedup;
}

static struct stretch stretch_of(const struct ca_est_item *item)
{
	return (struct stretch){ item->before, item->visits, item->cost, SIZE_MAX };
}

/* From the end of one to the next, if none is missing between them. */
static struct stretch between(const struct ca_est_item *a, const struct ca_est_item *b)
{
	double end = a->before + a->visits, cost = b->from - a->to;

	return is_known(a) && is_known(b) && a->run == b->run && b->before > end && cost > 0 && cost < a->cost
		       ? (struct stretch){ end, b->before - end, cost, SIZE_MAX }
		       : (struct stretch){ 0 };
}

static size_t find_stretches(const struct ca_est *est, struct stretch *stretch)
{
	size_t n = 0;

	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[i];

		if (is_zero(item)) {
			stretch[n] = stretch_of(item);
			stretch[n++].fold = i % FOLDS;
		}
		if (i && (stretch[n] = between(item - 1, item)).cost > 0)
			n++;
	}
	return n;
}

/* How many of its visits are in a bin. */
static double visits_in(const struct costs *costs, const struct stretch *s, int bin)
{
	double from = bin * costs->width, to = bin + 1 < BINS ? from + costs->width : INFINITY;

	return fmax(0, fmin(s->before + s->visits, to) - fmax(s->before, from));
}

static int first_bin(const struct costs *costs, const struct stretch *s)
{
	return (int)fmin(s->before / costs->width, BINS - 1);
}

static bool reaches(const struct costs *costs, const struct stretch *s, int bin)
{
	return bin < BINS && bin * costs->width < s->before + s->visits;
}

/* What its visits cost at 0 %, s. */
static double usual_cost(const struct costs *costs, const struct stretch *s)
{
	double sum = 0;

	for (int b = first_bin(costs, s); reaches(costs, s, b); b++)
		sum += visits_in(costs, s, b) * costs->of[b];
	return sum;
}

/* What nobody has met is as what lies before it, or behind. */
static void fill(struct costs *costs, const double *met)
{
	int last = -1;

	for (int b = 0; b < BINS; b++) {
		if (met[b] > 0) {
			for (int i = last < 0 ? 0 : b; i < b; i++)
				costs->of[i] = costs->of[b];
			last = b;
		} else if (last >= 0) {
			costs->of[b] = costs->of[last];
		}
	}
}

/* By multiplicative updates (MLEM: Shepp and Vardi 1982): each stretch outside of this fold makes what it has met
 * dearer, as far as it was dearer than that would have been. */
static void find_costs(const struct stretch *stretch, size_t n, size_t fold, struct costs *costs)
{
	double cost = 0, visits = 0, met[BINS] = { 0 };

	for (size_t i = 0; i < n; i++) {
		cost += stretch[i].cost;
		visits += stretch[i].visits;
		for (int b = first_bin(costs, &stretch[i]);
		     stretch[i].fold != fold && reaches(costs, &stretch[i], b); b++)
			met[b] += visits_in(costs, &stretch[i], b);
	}
	for (int b = 0; b < BINS; b++)
		costs->of[b] = cost / visits;
	for (int round = 0; round < ROUNDS; round++) {
		double dearer[BINS] = { 0 };

		for (size_t i = 0; i < n; i++) {
			const struct stretch *s = &stretch[i];
			double ratio = s->cost / usual_cost(costs, s);

			for (int b = first_bin(costs, s); s->fold != fold && reaches(costs, s, b); b++)
				dearer[b] += visits_in(costs, s, b) * ratio;
		}
		for (int b = 0; b < BINS; b++)
			costs->of[b] *= met[b] > 0 ? dearer[b] / met[b] : 1;
	}
	fill(costs, met);
}

/* By item: what its visits should cost; of a zero, what others say. */
static void expect(const struct ca_est *est, struct stretch *stretch, double *expected)
{
	size_t n = find_stretches(est, stretch);
	struct costs costs = { 0 };

	for (size_t i = 0; i < est->items; i++)
		if (is_known(&est->item[i]))
			costs.width = fmax(costs.width, (est->item[i].before + est->item[i].visits) / BINS);
	for (size_t fold = 0; fold <= FOLDS; fold++) {
		find_costs(stretch, n, fold, &costs); /* at last, from all */
		for (size_t i = 0; i < est->items; i++) {
			struct stretch s = stretch_of(&est->item[i]);

			if (is_zero(&est->item[i]) ? i % FOLDS == fold : fold == FOLDS)
				expected[i] = usual_cost(&costs, &s);
		}
	}
}

/* Visits for what they cost, as many as before in all. Those of which nobody knows where they lie are left out. */
static void count(struct ca_est *est, const double *expected)
{
	double all = 0, visits = 0;
	size_t n = 0;

	for (size_t i = 0; i < est->items; i++)
		if (is_known(&est->item[i])) {
			all += expected[i];
			visits += est->item[i].visits;
		}
	for (size_t i = 0; i < est->items; i++)
		if (is_known(&est->item[i])) {
			est->item[n] = est->item[i];
			est->item[n++].visits = expected[i] * visits / all;
		}
	est->items = n;
}

bool ca_estimate_work(struct ca_est *est, bool *counted)
{
	double *expected = calloc(est->items + 1, sizeof *expected);
	struct stretch *stretch = calloc(2 * est->items + 2, sizeof *stretch);
	bool ok = expected && stretch;
	size_t known = 0, zeros = 0;

	for (size_t i = 0; i < est->items; i++) {
		known += is_known(&est->item[i]);
		zeros += is_zero(&est->item[i]);
	}
	*counted = ok && est->runs >= RUNS && zeros >= LEAST && UNKNOWN * (est->items - known) <= est->items;
	if (*counted) {
		expect(est, stretch, expected);
		count(est, expected);
	}
	free(expected);
	free(stretch);
	return ok;
}

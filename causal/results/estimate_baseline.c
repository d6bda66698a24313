/* SPDX-License-Identifier: MIT */
/* The baseline: what a visit costs at 0 %, at the place and time of each experiment.
 *
 * Machines drift (frequency, temperature, neighbours) and runs differ (layout, seeds). One
 * mean over all zeros is the most precise baseline on a machine that does neither; the
 * nearest zeros in time follow a drift but are few. Programs that do the same in each run are
 * compared with what they do at the same place of others. Which is better is a fact of the data:
 * each candidate predicts every zero from the others, and the simplest one that predicts
 * about as well as the best is taken. Treated experiments have no part in the choice, so it
 * cannot favour an answer. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NEAR_MAX = 32, SCREEN = 9 };

struct candidate {
	enum ca_baseline baseline;
	unsigned k;
};

/* From simple to supple. A supple one has to be better by 3 % to be taken: the scores of
 * equally good ones differ by about that much by chance (200 zeros, simulated). */
static const struct candidate candidates[] = {
	{ CA_BASELINE_ALL, 0 },   { CA_BASELINE_RUN, 0 },    { CA_BASELINE_NEAR, 32 },
	{ CA_BASELINE_NEAR, 16 }, { CA_BASELINE_NEAR, 8 },   { CA_BASELINE_NEAR, 4 },
	{ CA_BASELINE_NEAR, 2 },  { CA_BASELINE_PLACE, 16 }, { CA_BASELINE_PLACE, 8 },
	{ CA_BASELINE_PLACE, 4 }, { CA_BASELINE_PLACE, 2 },
};
static const double margin = 0.97;
static const double clearly = 0.8; /* less noise, for places to be what zeros are screened by */
static const double rather = 3;    /* robust standard deviations, by which it may seem so */

/* The k zeros nearest in time to item i, itself left out: those of its own run if that has
 * at least two others, else of any run. Returns how many. */
static uint32_t nearest(const struct ca_est *est, size_t i, unsigned k, const uint32_t *in_run, uint32_t *out)
{
	const struct ca_est_item *item = &est->item[i];
	bool zero = item->speedup == 0;
	bool same_run = in_run[item->run] >= 2u + zero;
	size_t low = 0, high = est->zeros;
	uint32_t n = 0;

	while (low < high) { /* the first zero not before the item */
		size_t middle = (low + high) / 2;

		if (est->item[est->zero[middle]].time < item->time)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t before = low, after = low; n < k;) {
		const struct ca_est_item *a = NULL, *b = NULL;

		for (; before > 0; before--) {
			a = &est->item[est->zero[before - 1]];
			if (a != item && (!same_run || a->run == item->run))
				break;
		}
		for (; after < est->zeros; after++) {
			b = &est->item[est->zero[after]];
			if (b != item && (!same_run || b->run == item->run))
				break;
		}
		if (before == 0 && after == est->zeros)
			break;
		if (after == est->zeros || (before > 0 && item->time - a->time <= b->time - item->time))
			out[n++] = est->zero[--before];
		else
			out[n++] = est->zero[after++];
	}
	return n;
}

static void count_zeros(const struct ca_est *est, uint32_t *in_run)
{
	memset(in_run, 0, est->runs * sizeof *in_run);
	for (size_t z = 0; z < est->zeros; z++)
		in_run[est->item[est->zero[z]].run]++;
}

/* Sets base of each zero to the median of its neighbours, in time or in place, which neither a drift nor one
 * bad experiment can bend, and noise to how far they are from it. */
static void compare(struct ca_est *est, bool places, const uint32_t *in_run, double *scratch)
{
	uint32_t near[SCREEN];
	double period[SCREEN], weight[CA_EST_PLACES];
	size_t kept = 0;

	for (size_t z = 0; z < est->zeros; z++) {
		struct ca_est_item *item = &est->item[est->zero[z]];
		uint32_t n = places ? ca_estimate_near_place(est, est->zero[z], ca_estimate_places(est), near,
							     weight)
				    : nearest(est, est->zero[z], SCREEN - 1, in_run, near);
		double cost = 0, visits = 0;
		size_t m = 0;

		for (uint32_t i = 0; i < n; i++) {
			cost += est->item[near[i]].cost;
			visits += est->item[near[i]].visits;
			if (est->item[near[i]].visits > 0)
				period[m++] = est->item[near[i]].cost / est->item[near[i]].visits;
		}
		item->base = m                  ? ca_estimate_median(period, m)
			     : item->visits > 0 ? item->cost / item->visits
						: item->cost;
		/* The median of small counts is a whole number, not their middle. */
		if (visits > 0 && visits < CA_EST_COUNTS * (double)n && est->quantum > 0)
			item->base = cost / visits;
		/* A median of m has 1.57 times the variance of a mean (of two: it is one). */
		if (m && item->visits > 0)
			scratch[kept++] = fabs(log(item->cost / item->visits / item->base)) /
					  sqrt(1 + (m > 2 ? 1.57 : 1) / (double)m);
	}
	/* 1.4826: MAD to sigma for normal noise. The floor keeps exact repetitions, as in a
	 * deterministic test, from calling every last digit an outlier. */
	est->noise = kept ? fmax(1.4826 * ca_estimate_median(scratch, kept), 1e-3) : 1e-3;
	/* A sigma known from a handful may be much too small. */
	est->fence = 1 + 1. / fmax(1, (double)kept - 1);
}

/* Each zero's weight is what it has by those, if that is more. */
static void weigh(struct ca_est *est)
{
	for (size_t z = 0; z < est->zeros; z++) {
		struct ca_est_item *item = &est->item[est->zero[z]];

		item->weight = fmax(item->weight, ca_estimate_weight(item, item->base,
								     est->fence * est->noise, est->quantum));
	}
}

/* Weights of the zeros before any baseline is known. One that is off from its neighbours in time and like others at
 * its place is no outlier but has met another phase of the program. */
static void screen(struct ca_est *est, const uint32_t *in_run, double *scratch)
{
	double in_time;

	for (size_t z = 0; z < est->zeros; z++)
		est->item[est->zero[z]].weight = 0;
	compare(est, false, in_run, scratch);
	weigh(est);
	in_time = est->noise;
	if (ca_estimate_places(est)) {
		compare(est, true, in_run, scratch);
		weigh(est);
	}
	if (!(est->noise < clearly * in_time))
		est->noise = in_time;
}

static double ratio(double cost, double visits, double otherwise)
{
	return visits > 0 && cost > 0 ? cost / visits : otherwise;
}

/* Sums of the zeros with their weights, all together and by run. */
static void sum_zeros(struct ca_est *est, const double *weight, const double *factor, double *cost,
		      double *visits)
{
	*cost = *visits = 0;
	memset(est->run_cost, 0, est->runs * sizeof *est->run_cost);
	memset(est->run_visits, 0, est->runs * sizeof *est->run_visits);
	for (size_t z = 0; z < est->zeros; z++) {
		const struct ca_est_item *item = &est->item[est->zero[z]];
		double w = item->weight * (weight ? weight[est->zero[z]] : 1);
		double c = w * item->cost * (factor ? factor[est->zero[z]] : 1);

		*cost += c;
		*visits += w * item->visits;
		est->run_cost[item->run] += c;
		est->run_visits[item->run] += w * item->visits;
	}
}

/* The base of one item; its own part is left out when it is a zero itself. */
static double base_of(const struct ca_est *est, size_t i, const double *weight, const double *factor,
		      double cost, double visits)
{
	const struct ca_est_item *item = &est->item[i];
	double own = item->speedup == 0 ? item->weight * (weight ? weight[i] : 1) : 0;
	double own_cost = own * item->cost * (factor ? factor[i] : 1);
	double all = ratio(cost - own_cost, visits - own * item->visits, ratio(cost, visits, 0));

	if (est->baseline == CA_BASELINE_RUN)
		return ratio(est->run_cost[item->run] - own_cost,
			     est->run_visits[item->run] - own * item->visits, all);
	if (est->k) {
		double c = 0, v = 0;

		for (uint32_t n = 0; n < item->neighbours; n++) {
			uint32_t j = est->near[item->neighbour + n];
			double w = est->near_weight[item->neighbour + n] * est->item[j].weight *
				   (weight ? weight[j] : 1);

			c += w * est->item[j].cost * (factor ? factor[j] : 1);
			v += w * est->item[j].visits;
		}
		return ratio(c, v, all);
	}
	return all;
}

void ca_estimate_rebase(struct ca_est *est, const double *weight, const double *factor, double *base)
{
	double cost, visits;

	sum_zeros(est, weight, factor, &cost, &visits);
	for (size_t i = 0; i < est->items; i++)
		base[i] = base_of(est, i, weight, factor, cost, visits);
}

static void use(struct ca_est *est, struct candidate candidate, const uint32_t *in_run)
{
	uint32_t used = 0;

	est->baseline = candidate.baseline;
	est->k = candidate.k;
	for (size_t i = 0; i < est->items && candidate.k; i++) {
		uint32_t *near = est->near + used;
		double *weight = est->near_weight + used;

		est->item[i].neighbour = used;
		for (uint32_t n = 0; n < candidate.k; n++)
			weight[n] = 1;
		est->item[i].neighbours = candidate.baseline == CA_BASELINE_PLACE
						  ? ca_estimate_near_place(est, i, candidate.k, near, weight)
						  : nearest(est, i, candidate.k, in_run, near);
		used += est->item[i].neighbours;
	}
}

/* Mean squared relative error when each zero is predicted from the others; capped, so that
 * one that slipped through the screening does not decide. */
static double score(struct ca_est *est)
{
	double cost, visits, sum = 0, weights = 0;
	double cap = 16 * est->noise * est->noise;

	sum_zeros(est, NULL, NULL, &cost, &visits);
	for (size_t z = 0; z < est->zeros; z++) {
		const struct ca_est_item *item = &est->item[est->zero[z]];
		double base = base_of(est, est->zero[z], NULL, NULL, cost, visits);
		double error = (item->cost - item->visits * base) / item->cost;
		double extra = est->quantum * base * base / (item->cost * item->cost);

		sum += item->weight * item->cost * fmin(error * error, cap + 16 * extra);
		weights += item->weight * item->cost;
	}
	return weights > 0 ? sum / weights : 0;
}

static double mean_visits(const struct ca_est *est)
{
	double visits = 0;

	for (size_t z = 0; z < est->zeros; z++)
		visits += est->item[est->zero[z]].visits;
	return visits / (double)est->zeros;
}

static struct candidate choose(struct ca_est *est, const uint32_t *in_run)
{
	struct candidate best = candidates[0];
	double lowest = INFINITY, visits = mean_visits(est);

	for (size_t c = 0; c < sizeof candidates / sizeof *candidates; c++) {
		double now;

		if (candidates[c].baseline == CA_BASELINE_RUN &&
		    (est->runs < 2 || est->zeros < 3 * est->runs))
			continue; /* the same as ALL, or too few in a run */
		if (candidates[c].k && candidates[c].k + 2 > est->zeros)
			continue;
		if (candidates[c].baseline == CA_BASELINE_PLACE &&
		    candidates[c].k > 2 * ca_estimate_places(est))
			continue;
		/* Time per visit of few visits is too large on average: 1 % at 100 that come
		 * at random. */
		if (candidates[c].k && est->quantum > 0 && candidates[c].k * visits < 100)
			continue;
		if (candidates[c].baseline == CA_BASELINE_RUN && est->quantum > 0 &&
		    visits * (double)(est->zeros / est->runs) < 100)
			continue;
		use(est, candidates[c], in_run);
		now = score(est);
		if (now < margin * lowest) {
			lowest = now;
			best = candidates[c];
		}
	}
	return best;
}

bool ca_estimate_baseline(struct ca_est *est)
{
	uint32_t *in_run = calloc(est->runs + 1, sizeof *in_run);
	double *scratch = calloc(est->zeros + 1, sizeof *scratch);
	double *base = calloc(est->items + 1, sizeof *base);
	bool ok = false;

	est->near = calloc(est->items * NEAR_MAX + 1, sizeof *est->near);
	est->near_weight = calloc(est->items * NEAR_MAX + 1, sizeof *est->near_weight);
	if (!in_run || !scratch || !base || !est->near || !est->near_weight)
		goto out;
	ok = true;
	est->baseline = CA_BASELINE_NONE;
	if (est->zeros == 0)
		goto out;
	count_zeros(est, in_run);
	screen(est, in_run, scratch);
	use(est, choose(est, in_run), in_run);
	est->score = score(est);
	ca_estimate_rebase(est, NULL, NULL, base);
	for (size_t i = 0; i < est->items; i++) {
		struct ca_est_item *item = &est->item[i];
		double usual = item->visits * base[i], room = rather * est->noise * item->elapsed;

		item->base = base[i];
		item->possible = item->paying >= 0 && usual < item->elapsed + room &&
				 usual > item->elapsed - item->paying - room;
	}
out:
	free(in_run);
	free(scratch);
	free(base);
	return ok;
}

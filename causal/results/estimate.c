/* SPDX-License-Identifier: MIT */
/* From experiments to effects: groups them into cells (region, speedup), compares each cell
 * with the baseline, and sums cells up to curves. The reasoning is in doc/ESTIMATE.md.
 * Pure numbers; driver's process, one thread. See estimate.h. */
#include "causal/results/estimate.h"
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double hardly_any = 0.001; /* of an experiment */

static int by_time(const void *a, const void *b)
{
	const struct ca_est_item *x = a, *y = b;

	if (x->time < y->time || x->time > y->time)
		return x->time < y->time ? -1 : 1;
	return (x->run > y->run) - (x->run < y->run);
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Run numbers become 0..runs-1. */
static bool number_runs(struct ca_est *est)
{
	uint32_t *run = calloc(est->items + 1, sizeof *run);
	size_t n = 0;

	if (!run)
		return false;
	for (size_t i = 0; i < est->items; i++)
		run[i] = est->item[i].run;
	qsort(run, est->items, sizeof *run, by_number);
	for (size_t i = 0; i < est->items; i++)
		if (i == 0 || run[i] != run[n - 1])
			run[n++] = run[i];
	for (size_t i = 0; i < est->items; i++) {
		const uint32_t *at = bsearch(&est->item[i].run, run, n, sizeof *run, by_number);

		est->item[i].run = (uint32_t)(at - run);
	}
	est->runs = n;
	free(run);
	return true;
}

static void list_zeros(struct ca_est *est)
{
	est->zeros = 0;
	for (size_t i = 0; i < est->items; i++)
		if (est->item[i].speedup == 0)
			est->zero[est->zeros++] = (uint32_t)i;
}

/* s in S as samples tell it, for which others paid; by timers, as many times that as lumps are longer. What was inserted
 * while nobody paid came in no lumps. */
static double lumps_of(const struct ca_observation *o)
{
	double paid = isnan(o->paying) ? o->delay : o->paying;

	return o->speedup ? o->sampled * fmin(o->active, 1e6 * paid / o->speedup) : 0;
}

/* by_work: visits are counted by it (estimate_work.c); set to false where they cannot be. */
static bool prepare(struct ca_est *est, const struct ca_observation *observation, size_t n,
		    const struct ca_estimate_options *options, bool *by_work)
{
	est->item = calloc(n + 1, sizeof *est->item);
	est->zero = calloc(n + 1, sizeof *est->zero);
	if (!est->item || !est->zero)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct ca_observation *o = &observation[i];
		/* of time itself nothing is left where all of it is sped up by 100 % */
		double cost = o->per_visit ? o->cost : fmax(o->cost, hardly_any * o->elapsed);

		ca_estimate_hear(est, o, options->length);
		if (!(cost > 0) || !(o->visits >= 0) || !isfinite(cost) || !isfinite(o->visits))
			continue;
		est->item[est->items++] = (struct ca_est_item){
			.cost = cost,
			.visits = o->visits,
			.counted = o->visits,
			.time = o->time,
			.observation = i,
			.region = o->region,
			.speedup = o->speedup,
			.run = o->run,
			.elapsed = o->elapsed,
			.active = o->active,
			.delay = o->delay,
			.still = o->still,
			.paying = o->paying,
			.limits = o->limits,
			.work = o->work,
			.yardstick = o->yardstick,
			.periods = o->periods,
			.inside = o->inside,
			.lost = o->lost,
			.idle = o->idle,
			.lumps = lumps_of(o),
			.from = o->from,
			.to = o->to,
			.before = o->before,
			.per_visit = o->per_visit,
			.weight = 1,
		};
	}
	if (ca_estimate_silence_part(&options->silence, 0) > 0)
		ca_estimate_hear_silence(est, &options->silence);
	qsort(est->item, est->items, sizeof *est->item, by_time);
	if (!number_runs(est))
		return false;
	list_zeros(est);
	est->quantum = options->quantum;
	est->length = options->length;
	est->run_cost = calloc(est->runs + 1, sizeof *est->run_cost);
	est->run_visits = calloc(est->runs + 1, sizeof *est->run_visits);
	if (!est->run_cost || !est->run_visits || (*by_work && !ca_estimate_work(est, by_work)))
		return false;
	list_zeros(est);
	return ca_estimate_place(est);
}

static void est_fini(struct ca_est *est)
{
	free(est->item);
	free(est->zero);
	free(est->placed);
	free(est->near);
	free(est->near_weight);
	free(est->run_cost);
	free(est->run_visits);
	free(est->own);
}

/* ---- what stands for the same at 0 % -------------------------------------------------------------*/

/* What an effect would be off by, relative, variance, of a region with as many experiments as there are at 0 %. */
static double expected_error(const struct ca_est *est)
{
	double slip = 0, treated = 0;

	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[i];

		slip += item->speedup ? item->slip * item->slip : 0;
		treated += item->speedup > 0;
	}
	return 2 * est->score / (double)est->zeros + (treated > 0 ? slip / treated : 0);
}

static bool find_baseline(struct ca_est *est, const struct ca_observation *observation, size_t n,
			  const struct ca_estimate_options *options, bool *by_work)
{
	bool try = *by_work;

	if (!prepare(est, observation, n, options, by_work))
		return false;
	return *by_work != try || (ca_estimate_control(est) && ca_estimate_baseline(est));
}

/* Visits as they are, or by work done, whichever tells more. What experiments won is not asked. */
static bool choose_baseline(struct ca_est *est, const struct ca_observation *observation, size_t n,
			    const struct ca_estimate_options *options)
{
	struct ca_est other = { 0 }, plain;
	bool by_work = false, ok = find_baseline(est, observation, n, options, &by_work);

	by_work = true;
	ok = ok && find_baseline(&other, observation, n, options, &by_work);
	if (ok && by_work && expected_error(&other) < expected_error(est)) {
		plain = *est;
		*est = other;
		other = plain;
	}
	est_fini(&other);
	return ok;
}

/* ---- cells -------------------------------------------------------------------*/

static int by_cell(const void *a, const void *b, void *items)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct ca_est_item *x = (struct ca_est_item *)items + i;
	const struct ca_est_item *y = (struct ca_est_item *)items + j;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	if (x->speedup != y->speedup)
		return x->speedup < y->speedup ? -1 : 1;
	return (i > j) - (i < j);
}

/* member: the items ordered by cell; first[c]: where cell c starts in it, first[cells]: end. */
static bool make_cells(const struct ca_est *est, struct ca_estimates *out, uint32_t *member, size_t *first)
{
	size_t cells = 0, curves = 0;

	for (size_t i = 0; i < est->items; i++)
		member[i] = (uint32_t)i;
	qsort_r(member, est->items, sizeof *member, by_cell, est->item);
	out->cell = calloc(est->items + 1, sizeof *out->cell);
	out->curve = calloc(est->items + 1, sizeof *out->curve);
	if (!out->cell || !out->curve)
		return false;
	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[member[i]];
		struct ca_cell *last = cells ? &out->cell[cells - 1] : NULL;

		if (!last || last->region != item->region || last->speedup != item->speedup) {
			first[cells] = i;
			if (!last || last->region != item->region)
				out->curve[curves++] =
					(struct ca_curve){ .region = item->region, .first = cells };
			last = &out->cell[cells++];
			*last = (struct ca_cell){ .region = item->region, .speedup = item->speedup };
			out->curve[curves - 1].cells++;
		}
		last->experiments++;
		last->visits += item->counted;
		out->curve[curves - 1].experiments++;
		/* by_cell keeps the order of time, so a run's experiments stand together */
		if (i == first[cells - 1] || est->item[member[i - 1]].run != item->run)
			last->runs++;
	}
	first[cells] = est->items;
	out->cells = cells;
	out->curves = curves;
	return true;
}

static double cell_ratio(const struct ca_est *est, const uint32_t *member, size_t n)
{
	double cost = 0, usual = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		cost += item->weight * item->cost;
		usual += item->weight * item->visits * item->base;
	}
	return usual > 0 ? cost / usual : NAN;
}

/* Where the weights start from: the median of the cell's single ratios. Of two, the lower
 * half counts as much as the upper: neither can be called an outlier. */
static double cell_median(const struct ca_est *est, const uint32_t *member, size_t n, double *scratch)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		if (item->visits > 0)
			scratch[m++] = item->cost / item->visits / item->base;
	}
	return m ? ca_estimate_median(scratch, m) : NAN;
}

/* Scatter inside a cell: that of the zeros, or more if the cell itself shows more. */
static double cell_noise(const struct ca_est *est, const uint32_t *member, size_t n, double ratio,
			 double *scratch)
{
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		if (item->visits > 0)
			scratch[m++] = fabs(log(item->cost / item->visits / item->base / ratio));
	}
	return m >= 4 ? fmax(est->noise, 1.4826 * ca_estimate_median(scratch, m)) : est->noise;
}

/* The cell's time per visit relative to the baseline's, robust against bad experiments. */
static double estimate_cell(struct ca_est *est, const uint32_t *member, size_t n, struct ca_cell *cell,
			    double *scratch)
{
	double ratio;

	if (cell->speedup == 0) {
		ratio = cell_ratio(est, member, n); /* weights: from the screening of zeros */
	} else {
		ratio = cell->visits < CA_EST_COUNTS * (double)n && est->quantum > 0
				? cell_ratio(est, member, n)
				: cell_median(est, member, n, scratch);
		for (int round = 0; round < 4 && isfinite(ratio) && n >= 3; round++) {
			double noise = cell_noise(est, member, n, ratio, scratch);
			double next;

			for (size_t i = 0; i < n; i++) {
				struct ca_est_item *item = &est->item[member[i]];

				if (!item->possible)
					item->weight = ca_estimate_weight(item, ratio * item->base,
									  est->fence * noise, est->quantum);
			}
			next = cell_ratio(est, member, n);
			if (!isfinite(next))
				break;
			ratio = next;
		}
		if (n < 3)
			ratio = cell_ratio(est, member, n);
	}
	for (size_t i = 0; i < n; i++) {
		struct ca_est_item *item = &est->item[member[i]];

		cell->outliers += item->weight < 0.05;
		item->residual = 1 - ratio * item->visits * item->base / item->cost;
	}
	return ratio;
}

/* ---- the level of a region's own zeros ---------------------------------------*/

/* Probes in the selected code cost something even at 0 %, so a region's own zeros may lie off
 * the others'. How much of that difference is taken for real is decided by how much the
 * regions differ beyond chance (variance between groups after DerSimonian and Laird, Controlled
 * Clinical Trials 7, 1986); where they do not, all zeros serve all regions. */
static void own_levels(struct ca_est *est, struct ca_estimates *out, const size_t *first,
		       const uint32_t *member, const double *ratio, double *shrink)
{
	double w1 = 0, w2 = 0, mean = 0, q = 0, between, groups = 0;

	for (size_t k = 0; k < out->curves; k++) {
		size_t c = out->curve[k].first;
		double weight = 0;

		est->own[k] = 1;
		shrink[k] = 0; /* holds the variance of the level until the last loop */
		if (out->cell[c].speedup != 0 || out->cell[c].experiments < 3 || !isfinite(ratio[c]))
			continue;
		for (size_t i = first[c]; i < first[c + 1]; i++)
			weight += est->item[member[i]].weight;
		if (weight <= 0)
			continue;
		shrink[k] = est->noise * est->noise / weight;
		w1 += 1 / shrink[k];
		w2 += 1 / (shrink[k] * shrink[k]);
		mean += log(ratio[c]) / shrink[k];
		groups++;
	}
	if (groups > 0)
		mean /= w1;
	for (size_t k = 0; k < out->curves; k++)
		if (shrink[k] > 0)
			q += pow(log(ratio[out->curve[k].first]) - mean, 2) / shrink[k];
	between = groups > 1 ? fmax(0, (q - (groups - 1)) / (w1 - w2 / w1)) : 0;
	for (size_t k = 0; k < out->curves; k++)
		if (shrink[k] > 0) {
			shrink[k] = between / (between + shrink[k]);
			est->own[k] = pow(ratio[out->curve[k].first], shrink[k]);
		}
}

/* One experiment by itself, of a region with this level at 0 %. It scatters as it is, but within its bounds. */
static double single(const struct ca_est_item *item, double level)
{
	double effect = item->base > 0 ? 1 - item->cost / item->visits / item->base / level : NAN;

	if (item->elapsed > 0 &&
	    !(effect <= item->delay / item->elapsed)) /* NAN, too: nothing is known of 0 % */
		effect = item->delay / item->elapsed;
	if (item->elapsed > 0 && item->paying >= 0)
		effect = fmax(effect, (item->delay - item->paying) / item->elapsed);
	return isfinite(effect) ? 100 * effect : NAN;
}

static bool find_singles(const struct ca_est *est, struct ca_estimates *out, const size_t *first,
			 const uint32_t *member, size_t n)
{
	out->single = calloc(n + 1, sizeof *out->single);
	for (size_t i = 0; out->single && i < n; i++)
		out->single[i] = NAN;
	for (size_t k = 0; out->single && k < out->curves; k++) {
		size_t c = out->curve[k].first;

		for (size_t i = first[c]; i < first[c + out->curve[k].cells]; i++) {
			const struct ca_est_item *item = &est->item[member[i]];

			if (item->speedup)
				out->single[item->observation] = single(item, est->own[k]);
		}
	}
	return out->single;
}

/* Of the time in which points are passed. */
static enum ca_status estimate(const struct ca_observation *observation, size_t n,
			       const struct ca_estimate_options *options, struct ca_estimates *out)
{
	struct ca_est est = { 0 };
	uint32_t *member = calloc(n + 1, sizeof *member);
	size_t *first = calloc(n + 2, sizeof *first);
	double *scratch = calloc(n + 1, sizeof *scratch), *ratio = calloc(n + 1, sizeof *ratio);
	double *shrink = calloc(n + 1, sizeof *shrink);
	bool ok = false;

	memset(out, 0, sizeof *out);
	if (!member || !first || !scratch || !ratio || !shrink ||
	    !choose_baseline(&est, observation, n, options) || !ca_estimate_weigh_parts(&est) ||
	    !ca_estimate_phases(&est, options) || !make_cells(&est, out, member, first))
		goto done;
	est.own = calloc(out->curves + 1, sizeof *est.own);
	if (!est.own)
		goto done;
	out->baseline = est.baseline;
	out->neighbours = est.k;
	out->zeros = est.zeros;
	out->noise = est.noise;
	out->saved = ca_estimate_saved(&est);
	for (size_t c = 0; c < out->cells; c++)
		ratio[c] = est.baseline == CA_BASELINE_NONE
				   ? NAN
				   : estimate_cell(&est, member + first[c], first[c + 1] - first[c],
						   &out->cell[c], scratch);
	own_levels(&est, out, first, member, ratio, shrink);
	for (size_t k = 0; k < out->curves; k++)
		for (size_t c = out->curve[k].first; c < out->curve[k].first + out->curve[k].cells; c++)
			out->cell[c].effect = 100 * (1 - ratio[c] / est.own[k]);
	ok = find_singles(&est, out, first, member, n) &&
	     ca_estimate_boot(&est, options, out, first, member, shrink);
	if (ok)
		ca_estimate_miss_parts(&est, options, out, first, member);
done:
	est_fini(&est);
	free(member);
	free(first);
	free(scratch);
	free(ratio);
	free(shrink);
	if (!ok)
		ca_estimate_fini(out);
	return ok ? CA_OK : CA_ERR_NOMEM;
}

enum ca_status ca_estimate(const struct ca_observation *observation, size_t n,
			   const struct ca_estimate_options *options, struct ca_estimates *out)
{
	struct ca_estimate_options heard = *options;
	bool silent = ca_estimate_is_silent(observation, n, options);
	struct ca_share *share;
	enum ca_status status;

	if (!silent) {
		heard.silence = (struct ca_silence){ 0 };
		return estimate(observation, n, &heard, out);
	}
	heard.share = share = calloc(options->shares + 1, sizeof *share);
	if (!share)
		return CA_ERR_NOMEM;
	if (options->shares)
		memcpy(share, options->share, options->shares * sizeof *share);
	ca_estimate_leave_out_silence(share, options->shares, &options->silence);
	status = estimate(observation, n, &heard, out);
	if (status == CA_OK)
		ca_estimate_join_silence(observation, n, options, out);
	free(share);
	return status;
}

void ca_estimate_fini(struct ca_estimates *estimates)
{
	free(estimates->cell);
	free(estimates->curve);
	free(estimates->single);
	memset(estimates, 0, sizeof *estimates);
}

/* SPDX-License-Identifier: MIT */
/* Programs have phases, and in some of them more of the time is in a region than in others. Where experiments
 * of a region win the more the more of their samples are in it, each is brought to what it would have won in
 * the phases of the whole runs. The reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST = 4, ROUNDS = 4 };      /* experiments of a region; of dropping outliers */
static const double clearly = 1.5;   /* times what is significant */
static const double outlier = 6;     /* robust standard deviations */
static const double hardly = 0.1;    /* paid, of D: each experiment is its own baseline then */
static const double usual = 2;       /* as in estimate_share.c */
static const double at_least = 1e-3; /* of its time remains */

struct phased {
	bool used;
	double share;          /* of the samples, in whole runs */
	double rate, busy;     /* periods, and CPU time, a second */
	double usual;          /* won in full in experiments like these ... */
	double usual_error;    /* ... beyond what the zeros scatter */
	double win, win_error; /* s won in full by each period more that is inside, at a speedup of 1 */
	double active;         /* ... and s in S */
	double mean, treated;  /* periods a second inside beyond that share: of all, of those won by */
	double n;
	double variance; /* of the mean; of what the share itself is off by: */
	double share_variance;
};

/* What an item's visits would have taken at 0 %. */
static double usual_time(const struct ca_est_item *item)
{
	return item->visits * item->base;
}

static bool is_of(const struct ca_est_item *item, uint32_t region)
{
	return item->region == region && item->per_visit && item->periods > 0 && usual_time(item) > 0;
}

/* Periods inside a second, beyond what there would be in whole runs. */
static double beyond(const struct ca_est_item *item, double share)
{
	return (item->inside - share * item->periods) / usual_time(item);
}

static double won(const struct ca_est_item *item)
{
	return (1 - item->cost / usual_time(item)) / (item->speedup / 1e6);
}

/* What an experiment won beyond a line; p weighs it. */
static double off_line(const struct ca_est_item *item, const struct phased *r)
{
	return item->speedup / 1e6 * (won(item) - r->usual - r->win * beyond(item, r->share));
}

/* Won by what is inside, in experiments like the whole runs, and by each period more: least squares of
 * p (a + b z), without outliers. False: too few, or all alike. */
static bool fit(const struct ca_est *est, uint32_t region, struct phased *r, double *scratch)
{
	double sigma = INFINITY, n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		double w = 0, z = 0, y = 0, s = 0, zz = 0, zy = 0, zs = 0, squares = 0, spread;
		struct phased before = *r;
		size_t m = 0;

		n = 0;
		for (size_t i = 0; i < est->items; i++) {
			const struct ca_est_item *item = &est->item[i];
			double p = item->speedup / 1e6, x, active;

			if (!item->speedup || !is_of(item, region) ||
			    (!item->possible && fabs(off_line(item, r)) > outlier * sigma))
				continue;
			x = beyond(item, r->share);
			active = item->active / usual_time(item);
			n++;
			w += p * p;
			z += p * p * x;
			y += p * p * won(item);
			s += p * p * active;
			zz += p * p * x * x;
			zy += p * p * x * won(item);
			zs += p * p * x * active;
		}
		spread = zz - z * z / w;
		if (n < LEAST || !(spread > 1e-12 * zz))
			return false;
		r->win = (zy - z * y / w) / spread;
		r->usual = (y - r->win * z) / w;
		r->active = (zs - z * s / w) / spread;
		r->treated = z / w;
		for (size_t i = 0; i < est->items; i++) {
			const struct ca_est_item *item = &est->item[i];

			if (!item->speedup || !is_of(item, region))
				continue;
			scratch[m++] = fabs(off_line(item, r));
			if (item->possible || fabs(off_line(item, &before)) <= outlier * sigma)
				squares += pow(off_line(item, r), 2);
		}
		sigma = fmax(1.4826 * ca_estimate_median(scratch, m), est->noise);
		r->win_error = sqrt(squares / (n - 2) / spread);
		r->usual_error = sqrt(fmax(0, squares / (n - 2) - pow(est->noise, 2)) / w) *
				 ca_estimate_t975(n - 2) / 1.96;
	}
	/* half of the scatter at least is that of phases, and beyond doubt; saved CPU time saves that at most: else
	 * threads wait in S, and it is no matter of phases */
	return r->win > fmax(clearly * ca_estimate_t975(n - 2), sqrt(n - 2)) * r->win_error &&
	       r->active > 0 && r->win * r->rate < r->busy;
}

/* How many periods a second are inside in the region's experiments, beyond those in whole runs. */
static bool find_mean(const struct ca_est *est, uint32_t region, const struct ca_share *share,
		      struct phased *r)
{
	double time = 0, more = 0, periods = 0, work = 0, squares = 0, delay = 0, paying = 0, n = 0;

	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[i];

		if (!is_of(item, region))
			continue;
		time += usual_time(item);
		more += usual_time(item) * beyond(item, r->share);
		periods += item->periods;
		work += item->work;
		delay += item->delay;
		paying += item->paying;
		n++;
	}
	if (n < LEAST || paying <= hardly * delay)
		return false;
	r->mean = more / time;
	r->rate = periods / time;
	r->busy = work / time;
	r->n = n;
	for (size_t i = 0; i < est->items; i++)
		if (is_of(&est->item[i], region))
			squares += pow(
				usual_time(&est->item[i]) * (beyond(&est->item[i], r->share) - r->mean), 2);
	r->variance = squares * n / (n - 1) / (time * time);
	r->share_variance = usual * fmax(share->lump, 1) * r->share * (1 - r->share) /
			    (share->periods / r->share) * r->rate * r->rate;
	return r->variance > 0;
}

/* How far experiments are from whole runs beyond chance, relative, its square: all regions together
 * (DerSimonian and Laird, as in estimate.c). */
static double find_between(struct phased *phased, size_t n)
{
	double w1 = 0, q = 0, groups = 0, scatter = 0, experiments = 0;

	/* the experiments of one may lie in one phase, and look as if they all were alike */
	for (size_t k = 0; k < n; k++) {
		const struct phased *r = &phased[k];

		scatter += r->used ? r->n * r->n * r->variance / pow(r->share * r->rate, 2) : 0;
		experiments += r->used ? r->n : 0;
	}
	for (size_t k = 0; k < n; k++) {
		struct phased *r = &phased[k];
		double usually = r->share * r->rate, w;

		if (!r->used)
			continue;
		r->variance = fmax(r->variance, usually * usually * scatter / experiments / r->n);
		w = usually * usually / (r->variance + r->share_variance);
		w1 += w;
		q += w * pow(r->mean / usually, 2);
		groups++;
	}
	return groups > 0 ? fmax(0, (q - groups) / w1) : 0;
}

/* Each experiment of the region as if it had lain in phases like these together. */
static void bring(struct ca_est *est, uint32_t region, const struct phased *r, double to)
{
	for (size_t i = 0; i < est->items; i++) {
		struct ca_est_item *item = &est->item[i];
		double p = item->speedup / 1e6, time = usual_time(item), more;

		if (!is_of(item, region))
			continue;
		more = (beyond(item, r->share) - to) * time;
		item->cost = fmax(item->cost + p * r->win * more, at_least * time);
		item->active = fmax(item->active - r->active * more, 0);
		item->delay = fmin(fmax(item->delay - p * r->active * more, 0), item->elapsed);
		item->paying = NAN; /* its part in these phases is not known */
	}
}

bool ca_estimate_phases(struct ca_est *est, const struct ca_estimate_options *options)
{
	struct phased *phased = calloc(options->shares + 1, sizeof *phased);
	double *scratch = calloc(est->items + 1, sizeof *scratch), between;
	bool ok = phased && scratch;

	for (size_t k = 0; ok && k < options->shares && est->baseline != CA_BASELINE_NONE; k++) {
		const struct ca_share *share = &options->share[k];

		phased[k].share = share->share;
		phased[k].used = share->share > 0 && share->periods > 0 &&
				 find_mean(est, share->region, share, &phased[k]);
	}
	between = ok && !ca_estimate_is_heard(est) ? find_between(phased, options->shares) : 0;
	for (size_t k = 0; ok && k < options->shares; k++) {
		struct phased *r = &phased[k];
		double usually = r->share * r->rate, believed, to, off;

		if (!r->used || !fit(est, options->share[k].region, r, scratch))
			continue;
		believed = between * usually * usually;
		believed /= believed + r->variance;
		to = r->mean * believed;
		off = hypot(r->win * sqrt(r->variance * believed + r->share_variance),
			    hypot(r->usual_error, r->win_error * (r->treated - to)));
		bring(est, options->share[k].region, r, to);
		for (size_t i = 0; i < est->items; i++)
			if (is_of(&est->item[i], options->share[k].region))
				est->item[i].off = off;
	}
	free(phased);
	free(scratch);
	return ok;
}

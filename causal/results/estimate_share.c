/* SPDX-License-Identifier: MIT */
/* Programs have phases, and experiments lie in some of them. Where hardly anybody pays, the effect is the
 * speedup times the share of S, and the samples of whole runs tell that share for all phases together: of a
 * region this is used where it knows more than its experiments, and of all where they are unlike the runs.
 * The reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>

/* Samples that follow each other are alike: their number scatters more than that of independent ones. And where
 * one stands for many periods, as those of threads that often meet others do, so do these together. */
static const double usual = 2;
static const double beyond = 3; /* standard deviations from which on experiments are no fair draw */
/* Times too small is the error that a few experiments show, now and then. */
static const double by_chance = 2;
static const double seldom = 3.84; /* of the distance of one region's, by chance: in one of 20 */
static const double worth = 10;    /* samples that "time in S is CPU time in S" is worth beforehand */
static const double least = 0.05;  /* by which time per sample differs from code to code at least, relative */

/* The experiments of one region. */
struct drawn {
	double active, elapsed, delay, paying, lost; /* s */
	double periods, inside;
};

static const struct ca_share *find_share(const struct ca_estimate_options *options, uint32_t region)
{
	for (size_t i = 0; i < options->shares; i++)
		if (options->share[i].region == region)
			return &options->share[i];
	return NULL;
}

static struct drawn add_up(const struct ca_est *est, const size_t *first, const uint32_t *member,
			   const struct ca_curve *curve)
{
	struct drawn d = { 0 };

	for (size_t i = first[curve->first]; i < first[curve->first + curve->cells]; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		if (!(item->periods > 0) || item->per_visit)
			continue;
		d.active += item->active;
		d.elapsed += item->elapsed;
		d.lost += item->lost;
		d.delay += item->delay;
		d.paying += item->paying;
		d.periods += item->periods;
		d.inside += item->inside;
	}
	return d;
}

static double alike(const struct ca_share *share)
{
	return usual * fmax(share->lump, 1);
}

/* By how much more, or fewer, of the experiments' samples are inside than of the runs', in its variance. */
static double distance(const struct drawn *d, const struct ca_share *share)
{
	double expected = share->share * d->periods, of_runs = d->periods / (share->periods / share->share);

	return pow(d->inside - expected, 2) /
	       (alike(share) * expected * (1 - share->share) * (1 + of_runs) + 1);
}

/* The effect at speedup p is p times `share` then, which may be off by so much, relative, at one sigma; or less,
 * by what was paid, and by what threads may have done of it at once. */
static void set_own(struct ca_est_own *own, const struct drawn *d, double share, double error, double at_once)
{
	double paid = d->delay > 0 ? d->paying / d->delay : 0, bottom = (1 - paid) * (1 - at_once);
	double off = 1.96 * hypot(error, ca_estimate_s_error) * share;

	own->by_runs = true;
	own->share = share;
	own->middle = share * (1 + bottom) / 2;
	own->low = share * bottom - off;
	own->high = fmin(share + off, 1);
}

void ca_estimate_share(const struct ca_est *est, const struct ca_estimate_options *options,
		       const struct ca_estimates *out, const size_t *first, const uint32_t *member,
		       struct ca_est_own *own)
{
	double squares = 0, between = 0, regions = 0, per_sample, rate, prior, lump = 1, overlap = 0,
	       of_runs = 0;
	struct drawn all = { 0 };
	bool unlike;

	for (size_t k = 0; k < out->curves; k++) {
		const struct ca_share *share = find_share(options, out->curve[k].region);
		struct drawn d = add_up(est, first, member, &out->curve[k]);

		if (!own[k].known || !share || !(share->share > 0) || !(d.periods > 0))
			continue;
		squares += distance(&d, share);
		lump = fmax(lump, share->lump); /* the same in all */
		overlap = share->overlap;
		of_runs = share->rate; /* with what other programs took */
		all.active += d.active;
		all.elapsed += d.elapsed;
		all.lost += d.lost;
		all.periods += d.periods;
		all.inside += d.inside;
		regions++;
	}
	if (!(regions > 0))
		return;
	unlike = squares >= regions + beyond * sqrt(2 * regions);
	rate = all.periods / all.elapsed;
	of_runs *= 1 + all.lost / all.elapsed;
	per_sample = (all.active + lump * worth / rate) / (all.inside + lump * worth);
	/* does a sample stand for the same time in all code? Some waits, or is in the kernel */
	for (size_t k = 0; k < out->curves; k++) {
		struct drawn d = add_up(est, first, member, &out->curve[k]);

		if (own[k].known && d.inside > 0)
			between += d.inside / lump * pow(d.active / d.inside / per_sample - 1, 2);
	}
	between = fmax(least * least + overlap * overlap,
		       (between - (regions - 1)) / (all.inside / lump + worth));
	prior = lump / between;
	for (size_t k = 0; k < out->curves; k++) {
		const struct ca_share *share = find_share(options, out->curve[k].region);
		struct drawn d = add_up(est, first, member, &out->curve[k]);
		double time = (d.active + prior * per_sample) / (d.inside + prior);
		double unmet = prior / (d.inside + prior);
		struct ca_est_own by_runs = own[k];

		if (!own[k].known || !share || !(share->share > 0) || !(d.periods > 0))
			continue;
		set_own(&by_runs, &d, fmin(share->share * time * (of_runs > 0 ? of_runs : rate), 1),
			sqrt(lump / (d.inside + prior) + alike(share) * (1 - share->share) / share->periods),
			unmet * fmin(overlap / share->share, 1));
		/* experiments that have not met it agree with each other, too */
		if (unlike || !(d.inside > 0) || distance(&d, share) > seldom ||
		    by_runs.high - by_runs.low < by_chance * (own[k].high - own[k].low))
			own[k] = by_runs;
	}
}

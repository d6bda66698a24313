/* SPDX-License-Identifier: MIT */
/* What an experiment says of its effect without any other: at most D / T, as if no payment had delayed
 * the visits; at least (D - U) / (T - U), as if all of them had. The reasoning is in doc/ESTIMATE.md.
 * Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>

enum { RUNS_ENOUGH = 5 };

const double ca_estimate_s_error = 0.01; /* of S time, relative, standard deviation: doc/METHOD.md */
static const double unseen = 0.001;      /* s in S that may have escaped in all experiments together */
static const double scatter = 0.03;      /* between experiments, relative, as long as nothing is known ... */
static const double scatter_df = 2;      /* ... which has this weight */
static const double clocks_differ = 1.001; /* an experiment's D, all of it in S at 100 %, and its length */
static const double kept = 0.98; /* of what was inserted: else virtual time has caught up with the outside */
static const double shared = 0.05; /* of D, what all stood still for */
static const double often = 0.1;   /* waits with a time limit, for each visit */
/* Of D: what is paid in so little of it has delayed nothing else. Where time is counted, there is nothing to compare
 * with: what was paid is in the interval, up to half of D, or as long as it is no more of the share of S. */
static const double hardly = 0.1, half = 0.5, little = 0.02;

struct part {
	double top, bottom;
	uint32_t run;
};

struct ratio {
	double value;
	double error; /* by which it may be off on either side, 95 % */
};

static int by_run(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return (x->run > y->run) - (x->run < y->run);
}

/* Of the share of S in single experiments; and from how many that is known, 0: 3 % of it is assumed. */
struct scatter {
	double of, df;
};

/* The experiments of a cell may lie in one phase of the program, and look as if all were alike: so those of the
 * region tell, beyond what their visits scatter at 0 %. */
static struct scatter find_scatter(const struct ca_est *est, const uint32_t *member, size_t n)
{
	double sum = 0, squares = 0, chance = 0, m = 0, variance;

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];
		double usual = item->visits * item->base, share = item->active / usual;

		if (!item->per_visit || !(item->elapsed > 0) || !(usual > 0))
			continue;
		sum += share;
		squares += share * share;
		chance += pow(ca_estimate_scatter(item, item->base, est->noise, est->quantum), 2);
		m++;
	}
	variance = m > 1 ? (squares - sum * sum / m) / (m - 1) - chance / m * pow(sum / m, 2) : 0;
	return variance > pow(scatter * sum / m, 2)
		       ? (struct scatter){ sqrt(variance), fmax(m - 1, scatter_df) }
		       : (struct scatter){ 0 };
}

/* sum(top) / sum(bottom) of these experiments, for the program's usual one. */
static struct ratio ratio_of(struct part *part, size_t n, double s_share, double p,
			     const struct scatter *known)
{
	double top = 0, bottom = 0, squares = 0, runs = 0, between = 0, off, error, df;
	struct ratio r;

	for (size_t i = 0; i < n; i++) {
		top += part[i].top;
		bottom += part[i].bottom;
	}
	r.value = bottom > 0 ? top / bottom : NAN;
	qsort(part, n, sizeof *part, by_run);
	for (size_t i = 0; i < n;) {
		uint32_t run = part[i].run;
		double sum = 0;

		for (; i < n && part[i].run == run; i++) {
			off = (part[i].top - r.value * part[i].bottom) / bottom;
			squares += off * off;
			sum += off;
		}
		between += sum * sum;
		runs++;
	}
	df = known->df > 0 ? known->df : scatter_df;
	error = known->df > 0 ? known->of * p : scatter * s_share;
	error = (df * error * error / (double)n + squares * (double)n) / (df + (double)n - 1);
	error = sqrt(error) * ca_estimate_t975(df + (double)n - 1);
	if (runs >= RUNS_ENOUGH && runs < (double)n)
		error = fmax(error, sqrt(between * runs / (runs - 1)) * ca_estimate_t975(runs - 1));
	r.error = hypot(error, 1.96 * ca_estimate_s_error * s_share) + unseen / bottom;
	return r;
}

static bool is_bounded(const struct ca_est_item *item)
{
	return item->elapsed > 0 && item->delay <= clocks_differ * item->elapsed;
}

static bool all_known(const struct ca_est *est, const uint32_t *member, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_bounded(&est->item[member[i]]) || !(est->item[member[i]].paying >= 0))
			return false;
	return n > 0;
}

/* Do the region's threads share CPUs with others? Then they win more than the time that they are at work for. */
static bool shares_cpus(const struct ca_est *est, const uint32_t *member, size_t n)
{
	double still = 0, delay = 0;

	for (size_t i = 0; i < n; i++) {
		still += est->item[member[i]].still;
		delay += est->item[member[i]].delay;
	}
	return still > shared * delay;
}

/* One cell, at speedup p: its experiments by themselves. At 0 %: the share of S, which is the most there is
 * to win where threads have CPUs of their own. */
static struct ca_est_bound bound_cell(const struct ca_est *est, const uint32_t *member, size_t n, double p,
				      double room, const struct scatter *known, struct part *part)
{
	struct ca_est_bound bound = { -INFINITY, INFINITY };
	double share = 0, delay = 0, rest = 0;
	struct ratio r;
	size_t m = 0;

	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];

		if (is_bounded(item))
			part[m++] =
				(struct part){ p > 0 ? item->delay : item->active, item->elapsed, item->run };
	}
	if (!m)
		return bound;
	for (size_t i = 0; i < m; i++)
		share += part[i].top / part[i].bottom / (double)m;
	r = ratio_of(part, m, share, p > 0 ? p : 1, known);
	bound.high = fmin(r.value + room * r.error, p > 0 ? p : 1); /* S is no more than all of it */
	if (!(p > 0) || !all_known(est, member, n))
		return bound;
	for (size_t i = 0; i < n; i++) {
		const struct ca_est_item *item = &est->item[member[i]];
		double paying = fmin(item->paying, 0.999 * item->elapsed);

		part[i] = (struct part){ item->delay - paying, item->elapsed - paying, item->run };
		delay += item->delay;
		rest += item->elapsed - paying;
	}
	r = ratio_of(part, n, share, p, known);
	/* what is 1 % of D is more of T - U than of T */
	r.error = hypot(r.error, 1.96 * ca_estimate_s_error * (delay / rest - share));
	bound.low = r.value - room * r.error;
	return bound;
}

/* Where a limit of CPU time held the run back, S is to all of the time as D is to p of it. At 0 % it is not known. */
static double active_of(const struct ca_est_item *item, double p, bool limited)
{
	return !limited ? item->active : p > 0 ? item->delay / p : NAN;
}

/* All experiments of a region in one: which share of the time S takes; and, if hardly anybody ever paid,
 * the answer. Then nobody else was on a CPU while S was active, whatever the speedup, and the effect is
 * the speedup times that share. limited: what nobody paid for is in D, too. */
static void find_own(const struct ca_est *est, const struct ca_cell *cell, size_t cells, const size_t *first,
		     const uint32_t *member, const struct scatter *known_scatter, bool limited,
		     struct part *part, struct ca_est_own *own)
{
	double delay = 0, paying = 0, limits = 0, visits = 0, low = 0, lost = 0, rest = 0, share = 0;
	bool known = true, timed = true;
	struct ratio high;
	size_t m = 0;

	for (size_t c = 0; c < cells; c++)
		for (size_t i = first[c]; i < first[c + 1]; i++) {
			const struct ca_est_item *item = &est->item[member[i]];
			double p = cell[c].speedup / 1e6;

			if (!is_bounded(item)) {
				known = false;
				continue;
			}
			limits += item->limits;
			visits += item->visits;
			part[m] = (struct part){ active_of(item, p, limited), item->elapsed, item->run };
			if (isfinite(part[m].top)) {
				share += part[m].top / part[m].bottom;
				m++;
			}
			if (!(p > 0))
				continue;
			known = known && item->paying >= 0 && item->delay >= kept * p * item->active;
			delay += item->delay;
			paying += item->paying;
			timed = timed && !item->per_visit;
			low += (item->delay - item->paying) / p;
			lost += item->paying / p;
			rest += item->elapsed - item->paying;
		}
	*own = (struct ca_est_own){ .share = m ? share / (double)m : 0, .timed = limits > often * visits };
	if (!known || !(rest > 0) ||
	    (paying > (timed ? half : hardly) * delay && !(timed && lost <= little * rest)))
		return;
	high = ratio_of(part, m, own->share, 1, known_scatter);
	low = fmin(low / rest, high.value);
	own->known = true;
	own->high = fmin(high.value + high.error, 1);
	own->middle = fmin((high.value + low) / 2, 1);
	own->low = low - high.error;
}

bool ca_estimate_bounds(const struct ca_est *est, const struct ca_estimate_options *options,
			const struct ca_estimates *out, const size_t *first, const uint32_t *member,
			struct ca_est_bound *bound, struct ca_est_own *own)
{
	struct part *part = calloc(est->items + 1, sizeof *part);

	for (size_t k = 0; part && k < out->curves; k++) {
		size_t from = out->curve[k].first, n = out->curve[k].cells;
		/* all of a curve's are to hold at once: each gets more room than it would need alone */
		double room = sqrt(1 + 2 * log((double)n) / (1.96 * 1.96));

		size_t members = first[from + n] - first[from];
		bool share = shares_cpus(est, member + first[from], members);
		struct scatter known = find_scatter(est, member + first[from], members);

		for (size_t c = from; c < from + n; c++)
			bound[c] = share && !out->cell[c].speedup
					   ? (struct ca_est_bound){ -INFINITY, 1 }
					   : bound_cell(est, member + first[c], first[c + 1] - first[c],
							out->cell[c].speedup / 1e6, room, &known, part);
		find_own(est, out->cell + from, n, first + from, member, &known, share, part, &own[k]);
	}
	if (part)
		ca_estimate_share(est, options, out, first, member, own);
	free(part);
	return part;
}

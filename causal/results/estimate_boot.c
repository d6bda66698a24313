/* SPDX-License-Identifier: MIT */
/* Intervals: a weighted bootstrap, clustered by run where there are enough runs.
 *
 * Each replicate gives every unit (a run, or an experiment) a random weight, exponential with
 * mean 1 (Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981): unlike drawing with
 * replacement it never leaves a small cell or the baseline empty. Percentiles of few units are
 * too narrow, by the variance's n-1 and by the tails of t; both are made good (Hesterberg,
 * "What teachers should know about the bootstrap", American Statistician 69, 2015, section
 * 5.3). Seeded: equal data, equal intervals. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	RUNS_ENOUGH = 5, /* cells of fewer runs resample experiments */
	POOL_OWN = 10,   /* a cell of so many experiments knows its own scatter */
	POOL_ENOUGH = 6, /* degrees of freedom that make a pool of residuals */
	WEIGHT_BUDGET = 200000000
};

/* Residuals in sigmas, to draw from for cells that are too small to know their own scatter. */
struct pool {
	const uint32_t *member;
	const double *value;
	const double *weight;
	size_t n;
	double df;
	bool zeros; /* those at 0 % may be drawn too */
};

struct boot {
	struct ca_est *est;
	struct ca_estimates *out;
	const size_t *first;
	const uint32_t *member;
	const double *shrink;
	double *run_weight, *weight, *factor, *base[2], *own[2];
	double *value, *value_weight; /* by position in member[] */
	double *zero_value;           /* residuals of the zeros, in sigmas */
	size_t zero_values;
	bool single;       /* every run has one experiment, as end to end */
	struct pool *pool; /* by cell */
	double *deviation; /* by cell, replicate: log of ratio* / ratio */
	size_t replicates;
	struct ca_rng rng;
};

/* With one experiment a run, runs are experiments. */
static bool by_run(const struct boot *b, const struct ca_cell *cell)
{
	return cell->runs >= RUNS_ENOUGH && !b->single;
}

/* How an experiment at a speedup scatters, relative: also by what D is off by, which is a large part of T - D where S is
 * nearly all that the program does. Without that a residual of such an experiment, in units of what others scatter by,
 * would pass for a disturbance that may happen to each. */
static double scatter(const struct boot *b, const struct ca_est_item *item, double period)
{
	double off = ca_estimate_s_error * item->delay, left = item->elapsed - item->delay;

	return hypot(ca_estimate_scatter(item, period, b->est->noise, b->est->quantum),
		     item->elapsed > 0 && off > 0 ? off / fmax(left, off) : 0);
}

/* ---- pools of residuals --------------------------------------------------------*/

static void fill_values(struct boot *b)
{
	for (size_t c = 0; c < b->out->cells; c++) {
		const struct ca_cell *cell = &b->out->cell[c];
		double n = (double)cell->experiments;
		double ratio = 1 - cell->effect / 100;

		for (size_t i = b->first[c]; i < b->first[c + 1]; i++) {
			const struct ca_est_item *item = &b->est->item[b->member[i]];
			double sigma = scatter(b, item, ratio * item->base);

			b->value[i] = n > 1 ? item->residual / sigma * sqrt(n / (n - 1)) : 0;
			b->value_weight[i] = n > 1 ? item->weight : -1; /* -1: says nothing */
		}
	}
}

/* Each zero against the baseline that the others make at its place: k of them have a part
 * 1/k in the difference's variance. */
static void fill_zeros(struct boot *b)
{
	const struct ca_est *est = b->est;

	for (size_t z = 0; z < est->zeros; z++) {
		const struct ca_est_item *item = &est->item[est->zero[z]];
		double k = est->k ? (double)item->neighbours : (double)est->zeros - 1;
		double sigma = ca_estimate_scatter(item, item->base, est->noise, est->quantum);

		if (item->weight >= 0.05 && k >= 1)
			b->zero_value[b->zero_values++] =
				(1 - item->visits * item->base / item->cost) / sigma / sqrt(1 + 1 / k);
	}
}

/* Degrees of freedom in cells [from, to), those at 0 % left out or not. */
static double freedom(const struct boot *b, size_t from, size_t to, bool zeros)
{
	double df = 0;

	for (size_t c = from; c < to; c++)
		if ((zeros || b->out->cell[c].speedup) && b->out->cell[c].experiments > 1)
			df += (double)(b->out->cell[c].experiments - 1);
	return df;
}

/* The smallest group that knows the scatter: the cell, its curve, all curves, the zeros too.
 * Residuals at 0 % come last: treated experiments scatter more. */
static struct pool find_pool(const struct boot *b, size_t c, const struct ca_curve *curve)
{
	const struct ca_cell *cell = &b->out->cell[c];
	size_t from = c, to = c + 1, start;
	bool zeros;

	if (cell->experiments < POOL_OWN) {
		from = curve->first;
		to = from + curve->cells;
		if (freedom(b, from, to, false) < POOL_ENOUGH) {
			from = 0;
			to = b->out->cells;
		}
	}
	start = b->first[from];
	zeros = freedom(b, from, to, false) < POOL_ENOUGH;
	return (struct pool){
		.member = b->member + start,
		.value = b->value + start,
		.weight = b->value_weight + start,
		.n = b->first[to] - start,
		.df = freedom(b, from, to, zeros),
		.zeros = zeros,
	};
}

/* One residual. Outliers are among them only for cells too small to have dropped their own. */
static double draw(struct boot *b, const struct pool *pool, bool outliers)
{
	for (int attempt = 0; attempt < 200; attempt++) {
		size_t i = ca_rng_below(&b->rng, pool->n);

		if (pool->weight[i] >= (outliers ? 0 : 0.05) &&
		    (pool->zeros || b->est->item[pool->member[i]].speedup))
			return pool->value[i];
	}
	return 0;
}

/* ---- replicates ----------------------------------------------------------------*/

static void levels(struct boot *b, const double *base, bool runs, double *own)
{
	for (size_t k = 0; k < b->out->curves; k++) {
		size_t c = b->out->curve[k].first;
		double cost = 0, usual = 0;

		own[k] = 1;
		if (b->shrink[k] <= 0)
			continue;
		for (size_t i = b->first[c]; i < b->first[c + 1]; i++) {
			const struct ca_est_item *item = &b->est->item[b->member[i]];
			double w = item->weight * (runs ? b->run_weight[item->run] : 1);

			cost += w * item->cost * (runs ? 1 : b->factor[b->member[i]]);
			usual += w * item->visits * base[b->member[i]];
		}
		if (usual > 0 && cost > 0)
			own[k] = pow(cost / usual, b->shrink[k]);
	}
}

static double replicate_by_run(const struct boot *b, size_t c)
{
	double cost = 0, usual = 0;

	for (size_t i = b->first[c]; i < b->first[c + 1]; i++) {
		const struct ca_est_item *item = &b->est->item[b->member[i]];
		double w = item->weight * b->run_weight[item->run];

		cost += w * item->cost;
		usual += w * item->visits * b->base[0][b->member[i]];
	}
	return cost / usual;
}

/* Cost of each zero times a factor that is as far from 1 as such residuals are. Weights would
 * not do here: two neighbours under random weights vary a third as much as they should. */
static void vary_zeros(struct boot *b)
{
	const struct ca_est *est = b->est;

	for (size_t z = 0; z < est->zeros; z++) {
		const struct ca_est_item *item = &est->item[est->zero[z]];
		double sigma = ca_estimate_scatter(item, item->base, est->noise, est->quantum);

		b->factor[est->zero[z]] =
			b->zero_values
				? fmax(0.01, 1 + sigma * b->zero_value[ca_rng_below(&b->rng, b->zero_values)])
				: 1;
	}
}

/* The baseline and the cell vary by residuals drawn from their pools. */
static double replicate_by_experiment(struct boot *b, size_t c, double ratio)
{
	const struct ca_cell *cell = &b->out->cell[c];
	double cost = 0, usual = 0, noise = 0;

	for (size_t i = b->first[c]; i < b->first[c + 1]; i++) {
		const struct ca_est_item *item = &b->est->item[b->member[i]];
		double sigma = scatter(b, item, ratio * item->base);

		cost += item->weight * item->cost;
		usual += item->weight * item->visits * b->base[1][b->member[i]];
		if (cell->speedup)
			noise += item->weight * item->cost * sigma *
				 draw(b, &b->pool[c], cell->experiments < 3);
	}
	return cost / usual * fmax(0.01, 1 + noise / cost);
}

/* Box and Muller. */
static double normal(struct boot *b)
{
	return sqrt(2 * ca_estimate_exponential(&b->rng)) * cos(6.283185307 * ca_rng_unit(&b->rng));
}

static void replicate(struct boot *b, size_t r)
{
	struct ca_est *est = b->est;
	double shift = est->control > 0 ? normal(b) : 0;

	for (size_t i = 0; i < est->runs; i++)
		b->run_weight[i] = ca_estimate_exponential(&b->rng);
	for (size_t z = 0; z < est->zeros; z++)
		b->weight[est->zero[z]] = b->run_weight[est->item[est->zero[z]].run];
	ca_estimate_rebase(est, b->weight, NULL, b->base[0]);
	levels(b, b->base[0], true, b->own[0]);
	vary_zeros(b);
	ca_estimate_rebase(est, NULL, b->factor, b->base[1]);
	levels(b, b->base[1], false, b->own[1]);
	for (size_t k = 0; k < b->out->curves; k++) {
		const struct ca_curve *curve = &b->out->curve[k];
		double off = est->item[b->member[b->first[curve->first]]].off;

		off *= off > 0 ? normal(b) : 0;
		for (size_t c = curve->first; c < curve->first + curve->cells; c++) {
			const struct ca_cell *cell = &b->out->cell[c];
			double ratio = 1 - cell->effect / 100, n = (double)cell->runs, now;

			if (!isfinite(ratio))
				continue;
			if (by_run(b, cell))
				now = log(replicate_by_run(b, c) / b->own[0][k] / ratio) *
				      sqrt((n + 1) / (n - 1));
			else
				now = log(replicate_by_experiment(b, c, ratio) / b->own[1][k] / ratio);
			if (cell->speedup)
				now += shift * est->item[b->member[b->first[c]]].slip +
				       off * cell->speedup / 1e6 / ratio;
			b->deviation[c * b->replicates + r] = isfinite(now) ? now : 0;
		}
	}
}

/* ---- intervals -----------------------------------------------------------------*/

/* The baseline is chosen and outliers are dropped on the same data, which no replicate sees.
 * Simulated (tests/unit/test_results_estimate.c) that costs 2 to 4 points of coverage; this returns
 * them. */
static const double choice = 1.08;

/* Degrees of freedom of a difference (Welch; Satterthwaite, Biometrics Bulletin 2, 1946): the
 * cell's n experiments know their scatter with the pool's, the zeros with their own. */
static double known_from(const struct boot *b, size_t c)
{
	const struct ca_cell *cell = &b->out->cell[c];
	double zeros = (double)b->est->zeros, n = (double)cell->experiments;
	double used = b->est->k ? fmin(zeros, n * b->est->k) : zeros;
	double v = 1 / n, v0 = 1 / used;

	if (by_run(b, cell))
		return (double)cell->runs - 1;
	return (v + v0) * (v + v0) / (v * v / b->pool[c].df + v0 * v0 / fmax(zeros - 1, 0.5));
}

static void cell_interval(struct boot *b, size_t c, double *sorted)
{
	struct ca_cell *cell = &b->out->cell[c];
	double ratio = 1 - cell->effect / 100, wide;

	cell->low = cell->high = NAN;
	if (!isfinite(ratio) || (!by_run(b, cell) && b->pool[c].df < 1))
		return;
	wide = choice * ca_estimate_t975(known_from(b, c)) / 1.959964;
	memcpy(sorted, b->deviation + c * b->replicates, b->replicates * sizeof *sorted);
	qsort(sorted, b->replicates, sizeof *sorted, ca_estimate_compare);
	/* The estimate itself is always inside, however odd the replicates. */
	cell->low =
		100 * (1 - ratio * exp(wide * fmax(0, ca_estimate_quantile(sorted, b->replicates, 0.975))));
	cell->high =
		100 * (1 - ratio * exp(wide * fmin(0, ca_estimate_quantile(sorted, b->replicates, 0.025))));
}

/* What the error of S time is worth in log(ratio), where more was inserted than the program takes by itself:
 * beyond that of its share, which all curves have. Variance. */
static double stretched(const struct boot *b, size_t c)
{
	double delay = 0, elapsed = 0, ratio = 1 - b->out->cell[c].effect / 100;

	for (size_t i = b->first[c]; i < b->first[c + 1]; i++) {
		delay += b->est->item[b->member[i]].delay;
		elapsed += b->est->item[b->member[i]].elapsed;
	}
	if (!(elapsed > delay) || !(ratio > 0))
		return 0;
	return pow(ca_estimate_s_error, 2) *
	       fmax(0, pow(delay / (elapsed - delay), 2) - pow(delay / elapsed / ratio, 2));
}

/* How the cells of a curve scatter, each and all together. variance: room for its cells. */
static struct ca_est_spread find_spread(const struct boot *b, const struct ca_curve *curve, double *variance)
{
	const double *deviation = b->deviation + curve->first * b->replicates;
	double together = 0, sum = 0, n = 0, df = 0, zeros = (double)b->est->zeros;

	for (size_t r = 0; r < b->replicates; r++) {
		double all = 0;

		for (size_t c = 0; c < curve->cells; c++)
			if (b->out->cell[curve->first + c].speedup)
				all += deviation[c * b->replicates + r];
		together += all * all / (double)b->replicates;
	}
	for (size_t c = 0; c < curve->cells; c++) {
		const struct ca_cell *cell = &b->out->cell[curve->first + c];

		variance[c] = NAN;
		if (!cell->speedup || !isfinite(cell->effect) || !(zeros > 0))
			continue;
		variance[c] = 0;
		for (size_t r = 0; r < b->replicates; r++)
			variance[c] += pow(deviation[c * b->replicates + r], 2) / (double)b->replicates;
		sum += variance[c];
		/* where there are no residuals to draw from */
		variance[c] = fmax(variance[c],
				   pow(b->est->noise, 2) * (1 / (double)cell->experiments + 1 / zeros));
		variance[c] = variance[c] * choice + stretched(b, curve->first + c);
		df += fmax(0, known_from(b, curve->first + c));
		n++;
	}
	return (struct ca_est_spread){ .variance = variance,
				       .common = n > 1 ? fmax(0, (together - sum) / (n * (n - 1))) : 0,
				       .df = n > 0 && isfinite(df) ? df / n : 0 };
}

static double *doubles(size_t n)
{
	return calloc(n + 1, sizeof(double));
}

static bool boot_init(struct boot *b, const struct ca_estimate_options *options)
{
	const struct ca_est *est = b->est;
	size_t work = est->items * (2 * est->k + 4) + 1;

	b->replicates = options->replicates ? options->replicates : 1000;
	if (b->replicates > WEIGHT_BUDGET / work) /* very large profiles: seconds, not minutes */
		b->replicates = WEIGHT_BUDGET / work < 200 ? 200 : WEIGHT_BUDGET / work;
	ca_rng_init(&b->rng, options->seed);
	b->run_weight = doubles(est->runs);
	b->weight = doubles(est->items);
	b->factor = doubles(est->items);
	b->zero_value = doubles(est->zeros);
	b->single = est->runs == est->items;
	for (int i = 0; i < 2; i++) {
		b->base[i] = doubles(est->items);
		b->own[i] = doubles(b->out->curves);
		if (!b->base[i] || !b->own[i])
			return false;
	}
	b->value = doubles(est->items);
	b->value_weight = doubles(est->items);
	b->pool = calloc(b->out->cells + 1, sizeof *b->pool);
	b->deviation = doubles(b->out->cells * b->replicates);
	return b->run_weight && b->weight && b->factor && b->zero_value && b->value && b->value_weight &&
	       b->pool && b->deviation;
}

static void boot_fini(struct boot *b)
{
	for (int i = 0; i < 2; i++) {
		free(b->base[i]);
		free(b->own[i]);
	}
	free(b->run_weight);
	free(b->weight);
	free(b->factor);
	free(b->zero_value);
	free(b->value);
	free(b->value_weight);
	free(b->pool);
	free(b->deviation);
}

/* Of the time of a region's experiments. A dozen looks in each are few: it begins as it is in all of them, as if so many
 * had been its own. */
static double mean_idle(const struct ca_est *est, uint32_t region)
{
	static const double all = 10;
	double sum = 0, own = 0, n = 0;

	for (size_t i = 0; i < est->items; i++) {
		sum += est->item[i].idle;
		if (est->item[i].region == region) {
			own += est->item[i].idle;
			n++;
		}
	}
	return est->items ? (own + all * sum / (double)est->items) / (n + all) : 0;
}

/* ... the part in S as samples tell it, above 0 %. */
static double sampled_share(const struct ca_est *est, uint32_t region)
{
	double inside = 0, elapsed = 0;

	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[i];

		if (item->region != region || !item->speedup || !(item->elapsed > 0))
			continue;
		inside += item->lumps;
		elapsed += item->elapsed;
	}
	return elapsed > 0 ? inside / elapsed : 0;
}

bool ca_estimate_boot(struct ca_est *est, const struct ca_estimate_options *options, struct ca_estimates *out,
		      const size_t *first, const uint32_t *member, const double *shrink)
{
	struct boot b = { .est = est, .out = out, .first = first, .member = member, .shrink = shrink };
	double *variance = doubles(out->cells), *sorted = NULL;
	struct ca_est_bound *bound = calloc(out->cells + 1, sizeof *bound);
	struct ca_est_own *own = calloc(out->curves + 1, sizeof *own);
	bool ok = boot_init(&b, options) && variance && bound && own && (sorted = doubles(b.replicates)) &&
		  ca_estimate_bounds(est, options, out, first, member, bound, own);

	if (!ok)
		goto done;
	fill_values(&b);
	fill_zeros(&b);
	for (size_t k = 0; k < out->curves; k++)
		for (size_t c = out->curve[k].first; c < out->curve[k].first + out->curve[k].cells; c++)
			b.pool[c] = find_pool(&b, c, &out->curve[k]);
	for (size_t r = 0; r < b.replicates && est->baseline != CA_BASELINE_NONE; r++)
		replicate(&b, r);
	for (size_t c = 0; c < out->cells; c++)
		cell_interval(&b, c, sorted);
	for (size_t k = 0; k < out->curves; k++) {
		struct ca_curve *curve = &out->curve[k];
		struct ca_est_spread spread = find_spread(&b, curve, variance);

		ca_estimate_curve(out->cell + curve->first, &spread, bound + curve->first, &own[k], curve);
		curve->idle = curve->how >= CA_HOW_OWN ? 0 : mean_idle(est, curve->region);
		curve->sampled = curve->how >= CA_HOW_OWN ? 0 : sampled_share(est, curve->region);
	}
done:
	boot_fini(&b);
	free(variance);
	free(bound);
	free(own);
	free(sorted);
	return ok;
}

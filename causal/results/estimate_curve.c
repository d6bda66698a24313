/* SPDX-License-Identifier: MIT */
/* One region along its speedups: all its experiments together. The reasoning is in doc/ESTIMATE.md.
 *
 * How long a program takes is the longest of many paths, each of which falls in proportion to the
 * speedup: so the effect rises from 0 and bends downwards. A shape is a line from 0 with at most one
 * bend, known but for its slope. Each gives a slope with its error, and how well it explains the
 * cells; the curve is all of them with these weights. So what is not known of the shape stays in
 * the interval. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>

const uint32_t ca_estimate_at[CA_AT] = { 250000, 500000, 1000000 };

enum {
	HALF = 1 /* 50 %, in ca_estimate_at */,
	KNEES = 12,
	BENDS = 5,
	SHAPES = 1 + KNEES * BENDS,
	ROUNDS = 32,
	WHOLE_FEW =
		2 /* whole runs do where their interval is narrower by this factor, and by chance seldom */
};

/* Percent of the program that half of the region's time is worth: from that on it is worth it; below
 * the second it does not matter. */
static const double gain_min = 1, gain_small = 3;
static const double widths = 4; /* standard errors in an interval */

/* Slope 1 up to the knee, then this. A third of the weight is the straight line's, a third is shared by those
 * that end in a plateau, and a third by the rest. */
static const double knees[KNEES] = { 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9 };
static const double bends[BENDS] = { 0, 0.2, 0.4, 0.6, 0.8 };
static const double third = 1. / 3;
/* What the method is off by, whatever experiments say: hand-overs, schedulers, caches, our own cost. In points, and of
 * the effect; standard deviations, from the accuracy suite (doc/ESTIMATE.md). */
static const double method_points = 0.3, method_share = 0.01;
/* What we take of the program's time by ourselves is hardly ever S, so that effects on visits are too low by as much of
 * themselves; which is from nothing to this: doc/ESTIMATE.md. */
static const double own_time = 0.03;
/* Idle time beside threads that wait becomes longer or shorter by this, relative to p, in 95 of 100 cases:
 * doc/ESTIMATE.md, "Where the kernel puts threads". */
static const double idle_spread = 1.4;
/* S that samples tell is paid for in lumps, and what is delivered of them where threads meet is off by this, of D, in
 * 95 of 100 cases: doc/ESTIMATE.md, "S that samples tell". */
static const double sampled_spread = 0.08;
/* Points by which whole runs and experiments inside runs have to differ to contradict each other. */
static const double differ = 5;
/* Half widths of 95 % by which a comparison has to be above a bound to be believed. */
static const double doubt = 2;
/* Less than this of what comparisons say lies within the bounds: one of them is wrong. */
static const double contradiction = 0.01;
/* What a comparison whose scatter is not known may be off by. */
static const double unknown = 0.1;
/* Variance left over, in that of the cells: what is beyond is no chance. */
static const double misfit = 4;

struct shape {
	double knee, bend;
	double slope, error; /* of the first part, and 95 % of it over 1.96; not known: the bounds alone */
	double low, high;    /* bounds of the slope */
	double weight;
};

struct fit {
	struct shape shape[SHAPES];
	bool data, bounded; /* are there errors, and bounds? */
	double off;         /* by which effects at 100 % may be off because S time is, standard deviation */
};

static double height(const struct shape *s, double p)
{
	return p <= s->knee ? p : s->knee + s->bend * (p - s->knee);
}

static double area(const struct shape *s)
{
	double rest = 1 - s->knee;

	return s->knee * s->knee / 2 + s->knee * rest + s->bend * rest * rest / 2;
}

static double upper_tail(double z)
{
	return erfc(z / sqrt(2)) / 2;
}

/* Effects below are shares, not percent. */
static double speedup_of(const struct ca_cell *cell)
{
	return cell->speedup / 1e6;
}

static bool is_usable(const struct ca_cell *cell, double variance)
{
	return cell->speedup && isfinite(cell->effect) && variance > 0;
}

/* Slope and fit of one shape to the cells: weighted least squares with an error in common. Returns what
 * is left over, in its variance. */
static double solve(struct shape *s, const struct ca_cell *cell, size_t n, const struct ca_est_spread *spread)
{
	double gg = 0, gz = 0, zz = 0, gr = 0, zr = 0, rr = 0;

	for (size_t c = 0; c < n; c++) {
		double z = cell[c].effect / 100, r = 1 - z, own, g = height(s, speedup_of(&cell[c]));

		if (!is_usable(&cell[c], spread->variance[c]))
			continue;
		own = fmax(spread->variance[c] - spread->common, 0.2 * spread->variance[c]) * r * r;
		gg += g * g / own;
		gz += g * z / own;
		zz += z * z / own;
		gr += g * r / own;
		zr += z * r / own;
		rr += r * r / own;
	}
	rr = spread->common / (1 + spread->common * rr); /* Sherman and Morrison */
	gg -= rr * gr * gr;
	gz -= rr * gr * zr;
	zz -= rr * zr * zr;
	s->slope = gz / gg;
	s->error = sqrt(1 / gg);
	return fmax(0, zz - gz * gz / gg);
}

/* A bound that leaves more than this says nothing: that the program takes twice as long if the code takes no time. */
static const double most_loss = 1;

/* The slope is at most the share of S in the time at 0 %: at any speedup D / T is the most that is won. At p, T is what
 * is left of that time and the p of S that came in; so D / T <= bound, with an effect of slope x height, leaves to S:
 * slope <= bound (1 - slope x height) / (p (1 - bound)). At 0 % the bound is that share itself. */
static double most_slope(const struct shape *s, double p, double bound)
{
	return p > 0 && isfinite(bound) ? fmin(bound / (p * (1 - bound) + bound * height(s, p)), 1) : bound;
}

/* The slopes that bounds leave to a shape; several bounds are to hold at once, so each has more room
 * than for one alone. */
static void bound_shape(struct shape *s, const struct ca_cell *cell, size_t n,
			const struct ca_est_bound *bound)
{
	s->low = -INFINITY;
	s->high = INFINITY;
	for (size_t c = 0; c < n; c++) {
		double p = speedup_of(&cell[c]);

		s->low = fmax(s->low, p > 0 ? bound[c].low / height(s, p) : -INFINITY);
		s->high = fmin(s->high, most_slope(s, p, bound[c].high));
	}
	if (s->low * height(s, 1) < -most_loss)
		s->low = -INFINITY;
}

/* The cells' own scatter tells of sigma, too: Student's t with both. What even the best shape does not
 * explain is an error of the model, and widens all. */
static void weigh(struct fit *fit, const struct ca_cell *cell, size_t n, const struct ca_est_spread *spread)
{
	double left[SHAPES], least = INFINITY, excess = 1, df = fmax(spread->df, 0.5), most = -INFINITY;
	size_t cells = 0;

	for (size_t c = 0; c < n; c++)
		cells += is_usable(&cell[c], spread->variance[c]);
	fit->data = cells > 0 && (spread->df >= 1 || cells >= 3);
	for (size_t j = 0; j < SHAPES && fit->data; j++) {
		left[j] = solve(&fit->shape[j], cell, n, spread);
		least = fmin(least, left[j]);
	}
	if (cells > 2 && fit->data)
		excess = least / ((double)cells - 2) > misfit ? least / ((double)cells - 2) : 1;
	for (size_t j = 0; j < SHAPES && fit->data; j++) {
		struct shape *s = &fit->shape[j];
		double freedom = df + (double)cells - 1;
		double scale = fmax((df + left[j] / excess) / freedom * excess, 0);

		s->weight = log(s->weight) + log(s->error) - freedom / 2 * log(df + left[j] / excess);
		s->error *= sqrt(scale) * ca_estimate_t975(freedom) / 1.959964;
		most = fmax(most, s->weight);
	}
	for (size_t j = 0; j < SHAPES && fit->data; j++) {
		struct shape *s = &fit->shape[j];

		s->weight = exp(s->weight - most) *
			    fmax(1e-6, upper_tail((s->low - s->slope) / s->error) -
					       upper_tail((s->high - s->slope) / s->error));
	}
}

static void make_shapes(struct fit *fit, const struct ca_cell *cell, size_t n,
			const struct ca_est_bound *bound)
{
	bool any = false;

	for (size_t j = 0; j < SHAPES; j++) {
		struct shape *s = &fit->shape[j];

		*s = j ? (struct shape){ .knee = knees[(j - 1) / BENDS],
					 .bend = bends[(j - 1) % BENDS],
					 .weight = third / KNEES / ((j - 1) % BENDS ? BENDS - 1 : 1) }
		       : (struct shape){ .knee = 1, .weight = third };
		bound_shape(s, cell, n, bound);
		any = any || s->low <= s->high;
	}
	for (size_t j = 0; j < SHAPES; j++) {
		struct shape *s = &fit->shape[j];

		if (any && s->low > s->high)
			s->weight = 0;
		if (!any) /* they contradict each other: take them for the error of each */
			*s = (struct shape){ .knee = s->knee,
					     .bend = s->bend,
					     .low = s->high,
					     .high = s->low,
					     .weight = s->weight };
		fit->bounded = fit->bounded || isfinite(s->high);
	}
}

/* Without the experiment, time limits, which move with D, come earlier: what was in time would have been late,
 * and the same visits would have taken longer than they did. That is the one way in which a comparison can be right
 * above the upper bounds; of many cells one is above by chance, so it has to be beyond doubt. */
static void lift_bounds(const struct ca_cell *cell, size_t n, const struct ca_est_spread *spread,
			struct ca_est_bound *bound)
{
	bool above = false;

	for (size_t c = 0; c < n; c++) {
		double z = cell[c].effect / 100, error = unknown;

		if (is_usable(&cell[c], spread->variance[c]))
			error = 1.96 * sqrt(spread->variance[c]) * (1 - z);
		above = above || (cell[c].speedup && z - doubt * error > bound[c].high);
	}
	for (size_t c = 0; c < n && above; c++)
		bound[c].high = INFINITY;
}

/* ---- what the shapes say together -------------------------------------------------------------*/
/* Something that is in proportion to the slope of each shape, and to the speedup for an error of S. */
struct view {
	double of[SHAPES], p;
};

struct answer {
	double middle, low, high;
	double most;    /* by the bounds alone */
	bool by_bounds; /* on both sides */
};

static double error_of(const struct fit *fit, const struct view *view, size_t j)
{
	return hypot(fit->shape[j].error * view->of[j], fit->off * view->p);
}

/* How much of what comparisons say lies below x. */
static double below(const struct fit *fit, const struct view *view, double x)
{
	double sum = 0, all = 0;

	for (size_t j = 0; j < SHAPES; j++) {
		const struct shape *s = &fit->shape[j];

		if (s->weight > 0)
			sum += s->weight * upper_tail((s->slope * view->of[j] - x) / error_of(fit, view, j));
		all += s->weight;
	}
	return sum / all;
}

static double quantile(const struct fit *fit, const struct view *view, double q)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t j = 0; j < SHAPES; j++) {
		double middle = fit->shape[j].slope * view->of[j], error = 10 * error_of(fit, view, j);

		if (fit->shape[j].weight > 0) {
			low = fmin(low, middle - error);
			high = fmax(high, middle + error);
		}
	}
	for (int i = 0; i < ROUNDS; i++) {
		double x = (low + high) / 2;

		if (below(fit, view, x) < q)
			low = x;
		else
			high = x;
	}
	return (low + high) / 2;
}

/* Within the bounds: what of the distribution lies there. Its tail alone, where the middle lies outside, has
 * 95 % of itself as its interval. Without comparisons all that they leave to each shape is as likely. */
static struct answer look(const struct fit *fit, const struct view *view)
{
	struct answer a = { NAN, NAN, NAN, INFINITY, false };
	double low = INFINITY, high = -INFINITY, middles = 0, weights = 0;

	for (size_t j = 0; j < SHAPES; j++) {
		const struct shape *s = &fit->shape[j];

		if (s->weight > 0) {
			low = fmin(low, s->low * view->of[j]);
			high = fmax(high, s->high * view->of[j]);
			middles += s->weight * (s->low + s->high) / 2 * view->of[j];
			weights += s->weight;
		}
	}
	if (fit->data) {
		double from = below(fit, view, low), mass = below(fit, view, high) - from;

		a = (struct answer){
			.middle = quantile(fit, view, from + 0.5 * mass),
			.low = fmin(quantile(fit, view, 0.025), quantile(fit, view, from + 0.05 * mass)),
			.high = fmax(quantile(fit, view, 0.975), quantile(fit, view, from + 0.95 * mass)),
			.most = high,
		};
		if (mass < contradiction) { /* the bounds are known better */
			a.low = -INFINITY;
			a.high = INFINITY;
		}
		a.by_bounds = low > a.low && high < a.high;
		a.low = fmax(a.low, low);
		a.high = fmin(a.high, high);
		a.middle = fmin(fmax(a.middle, a.low), a.high);
	} else if (fit->bounded) {
		a = (struct answer){ middles / weights, low, high, high, true };
		if (!isfinite(low))
			a.middle = a.low = NAN;
	}
	return a;
}

/* The same by own baselines: the share of S, and a straight line. */
static struct answer look_own(const struct ca_est_own *own, double p)
{
	return (struct answer){ own->middle * p, own->low * p, own->high * p, INFINITY, false };
}

static void set(double *middle, double *low, double *high, double unit, struct answer a)
{
	*middle = unit * a.middle;
	*low = unit * a.low;
	*high = unit * a.high;
}

/* Weights of the shapes in least squares through 0, over the speedups that were tried. */
static double slope_view(const struct shape *s, const struct ca_cell *cell, size_t n)
{
	double pg = 0, pp = 0;

	for (size_t c = 0; c < n; c++) {
		double p = speedup_of(&cell[c]), weight = (double)cell[c].experiments;

		pg += weight * p * (p > 0 ? height(s, p) : 0);
		pp += weight * p * p;
	}
	return pp > 0 ? pg / pp : 1;
}

/* The largest effect of those whose interval says that it is one, else of all. */
static void find_max(const struct ca_cell *cell, struct ca_curve *curve)
{
	bool sure = false;

	curve->max = curve->max_speedup = NAN;
	for (size_t c = 0; c < curve->cells; c++) {
		bool better = cell[c].low > 0;

		if (!cell[c].speedup || !isfinite(cell[c].low) || (sure && !better))
			continue;
		if (!isfinite(curve->max) || (better && !sure) || cell[c].effect > curve->max) {
			curve->max = cell[c].effect;
			curve->max_speedup = cell[c].speedup / 1e4;
			sure = better;
		}
	}
}

static struct answer look_at(const struct fit *fit, double p)
{
	struct view view = { .p = p };

	for (size_t j = 0; j < SHAPES; j++)
		view.of[j] = height(&fit->shape[j], p);
	return look(fit, &view);
}

/* A cell with the error of S time, and within its bounds: where it lies outside, the curve knows better. Where
 * hardly anybody paid, the cells are what the curve is. */
static void finish(struct ca_cell *cell, const struct ca_est_bound *bound, const struct ca_est_own *own,
		   const struct fit *fit)
{
	double low = 100 * bound->low, high = 100 * bound->high, p = speedup_of(cell),
	       error = 196 * fit->off * p;

	if (!cell->speedup)
		return;
	if (own->known) {
		set(&cell->effect, &cell->low, &cell->high, 100, look_own(own, p));
		return;
	}
	cell->low = cell->effect - hypot(cell->effect - cell->low, error);
	cell->high = cell->effect + hypot(cell->high - cell->effect, error);
	if (!isfinite(high))
		return;
	if (!(cell->effect >= low && cell->effect <= high))
		cell->effect = 100 * look_at(fit, p).middle;
	if (isfinite(low) && !(cell->low <= high && cell->high >= low)) {
		cell->low = low;
		cell->high = high;
	}
	cell->low = fmax(cell->low, low);
	cell->high = fmin(cell->high, high);
	if (isfinite(cell->effect)) {
		cell->effect = fmin(fmax(cell->effect, low), high);
		cell->low = fmin(cell->low, cell->effect);
		cell->high = fmax(cell->high, cell->effect);
	}
	if (!isfinite(cell->low))
		cell->low = NAN;
}

/* Beyond what was tried the weights of the shapes are no evidence: there may be a plateau behind the last one,
 * and it may have begun before the first. */
static struct answer look_beyond(const struct fit *fit, double p, const struct ca_cell *cell, size_t n,
				 const double *variance)
{
	struct answer a = look_at(fit, p), edge;
	double first = INFINITY, last = 0;

	for (size_t c = 0; c < n; c++)
		if (is_usable(&cell[c], variance[c])) {
			first = fmin(first, speedup_of(&cell[c]));
			last = fmax(last, speedup_of(&cell[c]));
		}
	if (!fit->data || (p >= first && p <= last))
		return a;
	edge = look_at(fit, p < first ? first : last);
	if (p > last)
		a.low = fmin(a.low, edge.low);
	else
		a.high = fmax(a.high, fmin(edge.high, a.most));
	/* nothing says where in it: what is read as +- half of it is to be it */
	if (isfinite(a.low + a.high))
		a.middle = (a.low + a.high) / 2;
	return a;
}

void ca_estimate_curve(struct ca_cell *cell, const struct ca_est_spread *spread, struct ca_est_bound *bound,
		       const struct ca_est_own *own, struct ca_curve *curve)
{
	struct fit fit = { .off = ca_estimate_s_error * own->share };
	struct view view = { .p = 0 };
	size_t n = curve->cells;
	struct answer a;

	if (own->timed && !own->known)
		lift_bounds(cell, n, spread, bound);
	make_shapes(&fit, cell, n, bound);
	weigh(&fit, cell, n, spread);
	curve->how = own->by_runs ? CA_HOW_SHARE : own->known ? CA_HOW_OWN : CA_HOW_COMPARED;
	for (int i = 0; i < CA_AT; i++) {
		double p = ca_estimate_at[i] / 1e6;

		a = own->known ? look_own(own, p) : look_beyond(&fit, p, cell, n, spread->variance);
		if (i == HALF && a.by_bounds)
			curve->how = CA_HOW_BOUNDS;
		set(&curve->at[i], &curve->at_low[i], &curve->at_high[i], 100, a);
	}
	view.p = 0.5;
	for (size_t j = 0; j < SHAPES; j++)
		view.of[j] = area(&fit.shape[j]);
	a = own->known ? look_own(own, view.p) : look(&fit, &view);
	set(&curve->impact, &curve->impact_low, &curve->impact_high, 100, a);
	view.p = 1;
	for (size_t j = 0; j < SHAPES; j++)
		view.of[j] = slope_view(&fit.shape[j], cell, n);
	a = own->known ? look_own(own, view.p) : look(&fit, &view);
	set(&curve->slope, &curve->slope_low, &curve->slope_high, 1, a);
	for (size_t c = 0; c < n; c++)
		finish(&cell[c], &bound[c], own, &fit);
	find_max(cell, curve);
}

double ca_estimate_idle_error(const struct ca_curve *curve, double p)
{
	return idle_spread * p * 100 * curve->idle;
}

double ca_estimate_sampled_error(const struct ca_curve *curve, double p)
{
	return sampled_spread * p * 100 * curve->sampled;
}

double ca_estimate_lasting_error(const struct ca_curve *curve, double p)
{
	return hypot(ca_estimate_idle_error(curve, p), ca_estimate_sampled_error(curve, p));
}

/* An effect may be too low by so much, points. Where each experiment is its own baseline, S has its part of what we take. */
static double missing(const struct ca_curve *curve, double effect)
{
	return curve->how < CA_HOW_OWN ? own_time * effect : 0;
}

/* Bounds allow for what S time is off by, not for this; but no time is saved more than there is. */
static void widen(const struct ca_curve *curve, double *middle, double *low, double *high, double p)
{
	double error = hypot(1.96 * hypot(method_points, method_share * *middle),
			     ca_estimate_lasting_error(curve, p)),
	       most = fmax(*high, 100 * p), more = missing(curve, *middle);

	if (!isfinite(*middle))
		return;
	*low = *middle - hypot(*middle - *low, error) + fmin(more, 0);
	*high = fmin(*middle + hypot(*high - *middle, error) + fmax(more, 0), most);
	*middle = fmin(*middle + more / 2, *high);
}

void ca_estimate_add_method_error(struct ca_estimates *estimates)
{
	for (size_t k = 0; k < estimates->curves; k++) {
		struct ca_curve *curve = &estimates->curve[k];

		for (size_t c = curve->first; c < curve->first + curve->cells; c++) {
			struct ca_cell *cell = &estimates->cell[c];

			if (cell->speedup)
				widen(curve, &cell->effect, &cell->low, &cell->high, speedup_of(cell));
		}
		for (int i = 0; i < CA_AT; i++)
			widen(curve, &curve->at[i], &curve->at_low[i], &curve->at_high[i],
			      ca_estimate_at[i] / 1e6);
		widen(curve, &curve->impact, &curve->impact_low, &curve->impact_high, 0.5);
	}
}

double ca_estimate_width(const struct ca_curve *curve)
{
	return curve->at_high[HALF] - curve->at_low[HALF];
}

bool ca_estimate_prefers_whole(const struct ca_curve *whole, size_t runs, const struct ca_curve *inside,
			       size_t experiments)
{
	bool apart =
		whole->at_low[HALF] > inside->at_high[HALF] || inside->at_low[HALF] > whole->at_high[HALF];

	return runs > experiments ||
	       (runs >= WHOLE_FEW &&
		ca_estimate_width(whole) * (runs < CA_ESTIMATE_WHOLE_RUNS ? WHOLE_FEW : 1) <
			ca_estimate_width(inside)) ||
	       (apart && fabs(whole->at[HALF] - inside->at[HALF]) > differ);
}

bool ca_estimate_decided(const struct ca_curve *curve, double points)
{
	double known = fabs(missing(curve, curve->at[HALF])),
	       half = (curve->at_high[HALF] - curve->at_low[HALF] - known) / 2,
	       lasting = ca_estimate_lasting_error(curve, ca_estimate_at[HALF] / 1e6);

	return half <= hypot(points, lasting) || ca_estimate_verdict(curve) == CA_VERDICT_NOT_WORTH;
}

/* Above 0, also as it is shown: the effect +- half of its interval, which need not lie in the middle. */
static bool is_gain(const struct ca_curve *curve, int at)
{
	return curve->at_low[at] > 0 && curve->at[at] > (curve->at_high[at] - curve->at_low[at]) / 2;
}

enum ca_verdict ca_estimate_verdict(const struct ca_curve *curve)
{
	if (curve->how == CA_HOW_COMPARED && curve->experiments < CA_ESTIMATE_TRIES)
		return CA_VERDICT_NOT_ENOUGH;
	if (is_gain(curve, 0) && is_gain(curve, HALF) && is_gain(curve, CA_AT - 1) &&
	    curve->at_low[HALF] >= gain_min)
		return CA_VERDICT_WORTH;
	if (curve->at_high[HALF] < gain_small)
		return CA_VERDICT_NOT_WORTH;
	return CA_VERDICT_NOT_ENOUGH;
}

double ca_estimate_rank(const struct ca_curve *curve, enum ca_verdict verdict, double usual)
{
	double error = (curve->impact_high - curve->impact_low) / widths;
	double key = verdict == CA_VERDICT_NOT_WORTH ? curve->impact_low
		     : error > 0 && usual > 0        ? curve->impact * usual / (usual + error * error)
						     : curve->impact;

	return isfinite(key) ? key : -HUGE_VAL;
}

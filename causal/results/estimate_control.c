/* SPDX-License-Identifier: MIT */
/* Control variates: what makes one experiment slower than another, and is no effect of it, is taken out. First
 * how fast the CPUs were in it, by a yardstick that the program's work has no part in; then CPU time per
 * visit: much of the rest (the place in the input, caches) makes visits dearer in it by the same factor. How much of
 * that is taken out depends on how sure it is that the experiment itself has not changed it. The reasoning is in
 * doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* By how much the pauses of an experiment may change the work of a visit, relative, standard deviation, in
 * programs that do not spin; and if it is known how fast the CPUs were, which pauses change, too: doc/ESTIMATE.md. */
static const double usual_shift = 0.02, usual_shift_at_speed = 0.01;

/* A slope of what a visit takes on what the yardstick takes has so many degrees of freedom at least, and is at most
 * that of work that needs all that a core can do. */
static const double least_df = 3, steepest = 1.5;

static const double clearly =
	0.8; /* better, for what follows a drift, or the place in the run, to be taken */

/* What an experiment is compared with: the mean of all zeros, of the two nearest in time, or of those at its
 * place in other runs. */
enum against { ALL, TIME, PLACE };

static double others(const struct ca_est *est, enum against against)
{
	return against == ALL ? (double)INFINITY : against == TIME ? 2. : (double)ca_estimate_places(est);
}

/* One speedup of one region. The pauses may change the work of a visit by more the longer they are. */
struct cell {
	uint32_t region, speedup;
	double sum, squares, n; /* of how far the logarithms of work are from that at 0 % */
};

/* Which cell each item is in; all zeros are in the first. Returns how many there are. */
static size_t find_cells(const struct ca_est *est, struct cell *cell, uint32_t *of)
{
	size_t cells = 1;

	for (size_t i = 0; i < est->items; i++) {
		const struct ca_est_item *item = &est->item[i];
		uint32_t c = item->speedup ? 1 : 0;

		while (c && c < cells && (cell[c].region != item->region || cell[c].speedup != item->speedup))
			c++;
		if (c == cells)
			cell[cells++] = (struct cell){ .region = item->region, .speedup = item->speedup };
		of[i] = c;
	}
	return cells;
}

/* ---- how far from 0 % ----------------------------------------------------------------------------*/
static double mean_near(const struct ca_est *est, const double *value, size_t i)
{
	double weight[CA_EST_PLACES], sum = 0, all = 0;
	uint32_t near[CA_EST_PLACES],
		n = ca_estimate_near_place(est, i, ca_estimate_places(est), near, weight);

	for (uint32_t k = 0; k < n; k++) {
		sum += weight[k] * value[near[k]];
		all += weight[k];
	}
	return sum / all;
}

/* Of the zeros before and behind an item, of which there are two at least; `next` of them are not behind it. */
static double mean_between(const struct ca_est *est, const double *value, size_t i, size_t next)
{
	bool own = next && est->zero[next - 1] == i;
	size_t before = next - own, first = before ? before - 1 : next,
	       last = next < est->zeros ? next : before - 1;

	return (value[est->zero[first]] + value[est->zero[last]]) / 2;
}

/* How far the value of each item is from that at 0 %; not finite: not known. */
static void take_off(const struct ca_est *est, const double *value, enum against against, double *off)
{
	double mean = 0, n = 0;
	size_t next = 0;

	for (size_t z = 0; z < est->zeros; z++)
		if (isfinite(value[est->zero[z]])) {
			mean += value[est->zero[z]];
			n++;
		}
	for (size_t i = 0; i < est->items; i++) {
		next += next < est->zeros && est->zero[next] == i;
		off[i] = value[i] - (against == PLACE  ? mean_near(est, value, i)
				     : against == TIME ? mean_between(est, value, i, next)
						       : mean / n);
	}
}

/* ---- how fast the CPUs were ----------------------------------------------------------------------*/
/* A line for all cells, each with a level of its own; experiments count by their length. */
struct line {
	double slope, variance; /* of the slope */
	double left;            /* variance that is left */
};
struct level {
	double n, x, y; /* means, once all are in */
};

/* x, y: how far the logarithms of what the yardstick took and of what a visit took are from those at 0 %. */
static struct line fit(const struct ca_est *est, const double *x, const double *y, struct level *level,
		       size_t cells, const uint32_t *of)
{
	double xx = 0, xy = 0, yy = 0, n = 0, weights = 0, df = -1;
	struct line line = { .left = INFINITY };

	memset(level, 0, cells * sizeof *level);
	for (size_t i = 0; i < est->items; i++)
		if (isfinite(x[i]) && isfinite(y[i])) {
			df += level[of[i]].n > 0;
			level[of[i]].n += est->item[i].cost;
			level[of[i]].x += est->item[i].cost * x[i];
			level[of[i]].y += est->item[i].cost * y[i];
			weights += est->item[i].cost;
			n++;
		}
	for (size_t c = 0; c < cells; c++) {
		level[c].x /= level[c].n;
		level[c].y /= level[c].n;
	}
	for (size_t i = 0; i < est->items; i++)
		if (isfinite(x[i]) && isfinite(y[i])) {
			double weight = est->item[i].cost * n / weights, a = x[i] - level[of[i]].x,
			       b = y[i] - level[of[i]].y;

			xx += weight * a * a;
			xy += weight * a * b;
			yy += weight * b * b;
		}
	if (df < least_df || !(xx > 0))
		return line;
	line.left = (yy - xy * xy / xx) / df;
	line.variance = line.left / xx;
	/* what may be chance is made smaller, down to none (the rule of James and Stein) */
	if (xy > 0 && xy * xy / xx > line.left)
		line.slope = fmin(xy / xx, steepest) * (1 - line.left / (xy * xy / xx));
	return line;
}

/* Counts visits as many as they would have been at the mean speed. False: no memory. */
static bool take_out_yardstick(struct ca_est *est, const uint32_t *of, size_t cells)
{
	double *x = calloc(est->items + 1, sizeof *x), *y = calloc(est->items + 1, sizeof *y),
	       *off_x = calloc(est->items + 1, sizeof *off_x), *off_y = calloc(est->items + 1, sizeof *off_y),
	       mean = 0, n = 0;
	struct level *level = calloc(cells, sizeof *level);
	struct line best = { .left = INFINITY };
	bool ok = x && y && off_x && off_y && level;

	for (size_t i = 0; i < est->items && ok; i++) {
		const struct ca_est_item *item = &est->item[i];

		x[i] = item->yardstick > 0 ? log(item->yardstick) : NAN;
		y[i] = log(item->cost / item->visits);
		mean += item->yardstick > 0 ? item->cost * x[i] : 0;
		n += item->yardstick > 0 ? item->cost : 0;
	}
	for (enum against a = ALL; a <= (ca_estimate_places(est) ? PLACE : TIME) && ok && n > 0; a++) {
		struct line line;

		take_off(est, x, a, off_x);
		take_off(est, y, a, off_y);
		line = fit(est, off_x, off_y, level, cells, of);
		line.left /= 1 + 1 / others(est, a);
		if (line.left < clearly * best.left || !isfinite(best.left))
			best = line;
	}
	if (ok && best.slope > 0) /* for the cells' levels as they are */
		fit(est, x, y, level, cells, of);
	for (size_t i = 0; i < est->items && ok && best.slope > 0; i++) {
		double moved = level[of[i]].x - level[0].x;

		if (!(est->item[i].yardstick > 0) || !isfinite(moved))
			continue;
		est->item[i].visits *= exp(best.slope * (x[i] - mean / n));
		est->item[i].slip = sqrt(best.variance) * fabs(moved);
	}
	free(x);
	free(y);
	free(off_x);
	free(off_y);
	free(level);
	return ok;
}

/* ---- CPU time per visit --------------------------------------------------------------------------*/
static double work_of(const struct ca_est_item *item)
{
	double seconds = item->elapsed - item->delay;

	/* the visits' time is not all of the experiment's: from the first to the last */
	return item->work > 0 && seconds > 0 && item->visits > 0
		       ? item->work / seconds * item->cost / item->visits
		       : 0;
}

/* work: logarithms of that of a visit, by item; not finite: not known. off: scratch. Returns the variance within cells,
 * and what it may be where few tell. */
static double compare(const struct ca_est *est, const double *work, enum against against, struct cell *cell,
		      size_t cells, const uint32_t *of, double *off)
{
	double sum = 0, df = 0;

	for (size_t c = 0; c < cells; c++)
		cell[c].sum = cell[c].squares = cell[c].n = 0;
	take_off(est, work, against, off);
	for (size_t i = 0; i < est->items; i++) {
		struct cell *r = &cell[of[i]];

		if (!isfinite(off[i]))
			continue;
		r->sum += off[i];
		r->squares += off[i] * off[i];
		r->n++;
	}
	for (size_t c = 0; c < cells; c++) {
		const struct cell *r = &cell[c];

		sum += r->n > 1 ? r->squares - r->sum * r->sum / r->n : 0;
		df += r->n > 1 ? r->n - 1 : 0;
	}
	/* few cells hold more than one; two zeros add a half */
	return df > 0 ? sum / df * pow(ca_estimate_t975(df) / 1.96, 2) / (1 + 1 / others(est, against))
		      : INFINITY;
}

/* Of the cells of its region. */
static bool is_first(const struct cell *cell, size_t c)
{
	size_t i = 1;

	while (cell[i].region != cell[c].region)
		i++;
	return i == c;
}

/* How far a region's work per visit is from that at 0 %, and the variance with which that is known; 0: it is not. */
struct shift {
	double mean, variance;
};

/* How far work per visit is from that at 0 % in the program's regions, its variance, beyond what chance explains
 * and a standard deviation of that (DerSimonian and Laird, as in estimate.c). shift: by cell, of its region. known: the
 * variance with which that is known of the best known region. */
static double find_shift(const struct ca_est *est, const double *work, struct cell *cell, size_t cells,
			 const uint32_t *of, double *off, double *known, struct shift *shift)
{
	double zeros = (double)est->zeros, common, tried = 0, sum_m = 0, weights = 0, squares = 0, spread = 0;
	double noise = compare(est, work, ALL, cell, cells, of, off), now;
	enum against against = ALL;

	for (enum against a = TIME; a <= (ca_estimate_places(est) ? PLACE : TIME); a++) {
		now = compare(est, work, a, cell, cells, of, off);
		if (now < clearly * noise) {
			noise = now;
			against = a;
		}
	}
	compare(est, work, against, cell, cells, of, off);
	*known = INFINITY;
	for (size_t c = 1; c < cells; c++) {
		double sum = 0, n = 0, variance;

		if (!is_first(cell, c))
			continue;
		for (size_t i = c; i < cells; i++)
			if (cell[i].region == cell[c].region) {
				sum += cell[i].sum;
				n += cell[i].n;
			}
		if (!(n > 0))
			continue;
		variance = noise * (1 / n + 1 / fmin(zeros, others(est, against) * n));
		*known = fmin(*known, variance);
		for (size_t i = c; i < cells; i++)
			if (cell[i].region == cell[c].region)
				shift[i] = (struct shift){ sum / n, variance };
		if (!(noise > 0) || !isfinite(noise))
			continue;
		tried++;
		weights += n / noise;
		spread += n / noise * n / noise;
		sum_m += n / noise * sum / n;
		squares += n / noise * pow(sum / n, 2);
	}
	/* what the zeros are off by they all have in common: their covariance is diagonal but for that (Sherman and
	 * Morrison) */
	common = weights > 0 ? noise / zeros / (1 + noise / zeros * weights) : 0;
	squares -= common * sum_m * sum_m;
	weights -= common * spread;
	return weights > 0 ? (squares - tried - sqrt(2 * tried)) / weights : 0;
}

/* How much of a difference in work is one in time, at 0 %: all of it where the CPU is what limits, none where
 * the clock is. Least squares. */
static double slope_of(const struct ca_est *est, const double *work)
{
	double n = 0, x = 0, y = 0, xx = 0, xy = 0;

	for (size_t z = 0; z < est->zeros; z++) {
		const struct ca_est_item *item = &est->item[est->zero[z]];
		double w = work[est->zero[z]], t = log(item->cost / item->visits);

		if (!isfinite(w))
			continue;
		n++;
		x += w;
		y += t;
		xx += w * w;
		xy += w * t;
	}
	xx -= x * x / n;
	xy -= x * y / n;
	return n > 2 && xx > 0 ? fmin(fmax(xy / xx, 0), 1) : 0;
}

bool ca_estimate_control(struct ca_est *est)
{
	double *work = calloc(est->items + 1, sizeof *work), *off = calloc(est->items + 1, sizeof *off),
	       known, usual, mean = 0, n = 0, tried = 0;
	struct cell *cell = calloc(est->items + 1, sizeof *cell);
	struct shift *shift = calloc(est->items + 1, sizeof *shift);
	size_t cells = 0;
	uint32_t *of = calloc(est->items + 1, sizeof *of);
	bool ok = work && off && cell && of && shift, can = est->zeros > 1, at_speed = true;

	if (ok && can) {
		cells = find_cells(est, cell, of);
		ok = take_out_yardstick(est, of, cells);
	}
	for (size_t i = 0; i < est->items && ok; i++) {
		work[i] = log(work_of(&est->item[i]));
		can = can && !isnan(est->item[i].work);
		at_speed = at_speed && est->item[i].yardstick > 0;
		if (isfinite(work[i])) {
			mean += work[i];
			n++;
		}
	}
	if (!ok || !can || !(n > 0))
		goto done;
	usual = fmax(pow(at_speed ? usual_shift_at_speed : usual_shift, 2),
		     find_shift(est, work, cell, cells, of, off, &known, shift));
	est->control = isfinite(known) ? known / (known + usual) * slope_of(est, work) : 0;
	for (size_t c = 1; c < cells; c++)
		tried += is_first(cell, c) && shift[c].variance > 0;
	for (size_t i = 0; i < est->items; i++) {
		const struct shift *s = &shift[of[i]];

		/* the largest of so many is as large by chance alone */
		est->item[i].slip = hypot(
			est->item[i].slip,
			est->control * sqrt(fmax(usual, s->mean * s->mean - (1 + log(tried)) * s->variance)));
	}
	/* not its cost is smaller, but each visit counts for more: an experiment weighs as much as its time */
	for (size_t i = 0; i < est->items; i++)
		if (isfinite(work[i]))
			est->item[i].visits *= exp(est->control * (work[i] - mean / n));
done:
	free(work);
	free(off);
	free(cell);
	free(of);
	free(shift);
	return ok;
}

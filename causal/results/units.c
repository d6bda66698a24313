/* SPDX-License-Identifier: MIT */
/* Units of work; see units.h. */
#include "causal/results/units.h"
#include <math.h>
#include <stdlib.h>

enum {
	FEW = 2,    /* runs of each kind that tell; experiments of a code at 0 %, and its speedups that do */
	LEAST = 3,  /* experiments at one speedup ... */
	DEGREES = 5 /* ... and of freedom, from all of them, that say what chance is */
};
static const double scatter = 2; /* times the range of those at 0 %, which is too small where they are few */
static const double differ = 0.05;  /* of the visits */
static const double lasting = 0.03; /* of the length */
static const double uneven = 0.1;   /* of the CPU time of a visit ... */
static const double sigmas = 4;     /* ... beyond chance ... */
static const double with_it = 0.3;  /* ... of which so much may be the entries' */

/* What runs at 0 % have. */
struct usual {
	double low, high;
	size_t n;
};

static void add(struct usual *u, double value)
{
	u->low = u->n ? fmin(u->low, value) : value;
	u->high = fmax(u->high, value);
	u->n++;
}

static bool is_outside(const struct usual *u, double value, double least)
{
	double off = fmax(scatter * (u->high / u->low - 1), least);

	return value > u->high * (1 + off) || value < u->low / (1 + off);
}

bool ca_units_are_refuted(const struct ca_units_run *run, size_t n)
{
	struct usual visits = { 0 }, seconds = { 0 };
	size_t outside = 0, unlike = 0;

	for (size_t i = 0; i < n; i++)
		if (run[i].zero) {
			add(&visits, run[i].visits);
			add(&seconds, run[i].seconds);
		}
	if (visits.n < FEW || !(visits.low > 0) || !(seconds.low > 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!run[i].zero && is_outside(&visits, run[i].visits, differ)) {
			outside++;
			unlike += is_outside(&seconds, run[i].seconds, lasting);
		}
	return outside >= FEW && 2 * outside >= n - visits.n && 2 * unlike >= outside;
}

/* ---- inside runs -------------------------------------------------------------------------*/

/* One code at one speedup. Logarithms: of CPU time by visit, relative to that at 0 % beside it; of entries by CPU time. */
struct cell {
	uint32_t region, speedup;
	size_t n, entered;
	double sum, squares, entries;
};

/* Of a visit; NAN: not known. */
static double work_of(const struct ca_observation *o)
{
	double seconds = o->elapsed - o->delay;

	return o->work > 0 && seconds > 0 && o->visits > 0 && o->cost > 0
		       ? log(o->work / seconds * o->cost / o->visits)
		       : NAN;
}

/* Of the experiment at 0 % that is next to i, before it (step -1) or behind it; NAN: there is none in its run. */
static double work_beside(const struct ca_observation *o, size_t n, size_t i, size_t step)
{
	for (size_t k = i + step; k < n && o[k].run == o[i].run; k += step)
		if (!o[k].speedup && isfinite(work_of(&o[k])))
			return work_of(&o[k]);
	return NAN;
}

static struct cell *cell_of(struct cell *cell, size_t *n, uint32_t region, uint32_t speedup)
{
	size_t i = 0;

	while (i < *n && (cell[i].region != region || cell[i].speedup != speedup))
		i++;
	if (i == *n)
		cell[(*n)++] = (struct cell){ .region = region, .speedup = speedup };
	return &cell[i];
}

static size_t fill(const struct ca_observation *o, size_t n, struct cell *cell)
{
	size_t cells = 0;

	for (size_t i = 0; i < n; i++) {
		double off =
			work_of(&o[i]) - (work_beside(o, n, i, (size_t)-1) + work_beside(o, n, i, 1)) / 2;
		struct cell *c = cell_of(cell, &cells, o[i].region, o[i].speedup);

		if (o[i].entries > 0 && o[i].work > 0) {
			c->entered++;
			c->entries += log(o[i].entries / o[i].work);
		}
		if (!isfinite(off))
			continue;
		c->n++;
		c->sum += off;
		c->squares += off * off;
	}
	return cells;
}

/* Of one experiment, by chance. Not finite: not known. */
static double find_variance(const struct cell *cell, size_t cells)
{
	double sum = 0, df = 0;

	for (size_t i = 0; i < cells; i++)
		if (cell[i].speedup && cell[i].n > 1) {
			sum += fmax(0, cell[i].squares - cell[i].sum * cell[i].sum / (double)cell[i].n);
			df += (double)cell[i].n - 1;
		}
	return df >= DEGREES ? sum / df * pow(ca_estimate_t975(df) / 1.96, 2) : INFINITY;
}

bool ca_units_are_uneven(const struct ca_observation *o, size_t n)
{
	struct cell *cell = calloc(2 * n + 1, sizeof *cell);
	size_t cells = cell ? fill(o, n, cell) : 0, all = cells, told = 0, agree = 0, cheaper = 0;
	double variance = find_variance(cell, cells);

	for (size_t i = 0; i < all; i++) {
		const struct cell *c = &cell[i], *zero = cell_of(cell, &cells, c->region, 0);
		double off = c->sum / (double)c->n,
		       entries = c->entries / (double)c->entered - zero->entries / (double)zero->entered;

		if (!c->speedup || c->n < LEAST || c->entered < LEAST || zero->entered < FEW ||
		    !(fabs(off) > uneven) || !(fabs(off) > sigmas * sqrt(variance / (double)c->n)))
			continue;
		told++;
		agree += fabs(entries) < with_it * fabs(off);
		cheaper += fabs(entries) < with_it * fabs(off) && off < 0;
	}
	free(cell);
	/* what only gets dearer could be made ahead, and stored */
	return agree >= FEW && cheaper && 4 * agree >= 3 * told;
}

void ca_units_count_work(struct ca_observation *o)
{
	o->cost = o->work > 0 ? o->elapsed - o->delay : 0;
	if (!(o->work > 0))
		o->from = o->to = 0; /* else it would tell where the point is not passed */
	o->visits = fmax(o->work, 0) * 1e3;
	o->work = o->before = 0;
	o->counted = false;
}

void ca_units_take_off(struct ca_observation *o, struct ca_results_taken taken)
{
	double all = (double)taken.all / 1e9, in_s = (double)taken.in_s / 1e9,
	       inserted = in_s * o->speedup / 1e6;

	o->cost -= all - inserted;
	o->elapsed -= o->elapsed > 0 ? all : 0;
	o->active -= in_s;
	o->delay -= fmin(inserted, o->delay);
	o->lost = all;
}

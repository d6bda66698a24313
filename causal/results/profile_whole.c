/* SPDX-License-Identifier: MIT */
/* Whole runs beside experiments inside runs: which of the two a region is judged by. Experiments inside
 * runs that do not say the same as whole runs are not steady (doc/METHOD.md, section 8) and not used; else
 * whoever knows more is. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points by which the two may differ. */
static const double differ = 5;
enum { HALF = 1 /* 50 %, in ca_estimate_at */ };

/* The same point as the other kind of experiment saw it, or NULL. */
static const struct ca_profile_point *counterpart(const struct ca_profile *profile,
						  const struct ca_profile_point *point)
{
	for (size_t i = 0; i < profile->points; i++) {
		const struct ca_profile_point *p = &profile->point[i];

		if (p->whole != point->whole && p->kind == point->kind && !strcmp(p->name, point->name))
			return p;
	}
	return NULL;
}

static int by_region(const void *a, const void *b)
{
	const struct ca_curve *x = a, *y = b;

	return (x->region > y->region) - (x->region < y->region);
}

static const struct ca_curve *curve_of(const struct ca_profile_point *point, uint32_t region)
{
	const struct ca_curve key = { .region = region };

	return point && point->estimates.curves
		       ? bsearch(&key, point->estimates.curve, point->estimates.curves, sizeof key, by_region)
		       : NULL;
}

/* Experiments above 0 % that there is an effect of. */
static size_t known(const struct ca_profile_point *point, const struct ca_curve *curve)
{
	size_t n = 0;

	for (size_t c = curve->first; c < curve->first + curve->cells; c++)
		if (point->estimates.cell[c].speedup && isfinite(point->estimates.cell[c].effect))
			n += point->estimates.cell[c].experiments;
	return n;
}

/* By how much the effects of x are larger, at the speedups that both have, on average; NAN: none. */
static double difference(const struct ca_profile_point *px, const struct ca_curve *x,
			 const struct ca_profile_point *py, const struct ca_curve *y)
{
	double sum = 0, n = 0;

	for (size_t i = x->first; i < x->first + x->cells; i++)
		for (size_t k = y->first; k < y->first + y->cells; k++) {
			const struct ca_cell *a = &px->estimates.cell[i], *b = &py->estimates.cell[k];

			if (a->speedup && a->speedup == b->speedup && isfinite(a->effect - b->effect)) {
				sum += a->effect - b->effect;
				n++;
			}
		}
	return sum / n;
}

static bool is_same(const char *name, const struct ca_profile_point *point)
{
	return name && !strcmp(name, point->name);
}

/* Each whole run is a unit of work, as its visits of this point are none; is that so in a point of that name? */
static bool is_refuted_by_runs(const struct ca_profile *profile, const struct ca_profile_point *point)
{
	bool refuted = false, runs = false;

	for (size_t i = 0; i < profile->points; i++) {
		const struct ca_profile_point *p = &profile->point[i];

		runs |= p->kind == 'e' && p->estimates.curves;
		refuted |= p->refuted && p->kind == point->kind && !strcmp(p->name, point->name);
	}
	return runs && refuted;
}

/* Was it chosen with one whose visits are no units of work, since it goes by those? CPU time is one. */
static bool is_refuted_by_work(const struct ca_profile *profile, const struct ca_profile_point *point,
			       const struct ca_curve *curve)
{
	for (size_t i = 0; i < profile->points; i++) {
		const struct ca_profile_point *p = &profile->point[i];

		if (p->works && (is_same(point->unit, p) || is_same(point->beside, p)) &&
		    curve_of(p, curve->region))
			return true;
	}
	return false;
}

/* What it was in proportion to was no work: another one was chosen instead. */
static bool is_replaced(const struct ca_profile *profile, const struct ca_profile_point *point)
{
	for (size_t i = 0; i < profile->points; i++) {
		const char *instead = profile->point[i].instead;

		if (is_same(instead, point) ||
		    (instead && ((point->unit && !strcmp(instead, point->unit)) ||
				 (point->beside && !strcmp(instead, point->beside)))))
			return true;
	}
	return false;
}

/* Time itself was the unit until a point was needed, or the other way round: a region has one row. */
static bool is_known_better(const struct ca_profile *profile, const struct ca_profile_point *point,
			    const struct ca_curve *curve)
{
	bool time = !strcmp(point->name, CA_RESULTS_TIME);
	size_t here = known(point, curve);

	for (size_t i = 0; i < profile->points; i++) {
		const struct ca_profile_point *p = &profile->point[i];
		const struct ca_curve *there = curve_of(p, curve->region);

		if (there && (p->kind == 'l') == (point->kind == 'l') &&
		    time != !strcmp(p->name, CA_RESULTS_TIME) &&
		    (known(p, there) > here || (known(p, there) == here && !time)))
			return true;
	}
	return false;
}

static bool is_sure(const struct ca_curve *curve)
{
	return ca_estimate_verdict(curve) != CA_VERDICT_NOT_ENOUGH;
}

static bool agree(const struct ca_curve *a, const struct ca_curve *b)
{
	return !(a->at_low[HALF] > b->at_high[HALF] || b->at_low[HALF] > a->at_high[HALF]);
}

static bool is_unsteady(const struct ca_profile *profile, const struct ca_profile_point *point,
			const struct ca_curve *curve)
{
	const struct ca_profile_point *other = point->whole ? NULL : counterpart(profile, point);
	const struct ca_curve *whole = curve_of(other, curve->region);

	/* a pair of which nothing is known alone contradicts nobody, nor do some that may say the same */
	return whole && isfinite(whole->at[HALF]) && fabs(difference(point, curve, other, whole)) > differ &&
	       !agree(curve, whole);
}

/* Of most regions that both know; else the one that was chosen first knows more. */
static bool knows_less(const struct ca_profile_point *a, const struct ca_profile_point *b)
{
	int wider = 0;

	for (size_t k = 0; k < a->estimates.curves; k++) {
		const struct ca_curve *here = &a->estimates.curve[k], *there = curve_of(b, here->region);

		if (there && isfinite(ca_estimate_width(here) + ca_estimate_width(there)) &&
		    ca_estimate_width(here) != ca_estimate_width(there))
			wider += ca_estimate_width(here) > ca_estimate_width(there) ? 1 : -1;
	}
	return wider > 0 || (!wider && (is_same(a->unit, b) || is_same(a->beside, b)));
}

/* Whole runs, experiments inside runs and time itself: is it one of the others that is used for this region? */
static bool is_used_otherwise(const struct ca_profile *profile, const struct ca_profile_point *point,
			      const struct ca_curve *curve)
{
	const struct ca_profile_point *other = counterpart(profile, point);
	const struct ca_curve *there = curve_of(other, curve->region);

	if (!there)
		return is_known_better(profile, point, curve);
	return point->whole
		       ? !ca_estimate_prefers_whole(curve, known(point, curve), there, known(other, there))
		       : ca_estimate_prefers_whole(there, known(other, there), curve, known(point, curve));
}

/* Was it chosen as one that counts the same unit of work as this one, since it was in proportion to it, and does an
 * experiment tell them apart? Under an even load, what goes by the clock is in proportion, too. */
static bool is_refuted(const struct ca_profile_point *point, const struct ca_profile_point *first)
{
	if (!is_same(point->unit, first))
		return false;
	for (size_t k = 0; k < point->estimates.curves; k++) {
		const struct ca_curve *here = &point->estimates.curve[k],
				      *there = curve_of(first, here->region);

		if (there && isfinite(ca_estimate_width(here) + ca_estimate_width(there)) &&
		    !agree(here, there))
			return true;
	}
	return false;
}

/* Of points that causal chose for one unit of work, a region has one row. So it has of those for two units, if they say
 * the same. It is that of the one that knows more, unless the other one alone is sure of this region. */
static bool has_another_row(const struct ca_profile *profile, const struct ca_profile_point *point,
			    const struct ca_curve *curve)
{
	for (size_t i = 0; i < profile->points; i++) {
		const struct ca_profile_point *p = &profile->point[i];
		const struct ca_curve *there = curve_of(p, curve->region);
		bool unit = is_same(point->unit, p) || is_same(p->unit, point);
		bool beside = is_same(point->beside, p) || is_same(p->beside, point);

		if (!there || !(unit || (beside && agree(curve, there))) ||
		    is_used_otherwise(profile, p, there) || is_refuted(p, point))
			continue;
		if (is_refuted(point, p))
			return true;
		if (is_sure(there) == is_sure(curve) ? knows_less(point, p) : is_sure(there))
			return true;
	}
	return false;
}

bool ca_profile_passes_over(const struct ca_profile *profile, const struct ca_profile_point *point,
			    const struct ca_curve *curve)
{
	return is_replaced(profile, point) || is_refuted_by_runs(profile, point) ||
	       is_refuted_by_work(profile, point, curve) || is_used_otherwise(profile, point, curve) ||
	       has_another_row(profile, point, curve);
}

bool ca_profile_find_refuted(struct ca_profile *profile)
{
	struct ca_units_run *run = calloc(profile->visit_count + 1, sizeof *run);

	if (!run)
		return false;
	for (size_t p = 0; p < profile->points; p++) {
		size_t n = 0;

		for (size_t i = 0; i < profile->experiments; i++) {
			const struct ca_profile_experiment *e = &profile->experiment[i];

			for (size_t v = e->first; v < e->first + e->visits && !e->flags; v++)
				if (profile->visits[v].point == p)
					run[n++] = (struct ca_units_run){
						!e->speedup, (double)profile->visits[v].delta,
						(double)(e->end - e->start - e->delay) / 1e9
					};
		}
		profile->point[p].refuted = profile->point[p].whole && profile->point[p].kind == 't' &&
					    ca_units_are_refuted(run, n);
	}
	free(run);
	return true;
}

bool ca_profile_find_unsteady(struct ca_profile *profile)
{
	bool found = false;

	for (size_t i = 0; i < profile->experiments; i++) {
		struct ca_profile_experiment *e = &profile->experiment[i];

		for (size_t v = e->first; v < e->first + e->visits && !e->flags; v++) {
			const struct ca_profile_point *point = &profile->point[profile->visits[v].point];
			const struct ca_curve *curve = curve_of(point, e->region);

			if (!curve || !is_unsteady(profile, point, curve))
				continue;
			e->flags |= CA_EXPERIMENT_UNSTEADY;
			found = true;
		}
	}
	return found;
}

/* SPDX-License-Identifier: MIT */
/* Steadiness of rates; see steady.h. */
#include "causal/conductor/steady.h"
#include "causal/results/estimate.h"
#include "core/vec.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	OTHERS = 3,  /* experiments of a region inside runs before there can be a doubt ... */
	ALIKE = 2,   /* ... at about one speedup */
	ENOUGH = 12, /* ... if that few lie between two at 0 %, it is not waited for */
	DEGREES = 4, /* ... and of freedom that say what chance is */
	AGAIN = 2,   /* pairs that say otherwise: one alone does so by chance, now and then */
	MOST = 12 /* of what experiments inside runs tell, too: should these not tell more, they never will */
};
static const double doubt = 0.04; /* of the work per visit, that is less or more ... */
/* ... beyond chance: of a dozen codes, each looked at a dozen times; and where whole runs cost little, so that a false
 * doubt is no loss. Of what varies by a fifth, no sweep in 200 and one in ten are doubted for no reason. */
static const double sigmas = 4, sigmas_cheap = 3;
static const double beside_one =
	0.75; /* two differ by twice the variance of one, one from the mean of two by 3/2 */
static const double differ = 0.05; /* of the time per visit, between whole runs and experiments */

void ca_steady_fini(struct ca_steady *steady)
{
	ca_catalog_fini(&steady->regions);
	free(steady->region);
	memset(steady, 0, sizeof *steady);
}

static struct ca_steady_region *region_of(struct ca_steady *steady, const struct ca_region *region)
{
	size_t before = steady->regions.regions;
	const struct ca_region *known;
	struct ca_steady_region *more;

	more = ca_vec_more(steady->region, before, sizeof *more);
	if (!more)
		return NULL;
	steady->region = more;
	known = ca_catalog_add_region(&steady->regions, region);
	if (!known)
		return NULL;
	if (steady->regions.regions > before)
		memset(&more[before], 0, sizeof *more);
	return &more[known->id - 1];
}

void ca_steady_begin(struct ca_steady *steady)
{
	steady->any = false;
	steady->waits = 0;
}

/* What is left of the squares if o is in proportion to x. */
static double squares_left(const struct ca_steady_sums *s)
{
	return s->xx > 0 ? fmax(0, s->oo - s->xo * s->xo / s->xx) : s->oo;
}

/* In how many standard deviations of a normal distribution that many of Student's t lie (Wallace 1959). */
static double as_normal(double t, double df)
{
	return (8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df));
}

/* What lives on stored work makes its visits faster by what was inserted at most. What chance does to an experiment,
 * relative to the two at 0 % around it, is known from what is left of these, and from those at 0 %. */
static bool is_doubtful(const struct ca_steady *steady, const struct ca_steady_sums *s, double least)
{
	/* neighbouring steps have an experiment in common */
	double slope = fabs(s->xo / s->xx), df = steady->steps * 2 / 3 + s->n - 1,
	       variance = (steady->squares + squares_left(s)) / (steady->steps + s->n - 1);

	return s->n >= least && df >= DEGREES && slope * sqrt(s->xx / s->n) > doubt && slope < 2 &&
	       as_normal(slope / sqrt(variance / s->xx), df) > (steady->cheap ? sigmas_cheap : sigmas);
}

/* A long queue is lived on at each speedup, the more the larger it is; a short one is empty before the experiment begins
 * where that is large. */
static bool is_any_doubtful(const struct ca_steady *steady, const struct ca_steady_region *r)
{
	bool any = is_doubtful(steady, &r->all, OTHERS);

	for (int i = 0; i < CA_STEADY_NEAR && !any; i++)
		any = is_doubtful(steady, &r->near[i], ALIKE);
	return any;
}

static void doubt_all(struct ca_steady *steady)
{
	for (size_t i = 0; i < steady->regions.regions; i++)
		if (steady->region[i].state == CA_STEADY_UNKNOWN &&
		    is_any_doubtful(steady, &steady->region[i]))
			steady->region[i].state = CA_STEADY_IN_DOUBT;
}

static void add(struct ca_steady_sums *s, double off, double inserted)
{
	s->n++;
	s->oo += off * off;
	s->xo += inserted * off;
	s->xx += inserted * inserted;
}

/* zero: what work per visit was at 0 % then; weight: 1 if that is the mean of one before and one after it. */
static void compare_waiting(struct ca_steady *steady, size_t i, double zero, double weight)
{
	struct ca_steady_region *r = &steady->region[steady->waiting[i].region];
	double root = sqrt(weight), off = root * (steady->waiting[i].work - zero),
	       inserted = root * steady->waiting[i].inserted;
	unsigned near = (steady->waiting[i].percent + 12) / 25;

	add(&r->all, off, inserted);
	if (near)
		add(&r->near[near - 1], off, inserted);
}

/* The run is over: of those since the last at 0 % the first is next to that. */
void ca_steady_end(struct ca_steady *steady)
{
	if (steady->any && steady->waits)
		compare_waiting(steady, 0, steady->zero, beside_one);
	steady->any = false;
	steady->waits = 0;
	doubt_all(steady);
}

/* One at 0 %: those since the last are between two now. Of those before the first, the last is next to that. */
static void settle(struct ca_steady *steady, double work)
{
	for (size_t i = 0; i < steady->waits && steady->any; i++)
		compare_waiting(steady, i, (steady->zero + work) / 2, 1);
	if (!steady->any && steady->waits)
		compare_waiting(steady, steady->waits - 1, work, beside_one);
	if (steady->any) {
		steady->steps++;
		steady->squares += beside_one * (work - steady->zero) * (work - steady->zero);
	}
	steady->waits = 0;
	steady->any = true;
	steady->zero = work;
}

/* Time per visit relative to that at 0 %; NAN: not known. */
static double ratio(const struct ca_steady_region *r, bool whole, unsigned percent)
{
	double at = r->cost[whole][percent] / r->visits[whole][percent];

	return at / (r->cost[whole][0] / r->visits[whole][0]);
}

/* The speedup that the doubt can be decided by: half, which is told first, if that is seen to bring much, since a run at
 * 100 % may take several times as long; else the largest. */
static unsigned most_telling(const struct ca_steady_region *r)
{
	unsigned percent = r->too_long ? r->too_long - 1 : 100;

	if (percent >= 50 && 1 - ratio(r, false, 50) > 2 * differ)
		return 50;
	while (percent && !(r->visits[0][percent] > 0))
		percent--;
	return percent;
}

/* Do whole runs say the same as experiments inside runs? */
static enum ca_steadiness compare(const struct ca_steady_region *r)
{
	for (unsigned percent = 100; percent; percent--) {
		double away = ratio(r, true, percent) - ratio(r, false, percent);

		if (isfinite(away) && fabs(away) <= differ)
			return CA_STEADY;
		if (isfinite(away))
			return r->whole < AGAIN ? CA_STEADY_IN_DOUBT : CA_STEADY_NOT;
	}
	return CA_STEADY_IN_DOUBT;
}

void ca_steady_add(struct ca_steady *steady, const struct ca_region *region, const struct ca_steady_window *w)
{
	struct ca_steady_region *r = region_of(steady, region);

	if (!r || !(w->visits > 0) || !(w->cost > 0) || w->percent > 100)
		return;
	r->whole += w->whole && w->percent;
	if (!w->whole && w->percent && w->inserted > doubt) {
		r->tries++;
		r->seen |= w->work > 0;
	}
	r->cost[w->whole][w->percent] += w->cost;
	r->visits[w->whole][w->percent] += w->visits;
	if (!w->whole && w->work > 0 && w->percent && steady->waits < CA_STEADY_WAITING)
		steady->waiting[steady->waits++] =
			(struct ca_steady_waiting){ (uint32_t)(r - steady->region), w->percent,
						    log(w->work / w->visits), w->inserted };
	if (!w->whole && w->work > 0 && !w->percent)
		settle(steady, log(w->work / w->visits));
	doubt_all(steady);
	if (r->state == CA_STEADY_IN_DOUBT)
		r->state = compare(r);
}

bool ca_steady_is_seen(const struct ca_steady *steady)
{
	for (size_t i = 0; i < steady->regions.regions && !steady->left; i++) {
		const struct ca_steady_region *r = &steady->region[i];

		if (r->seen && r->state != CA_STEADY_NOT && r->all.n < OTHERS && r->tries > OTHERS &&
		    r->tries < ENOUGH)
			return false;
	}
	return true;
}

/* Whole runs are to be made of it. */
static bool wants_runs(const struct ca_steady_region *r)
{
	return r->state == CA_STEADY_NOT && !r->settled && !(r->coarse && r->whole >= MOST) &&
	       (!r->too_long || most_telling(r));
}

bool ca_steady_is_open(const struct ca_steady *steady)
{
	for (size_t i = 0; i < steady->regions.regions && !steady->left; i++) {
		const struct ca_steady_region *r = &steady->region[i];

		if ((r->state == CA_STEADY_IN_DOUBT && most_telling(r)) ||
		    (wants_runs(r) && r->whole < CA_ESTIMATE_WHOLE_RUNS))
			return true;
	}
	return false;
}

const struct ca_region *ca_steady_wants(const struct ca_steady *steady, unsigned *percent)
{
	const struct ca_region *wrong = NULL;
	unsigned least = UINT_MAX;

	for (size_t i = 0; i < steady->regions.regions && !steady->left; i++) {
		const struct ca_steady_region *r = &steady->region[i];

		if (r->state == CA_STEADY_IN_DOUBT && most_telling(r)) {
			*percent = most_telling(r);
			return &steady->regions.region[i];
		}
		if (!wants_runs(r) || r->whole >= least)
			continue;
		least = r->whole; /* each in turn */
		*percent = 0;
		wrong = &steady->regions.region[i];
	}
	return wrong;
}

unsigned ca_steady_next(const struct ca_steady *steady, const struct ca_region *region)
{
	const struct ca_region *known = ca_catalog_find_region(&steady->regions, region);
	const struct ca_steady_region *r = known ? &steady->region[known->id - 1] : NULL;

	return r && (r->too_long || r->whole < CA_ESTIMATE_WHOLE_RUNS) ? most_telling(r) : 0;
}

void ca_steady_ask(struct ca_steady *steady, const struct ca_region *region)
{
	struct ca_steady_region *r = region_of(steady, region);

	if (!r || r->state == CA_STEADY_IN_DOUBT || r->state == CA_STEADY_NOT)
		return;
	r->state = CA_STEADY_NOT;
	r->coarse = true;
}

void ca_steady_limit(struct ca_steady *steady, const struct ca_region *region, unsigned percent)
{
	struct ca_steady_region *r = region_of(steady, region);

	if (r && (!r->too_long || percent < r->too_long))
		r->too_long = percent;
}

bool ca_steady_is_coarse(const struct ca_steady *steady, const struct ca_region *region)
{
	const struct ca_region *known = region ? ca_catalog_find_region(&steady->regions, region) : NULL;

	return known && steady->region[known->id - 1].coarse;
}

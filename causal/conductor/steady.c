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
	OTHERS = 4,  /* experiments of a region inside runs before there can be a doubt ... */
	DEGREES = 5, /* ... and of freedom, from all regions, that say what chance is */
	AGAIN = 2,   /* pairs that say otherwise: one alone does so by chance, now and then */
	PAIRS = 4    /* whole runs above 0 % that an interval needs */
};
static const double doubt = 0.04;  /* of the work per visit, that is less or more ... */
static const double sigmas = 4;    /* ... beyond chance: of a dozen codes, each looked at a dozen times */
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

/* Of one experiment, within regions: by chance, and what it may be where few tell. Not finite: not known. */
static double find_variance(const struct ca_steady *steady)
{
	double sum = 0, df = 0;

	for (size_t i = 0; i < steady->regions.regions; i++) {
		const struct ca_steady_region *r = &steady->region[i];

		if (r->n > 1) {
			sum += fmax(0, r->squares - r->sum * r->sum / r->n);
			df += r->n - 1;
		}
	}
	return df >= DEGREES ? sum / df * pow(ca_estimate_t975(df) / 1.96, 2) : INFINITY;
}

/* What lives on stored work makes its visits faster by what was inserted at most. */
static bool is_doubtful(const struct ca_steady_region *r, double variance)
{
	double change = fabs(r->sum / r->n);

	return r->n >= OTHERS && change > doubt && change > sigmas * sqrt(variance / r->n) &&
	       change < 2 * r->inserted / r->n;
}

/* One at 0 %: those since the last are between two now. */
static void settle(struct ca_steady *steady, double work)
{
	for (size_t i = 0; i < steady->waits && steady->any; i++) {
		struct ca_steady_region *r = &steady->region[steady->waiting[i].region];
		double off = steady->waiting[i].work - (steady->zero + work) / 2;

		r->n++;
		r->sum += off;
		r->squares += off * off;
		r->inserted += steady->waiting[i].inserted;
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

/* The largest speedup that the doubt can be decided by. */
static unsigned most_telling(const struct ca_steady_region *r)
{
	unsigned percent = 100;

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
	double variance;

	if (!r || !(w->visits > 0) || !(w->cost > 0) || w->percent > 100)
		return;
	r->whole += w->whole && w->percent;
	r->cost[w->whole][w->percent] += w->cost;
	r->visits[w->whole][w->percent] += w->visits;
	if (!w->whole && w->work > 0 && w->percent && steady->waits < CA_STEADY_WAITING)
		steady->waiting[steady->waits++] =
			(struct ca_steady_waiting){ (uint32_t)(r - steady->region), log(w->work / w->visits),
						    w->inserted };
	if (!w->whole && w->work > 0 && !w->percent)
		settle(steady, log(w->work / w->visits));
	variance = find_variance(steady);
	for (size_t i = 0; i < steady->regions.regions; i++)
		if (steady->region[i].state == CA_STEADY_UNKNOWN && is_doubtful(&steady->region[i], variance))
			steady->region[i].state = CA_STEADY_IN_DOUBT;
	if (r->state == CA_STEADY_IN_DOUBT)
		r->state = compare(r);
}

bool ca_steady_is_open(const struct ca_steady *steady)
{
	for (size_t i = 0; i < steady->regions.regions && !steady->left; i++) {
		const struct ca_steady_region *r = &steady->region[i];

		if (r->state == CA_STEADY_IN_DOUBT || (r->state == CA_STEADY_NOT && r->whole < PAIRS))
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
		if (r->state != CA_STEADY_NOT || r->whole >= least)
			continue;
		least = r->whole; /* each in turn */
		*percent = 0;
		wrong = &steady->regions.region[i];
	}
	return wrong;
}

/* SPDX-License-Identifier: MIT */
/* Steadiness of rates; see steady.h. */
#include "causal/conductor/steady.h"
#include "core/vec.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	ZEROS = 3,
	OTHERS = 4, /* experiments inside runs before there can be a doubt */
	PAIRS = 4   /* whole runs above 0 % that an interval needs */
};
static const double doubt = 0.04;  /* of the work per visit, that is less or more ... */
static const double sigmas = 3;    /* ... beyond chance */
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

static void add_log(struct ca_steady_logs *logs, double value)
{
	logs->n++;
	logs->sum += log(value);
	logs->squares += log(value) * log(value);
}

static double mean(const struct ca_steady_logs *logs)
{
	return logs->sum / logs->n;
}

/* Of the mean. */
static double variance(const struct ca_steady_logs *logs)
{
	return fmax(0, logs->squares / logs->n - mean(logs) * mean(logs)) / (logs->n - 1);
}

static bool is_doubtful(const struct ca_steady_logs *zeros, const struct ca_steady_logs *others)
{
	double change;

	if (zeros->n < ZEROS || others->n < OTHERS)
		return false;
	change = fabs(mean(zeros) - mean(others));
	return change > doubt && change > sigmas * sqrt(variance(zeros) + variance(others));
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

		if (isfinite(away))
			return fabs(away) > differ ? CA_STEADY_NOT : CA_STEADY;
	}
	return CA_STEADY_IN_DOUBT;
}

void ca_steady_add(struct ca_steady *steady, const struct ca_region *region, const struct ca_steady_window *w)
{
	struct ca_steady_region *r = region_of(steady, region);

	if (!r || !(w->visits > 0) || !(w->cost > 0) || w->percent > 100)
		return;
	r->whole += w->whole && w->percent;
	r->cost[w->whole][w->percent] += w->cost;
	r->visits[w->whole][w->percent] += w->visits;
	if (!w->whole && w->work > 0)
		add_log(w->percent ? &r->logs : &steady->zeros, w->work / w->visits);
	if (r->state == CA_STEADY_UNKNOWN && is_doubtful(&steady->zeros, &r->logs))
		r->state = CA_STEADY_IN_DOUBT;
	if (r->state == CA_STEADY_IN_DOUBT)
		r->state = compare(r);
}

bool ca_steady_is_open(const struct ca_steady *steady)
{
	for (size_t i = 0; i < steady->regions.regions; i++) {
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

	for (size_t i = 0; i < steady->regions.regions; i++) {
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

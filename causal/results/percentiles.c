/* SPDX-License-Identifier: MIT */
/* Percentiles of latency points: what the histograms of run files say of the slow visits. Each experiment
 * gives one value of a percentile, and these go the way of all values (estimate.h): compared with those at
 * 0 % near in time, with the same intervals. Reasons: doc/ESTIMATE.md.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "core/latency.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const unsigned ca_profile_percent[CA_PERCENTILES] = { 50, 95, 99 };

enum { BEYOND = 5 }; /* visits beyond a percentile, below which it is a matter of luck */

/* An experiment's visits. */
struct part {
	uint32_t region, speedup;
	size_t experiment, visits; /* indexes */
	uint64_t n;
};

/* Several of them together. */
struct heap {
	uint64_t count[CA_LATENCY_BUCKETS], n;
};

static uint64_t needed(unsigned percent)
{
	return BEYOND * 100 / (100 - percent);
}

static void heap_add(const struct ca_profile *profile, struct heap *heap, const struct part *part)
{
	const struct ca_profile_visits *v = &profile->visits[part->visits];

	for (size_t i = v->first_time; i < v->first_time + v->times; i++)
		heap->count[profile->times[i].bucket] += profile->times[i].count;
	heap->n += part->n;
}

/* ns; inside a bucket visits are taken to be spread evenly. */
static double heap_quantile(const struct heap *heap, unsigned percent)
{
	double wanted = (double)heap->n * percent / 100, below = 0;
	uint32_t b = 0;

	while (b + 1 < CA_LATENCY_BUCKETS && below + (double)heap->count[b] < wanted)
		below += (double)heap->count[b++];
	return (double)ca_latency_low(b) + (double)(ca_latency_low(b + 1) - ca_latency_low(b)) *
						   (wanted - below) / fmax(1, (double)heap->count[b]);
}

static int by_cell(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	if (x->region != y->region)
		return x->region < y->region ? -1 : 1;
	if (x->speedup != y->speedup)
		return x->speedup < y->speedup ? -1 : 1;
	return (x->experiment > y->experiment) - (x->experiment < y->experiment);
}

/* Experiments at 0 % are all alike; they are kept apart by region only where that costs nothing. */
static size_t collect(const struct ca_profile *profile, uint32_t point, unsigned percent, struct part *part)
{
	size_t n = 0;

	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		for (size_t k = e->first; k < e->first + e->visits && !e->flags; k++) {
			const struct ca_profile_visits *v = &profile->visits[k];
			struct part p = { e->region, e->speedup, i, k, 0 };

			for (size_t t = v->first_time; t < v->first_time + v->times; t++)
				p.n += profile->times[t].count;
			if (v->point != point || !p.n)
				continue;
			if (!p.speedup && p.n < needed(percent))
				p.region = 0;
			part[n++] = p;
		}
	}
	qsort(part, n, sizeof *part, by_cell);
	return n;
}

/* The parts [first, last) of one cell, as many together as a percentile needs. */
static size_t observe(const struct ca_profile *profile, const struct part *part, size_t n, unsigned percent,
		      struct heap *heap, struct ca_observation *out)
{
	const struct part *begin = part;
	uint64_t left = 0;
	size_t made = 0;

	for (size_t i = 0; i < n; i++)
		left += part[i].n;
	memset(heap, 0, sizeof *heap);
	for (size_t i = 0; i < n; i++) {
		heap_add(profile, heap, &part[i]);
		left -= part[i].n;
		if (heap->n < needed(percent) || (left && left < needed(percent)))
			continue;
		out[made] = ca_profile_observe(profile, &profile->experiment[begin->experiment],
					       &profile->visits[begin->visits]);
		out[made].region = begin->region;
		out[made].visits = (double)heap->n;
		out[made++].cost = heap_quantile(heap, percent) / 1e9 * (double)heap->n;
		begin = &part[i] + 1;
		memset(heap, 0, sizeof *heap);
	}
	return made;
}

/* Two values that fall somewhere into their buckets are known to this, percent of their ratio (95 %). */
static const double grain = 1.2;

static void widen(struct ca_curve *curve)
{
	for (int i = 0; i < CA_AT; i++) {
		double room = grain * (1 - curve->at[i] / 100);

		curve->at_low[i] = curve->at[i] - hypot(curve->at[i] - curve->at_low[i], room);
		curve->at_high[i] = curve->at[i] + hypot(curve->at_high[i] - curve->at[i], room);
	}
}

static double time_at_zero(const struct ca_profile *profile, const struct part *part, size_t n,
			   unsigned percent, struct heap *heap)
{
	memset(heap, 0, sizeof *heap);
	for (size_t i = 0; i < n; i++)
		if (!part[i].speedup)
			heap_add(profile, heap, &part[i]);
	return heap->n < needed(percent) ? NAN : heap_quantile(heap, percent);
}

enum ca_status ca_profile_percentiles(struct ca_profile *profile, uint32_t point, uint64_t seed)
{
	struct ca_estimate_options options = { .seed = seed };
	struct part *part = calloc(profile->visit_count + 1, sizeof *part);
	struct ca_observation *list = calloc(profile->visit_count + 1, sizeof *list);
	struct heap *heap = calloc(1, sizeof *heap);
	enum ca_status status = part && list && heap ? CA_OK : CA_ERR_NOMEM;

	for (int i = 0; i < CA_PERCENTILES && status == CA_OK; i++) {
		struct ca_percentile *p = &profile->point[point].percentile[i];
		size_t n = collect(profile, point, ca_profile_percent[i], part), made = 0;

		ca_estimate_fini(&p->estimates);
		p->time = time_at_zero(profile, part, n, ca_profile_percent[i], heap);
		for (size_t first = 0, last; first < n; first = last) {
			for (last = first; last < n && part[last].region == part[first].region &&
					   part[last].speedup == part[first].speedup;)
				last++;
			made += observe(profile, part + first, last - first, ca_profile_percent[i], heap,
					list + made);
		}
		if (made)
			status = ca_estimate(list, made, &options, &p->estimates);
		for (size_t c = 0; c < p->estimates.curves; c++)
			widen(&p->estimates.curve[c]);
	}
	free(part);
	free(list);
	free(heap);
	return status;
}

static bool has_times(const struct ca_profile *profile, const struct ca_profile_experiment *e,
		      const struct ca_profile_point *point, struct part *part)
{
	for (size_t k = e->first; k < e->first + e->visits && !e->flags && !e->speedup; k++) {
		const struct ca_profile_visits *v = &profile->visits[k];

		if (&profile->point[v->point] != point || !v->times)
			continue;
		*part = (struct part){ .experiment = (size_t)(e - profile->experiment), .visits = k };
		for (size_t t = v->first_time; t < v->first_time + v->times; t++)
			part->n += profile->times[t].count;
		return true;
	}
	return false;
}

size_t ca_profile_percentile_sample(const struct ca_profile *profile, const struct ca_profile_point *point,
				    int i, size_t parts, double *value)
{
	struct part *part = calloc(profile->experiments + 1, sizeof *part);
	struct heap *heap = calloc(1, sizeof *heap);
	size_t n = 0, made = 0;
	bool several = false;

	for (size_t e = 0; part && heap && e < profile->experiments; e++)
		n += has_times(profile, &profile->experiment[e], point, &part[n]);
	for (size_t k = 1; k < n; k++)
		several |= profile->experiment[part[k].experiment].run !=
			   profile->experiment[part[0].experiment].run;
	parts = parts < n ? parts : n;
	for (size_t k = 0; k < n; k++) {
		bool last = k + 1 == n;

		heap_add(profile, heap, &part[k]);
		if (!last && several)
			last = profile->experiment[part[k].experiment].run !=
			       profile->experiment[part[k + 1].experiment].run;
		else if (!last)
			last = k * parts / n != (k + 1) * parts / n;
		if (!last)
			continue;
		if (heap->n >= needed(ca_profile_percent[i]))
			value[made++] = log(heap_quantile(heap, ca_profile_percent[i]));
		memset(heap, 0, sizeof *heap);
	}
	free(part);
	free(heap);
	return made;
}

const struct ca_curve *ca_profile_percentile(const struct ca_profile_row *row, int i)
{
	const struct ca_estimates *e = &row->point->percentile[i].estimates;

	for (size_t c = 0; c < e->curves; c++)
		if (e->curve[c].region == row->curve->region && isfinite(e->curve[c].at[1]))
			return &e->curve[c];
	return NULL;
}

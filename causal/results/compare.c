/* SPDX-License-Identifier: MIT */
/* Two results directories; see causal/results/compare.h. What counts is the scatter from run to run, since
 * one run may be slow from its first to its last second; where there is one run only, that of ten parts
 * of it has to do. Driver's process, one thread. */
#include "causal/results/compare.h"
#include "causal/results/estimate_parts.h"
#include "causal/results/match.h"
#include "core/path.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 10 };

static double mean_of(const double *value, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += value[i];
	return sum / (double)n;
}

/* The square of the error of the mean. */
static double error_of(const double *value, size_t n, double mean)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (value[i] - mean) * (value[i] - mean);
	return sum / (double)(n - 1) / (double)n;
}

void ca_compare_means(const double *a, size_t n_a, const double *b, size_t n_b, double *change, double *low,
		      double *high)
{
	double mean_a, mean_b, error_a, error_b, both, half;

	*change = *low = *high = NAN;
	if (n_a < 2 || n_b < 2)
		return;
	mean_a = mean_of(a, n_a);
	mean_b = mean_of(b, n_b);
	error_a = error_of(a, n_a, mean_a);
	error_b = error_of(b, n_b, mean_b);
	both = error_a + error_b;
	half = both > 0 ? ca_estimate_t975(both * both /
					   (error_a * error_a / (double)(n_a - 1) +
					    error_b * error_b / (double)(n_b - 1))) *
				  sqrt(both)
			: 0;
	*change = 100 * expm1(mean_b - mean_a);
	*low = 100 * expm1(mean_b - mean_a - half);
	*high = 100 * expm1(mean_b - mean_a + half);
}

/* ---- rates ------------------------------------------------------------------------*/

struct zeros {
	double *cost, *visits; /* of each experiment at 0 %, in their order */
	uint32_t *run;
	size_t n, runs;
};

static bool collect(const struct ca_profile *profile, const struct ca_profile_point *point,
		    struct zeros *zeros)
{
	*zeros = (struct zeros){ .cost = calloc(profile->visit_count + 1, sizeof(double)),
				 .visits = calloc(profile->visit_count + 1, sizeof(double)),
				 .run = calloc(profile->visit_count + 1, sizeof(uint32_t)) };
	if (!zeros->cost || !zeros->visits || !zeros->run)
		return false;
	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		for (size_t v = e->first; v < e->first + e->visits && !e->flags && !e->speedup; v++) {
			struct ca_observation o = ca_profile_observe(profile, e, &profile->visits[v]);

			if (&profile->point[profile->visits[v].point] != point)
				continue;
			zeros->cost[zeros->n] = o.cost;
			zeros->visits[zeros->n] = o.visits;
			zeros->runs += !zeros->n || zeros->run[zeros->n - 1] != e->run;
			zeros->run[zeros->n++] = e->run;
		}
	}
	return true;
}

static void release(struct zeros *zeros)
{
	free(zeros->cost);
	free(zeros->visits);
	free(zeros->run);
}

/* The logarithm of the time per visit, of each run or of each part of the one run there is, into `value`,
 * which has room for one more than there are experiments. */
static size_t sample(const struct zeros *zeros, double *value)
{
	size_t n = 0, parts = zeros->n < PARTS ? zeros->n : PARTS;

	for (size_t i = 0, end; i < zeros->n; i = end) {
		double cost = 0, visits = 0;

		for (end = i; end < zeros->n; end++) {
			if (zeros->runs > 1 ? zeros->run[end] != zeros->run[i]
					    : end * parts / zeros->n != i * parts / zeros->n)
				break;
			cost += zeros->cost[end];
			visits += zeros->visits[end];
		}
		if (cost > 0 && visits > 0)
			value[n++] = log(cost / visits);
	}
	return n;
}

static bool compare_rate(struct ca_compare_rate *rate, const struct ca_profile *a, const struct ca_profile *b)
{
	struct zeros zeros[2] = { { 0 }, { 0 } };
	bool ok = collect(a, rate->a, &zeros[0]) && collect(b, rate->b, &zeros[1]);
	double *value[2] = { calloc(zeros[0].n + 1, sizeof(double)), calloc(zeros[1].n + 1, sizeof(double)) };

	ok = ok && value[0] && value[1];
	if (ok) {
		size_t n_a = sample(&zeros[0], value[0]), n_b = sample(&zeros[1], value[1]);

		rate->runs[0] = zeros[0].runs;
		rate->runs[1] = zeros[1].runs;
		ca_compare_means(value[0], n_a, value[1], n_b, &rate->change, &rate->low, &rate->high);
	}
	for (int i = 0; i < 2; i++) {
		release(&zeros[i]);
		free(value[i]);
	}
	return ok;
}

/* What is known of them on both sides. */
static bool compare_percentiles(struct ca_compare *compare, const struct ca_profile *a,
				const struct ca_profile *b)
{
	const struct ca_compare_rate mean = compare->rate[compare->rates - 1];
	double *x = calloc(a->experiments + 1, sizeof *x), *y = calloc(b->experiments + 1, sizeof *y);

	for (int i = 0; x && y && i < CA_PERCENTILES; i++) {
		struct ca_compare_rate *rate = &compare->rate[compare->rates];
		size_t n = ca_profile_percentile_sample(a, mean.a, i, PARTS, x);
		size_t m = ca_profile_percentile_sample(b, mean.b, i, PARTS, y);

		*rate = mean;
		rate->percent = ca_profile_percent[i];
		ca_compare_means(x, n, y, m, &rate->change, &rate->low, &rate->high);
		if (!isnan(rate->change))
			compare->rates++;
	}
	free(x);
	free(y);
	return x && y;
}

/* "/src/server.c:120" as "server.c": such a point may have moved. */
static size_t file_of(const char *name, const char **file)
{
	const char *colon = strrchr(name, ':');

	*file = ca_path_base(name);
	if (!colon || colon < *file || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return 0;
	return (size_t)(colon - *file);
}

/* By its name; or the only one in the same file on both sides. */
static const struct ca_profile_point *same_point(const struct ca_profile *a, const struct ca_profile *b,
						 const struct ca_profile_point *point)
{
	const struct ca_profile_point *found = NULL;
	const char *file, *other;
	size_t length = file_of(point->name, &file), here = 0, there = 0;

	for (size_t i = 0; i < a->points; i++)
		if (a->point[i].kind == point->kind && !strcmp(a->point[i].name, point->name))
			return &a->point[i];
	for (size_t i = 0; length && i < b->points; i++)
		here += file_of(b->point[i].name, &other) == length && !strncmp(file, other, length);
	for (size_t i = 0; length && i < a->points; i++)
		if (a->point[i].kind == point->kind && file_of(a->point[i].name, &other) == length &&
		    !strncmp(file, other, length)) {
			found = &a->point[i];
			there++;
		}
	return here == 1 && there == 1 ? found : NULL;
}

static bool compare_rates(struct ca_compare *compare, const struct ca_profile *a, const struct ca_profile *b)
{
	compare->rate = calloc((size_t)(1 + CA_PERCENTILES) * b->points + 1, sizeof *compare->rate);
	for (size_t i = 0; compare->rate && i < b->points; i++) {
		struct ca_compare_rate *rate = &compare->rate[compare->rates];

		*rate = (struct ca_compare_rate){ .a = same_point(a, b, &b->point[i]), .b = &b->point[i] };
		if (!rate->a)
			continue;
		if (!compare_rate(rate, a, b))
			return false;
		compare->rates++;
		if (rate->b->kind == 'l' && !compare_percentiles(compare, a, b))
			return false;
	}
	return compare->rate;
}

/* ---- regions ----------------------------------------------------------------------*/

static const struct ca_profile_row *find_row(const struct ca_profile *profile, uint32_t region,
					     const struct ca_profile_point *point)
{
	for (size_t r = 0; r < profile->rows; r++)
		if (profile->row[r].region->id == region && profile->row[r].point == point)
			return &profile->row[r];
	return NULL;
}

static bool compare_rows(struct ca_compare *compare, const struct ca_profile *a, const struct ca_profile *b)
{
	uint32_t *same = ca_match_regions(&a->catalog, &b->catalog);

	compare->row = calloc(b->rows + 1, sizeof *compare->row);
	for (size_t r = 0; same && compare->row && r < b->rows; r++) {
		const struct ca_profile_row *row = &b->row[r];
		const struct ca_profile_point *point = same_point(a, b, row->point);
		const struct ca_profile_row *old = find_row(a, same[row->region->id], point);
		const struct ca_curve *x, *y;

		if (!point || !old || row->asked)
			continue;
		x = old->curve;
		y = row->curve;
		compare->row[compare->rows++] = (struct ca_compare_row){
			.a = old,
			.b = row,
			.change = y->at[1] - x->at[1],
			.half = hypot((x->at_high[1] - x->at_low[1]) / 2, (y->at_high[1] - y->at_low[1]) / 2),
		};
	}
	free(same);
	return same && compare->row;
}

enum ca_status ca_compare_make(struct ca_compare *compare, const struct ca_profile *a,
			       const struct ca_profile *b)
{
	*compare = (struct ca_compare){ 0 };
	if (compare_rates(compare, a, b) && compare_rows(compare, a, b))
		return CA_OK;
	ca_compare_fini(compare);
	return CA_ERR_NOMEM;
}

void ca_compare_fini(struct ca_compare *compare)
{
	free(compare->rate);
	free(compare->row);
}

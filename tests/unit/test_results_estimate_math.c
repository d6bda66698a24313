/* SPDX-License-Identifier: MIT */
/* causal/results/estimate_math.c: order statistics, quantiles of t and weights against known values; and
 * what ca_estimate_shape makes of a curve. */
#include "causal/results/estimate_parts.h"
#include "tests/unit/unit.h"
#include <math.h>

static void check_near(double got, double wanted, double error)
{
	if (!(fabs(got - wanted) <= error))
		fail_msg("%.9g, and not %.9g", got, wanted);
}

static void test_order(void **state)
{
	double odd[] = { 5, 1, 4, 2, 3 }, even[] = { 9, -1, 4, 2 }, one[] = { 7 };
	static const double sorted[] = { 10, 20, 40, 80, 160 };

	(void)state;
	check_near(ca_estimate_median(odd, 5), 3, 0);
	check_near(odd[0], 1, 0);
	check_near(odd[4], 5, 0);
	check_near(ca_estimate_median(even, 4), 3, 0);
	check_near(ca_estimate_median(one, 1), 7, 0);
	check_near(ca_estimate_quantile(sorted, 5, 0), 10, 0);
	check_near(ca_estimate_quantile(sorted, 5, 1), 160, 0);
	check_near(ca_estimate_quantile(sorted, 5, 0.5), 40, 0);
	check_near(ca_estimate_quantile(sorted, 5, 0.125), 15, 0);
	check_near(ca_estimate_quantile(sorted, 5, 0.8), 96, 1e-9);
	check_near(ca_estimate_quantile(sorted, 1, 0.8), 10, 0);
	assert_true(ca_estimate_compare(&sorted[0], &sorted[1]) < 0 &&
		    ca_estimate_compare(&sorted[1], &sorted[0]) > 0);
	assert_int_equal(ca_estimate_compare(&sorted[2], &sorted[2]), 0);
}

/* From tables of Student's t. */
static void test_t(void **state)
{
	static const struct {
		double df, t, error;
	} cases[] = {
		{ 1, 12.7062, 1e-4 }, { 2, 4.3027, 1e-4 },   { 3, 3.1824, 0.03 },     { 4, 2.7764, 0.01 },
		{ 5, 2.5706, 0.004 }, { 7, 2.3646, 0.001 },  { 10, 2.2281, 0.0003 },  { 20, 2.0860, 0.0001 },
		{ 30, 2.0423, 1e-4 }, { 100, 1.9840, 1e-4 }, { 1e6, 1.959966, 1e-5 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		check_near(ca_estimate_t975(cases[i].df), cases[i].t, cases[i].error);
	/* to the last digit of the expansion */
	check_near(ca_estimate_t975(3), 3.158993, 1e-5);
}

/* Mean and variance 1, never below 0. */
static void test_exponential(void **state)
{
	enum { N = 100000 };
	struct ca_rng rng;
	double sum = 0, squares = 0;

	(void)state;
	ca_rng_init(&rng, 3);
	for (unsigned i = 0; i < N; i++) {
		double x = ca_estimate_exponential(&rng);

		assert_true(x >= 0);
		sum += x;
		squares += x * x;
	}
	check_near(sum / N, 1, 0.02);
	check_near(squares / N, 2, 0.08);
}

static void test_scatter(void **state)
{
	struct ca_est_item item = { .cost = 20 };

	(void)state;
	check_near(ca_estimate_scatter(&item, 2, 0.3, 0), 0.3, 1e-12);
	check_near(ca_estimate_scatter(&item, 2, 0, 4), 0.2, 1e-12); /* 10 visits expected, 2 off */
	check_near(ca_estimate_scatter(&item, 2, 0.3, 16), 0.5, 1e-12);
}

static void test_weight(void **state)
{
	static const struct {
		double visits, noise, quantum, weight;
	} cases[] = {
		/* 100 visits expected; sigma: 10, so 60 are 6 of them */
		{ 100, 0.1, 0, 1 },
		{ 70, 0.1, 0, 0.5625 },
		{ 130, 0.1, 0, 0.5625 },
		{ 40, 0.1, 0, 0 },
		{ 160, 0.1, 0, 0 },
		{ 0, 0.1, 0, 0 },
		{ 300, 0.1, 0, 0 },
		/* without noise any other number is out, unless counts may be one off */
		{ 100, 0, 0, 1 },
		{ 99, 0, 0, 0 },
		{ 97, 0, 1. / 6, 0.5625 },
		{ 94, 0, 1. / 6, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_est_item item = { .cost = 200, .visits = cases[i].visits };

		check_near(ca_estimate_weight(&item, 2, cases[i].noise, cases[i].quantum), cases[i].weight,
			   1e-9);
	}
}

enum { CELLS = 4 };

/* A curve through cells whose scatter is known, with bounds: INFINITY for none. */
static struct ca_curve curve_of(const double *effect, double error, const struct ca_est_bound *bound)
{
	static const uint32_t speedup[CELLS] = { 250000, 500000, 750000, 1000000 };
	struct ca_cell cell[CELLS];
	struct ca_est_bound given[CELLS];
	struct ca_est_own own = { .known = false };
	double variance[CELLS];
	struct ca_est_spread spread = { variance, error * error / 20000, 40 };
	struct ca_curve curve = { .experiments = 40, .cells = CELLS };

	for (size_t c = 0; c < CELLS; c++) {
		cell[c] = (struct ca_cell){ .speedup = speedup[c],
					    .effect = effect[c],
					    .low = effect[c] - 2 * error,
					    .high = effect[c] + 2 * error,
					    .experiments = 10 };
		variance[c] = error * error / 1e4;
		given[c] = bound ? bound[c] : (struct ca_est_bound){ -INFINITY, INFINITY };
	}
	ca_estimate_curve(cell, &spread, given, &own, &curve);
	for (size_t c = 0; c < CELLS && bound; c++)
		assert_true(isnan(effect[c]) || (cell[c].low >= 100 * bound[c].low - 1e-9 &&
						 cell[c].effect <= 100 * bound[c].high + 1e-9));
	for (int i = 0; i < CA_AT; i++)
		assert_true(curve.at_low[i] <= curve.at[i] && curve.at[i] <= curve.at_high[i]);
	return curve;
}

static void test_curves(void **state)
{
	static const struct {
		double effect[CELLS], at[CA_AT], impact;
	} cases[] = {
		{ { 10, 20, 30, 40 }, { 10, 20, 40 }, 20 },
		{ { 10, 20, 20, 20 }, { 10, 20, 20 }, 15 },
		{ { 10, 14, 18, 22 }, { 10, 14, 22 }, 13.25 },
		{ { -5, -10, -15, -20 }, { -5, -10, -20 }, -10 },
		{ { 0, 0, 0, 0 }, { 0, 0, 0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_curve curve = curve_of(cases[i].effect, 0.1, NULL);

		assert_int_equal(curve.how, CA_HOW_COMPARED);
		for (int k = 0; k < CA_AT; k++) {
			check_near(curve.at[k], cases[i].at[k], 0.5);
			assert_true(curve.at_low[k] <= cases[i].at[k] && cases[i].at[k] <= curve.at_high[k]);
		}
		check_near(curve.impact, cases[i].impact, 0.5);
	}
}

/* No line with one bend is like this: what is left over stays in the interval. */
static void test_no_such_shape(void **state)
{
	static const double odd[CELLS] = { 0, 20, 5, 30 };
	struct ca_curve curve = curve_of(odd, 0.1, NULL);

	(void)state;
	assert_true(curve.at_high[1] - curve.at_low[1] > 10);
}

static void test_bounds_cut(void **state)
{
	static const double effect[CELLS] = { 11, 22, 33, 44 };
	static const struct ca_est_bound tight[CELLS] = {
		{ 0.09, 0.1 }, { 0.18, 0.2 }, { 0.27, 0.3 }, { 0.36, 0.4 }
	};
	static const struct ca_est_bound wide[CELLS] = { { -1, 0.5 }, { -1, 0.6 }, { -1, 0.7 }, { -1, 0.8 } };
	static const struct ca_est_bound above[CELLS] = {
		{ -1, 0.12 }, { -1, 0.22 }, { -1, 0.33 }, { -1, 0.44 }
	};
	struct ca_curve curve = curve_of(effect, 0.1, tight), open;

	(void)state;
	assert_int_equal(curve.how, CA_HOW_BOUNDS); /* against which the comparison is wrong */
	assert_true(curve.at_low[1] >= 18 - 1e-9 && curve.at_high[1] <= 20 + 1e-9);
	curve = curve_of(effect, 20, tight);
	assert_int_equal(curve.how, CA_HOW_BOUNDS); /* ... says less */
	assert_true(curve.at_high[2] <= 40 + 1e-9 && curve.at_low[2] >= 20);
	curve = curve_of(effect, 1, wide);
	assert_int_equal(curve.how, CA_HOW_COMPARED);
	open = curve_of(effect, 1, NULL);
	check_near(curve.at_high[1], open.at_high[1], 0.1);
	curve = curve_of(effect, 1, above); /* half of the interval is left */
	assert_int_equal(curve.how, CA_HOW_COMPARED);
	assert_true(curve.at_high[1] <= 22 + 1e-9 && curve.at_low[1] > 19);
}

/* No more can be won at a lower speedup than the time that the code takes, which a bound at a higher one tells:
 * T0 = 1 of which 0.4 in S, nothing won from 25 % on, so that T = 1 - 0.1 + 0.5 * 0.4. */
static void test_bounds_elsewhere(void **state)
{
	static const double effect[CELLS] = { NAN, 10, NAN, NAN };
	static const struct ca_est_bound bound[CELLS] = { { -INFINITY, INFINITY },
							  { -INFINITY, 0.2 / 1.1 },
							  { -INFINITY, INFINITY },
							  { -INFINITY, INFINITY } };
	struct ca_curve curve;

	(void)state;
	for (double error = 0.1; error < 50; error *= 5) {
		curve = curve_of(effect, error, bound);
		assert_true(curve.at_high[0] >= 9 && curve.at_high[0] <= 10.5);
		assert_true(curve.at_high[2] <= 40.5);
	}
	curve = curve_of(effect, 0.1, NULL);
	assert_true(curve.at_high[0] >= 9.9);
}

static void test_verdict(void **state)
{
	static const struct {
		enum ca_how how;
		size_t experiments;
		double low, at, high;
		enum ca_verdict verdict;
		bool decided;
	} cases[] = {
		{ CA_HOW_COMPARED, 9, 5, 10, 15, CA_VERDICT_WORTH, false },
		{ CA_HOW_COMPARED, 9, 9, 10, 11, CA_VERDICT_WORTH, true },
		{ CA_HOW_COMPARED, 2, 9, 10, 11, CA_VERDICT_NOT_ENOUGH, true },
		{ CA_HOW_BOUNDS, 2, 9, 10, 11, CA_VERDICT_WORTH, true },
		{ CA_HOW_COMPARED, 9, -1, 10, 21, CA_VERDICT_NOT_ENOUGH, false },
		{ CA_HOW_COMPARED, 9, 0, 10, 20, CA_VERDICT_NOT_ENOUGH, false },
		{ CA_HOW_COMPARED, 9, 0.9, 8, 15, CA_VERDICT_NOT_ENOUGH, false },
		{ CA_HOW_COMPARED, 9, 0.1, 0.5, 2.9, CA_VERDICT_NOT_WORTH, true },
		{ CA_HOW_COMPARED, 9, -40, -20, 2, CA_VERDICT_NOT_WORTH, true },
		{ CA_HOW_BOUNDS, 1, NAN, NAN, 2, CA_VERDICT_NOT_WORTH, true },
		{ CA_HOW_COMPARED, 9, NAN, NAN, NAN, CA_VERDICT_NOT_ENOUGH, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_curve curve = { .how = cases[i].how,
					  .experiments = cases[i].experiments,
					  .at = { 1, cases[i].at, 1 },
					  .at_low = { 1, cases[i].low, 1 },
					  .at_high = { 1, cases[i].high, 1 } };

		assert_int_equal(ca_estimate_verdict(&curve), cases[i].verdict);
		assert_int_equal(ca_estimate_decided(&curve, 3), cases[i].decided);
		/* worth it with an interval that contains 0 there is not */
		curve.at_low[i % 2 ? 2 : 0] = 0;
		assert_true(ca_estimate_verdict(&curve) != CA_VERDICT_WORTH);
		/* nor with one that contains it as the table shows it */
		curve.at_low[i % 2 ? 2 : 0] = 0.1;
		curve.at_high[i % 2 ? 2 : 0] = 2.2;
		assert_true(ca_estimate_verdict(&curve) != CA_VERDICT_WORTH);
	}
}

/* What the method is off by is in all intervals, but no time is saved more than there is. */
static void test_allowed(void **state)
{
	struct ca_cell cell[] = {
		{ .speedup = 0, .effect = 0, .low = -1, .high = 1 },
		{ .speedup = 500000, .effect = 40, .low = 39, .high = 41 },
		{ .speedup = 500000, .effect = 49.9, .low = 49.8, .high = 50 },
		{ .speedup = 250000,
		  .effect = 30,
		  .low = 29,
		  .high = 31 }, /* time limits: more than its time */
		{ .speedup = 250000, .effect = NAN, .low = NAN, .high = 7 },
		{ .speedup = 500000, .effect = -20, .low = -21, .high = -19 },
	};
	struct ca_curve curve = { .at = { 10, 20, 30 },
				  .at_low = { 10, 20, 27 },
				  .at_high = { 10, 20, 33 },
				  .impact = 20,
				  .impact_low = 20,
				  .impact_high = 20 };
	struct ca_estimates e = { .cell = cell, .cells = CA_COUNT(cell), .curve = &curve, .curves = 1 };

	(void)state;
	curve.cells = CA_COUNT(cell);
	ca_estimate_add_method_error(&e);
	assert_true(cell[0].low == -1 && cell[0].high == 1);
	check_near(cell[1].low, 40 - sqrt(1 + 1.96 * 1.96 * (0.09 + 0.16)), 0.001);
	/* what we take ourselves: effects are low by 0 to 3 % of themselves */
	check_near(cell[1].high, 41.2 + sqrt(1 + 1.96 * 1.96 * (0.09 + 0.16)), 0.001);
	check_near(cell[1].effect, 40.6, 0.001);
	check_near(cell[5].low, -20.6 - sqrt(1 + 1.96 * 1.96 * (0.09 + 0.04)), 0.001);
	check_near(cell[5].effect, -20.3, 0.001);
	assert_true(cell[2].effect <= 50 && cell[2].effect > 49.9);
	assert_true(cell[2].high == 50 && cell[2].low < 49);
	assert_true(cell[3].high == 31 && cell[3].low < 29);
	assert_true(isnan(cell[4].low) && cell[4].high == 7);
	check_near(curve.at_high[0] - curve.at_low[0], 2 * 1.96 * hypot(0.3, 0.1) + 0.3, 0.001);
	check_near(curve.at_high[2] - curve.at_low[2], 2 * sqrt(9 + 1.96 * 1.96 * (0.09 + 0.09)) + 0.9,
		   0.001);
	check_near(curve.impact_high - curve.impact_low, 2 * 1.96 * hypot(0.3, 0.2) + 0.6, 0.001);
	assert_true(curve.at[2] > 30.44 && curve.at[2] < 30.46);
	/* S has its part of it */
	curve = (struct ca_curve){
		.at = { 10, 20, 30 }, .at_low = { 10, 20, 27 }, .at_high = { 10, 20, 33 }, .how = CA_HOW_OWN
	};
	e.cells = 0;
	ca_estimate_add_method_error(&e);
	assert_true(curve.at[2] == 30);
	check_near(curve.at_high[2] - curve.at_low[2], 2 * sqrt(9 + 1.96 * 1.96 * (0.09 + 0.09)), 0.001);
}

/* A tenth of the time CPUs were idle while threads waited: +-7 points at 50 % that no experiment tells of, and more of
 * them are not waited for. */
static void test_idle(void **state)
{
	struct ca_curve curve = { .at = { 10, 20, 40 },
				  .at_low = { 9, 18, 36 },
				  .at_high = { 11, 22, 44 },
				  .impact = 20,
				  .impact_low = 19,
				  .impact_high = 21,
				  .idle = 0.1 };
	struct ca_estimates e = { .curve = &curve, .curves = 1 };

	(void)state;
	ca_estimate_add_method_error(&e);
	check_near(ca_estimate_idle_error(&curve, 0.5), 7, 0.001);
	check_near(curve.at_high[1] - curve.at_low[1], 2 * sqrt(4 + 1.96 * 1.96 * (0.09 + 0.04) + 49) + 0.6,
		   0.001);
	assert_true(ca_estimate_decided(&curve, 2.2));
	assert_false(ca_estimate_decided(&curve, 1.8));
	curve.idle = 0;
	assert_false(ca_estimate_decided(&curve, 2.2));
}

/* The same of S that samples tell, for 0.8 of the time: what is delivered of D is off by 8 %. */
static void test_sampled(void **state)
{
	struct ca_curve curve = {
		.at = { 10, 20, 40 }, .at_low = { 9, 18, 36 }, .at_high = { 11, 22, 44 }, .sampled = 0.8
	};
	struct ca_estimates e = { .curve = &curve, .curves = 1 };

	(void)state;
	check_near(ca_estimate_sampled_error(&curve, 0.5), 3.2, 0.001);
	ca_estimate_add_method_error(&e);
	check_near(curve.at_high[1] - curve.at_low[1],
		   2 * sqrt(4 + 1.96 * 1.96 * (0.09 + 0.04) + 3.2 * 3.2) + 0.6, 0.001);
	curve.idle = 0.1;
	check_near(ca_estimate_lasting_error(&curve, 0.5), hypot(3.2, 7), 0.001);
}

/* A lump is late for nobody if its thread meets nobody in the ms that it takes, 4 by timers. */
static void test_met(void **state)
{
	enum { WORK = 1000000000 }; /* a second */

	(void)state;
	check_near(ca_estimate_sampled(true, true, 1000, WORK), 0, 0);
	check_near(ca_estimate_sampled(false, false, UINT64_MAX, WORK), 1, 0); /* of a version before */
	check_near(ca_estimate_sampled(false, true, 10, 0), 4, 0);
	check_near(ca_estimate_sampled(false, false, 0, WORK), 0, 0);
	check_near(ca_estimate_sampled(false, false, 10, WORK), 0.01, 0.0001);
	check_near(ca_estimate_sampled(false, true, 10, WORK), 0.16, 0.004); /* longer, and later */
	check_near(ca_estimate_sampled(false, false, 100000, WORK), 1, 0.001);
	check_near(ca_estimate_sampled(false, true, 100000, WORK), 4, 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_met),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_t),
		cmocka_unit_test(test_exponential),
		cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_weight),
		cmocka_unit_test(test_curves),
		cmocka_unit_test(test_no_such_shape),
		cmocka_unit_test(test_bounds_cut),
		cmocka_unit_test(test_bounds_elsewhere),
		cmocka_unit_test(test_verdict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

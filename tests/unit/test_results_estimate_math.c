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

/* Every curve begins at (0, 0), whatever the effect at 0 % is, and is flat behind its last cell. */
static void test_shape(void **state)
{
	static const struct {
		struct {
			uint32_t speedup;
			double effect;
			size_t experiments;
			bool usable;
		} cell[3];
		double impact, slope;
	} cases[] = {
		{ { { 0, 50, 9, true }, { 500000, 20, 1, true }, { 1000000, 30, 1, true } }, 17.5, 0.32 },
		{ { { 0, 50, 9, true }, { 250000, 20, 5, true }, { 0 } }, 17.5, 0.8 },
		{ { { 500000, 20, 3, true }, { 1000000, 20, 1, true }, { 0 } }, 15, 2. / 7 },
		{ { { 250000, 90, 5, false }, { 500000, 20, 2, true }, { 750000, 90, 5, false } }, 15, 0.4 },
		{ { { 0, 50, 9, true }, { 500000, -10, 1, true }, { 1000000, 10, 1, true } }, -2.5, 0.04 },
		{ { { 0, 50, 9, true }, { 500000, 20, 2, false }, { 0 } }, NAN, NAN },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_cell cell[3] = { { 0 } };
		double ratio[3], impact, slope;
		bool usable[3];

		for (size_t c = 0; c < 3; c++) {
			cell[c].speedup = cases[i].cell[c].speedup;
			cell[c].experiments = cases[i].cell[c].experiments;
			ratio[c] = 1 - cases[i].cell[c].effect / 100;
			usable[c] = cases[i].cell[c].usable;
		}
		ca_estimate_shape(cell, ratio, usable, 3, &impact, &slope);
		if (isnan(cases[i].impact)) {
			assert_true(isnan(impact) && isnan(slope));
			continue;
		}
		check_near(impact, cases[i].impact, 1e-9);
		check_near(slope, cases[i].slope, 1e-9);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),       cmocka_unit_test(test_t),
		cmocka_unit_test(test_exponential), cmocka_unit_test(test_scatter),
		cmocka_unit_test(test_weight),      cmocka_unit_test(test_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/results/units.c: which points count no unit of work. */
#include "causal/results/units.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <math.h>

static void test_units(void **state)
{
	static const struct {
		const char *what;
		struct ca_units_run run[8]; /* up to the first without visits */
		bool refuted;
	} cases[] = {
		{ "polls",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { true, 837, 1.31 }, { false, 930, 1.18 } },
		  true },
		{ "too few at 0 %",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { false, 930, 1.18 } },
		  false },
		{ "too few above",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { true, 837, 1.31 }, { false, 840, 1.18 } },
		  false },
		{ "most are alike",
		  { { true, 100, 1.3 },
		    { true, 100, 1.3 },
		    { false, 90, 1.2 },
		    { false, 90, 1.2 },
		    { false, 100, 1.1 },
		    { false, 100, 1.1 },
		    { false, 100, 1 } },
		  false },
		{ "a unit",
		  { { true, 834, 1.33 }, { false, 830, 0.82 }, { true, 837, 1.31 }, { false, 840, 1.18 } },
		  false },
		{ "a given time",
		  { { true, 834, 2 }, { false, 1200, 2.01 }, { true, 837, 2.02 }, { false, 930, 2.03 } },
		  false },
		{ "a given time, and some rest",
		  { { true, 834, 2 },
		    { false, 1200, 2.08 },
		    { true, 837, 2.03 },
		    { false, 930, 2.05 },
		    { false, 1210, 1.97 } },
		  false },
		{ "runs that are unlike",
		  { { true, 700, 1.1 }, { false, 1040, 1 }, { true, 900, 1.4 }, { false, 600, 0.8 } },
		  false },
		{ "nothing", { { true, 0, 1 }, { true, 0, 1 } }, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		size_t n = 0;

		while (n < 8 && cases[i].run[n].seconds > 0)
			n++;
		if (ca_units_are_refuted(cases[i].run, n) != cases[i].refuted)
			fail_msg("%s", cases[i].what);
	}
	assert_false(ca_units_are_refuted(NULL, 0));
}

/* Experiments in turns at 0, 25, 50, 0, 75, 100 % of two codes. */
struct made {
	const char *what;
	double work;    /* at 100 %, of a visit, relative to that at 0 % */
	double entries; /* likewise, of a visit */
	double scatter; /* of both, standard deviation, relative */
	size_t n;
	double uneven; /* in so many of the sweeps at least, or at most */
	bool least;
	unsigned entered; /* of the two codes */
};

static size_t make(const struct made *m, struct ca_rng *rng, struct ca_observation *o)
{
	static const uint32_t percent[] = { 0, 25, 50, 0, 75, 100 };

	for (size_t i = 0; i < m->n; i++) {
		double p = percent[i % CA_COUNT(percent)] / 100.,
		       place = 1 + m->scatter * 3.46 * (ca_rng_unit(rng) - 0.5),
		       noise = 1 + 0.02 * (ca_rng_unit(rng) - 0.5), visits = 300 / place;
		uint32_t region = 1 + (uint32_t)(i / CA_COUNT(percent)) % 2;

		o[i] = (struct ca_observation){ .region = region,
						.speedup = (uint32_t)(p * 1e6),
						.run = (uint32_t)(i / 12),
						.cost = 0.25,
						.elapsed = 0.25 + p * 0.1,
						.delay = p * 0.1 };
		o[i].visits = visits / (1 + p * (m->work - 1));
		o[i].work = 0.4 * noise;
		o[i].entries = region <= m->entered
				       ? 500 * o[i].visits / visits * (1 + p * (m->entries - 1)) * noise
				       : 0;
	}
	return m->n;
}

static void test_uneven(void **state)
{
	static const struct made cases[] = {
		{ "polls", 0.4, 0.4, 0.02, 60, 0.99, true, 2 },
		{ "polls, one code known by its entries", 0.4, 0.4, 0.02, 60, 0.99, true, 1 },
		{ "sampled", 0.4, 0.4, 0.02, 60, 0, false, 0 },
		{ "few experiments", 0.4, 0.4, 0.02, 12, 0, false, 2 },
		{ "threads spin", 0.4, 1, 0.02, 60, 0, false, 2 },
		{ "behind a queue", 0.6, 1, 0.02, 60, 0, false, 2 },
		{ "before a queue", 1.5, 1.5, 0.02, 60, 0, false, 2 },
		{ "a unit", 1, 1, 0.02, 60, 0, false, 2 },
		{ "a unit, and pauses that cost", 1.08, 1, 0.02, 60, 0, false, 2 },
		{ "visits are unlike", 1, 1, 0.3, 60, 0.005, false, 2 },
	};
	struct ca_observation o[60];
	struct ca_rng rng;

	(void)state;
	ca_rng_init(&rng, 3);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		double uneven = 0;

		for (unsigned k = 0; k < 400; k++)
			uneven += ca_units_are_uneven(o, make(&cases[i], &rng, o)) / 400.;
		if (cases[i].least ? uneven < cases[i].uneven : uneven > cases[i].uneven)
			fail_msg("%s: %.3f", cases[i].what, uneven);
	}
	assert_false(ca_units_are_uneven(NULL, 0));
}

static void test_count_work(void **state)
{
	struct ca_observation
		known = { .elapsed = 1.5, .delay = 0.5, .cost = 0.9, .visits = 70, .work = 1.8, .from = 2 },
		unknown = { .elapsed = 1.5, .delay = 0.5, .cost = 0.9, .visits = 70, .from = 2 },
		spun = unknown;

	(void)state;
	ca_units_count_work(&known);
	assert_true(known.cost == 1 && known.visits == 1800 && known.from == 2 && known.work == 0);
	ca_units_count_work(&unknown);
	assert_true(unknown.cost == 0 && unknown.from == 0);
	spun.work = NAN;
	ca_units_count_work(&spun);
	assert_true(spun.cost == 0 && spun.visits == 0 && spun.from == 0);
}

/* 1 s, half of it S at 50 %: 0.1 went to others, 0.1 to our code, half of that in S. */
static void test_take_off(void **state)
{
	static const uint64_t s = 1000000000;
	struct ca_observation o = {
		.speedup = 500000, .elapsed = 1, .active = 0.5, .delay = 0.25, .cost = 0.75
	};
	struct ca_results_taken taken = ca_results_taken(s, 0, s / 2, s / 10, s / 10, s / 20);

	(void)state;
	ca_units_take_off(&o, taken);
	assert_true(fabs(o.elapsed - 0.8) < 1e-9);
	assert_true(fabs(o.active - 0.45) < 1e-9);
	assert_true(fabs(o.delay - 0.225) < 1e-9);
	assert_true(fabs(o.cost - (0.8 - 0.225)) < 1e-9);
	assert_true(fabs(o.lost - 0.2) < 1e-9);
	/* no more than there is: S went on for longer than what is left, and had less than was found in it */
	taken = ca_results_taken(s, 0, s - 5, UINT64_MAX, 30, 20);
	assert_true(taken.all == 25 && taken.in_s == 20);
	taken = ca_results_taken(s, 0, 10, UINT64_MAX, 30, 20);
	assert_true(taken.all == 20 && taken.in_s == 10);
	/* two threads on one CPU, which others left to them: each waits for half of the time */
	assert_true(ca_results_taken(s, s, s / 3, s, 0, 0).all == 0);
	assert_true(ca_results_taken(s, 2 * s, s / 3, s, 0, 0).all == 0);
	assert_true(ca_results_taken(s, s * 3 / 4, s / 3, s, 0, 0).all == s / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_units), cmocka_unit_test(test_uneven),
					    cmocka_unit_test(test_count_work),
					    cmocka_unit_test(test_take_off) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

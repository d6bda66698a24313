/* SPDX-License-Identifier: MIT */
/* estimate_silence.c: what runs do while no point is passed is a part of them, and the samples tell of it. Two regions,
 * WORK between visits and LOAD before the first of them. Everything is exact but for what visits scatter. */
#include "tests/unit/estimate_fixture.h"

enum { WORK = 1, LOAD, EACH = 12 };

/* Runs of 10 s, of which 4 pass no point. So much of WORK's saving arrives. */
static const struct ca_silence runs = {
	.length = 100, .sampled = 16000, .before = 30, .after = 10, .cpu = 40, .samples = 4000
};

static struct ca_observation experiment(uint32_t region, uint32_t speedup, size_t i, bool per_visit)
{
	double won = region == WORK ? 0.5 * speedup / 1e6 : 0, elapsed = 0.25 / (1 - won / 2);

	return (struct ca_observation){ .region = region,
					.speedup = speedup,
					.run = (uint32_t)(i % 4),
					.time = (double)i,
					.cost = 0.25 * exp(0.002 * normal()),
					.visits = per_visit ? 25000 / (1 - won) : 250000,
					.elapsed = elapsed,
					.active = region == WORK ? 0.6 * elapsed : 0,
					.delay = region == WORK ? speedup / 1e6 * 0.6 * elapsed : 0,
					.paying = region == WORK ? speedup / 1e6 * 0.3 * elapsed : 0,
					.periods = 125,
					.inside = region == WORK ? 75 : 0,
					.per_visit = per_visit };
}

/* LOAD's curve, and WORK's in *work. load: its share of the silence. */
static struct ca_curve run_with(const struct ca_silence *silence, double load, bool per_visit,
				struct ca_curve *work)
{
	struct ca_share share[] = { { WORK, 7200, 0.45, 1, .silent = 0 },
				    { LOAD, 4000 * load, 0.25 * load, 1, .silent = 4000 * load } };
	struct ca_estimate_options options = {
		.seed = 7, .share = share, .shares = CA_COUNT(share), .silence = *silence
	};
	struct ca_observation list[4 * EACH];
	struct ca_estimates e;
	struct ca_curve curve = { 0 };

	ca_rng_init(&rng, 3);
	for (size_t i = 0; i < 4 * EACH; i++)
		list[i] = experiment(i % 4 < 2 ? WORK : LOAD, i % 2 ? 500000 : 0, i, per_visit);
	assert_int_equal(ca_estimate(list, 4 * EACH, &options, &e), CA_OK);
	for (size_t k = 0; k < e.curves; k++)
		*(e.curve[k].region == LOAD ? &curve : work) = e.curve[k];
	assert_near(e.single[1], work->at[1], 3);
	ca_estimate_fini(&e);
	return curve;
}

static void test_joined(void **state)
{
	struct ca_curve work, load = run_with(&runs, 0.75, true, &work);

	(void)state;
	assert_near(work.at[1], 0.6 * 25, 0.7);
	assert_true(work.at_low[1] < 15 && 15 < work.at_high[1] && work.at_high[1] - work.at_low[1] < 3);
	assert_near(load.at[1], 0.4 * 0.75 * 50, 0.7);
	assert_near(load.at[2], 0.4 * 0.75 * 100, 1.4);
	assert_true(load.at_low[1] < 15 && 15 < load.at_high[1] && load.at_high[1] - load.at_low[1] < 3);
	assert_int_equal(ca_estimate_verdict(&load), CA_VERDICT_WORTH);
	assert_near(load.slope, 0.3, 0.02);
}

/* Without, it is what experiments show; time itself never pauses, and samples of whole runs tell of that. */
static void test_none(void **state)
{
	static const struct ca_silence none;
	struct ca_curve work, load = run_with(&none, 0.75, true, &work);

	(void)state;
	assert_near(work.at[1], 25, 1);
	assert_int_equal(ca_estimate_verdict(&load), CA_VERDICT_NOT_WORTH);
	load = run_with(&runs, 0.75, false, &work);
	assert_near(load.at[1], 0.25 * 0.75 * 50, 1);
}

/* A program that waits for its input does nothing that could be faster. */
static void test_idle(void **state)
{
	struct ca_silence idle = runs;
	struct ca_curve work, load;

	(void)state;
	idle.cpu = 4;
	load = run_with(&idle, 0.75, true, &work);
	assert_near(work.at[1], 60. / 64 * 25, 0.7);
	assert_near(load.at[1], 4. / 64 * 0.75 * 50, 0.5);
}

/* Runs became shorter by what was saved in them, and what was silent did not. */
static void test_shortened(void **state)
{
	struct ca_silence short_ones = runs;
	struct ca_curve work, load;

	(void)state;
	short_ones.inserted = 40;
	load = run_with(&short_ones, 0.75, true, &work);
	assert_true(work.at[1] > 0.6 * 25 + 1 && work.at[1] < 25);
	assert_near(load.at[1] / (0.75 * 50) + work.at[1] / 25, 1, 0.03);
}

/* Two threads at work in it: which of its code the other one waits for, samples do not tell. */
static void test_threads(void **state)
{
	struct ca_silence both = runs;
	struct ca_curve work, load;

	(void)state;
	both.cpu = 80;
	load = run_with(&both, 0.5, true, &work);
	assert_true(load.at_low[1] < 1 && load.at_high[1] > 0.4 * 50 - 1);
	assert_int_equal(ca_estimate_verdict(&load), CA_VERDICT_NOT_ENOUGH);
	load = run_with(&both, 0.9, true, &work);
	assert_true(load.at_low[1] > 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_joined),    cmocka_unit_test(test_none),    cmocka_unit_test(test_idle),
		cmocka_unit_test(test_shortened), cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

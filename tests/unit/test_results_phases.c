/* SPDX-License-Identifier: MIT */
/* estimate_phases.c and estimate_places.c on single regions: where in the run experiments lie. Everything is exact
 * but for what the samples and visits scatter. */
#include "tests/unit/estimate_fixture.h"
#include <stdlib.h>

enum { MOST = 64 };
static const double run_length = 8; /* s */

/* 250 ms of two threads, from `at` on, that have `part` of their time in S, of which `won` arrives. */
static struct ca_observation experiment(uint32_t speedup, double at, double part, double won)
{
	double p = speedup / 1e6, any = 1 - (1 - part) * (1 - part), elapsed = 0.25 * (1 - p * won + p * any);

	return (struct ca_observation){ .region = 1,
					.speedup = speedup,
					.run = 1,
					.time = at,
					.cost = 0.25 * (1 - p * won) * exp(0.003 * normal()),
					.visits = 25000,
					.elapsed = elapsed,
					.active = 0.25 * any,
					.delay = 0.25 * p * any,
					.paying = 0.25 * p * any,
					.work = 0.5,
					.periods = 125,
					.inside = 125 * part,
					.from = at,
					.to = at + 0.25,
					.per_visit = true };
}

struct half {
	double part, won;
};

/* n experiments in each half of the run, or as many as are wanted. */
static struct ca_curve run_halves(const struct half half[2], size_t first, size_t second, double length,
				  double share)
{
	static const uint32_t order[] = { 500000, 0, 1000000, 250000 };
	struct ca_observation list[MOST];
	struct ca_share s = { 1, share * 8000, share, 1 };
	struct ca_estimate_options options = {
		.seed = 7, .share = &s, .shares = share > 0, .length = length
	};
	struct ca_estimates e;
	struct ca_curve curve;

	ca_rng_init(&rng, 3);
	for (size_t i = 0; i < first + second; i++) {
		size_t k = i >= first, n = k ? second : first;
		double at = 4 * (double)k + 3.7 * ((double)(i - k * first) + 0.5) / (double)n;

		list[i] = experiment(order[i % 4], at, half[k].part, half[k].won);
	}
	assert_int_equal(ca_estimate(list, first + second, &options, &e), CA_OK);
	curve = e.curve[0];
	ca_estimate_fini(&e);
	return curve;
}

/* What S wins is in proportion to the samples in it, so those of whole runs say what it wins in them. */
static void test_brought(void **state)
{
	static const struct half half[2] = { { .2, .2 }, { .8, .8 } };
	struct ca_curve c = run_halves(half, 4, 16, run_length, 0.5);

	(void)state;
	assert_near(c.at[1], 25, 1.5);
	assert_true(c.at_low[1] < 25 && 25 < c.at_high[1] && c.at_high[1] - c.at_low[1] < 6);
	/* without: as the experiments lie */
	c = run_halves(half, 4, 16, 0, 0);
	assert_true(c.at[1] > 30);
}

/* The samples say nothing, but each half counts as much as it is long. */
static void test_weighed(void **state)
{
	static const struct half half[2] = { { .5, .1 }, { .5, .5 } };
	struct ca_curve with = run_halves(half, 8, 24, run_length, 0.5),
			without = run_halves(half, 8, 24, 0, 0.5);

	(void)state;
	assert_near(with.at[1], 15, 2.5);
	assert_true(with.at_low[1] < 15 && 15 < with.at_high[1]);
	assert_true(without.at[1] > 18);
}

/* No experiment in one half: there, it may be nothing, or all that the samples leave room for. */
static void test_missed(void **state)
{
	static const struct half half[2] = { { .2, .2 }, { .8, .8 } };
	struct ca_curve known = run_halves(half, 0, 12, 0, 0.5),
			missed = run_halves(half, 0, 12, run_length, 0.5);

	(void)state;
	assert_true(known.at_low[1] > 35);
	assert_near(missed.at[1], 40, 2);
	assert_true(missed.at_low[1] < 25 && missed.at_low[1] > 15);
	assert_false(ca_estimate_decided(&missed, 3));
	/* all of the rest of its samples lie there, and may win */
	missed = run_halves(half, 12, 0, run_length, 0.5);
	assert_true(missed.at_high[1] > 25);
}

/* Half of the run passes no point: there is nothing to know of it. */
static void test_silent(void **state)
{
	static const struct half half[2] = { { .5, .5 }, { .5, .5 } };
	struct ca_observation list[MOST];
	struct ca_estimate_options options = { .seed = 7, .length = run_length };
	struct ca_estimates e[2];
	size_t n = 0;

	(void)state;
	ca_rng_init(&rng, 3);
	for (; n < 12; n++)
		list[n] = experiment(n % 2 ? 500000 : 0, 4 + 0.3 * (double)n, half[1].part, half[1].won);
	for (size_t i = 0; i < 4; i++)
		list[n++] = (struct ca_observation){ .from = (double)i, .to = (double)i + 0.25 };
	for (size_t k = 0; k < 2; k++)
		assert_int_equal(ca_estimate(list, k ? n : 12, &options, &e[k]), CA_OK);
	assert_true(e[0].curve[0].at_low[1] < 15);
	assert_true(e[1].curve[0].at_low[1] > 20);
	ca_estimate_fini(&e[0]);
	ca_estimate_fini(&e[1]);
}

/* ---- places by work done ---------------------------------------------------------------------*/
enum { VISITS = 2000, RUNS = 20, LIST = 400, SWEEPS = 40, REGIONS = 3 };

/* s that a visit takes: it depends on the input, which is the same in each run. */
static double cost_of_visit(double visit)
{
	return visit < 800 ? 4e-4 : visit < 1400 ? 9e-4 : visit < 1900 ? 5e-4 : 5e-3;
}

/* The program works for so long; returns how long that was, to the next visit. */
static double advance(double *visit, double seconds, double speed)
{
	double took = 0;

	for (; took < seconds && *visit < VISITS; ++*visit)
		took += speed * cost_of_visit(*visit);
	return took;
}

/* What is known of an experiment: how far its run has got, and the CPU time of two threads that always work. */
struct known {
	bool before, work;
	double noise; /* of what its visits cost, the same in both */
};

/* A run is the farther ahead of its time the more its experiments have won. 30 is true at 50 %. */
static struct ca_curve sweep_of_work(const struct known *known, uint64_t seed)
{
	struct ca_estimate_options options = { .seed = 7, .length = 1.6 };
	struct ca_observation list[LIST];
	struct ca_estimates e;
	struct ca_curve curve;
	size_t n = 0;

	ca_rng_init(&rng, seed);
	for (uint32_t run = 0; run < RUNS; run++) {
		double visit = 0, slow = exp(0.01 * normal()), at = advance(&visit, 0.05, slow);

		while (visit < VISITS && n < LIST) {
			struct ca_observation *o = &list[n];
			double p = (double)ca_rng_below(&rng, 3) / 2, before = visit;
			double noise = exp(known->noise * normal());
			double cost =
				advance(&visit, 0.25, slow * noise * exp(0.01 * normal()) * (1 - 0.6 * p));

			if (visit < VISITS) { /* not cut */
				*o = (struct ca_observation){ .region = 1 +
									(uint32_t)ca_rng_below(&rng, REGIONS),
							      .speedup = (uint32_t)(p * 1e6),
							      .run = run,
							      .time = run * 3 + at,
							      .cost = cost,
							      .visits = visit - before,
							      .before = known->before ? before : 0,
							      .elapsed = cost / (1 - 0.8 * p),
							      .from = at,
							      .to = at + cost,
							      .per_visit = true };
				o->active = 0.8 * o->elapsed;
				o->delay = o->paying = p * o->active;
				o->work = known->work ? 2 * cost / (1 - 0.6 * p) : 0;
				n++;
			}
			at += cost + advance(&visit, 0.1, slow);
		}
	}
	assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
	curve = e.curve[0];
	ca_estimate_fini(&e);
	return curve;
}

struct judged {
	double off, width, covered;
};

static struct judged judge(const struct known *known, const char *name)
{
	struct judged j = { 0 };

	for (uint64_t seed = 1; seed <= SWEEPS; seed++) {
		struct ca_curve c = sweep_of_work(known, seed);

		j.off += fabs(c.at[1] - 30) / SWEEPS;
		j.width += (c.at_high[1] - c.at_low[1]) / 2 / SWEEPS;
		j.covered += (c.at_low[1] <= 30 && 30 <= c.at_high[1]) / (double)SWEEPS;
	}
	print_message("%-20s off by %5.2f, +- %5.2f, %.0f %% covered\n", name, j.off, j.width,
		      100 * j.covered);
	return j;
}

/* Whoever knows how much of the work was done needs no clock to know where a run is. */
static void test_work(void **state)
{
	struct judged time = judge(&(struct known){ 0 }, "time"),
		      work = judge(&(struct known){ .before = true }, "work");

	(void)state;
	assert_true(work.off < 0.7 * time.off);
	assert_true(work.width < 0.7 * time.width);
	assert_true(work.covered >= 0.9);
}

/* Which of both tells more depends on the program: where its runs differ CPU time does, but none of two counts alone. */
static void test_work_or_cpu_time(void **state)
{
	struct judged work = judge(&(struct known){ .before = true, .noise = 0.2 }, "noise, work"),
		      cpu = judge(&(struct known){ .work = true, .noise = 0.2 }, "noise, CPU time"),
		      both = judge(&(struct known){ .before = true, .work = true, .noise = 0.2 },
				   "noise, both");

	(void)state;
	assert_true(both.off < 0.25 * fmin(work.off, cpu.off));
	assert_true(both.width < 0.75 * fmin(work.width, cpu.width));
	assert_true(both.covered >= 0.9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brought), cmocka_unit_test(test_weighed),
		cmocka_unit_test(test_missed),  cmocka_unit_test(test_silent),
		cmocka_unit_test(test_work),    cmocka_unit_test(test_work_or_cpu_time)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

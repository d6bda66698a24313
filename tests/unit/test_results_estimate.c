/* SPDX-License-Identifier: MIT */
/* The estimator on synthetic data of known truth: exactness, robustness, and that its 95 %
 * intervals hold what they promise. Everything is seeded: the outcome never varies. */
#include "causal/results/results.h"
#include "tests/unit/estimate_fixture.h"

enum { MOST = 4096 };

/* One sort of program and machine. Relative standard deviations. */
struct scene {
	const char *name;
	int runs, each; /* experiments in each run */
	int levels, regions;
	double zeros;        /* share of experiments at 0 % */
	double noise, drift; /* of one experiment; step of a random walk from one to the next */
	double run;          /* between runs */
	double bad, worst;   /* share of outliers; the slowest is this much slower */
	double period;       /* s a visit at 0 %; an experiment lasts 1 s */
	bool end_to_end;     /* one experiment a run, one visit */
};

/* Region 1 gains half of its speedup up to 40 %, then no more; 2 a tenth; 3 nothing. */
static double truth(uint32_t region, double speedup)
{
	return region == 1 ? (speedup <= 0.4 ? speedup / 2 : 0.2) : region == 2 ? speedup / 10 : 0;
}

static size_t play(const struct scene *s, struct ca_observation *out)
{
	double walk = 0;
	size_t n = 0;

	for (int r = 0; r < s->runs; r++) {
		double run = s->run * normal();

		for (int i = 0; i < s->each; i++) {
			uint32_t region = 1 + (uint32_t)ca_rng_below(&rng, (uint64_t)s->regions);
			double p =
				uniform() < s->zeros
					? 0
					: (1 + (double)ca_rng_below(&rng, (uint64_t)s->levels)) / s->levels;
			double period, cost = 1;

			if (s->end_to_end)
				p = r % (s->levels + 1) / (s->levels + 1.);
			walk += s->drift * normal();
			period = s->period * (1 - truth(region, p)) * exp(run + walk + s->noise * normal());
			if (uniform() < s->bad)
				period *= 1 + (s->worst - 1) * uniform();
			if (s->end_to_end)
				cost = period;
			out[n++] = (struct ca_observation){
				.region = region,
				.speedup = (uint32_t)lround(p * 1e6),
				.run = (uint32_t)r,
				.time = r * s->each + i,
				.cost = cost,
				.visits = s->end_to_end ? 1 : floor(cost / period + uniform()),
			};
		}
	}
	return n;
}

struct tally {
	double cells, covered, error, curves, slopes_covered;
};

/* The slope that least squares would find without noise. */
static double true_slope(const struct ca_estimates *e, const struct ca_curve *curve)
{
	double pe = 0, pp = 0;

	for (size_t c = curve->first; c < curve->first + curve->cells; c++) {
		const struct ca_cell *cell = &e->cell[c];
		double p = cell->speedup / 1e4, n = (double)cell->experiments;

		if (!cell->speedup || !isfinite(cell->low))
			continue;
		pe += n * p * 100 * truth(cell->region, p / 100);
		pp += n * p * p;
	}
	return pe / pp;
}

static void count(const struct ca_estimates *e, struct tally *tally)
{
	for (size_t c = 0; c < e->cells; c++) {
		const struct ca_cell *cell = &e->cell[c];
		double t = 100 * truth(cell->region, cell->speedup / 1e6);

		if (!cell->speedup || !isfinite(cell->low))
			continue;
		assert_true(cell->low <= cell->effect && cell->effect <= cell->high);
		tally->cells++;
		tally->covered += cell->low <= t && t <= cell->high;
		tally->error += cell->effect - t;
	}
	for (size_t k = 0; k < e->curves; k++) {
		double t = true_slope(e, &e->curve[k]);

		if (!isfinite(e->curve[k].slope_low) || !isfinite(t))
			continue;
		tally->curves++;
		tally->slopes_covered += e->curve[k].slope_low <= t && t <= e->curve[k].slope_high;
	}
}

static const struct scene scenes[] = {
	{ "quiet, one run", 1, 40, 2, 1, .33, .01, 0, 0, 0, 1, .01, false },
	{ "drift, one run", 1, 60, 3, 1, .25, .02, .01, 0, 0, 1, .01, false },
	{ "neighbours, one run", 1, 60, 3, 1, .25, .02, .003, 0, .1, 1.5, .01, false },
	{ "three runs", 3, 25, 3, 1, .25, .02, .003, .02, .05, 1.5, .01, false },
	{ "five runs", 5, 15, 3, 1, .25, .02, .003, .02, .05, 1.5, .01, false },
	{ "twenty runs", 20, 8, 4, 2, .25, .02, .003, .03, .05, 1.5, .01, false },
	{ "default pool", 20, 10, 20, 3, .25, .03, .005, .03, .05, 1.5, .01, false },
	{ "sparse", 20, 3, 20, 2, .25, .03, 0, .03, .05, 1.5, .01, false },
	{ "six visits each", 5, 20, 2, 1, .33, .02, .003, .01, .02, 1.5, .17, false },
	{ "end to end, 3 times", 9, 1, 2, 1, 0, .02, .003, 0, 0, 1, 1, true },
	{ "end to end, 5 times", 15, 1, 2, 1, 0, .02, .003, 0, .05, 1.5, 1, true },
	{ "end to end, 20 times", 60, 1, 2, 1, 0, .02, .003, 0, .05, 1.5, 1, true },
};

/* Over some hundred simulated profiles a scene: coverage within 90..99 %, bias below 1 point
 * where cells have few experiments (an outlier cannot be told there), else below 0.5. */
static void test_coverage(void **state)
{
	static struct ca_observation list[MOST];

	(void)state;
	for (size_t s = 0; s < sizeof scenes / sizeof *scenes; s++) {
		const struct scene *scene = &scenes[s];
		struct tally tally = { 0 };
		bool few = scene->levels > 10;

		ca_rng_init(&rng, 1000 + s);
		for (uint64_t i = 0; i < (uint64_t)ca_sweeps(few ? 60 : 250); i++) {
			struct ca_estimate_options options = {
				.seed = i,
				.replicates = 400,
				.quantum = scene->end_to_end ? 0 : 1. / 6,
			};
			struct ca_estimates e;

			assert_int_equal(ca_estimate(list, play(scene, list), &options, &e), CA_OK);
			count(&e, &tally);
			ca_estimate_fini(&e);
		}
		print_message("%-22s cells %5.1f %% covered, slopes %5.1f %%, bias %+.2f\n", scene->name,
			      100 * tally.covered / tally.cells, 100 * tally.slopes_covered / tally.curves,
			      tally.error / tally.cells);
		if (!CA_JUDGED)
			continue;
		assert_in_range(lround(1000 * tally.covered / tally.cells), 900, 990);
		assert_in_range(lround(1000 * tally.slopes_covered / tally.curves), 890, 995);
		assert_true(fabs(tally.error / tally.cells) < (few ? 1 : 0.5));
	}
}

static struct ca_observation at(uint32_t region, uint32_t speedup, uint32_t run, double time, double cost,
				double visits)
{
	return (struct ca_observation){
		.region = region, .speedup = speedup, .run = run, .time = time, .cost = cost, .visits = visits
	};
}

/* Without noise the answer is exact, and equal seeds give equal intervals. */
static void test_exact(void **state)
{
	struct ca_observation list[64];
	struct ca_estimates a, b;
	size_t n = 0;

	(void)state;
	for (int i = 0; i < 20; i++) {
		list[n++] = at(1, 0, 1, i, 1, 100);
		list[n++] = at(1, 500000, 1, i + 0.3, 1, 125);
		list[n++] = at(2, 500000, 1, i + 0.6, 1, 100);
	}
	a = run_on(list, n);
	b = run_on(list, n);
	assert_near(find(&a, 1, 500000)->effect, 20, 1e-9);
	assert_near(find(&a, 2, 500000)->effect, 0, 1e-9);
	assert_true(find(&a, 1, 500000)->high - find(&a, 1, 500000)->low < 0.5);
	assert_near(a.curve[0].at[1], 20, 1e-3);
	assert_near(a.curve[0].slope, 0.4, 1e-4);
	/* the rest of it is anything that bends downwards: from a step to a straight line */
	assert_true(a.curve[0].at_low[2] < 21 && a.curve[0].at_high[2] > 39);
	assert_true(a.curve[0].at_low[0] < 10.1 && a.curve[0].at_high[0] > 18);
	assert_true(a.curve[0].impact_low < 17 && a.curve[0].impact_high > 19.9);
	assert_near(a.curve[0].max, 20, 1e-9);
	assert_near(find(&a, 1, 500000)->low, find(&b, 1, 500000)->low, 0);
	assert_near(find(&a, 1, 500000)->high, find(&b, 1, 500000)->high, 0);
	ca_estimate_fini(&a);
	ca_estimate_fini(&b);
}

/* A machine that gets 40 % slower from start to end, treated ones mostly late: a pooled
 * baseline would be 10 points off. */
static void test_drift(void **state)
{
	struct ca_observation list[200];
	struct ca_estimates e;

	(void)state;
	ca_rng_init(&rng, 5);
	for (size_t i = 0; i < 200; i++) {
		bool treated = uniform() < (double)i / 250;
		double period = 0.01 * (1 + 0.4 * (double)i / 200) * exp(0.01 * normal());

		list[i] = at(1, treated ? 250000 : 0, 1, (double)i, 1,
			     floor(1 / (period * (treated ? 0.9 : 1)) + uniform()));
	}
	e = run_on(list, 200);
	assert_int_equal(e.baseline, CA_BASELINE_NEAR);
	assert_near(find(&e, 1, 250000)->effect, 10, 1);
	ca_estimate_fini(&e);
}

/* Three of thirty experiments ran beside another program: seen, and without a say. */
static void test_outliers(void **state)
{
	struct ca_observation list[60];
	struct ca_estimates e;

	(void)state;
	ca_rng_init(&rng, 6);
	for (size_t i = 0; i < 60; i++) {
		double period = (i % 2 ? 0.0075 : 0.01) * exp(0.01 * normal());

		if (i % 20 == 1)
			period *= 2;
		list[i] = at(1, i % 2 ? 500000 : 0, 1, (double)i, 1, floor(1 / period + uniform()));
	}
	e = run_on(list, 60);
	assert_near(find(&e, 1, 500000)->effect, 25, 1);
	assert_int_equal(find(&e, 1, 500000)->outliers, 3);
	ca_estimate_fini(&e);
}

/* A region whose probes cost 5 % even at 0 % is compared with its own zeros. */
static void test_own_zeros(void **state)
{
	struct ca_observation list[240];
	struct ca_estimates e;

	(void)state;
	ca_rng_init(&rng, 8);
	for (size_t i = 0; i < 240; i++) {
		uint32_t region = 1 + (uint32_t)(i % 4);
		bool treated = i / 4 % 2;
		double period = 0.005 * (region == 1 ? 1.05 : 1) * (treated && region == 1 ? 0.8 : 1) *
				exp(0.01 * normal());

		list[i] = at(region, treated ? 500000 : 0, 1, (double)i, 1, floor(1 / period + uniform()));
	}
	e = run_on(list, 240);
	assert_near(find(&e, 1, 500000)->effect, 20, 1);
	assert_near(find(&e, 2, 500000)->effect, 0, 1);
	ca_estimate_fini(&e);
}

/* Experiments with two regions, in which nothing is gained: every other one at 0 %, with a scatter
 * of 1 %, the same in both, and levels that lie `apart` from each other (logarithm). */
static struct ca_estimates two_levels(size_t first, size_t second, double apart)
{
	static struct ca_observation list[400];
	struct ca_estimate_options options = { .seed = 7 };
	struct ca_estimates e;
	size_t n = 0;

	for (size_t i = 0; i < 2 * first; i++)
		for (uint32_t region = 1; region <= 2; region++) {
			double off = 0.01 * (i / 2 % 2 ? 1 : -1) * (i / 4 % 2 ? 0.7 : 1.3);
			double period = exp(off + (region == 1 ? 0 : apart));

			if (region == 1 || i < 2 * second) {
				list[n] = at(region, i % 2 ? 500000 : 0, 1, (double)n, 1, 1000 / period);
				n++;
			}
		}
	assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
	return e;
}

/* From three zeros on a region has a level of its own; with fewer it is compared with the others,
 * however far off it lies. */
static void test_few_own_zeros(void **state)
{
	static const struct {
		size_t zeros;
		bool own;
	} cases[] = { { 1, false }, { 2, false }, { 3, true }, { 4, true }, { 7, true } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ca_estimates e = two_levels(40, cases[i].zeros, 0.03);
		double effect = find(&e, 2, 500000)->effect;

		if (cases[i].own ? effect < -1 : effect > -1.5)
			fail_msg("%zu zeros: %g", cases[i].zeros, effect);
		ca_estimate_fini(&e);
	}
}

/* How much of a difference is taken for real: of two regions that know their levels equally well
 * DerSimonian and Laird's estimate leaves variance / difference of it. */
static void test_levels(void **state)
{
	(void)state;
	for (double apart = 0.008; apart < 0.0165; apart += 0.002) {
		struct ca_estimates e = two_levels(16, 16, apart);
		double variance = e.noise * e.noise / 16;

		assert_int_equal(e.baseline, CA_BASELINE_ALL);
		assert_true(apart * apart / 2 > 2 * variance); /* else it is no difference */
		assert_near(find(&e, 2, 0)->effect / (-100 * variance / apart), 1, 0.12);
		ca_estimate_fini(&e);
	}
}

/* A curve through one point is as sure as that point, whatever is known of the next region: here very
 * little, from as few runs as may be. */
static void test_next_region(void **state)
{
	static struct ca_observation list[200];
	struct ca_estimates e;
	size_t n = 0;

	(void)state;
	ca_rng_init(&rng, 11);
	for (uint32_t run = 0; run < 40; run++)
		for (int i = 0; i < 4; i++) {
			uint32_t region = i == 3 ? 2 : 1;
			double gain = i == 1 ? 0.8 : 1;

			if (region == 1 || run < 5) {
				list[n] = at(region, i % 2 ? 500000 : 0, run, (double)n, 1,
					     1000 / gain * exp(0.01 * normal()));
				n++;
			}
		}
	e = run_on(list, n);
	assert_int_equal(e.curves, 2);
	for (size_t k = 0; k < e.curves; k++) {
		const struct ca_curve *curve = &e.curve[k];
		const struct ca_cell *cell = find(&e, curve->region, 500000);
		double width = cell->high - cell->low;

		assert_int_equal(cell->runs, k ? 5 : 40);
		assert_near((curve->slope_high - curve->slope_low) * 50 / width, 1, 0.5);
		assert_near((curve->at_high[1] - curve->at_low[1]) / width, 1, 0.5);
	}
	ca_estimate_fini(&e);
}

/* A rare point that some experiments do not pass at all: their time counts. */
static void test_no_visits(void **state)
{
	struct ca_observation list[200];
	struct ca_estimates e;

	(void)state;
	ca_rng_init(&rng, 9);
	for (size_t i = 0; i < 200; i++)
		list[i] = at(1, i % 2 ? 500000 : 0, 1, (double)i, 1,
			     floor(1 / (i % 2 ? 1.2 : 1.5) + uniform()));
	e = run_on(list, 200);
	assert_true(find(&e, 1, 500000)->low <= 20 && find(&e, 1, 500000)->high >= 20);
	assert_near(find(&e, 1, 500000)->effect, 20, 12);
	ca_estimate_fini(&e);
}

/* Code that asks again and again whether others are through is the more often in S the slower these are: at
 * 100 % they get on only between two calls. Its CPU time is no measure of how dear a visit is, and 1 % of S
 * time is much of what is left. As recorded, one run each: elapsed, S time, paying, CPU time. */
static void test_polls(void **state)
{
	static const struct {
		uint32_t region, speedup;
		double cost, active, paying, work;
	} run[] = {
		{ 1, 500000, 0.501, 0.828, 0.413, 1.362 },  { 2, 0, 0.480, 0.454, 0, 0.916 },
		{ 2, 500000, 0.251, 0.464, 0.231, 0.706 },  { 2, 0, 0.479, 0.459, 0, 0.917 },
		{ 1, 1000000, 0.493, 8.061, 8.048, 8.936 }, { 2, 1000000, 0.022, 0.482, 0.482, 0.537 },
		{ 1, 250000, 0.503, 0.581, 0.144, 1.087 },  { 1, 0, 0.504, 0.457, 0, 0.964 },
		{ 2, 250000, 0.360, 0.454, 0.112, 0.799 },  { 1, 500000, 0.517, 0.852, 0.422, 1.388 },
		{ 2, 750000, 0.142, 0.476, 0.355, 0.611 },  { 1, 750000, 0.537, 1.673, 1.253, 2.280 },
	};
	struct ca_observation list[sizeof run / sizeof *run];
	struct ca_estimates e;
	size_t n = sizeof run / sizeof *run;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		double delay = run[i].active * run[i].speedup / 1e6;

		list[i] = at(run[i].region, run[i].speedup, (uint32_t)i, 10 * (double)i, run[i].cost, 1);
		list[i].elapsed = run[i].cost + delay;
		list[i].active = run[i].active;
		list[i].delay = delay;
		list[i].paying = run[i].paying;
		list[i].work = run[i].work;
	}
	e = run_on(list, n);
	for (size_t k = 0; k < e.curves; k++) {
		const struct ca_curve *curve = &e.curve[k];

		if (curve->region == 1) /* nothing, known to a few points; and not to less than S time is */
			assert_true(curve->at_low[1] <= 0 && curve->at_high[1] < 15 &&
				    curve->at_high[2] - curve->at_low[2] > 2);
		else
			assert_near(curve->at[1], 47, 3);
	}
	ca_estimate_fini(&e);
}

/* Half the width of region 1's interval at 50 %: visits that cost up to twice as much, in CPU time as well. `last`: an
 * experiment of another region at 100 % in which two visits were met, and hardly anything was left of the time. */
static double width_beside(uint64_t last_work, uint64_t last_turns)
{
	struct ca_observation list[41];
	struct ca_estimates e;
	double width;

	for (size_t i = 0; i < 40; i++) {
		double dear = 1 + (double)(i * 7 % 11) / 10;

		list[i] = at(1, i % 2 ? 500000 : 0, 0, (double)i, 0.25, (i % 2 ? 125 : 100) / dear);
		list[i].elapsed = 0.25 * (i % 2 ? 1.3 : 1);
		list[i].active = list[i].elapsed * 0.5;
		list[i].delay = list[i].elapsed - 0.25;
		list[i].paying = list[i].delay * 0.8;
		list[i].work = ca_results_work((uint64_t)(2e9 * 0.25 * (i % 2 ? 1.25 : 1)), 40,
					       (uint64_t)(1e9 * list[i].elapsed));
	}
	list[40] = at(2, 1000000, 0, 40, 0.003, 2);
	list[40].elapsed = 0.25;
	list[40].active = list[40].delay = 0.247;
	list[40].paying = 0.25;
	list[40].work = ca_results_work(last_work, last_turns, 250000000);
	e = run_on(list, 41);
	width = (e.curve[0].at_high[1] - e.curve[0].at_low[1]) / 2;
	ca_estimate_fini(&e);
	return width;
}

/* An experiment in which all was paid has no CPU time, and the few turns of a lock in it are no spin loop: what the
 * others say of theirs holds. (Until 29 November 2026 it took that from all of them.) */
static void test_all_paid(void **state)
{
	double usual = width_beside(12000000, 40);

	(void)state;
	assert_near(width_beside(0, 30), usual, 0.1 * usual);
	assert_true(width_beside(0, 30000) > 1.5 * usual); /* that is one, and CPU time tells nothing */
}

static void test_degenerate(void **state)
{
	struct ca_observation treated = at(1, 500000, 1, 0, 1, 100);
	struct ca_observation pair[] = { at(1, 0, 1, 0, 1, 100), at(1, 500000, 1, 1, 1, 200) };
	struct ca_observation junk[] = { at(1, 0, 1, 0, 0, 5), at(1, 0, 1, 0, NAN, 5), at(1, 0, 1, 0, 1, -1),
					 at(1, 0, 1, 0, 1, NAN) };
	struct ca_estimates e = run_on(NULL, 0);

	(void)state;
	assert_int_equal(e.cells, 0);
	ca_estimate_fini(&e);
	e = run_on(junk, 4);
	assert_int_equal(e.cells, 0);
	ca_estimate_fini(&e);
	e = run_on(&treated, 1); /* nothing to compare with */
	assert_int_equal(e.baseline, CA_BASELINE_NONE);
	assert_true(isnan(e.cell[0].effect) && isnan(e.cell[0].low));
	ca_estimate_fini(&e);
	e = run_on(pair, 2); /* an effect, and no idea how sure it is */
	assert_near(find(&e, 1, 500000)->effect, 50, 1e-9);
	assert_true(isnan(find(&e, 1, 500000)->low));
	assert_true(isnan(e.curve[0].impact));
	ca_estimate_fini(&e);
}

/* Of one pair only the bounds are known; and where somebody paid nearly all the time, they leave any slow-down. That
 * is no answer, and its middle no effect. */
static void test_one_pair(void **state)
{
	static const double rest[] = { 0.7, 0.001 }; /* in which nobody paid */

	(void)state;
	for (size_t k = 0; k < CA_COUNT(rest); k++) {
		struct ca_observation list[] = { at(1, 0, 1, 0, 1, 1), at(1, 500000, 2, 1, 0.92, 1) };
		struct ca_estimates e;

		for (size_t i = 0; i < CA_COUNT(list); i++) {
			list[i].delay = list[i].speedup ? 0.3 : 0;
			list[i].elapsed = list[i].cost + list[i].delay;
			list[i].active = 0.6;
			list[i].paying = list[i].speedup ? list[i].elapsed - rest[k] : 0;
		}
		e = run_on(list, CA_COUNT(list));
		assert_true(e.curve[0].at_high[1] <= 31);
		assert_true(k ? isnan(e.curve[0].at[1]) : e.curve[0].at[1] > -10);
		assert_true(k ? isnan(e.curve[0].at_low[1]) : e.curve[0].at_low[1] > -40);
		assert_near(find(&e, 1, 500000)->effect, 8, 1e-9);
		ca_estimate_fini(&e);
	}
}

/* Each experiment by itself, as the report shows it: against 0 %, within its own bounds. */
/* As much at 50 as at 100 %: at 25 % it may be half of that, or all. What is read as +- half of the interval is to be
 * the interval. */
static void test_not_tried(void **state)
{
	struct ca_observation list[30];
	const struct ca_curve *curve;
	struct ca_estimates e;
	double middle;

	(void)state;
	ca_rng_init(&rng, 5);
	for (uint32_t i = 0; i < 30; i++)
		list[i] = (struct ca_observation){ .region = 1,
						   .speedup = i % 3 * 500000,
						   .run = 1,
						   .time = i,
						   .cost = 0.25 + 0.002 * normal(),
						   .visits = i % 3 ? 160 : 100 };
	e = run_on(list, CA_COUNT(list));
	curve = &e.curve[0];
	middle = (curve->at_low[0] + curve->at_high[0]) / 2;
	assert_in_range((unsigned)curve->at_low[0], 17, 20);
	assert_in_range((unsigned)curve->at_high[0], 36, 40);
	assert_near(curve->at[0], middle, 1);
	assert_near(curve->at[1], 37.5, 1); /* that was tried */
	ca_estimate_fini(&e);
}

static void test_single(void **state)
{
	static const struct {
		double cost, delay, paying, effect;
		bool zeros;
	} cases[] = {
		{ 0.8, 0.3, 0.2, 20, true },  { 0.8, 0.1, 0.1, 10, true }, /* at most D / T */
		{ 0.8, 0.3, 0, 30, true },    { 0.8, 0.3, NAN, 20, true }, /* at least (D - U) / T */
		{ 0.8, 0.3, 0.2, 30, false },
	};
	struct ca_estimate_options options = { .seed = 1 };

	(void)state;
	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		struct ca_observation list[5];
		struct ca_estimates e;
		size_t n = 0;

		for (; n < 4; n++)
			list[n] = (struct ca_observation){
				.region = 7,
				.speedup = n == 2 || !cases[k].zeros ? 500000 : 0,
				.run = 1,
				.time = (double)n,
				.cost = n == 2 ? cases[k].cost : 1,
				.visits = 100,
				.elapsed = 1,
				.active = 0.6,
				.yardstick = 900 + (double)n, /* also of none at 0 % */
				.delay = n == 2 ? cases[k].delay : 0,
				.paying = n == 2 ? cases[k].paying : 0,
				.per_visit = true,
			};
		list[n] = (struct ca_observation){ .region = 7,
						   .speedup = 500000,
						   .time = (double)n }; /* not passed */
		assert_int_equal(ca_estimate(list, 5, &options, &e), CA_OK);
		assert_near(e.single[2], cases[k].effect, 1e-6);
		assert_true(isnan(e.single[4]));
		assert_true(isnan(e.single[0]) == cases[k].zeros);
		ca_estimate_fini(&e);
	}
}

/* One experiment has seen CPUs idle by a few looks: it is taken for like the others, mostly. */
static void test_idle_of_few(void **state)
{
	struct ca_observation list[21];
	struct ca_estimate_options options = { .seed = 5 };
	struct ca_estimates e;

	(void)state;
	for (uint32_t i = 0; i < 21; i++) {
		list[i] = at(i < 20 ? 1 : 2, i % 2 || i == 20 ? 500000 : 0, 1, i, 1, 1000 + i % 3);
		list[i].idle = i < 20 ? 0.05 : 0.3;
	}
	assert_int_equal(ca_estimate(list, 21, &options, &e), CA_OK);
	assert_int_equal(e.curves, 2);
	assert_near(e.curve[0].idle, (20 * 0.05 + 10 * 1.3 / 21) / 30, 1e-9);
	assert_near(e.curve[1].idle, (0.3 + 10 * 1.3 / 21) / 11, 1e-9);
	ca_estimate_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_not_tried),     cmocka_unit_test(test_single),
		cmocka_unit_test(test_exact),         cmocka_unit_test(test_drift),
		cmocka_unit_test(test_outliers),      cmocka_unit_test(test_own_zeros),
		cmocka_unit_test(test_few_own_zeros), cmocka_unit_test(test_levels),
		cmocka_unit_test(test_next_region),   cmocka_unit_test(test_no_visits),
		cmocka_unit_test(test_polls),         cmocka_unit_test(test_all_paid),
		cmocka_unit_test(test_degenerate),    cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_one_pair),      cmocka_unit_test(test_idle_of_few),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

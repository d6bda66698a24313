/* SPDX-License-Identifier: MIT */
/* The estimator on windows as a profiler sees them, in which S time, D, U and visits belong together: single
 * regions; and whole sweeps of known truth: how often is the effect at 25, 50 and 100 % inside its interval?
 * Everything is seeded.
 *
 * A few sweeps of each kind take seconds; for the figures in doc/ESTIMATE.md:
 *     CA_SWEEPS=1000 tests/unit/test_results_sweeps */
#include "causal/results/results.h"
#include "tests/unit/estimate_fixture.h"
#include <stdlib.h>

enum { MOST = 400, MOST_ADAPTIVE = 200, REGIONS = 3 };

/* ---- sweeps --------------------------------------------------------------------------------*/
/* One kind of program. Of each sweep's regions the first has this curve, the others have half and none of
 * it. Relative standard deviations. */
struct kind {
	const char *name;
	double share;      /* of S in the time of a visit */
	double critical;   /* ... that is won up to the knee */
	double knee, bend; /* from there on only this part of it */
	double beside; /* what is paid beside the critical path, of what is paid on it and D; < 0: nobody pays */
	double noise, walk; /* of one window; from one to the next */
	double lumps;       /* of a visit's S time and length together */
	double rate;        /* visits a window of 250 ms */
	int runs, windows;  /* of each run */
	bool known;         /* U is */
	double work;        /* standard deviation of CPU time per visit, beside what it has in common with its
			     * length; 0: it is not known */
	double spins;       /* of the effect, what is also missing from CPU time per visit */
	double places;      /* from one part of a run to another, the same in each run */
	bool placed;        /* it is known where in the run a window lies */
	double speed;       /* how much the CPUs' speed varies from window to window; a yardstick tells */
	double slope;       /* how much of that a visit has */
};

static const struct kind kinds[] = {
	{ "straight", .6, .6, 1, 0, .3, .02, 0, 0, 200, 3, 24, true },
	{ "plateau", .6, .6, .4, 0, .3, .02, 0, 0, 200, 3, 24, true },
	{ "bent", .7, .5, .3, .3, .3, .02, 0, 0, 200, 3, 24, true },
	{ "negative", .4, -.2, 1, 0, .5, .02, 0, 0, 200, 3, 24, true },
	{ "lumpy visits", .5, .4, .6, .2, .4, .02, 0, .6, 12, 3, 24, true },
	{ "drift", .5, .4, .6, .2, .4, .02, .02, 0, 200, 3, 24, true },
	{ "noise", .5, .4, .6, .2, .4, .1, 0, 0, 200, 3, 24, true },
	{ "one window a cell", .6, .5, 1, 0, .6, .02, 0, 0, 200, 1, 15, true },
	{ "U unknown", .6, .4, .5, .3, .3, .02, 0, 0, 200, 3, 24, false },
	{ "single-threaded", .5, .5, 1, 0, -1, .02, .15, .2, 5000, 1, 24, true },
};
/* CPU time is known, too: where it says why visits differ; where it says nothing; where it falls as the
 * effect rises, since threads spin unseen. */
enum { PHASES = 3 };
static const struct kind worked[] = {
	{ "straight", .6, .6, 1, 0, .3, .02, 0, 0, 200, 3, 24, true, .02, 0 },
	{ "noise", .5, .4, .6, .2, .4, .1, 0, 0, 200, 3, 24, true, .02, 0 },
	{ "noise and drift", .5, .4, .6, .2, .4, .1, .02, 0, 200, 3, 24, true, .02, 0 },
	{ "phases", .6, .6, 1, 0, .3, .5, 0, 0, 2000, 3, 24, true, .03, 0 },
	{ "shifts by 1 %", .5, .4, .6, .2, .4, .1, 0, 0, 200, 3, 24, true, .02, .05 },
	{ "spins", .5, .4, .6, .2, .4, .02, 0, 0, 200, 3, 24, true, .02, .5 },
	{ "spins and noise", .5, .4, .6, .2, .4, .1, 0, 0, 200, 3, 24, true, .02, .5 },
};
/* Each run does the same: how long a visit takes depends on where in the run it is. */
static const struct kind alike[] = {
	{ "places", .5, .4, .6, .2, .4, .02, 0, 0, 200, 8, 12, true, 0, 0, .35, true },
	{ "places and noise", .5, .4, .6, .2, .4, .1, 0, 0, 200, 8, 12, true, 0, 0, .35, true },
	{ "places, 3 runs", .5, .4, .6, .2, .4, .02, 0, 0, 200, 3, 24, true, 0, 0, .35, true },
	{ "places, work", .5, .4, .6, .2, .4, .1, 0, 0, 200, 8, 12, true, .02, 0, .35, true },
	{ "places, spins", .5, .4, .6, .2, .4, .02, 0, 0, 200, 8, 12, true, .02, .5, .35, true },
	{ "no places", .5, .4, .6, .2, .4, .1, 0, 0, 200, 8, 12, true, 0, 0, 0, true },
	{ "no places, few runs", .5, .4, .6, .2, .4, .1, 0, 0, 200, 2, 18, true, 0, 0, 0, true },
};
/* The machine is now faster, now slower, and a yardstick tells when; with the places of runs that are alike, without
 * CPU time; and where that is nothing that visits depend on. */
static const struct kind machine[] = {
	{ "speed", .5, .4, .6, .2, .4, .02, 0, 0, 200, 3, 24, true, 0, 0, 0, false, .15, .6 },
	{ "speed, two windows a cell", .6, .5, 1, 0, .6, .02, 0, 0, 200, 2, 15, true, 0, 0, 0, false, .15,
	  .6 },
	{ "speed and places", .5, .4, .6, .2, .4, .02, 0, 0, 200, 8, 12, true, 0, 0, .35, true, .15, .6 },
	{ "speed and work", .5, .4, .6, .2, .4, .05, 0, 0, 200, 3, 24, true, .02, 0, 0, false, .15, .6 },
	{ "speed of no use", .5, .4, .6, .2, .4, .05, 0, 0, 200, 3, 24, true, 0, 0, 0, false, .15, 0 },
};
static const uint32_t speedups[] = { 0, 250000, 500000, 750000, 1000000 };

static double s_off[REGIONS + 1]; /* S time is known to 1 % */

static double part_of(uint32_t region)
{
	return region == 1 ? 1 : region == 2 ? 0.5 : 0;
}

/* Share of the program's time. */
static double truth(const struct kind *k, uint32_t region, double p)
{
	return k->critical * part_of(region) * (p <= k->knee ? p : k->knee + k->bend * (p - k->knee));
}

static struct ca_observation window(const struct kind *k, uint32_t region, uint32_t speedup, uint32_t run,
				    double time, double level)
{
	double seen = 1 + s_off[region]; /* of S time */
	/* what is not on the critical path is all beside it; but with one thread all is on it */
	double beside = k->beside < 0 ? 0 : 0.3;
	double p = speedup / 1e6, phase = 1 + 0.03 * normal(), e = phase * truth(k, region, p);
	double s = phase * k->share * (part_of(region) > 0 ? part_of(region) : beside);
	double length = 0.25, lump = exp(k->lumps * normal() / sqrt(k->rate));
	double speed = k->speed > 0 ? k->speed * normal() : 0, yardstick = 1;
	double visit = length / k->rate * exp(level + k->noise * normal() + k->slope * speed),
	       in_s = s * visit;
	double elapsed, paying, visits, work = visit * exp(k->work * normal()) * (1 - k->spins * e);

	/* in the dilated world a visit takes (1 - e) of its time, and p x S is inserted */
	elapsed = visit * (1 - e) + p * in_s;
	paying = elapsed - visit; /* on the critical path */
	paying = paying + k->beside * fmin(p * in_s, elapsed - paying) * (0.5 + uniform());
	if (k->beside < 0)
		paying = 0;
	visits = floor(length / (elapsed * lump) + uniform());
	if (k->speed > 0) /* of a hundred ticks, one of which says little */
		yardstick = exp(speed + 0.02 * normal());
	return (struct ca_observation){
		.region = region,
		.speedup = speedup,
		.run = run,
		.time = time,
		.cost = length * (1 - seen * p * in_s / elapsed),
		.visits = visits,
		.work = k->work > 0 ? 2 * work * length / (elapsed * lump) : 0,
		.yardstick = k->speed > 0 ? 900000 * yardstick : 0,
		.elapsed = length,
		.active = length * seen * in_s / elapsed,
		.delay = length * seen * p * in_s / elapsed,
		.paying = k->known ? length * fmin(1, fmax(0, paying) / elapsed) : NAN,
		.per_visit = true,
	};
}

/* A sweep of windows in which nothing depends on what came out before. */
static size_t play(const struct kind *k, struct ca_observation *out)
{
	double walk = 0, wave[2] = { 6.28 * uniform(), 6.28 * uniform() };
	size_t n = 0;

	for (int r = 0; r < k->runs; r++) {
		double run = 0.01 * normal();

		for (int i = 0; i < k->windows; i++) {
			uint32_t region = 1 + (uint32_t)(n % REGIONS);
			uint32_t at = (uint32_t)(n / REGIONS % 5);
			double from = (i + uniform()) / k->windows;

			walk += k->walk * normal();
			out[n] = window(k, region, speedups[at], (uint32_t)r, (double)n,
					run + walk +
						k->places * (sin(4 * from + wave[0]) +
							     0.7 * sin(9 * from + wave[1])));
			if (k->placed) {
				out[n].from = 1 + from * k->windows * 0.3;
				out[n].to = out[n].from + out[n].elapsed - out[n].delay;
			}
			n++;
		}
	}
	return n;
}

/* ... and one that goes on with a region until it is decided: screening at 0 and 50 %, then what is open. */
static size_t play_until_decided(const struct kind *k, struct ca_observation *out)
{
	bool open[REGIONS + 1] = { false, true, true, true };
	double walk = 0;
	size_t n = 0;

	while (n + 12 < MOST_ADAPTIVE && (open[1] || open[2] || open[3])) {
		struct ca_estimates e;

		for (uint32_t region = 1; region <= REGIONS; region++)
			for (int i = 0; i < 4 && open[region]; i++) {
				uint32_t p = i % 2 == 0 ? 0
					     : n < 24   ? 500000
							: speedups[1 + ca_rng_below(&rng, 4)];

				walk += k->walk * normal();
				out[n] = window(k, region, p, 1, (double)n, walk);
				n++;
			}
		if (n < 24)
			continue;
		if (ca_estimate(
			    out, n,
			    &(struct ca_estimate_options){ .seed = 1, .replicates = 200, .quantum = 1. / 6 },
			    &e) != CA_OK)
			fail();
		for (size_t c = 0; c < e.curves; c++)
			open[e.curve[c].region] = !ca_estimate_decided(&e.curve[c], 3);
		ca_estimate_fini(&e);
	}
	return n;
}

struct tally {
	double seen, covered, width, error, nothing, worth, windows;
};

static void count(const struct kind *k, const struct ca_estimates *e, struct tally *t)
{
	for (size_t c = 0; c < e->curves; c++) {
		const struct ca_curve *curve = &e->curve[c];

		for (int i = 0; i < CA_AT; i++) {
			double wanted = 100 * truth(k, curve->region, ca_estimate_at[i] / 1e6);

			if (!isfinite(curve->at_low[i]))
				continue;
			t->seen++;
			t->covered += curve->at_low[i] - 1e-6 <= wanted && wanted <= curve->at_high[i] + 1e-6;
			t->width += (curve->at_high[i] - curve->at_low[i]) / 2;
			t->error += curve->at[i] - wanted;
		}
		if (curve->region == REGIONS) {
			t->nothing++;
			t->worth += ca_estimate_verdict(curve) == CA_VERDICT_WORTH;
		}
		if (ca_estimate_verdict(curve) == CA_VERDICT_WORTH)
			assert_true(curve->at_low[0] > 0 && curve->at_low[1] > 0 && curve->at_low[2] > 0);
	}
}

static struct tally sweep(const struct kind *k, size_t (*how)(const struct kind *, struct ca_observation *),
			  long sweeps)
{
	static struct ca_observation list[MOST];
	struct tally t = { 0 };

	ca_rng_init(&rng, 77);
	for (long i = 0; i < sweeps; i++) {
		struct ca_estimate_options options = { .seed = (uint64_t)i,
						       .replicates = 300,
						       .quantum = 1. / 6 };
		struct ca_estimates e;
		size_t n;

		for (int r = 1; r <= REGIONS; r++)
			s_off[r] = 0.01 * normal();
		n = how(k, list);
		t.windows += (double)n / (double)sweeps;
		assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
		count(k, &e, &t);
		ca_estimate_fini(&e);
	}
	print_message(
		"%-18s %5.1f %% covered, +- %4.1f, bias %+.1f, nothing is worth it %3.1f %%, %.0f windows\n",
		k->name, 100 * t.covered / t.seen, t.width / t.seen, t.error / t.seen,
		100 * t.worth / t.nothing, t.windows);
	return t;
}

static void test_fixed(void **state)
{
	double seen = 0, covered = 0;

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct tally t = sweep(&kinds[k], play, ca_sweeps(40));

		ca_judge(t.covered > 0.9 * t.seen);
		ca_judge(t.worth < 0.1 * t.nothing);
		seen += t.seen;
		covered += t.covered;
	}
	print_message("all %.1f %%\n", 100 * covered / seen);
	ca_judge(lround(1000 * covered / seen) >= 930 && lround(1000 * covered / seen) <= 985);
}

/* What CPU time says of the noise makes intervals shorter, and takes no effect away. */
static void test_work(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof worked / sizeof *worked; k++) {
		struct kind without = worked[k];
		struct tally t[2];

		t[1] = sweep(&worked[k], play, ca_sweeps(40));
		without.work = 0;
		t[0] = sweep(&without, play, ca_sweeps(40));
		/* the last has what nothing sees: noise, and spin loops beside it */
		ca_judge(t[1].covered > (k + 1 < sizeof worked / sizeof *worked ? 0.9 : 0.84) * t[1].seen);
		/* where CPU time says nearly all, that is taken, too: what it shifts by is not known, but hardly by much */
		ca_judge(t[1].width < (k == PHASES ? 0.29 : 1.02) * t[0].width);
	}
}

/* What each run does at the same place makes intervals shorter, and where there is no such thing, nothing. */
static void test_places(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof alike / sizeof *alike; k++) {
		struct kind without = alike[k];
		struct tally t[2];

		t[1] = sweep(&alike[k], play, ca_sweeps(40));
		without.placed = false;
		t[0] = sweep(&without, play, ca_sweeps(40));
		ca_judge(t[1].covered > 0.9 * t[1].seen);
		ca_judge(t[1].width < (k < 2 ? 0.9 : 1.05) * t[0].width);
	}
}

static size_t play_blind(const struct kind *k, struct ca_observation *out)
{
	size_t n = play(k, out);

	for (size_t i = 0; i < n; i++)
		out[i].yardstick = 0;
	return n;
}

/* How fast the machine was makes intervals shorter, and where it makes no difference, nothing. */
static void test_yardstick(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof machine / sizeof *machine; k++) {
		struct tally seen = sweep(&machine[k], play, ca_sweeps(40)),
			     blind = sweep(&machine[k], play_blind, ca_sweeps(40));

		ca_judge(seen.covered > 0.9 * seen.seen);
		/* CPU time tells most of it, too, if that is known */
		ca_judge(seen.width < (!(machine[k].slope > 0) ? 1.05
				       : machine[k].work > 0   ? 0.95
							       : 0.75) *
					      blind.width);
	}
}

/* Who stops when an interval is narrow stops rather when it is too narrow: fewer are covered. */
static void test_adaptive(void **state)
{
	double seen = 0, covered = 0;

	(void)state;
	for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		struct tally t = sweep(&kinds[k], play_until_decided, ca_sweeps(6));

		seen += t.seen;
		covered += t.covered;
	}
	print_message("all %.1f %%\n", 100 * covered / seen);
	ca_judge(covered > 0.9 * seen);
}

/* ---- single regions ------------------------------------------------------------------------*/
/* A window of 250 ms with half of its time in S: `length` is that of a visit, and half of what it wins arrives. */
static struct ca_observation half_in_s(uint32_t speedup, double time, double length, double paying)
{
	double p = speedup / 1e6, in_s = 0.5 * length, dilated = length * (1 - p / 4) + p * in_s;

	return (struct ca_observation){
		.region = 1,
		.speedup = speedup,
		.run = 1,
		.time = time,
		.cost = 0.25 * (1 - p * in_s / dilated),
		.visits = floor(0.25 / dilated),
		.elapsed = 0.25,
		.active = 0.25 * in_s / dilated,
		.delay = 0.25 * p * in_s / dilated,
		.paying = paying,
	};
}

/* A window at 50 % of S that has 28.4 % of it won, whatever its rate is. */
static struct ca_observation own_window(size_t i)
{
	return (struct ca_observation){ .region = 1,
					.speedup = 500000,
					.run = 1,
					.time = (double)i,
					.cost = 0.25 - 0.071,
					.visits = 9000 + 1500 * (double)i,
					.elapsed = 0.25,
					.active = 0.142,
					.delay = 0.071 };
}

/* Hardly anybody paid: the share of S is the answer at all speedups, from four windows and no zeros. What was
 * paid is in the interval. */
static void test_own_baseline(void **state)
{
	struct ca_observation list[4];
	struct ca_estimates e;

	(void)state;
	for (size_t i = 0; i < 4; i++)
		list[i] = own_window(i);
	for (int paid = 0; paid < 2; paid++) {
		for (size_t i = 0; i < 4; i++)
			list[i].paying = paid ? 0.004 : 0;
		e = run_on(list, 4);
		assert_int_equal(e.curve[0].how, CA_HOW_OWN);
		assert_near(e.curve[0].at[0], 14.2, 0.5);
		assert_near(e.curve[0].at[1], 28.4, 1);
		assert_near(e.curve[0].at[2], 56.8, 2);
		assert_near(e.curve[0].at_high[1], 29.3, 0.5);
		assert_near(e.curve[0].at_low[1], paid ? 26.3 : 27.4, 0.5);
		assert_int_equal(ca_estimate_verdict(&e.curve[0]), CA_VERDICT_WORTH);
		assert_true(ca_estimate_decided(&e.curve[0], 3));
		ca_estimate_fini(&e);
	}
}

/* A limit of CPU time stops a thread that is alone, in S or not: D is what is won, of which no S time tells, and nobody
 * pays for it. Where others pay, they are slowed by that, too. */
static void test_own_baseline_limited(void **state)
{
	struct ca_observation list[6];
	struct ca_estimates e;

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		list[i] = own_window(i);
		list[i].active = 0.08;
		list[i].still = 0.031;
		if (i < 4)
			continue;
		list[i].speedup = 0;
		list[i].cost = 0.25;
		list[i].delay = list[i].still = 0;
	}
	for (int paid = 0; paid < 2; paid++) {
		for (size_t i = 0; i < 4; i++)
			list[i].paying = ca_results_paying(paid ? 4000000 : 0, 31000000, 71000000, 0);
		e = run_on(list, 6);
		assert_int_equal(e.curve[0].how == CA_HOW_OWN, !paid);
		if (!paid) {
			assert_near(e.curve[0].at[1], 28.4, 1);
			assert_near(e.curve[0].at_low[1], 27.4, 0.5);
		}
		ca_estimate_fini(&e);
	}
}

/* Of code that takes next to no time, a moment that was paid for is most of D: where time is counted, it is what the
 * share may be too high by, and no reason to compare time with time. */
static void test_hardly_any(void **state)
{
	struct ca_observation list[6];
	struct ca_estimates e;

	(void)state;
	for (size_t i = 0; i < 6; i++)
		list[i] = (struct ca_observation){ .region = 1,
						   .speedup = i < 4 ? 500000 : 0,
						   .run = 1,
						   .time = (double)i,
						   .cost = i < 4 ? 0.249 : 0.25,
						   .visits = 250000,
						   .elapsed = 0.25,
						   .active = 0.002,
						   .delay = i < 4 ? 0.001 : 0,
						   .paying = i < 4 ? 0.0008 : 0 };
	for (int per_visit = 0; per_visit < 2; per_visit++) {
		for (size_t i = 0; i < 6; i++)
			list[i].per_visit = per_visit;
		e = run_on(list, 6);
		assert_int_equal(e.curve[0].how == CA_HOW_OWN, !per_visit);
		assert_true(per_visit || (e.curve[0].at_low[1] < 0.1 && e.curve[0].at_high[1] > 0.4));
		assert_int_equal(ca_estimate_verdict(&e.curve[0]), CA_VERDICT_NOT_WORTH);
		ca_estimate_fini(&e);
	}
}

/* ---- phases ----------------------------------------------------------------------------------*/
enum { PHASED = 3, PHASED_WINDOWS = 8, PHASED_SWEEPS = 300 };

/* Ticks of 4 ms that fall into a share of so many seconds; a sample stands for `lump` of them. */
static double ticks_of(double seconds, double lump)
{
	double n = floor(seconds * 250 / lump), rest = seconds * 250 / lump - n;

	return lump * (n + (uniform() < rest));
}

/* Of [0, x) of a run, the share of it that lies in [from, to) of each of its cycles. */
static double covered(double x, double from, double to, double cycle)
{
	double whole = floor(x / cycle), rest = x / cycle - whole;

	return cycle * (whole * (to - from) + fmin(fmax(rest - from, 0), to - from));
}

/* One thread, three codes, which follow one another in cycles of this part of a run (1: each comes once; 0: in every
 * window alike). Windows of 250 ms lie anywhere behind the first `late` of four runs of 4 s, whose samples scatter as
 * if each knew nothing of the others. The last code may be that of so many threads at once. Returns how many of the
 * truths are in their intervals. */
static unsigned phased_sweep(double cycle, double late, double lump, unsigned threads, unsigned *by_runs,
			     double *width)
{
	static const double part[PHASED] = { 0.3, 0.5, 0.2 };
	struct ca_observation list[PHASED * PHASED_WINDOWS];
	struct ca_share share[PHASED];
	struct ca_estimate_options options = {
		.seed = 7, .quantum = 1. / 6, .share = share, .shares = PHASED
	};
	struct ca_estimates e;
	const double last = part[PHASED - 1], all = 1 + (threads - 1) * last;
	unsigned inside = 0;
	double from = 0;
	size_t n = 0;

	for (uint32_t k = 0; k < PHASED; from += part[k++]) {
		unsigned at_once = k + 1 < PHASED ? 1 : threads;
		double usual = at_once * part[k] / all;
		double of_runs = usual + normal() * sqrt(usual * (1 - usual) * lump / (16 * all * 250));

		share[k] = (struct ca_share){ k + 1,     ticks_of(of_runs * 16 * all, lump),
					      of_runs,   lump,
					      250 * all, 1 - 1 / all };
		for (size_t i = 0; i < PHASED_WINDOWS; i++) {
			double begin = (late + (1 - late - 0.0625) * uniform()), end = begin + 0.0625;
			double in = cycle > 0 ? (covered(end, from, from + part[k], cycle) -
						 covered(begin, from, from + part[k], cycle)) /
							0.0625
					      : part[k] * (1 + 0.02 * normal());
			double of_last = cycle > 0 ? (covered(end, 1 - last, 1, cycle) -
						      covered(begin, 1 - last, 1, cycle)) /
							     0.0625
						   : last;

			list[n] = (struct ca_observation){
				.region = k + 1,
				.speedup = i % 2 ? 500000 : 1000000,
				.run = (uint32_t)i / 2 + 1,
				.time = (double)n,
				.cost = 0.25 * (1 - in * (i % 2 ? 0.5 : 1)),
				.visits = 250000,
				.elapsed = 0.25,
				.active = 0.25 * in,
				.delay = 0.25 * in * (i % 2 ? 0.5 : 1),
				.periods = ticks_of(0.25 * (1 + (threads - 1) * of_last), lump),
				.inside = ticks_of(0.25 * in * at_once, lump)
			};
			n++;
		}
	}
	assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
	for (size_t k = 0; k < e.curves; k++) {
		const struct ca_curve *c = &e.curve[k];
		double truth = 50 * part[c->region - 1];

		inside += c->at_low[1] <= truth && truth <= c->at_high[1];
		*by_runs += c->how == CA_HOW_SHARE;
		*width += c->at_high[1] - c->at_low[1];
	}
	ca_estimate_fini(&e);
	return inside;
}

/* Experiments lie in some phases of the program, and its samples in all. Where experiments tell more, as in one that
 * does the same all the time, they are the answer. */
static void test_run_phases(void **state)
{
	static const struct {
		double cycle, late, lump;
		unsigned threads;
	} cases[] = { { 1, 0, 1, 1 },       { 1, 0.25, 1, 1 },    { 1, 0.35, 1, 1 },    { 0.16, 0, 1, 1 },
		      { 0.16, 0.35, 1, 1 }, { 0.16, 0.35, 4, 1 }, { 0.08, 0.35, 4, 1 }, { 0, 0.35, 1, 1 },
		      { 0, 0.35, 32, 1 },   { 1, 0, 1, 2 },       { 1, 0.25, 1, 2 },    { 0.16, 0.35, 1, 2 },
		      { 1, 0, 1, 8 } };

	(void)state;
	ca_rng_init(&rng, 20);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		unsigned inside = 0, by_runs = 0, all = PHASED * PHASED_SWEEPS;
		double width = 0;

		for (unsigned k = 0; k < PHASED_SWEEPS; k++)
			inside += phased_sweep(cases[i].cycle, cases[i].late, cases[i].lump, cases[i].threads,
					       &by_runs, &width);
		print_message("cycles of %.2f s, windows from %.2f on, samples of %.0f, %u threads: %.1f %% "
			      "covered, half width %.2f, %.0f %% by the runs\n",
			      4 * cases[i].cycle, cases[i].late, cases[i].lump, cases[i].threads,
			      100. * inside / all, width / 2 / all, 100. * by_runs / all);
		assert_true(inside >= 0.93 * all);
		assert_true(width / 2 / all < (cases[i].threads > 1 ? 6 : cases[i].cycle > 0 ? 3 : 0.8));
		assert_true(cases[i].cycle > 0 ? by_runs > 0.9 * all : by_runs < 0.05 * all);
	}
}

/* ---- phases, and visits ------------------------------------------------------------------------*/
enum { STAGES = 6, STAGED_RUNS = 4, STAGED_MOST = 400 };

/* Two threads do the same, in stages of 2 s: of the CPU time of each, so much is in the first code, and of the rest
 * 80 % in the second; a third one has 10 % and holds nobody up. */
struct staged {
	const char *name;
	double part[STAGES], visit[STAGES]; /* s */
	double before;                      /* s before the first visit, in none of that code */
	unsigned beside;                    /* stages, a bit each, in which none of it wins anything */
};

static const struct staged staged[] = {
	{ "phases", { .35, .5, .7, .9, .97, .99 }, { 1e-7, 2e-7, 4e-7, 8e-7, 4e-6, 9e-6 }, 0 },
	{ "two phases", { .1, .1, .1, .8, .8, .8 }, { 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5 }, 0 },
	{ "phases, late", { .35, .5, .7, .9, .97, .99 }, { 1e-7, 2e-7, 4e-7, 8e-7, 4e-6, 9e-6 }, 4 },
	{ "phases, some won", { .1, .8, .1, .8, .1, .8 }, { 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5 }, 0, 8 },
	{ "steady", { .6, .6, .6, .6, .6, .6 }, { 1e-5, 1e-5, 1e-5, 1e-5, 1e-5, 1e-5 }, 0 },
};

static double staged_part(const struct staged *k, uint32_t region, size_t stage)
{
	return region == 1 ? k->part[stage] : region == 2 ? 0.8 * (1 - k->part[stage]) : 0.1;
}

static bool staged_wins(const struct staged *k, uint32_t region, size_t stage)
{
	return region < 3 && !(k->beside >> stage & 1);
}

/* Of its part in all stages; and of what it wins. */
static double staged_mean(const struct staged *k, uint32_t region, bool won)
{
	double sum = 0;

	for (size_t i = 0; i < STAGES; i++)
		sum += won && !staged_wins(k, region, i) ? 0 : staged_part(k, region, i) / STAGES;
	return sum;
}

/* From there on 250 ms; at: s of the program without experiments. */
static struct ca_observation staged_window(const struct staged *k, uint32_t region, uint32_t speedup,
					   double *at)
{
	double p = speedup / 1e6, speed = exp(0.01 * normal()), step = 1e-3, periods, x;
	struct ca_observation o = { .region = region, .speedup = speedup, .per_visit = true };

	for (; o.elapsed < 0.25 && *at < 2 * STAGES; *at += step) {
		size_t stage = (size_t)(*at / 2);
		double part = staged_part(k, region, stage),
		       any = region < 3 ? 1 - (1 - part) * (1 - part) : part;
		double won = p * part * staged_wins(k, region, stage);

		o.visits += step * speed / k->visit[stage];
		o.active += step * any;
		o.delay += step * p * any;
		o.cost += step * (1 - won);
		o.elapsed += step * (1 - won + p * any);
		o.paying += step * (p * any + (region < 3 ? p * any / 2 : p * part));
		o.work += 2 * step;
		o.inside += step * 2 * 250 * part;
	}
	periods = 2 * 250 * o.work / 2;
	x = o.inside / periods;
	o.periods = periods;
	o.inside = fmin(fmax(0, o.inside + sqrt(x * (1 - x) * periods) * normal()), periods);
	o.cost *= exp(0.003 * normal());
	return o;
}

static size_t play_stages(const struct staged *k, struct ca_observation *out)
{
	static const uint32_t order[] = { 500000, 0, 1000000, 250000, 0, 750000, 500000 };
	size_t n = 0;

	for (uint32_t run = 0; run < STAGED_RUNS; run++)
		for (double at = 0.3 * uniform(); at < 2 * STAGES - 0.35; at += 0.15) {
			out[n] = staged_window(k, 1 + (uint32_t)ca_rng_below(&rng, REGIONS), order[n % 7],
					       &at);
			out[n].run = run;
			out[n].time = 20 * run + at;
			n++;
		}
	return n;
}

/* Where in the program an experiment lies decides what it wins; of a region there are few. */
static void test_stages(void **state)
{
	static struct ca_observation list[STAGED_MOST];

	(void)state;
	for (size_t i = 0; i < sizeof staged / sizeof *staged; i++) {
		const struct staged *k = &staged[i];
		double seen[2] = { 0 }, covered[2] = { 0 }, width[2] = { 0 }, error[2] = { 0 };

		ca_rng_init(&rng, 23);
		for (long sweep = 0; sweep < ca_sweeps(40); sweep++) {
			struct ca_share share[REGIONS];
			double all = (2 * STAGES + k->before) * STAGED_RUNS * 500;
			size_t n = play_stages(k, list);

			for (uint32_t r = 1; r <= REGIONS; r++) {
				double part =
					staged_mean(k, r, false) * 2 * STAGES / (2 * STAGES + k->before);

				share[r - 1] = (struct ca_share){ r, part * all, part, 1 };
			}
			for (int known = 0; known < 2; known++) {
				struct ca_estimate_options options = { .seed = (uint64_t)sweep,
								       .replicates = 300,
								       .share = known ? share : NULL,
								       .shares = known ? REGIONS : 0 };
				struct ca_estimates e;

				assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
				for (size_t c = 0; c < e.curves; c++) {
					const struct ca_curve *curve = &e.curve[c];
					double truth = 50 * staged_mean(k, curve->region, true);

					seen[known]++;
					covered[known] +=
						curve->at_low[1] <= truth && truth <= curve->at_high[1];
					width[known] += (curve->at_high[1] - curve->at_low[1]) / 2;
					error[known] += (curve->region < 3) * (curve->at[1] - truth) * 1.5;
				}
				ca_estimate_fini(&e);
			}
		}
		for (int known = 0; known < 2; known++)
			print_message("%s, %s: %.1f %% covered, +- %.1f, bias %+.1f\n", k->name,
				      known ? "samples of whole runs known" : "not known",
				      100 * covered[known] / seen[known], width[known] / seen[known],
				      error[known] / seen[known]);
		/* in the odd one, few experiments of a region lie where it wins nothing */
		ca_judge(covered[1] > (k->beside ? 0.84 : 0.93) * seen[1]);
		ca_judge(width[1] < (k->part[0] < k->part[5] && !k->beside ? 0.6 : 1.05) * width[0]);
		ca_judge(fabs(error[0]) < 2.5 * seen[0]);
	}
}

/* Where virtual time has caught up with the outside, D is less than was inserted. At this speedup that is the
 * answer, but at others as much may be taken back, or less. */
static void test_caught_up(void **state)
{
	struct ca_observation list[8];
	struct ca_estimates e;

	(void)state;
	for (size_t i = 0; i < 8; i++)
		list[i] = (struct ca_observation){ .region = 1,
						   .speedup = 500000,
						   .run = 1,
						   .time = (double)i,
						   .cost = 0.25 - 0.02,
						   .visits = 1000,
						   .elapsed = 0.25,
						   .active = 0.142,
						   .delay = 0.02 };
	e = run_on(list, 8);
	assert_int_equal(e.curve[0].how, CA_HOW_BOUNDS);
	assert_near(e.curve[0].at[1], 8, 0.5);
	assert_true(e.curve[0].at_low[2] < 9 && e.curve[0].at_high[2] > 15);
	ca_estimate_fini(&e);
}

/* One window, compared with nothing, still bounds what it can be. */
static void test_one_window(void **state)
{
	struct ca_observation one = half_in_s(500000, 1, 1e-3, 0.04);
	struct ca_estimates e = run_on(&one, 1);
	double high = 100 * one.delay / 0.25, low = 100 * (one.delay - 0.04) / 0.21;

	(void)state;
	assert_int_equal(e.curve[0].how, CA_HOW_BOUNDS);
	assert_near(e.curve[0].at_high[1], high, 0.2 * high);
	assert_near(e.curve[0].at_low[1], low, 0.2 * high);
	assert_true(e.curve[0].at_low[1] < low && high < e.curve[0].at_high[1]);
	assert_true(isfinite(find(&e, 1, 500000)->low));
	/* an estimate that cannot be, against zeros that were far too slow, is not shown */
	{
		struct ca_observation many[20];

		for (size_t i = 0; i < 20; i++)
			many[i] = half_in_s(i % 2 ? 500000 : 0, (double)i, i % 2 ? 1e-3 : 4e-3, 0.04);
		ca_estimate_fini(&e);
		e = run_on(many, 20);
		assert_true(e.curve[0].at_high[1] < 1.1 * high);
		assert_true(find(&e, 1, 500000)->effect < 1.1 * high);
		assert_true(find(&e, 1, 500000)->high < 1.1 * high);
		/* but where the program waits with time limits, which move with D, more may be in time */
		for (size_t i = 0; i < 20; i++)
			many[i].limits = many[i].visits;
		ca_estimate_fini(&e);
		e = run_on(many, 20);
		assert_near(e.curve[0].at[1], 75, 10);
		assert_true(e.curve[0].at_low[1] > high);
		/* that has to be beyond doubt: zeros that scatter may well be above */
		for (size_t i = 0; i < 20; i++)
			if (!many[i].speedup)
				many[i].visits = half_in_s(0, 0, i % 4 ? 2.7e-3 : 1.3e-3, 0.04).visits;
		ca_estimate_fini(&e);
		e = run_on(many, 20);
		assert_true(e.curve[0].at_high[1] < 1.1 * high);
		for (size_t i = 0; i < 20; i++)
			many[i].visits = half_in_s(many[i].speedup, 0, 1e-3, 0.04).visits;
		ca_estimate_fini(&e);
		e = run_on(many, 20);
		assert_true(e.curve[0].at_high[1] < 1.1 * high);
	}
	/* at 0 % alone it is known how much there is to win, at most */
	ca_estimate_fini(&e);
	one = half_in_s(0, 1, 1e-3, 0);
	e = run_on(&one, 1);
	assert_true(isnan(e.curve[0].at[1]) && isnan(e.curve[0].at_low[1]));
	assert_near(e.curve[0].at_high[2], 50, 10);
	ca_estimate_fini(&e);
}

/* At 100 % of code that is all of the program nothing is left but what S time is off by. That is no scatter of other code's
 * experiments, of which there is one at each speedup. */
static void test_all_of_it(void **state)
{
	static const uint32_t tried[] = { 250000, 500000, 1000000 };
	struct ca_observation list[24];
	struct ca_estimates e;
	size_t n = 0;

	(void)state;
	ca_rng_init(&rng, 22);
	for (unsigned i = 0; i < 6; i++) {
		list[n] = half_in_s(0, i, 1.2e-3 * exp(0.01 * normal()), NAN);
		list[n++].active = 0.2475;
	}
	for (unsigned i = 0; i < 6; i++) {
		double off = i % 2 ? 0.975 : 0.995;

		list[n] = half_in_s(tried[i / 2], 6 + i, 1.2e-3 * exp(0.01 * normal()), NAN);
		list[n].active = 0.25 * off;
		list[n].delay = list[n].active * tried[i / 2] / 1e6;
		list[n].cost = 0.25 - list[n].delay;
		list[n].visits = floor(0.25 / 1.2e-3);
		n++;
	}
	for (unsigned i = 0; i < 3; i++) { /* beside it, and without an effect */
		list[n] = half_in_s(tried[i], 12 + i, 1.2e-3 * exp(0.01 * normal()), NAN);
		list[n].region = 2;
		list[n].cost = 0.25 - list[n].delay;
		list[n].visits = floor(list[n].cost / 1.2e-3);
		n++;
	}
	e = run_on(list, n);
	for (size_t k = 0; k < e.curves; k++)
		if (e.curve[k].region == 2) {
			assert_near(e.curve[k].at[1], 0, 5);
			assert_true(e.curve[k].at_high[1] - e.curve[k].at_low[1] < 30);
		} else {
			assert_near(e.curve[k].at[1], 50, 2);
		}
	ca_estimate_fini(&e);
}

/* Ten experiments on a line, one at each speedup, have a verdict. */
static void test_line(void **state)
{
	struct ca_observation list[16];
	struct ca_estimates e;

	(void)state;
	ca_rng_init(&rng, 21);
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t speedup = i < 6 ? 0 : 100000 * (i - 5);

		list[i] = half_in_s(speedup, (double)(i * 7 % 16), 1e-3 * exp(0.01 * normal()), NAN);
	}
	e = run_on(list, 16);
	assert_int_equal(ca_estimate_verdict(&e.curve[0]), CA_VERDICT_WORTH);
	assert_near(e.curve[0].at[1], 12.5, 2);
	assert_near(e.curve[0].at[2], 25, 4);
	assert_true(e.curve[0].at_high[1] - e.curve[0].at_low[1] < 4);
	ca_estimate_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_baseline), cmocka_unit_test(test_own_baseline_limited),
		cmocka_unit_test(test_hardly_any),   cmocka_unit_test(test_run_phases),
		cmocka_unit_test(test_stages),       cmocka_unit_test(test_caught_up),
		cmocka_unit_test(test_one_window),   cmocka_unit_test(test_line),
		cmocka_unit_test(test_all_of_it),    cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_work),         cmocka_unit_test(test_places),
		cmocka_unit_test(test_yardstick),    cmocka_unit_test(test_adaptive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

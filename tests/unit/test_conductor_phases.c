/* SPDX-License-Identifier: MIT */
/* causal/conductor/plan.c on programs with phases: whole sweeps until the plan says that the answer is there. How
 * often is the truth, which is that of the whole run, inside the interval of a first row? Everything is seeded;
 * CA_SWEEPS=300 makes so many sweeps of each kind. */
#include "causal/conductor/plan.h"
#include "tests/unit/estimate_fixture.h"
#include <stdio.h>
#include <stdlib.h>

enum { CODES = 4, PHASES = 2, BUDGET = 60 };
static const double run_length = 12, shortest = 1e-3;

/* Two threads that do the same work. Of the time of each code, what its threads win arrives, in phases in which it
 * holds anybody up. */
struct program {
	const char *name;
	double part[CODES][PHASES]; /* of a thread's time */
	double wins[CODES][PHASES]; /* ... that is won */
	double visit[PHASES];       /* s */
	double late;                /* s until experiments begin in the first run */
	unsigned loaded; /* so many of the codes are in a library that comes with the second phase */
};

static const struct program programs[] = {
	{ "steady",
	  { { .4, .4 }, { .2, .2 }, { .1, .1 }, { .1, .1 } },
	  { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } },
	  { 1e-5, 1e-5 },
	  1 },
	{ "samples tell",
	  { { .4, .96 }, { .3, .02 }, { .1, .01 }, { .1, .01 } },
	  { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } },
	  { 1e-6, 4e-6 },
	  8 },
	{ "samples do not tell",
	  { { .4, .4 }, { .2, .2 }, { .2, .2 }, { .1, .1 } },
	  { { .2, 1 }, { 1, .3 }, { 1, 1 }, { 0, 0 } },
	  { 1e-5, 1e-5 },
	  8 },
	{ "they tell, and all runs are met",
	  { { .4, .96 }, { .3, .02 }, { .1, .01 }, { .1, .01 } },
	  { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } },
	  { 1e-6, 4e-6 },
	  0.5 },
	{ "a library comes late",
	  { { 0, .6 }, { 0, .3 }, { .5, .05 }, { .3, .05 } },
	  { { 1, 1 }, { 1, 1 }, { 1, 1 }, { 0, 0 } },
	  { 2e-5, 2e-4 },
	  1,
	  2 },
};

static double truth(const struct program *p, uint32_t region)
{
	double sum = 0;

	for (int k = 0; k < PHASES; k++)
		sum += 50 * p->part[region - 1][k] * p->wins[region - 1][k] / PHASES;
	return sum;
}

static void offer(struct ca_plan *plan, const struct program *p, double runs, double at)
{
	struct ca_plan_offer list[CODES];

	for (uint32_t i = 0; i < CODES; i++) {
		double share = (p->part[i][0] + p->part[i][1]) / PHASES;

		list[i] = (struct ca_plan_offer){ .region = i + 1,
						  .key = 77 + i,
						  .at_most = fmin(100, 130 * 2 * share),
						  .periods = share * runs * run_length * 500,
						  .share = share,
						  .lump = 1,
						  .since = i < p->loaded ? run_length / PHASES : 0,
						  .absent = i < p->loaded && at < run_length / PHASES };
	}
	ca_plan_set_offers(plan, list, CODES, true);
}

/* 250 ms from *at of the run's virtual time on. */
static struct ca_observation observe(const struct program *p, const struct ca_plan_step *step, unsigned run,
				     double *at)
{
	uint32_t region = step->region ? step->region : *at < run_length / PHASES ? p->loaded + 1 : 1;
	double speedup = step->percent / 100., speed = exp(0.01 * normal()), x;
	struct ca_observation o = { .region = region,
				    .speedup = step->percent * 10000,
				    .run = run,
				    .time = run * 20 + *at,
				    .from = *at,
				    .per_visit = true };

	for (; o.elapsed < 0.25 && *at < run_length; *at += shortest) {
		int phase = *at >= run_length / PHASES;
		double part = p->part[region - 1][phase], any = 1 - (1 - part) * (1 - part);
		double won = speedup * part * p->wins[region - 1][phase];

		o.visits += shortest * speed / p->visit[phase];
		o.active += shortest * any;
		o.delay += shortest * speedup * any;
		o.cost += shortest * (1 - won);
		o.elapsed += shortest * (1 - won + speedup * any);
		o.paying += shortest * 1.5 * speedup * any;
		o.work += 2 * shortest;
		o.inside += shortest * 500 * part;
	}
	for (double t = 0; p->loaded && t < o.from; t += shortest)
		o.before += shortest / p->visit[t >= run_length / PHASES];
	o.to = *at;
	o.periods = 250 * o.work;
	o.paying = fmin(o.paying, o.elapsed);
	x = o.inside / o.periods;
	o.inside = fmin(fmax(0, o.inside + sqrt(x * (1 - x) * o.periods) * normal()), o.periods);
	o.cost *= exp(0.005 * normal());
	return o;
}

struct tally {
	double seen, covered, width, error, took, decided;
};

static void sweep(const struct program *p, uint64_t seed, struct tally *t)
{
	struct ca_plan *plan = ca_plan_new(&(struct ca_plan_options){ .seed = seed, .points = 3 });
	struct ca_plan_row top[CA_PLAN_TOP];
	bool decided = false;
	unsigned rows, run = 0;
	double took = 0;
	size_t n;

	for (; took < BUDGET && !decided; run++) {
		double at = run ? 0.3 * uniform() : p->late;

		took += run ? 0 : p->late;
		while (at < run_length - 0.4 && took < BUDGET) {
			struct ca_plan_step step;
			struct ca_observation o;

			/* as in the conductor: not in the first run, which is a short one */
			if (run && (decided = ca_plan_is_decided(plan, &rows)))
				break;
			offer(plan, p, run + 1, at);
			ca_plan_set_time(plan, at);
			assert_true(ca_plan_next(plan, &step));
			ca_plan_begun(plan);
			at += 0.08;
			o = observe(p, &step, run, &at);
			took += o.elapsed + 0.16;
			ca_plan_tell(plan, &o, CA_PLAN_GOOD);
			at += 0.08;
		}
		if (decided)
			break;
		ca_plan_set_length(plan, run_length);
		decided = ca_plan_is_decided(plan, &rows);
	}
	n = ca_plan_top(plan, top, CA_PLAN_TOP);
	t->took += took;
	t->decided += decided;
	for (size_t i = 0; i < n; i++) {
		double wanted = truth(p, top[i].region);

		t->seen++;
		if (p->loaded)
			printf("code %u truth %.1f est %.1f [%.1f %.1f] decided %d took %.0f run %u seed "
			       "%llu\n",
			       top[i].region, wanted, top[i].effect, top[i].low, top[i].high, decided, took,
			       run, (unsigned long long)seed);
		t->covered += top[i].low - 1e-6 <= wanted && wanted <= top[i].high + 1e-6;
		t->width += (top[i].high - top[i].low) / 2;
		t->error += top[i].effect - wanted;
	}
	ca_plan_free(plan);
}

static void test_phases(void **state)
{
	long sweeps = ca_sweeps(20);

	(void)state;
	for (size_t k = 0; k < sizeof programs / sizeof *programs; k++) {
		struct tally t = { 0 };

		ca_rng_init(&rng, 31);
		for (long i = 0; i < sweeps; i++)
			sweep(&programs[k], (uint64_t)i + 1, &t);
		print_message("%s: %.1f %% covered, +- %.1f, bias %+.1f, %.0f s, %.0f %% decided\n",
			      programs[k].name, 100 * t.covered / t.seen, t.width / t.seen, t.error / t.seen,
			      t.took / (double)sweeps, 100 * t.decided / (double)sweeps);
		ca_judge(t.covered > 0.92 * t.seen);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_phases) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

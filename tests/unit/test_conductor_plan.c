/* SPDX-License-Identifier: MIT */
/* causal/conductor/plan.c: what it tries next, and when it knows, on programs made up here. */
#include "causal/conductor/plan.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <stdlib.h>

enum { MOST = 40 };

/* A program whose codes are worth so much at 100 %, on straight lines; rates scatter by `noise`. */
struct program {
	size_t codes;
	double worth[MOST], at_most[MOST];
	double noise;
	bool alone;      /* nobody ever pays */
	bool neighbours; /* take the CPU in each experiment ... */
	bool unknown;    /* ... and what is won beside them cannot be told */
	bool polls;      /* all others pay while one of them asks how far they are */
	bool latency;    /* is asked for: how long an experiment took is not known */
	double idle;     /* of the time CPUs are idle beside threads that wait for one */
};
struct sweep {
	struct ca_plan *plan;
	struct ca_rng rng;
	unsigned tried[MOST + 1], at[MOST + 1][101], zeros, steps;
	uint64_t trace;
};

static void offer(struct ca_plan *plan, const struct program *p)
{
	struct ca_plan_offer offer[MOST];

	for (size_t i = 0; i < p->codes; i++)
		offer[i] = (struct ca_plan_offer){ (uint32_t)i + 1, 1000 + i, p->at_most[i] };
	ca_plan_set_offers(plan, offer, p->codes, true);
}

static void begin(struct sweep *s, const struct program *p, uint64_t seed, bool dealt)
{
	*s = (struct sweep){ .plan = ca_plan_new(&(struct ca_plan_options){
				     .seed = seed, .points = 3, .dealt = dealt }) };
	assert_non_null(s->plan);
	ca_rng_init(&s->rng, seed + 1);
	offer(s->plan, p);
}

static void step(struct sweep *s, const struct program *p)
{
	struct ca_plan_step step, same;
	double speed, active;
	struct ca_observation o;

	assert_true(ca_plan_next(s->plan, &step));
	assert_true(ca_plan_next(s->plan, &same));
	assert_true(step.region == same.region && step.percent == same.percent);
	assert_true(step.region ? step.percent > 0 : step.percent == 0);
	ca_plan_begun(s->plan);
	s->tried[step.region]++;
	s->at[step.region][step.percent]++;
	s->zeros += !step.percent;
	s->trace = s->trace * 1000003 + step.region * 101 + step.percent;
	speed = step.region ? 1 - p->worth[step.region - 1] * step.percent / 1e4 : 1;
	active = p->at_most[(step.region ? step.region : 1) - 1] / 100;
	o = (struct ca_observation){
		.region = step.region ? step.region : 1,
		.speedup = step.percent * 10000,
		.run = 1,
		.time = s->steps++ * 0.35,
		.cost = 0.25,
		.elapsed = 0.25 / (1 - active * step.percent / 100 + 1e-9),
		.paying = p->alone ? 0 : NAN,
		.idle = p->idle,
	};
	o.active = active * o.elapsed;
	o.delay = o.active * step.percent / 100;
	if (p->polls || p->latency)
		o.paying = o.delay;
	if (p->latency)
		o.elapsed = 0;
	if (p->alone)
		o.cost = o.elapsed - o.delay;
	o.visits = o.cost * 1000 / speed * (1 + p->noise * 3.46 * (ca_rng_unit(&s->rng) - 0.5));
	ca_plan_tell(s->plan, &o,
		     p->unknown      ? CA_PLAN_DOUBTFUL
		     : p->neighbours ? CA_PLAN_BESIDE
				     : CA_PLAN_GOOD);
}

static const struct program three = {
	.codes = 12,
	.worth = { 60, 40, 30, 4, 3, 2, 2, 1, 1, 1, 0, 0 },
	.at_most = { 70, 50, 40, 30, 30, 30, 20, 20, 20, 10, 10, 4 },
	.noise = 0.03,
};

/* Effort goes to the first rows; none is forgotten; and there is an end. */
static void test_ends(void **state)
{
	unsigned rows = 0, first = 0, others = 0;
	struct ca_plan_row top[CA_PLAN_TOP + 1];
	struct sweep s;

	(void)state;
	begin(&s, &three, 5, false);
	assert_int_equal(ca_plan_top(s.plan, top, CA_PLAN_TOP), 0);
	while (!ca_plan_is_decided(s.plan, &rows) && s.steps < 2000)
		step(&s, &three);
	assert_in_range(s.steps, 20, 1000);
	assert_int_equal(rows, CA_PLAN_TOP);
	top[CA_PLAN_TOP].region = 99;
	assert_int_equal(ca_plan_top(s.plan, top, CA_PLAN_TOP), CA_PLAN_TOP);
	assert_int_equal(top[CA_PLAN_TOP].region, 99); /* no room was asked for there */
	for (size_t i = 0; i < CA_PLAN_TOP; i++) {
		assert_in_range(top[i].region, 1, 3);
		assert_true(top[i].low <= top[i].effect && top[i].effect <= top[i].high);
		assert_true(!i || (top[i].effect <= top[i - 1].effect && top[i].region != top[i - 1].region));
	}
	for (size_t i = 1; i <= 11; i++) {
		assert_true(s.tried[i] > 0);
		*(i <= 3 ? &first : &others) += s.tried[i];
	}
	assert_true(first / 3 >= others / 8);
	assert_int_equal(s.tried[12], 0); /* half of it would be 2 points at most */
	assert_true(s.zeros * 8 > s.steps && s.zeros * 2 < s.steps + 3);
	ca_plan_free(s.plan);
}

/* It ends, too, where more experiments narrow nothing, and says so. */
static void test_vague(void **state)
{
	struct program moved = three;
	unsigned rows = 0;
	struct sweep s;

	(void)state;
	for (int k = 0; k < 2; k++) {
		moved.idle = 0.1 * k;
		begin(&s, &moved, 5, false);
		while (!ca_plan_is_decided(s.plan, &rows) && s.steps < 2000)
			step(&s, &moved);
		assert_in_range(s.steps, 20, 1000);
		assert_int_equal(rows, CA_PLAN_TOP);
		assert_int_equal(ca_plan_is_vague(s.plan), k);
		ca_plan_free(s.plan);
	}
}

/* What seemed to be much when the run began, and is little of all of it, is not tried any more. */
static void test_turned_out_little(void **state)
{
	static const struct program early = {
		.codes = 3, .worth = { 60, 3, 3 }, .at_most = { 80, 30, 30 }, .noise = 0.3
	};
	struct program late = early;
	unsigned tried;
	struct sweep s;

	(void)state;
	begin(&s, &early, 5, false);
	while (s.tried[3] < 5)
		step(&s, &early);
	late.at_most[2] = 5;
	offer(s.plan, &late);
	tried = s.tried[3];
	for (unsigned i = 0; i < 60; i++)
		step(&s, &late);
	assert_true(s.tried[2] >= 10);
	assert_in_range(s.tried[3] - tried, 0, s.tried[2] / 2); /* now and then */
	ca_plan_free(s.plan);
}

/* Where there is no time for all answers, there is for that of the first row: it has half of the experiments, as long
 * as it is open, at all speedups. */
static void test_first_row_has_half(void **state)
{
	struct program many = { .codes = 8,
				.worth = { 15, 60, 15, 20, 15, 20, 15, 20 },
				.at_most = { 80, 80, 80, 80, 80, 80, 80, 80 },
				.noise = 0.5 };
	unsigned others, before;
	struct sweep s;

	(void)state;
	begin(&s, &many, 5, false);
	while (s.steps < 300)
		step(&s, &many);
	others = s.steps - s.zeros - s.tried[2];
	assert_in_range(s.tried[2], others * 2 / 3, others * 5 / 4);
	for (unsigned percent = 25; percent <= 100; percent += 25)
		assert_in_range(s.at[2][percent], s.tried[2] / 8, s.tried[2] / 2);
	for (size_t i = 1; i <= many.codes; i++)
		assert_true(s.tried[i] >= others / 12);
	/* then it is the next one's turn */
	many.at_most[1] = 5;
	offer(s.plan, &many);
	before = s.tried[2];
	for (unsigned i = 0; i < 100; i++)
		step(&s, &many);
	assert_in_range(s.tried[2] - before, 0, 30);
	ca_plan_free(s.plan);
}

/* The first look at a code is at 50 %, the next at 100. */
static void test_screening(void **state)
{
	struct sweep s;

	(void)state;
	begin(&s, &three, 5, false);
	for (unsigned i = 0; i < 11; i++) /* 8 codes and 3 zeros */
		step(&s, &three);
	assert_int_equal(s.zeros, 3);
	for (size_t i = 1; i <= 8; i++)
		assert_int_equal(s.at[i][50], 1);
	ca_plan_free(s.plan);
}

/* What is known for certain comes before what two experiments have told. */
static void test_top(void **state)
{
	struct ca_plan_row top[2];
	unsigned rows;
	struct sweep s;

	(void)state;
	begin(&s, &(struct program){ .codes = 2, .at_most = { 80, 80 } }, 5, false);
	for (unsigned i = 0; i < 50; i++) {
		bool once = i == 20 || i == 30, zero = i % 2;
		double cost = i == 20 ? 0.5 : i == 30 ? 1.05 : zero ? 1 : 0.85; /* of a visit, in ms */

		ca_plan_tell(s.plan,
			     &(struct ca_observation){ .region = once ? 1 : 2,
						       .speedup = zero ? 0 : 500000,
						       .run = 1,
						       .time = i * 0.35,
						       .cost = 0.25,
						       .elapsed = 0.35,
						       .active = 0.2,
						       .delay = zero ? 0 : 0.1,
						       .paying = 0.1,
						       .visits = 250 / (cost + 0.01 * (i % 5)) },
			     CA_PLAN_GOOD);
	}
	ca_plan_is_decided(s.plan, &rows);
	assert_int_equal(ca_plan_top(s.plan, top, 2), 2);
	assert_true(top[0].effect < top[1].effect);
	assert_int_equal(top[0].region, 2);
	assert_int_equal(top[1].region, 1);
	assert_int_equal(ca_plan_top(s.plan, top, 1), 1);
	assert_int_equal(top[0].region, 2);
	ca_plan_free(s.plan);
}

/* Of what is not known, that of which most is to be expected: a wider interval says less. */
static void test_top_unknown(void **state)
{
	static const double zero[] = { 1, 1.2, 0.85, 1.1, 0.9, 1.2, 0.85, 1 },
			    other[] = { 0.7, 1.05, 0.65, 0.95, 0.75, 1 };
	struct ca_plan_row top[2];
	unsigned rows;
	struct sweep s;

	(void)state;
	begin(&s, &(struct program){ .codes = 2, .at_most = { 80, 80 } }, 5, false);
	for (unsigned i = 0; i < 15; i++) {
		bool is_zero = i % 2 == 0, once = i == 7;
		double cost = is_zero ? zero[i / 2] : once ? 0.78 : other[i > 7 ? i / 2 - 1 : i / 2];

		ca_plan_tell(s.plan,
			     &(struct ca_observation){ .region = once ? 1 : 2,
						       .speedup = is_zero ? 0 : 500000,
						       .run = 1,
						       .time = i * 0.35,
						       .cost = 0.25,
						       .elapsed = 0.35,
						       .active = 0.2,
						       .delay = is_zero ? 0 : 0.1,
						       .paying = 0.1,
						       .visits = 250 / cost },
			     CA_PLAN_GOOD);
	}
	ca_plan_is_decided(s.plan, &rows);
	assert_int_equal(ca_plan_top(s.plan, top, 2), 2);
	assert_int_equal(top[0].region, 2);
	assert_true(top[0].effect < top[1].effect);
	assert_int_equal(top[0].verdict, CA_VERDICT_NOT_ENOUGH);
	assert_int_equal(top[1].verdict, CA_VERDICT_NOT_ENOUGH);
	ca_plan_free(s.plan);
}

/* No verdict is given on such experiments, so that there is no end either; but they are looked at. */
/* Where experiments inside runs leave it open, whole runs may tell: such as say more, or something else. */
static void test_runs_beside(void **state)
{
	static const struct program one = { .codes = 1, .worth = { 60 }, .at_most = { 70 }, .noise = 0.3 },
				    clear = { .codes = 1, .worth = { 60 }, .at_most = { 70 }, .noise = 0.01 };
	static const struct {
		const struct program *p;
		double worth; /* by whole runs, at 50 % */
		bool told;
		unsigned runs; /* every second one of them above 0 % */
	} cases[] = { { &one, 30, true, 12 }, { &clear, 31, false, 12 }, { &clear, 10, true, 12 },
		      { &one, 30, true, 5 },  { &one, 30, false, 3 },    { &clear, 31, false, 5 } };

	(void)state;
	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		struct ca_plan_row row;
		struct sweep s;
		unsigned rows;
		double width;

		begin(&s, cases[k].p, 5, false);
		for (int i = 0; i < 12; i++)
			step(&s, cases[k].p);
		if (ca_plan_is_decided(s.plan, &rows))
			assert_ptr_equal(cases[k].p, &clear);
		assert_int_equal(ca_plan_top(s.plan, &row, 1), 1);
		width = row.high - row.low;
		for (unsigned i = 0; i < cases[k].runs; i++) {
			double cost = i % 2 ? 1 - cases[k].worth / 100 : 1;
			struct ca_observation o = { .region = 1,
						    .speedup = i % 2 ? 500000 : 0,
						    .run = 2 + i,
						    .time = 100 + i,
						    .cost = cost,
						    .visits = 1000 + i % 3,
						    .elapsed = cost + (i % 2 ? 0.35 : 0),
						    .active = 0.7,
						    .delay = i % 2 ? 0.35 : 0,
						    .paying = NAN,
						    .per_visit = true };

			ca_plan_tell_run(s.plan, &o);
		}
		assert_int_equal(ca_plan_is_decided(s.plan, &rows), cases[k].runs != 3);
		if (cases[k].told || cases[k].runs == 3)
			assert_int_equal(ca_plan_is_settled(s.plan, 1), cases[k].told);
		assert_false(ca_plan_is_settled(s.plan, 2));
		assert_int_equal(ca_plan_top(s.plan, &row, 1), 1);
		if (cases[k].told)
			assert_true(fabs(row.effect - cases[k].worth) < 2);
		else
			assert_true(row.high - row.low <= width + 1e-9);
		ca_plan_free(s.plan);
	}
}

/* Where experiments inside runs vary much, pairs of whole runs are asked for: if there is time for them, and they are not
 * longer than what they spare. */
static void test_coarse(void **state)
{
	static const struct program one = { .codes = 1, .worth = { 60 }, .at_most = { 70 }, .noise = 0.3 },
				    clear = { .codes = 1, .worth = { 60 }, .at_most = { 70 }, .noise = 0.01 },
				    alone = { .codes = 1,
					      .worth = { 60 },
					      .at_most = { 70 },
					      .noise = 0.3,
					      .alone = true };
	static const struct {
		const struct program *p;
		unsigned steps;
		double length, left;
		bool coarse;
	} cases[] = {
		{ &one, 12, 2, 60, true },    { &one, 4, 2, 60, false },    { &one, 12, 2, 10, false },
		{ &one, 12, 0, 60, false },   { &one, 12, 30, 600, false }, { &clear, 12, 2, 60, false },
		{ &alone, 12, 2, 60, false },
	};

	(void)state;
	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		struct sweep s;
		unsigned rows;

		begin(&s, cases[k].p, 5, false);
		for (unsigned i = 0; i < cases[k].steps; i++)
			step(&s, cases[k].p);
		ca_plan_set_length(s.plan, cases[k].length);
		ca_plan_is_decided(s.plan, &rows);
		if (ca_plan_find_coarse(s.plan, cases[k].left) != cases[k].coarse)
			fail_msg("case %zu", k);
		assert_int_equal(ca_plan_find_coarse(s.plan, cases[k].left), 0); /* once */
		ca_plan_use_whole(s.plan, false);
		assert_int_equal(ca_plan_find_coarse(s.plan, cases[k].left), 0);
		ca_plan_free(s.plan);
	}
}

/* ... which what was told since the last look at it may have decided. */
static void test_coarse_no_more(void **state)
{
	static const struct program one = { .codes = 1, .worth = { 60 }, .at_most = { 70 }, .noise = 0.3 };

	(void)state;
	for (unsigned told = 0; told < 2; told++) {
		struct sweep s;

		begin(&s, &one, 5, false);
		for (unsigned i = 0; i < 12; i++)
			step(&s, &one);
		ca_plan_set_length(s.plan, 2);
		ca_plan_estimate(s.plan);
		for (unsigned i = 0; i < 200 * told; i++) {
			double part = i % 2 ? 0 : 0.25 * (i / 2 % 4 + 1), elapsed = 0.25 / (1 - 0.7 * part);
			struct ca_observation o = {
				.region = 1,
				.speedup = (uint32_t)(part * 1e6),
				.run = 1,
				.time = s.steps++ * 0.35,
				.cost = 0.25,
				.elapsed = elapsed,
				.active = elapsed * 0.7,
				.delay = elapsed - 0.25,
				.paying = NAN,
				.visits = 250 / (1 - 0.6 * part) * (0.995 + ca_rng_unit(&s.rng) / 100),
			};

			ca_plan_tell(s.plan, &o, CA_PLAN_GOOD);
		}
		assert_int_equal(ca_plan_find_coarse(s.plan, 60), !told);
		ca_plan_free(s.plan);
	}
}

/* Estimates wait until there is enough that is new; who asks for all gets all, once. */
static void test_all_is_known(void **state)
{
	struct ca_plan_row before, waiting, all, again;
	struct sweep s;
	unsigned rows;

	(void)state;
	begin(&s, &three, 5, false);
	while (s.steps < 100) {
		step(&s, &three);
		ca_plan_is_decided(s.plan, &rows);
	}
	ca_plan_estimate(s.plan);
	assert_int_equal(ca_plan_top(s.plan, &before, 1), 1);
	step(&s, &three);
	ca_plan_is_decided(s.plan, &rows);
	assert_int_equal(ca_plan_top(s.plan, &waiting, 1), 1);
	assert_true(waiting.low == before.low && waiting.high == before.high);
	ca_plan_estimate(s.plan);
	assert_int_equal(ca_plan_top(s.plan, &all, 1), 1);
	assert_true(all.low != before.low && all.high != before.high);
	ca_plan_estimate(s.plan);
	assert_int_equal(ca_plan_top(s.plan, &again, 1), 1);
	assert_true(again.low == all.low && again.high == all.high);
	ca_plan_free(s.plan);
}

static void test_neighbours(void **state)
{
	struct program busy = three;
	struct ca_plan_row top[1];
	unsigned rows = 0;
	struct sweep s;

	(void)state;
	busy.unknown = true;
	begin(&s, &busy, 5, false);
	while (s.steps < 400) {
		step(&s, &busy);
		assert_false(ca_plan_is_decided(s.plan, &rows));
	}
	assert_int_equal(ca_plan_top(s.plan, top, 1), 1);
	assert_int_equal(top[0].region, 1);
	ca_plan_free(s.plan);
}

/* What is won beside others can be known. */
static void test_beside(void **state)
{
	struct program busy = three;
	unsigned rows = 0;
	struct sweep s;

	(void)state;
	busy.neighbours = true;
	begin(&s, &busy, 5, false);
	while (s.steps < 400 && !ca_plan_is_decided(s.plan, &rows))
		step(&s, &busy);
	assert_true(ca_plan_is_decided(s.plan, &rows));
	assert_int_equal(rows, 3);
	ca_plan_free(s.plan);
}

static void test_nothing_matters(void **state)
{
	static const struct program none = { .codes = 2, .at_most = { 5, 4 }, .noise = 0.01 };
	unsigned rows = 7;
	struct sweep s;

	(void)state;
	begin(&s, &none, 9, false);
	while (!ca_plan_is_decided(s.plan, &rows) && s.steps < 500)
		step(&s, &none);
	assert_true(s.steps < 500);
	assert_int_equal(rows, 0);
	ca_plan_free(s.plan);
}

static void test_seed(void **state)
{
	uint64_t trace[3];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct sweep s;

		begin(&s, &three, i < 2 ? 11 : 12, false);
		for (unsigned k = 0; k < 60; k++)
			step(&s, &three);
		trace[i] = s.trace;
		ca_plan_free(s.plan);
	}
	assert_true(trace[0] == trace[1]);
	assert_true(trace[0] != trace[2]);
}

/* Where speedups are dealt, no step is at 0 %. */
static void test_dealt(void **state)
{
	struct ca_plan_step next;
	struct sweep s;

	(void)state;
	begin(&s, &three, 3, true);
	for (unsigned i = 0; i < 40; i++) {
		assert_true(ca_plan_next(s.plan, &next));
		assert_true(next.region > 0);
		ca_plan_begun(s.plan);
	}
	ca_plan_free(s.plan);
}

/* An experiment that cannot be used is tried again, but not for ever; what is offered no more rests. */
static void test_lost(void **state)
{
	static const struct program one = { .codes = 1, .at_most = { 50 } };
	struct ca_observation lost = { .region = 1, .speedup = 500000, .cost = 1 };
	struct ca_plan_step next;
	unsigned tries = 0, zeros = 0;
	struct sweep s;

	(void)state;
	begin(&s, &one, 3, false);
	while (ca_plan_next(s.plan, &next) && zeros < 2) {
		ca_plan_begun(s.plan);
		zeros += !next.region;
		if (zeros < 2 && next.region)
			tries++;
		if (next.region)
			ca_plan_tell(s.plan, &lost, CA_PLAN_USELESS);
	}
	assert_in_range(tries, 2, 4);
	ca_plan_set_offers(s.plan, NULL, 0, true);
	for (unsigned i = 0; i < 5 && ca_plan_next(s.plan, &next); i++) {
		assert_int_equal(next.region, 0);
		ca_plan_begun(s.plan);
	}
	assert_false(ca_plan_next(s.plan, &next));
	assert_int_equal(ca_plan_draw(s.plan, 7, true), 0);
	ca_plan_free(s.plan);
}

/* The first `loaded` codes are in a library that has come in this run, or not. */
static void offer_library(struct ca_plan *plan, const struct program *p, size_t loaded, bool there)
{
	struct ca_plan_offer offer[MOST];

	for (size_t i = 0; i < p->codes; i++)
		offer[i] = (struct ca_plan_offer){ (uint32_t)i + 1, 1000 + i, p->at_most[i],
						   .absent = i < loaded && !there };
	ca_plan_set_offers(plan, offer, p->codes, true);
}

/* What is in a library that comes late is not tried before, is tried soon when it comes, and nothing is decided without
 * it, unless it has not come at all in a run. */
static void test_absent(void **state)
{
	static const struct program four = {
		.codes = 4, .worth = { 60, 50, 20, 1 }, .at_most = { 70, 60, 30, 30 }, .noise = 0.01
	};
	unsigned rows, first = 0;
	struct sweep s;

	(void)state;
	begin(&s, &four, 5, false);
	offer_library(s.plan, &four, 2, false);
	for (unsigned i = 0; i < 100; i++) {
		step(&s, &four);
		assert_int_equal(s.tried[1] + s.tried[2], 0);
		assert_false(ca_plan_is_decided(s.plan, &rows));
		assert_true(ca_plan_draw(s.plan, i, false) > 2);
		first += ca_plan_draw(s.plan, i, true) == 1;
	}
	assert_in_range(first, 20, 60);
	offer_library(s.plan, &four, 2, true);
	for (unsigned i = 0; i < 5; i++)
		step(&s, &four);
	assert_true(s.tried[1] + s.tried[2] >= 2);
	offer_library(s.plan, &four, 2, false);
	ca_plan_run_ended(s.plan);
	offer_library(s.plan, &four, 2, false);
	for (unsigned i = 0; i < 200 && !ca_plan_is_decided(s.plan, &rows); i++) {
		step(&s, &four);
		assert_true(ca_plan_draw(s.plan, i, true) > 2);
	}
	assert_true(ca_plan_is_decided(s.plan, &rows));
	offer_library(s.plan, &four, 2, true); /* there it is, after all */
	ca_plan_run_ended(s.plan);
	offer_library(s.plan, &four, 2, false);
	for (first = 0, rows = 0; rows < 100; rows++)
		first += ca_plan_draw(s.plan, rows, true) == 1;
	assert_in_range(first, 20, 60);
	ca_plan_free(s.plan);
}

/* For whole runs: in proportion to what each can take, and the same ones by the same numbers. */
static void test_draw(void **state)
{
	static const struct program two = { .codes = 2, .at_most = { 75, 25 } };
	unsigned first = 0;
	struct ca_rng rng;
	struct sweep s;

	(void)state;
	begin(&s, &two, 3, false);
	ca_rng_init(&rng, 4);
	for (unsigned i = 0; i < 4000; i++) {
		uint64_t number = ca_rng_next(&rng);
		uint32_t region = ca_plan_draw(s.plan, number, false);

		assert_int_equal(ca_plan_draw(s.plan, number, true), region);
		first += region == 1;
	}
	assert_in_range(first, 2850, 3150);
	ca_plan_free(s.plan);
}

/* At 0 % each code is watched as often as above it: ticks each ms, where samples tell what is in S, cost 4 % of a run,
 * and probes less. */
static void test_draw_zero(void **state)
{
	static const struct program two = { .codes = 2, .at_most = { 75, 25 } };
	struct ca_observation o = { .cost = 1, .visits = 1, .elapsed = 1 };
	unsigned drawn[3] = { 0 };
	struct sweep s;

	(void)state;
	begin(&s, &two, 3, false);
	assert_int_equal(ca_plan_draw_zero(s.plan, 7), ca_plan_draw(s.plan, 7, true)); /* none is tried yet */
	for (unsigned i = 0; i < 6; i++) {
		o.region = i % 3 ? 2 : 1;
		o.speedup = 500000;
		ca_plan_tell(s.plan, &o, CA_PLAN_GOOD);
	}
	for (unsigned i = 0; i < 9; i++) {
		o.region = ca_plan_draw_zero(s.plan, 7);
		o.speedup = 0;
		ca_plan_tell(s.plan, &o, CA_PLAN_GOOD);
		drawn[o.region]++;
	}
	assert_int_equal(drawn[1], 3);
	assert_int_equal(drawn[2], 6);
	ca_plan_free(s.plan);
}

/* Visits are no units: what was told before counts by CPU time, too. Faster code makes all of it a third faster, and
 * visits twice as frequent. */
static void test_counts_work(void **state)
{
	static const struct program one = { .codes = 1, .at_most = { 70 } };
	struct ca_plan_row top;
	unsigned alike = 0; /* asked while it seems that visits are units */
	struct sweep s;

	(void)state;
	begin(&s, &one, 3, false);
	for (unsigned i = 0; i < 40; i++) {
		bool faster = i % 3;
		double speed = faster ? 1.5 : 1;
		struct ca_observation o = { .region = 1,
					    .speedup = faster ? 250000 * (i % 3) : 0,
					    .run = 1,
					    .time = i,
					    .cost = 1,
					    .visits = (faster ? 2000 : 1000) + i % 5,
					    .elapsed = faster ? 1.6 : 1,
					    .delay = faster ? 0.6 : 0,
					    .active = 0.8,
					    .paying = NAN,
					    .work = speed * 1.4 + i % 7 * 1e-3,
					    .entries = speed * 1000 };

		ca_plan_begun(s.plan);
		ca_plan_tell(s.plan, &o, CA_PLAN_GOOD);
		alike += !ca_plan_counts_work(s.plan);
	}
	assert_in_range(alike, 8, 16);
	assert_true(ca_plan_next(s.plan, &(struct ca_plan_step){ 0 }));
	assert_int_equal(ca_plan_top(s.plan, &top, 1), 1);
	assert_true(fabs(top.effect - 100 / 3.) < 2);
	ca_plan_forget(s.plan); /* there is another point */
	assert_false(ca_plan_counts_work(s.plan));
	ca_plan_free(s.plan);
}

/* Four whole runs are all that -n 4 has: they are spent on what can give most. */
static void test_whole_runs_largest_first(void **state)
{
	struct ca_plan_step step;
	struct sweep s;

	(void)state;
	for (uint64_t seed = 1; seed < 20; seed++) {
		uint32_t next = 1;

		begin(&s, &three, seed, false);
		/* some have begun inside a run, which turned out to be too short */
		for (unsigned i = 0; i < seed % 4; i++) {
			assert_true(ca_plan_next(s.plan, &step));
			ca_plan_begun(s.plan);
		}
		ca_plan_use_whole(s.plan, false);
		for (unsigned i = 0; i < 6; i++) {
			assert_true(ca_plan_next(s.plan, &step));
			assert_true(step.region == (i % 3 ? next++ : 0));
			ca_plan_begun(s.plan);
		}
		assert_int_equal(next, 5); /* with two at 0 % between */
		ca_plan_free(s.plan);
	}
}

/* A minute has few of them: they go to what may bring most, and not to each of many codes in its turn. */
static void test_whole_runs_go_to_hopes(void **state)
{
	struct program flat = three;
	unsigned first = 0, others = 0;
	struct sweep s;

	(void)state;
	for (size_t i = 3; i < flat.codes; i++)
		flat.at_most[i] = 12;
	begin(&s, &flat, 5, false);
	ca_plan_use_whole(s.plan, false);
	while (s.steps < 30)
		step(&s, &flat);
	for (size_t i = 1; i <= flat.codes; i++)
		*(i <= CA_PLAN_TOP ? &first : &others) += s.tried[i];
	assert_in_range(others, 1, first);
	ca_plan_free(s.plan);
	/* most of all to what brings most, as long as that is not known well */
	flat.noise = 0.1;
	begin(&s, &flat, 5, false);
	ca_plan_use_whole(s.plan, false);
	while (s.steps < 30)
		step(&s, &flat);
	assert_in_range(s.tried[1], 7, 12);
	ca_plan_free(s.plan);
}

/* Where one thread does all, a run at 0 % says no more than another one, and one of each code is enough. */
static void test_whole_runs_alone(void **state)
{
	struct program alone = three;
	unsigned rows;
	struct sweep s;

	(void)state;
	alone.alone = true;
	begin(&s, &alone, 5, false);
	ca_plan_use_whole(s.plan, true);
	while (s.steps < 30 && !ca_plan_is_decided(s.plan, &rows))
		step(&s, &alone);
	assert_int_equal(s.zeros, 0);
	assert_in_range(s.steps, 4, 14);
	assert_int_equal(rows, CA_PLAN_TOP);
	ca_plan_free(s.plan);
}

/* Code that asks others how far they are takes the longer the more these are delayed: a whole run at 100 %
 * would hardly end. */
static void test_whole_runs_of_polls(void **state)
{
	struct program polls = { .codes = 1, .at_most = { 95 }, .noise = 0.03, .polls = true };

	(void)state;
	for (int i = 0; i < 3; i++, polls.polls = false, polls.latency = i == 2) {
		struct sweep s;

		begin(&s, &polls, 5, false);
		ca_plan_use_whole(s.plan, false);
		while (s.steps < 30)
			step(&s, &polls);
		assert_true(s.at[1][25] && s.at[1][50]);
		assert_int_equal(polls.polls, !s.at[1][75] && !s.at[1][100]);
		ca_plan_free(s.plan);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_runs_largest_first),
		cmocka_unit_test(test_whole_runs_go_to_hopes),
		cmocka_unit_test(test_whole_runs_alone),
		cmocka_unit_test(test_whole_runs_of_polls),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_vague),
		cmocka_unit_test(test_top),
		cmocka_unit_test(test_top_unknown),
		cmocka_unit_test(test_runs_beside),
		cmocka_unit_test(test_coarse),
		cmocka_unit_test(test_coarse_no_more),
		cmocka_unit_test(test_all_is_known),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_turned_out_little),
		cmocka_unit_test(test_first_row_has_half),
		cmocka_unit_test(test_screening),
		cmocka_unit_test(test_nothing_matters),
		cmocka_unit_test(test_seed),
		cmocka_unit_test(test_dealt),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_draw),
		cmocka_unit_test(test_draw_zero),
		cmocka_unit_test(test_counts_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

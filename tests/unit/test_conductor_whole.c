/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_whole.c: which runs are measured as a whole, of what, and at which speedup. */
#include "causal/conductor/conductor_whole.c"
#include "tests/unit/unit.h"
#include <string.h>

static uint32_t drawn;
static unsigned picks, said;

uint32_t ca_conductor_plan_pick(struct ca_conductor *conductor, uint64_t now)
{
	(void)conductor, (void)now;
	picks++;
	return drawn;
}

bool ca_conductor_is_useful(const struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return true;
}

bool ca_conductor_points_are_open(const struct ca_conductor *c)
{
	return c->points;
}

static bool ours;

bool ca_conductor_points_are_ours(const struct ca_conductor *c)
{
	(void)c;
	return ours;
}

void ca_conductor_points_free(struct ca_conductor *c)
{
	(void)c;
}

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	(void)c, (void)level, (void)format;
	said++;
}

enum { MS = 1000000 };
static const char *const command[] = { "./app", NULL };
static char name[] = "f\0g";
static struct ca_session *session;
static char no_periods[] = "";
static struct ca_settings settings;
static struct ca_conductor c;
static struct ca_sweep *sweep;

static void start_run(void)
{
	static unsigned pool[] = { 0, 25, 50 };

	c = (struct ca_conductor){ .set = &settings, .session = session };
	c.opt = (struct ca_conductor_options){ .sweep = sweep, .command = command };
	c.pool = (struct ca_speedups){ .percent = malloc(sizeof pool), .count = CA_COUNT(pool) };
	assert_non_null(c.pool.percent);
	memcpy(c.pool.percent, pool, sizeof pool);
	c.group = 1;
	c.length = 250 * MS;
	c.warm_up = 80 * MS;
	for (unsigned i = 0; i < 2; i++)
		ca_catalog_add_region(&c.catalog, &(struct ca_region){ .name = name + 2 * i });
}

static void end_run(uint64_t ms)
{
	ca_conductor_whole_close(&c, ms * MS);
	ca_speedups_fini(&c.pool);
	ca_catalog_fini(&c.catalog);
}

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	if (session)
		memset(session, 0, sizeof *session);
	settings = (struct ca_settings){ .warm_up = 80, .cool_off = 10, .periods = no_periods };
	sweep = ca_sweep_new(7);
	drawn = 1;
	picks = 0;
	return session && sweep ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_sweep_free(sweep);
	free(session);
	return 0;
}

/* A short program: pairs of a region that the run before has drawn, at 0 % and at each speedup. */
static void test_short(void **state)
{
	unsigned seen[2] = { 0, 0 };

	(void)state;
	start_run();
	assert_int_equal(ca_conductor_whole_open(&c, NULL), CA_OK);
	assert_false(c.whole);
	assert_ptr_equal(c.set, &settings);
	end_run(1000);
	for (unsigned run = 0; run < 8; run++) {
		const struct ca_region *chosen;

		start_run();
		assert_int_equal(ca_conductor_whole_open(&c, NULL), CA_OK);
		assert_true(c.whole && c.set->end_to_end && !c.doubt);
		assert_false(settings.end_to_end);
		assert_int_equal(c.pool.count, 1);
		assert_int_equal(!c.pool.percent[0], run % 2 == 0);
		chosen = ca_sweep_get_choice(sweep, c.group);
		assert_non_null(chosen);
		assert_string_equal(chosen->name, run / 2 % 2 ? "g" : "f");
		if (run % 2) {
			seen[c.pool.percent[0] == 50]++;
			ca_sweep_begun(sweep); /* as the conductor does once it has been dealt */
		}
		drawn = run / 2 % 2 ? 1 : 2; /* for the next pair, if this one is complete */
		end_run(1000);
	}
	assert_int_equal(seen[0], 2);
	assert_int_equal(seen[1], 2);
	assert_int_equal(picks, 5); /* what the plan gives is used: one for each pair */
}

/* A start in which nothing is passed has made experiments long: as many as are wanted were in the run all the same. */
static void test_late_start(void **state)
{
	const struct ca_region *region;
	unsigned percent;

	(void)state;
	for (unsigned kept = 3; kept >= 2; kept--) {
		start_run();
		ca_conductor_whole_open(&c, NULL);
		c.length = 1000 * MS;
		c.kept = kept;
		end_run(2800);
		assert_int_equal(!ca_sweep_why_whole(sweep, &region, &percent), kept == 3);
	}
}

/* One thread that is never delayed: each run is its own baseline, so that none is at 0 %. Experiments in a run are,
 * too, but lie in some of its phases: more of them have to fit. */
static void test_alone(void **state)
{
	const struct ca_region *region;
	unsigned percent, group = 0;

	(void)state;
	ca_sweep_first_time(sweep, CA_SWEEP_ALONE);
	start_run();
	ca_conductor_whole_open(&c, NULL);
	end_run(2721);
	assert_null(ca_sweep_why_whole(sweep, &region, &percent));
	start_run();
	ca_conductor_whole_open(&c, NULL);
	end_run(2719);
	assert_non_null(ca_sweep_why_whole(sweep, &region, &percent));
	for (unsigned run = 0; run < 4; run++) {
		start_run();
		assert_int_equal(ca_conductor_whole_open(&c, NULL), CA_OK);
		assert_true(c.whole);
		assert_int_not_equal(c.pool.percent[0], 0);
		assert_int_not_equal(c.group, group);
		group = c.group;
		ca_sweep_begun(sweep);
		end_run(500);
	}
	/* it was delayed after all */
	ca_sweep_first_time(sweep, CA_SWEEP_PAID);
	start_run();
	assert_int_equal(ca_conductor_whole_open(&c, NULL), CA_OK);
	assert_int_equal(c.pool.percent[0], 0);
	end_run(1000);
}

/* One run has fewer than others, whose experiments have told: the program is not too short for them. */
static void test_fewer_by_chance(void **state)
{
	static const unsigned kept[2][3] = { { 5, 5, 2 }, { 3, 1, 2 } };

	for (unsigned k = 0; k < 2; k++) {
		const struct ca_region *region;
		unsigned percent;

		set_up(state);
		for (unsigned run = 0; run < 3; run++) {
			start_run();
			ca_conductor_whole_open(&c, NULL);
			c.length = 700 * MS;
			c.kept = kept[k][run];
			for (unsigned i = 0; i < c.kept; i++)
				ca_sweep_count_experiment(sweep);
			ca_sweep_add_length(sweep, run, 2.2);
			end_run(2200);
		}
		assert_int_equal(!ca_sweep_why_whole(sweep, &region, &percent), k == 0);
		tear_down(state);
	}
}

static void test_long(void **state)
{
	static const struct {
		unsigned ms;
		double delay, duration;
		bool end_to_end, whole;
	} cases[] = {
		{ 1019, 0, 0, false, true },  { 1021, 0, 0, false, false }, { 1000, 1, 0, false, false },
		{ 1000, 0, 1, false, false }, { 1000, 0, 0, true, false },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct ca_region *region;
		unsigned percent;

		set_up(state);
		settings.delay = cases[i].delay;
		settings.duration = cases[i].duration;
		settings.end_to_end = cases[i].end_to_end;
		start_run();
		ca_conductor_whole_open(&c, NULL);
		end_run(cases[i].ms);
		if (!ca_sweep_why_whole(sweep, &region, &percent) == cases[i].whole)
			fail_msg("case %zu", i);
		tear_down(state);
	}
}

/* The caller says what he wants: neither the count of the sweep's own pairs nor its choice matters. */
static void test_asked_for(void **state)
{
	struct ca_region other = { .name = name };

	(void)state;
	start_run();
	c.opt.whole = true;
	c.opt.region = &other;
	c.opt.speedup = 30;
	assert_int_equal(ca_conductor_whole_open(&c, NULL), CA_OK);
	assert_true(c.whole);
	assert_int_equal(c.pool.percent[0], 30);
	assert_int_equal(c.group, 1);
	end_run(5000);
	assert_int_equal(ca_sweep_whole_runs(sweep), 0);
	assert_int_equal(ca_sweep_why_whole(sweep, &(const struct ca_region *){ NULL }, &(unsigned){ 0 }) !=
				 NULL,
			 false);
}

static uint64_t paid = UINT64_MAX; /* ns in which somebody paid */
static uint64_t turns;             /* of spin loops */

static void record(unsigned percent, uint64_t visits, uint64_t work, uint64_t arrivals)
{
	c.e.visits[0] = (struct ca_visits){ .delta = visits / 2 };
	c.e.visits[1] = (struct ca_visits){ .point = 1, .delta = visits, .span = 40 * MS };
	c.e.visits[2] = (struct ca_visits){ .point = 2, .delta = visits / 3, .arrivals = arrivals };
	c.e.record = (struct ca_experiment_record){ .region = 2,
						    .speedup = percent * 10000,
						    .end = 100 * MS,
						    .delay = percent * MS * 9 / 10,
						    .paying = paid,
						    .work = work,
						    .turns = turns,
						    .visits = c.e.visits,
						    .visit_count = arrivals ? 3 : 2 };
	ca_conductor_whole_watch(&c);
}

/* Where a visit takes less CPU time beside the speedup. */
static void record_doubt(uint64_t work)
{
	for (unsigned i = 0; i < 6; i++) {
		record(0, 100, work + i, 0);
		record(50, 200, work + 100000 + i, 0);
	}
	record(0, 100, work, 0);
}

/* What is doubted is asked for in the next runs: of that region, at a speedup that can tell. */
static void test_doubt(void **state)
{
	(void)state;
	start_run();
	record_doubt(200000);
	end_run(5000);
	for (unsigned run = 0; run < 2; run++) {
		start_run();
		ca_conductor_whole_open(&c, NULL);
		assert_true(c.whole && c.doubt);
		assert_string_equal(ca_sweep_get_choice(sweep, c.group)->name, "g");
		assert_int_equal(c.pool.percent[0], run ? 50 : 0);
		record(run ? 50 : 0, run ? 190 : 100, 0, 0);
		end_run(5000);
	}
	start_run(); /* no doubt any more */
	ca_conductor_whole_open(&c, NULL);
	assert_false(c.whole);
	end_run(5000);
}

/* Whole runs say otherwise: they stay at the speedup that tells, until there are as many as an interval needs. */
static void test_unsteady(void **state)
{
	unsigned at[2] = { 0, 0 }; /* 25, 50 % */

	(void)state;
	start_run();
	record_doubt(200000);
	end_run(5000);
	for (unsigned pair = 0; pair < 12; pair++)
		for (unsigned beside = 0; beside < 2; beside++) {
			start_run();
			ca_conductor_whole_open(&c, NULL);
			assert_true(c.whole && c.doubt);
			assert_int_equal(c.pool.count, 1);
			assert_int_equal(!c.pool.percent[0], !beside);
			if (beside && pair < 4)
				assert_int_equal(c.pool.percent[0], 50);
			else if (beside)
				at[c.pool.percent[0] == 50]++;
			if (beside)
				ca_sweep_begun(sweep);
			record(c.pool.percent[0], beside ? 60 : 50, 0, 0);
			end_run(5000);
		}
	assert_int_equal(at[0], 4);
	assert_int_equal(at[1], 4);
}

/* A user is told why there are whole runs: once for each reason. */
static void test_reasons(void **state)
{
	static const unsigned told[] = { 0, 1, 1, 2, 2 };

	(void)state;
	said = 0;
	for (unsigned run = 0; run < CA_COUNT(told); run++) {
		start_run();
		if (run == 1)
			ca_steady_ask(ca_sweep_steady(sweep), &c.catalog.region[0]);
		if (run == 3)
			record_doubt(200000);
		end_run(5000);
		assert_int_equal(said, told[run]);
	}
}

/* Nobody paid: such experiments are their own baselines, whatever a visit takes. */
static void test_own(void **state)
{
	(void)state;
	start_run();
	paid = 0;
	record_doubt(200000);
	paid = UINT64_MAX;
	end_run(5000);
	assert_false(ca_steady_is_open(ca_sweep_steady(sweep)));
}

/* OpenMP's threads spin, nobody knows for how long: CPU time per visit tells of who waits. */
static void test_spins(void **state)
{
	(void)state;
	for (turns = 2000; turns <= 4000; turns += 2000) { /* 200 and 400 us */
		start_run();
		record_doubt(250000);
		end_run(5000);
		assert_int_equal(ca_steady_is_open(ca_sweep_steady(sweep)), turns == 2000);
		tear_down(state);
		set_up(state);
	}
	turns = 0;
}

/* Two runs more would not fit into what is left: experiments inside go on. */
static void test_no_time(void **state)
{
	(void)state;
	start_run();
	c.opt.budget = (uint64_t)12000 * MS;
	for (unsigned i = 0; i < 7; i++) {
		record(0, 100, 200000 + i, 0);
		record(50, 200, 300000 + i, 0);
	}
	end_run(5000);
	start_run();
	ca_conductor_whole_open(&c, NULL);
	assert_false(c.whole);
	end_run(5000);
	assert_false(ca_steady_is_open(ca_sweep_steady(sweep)));
}

/* One pair says otherwise, and there is no time for another one that would be sure of it. */
static void test_no_time_for_another(void **state)
{
	(void)state;
	for (unsigned run = 0; run < 3; run++) {
		start_run();
		ca_conductor_whole_open(&c, NULL);
		c.opt.budget = (uint64_t)(run < 2 ? 60000 : 9000) * MS;
		assert_int_equal(c.whole, run > 0);
		for (unsigned i = 0; i < 7 && !run; i++) {
			record(0, 100, 200000 + i, 0);
			record(50, 200, 300000 + i, 0);
		}
		if (run)
			record(run == 1 ? 0 : 50, run == 1 ? 100 : 140, 0, 0);
		end_run(5000);
		assert_int_equal(ca_steady_is_open(ca_sweep_steady(sweep)), run < 2);
	}
}

/* A point that runs with faster code pass more, or less, often counts no unit of work: the run is one then, unless
 * somebody else has named the point. */
static void test_refuted(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		ours = i;
		for (unsigned run = 0; run < 6; run++) {
			start_run();
			ca_conductor_whole_open(&c, NULL);
			ca_catalog_add_point(&c.catalog, 3, CA_POINT_THROUGHPUT, "poll");
			c.e.visits[0] = (struct ca_visits){ .point = 3, .delta = run % 2 ? 800 : 1000 };
			c.e.record = (struct ca_experiment_record){ .speedup = run % 2 * 500000,
								    .end = (run % 2 ? 1300 : 1000) * MS,
								    .delay = run % 2 * 500 * MS,
								    .visits = c.e.visits,
								    .visit_count = 1 };
			ca_conductor_whole_end(&c);
			assert_int_equal(c.e.record.visit_count, ours && run > 2 ? 2 : 1);
			assert_int_equal(c.e.visits[0].point, ours && run > 2 ? CA_POINT_END_TO_END : 3);
			if (ours && run > 2)
				assert_int_equal(c.e.visits[1].delta, run % 2 ? 800 : 1000);
			end_run(1000);
		}
	}
	ours = false;
}

/* Where both ends of a queue have a point, it is known what is stored, whatever the CPU time says. */
static void test_arrivals(void **state)
{
	static const struct {
		uint64_t arrivals; /* at 50 %, where 70 leave */
		bool doubt;
	} cases[] = { { 70, false }, { 68, false }, { 60, true } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct ca_region *region;
		unsigned percent;

		set_up(state);
		start_run();
		for (unsigned k = 0; k < 6; k++) {
			record(0, 210, 200000 + k, 70);
			record(50, 210, 100000 + k, cases[i].arrivals);
		}
		record(0, 210, 200000, 70);
		if (!ca_sweep_why_whole(sweep, &region, &percent) == cases[i].doubt)
			fail_msg("case %zu", i);
		end_run(5000);
		tear_down(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_short, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_start, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_alone, set_up, tear_down),
		cmocka_unit_test(test_fewer_by_chance),
		cmocka_unit_test(test_long),
		cmocka_unit_test_setup_teardown(test_asked_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_spins, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_doubt, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unsteady, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reasons, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_time_for_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refuted, set_up, tear_down),
		cmocka_unit_test(test_arrivals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

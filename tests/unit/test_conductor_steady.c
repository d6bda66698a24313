/* SPDX-License-Identifier: MIT */
/* causal/conductor/steady.c: when experiments inside runs are doubted, and what settles it. */
#include "causal/conductor/steady.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <string.h>

static struct ca_steady steady;
static double inserted; /* D, by percent of speedup */

static struct ca_region region(const char *name)
{
	static char text[16];

	strcpy(text, name);
	return (struct ca_region){ .kind = CA_REGION_FUNCTION, .name = text };
}

static int set_up(void **state)
{
	(void)state;
	memset(&steady, 0, sizeof steady);
	inserted = 0.009;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_steady_fini(&steady);
	return 0;
}

static void add(const char *name, unsigned percent, bool whole, double period, double work)
{
	struct ca_region r = region(name);

	ca_steady_add(&steady, &r,
		      &(struct ca_steady_window){ .percent = percent,
						  .whole = whole,
						  .cost = 100 * period,
						  .visits = 100,
						  .work = 100 * work,
						  .inserted = inserted * percent });
}

/* Experiments inside runs, at 0, 25 and 50 %, whose time and work per visit vary by this share. */
static void add_windows(const char *name, double period, double work, double share)
{
	for (int i = 0; i < 4; i++) {
		double off = i % 2 ? 1 + share : 1 - share;

		add(name, 0, false, 1000, 2000);
		add(name, 25, false, (1000 + period) / 2 * off, (2000 + work) / 2 * off);
		add(name, 50, false, period * off, work * off);
	}
	add(name, 0, false, 1000, 2000);
}

static void assert_wants(const char *name, unsigned percent)
{
	unsigned at = 101;
	const struct ca_region *r = ca_steady_wants(&steady, &at);

	if (!name) {
		assert_null(r);
		return;
	}
	assert_non_null(r);
	assert_string_equal(r->name, name);
	assert_int_equal(at, percent);
}

static void assert_next(const char *name, unsigned percent)
{
	struct ca_region r = region(name);

	assert_wants(name, 0);
	assert_int_equal(ca_steady_next(&steady, &r), percent);
}

static void test_doubt(void **state)
{
	static const struct {
		double work, share;
		bool doubt;
	} cases[] = {
		{ 2000, 0, false },   { 1500, 0, true },     { 1500, 0.02, true },
		{ 1980, 0, false },   { 1980, 0.01, false }, { 2600, 0, true }, /* the zeros live on it */
		{ 1700, 0.5, false },                                           /* by chance */
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		set_up(state);
		add_windows("f", 600, cases[i].work, cases[i].share);
		if (!ca_steady_wants(&steady, &(unsigned){ 0 }) == cases[i].doubt)
			fail_msg("case %zu", i);
		tear_down(state);
	}
}

/* There is none without enough of it between two at 0 %, of one run, nor of what is not known. */
static void test_too_few(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++)
		add("f", 50, false, 500, 1500);
	add("f", 0, false, 1000, 2000);
	assert_wants(NULL, 0);
	for (int i = 0; i < 9; i++)
		add("f", 50, false, 500, 1500);
	ca_steady_begin(&steady);
	add("f", 0, false, 1000, 2000);
	add("f", 0, false, 1000, 0);
	add("f", 0, true, 1000, 2000);
	add("f", 0, false, 0, 2000);
	assert_wants(NULL, 0);
	for (int i = 0; i < 3; i++)
		add("f", 50, false, 500, 1500 + i);
	add("f", 0, false, 1000, 2000);
	assert_wants(NULL, 0);
	for (int i = 0; i < 3; i++)
		add("f", 50, false, 500, 1500 + i);
	assert_wants(NULL, 0);
	add("f", 0, false, 1000, 2001);
	assert_wants("f", 50);
}

/* Few experiments, each at another speedup, and what is lived on is in proportion to that: no chance (it once passed for
 * it, and a consumer behind 4,096 places was worth 49.6 +- 0.9 for 15). Nothing is decided until there are so many. */
static void test_proportion(void **state)
{
	static const unsigned percent[] = { 50, 25, 75 };

	(void)state;
	for (int i = 0; i < 2; i++) /* in a run without any at 0 % */
		add("second", 50, false, 500, 1500);
	ca_steady_end(&steady);
	for (int i = 0; i < 3; i++) {
		add("first", 0, false, 1000, 2000 + 20 * (i % 2));
		add("first", 50, false, 1000, 2000 + 20 * (i % 2));
		assert_int_equal(ca_steady_is_seen(&steady), i < 2);
		add("second", percent[i], false, 1000 - 10 * percent[i], 2000 * exp(-0.006 * percent[i]));
	}
	assert_wants(NULL, 0);
	assert_false(ca_steady_is_seen(&steady));
	add("first", 0, false, 1000, 2000);
	assert_true(ca_steady_is_seen(&steady));
	add("first", 50, false, 1000, 2000);
	add("first", 0, false, 1000, 2000);
	assert_wants("second", 75);
}

/* Runs with few experiments, one of which is at 0 %: those next to it, before or after it, are compared with it alone. */
static void test_next_to_one(void **state)
{
	(void)state;
	for (int i = 0; i < 6; i++) {
		ca_steady_begin(&steady);
		add("other", 50, false, 1000, 2500); /* far from it */
		add(i % 2 ? "f" : "g", 50, false, 500, 1500 + i);
		add("f", 0, false, 1000, 2000 + i);
		add(i % 2 ? "g" : "f", 50, false, 500, 1500 - i);
		add("other", 50, false, 1000, 2500);
		ca_steady_end(&steady);
		if (i < 1)
			assert_wants(NULL, 0);
	}
	assert_wants("g", 50); /* the first that was tried so */
	assert_int_equal(steady.region[0].all.n, 0);
	assert_int_equal(steady.region[1].all.n, 6);
	assert_int_equal(steady.region[2].all.n, 6);
}

/* Each visit is dearer than the one before, and experiments with some code happen to lie late. */
static void test_places(void **state)
{
	double work = 1000;

	(void)state;
	for (int i = 0; i < 12; i++) {
		add("f", 0, false, work / 2, work);
		work *= 1.03;
		add(i < 6 ? "early" : "late", 50, false, work / 3, work * (i % 2 ? 1.01 : 0.99));
		work *= 1.03;
	}
	add("f", 0, false, work / 2, work);
	assert_wants(NULL, 0);
}

/* Next to nothing was inserted: that cannot have changed so much. */
static void test_little_inserted(void **state)
{
	(void)state;
	inserted = 0.001;
	add_windows("f", 980, 1800, 0.01);
	assert_wants(NULL, 0);
}

/* A dozen codes are looked at after each of a dozen experiments: what a visit costs varies by a fifth, and none of
 * them lives on what is stored. */
static void test_chance(void **state)
{
	enum { SWEEPS = 200, CODES = 8, ROUNDS = 12 };
	struct ca_rng rng;
	unsigned doubts = 0;

	ca_rng_init(&rng, 3);
	for (unsigned sweep = 0; sweep < SWEEPS; sweep++) {
		set_up(state);
		for (unsigned i = 0; i < ROUNDS * CODES; i++) {
			char name[] = { (char)('a' + i % CODES), '\0' };

			if (i % 7 == 0) {
				ca_steady_end(&steady);
				ca_steady_begin(&steady);
			}
			if (i % 4 == 0)
				add("a", 0, false, 1000, 2000 * exp(0.7 * (ca_rng_unit(&rng) - 0.5)));
			add(name, 50, false, 800, 2000 * exp(0.7 * (ca_rng_unit(&rng) - 0.5)));
		}
		doubts += ca_steady_is_open(&steady);
		tear_down(state);
	}
	print_message("%u doubts in %d sweeps\n", doubts, SWEEPS);
	assert_in_range(doubts, 0, SWEEPS / 50);
}

/* No time for whole runs: then it is what experiments inside say. */
static void test_left(void **state)
{
	(void)state;
	add_windows("f", 500, 1500, 0.01);
	assert_true(ca_steady_is_open(&steady));
	steady.left = true;
	assert_false(ca_steady_is_open(&steady));
	assert_wants(NULL, 0);
}

/* Whole runs say otherwise: then it is they that are wanted, of such regions in turn. */
static void test_not_steady(void **state)
{
	(void)state;
	add_windows("f", 500, 1500, 0.01);
	add_windows("g", 500, 1500, 0.01);
	add_windows("calm", 800, 2000, 0.01);
	assert_wants("f", 50);
	add("f", 0, true, 1000, 0);
	assert_wants("f", 50);
	add("f", 50, true, 850, 0);
	assert_wants("f", 50); /* one pair may say so by chance */
	add("f", 0, true, 1000, 0);
	add("f", 50, true, 850, 0);
	assert_wants("g", 50);
	add("g", 0, true, 1000, 0);
	add("g", 50, true, 840, 0);
	add("g", 0, true, 1000, 0);
	add("g", 50, true, 840, 0);
	assert_next("f", 50);
	add("f", 25, true, 850, 0);
	assert_next("g", 50);
	/* of what is known well enough no more are wanted, and others go on inside runs */
	steady.region[0].settled = true;
	assert_wants("g", 0);
	assert_true(ca_steady_is_open(&steady));
	steady.region[1].settled = true;
	assert_wants(NULL, 0);
	assert_false(ca_steady_is_open(&steady));
	steady.region[0].settled = steady.region[1].settled = false;
	for (unsigned i = 2; i < 4; i++) {
		assert_true(ca_steady_is_open(&steady)); /* an interval needs some more */
		add("f", 25, true, 850, 0);
		add("g", 50, true, 850, 0);
	}
	assert_false(ca_steady_is_open(&steady));
	assert_next("g", 0);
}

/* The first pair says otherwise, and the second that this was chance. */
static void test_chance_of_a_pair(void **state)
{
	(void)state;
	add_windows("f", 700, 1500, 0.01);
	add("f", 0, true, 1000, 0);
	add("f", 50, true, 800, 0);
	assert_wants("f", 50);
	add("f", 0, true, 1000, 0);
	add("f", 50, true, 620, 0);
	assert_wants(NULL, 0);
	assert_false(ca_steady_is_open(&steady));
}

/* Whole runs say the same (threads spin while they wait): no more doubts. */
static void test_steady(void **state)
{
	(void)state;
	add_windows("f", 700, 1500, 0.01);
	assert_wants("f", 50);
	assert_true(ca_steady_is_open(&steady));
	add("f", 0, true, 1010, 0);
	add("f", 50, true, 730, 0);
	assert_wants(NULL, 0);
	assert_false(ca_steady_is_open(&steady));
	add_windows("f", 700, 1400, 0.01);
	assert_wants(NULL, 0);
}

static void ask(const char *name)
{
	struct ca_region r = region(name);

	ca_steady_ask(&steady, &r);
}

static bool is_coarse(const char *name)
{
	struct ca_region r = region(name);

	return ca_steady_is_coarse(&steady, &r);
}

/* What varies too much inside runs is asked of whole runs, and not for ever. */
static void test_coarse(void **state)
{
	(void)state;
	add_windows("f", 700, 2000, 0.01);
	add_windows("g", 700, 2000, 0.01);
	assert_false(is_coarse("f"));
	ask("f");
	assert_true(is_coarse("f"));
	assert_false(is_coarse("g"));
	for (int i = 0; i < 4; i++) /* not enough of it inside runs for a doubt, and there will be no more */
		add("late", 50, false, 500, 1500);
	assert_false(ca_steady_is_seen(&steady));
	ask("late");
	assert_true(ca_steady_is_seen(&steady));
	for (int i = 0; i < 12; i++)
		add("late", 50, true, 500, 0);
	for (unsigned i = 0; i < 12; i++) {
		assert_next("f", i < 4 ? 50 : 0);
		assert_int_equal(ca_steady_is_open(&steady), i < 4); /* as many as an interval needs */
		add("f", 0, true, 1010, 0);
		add("f", 50, true, 730, 0);
	}
	assert_wants(NULL, 0);
}

/* Enough are as many as tell what is asked for; and what is in doubt, or known to be wrong, stays so. */
static void test_coarse_is_settled(void **state)
{
	(void)state;
	ask("f");
	assert_wants("f", 0);
	steady.region[0].settled = true;
	assert_wants(NULL, 0);
	add_windows("g", 600, 1500, 0);
	assert_wants("g", 50);
	ask("g");
	assert_false(is_coarse("g"));
	assert_wants("g", 50);
}

static void limit(const char *name, unsigned percent)
{
	struct ca_region r = region(name);

	ca_steady_limit(&steady, &r, percent);
}

/* What took too long is not tried again: further runs are at smaller speedups, of which experiments inside tell, too. */
static void test_too_long(void **state)
{
	(void)state;
	ask("f");
	add("f", 100, false, 100, 2000);
	add("f", 25, false, 900, 2000);
	assert_next("f", 100);
	for (unsigned i = 0; i < 4; i++)
		add("f", 25, true, 900, 2000);
	assert_next("f", 0);
	limit("f", 100);
	assert_next("f", 25);
	add_windows("g", 600, 1500, 0);
	assert_wants("g", 50);
	limit("g", 50);
	limit("g", 100);
	assert_wants("g", 25);
	assert_true(ca_steady_is_open(&steady));
	limit("g", 25);
	assert_next("f", 25); /* others go on */
	assert_false(ca_steady_is_open(&steady));
	limit("f", 25);
	assert_wants(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_doubt),
		cmocka_unit_test_setup_teardown(test_too_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_proportion, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_next_to_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_little_inserted, set_up, tear_down),
		cmocka_unit_test(test_chance),
		cmocka_unit_test_setup_teardown(test_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_steady, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_chance_of_a_pair, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_steady, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_coarse, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_coarse_is_settled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_long, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

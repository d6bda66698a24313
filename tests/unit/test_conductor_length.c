/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_length.c: experiments as long as visits take. */
#include "causal/conductor/conductor_points_parts.h"
#include "causal/conductor/conductor_state.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

enum { MS = 1000000 };
static struct ca_settings settings = { .experiment_min = 0.25, .warm_up = 80 };
static struct ca_conductor c;

static void start(double length, double warm_up)
{
	c = (struct ca_conductor){ .set = &settings, .length = length * MS, .warm_up = warm_up * MS };
}

static void test_adapt(void **state)
{
	static const struct {
		double length, warm_up; /* ms, before */
		unsigned ms;            /* of the experiment */
		struct ca_visits visits[2];
		double next, next_warm_up;
	} cases[] = {
		{ 250, 80, 250, { { .delta = 250, .span = 9 } }, 250, 80 },
		{ 250, 80, 300, { { .delta = 10, .span = 9 } }, 300, 80 }, /* ten, known by time */
		{ 250, 80, 300, { { .delta = 5, .span = 9 } }, 600, 120 },
		{ 250, 80, 300, { { .delta = 20 } }, 600, 80 }, /* forty, only counted */
		{ 250, 80, 300, { { .delta = 40 } }, 300, 80 },
		/* the busiest point counts */
		{ 250, 80, 300, { { .delta = 9 }, { .delta = 12, .span = 9 } }, 250, 80 },
		/* not by more than four times at once; never for ever */
		{ 250, 80, 250, { { .delta = 1, .span = 9 } }, 1000, 320 },
		{ 250, 80, 250, { { .delta = 0 } }, 1000, 320 },
		{ 7000, 2500, 7000, { { .delta = 1 } }, 8000, 2560 },
		/* back, where it is far too long */
		{ 900, 300, 900, { { .delta = 31, .span = 9 } }, 900.0 * 10 / 31, 80 },
		{ 900, 300, 900, { { .delta = 29, .span = 9 } }, 900, 80 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		start(cases[i].length, cases[i].warm_up);
		memcpy(c.e.visits, cases[i].visits, sizeof cases[i].visits);
		c.e.record.visit_count = 2;
		c.e.record.end = cases[i].ms * (uint64_t)MS;
		ca_conductor_length_adapt(&c);
		if ((int)(c.length / 1000) != (int)(cases[i].next * 1000) ||
		    (int)(c.warm_up / 1000) != (int)(cases[i].next_warm_up * 1000))
			fail_msg("case %zu: %g, %g", i, c.length / MS, c.warm_up / MS);
	}
}

/* Before the first one, what the run has seen so far. */
static void test_first(void **state)
{
	size_t size = (sizeof(struct ca_session) + sizeof(struct ca_slot) + 4095) / 4096 * 4096;
	struct ca_session *session = aligned_alloc(4096, size);
	struct ca_point_choice choice = { .stage = CA_POINT_STAGE_CHOSEN, .since = 5 + 320 * (uint64_t)MS };

	(void)state;
	assert_non_null(session);
	for (unsigned timed = 0; timed < 2; timed++) {
		memset(session, 0, size);
		atomic_store(&session->slots_used, 1);
		atomic_store(&session->points_used, 2);
		atomic_store(&session->slot[0].count[0], 1);
		atomic_store(&session->slot[0].count[1], 8);
		atomic_store(&session->slot[0].last[1], timed * 9);
		start(250, 80);
		c.session = session;
		c.started = 5;
		ca_conductor_length_first(&c, 5 + 400 * (uint64_t)MS);
		assert_int_equal(c.length / MS, timed ? 500 : 1000);
		assert_int_equal(c.warm_up / MS, 100);
	}
	/* the point was found after 320 ms: eight visits in 80 */
	start(250, 80);
	c.session = session;
	c.points = &choice;
	ca_conductor_length_first(&c, 5 + 400 * (uint64_t)MS);
	assert_int_equal(c.length / MS, 250);
	assert_int_equal(c.warm_up / MS, 80);
	free(session);
}

/* One thread that does all has no queue that a warm-up is for. */
static void test_alone(void **state)
{
	struct ca_point_choice choice = { .needless = true };

	(void)state;
	start(250, 80);
	c.points = &choice;
	ca_conductor_length_first(&c, 400 * (uint64_t)MS);
	assert_int_equal(c.length / MS, 250);
	assert_int_equal(c.warm_up / MS, 10);
	ca_conductor_length_adapt(&c);
	assert_int_equal(c.warm_up / MS, 10);
	/* as long as it is so */
	choice.needless = false;
	c.e.visits[0] = (struct ca_visits){ .delta = 250, .span = 9 };
	c.e.record.visit_count = 1;
	c.e.record.end = 250 * (uint64_t)MS;
	ca_conductor_length_adapt(&c);
	assert_int_equal(c.warm_up / MS, 80);
	/* who says how long it is to be gets that */
	settings.origin[CA_SETTING_WARM_UP] = CA_ORIGIN_COMMAND;
	choice.needless = true;
	ca_conductor_length_first(&c, 400 * (uint64_t)MS);
	assert_int_equal(c.warm_up / MS, 80);
	settings.origin[CA_SETTING_WARM_UP] = CA_ORIGIN_DEFAULT;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_adapt),
		cmocka_unit_test(test_first),
		cmocka_unit_test(test_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

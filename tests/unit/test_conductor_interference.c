/* SPDX-License-Identifier: MIT */
/* causal/conductor/interference.c: were the run's threads kept from running by other programs? */
#include "causal/conductor/interference.h"
#include "tests/unit/unit.h"

#define MS UINT64_C(1000000)

/* Over one second: what all CPUs did, what the run and the driver used, what its threads waited. */
struct disturb_case {
	const char *what;
	uint64_t busy, own, queue; /* ms */
	bool known, queue_known, expected;
};

static const struct disturb_case cases[] = {
	{ "an idle machine", 0, 0, 0, true, true, false },
	{ "our own load", 2000, 2000, 900, true, true, false },
	{ "others on an idle CPU", 1900, 1000, 0, true, true, false },
	{ "others, and we waited", 1900, 1000, 500, true, true, true },
	{ "just enough others", 1101, 1000, 500, true, true, true },
	{ "not quite enough others", 1099, 1000, 500, true, true, false },
	{ "just enough waiting", 1500, 1000, 31, true, true, true },
	{ "not quite enough waiting", 1500, 1000, 29, true, true, false },
	{ "ticks are coarse: more own time than all", 990, 1000, 500, true, true, false },
	{ "blind: half a core of others", 1501, 1000, 0, true, false, true },
	{ "blind: less", 1499, 1000, 999, true, false, false },
	{ "nothing is known", 1900, 1000, 500, false, true, false },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct disturb_case *c = &cases[i];
		struct ca_load a = { 500 * MS, 70000 * MS, 900 * MS, 40 * MS, true, true }, b = a;

		b.time += 1000 * MS;
		b.busy += c->busy * MS;
		b.own += c->own * MS;
		b.queue += c->queue * MS;
		b.known = c->known;
		b.queue_known = c->queue_known;
		if (ca_interference_seen(&a, &b) != c->expected)
			fail_msg("%s", c->what);
		a.known = c->known; /* it is enough that one of the two readings lacks it */
		a.queue_known = c->queue_known;
		b.known = b.queue_known = true;
		if (ca_interference_seen(&a, &b) != c->expected)
			fail_msg("%s, from the start", c->what);
	}
}

/* The limits are shares of the time between the readings. */
static void test_shares(void **state)
{
	struct ca_load a = { .known = true, .queue_known = true }, b = a;

	(void)state;
	b.time = 100 * MS;
	b.busy = 20 * MS;
	b.queue = 10 * MS;
	assert_true(ca_interference_seen(&a, &b));
	b.time = 300 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

/* A process of the run ended in between, and its time and its threads went with it. */
static void test_shrinks(void **state)
{
	struct ca_load a = { 0, 0, 5000 * MS, 5000 * MS, true, true }, b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 1000 * MS;
	b.own = 4000 * MS;
	b.queue = 4000 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

static void test_no_time(void **state)
{
	struct ca_load a = { 100, 0, 0, 0, true, true }, b = { 100, 50 * MS, 0, 50 * MS, true, true };

	(void)state;
	assert_false(ca_interference_seen(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

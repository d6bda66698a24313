/* SPDX-License-Identifier: MIT */
/* causal/conductor/interference.c: were the run's threads kept from running by other programs? */
#include "causal/conductor/interference.h"
#include "tests/unit/unit.h"

#define MS UINT64_C(1000000)

/* Over one second on two CPUs: what all CPUs did, what the run used (the driver: nothing), what its threads
 * waited for a CPU. */
static const struct disturb_case {
	const char *what;
	uint64_t busy, run, queue; /* ms */
	bool known, queue_known, expected;
} cases[] = {
	{ "an idle machine", 0, 0, 0, true, true, false },
	{ "our own load", 2000, 2000, 900, true, true, false },
	{ "others on an idle CPU", 1900, 1000, 0, true, true, false },
	{ "a server and its load, which share the CPUs", 1950, 900, 100, true, true, false },
	{ "one thread that gets half of a CPU", 2000, 500, 500, true, true, true },
	{ "two threads and one of others", 2000, 1333, 667, true, true, true },
	{ "eight threads and one of others", 2000, 1777, 6223, true, true, false },
	{ "eight threads and four of others", 2000, 1333, 6667, true, true, true },
	{ "we waited for each other while others did little", 1150, 1000, 900, true, true, false },
	{ "just enough waiting", 2000, 790, 210, true, true, true },
	{ "not quite enough waiting", 2000, 810, 190, true, true, false },
	{ "hardly any others", 1099, 1000, 500, true, true, false },
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
		struct ca_load a = { .time = 500 * MS,
				     .busy = 70000 * MS,
				     .run = 900 * MS,
				     .own = 950 * MS,
				     .queue = 40 * MS,
				     .cpus = 2,
				     .known = true,
				     .queue_known = true },
			       b = a;

		b.time += 1000 * MS;
		b.busy += c->busy * MS;
		b.run += c->run * MS;
		b.own += c->run * MS;
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

/* On one CPU, two threads wait for each other half of the time, and for nobody else. */
static void test_one_cpu(void **state)
{
	struct ca_load a = { .known = true, .queue_known = true, .cpus = 1 }, b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 2000 * MS;
	b.run = b.own = b.queue = 1000 * MS;
	assert_false(ca_interference_seen(&a, &b));
	b.run = b.own = 600 * MS;
	assert_true(ca_interference_seen(&a, &b));
}

/* A process of the run ended in between, and its time and its threads went with it. */
static void test_shrinks(void **state)
{
	struct ca_load a = { .run = 5000 * MS,
			     .own = 5000 * MS,
			     .queue = 5000 * MS,
			     .known = true,
			     .queue_known = true },
		       b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 1000 * MS;
	b.own = b.run = 4000 * MS;
	b.queue = 4000 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

static void test_no_time(void **state)
{
	struct ca_load a = { .time = 100, .known = true, .queue_known = true }, b = a;

	(void)state;
	b.busy = b.queue = 50 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_shrinks),
		cmocka_unit_test(test_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

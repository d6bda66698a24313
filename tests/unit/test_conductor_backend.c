/* SPDX-License-Identifier: MIT */
/* causal/conductor/backend.c: what a switch log costs, measured with two threads of our own. */
#include "causal/conductor/backend.h"
#include "core/clock.h"
#include "tests/unit/files.h"
#include "tests/unit/unit.h"
#include <sched.h>
#include <string.h>

/* Nothing of it stays, and it is done once. */
static void test_switch_cost(void **state)
{
	cpu_set_t before, after;
	unsigned files = open_files();
	uint64_t from;
	uint32_t cost;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	cost = ca_backend_switch_cost();
	assert_in_range(cost, 0, 50000);
	assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
	assert_memory_equal(&before, &after, sizeof before);
	assert_int_equal(open_files(), files);
	from = ca_clock_now();
	for (int i = 0; i < 100; i++)
		assert_int_equal(ca_backend_switch_cost(), cost);
	assert_in_range(ca_clock_now() - from, 0, 20000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_switch_cost) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

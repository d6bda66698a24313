/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_open.c: the pool of speedups that a run draws from. */
#include "causal/conductor/conductor_open.c"
#include "tests/unit/unit.h"

/* Each step up to 100 once, then a quarter as many zeros, and one at least. */
static void test_pool(void **state)
{
	static const struct {
		int step;
		size_t steps, zeros;
	} cases[] = { { 1, 100, 25 }, { 3, 33, 9 }, { 5, 20, 5 }, { 10, 10, 3 },
		      { 25, 4, 1 },   { 30, 3, 1 }, { 100, 1, 1 } };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_settings settings = { .speedup_divisions = cases[i].step };
		struct ca_conductor c = { .set = &settings };
		struct ca_err err;

		assert_int_equal(open_pool(&c, &err), CA_OK);
		assert_int_equal(c.pool.count, cases[i].steps + cases[i].zeros);
		for (size_t k = 0; k < c.pool.count; k++)
			assert_int_equal(c.pool.percent[k],
					 k < cases[i].steps ? (k + 1) * (size_t)cases[i].step : 0);
		ca_speedups_fini(&c.pool);
	}
}

/* Numbers that are given are taken as they are. */
static void test_given_pool(void **state)
{
	static unsigned given[] = { 50, 0, 50 };
	struct ca_settings settings = { .speedup_divisions = 5, .fixed_speedup = { given, 3 } };
	struct ca_conductor c = { .set = &settings };
	struct ca_err err;

	(void)state;
	assert_int_equal(open_pool(&c, &err), CA_OK);
	assert_int_equal(c.pool.count, 3);
	assert_memory_equal(c.pool.percent, given, sizeof given);
	assert_ptr_not_equal(c.pool.percent, given);
	ca_speedups_fini(&c.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pool), cmocka_unit_test(test_given_pool) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The estimator without memory: whichever piece is missing, it says so and leaves nothing behind. */
#include "tests/unit/unit.h"
#include <stdlib.h>

static size_t asked, missing; /* pieces so far; the number of the one that is not there */

static void *scarce_calloc(size_t n, size_t size)
{
	return asked++ == missing ? NULL : calloc(n, size);
}

#define calloc scarce_calloc
#include "causal/results/estimate.c"
#include "causal/results/estimate_baseline.c"
#include "causal/results/estimate_boot.c"
#undef calloc

enum { EXPERIMENTS = 60 };

static void test_scarce(void **state)
{
	struct ca_observation list[EXPERIMENTS];
	struct ca_estimate_options options = { .seed = 7, .replicates = 50 };
	struct ca_estimates e;

	(void)state;
	for (uint32_t i = 0; i < EXPERIMENTS; i++)
		list[i] = (struct ca_observation){ .region = 1,
						   .speedup = i % 2 ? 500000 : 0,
						   .run = i / 10,
						   .time = i,
						   .cost = 1,
						   .visits = i % 2 ? 125 : 100 };
	for (missing = 0; missing < 1000; missing++) {
		enum ca_status status;

		memset(&e, 0xff, sizeof e);
		asked = 0;
		status = ca_estimate(list, EXPERIMENTS, &options, &e);
		if (status == CA_OK)
			break;
		assert_int_equal(status, CA_ERR_NOMEM);
		assert_null(e.cell);
		assert_null(e.curve);
		assert_int_equal(e.cells, 0);
		assert_int_equal(e.curves, 0);
	}
	assert_int_equal(missing, asked); /* each was missing once */
	assert_in_range(asked, 20, 999);
	assert_int_equal(e.cells, 2);
	assert_true(fabs(e.cell[1].effect - 20) < 1e-9);
	ca_estimate_fini(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_scarce) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/results/units.c: which points count no unit of work. */
#include "causal/results/units.h"
#include "tests/unit/unit.h"
#include <math.h>

static void test_units(void **state)
{
	static const struct {
		const char *what;
		struct ca_units_run run[8]; /* up to the first without visits */
		bool refuted;
	} cases[] = {
		{ "polls",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { true, 837, 1.31 }, { false, 930, 1.18 } },
		  true },
		{ "too few at 0 %",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { false, 930, 1.18 } },
		  false },
		{ "too few above",
		  { { true, 834, 1.33 }, { false, 656, 0.82 }, { true, 837, 1.31 }, { false, 840, 1.18 } },
		  false },
		{ "most are alike",
		  { { true, 100, 1.3 },
		    { true, 100, 1.3 },
		    { false, 90, 1.2 },
		    { false, 90, 1.2 },
		    { false, 100, 1.1 },
		    { false, 100, 1.1 },
		    { false, 100, 1 } },
		  false },
		{ "a unit",
		  { { true, 834, 1.33 }, { false, 830, 0.82 }, { true, 837, 1.31 }, { false, 840, 1.18 } },
		  false },
		{ "a given time",
		  { { true, 834, 2 }, { false, 1200, 2.01 }, { true, 837, 2.02 }, { false, 930, 2.03 } },
		  false },
		{ "a given time, and some rest",
		  { { true, 834, 2 },
		    { false, 1200, 2.08 },
		    { true, 837, 2.03 },
		    { false, 930, 2.05 },
		    { false, 1210, 1.97 } },
		  false },
		{ "runs that are unlike",
		  { { true, 700, 1.1 }, { false, 1040, 1 }, { true, 900, 1.4 }, { false, 600, 0.8 } },
		  false },
		{ "nothing", { { true, 0, 1 }, { true, 0, 1 } }, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		size_t n = 0;

		while (n < 8 && cases[i].run[n].seconds > 0)
			n++;
		if (ca_units_are_refuted(cases[i].run, n) != cases[i].refuted)
			fail_msg("%s", cases[i].what);
	}
	assert_false(ca_units_are_refuted(NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_units) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/clock.c: the cheap clock tells the same time as the other one. */
#include "core/clock.h"
#include "tests/unit/unit.h"

static void test_fast(void **state)
{
	enum { FAR = 20000 }; /* ns; by so much the two may differ */
	struct ca_clock_fast fast = { 0 };
	uint64_t begin = ca_clock_now(), before, time, after;

	(void)state;
	do {
		before = ca_clock_now();
		time = ca_clock_fast_now(&fast);
		after = ca_clock_now();
		assert_true(time + FAR > before && time < after + FAR);
	} while (after - begin < CA_NS_PER_S / 50);
}

/* What it knew long ago, it does not trust. */
static void test_late(void **state)
{
	struct ca_clock_fast fast = { 0 };
	uint64_t begin = ca_clock_now(), before;

	(void)state;
	while (ca_clock_fast_now(&fast) - begin < CA_NS_PER_S / 500)
		;
	fast.scale *= 3;
	for (begin = ca_clock_now(); ca_clock_now() - begin < CA_NS_PER_S / 200;)
		;
	before = ca_clock_now();
	assert_true(ca_clock_fast_now(&fast) >= before);
	assert_true(fast.fresh == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fast),
		cmocka_unit_test(test_late),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

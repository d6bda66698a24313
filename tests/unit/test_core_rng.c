/* SPDX-License-Identifier: MIT */
/* core/rng.c: the published sequences, and uniform draws. */
#include "core/rng.h"
#include "tests/unit/unit.h"

/* First outputs of xoshiro256** from the state 1, 2, 3, 4 (by hand from the paper's recurrence:
 * 2 * 5 = 10, rotated by 7 is 1280, times 9 is 11520; then s[1] is 0). */
static void test_xoshiro(void **state)
{
	struct ca_rng rng = { { 1, 2, 3, 4 } };

	(void)state;
	assert_int_equal(ca_rng_next(&rng), 11520);
	assert_int_equal(ca_rng_next(&rng), 0);
	assert_int_equal(ca_rng_next(&rng), 1509978240);
	assert_int_equal(ca_rng_next(&rng), UINT64_C(1215971899390074240));
}

/* splitmix64's published sequence for the seed 1234567 becomes the state. */
static void test_seeding(void **state)
{
	struct ca_rng rng;

	(void)state;
	ca_rng_init(&rng, 1234567);
	assert_int_equal(rng.s[0], UINT64_C(6457827717110365317));
	assert_int_equal(rng.s[1], UINT64_C(3203168211198807973));
	assert_int_equal(rng.s[2], UINT64_C(9817491932198370423));
	assert_int_equal(rng.s[3], UINT64_C(4593380528125082431));
}

static void test_same_seed_same_numbers(void **state)
{
	struct ca_rng a, b, c;
	unsigned same = 0;

	(void)state;
	ca_rng_init(&a, 0);
	ca_rng_init(&b, 0);
	ca_rng_init(&c, 1);
	for (unsigned i = 0; i < 1000; i++) {
		uint64_t x = ca_rng_next(&a);

		assert_int_equal(x, ca_rng_next(&b));
		same += x == ca_rng_next(&c);
	}
	assert_int_equal(same, 0);
}

static void test_below(void **state)
{
	enum { BOUND = 7, DRAWS = 70000 };
	unsigned count[BOUND] = { 0 };
	struct ca_rng rng;

	(void)state;
	ca_rng_init(&rng, 42);
	assert_int_equal(ca_rng_below(&rng, 0), 0);
	assert_int_equal(ca_rng_below(&rng, 1), 0);
	for (unsigned i = 0; i < DRAWS; i++) {
		uint64_t x = ca_rng_below(&rng, BOUND);

		assert_true(x < BOUND);
		count[x]++;
	}
	/* expected 10000 each, standard deviation 93; the seed is fixed, so this never wavers */
	for (unsigned i = 0; i < BOUND; i++)
		assert_in_range(count[i], 9500, 10500);
	/* a bound above half of the range: a plain remainder would favour the low quarter */
	for (unsigned i = 0, low = 0; i < 30000; i++) {
		low += ca_rng_below(&rng, UINT64_C(3) << 62) < UINT64_C(1) << 62;
		if (i == 29999)
			assert_in_range(low, 9500, 10500);
	}
}

static void test_unit(void **state)
{
	struct ca_rng rng;
	double sum = 0;

	(void)state;
	ca_rng_init(&rng, 42);
	for (unsigned i = 0; i < 100000; i++) {
		double x = ca_rng_unit(&rng);

		assert_true(x >= 0 && x < 1);
		sum += x;
	}
	assert_true(sum > 49500 && sum < 50500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_xoshiro),
		cmocka_unit_test(test_seeding),
		cmocka_unit_test(test_same_seed_same_numbers),
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/numbers.c: lists of numbers and ranges. */
#include "core/numbers.h"
#include "tests/unit/unit.h"

static void test_good(void **state)
{
	static const struct {
		const char *text;
		uint32_t in, out;
	} cases[] = {
		{ "0", 0, 1 },
		{ "3,5", 5, 4 },
		{ "2-4", 3, 5 },
		{ "2-4", 2, 1 },
		{ "0,2-4;9 11", 11, 10 },
		{ " 7 , 8-8 ", 8, 9 },
		{ "2147483647", 2147483647, 0 },
	};
	struct ca_err err;
	uint32_t first, last;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(ca_numbers_check(cases[i].text, 0, INT32_MAX, &err), CA_OK);
		assert_true(ca_numbers_hold(cases[i].text, cases[i].in));
		assert_false(ca_numbers_hold(cases[i].text, cases[i].out));
	}
	assert_true(ca_numbers_hold("", 12)); /* all */
	assert_true(ca_numbers_range("1,4-6", 1, &first, &last));
	assert_int_equal(first, 4);
	assert_int_equal(last, 6);
	assert_false(ca_numbers_range("1,4-6", 2, &first, &last));
	assert_false(ca_numbers_range("", 0, &first, &last));
}

static void test_bad(void **state)
{
	static const char *const cases[] = {
		"x", "1x", "-1", "3-1", "1-", "1--2", "2147483648", "1:2", "0x1"
	};
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		assert_int_equal(ca_numbers_check(cases[i], 0, INT32_MAX, &err), CA_ERR_USAGE);
}

static void test_beyond(void **state)
{
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_numbers_check("1,2-4", 1, 4, &err), CA_OK);
	assert_int_equal(ca_numbers_check("1,2-5", 1, 4, &err), CA_ERR_USAGE);
	assert_string_equal(err.text, "'1,2-5': there are 1 to 4");
	assert_int_equal(ca_numbers_check("2,0", 1, INT32_MAX, &err), CA_ERR_USAGE);
	assert_string_equal(err.text, "'2,0': numbers begin with 1");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
					    cmocka_unit_test(test_beyond) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

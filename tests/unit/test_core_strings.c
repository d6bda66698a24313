/* SPDX-License-Identifier: MIT */
/* core/strings.c: each string once, and "" always. */
#include "core/strings.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>

static void test_empty(void **state)
{
	struct ca_strings strings = { 0 };
	uint32_t none = ca_strings_put(&strings, NULL);

	(void)state;
	assert_string_equal(ca_strings_get(&strings, none), "");
	assert_int_equal(ca_strings_put(&strings, ""), none);
	assert_int_not_equal(ca_strings_put(&strings, "a"), none);
	assert_int_equal(ca_strings_put(&strings, NULL), none);
	ca_strings_free(&strings);
	assert_string_equal(ca_strings_get(&strings, 0), "");
	assert_string_equal(ca_strings_get(&strings, 1), "");
}

/* "" has its byte, be it the first string or not. */
static void test_zero(void **state)
{
	struct ca_strings strings = { 0 };

	(void)state;
	assert_int_equal(ca_strings_put(&strings, ""), 0);
	assert_int_equal(strings.text.n, 1);
	assert_int_equal(ca_strings_put(&strings, "first"), 1);
	ca_strings_free(&strings);
	assert_int_equal(ca_strings_put(&strings, "first"), 1);
	assert_int_equal(((char *)strings.text.at)[0], '\0');
	assert_int_equal(strings.text.n, 1 + sizeof "first");
	ca_strings_free(&strings);
}

static void test_once(void **state)
{
	struct ca_strings strings = { 0 };
	uint32_t offset[5000];
	char text[32];
	size_t n;

	(void)state;
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "name %d of some length", i);
		offset[i] = ca_strings_put(&strings, text);
		assert_int_not_equal(offset[i], 0);
	}
	n = strings.text.n;
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "name %d of some length", i);
		assert_int_equal(ca_strings_add(&strings, text, strlen(text)), offset[i]);
		assert_string_equal(ca_strings_get(&strings, offset[i]), text);
	}
	assert_int_equal(strings.text.n, n);
	assert_string_equal(ca_strings_get(&strings, (uint32_t)n), "");
	assert_false(strings.failed);
	ca_strings_free(&strings);
}

/* Beginnings of each other, and a part of a longer text. */
static void test_length(void **state)
{
	struct ca_strings strings = { 0 };
	uint32_t abc = ca_strings_put(&strings, "abcdefghi"), ab;

	(void)state;
	ab = ca_strings_add(&strings, "abcdefghi", 8);
	assert_int_not_equal(ab, abc);
	assert_string_equal(ca_strings_get(&strings, ab), "abcdefgh");
	assert_int_equal(ca_strings_put(&strings, "abcdefgh"), ab);
	assert_int_equal(ca_strings_put(&strings, "abcdefghi"), abc);
	ca_strings_free(&strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_zero),
		cmocka_unit_test(test_once),
		cmocka_unit_test(test_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

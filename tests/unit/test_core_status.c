/* SPDX-License-Identifier: MIT */
/* core/err.c, core/status_name.c: texts and names of errors. */
#include "core/status.h"
#include "tests/unit/unit.h"
#include <string.h>

static void test_set(void **state)
{
	struct ca_err err = { .text = "" };

	(void)state;
	assert_int_equal(ca_err_set(&err, CA_ERR_IO, "cannot read %s: %d", "x", 7), CA_ERR_IO);
	assert_string_equal(err.text, "cannot read x: 7");
	assert_int_equal(ca_err_set(NULL, CA_ERR_FULL, "nobody reads this"), CA_ERR_FULL);
}

static void test_set_cuts(void **state)
{
	struct ca_err err;
	char big[1000];

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	ca_err_set(&err, CA_ERR_IO, "%s", big);
	assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void test_names(void **state)
{
	(void)state;
	for (int i = CA_OK; i <= CA_ERR_AGAIN; i++) {
		assert_string_not_equal(ca_status_name((enum ca_status)i), "unknown status");
		for (int j = CA_OK; j < i; j++)
			assert_string_not_equal(ca_status_name((enum ca_status)i),
						ca_status_name((enum ca_status)j));
	}
	assert_string_equal(ca_status_name((enum ca_status)1000), "unknown status");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_set_cuts),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

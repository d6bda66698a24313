/* SPDX-License-Identifier: MIT */
/* core/regex.c: which regular expressions are taken. */
#include "core/regex.h"
#include "tests/unit/unit.h"
#include <string.h>

static void test_taken(void **state)
{
	static const struct {
		const char *text;
		int code;
	} cases[] = {
		{ "work", 0 },
		{ "^a{3}b{2,4}[{}]x{2,}$", 0 },
		{ "\\{1000}\\{1000}\\{1000}", 0 },
		{ "(a{50}){50}", 0 },
		{ "a{1000}{1000}{1000}", REG_BADBR },
		{ "a{1,9999}{9}", REG_BADBR },
		{ "a{99999999999999999999}", REG_BADBR },
		{ "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+", 0 },
		{ "(a+)+b++", 0 },
		{ "a++++++++++++++++++++++++++++++++++++++++", REG_BADBR },
		{ "((((((((((((((((a)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", REG_BADBR },
		{ "(", REG_EPAREN },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		regex_t regex;
		int code = ca_regex_compile(&regex, cases[i].text);

		if (code != cases[i].code)
			fail_msg("%s: %d", cases[i].text, code);
		if (!code)
			regfree(&regex);
	}
}

static void test_long(void **state)
{
	static char text[30002];
	regex_t regex;

	(void)state;
	memset(text, 'a', sizeof text - 1);
	assert_int_equal(ca_regex_compile(&regex, text), REG_BADBR);
	text[1000] = 0;
	assert_int_equal(ca_regex_compile(&regex, text), 0);
	regfree(&regex);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_taken), cmocka_unit_test(test_long) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

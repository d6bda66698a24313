/* SPDX-License-Identifier: MIT */
/* core/regex.c: which regular expressions are taken. */
#include "core/regex.h"
#include "tests/unit/unit.h"
#include <signal.h>
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
		{ "a{1000}{1000}{1000}", REG_ESPACE },
		{ "a{1,9999}{9}", REG_ESPACE },
		{ "a{99999999999999999999}", REG_ESIZE },
		{ "a+b+c+d+e+f+g+h+i+j+k+l+m+n+o+p+q+r+s+t+u+", 0 },
		{ "(a+)+b++", 0 },
		{ "^(std::)?vector<.*>::push_back\\($", 0 },
		{ "(\\b|^|$|a)*(\\b|^|$|a)*(\\b|^|$|a)*", REG_ESPACE },
		{ "a++++++++++++++++++++++++++++++++++++++++", REG_ESPACE },
		{ "((((((((((((((((((((((((a)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", REG_ESPACE },
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

/* Each takes minutes, gigabytes, or all of the stack. */
static void test_long(void **state)
{
	static const struct {
		const char *part;
		int code;
	} cases[] = {
		{ "a", 0 },          { "name|", 0 },       { "^name$|", 0 },      { "(", REG_EPAREN },
		{ "^", REG_ESPACE }, { "()", REG_ESPACE }, { "\\b", REG_ESPACE }, { "a**", REG_ESPACE },
	};
	static char text[30001];
	regex_t regex;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		size_t length = strlen(cases[i].part), most = cases[i].code == REG_ESPACE ? 30000 : 3000;
		int code;

		for (size_t at = 0; at + length <= most; at += length)
			strcpy(text + at, cases[i].part);
		code = ca_regex_compile(&regex, text);
		if (code != cases[i].code)
			fail_msg("%s, many times: %d", cases[i].part, code);
		if (!code)
			regfree(&regex);
	}
	memset(text, '(', 15000);
	memset(text + 15000, ')', 15000);
	assert_int_equal(ca_regex_compile(&regex, text), REG_ESPACE);
}

/* Nobody waits for it in vain. */
static void test_no_status(void **state)
{
	regex_t regex;

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(ca_regex_compile(&regex, "(a|b)"), 0);
	regfree(&regex);
	signal(SIGCHLD, SIG_DFL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_taken), cmocka_unit_test(test_long),
					    cmocka_unit_test(test_no_status) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/suggest.c: distances, and what is offered for a misspelt name. */
#include "core/suggest.h"
#include "tests/unit/unit.h"
#include <string.h>

static void test_distance(void **state)
{
	static const struct {
		const char *a, *b;
		unsigned distance;
	} cases[] = {
		{ "", "", 0 },         { "a", "", 1 },
		{ "", "abc", 3 },      { "abc", "abc", 0 },
		{ "abc", "abd", 1 },   { "abc", "xbc", 1 },
		{ "abc", "ab", 1 },    { "abc", "bc", 1 },
		{ "abc", "abxc", 1 },  { "ab", "ba", 1 },
		{ "abcd", "acbd", 1 }, { "abcd", "badc", 2 },
		{ "abc", "cab", 2 },   { "kitten", "sitting", 3 },
		{ "abc", "xyz", 3 },   { "ca", "abc", 3 },
	};
	char x[80], y[80];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		if (ca_suggest_distance(cases[i].a, cases[i].b) != cases[i].distance)
			fail_msg("%s, %s: %u", cases[i].a, cases[i].b,
				 ca_suggest_distance(cases[i].a, cases[i].b));
		assert_int_equal(ca_suggest_distance(cases[i].b, cases[i].a), cases[i].distance);
	}
	/* the first 63 letters of long names */
	memset(x, 'x', sizeof x);
	memset(y, 'x', sizeof y);
	x[79] = y[79] = '\0';
	y[62] = 'y';
	assert_int_equal(ca_suggest_distance(x, y), 1);
	y[62] = 'x';
	y[63] = 'y';
	assert_int_equal(ca_suggest_distance(x, y), 0);
	memset(y, 'y', sizeof y - 1);
	assert_int_equal(ca_suggest_distance(x, y), 63);
}

static const char *nearest(const char *name, const char *const *candidates)
{
	struct ca_suggest nearest = { .name = name };

	for (; *candidates; candidates++)
		ca_suggest_offer(&nearest, *candidates);
	return nearest.best;
}

static void test_offer(void **state)
{
	static const char *const list[] = { "speedups", "scope", "runs", "debug", "end-to-end", NULL };
	static const char *const early[] = { "runes", "runs", NULL }, *const first[] = { "abx", "aby", NULL };
	static const char *const begun[] = { "endless-row", "endless", NULL };
	static const char *const longer[] = { "speedups", "spee_", NULL };
	static const struct {
		const char *name, *wanted;
	} cases[] = {
		{ "speedup", "speedups" },
		{ "spedups", "speedups" },
		{ "scop", "scope" },
		{ "rnus", "runs" },
		/* a third of its letters: two of six, but not of five; one of the shortest */
		{ "spxupe", NULL },
		{ "secpoe", "scope" },
		{ "xcxpe", NULL },
		{ "r", NULL },
		{ "ru", NULL },
		{ "rns", "runs" },
		{ "uns", "runs" },
		/* a beginning of three letters or more */
		{ "end", "end-to-end" },
		{ "en", NULL },
		{ "spe", "speedups" },
		{ "enx", NULL },
		{ "nothing", NULL },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const char *got = nearest(cases[i].name, list);

		if (got != cases[i].wanted && (!got || !cases[i].wanted || strcmp(got, cases[i].wanted) != 0))
			fail_msg("%s: %s", cases[i].name, got ? got : "nothing");
	}
	/* the nearest, and of equally near ones the first; a slip rather than an abbreviation */
	assert_string_equal(nearest("run", early), "runs");
	assert_string_equal(nearest("abz", first), "abx");
	assert_string_equal(nearest("spee", longer), "spee_");
	assert_string_equal(nearest("end", begun), "endless-row"); /* neither is more of one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_distance),
		cmocka_unit_test(test_offer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/results/compare.c, causal/results/match.c: when two results differ, and which region of the one
 * is which of the other. */
#include "causal/results/compare.h"
#include "causal/results/match.h"
#include "tests/unit/estimate_fixture.h"
#include <stdlib.h>
#include <string.h>

/* Of 2000 comparisons 95 % hold the truth, also with few runs and unequal scatter. */
static void test_coverage(void **state)
{
	static const struct {
		size_t n_a, n_b;
		double sigma_a, sigma_b;
	} cases[] = { { 2, 2, .02, .02 }, { 3, 3, .02, .02 }, { 5, 5, .02, .05 }, { 10, 3, .05, .01 } };
	const double truth = 100 * expm1(0.03);

	(void)state;
	ca_rng_init(&rng, 5);
	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		unsigned held = 0;

		for (int i = 0; i < 2000; i++) {
			double a[10], b[10], change, low, high;

			for (size_t k = 0; k < cases[c].n_a; k++)
				a[k] = 1 + cases[c].sigma_a * normal();
			for (size_t k = 0; k < cases[c].n_b; k++)
				b[k] = 1.03 + cases[c].sigma_b * normal();
			ca_compare_means(a, cases[c].n_a, b, cases[c].n_b, &change, &low, &high);
			assert_true(low <= change && change <= high);
			held += low <= truth && truth <= high;
		}
		assert_in_range(held, 1840, 2000);
	}
}

static void test_too_few(void **state)
{
	double one[] = { 1, 1 }, change, low, high;

	(void)state;
	ca_compare_means(one, 1, one, 2, &change, &low, &high);
	assert_true(isnan(change) && isnan(low) && isnan(high));
	ca_compare_means(one, 2, one, 2, &change, &low, &high);
	assert_true(change == 0 && low == 0 && high == 0);
}

static void fill(struct ca_catalog *catalog, const char *function, const char *path, unsigned line)
{
	char name[64];
	struct ca_region region = { .kind = line ? CA_REGION_LINE : CA_REGION_FUNCTION,
				    .line = line,
				    .binary = (char[]){ "/bin/app" } };

	snprintf(name, sizeof name, "%s:%u", path, line);
	region.name = strdup(line ? name : function);
	region.function = strdup(function);
	region.file = strdup(path);
	assert_non_null(ca_catalog_add_region(catalog, &region));
	free(region.name);
	free(region.function);
	free(region.file);
}

/* Lines are found again where their function has moved, grown, or lost a line. */
static void test_match(void **state)
{
	static const struct {
		const char *function, *path;
		unsigned was, is; /* 0: not there; in both: a function */
	} cases[] = {
		{ "f", "a.c", 10, 17 }, { "f", "a.c", 12, 19 }, { "f", "a.c", 13, 20 }, { "f", "a.c", 15, 0 },
		{ "f", "a.c", 0, 21 },  { "g", "a.c", 40, 40 }, { "g", "a.c", 44, 44 }, { "h", "b.c", 5, 6 },
	};
	struct ca_catalog a = { 0 }, b = { 0 };
	uint32_t *same;

	(void)state;
	fill(&a, "whole", "a.c", 0);
	fill(&b, "new", "a.c", 0);
	fill(&b, "whole", "/elsewhere/a.c", 0);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		if (cases[i].was)
			fill(&a, cases[i].function, cases[i].path, cases[i].was);
		if (cases[i].is)
			fill(&b, cases[i].function, cases[i].path, cases[i].is);
	}
	same = ca_match_regions(&a, &b);
	assert_int_equal(same[1], 0);
	assert_int_equal(same[2], 1);
	for (size_t i = 0, n = 3; i < CA_COUNT(cases); i++)
		if (cases[i].is) {
			const struct ca_region *region = ca_catalog_get_region(&a, same[n++]);

			assert_int_equal(region ? region->line : 0, cases[i].was);
		}
	free(same);
	ca_catalog_fini(&a);
	ca_catalog_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_coverage),
		cmocka_unit_test(test_too_few),
		cmocka_unit_test(test_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/results/what_if.c, causal/results/what_if_answer.c: what was asked, and whether it adds up. */
#include "causal/results/profile.h"
#include "causal/results/what_if.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static char text[] = "b=50,a=20", a_name[] = "a", b_name[] = "b", point_name[] = "item";

static void test_parse(void **state)
{
	static const char *const wrong[] = { "",
					     "a",
					     "a=20",
					     "=20,b=30",
					     "a=0,b=30",
					     "a=101,b=3",
					     "a=20;b=30",
					     "a=20,b",
					     "a=20,b=x",
					     "a=20,b=30x",
					     "a=1,b=2,c=3,d=4,e=5",
					     "a=20,a=30" };
	struct ca_what_if w;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(wrong); i++) {
		*err.text = '\0';
		if (ca_what_if_parse(&w, wrong[i], &err) != CA_ERR_USAGE || !*err.text)
			fail_msg("'%s'", wrong[i]);
	}
	assert_int_equal(ca_what_if_parse(&w, "b=50,a=20", &err), CA_OK);
	assert_int_equal(w.parts, 2);
	assert_string_equal(w.part[0].name, "a"); /* slowest first */
	assert_int_equal(w.part[0].percent, 20);
	assert_string_equal(w.part[1].name, "b");
	assert_int_equal(ca_what_if_percent(&w), 50);
	assert_int_equal(ca_what_if_of_region(&(struct ca_region){ .name = text, .file = text + 9 }), 50);
	assert_int_equal(ca_what_if_of_region(&(struct ca_region){ .name = text, .file = text }), 0);
	assert_int_equal(ca_what_if_of_region(&(struct ca_region){ .name = a_name, .file = text + 9 }), 0);
	/* names of C++ */
	assert_int_equal(ca_what_if_parse(&w, "f<1, x==2>(int, int)=100,operator=(T)=5,c=5", &err), CA_OK);
	assert_int_equal(w.parts, 3);
	assert_string_equal(w.part[0].name, "operator=(T)");
	assert_string_equal(w.part[1].name, "c"); /* as they were given */
	assert_string_equal(w.part[2].name, "f<1, x==2>(int, int)");
	assert_int_equal(w.part[2].percent, 100);
}

/* What is printed when a alone gives `a`, b `b`, both `both`, each known to +-1; NAN: no such experiment. */
static char *printed(double a, double b, double both)
{
	struct ca_region region[] = { { .id = 1, .name = a_name },
				      { .id = 2, .name = b_name },
				      { .id = 3, .name = text } };
	double effect[] = { a, 90, b, both };
	struct ca_cell cell[] = { { .region = 1, .speedup = 200000 },
				  { .region = 1, .speedup = 500000 }, /* not asked */
				  { .region = 2, .speedup = 500000 },
				  { .region = 3, .speedup = 500000 } };
	struct ca_profile_point point[] = { { .name = point_name, .kind = 't' },
					    { .name = point_name, .kind = 't' } };
	struct ca_profile profile = { .point = point, .points = 2 };
	char *out = NULL;
	size_t size;
	FILE *file = open_memstream(&out, &size);

	for (size_t i = 0; i < CA_COUNT(cell); i++) {
		cell[i].effect = effect[i];
		cell[i].low = effect[i] - 1;
		cell[i].high = effect[i] + 1;
		cell[i].experiments = isnan(effect[i]) ? 0 : 7;
	}
	point[1].estimates.cell = cell; /* the first one was never passed */
	point[1].estimates.cells = CA_COUNT(cell);
	profile.catalog.region = region;
	profile.catalog.regions = CA_COUNT(region);
	ca_what_if_print(&profile, text, file);
	assert_int_equal(fclose(file), 0);
	return out;
}

static void prints(double a, double b, double both, const char *what)
{
	char *out = printed(a, b, both);

	if (!strstr(out, what))
		fail_msg("'%s' is not in: %s", what, out);
	free(out);
}

static void test_answer(void **state)
{
	char *out;

	(void)state;
	prints(3, 10, 13.5, "a 20 % less");
	prints(3, 10, 13.5, " 10.0 ± 1.0   7 experiments\n");
	prints(3, 10, 13.5, " 13.5 ± 1.0   7 experiments\n");
	prints(3, 10, 13.5, " 13.0 ± 1.4\n");
	prints(3, 10, 13.5, "They add up, as far as can be told: the difference is 0.5 ± 1.7.");
	prints(3, 10, 20, "more than the sum, by 7.0 ± 1.7");
	prints(3, 10, 5, "less than the sum, by 8.0 ± 1.7");
	prints(NAN, 10, 5, "not known yet");
	prints(NAN, 10, 5, " 5.0 ± 1.0");
	out = printed(3, 10, 13);
	assert_null(strstr(strstr(out, "item") + 1, "item")); /* one table */
	free(out);
	out = printed(NAN, NAN, NAN);
	assert_string_equal(out, "");
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

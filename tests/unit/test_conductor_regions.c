/* SPDX-License-Identifier: MIT */
/* causal/conductor/regions.c, region_code.c: what of a binary the scope lets through, and which sites exclude
 * each other. */
#include "causal/conductor/region_parts.h"
#include "causal/conductor/regions.h"
#include "causal/conductor/stacks.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"

/* ---- the binaries of a run: one, whose text cannot be read, and a library that is not in scope -*/
static struct ca_index *indexed, *library;

const struct ca_index *ca_objects_index(struct ca_objects *objects, uint32_t module)
{
	(void)objects;
	return module == 1 ? indexed : module == 2 ? library : NULL;
}

struct ca_text *ca_objects_text(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return NULL;
}

bool ca_objects_in_scope(struct ca_objects *objects, uint32_t module)
{
	(void)objects;
	return module == 1;
}

static const char source[] =
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) int twice(int x) { sink = x; return x * 2; }\n"
	"int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += twice(sink); return s; }\n"
	"int main(int argc, char **argv) { (void)argv; return work(argc); }\n";

static int make_program(void **state)
{
	if (fixture_make(state) != 0)
		return -1;
	fixture_write("a.c", source);
	fixture_write("y.c", "int sched_yield(void) { return 0; } int other(void) { return 1; }");
	return fixture_run("%s -w -g -O2 -o a a.c && strip -o bare a && %s -w -O2 -shared -o y.so y.c",
			   fixture_cc(), fixture_cc());
}

static ca_place place_of(uint32_t module, const struct ca_index *index, const char *name)
{
	struct ca_index_function f;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		if (!strcmp(f.name, name))
			return CA_PLACE(module, f.low);
	}
	fail_msg("%s", name);
	return 0;
}

/* Who yields waits for others: code in scope that is below that on the stack. */
static void test_yields(void **state)
{
	struct ca_scope_spec spec = { .function = "", .source = "", .function_mode = true };
	struct ca_catalog catalog = { 0 };
	struct ca_regions *r = NULL;
	struct ca_scope *scope;
	struct ca_err err;
	struct ca_stacks *stacks;
	ca_place yield, other, work;

	(void)state;
	indexed = fixture_open("a", CA_INDEX_FULL);
	library = fixture_open("y.so", CA_INDEX_FULL);
	assert_int_equal(ca_scope_new(&scope, &spec, &err), CA_OK);
	assert_int_equal(ca_regions_new(&r, CA_MODE_FUNCTION, scope, NULL, &catalog, &err), CA_OK);
	yield = place_of(2, library, "sched_yield");
	other = place_of(2, library, "other");
	work = place_of(1, indexed, "work");
	assert_true(ca_regions_spin(r, (ca_place[]){ yield, work }, 2));
	assert_true(ca_regions_spin(r, (ca_place[]){ other, yield, work }, 3));
	assert_false(ca_regions_spin(r, (ca_place[]){ other, work }, 2));
	assert_false(ca_regions_spin(r, (ca_place[]){ work, yield }, 2));
	assert_false(ca_regions_spin(r, (ca_place[]){ yield }, 1));
	/* as samples are counted, too; who is not on a CPU does not spin */
	stacks = ca_stacks_new();
	ca_regions_keep_stacks(r, stacks);
	assert_true(ca_regions_count(r, (ca_place[]){ yield, work }, 2, 3, false));
	assert_true(ca_regions_count(r, (ca_place[]){ other, work }, 2, 5, false));
	assert_true(ca_regions_count(r, (ca_place[]){ yield, work }, 2, 7, true));
	assert_int_equal(ca_stacks_own(stacks, 1, true), 3);
	assert_int_equal(ca_stacks_own(stacks, 1, false), 15);
	ca_stacks_free(stacks);
	ca_regions_free(r);
	ca_catalog_fini(&catalog);
	ca_scope_free(scope);
	ca_index_close(indexed);
	ca_index_close(library);
	indexed = library = NULL;
}

static void test_index_in_scope(void **state)
{
	static const struct {
		const char *name, *function, *source;
		enum ca_mode mode;
		bool in_scope;
	} cases[] = {
		{ "a", "", "", CA_MODE_FUNCTION, true },
		{ "a", "^work$", "", CA_MODE_FUNCTION, true },
		{ "a", "^twice$", "", CA_MODE_FUNCTION, true }, /* inlined everywhere */
		{ "a", "^none$", "", CA_MODE_FUNCTION, false },
		{ "a", "", "a\\.c", CA_MODE_FUNCTION, true },
		{ "a", "^none$", "z\\.c", CA_MODE_FUNCTION, false },
		{ "a", "", "z\\.c", CA_MODE_FUNCTION, false }, /* nor has the copy of twice */
		{ "a", "", "", CA_MODE_LINE, true },
		{ "a", "", "a\\.c", CA_MODE_LINE, true },
		{ "a", "", "z\\.c", CA_MODE_LINE, false },
		{ "bare", "", "", CA_MODE_LINE, false },
		{ "bare", "^twice$", "", CA_MODE_FUNCTION, false },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_scope_spec spec = { .function = cases[i].function,
					      .source = cases[i].source,
					      .function_mode = cases[i].mode == CA_MODE_FUNCTION };
		struct ca_index *index = fixture_open(cases[i].name, CA_INDEX_FULL);
		struct ca_scope *scope;
		struct ca_err err;

		assert_non_null(index);
		assert_int_equal(ca_scope_new(&scope, &spec, &err), CA_OK);
		if (ca_regions_index_in_scope(scope, cases[i].mode, index) != cases[i].in_scope)
			fail_msg("%s, -F '%s', -S '%s'", cases[i].name, cases[i].function, cases[i].source);
		ca_scope_free(scope);
		ca_index_close(index);
	}
}

/* What the filters name is found without a sample, if it is little. */
static void test_named(void **state)
{
	static const struct {
		const char *function, *source;
		enum ca_mode mode;
		size_t max, found;
	} cases[] = {
		{ "^work$", "", CA_MODE_FUNCTION, 2, 1 },
		{ "^(work|twice)$", "", CA_MODE_FUNCTION, 2, 2 },
		{ "^(work|twice)$", "", CA_MODE_FUNCTION, 1, 2 },
		{ "^twice$", "", CA_MODE_FUNCTION, 2, 1 },
		{ "^none$", "", CA_MODE_FUNCTION, 2, 0 },
		{ "", "a\\.c:3$", CA_MODE_LINE, 1, 1 },
		{ "", "a\\.c", CA_MODE_LINE, 2, 3 },
	};

	(void)state;
	indexed = fixture_open("a", CA_INDEX_FULL);
	assert_non_null(indexed);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_scope_spec spec = { .function = cases[i].function,
					      .source = cases[i].source,
					      .function_mode = cases[i].mode == CA_MODE_FUNCTION };
		struct ca_catalog catalog = { 0 };
		struct ca_regions *r = NULL;
		struct ca_scope *scope;
		struct ca_err err;
		uint32_t region[2];

		assert_int_equal(ca_scope_new(&scope, &spec, &err), CA_OK);
		assert_int_equal(ca_regions_new(&r, cases[i].mode, scope, NULL, &catalog, &err), CA_OK);
		if (ca_regions_named(r, region, cases[i].max) != cases[i].found)
			fail_msg("-F '%s', -S '%s'", cases[i].function, cases[i].source);
		for (size_t k = 0; k < cases[i].found && k < cases[i].max; k++)
			assert_int_equal(ca_regions_samples(r, region[k]), 0);
		ca_regions_free(r);
		ca_catalog_fini(&catalog);
		ca_scope_free(scope);
	}
	ca_index_close(indexed);
}

/* A site of S lies at [100, 108) of module 1, another at [200, 201). */
static void test_overlaps(void **state)
{
	static const struct {
		uint32_t module;
		uint64_t address;
		uint8_t length;
		bool overlaps;
	} cases[] = {
		{ 1, 100, 8, true },  { 1, 90, 10, false }, { 1, 90, 11, true },   { 1, 90, 24, true },
		{ 1, 107, 1, true },  { 1, 108, 5, false }, { 1, 104, 2, true },   { 2, 100, 8, false },
		{ 1, 200, 5, true },  { 1, 201, 5, false }, { 1, 199, 1, false },  { 1, 195, 6, true },
		{ 1, 150, 5, false }, { 1, 0, 5, false },   { 1, 5000, 5, false }, { 2, 200, 1, false },
	};
	struct ca_site of_s[] = { { .module = 1, .address = 100, .length = 8 },
				  { .module = 1, .address = 200, .length = 1 } };
	struct ca_region_code code = { .site = of_s, .sites = CA_COUNT(of_s) }, none = { 0 };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_site site = { .module = cases[i].module,
					.address = cases[i].address,
					.length = cases[i].length };

		if (ca_region_code_overlaps(&code, &site) != cases[i].overlaps)
			fail_msg("case %zu", i);
		assert_false(ca_region_code_overlaps(&none, &site));
	}
}

/* Regions of several parts: who lies in two belongs to the faster one; an entry says whose it is. */
static void test_parts(void **state)
{
	static struct ca_selection sel;
	struct ca_range slow[] = { { 1, 0, 100, 200 }, { 1, 0, 300, 400 } };
	struct ca_range fast[] = { { 1, 0, 150, 160 }, { 1, 0, 350, 450 }, { 2, 0, 100, 110 } };
	static const struct ca_range expected[] = { { 1, 0, 100, 150 }, { 1, 1, 150, 160 },
						    { 1, 0, 160, 200 }, { 1, 0, 300, 350 },
						    { 1, 1, 350, 450 }, { 2, 1, 100, 110 } };
	struct ca_site slow_site[] = { { .module = 1, .address = 100, .length = 5, .hooks = 1 },
				       { .module = 1, .address = 190, .length = 5, .hooks = 1 } };
	struct ca_site fast_site[] = { { .module = 1, .address = 150, .length = 5, .hooks = 2 } };
	struct ca_region_code a = { .range = slow, .ranges = 2, .site = slow_site, .sites = 2 };
	struct ca_region_code b = { .range = fast, .ranges = 3, .site = fast_site, .sites = 1 };
	const struct ca_region_code *part[] = { &a, &b };
	const unsigned percent[] = { 20, 50 };

	(void)state;
	slow_site[0].hook[0].kind = CA_SITE_ENTER;
	slow_site[1].hook[0].kind = CA_SITE_EXIT;
	fast_site[0].hook[0].kind = CA_SITE_COUNT;
	fast_site[0].hook[1].kind = CA_SITE_ENTER;
	fast_site[0].hook[1].at = 3;
	assert_true(ca_region_parts_select(part, percent, 2, true, &sel));
	assert_int_equal(sel.ranges, CA_COUNT(expected));
	assert_memory_equal(sel.range, expected, sizeof expected);
	assert_int_equal(sel.parts, 2);
	assert_int_equal(sel.weight[0], 400000);
	assert_int_equal(sel.weight[1], 1000000);
	assert_true(sel.exact && !sel.fine);
	assert_int_equal(sel.sites, 3);
	assert_int_equal(sel.site[0].hook[0].kind, CA_SITE_PART);
	assert_int_equal(sel.site[0].hook[1].kind, CA_SITE_ENTER);
	assert_int_equal(sel.site[0].point, 0);
	assert_int_equal(sel.site[1].hooks, 1);
	assert_int_equal(sel.site[2].hook[1].kind, CA_SITE_PART);
	assert_int_equal(sel.site[2].hook[1].at, 3);
	assert_int_equal(sel.site[2].hook[2].kind, CA_SITE_ENTER);
	assert_int_equal(sel.site[2].point, 1);
	/* what cannot be logged is sampled, all of it */
	assert_true(ca_region_parts_select(part, percent, 2, false, &sel));
	assert_int_equal(sel.exact, 0);
	assert_int_equal(sel.sites, 0);
	assert_int_equal(sel.ranges, CA_COUNT(expected));
	b.edges = true;
	assert_false(ca_region_parts_select(part, percent, 2, true, &sel));
	b.edges = false;
	fast_site[0].hooks = CA_SITE_HOOKS;
	assert_false(ca_region_parts_select(part, percent, 2, true, &sel));
	assert_int_equal(sel.exact, 0);
	fast_site[0].hooks = 2;
	fast_site[0].address = 194;
	assert_false(ca_region_parts_select(part, percent, 2, true, &sel));
	assert_int_equal(sel.sites, 0);
}

/* What one run finds out, the next one knows. */
static void test_heat(void **state)
{
	struct ca_vec kept = { .size = 1 };
	struct ca_regions *r = NULL;
	struct ca_err err;

	(void)state;
	for (unsigned run = 0; run < 2; run++) {
		assert_int_equal(ca_regions_new(&r, CA_MODE_FUNCTION, NULL, NULL, NULL, &err), CA_OK);
		assert_int_equal(ca_regions_heat(r, 3), CA_HEAT_UNKNOWN);
		ca_regions_keep_heat(r, &kept);
		assert_int_equal(ca_regions_heat(r, 3), run ? CA_HEAT_TOO_HOT : CA_HEAT_UNKNOWN);
		ca_regions_set_heat(r, 3, CA_HEAT_TOO_HOT);
		assert_int_equal(ca_regions_heat(r, 3), CA_HEAT_TOO_HOT);
		assert_int_equal(ca_regions_heat(r, 2), CA_HEAT_UNKNOWN);
		assert_int_equal(ca_regions_heat(r, 4), CA_HEAT_UNKNOWN);
		ca_regions_free(r);
	}
	ca_vec_free(&kept);
}

/* Code that cannot be probed is sampled, from the first experiment on. */
static void test_not_probed(void **state)
{
	static struct ca_selection selection;
	struct ca_catalog catalog = { 0 };
	struct ca_regions *r = NULL;
	const char *why = NULL;
	struct ca_err err;
	uint32_t region, other;

	(void)state;
	indexed = fixture_open("a", CA_INDEX_FULL);
	assert_non_null(indexed);
	assert_int_equal(ca_regions_new(&r, CA_MODE_FUNCTION, NULL, NULL, &catalog, &err), CA_OK);
	region = ca_regions_find(r, &(struct ca_region){ .kind = CA_REGION_FUNCTION,
							 .name = (char *)"work",
							 .file = (char *)"",
							 .function = (char *)"work",
							 .binary = (char *)ca_index_binary(indexed) });
	assert_int_equal(region, 1);
	for (unsigned experiment = 0; experiment < 2; experiment++) {
		ca_regions_select(r, region, true, &selection, &why);
		assert_true(selection.ranges > 0);
		assert_int_equal(selection.sites, 0);
		assert_false(selection.exact);
		assert_string_equal(why, "its text cannot be read");
	}
	/* what its threads have shown of each other is known when its turn comes again */
	other = ca_regions_find(r, &(struct ca_region){ .kind = CA_REGION_FUNCTION,
							.name = (char *)"main",
							.file = (char *)"",
							.function = (char *)"main",
							.binary = (char *)ca_index_binary(indexed) });
	assert_int_equal(other, 2);
	atomic_store(&selection.pairs[CA_PARTS - 1], 3);
	atomic_store(&selection.pairs_expected[CA_PARTS - 1], 4);
	for (unsigned experiment = 0; experiment < 3; experiment++) {
		ca_regions_select(r, experiment % 2 ? region : other, true, &selection, &why);
		assert_int_equal(selection.pairs[CA_PARTS - 1], experiment % 2 ? 3 : 0);
		assert_int_equal(selection.pairs_expected[CA_PARTS - 1], experiment % 2 ? 4 : 0);
	}
	ca_regions_free(r);
	ca_catalog_fini(&catalog);
	ca_index_close(indexed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_index_in_scope), cmocka_unit_test(test_yields),
		cmocka_unit_test(test_named),          cmocka_unit_test(test_parts),
		cmocka_unit_test(test_overlaps),       cmocka_unit_test(test_heat),
		cmocka_unit_test(test_not_probed)
	};

	return cmocka_run_group_tests(tests, make_program, fixture_remove);
}

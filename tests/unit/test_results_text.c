/* SPDX-License-Identifier: MIT */
/* causal/results/results_json.c, causal/results/coz.c: which bytes are text, and Coz's format line by line. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "core/utf8.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(s)                                                                                              \
	(char[])                                                                                             \
	{                                                                                                    \
		s                                                                                            \
	}

/* At each limit of each length, by Unicode's table 3-7. */
static void test_utf8(void **state)
{
	static const struct {
		const char *s;
		size_t length;
	} cases[] = {
		{ "", 1 },
		{ "a", 1 },
		{ "\x7f", 1 },
		{ "\x80", 0 },
		{ "\xbf", 0 },
		{ "\xc0\x80", 0 },
		{ "\xc1\xbf", 0 },
		{ "\xc2\x80", 2 },
		{ "\xc2", 0 },
		{ "\xc2\x7f", 0 },
		{ "\xc2\xc0", 0 },
		{ "\xdf\xbf", 2 },
		{ "\xe0\x9f\xbf", 0 },
		{ "\xe0\xa0\x80", 3 },
		{ "\xe1\x80\x80", 3 },
		{ "\xe1\x80", 0 },
		{ "\xe1\x80\xc0", 0 },
		{ "\xed\x9f\xbf", 3 },
		{ "\xed\xa0\x80", 0 },
		{ "\xee\xa0\x80", 3 },
		{ "\xef\xbf\xbf", 3 },
		{ "\xf0\x8f\xbf\xbf", 0 },
		{ "\xf0\x90\x80\x80", 4 },
		{ "\xf3\x80\x80\x80", 4 },
		{ "\xf4\x8f\xbf\xbf", 4 },
		{ "\xf4\x90\x80\x80", 0 },
		{ "\xf5\x80\x80\x80", 0 },
		{ "\xff", 0 },
		{ "\xf1\x80\x80", 0 },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++)
		if (ca_utf8_length((const unsigned char *)cases[i].s) != cases[i].length)
			fail_msg("case %zu", i);
}

static void test_json(void **state)
{
	struct json_object *object = json_object_new_object();

	(void)state;
	json_object_object_add(object, "text", ca_results_json_text("a\xff\xc2\xa9\xe1"));
	json_object_object_add(object, "none", ca_results_json_text(NULL));
	json_object_object_add(object, "number", json_object_new_uint64(UINT64_MAX));
	json_object_object_add(object, "half", json_object_new_double(0.5));
	assert_string_equal(ca_results_json_string(object, "text"), "a\xef\xbf\xbd\xc2\xa9\xef\xbf\xbd");
	assert_string_equal(ca_results_json_string(object, "none"), "");
	assert_string_equal(ca_results_json_string(object, "missing"), "");
	assert_string_equal(ca_results_json_string(object, "number"), "");
	assert_true(ca_results_json_u64(object, "number") == UINT64_MAX);
	assert_int_equal(ca_results_json_u64(object, "missing"), 0);
	assert_true(ca_results_json_double(object, "half") > 0.49 &&
		    ca_results_json_double(object, "half") < 0.51);
	assert_null(ca_results_json_get(NULL, "text"));
	assert_null(ca_results_json_get(ca_results_json_get(object, "text"), "text"));
	assert_string_equal(ca_results_drop_name(CA_DROP_RING_FULL), "ring_full");
	json_object_put(object);
}

static void test_coz(void **state)
{
	struct ca_region line = {
		.kind = CA_REGION_LINE, .name = TEXT("a.c:3"), .file = TEXT("/src/a.c"), .line = 3
	};
	struct ca_region nowhere = { .kind = CA_REGION_LINE, .name = TEXT("b.c:4"), .line = 4 };
	struct ca_region function = {
		.kind = CA_REGION_FUNCTION, .name = TEXT("f(\t\n\r)"), .file = TEXT("/src/a.c"), .line = 9
	};
	struct ca_profile_run run[] = {
		{ .time = 11, .ended = true, .summary = { .runtime = 22 } },
		{ .time = 33, .ended = false, .summary = { .runtime = 44 } },
	};
	struct ca_profile_visits visits[] = {
		{ .point = 0, .delta = 5 },
		{ .point = 1, .delta = 7, .arrivals = 8, .in_flight = 2.5 },
		{ .point = 1, .delta = 7, .arrivals = 8, .in_flight = 0.49 },
	};
	struct ca_profile_experiment experiment[] = {
		{ .run = 0,
		  .region = 1,
		  .speedup = 255000,
		  .duration = 1000,
		  .hits = 6,
		  .first = 0,
		  .visits = 2 },
		{ .run = 0, .region = 1, .flags = CA_EXPERIMENT_CUT, .visits = 1 },
		{ .run = 0, .region = 0, .visits = 1 },
		{ .run = 1, .region = 3, .duration = 1, .first = 2, .visits = 1 },
	};
	struct ca_profile_samples samples[] = { { 0, 1, 9 }, { 0, 2, 8 }, { 1, 3, 7 } };
	struct ca_profile_point point[] = { { .name = TEXT("done"), .kind = 't' },
					    { .name = TEXT("job\t"), .kind = 'l' } };
	struct ca_profile profile = { .run = run,
				      .runs = 2,
				      .visits = visits,
				      .experiment = experiment,
				      .experiments = 4,
				      .samples = samples,
				      .sample_count = 3,
				      .point = point,
				      .points = 2 };
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	ca_catalog_add_region(&profile.catalog, &line);
	ca_catalog_add_region(&profile.catalog, &nowhere);
	ca_catalog_add_region(&profile.catalog, &function);
	assert_true(ca_profile_write_coz(&profile, file));
	fclose(file);
	assert_string_equal(
		text, "startup\ttime=11\n"
		      "experiment\tselected=/src/a.c:3\tspeedup=0.26\tduration=1000\tselected-samples=6\n"
		      "throughput-point\tname=done\tdelta=5\n"
		      "latency-point\tname=job \tarrivals=8\tdepartures=7\tdifference=3\n"
		      "runtime\ttime=22\n"
		      "samples\tlocation=/src/a.c:3\tcount=9\n"
		      "samples\tlocation=b.c:4\tcount=8\n"
		      "startup\ttime=33\n"
		      "experiment\tselected=f(   )\tspeedup=0.00\tduration=1\tselected-samples=0\n"
		      "latency-point\tname=job \tarrivals=8\tdepartures=7\tdifference=1\n"
		      "samples\tlocation=f(   )\tcount=7\n");
	free(text);
	file = fopen("/dev/full", "w");
	setbuf(file, NULL);
	assert_false(ca_profile_write_coz(&profile, file));
	fclose(file);
	ca_catalog_fini(&profile.catalog);
}

/* The objects of "regions", in the order of rows. */
static void test_regions_json(void **state)
{
	static const struct {
		const char *key, *text[2];
	} wanted[] = {
		{ "name", { "f(int)", "a.c:3" } },
		{ "kind", { "function", "line" } },
		{ "file", { "/src/b.c", "/src/a.c" } },
		{ "function", { "f(int)", "main" } },
		{ "binary", { "/bin/app", "/lib/liba.so" } },
		{ "verdict", { "worth", "not-worth" } },
	};
	struct ca_region region[] = {
		{ .kind = CA_REGION_FUNCTION,
		  .name = TEXT("f(int)"),
		  .file = TEXT("/src/b.c"),
		  .function = TEXT("f(int)"),
		  .binary = TEXT("/bin/app"),
		  .line = 9 },
		{ .kind = CA_REGION_LINE,
		  .name = TEXT("a.c:3"),
		  .file = TEXT("/src/a.c"),
		  .function = TEXT("main"),
		  .binary = TEXT("/lib/liba.so"),
		  .line = 3 },
	};
	struct ca_profile_point point[] = { { .name = TEXT("done"), .kind = 't' },
					    { .name = TEXT("job"), .kind = 'l' } };
	struct ca_curve curve = { .experiments = 5 };
	struct ca_profile_row row[] = {
		{ &region[0], &point[0], &curve, CA_VERDICT_WORTH, 25 },
		{ &region[1], &point[0], &curve, CA_VERDICT_NOT_WORTH, 50 },
		{ &region[0], &point[1], &curve, CA_VERDICT_NOT_ENOUGH, 25 },
	};
	static const size_t points[] = { 2, 1 }, lines[] = { 9, 3 };
	struct ca_profile profile = { .point = point, .points = 2, .row = row, .rows = 3 };
	struct json_object *object, *regions;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_true(ca_profile_write_json(&profile, file));
	fclose(file);
	object = json_tokener_parse(text);
	regions = ca_results_json_get(object, "regions");
	assert_int_equal(json_object_array_length(regions), 2);
	for (size_t i = 0; i < 2; i++) {
		struct json_object *one = json_object_array_get_idx(regions, i);

		for (size_t k = 0; k < CA_COUNT(wanted); k++)
			assert_string_equal(ca_results_json_string(one, wanted[k].key), wanted[k].text[i]);
		assert_int_equal(ca_results_json_u64(one, "line"), lines[i]);
		assert_int_equal(json_object_array_length(ca_results_json_get(one, "progress")), points[i]);
	}
	json_object_put(object);
	free(text);
	file = fopen("/dev/full", "w");
	setbuf(file, NULL);
	assert_false(ca_profile_write_json(&profile, file));
	fclose(file);
}

/* Each count of the funnel, under its own name, and no others. */
static void test_funnel_json(void **state)
{
	static const char *const keys[] = {
		"runs",
		"runs_unfinished",
		"runs_failed",
		"samples",
		"samples_dropped",
		"samples_in_scope",
		"visits",
		"experiments_started",
		"experiments_finished",
		"experiments_cut",
		"experiments_no_visit",
		"experiments_stalled",
		"experiments_overflow",
		"experiments_disturbed",
		"experiments_unplaced",
		"experiments_books",
		"experiments_unsteady",
		"experiments_ahead",
		"experiments_kept",
		"experiments_kept_at_0",
	};
	struct ca_profile profile = { .funnel = { .runs = 1,
						  .unfinished = 2,
						  .failed = 3,
						  .samples = 4,
						  .dropped = 5,
						  .in_scope = 6,
						  .visits = 7,
						  .started = 8,
						  .finished = 9,
						  .cut = 10,
						  .no_visit = 11,
						  .stalled = 12,
						  .overflow = 13,
						  .disturbed = 14,
						  .unplaced = 15,
						  .books = 16,
						  .unsteady = 17,
						  .ahead = 18,
						  .kept = 19,
						  .zeros = 20 } };
	struct json_object *object, *funnel, *drops;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	for (unsigned d = 0; d < CA_DROP_COUNT; d++)
		profile.funnel.drop[d] = 100 + d;
	assert_true(ca_profile_write_json(&profile, file));
	fclose(file);
	object = json_tokener_parse(text);
	funnel = ca_results_json_get(object, "funnel");
	assert_int_equal(json_object_object_length(funnel), CA_COUNT(keys) + 1);
	for (size_t i = 0; i < CA_COUNT(keys); i++)
		assert_int_equal(ca_results_json_u64(funnel, keys[i]), i + 1);
	drops = ca_results_json_get(funnel, "drops");
	assert_int_equal(json_object_object_length(drops), CA_DROP_COUNT);
	for (unsigned d = 0; d < CA_DROP_COUNT; d++)
		assert_int_equal(ca_results_json_u64(drops, ca_results_drop_name(d)), 100 + d);
	json_object_put(object);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_utf8),        cmocka_unit_test(test_json),
		cmocka_unit_test(test_coz),         cmocka_unit_test(test_regions_json),
		cmocka_unit_test(test_funnel_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/results/percentiles.c: synthetic runs whose percentiles are known, through the writer and the
 * reader of run files. */
#include "causal/results/profile.h"
#include "core/latency.h"
#include "core/point.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALL = 1, SLOW, REGIONS = 2, US = 1000, SECOND = 1000000000 };

static char dir[64];
static struct ca_catalog catalog;
static struct ca_rng rng;
static struct ca_err err;
static struct ca_profile *profile;

static int set_up(void **state)
{
	static const char *const name[REGIONS] = { "all", "slow" };

	(void)state;
	ca_rng_init(&rng, 7);
	strcpy(dir, "/tmp/ca-percentiles-XXXXXX");
	assert_non_null(mkdtemp(dir));
	for (int i = 0; i < REGIONS; i++) {
		struct ca_region region = { .kind = CA_REGION_FUNCTION, .line = 3 };

		region.name = strdup(name[i]);
		assert_non_null(ca_catalog_add_region(&catalog, &region));
		free(region.name);
	}
	assert_non_null(ca_catalog_add_point(&catalog, 0, CA_POINT_BEGIN, "request"));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	ca_profile_free(profile);
	profile = NULL;
	ca_catalog_fini(&catalog);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

/* Nine in ten visits take 100 to 120 us, evenly; the others 300 us more, which is `slow`. `all` is half of
 * each visit. In ns. */
static double one_time(uint32_t region, double speedup)
{
	double ns = (100 + 20 * ca_rng_unit(&rng)) * US;

	if (ca_rng_below(&rng, 10) == 0)
		ns += 300 * US * (region == SLOW ? 1 - speedup : 1);
	return region == ALL ? ns * (1 - speedup / 2) : ns;
}

static void one_experiment(struct ca_results *results, unsigned index, uint32_t region, uint32_t speedup,
			   unsigned visits)
{
	static uint32_t times[CA_LATENCY_BUCKETS];
	double wander = 1 + 0.01 * (ca_rng_unit(&rng) - 0.5), sum = 0;
	struct ca_visits v = { .delta = visits, .arrivals = visits, .times = times };
	struct ca_experiment_record record = { .index = index,
					       .region = region,
					       .speedup = speedup,
					       .start = (uint64_t)index * SECOND,
					       .end = (uint64_t)index * SECOND + SECOND,
					       .paying = UINT64_MAX,
					       .hits = 100,
					       .exact = true,
					       .visit_count = 1,
					       .visits = &v };

	memset(times, 0, sizeof times);
	for (unsigned i = 0; i < visits; i++) {
		double ns = wander * one_time(region, speedup / 1e6);

		times[ca_latency_bucket((uint64_t)ns)]++;
		sum += ns;
	}
	v.in_flight = sum / SECOND;
	assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
}

static void sweep(unsigned runs, unsigned rounds, unsigned visits)
{
	static const char *const command[] = { "./app", NULL };
	unsigned index = 0;

	for (unsigned run = 1; run <= runs; run++) {
		struct ca_run_info info = { .run = run,
					    .iteration = run,
					    .command = command,
					    .mode = "function",
					    .backend = "perf",
					    .speedups = "0,50",
					    .seed = 5 };
		struct ca_run_summary summary = { .runtime = SECOND };
		struct ca_results *results;

		assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), CA_OK);
		for (unsigned i = 0; i < rounds; i++)
			for (uint32_t region = 1; region <= REGIONS; region++) {
				one_experiment(results, ++index, region, 0, visits);
				one_experiment(results, ++index, region, 500000, visits);
			}
		assert_int_equal(ca_results_close(results, &summary, &err), CA_OK);
	}
	assert_int_equal(ca_profile_load(&profile, dir, &err), CA_OK);
}

static const struct ca_curve *curve_of(uint32_t region, int percentile)
{
	for (size_t r = 0; r < profile->rows; r++)
		if (profile->row[r].region->id == region)
			return ca_profile_percentile(&profile->row[r], percentile);
	fail_msg("no row");
	return NULL;
}

static void expect(uint32_t region, int percentile, double truth)
{
	const struct ca_curve *c = curve_of(region, percentile);

	assert_non_null(c);
	if (fabs(c->at[1] - truth) > 2 || c->at_low[1] > truth || c->at_high[1] < truth ||
	    c->at_high[1] - c->at_low[1] > 8)
		fail_msg("region %u, percentile %d: %.1f (%.1f to %.1f) for %.1f", region, percentile,
			 c->at[1], c->at_low[1], c->at_high[1], truth);
}

/* The 50th percentile is the 50/90th of the fast visits; the 95th and the 99th are the 50th and the 90th of
 * the slow ones. */
static void check_truths(void)
{
	static const double at_zero[CA_PERCENTILES] = { 100 + 20 * 5. / 9, 410, 418 };

	for (int i = 0; i < CA_PERCENTILES; i++) {
		double time = profile->point[0].percentile[i].time / US;

		if (fabs(time / at_zero[i] - 1) > 0.015)
			fail_msg("percentile %d: %.1f us for %.1f", i, time, at_zero[i]);
		expect(ALL, i, 25);
		expect(SLOW, i, i == 0 ? 0 : 100 * 150 / at_zero[i]);
	}
}

static void test_known(void **state)
{
	(void)state;
	sweep(1, 12, 2000);
	check_truths();
}

/* In many short runs, too, and where an experiment has too few visits for the 99th by itself. */
static void test_few_at_once(void **state)
{
	(void)state;
	sweep(8, 6, 150);
	check_truths();
}

/* With too few visits in all, the rare ones are not known; the mean and the middle are. */
static void test_too_few(void **state)
{
	(void)state;
	sweep(1, 5, 30);
	assert_non_null(curve_of(ALL, 0));
	assert_null(curve_of(ALL, 2));
	assert_true(isnan(profile->point[0].percentile[2].time));
	assert_true(isfinite(profile->row[0].curve->at[1]));
}

/* What other programs have written into a run file. */
static void test_odd_files(void **state)
{
	char path[128];
	FILE *file;

	(void)state;
	snprintf(path, sizeof path, "%s/run-0001.jsonl", dir);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("{\"type\":\"run\",\"format\":\"causal-run\",\"version\":1,\"run\":1,\"command\":[\"a\"]}\n",
	      file);
	for (int i = 0; i < 4; i++)
		fprintf(file,
			"{\"type\":\"experiment\",\"index\":1,\"region\":{\"name\":\"x\"},\"speedup\":%d,"
			"\"start\":0,\"end\":9000000000,\"duration\":9000000000,\"flags\":[],\"progress\":["
			"{\"point\":\"p\",\"kind\":\"latency\",\"delta\":9,\"arrivals\":9,\"in_flight\":1,"
			"\"times\":%s}]}\n",
			50 * (i & 1),
			i < 2 ? "[99999,7,-5,3,\"x\",4,700]" : "[700,1,2111,4294967295,701,-1,5,5000000000]");
	fclose(file);
	assert_int_equal(ca_profile_load(&profile, dir, &err), CA_OK);
	assert_int_equal(profile->points, 1);
	for (size_t i = 0; i < profile->time_count; i++)
		assert_true(profile->times[i].bucket < CA_LATENCY_BUCKETS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_known, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_few_at_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_too_few, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_odd_files, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

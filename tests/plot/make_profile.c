/* SPDX-License-Identifier: MIT */
/* Writes a directory of run files with known effects through the real writer, makes the
 * profile of it and prints the table: material for the tests of formats, table and plots.
 * make_profile DIR [sweep|end-to-end|latency|empty] [WIDTH]. Seeded: always the same. */
#include "causal/results/results.h"
#include "core/rng.h"
#include "core/session.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAST, SLOW, IDLE, NAMES };

static struct ca_rng rng;
static struct ca_catalog catalog;
static struct ca_err err;

static void check(enum ca_status status)
{
	if (status) {
		fprintf(stderr, "make_profile: %s\n", err.text);
		exit(1);
	}
}

static double normal(void)
{
	double radius = sqrt(-2 * log1p(-ca_rng_unit(&rng)));

	return radius * cos(6.283185307179586 * ca_rng_unit(&rng));
}

/* A barrier: the slow side holds the fast one back until it is 20 % faster. */
static double truth(int region, double speedup)
{
	return region == SLOW ? fmin(0.8 * speedup, 0.2) : region == IDLE ? 0 : 0.02 * speedup;
}

static void fill_catalog(void)
{
	const char *name[NAMES] = { "barrier.c:42", "work<std::vector<int>>::slow_part(int)",
				    "idle_\xc3\xa9t\xc3\xa9" };

	for (int i = 0; i < NAMES; i++) {
		struct ca_region region = {
			.kind = i == FAST ? CA_REGION_LINE : CA_REGION_FUNCTION,
			.line = i == FAST ? 42 : 7,
		};

		region.name = strdup(name[i]);
		region.file = strdup("/src/barrier.c");
		region.function = strdup(i == FAST ? "fast_part" : name[i]);
		region.binary = strdup("/usr/bin/barrier");
		if (!ca_catalog_add_region(&catalog, &region))
			exit(1);
		free(region.name);
		free(region.file);
		free(region.function);
		free(region.binary);
	}
}

static struct ca_run_summary summary_of(uint64_t started, uint64_t kept)
{
	return (struct ca_run_summary){
		.runtime = 10 * UINT64_C(1000000000),
		.samples = 9000,
		.in_scope = 8000,
		.drop = { 1, 2, 3 },
		.started = started,
		.kept = kept,
		.visits = 100 * kept,
		.handler_ns = 1000000,
		.cpu_ns = 18 * UINT64_C(1000000000),
	};
}

static struct ca_run_info info_of(unsigned run, bool end_to_end)
{
	static const char *const command[] = { "./barrier", "-n", "two words", NULL };

	return (struct ca_run_info){
		.run = run,
		.iteration = run,
		.command = command,
		.mode = "function",
		.backend = "perf",
		.end_to_end = end_to_end,
		.speedups = "0-100:25",
		.seed = 42,
	};
}

static void one_experiment(struct ca_results *results, unsigned index, int kind, uint64_t *clock)
{
	int region = (int)ca_rng_below(&rng, NAMES);
	uint32_t speedup = ca_rng_below(&rng, 3) == 0 ? 0 : 250000 * (1 + (uint32_t)ca_rng_below(&rng, 4));
	double scale = 1 - truth(region, speedup / 1e6), noise = exp(0.01 * normal());
	double seconds = kind == 0 ? 5 * scale * noise : 1;
	/* 0.8 of the time is in S */
	double inserted = 0.8 * speedup / 1e6;
	uint64_t duration = (uint64_t)(seconds * 1e9),
		 delay = (uint64_t)(seconds * 1e9 * inserted / (1 - inserted));
	static uint32_t times[CA_LATENCY_BUCKETS];
	struct ca_visits visits = { .point = 3, .delta = 1 };
	struct ca_experiment_record record;

	if (kind != 0)
		visits.delta = (uint64_t)((double)duration / (5e6 * scale * noise) + ca_rng_unit(&rng));
	if (kind == CA_POINT_BEGIN) {
		/* Departures stay the same; what changes is how many are under way. */
		visits.delta = visits.arrivals = 200;
		visits.in_flight = 12 * scale * noise;
		memset(times, 0, sizeof times);
		for (int i = 0; i < 200; i++) /* 30 to 90 ms, evenly */
			times[ca_latency_bucket((uint64_t)((30 + 0.3 * i) * 1e6 * scale * noise))]++;
		visits.times = times;
	}
	record = (struct ca_experiment_record){
		.index = index,
		.region = (uint32_t)region + 1,
		.speedup = speedup,
		.flags = index == 5 ? CA_EXPERIMENT_CUT : 0,
		.start = *clock,
		.end = *clock + duration + delay,
		.s_time = (uint64_t)(0.8 * (double)(duration + delay)),
		.delay = delay,
		.paid = delay,
		.paying = UINT64_MAX,
		.hits = 300,
		.exact = true,
		.visit_count = 1,
		.visits = &visits,
	};
	check(ca_results_experiment(results, &record, &err));
	*clock = record.end + 10000000;
}

static void one_run(const char *dir, unsigned run, unsigned experiments, int kind)
{
	struct ca_run_info info = info_of(run, kind == 0);
	struct ca_run_summary summary = summary_of(experiments, experiments - (experiments > 4));
	struct ca_results *results;
	/* Far and unevenly apart: the real clocks, which are in the file too, decide nothing. */
	uint64_t clock = run * (run + 7) * UINT64_C(1000000000000);

	check(ca_results_open(&results, dir, &info, &catalog, &err));
	if (run == 1)
		check(ca_results_warning(results, "a line had to be left out\n\x80", &err));
	for (unsigned i = 1; i <= experiments; i++)
		one_experiment(results, i, kind, &clock);
	for (uint32_t region = 1; region <= NAMES && experiments; region++)
		check(ca_results_samples(results, region, 1000 * region, NULL, &err));
	if (!experiments)
		summary.visits = summary.in_scope = 0;
	check(ca_results_close(results, &summary, &err));
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "sweep";
	int kind = !strcmp(what, "end-to-end") ? 0
		   : !strcmp(what, "latency")  ? CA_POINT_BEGIN
					       : CA_POINT_THROUGHPUT;
	struct ca_profile *profile;

	if (argc < 2)
		return 2;
	ca_rng_init(&rng, 1);
	fill_catalog();
	ca_catalog_add_point(&catalog, 3, kind, kind == 0 ? "barrier" : "iteration");
	if (!strcmp(what, "empty"))
		one_run(argv[1], 1, 0, kind);
	else
		for (unsigned run = 1; run <= (kind == 0 ? 90 : 10); run++)
			one_run(argv[1], run, kind == 0 ? 1 : 20, kind);
	check(ca_profile_load(&profile, argv[1], &err));
	check(ca_profile_write(profile, argv[1], &err));
	ca_results_print(profile, 1, argc > 3 ? (unsigned)atoi(argv[3]) : 100, false);
	ca_profile_free(profile);
	ca_catalog_fini(&catalog);
	return 0;
}

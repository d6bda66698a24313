/* SPDX-License-Identifier: MIT */
/* The profile in memory: the catalog, the funnel and its reasons at their limits, and lines of the
 * table. test_results_records.c has what comes from files. */
#include "causal/results/profile.h"
#include "tests/unit/unit.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A string that may be written, as the structures want it. */
#define TEXT(s)                                                                                              \
	(char[])                                                                                             \
	{                                                                                                    \
		s                                                                                            \
	}

/* ---- the catalog --------------------------------------------------------------------------*/
static void test_regions(void **state)
{
	struct ca_region base = { .kind = CA_REGION_LINE,
				  .name = TEXT("f"),
				  .file = TEXT("/a.c"),
				  .function = TEXT("g"),
				  .binary = TEXT("/b"),
				  .line = 7 };
	struct ca_region other[6];
	struct ca_catalog catalog = { 0 };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(other); i++)
		other[i] = base;
	other[0].kind = CA_REGION_FUNCTION;
	other[1].name = TEXT("F");
	other[2].file = NULL;
	other[3].function = TEXT("");
	other[4].binary = TEXT("/c");
	other[5].line = 8;
	assert_null(ca_catalog_get_region(&catalog, 1));
	assert_int_equal(ca_catalog_add_region(&catalog, &base)->id, 1);
	for (size_t i = 0; i < CA_COUNT(other); i++)
		assert_int_equal(ca_catalog_add_region(&catalog, &other[i])->id, i + 2);
	for (size_t i = 0; i < CA_COUNT(other); i++)
		assert_int_equal(ca_catalog_add_region(&catalog, &other[i])->id, i + 2);
	assert_int_equal(ca_catalog_add_region(&catalog, &base)->id, 1);
	assert_int_equal(catalog.regions, 7);
	for (unsigned i = 0; i < 1000; i++) {
		struct ca_region many = base;

		many.line = 100 + i;
		assert_int_equal(ca_catalog_add_region(&catalog, &many)->id, 8 + i);
	}
	assert_null(ca_catalog_get_region(&catalog, 0));
	assert_null(ca_catalog_get_region(&catalog, 1008));
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(ca_catalog_get_region(&catalog, 8 + i)->line, 100 + i);
	assert_string_equal(ca_catalog_get_region(&catalog, 4)->file, "");
	assert_string_equal(ca_catalog_get_region(&catalog, 1)->file, "/a.c");
	assert_string_equal(ca_catalog_get_region(&catalog, 1)->function, "g");
	assert_string_equal(ca_catalog_get_region(&catalog, 1)->binary, "/b");
	ca_catalog_fini(&catalog);
	assert_int_equal(catalog.regions, 0);
	assert_null(catalog.region);
}

/* A function is one region, whether a copy of it or the function itself was met first; lines go by their place. */
static void test_function_is_one(void **state)
{
	struct ca_region copy = { .kind = CA_REGION_FUNCTION,
				  .name = (char *)"work",
				  .file = (char *)"",
				  .function = (char *)"work",
				  .binary = (char *)"app" },
			 whole = copy, other = copy;
	struct ca_region line = { .kind = CA_REGION_LINE,
				  .name = (char *)"a.c:3",
				  .file = (char *)"x/a.c",
				  .line = 3,
				  .function = (char *)"work",
				  .binary = (char *)"app" },
			 same_name = line;
	struct ca_catalog catalog = { 0 };

	(void)state;
	whole.file = (char *)"a.c";
	whole.line = 3;
	other.binary = (char *)"library";
	same_name.file = (char *)"y/a.c";
	assert_int_equal(ca_catalog_add_region(&catalog, &copy)->id, 1);
	assert_int_equal(ca_catalog_add_region(&catalog, &whole)->id, 1);
	assert_int_equal(ca_catalog_add_region(&catalog, &copy)->id, 1);
	assert_string_equal(ca_catalog_get_region(&catalog, 1)->file, "a.c");
	assert_int_equal(ca_catalog_get_region(&catalog, 1)->line, 3);
	assert_int_equal(ca_catalog_add_region(&catalog, &other)->id, 2);
	assert_int_equal(ca_catalog_add_region(&catalog, &line)->id, 3);
	assert_int_equal(ca_catalog_add_region(&catalog, &same_name)->id, 4);
	ca_catalog_fini(&catalog);
}

static void test_points(void **state)
{
	struct ca_catalog catalog = { 0 };

	(void)state;
	assert_null(ca_catalog_get_point(&catalog, 5));
	for (uint32_t i = 0; i < 40; i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		assert_int_equal(ca_catalog_add_point(&catalog, 2 * i + 1, (int)i % 4, name)->id, 2 * i + 1);
	}
	/* the first name stays */
	assert_string_equal(ca_catalog_add_point(&catalog, 7, 0, "other")->name, "p3");
	assert_int_equal(catalog.points, 40);
	assert_null(ca_catalog_get_point(&catalog, 4));
	for (uint32_t i = 0; i < 40; i++)
		assert_int_equal(ca_catalog_get_point(&catalog, 2 * i + 1)->kind, i % 4);
	assert_string_equal(ca_catalog_add_point(&catalog, 100, 0, NULL)->name, "");
	ca_catalog_fini(&catalog);
}

/* ---- the funnel ---------------------------------------------------------------------------*/
static void test_count(void **state)
{
	struct ca_profile_run run[3] = {
		{ .ended = true,
		  .summary = { .exit_status = 1,
			       .runtime = 10,
			       .samples = 20,
			       .in_scope = 5,
			       .drop = { 1, 2 },
			       .started = 2,
			       .visits = 3,
			       .outside = true } },
		{ .ended = true,
		  .summary = { .runtime = 1, .samples = 2, .in_scope = 3, .drop = { 4 }, .visits = 5 } },
		{ .ended = false, .summary = { .exit_status = 2, .started = 1, .outside = true } },
	};
	struct ca_profile_visits visits[] = { { .delta = 10 },
					      { .delta = 3, .arrivals = 4 },
					      { .delta = 100 } };
	struct ca_profile_experiment experiment[] = {
		{ .visits = 2 },
		{ .speedup = 5, .first = 2, .visits = 1, .disturbed = true },
		{ .flags = CA_EXPERIMENT_CUT | CA_EXPERIMENT_STALLED },
		{ .flags = CA_EXPERIMENT_NO_VISIT | CA_EXPERIMENT_UNPLACED, .books = true },
		{ .flags = CA_EXPERIMENT_OVERFLOW | CA_EXPERIMENT_DISTURBED, .disturbed = true },
		{ .flags = CA_EXPERIMENT_STALLED | CA_EXPERIMENT_AHEAD },
	};
	struct ca_profile profile = { .run = run,
				      .runs = 3,
				      .visits = visits,
				      .experiment = experiment,
				      .experiments = CA_COUNT(experiment),
				      .funnel = { .kept = 77 } };
	const struct ca_funnel *f = &profile.funnel;

	(void)state;
	ca_funnel_count(&profile);
	assert_int_equal(f->runs, 3);
	assert_int_equal(f->unfinished, 1);
	assert_int_equal(f->failed, 1);
	assert_int_equal(f->outside, 1);
	assert_int_equal(f->runtime, 11);
	assert_int_equal(f->samples, 22);
	assert_int_equal(f->in_scope, 8);
	assert_int_equal(f->drop[0], 5);
	assert_int_equal(f->drop[1], 2);
	assert_int_equal(f->dropped, 2); /* a tick while a thread pays is no loss */
	assert_int_equal(f->finished, 6);
	assert_int_equal(f->kept, 2);
	assert_int_equal(f->zeros, 1);
	assert_int_equal(f->cut, 1);
	assert_int_equal(f->no_visit, 1);
	assert_int_equal(f->stalled, 2);
	assert_int_equal(f->overflow, 1);
	assert_int_equal(f->disturbed, 2);
	assert_int_equal(f->unplaced, 1);
	assert_int_equal(f->books, 1);
	assert_int_equal(f->ahead, 1);
	assert_int_equal(f->started, 6);  /* not fewer than finished */
	assert_int_equal(f->visits, 117); /* not fewer than were seen */
	run[2].summary.started = 6;
	run[0].summary.visits = 113;
	ca_funnel_count(&profile);
	assert_int_equal(f->started, 8);
	assert_int_equal(f->visits, 118);
}

/* One step this side of each limit and one step beyond. Runs: two that ended, unless told. */
static const struct {
	struct ca_funnel f;
	const char *cause;
	bool line, end_to_end, busy, zero, half, many; /* zero: -s 0; half: -s 50; many: speedups */
} funnels[] = {
	{ .f = { .outside = 2 }, .cause = "could not be preloaded" },
	{ .f = { .outside = 1 }, .cause = "no sample was taken" },
	{ .f = { .failed = 2 }, .cause = "failed before" },
	{ .f = { .failed = 1 }, .cause = "no sample was taken" },
	{ .f = { .failed = 2, .samples = 10, .in_scope = 6 }, .cause = "failed before an experiment began" },
	{ .f = { .failed = 1, .samples = 10, .in_scope = 6 }, .cause = "no progress point was passed" },
	{ .f = { .failed = 2, .samples = 10, .in_scope = 6, .started = 1 },
	  .cause = "no progress point was passed" },
	{ .f = { .failed = 2, .off = 1 }, .cause = "switched itself off" },
	{ .f = { .off = 1, .samples = 4, .in_scope = 4 }, .cause = "switched itself off" },
	{ .f = { .off = 1, .samples = 8, .in_scope = 0 }, .cause = "switched itself off" },
	{ .f = { .off = 1, .samples = 5, .in_scope = 5 }, .cause = "no progress point was passed" },
	{ .f = { .failed = 2, .dropped = 1 }, .cause = "every sample was dropped" },
	{ .f = { .failed = 2, .samples = 1 }, .cause = "no sample fell into code" },
	{ .f = { .failed = 2, .started = 1, .finished = 1, .visits = 1 }, .cause = "could be used" },
	{ .f = { .samples = 9, .in_scope = 19, .drop = { [CA_DROP_NO_MODULE] = 10 } },
	  .cause = "in no file" },
	{ .f = { .samples = 10, .in_scope = 19, .drop = { [CA_DROP_NO_MODULE] = 10 } },
	  .cause = "no progress point" },
	{ .f = { .samples = 9, .in_scope = 20, .drop = { [CA_DROP_NO_MODULE] = 10 } },
	  .cause = "no progress point" },
	{ .f = { .samples = 19, .runtime = 2000000000, .cpu = 60606060 },
	  .cause = "hardly any CPU time: it" },
	{ .f = { .samples = 20, .runtime = 2000000000, .cpu = 60606060 },
	  .cause = "no sample fell into code" },
	{ .f = { .samples = 19, .runtime = 2000000000, .cpu = 60606061 },
	  .cause = "no sample fell into code" },
	{ .f = { .dropped = 1 }, .cause = "every sample was dropped" },
	{ .f = { .samples = 1, .dropped = 1 }, .cause = "no sample fell into code" },
	{ .f = { .samples = 3, .drop = { [CA_DROP_UNWIND] = 1 } }, .cause = "no sample fell into code" },
	{ .f = { .samples = 3, .drop = { [CA_DROP_UNWIND] = 2 } }, .cause = "no unwind tables" },
	{ .f = { .samples = 2, .drop = { [CA_DROP_UNWIND] = 1 } },
	  .line = true,
	  .cause = "no unwind tables" },
	{ .f = { .samples = 10, .in_main = 6 }, .cause = "are in main itself" },
	{ .f = { .samples = 10, .in_main = 5 }, .cause = "no sample fell into code" },
	{ .f = { .samples = 10, .in_scope = 1, .in_main = 9 }, .cause = "no progress point was passed" },
	{ .f = { .samples = 1 }, .line = true, .cause = "no sample fell on a line" },
	{ .f = { .samples = 1, .in_scope = 1 }, .line = true, .cause = "no progress point was passed" },
	{ .f = { .samples = 1, .in_scope = 1 }, .end_to_end = true, .cause = "before an experiment could" },
	{ .f = { .samples = 1, .in_scope = 1, .visits = 1 }, .cause = "before an experiment was" },
	{ .f = { .samples = 1, .unfinished = 2 }, .cause = "were killed" },
	{ .f = { .samples = 1, .unfinished = 1 }, .cause = "before an experiment was" },
	{ .f = { .visits = 1, .finished = 4, .cut = 2 }, .cause = "during its experiments" },
	{ .f = { .visits = 1, .finished = 4, .cut = 1 }, .cause = "too busy" },
	{ .f = { .visits = 1, .finished = 4, .no_visit = 2 }, .cause = "during the experiments" },
	{ .f = { .visits = 1, .finished = 4, .no_visit = 1 }, .cause = "too busy" },
	{ .f = { .visits = 1, .finished = 4, .overflow = 2 }, .cause = "overflowed" },
	{ .f = { .visits = 1, .finished = 4, .overflow = 1 }, .cause = "too busy" },
	{ .f = { .visits = 1, .finished = 4, .cut = 3, .kept = 1 }, .half = true, .cause = "at 0 %" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4, .zeros = 2 }, .busy = true, .cause = "cannot tell" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4 }, .half = true, .cause = "no experiment ran at 0 %" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4 }, .cause = "too few experiments" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4, .zeros = 4 }, .cause = "could be used ran at 0 %" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4, .zeros = 4 }, .zero = true, .cause = "as -s says" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4, .zeros = 1 }, .cause = "too few experiments" },
	{ .f = { .visits = 1, .finished = 4, .kept = 4, .zeros = 1 },
	  .many = true,
	  .cause = "over many speedups" },
};

static void test_reasons(void **state)
{
	static char function_mode[] = "function", line_mode[] = "line", zero[] = "0", half[] = "50",
		    some[] = "50,0", many[] = "0,20,40,60,80,100";
	const char *cause, *remedy;
	struct ca_profile none = { 0 };

	(void)state;
	assert_true(ca_funnel_reason(&none, &cause, &remedy));
	assert_non_null(strstr(cause, "no run in this directory"));
	for (size_t i = 0; i < CA_COUNT(funnels); i++) {
		struct ca_profile_run run[2] = { { .mode = funnels[i].line ? line_mode : function_mode,
						   .speedups = funnels[i].zero   ? zero
							       : funnels[i].half ? half
							       : funnels[i].many ? many
										 : some,
						   .end_to_end = funnels[i].end_to_end } };
		struct ca_profile profile = {
			.run = run, .runs = 2, .funnel = funnels[i].f, .blind = funnels[i].busy
		};

		run[1].speedups = run->speedups;
		run[1].end_to_end = run->end_to_end;
		cause = remedy = "";
		assert_true(ca_funnel_reason(&profile, &cause, &remedy));
		if (!strstr(cause, funnels[i].cause))
			fail_msg("%zu: %s, and not: %s", i, cause, funnels[i].cause);
		assert_true(strlen(remedy) > 10);
	}
}

/* One row that is sure is enough. */
static void test_no_reason(void **state)
{
	static char mode[] = "function";
	static const struct {
		enum ca_verdict verdict;
		bool fine;
	} cases[] = { { CA_VERDICT_WORTH, true },
		      { CA_VERDICT_NOT_WORTH, true },
		      { CA_VERDICT_NOT_ENOUGH, false },
		      { CA_VERDICT_CANNOT_TELL, false } };
	struct ca_profile_row row[2] = { { .verdict = CA_VERDICT_NOT_ENOUGH } };
	struct ca_profile_run run = { .mode = mode };
	struct ca_profile profile = { .run = &run,
				      .runs = 1,
				      .row = row,
				      .rows = 2,
				      .funnel = { .visits = 1, .finished = 4, .kept = 4, .zeros = 1 } };
	const char *cause, *remedy;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		row[1].verdict = cases[i].verdict;
		assert_int_equal(ca_funnel_reason(&profile, &cause, &remedy), !cases[i].fine);
	}
}

/* Where the runs that were asked for are too few, it is said how many would do. */
static void test_runs_wanted(void **state)
{
	char *contains[] = { TEXT("parse"), NULL };
	struct ca_curve curve[5] = {
		{ .experiments = 9, .at_low = { 0, 10, 20 }, .at_high = { 5, 20, 40 } },
		{ .experiments = 9, .at_low = { 0, 0, 0 }, .at_high = { 0.5, 1, 2 } },
		{ .experiments = 9, .at_low = { 0, 20, 0 }, .at_high = { 0, 25, 0 } },
		{ .experiments = 9, .at_low = { 0, NAN, 0 }, .at_high = { 0, NAN, 0 } },
		{ .experiments = 9, .at_low = { 0, 0, 0 }, .at_high = { 90, 90, 90 } },
	};
	struct ca_profile_row row[5];
	struct ca_profile profile = { .row = row, .rows = 3, .runs = 4 };
	const struct ca_profile_row *open = NULL;

	(void)state;
	for (size_t i = 0; i < 5; i++)
		row[i] = (struct ca_profile_row){ .curve = &curve[i] };
	row[1].verdict = CA_VERDICT_NOT_WORTH;
	/* +-5 by four runs: +-2.5 by sixteen */
	assert_int_equal(ca_profile_runs_wanted(&profile, 2.5, &open), 20); /* 12, to one digit */
	assert_ptr_equal(open, &row[0]);
	assert_int_equal(ca_profile_runs_wanted(&profile, 5, &open), 0);
	assert_int_equal(ca_profile_runs_wanted(&profile, 0.01, &open), 10000);
	/* one of which nothing is known; one behind the third; what others make up */
	profile.rows = 4;
	assert_int_equal(ca_profile_runs_wanted(&profile, 5, &open), 10);
	assert_ptr_equal(open, &row[3]);
	profile.rows = 5;
	assert_int_equal(ca_profile_runs_wanted(&profile, 5, &open), 10);
	row[3].contains = contains;
	assert_int_equal(ca_profile_runs_wanted(&profile, 45, &open), 0);
	assert_int_equal(ca_profile_runs_wanted(&profile, 5, &open), 400); /* 4 x 80 = 320 */
	assert_ptr_equal(open, &row[4]);
	/* an experiment or two, and the bounds that they have: how rows scatter is not known */
	curve[0].experiments = 1;
	curve[4].experiments = 2;
	assert_int_equal(ca_profile_runs_wanted(&profile, 4, &open), 20);
	assert_ptr_equal(open, &row[4]);
	/* told is what is known least, also where it is the first of them */
	curve[0].at_low[1] = -90;
	curve[0].at_high[1] = 90;
	assert_int_equal(ca_profile_runs_wanted(&profile, 4, &open), 20);
	assert_ptr_equal(open, &row[0]);
	/* others took the CPU: more of that does not help */
	profile.blind = true;
	assert_int_equal(ca_profile_runs_wanted(&profile, 5, &open), 0);
}

/* More runs are no way to a verdict where what is left is how the kernel moves threads. */
static void test_vague(void **state)
{
	struct ca_curve curve = { .how = CA_HOW_COMPARED, .experiments = 9, .idle = 0.1 };
	struct ca_profile_row row = { .curve = &curve, .verdict = CA_VERDICT_NOT_ENOUGH };

	(void)state;
	curve.at_low[1] = -4;
	curve.at_high[1] = 11; /* of ± 7.5 it is ± 7 */
	assert_string_equal(ca_profile_row_text(&row), "cannot tell here");
	curve.experiments = 2;
	assert_string_equal(ca_profile_row_text(&row), "not enough data");
	curve.experiments = 9;
	curve.idle = 0.05; /* ± 3.5: more runs help */
	assert_string_equal(ca_profile_row_text(&row), "not enough data");
	curve.idle = 0.1;
	curve.at_high[1] = 5; /* what little it can be is said */
	assert_string_equal(ca_profile_row_text(&row), "little, if any");
	row.verdict = CA_VERDICT_WORTH;
	curve.at_low[1] = 4;
	curve.at_high[1] = 19;
	assert_string_equal(ca_profile_row_text(&row), "worth it");
}

/* What is to be known of all numbers. */
static void test_notes(void **state)
{
	struct ca_profile_experiment experiment = { .disturbed = true, .lost = 1, .work = 3 };
	struct ca_curve curve = { .idle = 0.01 };
	struct ca_profile_row row = { .curve = &curve, .verdict = CA_VERDICT_WORTH };
	struct ca_profile profile = { .experiment = &experiment, .experiments = 1, .row = &row, .rows = 1 };
	char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE], timer[] = "timer";
	struct ca_profile_run run = { .backend = timer };

	(void)state;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	curve.idle = 0.1;
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	assert_non_null(strstr(note[0], "For 10 % of the time"));
	assert_non_null(strstr(note[0], "± 7 at 50 %"));
	curve.sampled = 0.8;
	assert_int_equal(ca_funnel_notes(&profile, note), 2);
	assert_non_null(strstr(note[1], "In 1 row only samples tell"));
	assert_non_null(strstr(note[1], "± 3 at 50 %"));
	assert_null(strstr(note[1], "perf"));
	profile.run = &run;
	profile.runs = 1;
	curve.sampled = 0.8 * CA_ESTIMATE_BY_TIMER;
	assert_int_equal(ca_funnel_notes(&profile, note), 2);
	assert_non_null(strstr(note[1], "± 13 at 50 % for that stay, however many runs; with perf events"));
	profile.runs = 0;
	curve.sampled = 0.8;
	curve.at_high[1] = 13; /* other things matter more */
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	curve.at_high[1] = 0;
	curve.sampled = 0.1; /* less than a point */
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	curve.sampled = 0;
	profile.busy = true;
	assert_int_equal(ca_funnel_notes(&profile, note), 2);
	assert_non_null(strstr(note[0], "for 25 % of the CPU time"));
	profile.blind = true;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	profile.blind = profile.busy = false;
	row.verdict = CA_VERDICT_NOT_WORTH;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
}

/* Code that waits for other threads: in runs that were sampled, and where it is more than a little. */
static void test_spins_note(void **state)
{
	struct ca_region like[] = {
		{ .name = (char[]){ "await(int)" },
		  .file = (char[]){ "" },
		  .function = (char[]){ "" },
		  .binary = (char[]){ "/bin/app" } },
		{ .name = (char[]){ "work" },
		  .file = (char[]){ "" },
		  .function = (char[]){ "" },
		  .binary = (char[]){ "/bin/app" } },
		{ .name = (char[]){ "exec_blas_async_wait" },
		  .file = (char[]){ "" },
		  .function = (char[]){ "" },
		  .binary = (char[]){ "/usr/lib/libopenblasp-r0.3.21.so" } },
	};
	double periods[] = { 1000, 1000, 1000 };
	struct ca_profile_run run[] = { { .sampled = true }, { .sampled = false } };
	struct ca_profile_samples samples[] = {
		{ .run = 0, .region = 1, .count = 60, .own = 60, .spins = 55 },
		{ .run = 0, .region = 2, .count = 800, .own = 800 },
		{ .run = 1, .region = 1, .count = 900, .own = 900, .spins = 900 },
	};
	struct ca_profile profile = { .run = run,
				      .runs = 2,
				      .whole_of = periods,
				      .periods = 1000,
				      .samples = samples,
				      .sample_count = CA_COUNT(samples) };
	char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(like); i++)
		assert_non_null(ca_catalog_add_region(&profile.catalog, &like[i]));
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	assert_non_null(strstr(note[0], "For 6 % of the CPU time threads spin"));
	assert_non_null(strstr(note[0], "each other: await(int). Nothing"));
	assert_null(strstr(note[0], "OpenBLAS"));
	samples[0].region = 3;
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	assert_non_null(strstr(note[0], "try OPENBLAS_NUM_THREADS=1."));
	samples[0].region = 1;
	samples[0].spins = 45;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	ca_catalog_fini(&profile.catalog);
}

/* Runs that are as long as somebody has set them to be. */
static void test_note_set_time(void **state)
{
	struct ca_profile_point point = { .kind = 'e' };
	struct ca_profile_visits visits = { .delta = 1 };
	struct ca_profile_experiment run[] = {
		{ .duration = 6000000000, .visits = 1 },
		{ .duration = 6025000000, .visits = 1, .speedup = 50, .delay = 2000000000 },
		{ .duration = 6010000000, .visits = 1 },
	};
	struct ca_profile profile = {
		.experiment = run, .experiments = CA_COUNT(run), .point = &point, .visits = &visits
	};
	char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];

	(void)state;
	assert_int_equal(ca_funnel_notes(&profile, note), 1);
	assert_non_null(strstr(note[0], "All runs took 6.03 s"));
	/* it only seems so: one is longer; nothing that was faster could have shown; too few to tell; parts of runs */
	run[2].duration = 6060000000;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	run[2].duration = 6010000000;
	run[1].delay = 200000000;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	run[1].delay = 2000000000;
	profile.experiments = 2;
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
	profile.experiments = 3;
	point.kind = 't';
	assert_int_equal(ca_funnel_notes(&profile, note), 0);
}

/* ---- the table ----------------------------------------------------------------------------*/
static const char *printed_to(char text[8192], const struct ca_profile *profile, unsigned width, bool colours)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	ca_results_print(profile, fileno(file), width, colours);
	rewind(file);
	text[fread(text, 1, 8191, file)] = '\0';
	fclose(file);
	return text;
}

static const char *printed(const struct ca_profile *profile, unsigned width)
{
	static char text[8192];

	return printed_to(text, profile, width, false);
}

/* Rows whose curve is known, and not. */
static void test_table(void **state)
{
	struct ca_region region[] = {
		{ .name = TEXT("work"), .file = TEXT(""), .function = TEXT(""), .binary = TEXT("/bin/app") },
		{ .name = TEXT("deflate"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/usr/lib/libz.so.1") },
		{ .name = TEXT("sub_12af"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/bin/app.so2") },
		{ .name = TEXT("sub_work"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/usr/lib/liby.so") },
	};
	struct ca_curve curve[] = {
		{ .at = { 12.34, 24.7, 99.96 },
		  .at_low = { 11.8, 20, 80 },
		  .at_high = { 12.9, 30, 120 },
		  .experiments = 12 },
		{ .at = { -0.04, -0.4, NAN },
		  .at_low = { -0.5, -1, -1 },
		  .at_high = { 0.5, INFINITY, 1 },
		  .experiments = 1 },
	};
	struct ca_curve nothing = { .at = { NAN, NAN, NAN },
				    .at_high = { INFINITY, INFINITY, INFINITY },
				    .experiments = 1 };
	struct ca_curve bounds = { .at = { NAN, NAN, NAN }, .at_high = { 0.4, 0.8, 12 }, .experiments = 3 };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' },
				other = { .name = TEXT("other"), .kind = 't' },
				time = { .name = TEXT(CA_RESULTS_TIME), .kind = 't' };
	struct ca_profile_row row[] = {
		{ &region[0], &point, &curve[0], CA_VERDICT_WORTH, 50, 9.6, NULL, NULL },
		{ &region[1], &point, &curve[1], CA_VERDICT_NOT_WORTH, 7, NAN, NULL, NULL },
		{ &region[2], &point, &curve[1], CA_VERDICT_NOT_ENOUGH, NAN, NAN, NULL, NULL },
		{ &region[3], &point, &curve[1], CA_VERDICT_NOT_ENOUGH, NAN, NAN, NULL, NULL },
	};
	struct ca_profile_run run = { .mode = TEXT("function") };
	struct ca_profile profile = {
		.run = &run,
		.runs = 1,
		.row = row,
		.rows = 4,
		.funnel = { .runs = 1, .visits = 1, .finished = 16, .kept = 15, .zeros = 1, .unfinished = 1 }
	};

	const char *text;

	(void)state;
	assert_string_equal(
		printed(&profile, 100),
		"\n1 run, 15 experiments used of 16, 1 run cut short.\n"
		"Unit of work: one visit of item.\n"
		"Program speedup in % (± half of the 95 % interval):\n\n"
		"     code              25 % less   50 % less     at most   own total\n"
		"  1  work             12.3 ± 0.5      25 ± 5    100 ± 20    10    50   worth it\n"
		"  2  libz.so!deflate   0.0 ± 0.5       0 ± ?       ≤ 1.0     -     7   does not matter\n"
		"     2 more without enough data: sub_12af, liby.so!sub_work\n");
	/* several regions at once are no row */
	row[0].asked = row[2].asked = 50;
	text = printed(&profile, 100);
	assert_null(strstr(text, "work   "));
	assert_non_null(strstr(text, "     1 more without enough data: liby.so!sub_work\n"));
	row[0].asked = row[2].asked = 0;
	/* time was the unit until a point was needed: to a reader that is one */
	row[0].point = &time;
	assert_non_null(strstr(printed(&profile, 100), "\nUnit of work: one visit of item.\n"));
	/* ... or until runs were measured as a whole */
	point.kind = 'e';
	assert_non_null(strstr(printed(&profile, 100), "\nUnit of work: a run.\n"));
	point.kind = 't';
	row[1].point = &time;
	assert_non_null(strstr(printed(&profile, 100), "\nUnit of work: time itself, "));
	other.works = true;
	row[0].point = row[1].point = &other;
	assert_non_null(
		strstr(printed(&profile, 100), "\nUnit of work: CPU time; visits of other are none.\n"));
	other.works = false;
	row[0].point = &other;
	row[1].point = &point;
	assert_non_null(strstr(printed(&profile, 100), "\n  1  work             other "));
	/* nothing sure: the best guesses, and why */
	profile.row = row + 2;
	profile.rows = 2;
	profile.funnel.kept = profile.funnel.finished = 1;
	profile.funnel.unfinished = 0;
	profile.funnel.zeros = 1;
	text = printed(&profile, 100);
	assert_non_null(strstr(text, "  1  sub_12af           0.0 ± 0.5       0 ± ?       ≤ 1.0   not enough "
				     "data: 1 experiment\n"));
	assert_non_null(strstr(text, "\nsub_...: code without a symbol"));
	assert_non_null(strstr(text, "\nNo verdict: all experiments that could be used ran at 0 %.\n"));
	assert_null(strstr(text, "cut short"));
	/* what has no number at all is a name */
	row[3].curve = &nothing;
	text = printed(&profile, 100);
	assert_non_null(strstr(text, "  1  sub_12af "));
	assert_non_null(strstr(text, "\n     1 more without enough data: liby.so!sub_work\n"));
	/* a most is all that is known without an experiment at 0 % */
	row[3].curve = &bounds;
	row[3].verdict = CA_VERDICT_NOT_WORTH;
	profile.row = row + 3;
	profile.rows = 1;
	assert_non_null(
		strstr(printed(&profile, 100), "       ≤ 0.4       ≤ 0.8        ≤ 12   does not matter\n"));
	row[3].verdict = CA_VERDICT_NOT_ENOUGH;
	row[3].curve = &curve[1];
	profile.row = row + 3;
	profile.rows = 1;
	assert_null(strstr(printed(&profile, 100), "sub_...:"));
	profile.rows = 0;
	assert_non_null(strstr(printed(&profile, 100), "\nNo result: "));
}

/* The header is bold and each verdict has its colour; apart from that nothing changes. */
static void test_colours(void **state)
{
	static const struct {
		enum ca_verdict verdict;
		const char *marked;
	} cases[] = {
		{ CA_VERDICT_WORTH, "\033[1;32mworth it\033[0m\n" },
		{ CA_VERDICT_NOT_WORTH, "\033[2mdoes not matter\033[0m\n" },
		{ CA_VERDICT_NOT_ENOUGH, "\033[33mnot enough data\033[0m: 12 experiments\n" },
		{ CA_VERDICT_CANNOT_TELL, "\033[33mcannot tell here\033[0m\n" },
		{ CA_VERDICT_NOT_ENOUGH, "\033[33mlittle, if any\033[0m\n" }, /* at most 5 % at 50 % */
	};
	struct ca_region region = {
		.name = TEXT("work"), .file = TEXT(""), .function = TEXT(""), .binary = TEXT("/bin/app")
	};
	struct ca_curve curve = {
		.at = { 12, 12 }, .at_low = { 11, 11 }, .at_high = { 13, 13 }, .experiments = 12
	};
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_row row = { &region, &point, &curve, CA_VERDICT_WORTH, NAN, NAN, NULL, NULL };
	struct ca_profile profile = { .row = &row,
				      .rows = 1,
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };
	char text[8192];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const char *wanted;
		char *to = text;

		row.verdict = cases[i].verdict;
		curve.at_high[1] = i < 4 ? 13 : 5;
		wanted = printed(&profile, 100);
		assert_null(strchr(wanted, '\033'));
		printed_to(text, &profile, 100, true);
		assert_non_null(strstr(text, "\n\033[1m     code "));
		assert_non_null(strstr(text, " at most\033[0m\n"));
		assert_non_null(strstr(text, cases[i].marked));
		for (const char *from = text; *from; from++)
			if (*from == '\033')
				from += strcspn(from, "m");
			else
				*to++ = *from;
		*to = '\0';
		assert_string_equal(text, wanted);
	}
}

/* An effect that is surely one has no verdict for it stands on one or two experiments: that is said, with room or without. */
static void test_few_tries(void **state)
{
	struct ca_region region = {
		.name = TEXT("work"), .file = TEXT(""), .function = TEXT(""), .binary = TEXT("/bin/app")
	};
	struct ca_curve curve = {
		.at = { 12, 21, 41 }, .at_low = { 8, 15, 31 }, .at_high = { 16, 27, 51 }, .experiments = 2
	};
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_row row = { &region, &point, &curve, CA_VERDICT_NOT_ENOUGH, NAN, NAN, NULL, NULL };
	struct ca_profile profile = { .row = &row,
				      .rows = 1,
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };

	(void)state;
	assert_non_null(strstr(printed(&profile, 100), "not enough data: 2 experiments\n"));
	assert_non_null(strstr(printed(&profile, 66), "   too few tries: 2\n"));
	curve.experiments = 3;
	assert_non_null(strstr(printed(&profile, 66), "   not enough data\n"));
}

/* As terminals and pipes may: a few bytes at a time, and then no more. */
static size_t taken_at_once = SIZE_MAX, taken_in_all = SIZE_MAX;

ssize_t write(int fd, const void *bytes, size_t n)
{
	if (taken_in_all < n)
		n = taken_in_all;
	if (taken_at_once < n)
		n = taken_at_once;
	if (taken_in_all != SIZE_MAX)
		taken_in_all -= n;
	return syscall(SYS_write, fd, bytes, n);
}

static void test_pieces(void **state)
{
	struct ca_region region = {
		.name = TEXT("work"), .file = TEXT(""), .function = TEXT(""), .binary = TEXT("/bin/app")
	};
	struct ca_curve curve = { .at = { 12 }, .at_low = { 11 }, .at_high = { 13 }, .experiments = 12 };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_row row = { &region, &point, &curve, CA_VERDICT_WORTH, NAN, NAN, NULL, NULL };
	struct ca_profile profile = { .row = &row,
				      .rows = 1,
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };
	char whole[4096];

	(void)state;
	snprintf(whole, sizeof whole, "%s", printed(&profile, 100));
	assert_true(strlen(whole) > 50);
	for (taken_at_once = 1; taken_at_once < 100; taken_at_once += 7)
		assert_string_equal(printed(&profile, 100), whole);
	taken_at_once = 10;
	taken_in_all = 25;
	whole[25] = '\0';
	assert_string_equal(printed(&profile, 100), whole);
	taken_at_once = taken_in_all = SIZE_MAX;
}

/* The name goes before the numbers: with little room there are fewer columns. */
static void test_columns(void **state)
{
	static const struct {
		unsigned width;
		bool quarter, shares;
	} cases[] = { { 0, true, true },   { 96, true, true },   { 95, false, true },
		      { 84, false, true }, { 83, false, false }, { 40, false, false } };
	struct ca_region region = { .name = TEXT("work_on_something_long_at_last"),
				    .file = TEXT(""),
				    .function = TEXT(""),
				    .binary = TEXT("/bin/app") };
	struct ca_curve curve = {
		.at = { 10, 20, 40 }, .at_low = { 9, 18, 36 }, .at_high = { 11, 22, 44 }, .experiments = 12
	};
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_point whole = { .name = TEXT("item"), .kind = 't', .whole = true };
	struct ca_profile_row row[] = {
		{ &region, &point, &curve, CA_VERDICT_WORTH, 50, 40, NULL, NULL },
		{ &region, &whole, &curve, CA_VERDICT_WORTH, 50, 40, NULL, NULL },
	};
	struct ca_profile profile = { .row = row,
				      .rows = 2,
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const char *text = printed(&profile, cases[i].width);

		/* one point, also where it was counted in whole runs, too */
		assert_non_null(strstr(text, "Unit of work: one visit of item.\n"));
		assert_int_equal(strstr(text, " 25 % less ") != NULL, cases[i].quarter);
		assert_non_null(strstr(text, " 50 % less     at most"));
		assert_int_equal(strstr(text, " own total") != NULL, cases[i].shares);
		assert_non_null(strstr(text, "20 ± 2      40 ± 4"));
		assert_non_null(strstr(text, "worth it\n"));
	}
}

/* One thread's time in the kernel has no samples. */
static void test_table_kernel(void **state)
{
	static const struct {
		enum ca_how how;
		double most;
		const char *backend;
		bool told;
	} cases[] = { { CA_HOW_OWN, 30, "perf", true },
		      { CA_HOW_OWN, 30, "timer", false },
		      { CA_HOW_OWN, 15, "perf", false },
		      { CA_HOW_COMPARED, 30, "perf", false } };
	struct ca_region region = {
		.id = 1, .name = TEXT("send"), .file = TEXT(""), .function = TEXT(""), .binary = TEXT("/a")
	};
	struct ca_profile_scope scope[] = { { TEXT("/a"), 20, true }, { TEXT("[kernel]"), 80, false } };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_curve curve = { .experiments = 12, .how = cases[i].how };
		struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
		struct ca_profile_row row = { &region, &point, &curve, CA_VERDICT_WORTH, 10, 8, NULL, NULL };
		struct ca_profile_run run = { .backend = (char *)cases[i].backend };
		struct ca_profile profile = { .row = &row,
					      .rows = 1,
					      .scope = scope,
					      .scopes = 2,
					      .run = &run,
					      .runs = 1,
					      .catalog = { .region = &region, .regions = 1 },
					      .funnel = {
						      .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };

		for (int k = 0; k < CA_AT; k++)
			curve.at[k] = curve.at_low[k] = curve.at_high[k] = cases[i].most;
		assert_non_null(strstr(printed(&profile, 120), "CPU time: a 20 %; left out: [kernel] 80 % "
							       "(counts for the code that calls it).\n"));
		assert_int_equal(strstr(printed(&profile, 120), "Time in the kernel") != NULL, cases[i].told);
	}
}

/* Callers that a row stands for are below it; code that only contains rows is no row. */
static void test_chains(void **state)
{
	char *const via[] = { TEXT("step"), TEXT("run\x1b"), NULL };
	char *const contains[] = { TEXT("work"), TEXT("elsewhere"), NULL };
	char *const calls[] = { TEXT("leaf"), TEXT("helper"), NULL };
	struct ca_region region[] = {
		{ .id = 1,
		  .name = TEXT("work"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/a") },
		{ .id = 2,
		  .name = TEXT("loop"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/a") },
		{ .id = 3, /* was tried before samples said that the first stands for it */
		  .name = TEXT("step"),
		  .file = TEXT(""),
		  .function = TEXT(""),
		  .binary = TEXT("/a") },
	};
	struct ca_curve curve = { .experiments = 12 };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_row row[] = {
		{ &region[1], &point, &curve, CA_VERDICT_WORTH, 50, 1, NULL, contains },
		{ &region[2], &point, &curve, CA_VERDICT_WORTH, 45, 1, NULL, NULL },
		{ &region[0], &point, &curve, CA_VERDICT_WORTH, 50, 1, via, NULL, .calls = calls },
	};
	struct ca_profile_samples samples[] = {
		{ .region = 1, .via = (char **)via },
		{ .region = 2, .contains = (char **)contains },
		{ .run = 1, .region = 2, .contains = (char **)contains },
	};
	struct ca_profile profile = { .row = row,
				      .rows = 3,
				      .samples = samples,
				      .sample_count = 3,
				      .catalog = { .region = region, .regions = 3 },
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };
	const char *text = printed(&profile, 100);

	(void)state;
	assert_non_null(strstr(text, "\n  1  work "));
	assert_non_null(strstr(
		text,
		"\n     via step ← run?\n     calls leaf, helper\n     Containing 1 and elsewhere: loop\n"));
	assert_null(strstr(text, "  2  "));
	assert_null(strstr(strstr(text, "Containing") + 1, "Containing"));
}

/* Of rows that are equal but for chance, the one comes first that does the work; one that is really better keeps its
 * place, and so does one with work of its own. */
static void test_called_first(void **state)
{
	char *const calls[] = { TEXT("other"), TEXT("parse"), NULL };
	struct ca_region wrapper = { .name = TEXT("wrapper"), .file = TEXT("") };
	struct ca_region parse = { .name = TEXT("parse"), .file = TEXT("") };
	struct ca_region write = { .name = TEXT("write"), .file = TEXT("") };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	const struct ca_curve best = { .impact = 26, .impact_low = 25, .impact_high = 27 },
			      less = { .impact = 25.5, .impact_low = 24, .impact_high = 27 },
			      much_less = { .impact = 20, .impact_low = 19, .impact_high = 21 };
	const struct ca_curve wide = { .impact = 20, .impact_low = 8, .impact_high = 32 };
	const struct {
		const struct ca_curve *parse;
		double own;
		const char *first;
		bool called;
	} cases[] = {
		{ &less, 1, "parse", true },        { &less, 1, "parse", false },
		{ &wide, 1, "parse", true },        { &wide, 1, "wrapper", false },
		{ &much_less, 1, "wrapper", true }, { &less, 5, "wrapper", true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ca_profile_row row[] = {
			{ &write, &point, &much_less, CA_VERDICT_WORTH, 60, 50, NULL, NULL },
			{ &parse, &point, cases[i].parse, CA_VERDICT_WORTH, 19, 17, NULL, NULL },
			{ &wrapper, &point, &best, CA_VERDICT_WORTH, 21, cases[i].own,
			  .calls = cases[i].called ? calls : NULL },
		};
		struct ca_profile profile = { .row = row, .rows = 3 };

		ca_profile_rank(&profile);
		assert_string_equal(row[0].region->name, cases[i].first);
		assert_ptr_not_equal(row[1].region, row[0].region);
		assert_true(row[0].region == &write || row[1].region == &write || row[2].region == &write);
	}
}

/* The largest of several estimates is so by chance, too. */
static void test_wide_is_no_first(void **state)
{
	struct ca_region wide = { .name = TEXT("wide"), .file = TEXT("") };
	struct ca_region sure = { .name = TEXT("sure"), .file = TEXT("") };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	const struct ca_curve of_sure = { .impact = 18, .impact_low = 12, .impact_high = 24 };
	const struct {
		struct ca_curve wide;
		bool first;
	} cases[] = {
		{ { .impact = 19, .impact_low = 2, .impact_high = 36 }, false },
		{ { .impact = 19, .impact_low = 13, .impact_high = 25 }, true },
		{ { .impact = 40, .impact_low = 23, .impact_high = 57 }, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct ca_profile_row row[] = {
			{ &wide, &point, &cases[i].wide, CA_VERDICT_WORTH, 40, 40, NULL, NULL },
			{ &sure, &point, &of_sure, CA_VERDICT_WORTH, 40, 40, NULL, NULL },
		};
		struct ca_profile profile = { .row = row, .rows = 2 };

		ca_profile_rank(&profile);
		assert_true((row[0].region == &wide) == cases[i].first);
	}
}

/* Code that has samples of its own and no experiment is named: it would be next. */
static void test_table_untried(void **state)
{
	char *const via[] = { TEXT("step"), NULL }, *const contains[] = { TEXT("work"), NULL };
	static char empty[] = "", binary[] = "/a",
		    names[][8] = { "work", "step", "loop", "next", "third", "little" };
	struct ca_region region[6];
	struct ca_curve curve = { .experiments = 12 };
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_row row = { &region[0], &point, &curve, CA_VERDICT_WORTH, 50, 40, via, NULL };
	struct ca_profile_run run[] = { { .sampled = true }, { .sampled = false } };
	struct ca_profile_samples samples[] = {
		{ .region = 1, .count = 80, .own = 60, .via = (char **)via },
		{ .region = 2, .count = 90, .own = 10 },
		{ .region = 3, .count = 100, .own = 10, .contains = (char **)contains },
		{ .region = 4, .count = 15, .own = 12 },
		{ .region = 4, .count = 80, .own = 80, .run = 1 },
		{ .region = 5, .count = 20, .own = 20 },
		{ .region = 6, .count = 50, .own = 4 },
	};
	double periods[] = { 100, 100, 100, 100, 100, 100 };
	struct ca_profile profile = { .row = &row,
				      .rows = 1,
				      .run = run,
				      .runs = 2,
				      .periods = 100,
				      .whole_of = periods,
				      .samples = samples,
				      .sample_count = 7,
				      .catalog = { .region = region, .regions = 6 },
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };

	(void)state;
	for (uint32_t i = 0; i < 6; i++)
		region[i] = (struct ca_region){
			.id = i + 1, .name = names[i], .file = empty, .function = empty, .binary = binary
		};
	assert_non_null(strstr(printed(&profile, 100),
			       "\n     Not tried yet (own CPU time): third 20 %, next 12 %\n"));
	profile.sample_count = 3;
	assert_null(strstr(printed(&profile, 100), "Not tried yet"));
}

/* What is left over: a bound for what does not matter, names for the rest. */
static void test_rest(void **state)
{
	char none[] = "", binary[] = "/a";
	struct ca_region region[12];
	struct ca_curve curve = { .at = { 0, 0.1, 0.2 },
				  .at_low = { -1, -1, -1 },
				  .at_high = { 0.3, 0.9, 1.7 },
				  .experiments = 2 },
			few;
	struct ca_profile_point point = { .name = TEXT("item"), .kind = 't' };
	struct ca_profile_point latency = { .name = TEXT("wait"), .kind = 'l' };
	struct ca_profile_experiment experiment[12];
	struct ca_profile_row row[12];
	struct ca_profile profile = { .row = row,
				      .rows = 12,
				      .funnel = { .visits = 1, .finished = 9, .kept = 9, .zeros = 1 } };
	char *contains[] = { TEXT("f6"), TEXT("f0"), TEXT("a"),  TEXT("f2"), TEXT("f1"),
			     TEXT("b"),  TEXT("f3"), TEXT("f5"), TEXT("c"),  NULL };
	struct ca_region loop = { .id = 1, .name = TEXT("loop"), .file = none, .binary = binary };
	struct ca_profile_samples samples = { .region = 1, .contains = contains }, layer[5];
	struct ca_region layers[5];
	char names[12][8];
	const char *text;

	(void)state;
	for (size_t i = 0; i < 12; i++) {
		snprintf(names[i], sizeof names[i], "f%zu", i);
		region[i] = (struct ca_region){ .name = names[i], .file = none, .binary = binary };
		row[i] = (struct ca_profile_row){ .region = &region[i],
						  .point = &point,
						  .curve = &curve,
						  .verdict = i < 10 ? CA_VERDICT_NOT_WORTH
								    : CA_VERDICT_NOT_ENOUGH };
	}
	text = printed(&profile, 100);
	assert_non_null(strstr(text, "\n     2 others: at most 2 each\n"
				     "     2 more without enough data: f10, f11\n"));
	/* the page has the same words */
	few = curve;
	few.experiments = 8;
	few.at_high[1] = 3;
	row[11].curve = &few;
	assert_non_null(strstr(printed(&profile, 100), "     1 more that give little, if any: f11\n"
						       "     1 more without enough data: f10\n"));
	/* the same code, as two points see it */
	row[10].region = &region[11];
	row[10].point = &latency;
	assert_non_null(strstr(printed(&profile, 100), "     1 more that give little, if any: f11 for item\n"
						       "     1 more without enough data: f11 for wait\n"));
	row[11].curve = &curve;
	assert_non_null(strstr(printed(&profile, 100), "     1 more without enough data: f11\n"));
	row[10].region = &region[10];
	row[10].point = &point;
	row[10].verdict = row[11].verdict = CA_VERDICT_NOT_WORTH;
	assert_non_null(strstr(printed(&profile, 100), "\n     4 others: at most 2 each\n"));
	/* together no more than the time in which a thread was in one of them */
	for (uint32_t i = 0; i < 12; i++) {
		region[i].id = i + 1;
		experiment[i] =
			(struct ca_profile_experiment){ .region = i + 1, .s_time = 9, .duration = 1000 };
	}
	experiment[0].s_time = 900; /* a row of its own */
	profile.experiment = experiment;
	profile.experiments = 12;
	assert_non_null(
		strstr(printed(&profile, 100), "\n     4 others: at most 2 each, together at most 4\n"));
	for (size_t i = 8; i < 12; i++)
		experiment[i].s_time = 3;
	assert_non_null(strstr(printed(&profile, 100), "\n     4 others: together at most 2\n"));
	experiment[9].flags = CA_EXPERIMENT_CUT; /* nothing is known of one */
	assert_non_null(strstr(printed(&profile, 100), "\n     4 others: at most 2 each\n"));
	experiment[9].flags = 0;
	row[9].point = &latency;
	assert_non_null(strstr(printed(&profile, 100), "\n     4 others: at most 2 each\n"));
	row[9].point = &point;
	/* long lists are short */
	profile.catalog.region = &loop;
	profile.catalog.regions = 1;
	profile.samples = &samples;
	profile.sample_count = 1;
	assert_non_null(
		strstr(printed(&profile, 100), "\n     Containing 1 to 4, 6, 7 and 3 others: loop\n"));
	/* and so is the list of such code: the largest come first */
	for (size_t i = 0; i < CA_COUNT(layer); i++) {
		layers[i] = (struct ca_region){ .name = names[i], .file = none, .binary = binary };
		layer[i] = (struct ca_profile_samples){ .region = (uint32_t)i + 1,
							.count = 10 + i,
							.contains = contains };
	}
	profile.catalog.region = layers;
	profile.catalog.regions = CA_COUNT(layers);
	profile.samples = layer;
	profile.sample_count = CA_COUNT(layer);
	text = strstr(printed(&profile, 100), "others: f4\n");
	assert_non_null(text);
	assert_non_null(strstr(text, "others: f2\n     2 more only contain other code\n"));
	profile.sample_count = 0;
	contains[0] = NULL;
	profile.row = row + 11;
	profile.rows = 1;
	row[11].verdict = CA_VERDICT_NOT_ENOUGH;
	assert_non_null(strstr(printed(&profile, 100), "   not enough data: 2 experiments\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vague),
		cmocka_unit_test(test_notes),
		cmocka_unit_test(test_spins_note),
		cmocka_unit_test(test_note_set_time),
		cmocka_unit_test(test_regions),
		cmocka_unit_test(test_function_is_one),
		cmocka_unit_test(test_table_untried),
		cmocka_unit_test(test_points),
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_no_reason),
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_runs_wanted),
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_table_kernel),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_called_first),
		cmocka_unit_test(test_wide_is_no_first),
		cmocka_unit_test(test_rest),
		cmocka_unit_test(test_colours),
		cmocka_unit_test(test_few_tries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

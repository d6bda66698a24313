/* SPDX-License-Identifier: MIT */
/* Run files: what is written comes back; a killed writer, a full disk and foreign files do no
 * harm; an empty profile names its cause; names cannot reach the terminal raw. */
#include "causal/results/profile.h"
#include "causal/results/results.h"
#include "core/session.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[64];
static struct ca_catalog catalog;
static struct ca_err err;

static void add_region(const char *name)
{
	struct ca_region region = { .kind = CA_REGION_FUNCTION, .line = 3 };

	region.name = strdup(name);
	assert_non_null(ca_catalog_add_region(&catalog, &region));
	free(region.name);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ca-results-XXXXXX");
	assert_non_null(mkdtemp(dir));
	add_region("work");
	assert_non_null(ca_catalog_add_point(&catalog, 0, CA_POINT_THROUGHPUT, "item"));
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	ca_catalog_fini(&catalog);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

static const char *speedups = "0,50";

static const char *backend = "perf";

static struct ca_results *open_run_as(unsigned run, bool end_to_end)
{
	static const char *const command[] = { "./app", NULL };
	struct ca_run_info info = { .run = run,
				    .iteration = 1,
				    .command = command,
				    .mode = "function",
				    .backend = backend,
				    .end_to_end = end_to_end,
				    .speedups = speedups,
				    .seed = 1 };
	struct ca_results *results = NULL;

	assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), CA_OK);
	return results;
}

static struct ca_results *open_run(unsigned run)
{
	return open_run_as(run, false);
}

static uint64_t outside;                   /* ns that each of these waits for somebody outside */
static uint64_t queued = UINT64_MAX, work; /* ns that it waits for a CPU, and has one */
static bool exact;

/* Experiment i of a run: every other one at 50 %, where the program is 20 % faster. */
static enum ca_status put(struct ca_results *results, uint32_t i, uint32_t flags)
{
	struct ca_visits visits = { .point = 0, .delta = i % 2 ? 125 + i % 3 : 100 + i % 3 };
	struct ca_experiment_record record = {
		.index = i + 1,
		.region = 1,
		.speedup = i % 2 ? 500000 : 0,
		.flags = flags,
		.start = i * UINT64_C(1100000000),
		.s_time = 600000000,
		.paying = UINT64_MAX,
		.outside = outside,
		.queued = queued,
		.work = work,
		.yardstick = UINT64_C(1000) * i,
		.exact = exact,
		.visit_count = 1,
		.visits = &visits,
	};

	record.delay = i % 2 ? 300000000 : 0;
	record.end = record.start + 1000000000 + record.delay;
	return ca_results_experiment(results, &record, &err);
}

static struct ca_profile *load(void)
{
	struct ca_profile *profile = NULL;

	assert_int_equal(ca_profile_load(&profile, dir, &err), CA_OK);
	return profile;
}

static void path_of(char *path, unsigned run)
{
	snprintf(path, 128, "%s/run-%04u.jsonl", dir, run);
}

static void test_round_trip(void **state)
{
	struct ca_run_summary summary = { .exit_status = 137,
					  .runtime = 5,
					  .samples = 170,
					  .periods = 200,
					  .in_scope = 150,
					  .drop = { 0, 7 },
					  .started = 13 };
	struct ca_results *results = open_run(1);
	struct ca_profile *profile;

	(void)state;
	for (uint32_t i = 0; i < 12; i++)
		assert_int_equal(put(results, i, i == 11 ? CA_EXPERIMENT_CUT : 0), CA_OK);
	assert_int_equal(ca_results_samples(results, 1, 40, NULL, &err), CA_OK);
	assert_int_equal(ca_results_samples(results, 1, 50, NULL, &err), CA_OK);
	assert_int_equal(ca_results_warning(results, "twice", &err), CA_OK);
	assert_int_equal(ca_results_warning(results, "twice", &err), CA_OK);
	assert_int_equal(ca_results_close(results, &summary, &err), CA_OK);
	profile = load();
	assert_int_equal(profile->experiments, 12);
	assert_int_equal(profile->experiment[1].duration, 1000000000);
	assert_int_equal(profile->experiment[1].speedup, 500000);
	assert_int_equal(profile->experiment[0].yardstick, 0);
	assert_int_equal(profile->experiment[3].yardstick, 3000);
	assert_int_equal(profile->experiment[11].flags, CA_EXPERIMENT_CUT);
	assert_int_equal(profile->funnel.kept, 11);
	assert_int_equal(profile->funnel.failed, 1);
	assert_int_equal(profile->run[0].summary.exit_status, 137);
	assert_int_equal(profile->run[0].summary.drop[CA_DROP_RING_FULL], 7);
	assert_int_equal(profile->warnings, 1);
	assert_int_equal(profile->rows, 1);
	assert_true(fabs(profile->row[0].samples - 25) < 1e-9); /* the last count: 50 of 200 */
	assert_int_equal(profile->row[0].verdict, CA_VERDICT_WORTH);
	assert_true(fabs(profile->row[0].curve->max - 20) < 1);
	ca_profile_free(profile);
}

/* How much of a run a library comes after: the mean of the runs that have it. */
static void test_since(void **state)
{
	static const double since[] = { 1, 3, 0 };
	struct ca_profile *profile;
	struct ca_share *share;
	size_t n;

	(void)state;
	for (unsigned run = 1; run <= CA_COUNT(since); run++) {
		struct ca_results *results = open_run(run);
		struct ca_region_stacks stacks = { .own = 1, .since = since[run - 1] };

		assert_int_equal(put(results, 0, 0), CA_OK);
		if (run < CA_COUNT(since))
			assert_int_equal(ca_results_samples(results, 1, 40, &stacks, &err), CA_OK);
		assert_int_equal(
			ca_results_close(results,
					 &(struct ca_run_summary){ .periods = 100,
								   .runtime = UINT64_C(12000000000),
								   .inserted = UINT64_C(2000000000) },
					 &err),
			CA_OK);
	}
	profile = load();
	share = ca_profile_share(profile, &n);
	assert_non_null(share);
	assert_int_equal(n, 1);
	assert_true(fabs(share[0].late - 0.2) < 1e-9);
	free(share);
	ca_profile_free(profile);
}

/* Of each kind of point, as the file has it and as it comes back. */
static void test_kinds(void **state)
{
	static const struct {
		int kind;
		const char *text;
		char letter;
	} cases[] = { { 0, "end-to-end", 'e' },
		      { CA_POINT_THROUGHPUT, "throughput", 't' },
		      { CA_POINT_BEGIN, "latency", 'l' },
		      { CA_POINT_END, "latency", 'l' } };
	struct ca_visits visits[CA_COUNT(cases)] = { { 0 } };
	struct ca_experiment_record record = {
		.index = 1, .region = 1, .end = 1000000000, .visit_count = CA_COUNT(cases), .visits = visits
	};
	struct ca_results *results;
	struct ca_profile *profile;
	char path[128], text[8192];
	const char *at;
	FILE *file;

	(void)state;
	for (uint32_t i = 0; i < CA_COUNT(cases); i++) {
		char name[8];

		snprintf(name, sizeof name, "p%u", i);
		assert_non_null(ca_catalog_add_point(&catalog, 10 + i, cases[i].kind, name));
		visits[i] =
			(struct ca_visits){ .point = 10 + i, .delta = 5, .arrivals = 6, .in_flight = 1.5 };
	}
	results = open_run(1);
	assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
	path_of(path, 1);
	file = fopen(path, "r");
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	profile = load();
	assert_int_equal(profile->points, CA_COUNT(cases));
	at = strstr(text, "\"progress\":");
	assert_non_null(at);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		at = strstr(at, "\"kind\":");
		assert_non_null(at);
		at += strcspn(at + 7, "\"") + 8;
		assert_int_equal(strncmp(at, cases[i].text, strlen(cases[i].text)), 0);
		assert_int_equal(profile->point[i].kind, cases[i].letter);
	}
	ca_profile_free(profile);
}

/* A driver killed while it writes: the file may end anywhere. Whatever the place, all whole
 * records are there and nothing else. */
static void test_torn(void **state)
{
	char path[128], *text;
	struct ca_results *results = open_run(1);
	struct ca_run_summary none = { 0 };
	struct stat status;
	FILE *file;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		put(results, i, 0);
	ca_results_close(results, &none, &err);
	path_of(path, 1);
	assert_int_equal(stat(path, &status), 0);
	text = malloc((size_t)status.st_size);
	file = fopen(path, "r");
	assert_int_equal(fread(text, 1, (size_t)status.st_size, file), status.st_size);
	fclose(file);
	for (off_t size = status.st_size; size-- > 0;) {
		size_t lines = 0;
		struct ca_profile *profile;

		assert_int_equal(truncate(path, size), 0);
		for (off_t i = 0; i < size; i++)
			lines += text[i] == '\n';
		profile = load();
		assert_int_equal(profile->runs, lines > 0);
		assert_int_equal(profile->experiments, lines > 4 ? 3 : lines > 0 ? lines - 1 : 0);
		assert_int_equal(profile->warnings, 0);
		ca_profile_free(profile);
	}
	free(text);
}

/* Each record is on its way to the disk when the call returns. */
static void test_killed(void **state)
{
	struct ca_profile *profile;
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct ca_results *results = open_run(1);

		for (uint32_t i = 0; i < 7; i++)
			put(results, i, 0);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	profile = load();
	assert_int_equal(profile->experiments, 7);
	assert_int_equal(profile->funnel.unfinished, 1);
	ca_profile_free(profile);
}

/* No room: an error with a remedy, earlier records stay, and once there is room again the
 * next record begins on a line of its own. */
static void test_full_disk(void **state)
{
	struct ca_results *results = open_run(1);
	struct rlimit limit, old;
	struct ca_profile *profile;
	struct stat status;
	char path[128];

	(void)state;
	put(results, 0, 0);
	path_of(path, 1);
	assert_int_equal(stat(path, &status), 0);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = (rlim_t)status.st_size + 100; /* room for a part of the next */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(put(results, 1, 0), CA_ERR_IO);
	assert_non_null(strstr(err.text, path));
	assert_non_null(strstr(err.text, "is kept"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(put(results, 2, 0), CA_OK);
	assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
	profile = load();
	assert_int_equal(profile->experiments, 2);
	assert_int_equal(profile->warnings, 0);
	ca_profile_free(profile);
}

static void test_bad_places(void **state)
{
	struct ca_run_info info = { .run = 1 };
	struct ca_results *results = NULL;
	struct ca_profile *profile = NULL;
	char path[128];
	FILE *file;

	(void)state;
	assert_int_equal(ca_results_open(&results, "/proc/self/missing", &info, &catalog, &err), CA_ERR_IO);
	assert_non_null(strstr(err.text, "/proc/self/missing/run-0001.jsonl"));
	ca_results_close(open_run(1), &(struct ca_run_summary){ 0 }, &err);
	assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), CA_ERR_IO);
	assert_non_null(strstr(err.text, "-r"));
	assert_int_equal(ca_profile_load(&profile, "/proc/self/missing", &err), CA_ERR_IO);
	path_of(path, 2);
	file = fopen(path, "w");
	fputs("{\"type\":\"run\",\"format\":\"causal-run\",\"version\":9}\n", file);
	fclose(file);
	assert_int_equal(ca_profile_load(&profile, dir, &err), CA_ERR_FORMAT);
	assert_non_null(strstr(err.text, "version 9"));
	file = fopen(path, "w");
	fputs("{\"type\":\"something\"}\n", file);
	fclose(file);
	assert_int_equal(ca_profile_load(&profile, dir, &err), CA_ERR_FORMAT);
}

/* A directory without runs is one that can be read. */
static void test_no_runs(void **state)
{
	const char *cause = "", *remedy = "";
	struct ca_profile *profile;

	(void)state;
	profile = load();
	assert_int_equal(profile->runs, 0);
	assert_int_equal(profile->experiments, 0);
	assert_int_equal(profile->rows, 0);
	assert_int_equal(profile->warnings, 0);
	assert_true(ca_funnel_reason(profile, &cause, &remedy));
	ca_profile_free(profile);
}

/* Why the file cannot be made, and what to do about it. */
static const struct {
	unsigned error;
	enum ca_status status;
	const char *remedy;
} refusals[] = {
	{ EACCES, CA_ERR_PERMISSION, "choose a directory that you may write to" },
	{ EPERM, CA_ERR_PERMISSION, "choose a directory that you may write to" },
	{ EROFS, CA_ERR_IO, "choose a directory that you may write to" },
	{ ENOSPC, CA_ERR_IO, "free some space" },
	{ EDQUOT, CA_ERR_IO, "free some space" },
	{ EEXIST, CA_ERR_IO, "choose another directory" },
	{ ENOENT, CA_ERR_IO, "create the directory" },
	{ ENOTDIR, CA_ERR_IO, "create the directory" },
	{ EMFILE, CA_ERR_IO, "choose another directory" },
};
static size_t refusal;

static void open_refused(void **state)
{
	struct ca_run_info info = { .run = 1 };
	struct ca_results *results = NULL;

	(void)state;
	assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), refusals[refusal].status);
	assert_null(results);
	assert_non_null(strstr(err.text, dir));
	assert_non_null(strstr(err.text, strerror((int)refusals[refusal].error)));
	assert_non_null(strstr(err.text, refusals[refusal].remedy));
}

static void test_refused(void **state)
{
	(void)state;
	for (refusal = 0; refusal < CA_COUNT(refusals); refusal++)
		without_call(SYS_openat, refusals[refusal].error, open_refused);
}

/* A line that is damaged costs that line and is told. */
static void test_damaged_line(void **state)
{
	struct ca_results *results = open_run(1);
	struct ca_profile *profile;
	char path[128];
	FILE *file;

	(void)state;
	put(results, 0, 0);
	path_of(path, 1);
	file = fopen(path, "a");
	fputs("{\"type\":\"experi\n[1,2]\n{\"type\":\"of the future\"}\n", file);
	fclose(file);
	put(results, 1, 0);
	ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	profile = load();
	assert_int_equal(profile->experiments, 2);
	assert_int_equal(profile->warnings, 1);
	assert_non_null(strstr(profile->warning[0], "2 lines"));
	ca_profile_free(profile);
}

/* By number, in whatever order the directory holds them; other files are none. */
static void test_order(void **state)
{
	static const unsigned runs[] = { 10000, 2, 9999, 10, 9, 1 }, sorted[] = { 1, 2, 9, 10, 9999, 10000 };
	struct ca_profile *profile;
	char path[128];
	FILE *file;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(runs); i++)
		ca_results_close(open_run(runs[i]), &(struct ca_run_summary){ 0 }, &err);
	snprintf(path, sizeof path, "%s/run-x.jsonl", dir);
	file = fopen(path, "w");
	fputs("?\n", file);
	fclose(file);
	profile = load();
	assert_int_equal(profile->runs, CA_COUNT(sorted));
	for (size_t i = 0; i < CA_COUNT(sorted); i++)
		assert_int_equal(profile->run[i].number, sorted[i]);
	ca_profile_free(profile);
}

/* Where the CPU time went is what the last run says that knows; shares of two runs are no sum. */
static void test_scope(void **state)
{
	static const double shares[][2] = { { 93, 6 }, { 97, 0 }, { 0, 0 } };
	struct ca_profile *profile;

	(void)state;
	for (unsigned run = 0; run < CA_COUNT(shares); run++) {
		struct ca_results *results = open_run(run + 1);

		for (int i = 0; i < 2; i++)
			if (shares[run][i] > 0)
				assert_int_equal(ca_results_scope(results, i ? "/libc" : "/work",
								  shares[run][i], !i, &err),
						 CA_OK);
		ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	}
	profile = load();
	assert_int_equal(profile->scopes, 2);
	assert_int_equal(profile->scope[0].share, 97);
	assert_int_equal(profile->scope[1].share, 0);
	ca_profile_free(profile);
}

/* What a run ended with, and the cause that follows from it. */
static const struct {
	struct ca_run_summary summary;
	uint32_t experiments, flags;
	bool only_odd; /* no experiment at 0 %, for none was asked for */
	const char *cause, *remedy;
} reasons[] = {
	{ { .exit_status = 1, .outside = true }, 0, 0, false, "could not be preloaded", "statically" },
	{ { .exit_status = 1, .off = true }, 0, 0, false, "switched itself off", "warning" },
	{ { .exit_status = 1 }, 0, 0, false, "failed before", "own messages" },
	{ { .samples = 9, .drop = { [CA_DROP_NO_MODULE] = 99 } }, 0, 0, false, "in no file", "libjvm" },
	{ { .drop = { [CA_DROP_LOST] = 9 } }, 0, 0, false, "every sample was dropped", "-b" },
	{ { .exit_status = 0 }, 0, 0, false, "no sample was taken", "longer input" },
	{ { .samples = 9 }, 0, 0, false, "no sample fell into code in scope", "-B" },
	{ { .samples = 9, .in_scope = 5 }, 0, 0, false, "no progress point", "CAUSAL_PROGRESS" },
	{ { .samples = 9, .in_scope = 5, .visits = 3 }, 0, 0, false, "ended before", "-n" },
	{ { .samples = 9, .in_scope = 5 }, 3, CA_EXPERIMENT_CUT, false, "ended during", "-e" },
	{ { .samples = 9, .in_scope = 5 },
	  3,
	  CA_EXPERIMENT_NO_VISIT,
	  false,
	  "during the exper",
	  "more often" },
	{ { .samples = 9, .in_scope = 5 }, 3, CA_EXPERIMENT_OVERFLOW, false, "overflowed", "-F" },
	{ { .samples = 9, .in_scope = 5 }, 3, CA_EXPERIMENT_STALLED, false, "too busy", "-n" },
	{ { .samples = 9, .in_scope = 5 }, 3, 0, true, "at 0 %", "-s 0" },
	{ { .samples = 9, .in_scope = 5 }, 2, 0, false, "too few", "causal resume" },
};

static void test_reasons(void **state)
{
	for (size_t r = 0; r < sizeof reasons / sizeof *reasons; r++) {
		const char *cause = "", *remedy = "";
		struct ca_profile *profile;
		struct ca_results *results;

		speedups = reasons[r].only_odd ? "50" : "0,50";
		results = open_run(1);
		speedups = "0,50";

		for (uint32_t i = 0; i < reasons[r].experiments; i++)
			put(results, reasons[r].only_odd ? 2 * i + 1 : i, reasons[r].flags);
		ca_results_close(results, &reasons[r].summary, &err);
		profile = load();
		assert_true(ca_funnel_reason(profile, &cause, &remedy));
		if (!strstr(cause, reasons[r].cause) || !strstr(remedy, reasons[r].remedy))
			fail_msg("%zu: %s; %s", r, cause, remedy);
		/* a remedy that is a command has its options */
		assert_true(!ca_funnel_options(profile) || strstr(remedy, ca_funnel_options(profile)));
		assert_int_equal(ca_funnel_options(profile) != NULL, reasons[r].only_odd);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
		set_up(state);
	}
}

/* Experiments that other programs disturbed are left out, unless they are most; those left out
 * for another cause count on neither side. */
static const struct {
	uint32_t clean, disturbed, cut;
	bool busy;
	size_t kept, counted;
} loads[] = {
	{ 12, 0, 0, false, 12, 0 }, { 12, 2, 0, false, 12, 2 }, { 8, 8, 0, false, 8, 8 },
	{ 8, 9, 0, true, 17, 9 },   { 8, 8, 3, false, 8, 11 },  { 0, 1, 0, true, 1, 1 },
	{ 4, 5, 3, true, 9, 8 },
};

static void left_out(void **state, uint32_t flag)
{
	bool disturbed = flag == CA_EXPERIMENT_DISTURBED;

	for (size_t c = 0; c < CA_COUNT(loads); c++) {
		struct ca_results *results = open_run(1);
		struct ca_profile *profile;
		uint32_t i = 0;

		for (; i < loads[c].clean; i++)
			put(results, i, 0);
		for (; i < loads[c].clean + loads[c].disturbed; i++)
			put(results, i, flag);
		for (; i < loads[c].clean + loads[c].disturbed + loads[c].cut; i++)
			put(results, i, flag | CA_EXPERIMENT_CUT);
		ca_results_close(results, &(struct ca_run_summary){ .samples = 9 }, &err);
		profile = load();
		assert_int_equal(profile->busy, disturbed && loads[c].busy);
		assert_int_equal(profile->funnel.kept, loads[c].kept);
		assert_int_equal(disturbed ? profile->funnel.disturbed : profile->funnel.books,
				 loads[c].counted);
		assert_int_equal(profile->rows, 1);
		assert_int_equal(profile->row[0].curve->experiments, loads[c].kept);
		assert_int_equal(profile->blind, disturbed && loads[c].busy && outside);
		if (disturbed && loads[c].kept > 1)
			assert_int_equal(profile->row[0].verdict,
					 profile->blind ? CA_VERDICT_CANNOT_TELL : CA_VERDICT_WORTH);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
		set_up(state);
	}
}

/* What is won beside other programs is told, but not where they are those that the run waits for. */
static void test_disturbed(void **state)
{
	left_out(state, CA_EXPERIMENT_DISTURBED);
	outside = 60000000;
	left_out(state, CA_EXPERIMENT_DISTURBED);
	outside = 0;
}

/* By timers nobody knows who had a CPU for which others of the run waited: no verdict then on what only samples tell
 * of. */
static void test_crowded(void **state)
{
	static const struct {
		const char *backend;
		uint64_t queued;
		bool exact, crowded, blind;
	} cases[] = {
		{ "timer", UINT64_MAX, false, false, false }, { "timer", 0, false, false, false },
		{ "timer", 660000000, false, false, false },  { "timer", 670000000, false, true, true },
		{ "timer", 670000000, true, true, false },    { "perf", 2000000000, false, false, false },
	};

	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];
		const char *cause = "", *remedy = "";
		const struct ca_profile_row *open_row;
		struct ca_results *results;
		struct ca_profile *profile;
		bool told = false;

		backend = cases[c].backend;
		queued = cases[c].queued;
		exact = cases[c].exact;
		work = 2000000000;
		results = open_run(1);
		for (uint32_t i = 0; i < 20; i++)
			put(results, i, 0);
		ca_results_close(results, &(struct ca_run_summary){ .samples = 9 }, &err);
		profile = load();
		assert_int_equal(profile->crowded, cases[c].crowded);
		assert_int_equal(profile->row[0].verdict,
				 cases[c].blind ? CA_VERDICT_CANNOT_TELL : CA_VERDICT_WORTH);
		for (size_t n = ca_funnel_notes(profile, note); n-- > 0;)
			told |= strstr(note[n], "who had one when") != NULL;
		assert_int_equal(told, cases[c].crowded && !cases[c].blind);
		if (cases[c].blind) /* more runs do not help */
			assert_int_equal(ca_profile_runs_wanted(profile, 0.001, &open_row), 0);
		ca_funnel_reason(profile, &cause, &remedy);
		assert_int_equal(strstr(cause, "who had one when") != NULL, cases[c].blind);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
		set_up(state);
	}
	exact = false;
	backend = "perf";
	queued = UINT64_MAX;
	work = 0;
}

static void test_books(void **state)
{
	left_out(state, CA_EXPERIMENT_BOOKS);
}

/* An experiment whose visits are known by time, or a whole run. */
static void put_timed(struct ca_results *results, bool whole, uint32_t i, bool faster, double gain)
{
	uint64_t ns = UINT64_C(1000000000) + i * 1000000;
	struct ca_visits visits = { .point = 0,
				    .delta = faster ? (uint64_t)(100 / (1 - gain)) : 100,
				    .span = whole ? 0 : ns };
	struct ca_experiment_record record = { .index = i + 1,
					       .region = 1,
					       .speedup = faster ? 500000 : 0,
					       .start = i * UINT64_C(4000000000),
					       /* all of it is in S */
					       .s_time = faster ? 2 * ns : ns,
					       .delay = faster ? ns : 0,
					       .paying = UINT64_MAX,
					       .visit_count = 1,
					       .visits = &visits };

	record.end =
		record.start + record.delay + ns + (whole ? 0 : 7000000); /* the edges of the experiment */
	assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
}

/* What probes took is in no observation: neither elapsed, nor inserted, nor a part of what was paid. */
static void test_probes(void **state)
{
	struct ca_results *results = open_run(1);
	struct ca_visits visits = { .point = 0, .delta = 100 };
	struct ca_experiment_record record = { .index = 1,
					       .region = 1,
					       .speedup = 500000,
					       .end = 1000000000,
					       .s_time = 600000000,
					       .delay = 400000000,
					       .probes = 100000000,
					       .paying = 200000000,
					       .visit_count = 1,
					       .visits = &visits };
	struct ca_observation o;
	struct ca_profile *profile;

	(void)state;
	assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	ca_results_close(results, &(struct ca_run_summary){ .samples = 9 }, &err);
	profile = load();
	assert_int_equal(profile->experiments, 1);
	o = ca_profile_observe(profile, profile->experiment, profile->visits);
	assert_true(fabs(o.cost - 0.6) < 1e-9);
	assert_true(fabs(o.elapsed - 0.9) < 1e-9);
	assert_true(fabs(o.delay - 0.3) < 1e-9);
	assert_true(fabs(o.paying - 0.15) < 1e-9);
	assert_true(fabs(o.active - 0.6) < 1e-9);
	ca_profile_free(profile);
}

/* An experiment of code without an effect, which is half of the time in S. */
static void put_idle(struct ca_results *results, uint32_t i)
{
	uint64_t ns = UINT64_C(1000000000) + i * 1000000, delay = i % 2 ? ns / 4 : 0;
	struct ca_visits visits = { .point = 0, .delta = 100, .span = ns };
	struct ca_experiment_record record = { .index = i + 1,
					       .region = 1,
					       .speedup = i % 2 ? 500000 : 0,
					       .start = i * UINT64_C(4000000000),
					       .end = i * UINT64_C(4000000000) + delay + ns,
					       .s_time = ns / 2,
					       .delay = delay,
					       .paying = delay,
					       .visit_count = 1,
					       .visits = &visits };

	assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
}

/* What was over before the first experiment, in a run of which only that is known. */
static void test_early(void **state)
{
	static const struct {
		uint64_t silent; /* of 500 samples; of 500 before the experiments, and 2000 in all */
		bool left, early, told;
	} cases[] = {
		{ 480, true, false, true },   { 480, false, true, true },
		{ 480, false, false, false }, /* it has come to its end: a part of its effect */
		{ 120, true, false, false },  /* it goes on as before */
		{ 240, true, false, false },  /* ... a third as often: experiments tell of it */
	};

	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];
		struct ca_results *results = open_run(1);
		struct ca_profile *profile;
		bool told = false;

		for (uint32_t i = 0; i < 12; i++)
			put_idle(results, i);
		ca_results_samples(results, 1, 500,
				   &(struct ca_region_stacks){ .own = 500, .silent = cases[c].silent }, &err);
		ca_results_close(results,
				 &(struct ca_run_summary){ .samples = 2000,
							   .periods = 2000,
							   .runtime = UINT64_C(17000000000),
							   .cpu_ns = UINT64_C(17000000000),
							   .silence = { .length = 17,
									.before = 4.3,
									.cpu = 4.3,
									.samples = 500,
									.early = cases[c].early },
							   .left = cases[c].left },
				 &err);
		profile = load();
		assert_int_equal(profile->rows, 1);
		if (cases[c].left || cases[c].early)
			assert_int_equal(profile->row[0].verdict,
					 cases[c].told ? CA_VERDICT_CANNOT_TELL : CA_VERDICT_NOT_WORTH);
		else
			assert_int_equal(profile->row[0].verdict, CA_VERDICT_WORTH);
		for (size_t n = ca_funnel_notes(profile, note); n-- > 0;)
			told |= strstr(note[n], "after the first 4.3 of 17.0 s") && strstr(note[n], "96 %");
		assert_int_equal(told, cases[c].told);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
		set_up(state);
	}
}

/* Visits of a point in whole runs, which change with S's speed: from the fourth on each run counts as a unit, too, and
 * the region has its row by that. Without, there is nothing better. */
static void test_refuted(void **state)
{
	(void)state;
	for (unsigned with = 0; with < 2; with++) {
		struct ca_profile *profile;

		assert_int_equal(set_up(state), 0);
		assert_int_equal(ca_catalog_add_point(&catalog, 1, 0, "./app")->kind, 0);
		for (uint32_t i = 0; i < 12; i++) {
			struct ca_results *results = open_run_as(1 + i, true);
			struct ca_visits visits[] = { { .point = 1, .delta = 1 },
						      { .point = 0, .delta = i % 2 ? 80 : 100 } };
			uint64_t ns = i % 2 ? 800000000 : 1000000000;
			bool both = with && i > 2;
			struct ca_experiment_record record = { .index = 1,
							       .region = 1,
							       .speedup = i % 2 ? 500000 : 0,
							       .end = ns + i % 2 * 400000000,
							       .s_time = 800000000,
							       .delay = i % 2 * 400000000,
							       .paying = UINT64_MAX,
							       .visit_count = both ? 2 : 1,
							       .visits = both ? visits : visits + 1 };

			assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
			assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err),
					 CA_OK);
		}
		profile = load();
		assert_int_equal(profile->rows, 1);
		assert_int_equal(profile->row[0].point->kind, with ? 'e' : 't');
		assert_true(fabs(profile->row[0].curve->at[1] - (with ? 20 : 0)) < 1);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Visits that were found to be no units count by CPU time, those before, too; and so does a region's only row, also
 * where another point was chosen beside. Without, visits count. */
static void test_refuted_inside(void **state)
{
	(void)state;
	for (unsigned with = 0; with < 2; with++) {
		struct ca_results *results;
		struct ca_profile *profile;

		assert_int_equal(set_up(state), 0);
		assert_non_null(ca_catalog_add_point(&catalog, 1, CA_POINT_THROUGHPUT, "other"));
		results = open_run(1);
		for (uint32_t i = 0; i < 20; i++) {
			bool faster = i % 2;
			struct ca_visits visits[] = {
				{ .point = 0,
				  .delta = (faster ? 125 : 100) + i % 3,
				  .refuted = with && i > 10 },
				{ .point = 1, .delta = (faster ? 125 : 100) + i % 3, .unit = "item" }
			};
			struct ca_experiment_record record = {
				.index = i + 1,
				.region = 1,
				.speedup = faster ? 500000 : 0,
				.start = i * (uint64_t)1000000000,
				.end = i * (uint64_t)1000000000 + (faster ? 350000000 : 250000000),
				.s_time = 200000000,
				.delay = faster ? 100000000 : 0,
				.paying = UINT64_MAX,
				.work = (faster ? 500000000 : 450000000) + i % 3 * 1000000,
				.visit_count = 2,
				.visits = visits
			};

			assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
		}
		assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
		profile = load();
		assert_int_equal(profile->rows, 1);
		assert_string_equal(profile->row[0].point->name, "item");
		assert_true(fabs(profile->row[0].curve->at[1] - (with ? 10 : 20)) < 2);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Two points that causal chose, both passed, or only the second: for one unit of work a region has one row; if they
 * do not say the same, it is not one, and the first has it, however well the other knows. A region has one row
 * for two units, too, unless they do not say the same: that of the point which is sure of it, or knows it better. Of points
 * that causal did not choose each has its row. One that was chosen instead of another has that one's. */
static void test_units(void **state)
{
	static const struct {
		const char *unit, *beside;
		bool first;
		unsigned gain; /* percent more visits of the first one; of the other 25 */
		unsigned scatter;
		size_t rows;
		const char *point;
		bool no_zeros; /* only bounds are known */
		const char *instead;
	} cases[] = {
		{ "item", NULL, true, 25, 2, 1, "item" },
		{ "item", NULL, false, 25, 2, 1, "other" },
		{ NULL, NULL, true, 25, 2, 2, NULL },
		{ NULL, "item", true, 25, 2, 1, "item" },
		{ NULL, "item", true, 0, 2, 2, NULL },
		{ NULL, "item", false, 25, 2, 1, "other" },
		{ NULL, "item", true, 25, 60, 1, "other" },
		{ NULL, "item", true, 25, 2, 1, "item", true },
		{ "item", NULL, true, 25, 60, 1, "other" },
		{ "item", NULL, true, 0, 20, 1, "item" },
		{ NULL, NULL, true, 0, 2, 1, "other", false, "item" },
	};

	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		struct ca_results *results;
		struct ca_profile *profile;

		assert_int_equal(set_up(state), 0);
		assert_non_null(ca_catalog_add_point(&catalog, 1, CA_POINT_THROUGHPUT, "other"));
		results = open_run(1);
		for (uint32_t i = 0; i < 20; i++) {
			bool faster = i % 2 || cases[k].no_zeros;
			struct ca_visits visits[2] = { { .point = 1,
							 .delta = (faster ? 125 : 100) + i % 3,
							 .unit = cases[k].unit,
							 .beside = cases[k].beside,
							 .instead = cases[k].instead } };
			struct ca_experiment_record record = { .index = i + 1,
							       .region = 1,
							       .speedup = faster ? 500000 : 0,
							       .start = i * UINT64_C(1400000000),
							       .s_time = 600000000,
							       .delay = faster ? 300000000 : 0,
							       .paying = UINT64_MAX,
							       .visit_count = 1 + cases[k].first,
							       .visits = visits };

			visits[1] = (struct ca_visits){
				.point = 0,
				.delta = 100 + faster * cases[k].gain + i * 7 % 11 * cases[k].scatter / 10,
			};
			record.end = record.start + 1000000000 + record.delay;
			assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
		}
		assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
		profile = load();
		assert_int_equal(profile->rows, cases[k].rows);
		if (cases[k].point)
			assert_string_equal(profile->row[0].point->name, cases[k].point);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Three points, each chosen beside the one before: the second for another unit of work, the third for that, too. The
 * first one says nothing of the region's effect, the others say the same: one of them has its row, and not both or
 * none. */
static void test_chain(void **state)
{
	struct ca_results *results = open_run(1);
	struct ca_profile *profile;

	(void)state;
	assert_non_null(ca_catalog_add_point(&catalog, 1, CA_POINT_THROUGHPUT, "second"));
	assert_non_null(ca_catalog_add_point(&catalog, 2, CA_POINT_THROUGHPUT, "third"));
	for (uint32_t i = 0; i < 20; i++) {
		uint64_t delta = (i % 2 ? 125 : 100) + i % 3;
		struct ca_visits visits[3] = { { .point = 0, .delta = 100 + i % 3 },
					       { .point = 1, .delta = delta, .beside = "item" },
					       { .point = 2, .delta = delta, .unit = "second" } };
		struct ca_experiment_record record = { .index = i + 1,
						       .region = 1,
						       .speedup = i % 2 ? 500000 : 0,
						       .start = i * UINT64_C(1400000000),
						       .s_time = 600000000,
						       .delay = i % 2 ? 300000000 : 0,
						       .paying = UINT64_MAX,
						       .visit_count = 3,
						       .visits = visits };

		record.end = record.start + 1000000000 + record.delay;
		assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	}
	assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
	profile = load();
	assert_int_equal(profile->rows, 2);
	assert_string_equal(profile->row[0].point->name, "second");
	assert_string_equal(profile->row[1].point->name, "item");
	ca_profile_free(profile);
}

/* Whole runs and experiments inside runs: where they differ, the whole runs are right; else whoever knows
 * more is used. */
static void test_whole(void **state)
{
	static const struct {
		unsigned inside, pairs;
		double gain, whole_gain;
		bool whole, unsteady;
		double scatter, inside_scatter; /* of their gain */
	} cases[] = {
		{ 10, 2, 0.5, 0.2, true, true, 0 },
		{ 10, 2, 0.2, 0.2, false, false, 0 },
		{ 10, 2, 0.2, 0.24, false, false, 0 },
		{ 2, 6, 0.2, 0.2, true, false, 0 },
		{ 10, 0, 0.5, 0, false, false, 0 },
		{ 0, 5, 0, 0.2, true, false, 0 },
		{ 10, 2, 0.2, 0.3, false, false, 0.1 }, /* they may say the same */
		{ 10, 4, 0.5, 0.2, true, true, 0.05 },
		{ 10, 5, 0.2, 0.21, true, false, 0, 0.15 }, /* they say more */
	};

	for (size_t k = 0; k < CA_COUNT(cases); k++) {
		struct ca_profile *profile;
		struct ca_results *results;
		char *text = NULL;
		size_t size;
		double want;
		FILE *file;

		assert_int_equal(set_up(state), 0);
		results = open_run(1);
		for (uint32_t i = 0; i < 2 * cases[k].inside; i++)
			put_timed(results, false, i, i % 2,
				  cases[k].gain + (i % 4 < 2 ? -1 : 1) * cases[k].inside_scatter);
		assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err), CA_OK);
		for (uint32_t i = 0; i < 2 * cases[k].pairs; i++) {
			results = open_run_as(2 + i, true);
			put_timed(results, true, i, i % 2,
				  cases[k].whole_gain + (i % 4 < 2 ? -1 : 1) * cases[k].scatter);
			assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ 0 }, &err),
					 CA_OK);
		}
		profile = load();
		assert_int_equal(profile->rows, 1);
		assert_int_equal(profile->row[0].point->whole, cases[k].whole);
		want = 100 * (cases[k].whole ? cases[k].whole_gain : cases[k].gain);
		assert_true(fabs(profile->row[0].curve->max - want) < 2);
		assert_int_equal(profile->funnel.unsteady, cases[k].unsteady ? 2 * cases[k].inside : 0);
		file = open_memstream(&text, &size);
		assert_true(ca_profile_write_json(profile, file));
		fclose(file);
		assert_int_equal(strstr(text, "\"whole\": true") != NULL ||
					 strstr(text, "\"whole\":true") != NULL,
				 cases[k].whole);
		free(text);
		ca_profile_free(profile);
		assert_int_equal(tear_down(state), 0);
	}
}

/* Time itself is the point. All windows lie where half of the time is in S; of all samples of the whole run a
 * tenth is. Another run was left when it was sampled in that phase alone. Others had the CPU for half of each
 * window, and of the run. */
static void check_time(unsigned held)
{
	struct ca_visits visits = { .point = 1 };
	struct ca_experiment_record record = { .region = 1, .visit_count = 1, .visits = &visits };
	struct ca_profile *profile;
	struct ca_results *results;

	assert_non_null(ca_catalog_add_point(&catalog, 1, CA_POINT_THROUGHPUT, CA_RESULTS_TIME));
	for (unsigned run = 1; run <= 2; run++) {
		results = open_run_as(run, run == 2); /* the same unit in whole runs */
		for (uint32_t i = 0; i < 4; i++) {
			record.index = i + 1;
			record.speedup = i % 2 ? 500000 : 1000000;
			record.start = i * UINT64_C(4000000000);
			record.end = record.start + 500000000;
			record.s_time = 125000000;
			record.delay = record.s_time * record.speedup / 1000000;
			record.lost = 250000000;
			record.periods = 250;
			record.inside = 125;
			visits.delta = 250000;
			assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
		}
		assert_int_equal(ca_results_samples(results, 1, run == 1 ? 10 * held : 500, NULL, &err),
				 CA_OK);
		assert_int_equal(
			ca_results_close(results,
					 &(struct ca_run_summary){ .samples = 9,
								   .periods = run == 1 ? 100 * held : 1000,
								   .drop[CA_DROP_RING_FULL] =
									   run == 1 ? 10000 - 100 * held : 0,
								   .runtime = UINT64_C(20000000000),
								   .cpu_ns = UINT64_C(10000000000),
								   .left = run == 2 },
					 &err),
			CA_OK);
	}
	/* then a point was needed, and of the region less is known by that */
	results = open_run(3);
	visits.point = 0;
	for (record.index = 1; record.index <= 2; record.index++) {
		record.speedup = 500000;
		visits.delta = 100;
		assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	}
	assert_int_equal(ca_results_close(results, &(struct ca_run_summary){ .left = true }, &err), CA_OK);
	profile = load();
	assert_int_equal(profile->rows, 1);
	assert_string_equal(profile->row[0].point->name, CA_RESULTS_TIME);
	assert_int_equal(profile->row[0].curve->experiments, 8);
	assert_int_equal(profile->row[0].curve->how, CA_HOW_SHARE);
	assert_true(fabs(profile->row[0].samples - 10) < 0.01);
	assert_true(fabs(profile->row[0].curve->at[1] - 5) < 0.3);
	assert_true(profile->row[0].curve->at_low[1] > 4 && profile->row[0].curve->at_high[1] < 6);
	ca_profile_free(profile);
}

static void test_time(void **state)
{
	(void)state;
	check_time(100);
}

/* Half of the samples found no room. */
static void test_time_with_losses(void **state)
{
	(void)state;
	check_time(50);
}

static size_t print_to(const struct ca_profile *profile, unsigned width, char *text, size_t size)
{
	FILE *file = tmpfile();
	size_t n;

	ca_results_print(profile, fileno(file), width, false);
	rewind(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
	return n;
}

/* Of 1,000 periods a run, one region has 750 and the other one 250: in the runs of each one's own scope, and in those
 * that have none. */
static void test_scopes(void **state)
{
	static const char *const scope[] = { "", "-F 'f'", "-F 'g'" };
	static const char *const command[] = { "./app", NULL };
	struct ca_visits visits = { .point = 0, .delta = 100 };
	struct ca_profile *profile;

	(void)state;
	add_region("g");
	for (unsigned run = 1; run <= CA_COUNT(scope); run++) {
		struct ca_run_info info = { .run = run,
					    .iteration = 1,
					    .command = command,
					    .mode = "function",
					    .backend = "perf",
					    .speedups = "0,50",
					    .seed = 1,
					    .scope = scope[run - 1] };
		struct ca_results *results;

		assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), CA_OK);
		for (uint32_t region = 1; region <= 2; region++)
			for (uint32_t i = 0; i < 4 && run != 4 - region; i++) {
				struct ca_experiment_record record = { .index = 4 * region + i,
								       .region = region,
								       .speedup = i % 2 ? 500000 : 0,
								       .start = 1000 * i,
								       .end = 1000 * i + 500,
								       .visit_count = 1,
								       .visits = &visits };

				assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
			}
		for (uint32_t region = 1; region <= 2; region++)
			if (run != 4 - region)
				ca_results_samples(results, region, region == 1 ? 750 : 250, NULL, &err);
		ca_results_close(results,
				 &(struct ca_run_summary){ .samples = 9, .periods = 1000, .runtime = 9 },
				 &err);
	}
	profile = load();
	assert_int_equal(profile->rows, 2);
	for (size_t i = 0; i < profile->rows; i++)
		assert_true(fabs(profile->row[i].samples - (*profile->row[i].region->name == 'g' ? 25 : 75)) <
			    0.01);
	ca_profile_free(profile);
}

/* A main thread sleeps while others work: their shares are of the CPU time, and its own of that and its sleep. */
static void test_waits_of_others(void **state)
{
	static char text[1 << 16];
	const struct ca_region_stacks stacks[] = { { .own = 600 }, { .own = 300, .waited = 290 } };
	struct ca_visits visits = { .delta = 100 };
	const struct ca_experiment_record of_second = {
		.region = 2, .speedup = 500000, .end = 1000000000, .visit_count = 1, .visits = &visits
	};
	struct ca_results *results;
	struct ca_profile *profile;

	(void)state;
	add_region("g");
	results = open_run(1);
	for (uint32_t i = 0; i < 8; i++)
		put(results, i, 0);
	assert_int_equal(ca_results_experiment(results, &of_second, &err), CA_OK);
	for (uint32_t region = 1; region <= 2; region++)
		assert_int_equal(ca_results_samples(results, region, stacks[region - 1].own,
						    &stacks[region - 1], &err),
				 CA_OK);
	ca_results_close(
		results,
		&(struct ca_run_summary){ .samples = 9, .periods = 1000, .waited = 290, .runtime = 9 }, &err);
	profile = load();
	assert_int_equal(profile->rows, 2);
	for (size_t i = 0; i < profile->rows; i++) {
		const struct ca_profile_row *row = &profile->row[i];
		bool sleeps = *row->region->name == 'g';

		assert_true(fabs(row->own - (sleeps ? 30 : 84.5)) < 0.01);
		assert_true(fabs(row->waits - (sleeps ? 96.67 : 0)) < 0.01);
	}
	print_to(profile, 100, text, sizeof text);
	assert_non_null(strstr(text, "\n     mostly waits: sleeps, files, other programs\n"));
	ca_profile_free(profile);
}

/* Escape sequences, broken UTF-8 and right-to-left marks in a name do not get through. */
static void test_hostile_name(void **state)
{
	static char text[1 << 16];
	struct ca_results *results;
	struct ca_profile *profile;

	(void)state;
	ca_catalog_fini(&catalog);
	add_region("a\x1b[31mb\xff\xe2\x80\xae\xc2\x9bz");
	ca_catalog_add_point(&catalog, 0, CA_POINT_THROUGHPUT, "it\nem\t");
	results = open_run(1);
	for (uint32_t i = 0; i < 30; i++)
		put(results, i, 0);
	ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	profile = load();
	for (unsigned width = 0; width < 200; width += 7) {
		print_to(profile, width, text, sizeof text);
		assert_null(strchr(text, '\x1b'));
		assert_null(strstr(text, "\xe2\x80\xae"));
		assert_null(strstr(text, "\xc2\x9b"));
		assert_null(strchr(text, '\t'));
		/* and there is a row of it, cut where there is little room */
		assert_non_null(strstr(text, width && width < 64 ? "\n  1  a?[31"
								 : "\n  1  a?[31mb\xef\xbf\xbd?????z  "));
	}
	assert_int_equal(ca_profile_write(profile, dir, &err), CA_OK);
	ca_profile_free(profile);
}

static bool sampled;
static uint64_t paying = UINT64_MAX, met; /* ns in each of these; meetings */

/* `n` experiments with a region, at 50 %, in which it is `gain` % faster, give or take `off`. */
static void put_region(struct ca_results *results, uint32_t region, uint32_t n, double gain, double off)
{
	static uint32_t index = 1;

	for (uint32_t i = 0; i < 2 * n; i++) {
		double here = i % 2   ? 1 / (1 - (gain + (i % 4 == 1 ? off : -off)) / 100)
			      : i % 4 ? 1.0005
				      : 0.9995;
		struct ca_visits visits = { .point = 0, .delta = (uint64_t)(1e5 * here) };
		struct ca_experiment_record record = {
			.index = index,
			.region = region,
			.speedup = i % 2 ? 500000 : 0,
			.start = index * UINT64_C(1400000000),
			.end = index * UINT64_C(1400000000) + 1000000000 + (i % 2 ? 300000000 : 0),
			.s_time = 600000000,
			.delay = i % 2 ? 300000000 : 0,
			.paying = paying,
			.exact = !sampled,
			.met = met,
			.work = met ? 1000000000 : 0,
			.visit_count = 1,
			.visits = &visits,
		};

		index++;
		assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	}
}

/* The best guess first, but of those that are not worth it the one that is surely best. */
static void test_ranks(void **state)
{
	static const struct {
		const char *name;
		uint32_t n;
		double gain, off;
		enum ca_verdict verdict;
	} wanted[] = {
		{ "large", 8, 24, 14, CA_VERDICT_WORTH },
		{ "sure", 40, 20, 0.1, CA_VERDICT_WORTH },
		{ "open", 8, 10, 40, CA_VERDICT_NOT_ENOUGH }, /* the third of the first rows */
		{ "surely little", 40, 1, 0.05, CA_VERDICT_NOT_WORTH },
		{ "perhaps", 12, 1.1, 2.2, CA_VERDICT_NOT_WORTH },
	};
	struct ca_results *results;
	struct ca_profile *profile;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(wanted); i++)
		add_region(wanted[i].name);
	results = open_run(1);
	for (uint32_t i = 0; i < CA_COUNT(wanted); i++)
		put_region(results, 2 + i, wanted[i].n, wanted[i].gain, wanted[i].off);
	ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	profile = load();
	assert_int_equal(profile->rows, CA_COUNT(wanted));
	for (size_t i = 0; i < CA_COUNT(wanted); i++) {
		assert_string_equal(profile->row[i].region->name, wanted[i].name);
		assert_int_equal(profile->row[i].verdict, wanted[i].verdict);
	}
	/* else it says nothing */
	for (size_t i = 0; i < CA_COUNT(wanted); i += 3)
		assert_true((profile->row[i].curve->impact > profile->row[i + 1].curve->impact) !=
			    (profile->row[i].curve->impact_low > profile->row[i + 1].curve->impact_low));
	ca_profile_free(profile);
}

/* Of S that samples tell, what others pay for is less certain: here S takes 600 of 1,300 ms, and D is 300. */
static void test_sampled(void **state)
{
	static const struct {
		const char *name;
		bool sampled;
		uint64_t paying, met; /* met: in a second of CPU time; 0: that is not known */
		double share;
	} wanted[] = {
		{ "by probes", false, 300000000, 9, 0 },
		{ "a quarter", true, 75000000, 0, 0.25 * 6 / 13 },
		{ "all", true, 500000000, 0, 6. / 13 },
		{ "nobody knows", true, UINT64_MAX, 0, 6. / 13 },
		{ "seldom met", true, 500000000, 100, 6. / 13 * 0.095162582 }, /* 1 - exp(-0.1) */
		{ "often met", true, 500000000, 20000, 6. / 13 },
	};
	struct ca_results *results;
	struct ca_profile *profile;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(wanted); i++)
		add_region(wanted[i].name);
	results = open_run(1);
	for (uint32_t i = 0; i < CA_COUNT(wanted); i++) {
		sampled = wanted[i].sampled;
		paying = wanted[i].paying;
		met = wanted[i].met;
		put_region(results, 2 + i, 20, 21 - i, 4);
	}
	sampled = false;
	paying = UINT64_MAX;
	met = 0;
	ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	profile = load();
	assert_int_equal(profile->rows, CA_COUNT(wanted));
	for (size_t i = 0; i < CA_COUNT(wanted); i++) {
		assert_string_equal(profile->row[i].region->name, wanted[i].name);
		assert_true(fabs(profile->row[i].curve->sampled - wanted[i].share) < 1e-9);
	}
	ca_profile_free(profile);
}

static void test_many_regions(void **state)
{
	static char text[1 << 16];
	struct ca_results *results;
	struct ca_profile *profile;

	(void)state;
	for (int i = 2; i <= 60; i++) {
		char name[16];

		snprintf(name, sizeof name, "rare%d", i);
		add_region(name);
	}
	results = open_run(1);
	for (uint32_t i = 0; i < 30; i++)
		put(results, i, 0);
	for (uint32_t region = 2; region <= 60; region++) {
		struct ca_visits visits = { .point = 0, .delta = 50 };
		struct ca_experiment_record record = {
			.index = 30 + region,
			.region = region,
			.speedup = 900000,
			.start = region * UINT64_C(1000000000) * 10,
			.end = region * UINT64_C(1000000000) * 10 + 500000000 + 270000000,
			.s_time = 300000000,
			.delay = 270000000,
			.paying = UINT64_MAX,
			.visit_count = 1,
			.visits = &visits,
		};

		assert_int_equal(ca_results_experiment(results, &record, &err), CA_OK);
	}
	ca_results_close(results, &(struct ca_run_summary){ 0 }, &err);
	profile = load();
	assert_int_equal(profile->rows, 60);
	assert_string_equal(profile->row[0].region->name, "work");
	print_to(profile, 90, text, sizeof text);
	assert_non_null(strstr(text, "57 more without enough data: "));
	ca_profile_free(profile);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_since, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_waits_of_others, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kinds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_torn, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_killed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_bad_places, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_runs, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_damaged_line, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_order, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_scope, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reasons, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_disturbed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_early, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_crowded, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_books, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hostile_name, set_up, tear_down),
		cmocka_unit_test(test_units),
		cmocka_unit_test_setup_teardown(test_chain, set_up, tear_down),
		cmocka_unit_test(test_refuted),
		cmocka_unit_test(test_refuted_inside),
		cmocka_unit_test(test_whole),
		cmocka_unit_test_setup_teardown(test_scopes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_time_with_losses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ranks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_sampled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many_regions, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

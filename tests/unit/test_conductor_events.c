/* causal/conductor/experiment_events.c: an experiment that goes to the sinks as events comes out of the
 * results sink as if it had been written at once. */
#include "causal/conductor/experiment_events.h"
#include "core/session.h"
#include "tests/unit/unit.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static char dir[64];
static struct ca_catalog catalog;
static struct ca_err err;
static struct ca_results *direct, *by_events;
static struct ca_sinks *sinks;
static void *sink;
static size_t seen;

/* A second sink: it gets the same events. */
static void count_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	(void)state;
	assert_int_equal(from->process, 0);
	assert_int_equal(event[0].kind, CA_BURST_BEGIN);
	assert_int_equal(event[n - 1].kind, CA_BURST_END);
	seen += n;
}

static const struct ca_sink_ops counter = { .name = "counter", .events = count_events };

static struct ca_results *open_run(unsigned run)
{
	static const char *const command[] = { "./app", NULL };
	struct ca_run_info info = { .run = run, .iteration = 1, .command = command, .mode = "function",
				    .backend = "perf", .speedups = "0,50", .seed = 1 };
	struct ca_results *results = NULL;

	assert_int_equal(ca_results_open(&results, dir, &info, &catalog, &err), CA_OK);
	return results;
}

static int set_up(void **state)
{
	char name[8] = "work";
	struct ca_region region = { .kind = CA_REGION_FUNCTION, .name = name, .line = 3 };

	(void)state;
	strcpy(dir, "/tmp/ca-events-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	assert_non_null(ca_catalog_add_region(&catalog, &region));
	strcpy(name, "more");
	assert_non_null(ca_catalog_add_region(&catalog, &region));
	ca_catalog_add_point(&catalog, CA_MAX_POINTS, 0, "end-to-end");
	for (uint32_t p = 0; p < CA_MAX_POINTS; p++) {
		snprintf(name, sizeof name, "p%u", p);
		ca_catalog_add_point(&catalog, p, p % 2 ? CA_POINT_BEGIN : CA_POINT_THROUGHPUT, name);
	}
	direct = open_run(1);
	by_events = open_run(2);
	seen = 0;
	sink = ca_results_sink_new(by_events);
	assert_non_null(sink);
	assert_int_equal(ca_sinks_open(&sinks, "", NULL, NULL, &err), CA_OK);
	assert_int_equal(ca_sinks_add(sinks, &ca_sink_results, sink), CA_OK);
	assert_int_equal(ca_sinks_add(sinks, &counter, NULL), CA_OK);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	ca_sinks_close(sinks);
	ca_results_close(direct, &(struct ca_run_summary){ 0 }, &err);
	ca_results_close(by_events, &(struct ca_run_summary){ 0 }, &err);
	ca_catalog_fini(&catalog);
	memset(&catalog, 0, sizeof catalog);
	snprintf(command, sizeof command, "rm -rf '%s'", dir);
	return system(command);
}

/* Everything behind the first line of a run file, which holds the run's number. */
static size_t read_run(unsigned run, char *text, size_t size)
{
	char path[128], *line;
	FILE *file;
	size_t n;

	snprintf(path, sizeof path, "%s/run-%04u.jsonl", dir, run);
	file = fopen(path, "re");
	assert_non_null(file);
	n = fread(text, 1, size - 1, file);
	fclose(file);
	assert_true(n < size - 1);
	text[n] = 0;
	line = strchr(text, '\n');
	assert_non_null(line);
	n = strlen(line + 1);
	memmove(text, line + 1, n + 1);
	return n;
}

static char wanted[1 << 18], got[1 << 18];

/* The files are the same up to here. Returns how long. */
static size_t check_files(void)
{
	size_t n = read_run(1, wanted, sizeof wanted);

	read_run(2, got, sizeof got);
	assert_string_equal(got, wanted);
	return n;
}

static void emit(const struct ca_experiment_record *record)
{
	assert_int_equal(ca_results_experiment(direct, record, &err), CA_OK);
	ca_experiment_emit(sinks, record);
	assert_int_equal(ca_results_sink_error(sink, &err), CA_OK);
}

/* All numbers are different, and wide ones are wide. */
static const struct ca_visits visits[] = {
	{ .point = 2, .delta = UINT64_C(1) << 40 },
	{ .point = 3, .delta = 71, .arrivals = 73, .in_flight = 2.25 },
	{ .point = 5, .delta = 0, .arrivals = 1, .in_flight = 0.000001 },
	{ .point = CA_MAX_POINTS, .delta = 1 },
};
static const struct ca_experiment_record full = {
	.index = 12, .region = 2, .speedup = 350000,
	.start = UINT64_C(9000000000000000001), .end = UINT64_C(9000000000500000003),
	.s_time = UINT64_C(5000000000001), .delay = 1002, .paid = 1003, .owed = 1004, .hits = 1005,
	.exact = true, .visit_count = CA_COUNT(visits), .visits = visits,
};

static void test_round_trip(void **state)
{
	(void)state;
	emit(&full);
	assert_true(check_files() > 400);
	assert_non_null(strstr(got, "\"in_flight\":2.25"));
	assert_non_null(strstr(got, "\"paid\":1003"));
	assert_non_null(strstr(got, "\"more\""));
	assert_int_equal(seen, 10 + 4 + 2 * 2);
}

/* Nothing of one experiment shows up in the next. */
static void test_several(void **state)
{
	struct ca_experiment_record bare = { .index = 13, .start = 5, .end = 9 }, other = full;

	(void)state;
	emit(&full);
	emit(&bare);
	other.index = 14;
	other.exact = false;
	other.visit_count = 1;
	for (other.flags = 1; other.flags <= 31; other.flags++)
		emit(&other);
	check_files();
	assert_non_null(strstr(got, "\"region\":null"));
}

static void test_all_points(void **state)
{
	static struct ca_visits all[CA_MAX_POINTS + 1];
	struct ca_experiment_record record = full;

	(void)state;
	for (uint32_t p = 0; p <= CA_MAX_POINTS; p++) {
		all[p] = (struct ca_visits){ .point = p, .delta = 100 + p };
		if (p % 2) {
			all[p].arrivals = 200 + p;
			all[p].in_flight = 0.5 + p;
		}
	}
	record.visit_count = CA_COUNT(all);
	record.visits = all;
	emit(&record);
	check_files();
	assert_non_null(strstr(got, "\"in_flight\":127.5"));
	assert_non_null(strstr(got, "\"p127\""));
}

/* What the program's threads tell lies between an experiment's events, or looks like them. */
static void test_foreign_events(void **state)
{
	static const struct ca_source thread = { 100, 101 };
	static const struct ca_event foreign[] = {
		{ .kind = CA_POINT, .key = CA_KEY_S_TIME, .value = 999 },
		{ .kind = CA_POINT, .key = CA_KEY_SAMPLE, .value = 998 },
		{ .kind = CA_BURST_END, .key = CA_KEY_EXPERIMENT, .value = 12 },
	};
	static const struct ca_source conductor;
	static const struct ca_event stray[] = {
		{ .kind = CA_POINT, .key = CA_KEY_DROPPED, .value = 5 },
		{ .kind = CA_BURST_END, .key = CA_KEY_EXPERIMENT, .value = 40 },
	};

	(void)state;
	ca_sink_results.events(sink, &conductor, stray, CA_COUNT(stray));
	ca_sink_results.events(sink, &thread, foreign, CA_COUNT(foreign));
	emit(&full);
	ca_sink_results.events(sink, &thread, foreign, CA_COUNT(foreign));
	check_files();
}

/* A write that fails is told once. */
static void test_error(void **state)
{
	struct rlimit old, none;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	none = old;
	none.rlim_cur = 0;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	ca_experiment_emit(sinks, &full);
	ca_experiment_emit(sinks, &full);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(ca_results_sink_error(sink, &err), CA_ERR_IO);
	assert_int_equal(ca_results_sink_error(sink, &err), CA_OK);
	emit(&full);
	check_files();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_round_trip, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_several, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_all_points, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_foreign_events, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_error, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

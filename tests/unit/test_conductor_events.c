/* SPDX-License-Identifier: MIT */
/* causal/conductor/experiment_events.c: what sinks hear of a finished experiment. */
#include "causal/conductor/experiment_events.h"
#include "core/dict.h"
#include "core/point.h"
#include "tests/unit/unit.h"
#include <string.h>

static struct ca_event heard[16 + 4 * (CA_MAX_POINTS + 1)];
static size_t n_heard, groups;

static void hear(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	(void)state;
	assert_int_equal(from->process, 0);
	assert_int_equal(from->thread, 0);
	assert_true(n <= CA_COUNT(heard));
	assert_true(n_heard + n <= CA_COUNT(heard));
	memcpy(heard + n_heard, event, n * sizeof *event);
	n_heard += n;
	groups++;
}

static void emit_by(const struct ca_experiment_record *record, const struct ca_dict *dict)
{
	static const struct ca_sink_ops listener = { .name = "listener", .events = hear };
	struct ca_sinks *sinks;
	struct ca_err err;

	assert_int_equal(ca_sink_open(&sinks, "", NULL, NULL, NULL, &err), CA_OK);
	assert_int_equal(ca_sink_add(sinks, &listener, NULL), CA_OK);
	groups = n_heard = 0;
	ca_experiment_events_begin(sinks, dict, record);
	ca_experiment_events_end(sinks, dict, record);
	ca_sink_close(sinks, NULL);
}

static void emit(const struct ca_experiment_record *record)
{
	emit_by(record, NULL);
	assert_int_equal(groups, 2);
}

static void check_at(size_t i, unsigned kind, unsigned key, uint64_t time, uint64_t value)
{
	assert_true(i < n_heard);
	assert_int_equal(heard[i].kind, kind);
	assert_int_equal(heard[i].key, key);
	assert_int_equal(heard[i].time, time);
	assert_int_equal(heard[i].value, value);
}

#define AT(point, number) ((uint64_t)(point) << 48 | (number))

/* All numbers are different, and wide ones are wide. */
static const struct ca_visits visits[] = {
	{ .point = 2, .delta = UINT64_C(1) << 40 },
	{ .point = 3, .delta = 71, .arrivals = 73, .in_flight = 2.25 },
	{ .point = 5, .delta = 0, .arrivals = 1, .in_flight = 0.000001 },
	{ .point = CA_MAX_POINTS, .delta = 1 },
};
static const struct ca_experiment_record full = {
	.index = 12,
	.region = 2,
	.speedup = 350000,
	.start = UINT64_C(9000000000000000001),
	.end = UINT64_C(9000000000500000003),
	.s_time = UINT64_C(5000000000001),
	.delay = 1002,
	.paid = 1003,
	.owed = 1004,
	.hits = 1005,
	.exact = true,
	.visit_count = CA_COUNT(visits),
	.visits = visits,
};

static void test_whole(void **state)
{
	const uint64_t start = full.start, end = full.end;

	(void)state;
	emit(&full);
	check_at(0, CA_BURST_BEGIN, CA_KEY_EXPERIMENT, start, 12);
	check_at(1, CA_POINT, CA_KEY_SELECTION, start, 2);
	check_at(2, CA_POINT, CA_KEY_SPEEDUP, start, 350000);
	check_at(3, CA_POINT, CA_KEY_S_TIME, end, UINT64_C(5000000000001));
	check_at(4, CA_POINT, CA_KEY_INSERTED, end, 1002);
	check_at(5, CA_POINT, CA_KEY_PAID, end, 1003);
	check_at(6, CA_POINT, CA_KEY_OWED, end, 1004);
	check_at(7, CA_POINT, CA_KEY_ENTRIES, end, 1005);
	check_at(8, CA_POINT, CA_KEY_EXACT, end, 1);
	check_at(9, CA_POINT, CA_KEY_PROGRESS, end, AT(2, UINT64_C(1) << 40));
	check_at(10, CA_POINT, CA_KEY_PROGRESS, end, AT(3, 71));
	check_at(11, CA_POINT, CA_KEY_ARRIVALS, end, AT(3, 73));
	check_at(12, CA_POINT, CA_KEY_IN_FLIGHT, end, AT(3, 2250000));
	check_at(13, CA_POINT, CA_KEY_PROGRESS, end, AT(5, 0));
	check_at(14, CA_POINT, CA_KEY_ARRIVALS, end, AT(5, 1));
	check_at(15, CA_POINT, CA_KEY_IN_FLIGHT, end, AT(5, 1));
	check_at(16, CA_POINT, CA_KEY_PROGRESS, end, AT(CA_MAX_POINTS, 1));
	check_at(17, CA_BURST_END, CA_KEY_EXPERIMENT, end, 12);
	assert_int_equal(n_heard, 18);
}

/* Nothing of one experiment shows up in the next. */
static void test_several(void **state)
{
	struct ca_experiment_record bare = { .index = 13, .start = 5, .end = 9 }, other = full;

	(void)state;
	emit(&full);
	emit(&bare);
	assert_int_equal(n_heard, 10);
	check_at(8, CA_POINT, CA_KEY_EXACT, 9, 0);
	check_at(9, CA_BURST_END, CA_KEY_EXPERIMENT, 9, 13);
	other.visit_count = 1;
	for (other.flags = 1; other.flags <= 31; other.flags++) {
		emit(&other);
		assert_int_equal(n_heard, 11);
		assert_int_equal(heard[10].flags, other.flags);
		assert_int_equal(heard[0].flags, 0);
	}
}

static void test_all_points(void **state)
{
	static struct ca_visits all[CA_MAX_POINTS + 1];
	struct ca_experiment_record record = full;

	(void)state;
	for (uint32_t p = 0; p <= CA_MAX_POINTS; p++)
		all[p] = (struct ca_visits){
			.point = p, .delta = 100 + p, .arrivals = 200 + p, .in_flight = 0.5
		};
	record.visit_count = CA_COUNT(all);
	record.visits = all;
	emit(&record);
	assert_int_equal(n_heard, 10 + 3 * CA_COUNT(all));
	for (uint32_t p = 0; p <= CA_MAX_POINTS; p++) {
		check_at(9 + 3 * p, CA_POINT, CA_KEY_PROGRESS, full.end, AT(p, 100 + p));
		check_at(10 + 3 * p, CA_POINT, CA_KEY_ARRIVALS, full.end, AT(p, 200 + p));
	}
}

/* Only keys that somebody wants. */
static void test_chosen(void **state)
{
	struct ca_dict *dict = ca_dict_new();

	(void)state;
	assert_non_null(dict);
	assert_int_equal(ca_dict_select(dict, "none,+paid,+exact", NULL), CA_OK);
	emit_by(&full, dict);
	assert_int_equal(n_heard, 2);
	assert_int_equal(groups, 1);
	check_at(0, CA_POINT, CA_KEY_PAID, full.end, 1003);
	check_at(1, CA_POINT, CA_KEY_EXACT, full.end, 1);
	ca_dict_free(dict);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_all_points),
		cmocka_unit_test(test_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

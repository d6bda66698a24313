/* SPDX-License-Identifier: MIT */
/* causal/points/visits.c: totals over threads and processes, and what a latency point's stamps say about
 * the number of items in flight. */
#include "causal/points/visits.h"
#include "core/session.h"
#include "core/slot.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SLOTS = 3, BEGUN = 500 /* on the run's virtual clock: the experiment */ };

static struct ca_session *session;
static struct ca_catalog catalog;
static struct ca_visits out[CA_MAX_POINTS];
static struct ca_in_flight flight;

static int set_up(void **state)
{
	size_t size = (sizeof *session + SLOTS * sizeof(struct ca_slot) + 4095) / 4096 * 4096;

	(void)state;
	session = aligned_alloc(4096, size);
	if (!session)
		return -1;
	memset(session, 0, size);
	memset(&catalog, 0, sizeof catalog);
	memset(&flight, 0, sizeof flight);
	atomic_store(&session->slots_used, SLOTS);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_catalog_fini(&catalog);
	free(session);
	return 0;
}

static void add_point(enum ca_point_kind kind, const char *name)
{
	uint32_t p = atomic_fetch_add(&session->points_used, 1);

	session->point[p].kind = kind;
	strcpy(session->point[p].name, name);
	atomic_store(&session->point[p].state, CA_SLOT_LIVE);
}

static void visit(unsigned slot, unsigned point, uint64_t times)
{
	atomic_fetch_add(&session->slot[slot].count[point], times);
}

/* A visit of a begin or end point, at this virtual time. */
static void stamp(unsigned slot, unsigned point, uint64_t time)
{
	visit(slot, point, 1);
	atomic_fetch_add(&session->slot[slot].stamp[point], time);
}

static size_t between(const struct ca_visits_now *a, const struct ca_visits_now *b, uint64_t lead,
		      uint64_t span)
{
	return ca_visits_between(session, a, b, lead, span, BEGUN, &flight, &catalog, out);
}

static void test_totals(void **state)
{
	struct ca_visits_now now;

	(void)state;
	ca_visits_read(session, &now);
	assert_int_equal(now.points, 0);
	assert_int_equal(ca_visits_sum(&now), 0);
	add_point(CA_POINT_THROUGHPUT, "a");
	add_point(CA_POINT_THROUGHPUT, "b");
	atomic_store(&session->point[0].shared, 1000);
	visit(0, 0, 1);
	visit(1, 0, 20);
	visit(2, 0, 300);
	visit(1, 1, 7);
	ca_visits_read(session, &now);
	assert_int_equal(now.points, 2);
	assert_int_equal(now.total[0], 1321);
	assert_int_equal(now.total[1], 7);
	assert_int_equal(ca_visits_sum(&now), 1328);
	assert_false(ca_visits_have_latency(session));
	atomic_store(&session->slots_used, 1);
	ca_visits_read(session, &now);
	assert_int_equal(now.total[0], 1001);
}

/* A thread that died between a count and its stamp: we do not wait for it for ever. */
static void test_dead_while_stamping(void **state)
{
	struct ca_visits_now now;

	(void)state;
	add_point(CA_POINT_BEGIN, "a");
	stamp(0, 0, 40);
	atomic_store(&session->slot[0].stamping, 7);
	ca_visits_read(session, &now);
	assert_int_equal(now.total[0], 1);
	assert_int_equal(now.stamp[0], 40);
}

static void test_throughput(void **state)
{
	struct ca_visits_now a, b;

	(void)state;
	add_point(CA_POINT_THROUGHPUT, "visited");
	add_point(CA_POINT_THROUGHPUT, "not visited");
	add_point(CA_POINT_THROUGHPUT, "half there");
	add_point(CA_POINT_END, "end alone");
	atomic_store(&session->point[2].state, CA_SLOT_CLAIMED);
	visit(0, 0, 5);
	visit(0, 1, 5);
	ca_visits_read(session, &a);
	visit(1, 0, 3);
	visit(1, 2, 3);
	visit(1, 3, 3);
	atomic_store(&session->point[0].shared, 1);
	ca_visits_read(session, &b);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_int_equal(out[0].point, 0);
	assert_int_equal(out[0].delta, 4);
	assert_int_equal(out[0].before, 5);
	assert_int_equal(out[0].arrivals, 0);
	assert_int_equal(catalog.points, 1);
	assert_string_equal(catalog.point[0].name, "visited");
	assert_int_equal(catalog.point[0].kind, CA_POINT_THROUGHPUT);
}

/* The times of visits tell how long they took: those of all threads together, from the last one in the
 * warm-up on. */
static void test_span(void **state)
{
	static const struct {
		uint64_t last[2][2];  /* before the measured part and at its end, by thread */
		uint64_t hot, shared; /* visits that were only counted, before; in between */
		uint64_t span;
	} cases[] = {
		{ { { 700, 900 }, { 1700, 1500 } }, 0, 0, 800 },
		{ { { 0, 600 }, { 1700, 1900 } }, 0, 0, 1300 },
		{ { { 400, 0 }, { 1700, 1900 } }, 0, 0, 0 },     /* before the experiment: at another pace */
		{ { { BEGUN, 0 }, { 1700, 0 } }, 0, 0, 0 },      /* from then on */
		{ { { 0, 0 }, { 1700, 0 } }, 0, 0, 0 },          /* never before */
		{ { { 700, 900 }, { 1500, 1400 } }, 0, 0, 600 }, /* as near to the end as the warm-up is long */
		{ { { 700, 900 }, { 1499, 1400 } }, 0, 0, 0 },   /* it ends in a pause */
		{ { { 700, 900 }, { 900, 900 } }, 0, 0, 0 },     /* not by what is known */
		{ { { 700, 900 }, { 1700, 1500 } }, 7, 0, 0 },   /* in a thread that does not tell, too */
		{ { { 700, 900 }, { 1700, 1500 } }, 0, 3, 0 },   /* in a thread that is not known, too */
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_visits_now a, b;

		assert_int_equal(set_up(state), 0);
		add_point(CA_POINT_THROUGHPUT, "work");
		atomic_store(&session->slot[2].hot[0], cases[i].hot > 0);
		for (unsigned k = 0; k < 2; k++) {
			for (unsigned t = 0; t < 2; t++)
				atomic_store(&session->slot[t].last[0], cases[i].last[k][t]);
			visit(0, 0, 4);
			visit(2, 0, cases[i].hot);
			atomic_fetch_add(&session->point[0].shared, k * cases[i].shared);
			ca_visits_read(session, k ? &b : &a);
		}
		assert_int_equal(between(&a, &b, 100, 1000), 1);
		if (out[0].span != cases[i].span)
			fail_msg("case %zu: %u", i, (unsigned)out[0].span);
		tear_down(state);
	}
}

/* A point that appears after the first reading counts from nothing. */
static void test_new_point(void **state)
{
	struct ca_visits_now a, b;

	(void)state;
	ca_visits_read(session, &a);
	add_point(CA_POINT_THROUGHPUT, "late");
	visit(2, 0, 9);
	ca_visits_read(session, &b);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_int_equal(out[0].delta, 9);
}

/* Measured from 1000 to 5000 after the experiment's begin; two items are there at 1000, others
 * come at 2000 and 3000, and items leave at 2500, 4000 and 4500:
 * 2x1000 + 3x500 + 2x500 + 3x1000 + 2x500 + 1x500 = 9000, over 4000. Halves of another name, and
 * the end listed before its begin, do not matter. Sums of stamps wrap. */
static void test_stamps(void **state)
{
	struct ca_visits_now a, b;

	(void)state;
	add_point(CA_POINT_END, "item");
	add_point(CA_POINT_END, "other");
	add_point(CA_POINT_BEGIN, "item");
	assert_true(ca_visits_have_latency(session));
	for (unsigned i = 0; i < 5; i++)
		stamp(i % SLOTS, 2, 900);
	for (unsigned i = 0; i < 3; i++)
		stamp(i % SLOTS, 0, 950);
	atomic_store(&session->slot[1].stamp[2], UINT64_MAX - 1234);
	ca_visits_read(session, &a);
	stamp(0, 2, 2000);
	stamp(0, 0, 2500);
	stamp(1, 2, 3000);
	stamp(2, 0, 4000);
	stamp(1, 0, 4500);
	visit(0, 1, 17);
	ca_visits_read(session, &b);
	flight.time = 1; /* not looked at: the stamps know better */
	flight.area[2] = 77;
	assert_int_equal(between(&a, &b, 1000, 4000), 1);
	assert_int_equal(out[0].point, 2);
	assert_int_equal(out[0].arrivals, 2);
	assert_int_equal(out[0].delta, 3);
	assert_float_equal(out[0].in_flight, 2.25, 1e-9);
	assert_int_equal(catalog.points, 1);
	assert_int_equal(catalog.point[0].kind, CA_POINT_BEGIN);
}

/* Coz's macros carry no time: the number of items is looked at now and then. */
static void test_watched(void **state)
{
	struct ca_visits_now a, now, b;

	(void)state;
	add_point(CA_POINT_BEGIN, "item");
	add_point(CA_POINT_END, "item");
	ca_visits_read(session, &a);
	visit(0, 0, 4);
	ca_visits_read(session, &now);
	ca_visits_watch(session, &now, 200, &flight);
	visit(1, 1, 3);
	ca_visits_read(session, &now);
	ca_visits_watch(session, &now, 200, &flight);
	visit(1, 1, 2); /* more ends than begins: none in flight, not billions */
	ca_visits_read(session, &b);
	ca_visits_watch(session, &b, 400, &flight);
	assert_int_equal(between(&a, &b, 0, 800), 1);
	assert_int_equal(out[0].arrivals, 4);
	assert_int_equal(out[0].delta, 5);
	assert_float_equal(out[0].in_flight, 1.25, 1e-9);
}

static unsigned naps;
static void (*while_asleep)(void);

/* Where the reader waits for a thread that is in the middle of a visit. */
int usleep(useconds_t us)
{
	(void)us;
	naps++;
	if (while_asleep)
		while_asleep();
	return 0;
}

static void end_visit(void)
{
	atomic_fetch_add(&session->slot[1].stamp[0], 500);
	atomic_fetch_add(&session->slot[1].stamping, 1);
	while_asleep = NULL;
}

/* A thread has counted its visit, and is about to add the time. */
static void test_while_stamping(void **state)
{
	struct ca_visits_now now;

	(void)state;
	add_point(CA_POINT_BEGIN, "item");
	stamp(0, 0, 100);
	atomic_fetch_add(&session->slot[1].stamping, 1);
	visit(1, 0, 1);
	while_asleep = end_visit;
	naps = 0;
	ca_visits_read(session, &now);
	assert_int_equal(naps, 1);
	assert_int_equal(now.total[0], 2);
	assert_int_equal(now.stamp[0], 600);
	ca_visits_read(session, &now);
	assert_int_equal(naps, 1);
}

/* Visits by their times, of the measured part; none where too many of them have only one half in a thread. */
static void test_times(void **state)
{
	static struct ca_visits_now a, b;

	(void)state;
	add_point(CA_POINT_BEGIN, "item");
	add_point(CA_POINT_END, "item");
	session->point[0].latency = session->point[1].latency = 3;
	atomic_store(&session->latency[2].count[700], UINT32_MAX - 1);
	ca_visits_read(session, &a);
	ca_visits_times_begin(session, &flight);
	visit(0, 0, 5);
	visit(0, 1, 5);
	atomic_fetch_add(&session->latency[2].count[700], 4); /* wraps */
	atomic_fetch_add(&session->latency[2].count[711], 1);
	atomic_fetch_add(&session->latency[1].count[700], 9);
	atomic_store(&session->latency[2].odd, 8);
	ca_visits_read(session, &b);
	ca_visits_times_end(session, &flight);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_non_null(out[0].times);
	for (unsigned i = 0; i < CA_LATENCY_BUCKETS; i++)
		assert_int_equal(out[0].times[i], i == 700 ? 4 : i == 711 ? 1 : 0);
	atomic_store(&session->latency[2].odd, 9);
	ca_visits_times_end(session, &flight);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_null(out[0].times);
	atomic_store(&session->latency[2].count[720], 100); /* one in a hundred is nothing */
	ca_visits_times_end(session, &flight);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_non_null(out[0].times);
}

static void test_no_end(void **state)
{
	struct ca_visits_now a, b;

	(void)state;
	add_point(CA_POINT_BEGIN, "item");
	add_point(CA_POINT_END, "another item");
	ca_visits_read(session, &a);
	for (int i = 0; i < 6; i++)
		stamp(0, 0, 100);
	visit(0, 1, 50);
	ca_visits_read(session, &b);
	ca_visits_watch(session, &b, 1000, &flight);
	assert_int_equal(between(&a, &b, 0, 1000), 1);
	assert_int_equal(out[0].arrivals, 6);
	assert_int_equal(out[0].delta, 0);
	assert_float_equal(out[0].in_flight, 0, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_totals, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dead_while_stamping, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_throughput, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_new_point, set_up, tear_down),
		cmocka_unit_test(test_span),
		cmocka_unit_test_setup_teardown(test_stamps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_watched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_while_stamping, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_times, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_end, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

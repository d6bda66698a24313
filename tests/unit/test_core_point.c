/* SPDX-License-Identifier: MIT */
/* core/point.c: rows for progress points, found again or added, by many at once, until the table
 * is full. */
#include "core/point.h"
#include "core/session.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ca_session *session;

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	if (!session)
		return -1;
	memset(session, 0, sizeof *session);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(session);
	return 0;
}

static void test_rows(void **state)
{
	char name[300], same[300];

	(void)state;
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "a"), &session->point[0]);
	assert_int_equal(atomic_load(&session->points_used), 1);
	assert_ptr_equal(ca_point_get(session, CA_POINT_BEGIN, "a"), &session->point[1]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "ab"), &session->point[2]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, ""), &session->point[3]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "a"), &session->point[0]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_BEGIN, "a"), &session->point[1]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "ab"), &session->point[2]);
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, ""), &session->point[3]);
	assert_int_equal(atomic_load(&session->points_used), 4);
	assert_int_equal(session->point[1].kind, CA_POINT_BEGIN);
	assert_string_equal(session->point[2].name, "ab");
	assert_int_equal(atomic_load(&session->point[3].state), CA_SLOT_LIVE);
	/* cut to the row's room, and known again */
	memset(name, 'n', sizeof name);
	name[299] = '\0';
	assert_ptr_equal(ca_point_get(session, CA_POINT_END, name), &session->point[4]);
	assert_int_equal(strlen(session->point[4].name), sizeof session->point[4].name - 1);
	memcpy(same, name, sizeof same);
	same[250] = 'x';
	assert_ptr_equal(ca_point_get(session, CA_POINT_END, same), &session->point[4]);
	same[238] = 'x';
	assert_ptr_equal(ca_point_get(session, CA_POINT_END, same), &session->point[5]);
}

/* Whoever died while he wrote a row costs that row. */
static void test_claimed(void **state)
{
	(void)state;
	atomic_store(&session->point[0].state, CA_SLOT_CLAIMED);
	session->point[0].kind = CA_POINT_THROUGHPUT;
	strcpy(session->point[0].name, "a");
	assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "a"), &session->point[1]);
	assert_int_equal(atomic_load(&session->points_used), 2);
	assert_int_equal(atomic_load(&session->point[0].state), CA_SLOT_CLAIMED);
}

static void test_full(void **state)
{
	char name[16];

	(void)state;
	for (unsigned i = 0; i < CA_MAX_POINTS; i++) {
		snprintf(name, sizeof name, "p%u", i);
		assert_ptr_equal(ca_point_get(session, CA_POINT_THROUGHPUT, name), &session->point[i]);
	}
	assert_null(ca_point_get(session, CA_POINT_THROUGHPUT, "more"));
	assert_non_null(ca_point_get(session, CA_POINT_THROUGHPUT, name));
	assert_int_equal(atomic_load(&session->points_used), CA_MAX_POINTS);
}

/* Begin and end of one name share a row of times; whoever comes when all are taken has none. */
static void test_latency_rows(void **state)
{
	char name[16];

	(void)state;
	assert_int_equal(ca_point_get(session, CA_POINT_END, "a")->latency, 1);
	assert_int_equal(ca_point_get(session, CA_POINT_THROUGHPUT, "a")->latency, 0);
	assert_int_equal(ca_point_get(session, CA_POINT_BEGIN, "b")->latency, 2);
	assert_int_equal(ca_point_get(session, CA_POINT_BEGIN, "a")->latency, 1);
	for (unsigned i = 3; i <= CA_MAX_LATENCIES; i++) {
		snprintf(name, sizeof name, "p%u", i);
		assert_int_equal(ca_point_get(session, CA_POINT_BEGIN, name)->latency, i);
	}
	assert_int_equal(ca_point_get(session, CA_POINT_BEGIN, "more")->latency, 0);
	assert_int_equal(ca_point_get(session, CA_POINT_END, "b")->latency, 2);
}

/* Every time lies in its bucket, and no bucket is wider than a 64th of its time. */
static void test_latency_buckets(void **state)
{
	(void)state;
	for (uint64_t ns = 0; ns < UINT64_C(1) << 38; ns += 1 + ns / 977) {
		uint32_t b = ca_latency_bucket(ns);

		assert_true(b < CA_LATENCY_BUCKETS);
		assert_in_range(ns, ca_latency_low(b), ca_latency_low(b + 1) - 1);
		assert_true(ns < 128 ? ca_latency_low(b) == ns
				     : (ca_latency_low(b + 1) - ca_latency_low(b)) * 64 <= ns);
	}
	assert_int_equal(ca_latency_bucket((UINT64_C(1) << 38) - 1), CA_LATENCY_BUCKETS - 1);
	assert_int_equal(ca_latency_bucket(UINT64_C(1) << 38), CA_LATENCY_BUCKETS - 1);
	assert_int_equal(ca_latency_bucket(UINT64_MAX), CA_LATENCY_BUCKETS - 1);
}

enum { THREADS = 4, NAMES = 100 };

static void *get_all(void *row)
{
	char name[16];

	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof name, "p%u", i);
		((struct ca_progress_point **)row)[i] = ca_point_get(session, CA_POINT_THROUGHPUT, name);
	}
	return NULL;
}

static void test_at_once(void **state)
{
	struct ca_progress_point *row[THREADS][NAMES];
	pthread_t thread[THREADS];

	(void)state;
	for (unsigned t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, get_all, row[t]), 0);
	for (unsigned t = 0; t < THREADS; t++)
		pthread_join(thread[t], NULL);
	/* the same row for all; a row that was skipped as another was written it may have twice */
	for (unsigned i = 0; i < NAMES; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%u", i);
		for (unsigned t = 0; t < THREADS; t++)
			assert_string_equal(row[t][i]->name, name);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_rows),         TEST(test_claimed),         TEST(test_full),
		TEST(test_latency_rows), TEST(test_latency_buckets), TEST(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

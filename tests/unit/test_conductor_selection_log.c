/* SPDX-License-Identifier: MIT */
/* causal/conductor/selection_log.c: for how long at least one thread was in S, from a log whose entries may be late,
 * lost, or half written. */
#include "causal/conductor/selection_log.h"
#include "core/rng.h"
#include "core/session.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

static struct ca_session *session;
static struct ca_selection_log *slog;

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(4096, sizeof *session);
	if (!session)
		return -1;
	memset(session, 0, sizeof *session);
	atomic_store(&session->slots_used, CA_MAX_THREADS);
	slog = ca_selection_log_new(session);
	return slog ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_selection_log_free(slog);
	free(session);
	return 0;
}

/* Take a number, as a thread does before it publishes the entry. */
static uint64_t take(void)
{
	return atomic_fetch_add(&session->log_head, 1);
}

static void publish(uint64_t n, enum ca_log_type type, uint32_t thread, uint64_t time, uint64_t value)
{
	struct ca_log_entry *e = &session->log[n % CA_LOG_ENTRIES];

	e->time = time;
	e->thread = thread;
	e->type = type;
	e->value = value;
	atomic_store(&e->seq, n + 1);
}

static void put(enum ca_log_type type, uint32_t thread, uint64_t time)
{
	publish(take(), type, thread, time, 0);
}

static struct ca_selection_log_sum sum(uint64_t start, uint64_t end)
{
	ca_selection_log_read(slog);
	return ca_selection_log_sum(slog, start, end);
}

static void check(uint64_t start, uint64_t end, uint64_t s_time, uint64_t entries)
{
	struct ca_selection_log_sum got;
	uint64_t seen;

	ca_selection_log_read(slog);
	seen = ca_selection_log_peek(slog, start, end).s_time; /* a look at it changes nothing */
	got = sum(start, end);
	assert_int_equal(seen, s_time);
	assert_int_equal(got.s_time, s_time);
	assert_int_equal(got.entries, entries);
	assert_false(got.overflow);
}

static void test_empty(void **state)
{
	(void)state;
	check(100, 1000, 0, 0);
}

/* [10, 40) and [30, 60) overlap, [70, 80) stands alone. */
static void test_union(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_ENTER, 2, 30);
	put(CA_LOG_EXIT, 1, 40);
	put(CA_LOG_EXIT, 2, 60);
	put(CA_LOG_ENTER, CA_MAX_THREADS - 1, 70);
	put(CA_LOG_EXIT, CA_MAX_THREADS - 1, 80);
	assert_int_equal(ca_selection_log_read(slog), 6);
	assert_int_equal(ca_selection_log_read(slog), 0);
	check(0, 100, 60, 3);
}

static void test_stand_still(void **state)
{
	struct ca_selection_log_sum got;

	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	publish(take(), CA_LOG_STILL, 2, 5, 1000); /* before the window */
	publish(take(), CA_LOG_STILL, 2, 20, 300);
	put(CA_LOG_EXIT, 1, 40);
	publish(take(), CA_LOG_STILL, 2, 50, 40);
	ca_selection_log_read(slog);
	got = ca_selection_log_sum(slog, 10, 100);
	assert_int_equal(got.s_time, 30);
	assert_int_equal(got.still, 340);
	assert_int_equal(got.entries, 1);
}

/* What probes took is no S time; while S is known by entry and exit, none is told. */
static void test_probes(void **state)
{
	struct ca_selection_log_sum got;

	(void)state;
	publish(take(), CA_LOG_PROBES, 2, 5, 1000); /* before the window */
	publish(take(), CA_LOG_HIT, 2, 20, 300);
	publish(take(), CA_LOG_PROBES, 2, 20, 40);
	publish(take(), CA_LOG_PROBES, 3, 30, 2);
	ca_selection_log_read(slog);
	got = ca_selection_log_sum(slog, 10, 100);
	assert_int_equal(got.s_time, 300);
	assert_int_equal(got.probes, 42);
	assert_int_equal(got.entries, 1);
}

/* Of parts with speedups of their own the fastest one that somebody is in counts. */
static void test_parts(void **state)
{
	(void)state;
	session->selection.parts = 2;
	session->selection.weight[0] = 400000;
	session->selection.weight[1] = 1000000;
	publish(take(), CA_LOG_ENTER, 1, 1000, 0);
	publish(take(), CA_LOG_ENTER, 2, 2000, 1);
	publish(take(), CA_LOG_EXIT, 1, 2500, 0);
	publish(take(), CA_LOG_ENTER, 2, 3000, 0); /* back from a part that the other one calls */
	publish(take(), CA_LOG_EXIT, 2, 4000, 0);
	publish(take(), CA_LOG_HIT, 3, 5000, CA_LOG_HIT_VALUE(100, 0));
	publish(take(), CA_LOG_HIT, 3, 5000, CA_LOG_HIT_VALUE(100, 1));
	publish(take(), CA_LOG_ENTER, 1, 6000, 0);
	publish(take(), CA_LOG_HIT, 3, 6500, CA_LOG_HIT_VALUE(100, 0)); /* counts already */
	publish(take(), CA_LOG_HIT, 3, 6500, CA_LOG_HIT_VALUE(100, 1));
	publish(take(), CA_LOG_EXIT, 1, 7000, 0);
	check(0, 10000, 400 + 1000 + 400 + 100 + 400 + 60, 8);
}

/* Threads publish in another order than that of the times. */
static void test_disorder(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 2, 50);
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_EXIT, 2, 80);
	put(CA_LOG_EXIT, 1, 20);
	check(0, 100, 40, 2);
}

/* At one moment: in the order of the log. */
static void test_same_time(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_EXIT, 1, 20);
	put(CA_LOG_ENTER, 1, 20);
	put(CA_LOG_EXIT, 1, 30);
	check(0, 100, 20, 2);
}

/* The thread learns of its waits when they are over, the inner one first. */
static void test_late_off(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_EXIT, 1, 90);
	put(CA_LOG_OFF, 1, 40);
	put(CA_LOG_ON, 1, 50);
	put(CA_LOG_OFF, 1, 30);
	put(CA_LOG_ON, 1, 70);
	check(0, 100, 40, 1);
}

/* Both ends in one entry, told of while it goes on or afterwards. */
static void test_was_off(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	publish(take(), CA_LOG_WAS_OFF, 1, 20, 30);
	publish(take(), CA_LOG_WAS_OFF, 1, 95, 105); /* across the end of the window */
	put(CA_LOG_EXIT, 1, 150);
	publish(take(), CA_LOG_WAS_OFF, 1, 120, 130);
	check(0, 100, 10 + 65, 1);
	check(100, 200, 15 + 20, 0);
}

/* Off intervals that overlap without one being inside the other; a second thread fills a part. */
static void test_overlapping_off(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_OFF, 1, 20);
	put(CA_LOG_ON, 1, 50);
	put(CA_LOG_OFF, 1, 40);
	put(CA_LOG_ON, 1, 60);
	put(CA_LOG_ENTER, 2, 30);
	put(CA_LOG_EXIT, 2, 35);
	put(CA_LOG_EXIT, 1, 70);
	check(0, 100, 10 + 5 + 10, 2);
}

/* Waiting for the world outside is part of S, on a CPU or not. */
static void test_external(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_EXTERNAL, 1, 20);
	publish(take(), CA_LOG_ON, 1, 60, CA_LOG_EXTERNAL);
	put(CA_LOG_OFF, 1, 25);
	put(CA_LOG_ON, 1, 55);
	put(CA_LOG_OFF, 1, 70);
	put(CA_LOG_ON, 1, 80);
	put(CA_LOG_EXIT, 1, 90);
	check(0, 100, 70, 1);
}

/* S as known by samples: each stands for some time; those outside the window do not count. */
static void test_hits(void **state)
{
	(void)state;
	publish(take(), CA_LOG_HIT, 1, 5, 1000);
	publish(take(), CA_LOG_HIT, 1, 10, 300);
	publish(take(), CA_LOG_HIT, 2, 30, 200);
	publish(take(), CA_LOG_HIT, 1, 40, 70);
	check(10, 40, 500, 2);
	check(40, 50, 70, 1);
}

static void test_windows(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	put(CA_LOG_ENTER, 2, 25);
	put(CA_LOG_EXIT, 1, 45);
	check(20, 30, 10, 1); /* clipped at both ends; 1 entered before */
	check(30, 40, 10, 0); /* both are still in; nothing is said in this window */
	put(CA_LOG_OFF, 2, 50);
	check(40, 60, 10, 0);
	check(60, 70, 0, 0); /* it still waits */
	put(CA_LOG_ON, 2, 75);
	put(CA_LOG_EXIT, 2, 200);
	check(80, 90, 10, 0); /* between two windows the state changed */
	check(90, 300, 110, 0);
	check(300, 400, 0, 0);
}

/* Looked at after every few entries, of which some are late, some very: each time as if it had been looked at once. */
static void test_looks(void **state)
{
	struct ca_rng rng;

	(void)state;
	ca_rng_init(&rng, 7);
	for (uint64_t n = 0, time = 1000; n < 3000; n++, time += 10) {
		uint64_t late = ca_rng_below(&rng, n % 50 ? 30 : 900);

		put(n % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, (uint32_t)ca_rng_below(&rng, 3), time - late);
		if (n % 7)
			continue;
		ca_selection_log_read(slog);
		struct ca_selection_log_sum looked = ca_selection_log_peek(slog, 500, time);
		struct ca_selection_log *other = ca_selection_log_new(session);

		ca_selection_log_read(other);
		assert_int_equal(looked.s_time, ca_selection_log_sum(other, 500, time).s_time);
		ca_selection_log_free(other);
	}
	assert_true(ca_selection_log_peek(slog, 500, 40000).s_time > 5000);
}

static void test_restart(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	check(0, 20, 10, 1);
	put(CA_LOG_ENTER, 2, 21);
	ca_selection_log_read(slog);
	put(CA_LOG_ENTER, 3, 22); /* about the last selection, too */
	ca_selection_log_restart(slog, atomic_load(&session->log_head));
	check(30, 40, 0, 0);
	put(CA_LOG_ENTER, 3, 45);
	check(40, 50, 5, 1);
}

static void test_overflow(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < CA_LOG_ENTRIES; i++)
		publish(take(), i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 1, 10 + i, 0);
	assert_int_equal(ca_selection_log_read(slog), CA_LOG_ENTRIES); /* how hot it is counts them, too */
	assert_true(sum(0, 100).overflow);
	check(100, 200, 0, 0); /* said once; reading goes on behind what was lost */
	put(CA_LOG_ENTER, 1, 70200);
	put(CA_LOG_EXIT, 1, 70210);
	check(70200, 70300, 10, 1);
}

/* Far more entries than the log holds, read often enough: nothing is lost. */
static void test_wraps(void **state)
{
	uint64_t time = 0, end = 0;

	(void)state;
	for (int window = 0; window < 10; window++) {
		for (int i = 0; i < CA_LOG_ENTRIES / 8; i++, time += 10) {
			put(CA_LOG_ENTER, 7, time);
			put(CA_LOG_EXIT, 7, time + 3);
		}
		check(end, time, 3 * CA_LOG_ENTRIES / 8, CA_LOG_ENTRIES / 8);
		end = time;
	}
}

/* A writer was interrupted between taking a number and publishing. */
static void test_unpublished(void **state)
{
	uint64_t hole;

	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	hole = take();
	put(CA_LOG_EXIT, 1, 50);
	assert_int_equal(ca_selection_log_read(slog), 1);
	publish(hole, CA_LOG_OFF, 1, 30, 0);
	assert_int_equal(ca_selection_log_read(slog), 2);
	check(0, 100, 20, 1);
}

/* ... and never came back. */
static void test_dead_writer(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, 1, 10);
	take();
	for (uint32_t i = 0; i < 5000; i++)
		put(CA_LOG_ENTER, 2, 20);
	assert_int_equal(ca_selection_log_read(slog), 5001);
	assert_true(sum(0, 100).overflow);
}

/* ... or came back when all the log had been written anew. */
static void test_late_by_a_log(void **state)
{
	_Atomic uint64_t number = 5;

	(void)state;
	for (uint64_t i = 0; i < CA_LOG_ENTRIES; i++)
		take();
	ca_selection_log_read(slog);
	while (atomic_load(&session->log_head) < CA_LOG_ENTRIES + 8)
		ca_selection_append(&session->log_head, session->log, CA_LOG_HIT, 1, 100, 7);
	ca_selection_append(&number, session->log, CA_LOG_ENTER, 2, 20, 0);
	assert_int_equal(ca_selection_log_read(slog), 8);
	assert_int_equal(session->log[5].thread, 1);
	/* one that is still at it, or has died over it, keeps out the next one, but not the one behind */
	atomic_store(&session->log[5].seq, CA_LOG_WRITING | (CA_LOG_ENTRIES + 6));
	number = 2 * CA_LOG_ENTRIES + 5;
	ca_selection_append(&number, session->log, CA_LOG_ENTER, 2, 20, 0);
	assert_int_equal(session->log[5].thread, 1);
	number = 3 * CA_LOG_ENTRIES + 5;
	ca_selection_append(&number, session->log, CA_LOG_ENTER, 2, 20, 0);
	assert_int_equal(session->log[5].thread, 2);
}

/* A reader that is slower than the writers does not take one entry's half for another's. */
static void test_written_over_while_read(void **state)
{
	struct ca_log_entry e;

	(void)state;
	ca_selection_append(&session->log_head, session->log, CA_LOG_ENTER, 1, 10, 3);
	assert_int_equal(ca_selection_look(session->log, 0, 1, &e), CA_LOG_THERE);
	assert_int_equal(e.time, 10);
	assert_int_equal(e.thread, 1);
	assert_int_equal(e.value, 3);
	atomic_store(&session->log[0].seq, CA_LOG_WRITING | (CA_LOG_ENTRIES + 1));
	assert_int_equal(ca_selection_look(session->log, 0, CA_LOG_ENTRIES + 1, &e), CA_LOG_LOST);
	atomic_store(&session->log[0].seq, CA_LOG_WRITING | 1);
	assert_int_equal(ca_selection_look(session->log, 0, 1, &e), CA_LOG_NOT_YET);
	assert_int_equal(ca_selection_look(session->log, 0, CA_LOG_HOLE, &e), CA_LOG_LOST);
}

static void test_wrong_thread(void **state)
{
	(void)state;
	put(CA_LOG_ENTER, CA_MAX_THREADS, 10);
	assert_true(sum(0, 100).overflow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_empty, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_union, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_parts, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_disorder, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_same_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_was_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overlapping_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_external, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stand_still, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_probes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_looks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_restart, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_overflow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wraps, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_unpublished, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dead_writer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_late_by_a_log, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_written_over_while_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_wrong_thread, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

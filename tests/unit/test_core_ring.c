/* SPDX-License-Identifier: MIT */
/* core/ring.c: order, whole groups, drops, and two threads at once (clean under TSan). */
#include "core/ring.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct ca_ring *ring;

static int make_ring(void **state)
{
	(void)state;
	ring = aligned_alloc(64, sizeof *ring);
	if (!ring)
		return -1;
	memset(ring, 0, sizeof *ring);
	return 0;
}

static int drop_ring(void **state)
{
	(void)state;
	free(ring);
	return 0;
}

static struct ca_event numbered(uint64_t value)
{
	return (struct ca_event){ .time = value, .kind = CA_POINT, .key = 7, .value = ~value };
}

static void test_order(void **state)
{
	struct ca_event out[10];

	(void)state;
	assert_int_equal(ca_ring_pop(ring, out, 10), 0);
	for (uint64_t i = 0; i < 5; i++) {
		struct ca_event event = numbered(i);

		assert_true(ca_ring_push(ring, &event, 1));
	}
	assert_int_equal(ca_ring_pop(ring, out, 3), 3);
	assert_int_equal(ca_ring_pop(ring, out + 3, 10), 2);
	for (uint64_t i = 0; i < 5; i++) {
		assert_int_equal(out[i].time, i);
		assert_int_equal(out[i].value, ~i);
		assert_int_equal(out[i].key, 7);
	}
}

static void test_groups_stay_whole(void **state)
{
	struct ca_event group[3] = { numbered(1), numbered(2), numbered(3) };
	struct ca_event out[CA_RING_EVENTS];
	size_t pushed = 0;

	(void)state;
	while (ca_ring_push(ring, group, 3))
		pushed += 3;
	/* 1024 is no multiple of 3: one place is left, and no part of a group takes it */
	assert_int_equal(pushed, CA_RING_EVENTS / 3 * 3);
	assert_int_equal(atomic_load(&ring->dropped), 3);
	assert_true(ca_ring_push(ring, group, 1));
	assert_false(ca_ring_push(ring, group, 1));
	assert_int_equal(atomic_load(&ring->dropped), 4);
	assert_int_equal(ca_ring_pop(ring, out, CA_RING_EVENTS), CA_RING_EVENTS);
	assert_int_equal(out[0].time, 1); /* the oldest is there, though the ring was full */
	assert_int_equal(out[CA_RING_EVENTS - 1].time, 1);
	assert_true(ca_ring_push(ring, group, 3));
}

static void test_larger_than_the_ring(void **state)
{
	static struct ca_event many[CA_RING_EVENTS + 1];

	(void)state;
	assert_false(ca_ring_push(ring, many, CA_RING_EVENTS + 1));
	assert_true(ca_ring_push(ring, many, CA_RING_EVENTS));
	assert_true(ca_ring_push(ring, many, 0));
}

/* A host that dies or scribbles must not lead the conductor astray. */
static void test_corrupt_head(void **state)
{
	struct ca_event event = numbered(1), out[4];

	(void)state;
	atomic_store(&ring->head, UINT64_MAX / 2);
	assert_int_equal(ca_ring_pop(ring, out, 4), 0);
	assert_true(ca_ring_push(ring, &event, 1));
	assert_int_equal(ca_ring_pop(ring, out, 4), 1);
}

enum { GROUPS = 200000, GROUP = 3 };

static void *produce(void *argument)
{
	(void)argument;
	for (uint64_t i = 0; i < GROUPS; i++) {
		struct ca_event group[GROUP];

		for (unsigned j = 0; j < GROUP; j++)
			group[j] = numbered(i * GROUP + j);
		while (!ca_ring_push(ring, group, GROUP))
			;
	}
	return NULL;
}

static void test_two_threads(void **state)
{
	pthread_t thread;
	uint64_t next = 0, wrong = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, produce, NULL), 0);
	while (next < (uint64_t)GROUPS * GROUP) {
		struct ca_event out[64];
		size_t n = ca_ring_pop(ring, out, 64);

		for (size_t i = 0; i < n; i++, next++)
			wrong += out[i].time != next || out[i].value != ~next;
	}
	pthread_join(thread, NULL);
	assert_int_equal(wrong, 0);
	assert_int_equal(atomic_load(&ring->dropped) % GROUP, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, make_ring, drop_ring),
		cmocka_unit_test_setup_teardown(test_groups_stay_whole, make_ring, drop_ring),
		cmocka_unit_test_setup_teardown(test_larger_than_the_ring, make_ring, drop_ring),
		cmocka_unit_test_setup_teardown(test_corrupt_head, make_ring, drop_ring),
		cmocka_unit_test_setup_teardown(test_two_threads, make_ring, drop_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

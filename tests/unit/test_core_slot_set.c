/* SPDX-License-Identifier: MIT */
/* core/slot_set.h. */
#include "core/slot_set.h"
#include "tests/unit/unit.h"
#include <pthread.h>

static struct ca_slot_set set;

static void finds(void **state)
{
	static const uint32_t in[] = { 0, 1, 63, 64, 200, 6400, CA_MAX_THREADS - 1 };
	size_t n = 0;

	(void)state;
	assert_int_equal(ca_slot_set_next(&set, 0, CA_MAX_THREADS), CA_MAX_THREADS);
	for (size_t i = 0; i < CA_COUNT(in); i++) {
		ca_slot_set_add(&set, in[i]);
		ca_slot_set_add(&set, in[i]);
	}
	for (CA_SLOTS_IN(i, &set, CA_MAX_THREADS))
		assert_int_equal(i, in[n++]);
	assert_int_equal(n, CA_COUNT(in));
	/* up to the end that is asked for, and no further than there are slots */
	assert_int_equal(ca_slot_set_next(&set, 65, 200), 200);
	assert_int_equal(ca_slot_set_next(&set, 65, 201), 200);
	assert_int_equal(ca_slot_set_next(&set, 65, 100), 100);
	assert_int_equal(ca_slot_set_next(&set, 201, 300), 300);
	assert_int_equal(ca_slot_set_next(&set, CA_MAX_THREADS, UINT32_MAX), UINT32_MAX);
	for (size_t i = 0; i < CA_COUNT(in); i++) {
		ca_slot_set_remove(&set, in[i]);
		ca_slot_set_remove(&set, in[i]);
		assert_int_equal(ca_slot_set_next(&set, 0, CA_MAX_THREADS),
				 i + 1 < CA_COUNT(in) ? in[i + 1] : CA_MAX_THREADS);
	}
}

/* Neighbours in one word do not get lost. */
enum { TIMES = 20000, THREADS = 4 };

static void *come_and_go(void *number)
{
	uint32_t own = *(uint32_t *)number;

	for (uint32_t i = 0; i < TIMES; i++) {
		ca_slot_set_tell(&set, own);
		assert_true(ca_slot_set_next(&set, own, own + 1) == own);
		ca_slot_set_remove(&set, own);
		assert_true(ca_slot_set_next(&set, own, own + 1) == own + 1);
		ca_slot_set_add(&set, own);
	}
	return NULL;
}

static void neighbours(void **state)
{
	pthread_t thread[THREADS];
	uint32_t number[THREADS], n = 0;

	(void)state;
	for (uint32_t i = 0; i < THREADS; i++) {
		number[i] = 70 + i;
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, &number[i]), 0);
	}
	for (uint32_t i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (CA_SLOTS_IN(i, &set, CA_MAX_THREADS))
		assert_int_equal(i, 70 + n++);
	assert_int_equal(n, THREADS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds), cmocka_unit_test(neighbours) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

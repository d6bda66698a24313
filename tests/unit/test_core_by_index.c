/* SPDX-License-Identifier: MIT */
/* core/by_index.c: records stay where they are, and what is dropped is given back. */
#include "core/by_index.h"
#include "tests/unit/unit.h"
#include <malloc.h>

struct record {
	uint32_t number;
	char more[60];
};

static void test_get_and_drop(void **state)
{
	struct ca_by_index records = { .size = sizeof(struct record) };
	struct record *at, *first;
	uint32_t i = 0;

	(void)state;
	assert_null(ca_by_index_find(&records, 0));
	assert_null(ca_by_index_next(&records, &i));
	first = ca_by_index_get(&records, 1);
	assert_non_null(first);
	first->number = 1;
	for (uint32_t k = 60; k < 20000; k += 7) {
		at = ca_by_index_get(&records, k);
		assert_non_null(at);
		assert_memory_equal(at, &(struct record){ 0 }, sizeof *at);
		at->number = k;
	}
	assert_ptr_equal(ca_by_index_get(&records, 1), first);
	assert_int_equal(first->number, 1);
	for (uint32_t k = 60; k < 19000; k += 14)
		ca_by_index_drop(&records, k);
	assert_null(ca_by_index_find(&records, 60));
	assert_null(ca_by_index_find(&records, 61));
	assert_null(ca_by_index_find(&records, 4000000));
	ca_by_index_drop(&records, 4000000);
	/* those that are left, in their order */
	for (uint32_t k = 1; k < 200; k = k == 1 ? 67 : k + 14) {
		at = ca_by_index_next(&records, &i);
		assert_non_null(at);
		assert_int_equal(i, k);
		assert_int_equal(at->number, k);
		i++;
	}
	/* what comes again has been forgotten */
	at = ca_by_index_get(&records, 60);
	assert_memory_equal(at, &(struct record){ 0 }, sizeof *at);
	at = ca_by_index_find(&records, 67);
	assert_int_equal(at->number, 67);
	ca_by_index_free(&records);
	i = 0;
	assert_null(ca_by_index_next(&records, &i));
	assert_non_null(ca_by_index_get(&records, 3));
	ca_by_index_free(&records);
}

/* 200,000 threads, some of them alive at a time. */
static void test_memory(void **state)
{
	struct ca_by_index records = { .size = sizeof(struct record) };
	size_t before;

	(void)state;
	assert_non_null(ca_by_index_get(&records, 1));
	before = mallinfo2().uordblks;
	for (uint32_t i = 2; i < 200000; i++) {
		assert_non_null(ca_by_index_get(&records, i));
		if (i >= 100)
			ca_by_index_drop(&records, i - 98);
	}
	assert_true(mallinfo2().uordblks < before + 100000);
	assert_non_null(ca_by_index_find(&records, 1));
	ca_by_index_free(&records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get_and_drop),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/vec.c: arrays grow, keep what they hold, and are sorted without changing the order of equals. */
#include "core/vec.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

struct record {
	uint32_t key, order;
	char more[3];
};

static void test_push_and_add(void **state)
{
	static const uint8_t zeros[sizeof(struct record)]; /* padding, too */
	struct ca_vec vec = { .size = sizeof(struct record) };
	const struct record two[2] = { { .key = 7 }, { .key = 8, .more = "b" } };
	struct record *at;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		at = ca_vec_push(&vec);
		assert_non_null(at);
		assert_memory_equal(at, zeros, sizeof zeros);
		at->key = i;
	}
	assert_true(ca_vec_add(&vec, two, 2));
	assert_true(ca_vec_add(&vec, NULL, 0));
	assert_int_equal(vec.n, 1002);
	at = vec.at;
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(at[i].key, i);
	assert_memory_equal(at + 1000, two, sizeof two);
	/* memory that has been used before comes back zeroed */
	vec.n = 10;
	at = ca_vec_push(&vec);
	assert_memory_equal(at, &(struct record){ 0 }, sizeof *at);
	/* ... also those on the way to a later one; what is there stays */
	at = ca_vec_reach(&vec, 300);
	assert_int_equal(vec.n, 301);
	assert_ptr_equal(at, (struct record *)vec.at + 300);
	for (uint32_t i = 11; i <= 300; i++)
		assert_memory_equal((struct record *)vec.at + i, &(struct record){ 0 }, sizeof *at);
	at = ca_vec_reach(&vec, 9);
	assert_int_equal(at->key, 9);
	assert_int_equal(vec.n, 301);
	ca_vec_free(&vec);
	assert_int_equal(vec.n, 0);
	assert_int_equal(vec.size, sizeof(struct record));
	assert_non_null(ca_vec_push(&vec));
	ca_vec_free(&vec);
}

/* One large step, past several doublings. */
static void test_add_many(void **state)
{
	static char text[100000];
	struct ca_vec vec = { .size = 1 };

	(void)state;
	memset(text, 'x', sizeof text);
	assert_true(ca_vec_add(&vec, "a", 1));
	assert_true(ca_vec_add(&vec, text, sizeof text));
	assert_true(vec.room >= vec.n);
	assert_int_equal(vec.n, sizeof text + 1);
	assert_memory_equal((char *)vec.at + 1, text, sizeof text);
	ca_vec_free(&vec);
}

static void test_failure(void **state)
{
	struct ca_vec vec = { .size = SIZE_MAX / 8 };

	(void)state;
	assert_null(ca_vec_push(&vec));
	assert_true(vec.failed);
	assert_int_equal(vec.n, 0);
	ca_vec_free(&vec);
	assert_false(vec.failed);
}

static void check_sort(const uint32_t *key, uint32_t n)
{
	struct ca_vec vec = { .size = sizeof(struct record) };
	const struct record *at;

	for (uint32_t i = 0; i < n; i++)
		assert_true(ca_vec_add(&vec, &(struct record){ .key = key[i], .order = i }, 1));
	assert_true(ca_vec_sort(&vec));
	assert_int_equal(vec.n, n);
	at = vec.at;
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(at[i].key, key[at[i].order]);
	for (uint32_t i = 1; i < n; i++)
		assert_true(at[i - 1].key < at[i].key ||
			    (at[i - 1].key == at[i].key && at[i - 1].order < at[i].order));
	/* there is room to go on */
	assert_true(ca_vec_add(&vec, &(struct record){ .key = 5 }, 1));
	assert_int_equal(((struct record *)vec.at)[n].key, 5);
	ca_vec_free(&vec);
}

static void test_sort(void **state)
{
	static const uint32_t few[] = { 3, 1, 2 }, equals[] = { 2, 1, 2, 1, 2, 0, 1 };
	static const uint32_t sorted[] = { 0, 0, 1, UINT32_MAX };
	/* keys that differ in one digit only, each in its turn */
	static const uint32_t digits[] = { UINT32_MAX, 1u << 31, 1u << 22, 1u << 21, 1u << 11,
					   1u << 10,   2047,     1,        0 };
	static uint32_t many[5000];

	(void)state;
	check_sort(few, 0);
	check_sort(few, 1);
	check_sort(few, CA_COUNT(few));
	check_sort(equals, CA_COUNT(equals));
	check_sort(sorted, CA_COUNT(sorted));
	check_sort(digits, CA_COUNT(digits));
	for (size_t i = 0; i < CA_COUNT(many); i++)
		many[i] = (uint32_t)(i * 2654435761u) >> (i % 3 * 8);
	check_sort(many, CA_COUNT(many));
}

static void test_more(void **state)
{
	uint64_t *array = NULL, *more;

	(void)state;
	for (size_t n = 0; n < 1000; n++) {
		more = ca_vec_more(array, n, sizeof *more);
		assert_non_null(more);
		if (n & (n - 1))
			assert_ptr_equal(more, array);
		array = more;
		array[n] = n * n;
	}
	for (size_t n = 0; n < 1000; n++)
		assert_int_equal(array[n], n * n);
	/* the array stays when there is no more memory */
	assert_null(ca_vec_more(array, 1024, SIZE_MAX / 1024));
	assert_int_equal(array[999], 999 * 999);
	free(array);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_push_and_add), cmocka_unit_test(test_add_many),
		cmocka_unit_test(test_failure),      cmocka_unit_test(test_sort),
		cmocka_unit_test(test_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

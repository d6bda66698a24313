/* SPDX-License-Identifier: MIT */
/* core/map.c: numbers by key, and keys of texts. */
#include "core/map.h"
#include "tests/unit/unit.h"

static void test_empty(void **state)
{
	struct ca_map map = { 0 };

	(void)state;
	assert_null(ca_map_find(&map, 1));
	ca_map_free(&map);
}

static void test_add_and_find(void **state)
{
	struct ca_map map = { 0 };
	uint32_t *value;
	bool known;

	(void)state;
	value = ca_map_add(&map, UINT64_MAX, &known);
	assert_non_null(value);
	assert_false(known);
	assert_int_equal(*value, 0);
	*value = 17;
	assert_ptr_equal(ca_map_add(&map, UINT64_MAX, &known), value);
	assert_true(known);
	assert_ptr_equal(ca_map_find(&map, UINT64_MAX), value);
	assert_null(ca_map_find(&map, 1));
	assert_int_equal(map.used, 1);
	ca_map_free(&map);
	assert_null(ca_map_find(&map, UINT64_MAX));
}

/* Keys as they come: close to each other, far apart, equal in their low or high bits. */
static uint64_t key_of(uint64_t i, unsigned kind)
{
	return kind == 0   ? i + 1
	       : kind == 1 ? (i + 1) << 48
	       : kind == 2 ? 0x7f0000000000 + 16 * i
			   : (i + 1) << 32 | 5;
}

static void test_growth(void **state)
{
	enum { KEYS = 10000 };
	uint32_t *value;
	bool known;

	(void)state;
	for (unsigned kind = 0; kind < 4; kind++) {
		struct ca_map map = { 0 };

		for (uint32_t i = 0; i < KEYS; i++) {
			value = ca_map_add(&map, key_of(i, kind), &known);
			assert_non_null(value);
			assert_false(known);
			assert_int_equal(*value, 0);
			*value = i + 1;
		}
		assert_int_equal(map.used, KEYS);
		assert_true(map.slots >= 2 * KEYS);
		for (uint32_t i = 0; i < KEYS; i++) {
			assert_non_null(ca_map_find(&map, key_of(i, kind)));
			assert_int_equal(*ca_map_find(&map, key_of(i, kind)), i + 1);
		}
		assert_null(ca_map_find(&map, key_of(KEYS, kind)));
		ca_map_free(&map);
	}
}

/* What is drawn by chance depends on these: they stay. */
static void test_keys(void **state)
{
	(void)state;
	assert_true(ca_map_key(5, "") == 5);
	assert_true(ca_map_key(UINT64_C(0xcbf29ce484222325), "a") == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(ca_map_key(UINT64_C(0xcbf29ce484222325), "foobar") == UINT64_C(0x85944171f73967e8));
	assert_true(ca_map_key(ca_map_key(1, "foo"), "bar") == ca_map_key(1, "foobar"));
	assert_true(ca_map_key(0, "\xff") == UINT64_C(0xff) * UINT64_C(0x100000001b3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),
		cmocka_unit_test(test_add_and_find),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/names.c: ids from the top, clashes, names of values, and many threads at once. */
#include "core/names.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct ca_names *names;

static int make_names(void **state)
{
	(void)state;
	names = calloc(1, sizeof *names);
	return names ? 0 : -1;
}

static int drop_names(void **state)
{
	(void)state;
	free(names);
	return 0;
}

static void ids_from_the_top(void **state)
{
	(void)state;
	assert_int_equal(ca_names_key(names, "one", "a.c:1", 0, NULL), 32767);
	assert_int_equal(ca_names_key(names, "two", "a.c:2", 0, NULL), 32766);
	assert_int_equal(ca_names_key(names, "one", "b.c:7", 0, NULL), 32767);
	assert_string_equal(ca_names_at(names, 0)->text, "one");
	assert_string_equal(ca_names_at(names, 0)->where, "a.c:1");
	assert_int_equal(ca_names_at(names, 1)->id, 32766);
	assert_null(ca_names_at(names, 2));
}

static void wanted_ids(void **state)
{
	const struct ca_name *clash;

	(void)state;
	assert_int_equal(ca_names_key(names, "twelve", "a.c:1", 12, &clash), 12);
	assert_null(clash);
	assert_int_equal(ca_names_key(names, "twelve", "a.c:9", 12, &clash), 12);
	assert_int_equal(ca_names_key(names, "twelve", "a.c:9", 0, &clash), 12);
	/* another name for it */
	assert_int_equal(ca_names_key(names, "dozen", "b.c:2", 12, &clash), 0);
	assert_string_equal(clash->text, "twelve");
	assert_string_equal(clash->where, "a.c:1");
	/* another id for the same name */
	assert_int_equal(ca_names_key(names, "twelve", "c.c:3", 13, &clash), 0);
	assert_string_equal(clash->text, "twelve");
	/* one that would be handed out next is passed over */
	assert_int_equal(ca_names_key(names, "top", "a.c:4", 32767, NULL), 32767);
	assert_int_equal(ca_names_key(names, "next", "a.c:5", 0, NULL), 32766);
	assert_int_equal(ca_names_key(names, "out of range", "a.c:6", 32768, &clash), 0);
	assert_null(clash);
}

static void names_of_values(void **state)
{
	uint32_t id;

	(void)state;
	id = ca_names_key(names, "phase", "a.c:1", 0, NULL);
	ca_names_value(names, id, 4, "solve", "a.c:2");
	ca_names_value(names, id, 4, "again", "a.c:3");
	ca_names_value(names, id - 1, 4, "other key", "a.c:4");
	assert_int_equal(ca_names_at(names, 1)->of, id);
	assert_int_equal(ca_names_at(names, 1)->value, 4);
	assert_string_equal(ca_names_at(names, 1)->text, "solve");
	assert_string_equal(ca_names_at(names, 2)->text, "other key");
	assert_null(ca_names_at(names, 3));
}

static void long_texts(void **state)
{
	char text[CA_NAME_TEXT + 20], where[CA_NAME_WHERE + 20];
	uint32_t id;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	memset(where, '/', sizeof where - 1);
	strcpy(where + sizeof where - 6, "c.c:8");
	id = ca_names_key(names, text, where, 0, NULL);
	assert_int_not_equal(id, 0);
	assert_int_equal(ca_names_key(names, text, where, 0, NULL), id);
	assert_int_equal(strlen(ca_names_at(names, 0)->text), CA_NAME_TEXT - 1);
	assert_string_equal(strrchr(ca_names_at(names, 0)->where, '/'), "/c.c:8");
}

static void no_more_room(void **state)
{
	char text[16];

	(void)state;
	for (unsigned i = 0; i < CA_NAMES; i++) {
		snprintf(text, sizeof text, "n%u", i);
		assert_int_equal(ca_names_key(names, text, "a.c:1", 0, NULL), 32767 - i);
	}
	assert_int_equal(ca_names_key(names, "one too many", "a.c:1", 0, NULL), 0);
	assert_int_equal(ca_names_key(names, "n17", "a.c:1", 0, NULL), 32767 - 17);
	assert_null(ca_names_at(names, CA_NAMES));
}

enum { THREADS = 4, EACH = 500 };

static void *ask(void *ids)
{
	uint32_t *id = ids;
	char text[16];

	for (unsigned i = 0; i < EACH; i++) {
		snprintf(text, sizeof text, "n%u", i);
		id[i] = ca_names_key(names, text, "a.c:1", i % 7 ? 0 : i + 1, NULL);
	}
	return NULL;
}

static void all_threads_agree(void **state)
{
	static uint32_t id[THREADS][EACH];
	static bool seen[CA_USER_ID_LAST + 1];
	pthread_t thread[THREADS];

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, ask, id[i]), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (unsigned i = 0; i < EACH; i++) {
		assert_int_not_equal(id[0][i], 0);
		assert_false(seen[id[0][i]]);
		seen[id[0][i]] = true;
		for (unsigned k = 1; k < THREADS; k++)
			assert_int_equal(id[k][i], id[0][i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_from_the_top, make_names, drop_names),
		cmocka_unit_test_setup_teardown(wanted_ids, make_names, drop_names),
		cmocka_unit_test_setup_teardown(names_of_values, make_names, drop_names),
		cmocka_unit_test_setup_teardown(long_texts, make_names, drop_names),
		cmocka_unit_test_setup_teardown(no_more_room, make_names, drop_names),
		cmocka_unit_test_setup_teardown(all_threads_agree, make_names, drop_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/dict.c: keys, levels, selection and names of values. */
#include "core/dict.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <string.h>

static int make_dict(void **state)
{
	*state = ca_dict_new();
	return *state ? 0 : -1;
}

static int drop_dict(void **state)
{
	ca_dict_free(*state);
	return 0;
}

static void test_predefined(void **state)
{
	struct ca_dict *dict = *state;

	assert_int_equal(ca_dict_count(dict), CA_KEY_FIRST_FREE);
	assert_int_equal(ca_dict_find(dict, "hit"), CA_KEY_HIT);
	assert_int_equal(ca_dict_find(dict, "dropped"), CA_KEY_DROPPED);
	assert_string_equal(ca_dict_get(dict, CA_KEY_DELAY)->name, "delay");
	assert_true(strlen(ca_dict_get(dict, CA_KEY_DELAY)->description) > 0);
	assert_false(ca_dict_get(dict, CA_KEY_DISABLED)->enabled);
	assert_null(ca_dict_get(dict, CA_KEY_FIRST_FREE));
	assert_int_equal(ca_dict_find(dict, "disabled"), 0);
	assert_int_equal(ca_dict_find(dict, "no such key"), 0);
}

static void test_register(void **state)
{
	struct ca_dict *dict = *state;
	char name[] = "loop";
	uint32_t key = ca_dict_register(dict, name, "a loop", CA_LEVEL_USER);

	assert_int_equal(key, CA_KEY_FIRST_FREE);
	name[0] = 'X'; /* the text was copied */
	assert_int_equal(ca_dict_register(dict, "loop", "other", CA_LEVEL_ADVANCED), key);
	assert_string_equal(ca_dict_get(dict, key)->description, "a loop");
	assert_int_equal(ca_dict_get(dict, key)->level, CA_LEVEL_USER);
	assert_int_equal(ca_dict_find(dict, "loop"), key);
	assert_int_equal(ca_dict_register(dict, "hit", "mine", CA_LEVEL_USER), CA_KEY_HIT);
	/* advanced keys are off unless asked for, and have their number all the same */
	assert_int_equal(ca_dict_register(dict, "deep", "", CA_LEVEL_ADVANCED), key + 1);
	assert_int_equal(ca_dict_find(dict, "deep"), 0);
}

static void test_keys_stay_in_place(void **state)
{
	struct ca_dict *dict = *state;
	const struct ca_dict_key *first = ca_dict_get(dict, CA_KEY_HIT);
	char name[32];

	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof name, "key%d", i);
		assert_int_equal(ca_dict_register(dict, name, "", CA_LEVEL_USER), CA_KEY_FIRST_FREE + i);
	}
	assert_ptr_equal(ca_dict_get(dict, CA_KEY_HIT), first);
	assert_int_equal(ca_dict_find(dict, "key999"), CA_KEY_FIRST_FREE + 999);
}

/* One key of each level; what each spec leaves on. */
static void test_select(void **state)
{
	static const struct {
		const char *spec, *on;
	} cases[] = {
		{ "", "udD" },
		{ "none", "" },
		{ "user", "u" },
		{ "developer", "ud" },
		{ "default", "udD" },
		{ "advanced", "udDa" },
		{ "none,+app.", "uDa" },
		{ "advanced,-app.", "d" },
		{ "-app.,+app.user", "ud" },
		{ "user,,+other", "ud" },
		{ "+app.user,none", "" },
	};
	static const struct {
		const char *name;
		enum ca_level level;
		char letter;
	} keys[] = {
		{ "app.user", CA_LEVEL_USER, 'u' },
		{ "other.developer", CA_LEVEL_DEVELOPER, 'd' },
		{ "app.default", CA_LEVEL_DEFAULT, 'D' },
		{ "app.advanced", CA_LEVEL_ADVANCED, 'a' },
	};

	/* registered before the choice is made (0), and after it (1) */
	for (int late = 0; late < 2; late++) {
		for (size_t i = 0; i < CA_COUNT(cases); i++) {
			struct ca_dict *dict = ca_dict_new();
			char on[8] = "";
			size_t length = 0;

			if (late)
				assert_int_equal(ca_dict_select(dict, cases[i].spec, NULL), CA_OK);
			for (size_t j = 0; j < CA_COUNT(keys); j++)
				ca_dict_register(dict, keys[j].name, "", keys[j].level);
			if (!late)
				assert_int_equal(ca_dict_select(dict, cases[i].spec, NULL), CA_OK);
			for (size_t j = 0; j < CA_COUNT(keys); j++)
				if (ca_dict_find(dict, keys[j].name))
					on[length++] = keys[j].letter;
			assert_string_equal(on, cases[i].on);
			ca_dict_free(dict);
		}
	}
	(void)state;
}

static void test_select_refuses(void **state)
{
	static const char *const bad[] = { "users", "+", "-", "default,what", "all of it", "=x" };
	struct ca_dict *dict = *state;
	struct ca_err err;

	assert_int_equal(ca_dict_select(dict, "none,+hit", NULL), CA_OK);
	for (size_t i = 0; i < CA_COUNT(bad); i++)
		assert_int_equal(ca_dict_select(dict, bad[i], &err), CA_ERR_USAGE);
	ca_dict_select(dict, "default,what,user", &err);
	assert_non_null(strstr(err.text, "'what'"));
	/* and nothing changed */
	assert_int_equal(ca_dict_find(dict, "hit"), CA_KEY_HIT);
	assert_int_equal(ca_dict_find(dict, "delay"), 0);
}

static void test_check(void **state)
{
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_dict_check("", &err), CA_OK);
	assert_int_equal(ca_dict_check("none,+wa,-hit,,user", &err), CA_OK);
	assert_int_equal(ca_dict_check("user,what", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "'what'"));
	assert_int_equal(ca_dict_check("user,+hitt", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "'hitt'; there are: sample, frame"));
	assert_non_null(strstr(err.text, ", task"));
}

/* ":" means the program's own, which have any name until they are there. */
static void test_prefixes(void **state)
{
	struct ca_dict *dict = *state;
	struct ca_err err;

	assert_int_equal(ca_dict_prefixes(dict, "user,-:pa", &err), CA_OK);
	ca_dict_register_own(dict, "part", "", 7);
	assert_int_equal(ca_dict_prefixes(dict, "user,-:pa,+hit", &err), CA_OK);
	assert_int_equal(ca_dict_prefixes(dict, "-:hit", &err), CA_ERR_USAGE);
	assert_int_equal(ca_dict_prefixes(dict, "-part", &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, ", :part"));
}

static void test_values(void **state)
{
	static const uint64_t values[] = { 5, 1, UINT64_MAX, 3, 0, 1000, 2, 4, 77, 6, 8, 7 };
	struct ca_dict *dict = *state;
	char name[32];

	for (size_t i = 0; i < CA_COUNT(values); i++) {
		snprintf(name, sizeof name, "v%ju", (uintmax_t)values[i]);
		assert_int_equal(ca_dict_name_value(dict, CA_KEY_SELECTION, values[i], name), CA_OK);
	}
	for (size_t i = 0; i < CA_COUNT(values); i++) {
		snprintf(name, sizeof name, "v%ju", (uintmax_t)values[i]);
		assert_string_equal(ca_dict_value_name(dict, CA_KEY_SELECTION, values[i]), name);
	}
	assert_null(ca_dict_value_name(dict, CA_KEY_SELECTION, 9));
	assert_null(ca_dict_value_name(dict, CA_KEY_HIT, 5));
	assert_null(ca_dict_value_name(dict, 10000, 5));
	assert_int_equal(ca_dict_name_value(dict, CA_KEY_SELECTION, 3, "three"), CA_OK);
	assert_string_equal(ca_dict_value_name(dict, CA_KEY_SELECTION, 3), "three");
	assert_int_equal(ca_dict_name_value(dict, 10000, 3, "three"), CA_ERR_NOT_FOUND);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dict, drop_dict)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_predefined), TEST(test_register),       TEST(test_keys_stay_in_place),
		TEST(test_select),     TEST(test_select_refuses), TEST(test_check),
		TEST(test_prefixes),   TEST(test_values),
	};

	ca_dict_free(NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}

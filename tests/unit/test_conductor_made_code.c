/* SPDX-License-Identifier: MIT */
/* Names of code that was made at run time, from /tmp/perf-PID.map: ours, which we write. */
#include "causal/conductor/made_code.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <unistd.h>

static char path[64];
static uint64_t now = 1000000000;

static void append(const char *text)
{
	FILE *file = fopen(path, "a");

	if (!file)
		skip();
	fputs(text, file);
	fclose(file);
}

/* What it says once it may look again. */
static const char *find(struct ca_made_code *made, uint64_t address, bool *later)
{
	now += 1000000000;
	return ca_made_code_find(made, address, now, later);
}

static void test_lines(void **state)
{
	struct ca_made_code *made = ca_made_code_new((uint32_t)getpid());
	bool later = true;

	(void)state;
	snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
	unlink(path);
	assert_null(find(made, 0x1000, &later));
	assert_false(later); /* there is no list */
	append("1000 10 first one\n2000 100 around\n");
	assert_string_equal(find(made, 0x100f, &later), "first one");
	assert_false(later);
	assert_null(find(made, 0x1010, &later));
	assert_true(later);
	assert_string_equal(find(made, 0x2080, &later), "around");
	/* half a line, and its rest */
	append("2040 10 ins");
	assert_string_equal(find(made, 0x2045, &later), "around");
	append("ide\nno line of any kind\n3000 0 empty\n0x4000 0x10 prefixed\n");
	assert_string_equal(find(made, 0x2045, &later), "inside");
	assert_string_equal(find(made, 0x2050, &later), "around");
	assert_null(find(made, 0x3000, &later));
	assert_string_equal(find(made, 0x4000, &later), "prefixed");
	/* others in the same place */
	append("1008 20 second\n");
	assert_string_equal(find(made, 0x1007, &later), "first one");
	assert_string_equal(find(made, 0x1008, &later), "second");
	append("1000 10 third\n");
	assert_string_equal(find(made, 0x1008, &later), "third");
	/* not looked at each time */
	append("5000 10 new\n");
	assert_null(ca_made_code_find(made, 0x5000, now + 1, &later));
	assert_string_equal(find(made, 0x5000, &later), "new");
	ca_made_code_free(made);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_lines) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

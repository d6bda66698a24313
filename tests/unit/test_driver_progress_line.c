/* driver/progress_line.c: the time to go, and how times are written. */
#include "driver/progress_line.h"
#include "tests/unit/unit.h"

static void test_time(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {
		{ -1, "0 s" },		  { 0.4, "0 s" },	    { 0.6, "1 s" },
		{ 59.4, "59 s" },	  { 59.6, "1 min 0 s" },    { 80, "1 min 20 s" },
		{ 3599, "59 min 59 s" },  { 3599.7, "1 h 0 min" },  { 7500, "2 h 5 min" },
		{ 7559, "2 h 5 min" },	  { 360000, "100 h 0 min" },
	};
	char text[40];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		ca_progress_line_time(cases[i].seconds, text, sizeof text);
		assert_string_equal(text, cases[i].text);
	}
}

static void test_to_go(void **state)
{
	static const struct {
		size_t total, finished;
		uint64_t spent, elapsed; /* s */
		const char *text;
	} cases[] = {
		{ 20, 0, 0, 5, "unknown time" }, /* nothing to judge by */
		{ 20, 1, 10, 0, "3 min 10 s" },	 /* 19 like the first */
		{ 20, 1, 10, 4, "3 min 6 s" },	 /* ... of which 4 s are over */
		{ 20, 2, 30, 0, "4 min 30 s" },	 /* 18 of 15 s: the mean, not the last */
		{ 3, 2, 20, 9, "1 s" },
		{ 3, 2, 20, 15, "0 s" }, /* longer than the others: never below 0 */
		{ 3, 3, 30, 0, "0 s" },
	};
	char text[40];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_progress_line progress = { .total = cases[i].total,
						.finished = cases[i].finished,
						.spent = cases[i].spent * 1000000000u };

		ca_progress_line_to_go(&progress, cases[i].elapsed * 1000000000u, text, sizeof text);
		assert_string_equal(text, cases[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_to_go),
	};

	return cmocka_run_group_tests_name("time to go", tests, NULL, NULL);
}

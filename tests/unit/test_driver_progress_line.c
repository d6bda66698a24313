/* SPDX-License-Identifier: MIT */
/* driver/progress_line.c: the time to go, how times are written, and the line on a terminal. */
#include "core/clock.h"
#include "driver/progress_line.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_time(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {
		{ -1, "0 s" },
		{ 0.4, "0 s" },
		{ 0.6, "1 s" },
		{ 59.4, "59 s" },
		{ 59.6, "1 min 0 s" },
		{ 80, "1 min 20 s" },
		{ 3599, "59 min 59 s" },
		{ 3599.7, "1 h 0 min" },
		{ 7500, "2 h 5 min" },
		{ 7559, "2 h 5 min" },
		{ 360000, "100 h 0 min" },
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
		{ 20, 1, 10, 0, "3 min 10 s" },  /* 19 like the first */
		{ 20, 1, 10, 4, "3 min 6 s" },   /* ... of which 4 s are over */
		{ 20, 2, 30, 0, "4 min 30 s" },  /* 18 of 15 s: the mean, not the last */
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

/* What standard error gets where it is a terminal. */
static void updated(struct ca_progress_line *progress, const struct ca_conductor_status *status, char *text,
		    size_t size)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK), old = dup(STDERR_FILENO),
	    slave;
	ssize_t n;

	if (master < 0) {
		print_message("SKIP: no terminals can be made here\n");
		skip();
	}
	assert_true(old >= 0);
	assert_true(grantpt(master) == 0 && unlockpt(master) == 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	assert_int_equal(dup2(slave, STDERR_FILENO), STDERR_FILENO);
	progress->terminal = isatty(STDERR_FILENO);
	ca_progress_line_update(progress, status);
	n = read(master, text, size - 1);
	text[n > 0 ? n : 0] = '\0';
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	close(old);
	close(slave);
	close(master);
}

/* The run that is open has just begun: all of its time is still to go. */
static void test_line(void **state)
{
	static const struct ca_conductor_status status = { .experiments = 12,
							   .dropped = 3,
							   .region = "work",
							   .speedup = 25,
							   .top = { { "parse", 20.4, 19, 21 },
								    { "scan", 5, 4, 6 } },
							   .tops = 2 },
						none = { .experiments = 1 };
	static const struct {
		const struct ca_conductor_status *status;
		bool shown, whole;
		const char *line;
	} cases[] = {
		{ &status, true, false,
		  "\r\033[Krun 2/2, 1000 h 0 min to go, 12 experiments (3 dropped); parse 20 ± 1, "
		  "scan 5 ± 1, work at 25 %" },
		{ &none, true, false, "\r\033[Krun 2/2, 1000 h 0 min to go, 1 experiment" },
		{ &status, true, true,
		  "\r\033[Krun 2/2, 1000 h 0 min to go; parse 20 ± 1, scan 5 ± 1, work at 25 %" },
		{ &status, false, false, "" },
	};
	char text[400];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_conductor_status seen = *cases[i].status;
		struct ca_progress_line progress;

		seen.whole = cases[i].whole;
		ca_progress_line_init(&progress, 2, cases[i].shown);
		progress.finished = 1;
		progress.spent = (1000 * 3600 + 40) * CA_NS_PER_S;
		ca_progress_line_begin(&progress);
		updated(&progress, &seen, text, sizeof text);
		assert_string_equal(text, cases[i].line);
	}
}

/* With a budget the sweep ends when it is spent; as an object for programs. */
static void test_json(void **state)
{
	static const struct ca_conductor_status status = { .experiments = 12,
							   .dropped = 1,
							   .region = "a\"b",
							   .speedup = 50,
							   .top = { { "parse", 20.5, 19, 22 } },
							   .tops = 1 };
	struct ca_progress_line progress;
	char text[800];

	(void)state;
	ca_progress_line_init(&progress, 0, true);
	progress.json = true;
	progress.budget = 1000000 * CA_NS_PER_S;
	progress.experiments = 30;
	progress.finished = 4;
	ca_progress_line_begin(&progress);
	updated(&progress, &status, text, sizeof text);
	assert_non_null(strstr(text, "{\"type\":\"progress\",\"run\":5,\"runs\":null,\"elapsed\":"));
	assert_null(strstr(text, ",\"to_go\":null"));
	assert_non_null(strstr(text,
			       ",\"experiments\":42,\"dropped\":1,\"region\":\"a\\\"b\",\"speedup\":50.00,"
			       "\"rows\":[{\"region\":\"parse\",\"effect\":20.50,\"low\":19.00,"
			       "\"high\":22.00}]}"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_to_go),
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests_name("time to go", tests, NULL, NULL);
}

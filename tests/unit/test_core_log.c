/* SPDX-License-Identifier: MIT */
/* core/log.c: what is shown, whole lines, and nothing into a file that is not the one of the
 * beginning, or that would block. */
#include "core/log.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static int end[2];

static int set_up(void **state)
{
	(void)state;
	return pipe2(end, O_NONBLOCK | O_CLOEXEC);
}

static int tear_down(void **state)
{
	(void)state;
	close(end[0]);
	close(end[1]);
	return 0;
}

/* What came through since. */
static const char *got(void)
{
	static char text[4096];
	ssize_t n = read(end[0], text, sizeof text - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void test_levels(void **state)
{
	static const enum ca_log_level level[] = { CA_LOG_SILENT, CA_LOG_ERROR, CA_LOG_INFO, CA_LOG_DEBUG };

	(void)state;
	for (size_t shown = 0; shown < CA_COUNT(level); shown++) {
		ca_log_init(level[shown], end[1]);
		for (size_t i = 0; i < CA_COUNT(level); i++) {
			assert_int_equal(ca_log_shows(level[i]), i <= shown);
			ca_log(level[i], "%d and %s", 5, "six");
			assert_string_equal(got(), i <= shown ? "causal: 5 and six\n" : "");
		}
	}
}

/* Cut, with its newline. */
static void test_long_line(void **state)
{
	char text[600];
	const char *line;

	(void)state;
	memset(text, 'x', sizeof text);
	text[599] = '\0';
	ca_log_init(CA_LOG_ERROR, end[1]);
	ca_log(CA_LOG_ERROR, "%s", text);
	line = got();
	assert_true(strlen(line) > 500 && strlen(line) <= 512);
	assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
	assert_int_equal(strncmp(line, "causal: xxx", 11), 0);
}

static void test_other_file(void **state)
{
	int other[2];

	(void)state;
	ca_log_init(CA_LOG_ERROR, end[1]);
	assert_int_equal(pipe(other), 0);
	/* the program has put a file of its own there */
	assert_int_equal(dup2(other[1], end[1]), end[1]);
	errno = 33;
	ca_log(CA_LOG_ERROR, "for nobody");
	assert_int_equal(errno, 33);
	close(end[1]);
	close(other[1]);
	assert_int_equal(read(other[0], (char[4]){ 0 }, 4), 0);
	/* closed, before or after */
	ca_log(CA_LOG_ERROR, "for nobody");
	assert_int_equal(errno, 33);
	ca_log_init(CA_LOG_ERROR, end[1]);
	assert_int_equal(errno, 33);
	assert_int_equal(dup2(other[0], end[1]), end[1]);
	ca_log(CA_LOG_ERROR, "for nobody");
	close(other[0]);
}

/* Nobody reads any more: no SIGPIPE. Nobody reads for now: no waiting. */
static void test_no_reader(void **state)
{
	char page[4096] = { 0 };

	(void)state;
	fcntl(end[1], F_SETFL, O_NONBLOCK);
	while (write(end[1], page, sizeof page) > 0)
		;
	fcntl(end[1], F_SETFL, 0);
	ca_log_init(CA_LOG_ERROR, end[1]);
	ca_log(CA_LOG_ERROR, "would wait for ever");
	signal(SIGPIPE, SIG_DFL);
	close(end[0]);
	ca_log(CA_LOG_ERROR, "would kill");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_levels),
		TEST(test_long_line),
		TEST(test_other_file),
		TEST(test_no_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

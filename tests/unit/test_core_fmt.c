/* SPDX-License-Identifier: MIT */
/* core/fmt.c, core/log.c: text without stdio. */
#include "core/fmt.h"
#include "core/log.h"
#include "tests/unit/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static void test_numbers(void **state)
{
	char text[256];
	struct ca_fmt fmt;

	(void)state;
	ca_fmt_init(&fmt, text, sizeof text);
	assert_string_equal(text, "");
	ca_fmt_unsigned(&fmt, 0);
	ca_fmt_char(&fmt, ' ');
	ca_fmt_unsigned(&fmt, UINT64_MAX);
	ca_fmt_char(&fmt, ' ');
	ca_fmt_signed(&fmt, INT64_MIN);
	ca_fmt_char(&fmt, ' ');
	ca_fmt_signed(&fmt, 12);
	ca_fmt_char(&fmt, ' ');
	ca_fmt_hex(&fmt, UINT64_MAX);
	assert_string_equal(text, "0 18446744073709551615 -9223372036854775808 12 "
				  "ffffffffffffffff");
	assert_int_equal(fmt.length, strlen(text));
}

static void test_format(void **state)
{
	char text[256];
	struct ca_fmt fmt;

	(void)state;
	ca_fmt_init(&fmt, text, sizeof text);
	ca_fmt_add(&fmt, "%s|%c|%d|%i|%u|%x|%%", "text", 'c', -5, 6, 7u, 0xabcu);
	ca_fmt_add(&fmt, "|%" PRIu64 "|%" PRIx64 "|%" PRId64 "|%zu|%jd", UINT64_MAX,
		   UINT64_C(0xfedcba9876543210), INT64_MIN, sizeof(int), (intmax_t)-1);
	ca_fmt_add(&fmt, "|%p", (void *)0x10);
	assert_string_equal(text, "text|c|-5|6|7|abc|%|18446744073709551615|fedcba9876543210|"
				  "-9223372036854775808|4|-1|0x10");
	ca_fmt_init(&fmt, text, sizeof text);
	ca_fmt_text(&fmt, NULL);
	assert_string_equal(text, "(null)");
}

static void test_cut(void **state)
{
	char text[9];
	struct ca_fmt fmt;

	(void)state;
	memset(text, '#', sizeof text);
	ca_fmt_init(&fmt, text, 8);
	ca_fmt_text(&fmt, "1234567");
	assert_false(fmt.cut);
	ca_fmt_char(&fmt, '8');
	assert_true(fmt.cut);
	ca_fmt_unsigned(&fmt, 99);
	assert_string_equal(text, "1234567");
	assert_int_equal(text[8], '#');
	ca_fmt_init(&fmt, text, 1);
	ca_fmt_text(&fmt, "x");
	assert_string_equal(text, "");
}

/* What the log sends through a pipe for one message. */
static void logged(char *out, size_t size, enum ca_log_level shown, enum ca_log_level level, const char *text)
{
	int ends[2];
	ssize_t n;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	ca_log_init(shown, ends[1]);
	errno = 77;
	ca_log(level, "%s", text);
	assert_int_equal(errno, 77);
	ca_log_init(CA_LOG_ERROR, 2);
	close(ends[1]);
	n = read(ends[0], out, size - 1);
	assert_true(n >= 0);
	out[n] = '\0';
	close(ends[0]);
}

static void test_log(void **state)
{
	char text[2000], big[1000];

	(void)state;
	logged(text, sizeof text, CA_LOG_ERROR, CA_LOG_ERROR, "no perf here");
	assert_string_equal(text, "causal: no perf here\n");
	logged(text, sizeof text, CA_LOG_ERROR, CA_LOG_INFO, "hidden");
	assert_string_equal(text, "");
	logged(text, sizeof text, CA_LOG_SILENT, CA_LOG_ERROR, "hidden");
	assert_string_equal(text, "");
	logged(text, sizeof text, CA_LOG_DEBUG, CA_LOG_INFO, "shown");
	assert_string_equal(text, "causal: shown\n");
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	logged(text, sizeof text, CA_LOG_ERROR, CA_LOG_ERROR, big);
	assert_int_equal(strlen(text), 511);
	assert_int_equal(text[510], '\n'); /* cut, and still a line */
}

static void test_write_fails(void **state)
{
	char text[8];
	struct ca_fmt fmt;

	(void)state;
	ca_fmt_init(&fmt, text, sizeof text);
	ca_fmt_text(&fmt, "x");
	errno = 5;
	assert_false(ca_fmt_write(&fmt, -1));
	assert_int_equal(errno, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),     cmocka_unit_test(test_format),
		cmocka_unit_test(test_cut),         cmocka_unit_test(test_log),
		cmocka_unit_test(test_write_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

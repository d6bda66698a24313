/* SPDX-License-Identifier: MIT */
/* core/sink.c and the print sink: choosing, several at once, what is printed. */
#include "core/dict.h"
#include "core/sink.h"
#include "tests/unit/unit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int scratch(void **state)
{
	char *path = strdup("/tmp/causal-sink-XXXXXX");
	int fd = path ? mkstemp(path) : -1;

	*state = path;
	return fd < 0 ? -1 : close(fd);
}

static int unscratch(void **state)
{
	unlink(*state);
	free(*state);
	return 0;
}

/* A sink of the test's own. */
struct counter {
	unsigned events, closed;
	uint64_t last;
	uint32_t thread;
	const char *name, *loses;
};

static void count_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct counter *counter = state;

	counter->events += (unsigned)n;
	counter->last = event[n - 1].value;
	counter->thread = from->thread;
}

static void count_name(void *state, const struct ca_source *from, const char *process_name,
		       const char *thread_name)
{
	struct counter *counter = state;

	assert_int_equal(from->thread_index, 4);
	assert_null(process_name);
	counter->name = thread_name;
}

static enum ca_status count_close(void *state, struct ca_err *err)
{
	struct counter *counter = state;

	counter->closed++;
	return counter->loses ? ca_err_set(err, CA_ERR_IO, "%s was lost", counter->loses) : CA_OK;
}

static const struct ca_sink_ops counting = {
	.name = "counting",
	.events = count_events,
	.rename = count_name,
	.close = count_close,
};

static void test_several(void **state)
{
	static const struct ca_sink_ops deaf = { .name = "deaf" };
	const struct ca_event event[2] = { { .value = 5 }, { .value = 6 } };
	const struct ca_source from = { 1, 2, 3, 4 };
	struct counter a = { .loses = "one" }, b = { .loses = "two" };
	struct ca_err err;
	struct ca_sinks *sinks;

	(void)state;
	assert_int_equal(ca_sink_open(&sinks, "", NULL, NULL, NULL, NULL), CA_OK);
	ca_sink_events(sinks, &from, event, 2); /* nobody listens: fine */
	assert_int_equal(ca_sink_add(sinks, &counting, &a), CA_OK);
	assert_int_equal(ca_sink_add(sinks, &deaf, NULL), CA_OK);
	assert_int_equal(ca_sink_add(sinks, &counting, &b), CA_OK);
	ca_sink_events(sinks, &from, event, 2);
	ca_sink_events(sinks, &from, event, 1);
	ca_sink_name(sinks, &from, NULL, "worker");
	assert_int_equal(ca_sink_close(sinks, &err), CA_ERR_IO);
	assert_string_equal(err.text, "one was lost; two was lost");
	assert_string_equal(a.name, "worker");
	assert_int_equal(a.events, 3);
	assert_int_equal(b.events, 3);
	assert_int_equal(a.last, 5);
	assert_int_equal(a.thread, 2);
	assert_int_equal(a.closed, 1);
	assert_int_equal(b.closed, 1);
	assert_int_equal(ca_sink_close(NULL, NULL), CA_OK);
	ca_sink_events(NULL, &from, event, 2);
}

static void test_refuses(void **state)
{
	static const char *const bad[] = { "nothing", "print=/nonexistent/dir/file", "print,nothing" };
	struct ca_sinks *sinks = NULL;
	struct ca_err err;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(bad); i++)
		assert_int_not_equal(ca_sink_open(&sinks, bad[i], NULL, NULL, NULL, &err), CA_OK);
	assert_null(sinks);
	assert_int_equal(ca_sink_open(&sinks, "nothing", NULL, NULL, NULL, &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "'nothing'"));
	assert_non_null(strstr(err.text, "print"));
	/* what can be told without opening anything */
	assert_int_equal(ca_sink_check("print,nothing", &err), CA_ERR_USAGE);
	assert_int_equal(ca_sink_check("print=", &err), CA_ERR_USAGE);
	assert_int_equal(ca_sink_check("print=/nonexistent/dir/file,,print", &err), CA_OK);
	assert_int_equal(ca_sink_check("", &err), CA_OK);
	/* what cannot: whoever gave it hears of it as of a mistake */
	assert_int_equal(ca_sink_open(&sinks, bad[1], NULL, NULL, NULL, &err), CA_ERR_USAGE);
	assert_string_equal(ca_sink_get(0)->name, "print");
	for (size_t i = 0; ca_sink_get(i); i++)
		assert_true(ca_sink_get(i)->name && ca_sink_get(i)->description && i < 100);
}

/* Each would write over the other. */
static void test_one_file(void **state)
{
	struct ca_sinks *sinks = NULL;
	struct ca_err err;
	char spec[200];

	snprintf(spec, sizeof spec, "json=%s,statistics=/tmp/../%s", (const char *)*state,
		 (const char *)*state);
	assert_int_equal(ca_sink_open(&sinks, spec, NULL, NULL, NULL, &err), CA_ERR_USAGE);
	assert_non_null(strstr(err.text, "the json sink writes /tmp/../"));
	snprintf(spec, sizeof spec, "print=%s.prv,paraver=%s", (const char *)*state, (const char *)*state);
	assert_int_equal(ca_sink_open(&sinks, spec, NULL, NULL, NULL, &err), CA_ERR_USAGE);
	snprintf(spec, sizeof spec, "%s.prv", (const char *)*state);
	assert_int_equal(unlink(spec), 0);
	assert_null(sinks);
	assert_int_equal(
		ca_sink_open(&sinks, "print=/dev/null,statistics=/dev/null,print", NULL, NULL, NULL, &err),
		CA_OK);
	assert_int_equal(ca_sink_close(sinks, NULL), CA_OK);
}

static void test_print(void **state)
{
	static const struct ca_event event[] = {
		{ .time = 1500000002, .kind = CA_POINT, .key = CA_KEY_HIT, .value = 1000000 },
		{ .time = 7, .kind = CA_BURST_BEGIN, .key = CA_KEY_SELECTION, .value = 4 },
		{ .time = 8, .kind = CA_POINT, .key = CA_KEY_DROPPED, .flags = 2, .value = 9 },
		{ .time = 9, .kind = 99, .key = 4000, .value = UINT64_MAX },
		{ .time = 10, .kind = CA_POINT, .key = CA_KEY_SAMPLE, .value = CA_PLACE(3, 0x1234) },
		{ .time = 11, .kind = CA_STATE_BEGIN, .key = CA_KEY_THREAD, .value = 1 },
		{ .time = 11, .kind = CA_SUBSTATE_BEGIN, .key = CA_KEY_THREAD, .value = 2 },
		{ .time = 12, .kind = CA_PTP_BEGIN, .key = CA_KEY_WAIT, .value = 3 },
		{ .time = 12, .kind = CA_PTP_END, .key = CA_KEY_WAIT, .value = 3 },
		{ .time = 13, .kind = CA_SUBSTATE_END, .key = CA_KEY_THREAD, .value = 2 },
		{ .time = 13, .kind = CA_STATE_END, .key = CA_KEY_THREAD, .value = 1 },
		{ .time = 14, .kind = CA_BURST_END, .key = CA_KEY_SELECTION, .flags = 1, .value = 4 },
	};
	static const char expected[] = "1.500000002 10/11 point hit 1000000\n"
				       "0.000000007 10/11 burst-begin selection 4 \"main\"\n"
				       "0.000000008 10/11 point dropped 9 flags=2\n"
				       "0.000000009 10/11 unknown key-4000 18446744073709551615\n"
				       "0.000000010 10/11 point sample 3:0x1234\n"
				       "0.000000011 10/11 state-begin thread 1\n"
				       "0.000000011 10/11 substate-begin thread 2\n"
				       "0.000000012 10/11 ptp-begin wait 3\n"
				       "0.000000012 10/11 ptp-end wait 3\n"
				       "0.000000013 10/11 substate-end thread 2\n"
				       "0.000000013 10/11 state-end thread 1\n"
				       "0.000000014 10/11 burst-end selection 4 flags=1 \"main\"\n";
	const struct ca_source from = { 10, 11, 1, 1 };
	struct ca_dict *dict = ca_dict_new();
	struct ca_sinks *sinks;
	char spec[64], text[1000];
	size_t length;
	FILE *file;

	ca_dict_name_value(dict, CA_KEY_SELECTION, 4, "main");
	snprintf(spec, sizeof spec, "print=%s", (const char *)*state);
	assert_int_equal(ca_sink_open(&sinks, spec, NULL, dict, NULL, NULL), CA_OK);
	ca_sink_events(sinks, &from, event, CA_COUNT(event));
	/* read before it is closed: nothing waits in a buffer */
	file = fopen(*state, "r");
	assert_non_null(file);
	length = fread(text, 1, sizeof text - 1, file);
	text[length] = '\0';
	fclose(file);
	assert_string_equal(text, expected);
	assert_int_equal(ca_sink_close(sinks, NULL), CA_OK);
	ca_dict_free(dict);
}

static void test_full(void **state)
{
	const struct ca_event event[2] = { { .key = CA_KEY_HIT } };
	const struct ca_source from = { 0 };
	struct ca_sinks *sinks;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_sink_open(&sinks, "print=/dev/full", NULL, NULL, NULL, NULL), CA_OK);
	ca_sink_events(sinks, &from, event, 2);
	ca_sink_events(sinks, &from, event, 1);
	assert_int_equal(ca_sink_close(sinks, &err), CA_ERR_IO);
	assert_non_null(strstr(err.text, "No space left on device): 3 events are missing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_full),
		cmocka_unit_test_setup_teardown(test_one_file, scratch, unscratch),
		cmocka_unit_test_setup_teardown(test_print, scratch, unscratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* core/laps.c and its reader: what threads count where they raise it is the call graph that the same events
 * make, while the driver looks on (clean under TSan): crossing bursts, ends without a beginning, what stays
 * open, threads that are over and those that are not. */
#include "core/callgraph.h"
#include "core/rings_reader.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { THREADS = 4, EVENTS = 4000, KEYS = 6, FIRST_KEY = 100, CHUNKS = 256, CALLS = 5 };

static struct ca_rings_reader *reader;
static struct ca_rings *trace;
static struct ca_names *names;
static struct ca_dict *dict;
static struct ca_callgraph expected, counted;
static struct ca_event script[THREADS][EVENTS];
static int fd;

static void take_events(void *context, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	(void)context, (void)from, (void)event, (void)n;
	fail();
}

static void take_laps(void *context, const struct ca_source *from, const struct ca_lap *lap, uint32_t first,
		      size_t n)
{
	(void)context;
	ca_callgraph_add(&counted, from, lap, first, n);
}

static int set_up(void **state)
{
	struct ca_rings_options options = { .memory = CHUNKS * CA_RINGS_PAGE,
					    .ring = CHUNKS * CA_RINGS_PAGE,
					    .laps = true,
					    .throttle = CALLS };
	struct ca_err err;
	uint64_t size;

	(void)state;
	fd = memfd_create("trace", MFD_CLOEXEC);
	assert_int_equal(ca_rings_reader_new(&reader, fd, 0, &options, &size, &err), CA_OK);
	ca_rings_reader_on_laps(reader, take_laps);
	trace = ca_rings_reader_get(reader);
	names = calloc(1, sizeof *names);
	dict = ca_dict_new();
	assert_true(names && dict);
	ca_callgraph_init(&expected, CA_CALLGRAPH_TREE, dict);
	ca_callgraph_init(&counted, CA_CALLGRAPH_TREE, dict);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_callgraph_throttle(0);
	ca_callgraph_fini(&expected);
	ca_callgraph_fini(&counted);
	ca_rings_reader_free(reader);
	ca_dict_free(dict);
	free(names);
	close(fd);
	return 0;
}

static struct ca_source source(unsigned thread)
{
	return (struct ca_source){ 1, 100 + thread, 1, 1 + thread };
}

/* Mostly nested, some crossing, some too many. No key is open twice. */
static void write_script(struct ca_event *event, unsigned seed)
{
	bool open[KEYS] = { false };
	uint64_t time = 1000;

	for (int i = 0; i < EVENTS; i++) {
		uint32_t key = (uint32_t)rand_r(&seed) % KEYS;
		bool ends = open[key] || rand_r(&seed) % 100 == 0;

		time += (uint64_t)rand_r(&seed) % 1000;
		event[i] = (struct ca_event){ .time = time,
					      .kind = ends ? CA_BURST_END : CA_BURST_BEGIN,
					      .key = FIRST_KEY + key,
					      .value = 1 };
		open[key] = !ends;
	}
}

static void *run(void *number)
{
	unsigned thread = (unsigned)(uintptr_t)number;
	struct ca_source owner = source(thread);
	struct ca_laps laps;

	ca_laps_begin(&laps, trace, names, &owner);
	for (int i = 0; i < EVENTS; i++) {
		const struct ca_event *e = &script[thread][i];

		if (e->kind == CA_BURST_BEGIN)
			ca_laps_open(&laps, e->key, e->value, e->time);
		else
			ca_laps_close(&laps, e->key, e->time);
	}
	if (thread % 2) /* the others are killed */
		ca_laps_end(&laps);
	return NULL;
}

static char *text_of(struct ca_callgraph *graph)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	assert_non_null(file);
	ca_callgraph_write(graph, NULL, file);
	fclose(file);
	return text;
}

static void test_same_graph(void **state)
{
	pthread_t thread[THREADS];
	char *one, *other;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++) {
		struct ca_source from = source(i);

		write_script(script[i], i + 1);
		ca_callgraph_take(&expected, &from, script[i], EVENTS);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run, (void *)i), 0);
	for (int i = 0; i < 50; i++)
		ca_rings_reader_drain(reader, false, take_events, NULL);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ca_rings_reader_drain(reader, true, take_events, NULL);
	assert_int_equal(ca_rings_reader_lost(reader, CA_LOSS_MEMORY), 0);
	assert_true(expected.ends > 0);
	ca_callgraph_end(&expected);
	ca_callgraph_end(&counted);
	one = text_of(&expected);
	other = text_of(&counted);
	assert_string_equal(one, other);
	free(one);
	free(other);
}

static void test_throttled(void **state)
{
	struct ca_source owner = source(0);
	uint32_t key = CA_KEY_USER + 7;
	struct ca_lap *lap = NULL;
	struct ca_laps laps;

	(void)state;
	ca_callgraph_throttle(CALLS);
	ca_laps_begin(&laps, trace, names, &owner);
	for (uint64_t i = 0; i < CALLS; i++) {
		assert_false(lap && ca_laps_is_hot(&laps, lap));
		ca_laps_open(&laps, key, 1, 10 * i);
		lap = ca_laps_close(&laps, key, 10 * i + 5);
		assert_non_null(lap);
	}
	assert_true(ca_laps_is_hot(&laps, lap));
	ca_laps_open(&laps, key, 1, 100);
	ca_laps_throttle(&laps, lap);
	assert_int_equal(atomic_load(&names->off[7]), 1);
	/* its end does not come: what is next lies beside it */
	ca_laps_open(&laps, key + 1, 1, 110);
	assert_int_equal(laps.at->above, 0);
	ca_laps_close(&laps, key + 1, 120);
	assert_null(laps.at);
	ca_laps_end(&laps);
	ca_rings_reader_drain(reader, true, take_events, NULL);
	assert_int_equal(ca_callgraph_throttled(&counted, key), CALLS);
	assert_int_equal(ca_rings_reader_events(reader), 2 * (CALLS + 1));
}

/* Where there is no room, what is missing is counted, and what is there stays right. */
static void test_no_room(void **state)
{
	struct ca_source owner = source(0);
	struct ca_laps laps;

	(void)state;
	trace->most = 1;
	ca_laps_begin(&laps, trace, names, &owner);
	for (uint32_t i = 0; i < CA_LAPS_OF_CHUNK + 3; i++)
		ca_laps_open(&laps, FIRST_KEY + i, 1, 10);
	assert_int_equal(ca_rings_reader_lost(reader, CA_LOSS_RING), 2);
	for (uint32_t i = CA_LAPS_OF_CHUNK + 3; i-- > 0;)
		ca_laps_close(&laps, FIRST_KEY + i, 20);
	assert_null(laps.at);
	assert_int_equal(laps.missed, 0);
	ca_laps_end(&laps);
	ca_rings_reader_drain(reader, true, take_events, NULL);
	assert_int_equal(counted.rows.n, CA_LAPS_OF_CHUNK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_same_graph, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_throttled, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_room, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

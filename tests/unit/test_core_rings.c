/* SPDX-License-Identifier: MIT */
/* core/rings.c and core/rings_reader.c: order, limits, exact counts of what is lost, death of threads
 * and processes, writers and reader at once (clean under TSan), damaged memory. */
#include "core/rings_reader.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = CA_RINGS_PAGE, PER_CHUNK = CA_RINGS_EVENTS, MOST_THREADS = 10002 };

static struct ca_rings_reader *reader;
static struct ca_rings *trace;
static int fd = -1;

/* What has come, by thread. */
static uint64_t next[MOST_THREADS], taken, gaps;
static bool in_order, is_damaged_fine;

static void open_trace(uint64_t chunks, uint64_t ring, bool keep_last)
{
	struct ca_rings_options options = { chunks * PAGE, ring * PAGE, keep_last };
	struct ca_err err;
	uint64_t size;

	fd = memfd_create("trace", MFD_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(ca_rings_reader_new(&reader, fd, 12345, &options, &size, &err), CA_OK);
	assert_int_equal((12345 + size) % PAGE, 0);
	trace = ca_rings_reader_get(reader);
	memset(next, 0, sizeof next);
	taken = gaps = 0;
	in_order = true;
}

static int close_trace(void **state)
{
	(void)state;
	ca_rings_reader_free(reader);
	reader = NULL;
	close(fd);
	return 0;
}

/* The values of a thread's events count up, but for what a gap says. */
static void take(void *context, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	(void)context;
	if (from->thread_index >= MOST_THREADS) {
		in_order = is_damaged_fine;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t *expected = &next[from->thread_index];

		if (event[i].key == CA_KEY_DROPPED) {
			*expected += event[i].value;
			gaps++;
			continue;
		}
		in_order &= event[i].value == *expected;
		*expected = event[i].value + 1;
		taken++;
	}
}

static void drain(bool last)
{
	ca_rings_reader_drain(reader, last, take, NULL);
}

static uint64_t lost(enum ca_loss why)
{
	return ca_rings_reader_lost(reader, why);
}

static struct ca_rings_writer writer_of(uint32_t process, uint32_t thread)
{
	const struct ca_source owner = { 1000 + process, 2000 + thread, process, thread };
	struct ca_rings_writer w;

	ca_rings_begin(&w, trace, &owner);
	return w;
}

/* Events first .. first + n - 1, in groups. Returns how many were kept. */
static uint64_t put(struct ca_rings_writer *w, uint64_t first, uint64_t n, size_t group)
{
	struct ca_event event[PER_CHUNK + 1] = { 0 };
	uint64_t kept = 0;

	for (uint64_t i = 0; i < n; i += group) {
		for (size_t k = 0; k < group; k++)
			event[k] = (struct ca_event){
				.time = first + i, .kind = CA_POINT, .key = CA_KEY_HIT, .value = first + i + k
			};
		kept += ca_rings_push(w, event, group) ? group : 0;
	}
	return kept;
}

static void order(void **state)
{
	struct ca_rings_writer a, b, off = { 0 };

	(void)state;
	open_trace(300, 200, false);
	a = writer_of(1, 1);
	b = writer_of(1, 2);
	assert_int_equal(put(&a, 0, 1, 1), 1);
	drain(false);
	assert_int_equal(taken, 1); /* also of a chunk that is not full */
	assert_int_equal(put(&a, 1, 5 * PER_CHUNK, 1), 5 * PER_CHUNK);
	assert_int_equal(put(&b, 0, 999, 3), 999);
	drain(false);
	assert_int_equal(taken, 1 + 5 * PER_CHUNK + 999);
	drain(false);
	assert_int_equal(taken, 1 + 5 * PER_CHUNK + 999);
	assert_int_equal(put(&a, 1 + 5 * PER_CHUNK, 7, 1), 7);
	ca_rings_end(&a);
	ca_rings_end(&b);
	assert_int_equal(put(&a, 0, 7, 1), 0); /* it is over */
	assert_int_equal(put(&off, 0, 7, 1), 0);
	drain(true);
	assert_int_equal(taken, 1 + 5 * PER_CHUNK + 999 + 7);
	assert_int_equal(ca_rings_reader_events(reader), taken);
	assert_int_equal(ca_rings_reader_threads(reader), 2);
	assert_true(in_order);
	for (unsigned i = 0; i < CA_LOSS_COUNT; i++)
		assert_int_equal(lost(i), 0);
}

static void time_does_not_run_back(void **state)
{
	const struct ca_event event[2] = { { .time = 50, .kind = CA_POINT },
					   { .time = 40, .kind = CA_POINT } };
	struct ca_rings_writer w;

	(void)state;
	open_trace(300, 200, false);
	w = writer_of(1, 1);
	ca_rings_push(&w, event, 2);
	ca_rings_push(&w, event, 1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ca_rings_events(trace, w.chunk)[i].time, 50);
}

static void full_ring(void **state)
{
	struct ca_rings_writer w;
	uint64_t kept;

	(void)state;
	open_trace(300, 4, false);
	w = writer_of(1, 1);
	kept = put(&w, 0, 10 * PER_CHUNK, 1);
	assert_int_equal(kept, 4 * PER_CHUNK);
	assert_int_equal(lost(CA_LOSS_RING), 6 * PER_CHUNK);
	drain(false);
	assert_int_equal(taken, kept);
	/* there is room again, and the gap is told where it was */
	assert_int_equal(put(&w, 10 * PER_CHUNK, 20, 1), 20);
	drain(false);
	assert_int_equal(taken, kept + 20);
	assert_int_equal(gaps, 1);
	assert_true(in_order);
	assert_int_equal(lost(CA_LOSS_RING), 6 * PER_CHUNK);
	/* no ring is large enough */
	assert_int_equal(put(&w, 0, PER_CHUNK, PER_CHUNK), 0);
	assert_int_equal(lost(CA_LOSS_RING), 7 * PER_CHUNK);
}

static void full_memory(void **state)
{
	enum { CHUNKS = 256 };
	struct ca_rings_writer a, b;

	(void)state;
	open_trace(CHUNKS, 1000, false);
	a = writer_of(1, 1);
	b = writer_of(2, 2);
	assert_int_equal(put(&a, 0, 300 * PER_CHUNK, 1), CHUNKS * PER_CHUNK);
	assert_int_equal(put(&b, 0, 5, 1), 0);
	assert_int_equal(lost(CA_LOSS_MEMORY), 44 * PER_CHUNK + 5);
	drain(false);
	assert_int_equal(put(&b, 5, 5, 1), 5);
	drain(true);
	assert_int_equal(taken, CHUNKS * PER_CHUNK + 5);
	assert_true(in_order);
}

/* What a process has not mapped, it does not touch. */
static void gives_way(void **state)
{
	enum { CHUNKS = 8192 };
	const uint64_t whole = ca_rings_size(CHUNKS), rest = whole - (uint64_t)CHUNKS * PAGE;
	struct ca_rings_writer w;
	uint64_t kept;

	(void)state;
	open_trace(CHUNKS, CHUNKS, false);
	assert_true(ca_rings_use(trace, whole));
	w = writer_of(1, 1);
	assert_int_equal(put(&w, 0, PER_CHUNK, 1), PER_CHUNK);
	ca_rings_give_way(trace);
	assert_true(ca_rings_here(trace) < whole);
	kept = (ca_rings_here(trace) - rest) / PAGE * PER_CHUNK;
	assert_int_equal(put(&w, PER_CHUNK, (uint64_t)CHUNKS * PER_CHUNK, 1), kept - PER_CHUNK);
	assert_int_equal(lost(CA_LOSS_MEMORY), (uint64_t)CHUNKS * PER_CHUNK + PER_CHUNK - kept);
	ca_rings_give_way(trace); /* nothing is left to give */
	assert_int_equal((ca_rings_here(trace) - rest) / PAGE * PER_CHUNK, kept);
	drain(true);
	assert_int_equal(taken, kept);
	/* a chunk that another process has given back may be one of those */
	atomic_store(&trace->free, CHUNKS);
	assert_int_equal(put(&w, 0, PER_CHUNK, 1), 0);
	assert_false(ca_rings_use(trace, rest + PAGE));
	assert_true(ca_rings_use(trace, whole));
}

static void keep_last(void **state)
{
	struct ca_rings_writer a, b;

	(void)state;
	open_trace(300, 4, true);
	a = writer_of(1, 1);
	b = writer_of(1, 2);
	assert_int_equal(put(&a, 0, 10 * PER_CHUNK + 3, 1), 10 * PER_CHUNK + 3);
	assert_int_equal(put(&b, 0, 3, 1), 3);
	drain(false);
	assert_int_equal(taken, 0); /* read at the end */
	next[1] = 7 * PER_CHUNK;
	drain(true);
	assert_int_equal(taken, 3 * PER_CHUNK + 3 + 3);
	assert_int_equal(lost(CA_LOSS_OVERWRITTEN), 7 * PER_CHUNK);
	assert_true(in_order);
	assert_int_equal(gaps, 0);
}

/* Where others have taken all, a thread goes on with the one chunk that it has. */
static void keep_last_of_one(void **state)
{
	struct ca_rings_writer a, b;

	(void)state;
	open_trace(256, 255, true);
	a = writer_of(1, 1);
	b = writer_of(1, 2);
	put(&a, 0, 254 * PER_CHUNK, 1);
	put(&b, 0, 1, 1);
	put(&a, 254 * PER_CHUNK, PER_CHUNK, 1);
	assert_int_equal(put(&b, 1, 3 * PER_CHUNK, 1), 3 * PER_CHUNK);
	assert_int_equal(lost(CA_LOSS_OVERWRITTEN), 3 * PER_CHUNK);
	next[2] = 3 * PER_CHUNK;
	drain(true);
	assert_int_equal(taken, 255 * PER_CHUNK + 1);
	assert_true(in_order);
}

/* Two processes, one of which is killed in the midst of it: what they wrote is there. */
static void death(void **state)
{
	enum { EVENTS = 1000 };
	pid_t child[2];
	int status;

	(void)state;
	open_trace(300, 200, false);
	for (uint32_t i = 0; i < 2; i++) {
		child[i] = fork();
		if (!child[i]) {
			struct ca_rings_writer w = writer_of(1 + i, 1 + i);

			put(&w, 0, EVENTS, 1);
			if (i)
				raise(SIGKILL);
			ca_rings_end(&w);
			_exit(0);
		}
	}
	for (int i = 0; i < 2; i++)
		assert_int_equal(waitpid(child[i], &status, 0), child[i]);
	assert_true(WIFSIGNALED(status));
	drain(false);
	assert_int_equal(taken, 2 * EVENTS);
	assert_true(in_order);
	/* what the dead one had open is free again */
	ca_rings_reader_forget(reader, 2);
	drain(false);
	for (uint32_t i = 0; i < atomic_load(&trace->used); i++)
		assert_int_equal(atomic_load(&trace->chunk[i].state), CA_RINGS_FREE);
	drain(true);
	assert_int_equal(taken, 2 * EVENTS);
}

/* 10,000 threads over a run, 5,000 of them at once: a page for each that is alive, and used again. */
static void many_threads(void **state)
{
	enum { AT_ONCE = 5000, ALL = 10000 };
	static struct ca_rings_writer w[ALL + 1];

	(void)state;
	open_trace(6000, 200, false);
	for (uint32_t i = 1; i <= AT_ONCE; i++) {
		w[i] = writer_of(1, i);
		assert_int_equal(put(&w[i], 0, 3, 1), 3);
	}
	for (uint32_t i = AT_ONCE + 1; i <= ALL; i++) {
		ca_rings_end(&w[i - AT_ONCE]);
		if (i % 500 == 0)
			drain(false);
		w[i] = writer_of(1, i);
		assert_int_equal(put(&w[i], 0, 3, 1), 3);
	}
	drain(true);
	assert_int_equal(taken, 3 * ALL);
	assert_int_equal(ca_rings_reader_threads(reader), ALL);
	assert_true(in_order);
	assert_in_range(atomic_load(&trace->used), AT_ONCE, AT_ONCE + 1000);
}

/* ---- at once ------------------------------------------------------------------------------------- */
enum { WRITERS = 3, GROUPS = 60000 };
static _Atomic unsigned done;

static void *write_much(void *number)
{
	struct ca_rings_writer w = writer_of(1, (uint32_t)(uintptr_t)number);

	put(&w, 0, 3 * GROUPS, 3);
	ca_rings_end(&w);
	atomic_fetch_add(&done, 1);
	return NULL;
}

static void at_once(void **state)
{
	pthread_t thread[WRITERS];
	uint64_t missing;

	(void)state;
	open_trace(300, 60, false);
	atomic_store(&done, 0);
	for (uintptr_t i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, write_much, (void *)(i + 1)), 0);
	while (atomic_load(&done) < WRITERS)
		drain(false);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(thread[i], NULL);
	drain(true);
	missing = lost(CA_LOSS_RING) + lost(CA_LOSS_MEMORY);
	assert_true(in_order);
	assert_int_equal(taken + missing, 3 * GROUPS * WRITERS);
	assert_int_equal(lost(CA_LOSS_DAMAGED), 0);
}

/* ---- damage -------------------------------------------------------------------------------------- */
static void damaged(void **state)
{
	struct ca_rings_writer w;

	(void)state;
	open_trace(300, 200, false);
	w = writer_of(1, 1);
	put(&w, 0, 10, 1);
	ca_rings_events(trace, w.chunk)[4].kind = 77;
	next[1] = 0;
	in_order = true;
	drain(false);
	assert_int_equal(taken, 9);
	assert_int_equal(lost(CA_LOSS_DAMAGED), 1);
	is_damaged_fine = true;
	for (unsigned seed = 0; seed < 200; seed++) {
		char *at = (char *)trace + offsetof(struct ca_rings, free);
		size_t size = sizeof *trace - offsetof(struct ca_rings, free) + 40 * sizeof trace->chunk[0];

		srand(seed);
		for (unsigned k = 0; k < 300; k++)
			at[(size_t)rand() % size] = (char)(rand() % 3 ? rand() % 5 : rand());
		atomic_store(&trace->ready, 300); /* a store behind it is none that we make */
		atomic_store(&trace->used, atomic_load(&trace->used) % 300);
		put(&w, 0, 3 * PER_CHUNK, 1);
		w.chunk %= 300;
		drain(seed % 7 == 0);
		w = writer_of(1, 1);
	}
}

#define TEST(f) cmocka_unit_test_teardown(f, close_trace)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(order),     TEST(time_does_not_run_back),
		TEST(full_ring), TEST(full_memory),
		TEST(gives_way), TEST(keep_last),
		TEST(death),     TEST(keep_last_of_one),
		TEST(at_once),   TEST(many_threads),
		TEST(damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

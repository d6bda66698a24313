/* SPDX-License-Identifier: MIT */
/* What an event costs on its way into the ring, and how many get through.
 *   bench_trace [SECONDS]
 * Prints ns per event: of a key that is switched off, with a time that is known, with a look at the clock;
 * then raises 2 million events a second in two threads for SECONDS (10), while the driver's part drains
 * every 20 ms, and tells what was lost; and as many as will go. */
#include "causal/runtime/timeline.h"
#include "core/cpu.h"
#include "core/rings_reader.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROUNDS = 20, EVENTS = 100000, THREADS = 2, MS = 1000000, DRAIN = 20 * MS, AT_ONCE = 100 };
#define A_SECOND UINT64_C(1000000000)

struct ca_runtime ca_rt;
static struct ca_rings_reader *reader;
static uint64_t seen;

static void take(void *context, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	(void)context, (void)from, (void)event;
	seen += n;
}

/* The default sizes. */
static void open_trace(void)
{
	const struct ca_rings_options options = { 64 << 20, 16 << 20, false };
	int fd = memfd_create("trace", MFD_CLOEXEC);
	struct ca_err err;
	uint64_t size;

	if (fd < 0 || ca_rings_reader_new(&reader, fd, 0, &options, &size, &err)) {
		fprintf(stderr, "no trace\n");
		exit(1);
	}
	ca_rt.trace = ca_rings_reader_get(reader);
}

static struct ca_thread *new_thread(uint32_t number)
{
	struct ca_thread *t = aligned_alloc(4096, (sizeof *t + 4095) / 4096 * 4096);

	if (!t)
		exit(1);
	t->clock = (struct ca_clock_fast){ 0 };
	ca_rings_begin(&t->trace, ca_rt.trace, &(struct ca_source){ 1, number, 1, number });
	return t;
}

/* ---- one thread, without anybody else ------------------------------------------------------------- */
static double best_of(struct ca_thread *t, enum ca_key key, bool clock)
{
	double best = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin = ca_clock_now(), ns;

		for (uint64_t i = 0; i < EVENTS; i++) {
			ca_timeline_tell(t, CA_POINT, key, clock ? ca_clock_fast_now(&t->clock) : begin + i,
					 i);
			__asm__ volatile("" ::: "memory");
		}
		ns = ca_clock_now() - begin;
		if ((double)ns / EVENTS < best)
			best = (double)ns / EVENTS;
		ca_rings_reader_drain(reader, false, take, NULL);
	}
	return best;
}

/* ---- two threads, and the driver ------------------------------------------------------------------ */
static uint64_t until, rate;
static _Atomic uint64_t raised;
static _Atomic unsigned running;

static void *raise_many(void *number)
{
	struct ca_thread *t = new_thread((uint32_t)(uintptr_t)number);
	uint64_t begin = ca_clock_now(), now, n = 0;

	while ((now = ca_clock_now()) < until) {
		if (rate && n * A_SECOND / rate > now - begin)
			continue;
		for (int i = 0; i < AT_ONCE; i++)
			ca_timeline_tell(t, CA_POINT, CA_KEY_HIT, now, n + (uint64_t)i);
		n += AT_ONCE;
	}
	ca_rings_end(&t->trace);
	atomic_fetch_add(&raised, n);
	atomic_fetch_sub(&running, 1);
	free(t);
	return NULL;
}

static void say(const char *what, double ns, double bar)
{
	printf("%-60s %8.2f ns, bar %.0f: %s\n", what, ns, bar, ns <= bar ? "kept" : "MISSED");
}

static void through(const char *what, double seconds, uint64_t each)
{
	struct timespec nap = { 0, DRAIN };
	pthread_t thread[THREADS];
	uint64_t lost = 0, before = 0;

	for (unsigned i = 0; i < CA_LOSS_COUNT; i++)
		before += ca_rings_reader_lost(reader, (enum ca_loss)i);
	seen = 0;
	rate = each;
	raised = 0;
	running = THREADS;
	until = ca_clock_now() + (uint64_t)(seconds * 1e9);
	for (uintptr_t i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, raise_many, (void *)((each ? 10 : 20) + i)))
			exit(1);
	while (atomic_load(&running)) {
		nanosleep(&nap, NULL);
		ca_rings_reader_drain(reader, false, take, NULL);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	ca_rings_reader_drain(reader, false, take, NULL);
	for (unsigned i = 0; i < CA_LOSS_COUNT; i++)
		lost += ca_rings_reader_lost(reader, (enum ca_loss)i);
	lost -= before;
	printf("%-60s %8.2f million/s, %llu of %llu lost%s%s\n", what, (double)raised / seconds / 1e6,
	       (unsigned long long)lost, (unsigned long long)raised,
	       !each  ? ""
	       : lost ? ", bar 0: MISSED"
		      : ", bar 0: kept",
	       seen + lost >= raised ? "" : ": THE COUNTS DIFFER");
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	struct ca_thread *t;

	open_trace();
	t = new_thread(1);
	ca_rt.events = 1 << CA_KEY_HIT;
	say("event that is switched off", best_of(t, CA_KEY_WAIT, false), 2);
	say("event, its time known", best_of(t, CA_KEY_HIT, false), 25);
	say("event with a look at the clock", best_of(t, CA_KEY_HIT, true), 25);
	through("two threads, 1 million/s each", seconds, 1000000);
	through("two threads, as many as will go", 1, 0);
	free(t);
	ca_rings_reader_free(reader);
	return 0;
}

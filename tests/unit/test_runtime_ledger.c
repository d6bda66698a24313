/* SPDX-License-Identifier: MIT */
/* causal/runtime/ledger.c: who owes how much, and paying it. The ledger is compiled into this
 * program; the session, the threads and their switch logs are made by hand. Accounts are tested
 * with invented times, so that they are exact; paying with the real clock and wide bounds. */
#include "causal/runtime/account.h"
#include "causal/runtime/history.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/timeline.h"
#include "core/paying.h"
#include "core/ring.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define T0 UINT64_C(5000000000)
#define MS UINT64_C(1000000)
enum { HALF = 500000, SLOTS = 4, PAGE = 4096 };

/* ---- what the ledger sees of the runtime -------------------------------------------------*/
struct ca_runtime ca_rt;
static bool gone;
static unsigned asked;

bool ca_rt_conductor_is_gone(uint64_t now)
{
	(void)now;
	asked++;
	return gone;
}

static uint32_t history_of = 99; /* whose history was asked for last */

void ca_history_select(struct ca_thread *t, uint32_t region)
{
	(void)t;
	history_of = region;
}

static unsigned delays, delay_how;
static uint64_t delay;

void ca_timeline_delay(struct ca_thread *t, uint64_t began, uint64_t paid, unsigned how)
{
	(void)t, (void)began;
	delays++;
	delay = paid;
	delay_how = how;
}

static struct ca_thread thread[SLOTS], *const me = &thread[0];
static _Alignas(PAGE) char switches[SLOTS][2 * PAGE];
static struct ca_session *s;
static char path[48];
static const enum ca_wait others = CA_WAIT_OTHERS, external = CA_WAIT_EXTERNAL;

static int set_up(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/ca-ledger-XXXXXX");
	if (!mkdtemp(path))
		return -1;
	strcat(path, "/session");
	if (ca_session_create(path, &s, NULL) != CA_OK || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0)
		return -1;
	if (ca_session_grow(fd, s, SLOTS, NULL) != CA_OK)
		return -1;
	close(fd);
	memset(switches, 0, sizeof switches);
	memset(thread, 0, sizeof thread);
	memset(&ca_rt, 0, sizeof ca_rt);
	gone = false;
	asked = delays = 0;
	atomic_store(&s->slots_used, SLOTS);
	atomic_store(&s->selection.seq, 2);
	ca_rt.session = s;
	ca_rt.period = MS;
	ca_rt.slots = CA_MAX_THREADS;
	atomic_store(&ca_rt.on, true);
	for (uint32_t i = 0; i < SLOTS; i++) {
		thread[i].number = i;
		thread[i].fine = &s->fine[i];
		thread[i].slot = &s->slot[i];
		thread[i].switches.page = switches[i]; /* nothing in it: always on a CPU */
		thread[i].last = T0;
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_session_detach(s);
	unlink(path);
	*strrchr(path, '/') = 0;
	return rmdir(path);
}

static void open_experiment(uint64_t start, uint32_t speedup)
{
	s->experiment.start = start;
	s->experiment.speedup = speedup;
	atomic_fetch_add(&s->experiment.seq, 1);
}

static void put(enum ca_log_type type, uint32_t number, uint64_t time)
{
	ca_ledger_log(type, &thread[number], time, 0);
}

static void hit(uint32_t number, uint64_t time, uint64_t ns)
{
	ca_ledger_log(CA_LOG_HIT, &thread[number], time, ns);
}

/* As the kernel would tell it. */
static void switched(uint32_t number, bool out, uint64_t time)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)switches[number];
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record = { { PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, sizeof record }, time };

	memcpy(switches[number] + PAGE + page->data_head, &record, sizeof record);
	page->data_head += sizeof record;
}

static void off_cpu(uint32_t number, uint64_t from, uint64_t to)
{
	switched(number, true, from);
	switched(number, false, to);
}

static void owes(uint64_t until, const enum ca_wait *wait, int64_t owed)
{
	ca_ledger_accrue(me, until, wait);
	assert_int_equal(me->owed, owed);
}

/* ---- the account -----------------------------------------------------------------------*/
static void test_outside(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	assert_true(ca_ledger_open());
	owes(T0 + 50, NULL, 0);
	put(CA_LOG_ENTER, 1, T0 + 100);
	owes(T0 + 200, NULL, 50);
	put(CA_LOG_EXIT, 1, T0 + 300);
	owes(T0 + 400, NULL, 100);
	owes(T0 + 400, NULL, 100);
	owes(T0 + 300, NULL, 100); /* a look that was overtaken by another */
	owes(T0 + 900, NULL, 100);
	assert_int_equal(me->s_time, 200);
}

/* All stand still, in S or not, but for who is off its CPU or waits for others; and whoever has said so owes nothing. */
static void test_stand_still(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_log(CA_LOG_STILL, &thread[1], T0 + 100, 2000);
	owes(T0 + 200, NULL, 1000);
	put(CA_LOG_ENTER, 0, T0 + 300);
	ca_ledger_log(CA_LOG_STILL, &thread[1], T0 + 400, 2000);
	put(CA_LOG_EXIT, 0, T0 + 500);
	owes(T0 + 600, NULL, 2000);
	off_cpu(0, T0 + 700, T0 + 800);
	ca_ledger_log(CA_LOG_STILL, &thread[1], T0 + 750, 2000);
	owes(T0 + 900, NULL, 2000);
	ca_ledger_log(CA_LOG_STILL, &thread[1], T0 + 950, 2000);
	owes(T0 + 1000, &others, 2000);
	ca_ledger_log(CA_LOG_STILL, me, T0 + 1100, 2000);
	owes(T0 + 1200, NULL, 2000);
	assert_int_equal(me->s_time, 5 * 2000 + 200);
	assert_int_equal(me->level.beyond, 100);                 /* of S */
	ca_ledger_log(CA_LOG_STILL, &thread[1], T0 - 100, 2000); /* before it */
	owes(T0 + 1300, NULL, 2000);
}

/* Told in slices, with the real clock; to everybody. */
static void test_stands_still(void **state)
{
	uint64_t began = ca_clock_now(), told = 0;
	struct ca_log_entry e;

	(void)state;
	me->last = began;
	open_experiment(began, HALF);
	ca_ledger_follow(me);
	ca_ledger_stand_still(me, 350000);
	for (uint64_t at = 0; ca_selection_look(s->log, at, UINT64_MAX, &e) == CA_LOG_THERE; at++) {
		assert_int_equal(e.type, CA_LOG_STILL);
		assert_true(e.value > 0);
		told += e.value;
	}
	assert_true(told >= 2 * 350000);
	assert_true(ca_clock_now() - began >= 350000);
	assert_int_equal(me->level.beyond, told / 2);
	assert_int_equal(atomic_load(&me->slot->paid), told / 2);
	assert_int_equal(me->s_time, told);
	assert_int_equal(me->owed, 0);
	assert_false(atomic_load(&me->slot->paying));
}

/* We are in S, and off the CPU there, which another one is not. */
static void test_off_in_s_with_others(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 0, T0);
	put(CA_LOG_ENTER, 1, T0 + 200);
	put(CA_LOG_EXIT, 1, T0 + 300);
	off_cpu(0, T0 + 100, T0 + 400);
	owes(T0 + 500, NULL, 0);
	assert_int_equal(me->s_time, 100 + 100 + 100);
}

/* A thread of another process tells of its time in the run queue when it is over. */
static void test_taken_back(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 100);
	off_cpu(0, T0 + 1500, T0 + 1600); /* that was not owed for */
	owes(T0 + 2100, NULL, 950);
	assert_int_equal(me->s_time, 2000);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 1100, T0 + 1700);
	owes(T0 + 2100, NULL, 700);
	assert_int_equal(me->s_time, 1400);
	/* all of it ahead of us, and a part */
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 2200, T0 + 2300);
	owes(T0 + 2400, NULL, 800);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 2350, T0 + 2500);
	owes(T0 + 2600, NULL, 825);
	assert_int_equal(me->s_time, 1400 + 200 - 50 + 100);
	/* another one was at work meanwhile; we were in S; it belongs to us; before the experiment */
	put(CA_LOG_ENTER, 2, T0 + 2600);
	owes(T0 + 2700, NULL, 875);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 2650, T0 + 2700);
	owes(T0 + 2700, NULL, 875);
	put(CA_LOG_EXIT, 2, T0 + 2700);
	atomic_store(&ca_rt.by_slot[1], &thread[1]);
	s->selection.exact = 1;
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 2600, T0 + 2700);
	owes(T0 + 2700, NULL, 875);
	s->selection.exact = 0;
	atomic_store(&ca_rt.by_slot[1], NULL);
	put(CA_LOG_EXIT, 1, T0 + 2700);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 2600, T0 + 2700);
	owes(T0 + 2700, NULL, 875);
	assert_int_equal(me->s_time, 1750);
}

/* Two books: whatever other processes do, and whenever they tell of it, the account in the end is that of
 * somebody who has seen it all. Time goes by ns here. */
enum { END = 6000 };
struct story {
	bool in[SLOTS][END], off[SLOTS][END];
};

/* Stretches in S, which may be off the CPU for a part; the first thread is off anywhere. */
static void invent(struct story *story, struct ca_rng *rng)
{
	memset(story, 0, sizeof *story);
	for (unsigned i = 0; i < SLOTS; i++) {
		unsigned at = (unsigned)ca_rng_below(rng, 300);

		while (at < END - 1) {
			unsigned end = at + 20 + (unsigned)ca_rng_below(rng, 500), from = at + 5, to;

			end = end < END - 1 ? end : END - 1;
			for (unsigned k = at; k < end; k++)
				story->in[i][k] = true;
			while (from < end && ca_rng_below(rng, 2)) {
				from += (unsigned)ca_rng_below(rng, 100);
				to = from + 1 + (unsigned)ca_rng_below(rng, 150);
				for (unsigned k = from; k < to && k < end; k++)
					story->off[i][k] = true;
				from = to + 1;
			}
			at = end + 1 + (unsigned)ca_rng_below(rng, 300);
		}
	}
	for (unsigned k = 0; k < END; k++)
		if (k % 700 > 600 && !story->in[0][k])
			story->off[0][k] = true;
}

static void tell_of_off(const struct story *story, uint32_t i, unsigned from, unsigned to)
{
	for (unsigned k = from; k < to; k++)
		if (story->off[i][k] && (k == from || !story->off[i][k - 1])) {
			unsigned end = k;

			while (end < to && story->off[i][end])
				end++;
			ca_ledger_log(CA_LOG_WAS_OFF, &thread[i], T0 + k, T0 + end);
		}
}

/* What happens at that moment, as it comes to the log. told: up to where its off-CPU times were. */
static void play(const struct story *story, unsigned k, unsigned told[SLOTS], struct ca_rng *rng)
{
	for (uint32_t i = 0; i < SLOTS; i++) {
		bool was_in = k && story->in[i][k - 1], was_off = k && story->off[i][k - 1];

		if (i == 0 && story->off[i][k] != was_off)
			switched(0, story->off[i][k], T0 + k);
		if (i == 0 && story->in[i][k] != was_in)
			ca_ledger_accrue(me, T0 + k, NULL);
		if ((i || !me->switches.page) && was_in && !story->off[i][k] &&
		    (!story->in[i][k] || !ca_rng_below(rng, 200))) {
			tell_of_off(story, i, told[i], k);
			told[i] = k;
		}
		if (story->in[i][k] != was_in) {
			put(was_in ? CA_LOG_EXIT : CA_LOG_ENTER, i, T0 + k);
			told[i] = k;
		}
	}
	if (!story->off[0][k] && !ca_rng_below(rng, 100))
		ca_ledger_accrue(me, T0 + k, NULL);
}

static void test_two_books(void **state)
{
	static struct story story;
	int64_t owed = 0, s_time = 0;
	struct ca_rng rng;

	(void)state;
	ca_rng_init(&rng, 1);
	open_experiment(T0, HALF);
	for (unsigned round = 0; round < 40; round++) {
		unsigned told[SLOTS] = { 0 };

		memset(switches[0], 0, sizeof switches[0]);
		me->switches.page = round % 4 ? switches[0] : NULL; /* then it tells of itself, too */
		s->experiment.start = T0;
		atomic_fetch_add(&s->experiment.seq, 2);
		atomic_fetch_add(&s->selection.seq, 2);
		s->selection.log_start = atomic_load(&s->log_head);
		me->last = T0;
		me->owed = 0;
		ca_ledger_accrue(me, T0, NULL);
		invent(&story, &rng);
		owed = s_time = 0;
		for (unsigned k = 0; k < END; k++) {
			bool mine = story.in[0][k] && !story.off[0][k], any = false;

			play(&story, k, told, &rng);
			for (unsigned i = 1; i < SLOTS; i++)
				any |= story.in[i][k] && !story.off[i][k];
			s_time += mine || any;
			owed += any && !story.in[0][k] && !story.off[0][k];
		}
		ca_ledger_accrue(me, T0 + END, NULL);
		assert_int_equal(me->s_time, s_time);
		if (me->switches.page) /* else it owes by its CPU clock */
			assert_in_range(me->owed + END, END + owed / 2 - 200, END + owed / 2 + 200);
	}
}

/* Between its look at the clock and its look at the log a thread may lose its CPU for long: what it finds there
 * later than its time counts once. */
static void test_behind_its_time(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 200);
	put(CA_LOG_EXIT, 1, T0 + 600);
	put(CA_LOG_ENTER, 1, T0 + 700);
	owes(T0 + 100, NULL, 200);
	owes(T0 + 650, NULL, 200);
	owes(T0 + 1000, NULL, 350);
	assert_int_equal(me->s_time, 400 + 300);
}

/* Of an experiment that is over one hears more until its D is known. */
static void test_told_when_it_is_over(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 100);
	owes(T0 + 900, NULL, 400);
	s->experiment.end = T0 + 1000;
	atomic_fetch_add(&s->experiment.seq, 1);
	owes(T0 + 1100, NULL, 450);
	assert_int_equal(me->s_time, 900);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 800, T0 + 1300);
	owes(T0 + 1400, NULL, 350);
	assert_int_equal(me->s_time, 700);
	assert_int_equal(atomic_load(&me->slot->s_time), 700);
	hit(1, T0 + 1100, 100);
	atomic_store(&s->settled_delay, 350);
	atomic_store(&s->settled_seq, atomic_load(&s->experiment.seq));
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 500, T0 + 600);
	owes(T0 + 1500, NULL, 350);
	assert_int_equal(me->s_time, 0);
}

/* Who has no switch log knows from its CPU clock when it was off in S, and tells itself, too. */
static void test_told_by_itself(void **state)
{
	(void)state;
	me->switches.page = NULL;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 0, T0);
	put(CA_LOG_ENTER, 1, T0 + 500);
	put(CA_LOG_EXIT, 1, T0 + 600);
	ca_ledger_accrue(me, T0 + 800, NULL);
	ca_ledger_log(CA_LOG_WAS_OFF, me, T0 + 400, T0 + 800);
	ca_ledger_accrue(me, T0 + 1000, NULL);
	assert_int_equal(me->s_time, 1000 - 300);
	assert_int_equal(me->owed, 0);
	/* when another one of this process without one was off is a guess: debts of that time stay */
	put(CA_LOG_EXIT, 0, T0 + 1000);
	atomic_store(&ca_rt.by_slot[2], &thread[2]);
	thread[2].switches.page = NULL;
	put(CA_LOG_ENTER, 2, T0 + 1000);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[2], T0 + 1200, T0 + 1500);
	ca_ledger_accrue(me, T0 + 1500, NULL);
	assert_int_equal(me->s_time, 700 + 500);
	put(CA_LOG_EXIT, 2, T0 + 1500);
	/* ... but where probes tell of S, and there is a latency, virtual time goes by what it says itself, in all threads */
	s->selection.exact = 1;
	s->point[0].kind = CA_POINT_BEGIN;
	atomic_store(&s->points_used, 1);
	put(CA_LOG_ENTER, 2, T0 + 1500);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[2], T0 + 1700, T0 + 1800);
	put(CA_LOG_EXIT, 2, T0 + 2000);
	ca_ledger_accrue(me, T0 + 2100, NULL);
	assert_int_equal(me->s_time, 700 + 500 + 400);
	put(CA_LOG_ENTER, 2, T0 + 2100);
	ca_ledger_accrue(me, T0 + 2500, NULL);
	assert_int_equal(me->s_time, 700 + 500 + 400 + 400);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[2], T0 + 2200, T0 + 2600); /* a part is past, a part ahead */
	ca_ledger_accrue(me, T0 + 2700, NULL);
	assert_int_equal(me->s_time, 700 + 500 + 400 + 600 - 400);
	s->selection.exact = 0;
}

/* Parts of S with speedups of their own: 20 and 50 %. */
static void select_parts(void)
{
	s->selection.parts = 2;
	s->selection.weight[0] = 400000;
	s->selection.weight[1] = CA_MILLION;
	atomic_fetch_add(&s->selection.seq, 2);
	s->selection.log_start = atomic_load(&s->log_head);
}

static void put_part(uint32_t number, uint64_t time, uint64_t part)
{
	ca_ledger_log(CA_LOG_ENTER, &thread[number], time, part);
}

/* Outside one owes for the fastest part that anybody is in; virtual time goes by the same. */
static void test_parts(void **state)
{
	(void)state;
	select_parts();
	open_experiment(T0, HALF);
	put_part(1, T0 + 1000, 0);
	owes(T0 + 2000, NULL, 200);
	put_part(2, T0 + 2000, 1);
	owes(T0 + 3000, NULL, 700);
	put(CA_LOG_EXIT, 1, T0 + 3000);
	owes(T0 + 4000, NULL, 1200);
	put_part(1, T0 + 4000, 0);
	put(CA_LOG_EXIT, 2, T0 + 4000);
	owes(T0 + 5000, NULL, 1400);
	put_part(1, T0 + 5000, 1); /* it calls the other part ... */
	owes(T0 + 6000, NULL, 1900);
	put_part(1, T0 + 6000, 0); /* ... and is back */
	owes(T0 + 7000, NULL, 2100);
	put(CA_LOG_EXIT, 1, T0 + 7000);
	owes(T0 + 9000, NULL, 2100);
	/* D is the integral of the largest */
	assert_int_equal(me->s_time, 400 + 1000 + 1000 + 400 + 1000 + 400);
	/* a part that is not there (a writer of another selection) is the fastest */
	put_part(1, T0 + 9000, 7);
	owes(T0 + 10000, NULL, 2600);
}

/* In the slow part one owes what the fast one is ahead by; in the fast one nothing. */
static void test_in_parts(void **state)
{
	(void)state;
	select_parts();
	open_experiment(T0, HALF);
	put_part(0, T0, 0);
	owes(T0 + 1000, NULL, 0);
	put_part(1, T0 + 1000, 1);
	owes(T0 + 2000, NULL, 300);
	put_part(0, T0 + 2000, 1);
	owes(T0 + 3000, NULL, 300);
	put_part(1, T0 + 3000, 0);
	owes(T0 + 4000, NULL, 300);
	assert_int_equal(me->s_time, 400 + 3000);
	/* who waits for others in S is in none */
	put(CA_LOG_EXIT, 1, T0 + 4000);
	owes(T0 + 5000, &others, 300);
	assert_int_equal(me->s_time, 400 + 3000);
	/* off the CPU in the fast part, while another one is in the slow one */
	put_part(1, T0 + 5000, 0);
	off_cpu(0, T0 + 5200, T0 + 5700);
	owes(T0 + 6000, NULL, 300);
	assert_int_equal(me->s_time, 400 + 3000 + 500 + 200);
}

/* Of two in S the one in the fast part is preempted, or waits for others; and one of another process tells
 * of it later. */
static void test_parts_off(void **state)
{
	(void)state;
	select_parts();
	open_experiment(T0, HALF);
	atomic_store(&ca_rt.by_slot[2], &thread[2]);
	put_part(1, T0, 0);
	put_part(2, T0, 1);
	off_cpu(2, T0 + 400, T0 + 800);
	owes(T0 + 1000, NULL, 300 + 80);
	put(CA_LOG_OFF, 2, T0 + 1000);
	owes(T0 + 2000, NULL, 380 + 200);
	put(CA_LOG_ON, 2, T0 + 2000);
	put(CA_LOG_EXIT, 1, T0 + 2000);
	atomic_store(&ca_rt.by_slot[2], NULL);
	owes(T0 + 3000, NULL, 580 + 500);
	assert_int_equal(me->s_time, 600 + 160 + 400 + 1000);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[2], T0 + 2500, T0 + 3000);
	owes(T0 + 3000, NULL, 580 + 250);
	assert_int_equal(me->s_time, 600 + 160 + 400 + 500);
	/* we were in the slow part meanwhile */
	put_part(0, T0 + 3000, 0);
	owes(T0 + 4000, NULL, 830 + 300);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[2], T0 + 3500, T0 + 4000);
	owes(T0 + 4000, NULL, 830 + 150);
	assert_int_equal(me->s_time, 1660 + 500 + 200);
}

/* Samples: one hit for each layer. */
static void test_parts_hits(void **state)
{
	(void)state;
	s->selection.exact = 1; /* and timed */
	select_parts();
	open_experiment(T0, HALF);
	hit(1, T0 + 10 * MS, CA_LOG_HIT_VALUE(1000, 0));
	hit(1, T0 + 10 * MS, CA_LOG_HIT_VALUE(1000, 1));
	owes(T0 + 11 * MS, NULL, 500);
	assert_int_equal(me->s_time, 1000);
	/* we were in the slow part at that time */
	atomic_fetch_add(&s->fine[0].exempt, 400);
	hit(1, T0 + 20 * MS, CA_LOG_HIT_VALUE(1000, 0));
	hit(1, T0 + 20 * MS, CA_LOG_HIT_VALUE(1000, 1));
	owes(T0 + 21 * MS, NULL, 800);
	/* what is known for certain counts as a whole, in its layer */
	put_part(2, T0 + 30 * MS, 0);
	owes(T0 + 31 * MS, NULL, 800 + 200000);
	hit(1, T0 + 31 * MS, CA_LOG_HIT_VALUE(1000, 0));
	hit(1, T0 + 31 * MS, CA_LOG_HIT_VALUE(1000, 1));
	owes(T0 + 31 * MS, NULL, 800 + 200000 + 300);
}

static void test_speedups(void **state)
{
	(void)state;
	open_experiment(T0, 0);
	put(CA_LOG_ENTER, 1, T0);
	owes(T0 + 1000, NULL, 0);
	assert_int_equal(me->s_time, 1000);
	atomic_fetch_add(&s->experiment.seq, 1);
	open_experiment(T0 + 1000, CA_MILLION);
	owes(T0 + 1700, NULL, 700);
}

static void test_no_experiment(void **state)
{
	(void)state;
	s->experiment.speedup = HALF;
	s->experiment.start = T0;
	assert_false(ca_ledger_open());
	put(CA_LOG_ENTER, 1, T0);
	hit(1, T0 + 10, 1000);
	owes(T0 + 100, NULL, 0);
	/* what was before its start is not owed for, though it is known who is in S */
	open_experiment(T0 + 300, HALF);
	owes(T0 + 400, NULL, 50);
	/* closed: nothing more, and what is owed stays */
	atomic_fetch_add(&s->experiment.seq, 1);
	owes(T0 + 600, NULL, 50);
	/* the next one starts from nothing */
	atomic_store(&me->slot->paid, 77);
	open_experiment(T0 + 700, HALF);
	owes(T0 + 710, NULL, 5);
	assert_int_equal(atomic_load(&me->slot->paid), 0);
	assert_int_equal(atomic_load(&me->slot->experiment), atomic_load(&s->experiment.seq));
	assert_int_equal(me->s_time, 10);
}

static void test_waits(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	switched(0, true, T0 + 10); /* a waiting thread is off the CPU */
	owes(T0 + 100, &others, 0);
	owes(T0 + 300, &external, 100);
	assert_int_equal(me->s_time, 300);
}

static void test_in_s(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 50);
	put(CA_LOG_ENTER, 0, T0 + 100);
	owes(T0 + 200, NULL, 25);
	put(CA_LOG_EXIT, 0, T0 + 300);
	put(CA_LOG_EXIT, 1, T0 + 400);
	owes(T0 + 500, NULL, 75);
	assert_int_equal(me->s_time, 350);
}

static void test_two_in_s(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	put(CA_LOG_ENTER, 2, T0 + 50);
	put(CA_LOG_ENTER, 2, T0 + 60); /* twice is once */
	put(CA_LOG_EXIT, 1, T0 + 100);
	owes(T0 + 150, NULL, 75);
	put(CA_LOG_EXIT, 2, T0 + 200);
	put(CA_LOG_EXIT, 3, T0 + 250); /* was never in */
	owes(T0 + 300, NULL, 100);
}

/* Who leaves S takes nothing along of what is known of the others. */
static void test_one_of_two_leaves(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	put(CA_LOG_ENTER, 2, T0);
	put(CA_LOG_OFF, 2, T0);
	put(CA_LOG_EXIT, 1, T0 + 100);
	owes(T0 + 100, NULL, 50);
	owes(T0 + 300, NULL, 50); /* the one that is left waits */
	put(CA_LOG_EXIT, 2, T0 + 300);
	put(CA_LOG_ENTER, 1, T0 + 300);
	put(CA_LOG_ENTER, 2, T0 + 300);
	ca_ledger_log(CA_LOG_EXTERNAL, &thread[2], T0 + 300, T0 + 500);
	put(CA_LOG_EXIT, 1, T0 + 400);
	owes(T0 + 400, NULL, 100);
	owes(T0 + 900, NULL, 150); /* asleep until T0 + 500 */
}

/* Without a switch log the CPU clock is read at each look. */
static void test_cpu_clock_is_read(void **state)
{
	uint64_t before = ca_clock_thread_cpu();

	(void)state;
	me->switches.page = NULL;
	me->last_cpu = 0;
	open_experiment(T0, HALF);
	ca_ledger_accrue(me, T0 + 100, NULL);
	assert_in_range(me->last_cpu, before, ca_clock_thread_cpu());
	before = ca_clock_thread_cpu();
	ca_ledger_accrue(me, T0 + 200, NULL);
	assert_in_range(me->last_cpu, before, ca_clock_thread_cpu());
}

/* ... unless the kernel has just told: a reading costs more than many calls. */
static void test_cpu_clock_holds(void **state)
{
	uint64_t now = ca_account_read_cpu(me, ca_clock_now()), cpu = me->cpu_read;

	(void)state;
	assert_int_equal(ca_account_read_cpu(me, now + CA_ACCOUNT_UNSURE - 1), now + CA_ACCOUNT_UNSURE - 1);
	assert_int_equal(me->cpu_read, cpu + CA_ACCOUNT_UNSURE - 1);
	assert_true(ca_account_read_cpu(me, now + CA_ACCOUNT_UNSURE) <= ca_clock_now());
	assert_in_range(me->cpu_read, cpu, ca_clock_thread_cpu());
	me->cpu_known_at = 0; /* it has slept */
	now = me->cpu_read_at + 1;
	cpu = me->cpu_read;
	assert_true(ca_account_read_cpu(me, now) >= now);
	assert_in_range(me->cpu_read, cpu, ca_clock_thread_cpu());
}

/* Off the CPU for a while in between, as the switch log says: nothing is owed for that. */
static void test_preempted(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	off_cpu(0, T0 + 100, T0 + 200);
	owes(T0 + 400, NULL, 150);
	assert_int_equal(me->s_time, 400);
	switched(0, true, T0 + 500);
	owes(T0 + 600, NULL, 200);
	switched(0, false, T0 + 700);
	owes(T0 + 800, NULL, 250);
}

/* The only thread in S is off the CPU, as its switch log says: S does not run. */
static void test_other_preempted(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	atomic_store(&ca_rt.by_slot[1], &thread[1]);
	put(CA_LOG_ENTER, 1, T0);
	off_cpu(1, T0 + 100, T0 + 200);
	off_cpu(0, T0 + 150, T0 + 250);
	owes(T0 + 400, NULL, 125);
	assert_int_equal(me->s_time, 300);
	assert_int_equal(atomic_load(&thread[1].readers), 0);
	/* waiting for the world outside is part of S */
	put(CA_LOG_EXTERNAL, 1, T0 + 400);
	off_cpu(1, T0 + 400, T0 + 500);
	owes(T0 + 500, NULL, 175);
	/* with a second one in S, S goes on */
	ca_ledger_log(CA_LOG_ON, &thread[1], T0 + 500, CA_LOG_EXTERNAL);
	put(CA_LOG_ENTER, 2, T0 + 500);
	off_cpu(1, T0 + 500, T0 + 600);
	owes(T0 + 600, NULL, 225);
	put(CA_LOG_EXIT, 2, T0 + 600);
	off_cpu(1, T0 + 600, T0 + 690);
	owes(T0 + 700, NULL, 230);
}

/* More busy threads than cores: S stops while all that are in it are in the run queue. */
static void test_all_preempted(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	for (uint32_t i = 1; i < SLOTS; i++)
		atomic_store(&ca_rt.by_slot[i], &thread[i]);
	put(CA_LOG_ENTER, 1, T0);
	put(CA_LOG_ENTER, 2, T0);
	off_cpu(1, T0 + 100, T0 + 200);
	off_cpu(2, T0 + 150, T0 + 300);
	owes(T0 + 400, NULL, 175);
	assert_int_equal(me->s_time, 350);
	/* two pieces of one lie in one of the other; the third is off all the time */
	put(CA_LOG_ENTER, 3, T0 + 400);
	put(CA_LOG_OFF, 3, T0 + 400);
	off_cpu(1, T0 + 500, T0 + 900);
	off_cpu(2, T0 + 400, T0 + 600);
	off_cpu(2, T0 + 800, T0 + 950);
	owes(T0 + 1000, NULL, 375);
	/* where one of them is not known it counts as at work */
	atomic_store(&ca_rt.by_slot[2], NULL);
	off_cpu(1, T0 + 1000, T0 + 1100);
	off_cpu(2, T0 + 1000, T0 + 1100);
	owes(T0 + 1100, NULL, 425);
}

/* More threads in S than a replica has room for. */
static void test_crowd_in_s(void **state)
{
	static struct ca_thread one;

	(void)state;
	open_experiment(T0, HALF);
	for (one.number = 1; one.number <= CA_INSIDE + 2; one.number++)
		ca_ledger_log(CA_LOG_ENTER, &one, T0, 0);
	for (one.number = 1; one.number <= CA_INSIDE + 1; one.number++)
		ca_ledger_log(CA_LOG_EXIT, &one, T0 + 100, 0);
	owes(T0 + 200, NULL, 100);
	ca_ledger_log(CA_LOG_EXIT, &one, T0 + 300, 0);
	owes(T0 + 400, NULL, 150);
}

/* A thread in S says that it waits for others. */
static void test_other_waits(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	put(CA_LOG_OFF, 1, T0 + 100);
	put(CA_LOG_ON, 1, T0 + 300);
	owes(T0 + 400, NULL, 100);
	/* late: that time has been accounted for already */
	put(CA_LOG_OFF, 1, T0 + 320);
	put(CA_LOG_ON, 1, T0 + 350);
	owes(T0 + 500, NULL, 150);
	/* what holds now is heard late, too */
	put(CA_LOG_OFF, 1, T0 + 380);
	owes(T0 + 600, NULL, 150);
	put(CA_LOG_ON, 1, T0 + 550);
	owes(T0 + 700, NULL, 200);
}

/* Where S is sampled, a call that may wait for the outside passes for S until it is over. What it turns out not to
 * have waited, but to have been off the CPU for, is given back: as much of it as had been looked at by then. */
static void test_other_did_not_wait(void **state)
{
	(void)state;
	atomic_store(&ca_rt.by_slot[1], &thread[1]);
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 100);
	ca_ledger_log(CA_LOG_EXTERNAL, &thread[1], T0 + 100, UINT64_MAX);
	off_cpu(1, T0 + 120, T0 + 180);
	off_cpu(1, T0 + 190, T0 + 230);
	hit(2, T0 + 110, 1000); /* S goes on anyway ... */
	hit(2, T0 + 130, 2000); /* ... as it turns out not to do here */
	put(CA_LOG_ENTER, 3, T0 + 150);
	hit(2, T0 + 155, 4000); /* another one is at work in it */
	put(CA_LOG_EXIT, 3, T0 + 160);
	owes(T0 + 200, NULL, 50);
	assert_int_equal(me->s_time, 100);
	assert_int_equal(me->lumps.fresh, 0);
	ca_ledger_log(CA_LOG_ON, &thread[1], T0 + 100, CA_LOG_EXTERNAL);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 120, T0 + 180);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 190, T0 + 230);
	put(CA_LOG_EXIT, 1, T0 + 250);
	owes(T0 + 300, NULL, 30);
	assert_int_equal(me->s_time, 60 + 2000);
	assert_int_equal(me->lumps.fresh, 2000);
	atomic_store(&ca_rt.by_slot[1], NULL);
	/* ourselves: there is nothing to owe for meanwhile */
	put(CA_LOG_ENTER, 0, T0 + 400);
	ca_ledger_log(CA_LOG_EXTERNAL, me, T0 + 400, UINT64_MAX);
	off_cpu(0, T0 + 420, T0 + 480);
	hit(2, T0 + 450, 1000);
	ca_ledger_log(CA_LOG_ON, me, T0 + 400, CA_LOG_EXTERNAL);
	ca_ledger_log(CA_LOG_WAS_OFF, me, T0 + 420, T0 + 480);
	put(CA_LOG_EXIT, 0, T0 + 500);
	owes(T0 + 500, NULL, 30);
	assert_int_equal(me->s_time, 60 + 2000 + 40 + 1000);
	assert_int_equal(me->lumps.fresh, 2000);
	/* nobody had looked meanwhile */
	atomic_store(&ca_rt.by_slot[1], &thread[1]);
	put(CA_LOG_ENTER, 1, T0 + 600);
	ca_ledger_log(CA_LOG_EXTERNAL, &thread[1], T0 + 600, UINT64_MAX);
	off_cpu(1, T0 + 620, T0 + 680);
	hit(2, T0 + 650, 500);
	ca_ledger_log(CA_LOG_ON, &thread[1], T0 + 600, CA_LOG_EXTERNAL);
	ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 620, T0 + 680);
	put(CA_LOG_EXIT, 1, T0 + 700);
	owes(T0 + 700, NULL, 30 + 20);
	assert_int_equal(me->s_time, 60 + 2000 + 40 + 1000 + 40 + 500);
	assert_int_equal(me->lumps.fresh, 2500);
	atomic_store(&ca_rt.by_slot[1], NULL);
}

/* We are in S ourselves and wait for others there, as the log says, while we spin and look at the clock: virtual time
 * stands still for as long as S goes on only. */
static void test_own_wait(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 0, T0);
	put(CA_LOG_OFF, 0, T0 + 100);
	owes(T0 + 200, NULL, 0);
	assert_int_equal(me->s_time, 100);
	owes(T0 + 300, &others, 0);
	assert_int_equal(me->s_time, 100);
	put(CA_LOG_ON, 0, T0 + 400);
	owes(T0 + 500, NULL, 0);
	assert_int_equal(me->s_time, 200);
	put(CA_LOG_OFF, 0, T0 + 480); /* late: from here on */
	owes(T0 + 600, NULL, 0);
	assert_int_equal(me->s_time, 200);
	put(CA_LOG_EXIT, 0, T0 + 600);
	put(CA_LOG_ENTER, 0, T0 + 700);
	owes(T0 + 800, NULL, 0);
	assert_int_equal(me->s_time, 300);
}

/* A sleep counts as S for as long as it was to last, not for what the kernel adds. */
static void test_other_sleeps(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	ca_ledger_log(CA_LOG_EXTERNAL, &thread[1], T0 + 100, T0 + 200);
	owes(T0 + 150, NULL, 75);
	owes(T0 + 300, NULL, 100);
	assert_int_equal(me->s_time, 200);
	ca_ledger_log(CA_LOG_ON, &thread[1], T0 + 300, CA_LOG_EXTERNAL);
	owes(T0 + 400, NULL, 150);
	put(CA_LOG_EXTERNAL, 1, T0 + 400); /* no end is known */
	owes(T0 + 600, NULL, 250);
}

static void test_hits(void **state)
{
	(void)state;
	s->selection.exact = 1; /* and timed */
	open_experiment(T0, HALF);
	hit(1, T0 - 10, 1000); /* before it began */
	owes(T0 + 50, NULL, 0);
	hit(1, T0 + 100, 1000);
	owes(T0 + 150, NULL, 500);
	hit(0, T0 + 160, 1000); /* our own */
	owes(T0 + 170, NULL, 500);
	assert_int_equal(me->s_time, 2000);
	put(CA_LOG_ENTER, 0, T0 + 200);
	hit(1, T0 + 250, 1000); /* we are in S, too */
	put(CA_LOG_EXIT, 0, T0 + 300);
	owes(T0 + 350, NULL, 500);
	off_cpu(0, T0 + 400, T0 + 500);
	hit(1, T0 + 450, 1000); /* we did not run */
	hit(1, T0 + 399, 40);
	hit(1, T0 + 500, 60);
	owes(T0 + 600, NULL, 550);
	off_cpu(0, T0 + 610, T0 + 700);
	hit(1, T0 + 650, 1000);
	owes(T0 + 700, &external, 1050);
	hit(1, T0 + 750, 1000);
	owes(T0 + 800, &others, 1050);
}

/* Who spins waits for others. It did not before, and does no more afterwards. */
static void test_spins_at_hits(void **state)
{
	(void)state;
	s->selection.exact = 1; /* and timed */
	open_experiment(T0, HALF);
	me->spins_since = T0 + 200;
	me->spins_until = T0 + 300;
	hit(1, T0 + 199, 1000);
	hit(1, T0 + 200, 1000);
	hit(1, T0 + 300, 1000);
	hit(1, T0 + 301, 1000);
	owes(T0 + 400, NULL, 1000);
	assert_int_equal(me->s_time, 4000);
	me->spins_since = me->spins_until = 0;
}

/* Of samples at which we were in S, too, we do not owe what whoever took them has put down for us. */
static void test_exempt_hits(void **state)
{
	(void)state;
	s->selection.exact = 1; /* and timed */
	open_experiment(T0, HALF);
	hit(1, T0 + 100, 1000);
	atomic_fetch_add(&s->fine[0].exempt, 600);
	owes(T0 + 200, NULL, 200);
}

/* Where S is sampled, a hit is a lump, and what is due for it waits for the meetings. */
static void test_sampled_hits(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	hit(1, T0 + 100, 1000);
	owes(T0 + 200, NULL, 0);
	assert_int_equal(me->lumps.fresh, 1000);
	assert_int_equal(me->s_time, 1000);
	hit(1, T0 + 300, 1000);
	atomic_fetch_add(&s->fine[0].exempt, 600); /* we were in S, too */
	owes(T0 + 400, NULL, 0);
	assert_int_equal(me->lumps.fresh, 1400);
	hit(1, T0 + 500, 1000);
	owes(T0 + 600, &others, 0);
	assert_int_equal(me->lumps.fresh, 1400);
	/* what is over is owed; the next experiment begins with nothing */
	s->experiment.end = T0 + 700;
	atomic_fetch_add(&s->experiment.seq, 1);
	owes(T0 + 800, NULL, 700);
	assert_int_equal(me->lumps.fresh, 0);
	open_experiment(T0 + 900, HALF);
	owes(T0 + 1000, NULL, 0);
}

enum { CYCLE = 500000, HERE = 4096, THERE = 8192 };
static int64_t most;

static int64_t meet_at(uint64_t now, uintptr_t site)
{
	int64_t paid;

	ca_lumps_meet(me, now, site);
	paid = me->owed;
	me->owed = 0;
	most = paid > most ? paid : most;
	return paid;
}

/* Each half ms a meeting, and on the way to it 125 us of S on average: a sample of 1 ms in every eighth cycle, or in
 * two of them together. Paid is all of it, in parts of much the same size. */
static void test_lumps_are_spread(void **state)
{
	int64_t due = 0, sum = 0, late;
	uint64_t now = T0;

	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	for (unsigned i = 0; i < 2000; i++) {
		if (i % 16 == 3 || i % 16 == 4) {
			me->lumps.fresh += (int64_t)MS;
			due += (int64_t)MS / 2;
		}
		if (i == 1000)
			most = 0;
		now += CYCLE;
		sum += meet_at(now, HERE);
	}
	late = due - sum;
	assert_true(late < (int64_t)MS && late > -(int64_t)MS);
	assert_in_range(most, CYCLE / 8, CYCLE / 8 * 3 / 2);
	/* who does not come for long pays all */
	me->lumps.fresh += (int64_t)MS;
	now += 200 * MS;
	assert_in_range(meet_at(now, HERE), MS / 2 + (uint64_t)late - 2000, MS / 2 + (uint64_t)late + 2000);
}

/* Two meetings in a cycle, and what is due has come on the way to one of them. */
static void test_lumps_have_places(void **state)
{
	int64_t here = 0, there = 0;
	uint64_t now = T0;

	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	for (unsigned i = 0; i < 400; i++) {
		if (i % 4 == 0)
			me->lumps.fresh += (int64_t)MS;
		here += meet_at(now += CYCLE, HERE);
		if (i % 16 == 9) { /* a hit while it pays is of that place */
			me->lumps.fresh += (int64_t)MS;
			ca_lumps_paid(me, HERE);
		}
		there += meet_at(now += CYCLE, THERE);
	}
	assert_int_equal(there, 0);
	assert_in_range(here, 55 * MS, 63 * MS);
	/* on its way there it has begun to spin: it waits for others */
	me->lumps.fresh += (int64_t)MS;
	me->spins_until = now + CYCLE - 1000;
	assert_int_equal(meet_at(now += CYCLE, THERE), 0);
	assert_int_equal(me->lumps.fresh, MS);
	me->spins_until = 0;
}

/* More places than there are accounts: what was due at the oldest is owed at once. */
static void test_lumps_of_many_places(void **state)
{
	int64_t sum = 0;
	uint64_t now = T0;

	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	for (unsigned i = 0; i < 3 * CA_LUMP_SITES; i++) {
		me->lumps.fresh += (int64_t)MS;
		sum += meet_at(now += CYCLE, HERE + i);
	}
	assert_int_equal(sum, 3 * CA_LUMP_SITES * MS / 2);
}

/* A thread that runs `routine` ends; `place`, if not NULL: where it pays. Returns what it pays. */
static int64_t end_at(uint64_t now, uintptr_t routine, bool was_in_s, uintptr_t *place)
{
	int64_t paid;
	uintptr_t at;

	me->routine = routine;
	me->history.found[0] = was_in_s;
	at = ca_lumps_last(me, now);
	if (place)
		*place = at;
	paid = at ? meet_at(now, at) : me->owed;
	me->owed = 0;
	ca_lumps_leave(me);
	me->lumps = (struct ca_lumps){ .met = 0 }; /* of the next one */
	return paid;
}

/* As above, but each cycle is a thread of its own, of which one in eight is there when a sample comes. */
static void test_lumps_of_short_threads(void **state)
{
	int64_t due = 0, sum = 0, late;
	uintptr_t place;
	uint64_t now = T0;

	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	for (unsigned i = 0; i < 2000; i++) {
		if (i % 8 == 3) {
			me->lumps.fresh += (int64_t)MS;
			due += (int64_t)MS / 2;
		}
		if (i == 1000)
			most = 0;
		sum += end_at(now += CYCLE, HERE, false, &place);
		assert_int_equal(place, HERE);
	}
	late = due - sum;
	assert_true(late < (int64_t)MS && late > -(int64_t)MS);
	assert_in_range(most, CYCLE / 8, CYCLE / 8 * 3 / 2);
	/* what they owed is nothing in the next experiment */
	s->experiment.end = now;
	atomic_fetch_add(&s->experiment.seq, 1);
	ca_ledger_follow(me);
	open_experiment(now, HALF);
	ca_ledger_follow(me);
	assert_in_range(end_at(now += CYCLE, HERE, false, NULL), CYCLE / 10,
			CYCLE / 6); /* but what is expected */
}

/* Who waits for one that was in S waits for S: it pays at once, as does one of which it is not known what it runs, or
 * for which there is no room. */
static void test_lumps_at_once(void **state)
{
	uint64_t now = T0 + 10000 * MS; /* long after the threads above */

	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	me->lumps.fresh = (int64_t)MS;
	assert_int_equal(end_at(now += CYCLE, 0, false, NULL), MS / 2);
	me->lumps.fresh = (int64_t)MS;
	assert_int_equal(end_at(now += CYCLE, THERE, true, NULL), MS / 2);
	me->lumps.fresh = (int64_t)MS;
	assert_int_equal(end_at(now += CYCLE, THERE, false, NULL), MS / 2);
	end_at(now += CYCLE, 2 * THERE, false, NULL);
	me->lumps.fresh = (int64_t)MS;
	assert_int_equal(end_at(now += CYCLE, 3 * THERE, false, NULL), MS / 2);
}

/* A tick pays what no meeting will. */
static void test_lumps_at_ticks(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	ca_ledger_follow(me);
	me->lumps.fresh = 1000;
	ca_lumps_tick(me, T0);
	assert_int_equal(me->owed, 500);
	me->lumps.fresh = 1000;
	meet_at(T0, HERE);
	me->lumps.fresh = 3000;
	ca_lumps_paid(me, HERE);
	me->lumps.fresh = 2000;
	ca_lumps_tick(me, T0 + 2 * MS); /* the next meeting will */
	assert_int_equal(me->owed, 0);
	ca_lumps_tick(me, T0 + 5 * MS); /* not so soon */
	assert_int_equal(me->owed, 1000);
	ca_lumps_tick(me, T0 + 1000 * MS); /* it does not come to that place any more */
	assert_int_equal(me->owed, 1000 + 1500);
}

static void test_new_selection(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	put(CA_LOG_ENTER, 0, T0 + 50);
	owes(T0 + 100, NULL, 25);
	put(CA_LOG_ENTER, 2, T0 + 150); /* about the old one */
	s->selection.log_start = atomic_load(&s->log_head);
	s->selection.region = 7;
	atomic_store(&s->selection.seq, 4);
	me->checked = true;
	owes(T0 + 200, NULL, 25);
	assert_false(me->checked);
	assert_int_equal(history_of, 7);
	put(CA_LOG_ENTER, 3, T0 + 250);
	owes(T0 + 300, NULL, 50);
	atomic_store(&s->selection.seq, 5); /* being written */
	owes(T0 + 400, NULL, 100);
	/* in what was selected before; its exit may be gone before we pass it */
	me->depth = 1;
	atomic_store(&me->slot->in_s, 1);
	ca_ledger_accrue(me, me->last + 1, NULL);
	assert_int_equal(me->depth, 1);
	atomic_store(&s->selection.seq, 6);
	ca_ledger_accrue(me, me->last + 1, NULL);
	assert_int_equal(me->depth, 0);
	assert_int_equal(atomic_load(&me->slot->in_s), 0);
}

/* Too far behind the log: the slots say who is in S. */
/* An entry of the selection before that came late must not stay in the log of the new one. */
static void test_left_behind(void **state)
{
	(void)state;
	me->depth = 1;
	atomic_store(&me->slot->in_s, CA_IN_S);
	s->selection.log_start = atomic_load(&s->log_head);
	put(CA_LOG_ENTER, 0, T0);
	atomic_fetch_add(&s->selection.seq, 2);
	ca_ledger_follow(me);
	assert_int_equal(me->depth, 0);
	assert_int_equal(atomic_load(&me->slot->in_s), 0);
	assert_int_equal(atomic_load(&s->log_head), s->selection.log_start + 2);
	assert_int_equal(s->log[s->selection.log_start + 1].type, CA_LOG_EXIT);
	assert_int_equal(s->log[s->selection.log_start + 1].thread, 0);
	ca_ledger_follow(me);
	assert_int_equal(atomic_load(&s->log_head), s->selection.log_start + 2);
}

static void test_far_behind(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 3, T0);
	owes(T0 + 100, NULL, 50);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 2 + 1; i++)
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 1, T0 + 110);
	ca_slot_set_add(&s->in_s, 0);
	ca_slot_set_add(&s->in_s, 1); /* it may be, and is not */
	ca_slot_set_add(&s->in_s, 2);
	atomic_store(&s->slot[0].in_s, 1); /* our own does not count */
	owes(T0 + 200, NULL, 50);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 2 + 1; i++)
		put(CA_LOG_EXIT, 1, T0 + 210);
	atomic_store(&s->slot[2].in_s, 1);
	owes(T0 + 300, NULL, 100);
	put(CA_LOG_EXIT, 2, T0 + 350);
	owes(T0 + 400, NULL, 125);
}

/* Who has waited asks others how long S was active, and not the log, nor what S is at just now, also where all others
 * have looked since the wait was over. */
static void test_far_behind_in_a_wait(void **state)
{
	(void)state;
	s->selection.exact = 1;
	open_experiment(T0, HALF);
	owes(T0 + 100, NULL, 0);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 4; i++) {
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 1, T0 + 100 + i * 10);
		if (i % 1024 == 0)
			ca_ledger_accrue(&thread[2], T0 + 100 + i * 10, NULL);
	}
	ca_ledger_accrue(&thread[2], T0 + 300000, NULL);
	/* nothing in the log tells of these; nobody who reads it knows */
	atomic_fetch_add(&s->slot[2].s_time, 7000);
	owes(T0 + 299000, &external, (CA_LOG_ENTRIES / 8 * 10 + 7000) / 2);
	assert_int_equal(me->cursor, atomic_load(&s->log_head));
	/* who has worked has to know when */
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 4; i++)
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 1, T0 + 400000 + i * 10);
	owes(T0 + 400000 + CA_LOG_ENTRIES / 4 * 10, NULL, (CA_LOG_ENTRIES / 4 * 10 + 7000) / 2);
	/* and where S is timed, the log alone tells what came since the last tick */
	s->selection.fine = 1;
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 4; i++)
		hit(1, T0 + 600000 + i * 10, 4);
	owes(T0 + 800000, &external, (CA_LOG_ENTRIES / 4 * 14 + 7000) / 2);
}

/* Who has it from the log is asked, and not who was told himself, though he has looked later: each lacks what came between. */
static void test_who_is_asked(void **state)
{
	uint64_t end = T0 + 100 + CA_LOG_ENTRIES / 4 * 10;

	(void)state;
	s->selection.exact = 1;
	open_experiment(T0, HALF);
	owes(T0 + 100, NULL, 0);
	ca_ledger_accrue(&thread[3], T0 + 100, NULL);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 4; i++)
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 1, T0 + 100 + i * 10);
	ca_ledger_accrue(&thread[2], end, NULL);
	assert_int_equal(atomic_load(&s->slot[2].s_heard), 0);
	ca_ledger_accrue(&thread[3], end + 5000, &external);
	assert_int_equal(atomic_load(&s->slot[3].s_heard), 1);
	atomic_store(&s->slot[3].s_time, 7);
	owes(end + 5000, &external, CA_LOG_ENTRIES / 8 * 10 / 2);
}

/* However much those off a CPU tell at once, the log is not walked back for ever. */
static void test_much_to_take_back(void **state)
{
	struct timespec began, ended;

	(void)state;
	open_experiment(T0, HALF);
	owes(T0 + 100, NULL, 0);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 4; i++) {
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 2, T0 + 100 + i * 10);
		ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 100, T0 + 100 + i * 10);
	}
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
	owes(T0 + 100 + CA_LOG_ENTRIES / 4 * 10, NULL, CA_LOG_ENTRIES / 8 * 10 / 2);
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
	/* 1 to 3 ms; each as far as FAR_BACK would be seconds */
	assert_true((ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec < 200000000);
}

/* Nor is anything taken back of what it was not walked back to: the others were at work there. */
static void test_too_far_to_take_back(void **state)
{
	uint64_t at = T0 + 300;

	(void)state;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0 + 100);
	put(CA_LOG_OFF, 1, T0 + 200);
	for (unsigned i = 0; i < 3000; i++, at += 20) {
		put(CA_LOG_ENTER, 2, at);
		put(CA_LOG_EXIT, 2, at + 10);
	}
	put(CA_LOG_ON, 1, at);
	for (unsigned i = 0; i < 2; i++)
		ca_ledger_log(CA_LOG_WAS_OFF, &thread[1], T0 + 200, at);
	owes(at + 100, NULL, (100 + 3000 * 10 + 100) / 2);
	assert_int_equal(me->s_time, 100 + 3000 * 10 + 100);
}

/* ... and one thread, how long S was active: nobody goes through all of thousands. */
static void test_far_behind_of_many(void **state)
{
	(void)state;
	/* memory in which nobody has anything to look for */
	atomic_store(&s->slots_used, SLOTS + 100);
	assert_int_equal(mprotect(&s->slot[SLOTS], 100 * sizeof *s->slot, PROT_NONE), 0);
	open_experiment(T0, HALF);
	owes(T0 + 100, NULL, 0);
	put(CA_LOG_ENTER, 2, T0 + 100);
	for (uint32_t i = 0; i < CA_LOG_ENTRIES / 2 + 1; i++) {
		put(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, 3, T0 + 110);
		if (i % 1024 == 0)
			ca_ledger_accrue(&thread[1], T0 + 110, NULL);
	}
	ca_ledger_accrue(&thread[1], T0 + 100 * MS, NULL);
	assert_int_equal(atomic_load(&s->seer), 1);
	ca_slot_set_add(&s->in_s, 2);
	atomic_store(&s->slot[2].in_s, CA_IN_S);
	ca_ledger_accrue(me, T0 + 100 * MS + 1000, NULL);
	assert_int_equal(me->s_time, atomic_load(&s->slot[1].s_time) + 1000);
	/* who is seer looks that up, and may be it again */
	ca_ledger_accrue(me, T0 + 101 * MS, NULL);
	assert_int_equal(atomic_load(&s->seer), 0);
}

/* A writer was interrupted between taking its number and publishing; we come back for it. */
static void test_unpublished(void **state)
{
	struct ca_log_entry *hole;

	(void)state;
	open_experiment(T0, HALF);
	hole = &s->log[atomic_fetch_add(&s->log_head, 1)];
	put(CA_LOG_ENTER, 2, T0 + 150);
	owes(T0 + 200, NULL, 0);
	*hole = (struct ca_log_entry){ .time = T0 + 100, .thread = 1, .type = CA_LOG_ENTER };
	atomic_store(&hole->seq, 1);
	owes(T0 + 300, NULL, 50);
	put(CA_LOG_EXIT, 1, T0 + 300);
	put(CA_LOG_EXIT, 2, T0 + 400);
	owes(T0 + 500, NULL, 100);
}

static void test_dead_writer(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	atomic_fetch_add(&s->log_head, 1);
	for (int i = 2; i < CA_LOG_HOLE; i++)
		put(CA_LOG_ENTER, 1, T0 + 100);
	owes(T0 + 100, NULL, 0); /* it may still come */
	put(CA_LOG_ENTER, 1, T0 + 100);
	owes(T0 + 200, NULL, 50);
}

/* Without a switch log, the share of the CPU that we got scales what we owe. */
static void test_no_switch_log(void **state)
{
	(void)state;
	me->switches.page = NULL;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	owes(T0, NULL, 0);
	me->last_cpu = ca_clock_thread_cpu() - 250 * MS;
	ca_ledger_accrue(me, T0 + 1000 * MS, NULL);
	assert_in_range(me->owed, 125 * MS, 200 * MS);
	me->owed = 0;
	owes(T0 + 2000 * MS, &external, (int64_t)(500 * MS));
	me->last_cpu = ca_clock_thread_cpu() - 3000 * MS;
	owes(T0 + 3000 * MS, NULL, (int64_t)(1000 * MS));
}

/* It lost the CPU between its look at the clock and its look at the log, which leads further. */
static void test_no_switch_log_beyond_now(void **state)
{
	(void)state;
	me->switches.page = NULL;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	owes(T0, NULL, 0);
	put(CA_LOG_EXIT, 1, T0 + 1000 * MS);
	me->last_cpu = ca_clock_thread_cpu() - 10 * MS;
	ca_ledger_accrue(me, T0 + 10 * MS, NULL);
	assert_in_range(me->owed, 5 * MS, 50 * MS);
}

/* What is heard late is taken back for the time that the thread was on a CPU itself, whatever its share is now. */
static void test_no_switch_log_heard_late(void **state)
{
	int64_t before;

	(void)state;
	me->switches.page = NULL;
	open_experiment(T0, HALF);
	put(CA_LOG_ENTER, 1, T0);
	owes(T0, NULL, 0);
	me->last_cpu = ca_clock_thread_cpu() - 3000 * MS;
	owes(T0 + 1000 * MS, NULL, (int64_t)(500 * MS)); /* on it all the time ... */
	me->last_cpu = ca_clock_thread_cpu();
	ca_ledger_accrue(me, T0 + 2000 * MS, NULL); /* ... and off it all the time */
	before = me->owed;
	assert_in_range(before, 500 * MS, 550 * MS);
	ca_selection_append(&s->log_head, s->log, CA_LOG_WAS_OFF, 1, T0 + 500 * MS, T0 + 1500 * MS);
	me->last_cpu = ca_clock_thread_cpu();
	ca_ledger_accrue(me, T0 + 3000 * MS, NULL);
	assert_in_range(me->owed, before - (int64_t)(260 * MS), before - (int64_t)(200 * MS));
}

/* The longest look that is scaled; beyond, the product of the two times might not fit. */
static void test_no_switch_log_for_long(void **state)
{
	static const struct {
		uint64_t wall;
		bool scaled;
	} cases[] = {
		{ 3999 * MS, true }, { 4000 * MS, true }, { 4000 * MS + 1, false }, { 9000 * MS, false }
	};

	(void)state;
	me->switches.page = NULL;
	put(CA_LOG_ENTER, 1, T0);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		int64_t all = (int64_t)cases[i].wall;

		open_experiment(me->last, CA_MILLION);
		owes(me->last, NULL, 0);
		me->last_cpu = ca_clock_thread_cpu() - 1000 * MS;
		ca_ledger_accrue(me, me->last + cases[i].wall, NULL);
		if (cases[i].scaled)
			assert_in_range(me->owed, 1000 * MS, all - 1);
		else
			assert_int_equal(me->owed, all);
		atomic_fetch_add(&s->experiment.seq, 1);
	}
}

static void test_virtual_time(void **state)
{
	(void)state;
	open_experiment(T0, HALF);
	assert_int_equal(ca_ledger_virtual(me, T0), 0);
	assert_int_equal(ca_ledger_virtual(me, T0 + 100), 100);
	put(CA_LOG_ENTER, 1, T0 + 100);
	assert_int_equal(ca_ledger_virtual(me, T0 + 200), 150);
	put(CA_LOG_EXIT, 1, T0 + 300);
	assert_int_equal(ca_ledger_virtual(me, T0 + 400), 300);
	/* in S ourselves, and not on the CPU all the time */
	put(CA_LOG_ENTER, 0, T0 + 400);
	assert_int_equal(ca_ledger_virtual(me, T0 + 600), 400);
	off_cpu(0, T0 + 600, T0 + 700);
	assert_int_equal(ca_ledger_virtual(me, T0 + 700), 500);
	me->waiting = &others;
	off_cpu(0, T0 + 700, T0 + 800);
	assert_int_equal(ca_ledger_virtual(me, T0 + 800), 600);
	me->waiting = &external;
	off_cpu(0, T0 + 800, T0 + 900);
	assert_int_equal(ca_ledger_virtual(me, T0 + 900), 650);
	assert_int_equal(ca_ledger_virtual(me, T0 - 100), 0);
	/* a wait for others is none of S, even on the CPU: the log says the same to them */
	me->waiting = &others;
	assert_int_equal(ca_ledger_virtual(me, T0 + 1000), 750);
}

/* ---- paying ------------------------------------------------------------------------------*/
/* Now, in an open experiment, with this debt. Returns now. */
static uint64_t in_debt(uint64_t ns)
{
	uint64_t now = ca_clock_now();

	me->last = now;
	open_experiment(now, HALF);
	owes(now, NULL, 0);
	me->owed = (int64_t)ns;
	return now;
}

static uint64_t paid(void)
{
	return atomic_load(&me->slot->paid);
}

static void test_pay(void **state)
{
	uint64_t now = ca_clock_now(), took;

	(void)state;
	me->last = now - 20 * MS;
	open_experiment(now - 20 * MS, HALF);
	put(CA_LOG_ENTER, 1, now - 15 * MS);
	put(CA_LOG_EXIT, 1, now - 5 * MS);
	ca_ledger_pay(me);
	took = ca_clock_now() - now;
	assert_in_range(paid(), 5 * MS - 1000, took);
	assert_in_range(took, 5 * MS - 1000, 1000 * MS);
	assert_int_equal(me->owed, (int64_t)(5 * MS) - (int64_t)paid());
	assert_int_equal(atomic_load(&me->slot->owed), me->owed > 0 ? me->owed : 0);
	assert_int_equal(atomic_load(&me->slot->spun), paid());
	assert_true(asked > 0);
	assert_int_equal(delays, 1);
	assert_int_equal(delay, paid());
	assert_int_equal(delay_how, CA_DELAY_SPUN);
	/* all paid: nothing more */
	took = paid();
	ca_ledger_pay(me);
	assert_int_equal(paid(), took);
}

/* The other is still in S: paying takes time in which we come to owe more. */
static void test_pay_meanwhile(void **state)
{
	uint64_t start = in_debt(2 * MS);
	int64_t wanted;

	(void)state;
	put(CA_LOG_ENTER, 1, start);
	ca_ledger_pay(me);
	wanted = (int64_t)(2 * MS + (me->last - start) / 2);
	assert_in_range(me->owed + (int64_t)paid() + 5000, wanted, wanted + 10000);
	assert_true(paid() >= 2 * MS * 19 / 10);
}

/* What an external wait has earned is waited for, not burnt. */
static void test_wait_on(void **state)
{
	uint64_t start = in_debt(20 * MS), cpu = ca_clock_thread_cpu();

	(void)state;
	atomic_store(&s->slot[1].state, CA_SLOT_LIVE); /* somebody is at work */
	put(CA_LOG_ENTER, 1, start);
	put(CA_LOG_EXIT, 1, start + 10 * MS);
	assert_in_range(ca_ledger_wait_on(me), 25 * MS - 200000, UINT64_MAX);
	assert_true(paid() >= 25 * MS - 200000);
	assert_true(me->owed < 200000);
	assert_true(ca_clock_thread_cpu() - cpu < 10 * MS);
	assert_int_equal(me->guard, 0);
}

/* While nobody else is at work virtual time catches up instead: with all that lags, and no more. */
static void test_catch_up(void **state)
{
	uint64_t start = in_debt(0), v;

	(void)state;
	s->settled_delay = 3 * MS;
	me->settled = 3 * MS;
	put(CA_LOG_ENTER, 1, start - 10 * MS);
	me->last = start - 10 * MS;
	s->experiment.start = me->start = start - 10 * MS;
	put(CA_LOG_EXIT, 1, start);
	assert_int_equal(ca_ledger_lag(me, start), 8 * MS);
	v = ca_ledger_virtual(me, start);
	me->owed = (int64_t)(6 * MS);
	assert_int_equal(ca_ledger_wait_on(me), 0);
	assert_int_equal(me->owed, 0);
	assert_int_equal(paid(), 0);
	assert_int_equal(ca_ledger_lag(me, start), 2 * MS);
	assert_int_equal(ca_ledger_virtual(me, start) - v, 6 * MS);
	assert_int_equal(atomic_load(&s->caught_up), 6 * MS);
	me->owed = (int64_t)(2 * MS + 500);
	assert_int_equal(ca_ledger_wait_on(me), 0);
	assert_int_equal(me->owed, 500);
	assert_int_equal(ca_ledger_lag(me, start), 0);
	assert_int_equal(ca_session_lag(s), 0); /* not below */
}

/* At 100 %, while S goes on and on, a debt never gets smaller; the program must, now and then. */
static void test_wait_on_in_vain(void **state)
{
	uint64_t start = in_debt(20 * MS), slept;

	(void)state;
	me->speedup = 1000000;
	atomic_store(&s->slot[1].state, CA_SLOT_LIVE);
	put(CA_LOG_ENTER, 1, start);
	slept = ca_ledger_wait_on(me);
	assert_in_range(slept, 900 * MS, 3000 * MS);
	assert_in_range(me->owed, 19 * MS, 30 * MS);
}

static void test_wait_on_small(void **state)
{
	(void)state;
	in_debt(150000);
	atomic_store(&s->slot[1].state, CA_SLOT_LIVE);
	ca_ledger_wait_on(me);
	assert_int_equal(paid(), 0);
	assert_int_equal(me->owed, 150000);
}

static void test_pay_small(void **state)
{
	(void)state;
	in_debt(999);
	ca_ledger_pay(me);
	assert_int_equal(paid(), 0);
	assert_int_equal(me->owed, 999);
	assert_int_equal(atomic_load(&me->slot->owed), 999);
}

static void test_pay_later(void **state)
{
	(void)state;
	in_debt(3 * MS);
	me->depth = 1;
	ca_ledger_pay(me);
	me->depth = 0;
	me->sampled_in = true;
	ca_ledger_pay(me);
	me->sampled_in = false;
	atomic_store(&ca_rt.on, false);
	ca_ledger_pay(me);
	assert_int_equal(paid(), 0);
	assert_int_equal(atomic_load(&me->slot->owed), 3 * MS);
	atomic_store(&ca_rt.on, true);
	ca_ledger_pay(me);
	assert_true(paid() >= 3 * MS - 1000);
}

/* A minute of debt: the program gets a turn in between. */
static void test_pay_longest(void **state)
{
	uint64_t took = in_debt(60000 * MS);

	(void)state;
	ca_ledger_pay(me);
	took = ca_clock_now() - took;
	assert_in_range(took, 50 * MS, 5000 * MS);
	assert_in_range(paid(), 50 * MS, took);
	assert_int_equal(me->owed, 60000 * MS - paid());
}

/* ---- U: how long anybody was paying --------------------------------------------------------*/
/* Overlaps count once, also the interval that is still open. */
static void test_paying_union(void **state)
{
	struct ca_slot *a = &s->slot[0], *b = &s->slot[1];
	uint64_t before = ca_paying_read(s, T0);

	(void)state;
	ca_paying_begin(s, a, T0 + 100);
	ca_paying_begin(s, a, T0 + 120); /* goes on */
	ca_paying_begin(s, b, T0 + 150);
	assert_int_equal(ca_paying_between(before, ca_paying_read(s, T0 + 160)), 60);
	ca_paying_end(s, a, T0 + 200);
	ca_paying_end(s, a, T0 + 210); /* has ended */
	ca_paying_end(s, b, T0 + 250);
	assert_int_equal(ca_paying_between(before, ca_paying_read(s, T0 + 1000)), 150);
	ca_paying_begin(s, b, T0 + 2000);
	before = ca_paying_read(s, T0 + 2010);
	ca_paying_end(s, b, T0 + 2100);
	assert_int_equal(ca_paying_between(before, ca_paying_read(s, T0 + 3000)), 90);
	/* the word holds ns modulo 2^50 */
	before = ca_paying_read(s, T0);
	ca_paying_begin(s, a, (UINT64_C(1) << 50) - 10);
	ca_paying_end(s, a, (UINT64_C(1) << 50) + 30);
	assert_int_equal(ca_paying_between(before, ca_paying_read(s, T0)), 40);
}

enum { PAYERS = 4, TIMES = 20000 };
static _Atomic int ready;

static void *pay_often(void *slot)
{
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) < PAYERS)
		;
	for (int i = 0; i < TIMES; i++) {
		ca_paying_begin(s, slot, ca_clock_now());
		ca_paying_end(s, slot, ca_clock_now());
	}
	return NULL;
}

/* Nothing is lost between threads: one pays all the time, and others come and go. */
static void test_paying_races(void **state)
{
	uint64_t start = ca_clock_now(), before = ca_paying_read(s, start), end;
	pthread_t id[PAYERS];

	(void)state;
	ca_paying_begin(s, &s->slot[0], start);
	atomic_store(&ready, 1);
	for (int i = 1; i < PAYERS; i++)
		assert_int_equal(pthread_create(&id[i], NULL, pay_often, &s->slot[i]), 0);
	for (int i = 1; i < PAYERS; i++)
		pthread_join(id[i], NULL);
	end = ca_clock_now();
	ca_paying_end(s, &s->slot[0], end);
	assert_int_equal(ca_paying_between(before, ca_paying_read(s, end)), end - start);
	assert_int_equal(s->paying & CA_PAYING_COUNT, 0);
}

static uint64_t paying(void)
{
	return ca_paying_between(0, ca_paying_read(s, ca_clock_now()));
}

static void test_paying_is_counted(void **state)
{
	uint64_t before = paying(), start;

	(void)state;
	start = in_debt(3 * MS);
	ca_ledger_pay(me);
	assert_in_range(paying() - before, paid(), ca_clock_now() - start);
	assert_int_equal(me->slot->paying_more, 0);
	before = paying();
	me->owed = 1500; /* too little for the word that all share */
	ca_ledger_pay(me);
	assert_in_range(me->slot->paying_more, 1500, 100 * MS);
	assert_int_equal(paying() - before, me->slot->paying_more);
	/* a nap that a handler of the program's has left by longjmp */
	ca_paying_begin(s, me->slot, ca_clock_now());
	me->owed = 0;
	ca_ledger_pay(me);
	before = paying();
	assert_int_equal(me->slot->paying, 0);
	assert_int_equal(paying(), before);
}

/* Who waits for a time that moves is slowed without paying. */
static void test_paying_limit(void **state)
{
	(void)state;
	in_debt(0);
	ca_ledger_limit(me, me->limit + 5000, UINT64_MAX);
	assert_int_equal(me->slot->limited, 5000);
	ca_ledger_limit(me, me->limit + 5000, 2000); /* it has waited no longer */
	assert_int_equal(me->slot->limited, 7000);
	ca_ledger_limit(me, me->limit, UINT64_MAX);
	assert_int_equal(me->slot->limited, 7000);
	atomic_fetch_add(&s->experiment.seq, 1);
	ca_ledger_follow(me);
	ca_ledger_limit(me, me->limit + 5000, UINT64_MAX);
	assert_int_equal(me->slot->limited, 7000);
}

static void test_pay_conductor_gone(void **state)
{
	(void)state;
	in_debt(60000 * MS);
	gone = true;
	ca_ledger_pay(me);
	assert_int_equal(asked, 1);
	assert_int_equal(me->owed, 0);
	assert_int_equal(atomic_load(&me->slot->owed), 0);
	assert_in_range(paid(), 1, 5000 * MS);
}

/* What passes while we are off the CPU is not paid; a thread that never runs gives up. */
static void test_pay_in_vain(void **state)
{
	uint64_t now = ca_clock_now();

	(void)state;
	switched(0, true, now);
	in_debt(60000 * MS);
	ca_ledger_pay(me);
	assert_int_equal(paid(), 0);
	assert_int_equal(me->owed, 60000 * MS);
	assert_int_equal(asked, 3);
}

/* Without a switch log, holes in the clock tell when we did not run. */
static void test_pay_no_switch_log(void **state)
{
	uint64_t began;

	(void)state;
	me->switches.page = NULL;
	began = in_debt(3 * MS);
	ca_ledger_pay(me);
	assert_in_range(paid(), 3 * MS - 1000, ca_clock_now() - began);
	assert_int_equal(me->owed, (int64_t)(3 * MS) - (int64_t)paid());
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_outside),
		TEST(test_taken_back),
		TEST(test_two_books),
		TEST(test_behind_its_time),
		TEST(test_told_when_it_is_over),
		TEST(test_told_by_itself),
		TEST(test_off_in_s_with_others),
		TEST(test_parts),
		TEST(test_in_parts),
		TEST(test_parts_off),
		TEST(test_parts_hits),
		TEST(test_speedups),
		TEST(test_no_experiment),
		TEST(test_waits),
		TEST(test_in_s),
		TEST(test_two_in_s),
		TEST(test_one_of_two_leaves),
		TEST(test_cpu_clock_is_read),
		TEST(test_cpu_clock_holds),
		TEST(test_preempted),
		TEST(test_other_preempted),
		TEST(test_all_preempted),
		TEST(test_crowd_in_s),
		TEST(test_other_waits),
		TEST(test_own_wait),
		TEST(test_other_did_not_wait),
		TEST(test_other_sleeps),
		TEST(test_hits),
		TEST(test_spins_at_hits),
		TEST(test_exempt_hits),
		TEST(test_sampled_hits),
		TEST(test_lumps_are_spread),
		TEST(test_lumps_have_places),
		TEST(test_lumps_of_many_places),
		TEST(test_lumps_of_short_threads),
		TEST(test_lumps_at_once),
		TEST(test_lumps_at_ticks),
		TEST(test_new_selection),
		TEST(test_left_behind),
		TEST(test_far_behind),
		TEST(test_far_behind_in_a_wait),
		TEST(test_who_is_asked),
		TEST(test_much_to_take_back),
		TEST(test_too_far_to_take_back),
		TEST(test_far_behind_of_many),
		TEST(test_unpublished),
		TEST(test_dead_writer),
		TEST(test_no_switch_log),
		TEST(test_no_switch_log_for_long),
		TEST(test_no_switch_log_beyond_now),
		TEST(test_no_switch_log_heard_late),
		TEST(test_virtual_time),
		TEST(test_pay),
		TEST(test_pay_meanwhile),
		TEST(test_stand_still),
		TEST(test_stands_still),
		TEST(test_wait_on),
		TEST(test_wait_on_in_vain),
		TEST(test_wait_on_small),
		TEST(test_catch_up),
		TEST(test_pay_small),
		TEST(test_pay_later),
		TEST(test_pay_longest),
		TEST(test_pay_conductor_gone),
		TEST(test_pay_in_vain),
		TEST(test_pay_no_switch_log),
		TEST(test_paying_union),
		TEST(test_paying_races),
		TEST(test_paying_is_counted),
		TEST(test_paying_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

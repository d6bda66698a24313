/* SPDX-License-Identifier: MIT */
/* causal/runtime/fine.c: hits of what the generated probes add up, who shares them, and what others owe
 * for them. The probes' part is played here; the ledger is real. */
#include "causal/runtime/catch_up.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/patch.h"
#include "core/cpu.h"
#include "tests/unit/runtime.h"
#include <inttypes.h>
#include <linux/perf_event.h>

enum { US = 1000, FULL = 1000000 };
static const enum ca_wait others = CA_WAIT_OTHERS;
static double cycles_per_ns;

static void measure_cycles(void)
{
	uint64_t ns = ca_clock_now(), cycles = ca_cpu_cycles(), now;

	while ((now = ca_clock_now()) - ns < 2000 * US)
		;
	cycles_per_ns = (double)(ca_cpu_cycles() - cycles) / (double)(now - ns);
}

static uint64_t cycles(uint64_t ns)
{
	return (uint64_t)((double)ns * cycles_per_ns);
}

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	ca_fine_init();
	measure_cycles();
	s->selection.fine = s->selection.exact = 1;
	ca_fine_join(me);
	for (uint32_t i = 1; i < RT_THREADS; i++) {
		atomic_store(&s->fine[i].selection, 2);
		ca_slot_set_add(&s->timed, i);
	}
	rt_open_experiment(FULL);
	ca_ledger_follow(me);
	return 0;
}

static int tear_down(void **state)
{
	assert_ptr_equal(ca_patch_fine, &s->fine[0]);
	ca_patch_fine = &ca_patch_fine_nobody;
	return rt_tear_down(state);
}

/* A visit that is over now. */
static void visit(struct ca_thread *t, uint64_t ns)
{
	uint64_t now = ca_cpu_cycles();

	t->fine->entered = now - cycles(ns);
	t->fine->left = now;
	t->fine->sum += (int64_t)cycles(ns);
	t->fine->visits++;
}

static uint64_t logged(void)
{
	return atomic_load(&s->log_head);
}

/* Entries of hits in the log; where probes have something to tell it stands behind a hit. */
static uint64_t hits(void)
{
	static uint64_t seen, probes;

	if (seen > logged())
		seen = probes = 0;
	for (; seen < logged(); seen++)
		probes += s->log[seen].type == CA_LOG_PROBES;
	return seen - probes;
}

static const struct ca_log_entry *last_hit(void)
{
	return rt_logged(logged() - 1 - (s->log[logged() - 1].type == CA_LOG_PROBES), CA_LOG_HIT, 0);
}

static uint64_t sum_of(enum ca_log_type type)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < logged(); i++)
		if (s->log[i].type == CA_LOG_PROBES || type == CA_LOG_HIT)
			sum += s->log[i].type == type ? rt_logged(i, type, s->log[i].thread)->value : 0;
	return sum;
}

static uint64_t mass(void)
{
	return sum_of(CA_LOG_HIT);
}

/* What the probes do at a visit's exit: timed, or only counted. */
static void pass(struct ca_thread *t, uint64_t ns)
{
	if (t->fine->counting) {
		t->fine->visits++;
		if (!--t->fine->counting)
			ca_fine_due(t);
	} else {
		visit(t, ns);
		if (t->fine->sum >= t->fine->limit)
			ca_fine_due(t);
	}
	t->fine_cost = 0; /* the machine may be slow */
}

static void spin(uint64_t ns)
{
	uint64_t until = ca_cpu_cycles() + cycles(ns);

	while (ca_cpu_cycles() < until)
		;
}

/* Some 25 us of S a hit, each of which stands for what has been added up, and for what was only counted before; drawn anew
 * each time. Of many short visits a quarter is timed, of few long ones each. (All of them are a us apart here: how many are
 * timed of those that come faster is tested below.) */
static void hits_of_visits(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned part;
	} cases[] = { { 200, 4 }, { 1 * US, 4 }, { 4 * US, 1 } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		uint64_t limits = 0, first = me->fine_limit, total = 0, timed = 0,
			 mean = 25000 / cases[i].part, in_no_hit = 0, last, apart = 0, told = 0;

		if (i)
			assert_int_equal(set_up(state), 0);
		last = ca_clock_now();
		while (hits() < 400) {
			uint64_t n = hits(), whole = me->fine_limit + in_no_hit, before = ca_clock_now();

			spin(1 * US); /* those that come faster are timed more seldom */
			apart += ca_clock_now() - before;
			timed += !me->fine->counting;
			in_no_hit += me->fine->counting ? cases[i].ns : 0;
			pass(me, cases[i].ns);
			total += cases[i].ns;
			if (hits() != n) {
				assert_int_equal(hits(), n + 1);
				assert_in_range(last_hit()->value, whole / 2, whole * 9 / 8);
				/* visits take no time here: what else passes is the hooks' */
				assert_true(me->fine_probes <= told + ca_clock_now() - last - apart);
				told = me->fine_probes;
				last = before; /* what that hook took is part of the next hit */
				apart = 0;
				assert_true(last_hit()->time <= ca_clock_now());
				in_no_hit = 0;
			}
			if (hits() == 10)
				limits = 0;
			if (hits() > 10)
				assert_in_range(me->fine_limit, mean / 2, mean * 3 / 2);
			limits += me->fine_limit != first;
		}
		assert_true(limits > 1000);
		assert_in_range(total / hits(), 20 * US, 30 * US);
		assert_in_range(mass(), total * 3 / 4, total + total / 8);
		assert_in_range(timed * cases[i].ns * cases[i].part, total * 9 / 10, total * 12 / 10);
		if (i + 1 < CA_COUNT(cases))
			assert_int_equal(tear_down(state), 0);
	}
}

enum { S = 800, LENGTH = 1000, TRIES_OF_ALL = 30 };

/* Visits of which one is timed, if they are so far apart, and take so much longer where they are. */
static uint64_t timed_one_of(void **state, uint64_t apart, uint64_t cost)
{
	uint64_t timed = 0, n = 0;

	assert_int_equal(tear_down(state), 0);
	assert_int_equal(set_up(state), 0);
	for (; hits() < 400; n += hits() > 100, timed += hits() > 100 && !me->fine->counting) {
		spin(apart + (me->fine->counting ? 0 : cost));
		pass(me, 100);
	}
	return n / timed;
}

/* Visits that come fast are timed so seldom that this takes a fiftieth of the time, but one in 64. There is no log of when
 * others had the CPU here: beside them it may take some tries. */
static void seldom_timed(void **state)
{
	static const struct {
		uint64_t apart, cost, least, most; /* ns; visits of which one is timed */
	} cases[] = { { 3000, 50, 4, 7 }, { 150, 100, 8, 65 }, { 100, 400, 12, 65 } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		uint64_t one_of = 0;
		unsigned tries = 0;

		for (; tries < TRIES_OF_ALL && (one_of < cases[i].least || one_of > cases[i].most); tries++)
			one_of = timed_one_of(state, cases[i].apart, cases[i].cost);
		if (one_of < cases[i].least || one_of > cases[i].most)
			fail_msg("%zu: one of %" PRIu64, i, one_of);
	}
}

/* ns of S that a visit is taken to be whose time stamps are so far apart, if it takes so much longer where it is timed. */
static uint64_t mean_of(void **state, uint64_t cost)
{
	uint64_t n;

	assert_int_equal(tear_down(state), 0);
	assert_int_equal(set_up(state), 0);
	for (n = 0; hits() < 2000; n++) {
		spin(LENGTH + (me->fine->counting ? 0 : cost));
		pass(me, S);
	}
	return mass() / n;
}

static bool is_near(uint64_t value, uint64_t wanted)
{
	return value + S / 8 >= wanted && value <= wanted + S / 8;
}

/* So much of what is between its time stamps is none of S, whatever probes are known to cost. There is no log of when others
 * had the CPU here: beside them it may take some tries. */
static void what_probes_cost(void **state)
{
	for (unsigned i = 0; i < TRIES_OF_ALL; i++) {
		/* what this test itself does for a visit that is timed costs some time, too */
		uint64_t without = mean_of(state, 0);

		if (without >= S / 2 && without <= S + S / 8 && is_near(mean_of(state, 200) + 200, without) &&
		    is_near(mean_of(state, 400) + 400, without))
			return;
	}
	fail();
}

/* While visits are only counted there are no times, and what a tick finds in S adds nothing. */
static void counted(void **state)
{
	uint64_t before;

	(void)state;
	for (unsigned i = 0; i < 1000 && !me->fine->counting; i++)
		pass(me, 200);
	assert_true(me->fine->counting);
	me->fine->outer = 1;
	me->fine->entered = ca_cpu_cycles() - cycles(900 * US);
	before = hits();
	ca_fine_tell(me);
	assert_int_equal(me->fine->outer, 1);
	assert_true(me->fine->sum < me->fine->limit);
	assert_int_equal(hits(), before);
	/* with another selection all begins anew */
	atomic_store(&s->selection.seq, 4);
	ca_ledger_follow(me);
	assert_int_equal(me->fine->selection, 2);
	pass(me, 200);
	assert_int_equal(me->fine->selection, 4);
	assert_int_equal(me->fine->counting, 0);
}

/* The instants lie within it, in order, as far apart as the limits. */
static void a_long_visit(void **state)
{
	uint64_t now, last = 0;

	(void)state;
	now = ca_clock_now();
	visit(me, 500 * US);
	ca_fine_due(me);
	assert_in_range(hits(), 500 / 38, 500 / 12);
	for (uint64_t i = 0; i < hits(); i++) {
		assert_in_range(s->log[i].time, now - 501 * US, now + 100 * US);
		assert_true(s->log[i].time > last);
		last = s->log[i].time;
	}
}

static void nothing_without_an_experiment(void **state)
{
	(void)state;
	atomic_fetch_add(&s->experiment.seq, 1);
	visit(me, 500 * US);
	ca_fine_due(me);
	assert_int_equal(hits(), 0);
	assert_true(me->fine->sum < me->fine->limit);
}

static void switched(struct ca_thread *t, bool out, uint64_t time)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)switch_log[t->number];
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record = { { PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, sizeof record }, time };

	memcpy(switch_log[t->number] + RT_PAGE + page->data_head, &record, sizeof record);
	page->data_head += sizeof record;
}

/* While it was preempted in S, S stood still. */
static void preempted_in_a_visit(void **state)
{
	uint64_t now, off = 0;

	(void)state;
	now = ca_clock_now();
	switched(me, true, now - 9000 * US);
	switched(me, false, now - 1000 * US);
	visit(me, 9500 * US);
	ca_fine_due(me);
	assert_in_range(hits(), 1400 / 38, 1600 / 12);
	for (uint64_t i = 0; i < hits(); i++)
		off += s->log[i].time > now - 8990 * US && s->log[i].time < now - 1010 * US;
	assert_int_equal(off, 0);
}

/* n threads in S at that instant share the hit, and those do not owe for it. */
static void shared(void **state)
{
	static const struct {
		int64_t entered, left; /* ns before the end of the visit; left < 0: it is still in S */
		uint64_t selection;
		bool preempted, in, counting;
	} cases[] = {
		{ 900 * US, -1, 2, false, true },        { 900 * US, -1, 4, false, false },
		{ 900 * US, -1, 2, true, false },        { 900 * US, 0, 2, false, true },
		{ 900 * US, 800 * US, 2, false, false }, { 0, -1, 2, false, false },
		{ 0, -1, 2, false, true, true },         { 900 * US, 0, 2, false, false, true },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_fine *other;
		uint64_t now, alone;

		assert_int_equal(set_up(state), 0);
		visit(me, 400 * US);
		ca_fine_due(me);
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up(state), 0);
		visit(me, 400 * US);
		now = ca_clock_now();
		other = &s->fine[1];
		other->selection = cases[i].selection;
		other->entered = me->fine->left - cycles((uint64_t)cases[i].entered);
		other->left = cases[i].left < 0 ? 0 : me->fine->left - cycles((uint64_t)cases[i].left);
		other->outer = cases[i].left < 0;
		other->counting = cases[i].counting;
		if (cases[i].preempted)
			switched(&thread[1], true, now - 2000 * US);
		ca_fine_due(me);
		alone = 400 * US;
		if (cases[i].in) {
			assert_in_range(mass(), alone * 2 / 5, alone * 11 / 20);
			assert_int_equal(other->exempt, mass());
		} else {
			assert_in_range(mass(), alone * 4 / 5, alone * 11 / 10);
			assert_int_equal(other->exempt, 0);
		}
		assert_int_equal(me->fine->exempt, 0);
		if (i + 1 < CA_COUNT(cases))
			assert_int_equal(tear_down(state), 0);
	}
}

static bool is_looked_at(uint32_t slot)
{
	return ca_slot_set_next(&s->timed, slot, slot + 1) == slot;
}

static void hit_once(void)
{
	visit(me, 400 * US);
	ca_fine_due(me);
}

/* Who waits, and left S long ago, is not looked at until it runs. */
static void resting(void **state)
{
	struct ca_fine *other = &s->fine[1];

	(void)state;
	hit_once(); /* it runs */
	assert_true(is_looked_at(1));
	ca_catch_up_waits(&thread[1], 0);
	other->left = ca_cpu_cycles();
	hit_once(); /* it was in S just now */
	assert_true(is_looked_at(1));
	other->left = ca_cpu_cycles() - cycles(20000 * US);
	hit_once();
	assert_false(is_looked_at(1));
	assert_true(is_looked_at(2));
	ca_catch_up_runs(&thread[1]);
	assert_true(is_looked_at(1));
}

/* Who was in S too does not owe for the hit; all others do. */
static void owed_for_hits(void **state)
{
	struct ca_thread *in = &thread[1], *out = &thread[2];

	(void)state;
	ca_ledger_follow(in);
	ca_ledger_follow(out);
	in->selection = out->selection = me->selection;
	s->fine[1].entered = 1;
	s->fine[1].outer = 1;
	while (ca_clock_now() < s->experiment.start + 600 * US)
		;
	visit(me, 400 * US);
	ca_fine_due(me);
	assert_true(hits() > 0);
	ca_ledger_accrue(out, ca_clock_now(), NULL);
	assert_int_equal(out->owed, mass() + sum_of(CA_LOG_PROBES));
	assert_int_equal(out->s_time, out->owed);
	ca_ledger_accrue(in, ca_clock_now(), NULL);
	assert_int_equal(in->owed, 0);
	assert_int_equal(in->s_time, out->owed);
	ca_ledger_accrue(me, ca_clock_now(), &others);
	assert_int_equal(me->owed, 0);
	assert_int_equal(me->s_time, out->owed);
}

/* For what probes and hits take, others are held up at any speedup; told when it is worth it. Whoever is in S has his own
 * probes. */
static void owed_for_probes(void **state)
{
	static const uint32_t speedups[] = { CA_SPEEDUP_PROBES, CA_MILLION / 2, CA_MILLION };

	for (size_t i = 0; i < CA_COUNT(speedups); i++) {
		struct ca_thread *in = &thread[1], *out = &thread[2];
		uint64_t taken, s_time;

		if (i)
			assert_int_equal(set_up(state), 0);
		s->experiment.speedup = speedups[i];
		ca_ledger_follow(me);
		ca_ledger_follow(in);
		ca_ledger_follow(out);
		me->speedup = in->speedup = out->speedup = speedups[i];
		in->selection = out->selection = me->selection;
		s->fine[1].entered = 1;
		s->fine[1].outer = 1;
		while (hits() < 400) {
			spin(1 * US);
			pass(me, 200);
		}
		taken = atomic_load(&me->slot->probed);
		assert_true(taken > 0);
		ca_ledger_accrue(out, ca_clock_now(), NULL);
		s_time = mass() + sum_of(CA_LOG_PROBES);
		assert_int_equal(out->s_time, s_time);
		assert_in_range(out->owed, s_time * speedups[i] / CA_MILLION,
				s_time * speedups[i] / CA_MILLION + 1);
		/* two are in S, so that each tells half of what it has taken */
		assert_in_range(sum_of(CA_LOG_PROBES) * speedups[i] / CA_MILLION + me->fine_probes / 2,
				taken * 4 / 10, taken * 6 / 10);
		ca_ledger_accrue(in, ca_clock_now(), NULL);
		assert_in_range(in->owed + 5 * US, 0, 10 * US);
		if (i + 1 < CA_COUNT(speedups))
			assert_int_equal(tear_down(state), 0);
	}
}

/* Nobody pays inside S, and what passes there is not lost if it takes long. */
static void in_a_tick(void **state)
{
	(void)state;
	me->owed = 5000 * US;
	me->fine->entered = ca_cpu_cycles() - cycles(100 * US);
	me->fine->outer = 1;
	ca_ledger_pay(me);
	assert_int_equal(me->owed, 5000 * US);
	ca_activation_tell(me, ca_clock_now());
	assert_true(hits() > 1);
	assert_true(me->fine->outer);
	assert_true(ca_cpu_cycles() - me->fine->entered < cycles(100 * US) + cycles(50000 * US));
	ca_activation_left(me);
	assert_false(me->fine->outer);
}

/* Switched off while in S: whoever ends then asks the kernel nothing, as that may be forbidden by now. */
static void off_in_s(void **state)
{
	uint64_t n = hits(), entered;

	(void)state;
	me->fine->outer = 1;
	me->depth = 1;
	entered = me->fine->entered;
	atomic_store(&ca_rt.on, false);
	ca_activation_left(me);
	atomic_store(&ca_rt.on, true);
	assert_int_equal(me->depth, 0);
	assert_int_equal(hits(), n);
	assert_int_equal(me->fine->entered, entered);
	assert_int_equal(me->fine->outer, 1); /* its books are as they were */
	me->fine->outer = 0;
}

/* A wait in S: S stops, if it is for others; else the log has all of it. */
static void waits(void **state)
{
	(void)state;
	for (unsigned kind = CA_WAIT_OTHERS; kind <= CA_WAIT_EXTERNAL; kind++) {
		uint64_t n = hits(), from = ca_cpu_cycles(), sum;
		struct ca_waiting w;

		me->fine->entered = from;
		me->fine->outer = UINTPTR_MAX / 2;
		w = ca_wait_begin((enum ca_wait)kind, -1);
		assert_false(me->fine->outer);
		sum = (uint64_t)me->fine->sum;
		while (ca_cpu_cycles() - from < cycles(300 * US))
			;
		ca_wait_end(&w);
		assert_int_equal(me->fine->outer, UINTPTR_MAX / 2);
		assert_true(me->fine->entered - from >= cycles(290 * US));
		assert_int_equal(me->fine->sum, sum);
		if (kind == CA_WAIT_EXTERNAL) {
			static const enum ca_log_type types[] = { CA_LOG_ENTER, CA_LOG_EXTERNAL, CA_LOG_ON,
								  CA_LOG_EXIT };

			for (uint64_t i = 0; i < CA_COUNT(types); i++)
				rt_logged(logged() - 4 + i, types[i], 0);
		} else {
			for (; n < hits(); n++) /* of what came before */
				rt_logged(n, CA_LOG_HIT, 0);
		}
		ca_fine_forget(me);
	}
}

/* Left by a jump, or seen in a tick to have been left. */
static void left_otherwise(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)state;
	me->fine->entered = ca_cpu_cycles();
	me->fine->outer = here;
	ca_activation_check(me, here - 64);
	assert_true(me->fine->outer);
	ca_activation_check(me, here);
	assert_true(me->fine->outer);
	ca_activation_check(me, here + 64);
	assert_false(me->fine->outer);
	assert_int_equal(hits(), 0);
}

/* It passed an entry of the selection before when it already went by this one, and no exit any more. */
static void left_behind(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)state;
	me->fine->outer = here + 64;
	s->selection.fine = 0;
	ca_activation_check(me, here);
	assert_false(me->fine->outer);
	for (uint32_t i = 0; i < RT_THREADS; i++)
		s->fine[i].outer = here;
	atomic_store(&ca_rt.by_slot[2], NULL); /* another process's */
	ca_fine_forget_all();
	for (uint32_t i = 0; i < RT_THREADS; i++)
		assert_int_equal(s->fine[i].outer, i == 2 ? here : 0);
}

/* Who waits in S while something else is selected comes back to what is none. */
static void selected_anew_in_a_wait(void **state)
{
	(void)state;
	for (unsigned kind = CA_WAIT_OTHERS; kind <= CA_WAIT_EXTERNAL; kind++) {
		struct ca_waiting w;

		me->fine->entered = ca_cpu_cycles();
		me->fine->outer = UINTPTR_MAX / 2;
		w = ca_wait_begin((enum ca_wait)kind, -1);
		atomic_fetch_add(&s->selection.seq, 2);
		ca_wait_end(&w);
		assert_false(me->fine->outer);
	}
}

static void another_selection(void **state)
{
	(void)state;
	visit(me, 10 * US);
	me->fine->outer = 1;
	atomic_store(&s->selection.seq, 4);
	ca_ledger_follow(me);
	assert_int_equal(me->fine->outer, 0);
	assert_true(me->fine->limit < 0); /* the next visit comes to it */
	visit(me, 10 * US);
	ca_fine_due(me);
	assert_int_equal(me->fine->sum, 0);
	assert_true(me->fine->limit > 0);
	assert_int_equal(me->fine->selection, 4);
	assert_int_equal(hits(), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(hits_of_visits),
		TEST(seldom_timed),
		TEST(what_probes_cost),
		TEST(counted),
		TEST(a_long_visit),
		TEST(nothing_without_an_experiment),
		TEST(preempted_in_a_visit),
		cmocka_unit_test_teardown(shared, tear_down),
		TEST(resting),
		TEST(owed_for_hits),
		TEST(owed_for_probes),
		TEST(in_a_tick),
		TEST(off_in_s),
		TEST(waits),
		TEST(left_otherwise),
		TEST(left_behind),
		TEST(selected_anew_in_a_wait),
		TEST(another_selection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

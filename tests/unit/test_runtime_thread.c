/* SPDX-License-Identifier: MIT */
/* causal/runtime/thread.c: how threads get and lose their slots, also in a burst; their ticks; being
 * left alone, paused, held. Each case that begins a life runs in a thread of its own, made behind
 * the runtime's back. Ticks and switch logs are stood in for. */
#include "causal/runtime/patch.h"
#include "causal/runtime/wrap.h"
#include "core/log.h"
#include "core/sys.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <stdlib.h>

/* ---- what stands in -------------------------------------------------------------------------------- */
static __thread unsigned starts, stops, opens, closes, lefts, wait_lefts, meets;
static __thread struct {
	enum ca_backend wanted;
	uint64_t first, period;
	int signo;
} started[2];
static bool have_perf, have_timer;
static bool is_main; /* the next thread is its process's first one */
static _Atomic unsigned collects, offs, logs;

enum ca_status ca_tick_start(struct ca_tick *tick, enum ca_backend wanted, uint64_t first, uint64_t period,
			     int signo)
{
	assert_true(starts < CA_COUNT(started));
	started[starts].wanted = wanted;
	started[starts].first = first;
	started[starts].period = period;
	started[starts++].signo = signo;
	tick->backend = CA_BACKEND_AUTO;
	if (have_perf && wanted != CA_BACKEND_TIMER)
		tick->backend = CA_BACKEND_PERF;
	else if (have_timer && wanted != CA_BACKEND_PERF)
		tick->backend = CA_BACKEND_TIMER;
	tick->page = tick->backend == CA_BACKEND_PERF ? switch_log[0] : NULL;
	errno = 99;
	return tick->backend == CA_BACKEND_AUTO ? CA_ERR_PERMISSION : CA_OK;
}

static bool have_coarse;

bool ca_tick_start_coarse(struct ca_tick *tick, uint64_t period, int signo)
{
	if (!have_coarse)
		return false;
	assert_true(starts < CA_COUNT(started));
	started[starts].wanted = CA_BACKEND_PERF;
	started[starts].first = 0;
	started[starts].period = period;
	started[starts++].signo = signo;
	tick->backend = CA_BACKEND_PERF;
	tick->page = NULL;
	return true;
}

static uint64_t kernels = 4000000, switched;

uint64_t ca_tick_of_kernel(void)
{
	return kernels;
}

static bool ends_calls = true;

CA_SIGSAFE bool ca_tick_ends_calls(void)
{
	return ends_calls;
}

void ca_tick_stop(struct ca_tick *tick)
{
	stops++;
	tick->backend = CA_BACKEND_AUTO;
	tick->page = NULL;
}

enum ca_status ca_switches_open(struct ca_switches *log)
{
	opens++;
	log->page = switch_log[0];
	return CA_OK;
}

CA_SIGSAFE uint64_t ca_switches_count(const struct ca_switches *log)
{
	(void)log;
	return switched;
}

void ca_switches_close(struct ca_switches *log)
{
	closes++;
	log->page = NULL;
}

void ca_points_collect(void)
{
	atomic_fetch_add(&collects, 1);
}

void ca_activation_left(struct ca_thread *t)
{
	assert_true(t->guard > 0);
	t->depth = 0;
	lefts++;
}

void ca_activation_wait_left(struct ca_thread *t, uint64_t now)
{
	(void)now;
	assert_true(t->guard > 0);
	wait_lefts++;
}

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	(void)object, (void)site;
	assert_true(!ca_self || !ca_self->guard); /* a child's end comes here, too */
	meets++;
}

void ca_rt_off(const char *reason)
{
	assert_non_null(reason);
	atomic_fetch_add(&offs, 1);
}

void ca_log(enum ca_log_level level, const char *format, ...)
{
	assert_non_null(format);
	if (level != CA_LOG_DEBUG) {
		assert_int_equal(level, CA_LOG_ERROR);
		atomic_fetch_add(&logs, 1);
	}
}

/* ---- helpers ---------------------------------------------------------------------------------------- */
/* All slots are free, and the calling thread is none of ours. */
static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	for (uint32_t i = 0; i < RT_THREADS; i++) {
		atomic_store(&s->slot[i].state, CA_SLOT_FREE);
		atomic_store(&ca_rt.by_slot[i], NULL);
	}
	atomic_store(&s->slots_used, 0);
	ca_self = NULL;
	ca_rt.process = 3;
	have_perf = have_timer = true;
	is_main = false;
	atomic_store(&collects, 0);
	atomic_store(&offs, 0);
	atomic_store(&logs, 0);
	return 0;
}

static void in_new_thread(void *(*run)(void *))
{
	pthread_t id;

	assert_int_equal(ca_real.pthread_create(&id, NULL, run, NULL), 0);
	assert_int_equal(ca_real.pthread_join(id, NULL), 0);
}

static bool blocked(int number)
{
	return ca_sys_sigmask(SIG_BLOCK, 0) & CA_SYS_SIGNAL(number);
}

static void nap(void)
{
	struct timespec time = { 0, 1000000 };

	ca_sys(SYS_nanosleep, (long)(intptr_t)&time, 0, 0, 0, 0, 0);
}

/* ---- birth and death --------------------------------------------------------------------------------- */
/* The first thread of a process gets its sources when it begins. */
static void be_main(void)
{
	if (is_main)
		ca_rt.pid = (uint32_t)ca_sys_gettid();
}

static void *without_perf(void *unused)
{
	(void)unused;
	have_perf = false;
	s->backend = CA_BACKEND_PERF;
	be_main();
	ca_thread_begin();
	assert_int_equal(starts, 1);
	assert_int_equal(atomic_load(&offs), 1); /* there never was any */
	assert_int_equal(atomic_load(&logs), 0);
	return NULL;
}

static void *without_ticks(void *unused)
{
	(void)unused;
	have_perf = have_timer = false;
	s->backend = CA_BACKEND_AUTO;
	ca_thread_begin();
	assert_int_equal(atomic_load(&offs), 0);
	assert_int_equal(atomic_load(&logs), 1);
	assert_non_null(ca_self); /* it pays at its meetings */
	return NULL;
}

/* Before there are any ticks: later on, a lack of them has other reasons. */
static void no_ticks(void **state)
{
	(void)state;
	is_main = true;
	in_new_thread(without_perf);
	atomic_store(&offs, 0);
	is_main = false;
	in_new_thread(without_ticks);
	in_new_thread(without_ticks); /* said once */
}

static void *a_life(void *unused)
{
	struct ca_slot *slot = &s->slot[0];
	struct ca_thread *t;

	(void)unused;
	ca_sys_sigmask(SIG_BLOCK, CA_SYS_SIGNAL(CA_SIGNAL) | CA_SYS_SIGNAL(SIGTRAP) | CA_SYS_SIGNAL(SIGILL));
	atomic_store(&s->backends, 0);
	be_main();
	errno = 5;
	ca_thread_begin();
	assert_int_equal(errno, 5);
	t = ca_self;
	assert_non_null(t);
	assert_int_equal(t->guard, 0);
	assert_int_equal(t->number, 0);
	assert_ptr_equal(t->slot, slot);
	assert_ptr_equal(atomic_load(&ca_rt.by_slot[0]), t);
	assert_int_equal(atomic_load(&slot->state), CA_SLOT_LIVE);
	assert_int_equal(slot->tid, ca_sys_gettid());
	assert_int_equal(t->tid, ca_sys_gettid());
	assert_int_equal(slot->pid, ca_rt.pid);
	assert_int_equal(slot->process, 3);
	assert_int_equal(atomic_load(&slot->in_s) + atomic_load(&slot->owed) + atomic_load(&slot->paid) +
				 atomic_load(&slot->last_look) + atomic_load(&slot->share_in_s[CA_PARTS - 1]),
			 0);
	assert_int_equal(atomic_load(&slot->count[5]), 55); /* only ever grows */
	assert_ptr_equal(ca_patch_counters, &slot->count[0]);
	assert_int_equal(atomic_load(&s->slots_used), 1);
	assert_int_equal(atomic_load(&collects), 1);
	assert_int_equal(t->state, CA_THREAD_LIVE);
	assert_int_equal(t->selection, atomic_load(&s->selection.seq)); /* it follows */
	assert_false(blocked(CA_SIGNAL));
	assert_int_equal(blocked(SIGTRAP), !ca_rt.patching);
	assert_int_equal(blocked(SIGILL), !ca_rt.patching);
	/* ticks */
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].wanted, CA_BACKEND_AUTO);
	assert_int_equal(started[0].signo, CA_SIGNAL);
	assert_int_equal(started[0].period, 4 * RT_PERIOD);
	assert_in_range(started[0].first, 4 * RT_PERIOD / 64, 4 * RT_PERIOD - 1);
	assert_int_equal(t->tick_period, started[0].first);
	assert_int_equal(t->tick_length, started[0].first);
	assert_in_range(t->tick_weight, 4,
			4 + ca_tick_of_kernel() / RT_PERIOD); /* timers tick as the kernel does */
	assert_true(t->rng.s[0] | t->rng.s[1]);
	assert_in_range(t->hit_cpu, 1, ca_clock_thread_cpu());
	assert_int_equal(opens, have_perf);
	assert_int_equal(t->switches.page != NULL, have_perf);
	assert_int_equal(atomic_load(&s->backends), 1u << (have_perf ? CA_BACKEND_PERF : CA_BACKEND_TIMER));
	ca_thread_begin(); /* it lives already */
	assert_int_equal(starts, 1);
	/* its end */
	t->depth = 2;
	atomic_store(&slot->in_s, 1);
	errno = 5;
	ca_thread_end();
	assert_int_equal(errno, 5);
	assert_null(ca_self);
	assert_int_equal(meets, 1); /* whoever joins it gets no debt as a gift */
	assert_int_equal(stops, 1);
	assert_int_equal(lefts, 1);
	assert_int_equal(wait_lefts, 1); /* it may have been cancelled in a wait that was S */
	assert_int_equal(closes, 1);
	assert_null(atomic_load(&ca_rt.by_slot[0]));
	assert_ptr_equal(ca_patch_counters, ca_patch_nobody);
	assert_int_equal(atomic_load(&slot->in_s), 0);
	assert_int_equal(atomic_load(&slot->state), CA_SLOT_FREE);
	assert_int_equal(t->state, CA_THREAD_NONE);
	ca_thread_end();
	assert_int_equal(stops, 1);
	/* destructors that run later do not bring it back */
	ca_thread_begin();
	assert_null(ca_self);
	for (unsigned i = 0; i < 200; i++)
		assert_null(ca_thread_late());
	return NULL;
}

static void lives(void **state)
{
	struct ca_slot *slot = &s->slot[0];

	(void)state;
	is_main = true;
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&slot->in_s, 1);
		atomic_store(&slot->owed, 1);
		atomic_store(&slot->paid, 1);
		atomic_store(&slot->last_look, 1);
		atomic_store(&slot->share_in_s[CA_PARTS - 1], 1);
		atomic_store(&slot->count[5], 55);
		ca_rt.patching = i;
		have_perf = i;
		atomic_store(&collects, 0);
		in_new_thread(a_life);
	}
}

static void *just_live(void *unused)
{
	(void)unused;
	ca_thread_begin();
	assert_non_null(ca_self);
	return NULL;
}

/* A thread that just ends is noticed. */
static void ends_by_itself(void **state)
{
	(void)state;
	in_new_thread(just_live);
	assert_int_equal(atomic_load(&s->slot[0].state), CA_SLOT_FREE);
	assert_null(atomic_load(&ca_rt.by_slot[0]));
}

static void *do_not_live(void *unused)
{
	(void)unused;
	ca_thread_begin();
	assert_null(ca_self);
	assert_int_equal(starts, 0);
	return NULL;
}

static void off_or_nowhere(void **state)
{
	(void)state;
	atomic_store(&ca_rt.on, false);
	in_new_thread(do_not_live);
	atomic_store(&ca_rt.on, true);
	ca_rt.session = NULL;
	in_new_thread(do_not_live);
	assert_int_equal(atomic_load(&s->threads_missed), 0);
}

static void *with_sampled_s(void *unused)
{
	be_main();
	just_live(unused);
	assert_int_equal(started[0].period, RT_PERIOD);
	assert_in_range(started[0].first, RT_PERIOD / 64, RT_PERIOD - 1);
	assert_int_equal(ca_self->tick_weight, 1);
	return NULL;
}

static void ticks_for_samples_of_s(void **state)
{
	(void)state;
	is_main = true;
	s->selection.ranges = 1;
	in_new_thread(with_sampled_s);
}

static void *perf_is_full(void *unused)
{
	have_perf = false;
	s->backend = CA_BACKEND_PERF;
	be_main();
	just_live(unused);
	assert_int_equal(starts, 2);
	assert_int_equal(started[1].wanted, CA_BACKEND_TIMER);
	assert_int_equal(started[1].first, started[0].first);
	assert_int_equal(started[1].period, 4 * RT_PERIOD);
	assert_int_equal(ca_self->tick.backend, CA_BACKEND_TIMER);
	return NULL;
}

static void more_threads_than_perf_takes(void **state)
{
	(void)state;
	is_main = true;
	in_new_thread(just_live);
	in_new_thread(perf_is_full);
	assert_int_equal(atomic_load(&offs) + atomic_load(&logs), 0);
}

/* ---- the others begin with a timer ---------------------------------------------------------------------- */
static void *live_young(void *unused)
{
	uint64_t tick = ca_tick_of_kernel();

	atomic_store(&s->backends, 0);
	just_live(unused);
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].wanted, CA_BACKEND_TIMER);
	assert_int_equal(started[0].first, 1); /* whenever the kernel looks */
	assert_int_equal(started[0].period, tick);
	assert_int_equal(started[0].signo, CA_SIGNAL);
	assert_true(ca_self->young > ca_clock_now());
	/* a sample is one for all threads of which the kernel saw none */
	assert_int_equal(ca_self->tick_length, tick);
	assert_in_range(ca_self->tick_weight, tick / RT_PERIOD, (tick + RT_PERIOD - 1) / RT_PERIOD);
	assert_null(ca_self->switches.page);
	assert_int_equal(opens, 0);
	assert_int_equal(atomic_load(&s->backends), 0); /* it may be perf in the end */
	return NULL;
}

static void check_grown(void)
{
	assert_int_equal(ca_self->young, 0);
	assert_int_equal(stops, 1 + closes);
	assert_int_equal(starts, 2);
	assert_int_equal(started[1].wanted, s->backend);
	assert_in_range(started[1].first, 3 * RT_PERIOD, 5 * RT_PERIOD - 1);
	assert_int_equal(started[1].period, 4 * RT_PERIOD);
	assert_int_equal(ca_self->tick_period, 4 * RT_PERIOD);
	assert_int_equal(ca_self->tick_length, started[1].first);
	assert_int_equal(ca_self->switches.page != NULL, have_perf);
	assert_int_equal(atomic_load(&s->backends), 1u << ca_self->tick.backend);
}

static void *get_a_tick(void *unused)
{
	live_young(unused);
	ca_self->ticks = 1; /* most are over before the next */
	ca_ticks_adjust(ca_self);
	assert_int_equal(starts, 1);
	assert_true(ca_self->young);
	ca_self->ticks = 2;
	ca_ticks_adjust(ca_self);
	check_grown();
	return NULL;
}

static void first_tick(void **state)
{
	(void)state;
	in_new_thread(get_a_tick);
	have_perf = false;
	in_new_thread(get_a_tick);
}

/* In step with the kernel a thread can work for long, and never be seen. */
static void *keep_step(void *unused)
{
	struct ca_thread *t;
	uint64_t due;

	live_young(unused);
	t = ca_self;
	due = t->young;
	t->hit_cpu = ca_clock_thread_cpu() - RT_PERIOD;
	ca_ticks_look_at_young(t, due - 1);
	assert_int_equal(t->young, due);
	t->depth = 1; /* in S */
	ca_ticks_look_at_young(t, due);
	t->depth = 0;
	assert_int_equal(t->young, due);
	t->hit_cpu = ca_clock_thread_cpu();
	ca_ticks_look_at_young(t, due); /* it has only slept */
	assert_in_range(t->young, due + 1, due + 10 * (uint64_t)RT_PERIOD);
	assert_int_equal(starts, 1);
	due = t->young;
	t->hit_cpu = ca_clock_thread_cpu() - RT_PERIOD;
	ca_ticks_look_at_young(t, due);
	check_grown();
	ca_ticks_look_at_young(t, due + 1000 * (uint64_t)RT_PERIOD);
	assert_int_equal(starts, 2);
	return NULL;
}

/* In a profile who waits gets perf's ticks, once it has lived for a period; by timers nothing would be won. */
static void *wait_in_profile(void *unused)
{
	enum { LOOK = 5000000 };
	struct ca_thread *t;
	uint64_t begun, due;

	live_young(unused);
	t = ca_self;
	due = t->young;
	begun = due - LOOK;
	t->hit_cpu = ca_clock_thread_cpu();
	ca_rt.sampling = true;
	ca_ticks_look_at_young(t, begun + RT_PERIOD - 1);
	assert_int_equal(t->young, due);
	s->backend = CA_BACKEND_TIMER;
	ca_ticks_look_at_young(t, begun + RT_PERIOD);
	assert_int_equal(t->young, due);
	s->backend = CA_BACKEND_AUTO;
	ca_ticks_look_at_young(t, begun + RT_PERIOD);
	assert_int_equal(t->young, 0);
	assert_int_equal(starts, 2);
	assert_in_range(started[1].first, 1, RT_PERIOD);
	assert_int_equal(started[1].period, RT_PERIOD);
	assert_int_equal(t->tick_period, started[1].first); /* so that the first tick sets it */
	ca_rt.sampling = false;
	return NULL;
}

static void waits_in_a_profile(void **state)
{
	(void)state;
	in_new_thread(wait_in_profile);
}

static void in_step_with_the_kernel(void **state)
{
	(void)state;
	in_new_thread(keep_step);
}

/* Who does nothing but create threads has a timer, and no switch log, as long as that lasts. */
static void *create_all_the_time(void *unused)
{
	struct ca_thread *t;

	is_main = true;
	be_main();
	just_live(unused);
	t = ca_self;
	t->ticks = 9;
	assert_int_equal(opens, 1);
	t->creates_from = 0; /* a few, over a long time */
	for (unsigned i = 0; i < 100; i++)
		ca_ticks_creates();
	assert_int_equal(starts, 1);
	t->creates = 0;
	t->creates_from = ca_clock_now();
	t->depth = 1; /* in S */
	for (unsigned i = 0; i < 100; i++)
		ca_ticks_creates();
	t->depth = 0;
	assert_int_equal(starts, 1);
	t->last_cpu = 0;
	for (unsigned i = 0; i < 100; i++)
		ca_ticks_creates();
	assert_int_equal(starts, 2);
	assert_int_equal(started[1].wanted, CA_BACKEND_TIMER);
	assert_int_equal(started[1].first, 1);
	assert_int_equal(stops, 1);
	assert_int_equal(closes, 1);
	assert_null(t->switches.page);
	assert_in_range(t->last_cpu, 1, ca_clock_thread_cpu());
	assert_true(t->young > 0);
	assert_int_equal(t->guard, 0);
	/* neither a tick nor a wait ends it */
	t->creates_from = ca_clock_now();
	t->creates = 1000;
	ca_ticks_adjust(t);
	t->creates = 1000;
	t->hit_cpu = ca_clock_thread_cpu() - RT_PERIOD;
	ca_ticks_look_at_young(t, t->young);
	assert_int_equal(starts, 2);
	starts = 1;
	ca_ticks_adjust(t);
	assert_int_equal(starts, 1);
	t->creates = 0;
	ca_ticks_adjust(t);
	check_grown();
	assert_int_equal(opens, 2);
	is_main = false;
	return NULL;
}

/* A tick after 100 ms in which it was off a CPU once, and perhaps slept. */
static void hop(struct ca_thread *t, bool sleeps)
{
	const struct timespec time = { .tv_nsec = 1000 };

	if (sleeps)
		ca_sys(SYS_nanosleep, (long)(intptr_t)&time, 0, 0, 0, 0, 0);
	switched++;
	starts = 1;
	t->ticks += 2;
	t->slept_at -= 100000000;
	ca_ticks_adjust(t);
}

/* Who goes to sleep so often that the log of it would take a part of its time has none, as long as that lasts. */
static void *hop_all_the_time(void *unused)
{
	static const struct {
		uint32_t cost; /* at 10 ms each, one in 250 ms is too often */
		bool in_s, sleeps, hops;
	} cases[] = {
		{ 0, false, true, false },         /* not known */
		{ 1000000, false, true, false },   /* cheap */
		{ 10000000, false, false, false }, /* it yields */
		{ 10000000, true, true, true },
	};
	struct ca_thread *t;

	is_main = true;
	be_main();
	just_live(unused);
	t = ca_self;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		s->switch_cost = cases[i].cost;
		t->depth = cases[i].in_s;
		for (int k = 0; k < 3; k++)
			hop(t, cases[i].sleeps);
		assert_int_equal(t->hops, cases[i].hops);
		assert_int_equal(closes, 0); /* in S there is nothing to change */
	}
	t->depth = 0;
	t->last_cpu = 0;
	hop(t, true);
	assert_int_equal(closes, 1);
	assert_null(t->switches.page);
	assert_in_range(t->last_cpu, 1, ca_clock_thread_cpu());
	assert_true(t->young > 0);
	/* neither a tick nor a wait ends it, ... */
	hop(t, true);
	t->hit_cpu = ca_clock_thread_cpu() - RT_PERIOD;
	ca_ticks_look_at_young(t, t->young);
	assert_int_equal(opens, 1);
	assert_true(t->young > 0);
	/* ... nor that it is a little less often, but that it is rare */
	t->slept_at -= 300000000;
	hop(t, true);
	assert_true(t->hops);
	assert_int_equal(opens, 1);
	t->slept_at -= 2000000000;
	hop(t, true);
	assert_false(t->hops);
	assert_int_equal(opens, 2);
	assert_int_equal(t->young, 0);
	s->switch_cost = 0;
	is_main = false;
	return NULL;
}

static void hoppers(void **state)
{
	(void)state;
	in_new_thread(hop_all_the_time);
}

static void creators(void **state)
{
	(void)state;
	in_new_thread(create_all_the_time);
}

static void *live_without_timer(void *unused)
{
	have_timer = false;
	just_live(unused);
	assert_int_equal(starts, 2);
	assert_int_equal(started[1].wanted, CA_BACKEND_AUTO);
	assert_int_equal(ca_self->tick.backend, CA_BACKEND_PERF);
	assert_int_equal(ca_self->young, 0);
	assert_int_equal(opens, 1);
	return NULL;
}

static void no_timer_to_begin_with(void **state)
{
	(void)state;
	in_new_thread(live_without_timer);
}

/* ---- a burst ------------------------------------------------------------------------------------------ */
enum { BURST = 40, BURSTS = 25 };
static pthread_barrier_t all;
static _Atomic uint32_t taken[CA_MAX_THREADS];
static struct ca_thread *records[BURST];
static _Atomic unsigned lived;

static void *live_with_others(void *unused)
{
	(void)unused;
	ca_real.pthread_barrier_wait(&all);
	ca_thread_begin();
	assert_non_null(ca_self);
	assert_int_equal(atomic_fetch_add(&taken[ca_self->number], 1), 0); /* its alone */
	records[atomic_fetch_add(&lived, 1)] = ca_self;
	ca_real.pthread_barrier_wait(&all);
	return NULL;
}

static void one_burst(void)
{
	pthread_t id[BURST];

	memset(taken, 0, sizeof taken);
	atomic_store(&lived, 0);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(ca_real.pthread_create(&id[i], NULL, live_with_others, NULL), 0);
	for (unsigned i = 0; i < BURST; i++)
		assert_int_equal(ca_real.pthread_join(id[i], NULL), 0);
	assert_int_equal(atomic_load(&s->slots_used), BURST);
	for (unsigned i = 0; i < BURST; i++) {
		assert_int_equal(atomic_load(&taken[i]), 1);
		for (unsigned k = 0; k < i; k++)
			assert_true(records[i] + 1 <= records[k] || records[k] + 1 <= records[i]);
		assert_int_equal(atomic_load(&s->slot[i].state), CA_SLOT_FREE);
	}
	assert_int_equal(atomic_load(&s->threads_missed), 0);
}

static void burst(void **state)
{
	(void)state;
	pthread_barrier_init(&all, NULL, BURST);
	atomic_store(&s->slots_ready, BURST);
	for (unsigned i = 0; i < BURSTS; i++)
		one_burst();
	pthread_barrier_destroy(&all);
}

/* Threads that come and go take the lowest slots: each that ever was used has memory of its own. */
enum { AT_A_TIME = 3, COME = 5000 };

static void *live_shortly(void *unused)
{
	ca_thread_begin();
	return unused;
}

static void *come_and_go(void *unused)
{
	for (unsigned i = 0; i < COME; i++)
		in_new_thread(live_shortly);
	return unused;
}

static void takes_low_slots(void **state)
{
	pthread_t id[AT_A_TIME];

	(void)state;
	atomic_store(&s->slots_ready, BURST);
	for (unsigned i = 0; i < AT_A_TIME; i++)
		assert_int_equal(ca_real.pthread_create(&id[i], NULL, come_and_go, NULL), 0);
	for (unsigned i = 0; i < AT_A_TIME; i++)
		assert_int_equal(ca_real.pthread_join(id[i], NULL), 0);
	assert_in_range(atomic_load(&s->slots_used), 1, 2 * AT_A_TIME);
}

/* The conductor makes more slots ready while a thread waits for one. */
static void *make_ready(void *unused)
{
	(void)unused;
	nap();
	atomic_store(&s->slots_ready, 2);
	return NULL;
}

static _Atomic bool found;

static void *live_in_slot_1(void *unused)
{
	bool none_yet = atomic_load(&s->slots_ready) == 1;

	(void)unused;
	ca_thread_begin();
	if (none_yet && ca_self && ca_self->number == 1)
		atomic_store(&found, true);
	return NULL;
}

/* An old kernel: it waits some ms; on a busy machine the other thread may come too late for that, but not always. */
static void wait_for_a_slot(void **state)
{
	pthread_t id;

	(void)state;
	atomic_store(&s->slot[0].state, CA_SLOT_LIVE);
	for (unsigned i = 0; i < 200 && !atomic_load(&found); i++) {
		atomic_store(&s->slots_ready, 1);
		assert_int_equal(ca_real.pthread_create(&id, NULL, make_ready, NULL), 0);
		in_new_thread(live_in_slot_1);
		assert_int_equal(ca_real.pthread_join(id, NULL), 0);
	}
	assert_true(atomic_load(&found));
	assert_int_equal(atomic_load(&s->slots_used), 2);
}

static void waits_for_a_slot(void **state)
{
	(void)state;
	without_call(SYS_madvise, EINVAL, wait_for_a_slot);
}

static void *live_in_new_slot(void *unused)
{
	unsigned char resident = 0;

	(void)unused;
	ca_thread_begin();
	assert_non_null(ca_self);
	assert_int_equal(ca_self->number, 1);
	assert_true(atomic_load(&s->slots_ready) > 2);
	assert_int_equal(
		mincore((void *)((uintptr_t)&s->slot[2] & ~(uintptr_t)(RT_PAGE - 1)), RT_PAGE, &resident), 0);
	assert_int_equal(resident & 1, 1);
	return NULL;
}

/* The conductor has no CPU. */
static void makes_slots(void **state)
{
	(void)state;
	atomic_store(&s->slots_ready, 1);
	atomic_store(&s->slot[0].state, CA_SLOT_LIVE);
	in_new_thread(live_in_new_slot);
	assert_int_equal(atomic_load(&s->threads_missed), 0);
}

static void *miss(void *unused)
{
	ca_thread_begin();
	assert_null(ca_self);
	return unused;
}

static void miss_one(void **state)
{
	(void)state;
	atomic_store(&s->slots_ready, 1);
	atomic_store(&s->slot[0].state, CA_SLOT_LIVE);
	in_new_thread(miss);
	assert_int_equal(atomic_load(&s->slots_ready), 1);
	assert_int_equal(atomic_load(&s->threads_missed), 1);
	assert_int_equal(atomic_load(&s->threads_out), 0); /* it has ended */
}

static void no_memory(void **state)
{
	(void)state;
	without_call(SYS_madvise, ENOMEM, miss_one);
}

static void *find_none(void *unused)
{
	(void)unused;
	ca_thread_begin();
	assert_null(ca_self);
	assert_int_equal(atomic_load(&s->threads_missed), 1);
	assert_int_equal(atomic_load(&s->threads_out), 1);
	ca_thread_begin(); /* counted once */
	assert_int_equal(atomic_load(&s->threads_missed), 1);
	assert_int_equal(atomic_load(&s->threads_out), 1);
	ca_rt.slots = 2;
	/* it asks again, now and then */
	for (unsigned i = 1; i < 64; i++)
		assert_null(ca_thread_late());
	assert_non_null(ca_thread_late());
	assert_int_equal(ca_self->number, 1);
	assert_int_equal(atomic_load(&s->threads_out), 0);
	return NULL;
}

static void no_slot(void **state)
{
	(void)state;
	ca_rt.slots = 1;
	atomic_store(&s->slots_ready, 1);
	atomic_store(&s->slot[0].state, CA_SLOT_CLAIMED);
	in_new_thread(find_none);
	assert_int_equal(atomic_load(&s->threads_missed), 1);
}

static void *be_late(void *unused)
{
	(void)unused;
	assert_non_null(ca_thread_late()); /* nobody told of it: at its first meeting */
	return NULL;
}

static void unannounced(void **state)
{
	(void)state;
	in_new_thread(be_late);
}

/* ---- the child of a fork -------------------------------------------------------------------------------- */
static struct ca_thread *sibling;

static void *live_once(void *unused)
{
	just_live(unused);
	sibling = ca_self;
	return NULL;
}

static void *forget(void *unused)
{
	struct ca_thread *t;

	just_live(unused);
	t = ca_self;
	in_new_thread(live_once);
	assert_ptr_not_equal(sibling, t);
	/* as if both were alive when the parent forked */
	for (unsigned i = 0; i < 2; i++) {
		struct ca_thread *one = i ? sibling : t;

		one->tick.backend = CA_BACKEND_PERF;
		one->switches.page = switch_log[i];
		atomic_store(&one->readers, 1);
	}
	atomic_store(&ca_rt.by_slot[3], t);
	atomic_store(&s->slots_used, 4);
	ca_thread_forget();
	assert_null(ca_self);
	for (unsigned i = 0; i < 2; i++) {
		struct ca_thread *one = i ? sibling : t;

		assert_null(one->switches.page);
		assert_int_equal(one->tick.backend, CA_BACKEND_AUTO);
		assert_int_equal(atomic_load(&one->readers), 0);
	}
	assert_ptr_equal(ca_patch_counters, ca_patch_nobody);
	assert_null(atomic_load(&ca_rt.by_slot[0]));
	assert_null(atomic_load(&ca_rt.by_slot[3]));
	assert_int_equal(stops + closes, 0); /* they are the parent's */
	ca_thread_begin();
	assert_non_null(ca_self);
	return NULL;
}

static void forgets(void **state)
{
	(void)state;
	in_new_thread(forget);
}

/* ---- ticks ------------------------------------------------------------------------------------------------ */
static void adjust(void)
{
	starts = stops = 0;
	ca_ticks_adjust(me);
	assert_int_equal(starts > 0, stops);
}

/* Up to the tick from which on it counts. */
static void meet_steadily(unsigned ticks)
{
	for (unsigned i = 0; i < ticks; i++) {
		assert_int_equal(me->tick_weight, 4);
		me->meets = 5;
		adjust();
	}
}

static void ticks_as_needed(void **state)
{
	uint64_t seen = 0;

	(void)state;
	ca_self = me;
	me->tick.backend = CA_BACKEND_TIMER;
	me->tick_period = 123;
	ca_rng_init(&me->rng, 1);
	adjust();
	assert_int_equal(starts, 0); /* the kernel's clock ticks as it likes */
	/* one that ticks more often leaves a choice: a program that works in step with every fourth of its
	 * ticks would be seen at the same place always */
	kernels = RT_PERIOD;
	for (unsigned i = 0; i < 50; i++) {
		adjust();
		assert_int_equal(starts, 1);
		assert_int_equal(started[0].wanted, CA_BACKEND_TIMER);
		assert_in_range(started[0].first, 3 * RT_PERIOD, 5 * RT_PERIOD - 1);
		assert_int_equal(started[0].period, 4 * RT_PERIOD);
		assert_int_equal(me->tick_period, 4 * RT_PERIOD);
		assert_int_equal(me->tick_weight, 4);
		assert_true(started[0].first != seen);
		seen = started[0].first;
	}
	/* S is sampled: one draw for each experiment, and with that period none at all */
	s->selection.ranges = 1;
	adjust();
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].period, RT_PERIOD);
	adjust();
	assert_int_equal(starts, 0);
	kernels = RT_PERIOD / 4;
	rt_open_experiment(0);
	me->experiment = 1;
	adjust();
	assert_int_equal(starts, 1);
	adjust();
	assert_int_equal(starts, 0);
	atomic_fetch_add(&s->experiment.seq, 1);
	me->experiment = 0;
	s->selection.ranges = 0;
	kernels = 4 * RT_PERIOD;
	me->tick.backend = CA_BACKEND_PERF;
	me->tick.page = switch_log[0];
	me->meets = 0;
	adjust();
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].wanted, CA_BACKEND_PERF);
	assert_in_range(started[0].first, 3 * RT_PERIOD, 5 * RT_PERIOD - 1);
	assert_int_equal(me->tick_weight, 4);
	assert_int_equal(me->tick_period, 4 * RT_PERIOD);
	assert_int_equal(me->tick_length, started[0].first);
	/* drawn anew now and then, or a program could keep step */
	for (unsigned i = 0; i < 64; i++) {
		me->ticks = i;
		me->meets = 0;
		adjust();
		assert_int_equal(starts, i % 16 == 15);
		assert_true(!starts || started[0].first != seen);
		seen = started[0].first;
		assert_in_range(seen, 3 * RT_PERIOD, 5 * RT_PERIOD - 1);
	}
	/* of a profile, which is added up over all of the run, more seldom: each draw costs a tenth of a period */
	ca_rt.sampling = true;
	me->ticks = 0;
	adjust();
	for (unsigned i = 1; i < 512; i++) {
		me->ticks = i;
		adjust();
		assert_int_equal(starts, i % 128 == 127);
		assert_true(!starts || started[0].first != seen);
		seen = started[0].first;
		assert_in_range(seen, RT_PERIOD * 3 / 4, RT_PERIOD * 5 / 4 - 1);
	}
	ca_rt.sampling = false;
	me->ticks = 0;
	adjust();
	me->ticks = 3;
	me->meets = 4; /* one in each period: it has to be more */
	adjust();
	assert_int_equal(starts, 0);
	assert_int_equal(me->meets, 0);
	/* for a moment: a program may read, and then work on that */
	for (unsigned i = 0; i < 40; i++) {
		me->meets = i % 16 == 15 ? 4 : 5;
		adjust();
		assert_int_equal(me->tick_weight, 4);
	}
	meet_steadily(8);
	assert_in_range(started[0].first, 24 * RT_PERIOD, 40 * RT_PERIOD - 1);
	assert_int_equal(me->tick_weight, 32);
	me->meets = 100;
	adjust();
	assert_int_equal(starts, 0);
	/* the only thread of the run meets nobody: what counts is whether it switches */
	atomic_store(&s->threads, 1);
	for (unsigned i = 0; i < 18; i++) {
		me->ticks = 3;
		me->meets = 100;
		switched += i && i < 17 ? 5 : 1;
		adjust();
		assert_int_equal(me->tick_weight, i == 16 ? 32 : 4);
	}
	atomic_store(&s->threads, 2);
	meet_steadily(16);
	assert_int_equal(me->tick_weight, 32);
	me->ticks = 0;
	/* exactly known: as if nothing were selected */
	s->selection.ranges = 2;
	s->selection.exact = 1;
	me->meets = 100;
	adjust();
	assert_int_equal(starts, 0);
	/* sampled: at full rate, drawn anew for each experiment */
	s->selection.exact = 0;
	for (unsigned i = 0; i < 50; i++) {
		me->tick_period = i ? me->tick_period : 9;
		rt_open_experiment(0);
		me->experiment = i + 1;
		atomic_store(&s->experiment.seq, 2 * i + 1);
		adjust();
		assert_int_equal(starts, 1);
		assert_in_range(started[0].first, 3 * RT_PERIOD / 4, 5 * RT_PERIOD / 4 - 1);
		assert_int_equal(me->tick_length, started[0].first);
		assert_int_equal(me->tick_period, RT_PERIOD);
		assert_int_equal(me->tick_weight, 1);
		assert_true(started[0].first != seen);
		seen = started[0].first;
		adjust();
		assert_int_equal(starts, 0);
	}
	me->experiment++; /* between two, as without a selection */
	atomic_fetch_add(&s->experiment.seq, 1);
	adjust();
	assert_int_equal(starts, 0);
	me->ticks = 15;
	adjust();
	assert_int_equal(starts, 1);
	me->ticks = 0;
	/* perf has no room any more */
	have_perf = false;
	s->selection.ranges = 0;
	adjust();
	assert_int_equal(starts, 2);
	assert_int_equal(started[1].wanted, CA_BACKEND_TIMER);
	assert_in_range(started[1].first, 3 * RT_PERIOD, 5 * RT_PERIOD - 1);
	assert_int_equal(started[1].period, 4 * RT_PERIOD);
	assert_int_equal(started[1].signo, CA_SIGNAL);
}

/* perf's exact ticks while samples tell what is in S, or are looked for; else the kernel's, which are nearly free: also of
 * who meets others often. */
static void coarse_ticks(void **state)
{
	(void)state;
	ca_self = me;
	me->tick.backend = CA_BACKEND_PERF;
	me->tick.page = switch_log[0];
	me->tick_period = 4 * RT_PERIOD;
	me->ticks = 3;
	have_coarse = true;
	adjust();
	assert_int_equal(starts, 0); /* when they are drawn anew */
	me->ticks = 15;
	adjust();
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].period, 4 * RT_PERIOD);
	assert_int_equal(started[0].signo, CA_SIGNAL);
	assert_true(ca_tick_is_coarse(&me->tick));
	assert_int_equal(me->tick_length, 4 * RT_PERIOD);
	for (unsigned i = 0; i < 64; i++) {
		me->ticks = i;
		me->meets = 100;
		adjust();
		assert_int_equal(starts, 0);
	}
	atomic_store(&s->wants_stacks, 1);
	adjust();
	assert_int_equal(starts, 1);
	assert_in_range(started[0].first, 3 * RT_PERIOD / 4, 5 * RT_PERIOD / 4 - 1);
	assert_false(ca_tick_is_coarse(&me->tick));
	assert_int_equal(me->tick_period, RT_PERIOD);
	atomic_store(&s->wants_stacks, 0);
	adjust();
	assert_int_equal(starts, 1);
	assert_true(ca_tick_is_coarse(&me->tick));
	assert_int_equal(me->tick_period, 4 * RT_PERIOD);
	have_coarse = false;
}

/* ---- around calls ------------------------------------------------------------------------------------------- */
static void around_exec(void **state)
{
	(void)state;
	starts = stops = meets = lefts = 0;
	ca_thread_pause();
	ca_thread_resume();
	ca_self = me;
	me->tick.backend = CA_BACKEND_TIMER;
	me->depth = 1;
	ca_thread_resume(); /* they run */
	assert_int_equal(starts, 0);
	ca_rt.pid++; /* a child of vfork: all this is its parent's */
	ca_thread_pause();
	assert_int_equal(stops + meets + lefts, 0);
	ca_rt.pid--;
	me->guard = 1;
	ca_thread_pause();
	assert_int_equal(stops + meets + lefts, 0);
	me->guard = 0;
	ca_thread_pause();
	assert_int_equal(stops, 1);
	assert_int_equal(meets, 1);
	assert_int_equal(lefts, 1);
	assert_int_equal(me->guard, 0);
	/* exec has failed */
	ca_rt.pid++;
	ca_thread_resume();
	ca_rt.pid--;
	me->guard = 1;
	ca_thread_resume();
	me->guard = 0;
	atomic_store(&ca_rt.on, false);
	ca_thread_resume();
	assert_int_equal(starts, 0);
	atomic_store(&ca_rt.on, true);
	s->backend = CA_BACKEND_PERF;
	errno = 5;
	ca_thread_resume();
	assert_int_equal(errno, 5);
	assert_int_equal(starts, 1);
	assert_int_equal(started[0].wanted, CA_BACKEND_PERF);
	assert_int_equal(started[0].first, RT_PERIOD);
	assert_int_equal(started[0].period, RT_PERIOD);
	ca_thread_pause(); /* not in S: nothing to leave */
	assert_int_equal(lefts, 1);
}

static void left_alone(void **state)
{
	(void)state;
	lefts = 0;
	ca_thread_leave_alone(true); /* a thread that we do not follow */
	ca_self = me;
	ca_thread_leave_alone(false);
	assert_int_equal(me->guard, 0);
	me->depth = 1;
	ca_thread_leave_alone(true);
	assert_int_equal(me->guard, 1);
	assert_int_equal(lefts, 1);
	ca_thread_leave_alone(true);
	assert_int_equal(me->guard, 1);
	ca_thread_leave_alone(false);
	assert_int_equal(me->guard, 0);
	ca_thread_leave_alone(false);
	assert_int_equal(me->guard, 0);
	assert_int_equal(lefts, 1);
}

static bool hold_here(char *frame)
{
	frame[0] = 1;
	return ca_thread_hold();
}

/* As from a handler of the program's: far down on the stack. */
__attribute__((noinline)) static bool hold_far_down(void)
{
	volatile char frame[4096];

	return hold_here((char *)(uintptr_t)frame) && frame[0];
}

__attribute__((noinline)) static void unhold_far_down(void)
{
	volatile char frame[4096];

	frame[0] = 1;
	ca_thread_unhold(me);
	frame[1] = frame[0];
}

static void holding(void **state)
{
	sigset_t full, copy;

	(void)state;
	assert_false(ca_thread_hold()); /* not ours */
	ca_self = me;
	me->tick.backend = CA_BACKEND_PERF;
	assert_false(ca_thread_hold()); /* comes in no system call */
	ca_signals_inherit(CA_SYS_SIGNAL(CA_SIGNAL));
	assert_false(ca_thread_hold()); /* blocked, as all are in many threads */
	sigfillset(&full);
	ca_signals_without_ours(&full, &copy); /* ... and taken from a descriptor: no call is ended by it */
	assert_true(ca_thread_hold());
	assert_true(blocked(CA_SIGNAL));
	ca_thread_release(true);
	ca_signals_inherit(0);
	me->tick.backend = CA_BACKEND_TIMER;
	ends_calls = false; /* nor does one of a timer's, from Linux 5.9 on */
	assert_false(ca_thread_hold());
	ends_calls = true;
	assert_false(blocked(CA_SIGNAL));
	me->tick.backend = CA_BACKEND_TIMER;
	assert_true(ca_thread_hold());
	assert_true(blocked(CA_SIGNAL));
	assert_false(hold_far_down()); /* an outer call holds it */
	ca_thread_release(false);
	assert_true(blocked(CA_SIGNAL));
	unhold_far_down();
	assert_true(blocked(CA_SIGNAL));
	assert_true(me->held_sp != 0);
	ca_thread_release(true);
	assert_false(blocked(CA_SIGNAL));
	assert_int_equal(me->held_sp, 0);
	/* a longjmp has left the call that held it */
	assert_true(hold_far_down());
	assert_true(blocked(CA_SIGNAL));
	assert_true(ca_thread_hold());
	ca_thread_release(true);
	assert_true(hold_far_down());
	ca_thread_unhold(me);
	assert_false(blocked(CA_SIGNAL));
	assert_int_equal(me->held_sp, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(no_ticks),
		TEST(lives),
		TEST(ends_by_itself),
		TEST(off_or_nowhere),
		TEST(ticks_for_samples_of_s),
		TEST(more_threads_than_perf_takes),
		TEST(first_tick),
		TEST(waits_in_a_profile),
		TEST(in_step_with_the_kernel),
		TEST(no_timer_to_begin_with),
		TEST(creators),
		TEST(hoppers),
		TEST(burst),
		TEST(waits_for_a_slot),
		TEST(takes_low_slots),
		TEST(makes_slots),
		TEST(no_memory),
		TEST(no_slot),
		TEST(unannounced),
		TEST(forgets),
		TEST(ticks_as_needed),
		TEST(coarse_ticks),
		TEST(around_exec),
		TEST(left_alone),
		TEST(holding),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/runtime/probe.c: what the hooks make of enters and exits, threads that were inside when
 * the selection came, and placing the sites. The ledger is real; patching and the look at the
 * stack are stood in for. */
#include "causal/runtime/activation.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/spins.h"
#include "core/cpu.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <linux/perf_event.h>

enum { TOP = 100000, POINT = 3 };

/* ---- what stands in ----------------------------------------------------------------------- */
static struct ca_patch_hooks hook;
static unsigned installs, removals, installed[4], fail[4];
static uint8_t first_kind[4];
static bool in_selection, again, forked;
static unsigned outermost;

void ca_patch_set_hooks(const struct ca_patch_hooks *hooks)
{
	hook = *hooks;
}

static bool not_removed;

bool ca_patch_remove(void)
{
	removals++;
	return !not_removed;
}

static uintptr_t retired_pc;
static unsigned retirements, retired_removals;

void ca_patch_retire(uintptr_t pc)
{
	retirements++;
	retired_pc = pc;
}

void ca_patch_remove_retired(void)
{
	retired_removals++;
}

unsigned ca_patch_install(const struct ca_site *site, size_t n, bool (*bias)(uint32_t, uintptr_t *))
{
	(void)bias;
	assert_true(installs < CA_COUNT(installed));
	installed[installs] = (unsigned)n;
	first_kind[installs] = n ? site->kind : 0;
	if (forked) /* in the middle of it; nobody will come back to finish */
		ca_probe_forked();
	if (again) {
		again = false;
		atomic_fetch_add(&s->selection.seq, 2);
		ca_probe_service();
	}
	return fail[installs++];
}

static unsigned walked;

void ca_sample_stack_here(struct ca_thread *t)
{
	(void)t;
	walked++;
}

bool ca_sample_in_selection(const struct ca_stack *stack, unsigned *out, unsigned *part)
{
	(void)stack;
	*out = outermost;
	*part = 0;
	return in_selection;
}

/* Meetings: of a known thread they leave the vector registers alone, which tests/check-sigsafe.py
 * sees to; here they are spoilt, as libc's functions do. */
static unsigned meetings, meetings_known, pays;

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	(void)object, (void)site;
	meetings++;
	__asm__ volatile("pcmpeqd %%xmm1, %%xmm1\n\tpcmpeqd %%xmm14, %%xmm14" ::: "xmm1", "xmm14");
}

static uintptr_t met_at;

void ca_wait_meet_known(struct ca_thread *t, uintptr_t site)
{
	met_at = site;
	assert_ptr_equal(t, me);
	t->meets++;
	meetings_known++;
	atomic_fetch_add(&t->slot->spun, pays);
}

static uintptr_t frame[28]; /* what a trampoline and its thunk have put on the stack, up to the program's */

static uintptr_t program_sp(void)
{
	return (uintptr_t)(frame + sizeof frame / sizeof *frame);
}

static uintptr_t looked_pc, looked_rdi, looked_rbx;
static unsigned spin_looks, looked_known;

void ca_spins_look(struct ca_thread *t, uintptr_t pc, const uintptr_t all[16], unsigned known)
{
	assert_ptr_equal(t, me);
	spin_looks++;
	looked_pc = pc;
	looked_rdi = all[5];
	looked_rbx = all[3];
	looked_known = known;
}

/* ---- helpers ------------------------------------------------------------------------------ */
static uint64_t seq = 2; /* `serviced` outlives a test */

static void select_new(enum ca_site_kind kind, uint32_t sites)
{
	seq += 2;
	s->selection.exact = 1;
	s->selection.sites = sites;
	for (uint32_t i = 0; i < sites; i++)
		s->selection.site[i].kind = (uint8_t)kind;
	s->selection.log_start = atomic_load(&s->log_head);
	atomic_store(&s->selection.seq, seq);
}

static void service(void)
{
	installs = removals = 0;
	ca_probe_service();
}

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	memset(fail, 0, sizeof fail);
	in_selection = false;
	ca_rt.patching = true;
	ca_sampler_host.translate = NULL;
	ca_probe_init();
	assert_true(ca_sampler_host.translate == ca_patch_translate);
	select_new(CA_SITE_ENTER, 1);
	service();
	return 0;
}

static bool in_s(void)
{
	bool told = atomic_load(&me->slot->in_s) == 1;

	assert_int_equal(told, me->depth > 0);
	return told;
}

static uint64_t entries(void)
{
	return atomic_load(&s->log_head);
}

/* As a tick does. */
static void check(void)
{
	ca_ledger_follow(me);
	ca_probe_check(me, &me->stack);
}

/* ---- enter and exit ------------------------------------------------------------------------ */
static void one_visit(void **state)
{
	uint64_t before = ca_clock_now();

	(void)state;
	hook.enter(TOP);
	assert_true(in_s());
	assert_int_equal(me->guard, 0);
	hook.exit(TOP);
	assert_false(in_s());
	assert_int_equal(me->guard, 0);
	assert_int_equal(entries(), 2);
	assert_in_range(rt_logged(0, CA_LOG_ENTER, 0)->time, before, ca_clock_now());
	assert_in_range(rt_logged(1, CA_LOG_EXIT, 0)->time, s->log[0].time, ca_clock_now());
	assert_true(me->last >= s->log[1].time); /* all of it is accounted for */
}

/* S has two parts, and one calls the other: the thread is in the faster one meanwhile. */
static void parts(void **state)
{
	(void)state;
	hook.stamp(CA_MAX_POINTS);
	hook.enter(TOP);
	assert_int_equal(rt_logged(0, CA_LOG_ENTER, 0)->value, 0);
	hook.stamp(CA_MAX_POINTS + 1);
	hook.enter(TOP - 1);
	assert_int_equal(rt_logged(1, CA_LOG_ENTER, 0)->value, 1);
	assert_int_equal(atomic_load(&me->slot->in_s), ca_slot_in_s(CA_IN_S, 1));
	hook.stamp(CA_MAX_POINTS);
	hook.enter(TOP - 2); /* which calls the slower one: nothing changes */
	hook.exit(TOP - 2);
	assert_int_equal(entries(), 2);
	hook.exit(TOP - 1);
	assert_int_equal(rt_logged(2, CA_LOG_ENTER, 0)->value, 0);
	assert_true(in_s());
	hook.exit(TOP);
	rt_logged(3, CA_LOG_EXIT, 0);
	assert_int_equal(entries(), 4);
	/* the faster one is left by longjmp, to the slower one, which calls itself */
	hook.enter(TOP);
	hook.stamp(CA_MAX_POINTS + 1);
	hook.enter(TOP - 1);
	hook.enter(TOP);
	assert_int_equal(s->log[entries() - 1].value, 0);
	hook.exit(TOP);
	/* no point is visited */
	for (unsigned i = 0; i < CA_MAX_POINTS; i++)
		assert_int_equal(atomic_load(&me->slot->count[i]), 0);
}

/* Only the outermost activation counts, however deep it goes: past CA_FRAMES none is remembered. */
static void recursion(void **state)
{
	enum { DEEP = 3 * CA_FRAMES };
	uint64_t before = ca_clock_now();

	(void)state;
	for (unsigned top = 1; top <= DEEP; top++) {
		for (unsigned i = 0; i < top; i++)
			hook.enter(TOP - i);
		assert_int_equal(me->depth, top);
		assert_true(me->entered >= before); /* what lies behind frame[] */
		for (unsigned i = top; i-- > 0;) {
			assert_true(in_s());
			hook.exit(TOP - i);
			assert_int_equal(me->depth, i);
		}
		assert_false(in_s());
		assert_int_equal(entries(), 2 * top);
		rt_logged(2 * top - 2, CA_LOG_ENTER, 0);
		rt_logged(2 * top - 1, CA_LOG_EXIT, 0);
	}
}

static void deep_frames_left_by_longjmp(void **state)
{
	(void)state;
	for (unsigned keep = 0; keep < CA_FRAMES; keep++) {
		uint64_t before = entries();

		for (unsigned i = 0; i < CA_FRAMES + 9; i++)
			hook.enter(TOP - i);
		/* back in activation `keep`, which calls another one and returns, and so do the rest */
		hook.enter(TOP - keep - 1);
		if (keep + 2 <= CA_FRAMES)
			assert_int_equal(me->depth, keep + 2);
		hook.exit(TOP - keep - 1);
		for (unsigned i = keep + 1; i-- > 0;) {
			assert_true(in_s());
			hook.exit(TOP - i);
		}
		assert_false(in_s());
		assert_int_equal(entries(), before + 2);
	}
}

/* An activation too deep to be remembered that begins anew, without an exit in between. */
static void deep_frame_that_starts_over(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= CA_FRAMES; i++)
		hook.enter(TOP - i);
	hook.enter(TOP - CA_FRAMES);
	for (unsigned i = CA_FRAMES + 1; i-- > 0;)
		hook.exit(TOP - i);
	assert_false(in_s());
}

static void frames_left_by_longjmp(void **state)
{
	(void)state;
	hook.enter(TOP);
	hook.enter(TOP - 10);
	hook.enter(TOP - 20);
	hook.exit(TOP); /* of the outermost: the others are gone */
	assert_false(in_s());
	assert_int_equal(entries(), 2);
	hook.enter(TOP);
	hook.enter(TOP - 10);
	hook.enter(TOP - 5); /* above the inner one, which therefore is gone */
	assert_int_equal(me->depth, 2);
	hook.exit(TOP - 5);
	hook.exit(TOP);
	assert_false(in_s());
	assert_int_equal(entries(), 4);
	/* all were left, and it is entered anew: it never was outside for the others */
	hook.enter(TOP);
	hook.enter(TOP + 50);
	assert_int_equal(me->depth, 1);
	assert_int_equal(entries(), 5);
	hook.exit(TOP + 50);
	assert_false(in_s());
}

static void same_activation_twice(void **state)
{
	(void)state;
	hook.enter(TOP);
	hook.enter(TOP);
	assert_int_equal(me->depth, 1);
	hook.exit(TOP);
	assert_false(in_s());
}

static void exits_without_enter(void **state)
{
	(void)state;
	hook.exit(TOP);
	assert_int_equal(entries(), 0);
	hook.enter(TOP);
	hook.exit(TOP - 10); /* the sites appeared while this one was on the stack */
	assert_true(in_s());
	hook.exit(TOP);
	assert_false(in_s());
}

static void nothing_while_guarded_or_off(void **state)
{
	(void)state;
	me->guard = 1;
	hook.enter(TOP);
	hook.stamp(POINT);
	assert_false(in_s());
	me->guard = 0;
	hook.enter(TOP);
	me->guard = 1;
	hook.exit(TOP);
	assert_true(in_s());
	me->guard = 0;
	hook.exit(TOP);
	atomic_store(&ca_rt.on, false);
	hook.enter(TOP);
	hook.stamp(POINT);
	assert_false(in_s());
	atomic_store(&ca_rt.on, true);
	ca_self = NULL;
	hook.enter(TOP);
	hook.exit(TOP);
	hook.stamp(POINT);
	assert_int_equal(entries(), 2);
	assert_int_equal(atomic_load(&me->slot->count[POINT]), 0);
}

/* What passes the sites of the selection before must not count for this one. */
static void sites_of_another_selection(void **state)
{
	(void)state;
	select_new(CA_SITE_ENTER, 1);
	hook.enter(TOP);
	assert_false(in_s());
	service();
	hook.enter(TOP);
	assert_true(in_s());
	/* whoever was in the old one is not in the new one */
	select_new(CA_SITE_ENTER, 1);
	hook.exit(TOP);
	assert_false(in_s());
	assert_int_equal(entries(), 2);
	rt_logged(1, CA_LOG_EXIT, 0); /* nor in the log, wherever his entry stands there */
}

/* ---- times off the CPU in S ------------------------------------------------------------------ */
static void switched(bool out, uint64_t time)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)switch_log[0];
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record = { { PERF_RECORD_SWITCH, out ? PERF_RECORD_MISC_SWITCH_OUT : 0, sizeof record }, time };

	memcpy(switch_log[0] + RT_PAGE + page->data_head, &record, sizeof record);
	page->data_head += sizeof record;
}

static void pass(uint64_t ns)
{
	uint64_t end = ca_clock_now() + ns;

	while (ca_clock_now() < end)
		;
}

static void was_off(uint64_t n, uint64_t from, uint64_t to)
{
	assert_int_equal(rt_logged(n, CA_LOG_WAS_OFF, 0)->time, from);
	assert_int_equal(s->log[n].value, to);
}

static void switched_out_in_s(void **state)
{
	uint64_t t0;

	(void)state;
	hook.enter(TOP);
	t0 = me->entered;
	switched(true, t0 + 10);
	switched(false, t0 + 20);
	switched(true, t0 + 30);
	switched(false, t0 + 70);
	pass(1000);
	hook.exit(TOP);
	assert_int_equal(entries(), 4);
	was_off(1, t0 + 10, t0 + 20);
	was_off(2, t0 + 30, t0 + 70);
	rt_logged(3, CA_LOG_EXIT, 0);
}

/* However many there are; told of in ticks already, each once. */
static void switched_out_often(void **state)
{
	enum { TIMES = 100 };
	uint64_t t0, n = 1;

	(void)state;
	hook.enter(TOP);
	t0 = me->entered;
	pass(100000);
	for (uint64_t i = 0; i < TIMES; i++) {
		switched(true, t0 + 10 * i + 1);
		switched(false, t0 + 10 * i + 4);
		if (i == 20 || i == 28 || i == 29)
			ca_activation_tell(me, t0 + 10 * i + 5);
		if (i == 20 || i == 28 || i == 29 || i == TIMES - 1)
			for (i == TIMES - 1 ? hook.exit(TOP) : (void)0; n <= i + 1; n++)
				was_off(n, t0 + 10 * (n - 1) + 1, t0 + 10 * (n - 1) + 4);
	}
	rt_logged(n, CA_LOG_EXIT, 0);
	assert_int_equal(entries(), n + 1);
	ca_activation_tell(me, ca_clock_now()); /* outside: nothing to tell */
	assert_int_equal(entries(), n + 1);
}

/* A wait that a wrapper sees is told of by the wrapper. */
static void not_told_of_waits(void **state)
{
	static const enum ca_wait others = CA_WAIT_OTHERS;
	uint64_t t0;

	(void)state;
	hook.enter(TOP);
	t0 = me->entered;
	switched(true, t0 + 10);
	switched(false, t0 + 20);
	me->waiting = &others;
	ca_activation_tell(me, t0 + 30);
	assert_int_equal(entries(), 1);
	me->waiting = NULL;
	ca_activation_tell(me, t0 + 40);
	was_off(1, t0 + 10, t0 + 20);
}

/* The log is caught up with before the time is taken: nobody else's entry that comes before has a
 * later time. */
static void catches_up_before_it_enters(void **state)
{
	enum { BEHIND = CA_LOG_ENTRIES / 2 - 10, TRIES = 20 };
	bool late = false;

	(void)state;
	for (unsigned try = 0; try < TRIES && !late; try++) {
		uint64_t began, ended, n;

		for (unsigned i = 0; i < BEHIND; i++)
			ca_ledger_log(i % 2 ? CA_LOG_EXIT : CA_LOG_ENTER, &thread[1], 0, 0);
		n = entries();
		began = ca_clock_now();
		hook.enter(TOP);
		ended = ca_clock_now();
		late = s->log[n % CA_LOG_ENTRIES].time - began > (ended - began) / 2;
		hook.exit(TOP);
	}
	assert_true(late);
}

/* Not through a wrapper. */
static void sleep_a_little(void)
{
	struct timespec nap = { 0, 2000000 };

	ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
}

/* Without a switch log the CPU clock tells how long it was. */
static void slept_in_s(void **state)
{
	const struct ca_log_entry *off;
	uint64_t ticked;

	(void)state;
	me->switches.page = NULL;
	hook.enter(TOP);
	sleep_a_little();
	hook.exit(TOP);
	assert_int_equal(entries(), 3);
	off = rt_logged(1, CA_LOG_WAS_OFF, 0);
	/* up to the exit: a thread is preempted where the CPU clock was read */
	assert_int_equal(off->value, rt_logged(2, CA_LOG_EXIT, 0)->time);
	assert_in_range(off->time, s->log[0].time, off->value - 1000000);
	/* a wrapper has told of the wait already */
	hook.enter(TOP);
	me->waited = true;
	sleep_a_little();
	hook.exit(TOP);
	assert_int_equal(entries(), 5);
	/* and of none at all */
	hook.enter(TOP);
	assert_false(me->waited);
	hook.exit(TOP);
	assert_int_equal(entries(), 7);
	/* once in a tick, once at the end: what was told of is not told again */
	hook.enter(TOP);
	sleep_a_little();
	ticked = ca_clock_now();
	ca_activation_tell(me, ticked);
	hook.exit(TOP);
	assert_int_equal(entries(), 10);
	assert_in_range(rt_logged(8, CA_LOG_WAS_OFF, 0)->value, ticked, rt_logged(9, CA_LOG_EXIT, 0)->time);
	/* a wait in one stretch says nothing about the next one */
	hook.enter(TOP);
	me->waited = true;
	ca_activation_tell(me, ca_clock_now());
	sleep_a_little();
	hook.exit(TOP);
	rt_logged(11, CA_LOG_WAS_OFF, 0);
}

/* ---- threads that were inside when the selection came --------------------------------------- */
static void inside_a_function(void **state)
{
	(void)state;
	in_selection = true;
	outermost = 2;
	me->stack.depth = 4;
	me->stack.cfa[2] = TOP + 8;
	me->sampled_in = true;
	check();
	assert_true(in_s());
	assert_false(me->sampled_in);
	assert_int_equal(entries(), 1);
	/* only once for a selection */
	check();
	assert_int_equal(entries(), 1);
	/* its exit knows it */
	hook.enter(TOP - 40);
	hook.exit(TOP - 40);
	assert_true(in_s());
	hook.exit(TOP);
	assert_false(in_s());
	rt_logged(0, CA_LOG_ENTER, 0);
	rt_logged(1, CA_LOG_EXIT, 0);
	check();
	assert_false(in_s());
}

/* Who sleeps most of the time in a function that it never leaves has hardly ever a tick: it is found when it
 * waits, once for each selection. */
static void inside_before_a_wait(void **state)
{
	struct ca_waiting w;

	(void)state;
	select_new(CA_SITE_ENTER, 1);
	in_selection = true;
	me->stack.cfa[0] = TOP + 8;
	outermost = 0;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1); /* the sites are not in place yet */
	ca_wait_end(&w);
	assert_false(in_s());
	service();
	walked = 0;
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(me->depth, 1);
	assert_true(w.in_s);
	ca_wait_end(&w);
	assert_true(in_s());
	rt_logged(0, CA_LOG_ENTER, 0);
	rt_logged(1, CA_LOG_EXTERNAL, 0);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	ca_wait_end(&w);
	assert_int_equal(walked, 1);
}

/* The selection is a line, and its sites are calls: the thread is in S while it is in one. */
static void inside_a_line(void **state)
{
	(void)state;
	for (unsigned exits = 0; exits < 2; exits++) {
		uint64_t before;

		select_new(exits ? CA_SITE_EXIT : CA_SITE_CALL, 1);
		service();
		before = entries();
		in_selection = true;
		me->stack.cfa[0] = TOP - 8;
		me->stack.cfa[1] = TOP;
		me->stack.cfa[2] = TOP + 300;
		outermost = 2;
		check();
		assert_true(in_s());
		assert_int_equal(me->frame[0], TOP);
		hook.exit(TOP);
		assert_false(in_s());
		assert_int_equal(entries(), before + 2);
		/* between two of its calls: not in S */
		select_new(CA_SITE_CALL, 1);
		service();
		outermost = 0;
		check();
		assert_false(in_s());
		assert_int_equal(entries(), before + 2);
	}
}

static void not_inside_any_more(void **state)
{
	(void)state;
	hook.enter(TOP);
	me->stack.complete = false; /* who knows */
	check();
	assert_true(in_s());
	me->checked = false;
	in_selection = true;
	check(); /* it is, and was known to be */
	assert_int_equal(entries(), 1);
	me->checked = in_selection = false;
	me->stack.complete = true;
	check();
	assert_false(in_s());
	rt_logged(1, CA_LOG_EXIT, 0);
}

static void no_check(void **state)
{
	(void)state;
	in_selection = true;
	outermost = 1;
	s->selection.exact = 0; /* S is sampled */
	check();
	assert_false(me->checked);
	s->selection.exact = 1;
	s->selection.sites = 0;
	check();
	assert_false(me->checked);
	select_new(CA_SITE_ENTER, 1); /* its sites are not in place */
	check();
	assert_false(me->checked);
	assert_false(in_s());
	service();
	check();
	assert_true(in_s());
}

/* What is left by other ways than exits: by any sign of the thread above it. */
static void over(void **state)
{
	(void)state;
	ca_activation_check(me, TOP + 1);
	assert_int_equal(entries(), 0);
	hook.enter(TOP);
	hook.enter(TOP - 20);
	ca_activation_check(me, TOP - 30);
	assert_int_equal(me->depth, 2);
	ca_activation_check(me, TOP - 10); /* the inner one is gone */
	assert_int_equal(me->depth, 1);
	ca_activation_check(me, TOP); /* a function's first instruction */
	assert_true(in_s());
	ca_activation_check(me, TOP + 1);
	assert_false(in_s());
	rt_logged(1, CA_LOG_EXIT, 0);
	assert_int_equal(entries(), 2);
	select_new(CA_SITE_CALL, 1);
	service();
	hook.enter(TOP);
	ca_activation_check(me, TOP - 1);
	assert_true(in_s());
	ca_activation_check(me, TOP); /* the caller is back */
	assert_false(in_s());
}

/* ---- more than one stack ---------------------------------------------------------------------- */
enum { OTHER = 10 * TOP, HIGH = 20 * TOP };

static void own_stack(uintptr_t low, uintptr_t high)
{
	me->stack.own_low = low;
	me->stack.own_high = high;
}

/* A coroutine enters S and is suspended there; another one, above or below, does the same. */
static void coroutines(void **state)
{
	static const uintptr_t stack[][2] = {
		{ TOP, OTHER }, { OTHER, TOP }, { OTHER, HIGH }, { HIGH, OTHER }
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(stack); i++) {
		uintptr_t a = stack[i][0], b = stack[i][1];
		uint64_t before = entries();

		own_stack(TOP - 5000, TOP + 5000);
		hook.enter(a);
		hook.enter(b);
		assert_int_equal(me->depth, 2);
		hook.enter(a - 100);
		hook.exit(a - 100);
		hook.exit(a);
		assert_true(in_s());
		hook.enter(a);
		hook.exit(b);
		assert_true(in_s());
		hook.exit(a);
		assert_false(in_s());
		assert_int_equal(entries(), before + 2);
	}
}

/* What a stack's own addresses tell still holds; what lies on another one lives. */
static void left_on_one_of_two_stacks(void **state)
{
	(void)state;
	own_stack(1000, TOP + 5000);
	hook.enter(OTHER);
	hook.enter(TOP);
	hook.enter(5000); /* far below, but on the thread's own stack */
	assert_int_equal(me->depth, 3);
	ca_activation_check(me, TOP + 10);
	assert_int_equal(me->depth, 1);
	assert_true(in_s());
	assert_true(me->elsewhere);
	ca_activation_check(me, OTHER + 10);
	assert_false(in_s());
}

/* A signal's handler on a stack of its own that interrupted S; a jump to another coroutine. */
static void signal_stack(void **state)
{
	(void)state;
	own_stack(TOP - 5000, TOP + 5000);
	hook.enter(TOP);
	assert_int_equal(atomic_load(&s->elsewhere), 0);
	ca_activation_check(me, HIGH);
	ca_activation_check(me, 500);
	assert_true(in_s());
	hook.exit(TOP);
	assert_false(in_s());
	/* which the conductor hears of */
	assert_int_equal(atomic_load(&s->elsewhere), 2);
	hook.enter(TOP);
	for (unsigned i = 0; i < 10; i++)
		ca_activation_check(me, HIGH);
	assert_int_equal(atomic_load(&s->elsewhere), CA_ELSEWHERE);
	hook.exit(TOP);
}

/* Where hooks cannot tell, each tick looks: suspended in S, the thread is elsewhere; later it goes on. */
static void ticks_see_coroutines(void **state)
{
	(void)state;
	own_stack(TOP - 5000, TOP + 5000);
	check();
	hook.enter(OTHER);
	me->stack.complete = true;
	ca_activation_check(me, TOP);
	check();
	assert_false(in_s());
	hook.exit(OTHER);
	assert_int_equal(entries(), 2);
	in_selection = true;
	outermost = 0;
	me->stack.cfa[0] = OTHER + 8;
	check();
	assert_true(in_s());
	hook.exit(OTHER);
	assert_false(in_s());
}

/* Code in the midst of a function may be left where there is no probe: a tick finds that out. One that finds it there
 * changes nothing, nor does whoever passes an exit from outside. */
static void edges(void **state)
{
	(void)state;
	s->selection.edges = 1;
	check();
	hook.exit(TOP);
	hook.enter(TOP);
	hook.enter(TOP);
	in_selection = true;
	me->stack.complete = true;
	check();
	assert_true(in_s());
	hook.exit(TOP);
	assert_false(in_s());
	hook.enter(TOP);
	in_selection = false;
	me->stack.complete = false; /* who knows */
	check();
	assert_true(in_s());
	me->stack.complete = true;
	check();
	assert_false(in_s());
	hook.exit(TOP);
	assert_int_equal(entries(), 4);
	s->selection.edges = 0;
}

/* Who changes stacks by libc's own calls is in S only where it runs, also if another thread goes on. */
static void stacks_of_libc(void **state)
{
	struct ca_aside first, second;

	(void)state;
	own_stack(TOP - 5000, TOP + 5000);
	hook.enter(TOP);
	hook.enter(TOP - 100);
	ca_activation_put_aside(&first);
	assert_false(in_s());
	rt_logged(1, CA_LOG_EXIT, 0);
	hook.enter(OTHER);
	ca_activation_put_aside(&second);
	assert_false(in_s());
	ca_activation_put_aside(&(struct ca_aside){ 0 }); /* nothing to put aside */
	ca_activation_take_up(&first);
	assert_true(in_s());
	rt_logged(4, CA_LOG_ENTER, 0);
	hook.exit(TOP - 100);
	assert_true(in_s());
	hook.exit(TOP);
	assert_false(in_s());
	assert_int_equal(atomic_load(&s->elsewhere), 0);
	ca_self = &thread[1];
	ca_activation_take_up(&second);
	rt_logged(6, CA_LOG_ENTER, 1);
	hook.exit(OTHER);
	rt_logged(7, CA_LOG_EXIT, 1);
	ca_self = me;
	/* left in S by a jump to who was in S, too */
	hook.enter(OTHER);
	ca_activation_take_up(&first);
	assert_int_equal(me->depth, 2);
	hook.exit(TOP);
	assert_false(in_s());
	/* it comes back to another S */
	hook.enter(TOP);
	ca_activation_put_aside(&first);
	select_new(CA_SITE_ENTER, 1);
	service();
	ca_activation_take_up(&first);
	assert_false(in_s());
	assert_int_equal(me->guard, 0);
}

static void told_of_the_stack(void **state)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	(void)state;
	ca_activation_own_stack(here - 4096, 4096); /* it cannot be that one */
	ca_activation_own_stack(here + 8192, 4096);
	assert_int_equal(me->stack.own_high, 0);
	ca_activation_own_stack(here + 8192, 65536);
	assert_int_equal(me->stack.own_high, here + 8192);
	assert_int_equal(me->stack.own_low, here + 8192 - 65536);
	ca_self = NULL;
	ca_activation_own_stack(here + 8192, 65536);
}

/* ---- stamps ---------------------------------------------------------------------------------- */
static void stamps(void **state)
{
	uint64_t low, high;

	(void)state;
	rt_open_experiment(500000);
	low = ca_clock_now() - s->experiment.start;
	hook.stamp(POINT);
	hook.stamp(POINT);
	high = ca_clock_now() - s->experiment.start;
	hook.stamp(CA_MAX_POINTS);
	assert_int_equal(atomic_load(&me->slot->count[POINT]), 2);
	assert_in_range(atomic_load(&me->slot->stamp[POINT]), 2 * low, 2 * high);
	assert_int_equal(atomic_load(&me->slot->stamping), 4);
	assert_int_equal(me->guard, 0);
}

/* The last visit's time is that of the run's clock; what the thread owes comes before it. */
static void last_visit(void **state)
{
	enum { SETTLED = 5000000, OWED = 3000000 };
	uint64_t low, high, last;

	(void)state;
	atomic_store(&s->settled_delay, SETTLED);
	rt_open_experiment(500000);
	ca_ledger_follow(me);
	me->owed = OWED;
	low = ca_clock_now();
	hook.stamp(POINT);
	high = ca_clock_now();
	last = atomic_load(&me->slot->last[POINT]);
	assert_in_range(last, low - SETTLED + OWED, high - SETTLED + OWED);
	/* so it does in the experiment's */
	assert_in_range(atomic_load(&me->slot->stamp[POINT]), low - s->experiment.start + OWED,
			high - s->experiment.start + OWED);
	me->owed = -OWED; /* paid ahead: nothing has to come before it */
	low = ca_clock_now();
	hook.stamp(POINT);
	assert_in_range(atomic_load(&me->slot->last[POINT]), low - SETTLED, ca_clock_now() - SETTLED);
	me->owed = 0;
}

/* Visits in these buckets. */
static uint64_t timed(uint32_t low, uint32_t high)
{
	uint64_t n = 0;

	for (uint32_t b = low; b < high; b++)
		n += atomic_load(&s->latency[0].count[b]);
	return n;
}

/* How long a visit took on the thread's own virtual clock, if it has begun and ended it. */
static void visit_times(void **state)
{
	enum { BEGIN, END, LONE };
	const uint64_t length = UINT64_C(1) << 34, paid = length / 4, owed = length / 8; /* ns */
	struct ca_progress_point *begin = ca_point_get(s, CA_POINT_BEGIN, "a");
	uint32_t low, high;

	(void)state;
	assert_ptr_equal(begin, &s->point[BEGIN]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "a"), &s->point[END]);
	assert_ptr_equal(ca_point_get(s, CA_POINT_END, "b"), &s->point[LONE]);
	hook.stamp(BEGIN);
	hook.stamp(LONE);
	assert_int_equal(timed(0, CA_LATENCY_BUCKETS), 0);
	hook.stamp(END);
	assert_int_equal(timed(0, CA_LATENCY_BUCKETS), 1);
	assert_int_equal(atomic_load(&s->latency[0].odd), 0);
	assert_int_equal(atomic_load(&s->latency[1].odd), 1);
	/* some of it was inserted, less what is yet to be paid */
	hook.stamp(BEGIN);
	me->begun[0] -= length;
	atomic_store(&s->settled_delay, paid);
	rt_open_experiment(500000);
	ca_ledger_follow(me);
	me->owed = (int64_t)owed;
	hook.stamp(END);
	me->owed = 0;
	low = ca_latency_bucket(length - paid + owed);
	high = ca_latency_bucket(length);
	assert_int_equal(timed(low, high), 1);
	assert_int_equal(timed(0, CA_LATENCY_BUCKETS), 2);
	/* begun by another thread; begun anew in the midst of it; ended twice */
	ca_self = &thread[1];
	hook.stamp(END);
	assert_int_equal(atomic_load(&s->latency[0].odd), 1);
	hook.stamp(BEGIN);
	hook.stamp(BEGIN);
	assert_int_equal(atomic_load(&s->latency[0].odd), 2);
	hook.stamp(END);
	hook.stamp(END);
	assert_int_equal(atomic_load(&s->latency[0].odd), 3);
	assert_int_equal(timed(0, CA_LATENCY_BUCKETS), 3);
	assert_int_equal(me->begun[0], 0);
	ca_self = me;
}

/* Where visits are too many for a look at the clock each, they are counted only; in a thread that is at
 * work for us they are, too. */
static void hot_point(void **state)
{
	(void)state;
	s->point[POINT].kind = CA_POINT_THROUGHPUT;
	hook.stamp(POINT);
	me->stamps_from = ca_clock_now() - CA_NS_PER_S;
	me->stamps = 63;
	hook.stamp(POINT);
	assert_int_equal(atomic_load(&me->slot->hot[POINT]), 0);
	assert_int_equal(me->stamps, 0);
	for (unsigned i = 0; i < 100000 && !atomic_load(&me->slot->hot[POINT]); i++)
		hook.stamp(POINT);
	assert_int_equal(atomic_load(&me->slot->hot[POINT]), 1);
}

/* ---- placing the sites ----------------------------------------------------------------------- */
static void placing(void **state)
{
	struct ca_process *p = &s->process[0];

	(void)state;
	assert_int_equal(removals, 1); /* by set_up */
	assert_int_equal(atomic_load(&p->patched), seq);
	service();
	assert_int_equal(installs, 0); /* done already */
	select_new(CA_SITE_ENTER, 5);
	s->selection.site[3].kind = s->selection.site[4].kind = CA_SITE_MEET;
	fail[0] = 2;
	fail[1] = 1;
	service();
	assert_int_equal(installs, 2);
	assert_int_equal(installed[0], 2);
	assert_int_equal(first_kind[0], CA_SITE_MEET);
	assert_int_equal(installed[1], 3);
	assert_int_equal(first_kind[1], CA_SITE_ENTER);
	assert_int_equal(atomic_load(&p->patch_failed), 1); /* what S needs counts */
	assert_int_equal(atomic_load(&p->patched), seq);
	select_new(CA_SITE_MEET, 2);
	fail[0] = 1;
	fail[1] = 0;
	service();
	assert_int_equal(installed[0], 2);
	assert_int_equal(installed[1], 0);
	assert_int_equal(atomic_load(&p->patch_failed), 0);
}

/* The sites of the selection before stand still: what passes them must not count for this one. */
static void may_not_be_removed(void **state)
{
	struct ca_process *p = &s->process[0];

	(void)state;
	select_new(CA_SITE_ENTER, 3);
	not_removed = true;
	service();
	ca_probe_service();
	not_removed = false;
	assert_int_equal(removals, 1); /* not at each tick */
	assert_int_equal(installs, 0);
	assert_int_equal(atomic_load(&p->patch_failed), 3);
	assert_int_equal(atomic_load(&p->patched), seq);
	hook.enter(TOP);
	assert_int_equal(ca_self->depth, 0);
	hook.exit(TOP);
	/* nor is it missed where samples tell of S: spinning threads pay later */
	select_new(CA_SITE_MEET, 2);
	not_removed = true;
	service();
	not_removed = false;
	assert_int_equal(atomic_load(&p->patch_failed), 0);
	select_new(CA_SITE_ENTER, 3);
	service();
	assert_int_equal(atomic_load(&p->patch_failed), 0);
	hook.enter(TOP);
	assert_int_equal(ca_self->depth, 1);
	hook.exit(TOP);
}

static void more_sites_than_fit(void **state)
{
	(void)state;
	select_new(CA_SITE_ENTER, 2);
	s->selection.sites = CA_SELECTION_SITES + 1;
	service();
	assert_true(installed[0] + installed[1] <= CA_SELECTION_SITES);
}

static void no_placing(void **state)
{
	struct ca_process *p = &s->process[0];
	uint64_t before = seq;

	(void)state;
	atomic_store(&s->selection.seq, seq + 1); /* the conductor writes */
	service();
	assert_int_equal(installs, 0);
	assert_int_equal(atomic_load(&p->patched), before);
	select_new(CA_SITE_ENTER, 1);
	ca_rt.patching = false;
	service();
	assert_int_equal(installs + removals, 0);
	assert_int_equal(atomic_load(&p->patched), seq);
	assert_int_equal(atomic_load(&p->patch_failed), 1);
	select_new(CA_SITE_ENTER, 0);
	s->selection.exact = 0;
	service();
	assert_int_equal(atomic_load(&p->patch_failed), 0);
}

static void one_at_a_time(void **state)
{
	(void)state;
	select_new(CA_SITE_ENTER, 1);
	again = true;
	service();
	assert_int_equal(removals, 1);
	service(); /* now it is its turn */
	assert_int_equal(removals, 1);
	seq += 2;
	select_new(CA_SITE_ENTER, 1);
	again = forked = true;
	service();
	forked = false;
	assert_int_equal(removals, 2);
	seq += 2;
}

/* Something else is selected at the very entry: nobody would tell of the exit, as its site is gone by then. */
static void selected_anew_at_an_entry(void **state)
{
	uint64_t from;

	(void)state;
	select_new(CA_SITE_ENTER, 1); /* seen in the entry's own account */
	ca_activation_enter(me, (uintptr_t)&from);
	assert_false(in_s());
	from = s->selection.log_start;
	for (uint64_t i = from; i < entries(); i++)
		assert_int_equal(s->log[i % CA_LOG_ENTRIES].type, CA_LOG_EXIT);
	select_new(CA_SITE_ENTER, 1); /* seen in the hook, before it: its sites are not in place yet */
	hook.enter((uintptr_t)&from);
	assert_false(in_s());
	service();
	hook.enter((uintptr_t)&from);
	assert_true(in_s());
	hook.exit((uintptr_t)&from);
	assert_false(in_s());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

/* A spin loop's hook; whoever spins has values in vector registers. */
static void meets(void **state)
{
	uint64_t low = 0, high = 0;

	(void)state;
	meetings = meetings_known = 0;
	hook.meet(program_sp());
	assert_int_equal(meetings_known, 1);
	assert_int_equal(met_at, 0); /* a pause is no place */
	assert_int_equal(meetings, 0);
	ca_self = NULL;
	__asm__ volatile(
		"movq %2, %%xmm1\n\tmovq %3, %%xmm14\n\tcall *%4\n\tmovq %%xmm1, %0\n\tmovq %%xmm14, %1"
		: "=&r"(low), "=&r"(high)
		: "r"(UINT64_C(0x1234567890)), "r"(UINT64_C(0x9876543210)), "r"(hook.meet)
		: "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "xmm1", "xmm14", "memory",
		  "cc");
	assert_int_equal(meetings, 1);
	assert_int_equal(low, 0x1234567890);
	assert_int_equal(high, 0x9876543210);
	atomic_store(&ca_rt.on, false);
	hook.meet(program_sp());
	assert_int_equal(meetings, 1);
}

static unsigned read_unguarded, read_guarded;

static int guarded_clock(clockid_t clock, struct timespec *now)
{
	*(me->guard ? &read_guarded : &read_unguarded) += 1;
	return clock_gettime(clock, now);
}

/* The kernel's clock is no code of ours by its address: a tick there would be a sample of the program. */
static void pause_is_ours(void **state)
{
	ca_clock_function clock = atomic_load(&ca_clock_get);

	(void)state;
	ca_self = me;
	atomic_store(&ca_rt.on, true);
	atomic_store(&ca_clock_get, guarded_clock);
	hook.meet(program_sp());
	atomic_store(&ca_clock_get, clock);
	assert_true(read_guarded > 0);
	assert_int_equal(read_unguarded, 0);
	assert_int_equal(me->guard, 0);
}

/* Pauses one shortly after another are one wait. It begins anew where there was something else between, and where what was
 * owed has been paid. */
static void pauses(void **state)
{
	struct timespec nap = { 0, 20000 };
	uint64_t since, until;

	(void)state;
	ca_self = me;
	atomic_store(&ca_rt.on, true);
	hook.meet(program_sp());
	for (unsigned tries = 0; tries < 100; tries++) { /* whoever is preempted between two */
		since = me->spins_since;
		until = me->spins_until;
		hook.meet(program_sp());
		if (me->spins_since == since)
			break;
	}
	assert_int_equal(me->spins_since, since);
	assert_true(me->spins_until > until);
	nanosleep(&nap, NULL);
	until = me->spins_until;
	hook.meet(program_sp());
	assert_true(me->spins_since > until);
	pays = 10;
	hook.meet(program_sp());
	assert_int_equal(me->spins_since, me->spins_until);
	pays = 0;
	/* now and then, what it looks at: the words below the red zone are the thunk's */
	frame[11] = 0x1234;
	frame[6] = 0x77;
	frame[1] = 0x99;
	spin_looks = 0;
	for (unsigned i = 0; i < 512; i++)
		hook.meet(program_sp());
	assert_int_equal(spin_looks, 2);
	assert_int_equal(looked_pc, 0x1234);
	assert_int_equal(looked_rdi, 0x77);
	assert_int_equal(looked_rbx, 0x99);
	assert_int_equal(looked_known, 0xf3f);
}

/* n visits; before each k-th the thread meets others elsewhere. */
static void pass_atomics(unsigned n, unsigned k)
{
	for (unsigned i = 0; i < n; i++) {
		if (k && i % k == 0)
			me->meets++;
		hook.atomic(0x1000 + i);
	}
}

static void atomics(void **state)
{
	enum { MANY = 20000 };
	struct timespec nap = { 0, 30000000 };

	(void)state;
	meetings = meetings_known = retirements = 0;
	hook.atomic(1);
	assert_int_equal(meetings_known, 1);
	assert_int_equal(met_at, 1);
	me->guard++; /* ours */
	hook.atomic(1);
	me->guard--;
	ca_self = NULL; /* nobody we know */
	hook.atomic(1);
	ca_self = me;
	assert_int_equal(meetings_known + meetings, 1);
	/* in S as of just now: not again so soon */
	me->sampled_in = true;
	me->last_look = ca_cpu_cycles();
	hook.atomic(1);
	assert_int_equal(meetings_known, 1);
	me->last_look -= 1000000;
	hook.atomic(1);
	assert_int_equal(meetings_known, 2);
	me->sampled_in = false;
	assert_int_equal(retirements, 0);
	/* millions a second */
	pass_atomics(MANY, 0);
	assert_in_range(retirements, 1, MANY / 2048);
	assert_in_range(retired_pc, 0x1000, 0x1000 + MANY);
	/* beside as many other meetings: it spins, or hands over as often; ticks forget meetings */
	pass_atomics(2048, 2);
	retirements = 0;
	pass_atomics(MANY, 2);
	me->meets = 0;
	pass_atomics(MANY, 3);
	assert_int_equal(retirements, 0);
	/* seldom */
	for (unsigned i = 0; i < 8; i++) {
		nanosleep(&nap, NULL);
		pass_atomics(2000, 0);
	}
	assert_int_equal(retirements, 0);
	service();
	assert_true(retired_removals);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(one_visit),
		TEST(parts),
		TEST(pauses),
		TEST(pause_is_ours),
		TEST(recursion),
		TEST(deep_frames_left_by_longjmp),
		TEST(deep_frame_that_starts_over),
		TEST(frames_left_by_longjmp),
		TEST(same_activation_twice),
		TEST(exits_without_enter),
		TEST(nothing_while_guarded_or_off),
		TEST(sites_of_another_selection),
		TEST(switched_out_in_s),
		TEST(switched_out_often),
		TEST(not_told_of_waits),
		TEST(catches_up_before_it_enters),
		TEST(slept_in_s),
		TEST(inside_a_function),
		TEST(inside_before_a_wait),
		TEST(inside_a_line),
		TEST(not_inside_any_more),
		TEST(no_check),
		TEST(over),
		TEST(coroutines),
		TEST(left_on_one_of_two_stacks),
		TEST(signal_stack),
		TEST(ticks_see_coroutines),
		TEST(edges),
		TEST(stacks_of_libc),
		TEST(told_of_the_stack),
		TEST(stamps),
		TEST(last_visit),
		TEST(visit_times),
		TEST(hot_point),
		TEST(meets),
		TEST(atomics),
		TEST(placing),
		TEST(may_not_be_removed),
		TEST(more_sites_than_fit),
		TEST(no_placing),
		TEST(selected_anew_at_an_entry),
		TEST(one_at_a_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

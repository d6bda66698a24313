/* SPDX-License-Identifier: MIT */
/* causal/runtime/handler.c: what a tick does. That a sample is taken, what it weighs, what is dropped
 * and counted; hits of a sampled selection; waits. The handler is called as the kernel would; the
 * walk, the accounts and the rest of the runtime are stood in for. */
#include "causal/runtime/history.h"
#include "causal/runtime/patch.h"
#include "core/cpu.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/runtime.h"
#include <errno.h>
#include <linux/perf_event.h>
#include <ucontext.h>

#define CODE 0x400000u
#define HOOK (CODE + 0x3000)
enum { TEXT = 5, STACK = 0x7000 };

/* ---- what stands in ----------------------------------------------------------------------------- */
static struct sigaction action;
static bool may_take, lost;
static unsigned walks, followed, collected, tended, serviced, cancel_looks, adjusted, accrued, checked, paid,
	wound, forwarded, left, wait_lefts, told;
static ca_place walked[CA_UNWIND_DEPTH];
static unsigned walked_depth;
static bool walked_to_end;
static struct ca_registers walked_from;
static const enum ca_wait *accrued_wait;
static uintptr_t stack_of_tick;
static uint64_t pays, loses, sleeps; /* ns; loses: others have the CPU so long, as the switch log says */
static void is_off_cpu(uint32_t number);

bool ca_signals_take(void (*handler)(int, siginfo_t *, void *), uint64_t mask)
{
	action.sa_sigaction = handler;
	memcpy(&action.sa_mask, &mask, sizeof mask);
	return may_take;
}

void ca_unwind(const struct ca_registers *r, bool is_call, struct ca_stack *out)
{
	assert_false(is_call);
	walks++;
	walked_from = *r;
	stack_of_tick = (uintptr_t)__builtin_frame_address(0);
	out->depth = walked_depth;
	out->complete = walked_to_end;
	memcpy(out->place, walked, sizeof walked);
	errno = 99; /* whatever we do to it */
}

void ca_points_follow(uint64_t now, bool is_lost)
{
	assert_in_range(now, s->experiment.start, ca_clock_now());
	followed++;
	lost = is_lost;
}

void ca_points_collect(void)
{
	collected++;
}

void ca_rt_tend(uint64_t now)
{
	(void)now;
	tended++;
}

void ca_probe_service(void)
{
	serviced++;
}

void ca_cancel_service(struct ca_thread *t)
{
	assert_ptr_equal(t, me);
	cancel_looks++;
}

void ca_ticks_adjust(struct ca_thread *t)
{
	assert_ptr_equal(t, me);
	adjusted++;
}

void ca_ledger_accrue(struct ca_thread *t, uint64_t now, const enum ca_wait *wait)
{
	assert_int_equal(t->guard, 1);
	(void)now;
	accrued++;
	accrued_wait = wait;
}

uint64_t ca_ledger_pay(struct ca_thread *t)
{
	uint64_t until = ca_clock_now() + pays;

	paid++;
	if (loses)
		is_off_cpu(t->number);
	while (ca_clock_now() < until + loses)
		;
	nanosleep(&(struct timespec){ 0, (long)sleeps }, NULL);
	atomic_fetch_add(&t->slot->spun, pays);
	return ca_clock_now();
}

void ca_probe_check(struct ca_thread *t, const struct ca_stack *stack)
{
	assert_ptr_equal(stack, &t->stack);
	checked++;
}

void ca_activation_check(struct ca_thread *t, uintptr_t sp)
{
	assert_ptr_equal(t, me);
	assert_int_equal(sp, STACK);
	left++;
}

void ca_activation_wait_left(struct ca_thread *t, uint64_t now)
{
	assert_ptr_equal(t, me);
	assert_null(t->waiting);
	assert_in_range(now, 1, ca_clock_now());
	wait_lefts++;
}

void ca_activation_tell(struct ca_thread *t, uint64_t now)
{
	assert_ptr_equal(t, me);
	assert_in_range(now, s->experiment.start, ca_clock_now());
	told++;
}

void ca_thread_wind_down(struct ca_thread *t)
{
	char here;

	assert_ptr_equal(t, me);
	assert_in_range(&here, me->work_stack, me->work_stack + sizeof me->work_stack);
	wound++;
}

void ca_signals_forward(siginfo_t *info, void *context)
{
	assert_non_null(info);
	assert_non_null(context);
	forwarded++;
}

/* ---- helpers ------------------------------------------------------------------------------------ */
static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	walks = followed = collected = tended = serviced = cancel_looks = adjusted = accrued = checked =
		paid = wound = forwarded = left = told = 0;
	pays = 0;
	may_take = walked_to_end = true;
	lost = false;
	walked_depth = 3;
	for (unsigned i = 0; i < CA_UNWIND_DEPTH; i++)
		walked[i] = CA_PLACE(TEXT, 0x1000 + 16 * i);
	me->tick_weight = 1;
	me->tick.backend = CA_BACKEND_TIMER;
	me->hit_cpu = ca_clock_thread_cpu();
	ca_rt.own_low = CODE + 0x1000;
	ca_rt.own_high = CODE + 0x2000;
	return ca_handler_install() ? 0 : -1;
}

static union sigval mark;
static uintptr_t behind_call; /* what the last system call has left */

static void note_mark(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	mark = info->si_value;
}

/* By which a timer of ours is known. */
static void find_mark(void)
{
	struct sigaction notes = { .sa_sigaction = note_mark, .sa_flags = SA_SIGINFO }, before;
	struct ca_tick timer = { .backend = CA_BACKEND_AUTO };

	mark.sival_ptr = NULL;
	sigaction(SIGUSR2, &notes, &before);
	assert_int_equal(ca_tick_start(&timer, CA_BACKEND_TIMER, 1000000, 1000000, SIGUSR2), CA_OK);
	while (!*(void *volatile *)&mark.sival_ptr)
		;
	ca_tick_stop(&timer);
	sigaction(SIGUSR2, &before, NULL);
}

static void tick_with(int code, uintptr_t pc)
{
	static ucontext_t context;
	siginfo_t info;

	memset(&info, 0, sizeof info);
	info.si_code = code;
	if (code == SI_TIMER)
		info.si_value = mark;
	context.uc_mcontext.gregs[REG_RIP] = (greg_t)pc;
	context.uc_mcontext.gregs[REG_RCX] = (greg_t)behind_call;
	context.uc_mcontext.gregs[REG_RSP] = STACK;
	action.sa_sigaction(CA_SIGNAL, &info, &context);
}

static void tick(void)
{
	tick_with(POLL_IN, CODE);
}

static uint64_t dropped(enum ca_drop why)
{
	return atomic_load(&me->slot->drop[why]);
}

static uint64_t all_dropped(void)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < CA_DROP_COUNT; i++)
		n += dropped((enum ca_drop)i);
	return n;
}

/* The sample that lies in the ring: its flags; `frames` of it. */
static uint16_t sample(unsigned frames)
{
	struct ca_event e[CA_SAMPLE_FRAMES + 1];
	/* of deep stacks: the innermost, and as many of the outermost as this */
	unsigned outermost = frames == CA_SAMPLE_FRAMES ? 16 : 0;

	assert_int_equal(ca_ring_pop(&me->slot->ring, e, CA_COUNT(e)), frames);
	for (unsigned i = 0; i < frames; i++) {
		assert_int_equal(e[i].kind, CA_POINT);
		assert_int_equal(e[i].key, i ? CA_KEY_FRAME : CA_KEY_SAMPLE);
		assert_int_equal(e[i].value,
				 walked[i + outermost < frames ? i : walked_depth - (frames - i)]);
		assert_int_equal(e[i].time, e[0].time);
		if (i)
			assert_int_equal(e[i].flags, 0);
	}
	return e[0].flags;
}

static void nothing_sampled(void)
{
	struct ca_event e;

	assert_int_equal(ca_ring_pop(&me->slot->ring, &e, 1), 0);
}

static void select_range(uint32_t module, uint64_t low, uint64_t high)
{
	struct ca_range *r = &s->selection.range[s->selection.ranges++];

	*r = (struct ca_range){ .module = module, .low = low, .high = high };
}

static bool in_selection(ca_place place)
{
	struct ca_stack stack = { .depth = 1, .place = { place } };
	unsigned outermost = 9, part;
	bool in = ca_sample_in_selection(&stack, &outermost, &part);

	assert_int_equal(outermost, in ? 0 : 9);
	return in;
}

/* ---- samples ------------------------------------------------------------------------------------ */
static void takes_a_sample(void **state)
{
	uint64_t before = ca_clock_now(), all;

	(void)state;
	pays = 1000000;
	errno = 7;
	tick();
	assert_int_equal(errno, 7);
	all = ca_clock_now() - before;
	assert_int_equal(sample(3), 1);
	assert_in_range(me->slot->ring.event[0].time, before, ca_clock_now());
	assert_int_equal(walked_from.pc, CODE);
	assert_int_equal(walked_from.sp, STACK);
	assert_int_equal(atomic_load(&me->slot->samples), 1);
	assert_int_equal(all_dropped(), 0);
	assert_int_equal(me->ticks, 1);
	assert_int_equal(me->guard, 0);
	assert_int_equal(atomic_load(&me->slot->yardsticks), 1);
	assert_in_range(atomic_load(&me->slot->yardstick), 1, 1000000);
	assert_int_equal(
		followed + serviced + cancel_looks + adjusted + accrued + checked + paid + told + left, 9);
	assert_int_equal(wound + forwarded + tended, 0);
	assert_false(lost);
	/* on a stack of its own */
	assert_in_range(stack_of_tick, me->work_stack, me->work_stack + sizeof me->work_stack);
	/* what was paid meanwhile is not the handler's own time */
	assert_in_range(atomic_load(&me->slot->handler_ns), 1, all - pays);
	pays = 0;
	assert_true(ca_cpu_cycles() - me->last_look < UINT64_C(100000000000));
	tick();
	assert_int_equal(atomic_load(&me->slot->samples), 2);
	assert_int_equal(sample(3), 1);
	/* nor is what others had of the CPU */
	atomic_store(&me->slot->handler_ns, 0);
	loses = 3000000;
	before = ca_clock_now();
	tick();
	all = ca_clock_now() - before;
	assert_in_range(atomic_load(&me->slot->handler_ns), 0, all - loses);
	loses = 0;
	memset(switch_log[me->number], 0, sizeof switch_log[0]);
	assert_int_equal(me->handler_cpu, 0);
	/* the same without a switch log */
	atomic_store(&me->slot->handler_ns, 0);
	me->switches.page = NULL;
	sleeps = 20000000;
	before = ca_clock_now();
	tick();
	all = ca_clock_now() - before;
	assert_in_range(atomic_load(&me->slot->handler_ns), 1, all - sleeps);
	sleeps = 0;
}

/* Beside perf's ticks those of the kernel, which count where a system call was, and for as much as is due. perf's
 * own on the way back from one do not. */
static void in_system_calls(void **state)
{
	uint64_t length = ca_tick_of_kernel(), due;

	(void)state;
	find_mark();
	me->tick.backend = CA_BACKEND_PERF;
	me->tick.page = s; /* perf's event is there */
	me->tick.sees_kernel = true;
	me->tick.kernel_period = length;
	due = me->tick.kernel_next = ca_clock_thread_cpu();
	behind_call = 0;
	tick_with(SI_TIMER, CODE);
	nothing_sampled();
	assert_int_equal(me->tick.kernel_next, due + length);
	behind_call = CODE;
	tick_with(SI_TIMER, CODE); /* too early */
	nothing_sampled();
	me->tick.kernel_next = ca_clock_thread_cpu();
	tick_with(SI_TIMER, CODE);
	assert_int_equal(sample(3), CA_SAMPLE_IN_KERNEL | length / ca_rt.period);
	assert_int_equal(me->ticks, 0);
	behind_call = CODE + 2; /* to be made again */
	me->tick.kernel_next = ca_clock_thread_cpu();
	tick_with(SI_TIMER, CODE);
	assert_int_equal(sample(3), CA_SAMPLE_IN_KERNEL | length / ca_rt.period);
	tick();
	nothing_sampled();
	assert_int_equal(me->ticks, 1);
	behind_call = 0;
	tick();
	assert_int_equal(sample(3), 1);
	behind_call = CODE;
	me->tick.sees_kernel = false;
	tick();
	assert_int_equal(sample(3), CA_SAMPLE_IN_KERNEL | 1);
	behind_call = 0;
	me->tick.page = NULL;
}

/* The kernel's ticks alone, in place of perf's: all count, for as much as is due, and do what perf's do. */
static void coarse(void **state)
{
	uint64_t length = 2 * ca_tick_of_kernel();

	(void)state;
	find_mark();
	me->tick.backend = CA_BACKEND_PERF;
	me->tick.sees_kernel = true;
	me->tick.kernel_period = length;
	for (behind_call = 0; behind_call <= CODE; behind_call += CODE) {
		me->tick.kernel_next = ca_clock_thread_cpu();
		adjusted = 0;
		tick_with(SI_TIMER, CODE);
		assert_int_equal(sample(3), (behind_call ? CA_SAMPLE_IN_KERNEL : 0) | length / ca_rt.period);
		assert_int_equal(adjusted, 1);
	}
	assert_int_equal(me->ticks, 2);
	behind_call = 0;
	tick_with(SI_TIMER, CODE); /* too early */
	nothing_sampled();
	me->tick.sees_kernel = false;
}

static void weights(void **state)
{
	(void)state;
	me->tick_weight = 4;
	tick();
	assert_int_equal(sample(3), 4);
	me->tick_weight = 1000;
	tick();
	assert_int_equal(sample(3), 1000);
	me->tick_weight = 100000; /* what fits */
	tick();
	assert_int_equal(sample(3), 1000);
}

/* perf's ticks are a drawn length apart: samples stand for that, whatever the period is. */
static void drawn(void **state)
{
	static const struct {
		unsigned percent; /* of the period */
		unsigned weight[4];
	} cases[] = { { 125, { 1, 1, 1, 2 } }, { 75, { 0, 1, 1, 1 } }, { 400, { 4, 4, 4, 4 } } };

	(void)state;
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_drawn = true;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		me->tick_length = ca_rt.period / 100 * cases[i].percent;
		for (unsigned k = 0; k < 4; k++) {
			tick();
			if (cases[i].weight[k])
				assert_int_equal(sample(3), cases[i].weight[k]);
			else
				nothing_sampled();
		}
	}
	me->tick_drawn = false; /* the first one, after a random part of the period */
	tick();
	assert_int_equal(sample(3), 1);
}

static void long_stacks(void **state)
{
	(void)state;
	walked_depth = CA_SAMPLE_FRAMES;
	tick();
	sample(CA_SAMPLE_FRAMES);
	walked_depth = CA_UNWIND_DEPTH;
	tick();
	sample(CA_SAMPLE_FRAMES);
	assert_int_equal(all_dropped(), 0);
}

static void drops(void **state)
{
	(void)state;
	tick_with(POLL_IN, ca_rt.own_low);
	tick_with(POLL_IN, ca_rt.own_high - 1);
	assert_int_equal(dropped(CA_DROP_OWN_CODE), 2);
	assert_int_equal(walks + followed + checked, 0);
	assert_int_equal(paid, 2); /* all the same */
	nothing_sampled();
	tick_with(POLL_IN, ca_rt.own_high);
	sample(3);
	tick_with(POLL_IN, ca_rt.own_low - 1);
	sample(3);
}

bool ca_patch_is_hook(uintptr_t pc)
{
	return pc == HOOK;
}

static uint64_t overhead(uint64_t *in_s)
{
	*in_s = atomic_exchange(&me->slot->overhead_in_s, 0);
	return atomic_exchange(&me->slot->overhead, 0);
}

/* What the program would not have taken by itself: code of ours, and what trampolines do for us. */
static void overhead_by_ticks(void **state)
{
	uint64_t in_s;

	(void)state;
	me->tick_length = 4000;
	me->guard = 1;
	tick(); /* a timer's */
	me->guard = 0;
	assert_int_equal(overhead(&in_s) + in_s, 0);
	me->tick.backend = CA_BACKEND_PERF;
	tick_with(POLL_IN, ca_rt.own_low - 1);
	assert_int_equal(overhead(&in_s) + in_s, 0);
	tick_with(POLL_IN, ca_rt.own_low);
	tick_with(POLL_IN, HOOK);
	me->guard = 1;
	tick();
	assert_int_equal(overhead(&in_s), 3 * 4000);
	assert_int_equal(in_s, 0);
	/* S that is timed from its begin to its end has ours in it, but not where its probes take themselves off */
	s->selection.exact = 1;
	atomic_store(&me->slot->in_s, CA_IN_S);
	tick();
	s->selection.fine = 1;
	tick();
	s->selection.fine = 0;
	assert_int_equal(overhead(&in_s), 2 * 4000);
	assert_int_equal(in_s, 4000);
	/* where S is sampled, what is dropped is no hit */
	s->selection.exact = 0;
	tick();
	assert_int_equal(overhead(&in_s), 4000);
	assert_int_equal(in_s, 0);
	/* it pays, or is left alone, or reads a clock for the program */
	me->paying_sp = STACK;
	tick();
	me->paying_sp = 0;
	me->alone = true;
	tick();
	me->alone = false;
	me->clock_sp = STACK + 0x100;
	tick();
	me->clock_sp = 0;
	me->guard = 0;
	assert_int_equal(overhead(&in_s) + in_s, 0);
}

/* Where there are ticks of the kernel, which come beside, they alone tell. */
static void overhead_by_kernel_ticks(void **state)
{
	uint64_t length = ca_tick_of_kernel(), in_s;

	(void)state;
	find_mark();
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 4000;
	me->tick.page = s;
	me->tick.sees_kernel = true;
	me->tick.kernel_period = length;
	me->guard = 1;
	tick();
	me->tick.kernel_next = ca_clock_thread_cpu() + CA_NS_PER_S; /* not due */
	tick_with(SI_TIMER, CODE);
	assert_int_equal(overhead(&in_s), 0);
	for (behind_call = 0; behind_call <= CODE; behind_call += CODE) { /* in code and calls of ours */
		me->tick.kernel_next = ca_clock_thread_cpu();
		tick_with(SI_TIMER, CODE);
		assert_int_equal(overhead(&in_s), length);
	}
	me->guard = 0;
	me->tick.kernel_next = ca_clock_thread_cpu();
	behind_call = ca_rt.own_low; /* that may be a call of the program's, which we make */
	tick_with(SI_TIMER, ca_rt.own_low);
	assert_int_equal(overhead(&in_s), 0);
	me->tick.kernel_next = ca_clock_thread_cpu();
	behind_call = 0;
	tick_with(SI_TIMER, ca_rt.own_low);
	assert_int_equal(overhead(&in_s), length);
	me->tick.page = NULL;
	me->tick.sees_kernel = false;
}

/* A program that spins on the clock does so in our wrapper: its ticks there are not lost. */
static void in_clock_calls(void **state)
{
	struct timespec now;
	uint64_t n;

	(void)state;
	me->clock_sp = STACK + 0x100;
	tick_with(POLL_IN, ca_rt.own_low);
	assert_true(me->late);
	me->late = false;
	me->guard = 1;
	tick();
	assert_true(me->late);
	assert_int_equal(all_dropped() + walks, 0);
	nothing_sampled();
	assert_int_equal(adjusted, 0); /* or else the sample would be weighed as the next one */
	/* it pays before it looks at the clock: that time is not the caller's */
	me->late = false;
	me->paying_sp = STACK;
	tick();
	assert_int_equal(dropped(CA_DROP_REENTRY), 1);
	assert_false(me->late);
	me->paying_sp = 0;
	me->guard = 0;
	/* it was left by longjmp */
	me->clock_sp = STACK - 8;
	tick_with(POLL_IN, ca_rt.own_low);
	assert_int_equal(dropped(CA_DROP_OWN_CODE), 1);
	assert_int_equal(me->clock_sp, 0);
	assert_false(me->late);
	/* the sample is taken when the call returns, of its caller: frames of the module of the first are ours */
	adjusted = 0;
	me->late = true;
	me->tick_weight = 4;
	walked[0] = CA_PLACE(TEXT + 1, 0x100);
	errno = 7;
	assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
	assert_int_equal(errno, 7);
	assert_int_equal(walks, 1);
	assert_int_equal(adjusted, 1);
	assert_false(me->late);
	assert_int_equal(me->clock_sp, 0);
	assert_int_equal(me->guard, 0);
	memmove(walked, walked + 1, 2 * sizeof *walked);
	assert_int_equal(sample(2), 4);
	/* S is sampled, and calls it */
	select_range(TEXT, CA_PLACE_OFFSET(walked[1]), CA_PLACE_OFFSET(walked[1]) + 1);
	memmove(walked + 1, walked, 2 * sizeof *walked);
	walked[0] = CA_PLACE(TEXT + 1, 0x100);
	rt_open_experiment(500000);
	me->late = true;
	me->young = me->ticks = 1; /* and this was its first tick */
	me->tick_length = 4 * RT_PERIOD;
	n = atomic_load(&s->log_head);
	clock_gettime(CLOCK_MONOTONIC, &now);
	me->young = 0;
	assert_int_equal(rt_logged(n, CA_LOG_HIT, 0)->value, 4 * RT_PERIOD);
	assert_true(me->sampled_in);
	me->sampled_in = false;
	clock_gettime(CLOCK_MONOTONIC, &now); /* no tick came */
	assert_false(me->sampled_in);
	assert_int_equal(walks, 2);
}

static void dropped_for_the_stack(void **state)
{
	(void)state;
	walked_to_end = false;
	tick(); /* told of, as far as it goes */
	assert_int_equal(sample(3), 1);
	assert_int_equal(dropped(CA_DROP_UNWIND), 1);
	assert_true(lost);
	walked_depth = 0;
	tick();
	nothing_sampled();
	assert_int_equal(dropped(CA_DROP_NO_MODULE), 1);
	assert_true(lost);
	walked_depth = CA_UNWIND_DEPTH; /* too deep: nothing to look for */
	tick();
	assert_false(lost);
	assert_int_equal(dropped(CA_DROP_UNWIND), 2);
	assert_int_equal(all_dropped(), 3);
}

/* Of those who wait and those who wake them, only a wait that is over is a sample. */
static void dropped_of_waits(void **state)
{
	struct ca_meeting at = { .waiters = 1 };

	(void)state;
	rt_trace();
	ca_rt.sampling = true;
	ca_rt.events = 1ull << CA_KEY_WAKE;
	me->samplers = 1;
	walked_to_end = false;
	ca_sample_waits(me, RT_PERIOD, CA_ACTIVITY_LOCK, 1);
	ca_sample_wake_at(me, &at);
	assert_int_equal(walks, 2);
	assert_int_equal(all_dropped(), 0);
	ca_sample_blocked(me, 2 * RT_PERIOD, RT_PERIOD, CA_ACTIVITY_LOCK, 0);
	assert_int_equal(walks, 3);
	assert_int_equal(dropped(CA_DROP_UNWIND), 1);
	me->samplers = 0;
	ca_rt.events = 0;
	ca_rt.sampling = false;
}

static void dropped_for_want_of_room(void **state)
{
	(void)state;
	walked_depth = 32;
	for (unsigned i = 0; i < CA_RING_EVENTS / 32; i++)
		tick();
	assert_int_equal(all_dropped(), 0);
	tick();
	assert_int_equal(dropped(CA_DROP_RING_FULL), 1);
	assert_int_equal(atomic_load(&me->slot->samples), CA_RING_EVENTS / 32 + 1);
}

static void dropped_in_our_code(void **state)
{
	(void)state;
	me->guard = 1;
	tick();
	assert_int_equal(dropped(CA_DROP_REENTRY), 1);
	assert_int_equal(me->guard, 1);
	assert_int_equal(walks + accrued + paid + me->ticks, 0);
}

static void not_ours_or_off(void **state)
{
	(void)state;
	errno = 7;
	tick_with(SI_TKILL, CODE);
	assert_int_equal(forwarded, 1);
	atomic_store(&ca_rt.on, false);
	tick();
	assert_int_equal(wound, 1);
	ca_self = NULL;
	tick();
	assert_int_equal(walks + accrued + me->ticks + all_dropped(), 0);
	assert_int_equal(wound + forwarded, 2);
	assert_int_equal(errno, 7);
}

static void now_and_then(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 96; i++) {
		tick();
		assert_int_equal(tended, i / 32);
		assert_int_equal(collected, i / 32);
	}
}

/* ---- what longjmp has left ------------------------------------------------------------------------ */
static const enum ca_wait external = CA_WAIT_EXTERNAL;

static void waits(void **state)
{
	(void)state;
	/* inside a wait: nothing is paid */
	me->waiting = &external;
	me->waiting_sp = STACK;
	tick();
	assert_ptr_equal(accrued_wait, &external);
	assert_int_equal(paid, 0);
	assert_ptr_equal(me->waiting, &external);
	/* its frame is gone, but we are in code of ours: who knows */
	me->waiting_sp = STACK - 1;
	tick_with(POLL_IN, ca_rt.own_low);
	tick_with(POLL_IN, ca_rt.own_high - 1);
	assert_ptr_equal(me->waiting, &external);
	assert_int_equal(wait_lefts, 0);
	tick_with(POLL_IN, ca_rt.own_high);
	assert_int_equal(wait_lefts, 1); /* if it was S, it is no more */
	assert_null(me->waiting);
	assert_null(accrued_wait);
	assert_int_equal(paid, 1);
	me->waiting = &external;
	tick_with(POLL_IN, ca_rt.own_low - 1);
	assert_null(me->waiting);
}

/* ---- the selection -------------------------------------------------------------------------------- */
static void selection(void **state)
{
	struct ca_stack stack = { .depth = 4, .place = { 1, CA_PLACE(TEXT, 100), CA_PLACE(TEXT, 150), 2 } };
	unsigned outermost = 9, part;

	(void)state;
	assert_false(in_selection(CA_PLACE(TEXT, 100)));
	select_range(TEXT - 2, 50, 1000);
	select_range(TEXT, 100, 110);
	select_range(TEXT, 110, 120);
	select_range(TEXT, 150, 151);
	select_range(TEXT + 2, 20, 30);
	for (uint32_t module = 0; module <= TEXT + 3; module++)
		for (uint64_t at = 0; at < 1100; at++) {
			bool in = (module == TEXT - 2 && at >= 50 && at < 1000) ||
				  (module == TEXT && ((at >= 100 && at < 120) || at == 150)) ||
				  (module == TEXT + 2 && at >= 20 && at < 30);

			if (in_selection(CA_PLACE(module, at)) != in)
				fail_msg("module %u, %u", module, (unsigned)at);
		}
	assert_true(ca_sample_in_selection(&stack, &outermost, &part));
	assert_int_equal(outermost, 2);
	assert_int_equal(part, 0);
	s->selection.range[1].part = 2; /* of the parts that are on the stack the one with most speedup */
	s->selection.range[3].part = 1;
	assert_true(ca_sample_in_selection(&stack, &outermost, &part));
	assert_int_equal(part, 2);
	s->selection.range[1].part = 0;
	assert_true(ca_sample_in_selection(&stack, &outermost, &part));
	assert_int_equal(part, 1);
	s->selection.range[1].part = 77;
	assert_true(ca_sample_in_selection(&stack, &outermost, &part));
	assert_int_equal(part, CA_PARTS - 1);
	atomic_fetch_add(&s->selection.seq, 1); /* being written */
	assert_false(in_selection(CA_PLACE(TEXT, 100)));
}

/* A hit of a thread that was in S for all of `ns` of CPU time since its last sample. */
static uint64_t hit(void)
{
	uint64_t n = atomic_load(&s->log_head);

	tick();
	if (atomic_load(&s->log_head) == n)
		return 0;
	assert_int_equal(rt_logged(n, CA_LOG_HIT, 0)->time & ~CA_LOOK_LAYERS,
			 atomic_load(&me->slot->last_look) & ~CA_LOOK_LAYERS);
	return s->log[n].value;
}

/* No room for the ring: the conductor is told, and may make it. */
static void push_without_room(void **state)
{
	uint64_t drops = atomic_load(&me->slot->drop[CA_DROP_RING_FULL]);

	(void)state;
	me->stack.depth = 1;
	me->stack.complete = true;
	ca_sample_push(me, 5, 1, false);
	assert_int_equal(atomic_load(&me->slot->drop[CA_DROP_RING_FULL]), drops + 1);
	assert_int_equal(atomic_load(&me->slot->ring_ready), 0);
	assert_int_equal(ca_slot_set_next(&s->told, 0, RT_THREADS), 0);
	atomic_store(&me->slot->ring_ready, 1);
	ca_sample_push(me, 5, 1, false);
	assert_int_equal(atomic_load(&me->slot->drop[CA_DROP_RING_FULL]), drops + 1);
	assert_int_equal(atomic_load(&me->slot->ring.head), 1);
}

static void without_room(void **state)
{
	(void)state;
	without_call(SYS_madvise, EINVAL, push_without_room);
}

static void hits(void **state)
{
	uint64_t before, weight;

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	assert_int_equal(hit(), 0); /* no experiment */
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 700;
	me->hit_cpu = 0;
	before = ca_clock_thread_cpu();
	assert_int_equal(hit(), 700); /* no more than the tick's own period: the rest was the kernel's */
	assert_true(me->sampled_in);
	assert_in_range(me->hit_cpu, before, ca_clock_thread_cpu());
	me->tick.backend = CA_BACKEND_TIMER;
	me->hit_cpu = ca_clock_thread_cpu() - 9 * RT_PERIOD;
	assert_int_equal(hit(), 8 * RT_PERIOD);
	/* as much as has passed */
	me->hit_cpu = before = ca_clock_thread_cpu();
	weight = hit();
	assert_in_range(weight, 1, ca_clock_thread_cpu() - before);
	/* the first tick of its life: a whole one of the kernel's, for all that have had none */
	me->young = 1;
	me->ticks = 0;
	me->tick_length = 4 * RT_PERIOD;
	assert_int_equal(hit(), 4 * RT_PERIOD);
	/* ... and the second, which is its own */
	me->hit_cpu = ca_clock_thread_cpu() - 3 * RT_PERIOD;
	assert_in_range(hit(), 3 * RT_PERIOD, 4 * RT_PERIOD - 1);
	me->young = 0;
	/* waiting for its team in OpenMP's code, which S has called */
	walked[0] = CA_PLACE(TEXT + 1, 0x100);
	s->module[TEXT + 1].openmp = 1;
	assert_int_equal(hit(), 0);
	assert_false(me->sampled_in);
	s->module[TEXT + 1].openmp = 0;
	assert_true(hit());
	/* outside */
	walked[1] = CA_PLACE(TEXT, 0x2000);
	assert_int_equal(hit(), 0);
	assert_false(me->sampled_in);
	assert_int_equal(atomic_load(&me->slot->last_look) & CA_LOOK_LAYERS, 0);
	/* what is known exactly is not sampled */
	walked[1] = CA_PLACE(TEXT, 0x1010);
	s->selection.exact = 1;
	assert_int_equal(hit(), 0);
}

/* Of several threads that are in S each stands for its share. Who is in S is known from how often each is, and
 * from how often they are together. */
static void shares(void **state)
{
	static const struct {
		const char *what;
		unsigned others;         /* on a CPU */
		uint32_t share;          /* of each, millionths */
		uint64_t seen, expected; /* together */
		uint64_t value, exempt;  /* of each; the weight is 1200 */
	} cases[] = {
		{ "alone", 0, 0, 0, 0, 1200, 0 },
		{ "as often as not", 1, 500000, 0, 0, 900, 300 },
		{ "never", 1, 0, 0, 0, 1200, 0 },
		{ "always", 1, 1000000, 0, 0, 600, 600 },
		{ "in turn", 1, 500000, 0, 198, 1197, 3 },
		{ "in step", 1, 500000, 198, 98, 600, 600 },
		{ "no more than always", 1, 500000, 998, 98, 600, 600 },
		{ "two", 2, 500000, 0, 0, 699, 250 },
		{ "all", 3, 1000000, 0, 0, 300, 300 },
	};

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 1200;
	for (size_t c = 0; c < CA_COUNT(cases); c++) {
		uint64_t value;

		atomic_store(&s->slots_used, 1 + cases[c].others);
		atomic_store(&s->selection.pairs[0], cases[c].seen);
		atomic_store(&s->selection.pairs_expected[0], cases[c].expected * CA_MILLION);
		for (unsigned i = 1; i < RT_THREADS; i++) {
			ca_slot_set_add(&s->in_s, i);
			atomic_store(&s->slot[i].share_in_s[0], cases[c].share);
			atomic_store(&s->fine[i].exempt, 0);
		}
		me->hit_cpu = 0;
		value = hit();
		if (value != cases[c].value)
			fail_msg("%s: %lu", cases[c].what, (unsigned long)value);
		for (unsigned i = 1; i <= cases[c].others; i++)
			assert_int_equal(atomic_load(&s->fine[i].exempt), cases[c].exempt);
		assert_int_equal(atomic_load(&me->fine->exempt), 0);
	}
}

static void is_off_cpu(uint32_t number)
{
	struct perf_event_mmap_page *page = (struct perf_event_mmap_page *)switch_log[number];
	struct {
		struct perf_event_header header;
		uint64_t time;
	} record = { { PERF_RECORD_SWITCH, PERF_RECORD_MISC_SWITCH_OUT, sizeof record }, ca_clock_now() };

	memcpy(switch_log[number] + RT_PAGE, &record, sizeof record);
	page->data_head = sizeof record;
}

/* Those that are off the CPU are not in S, and of those whose switches nobody can read it is not known. */
static void shares_of_others(void **state)
{
	struct ca_history known;

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 1200;
	ca_rt.period = UINT64_C(4000000000);
	for (unsigned i = 1; i < RT_THREADS; i++) {
		ca_slot_set_add(&s->in_s, i);
		atomic_store(&s->slot[i].share_in_s[0], CA_MILLION);
	}
	atomic_store(&s->slots_used, 4);
	me->hit_cpu = 0;
	is_off_cpu(1);
	atomic_store(&s->slot[2].state, CA_SLOT_FREE);
	assert_int_equal(hit(), 600);
	/* of another process: at work if it was lately */
	atomic_store(&ca_rt.by_slot[3], NULL);
	me->hit_cpu = 0;
	atomic_store(&s->slot[3].last_look, (ca_clock_now() - 7 * (ca_rt.period / 5)) & ~CA_LOOK_LAYERS);
	assert_int_equal(hit(), 600);
	me->hit_cpu = 0;
	atomic_store(&s->slot[3].last_look, (ca_clock_now() - 8 * (ca_rt.period / 5)) | CA_LOOK_LAYERS);
	assert_int_equal(hit(), 1200);
	/* ... or, by a timer, within one and a half ticks of the kernel's */
	known = me->history;
	atomic_store(&s->slot[3].look_every, UINT32_MAX);
	ca_rt.period = UINT32_MAX / 8;
	for (unsigned late = 0; late < 2; late++) {
		me->hit_cpu = 0;
		atomic_store(&s->slot[3].last_look,
			     (ca_clock_now() - (11 + 2 * late) * ca_rt.period) | CA_LOOK_LAYERS);
		assert_int_equal(hit() > 1000, late);
	}
	me->history = known;
	atomic_store(&s->slot[3].look_every, 0);
	ca_rt.period = UINT64_C(4000000000);
	assert_int_equal(atomic_load(&s->selection.pairs_expected[0]), 0);
	/* looked at just now, and found in S or not */
	me->hit_cpu = 0;
	atomic_store(&s->slot[3].last_look, ca_clock_now() | CA_LOOK_LAYERS);
	hit();
	assert_int_equal(atomic_load(&s->selection.pairs[0]), 1);
	assert_int_equal(atomic_load(&s->selection.pairs_expected[0]), CA_MILLION);
	me->hit_cpu = 0;
	atomic_store(&s->slot[3].last_look, ca_clock_now() & ~CA_LOOK_LAYERS);
	hit();
	assert_int_equal(atomic_load(&s->selection.pairs[0]), 1);
	assert_int_equal(atomic_load(&s->selection.pairs_expected[0]), 2 * CA_MILLION);
	/* since then it has met others, and may be elsewhere */
	me->hit_cpu = 0;
	atomic_store(&s->slot[3].last_look, ca_clock_now() & ~CA_LOOK_LAYERS);
	atomic_store(&s->slot[3].last_met, ca_clock_now());
	hit();
	assert_int_equal(atomic_load(&s->selection.pairs_expected[0]), 2 * CA_MILLION);
	/* our own history */
	assert_int_equal(me->history.looks, 6);
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 6500000 / 7);
	tick_with(POLL_IN, ca_rt.own_low); /* in our code, and called by nobody in S */
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 6500000 / 8);
	assert_int_equal(atomic_load(&me->slot->last_look) & CA_LOOK_LAYERS, 0);
}

/* In our code, on behalf of S. */
static void own_code_in_s(void **state)
{
	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	walked[0] = CA_PLACE(TEXT + 1, 0x1000); /* ours */
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 1000;
	me->hit_cpu = 0;
	tick_with(POLL_IN, ca_rt.own_low);
	assert_int_equal(me->history.found[0], 1);
	assert_int_equal(dropped(CA_DROP_OWN_CODE), 1);
	nothing_sampled(); /* it has no place in the program all the same */
}

/* What a tick has paid was no time of the program's; while it pays, a thread is not in S. */
static void paid_in_ticks(void **state)
{
	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 3000000;
	ca_rt.period = 200000;
	me->hit_cpu = 0;
	pays = 1000000;
	tick();
	assert_int_equal(s->log[atomic_load(&s->log_head) - 1].value, 3000000);
	assert_int_equal(me->history.found[0], 1);
	assert_in_range(me->history.looks, 1 + 5, 1 + 6);
	assert_int_equal(atomic_load(&me->slot->last_look) & CA_LOOK_LAYERS, 0);
	pays = 0;
	me->hit_cpu = 0;
	tick();
	assert_in_range(s->log[atomic_load(&s->log_head) - 1].value, 1, 2000000);
	me->hit_cpu = 0;
	assert_int_equal(hit(), 3000000);
	/* and in a meeting */
	me->history.looks = 10;
	me->guard = 1;
	tick();
	assert_int_equal(me->history.looks, 10);
	me->paying_sp = STACK;
	tick();
	assert_int_equal(me->history.looks, 11);
	me->paying_sp = 0;
	me->guard = 0;
}

/* Of one that is in S whenever another one is, that is known after a few pairs; as long as it is not, what all pairs
 * say counts. */
static void pairs_of_one(void **state)
{
	struct ca_slot *other = &s->slot[1];

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 1000000;
	ca_slot_set_add(&s->in_s, 1);
	atomic_store(&s->slots_used, 2);
	atomic_store(&other->share_in_s[0], CA_MILLION / 2);
	me->hit_cpu = 0;
	assert_in_range(hit(), 749000, 751000); /* u = 1 - c / 2 */
	atomic_store(&other->pairs[0], 96);
	atomic_store(&other->pairs_expected[0], 46 * CA_MILLION);
	me->hit_cpu = 0;
	assert_in_range(hit(), 499000, 501000);
	atomic_store(&other->pairs[0], 0);
	atomic_store(&other->pairs_expected[0], 96 * CA_MILLION);
	me->hit_cpu = 0;
	assert_in_range(hit(), 985000, 995000);
}

/* Timers tick when the kernel does, in all threads at once. What was paid meanwhile, wherever, is none of the sample's time;
 * a look stands for as many periods; and of two looks at one instant either may come first. */
static void hits_by_timers(void **state)
{
	struct ca_slot *other = &s->slot[1];
	uint64_t looks;

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_TIMER;
	ca_rt.period = UINT64_C(1) << 32;
	ca_slot_set_add(&s->in_s, 1);
	atomic_store(&s->slots_used, 2);
	atomic_store(&other->share_in_s[0], CA_MILLION / 2);
	me->hit_cpu = ca_clock_thread_cpu() - 9000000;
	atomic_fetch_add(&me->slot->spun, 8000000); /* at a meeting */
	assert_in_range(hit(), 750000, 2000000);
	assert_true(atomic_load(&me->slot->look_every) == ca_tick_of_kernel());
	assert_int_equal(atomic_load(&s->selection.pairs_expected[0]), 0);
	/* the other one's look, in S, came first, and ours tells of us */
	atomic_store(&other->look_every, 4000000);
	atomic_store(&other->last_look, ca_clock_now() | 1);
	tick();
	assert_int_equal(atomic_load(&me->slot->pairs[0]), 1);
	assert_int_equal(atomic_load(&me->slot->pairs_expected[0]), atomic_load(&me->slot->share_in_s[0]));
	/* ... and it of the other one, which was in S, too */
	assert_int_equal(atomic_load(&other->pairs[0]), 1);
	assert_int_equal(atomic_load(&other->pairs_expected[0]), CA_MILLION / 2);
	/* it pays: its tick will come later, and says nothing of now */
	atomic_store(&other->last_look, 0);
	atomic_store(&other->paying, 1);
	tick();
	assert_int_equal(atomic_load(&other->pairs[0]), 1);
	assert_int_equal(atomic_load(&other->pairs_expected[0]), CA_MILLION);
	atomic_store(&other->paying, 0);
	ca_rt.period = ca_tick_of_kernel() / 4;
	looks = me->history.looks;
	tick();
	assert_int_equal(me->history.looks - looks, 4);
}

/* A region that is selected again is known. */
static void histories(void **state)
{
	(void)state;
	ca_history_select(me, 7);
	ca_history_looked(me, ca_clock_now(), 1, 3);
	ca_history_looked(me, ca_clock_now(), 0, 1);
	atomic_store(&me->slot->pairs[0], 5);
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 3500000 / 5);
	ca_history_select(me, 8);
	assert_int_equal(me->history.looks + atomic_load(&me->slot->pairs[0]), 0);
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 0);
	ca_history_select(me, 7);
	assert_int_equal(me->history.looks, 4);
	assert_int_equal(atomic_load(&me->slot->pairs[0]), 5);
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 3500000 / 5);
	/* of a long one the older half counts less */
	ca_history_looked(me, ca_clock_now(), 1, 4000);
	ca_history_select(me, 8);
	ca_history_select(me, 7);
	assert_int_equal(me->history.looks, 2002);
	/* another one had its place */
	ca_history_select(me, 7 + CA_HISTORIES);
	ca_history_select(me, 8);
	ca_history_select(me, 7);
	assert_int_equal(me->history.looks, 0);
	/* of none at all nothing is kept */
	ca_history_select(me, 0);
	ca_history_looked(me, ca_clock_now(), 1, 1);
	ca_history_select(me, CA_HISTORIES);
	ca_history_select(me, 0);
	assert_int_equal(me->history.looks, 0);
}

/* In a part with more speedup than another one: a hit in each layer, shared by those who are in it. */
static void layers(void **state)
{
	uint64_t n = atomic_load(&s->log_head);

	(void)state;
	select_range(TEXT, 0x1010, 0x1011);
	s->selection.range[0].part = 1;
	s->selection.parts = 2;
	s->selection.weight[0] = 400000;
	s->selection.weight[1] = CA_MILLION;
	atomic_fetch_add(&s->selection.seq, 2); /* the first tick after it */
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 1200;
	me->hit_cpu = 0;
	atomic_store(&s->selection.pairs[1], 0); /* in turn in the fast part */
	atomic_store(&s->selection.pairs_expected[1], 2 * CA_MILLION);
	for (unsigned i = 1; i < 5; i++) {
		ca_slot_set_add(&s->in_s, i);
		atomic_store(&s->slot[i].share_in_s[0], CA_MILLION);
	}
	atomic_store(&s->slot[2].state, CA_SLOT_FREE);
	atomic_store(&s->slot[3].share_in_s[1], CA_MILLION);
	tick();
	assert_int_equal(s->log[n].value, CA_LOG_HIT_VALUE(300, 0));
	assert_int_equal(s->log[n + 1].value, CA_LOG_HIT_VALUE(900, 1));
	assert_int_equal(atomic_load(&s->log_head), n + 2);
	/* of what they need not pay each layer has its part of the speedup */
	assert_int_equal(atomic_load(&s->fine[1].exempt), 300 * 4 / 10);
	assert_int_equal(atomic_load(&s->fine[2].exempt), 0);
	assert_int_equal(atomic_load(&s->fine[3].exempt), 300 * 4 / 10 + 300 * 6 / 10);
	/* our own history, as others see it */
	assert_int_equal(atomic_load(&me->slot->last_look) & CA_LOOK_LAYERS, 2);
	s->selection.range[0].part = 0;
	tick();
	assert_int_equal(atomic_load(&me->slot->last_look) & CA_LOOK_LAYERS, 1);
	assert_int_equal(atomic_load(&me->slot->share_in_s[0]), 2500000 / 3);
	assert_int_equal(atomic_load(&me->slot->share_in_s[1]), 1500000 / 3);
	assert_int_equal(atomic_load(&me->slot->share_in_s[2]), 0);
	/* together: in the layers that the other one was in, too */
	ca_rt.period = UINT64_C(4000000000);
	s->selection.range[0].part = 1;
	atomic_store(&s->slot[1].state, CA_SLOT_FREE);
	for (unsigned i = 0; i < 2; i++) {
		uint64_t seen[] = { atomic_load(&s->selection.pairs[0]),
				    atomic_load(&s->selection.pairs[1]) };

		atomic_store(&s->slot[3].last_look, (ca_clock_now() & ~CA_LOOK_LAYERS) | (1 + i));
		tick();
		assert_int_equal(atomic_load(&s->selection.pairs[0]), seen[0] + 1);
		assert_int_equal(atomic_load(&s->selection.pairs[1]), seen[1] + i);
	}
}

static void told_of_hits(void **state)
{
	const struct ca_event *e;
	size_t n;

	(void)state;
	rt_trace();
	ca_rt.events = 1 << CA_KEY_HIT;
	select_range(TEXT, 0x1010, 0x1011);
	rt_open_experiment(500000);
	me->tick.backend = CA_BACKEND_PERF;
	me->tick_length = 700;
	me->hit_cpu = 0;
	tick();
	e = rt_told(&n);
	assert_int_equal(n, 1);
	assert_int_equal(e[0].kind, CA_POINT);
	assert_int_equal(e[0].key, CA_KEY_HIT);
	assert_int_equal(e[0].value, 700);
	/* with the sample, whole or in part, if it is wanted */
	ca_rt.events |= 1 << CA_KEY_SAMPLE | 1 << CA_KEY_FRAME;
	me->hit_cpu = 0;
	tick();
	e = rt_told(&n);
	assert_int_equal(n, 4);
	assert_int_equal(e[0].key, CA_KEY_SAMPLE);
	assert_int_equal(e[2].key, CA_KEY_FRAME);
	assert_int_equal(e[3].key, CA_KEY_HIT);
	assert_int_equal(e[3].time, e[0].time);
	ca_rt.events = 1 << CA_KEY_SAMPLE;
	tick();
	rt_told(&n);
	assert_int_equal(n, 1);
}

/* ---- waits ------------------------------------------------------------------------------------------ */
static void off_cpu(void **state)
{
	unsigned taken = 0;

	(void)state;
	ca_sample_off_cpu(me, 3 * RT_PERIOD + RT_PERIOD / 2);
	assert_int_equal(sample(3), 3 | CA_SAMPLE_WAITING);
	assert_in_range(walked_from.sp, (uintptr_t)&taken - 4096, (uintptr_t)&taken);
	assert_true(walked_from.pc > (uintptr_t)ca_sample_off_cpu - 4096);
	ca_sample_off_cpu(me, RT_PERIOD);
	assert_int_equal(sample(3), 1 | CA_SAMPLE_WAITING);
	ca_sample_off_cpu(me, UINT64_C(100000) * RT_PERIOD);
	assert_int_equal(sample(3), 1000 | CA_SAMPLE_WAITING);
	ca_sample_off_cpu(me, 0);
	nothing_sampled();
	/* shorter than a period: some of them, by the cycle counter's last digits */
	ca_rt.period = 1009;
	for (unsigned i = 0; i < 4000; i++) {
		unsigned before = walks;

		ca_sample_off_cpu(me, 504);
		if (walks == before)
			continue;
		taken++;
		assert_int_equal(sample(3), 1 | CA_SAMPLE_WAITING);
	}
	assert_in_range(taken, 1, 3999);
}

/* ---- the signal --------------------------------------------------------------------------------------- */
static void installed(void **state)
{
	static const int open[] = { SIGILL, SIGTRAP };
	unsigned blocked = 0;

	(void)state;
	for (unsigned i = 0; i < CA_COUNT(open); i++)
		assert_int_equal(sigismember(&action.sa_mask, open[i]), 0);
	for (int i = 1; i <= 64; i++)
		blocked += *(uint64_t *)(void *)&action.sa_mask >> (i - 1) & 1;
	assert_int_equal(blocked, 64 - CA_COUNT(open));
	may_take = false;
	assert_false(ca_handler_install());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(takes_a_sample),
		TEST(weights),
		TEST(drawn),
		TEST(in_system_calls),
		TEST(coarse),
		TEST(long_stacks),
		TEST(drops),
		TEST(overhead_by_ticks),
		TEST(overhead_by_kernel_ticks),
		TEST(in_clock_calls),
		TEST(dropped_for_the_stack),
		TEST(dropped_of_waits),
		TEST(dropped_for_want_of_room),
		TEST(dropped_in_our_code),
		TEST(not_ours_or_off),
		TEST(now_and_then),
		TEST(waits),
		TEST(selection),
		TEST(without_room),
		TEST(hits),
		TEST(shares),
		TEST(layers),
		TEST(shares_of_others),
		TEST(own_code_in_s),
		TEST(paid_in_ticks),
		TEST(hits_by_timers),
		TEST(pairs_of_one),
		TEST(histories),
		TEST(told_of_hits),
		TEST(off_cpu),
		TEST(installed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

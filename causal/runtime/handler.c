/* SPDX-License-Identifier: MIT */
/* The tick handler: sample the stack, count hits, follow the ledger, pay.
 *
 * Signal context, on any thread of the program, at any instruction. Works on memory that
 * the thread's record holds; no lock, no malloc, no loader. */
#include "causal/runtime/handler.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/cancel.h"
#include "causal/runtime/copies.h"
#include "causal/runtime/history.h"
#include "causal/runtime/inside.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/level.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/points.h"
#include "causal/runtime/probe.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/samplers.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/spins.h"
#include "causal/runtime/thread.h"
#include "causal/runtime/ticks.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wait.h"
#include "core/cpu.h"
#include "core/sys.h"
#include "sampler/modules.h"
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	LONG = 50000,    /* ns in a handler, in which others may have had the CPU ... */
	OFF = 8,         /* ... so often */
	TEND = 32,       /* ticks between two looks whether there is still a run */
	LONGEST_HIT = 8, /* periods that one sample in S may stand for */
	YARDSTICK = 500, /* turns of the work that is always the same, ... */
	INTERRUPTED = 4  /* ... and so many times as long as it takes at least says something else */
};

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* perf's ticks come in user code only: CPU time between two of them that is no tick's was spent in
 * the kernel, whose ticks say on whose account. What the last one has paid was no time of the program's, which has come
 * to this place sooner for it; what is paid elsewhere begins at no tick, and those in it are lost. A timer's next tick comes
 * when the kernel ticks, wherever the thread has paid since the last one. */
static uint64_t hit_weight(struct ca_thread *t)
{
	uint64_t now = ca_clock_thread_cpu(), cpu = now - t->hit_cpu;
	uint64_t spun = atomic_load_explicit(&t->slot->spun, memory_order_relaxed);
	uint64_t most = t->tick_length, paid = t->paid_in_ticks;

	if (t->tick.backend != CA_BACKEND_PERF) {
		cpu = less(cpu, spun - t->hit_spun);
		most = LONGEST_HIT * ca_rt.period;
		paid = 0;
	}
	t->hit_cpu = now;
	t->hit_spun = spun;
	t->paid_in_ticks = 0;
	if (t->young && t->ticks == 1) /* for all threads that were as short, and had no tick */
		return t->tick_length;
	return less(cpu < most ? cpu : most, paid);
}

/* At random, where it is no whole number. */
static uint64_t in_periods(struct ca_thread *t, uint64_t ns)
{
	return (ns + ca_rng_below(&t->rng, ca_rt.period)) / ca_rt.period;
}

/* Periods that a look at the stack stands for: a timer's ticks come when the kernel ticks. */
static uint64_t looks(struct ca_thread *t)
{
	uint64_t ns = t->of_kernel                          ? t->of_kernel
		      : t->tick.backend == CA_BACKEND_TIMER ? ca_tick_of_kernel()
							    : 0;

	return ns > ca_rt.period ? in_periods(t, ns) : 1;
}

CA_SIGSAFE static bool is_sampled(const struct ca_selection *sel)
{
	return !sel->exact && ca_ledger_open();
}

/* In OpenMP's own code a thread waits for its team, asleep or on a CPU, whatever has called that. */
CA_SIGSAFE static bool waits_for_team(const struct ca_thread *t, unsigned s_frame)
{
	uint32_t module = CA_PLACE_MODULE(t->stack.place[0]);

	return module < CA_MAX_MODULES && ca_rt.session->module[module].openmp &&
	       CA_PLACE_MODULE(t->stack.place[s_frame]) != module;
}

static void sampled_selection(struct ca_thread *t, uint64_t now)
{
	unsigned outermost, part;
	uint64_t weight;

	ca_ledger_follow(t); /* whose history is it? */
	weight = t->of_kernel ? t->of_kernel : hit_weight(t);
	t->sampled_in = ca_sample_in_selection(&t->stack, &outermost, &part) && !waits_for_team(t, outermost);
	/* before its hits: to others it is to be seen as early when it was in S as when it was not */
	ca_history_looked_at_tick(t, now, t->sampled_in ? part + 1 : 0, looks(t));
	if (t->sampled_in) {
		for (unsigned k = 0; k <= part; k++) {
			ca_ledger_log(CA_LOG_HIT, t, now,
				      CA_LOG_HIT_VALUE(ca_history_hit(t, k, now, weight), k));
			t->level.beyond += ca_inside_weigh(t, k, weight) * t->speedup / CA_MILLION;
		}
		ca_timeline_tell(t, CA_POINT, CA_KEY_HIT, now, weight);
	}
}

/* Periods that this tick's sample stands for. A timer that runs out several times before the kernel looks ticks
 * once, so that for a profile the thread's clock has to say how much it was. */
static uint64_t weight_of(struct ca_thread *t)
{
	uint64_t cpu, before = t->hit_cpu, weight;

	if (t->of_kernel)
		return in_periods(t, t->of_kernel);
	if (t->tick_drawn && t->tick.backend == CA_BACKEND_PERF) {
		t->tick_rest += t->tick_length;
		weight = t->tick_rest / ca_rt.period;
		t->tick_rest %= ca_rt.period;
		return weight;
	}
	if (!ca_rt.sampling || t->tick.backend != CA_BACKEND_TIMER)
		return t->tick_weight;
	t->hit_cpu = cpu = t->handler_cpu ? t->handler_cpu : ca_clock_thread_cpu();
	if (t->young || cpu < before)
		return t->tick_weight;
	return in_periods(t, cpu - before);
}

static void push(struct ca_thread *t, uint64_t now)
{
	uint64_t weight = weight_of(t);

	if (ca_rt.sampling)
		ca_samplers_tick(t, now, weight);
	else if (weight)
		ca_sample_push(t, now, weight, false);
}

/* What the handler has taken since then, without what it has paid, and without what others had of the CPU. */
static void note_cost(struct ca_thread *t, uint64_t from, uint64_t paid)
{
	uint64_t now = ca_clock_now(), away = paid, took, cpu = UINT64_MAX;
	struct ca_interval off[OFF];
	unsigned n = 0;

	if (now - from > LONG && t->handler_cpu)
		cpu = ca_clock_thread_cpu() - t->handler_cpu;
	else if (now - from > LONG)
		n = ca_switches_off(&t->switches, from, now, off, OFF);
	while (n-- > 0)
		away += off[n].to - off[n].from;
	took = now - from > away ? now - from - away : 0;
	atomic_fetch_add_explicit(&t->slot->handler_ns, took < cpu ? took : cpu, memory_order_relaxed);
}

/* S time that probes tell, and that has what they do in it. */
static bool is_in_timed_s(const struct ca_thread *t)
{
	const struct ca_selection *sel = &ca_rt.session->selection;

	return sel->exact && !sel->fine && atomic_load_explicit(&t->slot->in_s, memory_order_relaxed);
}

/* In code of ours, no handler, whose time is none of the program's. A system call there may be one that we make for it,
 * and clocks are read for it. */
static bool is_overhead(const struct ca_thread *t, const void *context)
{
	struct ca_registers r;
	uintptr_t all[16];

	if (t->paying_sp || t->alone || t->clock_sp)
		return false;
	if (t->guard)
		return true;
	ca_unwind_registers(&r, all, context);
	return !ca_tick_in_call(context) &&
	       ((r.pc >= ca_rt.own_low && r.pc < ca_rt.own_high) || ca_patch_is_hook(r.pc));
}

/* By ticks of the kernel, which come more often than perf's to threads that meet others; where there are none, by
 * perf's. Of a timer's alone it is not known how long each stands for. */
static void note_overhead(struct ca_thread *t, const void *context, uint64_t ns)
{
	if (!is_overhead(t, context))
		return;
	atomic_fetch_add_explicit(&t->slot->overhead, ns, memory_order_relaxed);
	if (is_in_timed_s(t))
		atomic_fetch_add_explicit(&t->slot->overhead_in_s, ns, memory_order_relaxed);
}

/* Of our own code no frame belongs to the program. */
static void leave_own_frames(struct ca_stack *stack)
{
	unsigned own = 0;

	while (own < stack->depth && CA_PLACE_MODULE(stack->place[own]) == CA_PLACE_MODULE(stack->place[0]))
		own++;
	stack->depth -= own;
	for (unsigned i = 0; i < stack->depth; i++) {
		stack->place[i] = stack->place[i + own];
		stack->cfa[i] = stack->cfa[i + own];
	}
}

/* The same work at each tick, which needs a third of a microsecond, registers, and much of what a core can do at once: it
 * takes as much longer as whoever shares the core (another hyperthread, also of another guest) leaves less of it, or as
 * its clock is lower. What an interrupt fell into says nothing of that. */
static void take_yardstick(struct ca_thread *t)
{
	uint64_t a = 1, b = 2, c = 3, d = 4, from = ca_cpu_cycles(), took;

	for (uint64_t i = 0; i < YARDSTICK; i++) {
		a += b ^ i;
		b += c ^ i;
		c += d ^ i;
		d += i;
		__asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
	}
	took = ca_cpu_cycles() - from;
	if (took < t->yardstick_least || !t->yardstick_least)
		t->yardstick_least = took;
	if (took / INTERRUPTED > t->yardstick_least)
		return;
	atomic_fetch_add_explicit(&t->slot->yardstick, took, memory_order_relaxed);
	atomic_fetch_add_explicit(&t->slot->yardsticks, 1, memory_order_relaxed);
}

static void tick(struct ca_thread *t, const void *context)
{
	struct ca_selection *sel = &ca_rt.session->selection;
	uint64_t now = ca_clock_now(), paid = atomic_load_explicit(&t->slot->spun, memory_order_relaxed);
	uintptr_t all[16];
	struct ca_registers r;
	bool walked = false, late = false;

	t->ticks += !t->beside;
	atomic_fetch_add_explicit(&t->slot->samples, 1, memory_order_relaxed);
	if (!ca_rt.sampling && !t->beside)
		take_yardstick(t);
	ca_unwind_registers(&r, all, context);
	ca_activation_check(t, r.sp); /* left by longjmp or an exception */
	if (t->waiting && r.sp > t->waiting_sp && (r.pc < ca_rt.own_low || r.pc >= ca_rt.own_high)) {
		t->waiting = NULL; /* the same */
		ca_wait_left_open(t, now);
		ca_activation_wait_left(t, now);
	}
	if (r.sp > t->clock_sp)
		t->clock_sp = 0;
	if (r.pc >= ca_rt.own_low && r.pc < ca_rt.own_high && t->clock_sp) {
		t->late = late = true; /* it is the caller's: see ca_handler_late */
	} else if (r.pc >= ca_rt.own_low && r.pc < ca_rt.own_high) {
		ca_sample_drop(t, CA_DROP_OWN_CODE);
		if (t->counts && is_sampled(sel)) {
			/* exact S has what is at work for it here, too, and the rate is lower for it */
			ca_unwind(&r, false, &t->stack);
			leave_own_frames(&t->stack);
			sampled_selection(t, now);
		}
	} else if (!ca_rt.sampling || ca_samplers_any(t)) {
		ca_unwind(&r, false, &t->stack);
		walked = true;
		ca_spins_look(t, r.pc, all, UINT16_MAX);
		ca_points_follow(now,
				 !t->stack.depth || (!t->stack.complete && t->stack.depth < CA_UNWIND_DEPTH));
		if (ca_rt.sampling && ca_rt.session->copies)
			ca_copies_take(t, all, r.pc);
		if (t->counts)
			push(t, now);
		if (t->counts && is_sampled(sel))
			sampled_selection(t, now);
	}
	if (!atomic_load_explicit(&t->slot->in_s, memory_order_relaxed) && !t->history.found[0])
		ca_slot_set_remove(&ca_rt.session->in_s, t->number);
	if (t->ticks % TEND == 0 && !t->beside) {
		ca_rt_tend(now);
		ca_points_collect();
	}
	ca_activation_tell(t, now);
	ca_spins_answer();
	ca_probe_service();
	ca_cancel_service(t);
	ca_ledger_accrue(t, now, t->waiting);
	/* from here on there may be a switch log, which knows nothing of before; and another weight */
	if (!late && !t->beside)
		ca_ticks_adjust(t);
	if (ca_timers_any())
		ca_timers_adjust(now, ca_ledger_lag(t, now));
	if (walked)
		ca_probe_check(t, &t->stack);
	if (!t->waiting) {
		ca_lumps_tick(t, now);
		ca_ledger_pay(t);
		ca_level_tick(t);
		ca_level_make_up(t, ca_clock_now());
	}
	t->last_look = ca_cpu_cycles();
	paid = atomic_load_explicit(&t->slot->spun, memory_order_relaxed) - paid;
	if (is_sampled(sel) && paid) {
		t->paid_in_ticks += paid;
		ca_history_looked(t, ca_clock_now(), 0, in_periods(t, paid));
	}
	note_cost(t, now, paid);
}

void ca_handler_late(struct ca_thread *t)
{
	uint64_t now = ca_clock_now();
	int saved = errno;

	t->late = false;
	t->handler_cpu = 0;
	if (t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_sample_stack_here(t);
	leave_own_frames(&t->stack);
	push(t, now);
	if (is_sampled(&ca_rt.session->selection))
		sampled_selection(t, now);
	/* which the tick has left to us */
	ca_ledger_accrue(t, now, t->waiting);
	ca_ticks_adjust(t);
	t->guard--;
	errno = saved;
}

/* As many events of --overflow have happened: a sample, and nothing else. */
static void overflowed(struct ca_thread *t, const void *context)
{
	uint64_t now = ca_clock_now();
	uintptr_t all[16];
	struct ca_registers r;

	ca_unwind_registers(&r, all, context);
	if (r.pc >= ca_rt.own_low && r.pc < ca_rt.own_high) {
		ca_sample_drop(t, CA_DROP_OWN_CODE);
	} else {
		ca_unwind(&r, false, &t->stack);
		if (ca_rt.session->copies)
			ca_copies_take(t, all, r.pc);
		ca_samplers_overflowed(t, now, t->overflows);
	}
	note_cost(t, now, 0);
}

/* Call on another stack. No handler of the program's can come in meanwhile: the mask of ours keeps all of
 * them off, but for those of traps. */
static void call_on(char *top, void (*function)(struct ca_thread *, const void *), struct ca_thread *t,
		    const void *context)
{
	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "movq %[top], %%rsp\n\t"
			 "call *%[function]\n\t"
			 "movq %%rbx, %%rsp"
			 : "+D"(t), "+S"(context)
			 : [top] "r"(top), [function] "r"(function)
			 : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
}

/* What a tick of the kernel's stands for; 0: it is none, or came too early. */
static uint64_t kernel_length(struct ca_thread *t, const siginfo_t *info, const void *context)
{
	bool of_kernel = ca_tick_is_of_kernel(&t->tick, info);
	uint64_t length = of_kernel ? ca_tick_of_kernel_stands_for(&t->tick) : 0;

	if (of_kernel)
		note_overhead(t, context, length);
	else if (t->tick.backend == CA_BACKEND_PERF && !t->tick.sees_kernel)
		note_overhead(t, context, t->tick_length);
	return length;
}

/* false: it is of no account. */
static bool note_kernel(struct ca_thread *t, const siginfo_t *info, const void *context)
{
	bool of_kernel = ca_tick_is_of_kernel(&t->tick, info), in_call = ca_tick_in_call(context);
	uint64_t length = kernel_length(t, info, context);

	t->beside = of_kernel && !ca_tick_is_coarse(&t->tick);
	if (of_kernel && (!length || (t->beside && !in_call)))
		return false; /* perf's ticks see the rest */
	t->in_kernel = in_call;
	t->of_kernel = length;
	/* on the way back from a call: of the kernel's ticks some come just then, too */
	t->counts = of_kernel || !in_call || !t->tick.sees_kernel;
	return true;
}

/* While it pays, it is not in S. */
static void drop(struct ca_thread *t)
{
	ca_sample_drop(t, CA_DROP_REENTRY);
	if (t->paying_sp && is_sampled(&ca_rt.session->selection))
		ca_history_looked(t, ca_clock_now(), 0, 1);
}

/* At full speed from here on. What is patched is taken out, which needs more of a stack than the program's alternate one
 * may have. */
static void wind_down(struct ca_thread *t, const void *context)
{
	(void)context;
	ca_thread_wind_down(t);
}

static void handler(int signal, siginfo_t *info, void *context)
{
	struct ca_thread *t = ca_self;
	int saved = errno;

	(void)signal;
	if (!ca_tick_is_ours(info)) {
		ca_signals_forward(info, context);
	} else if (!t) {
		; /* a thread that comes or goes */
	} else if (!atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		call_on(t->work_stack + sizeof t->work_stack, wind_down, t, context);
	} else if (t->guard && t->clock_sp && !t->paying_sp) {
		t->late |= note_kernel(t, info, context) && t->counts;
	} else if (t->guard) {
		/* what is due then is causal's own, and no later sample's */
		if (kernel_length(t, info, context) || !ca_tick_is_of_kernel(&t->tick, info))
			drop(t);
	} else if (note_kernel(t, info, context)) {
		t->guard++;
		t->handler_cpu = t->switches.page ? 0 : ca_clock_thread_cpu();
		t->overflows = t->overflow.page ? ca_samplers_overflow(t) : 0;
		call_on(t->work_stack + sizeof t->work_stack, t->overflows ? overflowed : tick, t, context);
		t->guard--;
	}
	errno = saved;
}

bool ca_handler_install(void)
{
	/* a handler of the program's on top of ours would run on our stack, or over what the kernel has put
	 * on an alternate one for ours; and could leave by longjmp, with our guard up (libc's own for
	 * cancellation, too). What patched text raises must get through, in any thread. */
	return ca_signals_take(handler, ~(CA_SYS_SIGNAL(SIGTRAP) | CA_SYS_SIGNAL(SIGILL)));
}

/* SPDX-License-Identifier: MIT */
/* Activations of S; see activation.h. Frames of S on a thread's stack are known by their stack
 * addresses, so that recursion, longjmp and exceptions come out right.
 *
 * Called from hooks: compiled for general registers only. */
#include "causal/runtime/activation.h"
#include "causal/runtime/account.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/ledger.h"

enum {
	NEAR = 32768, /* bytes between addresses on one stack: half of a small coroutine's */
	OFFS = 8      /* off-CPU times looked at in one go */
};

/* Addresses tell what lies deeper only on one stack. Of coroutines' and signal handlers' stacks
 * nobody tells us where they end: on the same are those that are near each other. */
static bool same_stack(const struct ca_thread *t, uintptr_t a, uintptr_t b)
{
	if (ca_rt_on_own_stack(t, a) || ca_rt_on_own_stack(t, b))
		return ca_rt_on_own_stack(t, a) && ca_rt_on_own_stack(t, b);
	return (a < b ? b - a : a - b) < NEAR;
}

/* It has gone over to another stack while it was in S: how, is not seen. Hooks cannot tell any more where it is
 * in S. The conductor hears of it, and takes probes out where that is a habit. */
static void is_elsewhere(struct ca_thread *t)
{
	_Atomic uint32_t *often = &ca_rt.session->elsewhere;

	t->elsewhere = true;
	if (atomic_load_explicit(often, memory_order_relaxed) < CA_ELSEWHERE)
		atomic_fetch_add_explicit(often, 1, memory_order_relaxed);
}

/* Activations below sp, on the same stack, no longer exist: left by longjmp or an exception.
 * back: whoever made a call at sp is back from it. */
static void drop_dead(struct ca_thread *t, uintptr_t sp, bool back)
{
	unsigned known = t->depth < CA_FRAMES ? t->depth : CA_FRAMES, left = 0;

	/* what lies deeper than the last one we know goes with it */
	if (t->depth > CA_FRAMES && t->frame[CA_FRAMES - 1] <= sp &&
	    same_stack(t, sp, t->frame[CA_FRAMES - 1]))
		t->depth = CA_FRAMES;
	for (unsigned i = 0; i < known; i++) {
		bool comparable = same_stack(t, sp, t->frame[i]);

		if (!comparable)
			is_elsewhere(t);
		if (!comparable || t->frame[i] > sp || (t->frame[i] == sp && !back)) {
			t->frame_part[left] = t->frame_part[i];
			t->frame[left++] = t->frame[i];
		}
	}
	if (left < known)
		t->depth = left;
}

/* Number of the activation with exactly this stack pointer; CA_FRAMES: it is not known. */
static unsigned find_frame(const struct ca_thread *t, uintptr_t sp)
{
	unsigned i = t->depth < CA_FRAMES ? t->depth : CA_FRAMES;

	while (i > 0)
		if (t->frame[--i] == sp)
			return i;
	return CA_FRAMES;
}

/* The time, and that of the CPU where that is needed. */
static uint64_t read_clocks(struct ca_thread *t)
{
	uint64_t now = ca_clock_now();

	return t->switches.page ? now : ca_account_read_cpu(t, now);
}

/* Off the CPU in S and not yet told of. Returns up to when it is told. */
static uint64_t log_off_times(struct ca_thread *t, uint64_t now)
{
	struct ca_interval off[OFFS];
	unsigned n = OFFS;

	if (!t->switches.page) {
		uint64_t cpu, wall;

		now = ca_account_read_cpu(t, now);
		cpu = t->cpu_read - t->entered_cpu;
		if ((int64_t)cpu < 0)
			cpu = 0;
		wall = now - t->entered;

		if (wall > cpu + CA_ACCOUNT_UNSURE && !t->waited)
			ca_ledger_log(CA_LOG_WAS_OFF, t, now - (wall - cpu), now);
		t->entered_cpu = t->cpu_read;
		t->waited = false;
	}
	while (t->switches.page && n == OFFS) {
		n = ca_switches_off(&t->switches, t->entered, now, off, OFFS);
		for (unsigned i = 0; i < n; i++)
			ca_ledger_log(CA_LOG_WAS_OFF, t, off[i].from, off[i].to);
		if (n)
			t->entered = off[n - 1].to;
	}
	return t->entered = now;
}

/* Of the parts of S that it is in, the one with the largest speedup counts. */
static uint8_t part_of_frames(const struct ca_thread *t)
{
	uint8_t part = 0;

	for (unsigned i = 0; i < t->depth && i < CA_FRAMES; i++)
		part = t->frame_part[i] > part ? t->frame_part[i] : part;
	return part;
}

/* It may have come to another part of S. */
static void look_at_part(struct ca_thread *t)
{
	uint8_t part = part_of_frames(t);

	if (part == t->part)
		return;
	t->part = part;
	atomic_store_explicit(&t->slot->in_s, ca_slot_in_s(CA_IN_S, part), memory_order_relaxed);
	ca_ledger_log(CA_LOG_ENTER, t, log_off_times(t, ca_clock_now()), part);
}

static void enters(struct ca_thread *t)
{
	uint64_t now;

	/* this may take a while: what others log meanwhile has a time before ours */
	ca_ledger_accrue(t, read_clocks(t), NULL);
	if (!t->depth) /* meanwhile something else has been selected: nobody would tell of its exit */
		return;
	t->entered_cpu = t->cpu_read;
	t->waited = false;
	ca_slot_set_add(&ca_rt.session->in_s, t->number);
	t->part = part_of_frames(t);
	atomic_store_explicit(&t->slot->in_s, ca_slot_in_s(CA_IN_S, t->part), memory_order_relaxed);
	t->entered = now = ca_clock_now();
	ca_ledger_log(CA_LOG_ENTER, t, now, t->part);
}

CA_SIGSAFE void ca_activation_left(struct ca_thread *t)
{
	uint64_t now;

	if (!atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		t->depth = 0; /* no system calls: they may be forbidden by now */
		return;
	}
	if (ca_fine_is_in(t)) {
		ca_fine_left(t);
		return;
	}
	t->depth = 0;
	now = log_off_times(t, ca_clock_now());
	atomic_store_explicit(&t->slot->in_s, 0, memory_order_relaxed);
	ca_ledger_log(CA_LOG_EXIT, t, now, t->part);
	ca_ledger_accrue(t, now, NULL);
}

CA_SIGSAFE void ca_activation_wait_left(struct ca_thread *t, uint64_t now)
{
	if (!t->wait_in_s)
		return;
	t->wait_in_s = false;
	atomic_store_explicit(&t->slot->in_s, 0, memory_order_relaxed);
	ca_ledger_log(CA_LOG_EXIT, t, now, 0);
}

CA_SIGSAFE void ca_activation_tell(struct ca_thread *t, uint64_t now)
{
	if (ca_fine_is_in(t))
		ca_fine_tell(t);
	else if (t->depth && !t->waiting && now > t->entered)
		log_off_times(t, now);
}

void ca_activation_enter(struct ca_thread *t, uintptr_t sp)
{
	bool was_in = t->depth > 0;

	drop_dead(t, sp, false);
	if (find_frame(t, sp) == CA_FRAMES) { /* else it jumped back to its own start */
		if (t->depth < CA_FRAMES) {
			t->frame[t->depth] = sp;
			t->frame_part[t->depth] = t->next_part;
		}
		t->depth++;
	}
	t->next_part = 0;
	if (!was_in)
		enters(t);
	else
		look_at_part(t);
}

static void leave_if_none_is_left(struct ca_thread *t)
{
	if (!t->depth && !t->wait_in_s && atomic_load_explicit(&t->slot->in_s, memory_order_relaxed))
		ca_activation_left(t);
}

void ca_activation_exit(struct ca_thread *t, uintptr_t sp)
{
	unsigned i;

	drop_dead(t, sp, false);
	i = find_frame(t, sp);
	if (i < CA_FRAMES) {
		t->depth = t->depth < CA_FRAMES ? t->depth - 1 : CA_FRAMES - 1;
		for (; i < t->depth; i++) { /* on other stacks */
			t->frame[i] = t->frame[i + 1];
			t->frame_part[i] = t->frame_part[i + 1];
		}
	} else if (t->depth > CA_FRAMES) {
		t->depth--;
	}
	leave_if_none_is_left(t);
	if (t->depth)
		look_at_part(t);
}

static bool by_calls(const struct ca_selection *sel)
{
	return sel->sites && (sel->site[0].kind == CA_SITE_CALL || sel->site[0].kind == CA_SITE_EXIT);
}

/* A call's activation is named by the caller's stack pointer: who has that one is back. A
 * function's first instruction still has the one that names it. */
CA_SIGSAFE void ca_activation_check(struct ca_thread *t, uintptr_t sp)
{
	bool calls;

	if (!ca_rt_is_in_s(t))
		return;
	calls = by_calls(&ca_rt.session->selection);
	if (ca_fine_is_in(t)) {
		uintptr_t outer = atomic_load_explicit(&t->fine->outer, memory_order_relaxed);

		if (!ca_rt.session->selection.fine)
			ca_fine_forget(t);
		else if (!same_stack(t, sp, outer))
			is_elsewhere(t);
		else if (sp > outer || (calls && sp == outer))
			ca_fine_forget(t);
		return;
	}
	drop_dead(t, sp, calls);
	leave_if_none_is_left(t);
	if (t->depth)
		look_at_part(t);
}

void ca_activation_own_stack(uintptr_t top, size_t size)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct ca_thread *t = ca_self;

	if (!t || here >= top || here < top - size)
		return;
	t->stack.own_low = top - size;
	t->stack.own_high = top;
}

CA_SIGSAFE void ca_activation_adopt(struct ca_thread *t, const struct ca_stack *stack, unsigned frame,
				    unsigned part)
{
	if (by_calls(&ca_rt.session->selection)) {
		/* a line: in one of its calls, or between them, which does not count */
		if (!frame)
			return;
		t->frame[0] = stack->cfa[frame - 1];
	} else {
		t->frame[0] = stack->cfa[frame] - sizeof(uintptr_t);
	}
	t->depth = 1;
	t->frame_part[0] = (uint8_t)part;
	enters(t);
}

void ca_activation_put_aside(struct ca_aside *aside)
{
	struct ca_thread *t = ca_self;

	aside->depth = 0;
	aside->outer = 0;
	if (!t || t->guard || !ca_rt_is_in_s(t) || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	aside->selection = t->selection;
	if (ca_fine_is_in(t)) {
		aside->outer = ca_fine_suspend(t);
	} else {
		aside->depth = t->depth;
		for (unsigned i = 0; i < t->depth && i < CA_FRAMES; i++) {
			aside->frame[i] = t->frame[i];
			aside->part[i] = t->frame_part[i];
		}
		ca_activation_left(t);
	}
	t->guard--;
}

void ca_activation_take_up(const struct ca_aside *aside)
{
	struct ca_thread *t = ca_self;

	if ((!aside->depth && !aside->outer) || !t || t->guard ||
	    !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_ledger_follow(t);
	if (t->selection != aside->selection) {
		; /* it was another S */
	} else if (aside->outer) {
		ca_fine_resume(t, aside->outer);
	} else {
		if (t->depth) /* of a stack that was left otherwise */
			ca_activation_left(t);
		t->depth = aside->depth;
		for (unsigned i = 0; i < t->depth && i < CA_FRAMES; i++) {
			t->frame[i] = aside->frame[i];
			t->frame_part[i] = aside->part[i];
		}
		enters(t);
	}
	t->guard--;
}

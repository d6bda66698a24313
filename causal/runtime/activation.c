/* SPDX-License-Identifier: MIT */
/* Activations of S; see activation.h. Frames of S on a thread's stack are known by their stack
 * addresses, so that recursion, longjmp and exceptions come out right.
 *
 * Called from hooks: compiled for general registers only. */
#include "causal/runtime/activation.h"
#include "causal/runtime/ledger.h"

enum {
	OFFS = 8,      /* off-CPU times looked at in one go */
	UNSURE = 50000 /* ns by which the CPU clock may be behind for no reason */
};

/* Activations below sp no longer exist: left by longjmp or an exception. */
static void drop_dead(struct ca_thread *t, uintptr_t sp)
{
	/* what lies deeper than the last one we know goes with it */
	if (t->depth > CA_FRAMES && t->frame[CA_FRAMES - 1] <= sp)
		t->depth = CA_FRAMES;
	while (t->depth && t->depth <= CA_FRAMES && t->frame[t->depth - 1] < sp)
		t->depth--;
}

static bool is_innermost(const struct ca_thread *t, uintptr_t sp)
{
	return t->depth && t->depth <= CA_FRAMES && t->frame[t->depth - 1] == sp;
}

/* Off the CPU in S and not yet told of, up to now. */
static void log_off_times(struct ca_thread *t, uint64_t now)
{
	struct ca_interval off[OFFS];
	unsigned n = OFFS;

	if (!t->switches.page) {
		uint64_t cpu_now = ca_clock_thread_cpu();
		uint64_t cpu = cpu_now - t->entered_cpu, wall = now - t->entered;

		if (wall > cpu + UNSURE && !t->waited)
			ca_ledger_log(CA_LOG_WAS_OFF, t, now - (wall - cpu), now);
		t->entered_cpu = cpu_now;
		t->waited = false;
	}
	while (t->switches.page && n == OFFS) {
		n = ca_switches_off(&t->switches, t->entered, now, off, OFFS);
		for (unsigned i = 0; i < n; i++)
			ca_ledger_log(CA_LOG_WAS_OFF, t, off[i].from, off[i].to);
		if (n)
			t->entered = off[n - 1].to;
	}
	t->entered = now;
}

static void enters(struct ca_thread *t)
{
	uint64_t now;

	/* this may take a while: what others log meanwhile has a time before ours */
	ca_ledger_accrue(t, ca_clock_now(), NULL);
	if (!t->switches.page)
		t->entered_cpu = ca_clock_thread_cpu();
	t->waited = false;
	atomic_store_explicit(&t->slot->in_s, 1, memory_order_relaxed);
	t->entered = now = ca_clock_now();
	ca_ledger_log(CA_LOG_ENTER, t, now, 0);
}

CA_SIGSAFE void ca_activation_left(struct ca_thread *t)
{
	uint64_t now;

	t->depth = 0;
	log_off_times(t, ca_clock_now());
	atomic_store_explicit(&t->slot->in_s, 0, memory_order_relaxed);
	now = ca_clock_now();
	ca_ledger_log(CA_LOG_EXIT, t, now, 0);
	ca_ledger_accrue(t, now, NULL);
}

CA_SIGSAFE void ca_activation_tell(struct ca_thread *t, uint64_t now)
{
	if (t->depth && !t->waiting && now > t->entered)
		log_off_times(t, now);
}

void ca_activation_enter(struct ca_thread *t, uintptr_t sp)
{
	bool was_in = t->depth > 0;

	drop_dead(t, sp);
	if (!is_innermost(t, sp)) { /* else it jumped back to its own start */
		if (t->depth < CA_FRAMES)
			t->frame[t->depth] = sp;
		t->depth++;
	}
	if (!was_in)
		enters(t);
}

void ca_activation_exit(struct ca_thread *t, uintptr_t sp)
{
	drop_dead(t, sp);
	if (is_innermost(t, sp) || t->depth > CA_FRAMES)
		t->depth--;
	if (!t->depth && atomic_load_explicit(&t->slot->in_s, memory_order_relaxed))
		ca_activation_left(t);
}

static bool by_calls(const struct ca_selection *sel)
{
	return sel->site[0].kind == CA_SITE_CALL || sel->site[0].kind == CA_SITE_EXIT;
}

/* A call's activation is named by the caller's stack pointer: who has that one is back. A
 * function's first instruction still has the one that names it. */
CA_SIGSAFE bool ca_activation_is_over(const struct ca_thread *t, uintptr_t sp)
{
	const struct ca_selection *sel = &ca_rt.session->selection;

	return t->depth && (sp > t->frame[0] || (sp == t->frame[0] && sel->sites && by_calls(sel)));
}

CA_SIGSAFE void ca_activation_adopt(struct ca_thread *t, const struct ca_stack *stack, unsigned frame)
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
	enters(t);
}

/* SPDX-License-Identifier: MIT */
/* What patched code calls: a thread enters or leaves S, or is about to spin.
 *
 * Anywhere in the program, vector registers in use and unsaved: this file and all that it
 * calls is compiled for general registers only. */
#include "causal/runtime/probe.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/spins.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/wait.h"
#include "core/cpu.h"
#include "core/log.h"
#include "sampler/modules.h"

static _Atomic uint64_t serviced; /* selection.seq whose sites have been installed here */
/* The one last asked for; where text must not change, those before stand still. */
static _Atomic uint64_t attempted;
static atomic_flag servicing = ATOMIC_FLAG_INIT;

/* Are the sites that stand here those of the selection that everybody goes by? Between the two,
 * what passes the old ones must not count for the new one. */
static bool is_current(void)
{
	return atomic_load_explicit(&serviced, memory_order_acquire) ==
	       atomic_load_explicit(&ca_rt.session->selection.seq, memory_order_relaxed);
}

/* Of this thread alone. */
static void count(_Atomic uint32_t *n)
{
	atomic_store_explicit(n, atomic_load_explicit(n, memory_order_relaxed) + 1, memory_order_relaxed);
}

static void hook_enter(uintptr_t sp)
{
	struct ca_thread *t = ca_self;

	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_ledger_follow(t);
	if (is_current()) { /* else the site is one of the selection before */
		count(&t->fine->visits);
		ca_activation_enter(t, sp);
	}
	t->guard--;
}

static void hook_exit(uintptr_t sp)
{
	struct ca_thread *t = ca_self;

	if (!t || t->guard)
		return;
	if (!t->depth) {
		count(&t->fine->passes);
		return;
	}
	t->guard++;
	ca_ledger_follow(t);
	ca_activation_exit(t, sp);
	t->guard--;
}

enum {
	COOL = 20000,  /* visits a second of a thread that are worth a look at the clock */
	COOL_LOOK = 64 /* visits between two looks at how many they are */
};

/* Whom the full count meets is drawn in proportion to its visits. */
static void cool_down(struct ca_thread *t, uint32_t point, uint64_t now)
{
	if (++t->stamps < COOL_LOOK)
		return;
	if (now - t->stamps_from < COOL_LOOK * (CA_NS_PER_S / COOL))
		atomic_store_explicit(&t->slot->hot[point], 1, memory_order_relaxed);
	t->stamps_from = now;
	t->stamps = 0;
}

/* A visit is timed if this thread has begun and ended it, and no other of the same name in between: else it
 * is not known which end belongs to which begin. */
static void note_latency(struct ca_thread *t, uint32_t point, uint64_t now)
{
	const struct ca_progress_point *p = &ca_rt.session->point[point];
	struct ca_latency *l;
	uint64_t begun;

	if (!p->latency)
		return;
	l = &ca_rt.session->latency[p->latency - 1];
	begun = t->begun[p->latency - 1];
	t->begun[p->latency - 1] = p->kind == CA_POINT_BEGIN ? now : 0;
	if (!begun != (p->kind == CA_POINT_BEGIN))
		atomic_fetch_add_explicit(&l->odd, 1, memory_order_relaxed);
	else if (begun)
		atomic_fetch_add_explicit(&l->count[ca_latency_bucket(now > begun ? now - begun : 0)], 1,
					  memory_order_relaxed);
}

static void hook_stamp(uint32_t point)
{
	struct ca_thread *t = ca_self;
	uint64_t now, since, lag, owed;

	if (point >= CA_MAX_POINTS) { /* CA_SITE_PART */
		if (t && !t->guard)
			t->next_part = (uint8_t)(point - CA_MAX_POINTS);
		return;
	}
	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		/* the times of a latency's two ends would no longer belong together */
		if (t && ca_rt.session->point[point].kind == CA_POINT_THROUGHPUT)
			ca_patch_counters[point]++;
		return;
	}
	t->guard++;
	now = ca_clock_now();
	since = ca_ledger_virtual(t, now);
	/* what it owes has yet to come before the visit */
	owed = t->owed > 0 ? (uint64_t)t->owed : 0;
	since += owed;
	lag = ca_ledger_lag(t, now) - owed;
	/* a sequence lock with one writer; the conductor is the reader (visits.c) */
	atomic_fetch_add_explicit(&t->slot->stamping, 1, memory_order_acq_rel);
	atomic_fetch_add_explicit(&t->slot->stamp[point], since, memory_order_relaxed);
	atomic_fetch_add_explicit(&t->slot->count[point], 1, memory_order_relaxed);
	atomic_store_explicit(&t->slot->last[point], now - lag, memory_order_relaxed);
	atomic_fetch_add_explicit(&t->slot->stamping, 1, memory_order_release);
	note_latency(t, point, now - lag);
	if (ca_timeline_wants(CA_KEY_VISIT)) /* of all of them */
		ca_timeline_tell(t, CA_POINT, CA_KEY_VISIT, now, point);
	else
		cool_down(t, point, now);
	t->guard--;
}

/* The thread is out of S again; for what it has added up there a hit is due. */
static void hook_fine(void)
{
	struct ca_thread *t = ca_self;

	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_ledger_follow(t);
	if (ca_rt.session->selection.fine)
		ca_fine_due(t);
	else
		ca_fine_forget(t);
	t->guard--;
}

enum {
	XSAVE_FEATURES = 0xe7, /* x87, SSE, AVX, AVX-512: what libc's functions may change */
	XSAVE_ROOM = 4096      /* bytes; these need 2,688 (Intel's manual, volume 1, chapter 13) */
};
static bool have_xsave;

/* Before the first hook is called. */
static void look_for_xsave(void)
{
	unsigned a = 1, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	have_xsave = c >> 27 & 1; /* the system uses it */
}

enum {
	LOOK_EVERY = 256 /* pauses between two looks at what is waited for */
};

/* A thread that makes itself known needs libc, and with it the vector registers: they are put
 * aside. Without xsave it stays unknown until it meets others elsewhere. */
static __attribute__((noinline)) void hook_meet_apart(void)
{
	_Alignas(64) char area[XSAVE_ROOM];

	if (!have_xsave)
		return;
	for (unsigned i = 0; i < 64; i += 8) /* the header must be zeros */
		*(volatile uint64_t *)(void *)(area + 512 + i) = 0;
	__asm__ volatile("xsave64 %0" : "=m"(area) : "a"(XSAVE_FEATURES), "d"(0) : "memory");
	ca_wait_meet();
	__asm__ volatile("xrstor64 %0" : : "m"(area), "a"(XSAVE_FEATURES), "d"(0) : "memory");
}

/* At a pause. Who waits for another owes nothing, spinning or asleep; what it owes from before it pays here: so
 * long it has not come here yet. */
static void spin(struct ca_thread *t, uintptr_t sp)
{
	uint64_t now, paid = atomic_load_explicit(&t->slot->spun, memory_order_relaxed);
	uintptr_t pc, all[16];

	if (t->guard)
		return;
	t->guard++; /* else a tick in the kernel's clock is one of the program's */
	now = ca_clock_now();
	if (now - t->spins_until > CA_SPIN_GAP)
		t->spins_since = now;
	t->spins_until = now;
	t->guard--;
	ca_rt_spins(t, 1);
	ca_wait_meet_known(t, 0);
	if (atomic_load_explicit(&t->slot->spun, memory_order_relaxed) != paid)
		t->spins_since = t->spins_until = ca_clock_now();
	/* ticks find it here more often than in the loop itself */
	if (++t->pauses % LOOK_EVERY == 0) {
		unsigned known = ca_trampoline_registers(sp, &pc, all);

		ca_spins_look(t, pc, all, known);
	}
}

static void hook_meet(uintptr_t sp)
{
	struct ca_thread *t = ca_self;

	if (t) {
		spin(t, sp);
	} else if (atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		hook_meet_apart();
	}
}

enum {
	OFTEN = 2048,            /* visits of atomic operations ... */
	OFTEN_CYCLES = 30000000, /* ... within some 10 ms: at 15 to 100 ns each, 0.3 to 2 % */
	OTHERS = 4,              /* ... of which not every fourth comes with another meeting */
	LOOK_AGAIN = 150000      /* cycles between two looks at a stack that was found in S */
};

/* Reference counts are passed millions of times a second and hand nothing over; a thread that spins
 * may pass as often, but pauses or yields between. Whom the full count meets is drawn in
 * proportion to its visits. */
static void count_atomic(struct ca_thread *t, uintptr_t pc)
{
	uint64_t now;

	t->other_meets += t->meets < t->meets_seen ? t->meets : t->meets - t->meets_seen;
	if (++t->atomics < OFTEN)
		return;
	now = ca_cpu_cycles();
	if (now - t->atomics_from < OFTEN_CYCLES && t->other_meets < OFTEN / OTHERS)
		ca_patch_retire(pc);
	t->atomics_from = now;
	t->atomics = t->other_meets = 0;
}

static void hook_atomic(uintptr_t pc)
{
	struct ca_thread *t = ca_self;

	/* unknown threads meet others elsewhere: making them known here would not be cheap */
	if (!t || t->guard)
		return;
	count_atomic(t, pc);
	if (!t->sampled_in || ca_cpu_cycles() - t->last_look > LOOK_AGAIN)
		ca_wait_meet_known(t, pc);
	t->meets_seen = t->meets;
}

CA_SIGSAFE void ca_probe_check(struct ca_thread *t, const struct ca_stack *stack)
{
	const struct ca_selection *sel = &ca_rt.session->selection;
	unsigned frame, part;
	bool in;

	if (!sel->exact || !sel->sites || !is_current() ||
	    (t->checked && !t->elsewhere && !ca_fine_is_in(t) && !(sel->edges && t->depth)))
		return;
	ca_ledger_follow(t);
	if (t->selection != atomic_load_explicit(&sel->seq, memory_order_relaxed))
		return;
	if (sel->fine) { /* who was in S before there were probes will soon be so again */
		t->sampled_in = false;
		if (ca_fine_is_in(t) && stack->complete && !ca_sample_in_selection(stack, &frame, &part))
			ca_fine_forget(t);
		return;
	}
	if (!t->checked)
		t->elsewhere = false;
	t->checked = true;
	t->sampled_in = false;
	in = ca_sample_in_selection(stack, &frame, &part);
	if (in && !t->depth)
		ca_activation_adopt(t, stack, frame, part);
	else if (!in && t->depth && stack->complete)
		ca_activation_left(t);
}

void ca_probe_check_here(struct ca_thread *t)
{
	const struct ca_selection *sel = &ca_rt.session->selection;

	if ((t->checked && t->selection == atomic_load_explicit(&sel->seq, memory_order_relaxed)) ||
	    !sel->exact || !sel->sites || sel->fine || !is_current())
		return;
	ca_sample_stack_here(t);
	ca_probe_check(t, &t->stack);
}

/* Another thread of the parent may have been at it. */
void ca_probe_forked(void)
{
	atomic_flag_clear_explicit(&servicing, memory_order_release);
}

void ca_probe_init(void)
{
	static const struct ca_patch_hooks hooks = { hook_enter, hook_exit,   hook_meet,
						     hook_stamp, hook_atomic, hook_fine };

	look_for_xsave();
	ca_fine_init();
	ca_patch_set_hooks(&hooks);
	ca_patch_keep = ca_signals_keep;
	ca_patch_blocked = ca_signals_wanted_at;
	ca_patch_handler_begins = ca_signals_handler_begins;
	ca_patch_handler_ends = ca_signals_handler_ends;
	ca_sampler_host.translate = ca_patch_translate;
}

/* The conductor may write the next selection while we are still at this one: work on a copy that
 * is known to be whole. Guarded by `servicing`. */
static struct ca_site sites[CA_SELECTION_SITES];

static bool copy_sites(const struct ca_selection *sel, uint64_t seq, uint32_t *n)
{
	*n = sel->sites < CA_SELECTION_SITES ? sel->sites : CA_SELECTION_SITES;
	for (uint32_t i = 0; i < *n; i++)
		sites[i] = sel->site[i];
	return ca_selection_is_still(sel, seq);
}

/* The sites that S needs come first, and only their failures count: without a site in a spin loop, its
 * thread pays later. */
static uint32_t needed_of(uint32_t n)
{
	uint32_t needed = 0;

	while (needed < n && sites[needed].kind != CA_SITE_MEET)
		needed++;
	return needed;
}

static unsigned install(uint32_t n)
{
	uint32_t needed = needed_of(n);

	ca_patch_install(sites + needed, n - needed, ca_modules_bias);
	return ca_patch_install(sites, needed, ca_modules_bias);
}

CA_SIGSAFE void ca_probe_service(void)
{
	struct ca_session *s = ca_rt.session;
	struct ca_process *p = &s->process[ca_rt.process];
	unsigned failed = 0;
	uint64_t seq;
	uint32_t n;

	ca_patch_remove_retired();
	if (!ca_selection_read(&s->selection, &seq))
		return;
	if (atomic_load_explicit(&attempted, memory_order_acquire) != seq) {
		bool removed = true;

		if (ca_patch_is_busy() || atomic_flag_test_and_set_explicit(&servicing, memory_order_acquire))
			return;
		if (!copy_sites(&s->selection, seq, &n)) {
			atomic_flag_clear_explicit(&servicing, memory_order_release);
			return;
		}
		if (ca_rt.patching) {
			removed = ca_patch_remove();
			if (removed)
				ca_fine_forget_all();
			failed = removed ? install(n) : needed_of(n);
		} else {
			failed = s->selection.exact && !ca_rt.is_load;
		}
		atomic_store_explicit(&p->patch_failed, failed, memory_order_relaxed);
		ca_log(CA_LOG_DEBUG, "process %d: selection %u, %u sites, %u not in place", (int)ca_rt.pid,
		       s->selection.region, n, failed);
		if (removed)
			atomic_store_explicit(&serviced, seq, memory_order_release);
		atomic_store_explicit(&attempted, seq, memory_order_release);
		atomic_flag_clear_explicit(&servicing, memory_order_release);
	}
	/* an int3 is as exact as a jump: the experiment may start before the jumps stand */
	atomic_store_explicit(&p->patched, seq, memory_order_release);
}

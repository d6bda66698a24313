/* SPDX-License-Identifier: MIT */
/* The ledger: who owes how much delay, and paying it. doc/METHOD.md has the theory.
 *
 * All threads append what happens to the selected code S to one log in the session; each
 * thread reads the log on its own and keeps a replica of who is in S. What it owes is
 * p x (time in which somebody else was in S while it was itself on a CPU outside S). There
 * is no lock, and nobody waits for anybody: a process may die at any point.
 * S may have parts with speedups of their own. Then it is a pile of layers, each an S of all parts that have
 * at least so much speedup, and what is owed and inserted is the sum over them.
 *
 * Any thread: handler, hooks and wrappers, always with the thread's guard held. Uses
 * general registers only and calls nothing that might use others. */
#include "causal/runtime/ledger.h"
#include "causal/runtime/account.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/history.h"
#include "causal/runtime/inside.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/timeline.h"
#include "core/cpu.h"
#include "core/paying.h"
#include "core/sys.h"
#include <time.h>

enum {
	LEAST = 1000,          /* ns; smaller debts wait */
	SHORT = 2000,          /* ns; what is paid so quickly is counted by itself: see pay_slice */
	STILL = 100000,        /* ns in which all stand still, told in one go */
	SLICE = 20000,         /* ns paid between two looks at the log */
	GAP = 200000,          /* ns between two clock readings: we were not running */
	IN_VAIN = 3,           /* slices in a row in which nothing was paid: give up */
	LONGEST = 50000000,    /* ns paid in one go; then the program gets a turn */
	HOPELESS = 1000000000, /* ns waited on while the debt got no smaller: likewise */
	WORTH_A_NAP = 200000,  /* ns owed that are worth a sleep */
	NAP = 1000000 /* ns slept between two looks at the log, and at who else is at work, at most */
};

CA_SIGSAFE bool ca_ledger_open(void)
{
	return atomic_load_explicit(&ca_rt.session->experiment.seq, memory_order_acquire) & 1;
}

CA_SIGSAFE void ca_ledger_log(enum ca_log_type type, struct ca_thread *t, uint64_t time, uint64_t value)
{
	struct ca_session *s = ca_rt.session;

	ca_selection_append(&s->log_head, s->log, type, t->number, time, value);
	if (type == CA_LOG_ENTER || type == CA_LOG_EXIT)
		ca_timeline_tell(t, type == CA_LOG_ENTER ? CA_BURST_BEGIN : CA_BURST_END, CA_KEY_IN_S, time,
				 s->selection.region);
}

/* ---- experiments that come and go ------------------------------------------------------------*/
static void settled_up_to(struct ca_thread *t)
{
	/* acquire: pairs with the conductor's release, after settled_delay */
	t->settled_seq = atomic_load_explicit(&ca_rt.session->settled_seq, memory_order_acquire);
	t->settled = atomic_load_explicit(&ca_rt.session->settled_delay, memory_order_relaxed);
	t->s_time = 0;
	t->settling = false;
}

static void opened(struct ca_thread *t, uint64_t experiment)
{
	const struct ca_experiment *x = &ca_rt.session->experiment;

	t->experiment = experiment;
	t->speedup = x->speedup;
	t->start = x->start;
	settled_up_to(t);
	t->limit = t->settled;
	t->owed = 0;
	ca_lumps_begin(t, false);
	if (x->start > t->last)
		t->last = x->start;
	atomic_store_explicit(&t->slot->paid, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->owed, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->ahead, 0, memory_order_relaxed);
	t->heard = false;
	atomic_store_explicit(&t->slot->s_heard, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->s_until, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->experiment, t->experiment, memory_order_release);
}

/* What came since our last look, up to the experiment's end, is still owed. */
static void closed(struct ca_thread *t, const enum ca_wait *wait)
{
	uint64_t end = ca_rt.session->experiment.end;

	if (end > t->last)
		ca_account_bring(t, end, end, wait);
	ca_lumps_end(t);
	t->experiment++;
	t->settling = true;
}

static void follow_experiment(struct ca_thread *t, const enum ca_wait *wait)
{
	struct ca_session *s = ca_rt.session;
	uint64_t seq = atomic_load_explicit(&s->experiment.seq, memory_order_acquire);
	bool over = !(seq & 1), settled;

	if (seq == t->experiment && (!over || t->settled_seq == seq))
		return;
	settled = over && atomic_load_explicit(&s->settled_seq, memory_order_acquire) == seq;
	if (seq != t->experiment) {
		uint64_t experiment = over ? seq - 1 : seq;

		/* one that came and went unseen counts as long as its D is not known otherwise */
		if (t->experiment != experiment && seq && !settled) {
			opened(t, experiment);
			if (!t->switches.page)
				t->last_cpu = ca_clock_thread_cpu();
		}
		if (over && t->experiment == experiment)
			closed(t, wait);
		t->experiment = seq;
	}
	if (settled)
		settled_up_to(t);
}

static void follow(struct ca_thread *t, const enum ca_wait *wait)
{
	struct ca_session *s = ca_rt.session;
	uint64_t selection = atomic_load_explicit(&s->selection.seq, memory_order_acquire);

	if (selection != t->selection && !(selection & 1)) {
		t->selection = selection;
		t->cursor = s->selection.log_start;
		ca_inside_clear(t);
		t->checked = false;
		ca_lumps_begin(t, true);
		ca_history_select(t, s->selection.parts ? 0 : s->selection.region);
		/* The exit of what was selected before may be gone before we pass it; and its entry may have
		 * been logged when others went by the new selection already. */
		if (t->depth)
			ca_ledger_log(CA_LOG_EXIT, t, ca_clock_now(), 0);
		t->depth = 0;
		atomic_store_explicit(&t->slot->in_s, 0, memory_order_relaxed);
		/* what has been timed belongs to the selection before: see ca_fine_due */
		atomic_store_explicit(&t->fine->outer, 0, memory_order_relaxed);
		atomic_store_explicit(&t->fine->limit, INT64_MIN, memory_order_relaxed);
		if (atomic_load_explicit(&t->fine->counting, memory_order_relaxed))
			atomic_store_explicit(&t->fine->counting, 1, memory_order_relaxed);
	}
	follow_experiment(t, wait);
}

CA_SIGSAFE void ca_ledger_follow(struct ca_thread *t)
{
	follow(t, t->waiting);
}

CA_SIGSAFE void ca_ledger_accrue(struct ca_thread *t, uint64_t now, const enum ca_wait *wait)
{
	follow(t, wait);
	if (now >= t->last)
		ca_account_bring(t, now, UINT64_MAX, wait);
}

void ca_ledger_join(struct ca_thread *t, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint64_t now;

	t->selection = atomic_load_explicit(&s->selection.seq, memory_order_acquire) & ~UINT64_C(1);
	ca_inside_read_layers(t);
	t->experiment = atomic_load_explicit(&s->experiment.seq, memory_order_acquire);
	if (t->experiment & 1)
		opened(t, t->experiment);
	else
		settled_up_to(t);
	ca_catch_up_runs(t);
	now = ca_clock_now();
	t->s_time = ca_inside_resynchronise(t, now, creator);
	t->last = t->owing_since = now;
}

/* ---- virtual time --------------------------------------------------------------------------*/
static uint64_t delay_so_far(const struct ca_thread *t)
{
	return t->s_time / CA_MILLION * t->speedup + t->s_time % CA_MILLION * t->speedup / CA_MILLION;
}

static uint64_t caught_up(void)
{
	return atomic_load_explicit(&ca_rt.session->caught_up, memory_order_relaxed);
}

/* Of what was inserted, virtual time lags by what it has not caught up. Two accounts differ a little. */
static uint64_t lag_of(uint64_t inserted)
{
	uint64_t caught = caught_up();

	return inserted > caught ? inserted - caught : 0;
}

CA_SIGSAFE bool ca_ledger_lag_moves(const struct ca_thread *t)
{
	uint64_t seq = atomic_load_explicit(&ca_rt.session->experiment.seq, memory_order_acquire);

	return seq != t->experiment || (seq & 1 ? t->speedup != 0 : t->settled_seq != seq);
}

CA_SIGSAFE uint64_t ca_ledger_lag_then(const struct ca_thread *t)
{
	return lag_of(t->settled + delay_so_far(t));
}

CA_SIGSAFE uint64_t ca_ledger_lag(struct ca_thread *t, uint64_t now)
{
	ca_ledger_accrue(t, now, t->waiting);
	return ca_ledger_lag_then(t);
}

CA_SIGSAFE uint64_t ca_ledger_virtual(struct ca_thread *t, uint64_t now)
{
	const struct ca_experiment *x = &ca_rt.session->experiment;
	uint64_t start, delay;

	ca_ledger_accrue(t, now, t->waiting);
	start = x->start - (caught_up() - x->caught_up);
	delay = delay_so_far(t);
	return now > start + delay ? now - start - delay : 0;
}

/* ---- paying -----------------------------------------------------------------------*/
static uint64_t spin_until(uint64_t now, uint64_t until, uint64_t *lost)
{
	uint64_t next = now;

	do {
		for (int i = 0; i < 4; i++)
			ca_cpu_pause();
		now = next;
		next = ca_clock_now();
		if (next - now > GAP)
			*lost += next - now;
	} while (next < until);
	return next;
}

/* Time that counts as paid in [from, to): only while we held the CPU. */
static uint64_t held(struct ca_thread *t, uint64_t from, uint64_t to, uint64_t lost)
{
	struct ca_interval off[CA_ACCOUNT_OFFS];
	unsigned n;

	if (!t->switches.page)
		return to - from > lost ? to - from - lost : 0;
	n = ca_switches_off(&t->switches, from, to, off, CA_ACCOUNT_OFFS);
	return to - from - ca_account_union(off, n, NULL, 0);
}

static void settle(struct ca_thread *t, uint64_t began, uint64_t paid, unsigned how)
{
	if (paid) {
		ca_timeline_delay(t, began, paid, how);
		atomic_fetch_add_explicit(&t->slot->paid, paid, memory_order_relaxed);
		if (how == CA_DELAY_SPUN)
			atomic_fetch_add_explicit(&t->slot->spun, paid, memory_order_relaxed);
	}
	atomic_store_explicit(&t->slot->owed, t->owed > 0 ? (uint64_t)t->owed : 0, memory_order_relaxed);
	if (atomic_load_explicit(&t->slot->paying, memory_order_relaxed))
		ca_paying_end(ca_rt.session, t->slot, ca_clock_now());
}

/* ns in which nothing but time was paid, beside what is counted in the session. */
static void paying_more(struct ca_thread *t, uint64_t ns)
{
	atomic_fetch_add_explicit(&t->slot->paying_more, ns, memory_order_relaxed);
}

/* Threads that pay little and often would fight for the word that counts who pays. As a sum over threads
 * their time is at least as long as with overlaps taken out. Returns when it ended. */
static uint64_t pay_slice(struct ca_thread *t, uint64_t now, uint64_t *lost)
{
	uint64_t slice = t->owed < SLICE ? (uint64_t)t->owed : SLICE, next;

	if (slice >= SHORT)
		ca_paying_begin(ca_rt.session, t->slot, now);
	next = spin_until(now, now + slice, lost);
	if (!atomic_load_explicit(&t->slot->paying, memory_order_relaxed))
		paying_more(t, next - now);
	return next;
}

CA_SIGSAFE uint64_t ca_ledger_pay(struct ca_thread *t)
{
	uint64_t now = ca_clock_now(), began = now, paid = 0;
	unsigned in_vain = 0;

	ca_ledger_accrue(t, now, NULL);
	while (t->owed >= LEAST && in_vain < IN_VAIN && !ca_rt_is_in_s(t) && !t->sampled_in &&
	       now - began < LONGEST && atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		uint64_t lost = 0, next = pay_slice(t, now, &lost), got = held(t, now, next, lost);

		/* a child of vfork: it runs, and the thread whose record it uses does not */
		in_vain = got ? 0 : in_vain + 1;
		t->owed -= (int64_t)got;
		t->level.beyond += got;
		paid += got;
		ca_ledger_accrue(t, next, NULL);
		now = next;
		if (ca_rt_conductor_is_gone(now))
			t->owed = 0;
	}
	settle(t, began, paid, CA_DELAY_SPUN);
	return now;
}

CA_SIGSAFE void ca_ledger_stand_still(struct ca_thread *t, uint64_t ns)
{
	uint64_t now = ca_clock_now(), began = now, stood = 0, slice, got;

	ca_paying_begin(ca_rt.session, t->slot, now);
	do {
		uint64_t lost = 0, next;

		slice = ns - stood < STILL ? ns - stood : STILL;
		next = spin_until(now, now + slice, &lost);
		got = held(t, now, next, lost);
		if (got && t->speedup)
			ca_ledger_log(CA_LOG_STILL, t, now, got * CA_MILLION / t->speedup);
		stood += got;
		ca_ledger_accrue(t, next, NULL);
		now = next;
		/* who has lost its CPU stands no longer; nor does anybody once the experiment is over */
	} while (got >= slice && stood < ns && t->speedup && t->experiment & 1);
	t->level.beyond += stood;
	settle(t, began, stood, CA_DELAY_SPUN);
}

CA_SIGSAFE uint64_t ca_ledger_wait_on(struct ca_thread *t)
{
	/* who is in S waits for a feed, and S does not go on */
	const enum ca_wait wait = t->depth ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL;
	uint64_t began = ca_clock_now(), now = began, slept = 0, smaller = began;
	int64_t least = t->owed;

	/* at 100 % S may be waiting for this thread, in a way that we do not see */
	while (t->owed >= LEAST && now - smaller < HOPELESS &&
	       atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		uint64_t lag = ca_ledger_lag_then(t), caught, next;
		struct timespec nap = { 0, t->owed < NAP ? (long)t->owed : NAP };

		t->owed -= (int64_t)ca_catch_up(t, (uint64_t)t->owed, lag);
		if (t->owed < WORTH_A_NAP)
			break;
		caught = caught_up();
		/* to the others it is still in its wait, and by that much they may catch up */
		ca_catch_up_waits(t, lag > (uint64_t)t->owed ? lag - (uint64_t)t->owed : 0);
		ca_paying_begin(ca_rt.session, t->slot, now);
		t->guard--; /* the program's handlers may come in, and leave by longjmp */
		ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
		t->guard++;
		t->sleeps++;
		t->cpu_known_at = 0;
		ca_catch_up_runs(t);
		next = ca_clock_now();
		t->owed -= (int64_t)(next - now + (caught_up() - caught));
		slept += next - now;
		ca_ledger_accrue(t, next, &wait);
		now = next;
		if (t->owed < least - NAP) {
			least = t->owed;
			smaller = now;
		}
		if (ca_rt_conductor_is_gone(now))
			t->owed = 0;
	}
	settle(t, began, slept, CA_DELAY_SLEPT);
	return slept;
}

CA_SIGSAFE void ca_ledger_limited(struct ca_thread *t)
{
	atomic_fetch_add_explicit(&t->slot->limits, 1, memory_order_relaxed);
}

CA_SIGSAFE void ca_ledger_limit(struct ca_thread *t, uint64_t lag, uint64_t length)
{
	uint64_t grown = lag > t->limit ? lag - t->limit : 0;

	if (t->experiment & 1)
		atomic_fetch_add_explicit(&t->slot->limited, grown < length ? grown : length,
					  memory_order_relaxed);
	t->limit = lag;
	ca_ledger_limited(t);
}

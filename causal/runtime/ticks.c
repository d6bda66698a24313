/* SPDX-License-Identifier: MIT */
/* Ticks: which source a thread's come from, how often, and whether it goes without perf's for a while.
 *
 * Contexts: each function by the thread concerned, some of them in its handler. */
#include "causal/runtime/ticks.h"
#include "causal/runtime/account.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/sample.h"
#include "core/log.h"
#include "core/sys.h"
#include "sampler/perf.h"
#include <string.h>
#include <sys/syscall.h>

enum {
	SELDOM = 4,  /* periods between two ticks while none of them tells what is in S ... */
	HARDLY = 32, /* ... by perf's clock, and the thread meets others more than once a period ... */
	STEADY = 16, /* ... by so many ticks, one after the other */
	REDRAW = 16, /* ticks of one period where it is not an experiment's ... */
	PROFILE_REDRAW = 128,  /* ... but a profile's */
	SLEPT_LOOK = 50000000, /* ns between two looks how often a thread went to sleep */
	MOST_FOR_LOG = 25,     /* a part of its time in so many */
	CREATES = 125000,      /* ns for each thread that it has created, below which that is all it does */
	CREATED = 64,          /* ... looked at when it has created so many */
	GROWS = 2,             /* ticks after which a thread is none that is over soon */
	YOUNG_LOOK = 5000000   /* ns between two looks whether a thread without a tick needs one */
};

static _Atomic bool have_ticks; /* of the kind that is wanted: perf has been allowed here */

/* Where samples tell what is in S, or are looked for, every tick counts; elsewhere a tick is there to pay, and a
 * thread that meets others pays then. perf's clock makes each context switch slower, the more
 * so the sooner the next tick is due: 1.9 us of a switch at 4 ms, 0.8 us at 32 ms. */
static uint64_t wanted_period(const struct ca_thread *t, bool meets)
{
	const struct ca_selection *sel = &ca_rt.session->selection;

	if (ca_rt.sampling || (sel->ranges && !sel->exact) ||
	    atomic_load_explicit(&ca_rt.session->wants_stacks, memory_order_relaxed))
		return ca_rt.period;
	return (meets && t->tick.page ? HARDLY : SELDOM) * ca_rt.period;
}

/* A thread's first tick comes after a random part of the period: a thread that lives for a
 * tenth of it is then seen in one of ten cases, and not in none. */
static uint64_t random_part(struct ca_thread *t, uint64_t period)
{
	uint64_t least = period / 64;

	return least + ca_rng_below(&t->rng, period - least);
}

/* A program with a period of its own must not keep step with ours, neither where samples tell what is
 * in S nor where they tell what to try. */
static uint64_t jittered(struct ca_thread *t, uint64_t period)
{
	return period - period / 4 + ca_rng_below(&t->rng, period / 2);
}

/* Within an experiment in which samples tell what is in S, regular ticks cover a program with a period
 * better than random ones, and one in which they do not is an outlier among the others: drawn for each.
 * Else samples are added up over the run, and a draw now and then does. With perf it costs 100 us, as all that the
 * kernel does for it is in no cache by then: in a profile, where all ticks are of the shortest period, 0.7 % of the
 * program if it comes after 16 ticks. After 128 the errors are as large (doc/SAMPLING.md). A timer can only choose
 * among the kernel's ticks, for 2 us: each time. */
static bool is_stale(const struct ca_thread *t, uint64_t period)
{
	bool timer = t->tick.backend == CA_BACKEND_TIMER;

	/* each time the kernel ticks: there is nothing to draw */
	if (timer && period <= ca_tick_of_kernel() && t->tick_period <= ca_tick_of_kernel())
		return false;
	if (period != t->tick_period || ca_tick_is_coarse(&t->tick))
		return period != t->tick_period;
	if (period == ca_rt.period && ca_ledger_open())
		return t->tick_experiment != t->experiment;
	return timer || (t->ticks + 1) % (ca_rt.sampling ? PROFILE_REDRAW : REDRAW) == 0;
}

/* Periods that a sample stands for. Timers tick when the kernel does, and not in between. */
static uint64_t weight_of(struct ca_thread *t, uint64_t period)
{
	uint64_t least = t->tick.backend == CA_BACKEND_TIMER ? ca_tick_of_kernel() : 0;
	uint64_t length = period > least ? period : least;

	/* at random, where it is no whole number */
	return (length + ca_rng_below(&t->rng, ca_rt.period)) / ca_rt.period;
}

/* For the record of the run. */
CA_SIGSAFE static void note_backend(const struct ca_thread *t)
{
	if (t->tick.backend != CA_BACKEND_AUTO)
		atomic_fetch_or_explicit(&ca_rt.session->backends, 1u << t->tick.backend,
					 memory_order_relaxed);
}

/* Ticks and, with perf's, the switch log. */
static void start_sources(struct ca_thread *t, uint64_t first, uint64_t period)
{
	static _Atomic bool told;
	enum ca_backend wanted = (enum ca_backend)ca_rt.session->backend;
	enum ca_status status;

	t->tick.counter = ca_rt.sampling ? ca_rt.session->samplers.counter : NULL;
	t->tick.counters = ca_rt.sampling ? ca_rt.session->samplers.counters : 0;
	memset(t->tick.base, 0, sizeof t->tick.base);
	status = ca_tick_start(&t->tick, wanted, first, period, CA_SIGNAL);

	/* later on it is no lack of permission but of memory or descriptors */
	if (status != CA_OK && wanted == CA_BACKEND_PERF && have_ticks)
		status = ca_tick_start(&t->tick, CA_BACKEND_TIMER, first, period, CA_SIGNAL);
	if (status == CA_OK)
		have_ticks = true;
	else if (wanted == CA_BACKEND_PERF && !have_ticks)
		ca_rt_off("perf_event_open is not allowed here; use -b auto or -b timer");
	else if (!atomic_exchange(&told, true))
		ca_log(CA_LOG_ERROR,
		       "thread %d and perhaps others get no ticks (%s): they are not "
		       "sampled",
		       (int)t->tid, ca_status_name(status));
	if (t->tick.backend == CA_BACKEND_PERF)
		ca_switches_open(&t->switches);
	for (unsigned i = 0; i < t->tick.counters; i++)
		if (!t->tick.lead || !t->tick.place[i])
			ca_sample_drop(t, CA_DROP_NO_EVENT);
	t->young = 0;
	t->tick_period = t->tick_length = first; /* where that is not the period, the first tick sets it */
	t->tick_weight = weight_of(t, period);
	t->tick_drawn = false;
	note_backend(t);
	ca_log(CA_LOG_DEBUG, "thread %d: ticks from %s", (int)t->tid,
	       t->tick.backend == CA_BACKEND_PERF    ? "perf"
	       : t->tick.backend == CA_BACKEND_TIMER ? "a timer"
						     : "nowhere");
}

/* Most threads of a program that has many are short, and perf's events with their pages cost more than to
 * create a thread. So each begins with a timer that has run out when the kernel looks for the first time: a
 * thread that lives for a tenth of the kernel's tick is then seen in one of ten cases, and stands for a whole
 * one. What it is seen with starts the sources. */
static bool begin_young(struct ca_thread *t, uint64_t now)
{
	uint64_t tick = ca_tick_of_kernel();

	if (ca_tick_start(&t->tick, CA_BACKEND_TIMER, CA_TICK_NEXT, tick, CA_SIGNAL) != CA_OK)
		return false;
	t->young = now + YOUNG_LOOK;
	t->tick_period = t->tick_length = tick;
	t->tick_weight = weight_of(t, tick);
	return true;
}

static void grow_up(struct ca_thread *t, uint64_t first, uint64_t period)
{
	ca_tick_stop(&t->tick);
	start_sources(t, first, period);
	t->tick_experiment = t->experiment;
}

/* perf's events make each wait 3 us longer. Who does nothing but create threads, and wait for them, has what these
 * have. */
static bool only_creates(const struct ca_thread *t, uint64_t now)
{
	return t->creates * (uint64_t)CREATES > now - t->creates_from;
}

/* More than a 25th of its time, as far as its switches are what is dear; half of that, if it goes without their log. */
CA_SIGSAFE static bool is_dear(const struct ca_thread *t, uint64_t switches, uint64_t now)
{
	return switches * ca_rt.session->switch_cost * MOST_FOR_LOG > (now - t->slept_at) / (t->hops ? 2 : 1);
}

/* Looks, at a tick, how often the thread has gone to sleep: where to log that is dear, it goes without the log. Who spins,
 * and yields, keeps it: it tells waits from work there. Asks the kernel only where the log says that it may be so. */
CA_SIGSAFE static void look_at_switches(struct ca_thread *t, uint64_t now)
{
	uint64_t off = ca_switches_count(&t->switches), more = off - t->was_off;
	bool known = t->slept_known, maybe = !t->switches.page || is_dear(t, more, now);
	struct rusage used = { 0 };

	if (!ca_rt.session->switch_cost || now - t->slept_at < SLEPT_LOOK)
		return;
	t->slept_known = maybe && ca_sys_usage(&used);
	t->hops = known && t->slept_known && is_dear(t, (uint64_t)used.ru_nvcsw - t->slept, now);
	t->slept = (uint64_t)used.ru_nvcsw;
	t->slept_at = now;
	t->was_off = off;
}

/* Nor has it perf's events. */
static bool goes_without(const struct ca_thread *t, uint64_t now)
{
	return t->hops || only_creates(t, now);
}

/* The other way round: from here on CPU clocks tell when it was off. */
static void grow_young(struct ca_thread *t, uint64_t now)
{
	struct ca_switches log = { __atomic_exchange_n(&t->switches.page, NULL, __ATOMIC_SEQ_CST) };
	uint64_t period = wanted_period(t, true);

	ca_account_wait_for_readers(t);
	if (atomic_load_explicit(&t->readers, memory_order_seq_cst)) {
		__atomic_store_n(&t->switches.page, log.page, __ATOMIC_RELEASE);
		return;
	}
	ca_switches_close(&log);
	ca_tick_stop(&t->tick);
	t->last_cpu = t->entered_cpu = t->fine_cpu = t->hit_cpu = ca_clock_thread_cpu();
	if (!begin_young(t, now))
		start_sources(t, period, period);
}

void ca_ticks_creates(void)
{
	struct ca_thread *t = ca_self;
	uint64_t now;

	if (!t || t->guard || ++t->creates % CREATED)
		return;
	now = ca_clock_now();
	if (!only_creates(t, now)) {
		t->creates = 0;
		t->creates_from = now;
	} else if (!t->young && t->tick.backend == CA_BACKEND_PERF && !ca_rt_is_in_s(t) &&
		   wanted_period(t, true) != ca_rt.period) {
		t->guard++;
		ca_ledger_accrue(t, now, NULL);
		grow_young(t, now);
		t->guard--;
	}
}

/* A profile should know of all threads, and one that waits most of the time is hardly ever met by the kernel's tick.
 * What perf's events cost is 1 % of a period, so that it is worth it for who has lived as long. By timers nothing
 * would be won. */
static bool is_worth_perf(const struct ca_thread *t, uint64_t now)
{
	return ca_rt.sampling && ca_rt.session->backend != CA_BACKEND_TIMER && ca_perf_has_room() &&
	       now >= t->young - YOUNG_LOOK + ca_rt.period;
}

void ca_ticks_look_at_young(struct ca_thread *t, uint64_t now)
{
	bool perf = t->young && is_worth_perf(t, now);
	uint64_t period = wanted_period(t, false);

	if (!t->young || (now < t->young && !perf) || ca_rt_is_in_s(t))
		return;
	t->young = now + YOUNG_LOOK;
	if (!perf && (ca_clock_thread_cpu() - t->hit_cpu < ca_rt.period || goes_without(t, now)))
		return;
	ca_ledger_accrue(t, now, NULL); /* without a switch log, up to here */
	grow_up(t, perf ? random_part(t, period) : jittered(t, period), period);
	if (!perf)
		t->tick_period = period;
}

/* More than once a period, and for so long that it is no phase of what it does: else, where data is read for a moment
 * and then worked on, the rare tick always comes in what is done 32 ms later. The only thread of the run meets nobody:
 * what it waits for, or might have waited for, is files, and its samples are what tells of its phases
 * (doc/ESTIMATE.md). It is asked for what is dear, its switches. */
CA_SIGSAFE static bool meets_others(struct ca_thread *t)
{
	uint64_t switches = ca_switches_count(&t->switches), n = switches - t->switches_seen;

	t->switches_seen = switches;
	if (atomic_load_explicit(&ca_rt.session->threads, memory_order_relaxed) != 1)
		n = t->meets;
	if (n * ca_rt.period <= t->tick_period)
		t->steadily = 0;
	else if (t->steadily < STEADY)
		t->steadily++;
	return t->steadily == STEADY;
}

/* perf's are exact, and dear: elsewhere than where samples tell what is in S the kernel's do. */
CA_SIGSAFE static void restart(struct ca_thread *t, enum ca_backend backend, uint64_t first, uint64_t period)
{
	if (backend == CA_BACKEND_PERF && period != ca_rt.period &&
	    ca_tick_start_coarse(&t->tick, SELDOM * ca_rt.period, CA_SIGNAL))
		t->tick_length = t->tick_period = SELDOM * ca_rt.period;
	/* perf has one number for both */
	else if (backend == CA_BACKEND_TIMER ||
		 ca_tick_start(&t->tick, backend, first, first, CA_SIGNAL) != CA_OK)
		ca_tick_start(&t->tick, CA_BACKEND_TIMER, first, period, CA_SIGNAL);
}

CA_SIGSAFE void ca_ticks_adjust(struct ca_thread *t)
{
	bool meets = meets_others(t);
	uint64_t period = wanted_period(t, meets), now = ca_clock_now();
	enum ca_backend backend = t->tick.backend;
	bool young;

	look_at_switches(t, now);
	young = period != ca_rt.period && goes_without(t, now);
	t->meets = t->creates = 0;
	t->creates_from = now;
	if (t->young) {
		if (young || (t->ticks < GROWS && !ca_rt.sampling))
			return;
		period = wanted_period(t, false);
		grow_up(t, jittered(t, period), period);
		t->tick_period = period;
		t->tick_drawn = true;
		return;
	}
	if (young && t->hops && backend == CA_BACKEND_PERF && !t->waiting && !ca_rt_is_in_s(t)) {
		grow_young(t, now);
		return;
	}
	if (backend == CA_BACKEND_AUTO || !is_stale(t, period))
		return;
	t->tick_experiment = t->experiment;
	ca_tick_stop(&t->tick);
	t->tick_length = now = jittered(t, period);
	t->tick_period = period;
	restart(t, backend, now, period);
	t->tick_weight = weight_of(t, period);
	t->tick_drawn = true;
	note_backend(t);
}

void ca_ticks_begin(struct ca_thread *t, uint64_t now)
{
	uint64_t period = wanted_period(t, false);

	t->switches.page = NULL;
	t->creates = 0;
	t->creates_from = now;
	t->slept_at = now;
	t->slept_known = t->hops = false;
	t->was_off = 0;
	if ((uint32_t)t->tid == ca_rt.pid || !begin_young(t, now))
		start_sources(t, random_part(t, period), period);
}

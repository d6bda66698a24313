/* SPDX-License-Identifier: MIT */
/* Threads: their records, their slots in the session, how they come and go.
 *
 * Records come from a static pool that is mapped in chunks and never unmapped, so that
 * another thread may always look at one. Ordinary context of the thread concerned. */
#include "causal/runtime/thread.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/history.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/points.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/samplers.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/wait.h"
#include "core/log.h"
#include "core/paying.h"
#include "core/sys.h"
#include "sampler/perf.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The calling thread's place in life, for those that have no record. */
static __thread enum { UNKNOWN, BEGINS, KNOWN, OVER } past __attribute__((tls_model("initial-exec")));
static __thread bool is_out __attribute__((tls_model("initial-exec"))); /* counted in threads_out */
static __thread uint32_t creator __attribute__((tls_model("initial-exec"))) = UINT32_MAX; /* its slot */
static __thread unsigned late_tries __attribute__((tls_model("initial-exec")));

enum {
	RETRY = 64,      /* meetings between two tries to find a slot */
	FRAMES = 512,    /* bytes of stack between a wrapper's frame and a handler on top of it, at least */
	AT_ONCE = 16,    /* slots made ready, where the conductor has not */
	MORE_SLOTS = 20, /* looks for slots that only the conductor can make ready ... */
	NAP = 500000,    /* ... and ns between them */
	LAST_TICKS = 2000000, /* ns in which a handler that has begun ends, if it has a CPU ... */
	LAST_NAPS = 50,       /* ... so many times that at most, if not */
	SELDOM = 4,           /* periods between two ticks while none of them tells what is in S ... */
	HARDLY = 32, /* ... by perf's clock, and the thread meets others more than once a period ... */
	STEADY = 16, /* ... by so many ticks, one after the other */
	REDRAW = 16, /* ticks of one period where it is not an experiment's ... */
	PROFILE_REDRAW = 128,  /* ... but a profile's */
	SLEPT_LOOK = 50000000, /* ns between two looks how often a thread went to sleep */
	MOST_FOR_LOG = 25,     /* a part of its time in so many */
	CREATES = 125000,      /* ns for each thread that it has created, below which that is all it does */
	CREATED = 64,          /* ... looked at when it has created so many */
	YOUNG_LOOK = 5000000   /* ns between two looks whether a thread without a tick needs one */
};
enum { CHUNK = 16, CHUNKS = CA_MAX_THREADS / CHUNK, EXIT_SPINS = 10000 };

/* Record i belongs to slot i for as long as the process lives. */
static _Atomic(struct ca_thread *) chunks[CHUNKS];
static pthread_key_t exit_key;
static bool have_exit_key;
static _Atomic bool have_ticks; /* of the kind that is wanted: perf has been allowed here */

static struct ca_thread *record(uint32_t number)
{
	struct ca_thread *chunk = atomic_load_explicit(&chunks[number / CHUNK], memory_order_acquire);

	if (!chunk) {
		struct ca_thread *none = NULL;
		size_t size = CHUNK * sizeof *chunk;
		/* not libc's: one that another library has put in its place may take a lock, and come
		 * back here */
		long at = ca_sys_map(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

		if (at < 0)
			return NULL;
		chunk = (struct ca_thread *)at;
		if (!atomic_compare_exchange_strong(&chunks[number / CHUNK], &none, chunk)) {
			ca_sys_unmap(chunk, size);
			chunk = none;
		}
	}
	return &chunk[number % CHUNK];
}

/* One that is free, from where one was last found or given back: with a thousand threads there are a
 * thousand lines of memory to be looked at otherwise. */
static struct ca_slot *claim_slot(struct ca_session *s, uint32_t *number)
{
	uint32_t ready = atomic_load_explicit(&s->slots_ready, memory_order_acquire);
	uint32_t n = ready < ca_rt.slots ? ready : ca_rt.slots;
	uint32_t from = atomic_load_explicit(&s->slot_hint, memory_order_relaxed);

	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = from < n ? (from + k) % n : k;
		struct ca_slot *slot = &s->slot[i];
		uint32_t expected = CA_SLOT_FREE;

		if (atomic_load_explicit(&slot->state, memory_order_relaxed) != CA_SLOT_FREE ||
		    !atomic_compare_exchange_strong(&slot->state, &expected, CA_SLOT_CLAIMED))
			continue;
		ca_session_use_row(&s->slots_used, i);
		/* a lower one that was given back meanwhile stays the hint, or numbers would only grow */
		atomic_compare_exchange_strong_explicit(&s->slot_hint, &from, i + 1, memory_order_relaxed,
							memory_order_relaxed);
		*number = i;
		return slot;
	}
	return NULL;
}

/* A burst of threads, or a conductor without a CPU. Where memory is short, that fails; a store would be the
 * program's death. */
static long more_slots(struct ca_session *s)
{
	uint32_t ready = atomic_load_explicit(&s->slots_ready, memory_order_acquire), mapped = ca_rt.slots;
	uint32_t n = ready + AT_ONCE < mapped ? ready + AT_ONCE : mapped;
	long r = 0;

	if (ready >= n)
		return -ENOSPC;
	for (; ready < n && !r; ready++) {
		r = ca_sys(SYS_madvise, (long)(intptr_t)&s->slot[ready], offsetof(struct ca_slot, ring),
			   CA_SYS_POPULATE_WRITE, 0, 0, 0);
		if (!r)
			ca_session_use_row(&s->slots_ready, ready);
	}
	return r;
}

static struct ca_slot *find_slot(struct ca_session *s, bool first, uint32_t *number)
{
	struct ca_slot *slot = claim_slot(s, number);
	struct timespec nap = { 0, NAP };
	long r = 0;

	while (!slot && r == 0) {
		r = more_slots(s);
		slot = claim_slot(s, number);
	}
	/* Linux before 5.14 */
	for (int i = 0; i < MORE_SLOTS && !slot && first && r == -EINVAL; i++) {
		ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
		slot = claim_slot(s, number);
	}
	return slot;
}

static void free_slot(const struct ca_thread *t)
{
	_Atomic uint32_t *hint = &ca_rt.session->slot_hint;
	uint32_t now;

	ca_slot_set_remove(&ca_rt.session->in_s, t->number);
	ca_slot_set_remove(&ca_rt.session->timed, t->number);
	ca_session_free_slot(ca_rt.session, t->number);
	now = atomic_load_explicit(hint, memory_order_relaxed);
	while (t->number < now && !atomic_compare_exchange_weak_explicit(
					  hint, &now, t->number, memory_order_relaxed, memory_order_relaxed))
		;
}

static void thread_exits(void *unused)
{
	(void)unused;
	ca_thread_end();
	if (is_out && ca_rt.session)
		atomic_fetch_sub(&ca_rt.session->threads_out, 1);
	is_out = false;
}

/* Let us know when the calling thread ends. */
static void note_exit(void)
{
	if (!have_exit_key)
		have_exit_key = pthread_key_create(&exit_key, thread_exits) == 0;
	if (have_exit_key)
		pthread_setspecific(exit_key, &exit_key);
}

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
	t->slept_known =
		maybe && ca_sys(SYS_getrusage, RUSAGE_THREAD, (long)(intptr_t)&used, 0, 0, 0, 0) >= 0;
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

static void wait_for_readers(struct ca_thread *t)
{
	/* seq_cst: pairs with account.c, where a reader counts itself and then looks at by_slot and the log */
	for (int i = 0; i < EXIT_SPINS && atomic_load_explicit(&t->readers, memory_order_seq_cst); i++)
		if (i > 100)
			ca_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

/* The other way round: from here on CPU clocks tell when it was off. */
static void grow_young(struct ca_thread *t, uint64_t now)
{
	struct ca_switches log = { __atomic_exchange_n(&t->switches.page, NULL, __ATOMIC_SEQ_CST) };
	uint64_t period = wanted_period(t, true);

	wait_for_readers(t);
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

void ca_thread_creates(void)
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

void ca_thread_look_at_young(struct ca_thread *t, uint64_t now)
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

CA_SIGSAFE void ca_thread_adjust_ticks(struct ca_thread *t)
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
		if (young)
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

/* It runs on, not known to others, until it finds room or ends. */
static void miss(struct ca_session *s)
{
	is_out = true;
	atomic_fetch_add(&s->threads_missed, 1);
	atomic_fetch_add(&s->threads_out, 1);
	note_exit();
}

static void begin(bool first)
{
	struct ca_session *s = ca_rt.session;
	struct ca_thread *t;
	struct ca_slot *slot;
	uint32_t number;
	uint64_t now;

	slot = find_slot(s, first, &number);
	t = slot ? record(number) : NULL;
	if (!t) {
		if (slot)
			atomic_store(&slot->state, CA_SLOT_FREE);
		if (first)
			miss(s);
		return;
	}
	if (is_out) { /* there is room now */
		is_out = false;
		atomic_fetch_sub(&s->threads_out, 1);
	}
	memset(t, 0, offsetof(struct ca_thread, readers));
	t->number = number;
	t->slot = slot;
	t->tid = ca_sys_gettid();
	slot->tid = (uint32_t)t->tid;
	slot->pid = ca_rt.pid;
	slot->process = ca_rt.process;
	t->tick = (struct ca_tick){ .backend = CA_BACKEND_AUTO };
	atomic_store(&slot->wait_since, 0);
	atomic_store(&slot->in_s, 0);
	atomic_store(&slot->owed, 0);
	atomic_store(&slot->paid, 0);
	atomic_store(&slot->last_look, 0);
	ca_history_select(t, 0);
	atomic_store(&slot->experiment, 0);
	t->fine = &s->fine[number];
	t->guard = 1;
	t->stack.map_low = t->stack.map_high = t->stack.own_low = t->stack.own_high = 0;
	/* what was inherited: a thread that blocks these is not sampled, and dies of a trap */
	ca_signals_inherit(ca_signals_wanted() |
			   ca_sys_sigmask(SIG_UNBLOCK, CA_SYS_SIGNAL(CA_SIGNAL) |
							       (ca_rt.patching ? CA_SYS_SIGNAL(SIGTRAP) |
											 CA_SYS_SIGNAL(SIGILL)
									       : 0)));
	/* of one that its creator has announced it is next to nothing, and to read it costs 0.7 us */
	t->last_cpu = t->hit_cpu = creator == UINT32_MAX ? ca_clock_thread_cpu() : 0;
	now = ca_clock_now();
	ca_rng_init(&t->rng, now ^ (uint64_t)t->tid << 32);
	t->switches.page = NULL;
	t->creates = 0;
	t->creates_from = now;
	t->slept_at = now;
	t->slept_known = t->hops = false;
	t->was_off = 0;
	if ((uint32_t)t->tid == ca_rt.pid || !begin_young(t, now)) {
		uint64_t period = wanted_period(t, false);

		start_sources(t, random_part(t, period), period);
	}
	/* release: pairs with the acquire in ledger.c and in the conductor */
	atomic_fetch_add_explicit(&s->threads, 1, memory_order_relaxed);
	atomic_store_explicit(&slot->state, CA_SLOT_LIVE, memory_order_release);
	atomic_store_explicit(&ca_rt.by_slot[number], t, memory_order_release);
	/* count[] is only ever added to by this thread; atomics are for the reader's sake */
	_Static_assert(offsetof(struct ca_slot, hot) ==
			       offsetof(struct ca_slot, count) + CA_PATCH_HOT * sizeof(uint64_t),
		       "what VISIT looks at");
	ca_patch_counters = (uint64_t *)(void *)slot->count;
	ca_points_collect();
	note_exit();
	t->state = CA_THREAD_LIVE;
	ca_self = t;
	ca_timeline_begin(t);
	ca_samplers_begin(t, now);
	ca_ledger_join(t, creator);
	ca_fine_join(t);
	t->guard = 0;
}

void ca_thread_begin(void)
{
	bool first = past == UNKNOWN;
	int saved = errno;

	/* what begins calls names of libc that others may have replaced: no way back into here */
	if (!ca_rt.session || ca_self || past == OVER || past == BEGINS ||
	    !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	past = BEGINS;
	begin(first);
	past = KNOWN;
	errno = saved;
}

void ca_thread_begin_by(uint32_t slot)
{
	creator = slot;
	ca_thread_begin();
	creator = UINT32_MAX;
}

void ca_thread_end(void)
{
	struct ca_thread *t = ca_self;
	int saved = errno;

	if (!t)
		return;
	ca_thread_leave_alone(false);
	t->guard++;
	ca_lumps_end(t); /* whoever joins us must not get our debt as a gift */
	t->guard--;
	ca_wait_meet();
	t->guard++;
	t->state = CA_THREAD_EXITING;
	ca_tick_stop(&t->tick);
	ca_samplers_stop(t);
	if (ca_rt_is_in_s(t))
		ca_activation_left(t);
	ca_activation_wait_left(t, ca_clock_now());
	ca_wait_left_open(t, ca_clock_now());
	ca_timeline_end(t);
	past = OVER; /* destructors that run after ours do not bring it back */
	ca_self = NULL;
	ca_patch_counters = ca_patch_nobody;
	ca_patch_fine = &ca_patch_fine_nobody;
	atomic_store_explicit(&ca_rt.by_slot[t->number], NULL, memory_order_seq_cst);
	wait_for_readers(t);
	/* off: system calls may be forbidden by now */
	if (!atomic_load(&t->readers) && atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		ca_switches_close(&t->switches);
	atomic_store(&t->slot->in_s, 0);
	ca_paying_end(ca_rt.session, t->slot, ca_clock_now()); /* it may have left a payment by longjmp */
	t->state = CA_THREAD_NONE;
	free_slot(t);
	errno = saved;
}

void ca_thread_forget(void)
{
	uint32_t used = ca_rt_slots_used();

	ca_perf_forget();
	ca_sys_forget();
	for (uint32_t i = 0; i < used; i++)
		atomic_store_explicit(&ca_rt.by_slot[i], NULL, memory_order_relaxed);
	for (uint32_t i = 0; i < (used + CHUNK - 1) / CHUNK; i++) {
		struct ca_thread *chunk = atomic_load_explicit(&chunks[i], memory_order_relaxed);

		/* perf mappings are not copied by fork, POSIX timers neither: nothing to close */
		for (unsigned k = 0; chunk && k < CHUNK; k++) {
			chunk[k].switches.page = NULL;
			chunk[k].tick.backend = CA_BACKEND_AUTO;
			chunk[k].overflow.backend = CA_BACKEND_AUTO;
			chunk[k].overflow.page = NULL;
			atomic_store_explicit(&chunk[k].readers, 0, memory_order_relaxed);
		}
	}
	is_out = false;
	ca_self = NULL;
	ca_patch_counters = ca_patch_nobody;
	ca_patch_fine = &ca_patch_fine_nobody;
}

struct ca_thread *ca_thread_late(void)
{
	if (past == OVER || (past == KNOWN && ++late_tries % RETRY))
		return NULL;
	ca_thread_begin();
	return ca_self;
}

/* ---- around what the kernel does to signals ---------------------------------------------*/
void ca_thread_pause(void)
{
	struct ca_thread *t = ca_self;

	/* a child of vfork uses its parent's record, and has no ticks of its own */
	if (!t || t->guard || (uint32_t)ca_sys_getpid() != ca_rt.pid)
		return;
	ca_wait_meet();
	ca_timeline_executes();
	t->guard++;
	ca_tick_stop(&t->tick);
	ca_samplers_stop(t);
	if (ca_rt_is_in_s(t))
		ca_activation_left(t);
	ca_wait_left_open(t, ca_clock_now());
	ca_timeline_end(t); /* if exec succeeds, there is nobody left to say it */
	t->guard--;
}

void ca_thread_resume(void)
{
	struct ca_thread *t = ca_self;
	int saved = errno;

	if (t && !t->guard && (uint32_t)ca_sys_getpid() == ca_rt.pid && t->tick.backend == CA_BACKEND_AUTO &&
	    atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		ca_tick_start(&t->tick, (enum ca_backend)ca_rt.session->backend, ca_rt.period, ca_rt.period,
			      CA_SIGNAL);
		if (!t->trace.trace)
			ca_timeline_begin(t);
		ca_samplers_begin(t, ca_clock_now());
	}
	errno = saved;
}

void ca_thread_leave_alone(bool alone)
{
	struct ca_thread *t = ca_self;

	if (!t || t->alone == alone)
		return;
	t->guard++;
	if (alone && ca_rt_is_in_s(t))
		ca_activation_left(t);
	t->alone = alone;
	t->guard += alone ? 0 : -2;
}

void ca_thread_unhold(struct ca_thread *t)
{
	if ((uintptr_t)__builtin_frame_address(0) + FRAMES < t->held_sp)
		return; /* a handler of the program's, called in the midst of it */
	t->held_sp = 0;
	ca_sys_sigmask(SIG_UNBLOCK, CA_SYS_SIGNAL(CA_SIGNAL) & ~ca_signals_kept());
	if (ca_signals_reopen())
		ca_thread_resume();
}

/* Who waits for our signal by a signalfd, as PostgreSQL does, and takes it for blocked, has no call ended by it, whoever
 * sends it. */
bool ca_thread_hold(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);
	struct ca_thread *t = ca_self;

	if (!t || !((t->tick.backend == CA_BACKEND_TIMER && ca_tick_ends_calls()) || ca_signals_awaited()))
		return false;
	/* an outer call holds it already, unless a longjmp has left that one */
	if (t->held_sp && here + FRAMES < t->held_sp)
		return false;
	t->held_sp = here;
	ca_sys_sigmask(SIG_BLOCK, CA_SYS_SIGNAL(CA_SIGNAL));
	return true;
}

void ca_thread_release(bool held)
{
	struct ca_thread *t = ca_self;

	if (!held)
		return;
	if (t)
		t->held_sp = 0;
	ca_sys_sigmask(SIG_UNBLOCK, CA_SYS_SIGNAL(CA_SIGNAL) & ~ca_signals_kept());
}

/* Is another thread in our code? One that was preempted there can be so for long. */
static bool anybody_inside(uint32_t used)
{
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		struct ca_thread *t = atomic_load_explicit(&ca_rt.by_slot[i], memory_order_acquire);

		if (t && t != ca_self && __atomic_load_n(&t->guard, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void ca_thread_wind_down_all(void)
{
	uint32_t used = ca_rt_slots_used();
	struct timespec nap = { 0, LAST_TICKS };
	unsigned naps;

	/* twice: one that was in its handler may have started its ticks anew */
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
			struct ca_thread *t = atomic_load_explicit(&ca_rt.by_slot[i], memory_order_acquire);

			if (t)
				ca_thread_wind_down(t);
		}
		naps = 0;
		do
			ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
		while (++naps < LAST_NAPS && anybody_inside(used));
	}
}

CA_SIGSAFE void ca_thread_wind_down(struct ca_thread *t)
{
	static _Atomic bool clean;

	ca_tick_stop(&t->tick);
	ca_samplers_stop(t);
	if (ca_rt.patching && !atomic_load(&clean) && ca_patch_remove_all())
		atomic_store(&clean, true);
}

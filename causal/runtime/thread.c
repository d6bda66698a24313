/* SPDX-License-Identifier: MIT */
/* Threads: their records, their slots in the session, how they come and go.
 *
 * Records come from a static pool that is mapped in chunks and never unmapped, so that
 * another thread may always look at one. Ordinary context of the thread concerned. */
#include "causal/runtime/thread.h"
#include "causal/runtime/account.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/history.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/patch.h"
#include "causal/runtime/points.h"
#include "causal/runtime/samplers.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/ticks.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/wait.h"
#include "core/paying.h"
#include "core/sys.h"
#include "sampler/perf.h"
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
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
	LAST_NAPS = 50        /* ... so many times that at most, if not */
};
enum { CHUNK = 16, CHUNKS = CA_MAX_THREADS / CHUNK };

/* Record i belongs to slot i for as long as the process lives. */
static _Atomic(struct ca_thread *) chunks[CHUNKS];
static pthread_key_t exit_key;
static bool have_exit_key;

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
	t->hit_spun = atomic_load_explicit(&slot->spun, memory_order_relaxed);
	now = ca_clock_now();
	ca_rng_init(&t->rng, now ^ (uint64_t)t->tid << 32);
	ca_ticks_begin(t, now);
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

void ca_thread_begin_by(uint32_t slot, uintptr_t routine)
{
	creator = slot;
	ca_thread_begin();
	creator = UINT32_MAX;
	if (ca_self)
		ca_self->routine = routine;
}

void ca_thread_end(void)
{
	struct ca_thread *t = ca_self;
	int saved = errno;
	uintptr_t place;

	if (!t)
		return;
	ca_thread_leave_alone(false);
	t->guard++;
	place = ca_lumps_last(t, ca_clock_now()); /* whoever joins us must not get our debt as a gift */
	t->guard--;
	ca_wait_meet_from(NULL, place);
	t->guard++;
	ca_lumps_leave(t);
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
	ca_account_wait_for_readers(t);
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

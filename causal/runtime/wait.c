/* SPDX-License-Identifier: MIT */
/* Meetings and waits, as the wrappers see them. Ordinary context (and the hook of spin
 * loops, which uses general registers only). */
#include "causal/runtime/wait.h"
#include "causal/runtime/activation.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/feed.h"
#include "causal/runtime/fine.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/level.h"
#include "causal/runtime/lumps.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/probe.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/thread.h"
#include "causal/runtime/ticks.h"
#include "causal/runtime/timers.h"
#include "causal/runtime/wait_parts.h"
#include "core/cpu.h"
#include "core/sys.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/syscall.h>

enum {
	JUST_NOW = 4000,      /* cycles; the last look was so recent that little can be owed */
	WORTH_A_WALK = 20000, /* ns owed that are worth looking whether we are in S (sampled) */
	SHORT_WAIT = 20000,   /* ns; a wait that is not worth a sample */
	PREEMPTED = 50000,    /* ns; a call in which others were chosen to run takes longer */
	NO_ROOM = 50000       /* ns; a write that takes longer has waited for room */
};

/* sp: of whoever meets others, or below. */
static struct ca_thread *enter_known(struct ca_thread *t, uintptr_t sp)
{
	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return NULL;
	if (__builtin_expect(t->held_sp != 0, 0))
		ca_thread_unhold(t);
	t->guard++;
	t->meets++;
	t->looks_from = 0;
	if (ca_rt_is_in_s(t))
		ca_activation_check(t, sp);
	return t;
}

/* Where S is sampled it is not known whether this is in it, and a little debt is not worth a look. Returns the time. */
static uint64_t pay_sampled(struct ca_thread *t, uintptr_t site)
{
	uint64_t now = ca_clock_now();
	unsigned outermost, part;

	atomic_fetch_add_explicit(&t->slot->met, 1, memory_order_relaxed);
	ca_ledger_accrue(t, now, NULL);
	ca_lumps_meet(t, now, site);
	if (t->owed >= WORTH_A_WALK) {
		ca_sample_stack_here(t);
		t->sampled_in = ca_sample_in_selection(&t->stack, &outermost, &part);
		ca_ledger_pay(t);
		ca_lumps_paid(t, site);
	}
	now = ca_clock_now();
	atomic_store_explicit(&t->slot->last_met, now, memory_order_relaxed);
	return now;
}

/* site: where, in the program; 0: nowhere in particular. Returns the time. */
static uint64_t pay(struct ca_thread *t, uintptr_t site)
{
	uint64_t now;

	t->paying_sp = (uintptr_t)__builtin_frame_address(0);
	now = ca_rt.session->selection.exact ? ca_ledger_pay(t) : pay_sampled(t, site);
	now = ca_level_make_up(t, now);
	t->paying_sp = 0;
	t->last_look = ca_cpu_cycles();
	return now;
}

static bool worth_it(const struct ca_thread *t)
{
	return !ca_rt_is_in_s(t) && (ca_ledger_open() || t->owed > 0) &&
	       ca_cpu_cycles() - t->last_look > JUST_NOW;
}

static struct ca_thread *enter(uintptr_t sp)
{
	if (__builtin_expect(!ca_self, 0) && atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return enter_known(ca_thread_late(), sp);
	return enter_known(ca_self, sp);
}

#define HERE ((uintptr_t)__builtin_frame_address(0))

/* object: whoever waits there may be woken now; NULL: nobody. */
static void meet(struct ca_thread *t, const void *object, uintptr_t site)
{
	int saved;

	if (!t)
		return;
	if (worth_it(t)) {
		saved = errno;
		pay(t, site);
		errno = saved;
	}
	ca_sample_wake(t, object);
	t->guard--;
}

void ca_wait_meet_from(const void *object, uintptr_t site)
{
	meet(enter(HERE), object, site);
}

void ca_wait_wake_from(const void *word, uintptr_t site)
{
	struct ca_thread *t = enter(HERE);
	int saved = errno;
	uint64_t now;

	if (!t)
		return;
	if (worth_it(t))
		pay(t, site);
	ca_sample_wake(t, word);
	now = ca_clock_now();
	ca_peers_wake(word, now, ca_ledger_open() ? ca_ledger_lag(t, now) : ca_session_lag(ca_rt.session));
	t->guard--;
	errno = saved;
}

void ca_wait_pay(void)
{
	struct ca_thread *t = ca_self;
	uint64_t from;

	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	from = ca_cpu_cycles();
	if (worth_it(t) && enter_known(t, HERE)) {
		t->meets--;
		meet(t, NULL, 0);
	}
	t->looks_from = from;
}

uint64_t ca_wait_blind_since(void)
{
	const struct ca_thread *t = ca_self;

	/* who is left alone meets nobody that would end the look */
	return t && t->looks_from && atomic_load_explicit(&ca_rt.on, memory_order_relaxed) ? t->looks_from
											   : ca_cpu_cycles();
}

void ca_wait_meet_known(struct ca_thread *t, uintptr_t site)
{
	meet(enter_known(t, HERE), NULL, site);
}

/* What a thread's `waiting` points to. */
static const enum ca_wait kinds[] = {
	[CA_WAIT_OTHERS] = CA_WAIT_OTHERS, [CA_WAIT_EXTERNAL] = CA_WAIT_EXTERNAL
};

/* As far as can be known now. */
static enum ca_wait kind_of_fd(const struct ca_waiting *w)
{
	return w->writes ? ca_peers_of_write(w->fd) : ca_peers_of_read(w->fd, w->delivered > 0);
}

/* Are the n bytes that it would wait for there already, or room for them (SIZE_MAX: nobody knows how many)? Then the
 * call is work as any other, S too. */
static bool is_ready(int fd, bool writes, size_t n)
{
	struct pollfd at = { .fd = fd, .events = writes ? POLLOUT : POLLIN };
	struct timespec none = { 0 };

	return ca_sys(SYS_ppoll, (long)(intptr_t)&at, 1, (long)(intptr_t)&none, 0, 8, 0) == 1 &&
	       (n <= (writes ? PIPE_BUF : 1) || ca_sys(SYS_fcntl, fd, F_GETFL, 0, 0, 0, 0) & O_NONBLOCK ||
		(writes && ca_peers_has_room(fd, n)));
}

/* In S, known exactly: the others want to know whether S goes on meanwhile. The log is told at the end
 * that the wait is over which it was told of at the beginning, whatever has ended it. */
static void begin_in_s(struct ca_waiting *w)
{
	struct ca_thread *t = w->thread;
	bool external = w->kind == CA_WAIT_EXTERNAL;

	w->logged = w->kind;
	if (t->switches.page)
		ca_activation_tell(t, w->since);
	atomic_store_explicit(&t->slot->in_s,
			      ca_slot_in_s(CA_IN_S | (external ? CA_IN_S_EXTERNAL : CA_IN_S_OFF), t->part),
			      memory_order_relaxed);
	ca_ledger_log(external ? CA_LOG_EXTERNAL : CA_LOG_OFF, t, w->since, w->until);
}

/* Without a switch log the kernel's counts tell whether a thread has gone to sleep since its last wait, or others were
 * chosen to run. Where they may not be asked for, what takes long has waited. */
static void count_switches(struct ca_waiting *w, uint64_t now)
{
	struct ca_thread *t = w->thread;
	struct rusage used = { 0 };
	bool known = ca_sys_usage(&used);

	w->slept = !known || (uint64_t)used.ru_nvcsw > t->sleeps;
	/* before the call it may have been preempted as well */
	w->was_off = w->slept || ((uint64_t)used.ru_nivcsw > t->preempted && now - w->since > PREEMPTED);
	t->sleeps = (uint64_t)used.ru_nvcsw;
	t->preempted = (uint64_t)used.ru_nivcsw;
}

/* Was it off a CPU for itself, and not only because others were chosen to run? off, n: when others had its CPU, if it
 * was not; not known without a switch log. */
static bool has_slept(const struct ca_waiting *w, uint64_t now, struct ca_interval *off, unsigned *n)
{
	const struct ca_switches *log = &w->thread->switches;
	unsigned i = 0;

	*n = 0;
	if (w->until != UINT64_MAX)
		return true;
	if (!log->page)
		return w->slept;
	if (now - w->since > CA_WAIT_NOTHING)
		*n = ca_switches_off(log, w->since, now, off, CA_WAIT_LOOKS);
	while (i < *n && off[i].runnable)
		i++;
	return i < *n;
}

static uint64_t over(const struct ca_waiting *w, uint64_t now)
{
	return w->until < now ? w->until : now;
}

/* When it was off a CPU in a wait is no news: that it waited was told. */
static void is_told_up_to(struct ca_thread *t, uint64_t now)
{
	if (t->switches.page)
		t->entered = now;
}

/* S went on for as long as the others were told; by our own account, too. Of a call that did not wait after all,
 * what others had of its CPU meanwhile is not S: as if they had not been told. */
static void end_in_s(const struct ca_waiting *w, uint64_t now)
{
	struct ca_thread *t = w->thread;
	struct ca_interval off[CA_WAIT_LOOKS];
	unsigned n;
	bool external = w->logged == CA_WAIT_EXTERNAL, slept = external && has_slept(w, now, off, &n);

	if (slept)
		ca_ledger_accrue(t, over(w, now), &kinds[CA_WAIT_EXTERNAL]);
	ca_ledger_accrue(t, now, external && !slept ? NULL : &kinds[CA_WAIT_OTHERS]);
	if (!t->depth) /* meanwhile something else has been selected */
		return;
	atomic_store_explicit(&t->slot->in_s, ca_slot_in_s(CA_IN_S, t->part), memory_order_relaxed);
	if (!external) {
		/* of many threads that wait in S each reads what all others have done since: that is no part of S */
		uint64_t through = ca_clock_now();

		ca_ledger_accrue(t, through, &kinds[CA_WAIT_OTHERS]);
		if (t->depth)
			ca_ledger_log(CA_LOG_ON, t, through, CA_LOG_OFF);
		is_told_up_to(t, through);
		return;
	}
	if (slept)
		is_told_up_to(t, now);
	else
		t->waited = w->had_waited;
	ca_ledger_log(CA_LOG_ON, t, slept ? over(w, now) : w->since, CA_LOG_EXTERNAL);
	if (w->until < now) {
		ca_ledger_log(CA_LOG_OFF, t, w->until, 0);
		ca_ledger_log(CA_LOG_ON, t, now, CA_LOG_OFF);
	}
}

/* In S, known otherwise, and waiting for the outside: this much of S is known exactly. */
static void goes_on_in_s(struct ca_waiting *w, unsigned part)
{
	struct ca_thread *t = w->thread;

	w->wait_in_s = true;
	ca_ledger_accrue(t, w->since, NULL);
	ca_ledger_log(CA_LOG_ENTER, t, w->since, part);
	ca_ledger_log(CA_LOG_EXTERNAL, t, w->since, w->until);
	/* whoever finds that it was left by a jump, cancelled or killed, ends it */
	t->wait_in_s = true;
	ca_slot_set_add(&ca_rt.session->in_s, t->number);
	atomic_store_explicit(&t->slot->in_s, ca_slot_in_s(CA_IN_S | CA_IN_S_EXTERNAL, part),
			      memory_order_relaxed);
}

static void went_on_in_s(const struct ca_waiting *w, uint64_t now)
{
	struct ca_thread *t = w->thread;
	struct ca_interval off[CA_WAIT_LOOKS];
	unsigned n;
	bool slept = has_slept(w, now, off, &n);

	ca_ledger_log(CA_LOG_ON, t, slept ? over(w, now) : w->since, CA_LOG_EXTERNAL);
	for (unsigned i = 0; i < n && !slept; i++)
		ca_ledger_log(CA_LOG_WAS_OFF, t, off[i].from, off[i].to);
	ca_activation_wait_left(t, over(w, now));
	ca_ledger_accrue(t, now, slept ? &w->kind : NULL);
}

void ca_wait_sleep(uint64_t ns)
{
	struct ca_thread *t = ca_self;

	if (t && !t->guard && ns != UINT64_MAX)
		t->sleep_for = ns;
}

/* Is there something to read already? Where it is no question of S, the end of the call tells whether it has waited. */
static bool wants_to_know_now(const struct ca_waiting *w)
{
	return ca_rt_is_in_s(w->thread) || (w->open && !ca_rt.session->selection.exact);
}

/* frame: where the wrapper's own begins. errno is not kept. */
static struct ca_waiting begin(enum ca_wait kind, int fd, bool writes, size_t n, uintptr_t frame,
			       uintptr_t site)
{
	struct ca_waiting w = {
		.thread = enter(frame), .kind = kind, .fd = fd, .writes = writes, .answers = -1, .held = -1
	};
	struct ca_thread *t = w.thread;
	unsigned outermost, part;
	uint64_t now = 0;

	if (!t)
		return w;
	w.open = ca_ledger_open();
	w.selection = t->selection;
	if (t->wait_in_s && frame >= t->waiting_sp)
		ca_activation_wait_left(t, ca_clock_now());
	if (worth_it(t))
		now = pay(t, site);
	if (!t->checked) /* that walks the stack */
		now = 0;
	ca_probe_check_here(t);
	w.since = now ? now : ca_clock_now();
	w.until = t->sleep_for ? w.since + t->sleep_for : UINT64_MAX;
	t->sleep_for = 0;
	/* in S also before an experiment is open: it may be by the time that this is over */
	if ((t->depth || (w.open && (ca_rt_is_in_s(t) || kind == CA_WAIT_EXTERNAL))) && fd >= 0)
		w.kind = kind_of_fd(&w);
	if (w.open || ca_timers_any())
		w.lag = now ? ca_ledger_lag_then(t) : ca_ledger_lag(t, w.since);
	else
		w.lag = ca_session_lag(ca_rt.session);
	if (ca_timers_any())
		ca_timers_adjust(w.since, w.lag);
	if (writes) {
		ca_peers_write(fd, w.since, w.lag);
		w.held = (w.open || t->depth) && w.kind == CA_WAIT_OTHERS ? ca_peers_held(fd) : -1;
	} else if (fd >= 0 && (w.open || (w.lag && !ca_rt_is_in_s(t))))
		w.feed = ca_peers_feed(fd);
	/* also where nothing is selected: later, what has come is no sign any more of who was asked for it */
	if (fd >= 0 && !writes && w.kind == CA_WAIT_EXTERNAL)
		w.by_itself = ca_peers_by_itself(fd) && !(wants_to_know_now(&w) && ca_feed_unread(fd));
	if (w.by_itself && ca_rt_is_in_s(t))
		w.kind = CA_WAIT_OTHERS;
	if (w.feed)
		ca_feed_before(w.feed, fd, w.since, w.lag);
	if (fd >= 0 && w.kind == CA_WAIT_OTHERS && !w.by_itself && ca_rt_is_in_s(t) &&
	    is_ready(fd, writes, n)) {
		w.goes_on = true;
	} else if (t->depth) {
		w.in_s = true;
		w.had_waited = t->waited;
		t->waited = true;
		begin_in_s(&w);
	} else if (ca_fine_is_in(t)) {
		w.fine_s = ca_fine_suspend(t);
		if (w.open && w.kind == CA_WAIT_EXTERNAL) {
			w.since = ca_clock_now(); /* up to now it was timed */
			goes_on_in_s(&w, 0);      /* S with parts is not timed */
		}
	} else if (w.open && w.kind == CA_WAIT_EXTERNAL && !w.by_itself && !ca_rt.session->selection.exact) {
		/* a call that blocks can be the selected code itself: its wait is time in S */
		ca_sample_stack_here(t);
		if (ca_sample_in_selection(&t->stack, &outermost, &part))
			goes_on_in_s(&w, part);
	}
	/* where the wrapper's own frame begins; an outer wait whose frame is gone was left */
	w.sp = frame;
	w.outer_sp = t->waiting_sp;
	w.outer = w.sp < t->waiting_sp ? t->waiting : NULL;
	if (ca_rt.events)
		ca_wait_told_begin(&w);
	t->waiting_sp = w.sp;
	t->waiting = w.goes_on ? NULL : &kinds[w.kind];
	if (w.goes_on || w.wait_in_s || (w.in_s && w.kind == CA_WAIT_EXTERNAL))
		ca_catch_up_runs(t); /* so does S */
	else
		ca_catch_up_waits(t, w.kind == CA_WAIT_EXTERNAL && !w.feed ? w.lag : 0);
	t->guard--;
	return w;
}

#define FRAME (HERE + 2 * sizeof(uintptr_t))

struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site)
{
	int saved = errno;
	struct ca_waiting w = begin(kind, fd, false, 1, FRAME, site);

	errno = saved;
	return w;
}

struct ca_waiting ca_wait_begin_read_all_from(int fd, uintptr_t site)
{
	int saved = errno;
	struct ca_waiting w = begin(CA_WAIT_EXTERNAL, fd, false, SIZE_MAX, FRAME, site);

	errno = saved;
	return w;
}

struct ca_waiting ca_wait_begin_write_from(int fd, size_t n, uintptr_t site)
{
	int saved = errno;
	struct ca_waiting w = begin(CA_WAIT_EXTERNAL, fd, true, n, FRAME, site);

	errno = saved;
	return w;
}

/* Somebody outside was in step with that lag, and still is ahead, while others were at work: what he sends
 * from now on cannot be held back. */
static void tell_ahead(struct ca_thread *t, uint64_t in_step)
{
	uint64_t lag = ca_ledger_lag(t, ca_clock_now());

	if (lag > in_step && lag - in_step > atomic_load_explicit(&t->slot->ahead, memory_order_relaxed))
		atomic_store_explicit(&t->slot->ahead, lag - in_step, memory_order_relaxed);
}

/* Was there nothing yet? A call can take long without that. */
static bool has_waited(const struct ca_waiting *w, uint64_t now)
{
	const struct ca_switches *log = &w->thread->switches;
	struct ca_interval off;

	return now - w->since > CA_WAIT_NOTHING &&
	       (log->page ? ca_switches_off(log, w->since, now, &off, 1) > 0 : w->was_off);
}

/* The world outside has ended it: in the dilated world it would have done so later, by what virtual
 * time has lost since it began; who was asked began when he was, and who sends by himself, or takes what we write, is
 * too early by all that has been lost since he was in step with us. */
static void owe_for_outside(struct ca_waiting *w, uint64_t now, uint64_t lag)
{
	struct ca_thread *t = w->thread;
	bool waited = has_waited(w, now), runs_on = false;
	uint64_t from = w->lag;

	if (w->fd >= 0 && !w->writes)
		w->answers = w->fd;
	if (w->word)
		from = ca_peers_word_in_step(w->word, now, from, lag, &runs_on);
	else if (w->answers >= 0 && waited)
		from = ca_peers_in_step(w->answers, from, lag, &runs_on);
	else if (w->writes && now - w->since > NO_ROOM)
		from = ca_peers_room_in_step(w->fd, from, lag, &runs_on);
	if (lag > from)
		t->owed += (int64_t)(lag - from);
	ca_ledger_wait_on(t);
	if (runs_on)
		tell_ahead(t, from);
	if (w->answers >= 0 && w->delivered > 0)
		ca_peers_taken(w->answers, waited, ca_ledger_lag(t, ca_clock_now()));
}

/* Somebody outside sends by himself: is what came due by now? Only where reads take what is one message
 * each: what was taken too early with others cannot be held back. */
static bool hold_back(struct ca_waiting *w, uint64_t now, uint64_t lag)
{
	struct ca_thread *t = w->thread;
	int64_t before;

	if (!w->feed || w->delivered <= 0 || (size_t)w->delivered != w->wanted)
		return false;
	before = t->owed;
	t->owed = (int64_t)ca_feed_after(w->feed, w->fd, w->wanted, now, lag) + (before > 0 ? before : 0);
	ca_ledger_wait_on(t);
	/* a nap too long is seen at the next read, and is nothing paid ahead */
	t->owed = (t->owed > 0 ? t->owed : 0) + (before < 0 ? before : 0);
	return true;
}

/* In S, and somebody outside has ended it who sends by himself: in the dilated world he would have done so
 * later, and S, which does not go on meanwhile, would still wait for him. What the thread owes otherwise it
 * carries on. Returns the time. */
static uint64_t wait_on_in_s(struct ca_waiting *w, uint64_t now)
{
	struct ca_thread *t = w->thread;
	int64_t before, left;
	uint64_t lag;

	if (!w->open || !w->by_itself || (w->in_s && w->logged == CA_WAIT_EXTERNAL) ||
	    (w->fd >= 0 ? kind_of_fd(w) : w->kind) != CA_WAIT_EXTERNAL)
		return now;
	lag = ca_ledger_lag(t, now);
	/* what earlier waits have left, each of them too little for a nap, has not been paid elsewhere since */
	left = t->left_in_s < t->owed ? t->left_in_s : t->owed > 0 ? t->owed : 0;
	before = t->owed - left;
	t->owed = left;
	if (lag && !hold_back(w, now, lag))
		owe_for_outside(w, now, lag);
	t->left_in_s = t->owed;
	t->owed += before;
	return ca_clock_now();
}

void ca_wait_woken(struct ca_waiting *w, const void *word)
{
	int saved = errno;

	if (w->thread && !w->in_s && (w->open || w->lag) && ca_peers_woken(word, w->since)) {
		w->kind = CA_WAIT_EXTERNAL;
		w->word = word;
	}
	errno = saved;
}

/* What the call had of a CPU, as a read of what is in memory, is in other samples. */
static uint64_t wait_of(const struct ca_waiting *w, uint64_t now)
{
	if (w->thread->tick.sees_kernel && w->thread->switches.page)
		return ca_wait_told_off_cpu(w, now);
	return w->thread->switches.page || w->slept ? now - w->since : 0;
}

void ca_wait_end(struct ca_waiting *w)
{
	struct ca_thread *t = w->thread;
	int saved = errno;
	uint64_t now;

	if (!t || t != ca_self)
		return;
	t->guard++;
	ca_catch_up_runs(t);
	if (ca_probe_is_behind()) /* it was asked for while all threads of this process waited */
		ca_probe_service();
	now = ca_clock_now();
	if (!t->switches.page && now - w->since > CA_WAIT_NOTHING)
		count_switches(w, now);
	if (w->slept)
		t->cpu_known_at = 0;
	if (w->in_s && t->depth) {
		now = wait_on_in_s(w, now);
		end_in_s(w, now);
	} else if (w->wait_in_s) {
		went_on_in_s(w, now);
	} else if (w->fine_s) {
		ca_ledger_accrue(t, now, &kinds[CA_WAIT_OTHERS]);
		now = wait_on_in_s(w, now);
	} else if (w->goes_on) {
		; /* its times off a CPU are told as others in S */
	} else if (w->open || w->feed || w->answers >= 0 || w->word || (w->writes && w->lag)) {
		uint64_t lag;

		t->waiting = &kinds[CA_WAIT_OTHERS];
		lag = ca_ledger_lag(t, now);
		if (w->fd >= 0)
			w->kind = kind_of_fd(w);
		if (w->until != UINT64_MAX)
			ca_ledger_limit(t, w->lag, now - w->since);
		if (w->kind == CA_WAIT_EXTERNAL && lag && !hold_back(w, now, lag))
			owe_for_outside(w, now, lag);
		if (w->until != UINT64_MAX)
			t->limit = lag; /* what came meanwhile has been paid by waiting on */
	}
	/* begun in S, and something else has been selected meanwhile, for which it owes as any wait for the outside: asleep,
	 * or it would take a CPU from the others */
	if ((w->in_s || w->wait_in_s) && w->kind == CA_WAIT_EXTERNAL && t->selection != w->selection)
		ca_ledger_wait_on(t);
	if (w->fd >= 0 && w->delivered > 0)
		ca_peers_read(w->fd, now);
	if (w->held >= 0 && w->written > 0)
		ca_peers_written(w->fd, (int64_t)w->held + w->written);
	if (w->fd >= 0 && (w->writes || w->delivered > 0))
		t->readings = 0; /* it works on what it gets, and does not wait for a time */
	if (w->fine_s && w->selection == t->selection)
		ca_fine_resume(t, w->fine_s);
	t->waiting = w->outer;
	t->waiting_sp = w->outer_sp;
	if (w->open && w->fd >= 0 && (w->kind == CA_WAIT_EXTERNAL || w->by_itself) && has_waited(w, now))
		atomic_fetch_add_explicit(&t->slot->outside, now - w->since, memory_order_relaxed);
	if (w->doing)
		ca_wait_told_end(w, now);
	if (now - w->since > SHORT_WAIT && !ca_rt.sampling) {
		if (w->fd >= 0 && !w->open && w->kind == CA_WAIT_EXTERNAL)
			w->kind = kind_of_fd(w);
		if (w->kind == CA_WAIT_EXTERNAL && !w->by_itself)
			ca_sample_off_cpu(t, wait_of(w, now));
	}
	if (__builtin_expect(t->young != 0, 0) && !t->waiting)
		ca_ticks_look_at_young(t, now);
	t->guard--;
	errno = saved;
}

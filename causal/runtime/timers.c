/* SPDX-License-Identifier: MIT */
/* Timers by virtual time; see timers.h.
 *
 * The k-th expiry after a timer was armed comes at real time next + lag + k x interval, with the lag
 * that was known then. So what the kernel says is left tells how many have come. */
#include "causal/runtime/timers.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/deadline.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/virtual_clock.h"
#include "core/sys.h"
#include <sys/time.h>
#include <sys/timerfd.h>

enum {
	TIMERS = 64,
	DESCRIPTORS = 1024,
	PROBES = 16,
	NEAR = 3000,      /* ns that an expiry may be early */
	WORTH_IT = 20000, /* ns that it may become early before it is armed anew */
	AT_ONCE = 1       /* ns: 0 would disarm it */
};

struct timer {
	atomic_flag busy;
	enum ca_timers_kind kind; /* 0: free */
	long id;
	uint32_t pid; /* whose it is: a fork has none but descriptors */
	clockid_t clock;
	uint64_t next; /* virtual time, ns of CLOCK_MONOTONIC, of the expiry it was armed for; 0: it is not */
	uint64_t interval; /* ns; 0: it expires once */
	uint64_t lag;      /* when it was armed */
};
/* Descriptors lie where their number says, or shortly behind; the others, which are looked through before
 * each wait, in a list. */
static struct timer descriptors[DESCRIPTORS] = { [0 ... DESCRIPTORS - 1] = { .busy = ATOMIC_FLAG_INIT } };
static struct timer timers[TIMERS] = { [0 ... TIMERS - 1] = { .busy = ATOMIC_FLAG_INIT } };
static _Atomic unsigned made;

static atomic_bool forgotten;

bool ca_timers_any(void)
{
	return atomic_load_explicit(&made, memory_order_relaxed) > 0 &&
	       !atomic_load_explicit(&forgotten, memory_order_relaxed);
}

void ca_timers_forget(void)
{
	atomic_store(&forgotten, true);
}

/* Whoever comes second leaves it alone: a handler must not wait for what it interrupts. */
static struct timer *take(struct timer *t)
{
	return atomic_flag_test_and_set_explicit(&t->busy, memory_order_acquire) ? NULL : t;
}

static void release(struct timer *t)
{
	atomic_flag_clear_explicit(&t->busy, memory_order_release);
}

static bool is_it(const struct timer *t, enum ca_timers_kind kind, long id)
{
	return t->kind == kind && t->id == id && (kind == CA_TIMERS_FD || t->pid == ca_rt.pid);
}

/* The i-th place where one of that kind and number can be; NULL: there are no more. */
static struct timer *place(enum ca_timers_kind kind, long id, unsigned i)
{
	if (kind == CA_TIMERS_FD)
		return i < PROBES ? &descriptors[((unsigned long)id + i) % DESCRIPTORS] : NULL;
	return i < TIMERS ? &timers[i] : NULL;
}

static struct timer *find(enum ca_timers_kind kind, long id)
{
	struct timer *t;

	for (unsigned i = 0; ca_timers_any() && (t = place(kind, id, i)); i++) {
		if (!is_it(t, kind, id) || !take(t))
			continue;
		if (is_it(t, kind, id))
			return t;
		release(t);
	}
	return NULL;
}

/* Free, or of the process that made this one. */
static bool is_free(const struct timer *t)
{
	return !t->kind || (t->kind != CA_TIMERS_FD && t->pid != ca_rt.pid);
}

static struct timer *find_free(enum ca_timers_kind kind, long id)
{
	struct timer *t;

	for (unsigned i = 0; (t = place(kind, id, i)); i++) {
		if (!is_free(t) || !take(t))
			continue;
		if (is_free(t))
			return t;
		release(t);
	}
	return NULL;
}

bool ca_timers_has(enum ca_timers_kind kind, long id)
{
	struct timer *t = find(kind, id);

	if (t)
		release(t);
	return t;
}

void ca_timers_made(enum ca_timers_kind kind, long id, clockid_t clock)
{
	struct timer *t;

	if (!ca_rt.session || !ca_rt.session->virtual_clock || ca_virtual_is_of_cpu(clock) || forgotten)
		return;
	t = find(kind, id); /* a descriptor that was closed behind our back */
	if (!t) {
		t = find_free(kind, id);
		atomic_fetch_add(&made, t != NULL);
	}
	if (!t)
		return;
	t->kind = kind;
	t->id = id;
	t->pid = ca_rt.pid;
	t->clock = clock;
	t->next = t->interval = t->lag = 0;
	release(t);
}

void ca_timers_gone(enum ca_timers_kind kind, long id)
{
	struct timer *t = find(kind, id);

	if (!t)
		return;
	t->kind = 0;
	atomic_fetch_sub(&made, 1);
	release(t);
}

/* ---- the kernel's side; lengths of time ------------------------------------------------------------*/
struct setting {
	uint64_t value, interval; /* ns */
};

CA_SIGSAFE static long kernel_set(const struct timer *t, struct setting to)
{
	struct itimerspec spec = { { (time_t)(to.interval / CA_NS_PER_S), (long)(to.interval % CA_NS_PER_S) },
				   { (time_t)(to.value / CA_NS_PER_S), (long)(to.value % CA_NS_PER_S) } };
	struct itimerval val = { { spec.it_interval.tv_sec, spec.it_interval.tv_nsec / 1000 },
				 { spec.it_value.tv_sec, (spec.it_value.tv_nsec + 999) / 1000 } };

	if (val.it_value.tv_usec == 1000000)
		val.it_value = (struct timeval){ val.it_value.tv_sec + 1, 0 };
	if (t->kind == CA_TIMERS_ITIMER)
		return ca_sys(SYS_setitimer, ITIMER_REAL, (long)(intptr_t)&val, 0, 0, 0, 0);
	return ca_sys(t->kind == CA_TIMERS_FD ? SYS_timerfd_settime : SYS_timer_settime, t->id, 0,
		      (long)(intptr_t)&spec, 0, 0, 0);
}

CA_SIGSAFE static long kernel_left(const struct timer *t, uint64_t *ns)
{
	struct itimerspec spec = { { 0, 0 }, { 0, 0 } };
	struct itimerval val = { { 0, 0 }, { 0, 0 } };
	long r;

	if (t->kind == CA_TIMERS_ITIMER) {
		r = ca_sys(SYS_getitimer, ITIMER_REAL, (long)(intptr_t)&val, 0, 0, 0, 0);
		spec.it_value = (struct timespec){ val.it_value.tv_sec, val.it_value.tv_usec * 1000 };
	} else {
		r = ca_sys(t->kind == CA_TIMERS_FD ? SYS_timerfd_gettime : SYS_timer_gettime, t->id,
			   (long)(intptr_t)&spec, 0, 0, 0, 0);
	}
	*ns = (uint64_t)spec.it_value.tv_sec * CA_NS_PER_S + (uint64_t)spec.it_value.tv_nsec;
	return r;
}

/* Arm it for its expiry `next`, as it is known now when that will be. */
CA_SIGSAFE static long arm(struct timer *t, uint64_t now, uint64_t lag)
{
	uint64_t at = t->next + lag;

	t->lag = lag;
	ca_catch_up_timed(lag);
	return kernel_set(t, (struct setting){ at > now + AT_ONCE ? at - now : AT_ONCE, t->interval });
}

/* How many expiries have come since it was armed, as the kernel keeps it; left: until the next one. */
CA_SIGSAFE static uint64_t expired(const struct timer *t, uint64_t now, uint64_t left)
{
	uint64_t first = t->next + t->lag;

	if (!t->interval)
		return left ? 0 : 1;
	return now + left > first + t->interval / 2 ? (now + left - first + t->interval / 2) / t->interval
						    : 0;
}

/* ---- what the program asks for ---------------------------------------------------------------------*/
static uint64_t to_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * CA_NS_PER_S + (uint64_t)t->tv_nsec;
}

static struct timespec to_timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / CA_NS_PER_S), (long)(ns % CA_NS_PER_S) };
}

static bool is_proper(const struct timespec *t)
{
	return t->tv_sec >= 0 && t->tv_sec < INT32_MAX && t->tv_nsec >= 0 && t->tv_nsec < (long)CA_NS_PER_S;
}

static void say(const struct timer *t, uint64_t v, struct itimerspec *to)
{
	uint64_t next = t->next;

	while (next && t->interval && next <= v)
		next += ((v - next) / t->interval + 1) * t->interval;
	to->it_interval = to_timespec(t->next ? t->interval : 0);
	to->it_value = to_timespec(next > v ? next - v : 0);
}

bool ca_timers_get(enum ca_timers_kind kind, long id, struct itimerspec *to)
{
	struct timer *t = find(kind, id);
	uint64_t lag, left;

	if (!t)
		return false;
	lag = ca_virtual_lag();
	if (kernel_left(t, &left) < 0) {
		release(t);
		return false;
	}
	say(t, ca_clock_now() - lag, to);
	release(t);
	return true;
}

bool ca_timers_set(enum ca_timers_kind kind, long id, bool absolute, const struct itimerspec *wanted,
		   struct itimerspec *old, long *result)
{
	struct timer *t = find(kind, id);
	uint64_t lag, now, at;

	if (!t)
		return false;
	if (!is_proper(&wanted->it_value) || !is_proper(&wanted->it_interval)) {
		t->next = 0; /* whatever the kernel makes of it */
		release(t);
		return false;
	}
	lag = ca_virtual_lag();
	now = ca_clock_now();
	if (old)
		say(t, now - lag, old);
	at = to_ns(&wanted->it_value);
	t->interval = to_ns(&wanted->it_interval);
	if (!at) {
		t->next = t->interval = 0;
		*result = kernel_set(t, (struct setting){ 0, 0 });
	} else {
		t->next = absolute ? at - (uint64_t)ca_virtual_ahead(t->clock, now) : at + now - lag;
		*result = arm(t, now, lag);
	}
	release(t);
	return true;
}

bool ca_timers_early(enum ca_timers_kind kind, long id, uint64_t *times)
{
	struct timer *t = find(kind, id);
	uint64_t lag, now, left, n, last;
	bool early = false;

	*times = 0;
	if (!t)
		return false;
	lag = ca_virtual_lag();
	now = ca_clock_now();
	if (t->next && kernel_left(t, &left) == 0 && (n = expired(t, now, left)) > 0) {
		/* of what the kernel has let expire, as much as has come in virtual time */
		for (*times = n; *times && (last = t->next + (*times - 1) * t->interval) + lag > now + NEAR;)
			--*times;
		early = !*times;
		t->next += *times * t->interval;
		if (!t->interval && !early)
			t->next = 0;
		else if (early || lag > t->lag)
			arm(t, now, lag);
	}
	release(t);
	if (*times)
		ca_deadline_over(lag, UINT64_MAX);
	return early;
}

bool ca_timers_not_yet(int fd)
{
	struct timer *t = find(CA_TIMERS_FD, fd);
	uint64_t lag, now, left;
	bool early;

	if (!t)
		return false;
	lag = ca_virtual_lag();
	now = ca_clock_now();
	early = t->next && t->next + lag > now + NEAR && kernel_left(t, &left) == 0 && expired(t, now, left);
	if (early)
		arm(t, now, lag);
	release(t);
	return early;
}

CA_SIGSAFE void ca_timers_adjust(uint64_t now, uint64_t lag)
{
	for (unsigned i = 0; i < TIMERS; i++) {
		struct timer *t = &timers[i];
		uint64_t left;

		if (!t->kind || t->pid != ca_rt.pid || !t->next || lag < t->lag + WORTH_IT || !take(t))
			continue;
		if (t->kind && kernel_left(t, &left) == 0 && left) {
			t->next += expired(t, now, left) * t->interval;
			arm(t, now, lag);
			if (ca_self)
				ca_ledger_limit(ca_self, lag, UINT64_MAX);
		}
		release(t);
	}
}

/* SPDX-License-Identifier: MIT */
/* The program's clock; see virtual_clock.h. */
#include "causal/runtime/virtual_clock.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/real.h"
#include <errno.h>

enum {
	STEADY = 5000,      /* ns between two clocks that are not worth a step */
	GOOD_FOR = 1000000, /* ns for which the distance between two clocks is taken as known */
	CLOSE = 2000,       /* ns between two readings that belong together */
	TRIES = 5,
	CLOCKS = 12,
	SPIN = 2000, /* ns between two readings ... */
	SPINS = 16   /* ... of which so many in a row are a wait */
};

static bool is_virtual(void)
{
	return ca_rt.session && ca_rt.session->virtual_clock;
}

/* Nothing has been delayed so far, and nothing is. */
static bool is_real_so_far(void)
{
	const struct ca_session *s = ca_rt.session;

	return !(atomic_load_explicit(&s->experiment.seq, memory_order_relaxed) & 1) &&
	       !atomic_load_explicit(&s->settled_delay, memory_order_relaxed) &&
	       !atomic_load_explicit(&ca_rt.lag, memory_order_relaxed);
}

static void raise_to(_Atomic uint64_t *most, uint64_t value)
{
	uint64_t now = atomic_load_explicit(most, memory_order_relaxed);

	while (now < value && !atomic_compare_exchange_weak(most, &now, value))
		;
}

struct moment {
	uint64_t real, lag; /* ns */
};

/* Where nobody knows better (a thread without a record, a handler in the midst of our code), and for
 * good when we are switched off: as much as somebody in this process has seen last. */
static uint64_t known_lag(void)
{
	uint64_t seen = atomic_load_explicit(&ca_rt.lag, memory_order_relaxed), settled;

	if (!atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return seen;
	settled = ca_session_lag(ca_rt.session);
	return seen > settled ? seen : settled;
}

/* What one thread has read, no other may go back behind: while the account of an experiment is open,
 * two threads may differ a little. */
static struct moment no_step_back(struct moment m, bool publish)
{
	_Atomic uint64_t *least = &ca_rt.session->clock_floor;
	uint64_t v = m.real > m.lag ? m.real - m.lag : 0;
	uint64_t before = atomic_load_explicit(least, memory_order_relaxed);

	if (v < before)
		m.lag = m.real > before ? m.real - before : 0;
	else if (publish)
		raise_to(least, v);
	atomic_store_explicit(&ca_rt.lag, m.lag, memory_order_relaxed);
	return m;
}

/* Who looks at the clock again and again, and gets and gives nothing meanwhile (wait.c), waits for a time, and
 * waits longer when that moves. A server that notes when each request begins and ends does not. */
static void note_spin(struct ca_thread *t, const struct moment *m)
{
	t->readings = m->real - t->last_reading < SPIN ? t->readings + 1 : 0;
	t->last_reading = m->real;
	if (t->readings >= SPINS) {
		ca_rt_spins(t, SPINS);
		ca_ledger_limit(t, m->lag, UINT64_MAX);
		t->readings = 0;
	}
}

static struct moment look(void)
{
	struct ca_thread *t = ca_self;
	struct moment m = { 0, 0 };
	bool moves;

	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		m.lag = known_lag();
		m.real = ca_clock_now();
		return no_step_back(m, false);
	}
	moves = ca_ledger_lag_moves(t);
	t->guard++;
	m.real = ca_clock_now();
	m.lag = moves ? ca_ledger_lag(t, m.real) : ca_session_lag(ca_rt.session);
	if (moves)
		note_spin(t, &m);
	t->guard--;
	return no_step_back(m, moves);
}

/* Other libraries may have a clock of their own. Before ours are looked up, allocators that look at the
 * clock would come back here from the search. */
static int real_clock(clockid_t clock, struct timespec *now)
{
	int r;

	if (ca_real.clock_gettime)
		return ca_real.clock_gettime(clock, now);
	r = atomic_load_explicit(&ca_clock_get, memory_order_relaxed)(clock, now);
	if (r < 0)
		errno = -r;
	return r < 0 ? -1 : 0;
}

/* How far another clock is ahead of the monotonic one: measured, as the administrator may set it and
 * another library may invent it, but without a step for less than what measuring is worth. */
int64_t ca_virtual_ahead(clockid_t clock, uint64_t now)
{
	static struct {
		_Atomic int64_t by;
		_Atomic uint64_t until;
	} known[CLOCKS];
	int64_t by = atomic_load_explicit(&known[clock].by, memory_order_relaxed), measured = by;
	struct timespec other = { 0, 0 };

	if (now < atomic_load_explicit(&known[clock].until, memory_order_relaxed))
		return by;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = ca_clock_now(), after;

		real_clock(clock, &other);
		after = ca_clock_now();
		measured = (int64_t)((uint64_t)other.tv_sec * CA_NS_PER_S + (uint64_t)other.tv_nsec - before -
				     (after - before) / 2);
		if (after - before < CLOSE)
			break;
	}
	if (measured > by + STEADY || measured < by - STEADY)
		atomic_store_explicit(&known[clock].by, by = measured, memory_order_relaxed);
	atomic_store_explicit(&known[clock].until, now + GOOD_FOR, memory_order_relaxed);
	return by;
}

bool ca_virtual_is_of_cpu(clockid_t clock)
{
	return clock < 0 || clock >= CLOCKS || clock == CLOCK_PROCESS_CPUTIME_ID ||
	       clock == CLOCK_THREAD_CPUTIME_ID;
}

int ca_virtual_clock(clockid_t clock, struct timespec *now)
{
	struct moment m;
	uint64_t v;
	int saved;

	if (!is_virtual() || ca_virtual_is_of_cpu(clock) || is_real_so_far())
		return real_clock(clock, now);
	saved = errno;
	if (clock == CLOCK_REALTIME_COARSE)
		clock = CLOCK_REALTIME;
	if (clock == CLOCK_MONOTONIC_COARSE)
		clock = CLOCK_MONOTONIC;
	m = look();
	v = m.real - m.lag + (uint64_t)ca_virtual_ahead(clock, m.real);
	now->tv_sec = (time_t)(v / CA_NS_PER_S);
	now->tv_nsec = (long)(v % CA_NS_PER_S);
	errno = saved;
	return 0;
}

uint64_t ca_virtual_lag(void)
{
	if (!is_virtual() || is_real_so_far())
		return 0;
	return look().lag;
}

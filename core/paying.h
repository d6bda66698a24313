/* SPDX-License-Identifier: MIT */
/* U: for how long at least one thread of the session was paying. Together with D it bounds the effect of an
 * experiment (doc/ESTIMATE.md), so it may be too large but not too small.
 *
 * One word in the session counts those who pay, and keeps the time: with nobody paying, the sum so far; else
 * the beginning less the sum. So each step is one atomic operation, and nothing is lost between two of them.
 * Who dies while paying is taken out by whoever frees his slot.
 *
 * Any process, any thread, handlers. */
#ifndef CA_CORE_PAYING_H
#define CA_CORE_PAYING_H
#include "core/session.h"
#include <stdbool.h>
#include <stddef.h>

enum { CA_PAYING_BITS = 15 /* threads; the other bits are ns, modulo 6 days */ };
#define CA_PAYING_ONE   UINT64_C(1)
#define CA_PAYING_COUNT ((CA_PAYING_ONE << CA_PAYING_BITS) - 1)
_Static_assert(CA_MAX_THREADS < CA_PAYING_COUNT, "all threads can pay at once");

/* One more or one less, with the same sum up to `now`. */
CA_SIGSAFE static inline void ca_paying_change(_Atomic uint64_t *paying, uint64_t now, bool more)
{
	uint64_t word = atomic_load_explicit(paying, memory_order_relaxed), next;

	do {
		uint64_t count = word & CA_PAYING_COUNT, kept = word >> CA_PAYING_BITS;

		if (more ? !count : count == 1) /* from the sum to the beginning, and back: now - (now - x) */
			kept = now - kept;
		next = kept << CA_PAYING_BITS | (more ? count + 1 : count - 1);
	} while (!atomic_compare_exchange_weak_explicit(paying, &word, next, memory_order_relaxed,
							memory_order_relaxed));
}

/* A thread begins or goes on, and ends, if it has begun. In this order death can only leave it counted. */
CA_SIGSAFE static inline void ca_paying_begin(struct ca_session *s, struct ca_slot *slot, uint64_t now)
{
	if (atomic_load_explicit(&slot->paying, memory_order_relaxed))
		return;
	ca_paying_change(&s->paying, now, true);
	atomic_store_explicit(&slot->paying, 1, memory_order_relaxed);
}

CA_SIGSAFE static inline void ca_paying_end(struct ca_session *s, struct ca_slot *slot, uint64_t now)
{
	if (atomic_exchange_explicit(&slot->paying, 0, memory_order_relaxed))
		ca_paying_change(&s->paying, now, false);
}

/* Of all slots together. counter: where it lies in them. */
static inline uint64_t ca_paying_sum(const struct ca_session *s, size_t counter)
{
	uint32_t used = atomic_load(&s->slots_used);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++)
		sum += atomic_load_explicit(
			(const _Atomic uint64_t *)(const void *)((const char *)&s->slot[i] + counter),
			memory_order_relaxed);
	return sum;
}

/* The sum that such a word holds up to `now`. */
static inline uint64_t ca_paying_time(const _Atomic uint64_t *paying, uint64_t now)
{
	uint64_t word = atomic_load_explicit(paying, memory_order_relaxed);

	return word & CA_PAYING_COUNT ? now - (word >> CA_PAYING_BITS) : word >> CA_PAYING_BITS;
}

/* U so far, ns modulo 6 days: two readings are subtracted by ca_paying_between. */
static inline uint64_t ca_paying_read(struct ca_session *s, uint64_t now)
{
	return ca_paying_time(&s->paying, now) + ca_paying_sum(s, offsetof(struct ca_slot, paying_more));
}

/* By how much threads have waited longer for a time, or in a wait with a time limit, since these move with D, ns so
 * far: the sum over threads. What lies on one path is no more than D has grown. */
static inline uint64_t ca_paying_limited(const struct ca_session *s)
{
	return ca_paying_sum(s, offsetof(struct ca_slot, limited));
}

/* Waits for a time, or with a time limit, which moves with D, so far. */
static inline uint64_t ca_paying_limits(const struct ca_session *s)
{
	return ca_paying_sum(s, offsetof(struct ca_slot, limits));
}

/* ns that threads have waited for somebody outside of the run so far, the sum over threads. */
static inline uint64_t ca_paying_outside(const struct ca_session *s)
{
	return ca_paying_sum(s, offsetof(struct ca_slot, outside));
}

static inline uint64_t ca_paying_between(uint64_t before, uint64_t after)
{
	return (after - before) << CA_PAYING_BITS >> CA_PAYING_BITS;
}

#endif

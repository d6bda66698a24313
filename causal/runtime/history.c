/* SPDX-License-Identifier: MIT */
/* Who else is in S at the instant of a sample; see history.h. */
#include "causal/runtime/history.h"
#include "causal/runtime/account.h"

enum {
	NEAR = 10, /* 1 / period between two looks that are taken for one instant */
	PRIOR = 2, /* pairs that would have to be seen before the threads' own shares count for less ... */
	PRIOR_OF_ONE = 4, /* ... and of one thread, before it counts for more than the others */
	OTHERS = 64,      /* threads on a CPU at one instant */
	LONG_AGO = 2048   /* looks; of longer histories the older half counts for half */
};

static void tell_share(struct ca_thread *t, unsigned layer)
{
	const struct ca_history *h = &t->history;
	uint64_t share = h->found[layer] ? h->found[layer] * CA_MILLION + CA_MILLION / 2 : 0;

	atomic_store_explicit(&t->slot->share_in_s[layer], (uint32_t)(share / (h->looks + 1)),
			      memory_order_relaxed);
}

CA_SIGSAFE void ca_history_looked(struct ca_thread *t, uint64_t now, unsigned layers, uint64_t times)
{
	t->history.looks += times;
	if (layers)
		ca_slot_set_add(&ca_rt.session->in_s, t->number);
	for (unsigned k = 0; k < CA_PARTS; k++) {
		t->history.found[k] += k < layers ? times : 0;
		tell_share(t, k);
	}
	atomic_store_explicit(&t->slot->look_every,
			      t->tick.backend == CA_BACKEND_TIMER ? (uint32_t)ca_tick_of_kernel() : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&t->slot->last_look, (now & ~CA_LOOK_LAYERS) | layers, memory_order_relaxed);
}

/* What is known of the selection that it leaves. */
static void put_aside(struct ca_thread *t)
{
	struct ca_history *h = &t->history;
	unsigned shift = h->looks > LONG_AGO;

	for (unsigned k = 0; k < CA_PARTS; k++) {
		h->found[k] >>= shift;
		h->pairs[k] = atomic_load_explicit(&t->slot->pairs[k], memory_order_relaxed) >> shift;
		h->expected[k] =
			atomic_load_explicit(&t->slot->pairs_expected[k], memory_order_relaxed) >> shift;
	}
	h->looks >>= shift;
	if (h->region)
		t->histories[h->region % CA_HISTORIES] = *h;
}

CA_SIGSAFE void ca_history_select(struct ca_thread *t, uint32_t region)
{
	const struct ca_history *known = &t->histories[region % CA_HISTORIES];

	put_aside(t);
	t->history = known->region == region ? *known : (struct ca_history){ .region = region };
	for (unsigned k = 0; k < CA_PARTS; k++) {
		atomic_store_explicit(&t->slot->pairs[k], t->history.pairs[k], memory_order_relaxed);
		atomic_store_explicit(&t->slot->pairs_expected[k], t->history.expected[k],
				      memory_order_relaxed);
		tell_share(t, k);
	}
}

static bool by_timer(struct ca_slot *slot)
{
	return atomic_load_explicit(&slot->look_every, memory_order_relaxed);
}

/* Of threads whose switches cannot be read, those that were looked at lately: a timer's ticks come when the kernel
 * ticks. */
static bool is_on_cpu(uint32_t number, uint64_t look, uint64_t now)
{
	uint64_t every = atomic_load_explicit(&ca_rt.session->slot[number].look_every, memory_order_relaxed);

	every = every > ca_rt.period ? every : ca_rt.period;
	return !ca_account_was_off(number, now, look + every + every / 2 < now);
}

/* E[1 / (1 + how many of n others are in S)], millionths, when each of them is with probability `in`. */
static uint64_t one_of(uint64_t in, uint64_t n)
{
	uint64_t none = CA_MILLION;

	if (!n || in * n < CA_MILLION / 1000)
		return CA_MILLION;
	for (uint64_t i = 0; i <= n; i++)
		none = none * (CA_MILLION - in) / CA_MILLION;
	return (CA_MILLION - none) * CA_MILLION / ((n + 1) * in);
}

struct other {
	uint32_t slot;
	uint64_t in; /* S with this probability, millionths */
};

static void count_pair(_Atomic uint64_t *pairs, _Atomic uint64_t *expected, bool found, uint64_t share)
{
	atomic_fetch_add_explicit(pairs, found, memory_order_relaxed);
	atomic_fetch_add_explicit(expected, share, memory_order_relaxed);
}

/* The instant of a look is that of another one, if the thread has met nobody meanwhile, after which it may be elsewhere. */
static bool is_one_instant(uint64_t look, uint64_t met, uint64_t now)
{
	return look + ca_rt.period / NEAR > now && met < look;
}

/* share: of its looks, millionths. */
static void note_pair(struct ca_slot *slot, unsigned layer, bool found, uint64_t share)
{
	struct ca_selection *sel = &ca_rt.session->selection;

	count_pair(&sel->pairs[layer], &sel->pairs_expected[layer], found, share);
	count_pair(&slot->pairs[layer], &slot->pairs_expected[layer], found, share);
}

/* Is it in S when another thread is? By its own pairs, and as long as these are few by those of all: ratio, of found to
 * expected, millionths. */
static uint64_t likely_in(struct ca_slot *slot, unsigned layer, uint64_t share, uint64_t ratio)
{
	uint64_t pairs = atomic_load_explicit(&slot->pairs[layer], memory_order_relaxed);
	uint64_t expected = atomic_load_explicit(&slot->pairs_expected[layer], memory_order_relaxed);
	uint64_t own = (pairs * CA_MILLION + PRIOR_OF_ONE * ratio) * CA_MILLION /
		       (expected + PRIOR_OF_ONE * CA_MILLION);
	uint64_t in = share * own / CA_MILLION;

	return in < CA_MILLION ? in : CA_MILLION;
}

/* The threads on a CPU that were found in that layer of S before, and how likely they are in it. Notes what
 * those that were looked at just now were at, too. */
static unsigned look_at_others(const struct ca_thread *t, unsigned layer, uint64_t now, struct other *other)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used();
	uint64_t pairs = atomic_load_explicit(&s->selection.pairs[layer], memory_order_relaxed) + PRIOR;
	uint64_t expected = atomic_load_explicit(&s->selection.pairs_expected[layer], memory_order_relaxed) +
			    PRIOR * CA_MILLION;
	uint64_t ratio = pairs * CA_MILLION * CA_MILLION / expected;
	unsigned n = 0;

	for (CA_SLOTS_IN(i, &s->in_s, used)) {
		struct ca_slot *slot = &s->slot[i];
		uint64_t look = atomic_load_explicit(&slot->last_look, memory_order_relaxed), in;
		uint64_t share = atomic_load_explicit(&slot->share_in_s[layer], memory_order_relaxed);

		if (i == t->number || !share || n == OTHERS ||
		    atomic_load_explicit(&slot->state, memory_order_relaxed) != CA_SLOT_LIVE ||
		    !is_on_cpu(i, look, now))
			continue;
		in = likely_in(slot, layer, share, ratio);
		if (is_one_instant(look, atomic_load_explicit(&slot->last_met, memory_order_relaxed), now))
			note_pair(slot, layer, (look & CA_LOOK_LAYERS) > layer, share);
		/* its own tick waits until it has paid, longer than an instant; it is not in S */
		else if (by_timer(slot) && atomic_load_explicit(&slot->paying, memory_order_relaxed))
			note_pair(slot, layer, false, share);
		other[n++] = (struct other){ i, in };
	}
	return n;
}

/* Timers tick in all threads at once, and whose look comes first is chance, or a matter of what it has to do: those hits count
 * as well that others had just before. */
static void pair_with_hits(struct ca_thread *t, uint64_t now, unsigned layers)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used();
	uint64_t met = atomic_load_explicit(&t->slot->last_met, memory_order_relaxed);

	for (CA_SLOTS_IN(i, &s->in_s, used)) {
		uint64_t look = atomic_load_explicit(&s->slot[i].last_look, memory_order_relaxed);

		if (i == t->number || !by_timer(&s->slot[i]) || !is_one_instant(look, met, now))
			continue;
		for (unsigned k = 0; k < (look & CA_LOOK_LAYERS); k++) {
			uint64_t share = atomic_load_explicit(&t->slot->share_in_s[k], memory_order_relaxed);

			if (share)
				note_pair(t->slot, k, layers > k, share);
		}
	}
}

CA_SIGSAFE void ca_history_looked_at_tick(struct ca_thread *t, uint64_t now, unsigned layers, uint64_t times)
{
	ca_history_looked(t, now, layers, times);
	if (by_timer(t->slot))
		pair_with_hits(t, now, layers);
}

CA_SIGSAFE uint64_t ca_history_hit(struct ca_thread *t, unsigned layer, uint64_t now, uint64_t weight)
{
	struct other other[OTHERS];
	unsigned n = look_at_others(t, layer, now, other);
	uint64_t sum = 0, value;

	for (unsigned i = 0; i < n; i++)
		sum += other[i].in;
	value = weight * one_of(n ? sum / n : 0, n) / CA_MILLION;
	/* of this the others do not owe what they were in S for: before the log has it, as in fine.c; and of
	 * the speedup the layer has a part only */
	for (unsigned i = 0; i < n && sum; i++)
		atomic_fetch_add_explicit(
			&ca_rt.session->fine[other[i].slot].exempt,
			ca_selection_weigh(t->width[layer], (weight - value) * other[i].in / sum),
			memory_order_relaxed);
	return value;
}

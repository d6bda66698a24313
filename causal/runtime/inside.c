/* SPDX-License-Identifier: MIT */
/* Who is in S, as one thread knows it from the log; see inside.h. Async-signal-safe, general registers only. */
#include "causal/runtime/inside.h"

enum {
	JUST_NOW = 100000, /* ns since another thread's look at the log ... */
	LATELY = 1000000,  /* ... where there are too many to ask all of them: ... */
	MANY = 64          /* ... more than this */
};

CA_SIGSAFE unsigned ca_inside_find(const struct ca_thread *t, uint32_t slot)
{
	unsigned i = 0;

	while (i < t->inside_count && t->inside_slot[i] != slot)
		i++;
	return i;
}

/* One who is not in it. */
static void inside_append(struct ca_thread *t, uint32_t slot, uint64_t part, uint8_t flag)
{
	unsigned i = t->inside_count;

	if (i == CA_INSIDE) {
		t->inside_more++; /* so many at once: somebody is at work */
		return;
	}
	t->inside_slot[i] = slot;
	t->inside_part[i] = ca_inside_limit_part(t, part);
	t->inside_flag[i] = flag;
	t->inside_off += flag == CA_INSIDE_OFF;
	t->inside_until[i] = UINT64_MAX;
	t->inside_count++;
}

static void inside_add(struct ca_thread *t, uint32_t slot, uint64_t part)
{
	unsigned i = ca_inside_find(t, slot);

	if (i < t->inside_count)
		t->inside_part[i] = ca_inside_limit_part(t, part);
	else
		inside_append(t, slot, part, 0);
}

static void inside_remove(struct ca_thread *t, uint32_t slot)
{
	unsigned i = ca_inside_find(t, slot);

	if (i >= t->inside_count) {
		t->inside_more -= t->inside_more > 0;
		return;
	}
	t->inside_off -= t->inside_flag[i] == CA_INSIDE_OFF;
	t->inside_count--;
	t->inside_slot[i] = t->inside_slot[t->inside_count];
	t->inside_flag[i] = t->inside_flag[t->inside_count];
	t->inside_part[i] = t->inside_part[t->inside_count];
	t->inside_until[i] = t->inside_until[t->inside_count];
}

static void inside_set_flag(struct ca_thread *t, uint32_t slot, uint8_t flag, uint64_t until)
{
	unsigned i = ca_inside_find(t, slot);

	if (i < t->inside_count) {
		ca_inside_set_flag(t, i, flag);
		t->inside_until[i] = until;
	}
}

static uint64_t between(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* It has looked not longer ago (or later), or it is in S since then. */
static bool knows(const struct ca_slot *slot, uint64_t experiment, uint64_t now, uint64_t ago)
{
	uint64_t until = atomic_load_explicit(&slot->s_until, memory_order_acquire);

	return until && atomic_load_explicit(&slot->experiment, memory_order_relaxed) == experiment &&
	       (between(now, until) < ago ||
		(until <= now && atomic_load_explicit(&slot->in_s, memory_order_relaxed) == CA_IN_S));
}

/* Who has looked lately: who has created this thread, or, where there are too many to ask all, the seer;
 * `used`: nobody. */
static uint32_t one_who_knows(const struct ca_thread *t, uint64_t now, uint32_t creator, uint32_t used)
{
	const struct ca_session *s = ca_rt.session;
	uint32_t seer = atomic_load_explicit(&s->seer, memory_order_relaxed);

	if (creator < used && knows(&s->slot[creator], t->experiment, now, JUST_NOW))
		return creator;
	if (used > MANY && seer < used && seer != t->number &&
	    knows(&s->slot[seer], t->experiment, now, LATELY))
		return seer;
	return used;
}

/* How far from `now` it was known. What is told on from thread to thread lacks what each has missed: who has it from the
 * log is asked even if he has looked so much earlier. */
static uint64_t distance(uint64_t now, uint64_t until, bool heard)
{
	return between(now, until) + (heard ? LATELY : 0);
}

/* The S time of the open experiment as that thread knows it, or else the one that has looked nearest to `now`, which
 * has passed where a wait was over before somebody ran again. */
static uint64_t s_time_of_others(const struct ca_thread *t, uint64_t now, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used(), one = one_who_knows(t, now, creator, used);
	uint32_t end = one < used ? one + 1 : used;
	uint64_t best = t->s_time, until = t->last, active = 0, nearest = distance(now, until, t->heard);

	for (uint32_t i = one < used ? one : 0; i < end; i++) {
		struct ca_slot *slot = &s->slot[i];
		uint64_t its = atomic_load_explicit(&slot->s_until, memory_order_acquire);
		bool heard = atomic_load_explicit(&slot->s_heard, memory_order_relaxed);

		if (i == t->number || !its || distance(now, its, heard) >= nearest ||
		    atomic_load_explicit(&slot->experiment, memory_order_relaxed) != t->experiment)
			continue;
		best = atomic_load_explicit(&slot->s_time, memory_order_relaxed);
		until = its;
		nearest = distance(now, its, heard);
	}
	for (unsigned k = 0; k < t->layers; k++)
		active += ca_inside_is_active(t, k) ? ca_inside_weigh(t, k, between(now, until)) : 0;
	return until <= now ? best + active : best - (active < best ? active : best);
}

CA_SIGSAFE uint64_t ca_inside_resynchronise(struct ca_thread *t, uint64_t now, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used();

	t->cursor = atomic_load_explicit(&s->log_head, memory_order_acquire);
	t->inside_count = t->inside_more = t->inside_off = 0;
	t->inside_me = t->depth > 0;
	t->inside_my_off = atomic_load_explicit(&t->slot->in_s, memory_order_relaxed) & CA_IN_S_OFF;
	t->inside_my_part = ca_inside_limit_part(t, t->part);
	for (CA_SLOTS_IN(i, &s->in_s, used)) {
		uint32_t how = atomic_load_explicit(&s->slot[i].in_s, memory_order_relaxed);

		if (i == t->number || !how)
			continue;
		inside_append(t, i, how / CA_IN_S_PART,
			      how & CA_IN_S_OFF        ? CA_INSIDE_OFF
			      : how & CA_IN_S_EXTERNAL ? CA_INSIDE_EXTERNAL
						       : 0);
	}
	return t->experiment & 1 ? s_time_of_others(t, now, creator) : t->s_time;
}

CA_SIGSAFE void ca_inside_change(struct ca_thread *t, const struct ca_log_entry *e)
{
	if (e->thread == t->number) {
		if (e->type == CA_LOG_ENTER || e->type == CA_LOG_EXIT)
			t->inside_me = e->type == CA_LOG_ENTER;
		t->inside_my_off = e->type == CA_LOG_OFF;
		if (e->type == CA_LOG_ENTER)
			t->inside_my_part = ca_inside_limit_part(t, e->value);
		return;
	}
	if (e->type == CA_LOG_ENTER) {
		inside_add(t, e->thread, e->value);
	} else if (e->type == CA_LOG_EXIT) {
		inside_remove(t, e->thread);
	} else if (e->type == CA_LOG_EXTERNAL) {
		inside_set_flag(t, e->thread, CA_INSIDE_EXTERNAL, e->value ? e->value : UINT64_MAX);
	} else {
		inside_set_flag(t, e->thread, e->type == CA_LOG_OFF ? CA_INSIDE_OFF : 0, UINT64_MAX);
	}
}

CA_SIGSAFE void ca_inside_undo(struct ca_thread *t, const struct ca_log_entry *e)
{
	bool external = e->type == CA_LOG_EXTERNAL || (e->type == CA_LOG_ON && e->value == CA_LOG_EXTERNAL);

	if (e->thread == t->number) {
		if (e->type == CA_LOG_ENTER || e->type == CA_LOG_EXIT)
			t->inside_me = e->type == CA_LOG_EXIT;
		t->inside_my_off = e->type == CA_LOG_ON && !external;
		if (e->type == CA_LOG_EXIT)
			t->inside_my_part = ca_inside_limit_part(t, e->value);
	} else if (e->type == CA_LOG_ENTER) {
		inside_remove(t, e->thread);
	} else if (e->type == CA_LOG_EXIT) {
		inside_add(t, e->thread, e->value);
	} else {
		inside_set_flag(t, e->thread,
				e->type != CA_LOG_ON ? 0
				: external           ? CA_INSIDE_EXTERNAL
						     : CA_INSIDE_OFF,
				UINT64_MAX);
	}
}

CA_SIGSAFE void ca_inside_read_layers(struct ca_thread *t)
{
	t->layers = (uint8_t)ca_selection_layers(&ca_rt.session->selection, t->width);
}

CA_SIGSAFE void ca_inside_clear(struct ca_thread *t)
{
	ca_inside_read_layers(t);
	t->inside_count = t->inside_more = t->inside_off = 0;
	t->inside_me = t->inside_my_off = false;
}

/* Now and then, as the line is everybody's. */
CA_SIGSAFE void ca_inside_tell(struct ca_thread *t, uint64_t now)
{
	uint32_t seer;

	if (now - t->seen < JUST_NOW || ca_rt_slots_used() <= MANY)
		return;
	t->seen = now;
	seer = atomic_load_explicit(&ca_rt.session->seer, memory_order_relaxed);
	if (t->heard && seer < ca_rt_slots_used() &&
	    !atomic_load_explicit(&ca_rt.session->slot[seer].s_heard, memory_order_relaxed) &&
	    knows(&ca_rt.session->slot[seer], t->experiment, now, LATELY))
		return; /* it knows better */
	if (seer != t->number)
		atomic_store_explicit(&ca_rt.session->seer, t->number, memory_order_relaxed);
}

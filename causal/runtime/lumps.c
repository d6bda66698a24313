/* SPDX-License-Identifier: MIT */
/* Lumps, spread over meetings; see lumps.h.
 *
 * Each place at which the thread meets others has an account of what became due on the way there. Of that a meeting
 * pays the part that its distance from the one before is of SPREAD periods, and what is expected to become due
 * in that time. So the account is even in the long run (a controller with a proportional and an integral part): who
 * owed the average of the last periods alone would end each experiment with debts. */
#include "causal/runtime/lumps.h"

enum {
	SPREAD = 16,     /* periods over which a lump is paid */
	LEARN = 4,       /* ... times that: what is expected is known by then */
	RATE_SHIFT = 20, /* of a place's rate: ns of S in 2^20 ns */
	STALE = 4,       /* times SPREAD periods: nobody comes there any more */
	KINDS = 32       /* of threads that end, at once */
};

CA_SIGSAFE static uint64_t spread(const struct ca_thread *t)
{
	uint64_t period = t->tick_length > ca_rt.period ? t->tick_length : ca_rt.period;

	return SPREAD * period;
}

CA_SIGSAFE static void owe(struct ca_thread *t, int64_t ns)
{
	t->owed += ns * (int64_t)t->speedup / (int64_t)CA_MILLION;
}

/* ---- threads that end ------------------------------------------------------------------------*/
/* A thread may live for less than a lump. So its end is a place like others, but the account is its kind's: shared by the
 * threads of the process, one at a time, and nobody waits for it. Ordinary context. */
struct kind {
	_Atomic bool busy;
	uint64_t experiment, selection; /* as in ca_thread */
	bool in_s;                      /* one of them was: who waits for them waits for S */
	struct ca_lump_site account;    /* its place is what they run */
};
static struct kind kinds[KINDS];

/* NULL: there is none, or somebody else has it. */
static struct kind *take_kind(const struct ca_thread *t, uint64_t now)
{
	struct kind *k = &kinds[(t->routine >> 4) % KINDS];

	/* acquire: pairs with the release of who had it */
	if (!t->routine || atomic_exchange_explicit(&k->busy, true, memory_order_acquire))
		return NULL;
	if (k->account.place != t->routine && k->account.place && now < k->account.seen + STALE * spread(t)) {
		atomic_store_explicit(&k->busy, false, memory_order_release);
		return NULL;
	}
	if (k->account.place != t->routine || k->selection != t->selection) {
		k->account = (struct ca_lump_site){ .place = t->routine };
		k->in_s = false;
	}
	if (k->experiment != t->experiment)
		k->account.due = k->account.left = 0;
	k->selection = t->selection;
	k->experiment = t->experiment;
	return k;
}

static void give_kind(struct kind *k)
{
	atomic_store_explicit(&k->busy, false, memory_order_release);
}

uintptr_t ca_lumps_last(struct ca_thread *t, uint64_t now)
{
	struct kind *k = ca_rt.session->selection.exact ? NULL : take_kind(t, now);
	int64_t fresh = t->lumps.fresh;

	if (k)
		k->in_s |= t->history.found[0] > 0;
	if (!k || k->in_s) {
		if (k)
			give_kind(k);
		ca_lumps_end(t);
		return 0;
	}
	for (unsigned i = 0; i < CA_LUMP_SITES; i++)
		fresh += t->lumps.site[i].due;
	t->lumps = (struct ca_lumps){ .fresh = fresh, .met = t->lumps.met, .site = { k->account } };
	k->account.due = k->account.left = 0;
	k->account.seen = now;
	give_kind(k);
	return t->routine;
}

void ca_lumps_leave(struct ca_thread *t)
{
	const struct ca_lump_site *mine = t->lumps.site;
	struct kind *k = mine->place == t->routine ? take_kind(t, mine->seen) : NULL;

	if (!k)
		return;
	k->account.due += mine->due + t->lumps.fresh;
	k->account.left += mine->left;
	k->account.rate = mine->rate;
	give_kind(k);
}

/* ---- meetings --------------------------------------------------------------------------------*/
/* Its account, or that of a place that it has not been at for longest, paid off. */
CA_SIGSAFE static struct ca_lump_site *find(struct ca_thread *t, uintptr_t place)
{
	struct ca_lump_site *oldest = t->lumps.site;

	for (unsigned i = 0; i < CA_LUMP_SITES; i++) {
		struct ca_lump_site *s = &t->lumps.site[i];

		if (s->place == place)
			return s;
		if (s->seen < oldest->seen)
			oldest = s;
	}
	owe(t, oldest->due);
	*oldest = (struct ca_lump_site){ .place = place };
	return oldest;
}

CA_SIGSAFE void ca_lumps_meet(struct ca_thread *t, uint64_t now, uintptr_t site)
{
	struct ca_lump_site *s = find(t, site);
	int64_t since = now > s->seen ? (int64_t)(now - s->seen) : 0, over = (int64_t)spread(t), part;

	t->lumps.met = now;
	s->seen = now;
	if (now < t->spins_until + CA_SPIN_GAP) /* it waits for others: on the way here nothing became due */
		return;
	s->due += t->lumps.fresh;
	t->lumps.fresh = 0;
	part = s->due;
	if (since < over) {
		s->rate += (((s->due - s->left) << RATE_SHIFT) - s->rate * since) / (LEARN * over);
		part = (s->rate * since >> RATE_SHIFT) + s->due * since / over;
		part = part > 0 ? part : 0;
	}
	owe(t, part);
	s->left = s->due -= part;
}

CA_SIGSAFE void ca_lumps_paid(struct ca_thread *t, uintptr_t site)
{
	if (!t->lumps.fresh)
		return;
	find(t, site)->due += t->lumps.fresh;
	t->lumps.fresh = 0;
}

CA_SIGSAFE void ca_lumps_tick(struct ca_thread *t, uint64_t now)
{
	uint64_t over = spread(t);

	if (now - t->lumps.met > over / SPREAD * 2) {
		owe(t, t->lumps.fresh);
		t->lumps.fresh = 0;
	}
	for (unsigned i = 0; i < CA_LUMP_SITES; i++) {
		struct ca_lump_site *s = &t->lumps.site[i];

		if (!s->due || now - s->seen < STALE * over)
			continue;
		owe(t, s->due);
		s->due = s->left = 0;
	}
}

CA_SIGSAFE void ca_lumps_end(struct ca_thread *t)
{
	int64_t due = t->lumps.fresh;

	for (unsigned i = 0; i < CA_LUMP_SITES; i++)
		due += t->lumps.site[i].due;
	owe(t, due);
	ca_lumps_begin(t, false);
}

CA_SIGSAFE void ca_lumps_begin(struct ca_thread *t, bool anew)
{
	t->lumps.fresh = 0;
	for (unsigned i = 0; i < CA_LUMP_SITES; i++) {
		struct ca_lump_site *s = &t->lumps.site[i];

		s->due = s->left = 0;
		if (anew)
			s->rate = 0;
	}
}

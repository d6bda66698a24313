/* SPDX-License-Identifier: MIT */
/* The ledger: who owes how much delay, and paying it. doc/METHOD.md has the theory.
 *
 * All threads append what happens to the selected code S to one log in the session; each
 * thread reads the log on its own and keeps a replica of who is in S. What it owes is
 * p x (time in which somebody else was in S while it was itself on a CPU outside S). There
 * is no lock, and nobody waits for anybody: a process may die at any point.
 * S may have parts with speedups of their own. Then it is a pile of layers, each an S of all parts that have
 * at least so much speedup, and what is owed and inserted is the sum over them.
 *
 * Any thread: handler, hooks and wrappers, always with the thread's guard held. Uses
 * general registers only and calls nothing that might use others. */
#include "causal/runtime/ledger.h"
#include "causal/runtime/catch_up.h"
#include "causal/runtime/timeline.h"
#include "core/cpu.h"
#include "core/paying.h"
#include "core/sys.h"
#include <time.h>

enum {
	OFFS = 16,            /* off-CPU intervals looked at per stretch of time */
	LEAST = 1000,         /* ns; smaller debts wait */
	JUST_NOW = 100000,    /* ns since another thread's look at the log ... */
	LATELY = 1000000,     /* ... where there are too many to ask all of them: ... */
	MANY = 64,            /* ... more than this */
	SHORT = 2000,         /* ns; what is paid so quickly is counted by itself: see pay_slice */
	SLICE = 20000,        /* ns paid between two looks at the log */
	GAP = 200000,         /* ns between two clock readings: we were not running */
	PAST = 32,            /* times off a CPU that are looked at when it is walked back */
	FAR_BACK = 4096,      /* entries, at most */
	IN_VAIN = 3,          /* slices in a row in which nothing was paid: give up */
	LONGEST = 50000000,   /* ns paid in one go; then the program gets a turn */
	WORTH_A_NAP = 200000, /* ns owed that are worth a sleep */
	NAP = 1000000         /* ns slept between two looks at the log, and at who else is at work, at most */
};

CA_SIGSAFE bool ca_ledger_open(void)
{
	return atomic_load_explicit(&ca_rt.session->experiment.seq, memory_order_acquire) & 1;
}

CA_SIGSAFE void ca_ledger_log(enum ca_log_type type, struct ca_thread *t, uint64_t time, uint64_t value)
{
	struct ca_session *s = ca_rt.session;

	ca_selection_append(&s->log_head, s->log, type, t->number, time, value);
	if (type == CA_LOG_ENTER || type == CA_LOG_EXIT)
		ca_timeline_tell(t, type == CA_LOG_ENTER ? CA_BURST_BEGIN : CA_BURST_END, CA_KEY_IN_S, time,
				 s->selection.region);
}

/* ---- the replica of who is in S ------------------------------------------------*/
enum { FLAG_OFF = 1, FLAG_EXTERNAL = 2 };

static unsigned inside_find(const struct ca_thread *t, uint32_t slot)
{
	unsigned i = 0;

	while (i < t->inside_count && t->inside_slot[i] != slot)
		i++;
	return i;
}

static uint8_t limit_part(const struct ca_thread *t, uint64_t part)
{
	return part < t->layers ? (uint8_t)part : (uint8_t)(t->layers ? t->layers - 1 : 0);
}

static void inside_add(struct ca_thread *t, uint32_t slot, uint64_t part)
{
	unsigned i = inside_find(t, slot);

	if (i < t->inside_count) {
		t->inside_part[i] = limit_part(t, part);
		return;
	}
	if (t->inside_count < CA_INSIDE) {
		t->inside_slot[t->inside_count] = slot;
		t->inside_part[t->inside_count] = limit_part(t, part);
		t->inside_flag[t->inside_count++] = 0;
	} else {
		t->inside_more++; /* so many at once: somebody is at work */
	}
}

static void inside_remove(struct ca_thread *t, uint32_t slot)
{
	unsigned i = inside_find(t, slot);

	if (i >= t->inside_count) {
		t->inside_more -= t->inside_more > 0;
		return;
	}
	t->inside_count--;
	t->inside_slot[i] = t->inside_slot[t->inside_count];
	t->inside_flag[i] = t->inside_flag[t->inside_count];
	t->inside_part[i] = t->inside_part[t->inside_count];
	t->inside_until[i] = t->inside_until[t->inside_count];
}

static void inside_set_flag(struct ca_thread *t, uint32_t slot, uint8_t flag, uint64_t until)
{
	unsigned i = inside_find(t, slot);

	if (i < t->inside_count) {
		t->inside_flag[i] = flag;
		t->inside_until[i] = until;
	}
}

/* Is somebody else at work in that layer of S? */
static bool active(const struct ca_thread *t, unsigned layer)
{
	for (unsigned i = 0; i < t->inside_count; i++)
		if (t->inside_flag[i] != FLAG_OFF && t->inside_part[i] >= layer)
			return true;
	return t->inside_more > 0;
}

/* Are we in it, as the log has it? */
static bool inside_layer(const struct ca_thread *t, unsigned layer)
{
	return t->inside_me && t->inside_my_part >= layer;
}

static uint64_t weigh(const struct ca_thread *t, unsigned layer, uint64_t ns)
{
	return ca_selection_weigh(t->width[layer], ns);
}

/* It has looked not longer ago, or it is in S since then. */
static bool knows(const struct ca_slot *slot, uint64_t experiment, uint64_t now, uint64_t ago)
{
	uint64_t until = atomic_load_explicit(&slot->s_until, memory_order_acquire);

	return until && until <= now &&
	       atomic_load_explicit(&slot->experiment, memory_order_relaxed) == experiment &&
	       (now - until < ago || atomic_load_explicit(&slot->in_s, memory_order_relaxed) == CA_IN_S);
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

/* The S time of the open experiment as that thread knows it, or else the one that has looked last. */
static uint64_t s_time_of_others(const struct ca_thread *t, uint64_t now, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used(), one = one_who_knows(t, now, creator, used);
	uint32_t end = one < used ? one + 1 : used;
	uint64_t best = t->s_time, until = t->last;

	for (uint32_t i = one < used ? one : 0; i < end; i++) {
		struct ca_slot *slot = &s->slot[i];
		uint64_t its = atomic_load_explicit(&slot->s_until, memory_order_acquire);

		if (i == t->number || its <= until || its > now ||
		    atomic_load_explicit(&slot->experiment, memory_order_relaxed) != t->experiment)
			continue;
		best = atomic_load_explicit(&slot->s_time, memory_order_relaxed);
		until = its;
	}
	for (unsigned k = 0; k < t->layers; k++)
		best += active(t, k) ? weigh(t, k, now - until) : 0;
	return best;
}

/* New, or too far behind the log: start from what the slots say now. Returns the S time of the open
 * experiment up to `now`. */
static uint64_t resynchronise(struct ca_thread *t, uint64_t now, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = ca_rt_slots_used();

	t->cursor = atomic_load_explicit(&s->log_head, memory_order_acquire);
	t->inside_count = t->inside_more = 0;
	t->inside_me = t->depth > 0;
	t->inside_my_part = limit_part(t, t->part);
	for (CA_SLOTS_IN(i, &s->in_s, used)) {
		uint32_t how = atomic_load_explicit(&s->slot[i].in_s, memory_order_relaxed);

		if (i == t->number || !how)
			continue;
		inside_add(t, i, how / CA_IN_S_PART);
		if (how & (CA_IN_S_OFF | CA_IN_S_EXTERNAL))
			inside_set_flag(t, i, how & CA_IN_S_OFF ? FLAG_OFF : FLAG_EXTERNAL, UINT64_MAX);
	}
	return t->experiment & 1 ? s_time_of_others(t, now, creator) : t->s_time;
}

/* ---- how much of a stretch of time is owed for -----------------------------------*/
struct account {
	struct ca_thread *t;
	uint64_t at;           /* accounted up to here */
	uint64_t start;        /* nothing before this counts ... */
	uint64_t end;          /* ... and nothing from here on */
	uint64_t time;         /* S time to owe for, ns */
	uint64_t s_time;       /* S time, ns, whoever owes for it; off-CPU times in S included */
	uint64_t back, s_back; /* of earlier looks, ns: it was none, as we hear now */
	const enum ca_wait *wait;
	struct past *past; /* what is looked at is past: what is known of it by now */
};

/* Times off a CPU, as they were told; the last one first, so that for each thread they are in order. */
struct past {
	unsigned n;
	bool mine_external; /* we wait for the outside, in S */
	struct was_off {
		uint32_t thread;
		uint64_t from, to;
	} off[PAST];
};

static void remember_off(struct past *past, const struct ca_log_entry *e)
{
	if (past->n < PAST)
		past->off[PAST - ++past->n] = (struct was_off){ e->thread, e->time, e->value };
}

static unsigned off_as_told(const struct past *past, uint32_t thread, uint64_t a, uint64_t b,
			    struct ca_interval *out)
{
	unsigned n = 0;

	for (unsigned k = PAST - past->n; k < PAST && n < OFFS; k++) {
		const struct was_off *off = &past->off[k];

		if (off->thread == thread && off->from < b && off->to > a)
			out[n++] = (struct ca_interval){ off->from > a ? off->from : a,
							 off->to < b ? off->to : b };
	}
	return n;
}

/* Of a thread of this process that has a switch log, -1: of none. */
static int off_as_seen(uint32_t number, uint64_t a, uint64_t b, struct ca_interval *out)
{
	struct ca_thread *other = atomic_load_explicit(&ca_rt.by_slot[number], memory_order_acquire);
	int n = -1;

	if (!other)
		return n;
	/* Pairs with thread.c: a thread that leaves clears by_slot, then waits for readers. */
	atomic_fetch_add_explicit(&other->readers, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&ca_rt.by_slot[number], memory_order_seq_cst) == other &&
	    other->switches.page)
		n = (int)ca_switches_off(&other->switches, a, b, out, OFFS);
	atomic_fetch_sub_explicit(&other->readers, 1, memory_order_release);
	return n;
}

CA_SIGSAFE bool ca_ledger_was_off(uint32_t number, uint64_t ns, bool unknown)
{
	struct ca_interval off[OFFS];
	int n = off_as_seen(number, ns, ns + 1, off);

	return n < 0 ? unknown : n > 0;
}

/* When was thread i of those in S off the CPU? Returns how many intervals; none: not known, or
 * never. */
static unsigned off_of_one(const struct account *a, unsigned i, uint64_t from, uint64_t to,
			   struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	int n;

	if (t->inside_flag[i] == FLAG_OFF) {
		out[0] = (struct ca_interval){ from, to };
		return 1;
	}
	if (t->inside_flag[i] & FLAG_EXTERNAL) {
		out[0] = (struct ca_interval){ t->inside_until[i] > from ? t->inside_until[i] : from, to };
		return out[0].from < to;
	}
	n = off_as_seen(t->inside_slot[i], from, to, out);
	if (n < 0)
		n = a->past ? (int)off_as_told(a->past, t->inside_slot[i], from, to, out) : 0;
	return (unsigned)n;
}

/* What two sorted lists have in common; out may not be one of them. */
static unsigned common(const struct ca_interval *x, unsigned nx, const struct ca_interval *y, unsigned ny,
		       struct ca_interval *out)
{
	unsigned n = 0;

	for (unsigned i = 0, j = 0; i < nx && j < ny && n < OFFS;) {
		uint64_t from = x[i].from > y[j].from ? x[i].from : y[j].from;
		uint64_t to = x[i].to < y[j].to ? x[i].to : y[j].to;

		if (from < to)
			out[n++] = (struct ca_interval){ from, to };
		if (x[i].to < y[j].to)
			i++;
		else
			j++;
	}
	return n;
}

/* The times in which all threads in that layer of S were off the CPU: with more threads than cores, those
 * that were preempted in S are not at work there. */
static unsigned off_of_all(const struct account *a, unsigned layer, uint64_t from, uint64_t to,
			   struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	struct ca_interval one[OFFS], before[OFFS];
	bool first = true;
	unsigned n = 0;

	for (unsigned i = 0; i < t->inside_count && !t->inside_more; i++) {
		unsigned m;

		if (t->inside_part[i] < layer)
			continue;
		m = off_of_one(a, i, from, to, first ? out : one);
		if (!first) {
			for (unsigned k = 0; k < n; k++)
				before[k] = out[k];
			m = common(before, n, one, m, out);
		}
		first = false;
		n = m;
		if (!n)
			break; /* one was at work all the time */
	}
	return n;
}

/* Length of the union of two sorted lists of intervals. */
static uint64_t union_length(const struct ca_interval *x, unsigned nx, const struct ca_interval *y,
			     unsigned ny)
{
	uint64_t length = 0, until = 0;
	unsigned i = 0, j = 0;

	while (i < nx || j < ny) {
		bool take_x = j >= ny || (i < nx && x[i].from <= y[j].from);
		uint64_t from = take_x ? x[i].from : y[j].from;
		uint64_t to = take_x ? x[i].to : y[j].to;

		if (take_x)
			i++;
		else
			j++;
		if (from < until)
			from = until;
		if (to > from)
			length += to - from;
		if (to > until)
			until = to;
	}
	return length;
}

/* We are outside of that layer of S, another thread is in it. */
static void count_overlap(struct account *a, unsigned layer, uint64_t from, uint64_t to)
{
	struct ca_interval own[OFFS], other[OFFS];
	unsigned n = 0, m;

	m = off_of_all(a, layer, from, to, other);
	if (!a->wait)
		n = ca_switches_off(&a->t->switches, from, to, own, OFFS);
	a->time += weigh(a->t, layer, to - from - union_length(own, n, other, m));
	a->s_time += weigh(a->t, layer, to - from - union_length(NULL, 0, other, m));
}

/* We are in it ourselves, and not in a wait for others, in which S does not go on: nothing is owed, but
 * virtual time wants to know. While we are off the CPU others may be at work in it. */
static void count_own(struct account *a, unsigned layer, uint64_t from, uint64_t to)
{
	struct ca_interval own[OFFS], other[OFFS], all[OFFS];
	const struct ca_interval *off = own;
	unsigned n = 0;

	if (!a->wait)
		n = ca_switches_off(&a->t->switches, from, to, own, OFFS);
	if (n && active(a->t, layer)) {
		n = common(own, n, other, off_of_all(a, layer, from, to, other), all);
		off = all;
	}
	a->s_time += weigh(a->t, layer, to - from - union_length(off, n, NULL, 0));
}

static void advance(struct account *a, uint64_t to)
{
	uint64_t from = a->at > a->start ? a->at : a->start, until = to < a->end ? to : a->end;

	for (unsigned k = 0; until > from && k < a->t->layers; k++)
		if (inside_layer(a->t, k) && !(a->wait && *a->wait == CA_WAIT_OTHERS))
			count_own(a, k, from, until);
		else if (active(a->t, k))
			count_overlap(a, k, from, until);
	if (to > a->at)
		a->at = to;
}

/* A sample in S by somebody else: were we on a CPU outside S at that instant? */
static void count_hit(struct account *a, const struct ca_log_entry *e, uint64_t ns)
{
	struct ca_interval off;

	if (!a->wait && ca_switches_off(&a->t->switches, e->time, e->time + 1, &off, 1))
		return;
	a->time += ns;
}

/* Who is in S from this entry on. */
static void change(struct ca_thread *t, const struct ca_log_entry *e)
{
	if (e->thread == t->number) {
		if (e->type == CA_LOG_ENTER || e->type == CA_LOG_EXIT)
			t->inside_me = e->type == CA_LOG_ENTER;
		if (e->type == CA_LOG_ENTER)
			t->inside_my_part = limit_part(t, e->value);
		return;
	}
	if (e->type == CA_LOG_ENTER) {
		inside_add(t, e->thread, e->value);
	} else if (e->type == CA_LOG_EXIT) {
		inside_remove(t, e->thread);
	} else if (e->type == CA_LOG_EXTERNAL) {
		inside_set_flag(t, e->thread, FLAG_EXTERNAL, e->value ? e->value : UINT64_MAX);
	} else {
		inside_set_flag(t, e->thread, e->type == CA_LOG_OFF ? FLAG_OFF : 0, UINT64_MAX);
	}
}

/* ---- what is heard of later ------------------------------------------------------------------------
 * A thread's switch log can be read in its own process only, and some threads have none. So the time that one
 * is preempted in S passes for work until it tells. Then the log is walked back to that time, and what has
 * counted for no other reason is taken back. */
static void undo(struct account *a, const struct ca_log_entry *e)
{
	struct ca_thread *t = a->t;
	bool external = e->type == CA_LOG_EXTERNAL || (e->type == CA_LOG_ON && e->value == CA_LOG_EXTERNAL);

	if (e->thread == t->number) {
		if (e->type == CA_LOG_ENTER || e->type == CA_LOG_EXIT)
			t->inside_me = e->type == CA_LOG_EXIT;
		if (e->type == CA_LOG_EXIT)
			t->inside_my_part = limit_part(t, e->value);
		if (external)
			a->past->mine_external = e->type == CA_LOG_ON;
	} else if (e->type == CA_LOG_ENTER) {
		inside_remove(t, e->thread);
	} else if (e->type == CA_LOG_EXIT) {
		inside_add(t, e->thread, e->value);
	} else {
		inside_set_flag(t, e->thread,
				e->type != CA_LOG_ON ? 0
				: external           ? FLAG_EXTERNAL
						     : FLAG_OFF,
				UINT64_MAX);
	}
}

/* When were we off a CPU ourselves? Without a switch log, as we have told; and in a wait for others we owed
 * nothing: what lies before the end of the last one is not given back. */
static unsigned own_off(const struct account *a, uint64_t from, uint64_t to, struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	struct ca_interval told[OFFS];
	unsigned n = 0, m;

	if (t->switches.page)
		return ca_switches_off(&t->switches, from, to, out, OFFS);
	if (t->owing_since > from) {
		out[n++] = (struct ca_interval){ from, t->owing_since < to ? t->owing_since : to };
		from = out[0].to;
	}
	m = from < to ? off_as_told(a->past, t->number, from, to, told) : 0;
	for (unsigned i = 0; i < m && n < OFFS; i++)
		out[n++] = told[i];
	return n;
}

/* In [from, to) nothing has changed but that the thread, which was in S, turns out to have been off the CPU. */
static void take_back_in(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct ca_thread *t = a->t;
	struct ca_interval own[OFFS], nobody[OFFS], both[OFFS];
	bool mine = thread == t->number;
	unsigned i = inside_find(t, thread), n_own, layers;

	if (mine ? !t->inside_me || a->past->mine_external : i >= t->inside_count || t->inside_flag[i])
		return;
	layers = 1U + (mine ? t->inside_my_part : t->inside_part[i]);
	if (!mine)
		t->inside_flag[i] = FLAG_OFF;
	n_own = own_off(a, from, to, own);
	for (unsigned k = 0; k < layers; k++) {
		unsigned n = 1;
		uint64_t all, off;

		nobody[0] = (struct ca_interval){ from, to };
		if (active(t, k))
			n = off_of_all(a, k, from, to, nobody);
		all = union_length(nobody, n, NULL, 0);
		off = union_length(both, common(own, n_own, nobody, n, both), NULL, 0);
		if (mine || !inside_layer(t, k)) {
			a->s_back += weigh(t, k, all);
			a->back += mine ? 0 : weigh(t, k, all - off);
		} else if (!a->past->mine_external) {
			a->s_back += weigh(t, k, off);
		}
	}
	if (!mine)
		t->inside_flag[i] = 0;
}

/* Back in the log as far as `from`, or as it is worth. Returns where that is. */
static uint64_t walk_back(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct ca_session *s = ca_rt.session;
	uint64_t at = a->t->cursor;

	while (at > s->selection.log_start && a->t->cursor - at < FAR_BACK && to > from) {
		struct ca_log_entry e;

		if (ca_selection_look(s->log, at - 1, UINT64_MAX, &e) != CA_LOG_THERE)
			break;
		at--;
		if (e.type == CA_LOG_WAS_OFF) {
			remember_off(a->past, &e);
		} else if (e.type != CA_LOG_HIT) {
			if (e.time < to) {
				take_back_in(a, thread, e.time > from ? e.time : from, to);
				to = e.time;
			}
			undo(a, &e);
		}
	}
	if (to > from)
		take_back_in(a, thread, from, to);
	return at;
}

static void take_back(struct account *a, const struct ca_log_entry *e)
{
	struct past past = { 0 };
	uint64_t from = e->time > a->start ? e->time : a->start, to = e->value < a->end ? e->value : a->end;

	/* Switch logs of this process are read anyway. Without one it is told how long a thread was off between two
	 * ticks, as if that were the end of them: who owes for a moment of that time would get it back although S
	 * ran. So of this process only what we tell ourselves is taken back. */
	if (e->thread == a->t->number
		    ? a->t->switches.page != NULL
		    : atomic_load_explicit(&ca_rt.by_slot[e->thread], memory_order_relaxed) != NULL)
		return;
	advance(a, e->value);
	if (from >= to)
		return;
	a->past = &past;
	for (uint64_t at = walk_back(a, e->thread, from, to); at < a->t->cursor; at++) {
		struct ca_log_entry again;

		if (ca_selection_look(ca_rt.session->log, at, UINT64_MAX, &again) == CA_LOG_THERE &&
		    again.type != CA_LOG_HIT && again.type != CA_LOG_WAS_OFF)
			change(a->t, &again);
	}
	a->past = NULL;
}

static void apply(struct account *a, const struct ca_log_entry *e)
{
	struct ca_thread *t = a->t;

	if (e->type == CA_LOG_HIT) {
		unsigned layer = limit_part(t, CA_LOG_HIT_LAYER(e->value));
		uint64_t ns = weigh(t, layer, CA_LOG_HIT_NS(e->value));

		/* while S is active for certain, that time counts as a whole */
		if (e->time < a->start || e->time >= a->end || inside_layer(t, layer) || active(t, layer))
			return;
		a->s_time += ns;
		if (e->thread != t->number)
			count_hit(a, e, ns);
	} else if (e->type == CA_LOG_WAS_OFF) {
		take_back(a, e);
	} else {
		/* what comes late holds from here on; the conductor alone accounts for what has passed */
		advance(a, e->time);
		change(t, e);
	}
}

/* x * part / whole, for ns of up to an hour; part <= whole, 0 < whole. */
static uint64_t share(uint64_t x, uint64_t part, uint64_t whole)
{
	unsigned shift = whole >> 31 ? 11 : 0;

	return (x >> shift) * (part >> shift) / (whole >> shift) << shift;
}

/* We cannot know what happened to S since our last look, but others do; for all of that time in which
 * we were on a CPU we owe. */
static void catch_up(struct account *a, uint64_t now)
{
	struct ca_thread *t = a->t;
	struct ca_interval own[OFFS];
	uint64_t missed = resynchronise(t, now, UINT32_MAX) - t->s_time, wall = now - a->at, on = wall;

	if (now > a->at && a->start != UINT64_MAX && missed < UINT64_MAX / 2) {
		if (!a->wait)
			on -= union_length(own, ca_switches_off(&t->switches, a->at, now, own, OFFS), NULL,
					   0);
		a->s_time += missed;
		if (!t->inside_me)
			a->time += share(missed, on, wall);
	}
	a->at = now;
}

static void read_log(struct account *a, uint64_t now)
{
	struct ca_session *s = ca_rt.session;
	struct ca_thread *t = a->t;
	uint64_t head = atomic_load_explicit(&s->log_head, memory_order_acquire);

	if (head - t->cursor > CA_LOG_ENTRIES / 2) {
		catch_up(a, now);
		return;
	}
	for (; t->cursor < head; t->cursor++) {
		struct ca_log_entry e;
		enum ca_log_look look = ca_selection_look(s->log, t->cursor, head, &e);

		if (look == CA_LOG_NOT_YET)
			break;
		if (look == CA_LOG_THERE)
			apply(a, &e);
	}
	advance(a, now);
}

/* Without a switch log: of what there was to owe for since the last look, our share of the CPU counts. */
static void scale_by_cpu(struct account *a, uint64_t now, uint64_t *exempt)
{
	struct ca_thread *t = a->t;
	uint64_t cpu = ca_clock_thread_cpu(), wall = now - t->last, used = cpu - t->last_cpu;

	t->last_cpu = cpu;
	if (a->wait || used >= wall || wall > UINT64_C(4000000000))
		return;
	a->time = a->time * used / wall;
	a->back = a->back * used / wall;
	*exempt = *exempt * used / wall;
}

/* Account for what happened up to `now`; of that, what comes after `end` is nobody's. */
static void account(struct ca_thread *t, uint64_t now, uint64_t end, const enum ca_wait *wait)
{
	struct account a = { .t = t, .wait = wait, .at = t->last, .end = end };
	bool open = t->experiment & 1;
	uint64_t exempt;

	if (t->settling) /* of what is over one may still hear more */
		a.end = ca_rt.session->experiment.end;
	a.start = open || t->settling ? t->start : UINT64_MAX;
	read_log(&a, now);
	/* of the hits in the log those at which we were in S ourselves */
	exempt = atomic_load_explicit(&t->fine->exempt, memory_order_relaxed) - t->fine_exempt;
	t->fine_exempt += exempt;
	if (open && t->speedup && !t->switches.page)
		scale_by_cpu(&a, now, &exempt);
	t->last = a.at; /* what has come to the log since may be later than `now` */
	if (wait && *wait == CA_WAIT_OTHERS)
		t->owing_since = t->last;
	if (!open && !t->settling)
		return;
	a.back += exempt;
	t->s_time += a.s_time;
	t->s_time -= a.s_back < t->s_time ? a.s_back : t->s_time;
	if (!(wait && *wait == CA_WAIT_OTHERS))
		t->owed += (int64_t)(a.time * t->speedup / CA_MILLION) -
			   (int64_t)(a.back * t->speedup / CA_MILLION);
	atomic_store_explicit(&t->slot->s_time, t->s_time, memory_order_relaxed);
	atomic_store_explicit(&t->slot->s_until, now < a.end ? now : a.end, memory_order_release);
	/* now and then, as the line is everybody's */
	if (now - t->seen < JUST_NOW || ca_rt_slots_used() <= MANY)
		return;
	t->seen = now;
	if (atomic_load_explicit(&ca_rt.session->seer, memory_order_relaxed) != t->number)
		atomic_store_explicit(&ca_rt.session->seer, t->number, memory_order_relaxed);
}

/* ---- experiments that come and go ------------------------------------------------------------*/
static void settled_up_to(struct ca_thread *t)
{
	/* acquire: pairs with the conductor's release, after settled_delay */
	t->settled_seq = atomic_load_explicit(&ca_rt.session->settled_seq, memory_order_acquire);
	t->settled = atomic_load_explicit(&ca_rt.session->settled_delay, memory_order_relaxed);
	t->s_time = 0;
	t->settling = false;
}

static void opened(struct ca_thread *t, uint64_t experiment)
{
	const struct ca_experiment *x = &ca_rt.session->experiment;

	t->experiment = experiment;
	t->speedup = x->speedup;
	t->start = x->start;
	settled_up_to(t);
	t->limit = t->settled;
	t->owed = 0;
	if (x->start > t->last)
		t->last = x->start;
	atomic_store_explicit(&t->slot->paid, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->owed, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->ahead, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->s_until, 0, memory_order_relaxed);
	atomic_store_explicit(&t->slot->experiment, t->experiment, memory_order_release);
}

/* What came since our last look, up to the experiment's end, is still owed. */
static void closed(struct ca_thread *t, const enum ca_wait *wait)
{
	uint64_t end = ca_rt.session->experiment.end;

	if (end > t->last)
		account(t, end, end, wait);
	t->experiment++;
	t->settling = true;
}

static void follow_experiment(struct ca_thread *t, const enum ca_wait *wait)
{
	struct ca_session *s = ca_rt.session;
	uint64_t seq = atomic_load_explicit(&s->experiment.seq, memory_order_acquire);
	bool over = !(seq & 1), settled;

	if (seq == t->experiment && (!over || t->settled_seq == seq))
		return;
	settled = over && atomic_load_explicit(&s->settled_seq, memory_order_acquire) == seq;
	if (seq != t->experiment) {
		uint64_t experiment = over ? seq - 1 : seq;

		/* one that came and went unseen counts as long as its D is not known otherwise */
		if (t->experiment != experiment && seq && !settled) {
			opened(t, experiment);
			if (!t->switches.page)
				t->last_cpu = ca_clock_thread_cpu();
		}
		if (over && t->experiment == experiment)
			closed(t, wait);
		t->experiment = seq;
	}
	if (settled)
		settled_up_to(t);
}

static void read_layers(struct ca_thread *t)
{
	t->layers = (uint8_t)ca_selection_layers(&ca_rt.session->selection, t->width);
}

static void follow(struct ca_thread *t, const enum ca_wait *wait)
{
	struct ca_session *s = ca_rt.session;
	uint64_t selection = atomic_load_explicit(&s->selection.seq, memory_order_acquire);

	if (selection != t->selection && !(selection & 1)) {
		t->selection = selection;
		t->cursor = s->selection.log_start;
		read_layers(t);
		t->inside_count = t->inside_more = 0;
		t->inside_me = false;
		t->checked = false;
		t->looks = 0;
		for (unsigned k = 0; k < CA_PARTS; k++) {
			t->looks_in[k] = 0;
			atomic_store_explicit(&t->slot->share_in_s[k], 0, memory_order_relaxed);
		}
		/* The exit of what was selected before may be gone before we pass it; and its entry may have
		 * been logged when others went by the new selection already. */
		if (t->depth)
			ca_ledger_log(CA_LOG_EXIT, t, ca_clock_now(), 0);
		t->depth = 0;
		atomic_store_explicit(&t->slot->in_s, 0, memory_order_relaxed);
		/* what has been timed belongs to the selection before: see ca_fine_due */
		atomic_store_explicit(&t->fine->outer, 0, memory_order_relaxed);
		atomic_store_explicit(&t->fine->limit, INT64_MIN, memory_order_relaxed);
	}
	follow_experiment(t, wait);
}

CA_SIGSAFE void ca_ledger_follow(struct ca_thread *t)
{
	follow(t, t->waiting);
}

CA_SIGSAFE void ca_ledger_accrue(struct ca_thread *t, uint64_t now, const enum ca_wait *wait)
{
	follow(t, wait);
	if (now >= t->last)
		account(t, now, UINT64_MAX, wait);
}

void ca_ledger_join(struct ca_thread *t, uint32_t creator)
{
	struct ca_session *s = ca_rt.session;
	uint64_t now;

	t->selection = atomic_load_explicit(&s->selection.seq, memory_order_acquire) & ~UINT64_C(1);
	read_layers(t);
	t->experiment = atomic_load_explicit(&s->experiment.seq, memory_order_acquire);
	if (t->experiment & 1)
		opened(t, t->experiment);
	else
		settled_up_to(t);
	ca_catch_up_runs(t);
	now = ca_clock_now();
	t->s_time = resynchronise(t, now, creator);
	t->last = t->owing_since = now;
}

/* ---- virtual time --------------------------------------------------------------------------*/
static uint64_t delay_so_far(const struct ca_thread *t)
{
	return t->s_time / CA_MILLION * t->speedup + t->s_time % CA_MILLION * t->speedup / CA_MILLION;
}

static uint64_t caught_up(void)
{
	return atomic_load_explicit(&ca_rt.session->caught_up, memory_order_relaxed);
}

/* Of what was inserted, virtual time lags by what it has not caught up. Two accounts differ a little. */
static uint64_t lag_of(uint64_t inserted)
{
	uint64_t caught = caught_up();

	return inserted > caught ? inserted - caught : 0;
}

CA_SIGSAFE bool ca_ledger_lag_moves(const struct ca_thread *t)
{
	uint64_t seq = atomic_load_explicit(&ca_rt.session->experiment.seq, memory_order_acquire);

	return seq != t->experiment || (seq & 1 ? t->speedup != 0 : t->settled_seq != seq);
}

CA_SIGSAFE uint64_t ca_ledger_lag(struct ca_thread *t, uint64_t now)
{
	ca_ledger_accrue(t, now, t->waiting);
	return lag_of(t->settled + delay_so_far(t));
}

CA_SIGSAFE uint64_t ca_ledger_virtual(struct ca_thread *t, uint64_t now)
{
	const struct ca_experiment *x = &ca_rt.session->experiment;
	uint64_t start, delay;

	ca_ledger_accrue(t, now, t->waiting);
	start = x->start - (caught_up() - x->caught_up);
	delay = delay_so_far(t);
	return now > start + delay ? now - start - delay : 0;
}

/* ---- paying -----------------------------------------------------------------------*/
static uint64_t spin_until(uint64_t now, uint64_t until, uint64_t *lost)
{
	uint64_t next = now;

	do {
		for (int i = 0; i < 4; i++)
			ca_cpu_pause();
		now = next;
		next = ca_clock_now();
		if (next - now > GAP)
			*lost += next - now;
	} while (next < until);
	return next;
}

/* Time that counts as paid in [from, to): only while we held the CPU. */
static uint64_t held(struct ca_thread *t, uint64_t from, uint64_t to, uint64_t lost)
{
	struct ca_interval off[OFFS];
	unsigned n;

	if (!t->switches.page)
		return to - from > lost ? to - from - lost : 0;
	n = ca_switches_off(&t->switches, from, to, off, OFFS);
	return to - from - union_length(off, n, NULL, 0);
}

static void settle(struct ca_thread *t, uint64_t began, uint64_t paid, unsigned how)
{
	if (paid) {
		ca_timeline_delay(t, began, paid, how);
		atomic_fetch_add_explicit(&t->slot->paid, paid, memory_order_relaxed);
		if (how == CA_DELAY_SPUN)
			atomic_fetch_add_explicit(&t->slot->spun, paid, memory_order_relaxed);
	}
	atomic_store_explicit(&t->slot->owed, t->owed > 0 ? (uint64_t)t->owed : 0, memory_order_relaxed);
	if (atomic_load_explicit(&t->slot->paying, memory_order_relaxed))
		ca_paying_end(ca_rt.session, t->slot, ca_clock_now());
}

/* ns in which nothing but time was paid, beside what is counted in the session. */
static void paying_more(struct ca_thread *t, uint64_t ns)
{
	atomic_fetch_add_explicit(&t->slot->paying_more, ns, memory_order_relaxed);
}

/* Threads that pay little and often would fight for the word that counts who pays. As a sum over threads
 * their time is at least as long as with overlaps taken out. Returns when it ended. */
static uint64_t pay_slice(struct ca_thread *t, uint64_t now, uint64_t *lost)
{
	uint64_t slice = t->owed < SLICE ? (uint64_t)t->owed : SLICE, next;

	if (slice >= SHORT)
		ca_paying_begin(ca_rt.session, t->slot, now);
	next = spin_until(now, now + slice, lost);
	if (!atomic_load_explicit(&t->slot->paying, memory_order_relaxed))
		paying_more(t, next - now);
	return next;
}

CA_SIGSAFE void ca_ledger_pay(struct ca_thread *t)
{
	uint64_t now = ca_clock_now(), began = now, paid = 0;
	unsigned in_vain = 0;

	ca_ledger_accrue(t, now, NULL);
	while (t->owed >= LEAST && in_vain < IN_VAIN && !ca_rt_is_in_s(t) && !t->sampled_in &&
	       now - began < LONGEST && atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		uint64_t lost = 0, next = pay_slice(t, now, &lost), got = held(t, now, next, lost);

		/* a child of vfork: it runs, and the thread whose record it uses does not */
		in_vain = got ? 0 : in_vain + 1;
		t->owed -= (int64_t)got;
		paid += got;
		ca_ledger_accrue(t, next, NULL);
		now = next;
		if (ca_rt_conductor_is_gone(now))
			t->owed = 0;
	}
	settle(t, began, paid, CA_DELAY_SPUN);
}

CA_SIGSAFE uint64_t ca_ledger_wait_on(struct ca_thread *t)
{
	/* who is in S waits for a feed, and S does not go on */
	const enum ca_wait wait = t->depth ? CA_WAIT_OTHERS : CA_WAIT_EXTERNAL;
	uint64_t began = ca_clock_now(), now = began, slept = 0;

	while (t->owed >= LEAST && atomic_load_explicit(&ca_rt.on, memory_order_relaxed)) {
		uint64_t lag = lag_of(t->settled + delay_so_far(t)), caught, next;
		struct timespec nap = { 0, t->owed < NAP ? (long)t->owed : NAP };

		t->owed -= (int64_t)ca_catch_up(t, (uint64_t)t->owed, lag);
		if (t->owed < WORTH_A_NAP)
			break;
		caught = caught_up();
		/* to the others it is still in its wait, and by that much they may catch up */
		ca_catch_up_waits(t, lag > (uint64_t)t->owed ? lag - (uint64_t)t->owed : 0);
		ca_paying_begin(ca_rt.session, t->slot, now);
		t->guard--; /* the program's handlers may come in, and leave by longjmp */
		ca_sys(SYS_nanosleep, (long)(intptr_t)&nap, 0, 0, 0, 0, 0);
		t->guard++;
		ca_catch_up_runs(t);
		next = ca_clock_now();
		t->owed -= (int64_t)(next - now + (caught_up() - caught));
		slept += next - now;
		ca_ledger_accrue(t, next, &wait);
		now = next;
		if (ca_rt_conductor_is_gone(now))
			t->owed = 0;
	}
	settle(t, began, slept, CA_DELAY_SLEPT);
	return slept;
}

CA_SIGSAFE void ca_ledger_limit(struct ca_thread *t, uint64_t lag, uint64_t length)
{
	uint64_t grown = lag > t->limit ? lag - t->limit : 0;

	if (t->experiment & 1)
		paying_more(t, grown < length ? grown : length);
	t->limit = lag;
}

/* SPDX-License-Identifier: MIT */
/* What a thread owes for; see account.h. Reads the selection log, entry by entry, beside the switch logs of this
 * process. Async-signal-safe, general registers only. */
#include "causal/runtime/account.h"
#include "causal/runtime/inside.h"
#include "core/sys.h"
#include <sys/syscall.h>

enum {
	PAST = 32,       /* times off a CPU that are looked at when it is walked back */
	FAR_BACK = 4096, /* entries, at most, of all that one look hears of */
	FAR = 1024,      /* entries behind the log: what they cost to read is no longer nothing */
	EXIT_SPINS = 10000
};

struct account {
	struct ca_thread *t;
	uint64_t at;           /* accounted up to here */
	uint64_t start;        /* nothing before this counts ... */
	uint64_t end;          /* ... and nothing from here on */
	uint64_t time;         /* S time to owe for, ns ... */
	uint64_t lumps;        /* ... and by samples */
	uint64_t own;          /* in S ourselves, on a CPU, ns */
	uint64_t s_time;       /* S time, ns, whoever owes for it; off-CPU times in S included */
	uint64_t back, s_back; /* ns: it was none, as we hear now; of earlier looks ... */
	uint64_t back_now;     /* ... and of what lies since the last one */
	const enum ca_wait *wait;
	struct past *past; /* what is looked at is past: what is known of it by now */
	uint64_t walked;   /* entries back, so far */
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
			    struct ca_interval *out, unsigned most)
{
	unsigned n = 0;

	for (unsigned k = PAST - past->n; k < PAST && n < most; k++) {
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
	/* a thread that leaves clears by_slot, or its log, then waits for readers, as below */
	atomic_fetch_add_explicit(&other->readers, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&ca_rt.by_slot[number], memory_order_seq_cst) == other &&
	    __atomic_load_n(&other->switches.page, __ATOMIC_SEQ_CST))
		n = (int)ca_switches_off(&other->switches, a, b, out, CA_ACCOUNT_OFFS);
	atomic_fetch_sub_explicit(&other->readers, 1, memory_order_release);
	return n;
}

CA_SIGSAFE void ca_account_wait_for_readers(struct ca_thread *t)
{
	/* seq_cst: pairs with off_as_seen, where a reader counts itself and then looks at by_slot and the log */
	for (int i = 0; i < EXIT_SPINS && atomic_load_explicit(&t->readers, memory_order_seq_cst); i++)
		if (i > 100)
			ca_sys(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

CA_SIGSAFE bool ca_account_was_off(uint32_t number, uint64_t ns, bool unknown)
{
	struct ca_interval off[CA_ACCOUNT_OFFS];
	int n = off_as_seen(number, ns, ns + 1, off);

	return n < 0 ? unknown : n > 0;
}

/* When was thread i of those at work in S off the CPU? Returns how many intervals; none: not known, or
 * never. */
static unsigned off_of_one(const struct account *a, unsigned i, uint64_t from, uint64_t to,
			   struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	int n;

	if (t->inside_flag[i] & CA_INSIDE_EXTERNAL) {
		out[0] = (struct ca_interval){ t->inside_until[i] > from ? t->inside_until[i] : from, to };
		return out[0].from < to;
	}
	n = off_as_seen(t->inside_slot[i], from, to, out);
	if (n < 0)
		n = a->past ? (int)off_as_told(a->past, t->inside_slot[i], from, to, out, CA_ACCOUNT_OFFS)
			    : 0;
	return (unsigned)n;
}

/* What two sorted lists have in common; out may not be one of them. */
static unsigned common(const struct ca_interval *x, unsigned nx, const struct ca_interval *y, unsigned ny,
		       struct ca_interval *out)
{
	unsigned n = 0;

	for (unsigned i = 0, j = 0; i < nx && j < ny && n < CA_ACCOUNT_OFFS;) {
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
 * that were preempted in S are not at work there. Somebody is at work in it: those that wait all the time make no
 * difference. */
static unsigned off_of_all(const struct account *a, unsigned layer, uint64_t from, uint64_t to,
			   struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	struct ca_interval one[CA_ACCOUNT_OFFS], before[CA_ACCOUNT_OFFS];
	bool first = true;
	unsigned n = 0;

	for (unsigned i = 0, left = t->inside_more ? 0 : t->inside_count - t->inside_off; left; i++) {
		unsigned m;

		if (t->inside_flag[i] == CA_INSIDE_OFF)
			continue;
		left--;
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

CA_SIGSAFE uint64_t ca_account_union(const struct ca_interval *x, unsigned nx, const struct ca_interval *y,
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
	struct ca_interval own[CA_ACCOUNT_OFFS], other[CA_ACCOUNT_OFFS];
	unsigned n = 0, m;

	m = off_of_all(a, layer, from, to, other);
	if (!a->wait)
		n = ca_switches_off(&a->t->switches, from, to, own, CA_ACCOUNT_OFFS);
	a->time += ca_inside_weigh(a->t, layer, to - from - ca_account_union(own, n, other, m));
	a->s_time += ca_inside_weigh(a->t, layer, to - from - ca_account_union(NULL, 0, other, m));
}

/* We are in it ourselves, and not in a wait for others, in which S does not go on: nothing is owed, but
 * virtual time wants to know. While we are off the CPU others may be at work in it. */
static void count_own(struct account *a, unsigned layer, uint64_t from, uint64_t to)
{
	struct ca_interval own[CA_ACCOUNT_OFFS], other[CA_ACCOUNT_OFFS], all[CA_ACCOUNT_OFFS];
	const struct ca_interval *off = own;
	unsigned n = 0;

	if (!a->wait)
		n = ca_switches_off(&a->t->switches, from, to, own, CA_ACCOUNT_OFFS);
	a->own += ca_inside_weigh(a->t, layer, to - from - ca_account_union(own, n, NULL, 0));
	if (n && ca_inside_is_active(a->t, layer)) {
		n = common(own, n, other, off_of_all(a, layer, from, to, other), all);
		off = all;
	}
	a->s_time += ca_inside_weigh(a->t, layer, to - from - ca_account_union(off, n, NULL, 0));
}

static void advance(struct account *a, uint64_t to)
{
	uint64_t from = a->at > a->start ? a->at : a->start, until = to < a->end ? to : a->end;

	for (unsigned k = 0; until > from && k < a->t->layers; k++)
		if (ca_inside_is_mine(a->t, k) && !a->t->inside_my_off &&
		    !(a->wait && *a->wait == CA_WAIT_OTHERS))
			count_own(a, k, from, until);
		else if (ca_inside_is_active(a->t, k))
			count_overlap(a, k, from, until);
	if (to > a->at)
		a->at = to;
}

/* A sample in S by somebody else: were we on a CPU outside S at that instant, and not just spinning until somebody
 * else is through? */
static void count_hit(struct account *a, const struct ca_log_entry *e, uint64_t ns)
{
	struct ca_interval off;

	if ((e->time >= a->t->spins_since && e->time <= a->t->spins_until) ||
	    (!a->wait && ca_switches_off(&a->t->switches, e->time, e->time + 1, &off, 1)))
		return;
	if (ca_rt.session->selection.exact)
		a->time += ns;
	else
		a->lumps += ns;
}

static void add_hit(struct account *a, const struct ca_log_entry *e, unsigned layer)
{
	uint64_t ns = ca_inside_weigh(a->t, layer, CA_LOG_HIT_NS(e->value));

	a->s_time += ns;
	if (e->thread != a->t->number)
		count_hit(a, e, ns);
}

/* All stand still, in S or not; so does whoever has said so. */
static void add_still(struct account *a, const struct ca_log_entry *e)
{
	struct ca_interval off;

	if (e->time < a->start || e->time >= a->end)
		return;
	a->s_time += e->value;
	if (e->type == CA_LOG_STILL && e->thread != a->t->number &&
	    (a->wait || !ca_switches_off(&a->t->switches, e->time, e->time + 1, &off, 1)))
		a->time += e->value;
}

/* ---- what is heard of later ------------------------------------------------------------------------
 * A thread's switch log can be read in its own process only, and some threads have none. So the time that one
 * is preempted in S passes for work until it tells. Then the log is walked back to that time, and what has
 * counted for no other reason is taken back. */
/* When were we off a CPU ourselves, up to the last look? Without a switch log, as we have told of S, or the CPU clock; and in
 * a wait for others we owed nothing: what lies before the end of the last one is not given back. */
static unsigned own_off(const struct account *a, uint64_t from, uint64_t to, struct ca_interval *out)
{
	const struct ca_thread *t = a->t;
	unsigned n = 0;

	if (t->switches.page)
		return ca_switches_off(&t->switches, from, to, out, CA_ACCOUNT_OFFS);
	if (t->owing_since > from) {
		out[n++] = (struct ca_interval){ from, t->owing_since < to ? t->owing_since : to };
		from = out[0].to;
	}
	if (t->inside_me)
		return from < to ? n + off_as_told(a->past, t->number, from, to, out + n, CA_ACCOUNT_OFFS - n)
				 : n;
	for (uint32_t i = t->offs < CA_OFFS ? 0 : t->offs - CA_OFFS; i < t->offs && n < CA_ACCOUNT_OFFS;
	     i++) {
		const struct ca_interval *off = &t->off[i % CA_OFFS];

		if (off->from < to && off->to > from)
			out[n++] = (struct ca_interval){ off->from > from ? off->from : from,
							 off->to < to ? off->to : to };
	}
	return n;
}

/* x * part / whole, for ns of up to an hour; part <= whole, 0 < whole. */
static uint64_t share(uint64_t x, uint64_t part, uint64_t whole)
{
	unsigned shift = whole >> 31 ? 11 : 0;

	return (x >> shift) * (part >> shift) / (whole >> shift) << shift;
}

static void give_back(struct account *a, uint64_t from, uint64_t to, uint64_t ns)
{
	uint64_t last = a->t->last, before = last <= from ? 0
					     : last >= to ? ns
							  : share(ns, last - from, to - from);

	a->back += before;
	a->back_now += ns - before;
}

/* In [from, to) nothing has changed but that the thread, which was in S, turns out to have been off the CPU. */
static void take_back_in(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct ca_thread *t = a->t;
	struct ca_interval own[CA_ACCOUNT_OFFS], nobody[CA_ACCOUNT_OFFS], both[CA_ACCOUNT_OFFS];
	bool mine = thread == t->number;
	unsigned i = ca_inside_find(t, thread), n_own, layers;

	if (mine ? !t->inside_me || t->inside_my_off || a->past->mine_external
		 : i >= t->inside_count || t->inside_flag[i])
		return;
	layers = 1U + (mine ? t->inside_my_part : t->inside_part[i]);
	if (!mine)
		ca_inside_set_flag(t, i, CA_INSIDE_OFF);
	n_own = own_off(a, from, to, own);
	for (unsigned k = 0; k < layers; k++) {
		unsigned n = 1;
		uint64_t all, off;

		nobody[0] = (struct ca_interval){ from, to };
		if (ca_inside_is_active(t, k))
			n = off_of_all(a, k, from, to, nobody);
		all = ca_account_union(nobody, n, NULL, 0);
		off = ca_account_union(both, common(own, n_own, nobody, n, both), NULL, 0);
		if (mine || !ca_inside_is_mine(t, k)) {
			a->s_back += ca_inside_weigh(t, k, all);
			give_back(a, from, to, mine ? 0 : ca_inside_weigh(t, k, all - off));
		} else if (!a->past->mine_external) {
			a->s_back += ca_inside_weigh(t, k, off);
		}
	}
	if (!mine)
		ca_inside_set_flag(t, i, 0);
}

static void undo(struct account *a, const struct ca_log_entry *e)
{
	bool external = e->type == CA_LOG_EXTERNAL || (e->type == CA_LOG_ON && e->value == CA_LOG_EXTERNAL);

	ca_inside_undo(a->t, e);
	if (e->thread == a->t->number && external)
		a->past->mine_external = e->type == CA_LOG_ON;
}

/* That it did not wait is told last, and holds from the wait's beginning on. */
static bool tells_of_no_wait(const struct ca_log_entry *e, uint32_t thread, uint64_t from)
{
	return e->thread == thread && e->type == CA_LOG_ON && e->value == CA_LOG_EXTERNAL && e->time <= from;
}

/* Back in the log as far as `from`, or as it is worth. Returns where that is. */
static uint64_t walk_back(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct ca_session *s = ca_rt.session;
	uint64_t at = a->t->cursor;

	while (at > s->selection.log_start && a->walked < FAR_BACK && to > from) {
		struct ca_log_entry e;

		if (ca_selection_look(s->log, at - 1, UINT64_MAX, &e) != CA_LOG_THERE)
			break;
		at--;
		a->walked++;
		if (e.type == CA_LOG_WAS_OFF) {
			remember_off(a->past, &e);
		} else if (ca_selection_moves(e.type) && !tells_of_no_wait(&e, thread, from)) {
			if (e.time < to) {
				take_back_in(a, thread, e.time > from ? e.time : from, to);
				to = e.time;
			}
			undo(a, &e);
		}
	}
	if (to > from && at <= s->selection.log_start) /* else nobody knows what was before */
		take_back_in(a, thread, from, to);
	return at;
}

static bool is_at_work(const struct ca_thread *t, unsigned layer)
{
	return ca_inside_is_mine(t, layer) || ca_inside_is_active(t, layer);
}

static bool is_in(const struct ca_thread *t, uint32_t thread)
{
	unsigned i = ca_inside_find(t, thread);

	return thread == t->number ? t->inside_me : i < t->inside_count && !t->inside_flag[i];
}

static void set_off(struct ca_thread *t, uint32_t thread, bool off)
{
	unsigned i = ca_inside_find(t, thread);

	if (thread == t->number)
		t->inside_me = !off;
	else if (i < t->inside_count)
		ca_inside_set_flag(t, i, off ? CA_INSIDE_OFF : 0);
}

/* Samples in [from, to) did not count, as that thread passed for one at work in S, which it entered before. They do if
 * nobody else was. */
static void count_hits_after_all(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct ca_session *s = ca_rt.session;
	struct ca_thread *t = a->t;
	uint64_t at = t->cursor;
	struct ca_log_entry e;

	if (!is_in(t, thread))
		return;
	set_off(t, thread, true);
	while (at > s->selection.log_start && a->walked < FAR_BACK &&
	       ca_selection_look(s->log, at - 1, UINT64_MAX, &e) == CA_LOG_THERE &&
	       !(e.thread == thread && e.type == CA_LOG_ENTER)) {
		unsigned layer = ca_inside_limit_part(t, CA_LOG_HIT_LAYER(e.value));

		at--;
		a->walked++;
		if (ca_selection_moves(e.type) && e.thread != thread)
			ca_inside_undo(t, &e);
		if (e.type == CA_LOG_HIT && e.time >= from && e.time < to && !is_at_work(t, layer))
			add_hit(a, &e, layer);
	}
	for (; at < t->cursor; at++)
		if (ca_selection_look(s->log, at, UINT64_MAX, &e) == CA_LOG_THERE &&
		    ca_selection_moves(e.type) && e.thread != thread)
			ca_inside_change(t, &e);
	set_off(t, thread, false);
}

static void take_back_time(struct account *a, uint32_t thread, uint64_t from, uint64_t to)
{
	struct past past = { 0 };

	if (from >= to)
		return;
	a->past = &past;
	for (uint64_t at = walk_back(a, thread, from, to); at < a->t->cursor; at++) {
		struct ca_log_entry again;

		if (ca_selection_look(ca_rt.session->log, at, UINT64_MAX, &again) == CA_LOG_THERE &&
		    ca_selection_moves(again.type))
			ca_inside_change(a->t, &again);
	}
	a->past = NULL;
}

static bool has_latencies(const struct ca_session *s)
{
	uint32_t points = atomic_load_explicit(&s->points_used, memory_order_acquire);

	for (uint32_t p = 0; p < points && p < CA_MAX_POINTS; p++)
		if (s->point[p].kind == CA_POINT_BEGIN)
			return true;
	return false;
}

/* Of virtual time alone, which has to be one for all where a visit that one thread begins another one may end. Elsewhere
 * what a thread owes is what its visits are later by. */
static void take_back_lag(struct account *a, const struct ca_log_entry *e, uint64_t from, uint64_t to)
{
	uint64_t back = a->back, now = a->back_now;

	advance(a, e->value);
	take_back_time(a, e->thread, from, to);
	a->back = back;
	a->back_now = now;
}

static void take_back(struct account *a, const struct ca_log_entry *e)
{
	uint64_t from = e->time > a->start ? e->time : a->start, to = e->value < a->end ? e->value : a->end;
	bool mine = e->thread == a->t->number, exact = ca_rt.session->selection.exact;
	bool seen = mine ? a->t->switches.page != NULL
			 : atomic_load_explicit(&ca_rt.by_slot[e->thread], memory_order_relaxed) != NULL;

	/* Switch logs of this process are read anyway. Without one it is told how long a thread was off between two
	 * ticks, as if that were the end of them: who owes for a moment of that time would get it back although S
	 * ran. So of this process only what we tell ourselves is taken back ... */
	if (seen && exact) {
		if (!mine && !a->t->switches.page && has_latencies(ca_rt.session))
			take_back_lag(a, e, from, to);
		return;
	}
	/* ... and, where S is sampled, what has passed for another's wait for the outside until this was told: as much
	 * of it as we have looked at by now. */
	if (!seen || !mine) {
		uint64_t looked = seen && to > a->at ? a->at : to;

		advance(a, e->value);
		take_back_time(a, e->thread, from, looked);
	}
	if (!exact)
		count_hits_after_all(a, e->thread, from, to);
}

static void apply(struct account *a, const struct ca_log_entry *e)
{
	struct ca_thread *t = a->t;

	if (e->type == CA_LOG_HIT || e->type == CA_LOG_PROBES) {
		unsigned layer = ca_inside_limit_part(t, CA_LOG_HIT_LAYER(e->value));

		/* while S is active for certain, that time counts as a whole */
		if (e->time >= a->start && e->time < a->end && !is_at_work(t, layer))
			add_hit(a, e, layer);
	} else if (e->type == CA_LOG_STILL || e->type == CA_LOG_HELD) {
		add_still(a, e);
	} else if (e->type == CA_LOG_WAS_OFF) {
		take_back(a, e);
	} else {
		/* what comes late holds from here on; the conductor alone accounts for what has passed */
		advance(a, e->time);
		ca_inside_change(t, e);
	}
}

/* We cannot know what happened to S since our last look, but others do; for all of that time in which
 * we were on a CPU we owe. */
static void catch_up(struct account *a, uint64_t now)
{
	struct ca_thread *t = a->t;
	struct ca_interval own[CA_ACCOUNT_OFFS];
	uint64_t missed = ca_inside_resynchronise(t, now, UINT32_MAX) - t->s_time, wall = now - a->at,
		 on = wall;

	if (now > a->at && a->start != UINT64_MAX && missed < UINT64_MAX / 2) {
		if (!a->wait)
			on -= ca_account_union(
				own, ca_switches_off(&t->switches, a->at, now, own, CA_ACCOUNT_OFFS), NULL,
				0);
		a->s_time += missed;
		t->heard = true;
		atomic_store_explicit(&t->slot->s_heard, 1, memory_order_relaxed);
		if (!t->inside_me)
			a->time += share(missed, on, wall);
	}
	a->at = now;
}

/* Thousands of threads that wait meanwhile would each read all that the others have written. Who has waited owes for
 * nothing, or for all of that time, as everybody owes nothing at 0 %; so he needs to know how long S was active, and
 * not when. Others know that up to their last visit, but where S is timed, up to their last tick only. */
static bool is_far_behind(const struct account *a, uint64_t entries)
{
	const struct ca_selection *sel = &ca_rt.session->selection;

	return entries > CA_LOG_ENTRIES / 2 || (entries > FAR && sel->exact && !sel->fine &&
						(a->wait || !a->t->speedup || a->start == UINT64_MAX));
}

static void read_log(struct account *a, uint64_t now)
{
	struct ca_session *s = ca_rt.session;
	struct ca_thread *t = a->t;
	uint64_t head = atomic_load_explicit(&s->log_head, memory_order_acquire);

	if (is_far_behind(a, head - t->cursor)) {
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

CA_SIGSAFE uint64_t ca_account_read_cpu(struct ca_thread *t, uint64_t now)
{
	if (now == t->cpu_read_at)
		return now;
	if (t->cpu_known_at && now - t->cpu_known_at < CA_ACCOUNT_UNSURE) {
		t->cpu_read = t->cpu_known + (now - t->cpu_known_at);
	} else {
		t->cpu_read = t->cpu_known = ca_clock_thread_cpu();
		/* a thread is preempted where a system call returns, more than anywhere else */
		t->cpu_known_at = now = ca_clock_now();
	}
	return t->cpu_read_at = now;
}

/* Without a switch log: of what there was to owe for since the last look, our share of the CPU counts. The log may
 * have led beyond `now`: we were off the CPU since. */
static void scale_by_cpu(struct account *a, uint64_t now, uint64_t *exempt)
{
	struct ca_thread *t = a->t;
	uint64_t wall = a->at - t->last, used;

	ca_account_read_cpu(t, now);
	used = t->cpu_read - t->last_cpu;
	if ((int64_t)used < 0) /* it had lost it, after all */
		used = 0;
	t->last_cpu = t->cpu_read;
	if (wall > used + CA_ACCOUNT_UNSURE)
		t->off[t->offs++ % CA_OFFS] = (struct ca_interval){ a->at - (wall - used), a->at };
	if (a->wait || used >= wall || wall > UINT64_C(4000000000))
		return;
	a->time = a->time * used / wall;
	a->lumps = a->lumps * used / wall;
	a->own = a->own * used / wall;
	a->back_now = a->back_now * used / wall;
	*exempt = *exempt * used / wall;
}

CA_SIGSAFE void ca_account_bring(struct ca_thread *t, uint64_t now, uint64_t end, const enum ca_wait *wait)
{
	struct account a = { .t = t, .wait = wait, .at = t->last, .end = end };
	bool open = t->experiment & 1;
	uint64_t exempt;
	int64_t exempted = 0;

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
	a.back += a.back_now;
	t->level.beyond += a.own * t->speedup / CA_MILLION;
	t->s_time += a.s_time;
	t->s_time -= a.s_back < t->s_time ? a.s_back : t->s_time;
	if (ca_rt.session->selection.exact)
		a.back += exempt;
	else
		exempted = (int64_t)exempt;
	if (!(wait && *wait == CA_WAIT_OTHERS)) {
		t->owed += (int64_t)(a.time * t->speedup / CA_MILLION) -
			   (int64_t)(a.back * t->speedup / CA_MILLION);
		t->lumps.fresh += (int64_t)a.lumps - exempted;
	}
	atomic_store_explicit(&t->slot->s_time, t->s_time, memory_order_relaxed);
	atomic_store_explicit(&t->slot->s_until, now < a.end ? now : a.end, memory_order_release);
	ca_inside_tell(t, now);
}

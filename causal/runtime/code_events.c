/* SPDX-License-Identifier: MIT */
/* Events of the program's own; see code_events.h and include/causal_trace.h. Raised where the program
 * does, its signal handlers included, with the guard held: no tick of ours comes between. */
#include "causal/runtime/code_events.h"
#include "causal/runtime/code_sites.h"
#include "causal/runtime/thread.h"
#include "causal/runtime/timeline.h"
#include "core/log.h"
#include <errno.h>

/* ---- ids by place ------------------------------------------------------------------------------*/
enum { PLACES = 4096 /* a power of two */, TRIES = 16 };

/* Of a key in the program, by its address. */
struct place {
	_Atomic(const struct causal_trace_key_ *) key;
	_Atomic uint64_t id; /* generation << 32 | id; id 0: it has none */
};
static struct place place[PLACES];

static uint32_t look_up(const struct causal_trace_key_ *key)
{
	const char *name = key->name ? key->name : "", *where = key->where ? key->where : "";
	const struct ca_name *clash;
	uint32_t id = ca_names_key(ca_rt.names, name, where, key->id, &clash);

	if (id)
		return id;
	if (clash)
		ca_log(CA_LOG_ERROR,
		       "event \"%s\" with id %u (%s) is not traced: \"%s\" has id %u (%s); "
		       "give it another name or id",
		       name, (unsigned)key->id, where, clash->text,
		       (unsigned)atomic_load_explicit(&clash->id, memory_order_relaxed), clash->where);
	else
		ca_log(CA_LOG_ERROR, "event \"%s\" (%s) is not traced: there are %d names already", name,
		       where, (int)CA_NAMES);
	return 0;
}

static uint64_t now_known(void)
{
	return (uint64_t)atomic_load_explicit(&ca_code_sites_generation, memory_order_relaxed) << 32;
}

static bool is_known(uint64_t id)
{
	return (id & ~(uint64_t)UINT32_MAX) == now_known();
}

static uint32_t usual_place(const struct causal_trace_key_ *key)
{
	return (uint32_t)(((uintptr_t)key >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 40);
}

/* NULL: there are too many. */
static struct place *find_place(const struct causal_trace_key_ *key)
{
	uint32_t start = usual_place(key);

	for (unsigned i = 0; i < TRIES; i++) {
		struct place *p = &place[(start + i) % PLACES];
		const struct causal_trace_key_ *there = atomic_load_explicit(&p->key, memory_order_relaxed);

		if (there == key ||
		    (!there && (atomic_compare_exchange_strong(&p->key, &there, key) || there == key)))
			return p;
	}
	return NULL;
}

static bool is_state(unsigned kind)
{
	return kind == CAUSAL_TRACE_KIND_STATE_ || kind == CAUSAL_TRACE_KIND_SUBSTATE_;
}

/* value: that is raised. 0: it is not to be raised. */
static uint32_t id_of(const struct causal_trace_key_ *key, uint64_t value)
{
	struct place *p = find_place(key);
	uint64_t known = p ? atomic_load_explicit(&p->id, memory_order_relaxed) : 0;
	uint32_t id;

	if (p && is_known(known))
		return (uint32_t)known;
	id = look_up(key);
	if (id && key->label) /* 1: of a function itself */
		ca_names_value(ca_rt.names, id, is_state(key->kind) ? value : 1, key->label, key->where);
	if (p)
		atomic_store_explicit(&p->id, now_known() | id, memory_order_relaxed);
	return id;
}

/* An update names its first value. */
static bool is_first(const struct causal_trace_key_ *key)
{
	struct place *p = find_place(key);

	return !p || !is_known(atomic_exchange_explicit(&p->id, now_known() | 1, memory_order_relaxed));
}

/* Does anybody want it? */
static bool is_wanted(uint32_t id)
{
	return id && !atomic_load_explicit(&ca_rt.names->off[id], memory_order_relaxed);
}

/* ---- bursts and states -------------------------------------------------------------------------*/
/* What one call raises, with one time. */
struct group {
	struct ca_thread *t;
	uint64_t time;
	size_t n;
	struct ca_event event[2 * CA_OPENS + 4];
};

static void add(struct group *g, enum ca_event_kind kind, uint32_t key, uint64_t value)
{
	g->event[g->n++] =
		(struct ca_event){ .time = g->time, .kind = (uint16_t)kind, .key = key, .value = value };
}

static void begin(struct group *g, enum ca_event_kind kind, uint32_t key, uint64_t value)
{
	struct ca_thread *t = g->t;

	add(g, kind, key, value);
	if (t->opens < CA_OPENS)
		t->open[t->opens++] = (struct ca_open){ key, kind, value };
	else
		t->too_deep++;
}

static void begin_burst(struct group *g, uint32_t key, uint64_t value)
{
	begin(g, CA_BURST_BEGIN, key, value);
}

static enum ca_event_kind end_of(enum ca_event_kind begin)
{
	return (enum ca_event_kind)(begin + 1);
}

/* The innermost open one of the key; CA_OPENS: none is known. */
static uint32_t find_kind(const struct ca_thread *t, enum ca_event_kind kind, uint32_t key)
{
	for (uint32_t i = t->opens; i-- > 0;)
		if (t->open[i].key == key && t->open[i].kind == kind)
			return i;
	return CA_OPENS;
}

/* The same with that value. */
static uint32_t find_open(const struct ca_thread *t, uint32_t key, uint64_t value)
{
	for (uint32_t i = t->opens; i-- > 0;)
		if (t->open[i].key == key && t->open[i].value == value)
			return i;
	return CA_OPENS;
}

static void close_at(struct group *g, uint32_t at)
{
	struct ca_thread *t = g->t;

	add(g, end_of((enum ca_event_kind)t->open[at].kind), t->open[at].key, t->open[at].value);
	t->opens--;
	for (; at < t->opens; at++)
		t->open[at] = t->open[at + 1];
}

/* Those that lie too deep to be known end first. */
static void end(struct group *g, enum ca_event_kind kind, uint32_t key)
{
	uint32_t at = find_kind(g->t, kind, key);

	if (g->t->too_deep) {
		g->t->too_deep--;
		add(g, end_of(kind), key, 0);
	} else if (at < CA_OPENS) {
		close_at(g, at);
	} else {
		add(g, end_of(kind), key, 0);
	}
}

static void update(struct group *g, uint32_t key, uint64_t value)
{
	uint32_t at = find_kind(g->t, CA_BURST_BEGIN, key);

	add(g, CA_BURST_END, key, at < CA_OPENS ? g->t->open[at].value : 0);
	add(g, CA_BURST_BEGIN, key, value);
	if (at < CA_OPENS)
		g->t->open[at].value = value;
}

/* ---- mutexes -----------------------------------------------------------------------------------*/
enum { MUTEXES = 4096 /* a power of two */, WAITING = 1 };

/* By its address. Where the table is full, they have one in common. */
static uint64_t number_of(uint64_t mutex)
{
	static struct {
		_Atomic uint64_t mutex, number;
	} table[MUTEXES];
	uint32_t start = (uint32_t)((mutex >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> 40);

	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t there, number;

		there = atomic_load_explicit(&table[(start + i) % MUTEXES].mutex, memory_order_relaxed);
		if (!there &&
		    atomic_compare_exchange_strong(&table[(start + i) % MUTEXES].mutex, &there, mutex)) {
			number = CA_FIRST_MUTEX +
				 atomic_fetch_add_explicit(&ca_rt.names->mutexes, 1, memory_order_relaxed);
			atomic_store_explicit(&table[(start + i) % MUTEXES].number, number,
					      memory_order_relaxed);
			return number;
		}
		number = atomic_load_explicit(&table[(start + i) % MUTEXES].number, memory_order_relaxed);
		if (there == mutex && number)
			return number;
	}
	return UINT32_MAX;
}

static void mutex(struct group *g, unsigned kind, uint64_t address)
{
	uint32_t at = find_open(g->t, CA_KEY_MUTEX, WAITING);

	if (kind == CAUSAL_TRACE_KIND_WAITING_) {
		begin_burst(g, CA_KEY_MUTEX, WAITING);
		return;
	}
	if (at < CA_OPENS) /* it waits no longer, whether it has got it or not */
		close_at(g, at);
	if (kind == CAUSAL_TRACE_KIND_LOCKED_) {
		begin_burst(g, CA_KEY_MUTEX, number_of(address));
	} else if (at == CA_OPENS) {
		at = find_open(g->t, CA_KEY_MUTEX, number_of(address));
		if (at < CA_OPENS)
			close_at(g, at);
	}
}

/* ---- tasks -------------------------------------------------------------------------------------*/
enum { PARKED = 1024 /* a power of two */, PARKED_TRIES = 64, PARKED_OPENS = 16 };
enum { PARKED_FREE, PARKED_BUSY, PARKED_FULL };

/* A task that is on no thread, and its open bursts and states; or events for a task, whether it is on one or not. One in
 * work belongs to who has made it so. */
static struct parked {
	_Atomic uint32_t state;
	uint32_t opens;
	_Atomic uint64_t
		task; /* while it is full: nobody takes what is not his, others may look for theirs */
	uint64_t link;
	struct ca_open open[PARKED_OPENS];
} parked[PARKED], deferred[PARKED];
static _Atomic uint32_t events_deferred; /* that wait in all of them */

static bool take_parked(struct parked *p, uint32_t from)
{
	return atomic_load_explicit(&p->state, memory_order_acquire) == from &&
	       atomic_compare_exchange_strong_explicit(&p->state, &from, PARKED_BUSY, memory_order_acquire,
						       memory_order_relaxed);
}

static void put_parked(struct parked *p, uint32_t state)
{
	/* release: pairs with the acquire in take_parked */
	atomic_store_explicit(&p->state, state, memory_order_release);
}

/* Tasks are looked for in the same few places in which they may be put. */
static struct parked *place_of(struct parked *table, uint64_t task, unsigned i)
{
	return &table[((task * UINT64_C(0x9e3779b97f4a7c15) >> 40) + i) % PARKED];
}

static struct parked *find_task(struct parked *table, uint64_t task)
{
	for (unsigned i = 0; i < PARKED_TRIES; i++) {
		struct parked *p = place_of(table, task, i);

		if (atomic_load_explicit(&p->task, memory_order_relaxed) != task ||
		    !take_parked(p, PARKED_FULL))
			continue;
		if (atomic_load_explicit(&p->task, memory_order_relaxed) == task)
			return p;
		put_parked(p, PARKED_FULL);
	}
	return NULL;
}

static struct parked *find_room(struct parked *table, uint64_t task)
{
	for (unsigned i = 0; i < PARKED_TRIES; i++) {
		struct parked *p = place_of(table, task, i);

		if (!take_parked(p, PARKED_FREE))
			continue;
		atomic_store_explicit(&p->task, task, memory_order_relaxed);
		p->opens = 0;
		return p;
	}
	return NULL;
}

/* Those of the open ones that are bursts, or those that are not. */
static void begin_parked(struct group *g, const struct parked *p, bool bursts)
{
	for (uint32_t k = 0; k < p->opens; k++)
		if ((p->open[k].kind == CA_BURST_BEGIN) == bursts)
			begin(g, (enum ca_event_kind)p->open[k].kind, p->open[k].key, p->open[k].value);
}

static void close_from(struct group *g, uint32_t at, bool bursts)
{
	for (uint32_t i = g->t->opens; i-- > at;)
		if ((g->t->open[i].kind == CA_BURST_BEGIN) == bursts)
			close_at(g, i);
}

static void task_run(struct group *g, uint64_t task)
{
	struct parked *p = find_task(parked, task);

	begin_burst(g, CA_KEY_TASK, task);
	if (p) {
		add(g, CA_PTP_END, CA_KEY_TASK, p->link);
		begin_parked(g, p, false);
		begin_parked(g, p, true);
		put_parked(p, PARKED_FREE);
	}
	/* two threads may each have made a place for theirs */
	while (atomic_load(&events_deferred) && g->n + PARKED_OPENS <= sizeof g->event / sizeof *g->event &&
	       (p = find_task(deferred, task))) {
		for (uint32_t k = 0; k < p->opens; k++)
			add(g, CA_POINT, p->open[k].key, p->open[k].value);
		atomic_fetch_sub(&events_deferred, p->opens);
		put_parked(p, PARKED_FREE);
	}
}

/* What it has open goes with it. Where there is no room, its bursts and states are over. */
static void park(struct group *g, uint64_t task, uint32_t from)
{
	struct parked *p = find_room(parked, task);
	const struct ca_thread *t = g->t;

	if (!p)
		return;
	p->link = 1 + atomic_fetch_add_explicit(&ca_rt.trace->links, 1, memory_order_relaxed);
	while (p->opens < PARKED_OPENS && from + p->opens < t->opens) {
		p->open[p->opens] = t->open[from + p->opens];
		p->opens++;
	}
	add(g, CA_PTP_BEGIN, CA_KEY_TASK, p->link);
	put_parked(p, PARKED_FULL);
}

static void defer(uint64_t task, uint32_t key, uint64_t value)
{
	struct parked *p = find_task(deferred, task);

	if (!p)
		p = find_room(deferred, task);
	if (p && p->opens < PARKED_OPENS) {
		p->open[p->opens++] = (struct ca_open){ key, CA_POINT, value };
		atomic_fetch_add(&events_deferred, 1);
	} else {
		atomic_fetch_add_explicit(&ca_rt.trace->lost[CA_LOSS_TASK], 1, memory_order_relaxed);
	}
	if (p)
		put_parked(p, PARKED_FULL);
}

static void task_leave(struct group *g, uint64_t task, bool goes_on)
{
	uint32_t at = find_open(g->t, CA_KEY_TASK, task);

	if (at == CA_OPENS)
		return;
	if (goes_on)
		park(g, task, at + 1);
	close_from(g, at, false);
	close_from(g, at, true);
}

/* ---- where bursts are counted here ---------------------------------------------------------------*/
/* Only values with a name are told apart: there may be any number of others. */
static uint64_t told_apart(uint32_t key, uint64_t value)
{
	if (value == 1 || key == CA_KEY_TASK)
		return 1;
	if (key == CA_KEY_MUTEX)
		return value;
	return ca_names_has_value(ca_rt.names, key - CA_KEY_USER, value) ? value : 1;
}

static void close_lap(struct ca_laps *laps, uint32_t key, uint64_t time)
{
	struct ca_lap *lap = ca_laps_close(laps, key, time);

	if (lap && ca_laps_is_hot(laps, lap))
		ca_laps_throttle(laps, lap);
}

/* Whose calls a lap counts, as long as no file of the program is closed. The name makes the key, and where the
 * same text stands twice in a file, it is mostly at one address. */
static uint64_t mark_of(const struct causal_trace_key_ *key)
{
	return (uintptr_t)key->name ^ now_known() << 16;
}

static void count_group(struct group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		const struct ca_event *e = &g->event[i];

		if (e->kind == CA_BURST_BEGIN)
			ca_laps_open(&g->t->laps, e->key, told_apart(e->key, e->value), e->time);
		else if (e->kind == CA_BURST_END)
			close_lap(&g->t->laps, e->key, e->time);
	}
}

/* ---- raising -----------------------------------------------------------------------------------*/
static void name_thread(struct ca_thread *t, bool process, const char *name)
{
	uint32_t of = process ? CA_NAME_OF_PROCESS : CA_NAME_OF_THREAD;

	ca_names_value(ca_rt.names, of, process ? t->trace.owner.process_index : t->trace.owner.thread_index,
		       name, "");
}

/* What the compiler did not know: 0 is the end of a burst, 1 a function itself, whose key has a label. */
static bool is_value(const struct causal_trace_key_ *key, const struct causal_trace_key_ *of, uint64_t value)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (value > 1 || (value && (key == of || !of->label)))
		return true;
	if (!atomic_flag_test_and_set_explicit(&said, memory_order_relaxed))
		ca_log(CA_LOG_ERROR,
		       "event \"%s\" (%s): %u is no value for it; a burst has 1 instead, an update is left "
		       "out, also at other places",
		       of->name, key->where, (unsigned)value);
	return false;
}

static enum ca_event_kind kind_of(unsigned kind)
{
	switch (kind) {
	case CAUSAL_TRACE_KIND_BEGIN_:
	case CAUSAL_TRACE_KIND_END_:
		return CA_BURST_BEGIN;
	case CAUSAL_TRACE_KIND_STATE_:
	case CAUSAL_TRACE_KIND_STATE_END_:
		return CA_STATE_BEGIN;
	case CAUSAL_TRACE_KIND_SUBSTATE_:
	case CAUSAL_TRACE_KIND_SUBSTATE_END_:
		return CA_SUBSTATE_BEGIN;
	case CAUSAL_TRACE_KIND_SEND_:
		return CA_PTP_BEGIN;
	case CAUSAL_TRACE_KIND_RECEIVE_:
		return CA_PTP_END;
	default:
		return CA_POINT;
	}
}

/* Of the program's own keys. */
static void raise_own(struct group *g, uint32_t id, const struct causal_trace_key_ *key,
		      const struct causal_trace_key_ *of, uint64_t value)
{
	uint32_t k = CA_KEY_USER + id;

	switch (key->kind) {
	case CAUSAL_TRACE_KIND_BEGIN_:
	case CAUSAL_TRACE_KIND_STATE_:
	case CAUSAL_TRACE_KIND_SUBSTATE_:
		begin(g, kind_of(key->kind), k, is_value(key, of, value) ? value : 1);
		break;
	case CAUSAL_TRACE_KIND_END_:
	case CAUSAL_TRACE_KIND_STATE_END_:
	case CAUSAL_TRACE_KIND_SUBSTATE_END_:
		end(g, kind_of(key->kind), k);
		break;
	case CAUSAL_TRACE_KIND_UPDATE_:
		if (!is_value(key, of, value))
			break;
		if (is_first(key))
			ca_names_value(ca_rt.names, id, value, key->label, key->where);
		update(g, k, value);
		break;
	case CAUSAL_TRACE_KIND_LATER_: {
		const unsigned long long *both = (const unsigned long long *)(uintptr_t)value;

		defer(both[0], k, both[1]);
		break;
	}
	default:
		add(g, kind_of(key->kind), k, value);
	}
}

/* Those that are wanted of it. */
static void raise_several(struct group *g, const struct causal_trace_several_ *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		uint32_t id = id_of(&s->key[i], s->value[i]);

		if (is_wanted(id))
			add(g, CA_POINT, CA_KEY_USER + id, s->value[i]);
	}
}

/* Of ours; names are always wanted. */
static bool wants_other(unsigned kind)
{
	if (kind >= CAUSAL_TRACE_KIND_WAITING_ && kind <= CAUSAL_TRACE_KIND_UNLOCKED_)
		return ca_timeline_wants(CA_KEY_MUTEX);
	return kind < CAUSAL_TRACE_KIND_TASK_RUN_ || ca_timeline_wants(CA_KEY_TASK);
}

static void raise_other(struct group *g, const struct causal_trace_key_ *key, uint64_t value)
{
	switch (key->kind) {
	case CAUSAL_TRACE_KIND_WAITING_:
	case CAUSAL_TRACE_KIND_LOCKED_:
	case CAUSAL_TRACE_KIND_UNLOCKED_:
		mutex(g, key->kind, value);
		break;
	case CAUSAL_TRACE_KIND_THREAD_:
	case CAUSAL_TRACE_KIND_PROCESS_:
		name_thread(g->t, key->kind == CAUSAL_TRACE_KIND_PROCESS_, (const char *)(uintptr_t)value);
		break;
	case CAUSAL_TRACE_KIND_TASK_RUN_:
		/* there may be any number of tasks: keys have their half of the names */
		if (key->label &&
		    atomic_load_explicit(&ca_rt.names->used, memory_order_relaxed) < CA_NAMES / 2)
			ca_names_value(ca_rt.names, CA_NAME_OF_TASK, value, key->label, key->where);
		task_run(g, value);
		break;
	case CAUSAL_TRACE_KIND_TASK_PAUSE_:
	case CAUSAL_TRACE_KIND_TASK_DONE_:
		task_leave(g, value, key->kind == CAUSAL_TRACE_KIND_TASK_PAUSE_);
		break;
	}
}

/* False: nobody wants it. */
static bool raise_any(struct group *g, const struct causal_trace_key_ *key,
		      const struct causal_trace_key_ *of, uint64_t value)
{
	uint32_t id;

	if (key->kind == CAUSAL_TRACE_KIND_SEVERAL_) {
		raise_several(g, (const struct causal_trace_several_ *)(uintptr_t)value);
		return g->n;
	}
	if (key->kind > CAUSAL_TRACE_KIND_LATER_ && key->kind < CAUSAL_TRACE_KIND_SEVERAL_) {
		if (wants_other(key->kind))
			raise_other(g, key, value);
		return wants_other(key->kind);
	}
	id = id_of(of, value);
	if (is_wanted(id))
		raise_own(g, id, key, of, value);
	return is_wanted(id);
}

/* Does no more than it has to for what comes by most often: a burst begins, or the innermost one ends; its key
 * is known, and there is room for it. False: nothing has happened. errno is not touched. */
static bool raise_usual(struct ca_thread *t, const struct causal_trace_key_ *key,
			const struct causal_trace_key_ *of, uint64_t value)
{
	const struct place *p = &place[usual_place(of) % PLACES];
	uint64_t known = atomic_load_explicit(&p->id, memory_order_relaxed), time;
	uint32_t id = (uint32_t)known, k = CA_KEY_USER + id, opens = t->opens;
	struct ca_rings_writer *w = &t->trace;
	bool begins = key->kind == CAUSAL_TRACE_KIND_BEGIN_;

	if (atomic_load_explicit(&p->key, memory_order_relaxed) != of || !is_known(known) || !id ||
	    atomic_load_explicit(&ca_rt.names->off[id], memory_order_relaxed) || !ca_rings_has_room(w) ||
	    t->too_deep || !ca_clock_fast_try(&t->clock, &time))
		return false;
	if (begins) {
		if (!value || key != of || opens == CA_OPENS)
			return false;
		t->open[opens] = (struct ca_open){ k, CA_BURST_BEGIN, value };
		t->opens = opens + 1;
	} else {
		if (key->kind != CAUSAL_TRACE_KIND_END_ || !opens || t->open[opens - 1].key != k ||
		    t->open[opens - 1].kind != CA_BURST_BEGIN)
			return false;
		value = t->open[opens - 1].value;
		t->opens = opens - 1;
	}
	ca_rings_push_one(w, time, begins ? CA_BURST_BEGIN : CA_BURST_END, k, value);
	return true;
}

/* The id of a key that is where it usually is; 0: it is not. */
static uint32_t usual_id(const struct causal_trace_key_ *key)
{
	const struct place *p = &place[usual_place(key) % PLACES];
	uint64_t known = atomic_load_explicit(&p->id, memory_order_relaxed);

	return atomic_load_explicit(&p->key, memory_order_relaxed) == key && is_known(known) ? (uint32_t)known
											     : 0;
}

/* The same where bursts are counted here: what is known of the key stands in the lap. */
static bool count_usual(struct ca_thread *t, const struct causal_trace_key_ *key,
			const struct causal_trace_key_ *of, uint64_t value)
{
	bool begins = key->kind == CAUSAL_TRACE_KIND_BEGIN_;
	struct ca_laps *laps = &t->laps;
	struct ca_lap *lap = begins ? ca_laps_recent(laps) : laps->at;
	uint32_t opens = t->opens;
	uint64_t time;

	if (!lap || laps->missed || t->too_deep || !ca_clock_fast_try(&t->clock, &time))
		return false;
	if (begins) {
		if (lap->mark != mark_of(of) || value != lap->value || key != of || opens == CA_OPENS ||
		    lap->since || lap->throttled)
			return false;
		t->open[opens] = (struct ca_open){ lap->key, CA_BURST_BEGIN, value };
		t->opens = opens + 1;
		ca_laps_open_at(laps, lap, time);
		return true;
	}
	if (key->kind != CAUSAL_TRACE_KIND_END_ || !opens || t->open[opens - 1].key != lap->key ||
	    t->open[opens - 1].kind != CA_BURST_BEGIN)
		return false;
	/* another place may have begun it */
	if (lap->mark != mark_of(of) && CA_KEY_USER + usual_id(of) != lap->key)
		return false;
	t->opens = opens - 1;
	close_lap(laps, lap->key, time);
	if (lap->throttled)
		ca_code_sites_off(of);
	return true;
}

/* With the guard held. */
static __attribute__((noinline)) void raise_slowly(struct ca_thread *t, const struct causal_trace_key_ *key,
						   const struct causal_trace_key_ *of, uint64_t value)
{
	int saved = errno;
	struct group g;

	g.t = t;
	g.n = 0;
	g.time = ca_clock_fast_now(&t->clock);
	if (!raise_any(&g, key, of, value))
		ca_code_sites_off(of);
	else if (t->laps.trace)
		count_group(&g);
	else if (g.n)
		ca_rings_push(&t->trace, g.event, g.n);
	if (t->laps.at && key->kind == CAUSAL_TRACE_KIND_BEGIN_ && key == of && key->name &&
	    t->laps.at->key == CA_KEY_USER + usual_id(of))
		t->laps.at->mark = mark_of(of);
	errno = saved;
}

static __attribute__((noinline)) struct ca_thread *late_thread(void)
{
	int saved = errno;
	struct ca_thread *t = ca_thread_late();

	errno = saved;
	return t;
}

void ca_code_events_raise(const struct causal_trace_key_ *key, const struct causal_trace_key_ *of,
			  unsigned long long value)
{
	struct ca_thread *t = ca_self;

	if (__builtin_expect(!t, 0))
		t = late_thread();
	if (!t || t->guard || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard = 1;
	if (!(t->laps.trace ? count_usual(t, key, of, value) : raise_usual(t, key, of, value)))
		raise_slowly(t, key, of, value);
	t->guard = 0;
}

/* SPDX-License-Identifier: MIT */
/* A model of threads, cores and locks under the delay protocol, to tell a wrong theory from
 * a noisy machine and to look at machines with more cores than we have.
 *
 * Not for: predicting a real program; costs of interrupts, caches and clocks are left out.
 * One thread; prints Markdown tables for doc/METHOD.md.
 *
 * Time goes in steps of one nominal microsecond. Threads run small programs of work
 * segments and synchronisation on a number of cores, under a fair scheduler (smallest
 * virtual run time first, slices of 3 ms, a waker's preemption when the woken thread is
 * 1 ms behind). S is one work segment. The true effect is simulated with S really shorter
 * and no protocol; a protocol's prediction is 1 - ((T - D) / visits) / (T0 / visits0).
 *
 *   ideal    while some thread runs in S, every other thread and every timer goes at rate
 *            1 - p: what virtual speedup means, without any mechanism
 *   exact    S is known; who runs outside S while another is inside owes p of that time,
 *            pays it holding its core, before it meets others and at ticks, never inside S
 *   spin     as exact, and a thread that spins for others pays each time round: the loop is a
 *            place where threads meet
 *   hits     S is known by samples: a tick inside S is a hit that stands for period / k (k
 *            threads inside); who is on a CPU outside S at that instant owes p x that;
 *            paid as in exact
 *   own      as hits, but who else is in S is not known at a tick: only how often each thread was
 *            found there, and how often together with others (causal/runtime/sample.c); and who
 *            spins for others pays each time round
 *   spread   as own, and what is owed is spread over the meetings, each place with an account of its own
 *            (causal/runtime/lumps.c); the history is each thread's, and holds since it met others last; who spins
 *            for others owes nothing; a sample stands for what its last tick has not paid (handler.c)
 *   ticks    as hits, paid at ticks only
 *   coz      a hit adds p x period to the thread's account and raises the global one; who
 *            is behind sleeps it off at its ticks and before it wakes others; who was
 *            woken by another thread is forgiven what was added while it waited */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 1024, MAX_OPS = 12, MAX_OBJECTS = 8, QUEUE = 32 };
enum { SLICE = 3000, WAKEUP_GRANULARITY = 1000, WAKE_COST = 5 };

enum protocol { NONE, IDEAL, EXACT, SPIN, HITS, OWN, SPREAD, TICKS, COZ, PROTOCOLS };
enum { SPREAD_OVER = 16, LEARN = 4, STALE = 4, PRIOR_OF_ONE = 4 }; /* as in lumps.c and history.c */

enum kind {
	WORK,
	WORK_S,
	LOCK,
	SPIN_LOCK,
	UNLOCK,
	BARRIER,
	PUT,
	GET,
	POST,
	WAIT,
	SPIN_WAIT,
	SLEEP,
	VISIT,
	END
};
struct op {
	enum kind kind;
	int object;  /* lock, barrier, queue or semaphore */
	double time; /* WORK, SLEEP */
};

enum state { READY, RUNNING, BLOCKED, TIMED };
struct thread {
	struct op op[MAX_OPS];
	int pc;
	enum state state;
	int waits_for;    /* object, when BLOCKED */
	double remain;    /* of the current work or sleep; < 0: not begun */
	double owed;      /* to pay, us */
	double account;   /* coz: own delay account */
	double cpu, tick; /* CPU time, and that of the next tick */
	double vruntime, slice;
	double look; /* own: time of the last tick ... */
	bool was_in; /* ... and whether it was in S */
	double ticks, ticks_in;
	double pairs, pairs_expected; /* spread: as below, of this thread ... */
	double met;                   /* ... since then it can be elsewhere */
	double due[MAX_OPS], left[MAX_OPS], rate[MAX_OPS], seen[MAX_OPS]; /* accounts of its meetings */
	double to_pay, paid_in_tick;
	bool in_tick, spins, arrived;
	double slept_s; /* union S time when the sleep began */
	bool paying, off_core_pay;
	bool checked; /* has paid for the op that it is about to do */
	bool wake_forgives;
};
struct object {
	int count;                          /* lock: held; barrier: arrived; queue and semaphore: tokens */
	int queue[MAX_THREADS], head, tail; /* who waits, in order */
	int parties;
};

static struct thread threads[MAX_THREADS];
static struct object objects[MAX_OBJECTS];
static int thread_count, cores, running, core_thread[MAX_THREADS];
static enum protocol protocol;
static double p, now, period = 1000, window, union_s, hit_s, global;
static double pairs, pairs_expected; /* own */
static long visits;
static int in_s; /* threads that run inside S in this step */
static uint64_t rng = 88172645463325252u;

static double uniform(void)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (double)(rng >> 11) / 9007199254740992.0;
}

/* +-25 %: programs are periodic, a fixed period would beat against them */
static double next_period(void)
{
	return period * (0.75 + 0.5 * uniform());
}

/* ---- scheduler ---------------------------------------------------------------------- */

static double least_vruntime(void)
{
	double least = INFINITY;

	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == RUNNING || threads[i].state == READY)
			least = fmin(least, threads[i].vruntime);
	return isinf(least) ? 0 : least;
}

static void make_ready(struct thread *t)
{
	t->state = READY;
	t->vruntime = fmax(t->vruntime, least_vruntime() - SLICE);
	t->slice = 0;
}

static void take_core(int core, int thread)
{
	if (core_thread[core] >= 0)
		threads[core_thread[core]].state = READY;
	core_thread[core] = thread;
	if (thread >= 0) {
		threads[thread].state = RUNNING;
		threads[thread].slice = 0;
	}
}

/* S is known exactly */
static bool exact(void)
{
	return protocol == EXACT || protocol == SPIN;
}

static int best_ready(void)
{
	int best = -1;

	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == READY && (best < 0 || threads[i].vruntime < threads[best].vruntime))
			best = i;
	return best;
}

static bool some_ready(void)
{
	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == READY)
			return true;
	return false;
}

static void schedule(void)
{
	for (int c = 0; c < cores; c++)
		if (core_thread[c] >= 0 && threads[core_thread[c]].state != RUNNING)
			core_thread[c] = -1;
	for (int c = 0; c < cores && some_ready(); c++)
		if (core_thread[c] < 0)
			take_core(c, best_ready());
	for (int c = 0; c < cores && some_ready(); c++) {
		struct thread *t = &threads[core_thread[c]];
		int b = best_ready();
		double behind = t->vruntime - threads[b].vruntime;

		if ((t->slice >= SLICE && behind > 0) || behind > WAKEUP_GRANULARITY)
			take_core(c, b);
	}
}

/* ---- synchronisation ---------------------------------------------------------------- */

static void block(int i, int object)
{
	struct object *o = &objects[object];

	o->queue[o->tail++ % MAX_THREADS] = i;
	threads[i].state = BLOCKED;
	threads[i].waits_for = object;
}

static void wake_one(int object)
{
	struct object *o = &objects[object];

	if (o->head == o->tail)
		return;
	struct thread *t = &threads[o->queue[o->head++ % MAX_THREADS]];

	t->state = TIMED;
	t->remain = WAKE_COST;
	t->wake_forgives = true;
}

static void arrive(int i, int object)
{
	struct object *o = &objects[object];

	threads[i].pc++;
	if (++o->count < o->parties) {
		block(i, object);
		return;
	}
	o->count = 0;
	while (o->head != o->tail)
		wake_one(object);
}

static bool inside(const struct thread *t)
{
	return t->op[t->pc].kind == WORK_S;
}

static bool is_meeting(enum kind kind)
{
	return kind >= LOCK && kind <= SLEEP;
}

static bool wakes_others(enum kind kind)
{
	return kind == UNLOCK || kind == BARRIER || kind == PUT || kind == GET || kind == POST;
}

/* Carries out thread i's current op if it takes no time. True: go on with the next one. */
static bool step_op(int i)
{
	struct thread *t = &threads[i];
	const struct op *op = &t->op[t->pc];
	struct object *o = &objects[op->object];

	switch (op->kind) {
	case END:
		t->pc = 0;
		return true;
	case VISIT:
		visits++;
		t->pc++;
		return true;
	case UNLOCK:
		o->count = 0;
		wake_one(op->object);
		break;
	case POST:
		o->count++;
		wake_one(op->object);
		break;
	case BARRIER:
		arrive(i, op->object);
		t->checked = false;
		return t->state == RUNNING;
	case LOCK:
		if (o->count) {
			block(i, op->object);
			return false;
		}
		o->count = 1;
		break;
	case SPIN_LOCK:
		if (o->count)
			return false;
		o->count = 1;
		break;
	case SPIN_WAIT:
		if (!o->count)
			return false;
		o->count--;
		break;
	case WAIT:
	case GET:
		if (!o->count) {
			block(i, op->object);
			return false;
		}
		o->count--;
		if (op->kind == GET)
			wake_one(op->object + 1);
		break;
	case PUT:
		if (o->count == QUEUE) {
			block(i, op->object + 1);
			return false;
		}
		o->count++;
		wake_one(op->object);
		break;
	case SLEEP:
		t->state = TIMED;
		t->remain = op->time;
		t->slept_s = exact() ? union_s : hit_s;
		t->wake_forgives = false;
		return false;
	default:
		return false;
	}
	t->pc++;
	t->checked = false;
	return true;
}

/* ---- the protocols ------------------------------------------------------------------- */

static bool by_hits(void)
{
	return protocol == HITS || protocol == OWN || protocol == SPREAD || protocol == TICKS;
}

static bool owes_late(void)
{
	return exact() || by_hits();
}

static double ratio_of(const struct thread *t)
{
	double ratio = (pairs + 2) / (pairs_expected + 2);

	return protocol == SPREAD ? (t->pairs + PRIOR_OF_ONE * ratio) / (t->pairs_expected + PRIOR_OF_ONE)
				  : ratio;
}

static void look_back(struct thread *t, double own)
{
	if (t->look <= now - period / 10 || (protocol == SPREAD && t->met >= t->look))
		return;
	pairs += t->was_in;
	pairs_expected += own;
	t->pairs += t->was_in;
	t->pairs_expected += own;
}

/* A hit of thread i, which does not know what the others are at. */
static void hit_by_history(int i)
{
	double weight = protocol == SPREAD ? fmax(0, period - threads[i].paid_in_tick) : period;
	double share[MAX_THREADS], sum = 0, mean, worth = 1;
	int n = 0;

	for (int c = 0; c < cores; c++) {
		struct thread *t = core_thread[c] >= 0 ? &threads[core_thread[c]] : NULL;
		double own = t ? (t->ticks_in + 0.5) / (t->ticks + 1) : 0;

		share[c] = t && core_thread[c] != i ? fmin(1, own * ratio_of(t)) : 0;
		if (!t || core_thread[c] == i)
			continue;
		n++;
		sum += share[c];
		look_back(t, own);
	}
	mean = n ? sum / n : 0;
	if (mean > 1e-3)
		worth = (1 - pow(1 - mean, n + 1)) / ((n + 1) * mean);
	hit_s += weight * worth;
	for (int c = 0; c < cores; c++) {
		struct thread *t = core_thread[c] >= 0 ? &threads[core_thread[c]] : NULL;

		if (t && core_thread[c] != i && !(protocol == SPREAD && t->spins))
			t->owed += p * weight * (worth - (sum > 0 ? share[c] * (1 - worth) / sum : 0));
	}
}

/* spread: what no meeting will pay soon */
static void pay_in_tick(struct thread *t)
{
	if (t->met < now - 2 * period) {
		t->to_pay += t->owed;
		t->owed = 0;
	}
	for (int k = 0; k < MAX_OPS; k++) {
		if (t->seen[k] > now - STALE * SPREAD_OVER * period)
			continue;
		t->to_pay += t->due[k];
		t->due[k] = t->left[k] = 0;
	}
	t->paying = t->in_tick = t->to_pay > 0;
}

/* spread: before its next op; returns whether it pays */
static bool pay_here(struct thread *t)
{
	int k = t->pc;
	bool spins = t->op[k].kind == SPIN_LOCK || t->op[k].kind == SPIN_WAIT;
	double over = SPREAD_OVER * period, since = now - t->seen[k], part;

	t->seen[k] = now;
	t->spins = spins && (t->spins || t->arrived);
	t->arrived = false;
	if (t->spins)
		return false;
	t->due[k] += t->owed;
	t->owed = 0;
	part = t->due[k];
	if (since < over) {
		t->rate[k] += (t->due[k] - t->left[k] - t->rate[k] * since) / (LEARN * over);
		part = fmax(0, t->rate[k] * since + t->due[k] * since / over);
	}
	t->to_pay += part;
	t->left[k] = t->due[k] -= part;
	t->met = now;
	t->checked = !spins;
	t->paying = t->to_pay > 0;
	t->arrived = spins;
	return t->paying;
}

static void pay_spread(struct thread *t)
{
	t->to_pay -= 1;
	t->paying = t->to_pay > 0;
	if (t->in_tick) {
		t->paid_in_tick += 1;
		t->ticks += 1 / period;
		t->in_tick = t->paying;
	} else if (!t->paying) { /* what came meanwhile is of this place */
		t->due[t->pc] += t->owed;
		t->owed = 0;
	}
}

/* A tick of thread i: maybe a hit, maybe a payment. */
static void tick(int i)
{
	struct thread *t = &threads[i];

	t->tick = t->cpu + next_period();
	if (inside(t) && protocol == COZ) {
		hit_s += period;
		t->account += p * period;
		global = fmax(global, t->account);
	} else if (inside(t) && (protocol == HITS || protocol == TICKS)) {
		double worth = period / (in_s > 0 ? in_s : 1);

		hit_s += worth;
		for (int c = 0; c < cores; c++)
			if (core_thread[c] >= 0 && !inside(&threads[core_thread[c]]))
				threads[core_thread[c]].owed += p * worth;
	}
	if (inside(t) && (protocol == OWN || protocol == SPREAD))
		hit_by_history(i);
	t->look = now;
	t->was_in = inside(t);
	t->ticks++;
	t->ticks_in += inside(t);
	t->paid_in_tick = 0;
	if (protocol == SPREAD && !inside(t))
		pay_in_tick(t);
	else if (owes_late() && !inside(t) && t->owed > 0)
		t->paying = true;
	if (protocol == COZ && t->account < global)
		t->off_core_pay = true;
}

/* Coz: sleep until the account has caught up with the global one. */
static void sleep_it_off(struct thread *t)
{
	t->off_core_pay = false;
	if (t->account >= global)
		return;
	t->state = TIMED;
	t->remain = global - t->account;
	t->account = global;
	t->wake_forgives = false;
	t->paying = true; /* not the sleep op's own wait */
}

/* Before op: must the thread pay first? */
static bool must_pay(struct thread *t)
{
	enum kind kind = t->op[t->pc].kind;

	if (t->checked || !is_meeting(kind))
		return false;
	if (protocol == SPREAD)
		return pay_here(t);
	t->checked = (protocol != SPIN && protocol != OWN) || (kind != SPIN_LOCK && kind != SPIN_WAIT);
	if (owes_late() && protocol != TICKS && t->owed > 0)
		t->paying = true;
	if (protocol == COZ && wakes_others(kind) && t->account < global) {
		sleep_it_off(t);
		return true;
	}
	return t->paying;
}

/* A tick that comes while the thread pays has no place in the program. */
static void drop_tick(struct thread *t)
{
	if (t->cpu < t->tick)
		return;
	t->tick = t->cpu + next_period();
	t->look = now;
	t->was_in = false;
	t->ticks += !t->in_tick;
}

/* One step of a running thread: `rate` of a microsecond of progress. */
static void run_thread(int i, double rate)
{
	struct thread *t = &threads[i];
	int guard = 2 * MAX_OPS;

	t->cpu += 1;
	t->vruntime += 1;
	t->slice += 1;
	if (exact() && in_s > 0 && !inside(t))
		t->owed += p;
	if (t->off_core_pay) {
		sleep_it_off(t);
		return;
	}
	if (t->paying && owes_late())
		drop_tick(t);
	if (t->paying && protocol == SPREAD) {
		pay_spread(t);
		return;
	}
	if (t->paying) {
		t->owed -= 1;
		t->paying = t->owed > 0;
		return;
	}
	while (t->state == RUNNING && guard-- > 0) {
		const struct op *op = &t->op[t->pc];

		if (op->kind != WORK && op->kind != WORK_S) {
			if (must_pay(t) || !step_op(i))
				break;
			continue;
		}
		if (t->remain < 0)
			t->remain = op->time;
		t->remain -= rate;
		if (t->remain <= 0) {
			t->remain = -1;
			t->pc++;
		}
		break;
	}
	if (t->cpu >= t->tick && protocol >= EXACT)
		tick(i);
}

static void run_timer(int i, double rate)
{
	struct thread *t = &threads[i];

	t->remain -= rate;
	if (t->remain > 0)
		return;
	t->remain = -1;
	if (protocol == COZ && t->paying) {
		t->paying = false; /* it was a payment: go on where it was */
	} else if (t->op[t->pc].kind == SLEEP && !t->wake_forgives) {
		/* the world outside cannot be slowed: owe p of the S time that passed */
		if (owes_late())
			t->owed += p * ((exact() ? union_s : hit_s) - t->slept_s);
		t->pc++;
		t->checked = false;
	} else if (protocol == COZ) {
		t->account = fmax(t->account, global);
	}
	t->wake_forgives = false;
	make_ready(t);
}

static void step(void)
{
	bool s_before;

	schedule();
	in_s = 0;
	for (int c = 0; c < cores; c++)
		if (core_thread[c] >= 0 && inside(&threads[core_thread[c]]))
			in_s++;
	s_before = in_s > 0;
	for (int i = 0; i < thread_count; i++)
		if (threads[i].state == TIMED)
			run_timer(i, protocol == IDEAL && s_before ? 1 - p : 1);
	for (int c = 0; c < cores; c++) {
		int i = core_thread[c];

		if (i >= 0 && threads[i].state == RUNNING)
			run_thread(i, protocol == IDEAL && s_before && !inside(&threads[i]) ? 1 - p : 1);
	}
	union_s += s_before;
	now += 1;
}

/* ---- topologies ---------------------------------------------------------------------- */

static struct thread *add(const struct op *op, size_t n)
{
	struct thread *t = &threads[thread_count++];

	memset(t, 0, sizeof *t);
	memcpy(t->op, op, n * sizeof *op);
	t->op[n].kind = END;
	t->remain = -1;
	t->tick = next_period();
	return t;
}
#define ADD(...)                                                                                             \
	add((const struct op[]){ __VA_ARGS__ },                                                              \
	    sizeof((const struct op[]){ __VA_ARGS__ }) / sizeof(struct op))
#define S(us)                                                                                                \
	{                                                                                                    \
		WORK_S, 0, (us)                                                                              \
	}
#define W(us)                                                                                                \
	{                                                                                                    \
		WORK, 0, (us)                                                                                \
	}
#define DO(kind, object)                                                                                     \
	{                                                                                                    \
		kind, object, 0                                                                              \
	}

static void serial(int n)
{
	(void)n;
	ADD(S(600), W(400), DO(VISIT, 0));
}

static void barrier(int n)
{
	objects[0].parties = n;
	ADD(S(1000), DO(VISIT, 0), DO(BARRIER, 0));
	for (int i = 1; i < n; i++)
		ADD(W(800), DO(BARRIER, 0));
}

static void barrier_fast(int n)
{
	objects[0].parties = n;
	ADD(W(1000), DO(VISIT, 0), DO(BARRIER, 0));
	for (int i = 1; i < n; i++)
		ADD(S(800), DO(BARRIER, 0));
}

static void prodcons(int n)
{
	ADD(DO(GET, 0), S(1000), DO(VISIT, 0));
	for (int i = 1; i < n && i < 8; i++)
		ADD(W(400.0 * (n < 8 ? n - 1 : 7)), DO(PUT, 0));
}

static void mutex(int n)
{
	for (int i = 0; i < n; i++)
		ADD(DO(LOCK, 0), S(1200.0 / n), DO(UNLOCK, 0), W(400), DO(VISIT, 0));
}

static void spinlock(int n)
{
	for (int i = 0; i < n; i++)
		ADD(DO(SPIN_LOCK, 0), S(1200.0 / n), DO(UNLOCK, 0), W(400), DO(VISIT, 0));
}

static void pipeline(int n)
{
	(void)n;
	ADD(W(600), DO(PUT, 0));
	ADD(DO(GET, 0), S(700), DO(PUT, 2));
	ADD(DO(GET, 2), W(500), DO(VISIT, 0));
}

static void blocking(int n)
{
	(void)n;
	ADD(S(400), DO(VISIT, 0), { SLEEP, 0, 600 });
}

/* a second thread's timer runs while the first is in S */
static void timers(int n)
{
	(void)n;
	ADD(S(600), DO(POST, 0), DO(WAIT, 1), DO(VISIT, 0));
	ADD({ SLEEP, 0, 800 }, DO(WAIT, 0), DO(POST, 1));
}

static void pipes(int n)
{
	(void)n;
	ADD(S(700), DO(POST, 0), DO(WAIT, 1), DO(VISIT, 0));
	ADD(DO(WAIT, 0), W(300), DO(POST, 1));
}

static void condvar(int n)
{
	(void)n;
	ADD(S(60), DO(POST, 0), DO(WAIT, 1), DO(VISIT, 0));
	ADD(DO(WAIT, 0), W(40), DO(POST, 1));
}

static void yield(int n)
{
	(void)n;
	ADD(S(700), DO(POST, 0), DO(SPIN_WAIT, 1), DO(VISIT, 0));
	ADD(DO(SPIN_WAIT, 0), W(300), DO(POST, 1));
}

static void omp(int n)
{
	objects[0].parties = n;
	for (int i = 0; i < n / 2; i++)
		ADD(S(800), DO(BARRIER, 0), DO(VISIT, 0));
	for (int i = n / 2; i < n; i++)
		ADD(W(480), DO(BARRIER, 0));
}

static void phase(int n)
{
	objects[0].parties = objects[1].parties = n;
	ADD(S(600), DO(BARRIER, 0), W(400), DO(VISIT, 0), DO(BARRIER, 1));
	for (int i = 1; i < n; i++)
		ADD(S(600), DO(BARRIER, 0), DO(BARRIER, 1));
}

static void alone(int n)
{
	objects[0].parties = objects[1].parties = n;
	ADD(W(600), DO(BARRIER, 0), S(400), DO(VISIT, 0), DO(BARRIER, 1));
	for (int i = 1; i < n; i++)
		ADD(W(600), DO(BARRIER, 0), DO(BARRIER, 1));
}

static void semaphore(int n)
{
	(void)n;
	objects[0].count = 1;
	ADD(W(600), DO(WAIT, 0), DO(POST, 1));
	ADD(DO(WAIT, 1), DO(POST, 0), S(800), DO(VISIT, 0));
}

static void crowd(int n)
{
	for (int i = 0; i < 2 * n; i++)
		ADD(S(300), W(200), DO(VISIT, 0));
}

static const struct topology {
	const char *name;
	void (*build)(int cores);
	bool scales; /* has a version with more cores */
} topologies[] = {
	{ "serial:a", serial, false },
	{ "barrier:slow", barrier, true },
	{ "barrier:fast", barrier_fast, true },
	{ "prodcons:consume", prodcons, true },
	{ "mutex:critical", mutex, true },
	{ "spinlock:critical", spinlock, true },
	{ "pipeline:s2", pipeline, false },
	{ "blocking:cpu", blocking, false },
	{ "timers:cpu", timers, false },
	{ "pipes:ping", pipes, false },
	{ "condvar:ping", condvar, false },
	{ "yield:ping", yield, false },
	{ "omp:heavy", omp, true },
	{ "phase:work", phase, true },
	{ "phase:alone", alone, true },
	{ "semaphore:drain", semaphore, false },
	{ "crowd:work", crowd, true },
};
enum { TOPOLOGIES = sizeof topologies / sizeof *topologies };

/* ---- experiments ---------------------------------------------------------------------- */

static double inserted(void)
{
	return protocol == COZ ? global : p * (by_hits() ? hit_s : union_s);
}

/* Nothing is owed when an experiment begins. */
static void begin_experiment(void)
{
	for (int i = 0; i < thread_count && window > 0 && owes_late(); i++) {
		struct thread *t = &threads[i];

		t->owed = t->to_pay = 0;
		t->paying = t->in_tick = false;
		memset(t->due, 0, sizeof t->due);
		memset(t->left, 0, sizeof t->left);
		memset(t->rate, 0, sizeof t->rate);
	}
}

/* Effective time per visit over `us` simulated microseconds, after a warm-up. */
static double simulate(const struct topology *topology, int n, enum protocol how, double speedup, double us)
{
	double from, before, delay = 0, length = 0;
	long visited = 0;

	memset(objects, 0, sizeof objects);
	memset(threads, 0, sizeof threads);
	thread_count = 0;
	cores = n;
	now = union_s = hit_s = global = pairs = pairs_expected = 0;
	visits = running = 0;
	protocol = how;
	p = how == NONE ? 0 : speedup;
	for (int c = 0; c < cores; c++)
		core_thread[c] = -1;
	topology->build(n);
	for (int i = 0; i < thread_count && how == NONE; i++)
		for (struct op *op = threads[i].op; op->kind != END; op++)
			if (op->kind == WORK_S)
				op->time *= 1 - speedup;
	for (double t = 0; t < us / 10; t++)
		step();
	for (double done = 0; done < us; done += now - from) {
		from = now;
		before = inserted();
		visited -= visits;
		begin_experiment();
		while (now - from < (window > 0 ? window : us))
			step();
		visited += visits;
		delay += inserted() - before;
		length += now - from;
	}
	if (how == NONE)
		delay = 0;
	return visited > 0 ? (length - delay) / (double)visited : NAN;
}

static double effect(const struct topology *topology, int n, enum protocol how, double speedup, double us)
{
	/* the base has no delays under any protocol */
	double base = simulate(topology, n, NONE, 0, us);

	return 100 * (1 - simulate(topology, n, how, speedup, us) / base);
}

static void table(int n, double us, const double *speedup, size_t speedups)
{
	double error[PROTOCOLS] = { 0 }, worst[PROTOCOLS] = { 0 };
	size_t rows = 0;

	printf("\n%d cores, %g s simulated each, sampling period %g us, jitter 25 %%\n\n", n, us / 1e6,
	       period);
	printf("| case | speedup | truth | ideal | exact | spin | hits | own | spread | ticks | coz |\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < TOPOLOGIES; i++) {
		if (n > 2 && !topologies[i].scales)
			continue;
		for (size_t s = 0; s < speedups; s++, rows++) {
			double truth = effect(&topologies[i], n, NONE, speedup[s], us);

			printf("| %s | %g | %.1f |", s ? "" : topologies[i].name, 100 * speedup[s], truth);
			for (enum protocol how = IDEAL; how < PROTOCOLS; how++) {
				double e = effect(&topologies[i], n, how, speedup[s], us);

				printf(" %.1f |", e);
				error[how] += fabs(e - truth);
				worst[how] = fmax(worst[how], fabs(e - truth));
			}
			printf("\n");
			fflush(stdout);
		}
	}
	printf("| mean error | | |");
	for (enum protocol how = IDEAL; how < PROTOCOLS; how++)
		printf(" %.1f |", error[how] / (double)rows);
	printf("\n| worst | | |");
	for (enum protocol how = IDEAL; how < PROTOCOLS; how++)
		printf(" %.1f |", worst[how]);
	printf("\n");
}

int main(int argc, char **argv)
{
	static const double all[] = { 0.25, 0.5, 0.75 }, half[] = { 0.5 };
	double seconds = 1;
	bool large = true;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--small"))
			large = false;
		else if (!strcmp(argv[i], "--seconds") && i + 1 < argc)
			seconds = atof(argv[++i]);
		else if (!strcmp(argv[i], "--period") && i + 1 < argc)
			period = atof(argv[++i]);
		else if (!strcmp(argv[i], "--window") && i + 1 < argc)
			window = atof(argv[++i]);
		else {
			fprintf(stderr, "usage: model [--small] [--seconds N] [--period US] [--window US]\n");
			return 2;
		}
	}
	table(2, seconds * 1e6, all, 3);
	if (large) {
		table(8, seconds * 3e5, all, 3);
		table(64, seconds * 1e5, half, 1);
		table(256, seconds * 5e4, half, 1);
	}
	return 0;
}

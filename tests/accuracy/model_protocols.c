/* SPDX-License-Identifier: MIT */
/* The model's delay protocols, and a step of time under each; see model.c. */
#include "tests/accuracy/model.h"
#include <math.h>
#include <string.h>

bool sim_exact(void)
{
	return sim.protocol == EXACT || sim.protocol == SPIN || sim.protocol == LEVEL;
}

static bool is_meeting(enum sim_kind kind)
{
	return kind >= LOCK && kind <= SLEEP;
}

static bool wakes_others(enum sim_kind kind)
{
	return kind == UNLOCK || kind == BARRIER || kind == PUT || kind == GET || kind == POST;
}

bool sim_by_hits(void)
{
	return sim.protocol == HITS || sim.protocol == OWN || sim.protocol == SPREAD || sim.protocol == TICKS;
}

bool sim_owes_late(void)
{
	return sim_exact() || sim_by_hits();
}

static double ratio_of(const struct sim_thread *t)
{
	double ratio = (sim.pairs + 2) / (sim.pairs_expected + 2);

	return sim.protocol == SPREAD ? (t->pairs + PRIOR_OF_ONE * ratio) / (t->pairs_expected + PRIOR_OF_ONE)
				      : ratio;
}

static void look_back(struct sim_thread *t, double own)
{
	if (t->look <= sim.now - sim.period / 10 || (sim.protocol == SPREAD && t->met >= t->look))
		return;
	sim.pairs += t->was_in;
	sim.pairs_expected += own;
	t->pairs += t->was_in;
	t->pairs_expected += own;
}

/* A hit of thread i, which does not know what the others are at. */
static void hit_by_history(int i)
{
	double weight =
		sim.protocol == SPREAD ? fmax(0, sim.period - sim.threads[i].paid_in_tick) : sim.period;
	double share[MAX_THREADS], sum = 0, mean, worth = 1;
	int n = 0;

	for (int c = 0; c < sim.cores; c++) {
		struct sim_thread *t = sim.core_thread[c] >= 0 ? &sim.threads[sim.core_thread[c]] : NULL;
		double own = t ? (t->ticks_in + 0.5) / (t->ticks + 1) : 0;

		share[c] = t && sim.core_thread[c] != i ? fmin(1, own * ratio_of(t)) : 0;
		if (!t || sim.core_thread[c] == i)
			continue;
		n++;
		sum += share[c];
		look_back(t, own);
	}
	mean = n ? sum / n : 0;
	if (mean > 1e-3)
		worth = (1 - pow(1 - mean, n + 1)) / ((n + 1) * mean);
	sim.hit_s += weight * worth;
	for (int c = 0; c < sim.cores; c++) {
		struct sim_thread *t = sim.core_thread[c] >= 0 ? &sim.threads[sim.core_thread[c]] : NULL;

		if (t && sim.core_thread[c] != i && !(sim.protocol == SPREAD && t->spins))
			t->owed += sim.p * weight * (worth - (sum > 0 ? share[c] * (1 - worth) / sum : 0));
	}
}

/* spread: what no meeting will pay soon */
static void pay_in_tick(struct sim_thread *t)
{
	if (t->met < sim.now - 2 * sim.period) {
		t->to_pay += t->owed;
		t->owed = 0;
	}
	for (int k = 0; k < MAX_OPS; k++) {
		if (t->seen[k] > sim.now - STALE * SPREAD_OVER * sim.period)
			continue;
		t->to_pay += t->due[k];
		t->due[k] = t->left[k] = 0;
	}
	t->paying = t->in_tick = t->to_pay > 0;
}

/* spread: before its next op; returns whether it pays */
static bool pay_here(struct sim_thread *t)
{
	int k = t->pc;
	bool spins = t->op[k].kind == SPIN_LOCK || t->op[k].kind == SPIN_WAIT;
	double over = SPREAD_OVER * sim.period, since = sim.now - t->seen[k], part;

	t->seen[k] = sim.now;
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
	t->met = sim.now;
	t->checked = !spins;
	t->paying = t->to_pay > 0;
	t->arrived = spins;
	return t->paying;
}

static void pay_spread(struct sim_thread *t)
{
	t->to_pay -= 1;
	t->paying = t->to_pay > 0;
	if (t->in_tick) {
		t->paid_in_tick += 1;
		t->ticks += 1 / sim.period;
		t->in_tick = t->paying;
	} else if (!t->paying) { /* what came meanwhile is of this place */
		t->due[t->pc] += t->owed;
		t->owed = 0;
	}
}

/* A tick of thread i: maybe a hit, maybe a payment. */
static void tick(int i)
{
	struct sim_thread *t = &sim.threads[i];

	t->tick = t->cpu + sim_next_period();
	if (sim_inside(t) && sim.protocol == COZ) {
		sim.hit_s += sim.period;
		t->account += sim.p * sim.period;
		sim.global = fmax(sim.global, t->account);
	} else if (sim_inside(t) && (sim.protocol == HITS || sim.protocol == TICKS)) {
		double worth = sim.period / (sim.in_s > 0 ? sim.in_s : 1);

		sim.hit_s += worth;
		for (int c = 0; c < sim.cores; c++)
			if (sim.core_thread[c] >= 0 && !sim_inside(&sim.threads[sim.core_thread[c]]))
				sim.threads[sim.core_thread[c]].owed += sim.p * worth;
	}
	if (sim_inside(t) && (sim.protocol == OWN || sim.protocol == SPREAD))
		hit_by_history(i);
	t->look = sim.now;
	t->was_in = sim_inside(t);
	t->ticks++;
	t->ticks_in += sim_inside(t);
	t->paid_in_tick = 0;
	if (sim.protocol == SPREAD && !sim_inside(t))
		pay_in_tick(t);
	else if (sim_owes_late() && !sim_inside(t) && t->owed > 0)
		t->paying = true;
	if (sim.protocol == COZ && t->account < sim.global)
		t->off_core_pay = true;
}

/* Coz: sleep until the account has caught up with the global one. */
static void sleep_it_off(struct sim_thread *t)
{
	t->off_core_pay = false;
	if (t->account >= sim.global)
		return;
	t->state = TIMED;
	t->remain = sim.global - t->account;
	t->account = sim.global;
	t->wake_forgives = false;
	t->paying = true; /* not the sleep op's own wait */
}

/* Before op: must the thread pay first? */
static bool must_pay(struct sim_thread *t)
{
	enum sim_kind kind = t->op[t->pc].kind;

	if (t->checked || !is_meeting(kind))
		return false;
	if (sim.protocol == SPREAD)
		return pay_here(t);
	t->checked = (sim.protocol != SPIN && sim.protocol != LEVEL && sim.protocol != OWN) ||
		     (kind != SPIN_LOCK && kind != SPIN_WAIT);
	if (sim_owes_late() && sim.protocol != TICKS && t->owed > 0)
		t->paying = true;
	if (sim.protocol == COZ && wakes_others(kind) && t->account < sim.global) {
		sleep_it_off(t);
		return true;
	}
	return t->paying;
}

/* A tick that comes while the thread pays has no place in the program. */
static void drop_tick(struct sim_thread *t)
{
	if (t->cpu < t->tick)
		return;
	t->tick = t->cpu + sim_next_period();
	t->look = sim.now;
	t->was_in = false;
	t->ticks += !t->in_tick;
}

static bool is_runnable(const struct sim_thread *t)
{
	return t->state == RUNNING || t->state == READY;
}

/* level: what running threads use of their CPUs in this step beyond virtual time, and who is behind by that. */
static void level(void)
{
	double sum = 0;
	int n = 0;
	bool standing = false;

	for (int i = 0; i < sim.thread_count; i++) {
		struct sim_thread *t = &sim.threads[i];
		double own = t->paying || t->still ? 1 : sim_inside(t) ? sim.p : 0;

		n += is_runnable(t);
		if (t->state != RUNNING)
			continue;
		sum += own;
		t->behind -= own;
	}
	for (int i = 0; i < sim.thread_count; i++) {
		struct sim_thread *t = &sim.threads[i];

		if (!is_runnable(t))
			continue;
		t->behind += sum / n;
		t->still = t->still && t->state == RUNNING && t->behind > 0;
		standing |= t->still;
	}
	for (int i = 0; i < sim.thread_count && !standing && n > sim.cores; i++) {
		struct sim_thread *t = &sim.threads[i];

		standing = t->still =
			t->state == RUNNING && !t->paying && !sim_inside(t) && t->behind > WORTH_IT;
	}
}

static void stand_still(int i)
{
	sim.stood_still++;
	for (int c = 0; c < sim.cores; c++)
		if (sim.core_thread[c] >= 0 && sim.core_thread[c] != i)
			sim.threads[sim.core_thread[c]].owed++;
}

/* One step of a running thread: `rate` of a microsecond of progress. */
static void run_thread(int i, double rate)
{
	struct sim_thread *t = &sim.threads[i];
	int guard = 2 * MAX_OPS;

	t->cpu += 1;
	t->vruntime += sim.protocol == IDEAL && sim.in_s ? 1 - sim.p : 1;
	t->slice += 1;
	if (sim_exact() && sim.in_s > 0 && !sim_inside(t))
		t->owed += sim.p;
	if (t->off_core_pay) {
		sleep_it_off(t);
		return;
	}
	if (t->paying && sim_owes_late())
		drop_tick(t);
	if (t->paying && sim.protocol == SPREAD) {
		pay_spread(t);
		return;
	}
	if (t->paying) {
		t->owed -= 1;
		t->paying = t->owed > 0;
		return;
	}
	if (t->still) {
		stand_still(i);
		return;
	}
	while (t->state == RUNNING && guard-- > 0) {
		const struct sim_op *op = &t->op[t->pc];

		if (op->kind != WORK && op->kind != WORK_S) {
			if (must_pay(t) || !sim_step_op(i))
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
	if (t->cpu >= t->tick && sim.protocol >= EXACT)
		tick(i);
}

static void run_timer(int i, double rate)
{
	struct sim_thread *t = &sim.threads[i];

	t->remain -= rate;
	if (t->remain > 0)
		return;
	t->remain = -1;
	if (sim.protocol == COZ && t->paying) {
		t->paying = false; /* it was a payment: go on where it was */
	} else if (t->op[t->pc].kind == SLEEP && !t->wake_forgives) {
		/* the world outside cannot be slowed: owe p of the S time that passed */
		if (sim_owes_late())
			t->owed += sim.p * ((sim_exact() ? sim.union_s : sim.hit_s) - t->slept_s);
		t->pc++;
		t->checked = false;
	} else if (sim.protocol == COZ) {
		t->account = fmax(t->account, sim.global);
	}
	t->wake_forgives = false;
	sim_make_ready(t);
}

void sim_step(void)
{
	bool s_before;

	sim_schedule();
	sim.in_s = 0;
	for (int c = 0; c < sim.cores; c++)
		if (sim.core_thread[c] >= 0 && sim_inside(&sim.threads[sim.core_thread[c]]))
			sim.in_s++;
	s_before = sim.in_s > 0;
	for (int i = 0; i < sim.thread_count; i++)
		if (sim.threads[i].state == TIMED)
			run_timer(i, sim.protocol == IDEAL && s_before ? 1 - sim.p : 1);
	for (int c = 0; c < sim.cores; c++) {
		int i = sim.core_thread[c];

		if (i >= 0 && sim.threads[i].state == RUNNING)
			run_thread(i, sim.protocol == IDEAL && s_before && !sim_inside(&sim.threads[i])
					      ? 1 - sim.p
					      : 1);
	}
	if (sim.protocol == LEVEL)
		level();
	sim.union_s += s_before;
	sim.now += 1;
}

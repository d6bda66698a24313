/* SPDX-License-Identifier: MIT */
/* The model's machine: cores, a fair scheduler, locks, barriers, queues; see model.c. */
#include "tests/accuracy/model.h"
#include <math.h>

struct sim sim = { .period = 1000, .rng = 88172645463325252u };

static double uniform(void)
{
	sim.rng ^= sim.rng << 13;
	sim.rng ^= sim.rng >> 7;
	sim.rng ^= sim.rng << 17;
	return (double)(sim.rng >> 11) / 9007199254740992.0;
}

/* +-25 %: programs are periodic, a fixed period would beat against them */
double sim_next_period(void)
{
	return sim.period * (0.75 + 0.5 * uniform());
}

/* ---- scheduler ---------------------------------------------------------------------- */

static double least_vruntime(void)
{
	double least = INFINITY;

	for (int i = 0; i < sim.thread_count; i++)
		if (sim.threads[i].state == RUNNING || sim.threads[i].state == READY)
			least = fmin(least, sim.threads[i].vruntime);
	return isinf(least) ? 0 : least;
}

void sim_make_ready(struct sim_thread *t)
{
	t->state = READY;
	t->vruntime = fmax(t->vruntime, least_vruntime() - SLICE);
	t->slice = 0;
}

static void take_core(int core, int thread)
{
	if (sim.core_thread[core] >= 0)
		sim.threads[sim.core_thread[core]].state = READY;
	sim.core_thread[core] = thread;
	if (thread >= 0) {
		sim.threads[thread].state = RUNNING;
		sim.threads[thread].slice = 0;
	}
}

static int best_ready(void)
{
	int best = -1;

	for (int i = 0; i < sim.thread_count; i++)
		if (sim.threads[i].state == READY &&
		    (best < 0 || sim.threads[i].vruntime < sim.threads[best].vruntime))
			best = i;
	return best;
}

static bool some_ready(void)
{
	for (int i = 0; i < sim.thread_count; i++)
		if (sim.threads[i].state == READY)
			return true;
	return false;
}

void sim_schedule(void)
{
	for (int c = 0; c < sim.cores; c++)
		if (sim.core_thread[c] >= 0 && sim.threads[sim.core_thread[c]].state != RUNNING)
			sim.core_thread[c] = -1;
	for (int c = 0; c < sim.cores && some_ready(); c++)
		if (sim.core_thread[c] < 0)
			take_core(c, best_ready());
	for (int c = 0; c < sim.cores && some_ready(); c++) {
		struct sim_thread *t = &sim.threads[sim.core_thread[c]];
		int b = best_ready();
		double behind = t->vruntime - sim.threads[b].vruntime;

		if ((t->slice >= SLICE && behind > 0) || behind > WAKEUP_GRANULARITY)
			take_core(c, b);
	}
}

/* ---- synchronisation ---------------------------------------------------------------- */

static void block(int i, int object)
{
	struct sim_object *o = &sim.objects[object];

	o->queue[o->tail++ % MAX_THREADS] = i;
	sim.threads[i].state = BLOCKED;
	sim.threads[i].waits_for = object;
}

static void wake_one(int object)
{
	struct sim_object *o = &sim.objects[object];

	if (o->head == o->tail)
		return;
	struct sim_thread *t = &sim.threads[o->queue[o->head++ % MAX_THREADS]];

	t->state = TIMED;
	t->remain = WAKE_COST;
	t->wake_forgives = true;
}

static void arrive(int i, int object)
{
	struct sim_object *o = &sim.objects[object];

	sim.threads[i].pc++;
	if (++o->count < o->parties) {
		block(i, object);
		return;
	}
	o->count = 0;
	while (o->head != o->tail)
		wake_one(object);
}

bool sim_inside(const struct sim_thread *t)
{
	return t->op[t->pc].kind == WORK_S;
}

bool sim_step_op(int i)
{
	struct sim_thread *t = &sim.threads[i];
	const struct sim_op *op = &t->op[t->pc];
	struct sim_object *o = &sim.objects[op->object];

	switch (op->kind) {
	case END:
		t->pc = 0;
		return true;
	case VISIT:
		sim.visits++;
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
		t->slept_s = sim_exact() ? sim.union_s : sim.hit_s;
		t->wake_forgives = false;
		return false;
	default:
		return false;
	}
	t->pc++;
	t->checked = false;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* The model's programs; see model.c. */
#include "tests/accuracy/model.h"
#include <string.h>

static struct sim_thread *add(const struct sim_op *op, size_t n)
{
	struct sim_thread *t = &sim.threads[sim.thread_count++];

	memset(t, 0, sizeof *t);
	memcpy(t->op, op, n * sizeof *op);
	t->op[n].kind = END;
	t->remain = -1;
	t->tick = sim_next_period();
	return t;
}
#define ADD(...)                                                                                             \
	add((const struct sim_op[]){ __VA_ARGS__ },                                                          \
	    sizeof((const struct sim_op[]){ __VA_ARGS__ }) / sizeof(struct sim_op))
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
	sim.objects[0].parties = n;
	ADD(S(1000), DO(VISIT, 0), DO(BARRIER, 0));
	for (int i = 1; i < n; i++)
		ADD(W(800), DO(BARRIER, 0));
}

static void barrier_fast(int n)
{
	sim.objects[0].parties = n;
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
	sim.objects[0].parties = n;
	for (int i = 0; i < n / 2; i++)
		ADD(S(800), DO(BARRIER, 0), DO(VISIT, 0));
	for (int i = n / 2; i < n; i++)
		ADD(W(480), DO(BARRIER, 0));
}

static void phase(int n)
{
	sim.objects[0].parties = sim.objects[1].parties = n;
	ADD(S(600), DO(BARRIER, 0), W(400), DO(VISIT, 0), DO(BARRIER, 1));
	for (int i = 1; i < n; i++)
		ADD(S(600), DO(BARRIER, 0), DO(BARRIER, 1));
}

static void alone(int n)
{
	sim.objects[0].parties = sim.objects[1].parties = n;
	ADD(W(600), DO(BARRIER, 0), S(400), DO(VISIT, 0), DO(BARRIER, 1));
	for (int i = 1; i < n; i++)
		ADD(W(600), DO(BARRIER, 0), DO(BARRIER, 1));
}

static void semaphore(int n)
{
	(void)n;
	sim.objects[0].count = 1;
	ADD(W(600), DO(WAIT, 0), DO(POST, 1));
	ADD(DO(WAIT, 1), DO(POST, 0), S(800), DO(VISIT, 0));
}

static void crowd(int n)
{
	for (int i = 0; i < 2 * n; i++)
		ADD(S(300), W(200), DO(VISIT, 0));
}

static void shares(int n)
{
	ADD(S(400), W(100), DO(VISIT, 0));
	for (int i = 1; i < 2 * n; i++)
		ADD(W(100));
}

const struct sim_topology sim_topologies[] = {
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
	{ "shares:worker", shares, true },
};
const size_t sim_topology_count = sizeof sim_topologies / sizeof *sim_topologies;

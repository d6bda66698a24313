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
 *   level    as spin, and who has used less of its CPU beyond virtual time (in S, and to pay) than those who share
 *            the CPUs with it lets all stand still for as long as that takes (causal/runtime/level.c)
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
#include "tests/accuracy/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double inserted(void)
{
	return sim.protocol == COZ ? sim.global
				   : sim.p * (sim_by_hits() ? sim.hit_s : sim.union_s) + sim.stood_still;
}

/* Nothing is owed when an experiment begins. */
static void begin_experiment(void)
{
	for (int i = 0; i < sim.thread_count && sim.window > 0 && sim_owes_late(); i++) {
		struct sim_thread *t = &sim.threads[i];

		t->owed = t->to_pay = 0;
		t->paying = t->in_tick = false;
		memset(t->due, 0, sizeof t->due);
		memset(t->left, 0, sizeof t->left);
		memset(t->rate, 0, sizeof t->rate);
	}
}

/* Effective time per visit over `us` simulated microseconds, after a warm-up. */
static double simulate(const struct sim_topology *topology, int n, enum sim_protocol how, double speedup,
		       double us)
{
	double from, before, delay = 0, length = 0;
	long visited = 0;

	memset(sim.objects, 0, sizeof sim.objects);
	memset(sim.threads, 0, sizeof sim.threads);
	sim.thread_count = 0;
	sim.cores = n;
	sim.now = sim.union_s = sim.hit_s = sim.global = sim.stood_still = sim.pairs = sim.pairs_expected = 0;
	sim.visits = 0;
	sim.protocol = how;
	sim.p = how == NONE ? 0 : speedup;
	for (int c = 0; c < sim.cores; c++)
		sim.core_thread[c] = -1;
	topology->build(n);
	for (int i = 0; i < sim.thread_count && how == NONE; i++)
		for (struct sim_op *op = sim.threads[i].op; op->kind != END; op++)
			if (op->kind == WORK_S)
				op->time *= 1 - speedup;
	for (double t = 0; t < us / 10; t++)
		sim_step();
	for (double done = 0; done < us; done += sim.now - from) {
		from = sim.now;
		before = inserted();
		visited -= sim.visits;
		begin_experiment();
		while (sim.now - from < (sim.window > 0 ? sim.window : us))
			sim_step();
		visited += sim.visits;
		delay += inserted() - before;
		length += sim.now - from;
	}
	if (how == NONE)
		delay = 0;
	return visited > 0 ? (length - delay) / (double)visited : NAN;
}

static double effect(const struct sim_topology *topology, int n, enum sim_protocol how, double speedup,
		     double us)
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
	       sim.period);
	printf("| case | speedup | truth | ideal | exact | spin | level | hits | own | spread | ticks | coz "
	       "|\n"
	       "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < sim_topology_count; i++) {
		if (n > 2 && !sim_topologies[i].scales)
			continue;
		for (size_t s = 0; s < speedups; s++, rows++) {
			double truth = effect(&sim_topologies[i], n, NONE, speedup[s], us);

			printf("| %s | %g | %.1f |", s ? "" : sim_topologies[i].name, 100 * speedup[s],
			       truth);
			for (enum sim_protocol how = IDEAL; how < PROTOCOLS; how++) {
				double e = effect(&sim_topologies[i], n, how, speedup[s], us);

				printf(" %.1f |", e);
				error[how] += fabs(e - truth);
				worst[how] = fmax(worst[how], fabs(e - truth));
			}
			printf("\n");
			fflush(stdout);
		}
	}
	printf("| mean error | | |");
	for (enum sim_protocol how = IDEAL; how < PROTOCOLS; how++)
		printf(" %.1f |", error[how] / (double)rows);
	printf("\n| worst | | |");
	for (enum sim_protocol how = IDEAL; how < PROTOCOLS; how++)
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
			sim.period = atof(argv[++i]);
		else if (!strcmp(argv[i], "--window") && i + 1 < argc)
			sim.window = atof(argv[++i]);
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

/* SPDX-License-Identifier: MIT */
/* The cases of the accuracy suite and what each should give on paper; the derivations stand
 * at the top of each program. */
#include "acc.h"
#include <stdio.h>
#include <string.h>

#define PAPER(slope, knee, slope2) slope, knee, slope2
#define LINEAR(slope)              slope, 100, 0
#define MEASURED                   NAN, 100, 0
#define LOCKS                      1, 100.0 / 3, 0.5

const struct acc_case acc_cases[] = {
	{ "serial:a", "serial", "serial.c", "a", NULL, LINEAR(0.6), ACC_SHORT },
	{ "serial:b", "serial", "serial.c", "b", NULL, LINEAR(0.3), 0 },
	{ "barrier:slow", "barrier", "barrier.c", "slow", NULL, PAPER(1, 20, 0), ACC_SHORT },
	{ "barrier:fast", "barrier", "barrier.c", "fast", NULL, LINEAR(0), 0 },
	{ "prodcons:consume", "prodcons", "prodcons.c", "consume", NULL, PAPER(1, 60, 0), ACC_SHORT },
	{ "prodcons:produce", "prodcons", "prodcons.c", "produce", NULL, LINEAR(0), 0 },
	{ "mutex:critical", "mutex", "locks.h", "critical", NULL, LOCKS, ACC_SHORT },
	{ "mutex:parallel", "mutex", "locks.h", "parallel", NULL, LINEAR(0), 0 },
	{ "futex:critical", "futex", "locks.h", "critical", NULL, LOCKS, 0 },
	{ "spinlock:critical", "spinlock", "locks.h", "critical", NULL, LOCKS, 0 },
	{ "pipeline:s2", "pipeline", "pipeline.c", "s2", NULL, MEASURED, 0 },
	{ "blocking:cpu", "blocking", "blocking.c", "cpu", NULL, MEASURED, 0 },
	{ "blocking:io", "blocking", "blocking.c", "io", NULL, MEASURED, ACC_OFF_CPU },
	{ "pipes:ping", "pipes", "pipes.c", "ping", NULL, LINEAR(0.7), ACC_SHORT },
	{ "pipes:pong", "pipes", "pipes.c", "pong", NULL, LINEAR(0.3), 0 },
	{ "inline:hot", "inline", "inline.c", "hot", "^hot$", MEASURED, 0 },
	{ "inline:rest", "inline", "inline.c", "rest", NULL, MEASURED, 0 },
	{ "omp:heavy", "omp", "omp.c", "heavy", NULL, PAPER(1, 40, 0), 0 },
	{ "omp:light", "omp", "omp.c", "light", NULL, LINEAR(0), 0 },
	{ "omp_llvm:heavy", "omp_llvm", "omp.c", "heavy", NULL, PAPER(1, 40, 0), 0 },
	{ "rwlock:read", "rwlock", "rwlock.c", "read", NULL, LINEAR(0.4), 0 },
	{ "rwlock:write", "rwlock", "rwlock.c", "write", NULL, LINEAR(0.6), 0 },
	{ "churn:heavy", "churn", "churn.c", "heavy", NULL, MEASURED, 0 },
	{ "churn:tail", "churn", "churn.c", "tail", NULL, MEASURED, 0 },
	{ "latency:lookup", "latency", "latency.c", "lookup", NULL, LINEAR(0.625), ACC_LATENCY },
	{ "latency:think", "latency", "latency.c", "think", NULL, PAPER(1, 20, 0), 0 },
	{ "recursion:deep", "recursion", "recursion.c", "deep", NULL, LINEAR(0.7), 0 },
	{ "phase:work", "phase", "phase.c", "work", NULL, LINEAR(0.6), ACC_SHORT },
	{ "phase:alone", "phase", "phase.c", "alone", NULL, LINEAR(0.4), 0 },
	{ "forkpipe:parent", "forkpipe", "forkpipe.c", "parent", NULL, LINEAR(0.6), 0 },
	{ "forkpipe:child", "forkpipe", "forkpipe.c", "child", NULL, LINEAR(0.4), 0 },
	{ "yield:ping", "yield", "yield.c", "ping", NULL, LINEAR(0.7), 0 },
	{ "semaphore:drain", "semaphore", "semaphore.c", "drain", NULL, PAPER(1, 25, 0), 0 },
	{ "semaphore:fill", "semaphore", "semaphore.c", "fill", NULL, LINEAR(0), 0 },
	{ "condvar:ping", "condvar", "condvar.c", "ping", NULL, MEASURED, 0 },
	{ "nested:outer", "nested", "nested.c", "outer", NULL, LINEAR(0.7), 0 },
	{ "nested:inner", "nested", "nested.c", "inner", NULL, LINEAR(0.3), 0 },
	{ "nested:remote", "nested", "nested.c", "remote", NULL, LINEAR(0.15), 0 },
	{ "crowd:work", "crowd", "crowd.c", "work", NULL, LINEAR(0.6), 0 },
	{ "rust_lock:critical", "rust_lock", "rust_lock.rs", "critical", "(^|::)region_critical", LOCKS, 0 },
};
const size_t acc_case_count = sizeof acc_cases / sizeof *acc_cases;

double acc_case_expect(const struct acc_case *c, double speedup)
{
	double below = fmin(speedup, c->knee), above = fmax(0, speedup - c->knee);

	return isnan(c->slope) ? NAN : c->slope * below + c->slope2 * above;
}

unsigned acc_case_line(const struct acc_case *c, const char *program_dir)
{
	char path[ACC_PATH], text[512], mark[64];
	unsigned line = 0, found = 0;
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", program_dir, c->source);
	snprintf(mark, sizeof mark, "GT_REGION %s", c->region);
	f = fopen(path, "r");
	if (!f)
		return 0;
	while (!found && fgets(text, sizeof text, f)) {
		const char *at = strstr(text, mark);

		line++;
		/* the whole word, and not the explanation of the mark in a comment */
		if (at && strchr(" \n", at[strlen(mark)]) && strchr(text, ';'))
			found = line;
	}
	fclose(f);
	return found;
}

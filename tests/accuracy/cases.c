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
#define PACE(variant, paper)                                                                                 \
	{                                                                                                    \
		"pace-" variant ":work", "pace-" variant, "pace.c", "work", NULL, paper, 0, "clock"          \
	}
#define OUTSIDE(variant, region, paper)                                                                      \
	{                                                                                                    \
		"outside-" variant ":" region, "outside-" variant, "outside.c", region, NULL, paper, 0,      \
			"outside"                                                                            \
	}
#define SERVE(variant)                                                                                       \
	{                                                                                                    \
		"serve-" variant ":answer", "serve-" variant, "serve.c", "answer", NULL, LINEAR(0.95), 0,    \
			"outside"                                                                            \
	}
#define HOT(variant, region, paper)                                                                          \
	{                                                                                                    \
		"hot-" variant ":" region, "hot-" variant, "hot.c", region, NULL, paper, 0, "hot"            \
	}
#define MEET(variant, region, paper)                                                                         \
	{                                                                                                    \
		"meet-" variant ":" region, "meet-" variant, "meet.cc", region, "^region_" region, paper, 0, \
			"books"                                                                              \
	}
#define QUEUE(variant, region, paper)                                                                        \
	{                                                                                                    \
		"queues-" variant ":" region, "queues-" variant, "queues.c", region, NULL, paper, 0, "queue" \
	}

const struct acc_case acc_cases[] = {
	{ "serial:a", "serial", "serial.c", "a", NULL, LINEAR(0.6), ACC_SHORT, "base" },
	{ "serial:b", "serial", "serial.c", "b", NULL, LINEAR(0.3), 0, "base" },
	{ "barrier:slow", "barrier", "barrier.c", "slow", NULL, PAPER(1, 20, 0), ACC_SHORT, "base" },
	{ "barrier:fast", "barrier", "barrier.c", "fast", NULL, LINEAR(0), 0, "base" },
	{ "prodcons:consume", "prodcons", "prodcons.c", "consume", NULL, PAPER(1, 60, 0), ACC_SHORT, "base" },
	{ "prodcons:produce", "prodcons", "prodcons.c", "produce", NULL, LINEAR(0), 0, "base" },
	{ "mutex:critical", "mutex", "locks.h", "critical", NULL, LOCKS, ACC_SHORT, "base" },
	{ "mutex:parallel", "mutex", "locks.h", "parallel", NULL, LINEAR(0), 0, "base" },
	{ "futex:critical", "futex", "locks.h", "critical", NULL, LOCKS, 0, "base" },
	{ "spinlock:critical", "spinlock", "locks.h", "critical", NULL, LOCKS, 0, "base" },
	{ "spinlock:parallel", "spinlock", "locks.h", "parallel", NULL, LINEAR(0), 0, "base" },
	{ "pipeline:s2", "pipeline", "pipeline.c", "s2", NULL, MEASURED, 0, "base" },
	{ "blocking:cpu", "blocking", "blocking.c", "cpu", NULL, MEASURED, 0, "base" },
	{ "blocking:io", "blocking", "blocking.c", "io", NULL, MEASURED, ACC_OFF_CPU, "base" },
	{ "pipes:ping", "pipes", "pipes.c", "ping", NULL, LINEAR(0.7), ACC_SHORT, "base" },
	{ "pipes:pong", "pipes", "pipes.c", "pong", NULL, LINEAR(0.3), 0, "base" },
	{ "inline:hot", "inline", "inline.c", "hot", "^hot$", MEASURED, 0, "base" },
	{ "inline:rest", "inline", "inline.c", "rest", NULL, MEASURED, 0, "base" },
	{ "kernel-sp:slow", "kernel-sp", "kernel.c", "slow", "^slow$", PAPER(1, 20, 0), 0, "base" },
	{ "kernel-frame:slow", "kernel-frame", "kernel.c", "slow", "^slow$", PAPER(1, 20, 0), 0, "base" },
	{ "omp:heavy", "omp", "omp.c", "heavy", NULL, PAPER(1, 40, 0), 0, "base" },
	{ "omp:light", "omp", "omp.c", "light", NULL, LINEAR(0), 0, "base" },
	{ "omp_llvm:heavy", "omp_llvm", "omp.c", "heavy", NULL, PAPER(1, 40, 0), 0, "base" },
	{ "rwlock:read", "rwlock", "rwlock.c", "read", NULL, LINEAR(0.4), 0, "base" },
	{ "rwlock:write", "rwlock", "rwlock.c", "write", NULL, LINEAR(0.6), 0, "base" },
	{ "churn:heavy", "churn", "churn.c", "heavy", NULL, MEASURED, 0, "base" },
	{ "churn:tail", "churn", "churn.c", "tail", NULL, MEASURED, 0, "base" },
	{ "latency:lookup", "latency", "latency.c", "lookup", NULL, LINEAR(0.625), ACC_LATENCY, "base" },
	{ "latency:think", "latency", "latency.c", "think", NULL, PAPER(1, 20, 0), 0, "base" },
	{ "recursion:deep", "recursion", "recursion.c", "deep", NULL, LINEAR(0.7), 0, "base" },
	{ "phase:work", "phase", "phase.c", "work", NULL, LINEAR(0.6), ACC_SHORT, "base" },
	{ "phase:alone", "phase", "phase.c", "alone", NULL, LINEAR(0.4), 0, "base" },
	{ "forkpipe:parent", "forkpipe", "forkpipe.c", "parent", NULL, LINEAR(0.6), 0, "base" },
	{ "forkpipe:child", "forkpipe", "forkpipe.c", "child", NULL, LINEAR(0.4), 0, "base" },
	{ "yield:ping", "yield", "yield.c", "ping", NULL, LINEAR(0.7), 0, "base" },
	{ "semaphore:drain", "semaphore", "semaphore.c", "drain", NULL, PAPER(1, 25, 0), 0, "base" },
	{ "semaphore:fill", "semaphore", "semaphore.c", "fill", NULL, LINEAR(0), 0, "base" },
	{ "condvar:ping", "condvar", "condvar.c", "ping", NULL, MEASURED, 0, "base" },
	{ "nested:outer", "nested", "nested.c", "outer", NULL, LINEAR(0.7), 0, "base" },
	{ "nested:inner", "nested", "nested.c", "inner", NULL, LINEAR(0.3), 0, "base" },
	{ "nested:remote", "nested", "nested.c", "remote", NULL, LINEAR(0.15), 0, "base" },
	{ "crowd:work", "crowd", "crowd.c", "work", NULL, LINEAR(0.6), 0, "base" },
	{ "shares:work", "shares", "shares.c", "work", NULL, LINEAR(0.8), 0, "base" },
	{ "shares:beside", "shares", "shares.c", "beside", NULL, LINEAR(0), 0, "base" },
	{ "stacks-context:work", "stacks-context", "stacks.c", "work", NULL, LINEAR(0.6), 0, "books" },
	{ "stacks-own:work", "stacks-own", "stacks.c", "work", NULL, LINEAR(0.6), 0, "books" },
	{ "several-two:work", "several-two", "several.c", "work", NULL, LINEAR(0.6), 0, "books" },
	{ "several-four:work", "several-four", "several.c", "work", NULL, LINEAR(0.6), 0, "books" },
	{ "rust_lock:critical", "rust_lock", "rust_lock.rs", "critical", "(^|::)region_critical", LOCKS, 0,
	  "base" },
	PACE("abstime", LINEAR(0)),
	PACE("timerfd", LINEAR(0)),
	PACE("epoll", LINEAR(0)),
	PACE("timer", LINEAR(0)),
	PACE("itimer", LINEAR(0)),
	PACE("cond", LINEAR(0)),
	PACE("condmono", LINEAR(0)),
	PACE("poll", LINEAR(0)),
	PACE("nanosleep", LINEAR(0)),
	PACE("busy", LINEAR(0)),
	PACE("tick", LINEAR(0)),
	PACE("bucket", LINEAR(0)),
	PACE("bucket_knee", PAPER(1, 40, 0)),
	PACE("late", MEASURED),
	PACE("usleep", MEASURED),
	{ "lease:task", "lease", "lease.c", "task", NULL, MEASURED, 0, "clock" },
	{ "openloop:serve", "openloop", "openloop.c", "serve", NULL, LINEAR(0), 0, "clock" },
	{ "openloop:latency", "openloop", "openloop.c", "serve", NULL, LINEAR(0.75), ACC_LATENCY, "clock" },
	OUTSIDE("slow_pipe_in", "work", LINEAR(0)),
	OUTSIDE("slow_pipe_out", "work", LINEAR(0)),
	OUTSIDE("slow_pair_in", "work", LINEAR(0)),
	OUTSIDE("slow_pair_out", "work", LINEAR(0)),
	OUTSIDE("slow_tcp_in", "work", LINEAR(0)),
	OUTSIDE("slow_tcp_out", "work", LINEAR(0)),
	OUTSIDE("slow_epoll_in", "work", LINEAR(0)),
	OUTSIDE("slow_epoll_out", "work", LINEAR(0)),
	OUTSIDE("slow_futex_in", "work", LINEAR(0)),
	OUTSIDE("slow_futex_out", "work", LINEAR(0)),
	OUTSIDE("lead_pipe_in", "work", LINEAR(0)),
	OUTSIDE("lead_pipe_in", "feed", PAPER(1, 200.0 / 7, 0)),
	OUTSIDE("lead_tcp_in", "work", LINEAR(0)),
	OUTSIDE("lead_tcp_in", "feed", PAPER(1, 200.0 / 7, 0)),
	OUTSIDE("lead_futex_in", "work", LINEAR(0)),
	OUTSIDE("lead_futex_in", "feed", PAPER(1, 200.0 / 7, 0)),
	OUTSIDE("fast_pipe_in", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("fast_pipe_out", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("fast_tcp_in", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("fast_tcp_out", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("fast_futex_in", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("fast_futex_out", "work", PAPER(0.75, 200.0 / 3, 0)),
	OUTSIDE("paced_pipe_in", "work", LINEAR(0)),
	OUTSIDE("paced_pipe_out", "work", LINEAR(0)),
	OUTSIDE("paced_tcp_out", "work", LINEAR(0)),
	OUTSIDE("paced_futex_out", "work", LINEAR(0)),
	OUTSIDE("fed_pipe_in", "take", LINEAR(0)),
	OUTSIDE("fed_pipe_out", "take", LINEAR(0)),
	OUTSIDE("fed_tcp_out", "take", LINEAR(0)),
	OUTSIDE("fed_epoll_out", "take", LINEAR(0)),
	OUTSIDE("sink_pipe_in", "work", LINEAR(0)),
	OUTSIDE("sink_pipe_out", "work", LINEAR(0)),
	OUTSIDE("sink_pair_out", "work", LINEAR(0)),
	OUTSIDE("ask_pipe_in", "work", LINEAR(0.68)),
	OUTSIDE("ask_pipe_out", "work", LINEAR(0.68)),
	OUTSIDE("ask_pair_in", "work", LINEAR(0.68)),
	OUTSIDE("ask_pair_out", "work", LINEAR(0.68)),
	OUTSIDE("ask_tcp_in", "work", LINEAR(0.68)),
	OUTSIDE("ask_tcp_out", "work", LINEAR(0.68)),
	OUTSIDE("ask_tcp_exec", "work", LINEAR(0.68)),
	OUTSIDE("ask_epoll_in", "work", LINEAR(0.68)),
	OUTSIDE("ask_epoll_out", "work", LINEAR(0.68)),
	OUTSIDE("ask_futex_in", "work", LINEAR(0.68)),
	OUTSIDE("ask_futex_out", "work", LINEAR(0.68)),
	SERVE("tcp"),
	SERVE("eventfd"),
	MEET("barrier", "slow", PAPER(10.0 / 11, 40, 0)),
	MEET("semaphore", "slow", PAPER(10.0 / 11, 40, 0)),
	MEET("futex", "slow", PAPER(10.0 / 11, 40, 0)),
	MEET("spin", "slow", PAPER(10.0 / 11, 40, 0)),
	MEET("yield", "slow", PAPER(10.0 / 11, 40, 0)),
	MEET("barrier_short", "slow", MEASURED),
	MEET("semaphore_short", "slow", MEASURED),
	MEET("futex_short", "slow", MEASURED),
	MEET("spin_short", "slow", MEASURED),
	MEET("yield_short", "slow", MEASURED),
	MEET("barrier_two", "slow", MEASURED), /* the sleepers wake late */
	MEET("futex_two", "slow", MEASURED),
	MEET("spin_two", "slow", PAPER(4.0 / 7, 25, 0)),
	MEET("barrier", "fast", LINEAR(0)),
	MEET("yield", "fast", LINEAR(0)),
	{ "dynamic:heavy", "dynamic", "dynamic.c", "heavy", NULL, MEASURED, 0, "books" },
	{ "dynamic:light", "dynamic", "dynamic.c", "light", NULL, MEASURED, 0, "books" },
	{ "dynamic_llvm:heavy", "dynamic_llvm", "dynamic.c", "heavy", NULL, MEASURED, 0, "books" },
	QUEUE("two4", "second", PAPER(1, 40, 0)),
	QUEUE("two64", "second", PAPER(1, 40, 0)),
	QUEUE("two1024", "second", PAPER(1, 40, 0)),
	QUEUE("late4096", "second", PAPER(1, 15, 0)),
	QUEUE("slow20", "second", PAPER(1, 40, 0)),
	QUEUE("slow200", "second", PAPER(1, 40, 0)),
	QUEUE("three4", "second", PAPER(1, 60, 0.5)),
	QUEUE("three64", "second", PAPER(1, 60, 0.5)),
	QUEUE("three1024", "second", PAPER(1, 60, 0.5)),
	QUEUE("burst64", "second", LINEAR(0)),
	QUEUE("short03", "second", MEASURED),
	QUEUE("short1", "second", MEASURED),
	QUEUE("short5", "second", MEASURED),
	QUEUE("two64", "first", LINEAR(0)),
	QUEUE("two1024", "first", LINEAR(0)),
	QUEUE("slow200", "first", LINEAR(0)),
	QUEUE("three64", "first", LINEAR(0)),
	QUEUE("three64", "third", LINEAR(0)),
	QUEUE("three1024", "third", LINEAR(0)),
	QUEUE("burst64", "first", PAPER(1, 40, 0)),
	QUEUE("short03", "first", MEASURED),
	QUEUE("short1", "first", MEASURED),
	HOT("mutex", "tiny", LOCKS),
	HOT("spin", "tiny", LOCKS),
	{ "hot-inline:inlined", "hot-inline", "hot.c", "inlined", "^inlined$", LOCKS, 0, "hot" },
	HOT("barrier", "tiny", PAPER(1, 20, 0)),
	HOT("pipe", "tiny", MEASURED),
	HOT("omp", "tiny", PAPER(1, 40, 0)),
	HOT("system", "asking", MEASURED),
	HOT("deep", "deep", LINEAR(0.6)),
	HOT("crowd", "tiny", LINEAR(0.6)),
	HOT("miss", "filling", MEASURED),
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

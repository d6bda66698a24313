/* SPDX-License-Identifier: MIT */
/* A run whose control group limits its CPU time, as containers are limited: what experiments insert where that is what it
 * waits for. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include <stdio.h>

enum {
	EVERY = 20000000, /* ns between two looks at the limit ... */
	LOOKS = 8         /* ... and 1 / part of the time so far */
};
static const double seldom = 0.2; /* part of the time for which it is held back: less is chance */

/* What the run's threads have used of CPUs so far beyond virtual time, ns. */
static uint64_t used_beyond(const struct ca_session *s)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < CA_MAX_CPUS; i++)
		sum += atomic_load_explicit(&s->cpu[i].beyond, memory_order_relaxed);
	return sum;
}

static double held_back(struct ca_conductor *c, uint64_t now)
{
	uint32_t used = atomic_load(&c->session->processes_used);
	char self[48];

	for (uint32_t p = 0; p < used; p++)
		if (atomic_load(&c->session->process[p].state) == CA_SLOT_LIVE) {
			snprintf(self, sizeof self, "/proc/%u/cgroup", c->session->process[p].pid);
			return ca_quota_held_back(&c->quota, self, "/sys/fs/cgroup", now);
		}
	return 0;
}

/* A limit of CPU time gives the program that time for a set time, and in virtual time it should for a set virtual one: D
 * is to elapsed time what is used of the CPUs beyond virtual time is to all that is used of them. What is missing of
 * that is told as if all had stood still: doc/METHOD.md, section 2. */
void ca_conductor_limit_make_up(struct ca_conductor *c, uint64_t now)
{
	const struct ca_experiment_record *r = &c->e.record;
	double held = r->speedup ? held_back(c, now) : 0, cpu, delay, due;
	struct ca_selection_log_sum sum;
	struct ca_work work;
	uint64_t more;

	c->e.limit.next = now + EVERY + (c->set->end_to_end ? (now - c->e.limit.from) / LOOKS : 0);
	if (held < seldom || c->e.part)
		return;
	if (c->opt.sweep && ca_sweep_first_time(c->opt.sweep, CA_SWEEP_LIMITED))
		ca_conductor_say(
			c, 0,
			"a limit of CPU time (cpu.max of its control group, docker run --cpus) stops "
			"the program in %.0f %% of its periods: effects are those under that limit",
			100 * held);
	work = ca_conductor_whole_work(c);
	cpu = (double)(int64_t)(work.ns + work.paid - c->e.limit.work.ns - c->e.limit.work.paid);
	if (work.processes != c->e.limit.work.processes || !(cpu > 0))
		return;
	ca_selection_log_read(c->log);
	sum = ca_selection_log_peek(c->log, c->e.limit.from, now);
	delay = (double)(sum.s_time + sum.still) * (r->speedup / 1e6);
	due = held * (double)(now - c->e.limit.from) * (double)(used_beyond(c->session) - c->e.limit.beyond) /
		      cpu +
	      (1 - held) * (delay - (double)c->e.limit.more * (r->speedup / 1e6));
	if (!(due > delay) || due >= (double)(now - c->e.limit.from))
		return;
	more = (uint64_t)((due - delay) / (r->speedup / 1e6));
	c->e.limit.more += more;
	ca_selection_append(&c->session->log_head, c->session->log, CA_LOG_HELD, 0, now, more);
}

void ca_conductor_limit_begin(struct ca_conductor *c, uint64_t now, const struct ca_work *work)
{
	c->e.limit.from = now;
	c->e.limit.more = 0;
	c->e.limit.work = *work;
	c->e.limit.beyond = used_beyond(c->session);
}

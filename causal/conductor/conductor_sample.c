/* SPDX-License-Identifier: MIT */
/* A run whose samples become a profile, as the conductor sees it. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/walks.h"
#include "core/clock.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AHEAD = 50000000 /* ns before a window that samples are taken again: we may be late */ };

static const char *const drops[] = {
#define X(id, text) text,
	CA_DROPS(X)
#undef X
};

enum ca_status ca_conductor_sample_open(struct ca_conductor *c, struct ca_err *err)
{
	c->opt.samples->period = c->session->period;
	c->sampling = ca_sampling_new(c->opt.samples, c->session, c->objects, c->windows);
	if (!c->sampling)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (c->set->unwinder == CA_UNWINDER_LIBUNWIND) {
		enum ca_status status = ca_walks_new(&c->walks, c->session, err);

		if (status)
			return status;
	}
	return c->opt.suggestion ? ca_conductor_suggest_open(c, err) : CA_OK;
}

void ca_conductor_sample_started(struct ca_conductor *c)
{
	if (c->sampling)
		c->opt.samples->time = ca_clock_read(CLOCK_REALTIME);
}

void ca_conductor_sample_step(struct ca_conductor *c, uint64_t now)
{
	uint64_t due = ca_windows_due(c->windows);

	if (c->sampling && c->opt.suggestion)
		ca_conductor_suggest_step(c, now);
	atomic_store_explicit(&c->session->quiet,
			      !ca_windows_is_open(c->windows) && (due == UINT64_MAX || due > now + AHEAD),
			      memory_order_relaxed);
}

static const char *backend_name(unsigned backends)
{
	bool perf = backends & 1u << CA_BACKEND_PERF, timer = backends & 1u << CA_BACKEND_TIMER;

	return perf && timer ? "perf and timers" : perf ? "perf" : timer ? "timer" : "none";
}

void ca_conductor_sample_close(struct ca_conductor *c, uint64_t now, int wait_status)
{
	struct ca_samples *s = c->opt.samples;
	uint64_t first = ca_windows_first(c->windows);

	ca_sampling_end(c->sampling, now);
	if (c->opt.suggestion)
		ca_conductor_suggest_close(c, wait_status);
	ca_sampling_free(c->sampling);
	c->sampling = NULL;
	s->backend = strdup(backend_name(c->sum.backends));
	s->delay = first ? first - c->started : now - c->started;
	s->runtime = ca_windows_until(c->windows, now);
	s->handler = c->sum.handler_ns;
	s->processes = atomic_load(&c->session->processes_begun);
	s->exit_status = c->sum.exit_status;
	s->incomplete = c->sum.drop[CA_DROP_UNWIND];
	if (c->walks) {
		struct ca_walks_count count = ca_walks_count(c->walks);

		s->incomplete = count.incomplete;
		s->walked = count.stacks;
		s->alike = count.same;
	}
	for (unsigned i = 0; i < CA_DROP_COUNT; i++)
		if (i != CA_DROP_UNWIND)
			ca_samples_add_loss(s, drops[i], c->sum.drop[i]);
	ca_samples_add_loss(s, "threads for which there was no room",
			    atomic_load(&c->session->threads_missed));
}

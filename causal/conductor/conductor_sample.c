/* SPDX-License-Identifier: MIT */
/* A run whose samples become a profile, as the conductor sees it. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/walks.h"
#include "core/clock.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	AHEAD = 50000000 /* ns before a window that samples are taken again: we may be late */
};

static const char *const drops[] = {
#define X(id, text) text,
	CA_DROPS(X)
#undef X
};

/* All samplers go by one tick of each thread. */
static uint64_t shortest_period(const struct ca_samplers *s, uint64_t otherwise)
{
	uint64_t period = s->on & 1u << CA_SAMPLER_CPU ? s->of[CA_SAMPLER_CPU].period : 0;

	if (s->on & 1u << CA_SAMPLER_REAL && (!period || s->of[CA_SAMPLER_REAL].period < period))
		period = s->of[CA_SAMPLER_REAL].period;
	return period ? period : otherwise;
}

static bool open_windows(struct ca_conductor *c)
{
	struct ca_settings own = *c->set; /* strings are borrowed */

	own.periods = (char *)(uintptr_t) "";
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++) {
		c->sampler_windows[i] = c->windows;
		if (!ca_samplers_window(c->set, (enum ca_sampler)i, &own.delay, &own.duration))
			continue;
		c->sampler_windows[i] = c->own_windows[i] = ca_windows_new(&own, NULL, NULL);
		if (!c->own_windows[i])
			return false;
	}
	c->sampler_windows[CA_SAMPLER_COUNT] = c->windows;
	return true;
}

enum ca_status ca_conductor_sample_open(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status = ca_samplers_make(&c->session->samplers, c->set, err);

	if (status)
		return status;
	c->session->period = shortest_period(&c->session->samplers, c->session->period);
	c->opt.samples->period = c->session->period;
	c->opt.samples->no_cputime = !(c->session->samplers.on & 1u << CA_SAMPLER_CPU);
	if (!open_windows(c))
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	c->opt.samples->partly =
		c->own_windows[CA_SAMPLER_CPU] || c->session->samplers.of[CA_SAMPLER_CPU].ranges;
	c->sampling = ca_sampling_new(c->opt.samples, c->session, c->objects, c->sampler_windows, c->set);
	if (!c->sampling)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (c->set->unwinder == CA_UNWINDER_LIBUNWIND) {
		status = ca_walks_new(&c->walks, c->session, err);
		if (status)
			return status;
	}
	/* what is suggested is decided while the program runs */
	if (c->set->use_temporary_files && !c->opt.suggestion)
		return ca_set_aside_new(&c->set_aside, c->sampling,
					(uint64_t)c->set->temporary_files_size << 20, err);
	return c->opt.suggestion ? ca_conductor_suggest_open(c, err) : CA_OK;
}

void ca_conductor_sample_started(struct ca_conductor *c)
{
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->own_windows[i])
			ca_windows_begin(c->own_windows[i], c->started);
	if (c->sampling)
		c->opt.samples->time = ca_clock_read(CLOCK_REALTIME);
}

void ca_conductor_sample_step(struct ca_conductor *c, uint64_t now)
{
	uint32_t quiet = 0;

	if (c->sampling && c->opt.suggestion)
		ca_conductor_suggest_step(c, now);
	for (unsigned i = 0; c->sampling && i < CA_SAMPLER_COUNT; i++) {
		const struct ca_windows *w = c->sampler_windows[i];
		uint64_t due = ca_windows_due(w);

		if (!ca_windows_is_open(w) && (due == UINT64_MAX || due > now + AHEAD))
			quiet |= 1u << i;
	}
	atomic_store_explicit(&c->session->quiet, quiet, memory_order_relaxed);
}

/* The wait that a thread is in, if it is in one, and the thread's end. */
static size_t make_last(const struct ca_conductor *c, uint32_t number, uint64_t now, struct ca_source *from,
			struct ca_event event[3])
{
	const struct ca_slot *slot = &c->session->slot[number];
	const struct ca_process *process = &c->session->process[slot->process];
	/* acquire: pairs with the release in causal/runtime/sample.c */
	uint64_t since = atomic_load_explicit(&slot->wait_since, memory_order_acquire);

	*from = (struct ca_source){ process->pid, slot->tid, process->index, slot->thread_index };
	event[0] = (struct ca_event){ .time = now, .kind = CA_POINT, .key = CA_KEY_BLOCKED, .value = since };
	event[1] = (struct ca_event){
		.time = now, .kind = CA_POINT, .key = CA_KEY_WOKEN, .value = atomic_load(&slot->wait_number)
	};
	event[2] = (struct ca_event){
		.time = now, .kind = CA_BURST_END, .key = CA_KEY_THREAD, .value = slot->tid
	};
	return since && slot->thread_index ? 2 : 0;
}

void ca_conductor_sample_thread_died(struct ca_conductor *c, uint32_t slot, uint64_t now)
{
	struct ca_source from;
	struct ca_event event[3];
	size_t open = make_last(c, slot, now, &from, event);

	if (!from.thread_index)
		return;
	if (c->set_aside)
		ca_set_aside_take(c->set_aside, &from, event + 2 - open, open + 1);
	else if (c->sampling)
		ca_sampling_take(c->sampling, &from, event + 2 - open, open + 1);
}

static void take_open_waits(struct ca_conductor *c, uint64_t now)
{
	uint32_t used = atomic_load(&c->session->slots_used);

	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		struct ca_source from;
		struct ca_event event[3];

		if (atomic_load(&c->session->slot[i].state) == CA_SLOT_LIVE)
			ca_sampling_take(c->sampling, &from, event, make_last(c, i, now, &from, event));
	}
}

/* Those of --overflow are perf's, whatever the threads' ticks are. */
static unsigned backends_of(const struct ca_conductor *c)
{
	unsigned overflow = 1u << CA_SAMPLER_OVERFLOW, on = c->session->samplers.on;
	size_t metric = on & 1u << CA_SAMPLER_REAL ? 1 : 0; /* CA_METRICS has them in this order */
	bool perf = on & overflow && ca_samples_measured_sum(c->opt.samples, metric);

	return (on == overflow ? 0 : c->sum.backends) | (unsigned)perf << CA_BACKEND_PERF;
}

static const char *backend_name(unsigned backends)
{
	bool perf = backends & 1u << CA_BACKEND_PERF, timer = backends & 1u << CA_BACKEND_TIMER;

	return perf && timer ? "perf and timers" : perf ? "perf" : timer ? "timer" : "none";
}

/* As the runtime opens it for a thread. */
static const char *why_missing(const struct ca_conductor *c, const struct ca_perf_counter *event)
{
	struct ca_tick tick = { .backend = CA_BACKEND_AUTO };
	enum ca_status status = ca_tick_overflow(&tick, event, UINT64_C(1) << 50, 0, SIGURG);

	if (status == CA_OK)
		ca_tick_stop(&tick);
	if (status == CA_ERR_PERMISSION && ca_samplers_of_kernel(event->type, event->config))
		return "it happens in the kernel, where nothing may be counted here "
		       "(kernel.perf_event_paranoid is above 1, or a container forbids it); "
		       "--metrics switches,preemptions has context switches all the same";
	if (status == CA_ERR_PERMISSION)
		return "perf is not allowed here (kernel.perf_event_paranoid is above 2, or a container "
		       "forbids it)";
	if (status != CA_OK)
		return "this machine, or its kernel, has no such event";
	return c->sum.backends & 1u << CA_BACKEND_PERF
		       ? "the kernel did not give it to the program"
		       : "counters come with perf's ticks only, which the program did not have (-b)";
}

/* Of events that no thread could get. */
static void tell_missing(struct ca_conductor *c)
{
	const struct ca_samplers *s = &c->session->samplers;
	struct ca_samples *samples = c->opt.samples;
	const char *unit;
	size_t n = 0;

	for (unsigned i = 0; i < CA_METRIC_COUNT && c->sum.drop[CA_DROP_NO_EVENT]; i++) {
		const struct ca_perf_counter *event = i == CA_METRIC_OVERFLOW ? &s->overflow
						      : i >= CA_METRIC_OWN    ? &s->counter[i - CA_METRIC_OWN]
									      : NULL;

		if (!*ca_samplers_metric(c->set, i, &unit) || n++ >= samples->metrics || !event ||
		    ca_samples_measured_sum(samples, n - 1))
			continue;
		samples->metric[n - 1].missing = strdup(why_missing(c, event));
		samples->failed |= !samples->metric[n - 1].missing;
	}
}

/* Threads that were asked for; once, of several samplers. */
static void tell_missing_thread(struct ca_conductor *c)
{
	const struct ca_samplers *s = &c->session->samplers;
	uint32_t begun = atomic_load(&c->session->threads_begun);

	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		for (uint32_t k = 0; s->on & 1u << i && k < s->of[i].ranges; k++)
			if (s->of[i].first[k] > begun) {
				ca_conductor_say(c, 0, "thread %u was never there: the program had 1 to %u",
						 s->of[i].first[k], begun);
				return;
			}
}

/* Samplers whose windows the program did not live to see; once, of several. */
static void tell_too_early(struct ca_conductor *c, uint64_t now)
{
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->started && c->session->samplers.on & 1u << i &&
		    !ca_windows_first(c->sampler_windows[i])) {
			ca_conductor_say(c, 0, "the run ended after %.3g s, before %s began: %s",
					 (double)(now - c->started) / 1e9,
					 c->own_windows[i] ? "the window of a sampler" : "its window",
					 c->set->paused ? "it began paused (--paused), for causal ctl resume"
							: "give a shorter delay (-w, --periods, or the "
							  "sampler's own)");
			return;
		}
}

void ca_conductor_sample_close(struct ca_conductor *c, uint64_t now, int wait_status)
{
	struct ca_samples *s = c->opt.samples;
	uint64_t first = ca_windows_first(c->windows);

	tell_missing_thread(c);
	tell_too_early(c, now);
	take_open_waits(c, now);
	ca_sampling_end(c->sampling, now);
	if (c->opt.suggestion)
		ca_conductor_suggest_close(c, wait_status);
	ca_set_aside_free(c->set_aside);
	c->set_aside = NULL;
	ca_sampling_free(c->sampling);
	c->sampling = NULL;
	snprintf(s->backend, sizeof s->backend, "%s", backend_name(backends_of(c)));
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
	tell_missing(c);
	ca_samples_add_loss(s, "threads for which there was no room",
			    atomic_load(&c->session->threads_missed));
}

/* SPDX-License-Identifier: MIT */
/* Samplers of a profile; see samplers.h. All of them are driven by the thread's one tick, but for overflows of an
 * event of perf's, which has a signal of the same number. Real time has no timer of its own: its signal would end
 * the program's waits (EINTR). What passes between two ticks is the later one's, and a wait has a sample anyway.
 * Handlers, and ordinary context with the guard held. */
#include "causal/runtime/samplers.h"
#include "causal/runtime/measure.h"
#include "causal/runtime/sample.h"
#include "sampler/tick.h"
#include <string.h>

static bool wants(const struct ca_thread *t, enum ca_sampler sampler)
{
	const struct ca_session *s = ca_rt.session;
	uint32_t quiet = atomic_load_explicit(&s->quiet, memory_order_relaxed);

	return t->samplers & ~quiet & 1u << sampler;
}

CA_SIGSAFE bool ca_samplers_any(const struct ca_thread *t)
{
	return t->samplers & ~atomic_load_explicit(&ca_rt.session->quiet, memory_order_relaxed);
}

static bool has_thread(const struct ca_samplers *s, enum ca_sampler sampler, uint32_t index)
{
	bool found = !s->of[sampler].ranges;

	for (uint32_t i = 0; i < s->of[sampler].ranges && i < CA_SAMPLER_RANGES; i++)
		found |= s->of[sampler].first[i] <= index && index <= s->of[sampler].last[i];
	return found;
}

CA_SIGSAFE void ca_samplers_stop(struct ca_thread *t)
{
	if (t->overflow.backend != CA_BACKEND_AUTO)
		ca_tick_stop(&t->overflow);
}

CA_SIGSAFE void ca_samplers_begin(struct ca_thread *t, uint64_t now)
{
	const struct ca_samplers *s = &ca_rt.session->samplers;

	ca_samplers_stop(t);
	t->samplers = 0;
	if (!ca_rt.sampling)
		return;
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (s->on >> i & 1 && has_thread(s, (enum ca_sampler)i, t->trace.owner.thread_index))
			t->samplers |= 1u << i;
	t->real = now;
	t->cpu_due = 0;
	memset(t->metric, 0, sizeof t->metric); /* all since it began is its first sample's */
	t->overflow = (struct ca_tick){ .backend = CA_BACKEND_AUTO };
	t->overflow_seen = 0;
	if (t->samplers & 1u << CA_SAMPLER_OVERFLOW &&
	    ca_tick_overflow(&t->overflow, &s->overflow, s->of[CA_SAMPLER_OVERFLOW].period,
			     s->overflow_frequency, CA_SIGNAL) != CA_OK)
		ca_sample_drop(t, CA_DROP_NO_EVENT);
}

/* ---- what a sample stands for ---------------------------------------------------------------*/
CA_SIGSAFE void ca_samplers_tick(struct ca_thread *t, uint64_t now, uint64_t weight)
{
	const struct ca_samplers *s = &ca_rt.session->samplers;
	/* a wait that it is in has its own sample in the end */
	uint64_t waits = atomic_load_explicit(&t->slot->wait_since, memory_order_relaxed);
	uint64_t cpu = 0, real = 0, until = waits ? waits : now;
	unsigned n = 0;
	struct ca_event more[1];

	if (wants(t, CA_SAMPLER_CPU) &&
	    (t->cpu_due += weight) * ca_rt.period >= s->of[CA_SAMPLER_CPU].period) {
		cpu = t->cpu_due;
		t->cpu_due = 0;
	}
	if (!wants(t, CA_SAMPLER_REAL)) {
		t->real = until;
	} else if (until >= t->real + s->of[CA_SAMPLER_REAL].period) {
		real = until - t->real;
		t->real = until;
		n = ca_measure_add(more, now, CA_METRIC_REAL, real);
	}
	if (cpu || real)
		ca_sample_push_with(t, now, cpu, more, n);
}

CA_SIGSAFE uint64_t ca_samplers_overflow(struct ca_thread *t)
{
	uint64_t before = t->overflow_seen;

	t->overflow_seen = ca_tick_overflows(&t->overflow, before);
	return t->overflow_seen - before;
}

CA_SIGSAFE void ca_samplers_overflowed(struct ca_thread *t, uint64_t now, uint64_t events)
{
	struct ca_event more[1];

	ca_measure_add(more, now, CA_METRIC_OVERFLOW, events);
	if (wants(t, CA_SAMPLER_OVERFLOW))
		ca_sample_push_with(t, now, 0, more, 1);
}

/* SPDX-License-Identifier: MIT */
/* From an experiment that is over to its record: D from the selection log, the visits, or the time, that it made, and
 * who is told of it. Not for: when it begins and ends (conductor.c). Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/experiment_events.h"
#include "causal/conductor/sweep.h"

enum {
	LUMPS = 20,      /* 1 / share of a visit's time that D may grow by at once */
	TAIL = 50000000, /* ns between the last visit and the end of the program ... */
	TAIL_VISITS = 2  /* ... and of so many visits: it is not one that was not through */
};

/* From here on D of this experiment is part of what virtual time lags behind for good. */
static void settle_clock(struct ca_conductor *c, uint64_t delay)
{
	struct ca_session *s = c->session;

	uint64_t caught_up = atomic_load(&s->caught_up);

	delay += atomic_load(&s->settled_delay);
	/* the threads' accounts differ a little from ours: virtual time is never ahead */
	atomic_store_explicit(&s->settled_delay, delay > caught_up ? delay : caught_up, memory_order_relaxed);
	/* release: the runtimes acquire it before they read settled_delay */
	atomic_store_explicit(&s->settled_seq, atomic_load(&s->experiment.seq), memory_order_release);
}

static uint64_t delay_of(const struct ca_conductor *c, uint64_t s_time)
{
	uint32_t speedup = c->e.record.speedup;

	/* at 0 %: CA_SPEEDUP_PROBES */
	return (uint64_t)((double)s_time * ((speedup ? speedup : c->session->experiment.speedup) / 1e6));
}

/* D of a stretch of time: what was inserted, less that by which virtual time has caught up. */
static uint64_t net_delay(uint64_t elapsed, uint64_t inserted, uint64_t caught_up)
{
	uint64_t net = inserted > caught_up ? inserted - caught_up : 0;

	return net < elapsed ? net : elapsed;
}

/* Where D grows in lumps, most visits have none in them, and some have far too much: the mean is right, the
 * times of single visits are not. Nor are they where no sample was in S: the next would have been one lump. */
static void drop_times(struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	double span = (double)(r->end - r->start - r->delay);
	double lump = r->hits ? (double)r->delay / (double)r->hits : 0;

	if (!r->hits && r->speedup)
		lump = (double)delay_of(c, c->session->period);

	for (size_t i = 0; i < r->visit_count; i++) {
		struct ca_visits *v = &c->e.visits[i];

		if (LUMPS * lump * (double)v->arrivals > span * v->in_flight)
			v->times = NULL;
	}
}

static void keep(struct ca_conductor *c)
{
	c->kept++;
	if (c->opt.sweep)
		ca_sweep_count_experiment(c->opt.sweep);
}

void ca_conductor_sum_up(struct ca_conductor *c)
{
	struct ca_experiment_record *r = &c->e.record;
	uint64_t before = 0, s_before = 0, delay, beside; /* before: inserted in the warm-up */
	uint64_t from = c->e.part ? c->e.part : r->start;
	bool lost = false;
	struct ca_selection_log_sum sum;

	ca_selection_log_read(c->log);
	if (!c->e.part && (!c->set->end_to_end || c->whole)) {
		sum = ca_selection_log_sum(c->log, c->e.opened, r->start);
		s_before = sum.s_time + sum.still + sum.probes;
		lost = sum.overflow; /* it is told once, of whichever window is summed first */
		c->e.inserted_before = before = delay_of(c, s_before);
		c->e.warm_up = r->start - c->e.opened -
			       net_delay(r->start - c->e.opened, before,
					 c->e.caught_up_before - c->session->experiment.caught_up);
	}
	sum = ca_selection_log_sum(c->log, from, r->end);
	r->s_time += sum.s_time;
	r->still += delay_of(c, sum.still);
	r->probes += delay_of(c, sum.probes);
	beside = r->overhead - r->overhead_in_s;
	r->overhead -= r->probes < beside ? r->probes : beside; /* ticks have seen them, too */
	r->hits += sum.entries;
	delay = delay_of(c, sum.s_time + sum.still + sum.probes);
	if (delay > r->end - from)
		delay = r->end - from;
	r->delay += net_delay(r->end - from, delay, c->e.caught_up - c->e.caught_up_before);
	settle_clock(c, before + delay);
	if (sum.overflow || lost)
		r->flags |= CA_EXPERIMENT_OVERFLOW;
	if (!c->set->end_to_end) {
		r->at = c->e.began + c->e.warm_up - c->started;
		r->flags |= ca_conductor_compare_books(c, s_before + r->s_time + sum.still + sum.probes) |
			    ca_conductor_find_ahead(c);
	}
}

/* Who waits for a time is slowed by as much as D has grown since his last such wait, which may be that of the warm-up,
 * too. Of many who do so, as a server's threads in the background, no path has more than that once. */
static uint64_t slowed_by_limits(const struct ca_conductor *c)
{
	uint64_t most = c->e.inserted_before + c->e.record.delay;

	return c->e.limited < most ? c->e.limited : most;
}

/* It ended with the program, which did something else after its last visit: how long, is chance. */
static bool has_tail(const struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	uint64_t span = r->end - r->start - r->delay, end = c->e.began + c->e.warm_up + span, last = 0,
		 most = 0;

	for (size_t i = 0; i < r->visit_count; i++) {
		uint32_t point = r->visits[i].point;

		if (point >= CA_MAX_POINTS || r->visits[i].delta <= most || !c->e.after.last[point])
			continue; /* time itself goes on to the end */
		most = r->visits[i].delta;
		last = c->e.after.last[point];
	}
	return most && end > last + TAIL && (end - last) / TAIL_VISITS > span / most;
}

void ca_conductor_record(struct ca_conductor *c)
{
	struct ca_experiment_record *r = &c->e.record;
	struct ca_err err;

	r->paying += slowed_by_limits(c);
	r->visits = c->e.visits;
	if (!c->set->end_to_end || c->whole)
		r->visit_count = ca_visits_between(c->session, &c->e.before, &c->e.after, c->e.warm_up,
						   r->end - r->start - r->delay, c->e.began, &c->e.flight,
						   &c->catalog, c->e.visits);
	for (size_t i = 0; i < r->visit_count && c->e.limit.more; i++)
		c->e.visits[i].span = 0; /* D grew in steps: between two of them virtual time was ahead */
	r->visit_count = ca_conductor_points_keep(c, c->e.visits, r->visit_count);
	if (c->e.lumpy)
		drop_times(c);
	if (!r->visit_count) {
		r->visit_count = ca_conductor_points_time(c, r, c->e.visits);
		if (r->visit_count && r->lost != UINT64_MAX)
			r->flags &= ~(uint32_t)CA_EXPERIMENT_DISTURBED; /* that has been taken out */
	}
	if (c->set->end_to_end)
		ca_conductor_whole_end(c);
	else if (c->e.ended && has_tail(c))
		r->flags |= CA_EXPERIMENT_CUT;
	if (!r->visit_count)
		r->flags |= CA_EXPERIMENT_NO_VISIT;
	for (size_t i = 0; i < r->visit_count; i++) /* the program's end is no point of the runtime's */
		c->sum.visits += r->visits[i].point == CA_POINT_END_TO_END ? r->visits[i].delta : 0;
	if (!(r->flags & ~(uint32_t)CA_EXPERIMENT_LAST)) /* those count where there are no others */
		keep(c);
	else
		c->dropped++;
	ca_conductor_plan_tell(c, r);
	ca_conductor_whole_watch(c);
	ca_experiment_events_end(c->sinks, c->dict, r);
	if (ca_results_experiment(c->results, r, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
}

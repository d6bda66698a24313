/* SPDX-License-Identifier: MIT */
/* An experiment while it is open: S delays the others, and what happens meanwhile is noted. Not for: when there is one
 * (conductor.c), and what is made of it (conductor_record.c). Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/experiment_events.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/paying.h"
#include <string.h>
#include <unistd.h>

enum {
	LOAD_EVERY = 100000000,  /* ns between readings of the machine's load, in case the program ends ... */
	WORK_EVERY = 10000000,   /* ... and of the program's CPU time */
	NEAR = 70,               /* percent of a run, from which on it may come to its end */
	PLACES_EVERY = 50000000, /* ns between looks at where threads are */
	CRAWL = 10,              /* times as long as without the delays: too long for a whole run ... */
	CRAWL_AFTER = 5,         /* s of it before that is known */
	CRAWL_LOOKS = 5,         /* 1 / part of the time so far, until the next look */
	YARDSTICKS = 8,          /* ticks, for the mean of what they tell */
	SEEN_FROM = 60,          /* periods in S from which on it shows whether its probes see it, ... */
	SEEN_PART = 4            /* 1 / part of them that they see at least: else there are other ways in */
};

/* From here on S delays the others. */
static void start_delays(struct ca_conductor *c)
{
	struct ca_experiment *x = &c->session->experiment;

	x->speedup = c->speedup ? c->speedup : c->session->selection.fine ? CA_SPEEDUP_PROBES : 0;
	x->start = ca_clock_now();
	x->caught_up = atomic_load(&c->session->caught_up);
	/* release: the runtimes acquire seq before they read the rest */
	atomic_fetch_add_explicit(&x->seq, 1, memory_order_release);
}

/* In which way S is known; all parts of a run have to agree. */
static void note_how(struct ca_conductor *c)
{
	const struct ca_selection *sel = &c->session->selection;

	c->e.record.exact &= sel->exact != 0;
	c->e.lumpy |= !sel->exact || sel->fine;
}

/* The next part of a run that is measured as a whole. */
void ca_conductor_experiment_resume(struct ca_conductor *c, uint64_t now)
{
	note_how(c);
	start_delays(c);
	c->e.paused = false;
	c->e.part = c->session->experiment.start;
	c->e.caught_up_before = c->session->experiment.caught_up;
	c->e.paid_before = 0;
	ca_conductor_enter(c, RUNNING, now);
}

/* Their own work is held back by nobody. */
static void tell_of_others(struct ca_conductor *c)
{
	if (c->opt.sweep && atomic_load(&c->session->load_apart) >= CA_LOAD_APART &&
	    ca_sweep_first_time(c->opt.sweep, CA_SWEEP_APART))
		ca_conductor_say(c, 0,
				 "the load is not answered by the program itself, but by somebody between (a "
				 "web server, a balancer); if he works much, let --load start him, too: "
				 "--load 'nginx & exec ab ...'");
}

void ca_conductor_experiment_measure(struct ca_conductor *c, uint64_t now)
{
	double length = c->length;
	unsigned threads;

	tell_of_others(c);
	if (c->set->scale_experiment_time_by_speedup)
		length *= 1 + c->speedup / 1e6;
	ca_interference_read(c->session, &c->e.load);
	ca_conductor_owed(c, &c->e.paid_before, &threads);
	ca_visits_read(c->session, &c->e.before);
	ca_visits_times_begin(c->session, &c->e.flight);
	c->e.paying_before = ca_paying_read(c->session, ca_clock_now());
	c->e.limits_before = ca_paying_limits(c->session);
	c->e.outside_before = ca_paying_outside(c->session);
	c->e.limited_before = ca_paying_limited(c->session);
	c->e.work = ca_conductor_whole_work(c);
	c->load.last = c->work.last = 0;               /* once in each, at least */
	ca_conductor_limit_make_up(c, ca_clock_now()); /* of the warm-up */
	ca_conductor_drain(c);                         /* with thousands of threads all that takes long */
	c->e.record.start = c->watch.last = ca_clock_now();
	ca_conductor_limit_begin(c, c->e.record.start, &c->e.work);
	c->e.periods_before = c->sum.periods;
	c->e.inside_before = ca_regions_samples(c->regions, c->e.record.region);
	c->e.looked_at_work = ca_regions_at_work(c->regions, c->e.record.region);
	c->e.caught_up_before = atomic_load(&c->session->caught_up);
	if (c->whole)
		ca_conductor_whole_begin(c, c->e.record.start);
	c->e.planned_end = c->set->end_to_end ? UINT64_MAX : c->e.record.start + (uint64_t)length;
	ca_experiment_events_begin(c->sinks, c->dict, &c->e.record);
	ca_conductor_enter(c, RUNNING, now);
}

void ca_conductor_experiment_open(struct ca_conductor *c, uint64_t now)
{
	struct ca_experiment *x = &c->session->experiment;

	if (!ca_windows_is_open(c->windows)) { /* it has ended meanwhile */
		ca_conductor_enter(c, WAITING, now);
		return;
	}
	if (!c->sum.started)
		ca_conductor_length_first(c, now);
	memset(&c->e, 0, sizeof c->e);
	c->e.record.index = ++x->index;
	c->e.record.region = c->region;
	c->e.record.speedup = c->speedup;
	c->e.record.exact = true;
	note_how(c);
	c->e.missed = atomic_load(&c->session->threads_missed);
	c->e.began = ca_clock_now() - ca_session_lag(c->session);
	start_delays(c);
	c->e.opened = x->start;
	c->e.work = ca_conductor_whole_work(c); /* of the warm-up */
	ca_conductor_limit_begin(c, x->start, &c->e.work);
	c->sum.started++;
	c->first_experiment = c->first_experiment ? c->first_experiment : now;
	ca_conductor_plan_begun(c);
	if (c->region)
		ca_conductor_say(c, 2, "experiment %u: %s at %u %%", x->index,
				 ca_catalog_get_region(&c->catalog, c->region)->name, c->speedup / 10000);
	ca_conductor_enter(c, WARMING_UP, now);
	if (c->set->end_to_end)
		ca_conductor_experiment_measure(c, now);
}

/* Is a thread in S at this moment? Only known where S is probed. */
static bool s_is_active(const struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->slots_used);

	for (CA_SLOTS_IN(i, &c->session->in_s, used))
		if (atomic_load_explicit(&c->session->slot[i].in_s, memory_order_relaxed))
			return true;
	return false;
}

/* Items in flight are averaged over virtual time, which runs at 1 - p while S is active. */
void ca_conductor_experiment_watch(struct ca_conductor *c, uint64_t now)
{
	double rate = s_is_active(c) ? 1 - c->speedup / 1e6 : 1, ns = (double)(now - c->watch.last);
	struct ca_visits_now visits;

	if (!ca_visits_have_latency(c->session) || !ca_pace_begin(&c->watch, now, 0))
		return;
	ca_visits_read(c->session, &visits);
	ca_visits_watch(c->session, &visits, rate * ns, &c->e.flight);
	ca_pace_end(&c->watch);
}

/* In all of an experiment of so many ns, of which the last moments may not have been seen. 0: not known. */
static uint64_t work_between(const struct ca_work *a, const struct ca_work *b, uint64_t elapsed)
{
	double seen = b->time > a->time ? (double)(b->time - a->time) : 0;

	if (!(seen > 0) || a->processes != b->processes || (int64_t)(b->ns - a->ns) <= 0)
		return 0;
	return (uint64_t)((double)(b->ns - a->ns) * (double)elapsed / seen);
}

/* Its mean, in thousandths of cycles; 0: too few ticks tell. */
static uint64_t yardstick_between(const struct ca_work *a, const struct ca_work *b)
{
	uint64_t n = b->yardsticks - a->yardsticks;

	return n < YARDSTICKS ? 0 : 1000 * (b->yardstick - a->yardstick) / n;
}

/* The same of what others took. */
static uint64_t lost_between(const struct ca_load *a, const struct ca_load *b, uint64_t elapsed)
{
	uint64_t lost = ca_interference_lost(a, b);
	double seen = b->time > a->time ? (double)(b->time - a->time) : 0;

	return lost == UINT64_MAX || !(seen > 0) ? lost : (uint64_t)((double)lost * (double)elapsed / seen);
}

/* What has been inserted until now is r->delay's, once it is paid (conductor_record.c). */
static void stop_delays(struct ca_conductor *c)
{
	struct ca_experiment_record *r = &c->e.record;
	unsigned threads;
	uint64_t paid;

	ca_conductor_limit_make_up(c, ca_clock_now());
	r->end = c->session->experiment.end = ca_clock_now();
	c->e.caught_up = atomic_load(&c->session->caught_up);
	r->owed = ca_conductor_owed(c, &paid, &threads);
	r->paid += paid - (paid < c->e.paid_before ? paid : c->e.paid_before);
	atomic_fetch_add_explicit(&c->session->experiment.seq, 1, memory_order_release);
}

void ca_conductor_experiment_pause(struct ca_conductor *c, uint64_t now)
{
	stop_delays(c);
	c->e.paused = true;
	ca_conductor_enter(c, SETTLING, now);
}

void ca_conductor_experiment_close(struct ca_conductor *c, uint64_t now, uint32_t flags)
{
	struct ca_experiment_record *r = &c->e.record;
	bool gone = c->set->end_to_end || c->e.ended;
	struct ca_load load;
	struct ca_work work;

	ca_conductor_experiment_watch(c, now);
	if (c->e.paused)
		r->end = ca_clock_now();
	else
		stop_delays(c);
	work = gone ? c->e.last_work : ca_conductor_whole_work(c);
	r->work = work_between(&c->e.work, &work, r->end - r->start);
	r->turns = work.turns - c->e.work.turns;
	r->met = work.met - c->e.work.met;
	r->overhead = work.overhead - c->e.work.overhead;
	r->overhead_in_s = work.overhead_in_s - c->e.work.overhead_in_s;
	r->yardstick = yardstick_between(&c->e.work, &work);
	ca_visits_read(c->session, &c->e.after);
	ca_visits_times_end(c->session, &c->e.flight);
	r->periods = c->sum.periods - c->e.periods_before;
	r->inside = ca_regions_samples(c->regions, r->region) - c->e.inside_before;
	r->paying = ca_paying_between(c->e.paying_before, ca_paying_read(c->session, ca_clock_now()));
	c->e.limited = ca_paying_limited(c->session) - c->e.limited_before;
	r->limits = ca_paying_limits(c->session);
	r->limits -= r->limits < c->e.limits_before ? r->limits : c->e.limits_before;
	r->outside = ca_paying_outside(c->session);
	r->outside -= r->outside < c->e.outside_before ? r->outside : c->e.outside_before;
	r->flags |= flags;
	if (c->whole && ca_conductor_whole_is_late(c))
		r->flags |= CA_EXPERIMENT_UNPLACED;
	if (gone)
		load = c->e.last_load;
	else
		ca_interference_read(c->session, &load);
	r->lost = lost_between(&c->e.load, &load, r->end - r->start);
	r->queued = ca_interference_queued(&c->e.load, &load);
	/* beside other programs, a CPU that none of our threads has is theirs */
	if (ca_interference_seen(&c->e.load, &load))
		r->flags |= CA_EXPERIMENT_DISTURBED;
	else if (c->e.looks && c->e.load.cpus)
		r->idled = (r->end - r->start) * c->e.idle_beside / ((uint64_t)c->e.looks * c->e.load.cpus);
	ca_conductor_enter(c, SETTLING, now);
}

/* Nothing else bounds how long a run takes that is measured as a whole: one whose code waits for a time at 100 % never
 * comes to an end, as virtual time stands still meanwhile. */
bool ca_conductor_experiment_crawls(struct ca_conductor *c, uint64_t now)
{
	const struct ca_experiment_record *r = &c->e.record;
	uint64_t from = c->e.part ? c->e.part : r->start, elapsed = now - c->e.opened, delay;
	struct ca_selection_log_sum sum;

	if (!r->speedup || elapsed < CRAWL_AFTER * CA_NS_PER_S || now < c->e.next_look)
		return false;
	c->e.next_look = now + elapsed / CRAWL_LOOKS;
	sum = ca_selection_log_peek(c->log, from, now);
	delay = r->delay + (uint64_t)((double)(sum.s_time + sum.still) * (r->speedup / 1e6));
	return delay > elapsed - elapsed / CRAWL;
}

/* Samples find threads at work in S, and its probes have hardly seen any there: there are ways in that are no entries, as
 * a jump from hand-written code past the first instruction. That much CPU time takes at least its part of the CPUs' time.
 * Who was in S before there were probes is seen from a later tick on: so it has to go on for a while. */
bool ca_conductor_experiment_is_unseen(struct ca_conductor *c, uint64_t now)
{
	const struct ca_experiment_record *r = &c->e.record;
	uint64_t work = ca_regions_at_work(c->regions, r->region), inside = work - c->e.looked_at_work,
		 s_time, seen;
	long cpus = c->e.load.cpus ? (long)c->e.load.cpus : sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t unplaced = ca_conductor_unplaced(c);

	if (unplaced != c->e.looked_unplaced) { /* it runs without its sites still: begin anew */
		c->e.looked_unplaced = unplaced;
		c->e.looked_at_work = work;
		return false;
	}
	if (inside < SEEN_FROM)
		return false;
	s_time = r->s_time + ca_selection_log_peek(c->log, c->e.part ? c->e.part : r->start, now).s_time;
	seen = s_time > c->e.looked_s_time ? s_time - c->e.looked_s_time : 0;
	c->e.looked_at_work = work;
	c->e.looked_s_time = s_time;
	return seen * (uint64_t)(cpus > 1 ? cpus : 1) < inside * c->session->period / SEEN_PART;
}

static void look_at_places(struct ca_conductor *c, uint64_t now)
{
	if (c->state != RUNNING || !ca_pace_begin(&c->places, now, PLACES_EVERY))
		return;
	c->e.looks++;
	c->e.idle_beside += ca_interference_idle_beside(c->session, c->e.load.cpus);
	ca_pace_end(&c->places);
}

/* Not if runs before were much longer. */
static bool may_end(const struct ca_conductor *c, uint64_t now)
{
	double length = c->opt.sweep && !c->set->end_to_end ? ca_sweep_length(c->opt.sweep) : 0;

	return (double)(now - c->started - ca_session_lag(c->session)) / 1e9 >= NEAR * length / 100;
}

/* Where the end of the run may be that of the experiment; of a whole run also between its windows. */
void ca_conductor_experiment_look(struct ca_conductor *c, uint64_t now)
{
	look_at_places(c, now);
	if ((c->state == WARMING_UP || c->state == RUNNING) && now >= c->e.limit.next)
		ca_conductor_limit_make_up(c, now);
	if ((c->state != RUNNING && !c->e.paused) || !may_end(c, now))
		return;
	if (ca_pace_begin(&c->load, now, LOAD_EVERY)) {
		ca_interference_read(c->session, &c->e.last_load);
		ca_pace_end(&c->load);
	}
	if (ca_pace_begin(&c->work, now, WORK_EVERY)) {
		c->e.last_work = ca_conductor_whole_work(c);
		ca_pace_end(&c->work);
	}
}

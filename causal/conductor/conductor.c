/* SPDX-License-Identifier: MIT */
/* The conductor; see conductor.h. One state machine, advanced by ca_conductor_step:
 *
 *   WAITING    no process, no progress, or no sample in scope yet
 *   PREPARING  a selection is written; the runtimes put its sites in place
 *   TRYING     ... and time it for a moment: how often is it entered?
 *   WARMING_UP    an experiment is open: queues adapt, nothing is measured yet
 *   RUNNING    ... and is measured
 *   SETTLING   it is closed; debts are paid, late log entries arrive; then it is recorded
 *   FINISHED   no further experiment in this run
 */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/experiment_events.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/paying.h"
#include "core/settings.h"
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MS = 1000000,
	STEP = 10,              /* ms between steps at most ... */
	REST = 20,              /* ... while an experiment goes on */
	STALL = 150 * MS,       /* ns between two steps in an experiment: it is not used */
	PATCH_WAIT = 60 * MS,   /* ns that processes get to place sites ... */
	PATCH_MOST = 500 * MS,  /* ... and those that run meanwhile ... */
	PATCH_RUN = 2 * MS,     /* ... for so much CPU time */
	UNPLACED = 50,          /* 1 / share of CPU time without sites that spoils an experiment */
	SETTLE_MOST = 200 * MS, /* ns that threads get to pay what is left */
	SETTLED = 20000,        /* ns owed per thread that do not matter */
	TRIAL = 5 * MS,         /* ns in which it is found out how often S is entered ... */
	HEAT_EVERY = 20 * MS,   /* ... and between two looks whether it still is no more often */
	LUMPS = 20,             /* 1 / share of a visit's time that D may grow by at once */
	LOAD_EVERY = 250 * MS,  /* ns between readings of the machine's load, end to end ... */
	WORK_EVERY = 10 * MS,   /* ... and of the program's CPU time */
	PACE = 50               /* 1 / share of a core that each of those may take that look at all threads */
};

static bool begin_look(struct ca_pace *pace, uint64_t now, uint64_t every)
{
	if (now <= pace->last || now - pace->last <= every || now - pace->last <= PACE * pace->cost)
		return false;
	pace->last = ca_clock_now();
	return true;
}

static void end_look(struct ca_pace *pace)
{
	uint64_t now = ca_clock_now();

	pace->cost = now - pace->last;
	pace->last = now;
}

const char *ca_conductor_session_path(const struct ca_conductor *c)
{
	return c->session_path;
}

/* Its thread begins when the child has been forked, and ends with the run. */
static void start_host(struct ca_conductor *c)
{
	char path[CA_PATH];
	struct ca_err err;

	if (!c->set->host)
		return;
	if (c->opt.traced)
		snprintf(path, sizeof path, "%s/%shost.jsonl", c->opt.dir, c->set->output_prefix);
	else
		snprintf(path, sizeof path, "%s/host-%04u.jsonl", c->opt.dir, c->opt.run);
	if (ca_host_new(&c->host, c->set, c->session, path, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
}

static void step_host(struct ca_conductor *c)
{
	if (!c->host)
		return;
	ca_host_follow(c->host, ca_windows_is_open(c->windows));
	ca_host_drain(c->host, c->sinks, c->dict);
}

static void close_host(struct ca_conductor *c)
{
	struct ca_err err;

	if (ca_host_close(c->host, c->sinks, c->dict, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
	c->host = NULL;
}

void ca_conductor_started(struct ca_conductor *c, pid_t child)
{
	c->child = child;
	c->session->conductor = (uint32_t)getpid();
	c->started = c->state_since = c->last_step = ca_clock_now();
	ca_windows_begin(c->windows, c->started);
	start_host(c);
	ca_conductor_sample_started(c);
	atomic_store(&c->session->heartbeat, c->started);
}

/* ---- choosing -------------------------------------------------------------------------------*/
/* Of a whole run. */
static uint32_t choose_region(struct ca_conductor *c, uint64_t now)
{
	const struct ca_region *wanted;
	uint32_t region = 0;

	wanted = c->whole && c->opt.region ? c->opt.region : ca_sweep_get_choice(c->opt.sweep, c->group);
	if (wanted)
		region = ca_regions_find(c->regions, wanted);
	if (!region)
		region = ca_conductor_plan_draw(c, now);
	if (region)
		ca_sweep_set_choice(c->opt.sweep, c->group, ca_catalog_get_region(&c->catalog, region));
	return region;
}

static void select_region(struct ca_conductor *c, uint32_t region)
{
	struct ca_selection *sel = &c->session->selection;
	const char *why;

	ca_conductor_trace_name_region(c, region);
	ca_selection_begin(sel);
	ca_regions_select(c->regions, region, c->set->exact, sel, &why);
	sel->log_start = atomic_load(&c->session->log_head);
	atomic_store(&c->session->elsewhere, 0);
	ca_selection_log_restart(c->log, sel->log_start);
	ca_selection_end(sel);
	c->selected = region;
	if (why && why != c->warned_why)
		ca_conductor_say(c, 1, "%s is sampled, not probed: %s",
				 ca_catalog_get_region(&c->catalog, region)->name, why);
	c->warned_why = why;
}

static bool is_early(const struct ca_conductor *c)
{
	return !atomic_load(&c->session->processes_used) || !ca_windows_is_open(c->windows);
}

static bool ready_for_next(struct ca_conductor *c)
{
	struct ca_visits_now visits;

	if (c->set->end_to_end || ca_conductor_points_are_needless(c))
		return true;
	ca_visits_read(c->session, &visits);
	return ca_visits_sum(&visits) > 0;
}

static void leave_program(struct ca_conductor *c, uint64_t now);
static void summarise(struct ca_conductor *c, uint64_t now, int wait_status);

static void enter_state(struct ca_conductor *c, enum ca_conductor_phase state, uint64_t now)
{
	c->state = state;
	c->state_since = now;
}

static void step_waiting(struct ca_conductor *c, uint64_t now)
{
	c->end = ca_conductor_plan_end(c, now);
	if (c->end != CA_CONDUCTOR_GOES_ON) {
		enter_state(c, FINISHED, now);
		if (c->end != CA_CONDUCTOR_DURATION) /* then it is still sampled, as it always was */
			leave_program(c, now);
		return;
	}
	if (is_early(c) || (ca_conductor_scope_is_open(c) && !c->set->count_only) ||
	    ca_conductor_points_step(c, now) || !ready_for_next(c))
		return;
	if (ca_conductor_is_what_if(c)) {
		if (!ca_conductor_what_if_next(c))
			return;
	} else if (!c->set->end_to_end) {
		if (!ca_conductor_plan_next(c, now))
			return;
	} else {
		c->region = choose_region(c, now);
		if (!c->region)
			return;
		c->speedup = (c->whole ? c->pool.percent[0]
				       : ca_sweep_deal(c->opt.sweep, c->pool.percent, c->pool.count)) *
			     (CA_MILLION / 100);
	}
	if (c->region != c->selected)
		select_region(c, c->region);
	ca_conductor_unplaced_start(c);
	enter_state(c, PREPARING, now);
}

/* ---- experiments ----------------------------------------------------------------------------*/
static bool sites_failed(const struct ca_conductor *c)
{
	uint32_t processes = atomic_load(&c->session->processes_used);

	for (uint32_t p = 0; p < processes; p++)
		if (atomic_load(&c->session->process[p].state) == CA_SLOT_LIVE &&
		    atomic_load(&c->session->process[p].patch_failed))
			return true;
	return false;
}

static void begin_measuring(struct ca_conductor *c, uint64_t now)
{
	double length = c->length;
	unsigned threads;

	if (c->set->scale_experiment_time_by_speedup)
		length *= 1 + c->speedup / 1e6;
	ca_interference_read(c->session, &c->e.load);
	ca_conductor_owed(c, &c->e.paid_before, &threads);
	ca_visits_read(c->session, &c->e.before);
	ca_visits_times_begin(c->session, &c->e.flight);
	c->e.paying_before = ca_paying_read(c->session, ca_clock_now());
	if (c->whole)
		ca_conductor_whole_begin(c);
	c->e.work = ca_conductor_whole_work(c);
	c->load.last = c->work.last = 0; /* once in each, at least */
	c->e.record.start = c->watch.last = ca_clock_now();
	c->e.periods_before = c->sum.periods;
	c->e.inside_before = ca_regions_samples(c->regions, c->e.record.region);
	c->e.caught_up_before = atomic_load(&c->session->caught_up);
	c->e.planned_end = c->set->end_to_end ? UINT64_MAX : c->e.record.start + (uint64_t)length;
	ca_experiment_events_begin(c->sinks, c->dict, &c->e.record);
	enter_state(c, RUNNING, now);
}

static void open_experiment(struct ca_conductor *c, uint64_t now)
{
	struct ca_experiment *x = &c->session->experiment;

	if (!c->sum.started)
		ca_conductor_length_first(c, now);
	memset(&c->e, 0, sizeof c->e);
	c->e.record.index = ++x->index;
	c->e.record.region = c->region;
	c->e.record.speedup = c->speedup;
	c->e.record.exact = c->session->selection.exact;
	c->e.lumpy = !c->session->selection.exact || c->session->selection.fine;
	x->speedup = c->speedup;
	x->start = c->e.opened = ca_clock_now();
	c->e.missed = atomic_load(&c->session->threads_missed);
	c->e.began = x->start - ca_session_lag(c->session);
	x->caught_up = atomic_load(&c->session->caught_up);
	/* release: the runtimes acquire seq before they read the rest */
	atomic_fetch_add_explicit(&x->seq, 1, memory_order_release);
	c->sum.started++;
	c->first_experiment = c->first_experiment ? c->first_experiment : now;
	ca_conductor_plan_begun(c);
	if (c->region)
		ca_conductor_say(c, 2, "experiment %u: %s at %u %%", x->index,
				 ca_catalog_get_region(&c->catalog, c->region)->name, c->speedup / 10000);
	enter_state(c, WARMING_UP, now);
	if (c->set->end_to_end)
		begin_measuring(c, now);
}

/* It is to be selected anew, in another way. */
static void select_anew(struct ca_conductor *c, uint64_t now)
{
	c->selected = 0;
	enter_state(c, WAITING, now);
}

static void step_trying(struct ca_conductor *c, uint64_t now)
{
	enum ca_heat heat;

	if (now - c->state_since < TRIAL)
		return;
	heat = ca_heat_judge(&c->heat, c->session, now);
	ca_regions_set_heat(c->regions, c->region, heat);
	if (heat == CA_HEAT_HOT) {
		open_experiment(c, now);
		return;
	}
	select_region(c, c->region);
	ca_conductor_unplaced_start(c);
	enter_state(c, PREPARING, now);
}

static void step_preparing(struct ca_conductor *c, uint64_t now)
{
	const struct ca_selection *sel = &c->session->selection;
	uint64_t waited = now - c->state_since;

	/* whoever is blocked places them when it comes back, and those that run, in a tick */
	if (!ca_conductor_patched(c) &&
	    (waited < PATCH_WAIT || (waited < PATCH_MOST && ca_conductor_unplaced(c) > PATCH_RUN)))
		return;
	if (sel->exact && sites_failed(c)) {
		/* where there is no room for a jump, an int3 will do if it is not passed too often */
		if (sel->fine && ca_regions_heat(c->regions, c->region) == CA_HEAT_UNKNOWN)
			ca_regions_set_heat(c->regions, c->region, CA_HEAT_COOL);
		else
			ca_regions_sample(c->regions, c->region,
					  "not all of its entries and exits could "
					  "be patched");
		select_anew(c, now);
		return;
	}
	ca_conductor_unplaced_start(c);
	ca_heat_begin(&c->heat, c->session, now);
	if (sel->fine && ca_regions_heat(c->regions, c->region) == CA_HEAT_UNKNOWN)
		enter_state(c, TRYING, now);
	else
		open_experiment(c, now);
}

/* S in a process that runs without its sites is seen by nobody. */
static uint32_t find_unplaced(struct ca_conductor *c, uint64_t now)
{
	/* nor what threads do that found no room: a line at the end says so */
	if (atomic_load(&c->session->threads_out) || atomic_load(&c->session->threads_missed) != c->e.missed)
		return CA_EXPERIMENT_UNPLACED;
	if (ca_conductor_unplaced(c) <= (now - c->e.opened) / UNPLACED)
		return 0;
	if (!c->unplaced_told)
		ca_conductor_say(c, 0,
				 "a process ran without the sites of the selected code, since its threads "
				 "get no ticks; such experiments are not used");
	c->unplaced_told = true;
	return CA_EXPERIMENT_UNPLACED;
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
static void watch(struct ca_conductor *c, uint64_t now)
{
	double rate = s_is_active(c) ? 1 - c->speedup / 1e6 : 1, ns = (double)(now - c->watch.last);
	struct ca_visits_now visits;

	if (!ca_visits_have_latency(c->session) || !begin_look(&c->watch, now, 0))
		return;
	ca_visits_read(c->session, &visits);
	ca_visits_watch(c->session, &visits, rate * ns, &c->e.flight);
	end_look(&c->watch);
}

/* In all of an experiment of so many ns, of which the last moments may not have been seen. 0: not known. */
static uint64_t work_between(const struct ca_work *a, const struct ca_work *b, uint64_t elapsed)
{
	double seen = b->time > a->time ? (double)(b->time - a->time) : 0;

	if (!(seen > 0) || a->processes != b->processes || (int64_t)(b->ns - a->ns) <= 0)
		return 0;
	return (uint64_t)((double)(b->ns - a->ns) * (double)elapsed / seen);
}

static void close_experiment(struct ca_conductor *c, uint64_t now, uint32_t flags)
{
	struct ca_experiment_record *r = &c->e.record;
	struct ca_load load;
	struct ca_work work;
	unsigned threads;

	watch(c, now);
	r->end = ca_clock_now();
	work = c->set->end_to_end ? c->e.last_work : ca_conductor_whole_work(c);
	r->work = work_between(&c->e.work, &work, r->end - r->start);
	r->turns = work.turns - c->e.work.turns;
	c->e.caught_up = atomic_load(&c->session->caught_up);
	c->session->experiment.end = r->end;
	ca_visits_read(c->session, &c->e.after);
	ca_visits_times_end(c->session, &c->e.flight);
	r->periods = c->sum.periods - c->e.periods_before;
	r->inside = ca_regions_samples(c->regions, r->region) - c->e.inside_before;
	r->paying = ca_paying_between(c->e.paying_before, ca_paying_read(c->session, ca_clock_now()));
	r->owed = ca_conductor_owed(c, &r->paid, &threads);
	r->paid -= r->paid < c->e.paid_before ? r->paid : c->e.paid_before;
	atomic_fetch_add_explicit(&c->session->experiment.seq, 1, memory_order_release);
	r->flags |= flags;
	if (c->set->end_to_end)
		load = c->e.last_load;
	else
		ca_interference_read(c->session, &load);
	r->lost = ca_interference_lost(&c->e.load, &load);
	if (ca_interference_seen(&c->e.load, &load))
		r->flags |= CA_EXPERIMENT_DISTURBED;
	enter_state(c, SETTLING, now);
}

/* It may be entered more often than when it was tried. */
static bool has_become_hotter(struct ca_conductor *c, uint64_t now)
{
	const struct ca_selection *sel = &c->session->selection;
	enum ca_heat heat;

	if (!sel->exact || now - c->heat.time < HEAT_EVERY)
		return false;
	heat = ca_heat_judge(&c->heat, c->session, now);
	ca_heat_begin(&c->heat, c->session, now);
	if (heat <= (sel->fine ? CA_HEAT_HOT : CA_HEAT_COOL))
		return false;
	ca_regions_set_heat(c->regions, c->region, heat);
	c->selected = 0;
	return true;
}

static void step_warming_up(struct ca_conductor *c, uint64_t now)
{
	bool hotter = has_become_hotter(c, now);

	if (hotter || now - c->e.opened >= (uint64_t)c->warm_up)
		begin_measuring(c, now);
	if (hotter)
		close_experiment(c, now, CA_EXPERIMENT_OVERFLOW);
}

static void step_running(struct ca_conductor *c, uint64_t now)
{
	watch(c, now);
	if (c->set->end_to_end && begin_look(&c->load, now, LOAD_EVERY)) {
		ca_interference_read(c->session, &c->e.last_load);
		end_look(&c->load);
	}
	if (c->set->end_to_end && begin_look(&c->work, now, WORK_EVERY)) {
		c->e.last_work = ca_conductor_whole_work(c);
		end_look(&c->work);
	}
	if (now - c->last_step > STALL)
		c->e.record.flags |= CA_EXPERIMENT_STALLED;
	if (has_become_hotter(c, now)) {
		close_experiment(c, now, CA_EXPERIMENT_OVERFLOW);
		return;
	}
	if (now >= c->e.planned_end)
		close_experiment(c, now, find_unplaced(c, now));
}

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

static uint64_t delay_of(const struct ca_experiment_record *r, uint64_t s_time)
{
	return (uint64_t)((double)s_time * (r->speedup / 1e6));
}

/* D of a stretch of time: what was inserted, less that by which virtual time has caught up. */
static uint64_t net_delay(uint64_t elapsed, uint64_t inserted, uint64_t caught_up)
{
	uint64_t net = inserted > caught_up ? inserted - caught_up : 0;

	return net < elapsed ? net : elapsed;
}

/* Where D grows in lumps, most visits have none in them, and some have far too much: the mean is right, the
 * times of single visits are not. */
static void drop_times(struct ca_conductor *c, double lump)
{
	const struct ca_experiment_record *r = &c->e.record;
	double span = (double)(r->end - r->start - r->delay);

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

static void record_experiment(struct ca_conductor *c)
{
	struct ca_experiment_record *r = &c->e.record;
	struct ca_selection_log_sum sum;
	bool lost = false;
	uint64_t warm_up = 0, before = 0; /* virtual time of the warm-up, and what was inserted in it */
	uint64_t s_before = 0, delay;
	struct ca_err err;

	ca_selection_log_read(c->log);
	if (!c->set->end_to_end || c->whole) {
		sum = ca_selection_log_sum(c->log, c->e.opened, r->start);
		s_before = sum.s_time;
		lost = sum.overflow; /* it is told once, of whichever window is summed first */
		before = delay_of(r, s_before);
		warm_up = r->start - c->e.opened -
			  net_delay(r->start - c->e.opened, before,
				    c->e.caught_up_before - c->session->experiment.caught_up);
	}
	sum = ca_selection_log_sum(c->log, r->start, r->end);
	r->s_time = sum.s_time;
	r->hits = sum.entries;
	delay = delay_of(r, r->s_time);
	if (delay > r->end - r->start)
		delay = r->end - r->start;
	r->delay = net_delay(r->end - r->start, delay, c->e.caught_up - c->e.caught_up_before);
	settle_clock(c, before + delay);
	if (sum.overflow || lost)
		r->flags |= CA_EXPERIMENT_OVERFLOW;
	r->visits = c->e.visits;
	if (!c->set->end_to_end)
		r->flags |= ca_conductor_compare_books(c, s_before + r->s_time) | ca_conductor_find_ahead(c);
	if (!c->set->end_to_end || c->whole)
		r->visit_count = ca_visits_between(c->session, &c->e.before, &c->e.after, warm_up,
						   r->end - r->start - r->delay, c->e.began, &c->e.flight,
						   &c->catalog, c->e.visits);
	r->visit_count = ca_conductor_points_keep(c, c->e.visits, r->visit_count);
	if (c->e.lumpy && r->hits)
		drop_times(c, (double)r->delay / (double)r->hits);
	if (c->set->end_to_end)
		ca_conductor_whole_end(c);
	if (!r->visit_count) {
		r->visit_count = ca_conductor_points_time(c, r, c->e.visits);
		if (r->visit_count && r->lost != UINT64_MAX)
			r->flags &= ~(uint32_t)CA_EXPERIMENT_DISTURBED; /* that has been taken out */
	}
	if (!r->visit_count)
		r->flags |= CA_EXPERIMENT_NO_VISIT;
	for (size_t i = 0; i < r->visit_count; i++)
		c->sum.visits += r->visits[i].delta;
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

static void step_settling(struct ca_conductor *c, uint64_t now)
{
	uint64_t paid, waited = now - c->state_since;
	unsigned threads;

	if (waited < (uint64_t)(c->set->cool_off * MS))
		return;
	if (ca_conductor_owed(c, &paid, &threads) > (uint64_t)SETTLED * threads && waited < SETTLE_MOST)
		return;
	record_experiment(c);
	ca_conductor_length_adapt(c);
	enter_state(c, WAITING, now);
}

static int ms_until(uint64_t due, uint64_t now)
{
	return due <= now ? 1 : due - now < (uint64_t)REST * MS ? (int)((due - now) / MS) + 1 : REST;
}

/* Each step takes a core from the program for some 20 us: no more of them than there are things
 * to see. */
static int until_next_step(struct ca_conductor *c, uint64_t now)
{
	int ms;

	switch (c->state) {
	case WARMING_UP:
		return ms_until(c->e.opened + (uint64_t)c->warm_up, now);
	case RUNNING:
		if (ca_visits_have_latency(c->session))
			return 1 + (int)ca_rng_below(&c->rng, 3); /* programs are periodic, too */
		return ms_until(c->e.planned_end, now);
	case PREPARING:
	case SETTLING:
		return 2;
	case TRYING:
		return ms_until(c->state_since + TRIAL, now);
	case WAITING:
		return now - c->started < 200 * MS ? 2 : STEP;
	default:
		ms = ms_until(ca_windows_due(c->windows), now);
		return ms < STEP ? ms : STEP;
	}
}

static void step_windows(struct ca_conductor *c, uint64_t now)
{
	ca_windows_step(c->windows, now);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->own_windows[i])
			ca_windows_step(c->own_windows[i], now);
}

/* New processes start without the runtime, and those that run go on at full speed. */
static void leave_traced(struct ca_conductor *c, uint64_t now, int wait_status)
{
	atomic_store(&c->session->state, CA_SESSION_CLOSED);
	c->left = true;
	ca_conductor_report_points(c);
	close_host(c);
	ca_conductor_trace_close(c);
	if (c->sampling) {
		summarise(c, now, wait_status);
		ca_conductor_sample_close(c, now, wait_status);
	}
}

bool ca_conductor_has_left(const struct ca_conductor *c)
{
	return c->left;
}

int ca_conductor_step(struct ca_conductor *c)
{
	uint64_t now = ca_clock_now(), cpu;

	atomic_store(&c->session->heartbeat, now);
	step_windows(c, now);
	step_host(c);
	ca_conductor_drain(c);
	ca_conductor_reap(c, now);
	ca_selection_log_read(c->log);
	if (begin_look(&c->cpu, now, 0)) {
		if ((cpu = ca_clock_process_cpu(c->child)))
			c->sum.cpu_ns = cpu;
		end_look(&c->cpu);
	}
	if (!c->opt.traced)
		ca_conductor_scope_step(c, now);
	if (c->opt.traced && !c->left) {
		ca_conductor_sample_step(c, now);
		if (ca_windows_is_over(c->windows))
			leave_traced(c, now, 0);
	}
	switch (c->state) {
	case WAITING:
		step_waiting(c, now);
		break;
	case PREPARING:
		step_preparing(c, now);
		break;
	case TRYING:
		step_trying(c, now);
		break;
	case WARMING_UP:
		step_warming_up(c, now);
		break;
	case RUNNING:
		step_running(c, now);
		break;
	case SETTLING:
		step_settling(c, now);
		break;
	case FINISHED:
		break;
	}
	c->last_step = ca_clock_now();
	return until_next_step(c, c->last_step);
}

void ca_conductor_status(const struct ca_conductor *c, struct ca_conductor_status *status)
{
	const struct ca_region *region = ca_catalog_get_region(&c->catalog, c->region);

	status->experiments = c->kept;
	status->dropped = c->dropped;
	ca_conductor_plan_show(c, status);
	status->region = (c->state == WARMING_UP || c->state == RUNNING) && region ? region->name : NULL;
	status->speedup = c->speedup / 1e4;
	status->samples = c->sum.samples;
	status->end = c->end;
}

void ca_conductor_pause(struct ca_conductor *c, bool pause)
{
	uint64_t now = ca_clock_now();

	ca_windows_pause(c->windows, pause, now);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->own_windows[i])
			ca_windows_pause(c->own_windows[i], pause, now);
}

void ca_conductor_finish(struct ca_conductor *c)
{
	c->asked_to_end = true;
	if (c->opt.traced)
		ca_windows_end(c->windows, ca_clock_now());
}

/* ---- closing ----------------------------------------------------------------------------------*/
static void close_open_experiment(struct ca_conductor *c, uint64_t now, int wait_status)
{
	if (c->set->end_to_end) {
		/* chosen but never opened: the program was too short for that */
		if (c->state == RUNNING) {
			if (!c->whole)
				c->e.record.start = c->started;
			close_experiment(c, now, WIFSIGNALED(wait_status) ? CA_EXPERIMENT_CUT : 0);
			c->e.record.end = now;
			record_experiment(c);
		}
		return;
	}
	if (c->state == WARMING_UP)
		begin_measuring(c, now);
	if (c->state == RUNNING)
		close_experiment(c, now, CA_EXPERIMENT_CUT);
	if (c->state == SETTLING)
		record_experiment(c);
}

static void summarise(struct ca_conductor *c, uint64_t now, int wait_status)
{
	struct ca_session *s = c->session;
	uint32_t used = atomic_load(&s->slots_used);

	c->sum.exit_status =
		WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	c->sum.runtime = c->started ? now - c->started : 0;
	c->sum.kept = c->kept;
	c->sum.backends = atomic_load(&s->backends);
	if (c->backend != CA_BACKEND_TIMER && c->sum.backends & 1u << CA_BACKEND_TIMER &&
	    ca_sweep_first_time(c->opt.sweep, CA_SWEEP_BACKEND))
		ca_conductor_say(c, 0,
				 "%s threads got no perf events and were sampled by timers, "
				 "which is less exact: raise ulimit -n and "
				 "kernel.perf_event_mlock_kb, or have the program's sandbox "
				 "allow perf_event_open",
				 c->sum.backends & 1u << CA_BACKEND_PERF ? "some" : "all");
	c->sum.outside = !atomic_load(&s->processes_used);
	for (uint32_t p = 0; p < atomic_load(&s->processes_used); p++)
		c->sum.off |= atomic_load(&s->process[p].off) != 0;
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		c->sum.handler_ns += atomic_load(&s->slot[i].handler_ns);
		for (unsigned d = 0; d < CA_DROP_COUNT; d++)
			c->sum.drop[d] += atomic_load(&s->slot[i].drop[d]);
	}
	if (atomic_load(&s->threads_missed))
		ca_conductor_say(c, 0,
				 "%u threads were not seen, and experiments meanwhile are not used: "
				 "more than %d existed at a time, or there was no room for them in "
				 "/dev/shm",
				 atomic_load(&s->threads_missed), (int)s->slots);
}

/* By their build-ids it can be told later whether two runs are of one program. */
static void record_binaries(struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->modules_used);

	for (uint32_t i = 1; i < used && i < CA_MAX_MODULES; i++) {
		const struct ca_module *module = &c->session->module[i];
		/* acquire: the runtime that filled it in has released it */
		uint32_t state = atomic_load_explicit(&module->state, memory_order_acquire);

		if (state >= CA_MODULE_REGISTERED && module->build_id_length &&
		    (module->main || ca_objects_in_scope(c->objects, i)))
			ca_results_binary(c->results, module->path, module->build_id, module->build_id_length,
					  NULL);
	}
}

/* What the run file says at its end, but for that. */
static void write_last(struct ca_conductor *c, uint64_t now, int wait_status)
{
	close_host(c);
	ca_conductor_trace_close(c);
	ca_conductor_scope_close(c);
	record_binaries(c);
	ca_conductor_report_points(c);
	summarise(c, now, wait_status);
	ca_conductor_what_if_close(c);
	ca_conductor_plan_close(c);
}

/* The program goes on at full speed, and new processes of it start without the runtime. */
static void leave_program(struct ca_conductor *c, uint64_t now)
{
	struct ca_err err;

	write_last(c, now, 0);
	c->sum.left = true;
	if (ca_results_close(c->results, &c->sum, &err) != CA_OK)
		ca_conductor_say(c, 0, "%s", err.text);
	c->results = NULL;
	c->left = true;
	atomic_store(&c->session->state, CA_SESSION_CLOSED);
}

enum ca_status ca_conductor_close(struct ca_conductor *c, int wait_status, struct ca_err *err)
{
	uint64_t now = ca_clock_now();
	enum ca_status status = CA_OK;
	struct ca_visits_now visits;

	if (c->opt.traced && !c->left) {
		step_windows(c, now);
		leave_traced(c, now, wait_status);
	}
	if (c->left || c->opt.traced) {
		ca_conductor_dispose(c);
		return CA_OK;
	}
	ca_conductor_drain(c);
	ca_selection_log_read(c->log);
	ca_visits_read(c->session, &visits);
	if (!c->sum.visits)
		c->sum.visits = ca_visits_sum(&visits);
	close_open_experiment(c, now, wait_status);
	if (!WIFSIGNALED(wait_status))
		ca_conductor_whole_close(c, now - c->started - ca_session_lag(c->session));
	write_last(c, now, wait_status);
	ca_conductor_points_close(c, wait_status, &visits);
	status = ca_results_close(c->results, &c->sum, err);
	ca_conductor_dispose(c);
	return status;
}

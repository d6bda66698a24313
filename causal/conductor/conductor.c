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
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/settings.h"
#include <string.h>
#include <unistd.h>

enum {
	MS = 1000000,
	STEP = 10,      /* ms between steps at most ... */
	REST = 20,      /* ... while an experiment goes on: rings hold as many deep stacks, one each ms ... */
	LONG_REST = 80, /* ... or one each 4 ms, as ticks are rarer where nothing is sampled */
	HANDOVER = 3,   /* ... and a word is watched */
	STALL = 150 * MS,       /* ns between two steps in an experiment: it is not used */
	PATCH_WAIT = 60 * MS,   /* ns that processes get to place sites ... */
	PATCH_WHOLE = 2 * MS,   /* ... in a run that is one experiment ... */
	PATCH_MOST = 500 * MS,  /* ... and those that run meanwhile ... */
	PATCH_RUN = 2 * MS,     /* ... for so much CPU time */
	UNPLACED = 50,          /* 1 / share of CPU time without sites that spoils an experiment */
	SETTLE_MOST = 200 * MS, /* ns that threads get to pay what is left */
	SETTLED = 20000,        /* ns owed per thread that do not matter */
	TRIAL = 5 * MS,         /* ns in which it is found out how often S is entered ... */
	HEAT_EVERY = 20 * MS    /* ... and between two looks whether it still is no more often */
};

const char *ca_conductor_session_path(const struct ca_conductor *c)
{
	return c->session_path;
}

/* What a whole run is about, if that is known already. */
static const struct ca_region *wanted_region(const struct ca_conductor *c)
{
	if (c->whole && c->opt.region)
		return c->opt.region;
	return c->opt.sweep ? ca_sweep_get_choice(c->opt.sweep, c->group) : NULL;
}

/* Those that have its code wait until it is selected. */
static void await_selection(struct ca_conductor *c)
{
	const struct ca_region *wanted = c->set->end_to_end ? wanted_region(c) : NULL;

	if (!wanted || strlen(wanted->binary) >= sizeof c->session->awaited)
		return;
	strcpy(c->session->awaited, wanted->binary);
	atomic_store(&c->session->awaits, 1);
}

void ca_conductor_started(struct ca_conductor *c, pid_t child)
{
	c->child = child;
	c->session->conductor = (uint32_t)getpid();
	c->started = c->state_since = c->last_step = ca_clock_now();
	ca_windows_begin(c->windows, c->started);
	await_selection(c);
	ca_conductor_silence_start(c);
	ca_conductor_host_start(c);
	ca_conductor_sample_started(c);
	atomic_store(&c->session->heartbeat, c->started);
}

/* ---- choosing -------------------------------------------------------------------------------*/
/* Of a whole run. 0: it is not there yet, and may come with a library. Of another one the run would not be about all
 * that is done in it. */
static uint32_t choose_region(struct ca_conductor *c, uint64_t now)
{
	const struct ca_region *wanted = wanted_region(c);

	if (!wanted)
		wanted = ca_catalog_get_region(&c->catalog, ca_conductor_plan_draw(c, now));
	if (!wanted)
		return 0;
	ca_sweep_set_choice(c->opt.sweep, c->group, wanted);
	return ca_regions_find(c->regions, wanted);
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
	atomic_store(&c->session->awaits, 0);
	c->selected = region;
	c->handed_over = false;
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

static void begin_preparing(struct ca_conductor *c, uint64_t now)
{
	if (c->region != c->selected)
		select_region(c, c->region);
	ca_conductor_unplaced_start(c);
	ca_conductor_enter(c, PREPARING, now);
}

static void want_stacks(struct ca_conductor *c, bool wanted)
{
	atomic_store_explicit(&c->session->wants_stacks, wanted, memory_order_relaxed);
}

static void step_waiting(struct ca_conductor *c, uint64_t now)
{
	bool scope, searches;

	c->end = ca_conductor_plan_end(c, now);
	if (c->end != CA_CONDUCTOR_GOES_ON) {
		want_stacks(c, false);
		ca_conductor_enter(c, FINISHED, now);
		if (c->end != CA_CONDUCTOR_DURATION) /* then it is still sampled, as it always was */
			ca_conductor_leave(c, now);
		return;
	}
	if (is_early(c))
		return;
	if (c->e.paused) {
		if (c->selected)
			ca_conductor_experiment_resume(c, now);
		else /* in another way than before */
			begin_preparing(c, now);
		return;
	}
	scope = ca_conductor_scope_is_open(c) && !c->set->count_only;
	searches = scope || ca_conductor_points_step(c, now);
	want_stacks(c, scope || ca_conductor_points_want_stacks(c));
	if (searches || !ready_for_next(c))
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
	begin_preparing(c, now);
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

/* It is to be selected anew, in another way. */
static void select_anew(struct ca_conductor *c, uint64_t now)
{
	c->selected = 0;
	ca_conductor_enter(c, WAITING, now);
}

static void step_trying(struct ca_conductor *c, uint64_t now)
{
	enum ca_heat heat;

	if (now - c->state_since < TRIAL)
		return;
	heat = ca_heat_judge(&c->heat, c->session, now);
	ca_regions_set_heat(c->regions, c->region, heat);
	if (heat == CA_HEAT_HOT) {
		ca_conductor_experiment_open(c, now);
		return;
	}
	select_region(c, c->region);
	ca_conductor_unplaced_start(c);
	ca_conductor_enter(c, PREPARING, now);
}

static void step_preparing(struct ca_conductor *c, uint64_t now)
{
	const struct ca_selection *sel = &c->session->selection;
	uint64_t waited = now - c->state_since;

	/* whoever is blocked places them when it comes back, and those that run, in a tick */
	if (!ca_conductor_patched(c) && (waited < (c->set->end_to_end ? PATCH_WHOLE : PATCH_WAIT) ||
					 (waited < PATCH_MOST && ca_conductor_unplaced(c) > PATCH_RUN)))
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
		ca_conductor_enter(c, TRYING, now);
	else if (c->e.paused)
		ca_conductor_experiment_resume(c, now);
	else
		ca_conductor_experiment_open(c, now);
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

/* It may be entered more often than when it was tried, or in ways that nobody knew of. */
static bool has_become_hotter(struct ca_conductor *c, uint64_t now)
{
	const struct ca_selection *sel = &c->session->selection;
	enum ca_heat heat;

	if (!sel->exact || now - c->heat.time < HEAT_EVERY)
		return false;
	heat = ca_heat_judge(&c->heat, c->session, now);
	if (c->state == RUNNING && ca_conductor_experiment_is_unseen(c, now)) {
		heat = CA_HEAT_TOO_HOT;
		c->e.record.flags |= c->set->end_to_end ? CA_EXPERIMENT_BOOKS : 0;
	}
	ca_heat_begin(&c->heat, c->session, now);
	if (heat <= (sel->fine ? CA_HEAT_HOT : CA_HEAT_COOL))
		return false;
	ca_regions_set_heat(c->regions, c->region, heat);
	c->selected = 0;
	return true;
}

/* Once a store has come to light by which threads hand something over, they pay before it. */
static void look_for_stores(struct ca_conductor *c, uint64_t now)
{
	const struct ca_module *module = c->session->module;
	ca_place end;

	if (!c->handover || !ca_handover_step(c->handover, now, &end) ||
	    !ca_regions_hand_over(c->regions, end))
		return;
	ca_handover_was_new(c->handover);
	ca_conductor_say(c, 2, "%s+%#llx: hands something over to threads that spin",
			 module[CA_PLACE_MODULE(end)].path, (unsigned long long)CA_PLACE_OFFSET(end));
	c->handed_over = true;
	c->selected = 0;
}

/* What spoils this experiment, for the selection has to be another one; 0: nothing. */
static uint32_t find_better_selection(struct ca_conductor *c, uint64_t now)
{
	if (has_become_hotter(c, now))
		return CA_EXPERIMENT_OVERFLOW;
	return c->handed_over ? CA_EXPERIMENT_UNPLACED : 0;
}

static void step_warming_up(struct ca_conductor *c, uint64_t now)
{
	uint32_t spoilt = find_better_selection(c, now);

	if (spoilt || now - c->e.opened >= (uint64_t)c->warm_up)
		ca_conductor_experiment_measure(c, now);
	if (spoilt)
		ca_conductor_experiment_close(c, now, spoilt);
}

/* The program goes on at full speed, and what could be told by such runs is left to those at smaller speedups. */
static void give_up(struct ca_conductor *c, uint64_t now)
{
	const struct ca_region *region = ca_catalog_get_region(&c->catalog, c->region);

	ca_conductor_experiment_close(c, now, CA_EXPERIMENT_CUT);
	c->e.given_up = true;
	if (c->doubt)
		ca_steady_limit(ca_sweep_steady(c->opt.sweep), region, c->speedup / 10000);
	ca_conductor_say(
		c, 0,
		"at %u %% of %s a run takes more than ten times as long as without the delays (does it "
		"wait there for a time?): it goes on without them and is not used; %s",
		c->speedup / 10000, region->name,
		c->doubt ? "others of it are at smaller speedups"
			 : "smaller speedups (-s 0,25,50) take less");
}

static void step_running(struct ca_conductor *c, uint64_t now)
{
	uint32_t spoilt;

	ca_conductor_experiment_watch(c, now);
	if (now - c->last_step > STALL)
		c->e.record.flags |= CA_EXPERIMENT_STALLED;
	spoilt = find_better_selection(c, now);
	if (c->set->end_to_end) {
		if (spoilt || !ca_windows_is_open(c->windows))
			ca_conductor_experiment_pause(c, now);
		else if (ca_conductor_experiment_crawls(c, now))
			give_up(c, now);
	} else if (spoilt) {
		ca_conductor_experiment_close(c, now, spoilt);
	} else if (now >= c->e.planned_end) {
		ca_conductor_experiment_close(c, now, find_unplaced(c, now));
	}
}

static void step_settling(struct ca_conductor *c, uint64_t now)
{
	uint64_t paid, waited = now - c->state_since;
	unsigned threads;

	if (waited < (uint64_t)(c->set->cool_off * MS))
		return;
	if (ca_conductor_owed(c, &paid, &threads) > (uint64_t)SETTLED * threads && waited < SETTLE_MOST)
		return;
	if (ca_conductor_is_untold(c)) {
		if (waited < SETTLE_MOST)
			return;
		c->e.record.flags |= CA_EXPERIMENT_BOOKS;
	}
	ca_conductor_sum_up(c);
	if (!c->e.paused) {
		ca_conductor_record(c);
		ca_conductor_length_adapt(c);
	}
	ca_conductor_enter(c, c->e.given_up ? FINISHED : WAITING, now);
}

/* From the end of an experiment to the beginning of the next in one step, if there is nothing to wait for. */
static void step_state(struct ca_conductor *c, uint64_t now)
{
	if (c->state == SETTLING)
		step_settling(c, now);
	if (c->state == WAITING)
		step_waiting(c, now);
	switch (c->state) {
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
	case WAITING:
	case FINISHED:
		break;
	}
}

static int ms_until(uint64_t due, uint64_t now, int most)
{
	uint64_t ms = due > now ? (due - now) / MS + 1 : 1;

	return ms < (uint64_t)most ? (int)ms : most;
}

/* Each step takes a core from the program for some 100 us: no more of them than there are things
 * to see. */
static int until_next_step(struct ca_conductor *c, uint64_t now)
{
	bool rare = c->session->selection.exact &&
		    !atomic_load_explicit(&c->session->wants_stacks, memory_order_relaxed);
	int rest = rare ? LONG_REST : REST;

	switch (c->state) {
	case WARMING_UP:
		return ms_until(c->e.opened + (uint64_t)c->warm_up, now, rest);
	case RUNNING:
		if (c->set->end_to_end)
			return ms_until(ca_windows_due(c->windows), now, REST);
		if (ca_visits_have_latency(c->session))
			return 1 + (int)ca_rng_below(&c->rng, 3); /* programs are periodic, too */
		return ms_until(c->e.planned_end, now, rest);
	case PREPARING:
		return 2;
	case SETTLING:
		return ms_until(c->state_since + (uint64_t)(c->set->cool_off * MS), now, REST) + 1;
	case TRYING:
		return ms_until(c->state_since + TRIAL, now, rest);
	case WAITING:
		return now - c->started < 200 * MS ? 2 : STEP;
	default:
		return ms_until(ca_windows_due(c->windows), now, STEP);
	}
}

static void look_for_modules(struct ca_conductor *c, uint64_t now)
{
	uint32_t used = atomic_load_explicit(&c->session->modules_used, memory_order_relaxed);

	while (c->started && c->modules < used && c->modules < CA_MAX_MODULES)
		c->came[c->modules++] = now - c->started - ca_session_lag(c->session);
}

void ca_conductor_step_windows(struct ca_conductor *c, uint64_t now)
{
	ca_windows_step(c->windows, now);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->own_windows[i])
			ca_windows_step(c->own_windows[i], now);
}

bool ca_conductor_has_left(const struct ca_conductor *c)
{
	return c->left;
}

int ca_conductor_step(struct ca_conductor *c)
{
	uint64_t now = ca_clock_now(), cpu;
	int ms;

	atomic_store(&c->session->heartbeat, now);
	ca_conductor_step_windows(c, now);
	ca_objects_look(c->objects);
	ca_conductor_host_step(c);
	ca_conductor_drain(c);
	ca_conductor_reap(c, now);
	ca_selection_log_read(c->log);
	if (ca_pace_begin(&c->cpu, now, 0)) {
		if ((cpu = ca_clock_process_cpu(c->child)))
			c->sum.cpu_ns = cpu;
		ca_pace_end(&c->cpu);
	}
	if (!c->opt.traced)
		ca_conductor_scope_step(c, now);
	if (c->opt.traced && !c->left) {
		ca_conductor_sample_step(c, now);
		if (ca_windows_is_over(c->windows))
			ca_conductor_leave_traced(c, now, 0);
	}
	ca_conductor_experiment_look(c, now);
	ca_conductor_silence_step(c, now);
	look_for_modules(c, now);
	look_for_stores(c, now);
	step_state(c, now);
	c->last_step = ca_clock_now();
	ms = until_next_step(c, c->last_step);
	return c->handover && ca_handover_is_busy(c->handover) && ms > HANDOVER ? HANDOVER : ms;
}

void ca_conductor_status(const struct ca_conductor *c, struct ca_conductor_status *status)
{
	const struct ca_region *region = ca_catalog_get_region(&c->catalog, c->region);

	status->experiments = c->kept;
	status->dropped = c->dropped;
	status->whole = c->set->end_to_end;
	ca_conductor_plan_show(c, status);
	status->region = (c->state == WARMING_UP || c->state == RUNNING) && region ? region->name : NULL;
	status->speedup = c->speedup / 1e4;
	status->samples = c->sum.samples;
	status->end = c->end;
}

bool ca_conductor_pause(struct ca_conductor *c, bool pause)
{
	uint64_t now = ca_clock_now();

	if (ca_conductor_trace_has_laps(c))
		return false;
	ca_windows_pause(c->windows, pause, now);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++)
		if (c->own_windows[i])
			ca_windows_pause(c->own_windows[i], pause, now);
	return true;
}

void ca_conductor_finish(struct ca_conductor *c)
{
	c->asked_to_end = true;
	if (c->opt.traced)
		ca_windows_end(c->windows, ca_clock_now());
}

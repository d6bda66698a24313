/* SPDX-License-Identifier: MIT */
/* The conductor's part in choosing progress points where nobody has named any: has the search's
 * candidates counted, keeps the choice for later runs, and checks over the runs whether it was
 * right. Driver's process, one thread; never blocks. */
#include "causal/conductor/conductor_points_parts.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/point.h"
#include "core/settings.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	MS = 1000000,
	PLACE_WAIT = 100 * MS,  /* ns that processes get to place sites */
	FIRST_VISIT = 400 * MS, /* ns until a chosen point should have been passed ... */
	IDLE = 10,              /* 1 / share of a CPU below which a program is idle */
	FIRST_VISITS = 5,       /* ... if it was so often in that time, else in as long as that takes */
	ALONE_SAMPLES = 50,     /* periods from which on it is known whether one thread does all: ... */
	ALONE_BESIDE = 10, /* ... times that while there are others, which may only wait for their input */
	ALONE = 98,        /* percent of them */
	WOKEN = 50,        /* periods that an idle program runs until it is taken to be at work */
	HARDLY_DELAYED =
		10, /* 1 / share of D for which threads may have paid in a whole run whose time is counted ... */
	DELAYED = 2, /* ... in an experiment inside one; half of that in all of these together ... */
	LITTLE = 50, /* ... or, if that is more, 1 / what it makes of the share that S seems to have ... */
	NOTHING = 100000, /* ... and ns */
	MOMENT = 20,      /* 1 / share of an experiment that is no reason for a search by itself */
	FEW = 6,          /* experiments, of which no more is said */
	HOT_TRAP = 2000,  /* visits a second: 0.5 % of a CPU */
	FEW_TRAPS = 10000 /* ... of a run that is not worth a word */
};
#define TRAP_COST 2.4e-6               /* s, tests/bench */
#define NEXT_TRY  UINT64_C(1000000000) /* ns; a phase in which nothing can be counted may be over then */

/* ---- before the run ----------------------------------------------------------------------*/
static bool is_for(const struct ca_conductor *c, const struct ca_choice *choice)
{
	return !strcmp(choice->program, c->opt.command[0]);
}

/* Of a program that passes no point in proportion to its work, in pairs (conductor_whole.c). It has been said, or
 * was in an earlier sweep. False: this is no sweep, or not all of a run is to be looked at. */
static bool use_whole_runs(struct ca_conductor *c)
{
	if (!c->opt.sweep || !ca_windows_are_all(c->set) || c->set->count_only)
		return false;
	ca_sweep_use_whole(c->opt.sweep, "no progress point goes with the work");
	ca_sweep_first_time(c->opt.sweep, CA_SWEEP_SHORT);
	return true;
}

static enum ca_status use_stored(struct ca_conductor *c, struct ca_point_choice *p, struct ca_err *err)
{
	enum ca_status status = CA_OK;
	char *names;

	p->known = p->over = true;
	if (p->choice.how == CA_CHOICE_END_TO_END) {
		if (use_whole_runs(c))
			return CA_OK;
		c->own_set = *c->set;
		c->own_set.end_to_end = true;
		c->set = &c->own_set;
		/* a region for each deck of speedups, so that they can be compared */
		c->group = 1 + (unsigned)((c->opt.run - 1) / (c->pool.count ? c->pool.count : 1));
		return CA_OK;
	}
	names = ca_choice_names(&p->choice);
	for (size_t i = 0; i < p->choice.points && status == CA_OK; i++)
		if (!p->choice.point[i].dropped)
			status = ca_requested_add(c->progress, p->choice.point[i].name, err);
	if (names)
		ca_conductor_say(c, 1, "progress points as stored in %s: %s", c->opt.dir, names);
	free(names);
	return status;
}

enum ca_status ca_conductor_points_open(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_requested_mode mode = ca_requested_mode(c->set->progress);
	struct ca_point_choice *p;

	c->group = c->opt.iteration;
	if (c->set->end_to_end || mode == CA_REQUESTED_NAMED || mode == CA_REQUESTED_NONE)
		return CA_OK;
	p = c->points = calloc(1, sizeof *p);
	if (!p)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	p->ask = mode == CA_REQUESTED_ASK;
	p->terminal = -1;
	if (c->opt.clear || ca_choice_read(&p->choice, c->opt.dir, NULL) != CA_OK)
		return CA_OK;
	if (is_for(c, &p->choice) && (!p->ask || p->choice.how == CA_CHOICE_USER ||
				      (c->opt.sweep && !ca_sweep_is_first(c->opt.sweep, CA_SWEEP_ASKED))))
		return use_stored(c, p, err);
	ca_choice_fini(&p->choice);
	return CA_OK;
}

void ca_conductor_points_free(struct ca_conductor *c)
{
	if (!c->points)
		return;
	ca_point_search_free(c->points->search);
	ca_choice_fini(&c->points->choice);
	for (size_t i = 0; i < c->points->replaced_n; i++)
		free(c->points->replaced[i]);
	if (c->points->terminal >= 0)
		close(c->points->terminal);
	free(c->points);
}

/* ---- the phases --------------------------------------------------------------------------*/
static void enter(const struct ca_conductor *c, struct ca_point_choice *p, enum ca_point_stage stage,
		  uint64_t now)
{
	p->stage = stage;
	p->since = now;
	p->cpu_since = ca_clock_process_cpu(c->child);
}

/* Other points than those that were chosen here before. */
static bool has_macros(const struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->points_used);

	for (uint32_t i = 0; i < used && i < CA_MAX_POINTS; i++)
		if (atomic_load(&c->session->point[i].state) == CA_SLOT_LIVE &&
		    !ca_conductor_points_were_published(c->points, c->session->point[i].name))
			return true;
	return false;
}

static void place(struct ca_conductor *c, const struct ca_site *site, size_t n)
{
	struct ca_selection *sel = &c->session->selection;

	ca_selection_begin(sel);
	sel->region = sel->ranges = sel->exact = 0;
	sel->sites = (uint32_t)n;
	if (n)
		memcpy(sel->site, site, n * sizeof *site);
	sel->log_start = atomic_load(&c->session->log_head);
	ca_selection_log_restart(c->log, sel->log_start);
	ca_selection_end(sel);
	c->selected = 0;
}

static bool has_others(const struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->slots_used);
	unsigned live = 0;

	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS && live < 2; i++)
		live += atomic_load(&c->session->slot[i].state) == CA_SLOT_LIVE;
	return live > 1;
}

/* Unless the search was asked for. */
static bool is_alone(const struct ca_conductor *c)
{
	uint64_t most = 0, wanted = ALONE_SAMPLES;

	if (*c->set->progress || !c->opt.sweep || !ca_sweep_is_first(c->opt.sweep, CA_SWEEP_PAID))
		return false;
	if (has_others(c) && !ca_sweep_is_alone(c->opt.sweep)) /* nor was it so in an earlier run */
		wanted *= ALONE_BESIDE;
	if (c->ran_all < wanted)
		return false;
	for (uint32_t i = 0; i < CA_MAX_THREADS; i++)
		most = c->ran[i] > most ? c->ran[i] : most;
	return 100 * most >= ALONE * c->ran_all;
}

/* By now it is known. */
static bool become_needless(struct ca_conductor *c, struct ca_point_choice *p)
{
	if (p->ask || !is_alone(c))
		return false;
	ca_sweep_first_time(c->opt.sweep, CA_SWEEP_ALONE);
	return p->needless = p->over = true;
}

static void decide(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	if (become_needless(c, p))
		return;
	p->n = ca_point_search_choose(p->search, &p->set, p->chosen);
	p->idle = !p->woken && (c->ran_all - p->ran < WOKEN || ca_point_search_saw_waits(p->search));
	p->ran = c->ran_all;
	ca_conductor_points_list(c, p);
	if (p->ask && p->set->n && !ca_conductor_points_ask_open(p)) {
		ca_conductor_say(c, 0,
				 "--progress=ask needs a terminal: the best candidates are "
				 "taken");
		p->ask = false;
	}
	if (p->ask && p->set->n) {
		ca_conductor_points_ask_offer(c, p);
		enter(c, p, CA_POINT_STAGE_ASKING, now);
	} else if (p->n) {
		ca_conductor_points_choose(c, p, CA_CHOICE_AUTO);
		ca_conductor_points_publish(c, p);
		enter(c, p, CA_POINT_STAGE_CHOSEN, now);
	} else {
		snprintf(p->reason, sizeof p->reason, "%s", ca_point_search_reason(p->search));
		ca_conductor_say(c, 1,
				 "no progress point found yet: %s; the search is repeated in "
				 "%.0f s",
				 p->reason, NEXT_TRY / 1e9);
		enter(c, p, CA_POINT_STAGE_PAUSING, now);
	}
}

static void step_asking(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	bool taken;

	if (!ca_conductor_points_ask_is_answered(p))
		return;
	taken = ca_conductor_points_ask_take(p);
	if (!p->n) {
		enter(c, p, CA_POINT_STAGE_PAUSING, now);
		return;
	}
	ca_conductor_points_choose(c, p, taken ? CA_CHOICE_USER : CA_CHOICE_AUTO);
	ca_conductor_points_publish(c, p);
	enter(c, p, CA_POINT_STAGE_CHOSEN, now);
}

static void step_searching(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	const struct ca_site *site;
	size_t n;

	if (!p->search) {
		p->search = ca_point_search_new(c->session, c->objects, c->scope, p->woken);
		p->ran = c->ran_all;
	}
	if (!p->search)
		return;
	switch (ca_point_search_step(p->search, now)) {
	case CA_POINT_SEARCH_WAIT:
		break;
	case CA_POINT_SEARCH_PLACE:
		site = ca_point_search_sites(p->search, &n);
		place(c, site, n);
		p->placed = true;
		enter(c, p, CA_POINT_STAGE_PLACING, now);
		break;
	case CA_POINT_SEARCH_DONE:
		place(c, NULL, 0);
		enter(c, p, CA_POINT_STAGE_REMOVING, now);
		break;
	}
}

static void start_again(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	ca_point_search_free(p->search);
	p->search = NULL;
	p->set = NULL;
	enter(c, p, CA_POINT_STAGE_SEARCHING, now);
}

static bool is_visited(const struct ca_conductor *c)
{
	struct ca_visits_now visits;

	ca_visits_read(c->session, &visits);
	return ca_visits_sum(&visits) > 0;
}

bool ca_conductor_points_are_ours(const struct ca_conductor *c)
{
	return c->points && c->points->choice.how == CA_CHOICE_AUTO;
}

bool ca_conductor_points_are_open(const struct ca_conductor *c)
{
	return c->points && !c->points->over && !has_macros(c);
}

/* ns until the best of the chosen ones should have been passed. */
static uint64_t patience(const struct ca_point_choice *p)
{
	double rate = p->choice.points ? p->choice.point[0].rate : 0;
	uint64_t wait = rate > 0 ? (uint64_t)(FIRST_VISITS / rate * 1e9) : 0;

	return wait > FIRST_VISIT ? wait : FIRST_VISIT;
}

/* ns of CPU time since the points were chosen; a program that uses hardly any gets a multiple of it. */
static uint64_t ran_for(const struct ca_conductor *c, const struct ca_point_choice *p, uint64_t now)
{
	uint64_t cpu = ca_clock_process_cpu(c->child), ran = cpu > p->cpu_since ? cpu - p->cpu_since : 0;

	return ran > (now - p->since) / IDLE ? ran : (now - p->since) / IDLE;
}

static void keep_replaced(struct ca_point_choice *p)
{
	for (size_t i = 0; i < p->choice.points && p->replaced_n < sizeof p->replaced / sizeof *p->replaced;
	     i++)
		p->replaced[p->replaced_n++] = strdup(p->choice.point[i].name);
	ca_choice_fini(&p->choice);
}

/* None of the chosen ones is passed, though they were while they were counted: they could not be patched
 * for good. */
static void replace(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	ca_conductor_say(c, 0, "progress point %s could not be placed; another one is chosen",
			 p->choice.point[0].name);
	for (size_t i = 0; i < p->n; i++)
		ca_point_search_reject(p->search, p->chosen[i]);
	keep_replaced(p);
	p->ask = false;
	decide(c, p, now);
}

/* While the program waited, unless it is chosen once more. */
static const char *chosen_before(const struct ca_point_choice *p)
{
	const char *name = p->woken && p->replaced_n ? p->replaced[0] : NULL;

	for (size_t k = 0; name && k < p->choice.points; k++)
		if (!strcmp(p->choice.point[k].name, name))
			return NULL;
	return name;
}

size_t ca_conductor_points_keep(const struct ca_conductor *c, struct ca_visits *visits, size_t n)
{
	const struct ca_point_choice *p = c->points;
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		const char *name = c->session->point[visits[i].point].name;
		bool replaced = p && ca_conductor_points_were_published(p, name);

		for (size_t k = 0; p && k < p->choice.points; k++) {
			if (strcmp(p->choice.point[k].name, name) != 0)
				continue;
			replaced = false; /* chosen again */
			if (p->choice.point[k].unit != k)
				visits[i].unit = p->choice.point[p->choice.point[k].unit].name;
			else if (k && p->choice.how == CA_CHOICE_AUTO)
				visits[i].beside = p->choice.point[0].name;
			visits[i].instead = chosen_before(p);
			if (p->choice.run == c->opt.run) /* it was placed in the midst of it */
				visits[i].before = 0;
		}
		if (!replaced)
			visits[kept++] = visits[i];
	}
	return kept;
}

bool ca_conductor_points_are_needless(const struct ca_conductor *c)
{
	return c->points && c->points->needless;
}

/* Was somebody delayed by so much that it matters? Of code that takes next to no time a moment is a tenth. */
static bool is_delayed(const struct ca_experiment_record *r, unsigned share)
{
	uint64_t inserted = (r->end - r->start) / CA_MILLION * r->speedup; /* if all of it were S */
	uint64_t room = r->delay / share, little = inserted / LITTLE;

	return r->paying > (room > little ? room : little) + NOTHING;
}

/* A server waits for its clients now and then, and pays for what they would have done later: what that may have to
 * do with the effect is in its bounds. */
static bool is_needless(struct ca_point_choice *p, const struct ca_experiment_record *r)
{
	uint64_t elapsed = r->end - r->start;

	if (p && r->speedup) {
		p->timed++;
		p->elapsed += elapsed;
		p->inserted += r->delay;
		p->paid += r->paying;
	}
	/* where little was inserted, a moment is half of it */
	return r->paying <= r->delay / DELAYED + NOTHING + elapsed / MOMENT &&
	       (!p || p->timed < FEW || 2 * p->paid <= p->inserted / DELAYED + p->elapsed / MOMENT);
}

/* Hardly anybody was delayed: all that was done in the experiment took the time that it always takes, and D is
 * what a faster S would have saved. So the time itself can be counted, without what other programs took of it, and
 * causal. */
size_t ca_conductor_points_time(struct ca_conductor *c, const struct ca_experiment_record *r,
				struct ca_visits *visits)
{
	struct ca_point_choice *p = c->points;
	uint64_t elapsed = r->end - r->start;
	struct ca_results_taken taken =
		ca_results_taken(elapsed, r->work, r->s_time, r->lost, r->overhead, r->overhead_in_s);
	bool delayed = is_delayed(r, p ? DELAYED : HARDLY_DELAYED);

	/* a whole run has no search of its own */
	if (p ? !p->needless : !c->whole || !c->opt.sweep || !ca_sweep_is_alone(c->opt.sweep))
		return 0;
	/* whole runs are all counted in one way, or nothing can be compared */
	if (!is_needless(p, r) || (!p && delayed)) {
		if (p) {
			p->needless = p->over = false;
			p->late = true;
		}
		ca_sweep_first_time(c->opt.sweep, CA_SWEEP_PAID);
		ca_sweep_forget_point(c->opt.sweep, c->opt.variant);
	}
	if (delayed ||
	    !ca_catalog_add_point(&c->catalog, CA_POINT_TIME, CA_POINT_THROUGHPUT, CA_RESULTS_TIME))
		return 0;
	visits[0] = (struct ca_visits){ .point = CA_POINT_TIME, .delta = (elapsed - taken.all) / 1000 };
	return 1;
}

/* Nothing was known of it but waits when its points were chosen, and now it works: what those were in proportion
 * to was not its work. */
static bool has_woken(const struct ca_conductor *c, const struct ca_point_choice *p)
{
	return c->opt.sweep && p->idle && p->stage == CA_POINT_STAGE_CHOSEN && c->ran_all > p->ran + WOKEN;
}

static void search_anew(struct ca_conductor *c, struct ca_point_choice *p, uint64_t now)
{
	ca_conductor_say(c, 0, "%s was found while the program waited; now that it works, another search",
			 p->choice.point[0].name);
	keep_replaced(p);
	ca_sweep_forget_point(c->opt.sweep, c->opt.variant);
	p->idle = p->over = p->placed = false;
	p->woken = true;
	c->first_experiment = 0; /* nor does the budget begin before */
	ca_conductor_length_init(c);
	start_again(c, p, now);
}

bool ca_conductor_points_step(struct ca_conductor *c, uint64_t now)
{
	struct ca_point_choice *p = c->points;
	bool placed;

	if (p && has_woken(c, p))
		search_anew(c, p, now);
	if (!p || p->over)
		return false;
	if (!p->choice.points && has_macros(c)) {
		p->over = true;
		place(c, NULL, 0);
		return false;
	}
	placed = ca_conductor_patched(c) || now - p->since > PLACE_WAIT;
	switch (p->stage) {
	case CA_POINT_STAGE_SEARCHING:
		if (!p->placed && become_needless(c, p))
			return false;
		if (p->placed && !p->ask && is_alone(c)) {
			place(c, NULL, 0); /* and then decide */
			enter(c, p, CA_POINT_STAGE_REMOVING, now);
			break;
		}
		step_searching(c, p, now);
		break;
	case CA_POINT_STAGE_PLACING:
		if (placed) {
			ca_point_search_placed(p->search, now);
			enter(c, p, CA_POINT_STAGE_SEARCHING, now);
		}
		break;
	case CA_POINT_STAGE_REMOVING:
		if (placed)
			decide(c, p, now);
		break;
	case CA_POINT_STAGE_ASKING:
		step_asking(c, p, now);
		break;
	case CA_POINT_STAGE_CHOSEN:
		if (is_visited(c) || !p->search)
			p->over = true;
		else if (ran_for(c, p, now) > patience(p))
			replace(c, p, now);
		break;
	case CA_POINT_STAGE_PAUSING:
		if (now - p->since > NEXT_TRY)
			start_again(c, p, now);
		break;
	}
	return true;
}

bool ca_conductor_points_want_stacks(const struct ca_conductor *c)
{
	const struct ca_point_choice *p = c->points;

	return p && !p->over && p->stage == CA_POINT_STAGE_SEARCHING && p->search &&
	       ca_point_search_gathers(p->search);
}

void ca_conductor_points_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames, bool waiting)
{
	struct ca_point_search *search = c->points && !c->points->over ? c->points->search : NULL;

	if (search && ca_point_search_gathers(search))
		ca_point_search_sample(search, frame, frames,
				       waiting || ca_regions_spin(c->regions, frame, frames));
}

uint64_t ca_conductor_points_since(const struct ca_conductor *c)
{
	const struct ca_point_choice *p = c->points;

	return p && p->stage == CA_POINT_STAGE_CHOSEN ? p->since : c->started;
}

/* ---- after the run -----------------------------------------------------------------------*/
static void give_up(struct ca_conductor *c, struct ca_point_choice *p)
{
	const char *why = *p->reason  ? p->reason
			  : p->search ? ca_point_search_reason(p->search)
				      : "the run was too short";

	p->n = 0;
	if (!ca_conductor_points_fill(c, p, CA_CHOICE_END_TO_END))
		return;
	p->choice.reason = strdup(why);
	if (c->opt.suggestion)
		return;
	ca_conductor_points_store(c, p);
	use_whole_runs(c);
	ca_conductor_say(c, 0,
			 "no progress point was found (%s), so further runs in %s are measured end "
			 "to end; to name one: causal -P FILE:LINE -- %s ...",
			 why, c->opt.dir, c->opt.command[0]);
}

void ca_conductor_points_close(struct ca_conductor *c, int wait_status, const struct ca_visits_now *visits)
{
	struct ca_point_choice *p = c->points;
	bool ended = WIFEXITED(wait_status) && !ca_windows_do_end(c->set);

	if (!p)
		return;
	if (!p->over && !p->choice.points && !has_macros(c) && !become_needless(c, p)) {
		if (p->search && p->stage != CA_POINT_STAGE_ASKING)
			p->n = ca_point_search_choose(p->search, &p->set, p->chosen);
		if (p->set)
			ca_conductor_points_list(c, p);
		p->over = p->n > 0;
		if (p->over)
			ca_conductor_points_choose(c, p, CA_CHOICE_AUTO);
		else if (WIFEXITED(wait_status) && !p->late &&
			 (c->opt.suggestion || ca_conductor_is_useful(c, ca_clock_now())))
			give_up(c, p);
	} else if (p->known && p->choice.how != CA_CHOICE_END_TO_END && ended && c->opt.sweep) {
		ca_conductor_points_check_runs(c, p, visits);
	}
}

void ca_conductor_report_traps(struct ca_conductor *c, const struct ca_visits_now *visits)
{
	double seconds = (double)(ca_clock_now() - c->started) / 1e9;

	for (unsigned i = 0; i < visits->points; i++) {
		struct ca_progress_point *p = &c->session->point[i];
		uint64_t trapped = atomic_load(&p->trapped);
		double rate = (double)trapped / seconds;

		if (rate < HOT_TRAP || trapped < FEW_TRAPS ||
		    (c->opt.sweep && !ca_sweep_first_time(c->opt.sweep, CA_SWEEP_HOT_TRAP)))
			continue;
		ca_conductor_say(c, 0,
				 "no jump fits at progress point '%s': %.0f visits a second take a "
				 "breakpoint of 2.4 us each, %.1f %% of a CPU; name a line next to it, or "
				 "the function around it",
				 p->name, rate, 100 * rate * TRAP_COST);
	}
}

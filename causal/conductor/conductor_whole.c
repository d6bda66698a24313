/* SPDX-License-Identifier: MIT */
/* Runs that are measured as a whole, although nobody has asked for it (-e): of programs too short for
 * experiments inside a run, whose rates do not become steady inside (steady.h), or which vary so much there that
 * whole runs tell sooner (plan.h). They come in pairs of one region, at 0 % and at a speedup in turn, so that both
 * see the same machine; where one thread does all, at a speedup alone. Not for: how such a run is recorded
 * (conductor.c). Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/paying.h"
#include <stdlib.h>
#include <string.h>

enum {
	TURN = 100,      /* ns of a spin loop's; more turns than the experiment has time are unknown ones */
	TAIL = 2,        /* periods after the last visit that may belong to one more */
	FIT = 3,         /* experiments that have to fit into a run ... */
	FIT_ALONE = 8,   /* ... of one thread: a whole run is its own baseline, too, and has all its phases */
	EARLY = 5,       /* samples of the code before the experiment has begun ... */
	EARLY_PART = 30, /* ... or 1 / part of all of them, that do not matter */
	BUDGETS =
		10, /* runs that settle a doubt, and make an interval: those of steady.h in pairs, and some */
	PAIRS_FROM = 1 << 30 /* numbers of pairs, among those of the sweep's choices of regions */
};

/* The pool becomes one number; 0 also where it has no other one. */
static enum ca_status use_speedup(struct ca_conductor *c, unsigned percent, struct ca_err *err)
{
	struct ca_speedups one = { .percent = &percent, .count = 1 }, copy;
	enum ca_status status = ca_speedups_copy(&copy, &one, err);

	if (status)
		return status;
	ca_speedups_fini(&c->pool);
	c->pool = copy;
	return CA_OK;
}

/* Does nobody else say what is to be measured in it? */
static bool is_ours(const struct ca_conductor *c)
{
	return c->whole && !(c->opt.whole && c->opt.region);
}

/* Where each run is its own baseline, a run at 0 % would tell nothing that others do not. */
static unsigned next_pair(const struct ca_conductor *c)
{
	return PAIRS_FROM + ca_sweep_whole_runs(c->opt.sweep) / (ca_sweep_is_alone(c->opt.sweep) ? 1 : 2);
}

static bool is_zero(const struct ca_conductor *c)
{
	return ca_sweep_whole_runs(c->opt.sweep) % 2 == 0 && !ca_sweep_is_alone(c->opt.sweep);
}

/* What the sweep deals next of those above 0, or 0. */
static unsigned deal(struct ca_conductor *c)
{
	unsigned *above = calloc(c->pool.count + 1, sizeof *above), percent = 0;
	size_t n = 0;

	for (size_t i = 0; above && i < c->pool.count; i++)
		if (c->pool.percent[i])
			above[n++] = c->pool.percent[i];
	if (n)
		percent = ca_sweep_deal(c->opt.sweep, above, n);
	free(above);
	return percent;
}

/* Is a run to be looked at from its beginning to its end, with code that is chosen? */
static bool is_all_of_it(const struct ca_conductor *c)
{
	return ca_windows_are_all(c->set) && !c->set->count_only;
}

enum ca_status ca_conductor_whole_open(struct ca_conductor *c, struct ca_err *err)
{
	const struct ca_region *region = NULL;
	unsigned percent = c->opt.speedup, wanted = 0;

	if (c->opt.sweep)
		ca_steady_begin(ca_sweep_steady(c->opt.sweep));
	if (c->set->end_to_end || !(c->opt.whole || (c->opt.sweep && is_all_of_it(c) &&
						     ca_sweep_why_whole(c->opt.sweep, &region, &wanted))))
		return CA_OK;
	c->whole = true;
	c->doubt = region && !ca_conductor_is_what_if(c);
	c->own_set = *c->set;
	c->own_set.end_to_end = true;
	c->set = &c->own_set;
	if (ca_conductor_points_are_open(c)) {
		ca_conductor_points_free(c);
		c->points = NULL;
	}
	if (is_ours(c) && !ca_conductor_is_what_if(c)) {
		c->group = next_pair(c);
		wanted = region ? ca_steady_next(ca_sweep_steady(c->opt.sweep), region) : 0;
		percent = is_zero(c) ? 0 : wanted ? wanted : deal(c);
	}
	return use_speedup(c, percent, err);
}

/* Experiments that are long at its end may be so by a start in which no work was done; and one run has fewer of them by
 * chance, where others have had enough. */
static bool is_too_short(const struct ca_conductor *c, uint64_t runtime)
{
	double one = c->warm_up + c->length + c->set->cool_off * 1e6;
	unsigned fit = ca_sweep_is_alone(c->opt.sweep) ? FIT_ALONE : FIT;

	if (ca_sweep_experiments(c->opt.sweep) >= fit * ca_sweep_lengths(c->opt.sweep) &&
	    ca_sweep_lengths(c->opt.sweep) > 1)
		return false;

	/* without points of any kind it will be measured end to end as it is */
	return !c->set->end_to_end && is_all_of_it(c) && !ca_conductor_points_are_open(c) && c->kept < fit &&
	       (double)runtime < fit * one && ca_conductor_is_useful(c, ca_clock_now());
}

/* What the next pair is made of. Where any region will do, the plan has one from the samples of the runs
 * before, so that the pair's runs need not wait for their own. */
static void choose_next(struct ca_conductor *c, const struct ca_region *region)
{
	uint32_t picked = 0;

	if (!region && !ca_sweep_get_choice(c->opt.sweep, next_pair(c)))
		picked = ca_conductor_plan_pick(c, ca_clock_now());
	if (picked)
		region = ca_catalog_get_region(&c->catalog, picked);
	if (region)
		ca_sweep_set_choice(c->opt.sweep, next_pair(c), region);
}

/* ... of what is left: one at 0 %, one beside it. */
static bool has_time_for_two(const struct ca_conductor *c, uint64_t runtime)
{
	return !c->opt.budget || c->opt.budget >= 3 * runtime;
}

/* Of a sweep that decides itself how many runs it takes. */
static void look_for_coarse(struct ca_conductor *c, uint64_t runtime)
{
	uint32_t coarse = 0;

	if (c->plan && !c->set->end_to_end && is_all_of_it(c) && c->opt.budget > runtime)
		coarse = ca_plan_find_coarse(c->plan, (double)(c->opt.budget - runtime) / 1e9);
	if (coarse)
		ca_steady_ask(ca_sweep_steady(c->opt.sweep), ca_catalog_get_region(&c->catalog, coarse));
}

/* Each reason is told of once. */
static enum ca_sweep_topic topic_of(const struct ca_conductor *c, const struct ca_region *region)
{
	if (!region)
		return CA_SWEEP_SHORT;
	return ca_steady_is_coarse(ca_sweep_steady(c->opt.sweep), region) ? CA_SWEEP_COARSE
									  : CA_SWEEP_UNSTEADY;
}

void ca_conductor_whole_close(struct ca_conductor *c, uint64_t runtime)
{
	const struct ca_region *region;
	unsigned percent;
	const char *why;

	if (!c->opt.sweep || c->set->count_only)
		return;
	if (is_ours(c))
		ca_sweep_count_whole(c->opt.sweep);
	if (is_too_short(c, runtime))
		ca_sweep_use_whole(c->opt.sweep, "the program is too short for experiments inside a run");
	ca_steady_end(ca_sweep_steady(c->opt.sweep));
	look_for_coarse(c, runtime);
	if (!(why = ca_sweep_why_whole(c->opt.sweep, &region, &percent)))
		return;
	if (region && percent && !has_time_for_two(c, runtime)) {
		ca_sweep_steady(c->opt.sweep)->left = true;
		ca_conductor_say(
			c, 0,
			"%s (%s): runs at 0 %% and at a speedup from beginning to end would tell, and "
			"there is no time for them; --budget %.0f is enough",
			why, region->name, BUDGETS * (double)runtime / 1e9);
		return;
	}
	choose_next(c, region);
	if (ca_sweep_first_time(c->opt.sweep, topic_of(c, region)))
		ca_conductor_say(c, 0, "%s (%s, %.2g s): %s are measured as a whole%s", why,
				 region ? region->name : c->opt.command[0], (double)runtime / 1e9,
				 c->opt.ends ? "further runs" : "more runs (-n)",
				 ca_sweep_is_alone(c->opt.sweep) ? "" : ", in pairs at 0 % and at a speedup");
}

/* ns that the program waited for us before main: that is no part of its run. 0 also where a process has died so. */
static uint64_t held(const struct ca_conductor *c, uint64_t now)
{
	uint64_t ns = ca_paying_between(0, ca_paying_time(&c->session->held, now));

	return ns < (now - c->started) / 2 ? ns : 0;
}

/* It begins with the run, also where its code comes later, with a library: what is done until then is done at the
 * usual pace, as nothing of that code is. */
static void begin_with_run(struct ca_conductor *c, uint64_t now)
{
	struct ca_work *work = &c->e.work;

	c->e.opened = c->e.began = c->e.record.start = c->started + held(c, now);
	memset(&c->e.before, 0, sizeof c->e.before);
	c->e.periods_before = c->e.inside_before = 0;
	c->e.early = ca_regions_samples(c->regions, c->e.record.region);
	*work = (struct ca_work){ .time = c->e.record.start, .processes = work->processes };
}

void ca_conductor_whole_begin(struct ca_conductor *c, uint64_t now)
{
	/* how long its visits take is known from now on only */
	if (!ca_visits_have_latency(c->session))
		begin_with_run(c, now);
	for (unsigned p = 0; p < CA_MAX_POINTS; p++)
		if (!c->e.before.last[p])
			c->e.before.last[p] = c->e.began + 1;
}

bool ca_conductor_whole_is_late(const struct ca_conductor *c)
{
	return c->e.early > EARLY && c->e.early > c->e.record.inside / EARLY_PART;
}

/* A run that ends in the middle of a visit has not done that one: its rate is that up to the last visit.
 * One that has more to do after its visits is as long as it is. */
static void cut_ends(struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	uint64_t end = c->e.began + (r->end - c->e.opened - r->delay);

	for (size_t i = 0; i < r->visit_count; i++) {
		struct ca_visits *v = &c->e.visits[i];
		uint64_t last = c->e.after.last[v->point];

		if (v->span && end > last && (end - last) / TAIL > v->span / v->delta)
			v->span = 0;
	}
}

/* What the user names, or the program, is the unit of work. */
static bool is_refuted(struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	struct ca_units_run run = { .zero = !r->speedup,
				    .visits = (double)c->e.visits[0].delta,
				    .seconds = (double)(r->end - r->start - r->delay) / 1e9 };

	if (!ca_conductor_points_are_ours(c) || r->flags & ~(uint32_t)CA_EXPERIMENT_LAST ||
	    !ca_sweep_add_unit(c->opt.sweep, &run))
		return false;
	if (ca_sweep_first_time(c->opt.sweep, CA_SWEEP_REFUTED)) {
		ca_sweep_forget_point(c->opt.sweep, c->opt.variant);
		ca_conductor_say(
			c, 0,
			"progress point %s counts no unit of work: runs with faster code pass it more, "
			"or less, often than runs as they are; each run is one now",
			ca_catalog_get_point(&c->catalog, c->e.visits[0].point)->name);
	}
	return true;
}

void ca_conductor_whole_end(struct ca_conductor *c)
{
	const char *slash = strrchr(c->opt.command[0], '/');
	struct ca_experiment_record *r = &c->e.record;

	cut_ends(c);
	if (r->visit_count && (r->visit_count == CA_MAX_POINTS || !is_refuted(c)))
		return;
	ca_catalog_add_point(&c->catalog, CA_POINT_END_TO_END, 0, slash ? slash + 1 : c->opt.command[0]);
	memmove(c->e.visits + 1, c->e.visits, r->visit_count * sizeof *c->e.visits);
	c->e.visits[0] = (struct ca_visits){ .point = CA_POINT_END_TO_END, .delta = 1 };
	r->visit_count++;
	r->start = c->started + held(c, r->end);
}

/* Of what should be the same for each visit at any speedup. 0: that is not known: where OpenMP's threads spin, for nobody
 * sees how long, CPU time is a matter of who waits for whom. */
static double work_of(const struct ca_conductor *c, const struct ca_visits *between, double visits)
{
	const struct ca_experiment_record *r = &c->e.record;

	if (between && between->delta)
		return visits * (double)between->arrivals / (double)between->delta;
	return r->turns > r->work / TURN ? 0 : (double)r->work;
}

/* Do so many whole runs as settle a doubt, and make an interval, fit into what is left of the budget? */
static bool is_cheap(const struct ca_conductor *c)
{
	double length = ca_sweep_length(c->opt.sweep) * 1e9, gone = (double)(ca_clock_now() - c->started);

	return length > 0 && (double)c->opt.budget > gone + BUDGETS * length;
}

/* Hardly anybody paid: such an experiment is its own baseline, and what is stored makes no difference (a server's loop
 * takes more requests at once while its clients are slowed). */
static bool is_own(const struct ca_experiment_record *r)
{
	return r->speedup && r->paying != UINT64_MAX && 10 * r->paying < r->delay;
}

void ca_conductor_whole_watch(struct ca_conductor *c)
{
	const struct ca_experiment_record *r = &c->e.record;
	const struct ca_region *region = ca_catalog_get_region(&c->catalog, r->region);
	const struct ca_visits *busiest = NULL, *between = NULL; /* the latter: of a latency */
	struct ca_steady_window w = { .percent = r->speedup / (CA_MILLION / 100), .whole = c->whole };
	struct ca_steady *steady;

	if (r->flags & ~(uint32_t)CA_EXPERIMENT_LAST || !region || !c->opt.sweep)
		return;
	for (size_t i = 0; i < r->visit_count; i++) {
		const struct ca_visits **best = r->visits[i].arrivals ? &between : &busiest;

		if (!*best || r->visits[i].delta > (*best)->delta)
			*best = &r->visits[i];
	}
	if (!busiest)
		busiest = between;
	if (!busiest)
		return;
	w.visits = (double)busiest->delta;
	w.cost = (double)(busiest->span ? busiest->span : r->end - r->start - r->delay);
	w.work = is_own(r) ? 0 : work_of(c, between, w.visits);
	w.inserted = (double)ca_results_delay(r->delay, r->probes) / (double)(r->end - r->start);
	steady = ca_sweep_steady(c->opt.sweep);
	steady->cheap = is_cheap(c);
	ca_steady_add(steady, region, &w);
}

struct ca_work ca_conductor_whole_work(const struct ca_conductor *c)
{
	uint32_t used = atomic_load(&c->session->processes_used),
		 slots = atomic_load(&c->session->slots_used);
	struct ca_work work = { .time = ca_clock_now() };

	for (uint32_t i = 0; i < slots; i++) {
		const struct ca_slot *slot = &c->session->slot[i];

		work.paid += atomic_load_explicit(&slot->spun, memory_order_relaxed);
		work.paid += atomic_load_explicit(&slot->probed, memory_order_relaxed);
		work.turns += atomic_load_explicit(&slot->turns, memory_order_relaxed);
		work.met += atomic_load_explicit(&slot->met, memory_order_relaxed);
		work.overhead += atomic_load_explicit(&slot->overhead, memory_order_relaxed);
		work.overhead_in_s += atomic_load_explicit(&slot->overhead_in_s, memory_order_relaxed);
		work.yardstick += atomic_load_explicit(&slot->yardstick, memory_order_relaxed);
		work.yardsticks += atomic_load_explicit(&slot->yardsticks, memory_order_relaxed);
	}
	for (uint32_t p = 0; p < used; p++)
		if (atomic_load(&c->session->process[p].state) == CA_SLOT_LIVE) {
			work.ns += ca_clock_process_cpu((pid_t)c->session->process[p].pid);
			work.processes += p + 1; /* another set, another number */
		}
	work.ns -= work.paid;
	return work;
}

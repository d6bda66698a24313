/* SPDX-License-Identifier: MIT */
/* The conductor's part in the plan of experiments: offers it the code that the stacks show, takes the next
 * experiment from it, tells it how experiments ended, and writes what the stacks say into the run file.
 * Driver's process, one thread; never blocks. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "core/clock.h"
#include "core/map.h"
#include "core/path.h"
#include "core/point.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 10,      /* samples before anything is chosen ... */
	WANTED = 60,     /* ... at once, or after: */
	SURE = 500,      /* ... before it is known what may matter */
	PATIENCE = 400,  /* ms of the run */
	MISSING = 100,   /* ... in which code of the runs before is waited for */
	COMES = 10,      /* ms between two looks whether it has come ... */
	LATE = 100,      /* ... and from then on */
	LOOK_AGAIN = 10, /* at the stacks when there are 1 / LOOK_AGAIN more of them */
	NAMES = 16,      /* of a via or contains list */
	STACKS_TOLD = 2000,
	SEEN = 15, /* s of a first run before experiments in it can end because the answer is there */
	HELD = 80, /* percent of a row's samples that make it one of what contains it ... */
	MUCH = 10, /* ... and of that code's own */
	ASK = 8    /* times which code the filters name: libraries may come later */
};
/* A share in samples has an error of its own. */
#define MARGIN 1.3

/* Has the user said which speedups? Then they are dealt as he has them. */
static bool is_dealt(const struct ca_conductor *c)
{
	return c->set->fixed_speedup.count ||
	       c->set->origin[CA_SETTING_SPEEDUP_DIVISIONS] != CA_ORIGIN_DEFAULT;
}

enum ca_status ca_conductor_plan_open(struct ca_conductor *c, struct ca_err *err)
{
	struct ca_plan_options options = { .seed = (uint64_t)c->set->random_seed,
					   .points = c->set->until,
					   .dealt = is_dealt(c) };

	if (!c->opt.sweep)
		return CA_OK;
	if (!ca_catalog_copy(&c->catalog, ca_sweep_catalog(c->opt.sweep)) ||
	    !(c->plan = ca_sweep_plan(c->opt.sweep, c->opt.variant, &options, &c->stacks)))
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (c->set->end_to_end && !c->doubt)
		ca_plan_use_whole(c->plan, ca_sweep_is_alone(c->opt.sweep));
	ca_stacks_begin_run(c->stacks);
	ca_regions_keep_stacks(c->regions, c->stacks);
	ca_regions_keep_heat(c->regions, ca_sweep_heat(c->opt.sweep));
	ca_regions_keep_stores(c->regions, ca_sweep_stores(c->opt.sweep));
	return CA_OK;
}

/* ---- what may be tried -------------------------------------------------------------------*/
static uint64_t key_of(const struct ca_region *region)
{
	/* without folders: a seed repeats its choices wherever the program lies */
	bool line = region->kind == CA_REGION_LINE;
	const char *part[] = { region->name, line ? ca_path_base(region->file) : "",
			       ca_path_base(region->binary) };
	uint64_t key = line ? region->line : 0;

	for (size_t i = 0; i < sizeof part / sizeof *part; i++)
		key = ca_map_key(key, part[i]);
	return key;
}

bool ca_conductor_is_named(const struct ca_conductor *c)
{
	return *c->set->function_scope || *c->set->source_scope;
}

/* What the user names is tried without a sample, too: a program may be so paced that ticks never meet it. */
static bool find_named(struct ca_conductor *c)
{
	if (ca_conductor_is_named(c) && !c->nameds && c->asked_names < ASK) {
		size_t n = ca_regions_named(c->regions, c->named, CA_NAMED);

		c->asked_names = n ? ASK : c->asked_names + 1;
		c->nameds = n <= CA_NAMED ? n : 0;
	}
	return c->nameds;
}

/* This run's, so far. */
static struct ca_sweep_time time_of_run(const struct ca_conductor *c, uint64_t now)
{
	struct ca_sweep_time time = { .periods = c->sum.periods,
				      .squares = c->sum.squares,
				      .elapsed = now - c->started,
				      .cpu = c->sum.cpu_ns };
	uint32_t used = atomic_load(&c->session->slots_used);

	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++)
		for (unsigned d = 0; d < CA_DROP_COUNT; d++)
			time.lost += ca_event_is_loss(d) ? atomic_load(&c->session->slot[i].drop[d]) : 0;
	return time;
}

/* ... and that of those before it. */
static struct ca_sweep_time time_of_all(const struct ca_conductor *c, uint64_t now)
{
	struct ca_sweep_time all = ca_sweep_time(c->opt.sweep, c->opt.variant), run = time_of_run(c, now);

	all.periods += run.periods;
	all.squares += run.squares;
	all.elapsed += run.elapsed;
	all.cpu += run.cpu;
	all.lost += run.lost;
	return all;
}

/* What a run before has seen may be in a binary that is not mapped and indexed in this one yet: so early, there would
 * be nothing to be tried but what is in the others. */
static bool is_young(const struct ca_conductor *c, uint64_t now)
{
	return now - c->started <= MISSING * UINT64_C(1000000);
}

/* s of virtual time until its binary has come. */
static double since_of(const struct ca_conductor *c, uint32_t region)
{
	uint32_t module = ca_regions_module(c->regions, region);

	return module < c->modules ? (double)c->came[module] / 1e9 : 0;
}

/* over: the run is, and nothing more will come in it. */
static void set_offers(struct ca_conductor *c, uint64_t now, bool over)
{
	const struct ca_stacks_code *code;
	size_t n = ca_stacks_judge(c->stacks, &code), offers = 0, missing = 0;
	struct ca_plan_offer *offer = calloc(n + CA_NAMED + 1, sizeof *offer);
	struct ca_sweep_time all = time_of_all(c, now);
	double periods = (double)all.periods, elapsed = (double)all.elapsed;
	double taken = periods + (double)all.lost;
	/* threads at a time: on a CPU, or waiting for the outside; one may have been kept from its CPU by others */
	double busy = fmax(taken * (double)c->session->period / elapsed, 1);
	double percent = 100 * MARGIN * busy / (double)ca_stacks_total(c->stacks);

	for (size_t i = 0; i < n && offer; i++) {
		const struct ca_region *region = ca_catalog_get_region(&c->catalog, code[i].region);
		double at_most = percent * (double)code[i].samples;
		bool row = code[i].role == CA_STACKS_ROW, absent;

		if (!row && !ca_conductor_is_named(c))
			continue;
		absent = !ca_regions_has(c->regions, code[i].region);
		missing += row && absent;
		if (ca_conductor_is_named(c))
			at_most += 2 * c->set->until;
		offer[offers++] = (struct ca_plan_offer){
			.region = code[i].region,
			.key = key_of(region),
			.at_most = at_most < 100 ? at_most : 100,
			.periods = (double)code[i].samples,
			.share = (double)code[i].samples / periods,
			.lump = (double)all.squares / periods,
			.rate = 1e9 * taken / elapsed,
			.overlap = fmax(1 - elapsed / (double)all.cpu, 0),
			.since = since_of(c, code[i].region),
			.silent = (double)ca_sweep_silent(c->opt.sweep, c->opt.variant, code[i].region),
			.absent = absent
		};
	}
	for (size_t i = 0, k; i < c->nameds && offer; i++) {
		for (k = 0; k < offers && offer[k].region != c->named[i]; k++)
			;
		if (k == offers)
			offer[offers++] = (struct ca_plan_offer){ .region = c->named[i],
								  .key = key_of(ca_catalog_get_region(
									  &c->catalog, c->named[i])),
								  .at_most = 2 * c->set->until };
	}
	c->missing_since = missing && !over ? now : 0;
	if (!missing || over || !is_young(c, now)) {
		ca_plan_set_offers(c->plan, offer, offers, ca_stacks_total(c->stacks) >= SURE || c->nameds);
		c->offered = ca_stacks_total(c->stacks);
		c->has_offers = true;
	}
	free(offer);
}

/* Is it time to look at the stacks again? */
static bool is_due(const struct ca_conductor *c, uint64_t total, uint64_t now)
{
	uint64_t missing = c->missing_since ? now - c->missing_since : 0;

	if (!c->has_offers)
		return !c->missing_since || missing > COMES * UINT64_C(1000000);
	return missing > LATE * UINT64_C(1000000) || total > c->offered + c->offered / LOOK_AGAIN + LEAST;
}

/* ... to choose from? */
static bool has_samples(struct ca_conductor *c, uint64_t now)
{
	uint64_t total = c->stacks ? ca_stacks_total(c->stacks) : 0;

	if (total < WANTED && now - c->started < PATIENCE * UINT64_C(1000000))
		return false;
	return find_named(c) || total >= LEAST;
}

static bool offer(struct ca_conductor *c, uint64_t now)
{
	if (!has_samples(c, now))
		return false;
	if (is_due(c, c->stacks ? ca_stacks_total(c->stacks) : 0, now))
		set_offers(c, now, false);
	return c->has_offers;
}

bool ca_conductor_plan_next(struct ca_conductor *c, uint64_t now)
{
	struct ca_plan_step step = { 0, 0 };
	bool dealt = is_dealt(c);

	if (c->set->count_only) {
		c->planned = false;
		c->region = c->speedup = 0;
		return true;
	}
	if (!offer(c, now))
		return false;
	if (dealt)
		step.percent = ca_sweep_deal(c->opt.sweep, c->pool.percent, c->pool.count);
	/* at 0 % it makes no difference which code it is: no step of the plan is needed */
	c->planned = !dealt || step.percent;
	ca_plan_set_time(c->plan, (double)(now - ca_session_lag(c->session) - c->started) / 1e9);
	if (c->planned && !ca_plan_next(c->plan, &step))
		return false;
	if (dealt && c->planned)
		step.percent = ca_sweep_deal(c->opt.sweep, c->pool.percent, c->pool.count);
	c->speedup = step.percent * (CA_MILLION / 100);
	c->region = step.percent ? step.region : c->selected; /* spare the patching */
	if (!c->region)
		c->region = ca_plan_draw(c->plan, ca_sweep_draw(c->opt.sweep), false);
	return c->region;
}

uint32_t ca_conductor_plan_draw(struct ca_conductor *c, uint64_t now)
{
	return offer(c, now) ? ca_plan_draw(c->plan, ca_sweep_draw(c->opt.sweep), true) : 0;
}

uint32_t ca_conductor_plan_pick(struct ca_conductor *c, uint64_t now)
{
	struct ca_plan_step step = { 0, 0 };

	if (!offer(c, now))
		return 0;
	if (is_dealt(c)) { /* else who starts the runs asks the plan */
		ca_plan_use_whole(c->plan, ca_sweep_is_alone(c->opt.sweep));
		if (ca_plan_next(c->plan, &step))
			ca_plan_begun(c->plan);
	}
	return step.region ? step.region : ca_conductor_plan_draw(c, now);
}

void ca_conductor_plan_begun(struct ca_conductor *c)
{
	/* of a whole run its caller may have said what it is made of; 0 % of a pair is not dealt */
	if (c->opt.sweep && (!c->whole || (c->speedup && !c->opt.region) || ca_conductor_is_what_if(c)))
		ca_sweep_begun(c->opt.sweep);
	if (c->plan && c->planned)
		ca_plan_begun(c->plan);
}

/* What is decided in the program's first phase need not be so in its next one: a whole run, or some time. */
static bool has_seen_enough(const struct ca_conductor *c, uint64_t now)
{
	return ca_sweep_time(c->opt.sweep, c->opt.variant).elapsed > 0 ||
	       (c->first_experiment && now - c->first_experiment > SEEN * CA_NS_PER_S);
}

enum ca_conductor_end ca_conductor_plan_end(struct ca_conductor *c, uint64_t now)
{
	unsigned rows;

	if (c->asked_to_end)
		return CA_CONDUCTOR_ASKED;
	if (ca_windows_is_over(c->windows))
		return CA_CONDUCTOR_DURATION;
	if (!c->opt.ends || ca_windows_do_end(c->set))
		return CA_CONDUCTOR_GOES_ON;
	if (!c->doubt && has_seen_enough(c, now) && ca_sweep_is_decided(c->opt.sweep, &rows))
		return CA_CONDUCTOR_DECIDED;
	return c->opt.budget && c->first_experiment && now - c->first_experiment > c->opt.budget
		       ? CA_CONDUCTOR_SPENT
		       : CA_CONDUCTOR_GOES_ON;
}

/* ---- how it ended ------------------------------------------------------------------------*/
/* The point that the plan goes by: the first one that was ever passed. */
static const struct ca_visits *find_visits(struct ca_conductor *c, const struct ca_experiment_record *r)
{
	for (size_t i = 0; i < r->visit_count; i++) {
		const struct ca_point_info *point = ca_catalog_get_point(&c->catalog, r->visits[i].point);

		if (point && (r->visits[i].point == CA_POINT_END_TO_END ||
			      ca_sweep_is_point(c->opt.sweep, c->opt.variant, point->name)))
			return &r->visits[i];
	}
	return NULL;
}

/* What the user names is the unit of work. */
static void check_unit(struct ca_conductor *c, struct ca_visits *visits)
{
	if (!ca_conductor_points_are_ours(c) || !ca_plan_counts_work(c->plan))
		return;
	visits->refuted = true;
	ca_sweep_steady(c->opt.sweep)->left = true; /* of visits that are none */
	if (ca_sweep_first_time(c->opt.sweep, CA_SWEEP_REFUTED))
		ca_conductor_say(
			c, 0,
			"progress point %s counts no unit of work: where code is faster, a visit takes "
			"more CPU time, or less; CPU time is the unit now",
			ca_catalog_get_point(&c->catalog, visits->point)->name);
}

/* Other programs had CPUs that the run's threads waited for, and what is won beside them can be told. */
static bool is_beside(const struct ca_experiment_record *r)
{
	return r->flags == CA_EXPERIMENT_DISTURBED &&
	       !ca_results_is_blind(r->end - r->start, r->outside, r->work, r->turns);
}

static bool by_timer(const struct ca_conductor *c)
{
	return atomic_load(&c->session->backends) == 1U << CA_BACKEND_TIMER;
}

static bool is_crowded(const struct ca_conductor *c, const struct ca_experiment_record *r)
{
	return by_timer(c) && !r->exact && ca_results_is_crowded(r->queued, r->lost, r->work);
}

void ca_conductor_plan_tell(struct ca_conductor *c, const struct ca_experiment_record *r)
{
	const struct ca_visits *v;
	enum ca_plan_use use;
	bool latency;
	double elapsed = (double)(r->end - r->start) / 1e9, duration = elapsed - (double)r->delay / 1e9,
	       probes = (double)r->probes / 1e9;
	struct ca_observation o = { .region = r->region, .speedup = r->speedup, .run = c->opt.run };

	if (!c->plan)
		return;
	v = find_visits(c, r);
	latency = v && ca_catalog_get_point(&c->catalog, v->point)->kind > CA_POINT_THROUGHPUT;
	o.time = (double)r->start / 1e9;
	o.cost = latency ? duration * v->in_flight : v && v->span ? (double)v->span / 1e9 : duration;
	o.visits = !v ? 0 : (double)(latency ? v->arrivals : v->delta);
	/* see ca_profile_observe */
	o.elapsed = latency || r->flags & CA_EXPERIMENT_DISTURBED ? 0 : elapsed - probes;
	o.active = (double)r->s_time / 1e9;
	o.delay = (double)ca_results_delay(r->delay, r->probes) / 1e9;
	o.still = (double)r->still / 1e9;
	o.paying = ca_results_paying(r->paying, r->still, r->delay, r->probes);
	o.limits = (double)r->limits;
	o.sampled = ca_estimate_sampled(r->exact, by_timer(c), r->met, r->work);
	o.idle = elapsed > 0 ? (double)r->idled / 1e9 / elapsed : 0;
	o.entries = r->exact ? (double)r->hits : 0;
	o.work = latency || (v && v->point == CA_POINT_TIME)
			 ? 0
			 : ca_results_work(r->work, r->turns, r->end - r->start);
	o.yardstick = latency || (v && v->point == CA_POINT_TIME) ? 0 : (double)r->yardstick;
	if (v && v->point == CA_POINT_TIME)
		ca_units_take_off(&o, ca_results_taken(r->end - r->start, r->work, r->s_time, r->lost,
						       r->overhead, r->overhead_in_s));
	o.periods = latency ? 0 : (double)r->periods;
	o.inside = latency ? 0 : (double)r->inside;
	o.per_visit = !v || v->point != CA_POINT_TIME;
	if (r->at) {
		o.from = (double)r->at / 1e9;
		o.to = o.from + duration;
		o.before = v && !latency && o.per_visit ? (double)v->before : 0;
	}
	o.counted = v && v->point != CA_POINT_TIME && !v->span && !c->whole && !c->set->end_to_end;
	if (r->flags == CA_EXPERIMENT_NO_VISIT)
		o.cost = 0;
	use = r->flags & ~(uint32_t)CA_EXPERIMENT_LAST ? CA_PLAN_USELESS
	      : is_beside(r)                           ? CA_PLAN_BESIDE
	      : r->flags || is_crowded(c, r)           ? CA_PLAN_DOUBTFUL
						       : CA_PLAN_GOOD;
	if (c->doubt) {
		if (use != CA_PLAN_USELESS)
			ca_plan_tell_run(c->plan, &o);
		return;
	}
	ca_plan_tell(c->plan, &o, use);
	if (v && o.per_visit && !latency)
		check_unit(c, &c->e.visits[v - r->visits]);
}

/* ---- the end of the run ------------------------------------------------------------------*/
/* Is this row mostly called from that code, or much of what that does? */
static bool is_part(const struct ca_stacks *stacks, const struct ca_stacks_code *code,
		    const struct ca_stacks_code *row)
{
	uint64_t inside = 100 * ca_stacks_inside(stacks, code->region, row->region);

	return inside >= HELD * row->samples || inside >= MUCH * code->samples;
}

/* Callers that a row stands for, the innermost first; or rows that make up this code. */
static void name_others(const struct ca_conductor *c, const struct ca_stacks_code *all, size_t n,
			const struct ca_stacks_code *code, bool via, const char *name[NAMES + 1])
{
	double depth[NAMES];
	size_t k = 0;

	for (size_t i = 0; i < n && k < NAMES; i++) {
		size_t at = k;

		if (via ? all[i].role != CA_STACKS_VIA || all[i].row != code->region
			: all[i].role != CA_STACKS_ROW || &all[i] == code ||
				    !is_part(c->stacks, code, &all[i]))
			continue;
		while (via && at > 0 && depth[at - 1] < all[i].depth)
			at--;
		memmove(name + at + 1, name + at, (k - at) * sizeof *name);
		memmove(depth + at + 1, depth + at, (k - at) * sizeof *depth);
		name[at] = ca_catalog_get_region(&c->catalog, all[i].region)->name;
		depth[at] = all[i].depth;
		k++;
	}
	name[k] = NULL;
}

static void write_samples(struct ca_conductor *c)
{
	const struct ca_stacks_code *all = NULL;
	size_t n = c->stacks ? ca_stacks_judge(c->stacks, &all) : 0;

	for (uint32_t id = 1; id <= c->catalog.regions; id++) {
		const char *via[NAMES + 1] = { NULL }, *contains[NAMES + 1] = { NULL },
					*calls[NAMES + 1] = { NULL };
		struct ca_region_stacks stacks = { .via = via, .contains = contains, .calls = calls };
		uint64_t count = ca_regions_samples(c->regions, id);

		if (!count)
			continue;
		stacks.own = c->stacks ? ca_stacks_own(c->stacks, id, false) : UINT64_MAX;
		stacks.waited = count - ca_regions_at_work(c->regions, id);
		stacks.since = since_of(c, id);
		stacks.silent = ca_conductor_silence_samples(c, id);
		for (size_t i = 0; i < n && !ca_conductor_is_named(c); i++) {
			if (all[i].region != id)
				continue;
			name_others(c, all, n, &all[i], true, via);
			if (all[i].role == CA_STACKS_SPINS || all[i].role == CA_STACKS_CONTAINS)
				stacks.spins = ca_stacks_own(c->stacks, id, true);
			if (all[i].role == CA_STACKS_CONTAINS)
				name_others(c, all, n, &all[i], false, contains);
			if (all[i].role == CA_STACKS_ROW &&
			    100 * all[i].own < CA_STACKS_NO_OWN * all[i].samples)
				name_others(c, all, n, &all[i], false, calls);
		}
		ca_results_samples(c->results, id, count, &stacks, NULL);
	}
}

static void write_stack(void *context, const uint32_t *region, size_t n, uint64_t count)
{
	struct ca_conductor *c = context;
	const char **name = calloc(n + 1, sizeof *name);

	for (size_t i = 0; i < n && name; i++)
		name[i] = ca_catalog_get_region(&c->catalog, region[i])->name;
	if (name)
		ca_results_stack(c->results, name, n, count, NULL);
	free(name);
}

static void tell_of_silence(struct ca_conductor *c)
{
	if (!(c->sum.silence.length > 0) || c->sum.silence.early)
		return;
	ca_sweep_add_silence(c->opt.sweep, c->opt.variant, &c->sum.silence);
	for (uint32_t id = 1; id <= c->catalog.regions; id++)
		ca_sweep_add_silent(c->opt.sweep, c->opt.variant, id, ca_conductor_silence_samples(c, id));
}

void ca_conductor_plan_close(struct ca_conductor *c)
{
	struct ca_catalog *all;

	write_samples(c);
	if (!c->plan)
		return;
	ca_stacks_tell(c->stacks, STACKS_TOLD, write_stack, c);
	tell_of_silence(c);
	/* a run that is measured as a whole may choose nothing itself, and the next one goes by what this one saw */
	if (c->sum.periods && has_samples(c, ca_clock_now())) {
		set_offers(c, ca_clock_now(), true);
		ca_plan_run_ended(c->plan);
	}
	ca_sweep_add_time(c->opt.sweep, c->opt.variant, time_of_run(c, ca_clock_now()));
	all = ca_sweep_catalog(c->opt.sweep);
	if (!ca_catalog_copy(all, &c->catalog))
		ca_conductor_say(c, 1, "no memory to keep what was seen for the next run");
}

void ca_conductor_plan_show(const struct ca_conductor *c, struct ca_conductor_status *status)
{
	struct ca_plan_row row[CA_CONDUCTOR_TOP];

	status->tops = c->plan ? ca_plan_top(c->plan, row, CA_CONDUCTOR_TOP) : 0;
	for (size_t i = 0; i < status->tops; i++) {
		const struct ca_region *region =
			ca_catalog_get_region(ca_sweep_catalog(c->opt.sweep), row[i].region);

		if (!region) /* new in this run */
			region = ca_catalog_get_region(&c->catalog, row[i].region);
		status->top[i].region = region ? region->name : "?";
		status->top[i].effect = row[i].effect;
		status->top[i].low = row[i].low;
		status->top[i].high = row[i].high;
	}
}

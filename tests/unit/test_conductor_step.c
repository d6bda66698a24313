/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor.c: steps of the state machine, and what is recorded at the end. The clock,
 * the log of the selected code, regions and results are played by this test. */
#include "core/clock.h"

static uint64_t clock_now, clock_tick;

static uint64_t played_clock(void)
{
	return clock_now += clock_tick;
}
#define ca_clock_now played_clock
#include "causal/conductor/conductor.c"
#include "causal/conductor/conductor_end.c"
#include "causal/conductor/conductor_experiment.c"
#include "causal/conductor/conductor_whole.c"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the others' parts --------------------------------------------------------------------*/
static uint64_t log_reads;
static const char *sampled_why;
static uint32_t sampled_region, selects;
static struct ca_experiment_record record;
static struct ca_visits recorded_visit;
static struct ca_run_summary summary;
static unsigned records, disposed;
static uint64_t sum_start, sum_end;
static unsigned sums, lost_in; /* in which sum entries are found to be lost; 0: never */

uint64_t ca_selection_log_read(struct ca_selection_log *log)
{
	(void)log;
	log_reads++;
	return 0;
}

static uint64_t entries = 9;

struct ca_selection_log_sum ca_selection_log_sum(struct ca_selection_log *log, uint64_t start, uint64_t end)
{
	(void)log;
	sum_start = start;
	sum_end = end;
	sums++;
	return (struct ca_selection_log_sum){ .s_time = (end - start) / 2,
					      .entries = entries,
					      .overflow = sums == lost_in };
}

static double active; /* of the time until now */

struct ca_selection_log_sum ca_selection_log_peek(struct ca_selection_log *log, uint64_t start, uint64_t end)
{
	(void)log;
	return (struct ca_selection_log_sum){ .s_time = (uint64_t)(active * (double)(end - start)) };
}

void ca_selection_log_restart(struct ca_selection_log *log, uint64_t first)
{
	(void)log, (void)first;
}

static uint64_t region_work;

bool ca_regions_count(struct ca_regions *regions, const ca_place *frame, unsigned frames, unsigned weight,
		      bool waiting)
{
	(void)regions, (void)frame, (void)frames;
	region_work += waiting ? 0 : weight;
	return false;
}

static uint32_t found, drawn;

uint32_t ca_regions_find(struct ca_regions *regions, const struct ca_region *like)
{
	(void)regions, (void)like;
	return found;
}

void ca_regions_select(struct ca_regions *regions, uint32_t region, bool exact, struct ca_selection *out,
		       const char **why)
{
	(void)regions, (void)region, (void)exact, (void)out;
	selects++;
	*why = NULL;
}

static uint64_t region_samples;

uint64_t ca_regions_in_main(const struct ca_regions *regions)
{
	(void)regions;
	return 0;
}

uint64_t ca_regions_samples(const struct ca_regions *regions, uint32_t region)
{
	(void)regions, (void)region;
	return region_samples;
}

uint64_t ca_regions_at_work(const struct ca_regions *regions, uint32_t region)
{
	(void)regions, (void)region;
	return region_work;
}

static enum ca_heat heat, known_heat; /* as it is, and as it has been found to be */
static unsigned heat_begins;

enum ca_heat ca_regions_heat(const struct ca_regions *regions, uint32_t region)
{
	(void)regions, (void)region;
	return known_heat;
}

void ca_regions_set_heat(struct ca_regions *regions, uint32_t region, enum ca_heat is)
{
	(void)regions, (void)region;
	known_heat = is;
}

void ca_heat_begin(struct ca_heat_look *from, const struct ca_session *s, uint64_t now)
{
	(void)s;
	from->time = now;
	heat_begins++;
}

enum ca_heat ca_heat_judge(const struct ca_heat_look *from, const struct ca_session *s, uint64_t now)
{
	(void)from, (void)s, (void)now;
	return heat;
}

void ca_regions_sample(struct ca_regions *regions, uint32_t region, const char *why)
{
	(void)regions;
	sampled_region = region;
	sampled_why = why;
}

static ca_place handed; /* behind that store somebody waits; 0: nobody */
static bool handed_known;
static unsigned handed_new;

bool ca_handover_step(struct ca_handover *handover, uint64_t now, ca_place *end)
{
	(void)handover, (void)now;
	*end = handed;
	return handed != 0;
}

bool ca_handover_is_busy(const struct ca_handover *handover)
{
	(void)handover;
	return handed != 0;
}

void ca_handover_was_new(struct ca_handover *handover)
{
	(void)handover;
	handed_new++;
}

bool ca_regions_hand_over(struct ca_regions *regions, ca_place end)
{
	(void)regions;
	return end == handed && !handed_known;
}

static uint64_t lost;

void ca_interference_read(const struct ca_session *s, struct ca_load *now)
{
	(void)s;
	*now = (struct ca_load){ 0 };
}

uint64_t ca_interference_queued(const struct ca_load *a, const struct ca_load *b)
{
	(void)a;
	(void)b;
	return UINT64_MAX;
}

uint64_t ca_interference_lost(const struct ca_load *a, const struct ca_load *b)
{
	(void)a, (void)b;
	return lost;
}

unsigned ca_interference_idle_beside(const struct ca_session *session, unsigned cpus)
{
	(void)session, (void)cpus;
	return 0;
}

bool ca_interference_seen(const struct ca_load *a, const struct ca_load *b)
{
	(void)a, (void)b;
	return lost > 0;
}

void ca_experiment_events_begin(struct ca_sinks *sinks, const struct ca_dict *dict,
				const struct ca_experiment_record *r)
{
	(void)sinks, (void)dict, (void)r;
}

void ca_experiment_events_end(struct ca_sinks *sinks, const struct ca_dict *dict,
			      const struct ca_experiment_record *r)
{
	(void)sinks, (void)dict, (void)r;
}

enum ca_status ca_results_experiment(struct ca_results *results, const struct ca_experiment_record *r,
				     struct ca_err *err)
{
	(void)results, (void)err;
	records++;
	record = *r;
	if (r->visit_count)
		recorded_visit = r->visits[0];
	return CA_OK;
}

enum ca_status ca_results_binary(struct ca_results *results, const char *path, const uint8_t *build_id,
				 size_t length, struct ca_err *err)
{
	(void)results, (void)path, (void)build_id, (void)length, (void)err;
	return CA_OK;
}

enum ca_status ca_results_close(struct ca_results *results, const struct ca_run_summary *s,
				struct ca_err *err)
{
	(void)results, (void)err;
	summary = *s;
	return CA_OK;
}

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	(void)c, (void)level, (void)format;
}

static bool patched;
static uint64_t unplaced;
static unsigned unplaced_starts;

bool ca_conductor_patched(struct ca_conductor *c)
{
	(void)c;
	return patched;
}

void ca_conductor_unplaced_start(struct ca_conductor *c)
{
	(void)c;
	unplaced_starts++;
}

uint64_t ca_conductor_unplaced(const struct ca_conductor *c)
{
	(void)c;
	return unplaced;
}

void ca_conductor_report_points(struct ca_conductor *c)
{
	(void)c;
}

void ca_conductor_points_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames, bool waiting)
{
	(void)c, (void)frame, (void)frames, (void)waiting;
}

bool ca_conductor_points_want_stacks(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

bool ca_conductor_points_step(struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return true;
}

bool ca_conductor_points_are_ours(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

bool ca_conductor_points_are_open(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

void ca_conductor_points_free(struct ca_conductor *c)
{
	(void)c;
}

void ca_conductor_points_close(struct ca_conductor *c, int wait_status, const struct ca_visits_now *visits)
{
	(void)c, (void)wait_status, (void)visits;
}

uint64_t ca_conductor_points_since(const struct ca_conductor *c)
{
	return c->started;
}

bool ca_conductor_points_are_needless(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

size_t ca_conductor_points_keep(const struct ca_conductor *c, struct ca_visits *visits, size_t n)
{
	(void)c;
	(void)visits;
	return n;
}
size_t ca_conductor_points_time(struct ca_conductor *c, const struct ca_experiment_record *r,
				struct ca_visits *visits)
{
	(void)c, (void)r, (void)visits;
	return 0;
}

bool ca_conductor_plan_next(struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return false;
}

bool ca_conductor_is_what_if(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

bool ca_conductor_what_if_next(struct ca_conductor *c)
{
	(void)c;
	return false;
}

enum ca_status ca_conductor_what_if_check(struct ca_conductor *c, struct ca_err *err)
{
	(void)c;
	(void)err;
	return CA_OK;
}

void ca_conductor_what_if_close(struct ca_conductor *c)
{
	(void)c;
}

static enum ca_conductor_end end;

enum ca_conductor_end ca_conductor_plan_end(struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return end;
}

uint32_t ca_conductor_plan_draw(struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return drawn;
}

uint32_t ca_conductor_plan_pick(struct ca_conductor *c, uint64_t now)
{
	return ca_conductor_plan_draw(c, now);
}

void ca_conductor_plan_show(const struct ca_conductor *c, struct ca_conductor_status *status)
{
	(void)c;
	status->tops = 0;
}

void ca_conductor_plan_begun(struct ca_conductor *c)
{
	(void)c;
}

static unsigned told;

void ca_conductor_plan_tell(struct ca_conductor *c, const struct ca_experiment_record *r)
{
	(void)c, (void)r;
	told++;
}

void ca_conductor_plan_close(struct ca_conductor *c)
{
	(void)c;
}

bool ca_conductor_scope_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames,
			       unsigned weight, unsigned flags)
{
	(void)c, (void)frame, (void)frames, (void)weight, (void)flags;
	return false;
}

void ca_conductor_scope_step(struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
}

bool ca_conductor_scope_is_open(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

void ca_conductor_scope_close(struct ca_conductor *c)
{
	(void)c;
}

void ca_conductor_sample_started(struct ca_conductor *c)
{
	(void)c;
}

void ca_conductor_sample_step(struct ca_conductor *c, uint64_t now)
{
	(void)c;
	(void)now;
}

void ca_conductor_sample_thread_died(struct ca_conductor *c, uint32_t slot, uint64_t now)
{
	(void)c, (void)slot, (void)now;
}

void ca_conductor_sample_close(struct ca_conductor *c, uint64_t now, int wait_status)
{
	(void)c;
	(void)now;
	(void)wait_status;
}

void ca_conductor_dispose(struct ca_conductor *c)
{
	(void)c;
	disposed++;
}

/* ---- a conductor --------------------------------------------------------------------------*/
enum { REGION = 3, BEGUN = 1000 * MS, SLOTS = 4 };
enum {
	PAGE = _Alignof(struct ca_session),
	SESSION = (sizeof(struct ca_session) + SLOTS * sizeof(struct ca_slot) + PAGE - 1) / PAGE * PAGE
};
static const char *const command[] = { "./some/app", NULL };
static char no_periods[] = "";
static char any_clock[] = "monotonic";
static struct ca_settings settings;
static struct ca_session *session;
static struct ca_conductor conductor;

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(PAGE, SESSION);
	if (!session)
		return -1;
	memset(session, 0, SESSION);
	atomic_store(&session->slots_ready, CA_MAX_THREADS);
	settings = (struct ca_settings){
		.warm_up = 1000, .cool_off = 1000, .periods = no_periods, .period_clock = any_clock
	};
	settings.binary_scope = (char *)"";
	conductor = (struct ca_conductor){ .opt.command = command, .set = &settings, .session = session };
	conductor.started = conductor.state_since = conductor.last_step = conductor.last_reap = BEGUN;
	conductor.region = conductor.selected = REGION;
	conductor.warm_up = 1000 * MS;
	conductor.e.opened = conductor.heat.time = BEGUN;
	conductor.e.planned_end = UINT64_MAX;
	conductor.windows = ca_windows_new(&settings, NULL, NULL);
	if (!conductor.windows)
		return -1;
	ca_windows_begin(conductor.windows, BEGUN);
	clock_now = BEGUN;
	clock_tick = 0;
	log_reads = records = disposed = sampled_region = told = 0;
	sampled_why = NULL;
	patched = false;
	heat = known_heat = CA_HEAT_UNKNOWN;
	heat_begins = selects = 0;
	unplaced = unplaced_starts = 0;
	memset(&record, 0, sizeof record);
	memset(&summary, 0, sizeof summary);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_catalog_fini(&conductor.catalog);
	ca_windows_free(conductor.windows);
	free(session);
	return 0;
}

/* How fast the CPUs were in an experiment: what its ticks add, of all threads, and nothing of a few. */
static void test_yardstick(void **state)
{
	(void)state;
	atomic_store(&session->slots_used, 2);
	atomic_store(&session->slot[0].yardstick, 50000);
	atomic_store(&session->slot[0].yardsticks, 20);
	conductor.e.work = ca_conductor_whole_work(&conductor);
	atomic_fetch_add(&session->slot[0].yardstick, 6 * 900);
	atomic_fetch_add(&session->slot[0].yardsticks, 6);
	ca_conductor_experiment_close(&conductor, clock_now, 0);
	assert_int_equal(conductor.e.record.yardstick, 0);
	atomic_fetch_add(&session->slot[1].yardstick, 3 * 1203);
	atomic_fetch_add(&session->slot[1].yardsticks, 3);
	ca_conductor_experiment_close(&conductor, clock_now, 0);
	assert_int_equal(conductor.e.record.yardstick, 1001000);
}

/* Else it wraps, and what was in it is lost. */
static void test_log_is_read(void **state)
{
	(void)state;
	for (unsigned phase = WAITING; phase <= FINISHED; phase++) {
		conductor.state = (enum ca_conductor_phase)phase;
		log_reads = 0;
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, phase);
		assert_int_equal(log_reads, 1);
	}
}

/* When experiments end, the program is left alone, but for a duration that was asked for. */
static void test_ends(void **state)
{
	static const enum ca_conductor_end ends[] = { CA_CONDUCTOR_GOES_ON, CA_CONDUCTOR_DURATION,
						      CA_CONDUCTOR_DECIDED, CA_CONDUCTOR_SPENT,
						      CA_CONDUCTOR_ASKED };

	for (size_t i = 0; i < CA_COUNT(ends); i++) {
		struct ca_conductor_status status;

		assert_int_equal(set_up(state), 0);
		atomic_store(&session->state, CA_SESSION_OPEN);
		conductor.state = WAITING;
		end = ends[i];
		atomic_store(&session->wants_stacks, 1); /* a search was under way */
		ca_conductor_step(&conductor);
		ca_conductor_status(&conductor, &status);
		assert_int_equal(status.end, end);
		assert_int_equal(conductor.state, end ? FINISHED : WAITING);
		assert_int_equal(atomic_load(&session->wants_stacks), !end);
		assert_int_equal(atomic_load(&session->state),
				 end > CA_CONDUCTOR_DURATION ? CA_SESSION_CLOSED : CA_SESSION_OPEN);
		tear_down(state);
	}
	end = CA_CONDUCTOR_GOES_ON;
}

/* What threads did before the measured part began is none of it, also where its beginning takes long, with thousands of
 * threads, and the conductor comes to read of it only then: those probes have not seen it. */
static void test_early_samples(void **state)
{
	struct ca_event sample[] = { { .key = CA_KEY_SAMPLE, .flags = 40 } };

	assert_int_equal(set_up(state), 0);
	atomic_store(&session->slots_used, 1);
	atomic_store(&session->slot[0].ring_ready, 1);
	assert_true(ca_ring_push(&session->slot[0].ring, sample, 1));
	ca_slot_set_add(&session->told, 0);
	region_work = 3;
	ca_conductor_experiment_measure(&conductor, clock_now);
	assert_int_equal(conductor.e.looked_at_work, 43);
	assert_int_equal(conductor.e.periods_before, 40);
	region_work = 0;
	tear_down(state);
}

/* Code that is entered more often than it was when it was tried, which is looked at every 20 ms, is known in
 * another way from then on. */
static void test_becomes_hotter(void **state)
{
	static const struct {
		unsigned ms; /* of a step */
		uint32_t exact, fine;
		enum ca_heat heat;
		unsigned hotter; /* in this step, 0: never */
	} cases[] = {
		{ 20, 1, 0, CA_HEAT_COOL, 0 },    { 20, 1, 0, CA_HEAT_HOT, 1 },
		{ 19, 1, 0, CA_HEAT_HOT, 2 },     { 20, 1, 0, CA_HEAT_TOO_HOT, 1 },
		{ 20, 1, 1, CA_HEAT_HOT, 0 },     { 9, 1, 1, CA_HEAT_TOO_HOT, 3 },
		{ 20, 0, 0, CA_HEAT_TOO_HOT, 0 },
	};

	for (size_t i = 0; i < 2 * CA_COUNT(cases); i++) {
		enum ca_conductor_phase phase = i % 2 ? RUNNING : WARMING_UP;
		unsigned hotter = 0;
		size_t at = i / 2;

		assert_int_equal(set_up(state), 0);
		conductor.state = phase;
		session->selection.exact = cases[at].exact;
		session->selection.fine = cases[at].fine;
		heat = cases[at].heat;
		for (unsigned step = 1; step <= 12 && !hotter; step++) {
			clock_now += (uint64_t)cases[at].ms * MS;
			ca_conductor_step(&conductor);
			if (conductor.state != phase)
				hotter = step;
		}
		if (hotter != cases[at].hotter)
			fail_msg("case %zu: in step %u", i, hotter);
		assert_int_equal(conductor.e.record.flags, hotter ? CA_EXPERIMENT_OVERFLOW : 0);
		assert_int_equal(conductor.state, hotter ? SETTLING : phase);
		assert_int_equal(conductor.selected, hotter ? 0 : REGION);
		assert_int_equal(known_heat, hotter ? heat : CA_HEAT_UNKNOWN);
		tear_down(state);
	}
}

/* Code at work by the samples and hardly ever by its probes is sampled from then on; of a run that is measured as a
 * whole the first part stays in, so that others are better. */
static void test_is_entered_unseen(void **state)
{
	static const struct {
		unsigned samples;
		double active; /* CPUs */
		bool whole, unseen;
	} cases[] = {
		{ 59, 0, false, false },     { 60, 0, false, true },     { 60, 0, true, true },
		{ 400, 0.11, false, false }, { 400, 0.09, false, true }, { 400, 0.09, true, true },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		bool unseen = cases[i].unseen;

		assert_int_equal(set_up(state), 0);
		settings.end_to_end = cases[i].whole;
		conductor.state = RUNNING;
		conductor.e.record.start = clock_now;
		conductor.e.looked_at_work = 7;
		conductor.e.planned_end = UINT64_MAX;
		conductor.last_step = clock_now + 900 * MS;
		session->period = MS;
		session->selection.exact = 1;
		region_samples = 1000; /* waits are no work */
		region_work = 7 + cases[i].samples;
		active = cases[i].active / (double)sysconf(_SC_NPROCESSORS_ONLN);
		heat = CA_HEAT_COOL;
		clock_now += 1000 * MS;
		ca_conductor_step(&conductor);
		if ((known_heat == CA_HEAT_TOO_HOT) != unseen)
			fail_msg("case %zu: %d", i, known_heat);
		assert_int_equal(conductor.state, unseen ? SETTLING : RUNNING);
		assert_int_equal(conductor.e.record.flags, !unseen          ? 0
							   : cases[i].whole ? CA_EXPERIMENT_BOOKS
									    : CA_EXPERIMENT_OVERFLOW);
		region_samples = region_work = 0;
		active = 0;
		tear_down(state);
	}
}

/* Nobody has paid before a store that hands something over, in the experiment in which it comes to light; from the
 * next selection on all do. */
static void test_hands_over(void **state)
{
	for (unsigned i = 0; i < 8; i++) {
		enum ca_conductor_phase phase = i & 1 ? RUNNING : WARMING_UP;
		bool found_one = i & 2, is_new = !(i & 4);

		assert_int_equal(set_up(state), 0);
		conductor.handover = (struct ca_handover *)&conductor; /* no step looks into it here */
		conductor.state = phase;
		handed = found_one ? CA_PLACE(0, 0x123) : 0;
		handed_known = !is_new;
		handed_new = 0;
		clock_now += MS;
		assert_true(!found_one || ca_conductor_step(&conductor) <= 3);
		if (!found_one)
			ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, found_one && is_new ? SETTLING : phase);
		assert_int_equal(conductor.e.record.flags, found_one && is_new ? CA_EXPERIMENT_UNPLACED : 0);
		assert_int_equal(conductor.selected, found_one && is_new ? 0 : REGION);
		assert_int_equal(handed_new, found_one && is_new);
		handed = 0;
		conductor.handover = NULL;
		tear_down(state);
	}
}

static void with_regions(char name[6])
{
	conductor.opt.sweep = ca_sweep_new(1);
	for (unsigned k = 0; k < REGION; k++)
		ca_catalog_add_region(&conductor.catalog, &(struct ca_region){ .name = &name[2 * k] });
}

/* A run that is measured as a whole goes on as the same experiment, with what was inserted before. */
static void test_becomes_hotter_as_a_whole(void **state)
{
	char name[] = "a\0b\0c";

	assert_int_equal(set_up(state), 0);
	with_regions(name);
	settings.end_to_end = true;
	conductor.state = RUNNING;
	conductor.region = REGION;
	conductor.e.record.index = 1;
	conductor.e.record.start = clock_now;
	conductor.e.record.exact = true;
	session->selection.exact = 1;
	heat = CA_HEAT_HOT;
	clock_now += 20 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, SETTLING);
	assert_int_equal(conductor.e.record.flags, 0);
	heat = CA_HEAT_COOL;
	patched = true;
	atomic_store(&session->processes_used, 1);
	session->selection.fine = 1;
	for (unsigned step = 0; step < 1000 && conductor.state != RUNNING; step++) {
		clock_now += 2 * MS;
		ca_conductor_step(&conductor);
	}
	assert_int_equal(conductor.state, RUNNING);
	assert_int_equal(conductor.selected, REGION);
	assert_int_equal(conductor.e.record.index, 1);
	assert_true(conductor.e.part > conductor.e.record.start);
	assert_true(conductor.e.record.exact && conductor.e.lumpy);
	assert_int_equal(conductor.kept, 0);
	ca_sweep_free(conductor.opt.sweep);
	ca_catalog_fini(&conductor.catalog);
	tear_down(state);
}

/* What is not known to be cool is timed for a moment first. */
static void test_trial(void **state)
{
	static const struct {
		enum ca_heat known, is;
		uint32_t fine;
		enum ca_conductor_phase first, then;
		unsigned selects;
	} cases[] = {
		{ CA_HEAT_UNKNOWN, CA_HEAT_COOL, 1, TRYING, PREPARING, 1 },
		{ CA_HEAT_UNKNOWN, CA_HEAT_HOT, 1, TRYING, WARMING_UP, 0 },
		{ CA_HEAT_UNKNOWN, CA_HEAT_TOO_HOT, 1, TRYING, PREPARING, 1 },
		{ CA_HEAT_COOL, CA_HEAT_HOT, 0, WARMING_UP, WARMING_UP, 0 },
		{ CA_HEAT_HOT, CA_HEAT_COOL, 1, WARMING_UP, WARMING_UP, 0 },
		{ CA_HEAT_UNKNOWN, CA_HEAT_HOT, 0, WARMING_UP, WARMING_UP, 0 }, /* sampled */
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char name[] = "a\0b\0c";

		assert_int_equal(set_up(state), 0);
		with_regions(name);
		conductor.state = PREPARING;
		session->selection.exact = session->selection.fine = cases[i].fine;
		heat = cases[i].is;
		known_heat = cases[i].known;
		patched = true;
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, cases[i].first);
		assert_int_equal(heat_begins, 1);
		patched = false;
		clock_now += 4 * MS;
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, cases[i].first);
		clock_now += MS;
		ca_conductor_step(&conductor);
		if (conductor.state != cases[i].then)
			fail_msg("case %zu: %u", i, conductor.state);
		assert_int_equal(known_heat, cases[i].first == TRYING ? heat : cases[i].known);
		assert_int_equal(selects, cases[i].selects);
		ca_sweep_free(conductor.opt.sweep);
		tear_down(state);
	}
}

/* Sites that could not be placed: an int3 may do where each visit is logged, else it is sampled. */
static void test_sites_failed(void **state)
{
	static const struct {
		enum ca_heat known;
		uint32_t fine, sampled;
	} cases[] = { { CA_HEAT_UNKNOWN, 1, 0 }, { CA_HEAT_HOT, 1, REGION }, { CA_HEAT_COOL, 0, REGION } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		conductor.state = PREPARING;
		session->selection.exact = 1;
		session->selection.fine = cases[i].fine;
		known_heat = cases[i].known;
		patched = true;
		atomic_store(&session->processes_used, 1);
		atomic_store(&session->process[0].state, CA_SLOT_LIVE);
		atomic_store(&session->process[0].patch_failed, 1);
		session->process[0].pid = (uint32_t)getpid();
		atomic_store(&session->process[0].patched, atomic_load(&session->selection.seq));
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, WAITING);
		assert_int_equal(conductor.selected, 0);
		assert_int_equal(sampled_region, cases[i].sampled);
		assert_int_equal(!sampled_why, !cases[i].sampled);
		assert_int_equal(known_heat, cases[i].sampled ? cases[i].known : CA_HEAT_COOL);
		tear_down(state);
	}
}

/* Lost entries are told of once, mostly when the warm-up is summed: the window lost them, too. */
static void test_lost_entries(void **state)
{
	for (lost_in = 0; lost_in <= 2; lost_in++) {
		assert_int_equal(set_up(state), 0);
		sums = 0;
		conductor.state = SETTLING;
		conductor.state_since = clock_now - 1000 * MS;
		ca_conductor_step(&conductor);
		assert_int_equal(records, 1);
		assert_int_equal(told, 1);
		assert_int_equal(sums, 2);
		assert_int_equal(record.flags & CA_EXPERIMENT_OVERFLOW, lost_in ? CA_EXPERIMENT_OVERFLOW : 0);
		tear_down(state);
	}
	lost_in = 0;
}

/* The whole run is one experiment: it lasts as long as the summary says that the run did, however
 * long it takes to close it. */
static void test_end_to_end(void **state)
{
	static const struct {
		int wait_status;
		uint32_t flags;
	} cases[] = { { 0, 0 }, { 3 << 8, 0 }, { SIGTERM, CA_EXPERIMENT_CUT } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_err err;

		assert_int_equal(set_up(state), 0);
		settings.end_to_end = true;
		conductor.state = RUNNING;
		conductor.speedup = conductor.e.record.speedup = CA_MILLION / 2;
		conductor.e.record.start = BEGUN + 7;
		clock_now = BEGUN + 800 * MS;
		clock_tick = 13;
		assert_int_equal(ca_conductor_close(&conductor, cases[i].wait_status, NULL, &err), CA_OK);
		assert_int_equal(disposed, 1);
		assert_int_equal(records, 1);
		assert_int_equal(record.start, BEGUN);
		assert_int_equal(record.end, BEGUN + 800 * MS + 13);
		assert_int_equal(record.end - record.start, summary.runtime);
		assert_int_equal(sum_start, record.start);
		assert_int_equal(sum_end, record.end);
		assert_int_equal(record.delay, summary.runtime / 4);
		assert_int_equal(record.flags, cases[i].flags);
		assert_int_equal(record.visit_count, 1);
		assert_int_equal(recorded_visit.point, CA_POINT_END_TO_END);
		assert_int_equal(recorded_visit.delta, 1);
		assert_string_equal(ca_catalog_get_point(&conductor.catalog, CA_POINT_END_TO_END)->name,
				    "app");
		tear_down(state);
	}
}

/* Measured as a whole, with windows of 0.1 s: D is half of what S has in them, which is half of the time; the
 * run's length is that of all of it. */
static void test_end_to_end_in_windows(void **state)
{
	static char two[] = "monotonic:0:0.1:1 monotonic:0.1:0.1:1";
	struct ca_err err;

	(void)state;
	ca_windows_free(conductor.windows);
	settings.periods = two;
	settings.end_to_end = true;
	settings.cool_off = 10;
	conductor.windows = ca_windows_new(&settings, NULL, NULL);
	assert_non_null(conductor.windows);
	ca_windows_begin(conductor.windows, BEGUN);
	atomic_store(&session->processes_used, 1);
	atomic_store(&session->experiment.seq, 1);
	conductor.state = RUNNING;
	conductor.speedup = conductor.e.record.speedup = CA_MILLION / 2;
	conductor.e.opened = conductor.e.record.start = BEGUN + 20 * MS;
	clock_now = BEGUN + 99 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, RUNNING);
	clock_now = BEGUN + 100 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, SETTLING);
	assert_int_equal(atomic_load(&session->experiment.seq), 2);
	clock_now = BEGUN + 120 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, WAITING);
	assert_int_equal(atomic_load(&session->settled_seq), 2);
	clock_now = BEGUN + 190 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, WAITING);
	clock_now = BEGUN + 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, RUNNING);
	assert_int_equal(atomic_load(&session->experiment.seq), 3);
	assert_int_equal(session->experiment.speedup, CA_MILLION / 2);
	clock_now = BEGUN + 260 * MS;
	assert_int_equal(ca_conductor_close(&conductor, 0, NULL, &err), CA_OK);
	assert_int_equal(records, 1);
	assert_int_equal(record.start, BEGUN);
	assert_int_equal(record.end, BEGUN + 260 * MS);
	assert_int_equal(record.s_time, 40 * MS + 30 * MS);
	assert_int_equal(record.delay, 20 * MS + 15 * MS);
}

/* A whole run of a program that passes points: from its opening to the last visit, or to its end if it has
 * more to do after it. D is half of what S has, which is half of the time. */
static void test_whole_run(void **state)
{
	enum { OPENED = BEGUN + 10 * MS, LENGTH = 800 * MS };
	static const struct {
		uint64_t visits, last; /* of them, ns of virtual time from the opening on */
		uint64_t span, delta, early, samples;
		uint32_t flags;
	} cases[] = {
		{ 10, 590 * MS, 590 * MS + 10 * MS - 1, 10, 0, 0, 0 },
		{ 10, 510 * MS, 510 * MS + 10 * MS - 1, 10, 5, 100, 0 },
		{ 10, 490 * MS, 0, 10, 20, 3000, 0 },
		{ 0, 0, 0, 1, 0, 0, 0 },
		{ 10, 590 * MS, 590 * MS + 10 * MS - 1, 10, 6, 100, CA_EXPERIMENT_UNPLACED },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_err err;

		assert_int_equal(set_up(state), 0);
		settings.end_to_end = conductor.whole = true;
		conductor.state = RUNNING;
		conductor.speedup = conductor.e.record.speedup = CA_MILLION / 2;
		conductor.e.opened = conductor.e.began = conductor.e.record.start = OPENED;
		session->point[0].kind = CA_POINT_THROUGHPUT;
		strcpy(session->point[0].name, "work");
		atomic_store(&session->point[0].state, CA_SLOT_LIVE);
		atomic_store(&session->points_used, 1);
		atomic_store(&session->slots_used, 1);
		/* some were made before: the run's are counted */
		atomic_store(&session->slot[0].count[0], cases[i].visits / 2);
		ca_visits_read(session, &conductor.e.before);
		region_samples = cases[i].early;
		ca_conductor_whole_begin(&conductor, OPENED);
		region_samples = cases[i].samples;
		atomic_store(&session->slot[0].count[0], cases[i].visits);
		atomic_store(&session->slot[0].last[0], OPENED + cases[i].last);
		clock_now = OPENED + LENGTH;
		assert_int_equal(ca_conductor_close(&conductor, 0, NULL, &err), CA_OK);
		assert_int_equal(records, 1);
		assert_int_equal(record.start, BEGUN);
		assert_int_equal(record.end, OPENED + LENGTH);
		assert_int_equal(record.delay, (OPENED - BEGUN + LENGTH) / 4); /* active all the time */
		assert_int_equal(record.flags, cases[i].flags);
		region_samples = 0;
		assert_int_equal(record.visit_count, 1);
		assert_int_equal(recorded_visit.point, cases[i].visits ? 0 : CA_POINT_END_TO_END);
		assert_int_equal(recorded_visit.delta, cases[i].delta);
		assert_int_equal(recorded_visit.span, cases[i].span);
		tear_down(state);
	}
}

/* Whether one thread does all is not told by who is in the kernel, or waits. */
static void test_who_ran(void **state)
{
	assert_int_equal(set_up(state), 0);
	assert_false(ca_conductor_take_sample(&conductor, 3, NULL, 0, 5, CA_SAMPLE_IN_KERNEL));
	assert_false(ca_conductor_take_sample(&conductor, 3, NULL, 0, 7, CA_SAMPLE_WAITING));
	assert_int_equal(conductor.ran_all, 0);
	assert_false(ca_conductor_take_sample(&conductor, 3, NULL, 0, 2, 0));
	assert_false(ca_conductor_take_sample(&conductor, 4, NULL, 0, 1, 0));
	assert_int_equal(conductor.ran[3], 2);
	assert_int_equal(conductor.ran_all, 3);
	tear_down(state);
}

/* As long as it may take is not bounded otherwise: once virtual time has nearly stood still for 5 s, the run goes on
 * without delays, and begins no other experiment. */
static void test_crawls(void **state)
{
	char name[] = "a\0b\0c";

	assert_int_equal(set_up(state), 0);
	with_regions(name);
	settings.end_to_end = conductor.whole = conductor.doubt = true;
	conductor.state = RUNNING;
	conductor.region = REGION;
	conductor.speedup = conductor.e.record.speedup = CA_MILLION;
	conductor.e.opened = conductor.e.record.start = clock_now;
	atomic_store(&session->experiment.seq, 1);
	active = 1;
	clock_now += UINT64_C(4900) * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, RUNNING);
	active = 0.89;
	clock_now += UINT64_C(2000) * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, RUNNING);
	active = 0.91;
	clock_now += UINT64_C(2000) * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, SETTLING);
	assert_int_equal(atomic_load(&session->experiment.seq), 2);
	for (unsigned step = 0; step < 100 && conductor.state == SETTLING; step++) {
		clock_now += 20 * MS;
		ca_conductor_step(&conductor);
	}
	assert_int_equal(conductor.state, FINISHED);
	assert_int_equal(records, 1);
	assert_true(record.flags & CA_EXPERIMENT_CUT);
	assert_int_equal(ca_sweep_steady(conductor.opt.sweep)->region[0].too_long, 100);
	assert_false(ca_sweep_steady(conductor.opt.sweep)->left);
	clock_now += 300 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, FINISHED);
	ca_sweep_free(conductor.opt.sweep);
	ca_catalog_fini(&conductor.catalog);
	tear_down(state);
}

/* What the run is about may be in a library that is mapped later, however late: no other code stands in for it, and what
 * is drawn for a run is what it is about until its end. */
static void test_awaits_region(void **state)
{
	char names[6] = "f\0g\0h";

	assert_int_equal(set_up(state), 0);
	with_regions(names);
	settings.end_to_end = conductor.whole = true;
	conductor.opt.region = ca_catalog_get_region(&conductor.catalog, 2);
	drawn = 1;
	assert_int_equal(choose_region(&conductor, BEGUN + 1 * MS), 0);
	found = 2;
	assert_int_equal(choose_region(&conductor, BEGUN + 3 * MS), 2);
	found = 0;
	assert_int_equal(choose_region(&conductor, BEGUN + 900 * MS), 0);
	conductor.whole = false;
	conductor.opt.region = NULL;
	conductor.group++;
	assert_int_equal(choose_region(&conductor, BEGUN + 3 * MS), 0);
	drawn = 3;
	found = 1;
	assert_int_equal(choose_region(&conductor, BEGUN + 900 * MS), 1);
	assert_string_equal(wanted_region(&conductor)->name, "f");
	drawn = found = 0;
	ca_sweep_free(conductor.opt.sweep);
	ca_catalog_fini(&conductor.catalog);
	tear_down(state);
}

/* It ended before its experiment began: nothing to be recorded. */
static void test_too_short(void **state)
{
	struct ca_err err;

	(void)state;
	settings.end_to_end = true;
	conductor.state = PREPARING;
	assert_int_equal(ca_conductor_close(&conductor, 0, NULL, &err), CA_OK);
	assert_int_equal(records, 0);
}

/* ---- threads that die in S ------------------------------------------------------------------ */
static void put_thread(uint32_t slot, uint32_t process, uint32_t tid)
{
	session->slot[slot].process = process;
	session->slot[slot].pid = session->process[process].pid;
	session->slot[slot].tid = tid;
	atomic_store(&session->slot[slot].in_s, 1);
	atomic_store(&session->slot[slot].state, CA_SLOT_LIVE);
	atomic_store(&session->slots_used, slot + 1);
}

static void put_process(uint32_t p, uint32_t pid)
{
	session->process[p].pid = session->process[p].own_pid = pid;
	atomic_store(&session->process[p].state, CA_SLOT_LIVE);
	atomic_store(&session->processes_used, p + 1);
}

static uint32_t dead_child(void)
{
	pid_t child = fork();

	if (!child)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return (uint32_t)child;
}

/* Everybody reads it from the log: the driver's books, and the threads' own. */
static void test_death_in_s(void **state)
{
	uint32_t own = (uint32_t)getpid(), gone = dead_child();

	(void)state;
	put_process(0, own);
	put_process(1, gone);
	put_thread(0, 0, (uint32_t)gettid());
	put_thread(1, 1, gone);
	put_thread(2, 1, gone + 1);
	atomic_store(&session->slot[2].in_s, 0); /* not in S: nothing to be told */
	put_thread(3, 0, gone);                  /* of a process that lives */
	clock_now += 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(atomic_load(&session->log_head), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(atomic_load(&session->log[i].seq), i + 1);
		assert_int_equal(session->log[i].type, CA_LOG_EXIT);
		assert_int_equal(session->log[i].thread, i ? 3 : 1);
		assert_int_equal(session->log[i].time, clock_now);
	}
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(atomic_load(&session->slot[i].state), i ? CA_SLOT_FREE : CA_SLOT_LIVE);
	assert_int_equal(atomic_load(&session->slot[0].in_s), 1);
	assert_int_equal(atomic_load(&session->process[0].state), CA_SLOT_LIVE);
	assert_int_equal(atomic_load(&session->process[1].state), CA_SLOT_FREE);
}

/* ---- processes without the sites ---------------------------------------------------------- */
/* All have placed them; or those that have not are blocked; or there is no more time. */
static void test_waits_for_sites(void **state)
{
	static const struct {
		unsigned ms;
		bool patched;
		uint64_t unplaced;
		bool opens;
	} cases[] = {
		{ 1, true, 0, true },          { 1, true, 9 * MS, true },    { 59, false, 0, false },
		{ 60, false, 0, true },        { 60, false, 2 * MS, true },  { 60, false, 2 * MS + 1, false },
		{ 499, false, 9 * MS, false }, { 500, false, 9 * MS, true },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		char name[] = "a\0b\0c";

		assert_int_equal(set_up(state), 0);
		with_regions(name);
		conductor.state = PREPARING;
		patched = cases[i].patched;
		unplaced = cases[i].unplaced;
		clock_now += (uint64_t)cases[i].ms * MS;
		ca_conductor_step(&conductor);
		if (conductor.state != (cases[i].opens ? WARMING_UP : PREPARING))
			fail_msg("case %zu", i);
		assert_int_equal(unplaced_starts, cases[i].opens);
		ca_sweep_free(conductor.opt.sweep);
		tear_down(state);
	}
}

/* Threads that found no room, when it ends or meanwhile, are not delayed. */
static void test_threads_left_out(void **state)
{
	static const struct {
		uint32_t missed, before, out;
		bool flag;
	} cases[] = { { 0, 0, 0, false }, { 7, 7, 0, false }, { 7, 7, 1, true }, { 8, 7, 0, true } };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		conductor.state = RUNNING;
		conductor.e.planned_end = BEGUN + 100 * MS;
		conductor.last_step = BEGUN + 99 * MS;
		conductor.e.missed = cases[i].before;
		atomic_store(&session->threads_missed, cases[i].missed);
		atomic_store(&session->threads_out, cases[i].out);
		clock_now += 100 * MS;
		unplaced = 0;
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, SETTLING);
		assert_int_equal(conductor.e.record.flags, cases[i].flag ? CA_EXPERIMENT_UNPLACED : 0);
		tear_down(state);
	}
}

/* One that runs without them all the same. */
static void test_unplaced(void **state)
{
	for (unsigned much = 0; much < 2; much++) {
		assert_int_equal(set_up(state), 0);
		conductor.state = RUNNING;
		conductor.e.planned_end = BEGUN + 100 * MS;
		conductor.last_step = BEGUN + 99 * MS;
		clock_now += 100 * MS;
		unplaced = 2 * MS + much;
		ca_conductor_step(&conductor);
		assert_int_equal(conductor.state, SETTLING);
		assert_int_equal(conductor.e.record.flags, much ? CA_EXPERIMENT_UNPLACED : 0);
		tear_down(state);
	}
}
static void *stays(void *ready)
{
	char byte = 0;

	while (write(*(int *)ready, &byte, 1) < 0 || pause())
		;
	return ready;
}

/* A process that has only threads left which it started: it lives. */
static void test_main_thread_leaves(void **state)
{
	int ready[2];
	char byte;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child) {
		pthread_t thread;

		pthread_create(&thread, NULL, stays, &ready[1]);
		pthread_exit(NULL);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (char path[48], text[512], *last = NULL; !last || last[2] != 'Z'; usleep(1000)) {
		FILE *file;

		snprintf(path, sizeof path, "/proc/%d/stat", (int)child);
		file = fopen(path, "re");
		assert_non_null(file);
		assert_non_null(fgets(text, sizeof text, file));
		fclose(file);
		last = strrchr(text, ')');
	}
	put_process(0, (uint32_t)child);
	put_thread(0, 0, (uint32_t)child);
	clock_now += 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(atomic_load(&session->slot[0].state), CA_SLOT_LIVE);
	assert_int_equal(atomic_load(&session->process[0].state), CA_SLOT_LIVE);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	clock_now += 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(atomic_load(&session->process[0].state), CA_SLOT_FREE);
	close(ready[0]);
	close(ready[1]);
}

/* Its numbers are others' here. */
static void test_other_pid_namespace(void **state)
{
	int ready[2];
	uint64_t space;
	pid_t between;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	between = fork();
	if (!between) {
		if (unshare(CLONE_NEWPID))
			_exit(1);
		between = fork();
		if (!between) {
			space = ca_session_pid_space();
			while (write(ready[1], &space, sizeof space) < 0)
				;
			for (;;)
				pause();
		}
		waitpid(between, NULL, 0);
		_exit(0);
	}
	close(ready[1]);
	if (read(ready[0], &space, sizeof space) != sizeof space) {
		waitpid(between, NULL, 0);
		close(ready[0]);
		skip();
	}
	put_process(0, CA_PID_UNKNOWN);
	session->process[0].own_pid = 1;
	session->process[0].pid_space = space;
	put_thread(0, 0, 1);
	clock_now += 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(atomic_load(&session->slot[0].state), CA_SLOT_LIVE);
	assert_int_equal(atomic_load(&session->process[0].state), CA_SLOT_LIVE);
	assert_int_not_equal(session->process[0].pid, CA_PID_UNKNOWN);
	kill((pid_t)session->process[0].pid, SIGKILL);
	assert_int_equal(waitpid(between, NULL, 0), between);
	clock_now += 200 * MS;
	ca_conductor_step(&conductor);
	assert_int_equal(atomic_load(&session->slot[0].state), CA_SLOT_FREE);
	close(ready[0]);
}

/* ---- settling ------------------------------------------------------------------------------- */
/* An experiment is over: debts made in it are waited for. */
static void test_settling_waits(void **state)
{
	(void)state;
	put_process(0, (uint32_t)getpid());
	put_thread(0, 0, (uint32_t)gettid());
	put_thread(1, 0, (uint32_t)gettid());
	atomic_store(&session->experiment.seq, 8);
	atomic_store(&session->slot[0].experiment, 7);
	atomic_store(&session->slot[0].owed, SETTLED + 1);
	atomic_store(&session->slot[1].experiment, 5); /* has not looked: owes nothing in this one */
	atomic_store(&session->slot[1].owed, CA_NS_PER_S);
	settings.cool_off = 0;
	conductor.state = SETTLING;
	conductor.state_since = clock_now;
	clock_now += SETTLE_MOST - 1;
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, SETTLING);
	atomic_store(&session->slot[0].owed, SETTLED);
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, WAITING);
	assert_int_equal(records, 1);
	conductor.state = SETTLING;
	atomic_store(&session->slot[0].owed, CA_NS_PER_S);
	clock_now += SETTLE_MOST; /* as long as it may take */
	ca_conductor_step(&conductor);
	assert_int_equal(conductor.state, WAITING);
}

/* ---- two accounts of S time --------------------------------------------------------------- */
/* Somebody outside was ahead, by more than 2 % of an experiment of 150 ms. What virtual time has caught up is
 * none of D, which is 50 % of half of that; and it never is ahead itself. */
static void test_outside(void **state)
{
	enum { START = BEGUN + 50 * MS, END = BEGUN + 200 * MS, D = 75 * MS / 2 };
	static const struct {
		uint64_t ahead, experiment, caught_up, delay, settled;
		uint32_t speedup;
		bool flag;
	} cases[] = {
		{ 0, 7, 0, D, 50 * MS, CA_MILLION / 2, false },
		{ 3 * MS, 7, 10 * MS, D - 10 * MS, 50 * MS, CA_MILLION / 2, false },
		{ 3 * MS + 1, 7, D + 1, 0, 50 * MS, CA_MILLION / 2, true },
		{ 30 * MS, 7, 60 * MS, 0, 60 * MS, CA_MILLION / 2, true },
		{ 30 * MS, 5, 0, D, 50 * MS, CA_MILLION / 2, false }, /* of the one before */
		{ 30 * MS, 7, 0, 0, 0, 0, false },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		put_process(0, (uint32_t)getpid());
		put_thread(0, 0, (uint32_t)gettid());
		atomic_store(&session->slot[0].experiment, cases[i].experiment);
		atomic_store(&session->slot[0].s_time, 100 * MS);
		atomic_store(&session->slot[0].s_until, END);
		atomic_store(&session->slot[0].ahead, cases[i].ahead);
		atomic_store(&session->caught_up, cases[i].caught_up);
		atomic_store(&session->experiment.seq, 8);
		settings.cool_off = 0;
		conductor.state = SETTLING;
		conductor.e.caught_up = cases[i].caught_up;
		conductor.e.record.speedup = cases[i].speedup;
		conductor.e.record.start = START;
		conductor.e.record.end = END;
		clock_now = conductor.state_since = END + 20 * MS;
		ca_conductor_step(&conductor);
		assert_int_equal(records, 1);
		assert_int_equal(record.delay, cases[i].delay);
		assert_int_equal(atomic_load(&session->settled_delay), cases[i].settled);
		assert_int_equal(record.flags & CA_EXPERIMENT_AHEAD, cases[i].flag ? CA_EXPERIMENT_AHEAD : 0);
		tear_down(state);
	}
}

/* Threads that wait for times, which move with D, are slowed without paying: each by what D has grown, and so is a path
 * on which several of them lie. D grows by 12.5 ms in the warm-up here, and 37.5 after it. */
static void test_limited(void **state)
{
	static const uint64_t limited[] = { 0, 3 * MS, 50 * MS, 200 * MS };

	for (size_t i = 0; i < CA_COUNT(limited); i++) {
		assert_int_equal(set_up(state), 0);
		put_process(0, (uint32_t)getpid());
		put_thread(0, 0, (uint32_t)gettid());
		atomic_store(&session->experiment.seq, 8);
		settings.cool_off = 0;
		conductor.state = SETTLING;
		conductor.e.limited = limited[i];
		conductor.e.record.speedup = CA_MILLION / 2;
		conductor.e.record.paying = 5 * MS;
		conductor.e.record.start = BEGUN + 50 * MS;
		conductor.e.record.end = BEGUN + 200 * MS;
		clock_now = conductor.state_since = BEGUN + 220 * MS;
		ca_conductor_step(&conductor);
		assert_int_equal(records, 1);
		assert_int_equal(record.paying, 5 * MS + (limited[i] < 50 * MS ? limited[i] : 50 * MS));
		tear_down(state);
	}
}

/* D in lumps leaves the times of single visits unknown where visits are much shorter than what one lump is shared by, also
 * where no sample happened to be in S. 100 ms, half of them S, period 1 ms. */
static void test_lumps(void **state)
{
	static const struct {
		uint64_t entries, visits;
		uint32_t speedup;
		bool lumpy, known;
	} cases[] = {
		{ 50, 1, CA_MILLION / 2, true, true },    { 50, 100, CA_MILLION / 2, true, false },
		{ 0, 1, CA_MILLION / 2, true, true },     { 0, 100, CA_MILLION / 2, true, false },
		{ 50, 100, CA_MILLION / 2, false, true }, { 0, 100, 0, true, true },
	};
	static struct ca_visits_now after;

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		put_process(0, (uint32_t)getpid());
		for (unsigned p = 0; p < 2; p++) {
			session->point[p].kind = p ? CA_POINT_END : CA_POINT_BEGIN;
			session->point[p].latency = 1;
			strcpy(session->point[p].name, "request");
			atomic_store(&session->point[p].state, CA_SLOT_LIVE);
			after.total[p] = cases[i].visits;
		}
		after.points = 2;
		conductor.e.after = after;
		conductor.e.flight = (struct ca_in_flight){ .time = 1, .area = { 1 } };
		conductor.e.lumpy = cases[i].lumpy;
		atomic_store(&session->experiment.seq, 8);
		session->period = MS;
		settings.cool_off = 0;
		conductor.state = SETTLING;
		conductor.e.record.speedup = cases[i].speedup;
		conductor.e.record.start = BEGUN;
		conductor.e.record.end = BEGUN + 100 * MS;
		entries = cases[i].entries;
		clock_now = conductor.state_since = BEGUN + 120 * MS;
		ca_conductor_step(&conductor);
		entries = 9;
		assert_int_equal(records, 1);
		assert_int_equal(record.visit_count, 1);
		if (!recorded_visit.times != !cases[i].known)
			fail_msg("case %zu", i);
		ca_catalog_fini(&conductor.catalog);
		tear_down(state);
	}
}

/* The driver's is half of the time that has passed, as this test plays the log: here 100 ms. */
static void test_books(void **state)
{
	enum { D = 100 * MS, END = BEGUN + 200 * MS };
	static const struct {
		uint64_t s_time[2], until[2], experiment;
		uint32_t speedup;
		bool differ;
	} cases[] = {
		{ { D, D }, { END, END }, 7, CA_MILLION / 2, false },
		{ { D + 2 * MS, D - 2 * MS }, { END, END }, 7, CA_MILLION / 2, false },
		{ { D + 2 * MS + 1, D - 2 * MS - 1 }, { END, END }, 7, CA_MILLION / 2, true },
		{ { D + 2 * MS + 1, D + 2 * MS + 1 }, { END, END + 5 }, 7, CA_MILLION / 2, true },
		{ { D, D + 5 * MS }, { END, END }, 7, CA_MILLION / 2, true }, /* on average */
		{ { D, D + 4 * MS }, { END, END }, 7, CA_MILLION / 2, false },
		{ { 2 * D, 2 * D }, { END, END }, 7, 0, false },                      /* it does not matter */
		{ { 2 * D, 2 * D }, { END, END }, 5, CA_MILLION / 2, false },         /* of the one before */
		{ { D / 2, D / 2 }, { END / 2, END / 2 }, 7, CA_MILLION / 2, false }, /* have not looked */
		{ { D - 3 * MS, D - 3 * MS }, { END - MS, END - MS }, 7, CA_MILLION / 2, false },
		{ { D - 3 * MS - 1, 0 }, { END - MS, END / 2 }, 7, CA_MILLION / 2, true },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		put_process(0, (uint32_t)getpid());
		for (uint32_t k = 0; k < 2; k++) {
			put_thread(k, 0, (uint32_t)gettid());
			atomic_store(&session->slot[k].experiment, cases[i].experiment);
			atomic_store(&session->slot[k].s_time, cases[i].s_time[k]);
			atomic_store(&session->slot[k].s_until, cases[i].until[k]);
		}
		atomic_store(&session->experiment.seq, 8);
		settings.cool_off = 0;
		conductor.state = SETTLING;
		conductor.e.record.speedup = cases[i].speedup;
		conductor.e.record.start = BEGUN + 50 * MS;
		conductor.e.record.end = END;
		clock_now = conductor.state_since = END + 20 * MS;
		ca_conductor_step(&conductor);
		assert_int_equal(records, 1);
		if ((record.flags & CA_EXPERIMENT_BOOKS) != (cases[i].differ ? CA_EXPERIMENT_BOOKS : 0))
			fail_msg("case %zu", i);
		tear_down(state);
	}
}

/* One thread does all, and others took a lot: the experiment waits until it has told what they took in S. */
static void test_untold(void **state)
{
	enum { LOST = 15 * MS, END = BEGUN + 200 * MS };
	static const struct {
		uint64_t lost, until;
		uint32_t in_s;
		bool alone, waits;
	} cases[] = {
		{ LOST, END - 1, CA_IN_S, true, true },
		{ LOST, END, CA_IN_S, true, false },
		{ LOST, END - 1, 0, true, false },
		{ LOST, END - 1, CA_IN_S | CA_IN_S_OFF, true, false },
		{ LOST, END - 1, CA_IN_S, false, false },
		{ MS, END - 1, CA_IN_S, true, false },
		{ UINT64_MAX, END - 1, CA_IN_S, true, false },
	};

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		assert_int_equal(set_up(state), 0);
		put_process(0, (uint32_t)getpid());
		put_thread(0, 0, (uint32_t)gettid());
		atomic_store(&session->slot[0].experiment, 7);
		atomic_store(&session->slot[0].s_time, 100 * MS);
		atomic_store(&session->slot[0].s_until, cases[i].until);
		atomic_store(&session->slot[0].in_s, cases[i].in_s);
		ca_slot_set_add(&session->in_s, 0);
		atomic_store(&session->experiment.seq, 8);
		settings.cool_off = 0;
		conductor.opt.sweep = ca_sweep_new(1);
		if (cases[i].alone)
			ca_sweep_first_time(conductor.opt.sweep, CA_SWEEP_ALONE);
		conductor.state = SETTLING;
		conductor.e.record.start = BEGUN;
		conductor.e.record.end = END;
		conductor.e.record.lost = cases[i].lost;
		clock_now = conductor.state_since = END + 20 * MS;
		ca_conductor_step(&conductor);
		if (records != !cases[i].waits)
			fail_msg("case %zu", i);
		/* not for ever */
		clock_now += SETTLE_MOST;
		ca_conductor_step(&conductor);
		assert_int_equal(records, 1);
		assert_int_equal(record.flags & CA_EXPERIMENT_BOOKS,
				 cases[i].waits ? CA_EXPERIMENT_BOOKS : 0);
		ca_sweep_free(conductor.opt.sweep);
		tear_down(state);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_untold),
		cmocka_unit_test_setup_teardown(test_log_is_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_yardstick, set_up, tear_down),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_becomes_hotter),
		cmocka_unit_test(test_is_entered_unseen),
		cmocka_unit_test(test_early_samples),
		cmocka_unit_test(test_hands_over),
		cmocka_unit_test(test_becomes_hotter_as_a_whole),
		cmocka_unit_test(test_trial),
		cmocka_unit_test(test_sites_failed),
		cmocka_unit_test(test_lost_entries),
		cmocka_unit_test(test_end_to_end),
		cmocka_unit_test_setup_teardown(test_end_to_end_in_windows, set_up, tear_down),
		cmocka_unit_test(test_whole_run),
		cmocka_unit_test(test_crawls),
		cmocka_unit_test_setup_teardown(test_too_short, set_up, tear_down),
		cmocka_unit_test(test_who_ran),
		cmocka_unit_test(test_awaits_region),
		cmocka_unit_test_setup_teardown(test_death_in_s, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_main_thread_leaves, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_pid_namespace, set_up, tear_down),
		cmocka_unit_test(test_waits_for_sites),
		cmocka_unit_test(test_threads_left_out),
		cmocka_unit_test(test_unplaced),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_lumps),
		cmocka_unit_test(test_books),
		cmocka_unit_test(test_outside),
		cmocka_unit_test_setup_teardown(test_settling_waits, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

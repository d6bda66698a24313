/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_plan.c: when the plan is offered what the stacks of earlier runs show, while the binaries
 * of a new run come one after the other. */
#include "causal/conductor/conductor_plan.c"
#include "tests/unit/unit.h"

enum { MAIN = 1, LIBRARY, CODES = LIBRARY, MS = 1000000, SAMPLES = 1000 };

static bool there[CODES + 1]; /* is its binary mapped and indexed in this run? */
static unsigned judged;

bool ca_regions_has(struct ca_regions *regions, uint32_t region)
{
	(void)regions;
	judged++;
	return there[region];
}

uint32_t ca_regions_module(const struct ca_regions *regions, uint32_t region)
{
	(void)regions;
	return there[region] ? region : 0;
}

size_t ca_regions_named(struct ca_regions *regions, uint32_t *region, size_t most)
{
	(void)regions, (void)region, (void)most;
	return 0;
}

static uint64_t samples; /* of each */
static double since[CODES + 1];

uint64_t ca_regions_samples(const struct ca_regions *regions, uint32_t region)
{
	(void)regions, (void)region;
	return samples;
}

uint64_t ca_regions_at_work(const struct ca_regions *regions, uint32_t region)
{
	return ca_regions_samples(regions, region);
}

void ca_regions_keep_stacks(struct ca_regions *regions, struct ca_stacks *stacks)
{
	(void)regions, (void)stacks;
}

void ca_regions_keep_heat(struct ca_regions *regions, struct ca_vec *heat)
{
	(void)regions, (void)heat;
}

void ca_regions_keep_stores(struct ca_regions *regions, struct ca_vec *stores)
{
	(void)regions, (void)stores;
}

uint64_t ca_conductor_silence_samples(const struct ca_conductor *c, uint32_t region)
{
	(void)c, (void)region;
	return 0;
}

enum ca_status ca_results_samples(struct ca_results *results, uint32_t region, uint64_t count,
				  const struct ca_region_stacks *stacks, struct ca_err *err)
{
	(void)results, (void)count, (void)err;
	since[region] = stacks->since;
	return CA_OK;
}

enum ca_status ca_results_stack(struct ca_results *results, const char *const *name, size_t n, uint64_t count,
				struct ca_err *err)
{
	(void)results, (void)name, (void)n, (void)count, (void)err;
	return CA_OK;
}

bool ca_conductor_is_what_if(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	(void)c, (void)level, (void)format;
}

static bool ours; /* is the point of causal's own choice? */

bool ca_conductor_points_are_ours(const struct ca_conductor *conductor)
{
	(void)conductor;
	return ours;
}

static char none[] = "", name[CODES][8] = { "writes", "works" }, binary[CODES][8] = { "app", "lib.so" };
static struct ca_settings settings = { .function_scope = none, .source_scope = none, .until = 3 };
static struct ca_session *session;
static struct ca_conductor c;

static struct ca_region region_of(uint32_t code)
{
	return (struct ca_region){
		.name = name[code - 1], .function = name[code - 1], .file = none, .binary = binary[code - 1]
	};
}

/* A run of a sweep that has seen much in the library, and a little in the program. */
static int set_up(void **state)
{
	struct ca_err err;

	(void)state;
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	assert_non_null(session);
	memset(session, 0, sizeof *session);
	session->period = MS;
	c = (struct ca_conductor){ .set = &settings, .session = session, .started = CA_NS_PER_S };
	c.opt = (struct ca_conductor_options){ .sweep = ca_sweep_new(7) };
	assert_non_null(c.opt.sweep);
	for (uint32_t code = 1; code <= CODES; code++) {
		struct ca_region region = region_of(code);

		assert_non_null(ca_catalog_add_region(ca_sweep_catalog(c.opt.sweep), &region));
		there[code] = false;
	}
	ca_sweep_add_time(c.opt.sweep, 0, (struct ca_sweep_time){ SAMPLES, SAMPLES, CA_NS_PER_S });
	assert_int_equal(ca_conductor_plan_open(&c, &err), CA_OK);
	for (uint32_t code = 1; code <= CODES; code++)
		ca_stacks_add(c.stacks, &code, 1, code == MAIN ? SAMPLES / 10 : SAMPLES - SAMPLES / 10, false,
			      false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	ca_catalog_fini(&c.catalog);
	ca_sweep_free(c.opt.sweep);
	free(session);
	return 0;
}

static bool is_drawn(uint32_t code, uint64_t ms)
{
	bool found = false;

	for (unsigned i = 0; i < 200; i++) {
		found |= ca_conductor_plan_draw(&c, c.started + ms * MS) == code;
		ca_sweep_begun(c.opt.sweep);
	}
	return found;
}

/* The program is indexed before its library: nothing is drawn until that is there. */
static void test_library_comes(void **state)
{
	(void)state;
	assert_false(is_drawn(MAIN, 1));
	there[MAIN] = true;
	assert_false(is_drawn(MAIN, 12));
	assert_false(is_drawn(LIBRARY, 12));
	there[LIBRARY] = true;
	assert_true(is_drawn(LIBRARY, 30));
	assert_true(is_drawn(MAIN, 30));
	judged = 0;
	assert_true(is_drawn(LIBRARY, 60));
	assert_int_equal(judged, 0); /* it is not looked for again and again */
}

/* Is it the plan's within a few experiments? */
static bool is_next(uint32_t code, uint64_t ms)
{
	bool found = false;

	for (unsigned i = 0; i < 8; i++) {
		found |= ca_conductor_plan_next(&c, c.started + ms * MS) && c.region == code;
		ca_plan_begun(c.plan);
	}
	return found;
}

/* One that is opened late, if at all: what is there is tried meanwhile. A run that is about what is in it waits. */
static void test_library_is_late(void **state)
{
	(void)state;
	there[MAIN] = true;
	assert_false(is_drawn(MAIN, 99));
	assert_false(is_next(MAIN, 99));
	assert_true(is_drawn(MAIN, 120));
	assert_true(is_drawn(LIBRARY, 120));
	assert_true(is_next(MAIN, 120));
	assert_false(is_next(LIBRARY, 120));
	judged = 0;
	assert_true(is_drawn(MAIN, 200));
	assert_int_equal(judged, 0);
	there[LIBRARY] = true;
	assert_true(is_next(LIBRARY, 230));
}

/* What has not come at all in a run is not waited for in the next one. */
static void test_library_never_comes(void **state)
{
	(void)state;
	there[MAIN] = true;
	assert_true(is_drawn(LIBRARY, 120));
	c.sum.periods = SAMPLES;
	ca_conductor_plan_close(&c);
	c.has_offers = false;
	assert_true(is_drawn(MAIN, 120));
	assert_false(is_drawn(LIBRARY, 120));
}

/* A run that has chosen nothing itself leaves the next one all that there is. */
static void test_end_of_run(void **state)
{
	const struct ca_region *region;
	unsigned percent, library = 0;

	(void)state;
	there[MAIN] = true;
	assert_true(is_drawn(MAIN, 120));
	there[LIBRARY] = true;
	c.sum.periods = SAMPLES;
	ca_conductor_plan_close(&c);
	for (unsigned i = 0; i < 8; i++) {
		assert_true(ca_sweep_next_whole(c.opt.sweep, c.opt.variant, &region, &percent));
		library += !strcmp(region->name, name[LIBRARY - 1]);
	}
	assert_in_range(library, 1, 8);
}

/* A doubt about one of them may come up, and be looked at, before the sweep knows any code: their numbers stay what they are
 * in that run, or the plan would take one for another in all further ones. */
static void test_numbers_stay(void **state)
{
	const struct ca_steady_window window = { .percent = 50, .cost = 1e9, .visits = 10, .work = 1e9 };
	struct ca_region second = region_of(LIBRARY);
	struct ca_catalog *all;
	struct ca_err err;
	unsigned rows;

	(void)state;
	ca_catalog_fini(&c.catalog);
	ca_sweep_free(c.opt.sweep);
	c.catalog = (struct ca_catalog){ 0 };
	c.opt.sweep = ca_sweep_new(7);
	assert_non_null(c.opt.sweep);
	all = ca_sweep_catalog(c.opt.sweep);
	assert_int_equal(ca_conductor_plan_open(&c, &err), CA_OK);
	for (uint32_t code = 1; code <= CODES; code++) {
		struct ca_region region = region_of(code);

		assert_int_equal(ca_catalog_add_region(&c.catalog, &region)->id, code);
	}
	ca_steady_add(ca_sweep_steady(c.opt.sweep), &second, &window);
	ca_sweep_is_decided(c.opt.sweep, &rows);
	ca_conductor_plan_close(&c);
	assert_int_equal(all->regions, CODES);
	for (uint32_t code = 1; code <= CODES; code++)
		assert_string_equal(ca_catalog_get_region(all, code)->name, name[code - 1]);
}

/* What is won by code of a library that comes late is won in the rest of the run. */
static void test_since(void **state)
{
	(void)state;
	there[MAIN] = there[LIBRARY] = true;
	c.modules = LIBRARY + 1;
	c.came[LIBRARY] = 700 * MS;
	samples = 10;
	ca_conductor_plan_close(&c);
	samples = 0;
	assert_true(since[MAIN] == 0);
	assert_true(since[LIBRARY] == 0.7);
}

/* Two threads in S half of the time; a visit takes as much CPU time the less of it, the faster S is. */
static void tell(unsigned i)
{
	static const unsigned percent[] = { 0, 25, 50, 0, 75, 100 };
	unsigned p = percent[i % CA_COUNT(percent)];

	c.e.visits[0] = (struct ca_visits){ .point = 0, .delta = 3 * (100 + p) + i % 3 };
	ca_conductor_plan_tell(&c, &(struct ca_experiment_record){ .region = 1,
								   .speedup = p * 10000,
								   .end = (1000 + 5 * p) * MS,
								   .delay = 5 * p * MS,
								   .s_time = 500 * MS,
								   .hits = 5000,
								   .exact = true,
								   .work = 1500 * MS,
								   .visit_count = 1,
								   .visits = c.e.visits });
}

/* Where visits of a point are no units, CPU time is, unless somebody has named the point. */
static void test_no_unit(void **state)
{
	(void)state;
	assert_non_null(ca_catalog_add_point(&c.catalog, 0, CA_POINT_THROUGHPUT, "poll"));
	for (unsigned i = 0; i < 60; i++) {
		ours = i > 40;
		tell(i);
		assert_true(c.e.visits[0].refuted == (i > 40));
	}
	assert_true(ca_sweep_steady(c.opt.sweep)->left);
	assert_false(ca_sweep_is_first(c.opt.sweep, CA_SWEEP_REFUTED));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_library_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_library_is_late, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_library_never_comes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_end_of_run, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_numbers_stay, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_since, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_unit, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_points*.c: when points are looked for, chosen, stored, used again and dropped.
 * The search, the runtimes and the index are played by this test; files, candidates and sweeps are
 * the real ones. */
#include "causal/conductor/conductor_points.c"
#include "tests/unit/unit.h"
#include <stdio.h>

/* ---- the others' parts --------------------------------------------------------------------*/
static enum ca_point_search_wish wish;
static struct ca_site sites[3];
static struct ca_candidate candidate[3];
static const struct ca_candidates candidates = { .candidate = candidate, .n = 3 };
static size_t best[CA_CANDIDATES_CHOSEN], chosen;
static bool expects_work;
static unsigned searches, placed_told, sampled;
static bool sampled_waiting;
static bool patched;
static uint64_t visited;
static char said[8192], added[512];
static int search_mark;

struct ca_point_search *ca_point_search_new(struct ca_session *session, struct ca_objects *objects,
					    const struct ca_scope *scope, bool works)
{
	(void)session, (void)objects, (void)scope;
	expects_work = works;
	searches++;
	return (struct ca_point_search *)&search_mark;
}

void ca_point_search_free(struct ca_point_search *search)
{
	(void)search;
}

void ca_point_search_sample(struct ca_point_search *search, const ca_place *frame, unsigned frames,
			    bool waiting)
{
	(void)search, (void)frame, (void)frames;
	sampled++;
	sampled_waiting = waiting;
}

enum ca_point_search_wish ca_point_search_step(struct ca_point_search *search, uint64_t now)
{
	(void)search, (void)now;
	return wish;
}

const struct ca_site *ca_point_search_sites(const struct ca_point_search *search, size_t *n)
{
	(void)search;
	*n = CA_COUNT(sites);
	return sites;
}

void ca_point_search_placed(struct ca_point_search *search, uint64_t now)
{
	(void)search, (void)now;
	placed_told++;
}

size_t ca_point_search_choose(struct ca_point_search *search, const struct ca_candidates **out,
			      size_t numbers[CA_CANDIDATES_CHOSEN])
{
	(void)search;
	*out = &candidates;
	memcpy(numbers, best, sizeof best);
	return chosen;
}

static unsigned rejected;

void ca_point_search_reject(struct ca_point_search *search, size_t number)
{
	(void)search;
	assert_true(number < 3);
	rejected++;
}

static bool spinning;

bool ca_regions_spin(struct ca_regions *regions, const ca_place *frame, unsigned frames)
{
	(void)regions;
	(void)frame;
	(void)frames;
	return spinning;
}

bool ca_point_search_gathers(const struct ca_point_search *search)
{
	(void)search;
	return wish == CA_POINT_SEARCH_WAIT;
}

static bool saw_waits;
static const char *because = "because";

bool ca_point_search_saw_waits(const struct ca_point_search *search)
{
	(void)search;
	return saw_waits;
}

const char *ca_point_search_reason(const struct ca_point_search *search)
{
	(void)search;
	return because;
}

const struct ca_index *ca_objects_index(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return NULL;
}

bool ca_conductor_is_useful(const struct ca_conductor *c, uint64_t now)
{
	(void)c, (void)now;
	return true;
}

enum ca_requested_mode ca_requested_mode(const char *names)
{
	return !strcmp(names, "ask") ? CA_REQUESTED_ASK : *names ? CA_REQUESTED_NAMED : CA_REQUESTED_AUTO;
}

enum ca_status ca_requested_add(struct ca_requested *progress, const char *names, struct ca_err *err)
{
	size_t n = strlen(added);

	(void)progress, (void)err;
	snprintf(added + n, sizeof added - n, "%s%s", n ? ";" : "", names);
	return CA_OK;
}

struct ca_point_name ca_point_search_take(struct ca_point_search *search, size_t number)
{
	struct ca_point_name name;

	(void)search;
	assert_int_equal(ca_point_name_parse(&name, candidate[number].name, NULL), CA_OK);
	return name;
}

enum ca_status ca_requested_take(struct ca_requested *progress, struct ca_point_name *name,
				 struct ca_err *err)
{
	ca_requested_add(progress, name->text, err);
	ca_point_name_fini(name);
	return CA_OK;
}

bool ca_requested_is_named(struct ca_requested *progress, const struct ca_index *index, uint32_t module)
{
	(void)progress, (void)index, (void)module;
	return false;
}

void ca_requested_index(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			uint32_t module)
{
	(void)progress, (void)index, (void)text, (void)module;
}

struct ca_text *ca_objects_text(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return NULL;
}

void ca_selection_log_restart(struct ca_selection_log *log, uint64_t first)
{
	(void)log, (void)first;
}

void ca_visits_read(const struct ca_session *session, struct ca_visits_now *now)
{
	(void)session, (void)now;
}

uint64_t ca_visits_sum(const struct ca_visits_now *now)
{
	(void)now;
	return visited;
}

bool ca_conductor_patched(struct ca_conductor *c)
{
	(void)c;
	return patched;
}

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	size_t n = strlen(said);
	va_list args;

	(void)c;
	n += (size_t)snprintf(said + n, sizeof said - n, "%d:", level);
	va_start(args, format);
	n += (size_t)vsnprintf(said + n, sizeof said - n, format, args);
	va_end(args);
	snprintf(said + n, sizeof said - n, "\n");
}

/* ---- a conductor --------------------------------------------------------------------------*/
static char dir[64], progress[16];
static char no_periods[] = "";
static char any_clock[] = "monotonic";
static struct ca_settings settings;
static struct ca_session *session;
static struct ca_conductor conductor;
static const char *const command[] = { "./app", NULL };
enum { SECOND = 1000 * MS };

static int set_up(void **state)
{
	static const char *const names[] = { "first", "lib.so!second", "third" };

	(void)state;
	strcpy(dir, "/tmp/ca-points-XXXXXX");
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	if (!mkdtemp(dir) || !session)
		return -1;
	memset(session, 0, sizeof *session);
	for (size_t i = 0; i < CA_COUNT(names); i++)
		candidate[i] = (struct ca_candidate){
			.name = names[i], .rate = 100. * (double)(i + 1), .spread = 0.125, .coverage = 0.5
		};
	progress[0] = '\0';
	settings = (struct ca_settings){ .progress = progress,
					 .periods = no_periods,
					 .period_clock = any_clock };
	conductor =
		(struct ca_conductor){ .opt = { .dir = dir, .run = 1, .iteration = 4, .command = command },
				       .set = &settings,
				       .session = session,
				       .pool = { .count = 5 } };
	wish = CA_POINT_SEARCH_WAIT;
	best[0] = 1;
	best[1] = 0;
	chosen = 2;
	searches = placed_told = sampled = 0;
	patched = false;
	visited = 0;
	said[0] = added[0] = '\0';
	return 0;
}

static int tear_down(void **state)
{
	char path[128];

	(void)state;
	ca_conductor_points_free(&conductor);
	ca_sweep_free(conductor.opt.sweep);
	free(session);
	snprintf(path, sizeof path, "%s/progress.json", dir);
	unlink(path);
	return rmdir(dir);
}

static void open_points(void)
{
	ca_conductor_points_free(&conductor);
	conductor.points = NULL;
	conductor.set = &settings;
	added[0] = '\0';
	assert_int_equal(ca_conductor_points_open(&conductor, NULL), CA_OK);
}

static bool step(uint64_t now)
{
	return ca_conductor_points_step(&conductor, now);
}

static struct ca_choice stored(void)
{
	struct ca_choice choice;

	assert_int_equal(ca_choice_read(&choice, dir, NULL), CA_OK);
	return choice;
}

/* Candidates are counted in a sweep. */
static void place_candidates(void)
{
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	wish = CA_POINT_SEARCH_PLACE;
	assert_true(step(0));
	patched = true;
}

/* From the first sample to the decision, at `now`. */
static void search_until(uint64_t now)
{
	wish = CA_POINT_SEARCH_DONE;
	assert_true(step(now - MS));
	patched = true;
	assert_true(step(now));
	patched = false;
	wish = CA_POINT_SEARCH_WAIT;
}

/* ---- choosing -----------------------------------------------------------------------------*/
static void test_phases(void **state)
{
	struct ca_visits visits[2] = { { .point = 0 }, { .point = 1 } };
	struct ca_selection *sel = &session->selection;

	(void)state;
	open_points();
	assert_int_equal(conductor.group, 4);
	ca_conductor_points_sample(&conductor, NULL, 0, false);
	assert_int_equal(sampled, 0);
	assert_true(step(SECOND));
	assert_int_equal(searches, 1);
	ca_conductor_points_sample(&conductor, NULL, 0, false);
	assert_int_equal(sampled, 1);
	assert_false(sampled_waiting);
	spinning = true; /* that is no work either */
	ca_conductor_points_sample(&conductor, NULL, 0, false);
	assert_true(sampled_waiting);
	spinning = false;
	ca_conductor_points_sample(&conductor, NULL, 0, true);
	assert_true(sampled_waiting);
	/* sites are put in place, and waited for, not for ever */
	sites[2].address = 77;
	wish = CA_POINT_SEARCH_PLACE;
	conductor.selected = 9;
	assert_true(step(SECOND));
	assert_int_equal(conductor.selected, 0);
	assert_int_equal(atomic_load(&sel->seq), 2);
	assert_int_equal(sel->sites, 3);
	assert_int_equal(sel->site[2].address, 77);
	assert_true(step(SECOND + PLACE_WAIT));
	assert_int_equal(placed_told, 0);
	assert_true(step(SECOND + PLACE_WAIT + 1));
	assert_int_equal(placed_told, 1);
	wish = CA_POINT_SEARCH_DONE;
	assert_true(step(2 * (uint64_t)SECOND));
	assert_int_equal(atomic_load(&sel->seq), 4);
	assert_int_equal(sel->sites, 0);
	assert_int_equal(access(dir, F_OK), 0);
	assert_string_equal(added, "");
	patched = true;
	assert_true(step(2 * (uint64_t)SECOND));
	assert_string_equal(added, "lib.so!second;first");
	assert_int_equal(session->requested_anywhere, 1);
	/* until somebody passes it; if that takes too long, others are taken */
	rejected = 0;
	assert_true(step(2 * (uint64_t)SECOND + (uint64_t)IDLE * FIRST_VISIT));
	assert_int_equal(rejected, 0);
	best[0] = 2;
	chosen = 1;
	assert_true(step(2 * (uint64_t)SECOND + (uint64_t)IDLE * (FIRST_VISIT + 1)));
	assert_int_equal(rejected, 2);
	assert_string_equal(added, "lib.so!second;first;third");
	/* which may be placed after all, and do not count any more */
	strcpy(session->point[0].name, "first");
	strcpy(session->point[1].name, "third");
	assert_int_equal(ca_conductor_points_keep(&conductor, visits, 2), 1);
	assert_int_equal(visits[0].point, 1);
	strcpy(session->point[0].name, "");
	strcpy(session->point[1].name, "");
	visited = 1;
	assert_true(step(2 * (uint64_t)SECOND + (uint64_t)IDLE * (FIRST_VISIT + 2)));
	assert_false(step(2 * (uint64_t)SECOND + (uint64_t)IDLE * (FIRST_VISIT + 3)));
	ca_conductor_points_sample(&conductor, NULL, 0, false);
	assert_int_equal(sampled, 3);
	assert_int_equal(searches, 1);
}

/* One thread that does all needs no point, as long as it is never delayed. */
static void test_needless(void **state)
{
	struct ca_experiment_record r = {
		.start = SECOND, .end = 2 * (uint64_t)SECOND, .delay = SECOND / 4, .speedup = 500000
	};
	struct ca_visits visits[1];

	(void)state;
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	conductor.ran_all = ALONE_SAMPLES - 1;
	conductor.ran[3] = conductor.ran_all;
	assert_true(step(SECOND));
	conductor.ran_all = 2 * ALONE_SAMPLES;
	conductor.ran[3] = conductor.ran_all * ALONE / 100 - 1;
	assert_true(step(SECOND));
	conductor.ran[3]++;
	assert_false(step(SECOND));
	assert_true(ca_conductor_points_are_needless(&conductor));
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	assert_int_equal(visits[0].delta, SECOND / 1000);
	/* what others took of its CPU is not its own time; S went on for more than a thread had left, though */
	r.lost = SECOND / 4;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	assert_int_equal(visits[0].delta, SECOND / 1000 * 3 / 4);
	/* nor is what ours took */
	r.overhead = SECOND / 4;
	r.overhead_in_s = SECOND / 20;
	r.s_time = SECOND / 5;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	assert_int_equal(visits[0].delta, SECOND / 1000 / 2);
	r.overhead = r.overhead_in_s = 0;
	r.s_time = SECOND / 8 * 7;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	assert_int_equal(visits[0].delta, SECOND / 1000 * 7 / 8);
	/* a server waits for its clients now and then, which is in the bounds of its effect */
	r.paying = r.delay / DELAYED;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	/* and of code that takes next to no time it makes no difference */
	r.delay = SECOND / 1000;
	r.paying = r.delay * 9;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	r.delay = SECOND / 4;
	/* an experiment with more does not count, and if it is more in all of them, time does not */
	r.paying = r.delay / DELAYED + SECOND / MOMENT;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 0);
	for (unsigned i = 6; i < 3 * FEW && ca_conductor_points_are_needless(&conductor); i++)
		assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 0);
	assert_false(ca_conductor_points_are_needless(&conductor));
	assert_true(step(SECOND));
	/* once is enough where it is delayed most of the time */
	ca_sweep_free(conductor.opt.sweep);
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	assert_false(step(SECOND));
	r.paying = r.delay;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 0);
	assert_false(ca_conductor_points_are_needless(&conductor));
	assert_true(step(SECOND));
	/* so late in the run that the search has no time: the next run has */
	chosen = 0;
	ca_conductor_points_close(&conductor, 0, NULL);
	chosen = 1;
	assert_int_equal(conductor.points->choice.how, CA_CHOICE_AUTO);
	/* nor does a later run try that again */
	open_points();
	assert_true(step(SECOND));
	/* who asks for the search gets it */
	ca_sweep_free(conductor.opt.sweep);
	conductor.opt.sweep = ca_sweep_new(1);
	strcpy(progress, "ask");
	open_points();
	assert_true(step(SECOND));
	ca_catalog_fini(&conductor.catalog);
}

/* What one thread does in the beginning, while others wait for what it reads, says less. */
static void test_needless_beside(void **state)
{
	size_t size = sizeof *session + 2 * sizeof session->slot[0], align = _Alignof(struct ca_session);
	struct ca_session *with = aligned_alloc(align, (size + align - 1) / align * align);

	(void)state;
	assert_non_null(with);
	memset(with, 0, size);
	conductor.session = with;
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	atomic_store(&with->slots_used, 2);
	atomic_store(&with->slot[0].state, CA_SLOT_LIVE);
	atomic_store(&with->slot[1].state, CA_SLOT_LIVE);
	conductor.ran_all = conductor.ran[0] = ALONE_SAMPLES * ALONE_BESIDE - 1;
	assert_true(step(0));
	assert_true(step(1));
	assert_false(ca_conductor_points_are_needless(&conductor));
	conductor.ran_all = conductor.ran[0] = ALONE_SAMPLES * ALONE_BESIDE;
	assert_false(step(2));
	assert_true(ca_conductor_points_are_needless(&conductor));
	/* as a shell that waits for the program: the next run is not searched for as long, nor is it found out again */
	open_points();
	conductor.ran_all = conductor.ran[0] = ALONE_SAMPLES;
	assert_false(step(0));
	assert_true(ca_conductor_points_are_needless(&conductor));
	conductor.session = session;
	free(with);
}

/* Once it is seen, what is counted of candidates is for nothing. */
static void test_needless_meanwhile(void **state)
{
	(void)state;
	place_candidates();
	assert_true(step(1));
	patched = false;
	wish = CA_POINT_SEARCH_WAIT;
	conductor.ran_all = conductor.ran[3] = ALONE_SAMPLES - 1;
	assert_true(step(2));
	conductor.ran_all = conductor.ran[3] = ALONE_SAMPLES;
	assert_true(step(3));
	assert_int_equal(session->selection.sites, 0);
	assert_false(ca_conductor_points_are_needless(&conductor));
	patched = true;
	assert_true(step(4));
	assert_false(step(5));
	assert_true(ca_conductor_points_are_needless(&conductor));
	assert_string_equal(added, "");
	ca_catalog_fini(&conductor.catalog);
}

/* A run that is measured as a whole has no search, but the sweep knows already that one thread does all. */
static void test_needless_whole(void **state)
{
	struct ca_experiment_record r = { .start = SECOND,
					  .end = 2 * (uint64_t)SECOND,
					  .delay = SECOND / 4,
					  .speedup = 500000,
					  .lost = SECOND / 2 };
	struct ca_visits visits[1];

	(void)state;
	conductor.opt.sweep = ca_sweep_new(1);
	conductor.points = NULL;
	conductor.whole = true;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 0);
	/* which is known at the end of a run at the latest, if it was as short as the search */
	conductor.whole = false;
	open_points();
	assert_true(step(0));
	conductor.ran_all = conductor.ran[3] = ALONE_SAMPLES;
	ca_conductor_points_close(&conductor, 0, NULL);
	assert_true(ca_conductor_points_are_needless(&conductor));
	assert_true(ca_sweep_is_alone(conductor.opt.sweep));
	ca_conductor_points_free(&conductor);
	conductor.points = NULL;
	conductor.whole = true;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 1);
	assert_int_equal(visits[0].delta, SECOND / 1000 / 2);
	/* once somebody was delayed, whole runs are counted as such: not some by time and others not */
	r.paying = r.delay / HARDLY_DELAYED + NOTHING + 1;
	assert_int_equal(ca_conductor_points_time(&conductor, &r, visits), 0);
	assert_false(ca_sweep_is_alone(conductor.opt.sweep));
	conductor.whole = false;
	ca_catalog_fini(&conductor.catalog);
}

/* That one thread does all may be seen while candidates are counted. */
static void test_needless_late(void **state)
{
	(void)state;
	place_candidates();
	wish = CA_POINT_SEARCH_DONE;
	assert_true(step(SECOND));
	conductor.ran_all = conductor.ran[3] = ALONE_SAMPLES;
	assert_true(step(SECOND));
	assert_true(step(SECOND));
	assert_false(step(SECOND));
	assert_true(ca_conductor_points_are_needless(&conductor));
	assert_string_equal(added, "");
	ca_catalog_fini(&conductor.catalog);
}

/* A server that does nothing when the search is made: what it passes under load is another matter. */
static void test_idle(void **state)
{
	struct ca_visits visits[3] = { { .point = 0 }, { .point = 1 }, { .point = 2 } };

	(void)state;
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	assert_true(step(0));
	search_until(SECOND);
	assert_string_equal(added, "lib.so!second;first");
	visited = 1;
	assert_true(step(SECOND));
	conductor.first_experiment = 7;
	conductor.ran_all = WOKEN;
	assert_false(step(SECOND));
	assert_int_equal(searches, 1);
	assert_false(expects_work);
	conductor.ran_all++;
	best[0] = 0;
	best[1] = 2;
	assert_true(step(SECOND));
	assert_int_equal(searches, 2);
	assert_true(expects_work);
	assert_int_equal(conductor.first_experiment, 0);
	conductor.ran_all += WOKEN; /* from now on it is at work */
	search_until(2 * (uint64_t)SECOND);
	/* what was chosen before is there already */
	assert_string_equal(added, "lib.so!second;first;third");
	assert_true(step(2 * (uint64_t)SECOND));
	strcpy(session->point[0].name, "first");
	strcpy(session->point[1].name, "lib.so!second");
	strcpy(session->point[2].name, "third");
	assert_int_equal(ca_conductor_points_keep(&conductor, visits, 3), 2);
	assert_int_equal(visits[0].point, 0);
	assert_int_equal(visits[1].point, 2);
	for (int i = 0; i < 3; i++)
		strcpy(session->point[i].name, "");
	conductor.ran_all += 2 * WOKEN;
	assert_false(step(2 * (uint64_t)SECOND));
	assert_int_equal(searches, 2);
}

/* A server whose clients come while its candidates are counted: those were found while it waited. Once it has been
 * looked at at work, that is it, also if it waits most of the time. */
static void test_idle_at_first(void **state)
{
	(void)state;
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	assert_true(step(0));
	saw_waits = true;
	conductor.ran_all = WOKEN;
	search_until(SECOND);
	assert_string_equal(added, "lib.so!second;first");
	visited = 1;
	assert_true(step(SECOND));
	assert_false(step(SECOND));
	strcpy(session->point[0].name, "first");
	strcpy(session->point[1].name, "lib.so!second");
	atomic_store(&session->points_used, 2);
	for (int i = 0; i < 2; i++)
		atomic_store(&session->point[i].state, CA_SLOT_LIVE);
	conductor.ran_all += WOKEN + 1;
	assert_true(step(SECOND));
	assert_true(ca_conductor_points_are_open(&conductor));
	assert_int_equal(searches, 2);
	search_until(2 * (uint64_t)SECOND);
	assert_true(step(2 * (uint64_t)SECOND));
	conductor.ran_all += 2 * WOKEN;
	assert_false(step(2 * (uint64_t)SECOND));
	assert_int_equal(searches, 2);
	saw_waits = false;
	for (int i = 0; i < 2; i++) {
		strcpy(session->point[i].name, "");
		atomic_store(&session->point[i].state, CA_SLOT_FREE);
	}
	atomic_store(&session->points_used, 0);
}

static void test_chosen(void **state)
{
	struct ca_choice choice;

	(void)state;
	conductor.opt.run = 7;
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	step(0);
	search_until(SECOND);
	choice = stored();
	assert_string_equal(choice.program, "./app");
	assert_int_equal(choice.how, CA_CHOICE_AUTO);
	assert_int_equal(choice.run, 7);
	assert_int_equal(choice.points, 2);
	assert_string_equal(choice.point[0].name, "lib.so!second");
	assert_string_equal(choice.point[1].name, "first");
	assert_true(choice.point[0].rate > 199.9 && choice.point[0].rate < 200.1);
	assert_true(choice.point[0].spread > 0.124 && choice.point[0].spread < 0.126);
	assert_true(choice.point[0].coverage > 0.49 && choice.point[0].coverage < 0.51);
	ca_choice_fini(&choice);
	assert_non_null(strstr(said, "0:progress point lib.so!second, chosen here"));
	assert_non_null(strstr(said, "first (100 visits a second)"));
	assert_false(ca_sweep_is_first(conductor.opt.sweep, CA_SWEEP_ASKED));
	visited = 1;
	assert_true(step(SECOND + 1));
	assert_false(step(SECOND + 2));
	/* the run's end changes nothing any more */
	ca_conductor_points_close(&conductor, 0, NULL);
	choice = stored();
	assert_int_equal(choice.how, CA_CHOICE_AUTO);
	ca_choice_fini(&choice);
}

/* Two points of one unit of work, or of two. */
static void test_units(void **state)
{
	for (unsigned apart = 0; apart < 2; apart++) {
		struct ca_visits visits[2] = { { .point = 0, .before = 3 }, { .point = 1, .before = 4 } };
		struct ca_choice choice;

		if (apart) {
			assert_int_equal(tear_down(state), 0);
			assert_int_equal(set_up(state), 0);
		}
		candidate[0].group = 1 + apart;
		candidate[1].group = 1;
		open_points();
		step(0);
		search_until(SECOND);
		choice = stored();
		assert_int_equal(choice.points, 2);
		assert_int_equal(choice.point[0].unit, 0);
		assert_int_equal(choice.point[1].unit, apart);
		ca_choice_fini(&choice);
		strcpy(session->point[0].name, "first");
		strcpy(session->point[1].name, "lib.so!second");
		assert_int_equal(ca_conductor_points_keep(&conductor, visits, 2), 2);
		assert_null(visits[1].unit);
		assert_null(visits[1].beside);
		assert_string_equal(apart ? visits[0].beside : visits[0].unit, "lib.so!second");
		assert_null(apart ? visits[0].unit : visits[0].beside);
		/* they were not counted from the beginning on */
		assert_int_equal(visits[0].before + visits[1].before, 0);
		conductor.opt.run++;
		visits[0].before = 3;
		assert_int_equal(ca_conductor_points_keep(&conductor, visits, 2), 2);
		assert_int_equal(visits[0].before, 3);
		conductor.opt.run--;
		for (int i = 0; i < 2; i++)
			strcpy(session->point[i].name, "");
	}
}

/* Nothing will do: again a second later, as often as there is time. */
static void test_again(void **state)
{
	uint64_t now = SECOND;

	(void)state;
	open_points();
	chosen = 0;
	for (unsigned i = 1; i <= 3; i++) {
		assert_true(step(now));
		search_until(now + 2 * MS);
		assert_int_equal(searches, i);
		assert_non_null(strstr(said, "because"));
		now += 2 * MS + SECOND;
		assert_true(step(now)); /* not yet */
		assert_true(step(now + 1));
		assert_int_equal(searches, i);
		now += 2;
	}
	assert_string_equal(added, "");
	assert_int_equal(ca_choice_read(&conductor.points->choice, dir, NULL), CA_ERR_NOT_FOUND);
}

/* A program's own points come first, whenever they show up. */
static void test_macros(void **state)
{
	(void)state;
	open_points();
	assert_true(step(1));
	atomic_store(&session->points_used, 2);
	atomic_store(&session->point[0].state, CA_SLOT_CLAIMED);
	assert_true(step(2));
	atomic_store(&session->point[1].state, CA_SLOT_LIVE);
	session->selection.sites = 3;
	assert_false(step(3));
	assert_int_equal(session->selection.sites, 0);
	assert_false(step(4));
	ca_conductor_points_close(&conductor, 0, NULL);
	assert_int_equal(ca_choice_read(&conductor.points->choice, dir, NULL), CA_ERR_NOT_FOUND);
}

static void test_not_asked_for(void **state)
{
	(void)state;
	strcpy(progress, "main.c:3");
	open_points();
	assert_null(conductor.points);
	assert_false(step(1));
	strcpy(progress, "");
	settings.end_to_end = true;
	open_points();
	assert_null(conductor.points);
	ca_conductor_points_sample(&conductor, NULL, 0, false);
	ca_conductor_points_close(&conductor, 0, NULL);
}

/* ---- later runs ---------------------------------------------------------------------------*/
static void write_choice(enum ca_choice_how how, const char *dropped)
{
	struct ca_choice choice = { .program = strdup("./app"), .how = how, .run = 1, .points = 2 };

	choice.point[0].name = strdup("a.c:1");
	choice.point[1].name = strdup("b.c:2");
	choice.point[1].dropped = dropped ? strdup(dropped) : NULL;
	assert_int_equal(ca_choice_write(&choice, dir, NULL), CA_OK);
	ca_choice_fini(&choice);
}

static void test_stored(void **state)
{
	static const char *const other[] = { "./other", NULL };

	(void)state;
	write_choice(CA_CHOICE_AUTO, NULL);
	open_points();
	assert_string_equal(added, "a.c:1;b.c:2");
	assert_false(step(1));
	write_choice(CA_CHOICE_AUTO, "so");
	open_points();
	assert_string_equal(added, "a.c:1");
	/* another program's are not ours */
	conductor.opt.command = other;
	open_points();
	assert_string_equal(added, "");
	assert_true(step(1));
	conductor.opt.command = command;
	/* who wants to be asked gets only what he has chosen, or what this sweep has */
	strcpy(progress, "ask");
	open_points();
	assert_string_equal(added, "");
	write_choice(CA_CHOICE_USER, NULL);
	open_points();
	assert_string_equal(added, "a.c:1;b.c:2");
	write_choice(CA_CHOICE_AUTO, NULL);
	conductor.opt.sweep = ca_sweep_new(1);
	open_points();
	assert_string_equal(added, "");
	ca_sweep_first_time(conductor.opt.sweep, CA_SWEEP_ASKED);
	open_points();
	assert_string_equal(added, "a.c:1;b.c:2");
}

static void test_stored_end_to_end(void **state)
{
	static const unsigned groups[] = { 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3 };
	const struct ca_region *region;
	unsigned percent;

	(void)state;
	write_choice(CA_CHOICE_END_TO_END, NULL);
	for (unsigned run = 1; run <= CA_COUNT(groups); run++) {
		conductor.opt.run = run;
		open_points();
		assert_true(conductor.set->end_to_end);
		assert_int_equal(conductor.group, groups[run - 1]);
		assert_false(step(1));
	}
	assert_string_equal(added, "");
	assert_false(settings.end_to_end);
	conductor.opt.sweep = ca_sweep_new(1); /* pairs of whole runs */
	open_points();
	assert_false(conductor.set->end_to_end);
	assert_non_null(ca_sweep_why_whole(conductor.opt.sweep, &region, &percent));
	assert_null(region);
}

/* ---- the end ------------------------------------------------------------------------------*/
static void test_close(void **state)
{
	struct ca_choice choice;

	(void)state;
	/* killed: nobody knows what would have come */
	open_points();
	ca_conductor_points_close(&conductor, 9, NULL);
	assert_int_equal(ca_choice_read(&choice, dir, NULL), CA_ERR_NOT_FOUND);
	/* over too soon, but enough to choose from */
	open_points();
	step(1);
	ca_conductor_points_close(&conductor, 0, NULL);
	choice = stored();
	assert_int_equal(choice.how, CA_CHOICE_AUTO);
	assert_int_equal(choice.points, 2);
	ca_choice_fini(&choice);
	assert_string_equal(added, ""); /* for later runs */
}

static void test_give_up(void **state)
{
	struct ca_choice choice;

	(void)state;
	chosen = 0;
	open_points();
	ca_conductor_points_close(&conductor, 0, NULL);
	choice = stored();
	assert_int_equal(choice.how, CA_CHOICE_END_TO_END);
	assert_string_equal(choice.reason, "the run was too short");
	ca_choice_fini(&choice);
	conductor.opt.command = (const char *const[]){ "./other", NULL };
	open_points();
	step(1);
	ca_conductor_points_close(&conductor, 0, NULL);
	choice = stored();
	assert_string_equal(choice.program, "./other");
	assert_string_equal(choice.reason, "because");
	assert_int_equal(choice.points, 0);
	ca_choice_fini(&choice);
	assert_non_null(strstr(said, "-P FILE:LINE -- ./other"));
	/* the run was long enough for one search, and not for the next */
	conductor.opt.command = (const char *const[]){ "./third", NULL };
	open_points();
	step(1);
	search_until(SECOND);
	because = "not yet";
	step(UINT64_C(3) * SECOND);
	step(UINT64_C(3) * SECOND + 1);
	ca_conductor_points_close(&conductor, 0, NULL);
	because = "because";
	choice = stored();
	assert_string_equal(choice.program, "./third");
	assert_string_equal(choice.reason, "because");
	ca_choice_fini(&choice);
}

/* One run of a sweep, with the visits of both points. */
static void one_run(double seconds, uint64_t a, uint64_t b)
{
	struct ca_visits_now visits = { .total = { a, b, 0 }, .points = 3 };

	for (unsigned row = 0; row < 3; row++)
		session->point[row].kind = row < 2 ? CA_POINT_THROUGHPUT : CA_POINT_BEGIN;
	strcpy(session->point[0].name, "a.c:1");
	strcpy(session->point[1].name, "b.c:2");
	strcpy(session->point[2].name, "a.c:1");
	conductor.sum.runtime = (uint64_t)(seconds * 1e9);
	open_points();
	ca_conductor_points_close(&conductor, 0, &visits);
}

static void test_dropped(void **state)
{
	struct ca_choice choice;

	(void)state;
	write_choice(CA_CHOICE_AUTO, NULL);
	conductor.opt.sweep = ca_sweep_new(1);
	one_run(4, 1000, 1000);
	one_run(5, 1000, 1250);
	one_run(6, 1000, 1500);
	choice = stored();
	assert_null(choice.point[0].dropped);
	assert_non_null(choice.point[1].dropped);
	ca_choice_fini(&choice);
	assert_non_null(strstr(said, "0:progress point b.c:2 is dropped"));
	assert_null(strstr(said, "a.c:1 is dropped"));
}

/* All follow the runs' lengths: told once, and kept. */
static void test_untied(void **state)
{
	struct ca_choice choice;
	const char *told;

	(void)state;
	write_choice(CA_CHOICE_AUTO, NULL);
	conductor.opt.sweep = ca_sweep_new(1);
	one_run(4, 800, 400);
	one_run(6, 1200, 600);
	one_run(8, 1600, 800);
	one_run(10, 2000, 1000);
	choice = stored();
	assert_null(choice.point[0].dropped);
	assert_null(choice.point[1].dropped);
	ca_choice_fini(&choice);
	told = strstr(said, "0:the visits of each chosen progress point differ");
	assert_non_null(told);
	assert_null(strstr(told + 1, "0:the visits of each chosen"));
	/* a run that was stopped says nothing */
	ca_sweep_free(conductor.opt.sweep);
	conductor.opt.sweep = ca_sweep_new(1);
	said[0] = '\0';
	settings.duration = 3;
	for (unsigned i = 1; i < 5; i++)
		one_run(2 * i, 100 * i, 100 * i);
	if (!strncmp(said, "0:", 2) || strstr(said, "\n0:")) /* the folder's name may hold it, too */
		fail_msg("%s", said);
}

/* ---- asking -------------------------------------------------------------------------------*/
static void test_answers(void **state)
{
	static const struct {
		const char *line;
		size_t n, chosen[3];
	} cases[] = {
		{ "2\n", 1, { 20 } },
		{ "3 1\n", 2, { 30, 10 } },
		{ "1,2,3,4\n", 3, { 10, 20, 30 } },
		{ "4 0 3\n", 1, { 30 } },
		{ " x2y\n", 1, { 20 } },
		{ "1 2 3 1\n", 3, { 10, 20, 30 } },
		{ "\n", 0, { 0 } },
		{ "none\n", 0, { 0 } },
		{ "", 0, { 0 } },
		{ "99999999999999999999\n", 0, { 0 } },
		{ "2 2 1\n", 2, { 20, 10 } },
	};

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		struct ca_point_choice p = {
			.offered = { 10, 20, 30 }, .offers = 3, .chosen = { 7, 8 }, .n = 2
		};

		strcpy(p.line, cases[i].line);
		assert_int_equal(ca_conductor_points_ask_take(&p), cases[i].n > 0);
		assert_int_equal(p.n, cases[i].n ? cases[i].n : 2);
		for (size_t k = 0; k < cases[i].n; k++)
			assert_int_equal(p.chosen[k], cases[i].chosen[k]);
		if (!cases[i].n)
			assert_int_equal(p.chosen[0], 7);
	}
}

static void test_asking(void **state)
{
	struct ca_point_choice *p;
	struct ca_choice choice;
	int pair[2];

	(void)state;
	strcpy(progress, "ask");
	candidate[0].rate = 0;
	open_points();
	p = conductor.points;
	step(1);
	p->n = ca_point_search_choose(p->search, &p->set, p->chosen);
	assert_int_equal(pipe(pair), 0);
	p->terminal = pair[0];
	/* what is never passed is not offered */
	ca_conductor_points_ask_offer(&conductor, p);
	enter(&conductor, p, CA_POINT_STAGE_ASKING, 5);
	assert_int_equal(p->offers, 2);
	assert_non_null(strstr(said, "0:  1* lib.so!second"));
	assert_non_null(strstr(said, "0:  2  third"));
	assert_true(step(6));
	assert_string_equal(added, "");
	assert_int_equal(write(pair[1], "2", 1), 1);
	assert_true(step(7));
	assert_string_equal(added, "");
	assert_int_equal(write(pair[1], "\n", 1), 1);
	assert_true(step(8));
	assert_string_equal(added, "third");
	choice = stored();
	assert_int_equal(choice.how, CA_CHOICE_USER);
	ca_choice_fini(&choice);
	assert_non_null(strstr(said, "chosen by you"));
	close(pair[1]);
	/* the program ends before he answers: what was offered as the best */
	p->over = false;
	p->n = ca_point_search_choose(p->search, &p->set, p->chosen);
	ca_choice_fini(&p->choice);
	enter(&conductor, p, CA_POINT_STAGE_ASKING, 9);
	chosen = 0;
	ca_conductor_points_close(&conductor, 0, NULL);
	choice = stored();
	assert_int_equal(choice.how, CA_CHOICE_AUTO);
	ca_choice_fini(&choice);
}

/* ---- traps --------------------------------------------------------------------------------*/
static void test_traps(void **state)
{
	static const struct {
		uint64_t seconds, trapped;
		bool told;
	} cases[] = {
		{ 10, 30000, true }, { 10, 10000, false }, { 1, 9999, false },
		{ 1, 20000, true },  { 10, 0, false },
	};
	struct ca_visits_now visits = { .points = 1 };

	(void)state;
	strcpy(session->point[0].name, "hot");
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		said[0] = '\0';
		atomic_store(&session->point[0].trapped, cases[i].trapped);
		conductor.started = ca_clock_now() - cases[i].seconds * SECOND;
		ca_conductor_report_traps(&conductor, &visits);
		assert_int_equal(strstr(said, "'hot'") != NULL, cases[i].told);
	}
	/* once in a sweep */
	conductor.opt.sweep = ca_sweep_new(1);
	atomic_store(&session->point[0].trapped, 1000000);
	ca_conductor_report_traps(&conductor, &visits);
	assert_string_not_equal(said, "");
	said[0] = '\0';
	ca_conductor_report_traps(&conductor, &visits);
	assert_string_equal(said, "");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_phases),
		TEST(test_needless),
		TEST(test_needless_whole),
		TEST(test_needless_beside),
		TEST(test_needless_late),
		TEST(test_needless_meanwhile),
		TEST(test_idle),
		TEST(test_idle_at_first),
		TEST(test_chosen),
		TEST(test_units),
		TEST(test_again),
		TEST(test_macros),
		TEST(test_not_asked_for),
		TEST(test_stored),
		TEST(test_stored_end_to_end),
		TEST(test_close),
		TEST(test_give_up),
		TEST(test_dropped),
		TEST(test_untied),
		TEST(test_answers),
		TEST(test_asking),
		TEST(test_traps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/points/point_search.c: lots of candidates that are surveyed one after the other, which of them are
 * counted, and whose sites there is room for. Stacks, names' sites and binaries are played by this
 * test. */
#include "causal/points/point_search.c"
#include "tests/unit/unit.h"

/* ---- the others' parts --------------------------------------------------------------------*/
enum { MODULES = 5, NOT_INDEXED = 3, NOT_NAMED = 4 };
static int mark;
static size_t founds, tried, freed;
static struct {
	size_t gives, max; /* sites that it has, and those there is room for */
	bool asked;
} module[MODULES];

bool ca_point_stacks_add(struct ca_point_stacks *samples, const ca_place *frame, unsigned frames,
			 unsigned weight, bool waiting)
{
	(void)frame, (void)frames, (void)weight;
	samples->n++;
	samples->running += !waiting;
	return true;
}

bool ca_point_stacks_are_waits(const struct ca_point_stacks *samples)
{
	return samples->running < STACKS_LEAST;
}

size_t ca_point_stacks_find(const struct ca_point_stacks *samples, const struct ca_session *session,
			    struct ca_objects *objects, struct ca_point_stacks_found *out, size_t *used)
{
	char name[32];

	(void)session, (void)objects;
	for (size_t i = 0; i < founds; i++) {
		snprintf(name, sizeof name, "f%zu", i);
		assert_int_equal(ca_point_name_parse(&out[i].name, name, NULL), CA_OK);
		out[i].depth = (double)i;
	}
	*used = samples->n;
	return founds;
}

struct ca_requested *ca_requested_try(const struct ca_point_name *const *name, size_t n,
				      const struct ca_scope *scope, struct ca_session *session,
				      uint32_t first_row)
{
	(void)name, (void)scope, (void)session;
	assert_int_equal(first_row, CA_MAX_POINTS - CA_CANDIDATES);
	tried = n;
	return (struct ca_requested *)&mark;
}

void ca_requested_free(struct ca_requested *progress)
{
	assert_ptr_equal(progress, &mark);
	freed++;
}

bool ca_requested_is_named(struct ca_requested *progress, const struct ca_index *index, uint32_t m)
{
	(void)progress, (void)index;
	return m != NOT_NAMED;
}

size_t ca_requested_sites(struct ca_requested *progress, const struct ca_index *index, struct ca_text *text,
			  uint32_t m, struct ca_site *out, size_t max)
{
	size_t n = 0;

	(void)progress, (void)index, (void)text;
	module[m].asked = true;
	module[m].max = max;
	if (max <= CA_MAX_SITES)
		for (; n < max && n < module[m].gives; n++)
			out[n].module = m;
	return n;
}

const struct ca_index *ca_objects_index(struct ca_objects *objects, uint32_t m)
{
	(void)objects;
	return m == NOT_INDEXED ? NULL : (const struct ca_index *)&mark;
}

struct ca_text *ca_objects_text(struct ca_objects *objects, uint32_t m)
{
	(void)objects, (void)m;
	return NULL;
}

bool ca_objects_in_scope(struct ca_objects *objects, uint32_t m)
{
	(void)objects;
	return m > 1;
}

/* ---- a search -----------------------------------------------------------------------------*/
static struct ca_session *session;
static struct ca_point_search *search;
static uint64_t now;

static int set_up(void **state)
{
	size_t size = sizeof *session + sizeof(struct ca_slot);

	(void)state;
	size = (size + _Alignof(struct ca_session) - 1) / _Alignof(struct ca_session) *
	       _Alignof(struct ca_session);
	session = aligned_alloc(_Alignof(struct ca_session), size);
	if (!session)
		return -1;
	memset(session, 0, size);
	memset(module, 0, sizeof module);
	session->module[1].main = 1;
	atomic_store(&session->slots_used, 1);
	atomic_store(&session->modules_used, MODULES);
	founds = tried = freed = 0;
	now = 1;
	search = ca_point_search_new(session, NULL, NULL, false);
	return search ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_point_search_free(search);
	free(session);
	return 0;
}

static enum ca_point_search_wish step_after(unsigned ms)
{
	now += (uint64_t)ms * MS;
	return ca_point_search_step(search, now);
}

static void gather(size_t n)
{
	founds = n;
	for (unsigned i = 0; i < STACKS_WANTED; i++)
		ca_point_search_sample(search, NULL, 0, false);
	assert_int_equal(step_after(1), CA_POINT_SEARCH_PLACE);
}

/* Visits of the i-th function in 200 ms: one of three is too hot, one is rare. */
static unsigned visits_of(size_t i)
{
	return i % 3 == 0 ? 400000 : i % 3 == 1 ? 20 : 1;
}

/* Places the lot that begins at the first-th function, and passes it. */
static void pass_lot(size_t first)
{
	assert_int_equal(step_after(1000), CA_POINT_SEARCH_WAIT); /* not in place yet */
	ca_point_search_placed(search, now);
	for (size_t k = 0; k < tried; k++)
		atomic_fetch_add(&session->slot[0].count[CA_MAX_POINTS - CA_CANDIDATES + k],
				 visits_of(first + k));
	assert_int_equal(step_after(100), CA_POINT_SEARCH_WAIT);
}

/* Where others are known to work, it takes longer until stacks of waiting threads will do. */
static void test_waits(void **state)
{
	(void)state;
	founds = 1;
	for (int known = 0; known < 2; known++) {
		ca_point_search_free(search);
		search = ca_point_search_new(session, NULL, NULL, known);
		assert_int_equal(step_after(1), CA_POINT_SEARCH_WAIT);
		for (unsigned i = 0; i < STACKS_LEAST; i++)
			ca_point_search_sample(search, NULL, 0, true);
		assert_int_equal(step_after(GATHER_MOST - 1), CA_POINT_SEARCH_WAIT);
		if (known)
			assert_int_equal(step_after(GATHER_WORK - GATHER_MOST), CA_POINT_SEARCH_WAIT);
		assert_int_equal(step_after(2), CA_POINT_SEARCH_PLACE);
		assert_true(ca_point_search_saw_waits(search));
	}
}

/* Those that are neither too hot nor too rare, in order, then the rare ones from the inside. However
 * many lots there are, and whether the last one is full. */
static void test_survey(void **state)
{
	static const size_t cases[] = { 1,
					2,
					CA_CANDIDATES - 1,
					CA_CANDIDATES,
					CA_CANDIDATES + 2,
					2 * CA_CANDIDATES,
					CA_POINT_STACKS_FOUND };

	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct ca_candidates *candidates;
		size_t chosen[CA_CANDIDATES_CHOSEN], n = 0, kept[CA_POINT_STACKS_FOUND];

		gather(cases[i]);
		for (size_t first = 0; first < cases[i]; first += CA_CANDIDATES) {
			size_t left = cases[i] - first;

			assert_int_equal(tried, left < CA_CANDIDATES ? left : CA_CANDIDATES);
			pass_lot(first);
			assert_int_equal(step_after(100), CA_POINT_SEARCH_PLACE);
		}
		for (size_t k = 0; k < cases[i]; k++)
			if (k % 3 == 1)
				kept[n++] = k;
		for (size_t k = cases[i]; k-- > 0;)
			if (k % 3 == 2)
				kept[n++] = k;
		if (!n) /* nothing but what is hot */
			kept[n++] = 0;
		n = n < CA_CANDIDATES ? n : CA_CANDIDATES;
		ca_point_search_choose(search, &candidates, chosen);
		assert_int_equal(candidates->n, n);
		assert_int_equal(tried, n);
		for (size_t k = 0; k < n; k++) {
			char name[32];

			snprintf(name, sizeof name, "f%zu", kept[k]);
			assert_string_equal(candidates->candidate[k].name, name);
			assert_int_equal(candidates->candidate[k].depth, kept[k]);
		}
		tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* What is counted in the windows, from when the sites are in place. */
static void test_windows(void **state)
{
	const struct ca_candidates *candidates;
	size_t chosen[CA_CANDIDATES_CHOSEN];

	(void)state;
	gather(2);
	pass_lot(0);
	assert_int_equal(step_after(100), CA_POINT_SEARCH_PLACE);
	ca_point_search_placed(search, now);
	for (unsigned w = 0; w < WINDOWS; w++) {
		atomic_fetch_add(&session->slot[0].count[FIRST_ROW], 3 * w);
		assert_int_equal(step_after(WINDOW - 1), CA_POINT_SEARCH_WAIT);
		assert_int_equal(step_after(1),
				 w + 1 < WINDOWS ? CA_POINT_SEARCH_WAIT : CA_POINT_SEARCH_DONE);
	}
	assert_int_equal(step_after(1000), CA_POINT_SEARCH_DONE);
	ca_point_search_choose(search, &candidates, chosen);
	assert_int_equal(candidates->windows, WINDOWS);
	assert_int_equal(candidates->n, 1);
	for (unsigned w = 0; w < WINDOWS; w++)
		assert_int_equal(candidates->candidate[0].count[w], 3 * w);
}

/* Modules in order, until there is no room for more sites. */
static void test_room(void **state)
{
	static const struct {
		size_t gives[2], max[2], all;
	} cases[] = {
		{ { 3, 5 }, { 128, 125 }, 8 },
		{ { 100, 100 }, { 128, 28 }, 128 },
		{ { 128, 1 }, { 128, 0 }, 128 },
		{ { 0, 500 }, { 128, 128 }, 128 },
	};

	assert_int_equal(CA_MAX_SITES, 128);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct ca_site *site;
		size_t n, first;

		for (uint32_t m = 1; m <= 2; m++)
			module[m].gives = cases[i].gives[m - 1];
		gather(1);
		for (uint32_t m = 1; m <= 2; m++) {
			assert_true(module[m].asked);
			assert_int_equal(module[m].max, cases[i].max[m - 1]);
		}
		assert_false(module[NOT_INDEXED].asked || module[NOT_NAMED].asked);
		assert_int_equal(freed, 1);
		site = ca_point_search_sites(search, &n);
		assert_int_equal(n, cases[i].all);
		first = cases[i].gives[0];
		for (size_t k = 0; k < n; k++)
			assert_int_equal(site[k].module, k < first ? 1 : 2);
		tear_down(state);
		assert_int_equal(set_up(state), 0);
	}
}

/* A name that was taken lasts; and where no search was made there is nothing to free. */
static void test_take(void **state)
{
	const struct ca_candidates *candidates;
	size_t chosen[CA_CANDIDATES_CHOSEN];
	struct ca_point_name name;

	(void)state;
	gather(2);
	pass_lot(0);
	assert_int_equal(step_after(100), CA_POINT_SEARCH_PLACE);
	name = ca_point_search_take(search, 0);
	ca_point_search_choose(search, &candidates, chosen);
	assert_ptr_equal(candidates->candidate[0].name, name.text);
	ca_point_search_free(search);
	search = NULL;
	assert_string_equal(name.text, "f1");
	ca_point_name_fini(&name);
	ca_point_search_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_survey, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_windows, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_take, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

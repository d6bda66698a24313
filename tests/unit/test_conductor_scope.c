/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_scope.c: samples are counted by module, and what is to be taken is asked for.
 * Indexes, regions and points are played by this test; test_conductor_follow.c has the decisions. */
#include "causal/conductor/conductor_scope.c"
#include "tests/unit/unit.h"
#include <stdarg.h>
#include <stdio.h>

/* ---- the others' parts --------------------------------------------------------------------*/
enum { APP = 1, ONE, TWO, LIBC, MODULES };
static unsigned asked[MODULES], rescoped[MODULES], counted;
static enum ca_objects_taken answer[MODULES];
static char said[512], scope_told[512];

void ca_objects_take(struct ca_objects *objects, uint32_t module)
{
	(void)objects;
	asked[module]++;
}

enum ca_objects_taken ca_objects_taken(struct ca_objects *objects, uint32_t module)
{
	(void)objects;
	return answer[module];
}

const struct ca_index *ca_objects_index(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return NULL;
}

struct ca_text *ca_objects_text(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return NULL;
}

bool ca_objects_in_scope(struct ca_objects *objects, uint32_t module)
{
	(void)objects, (void)module;
	return false;
}

void ca_regions_rescope(struct ca_regions *regions, uint32_t module)
{
	(void)regions;
	rescoped[module]++;
}

bool ca_regions_count(struct ca_regions *regions, const ca_place *frame, unsigned frames, unsigned weight,
		      bool waiting)
{
	(void)waiting;
	(void)regions, (void)frame, (void)frames, (void)weight;
	counted++;
	return true;
}

bool ca_conductor_is_named(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

bool ca_conductor_points_are_open(const struct ca_conductor *c)
{
	(void)c;
	return false;
}

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	va_list args;

	(void)c, (void)level;
	va_start(args, format);
	vsnprintf(said, sizeof said, format, args);
	va_end(args);
}

enum ca_status ca_results_scope(struct ca_results *results, const char *binary, double share, bool in_scope,
				struct ca_err *err)
{
	size_t n = strlen(scope_told);

	(void)results, (void)err;
	snprintf(scope_told + n, sizeof scope_told - n, "%s%s %.0f %s", n ? ", " : "", binary, share,
		 in_scope ? "in" : "out");
	return CA_OK;
}

/* ---- a conductor --------------------------------------------------------------------------*/
static const char *const path[MODULES] = { NULL, "/bin/app", "/lib/libone.so.1", "/lib/libtwo.so.1",
					   "/lib/libc.so.6" };
static struct ca_settings settings;
static struct ca_session *session;
static struct ca_conductor conductor;
static const char *const command[] = { "app", NULL };

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	if (!session)
		return -1;
	memset(session, 0, sizeof *session);
	for (uint32_t m = 1; m < MODULES; m++) {
		strcpy(session->module[m].path, path[m]);
		session->module[m].main = m == APP;
		atomic_store(&session->module[m].state, CA_MODULE_INDEXED);
	}
	atomic_store(&session->modules_used, MODULES);
	settings = (struct ca_settings){ .mode = CA_MODE_FUNCTION };
	conductor = (struct ca_conductor){ .opt = { .sweep = ca_sweep_new(1), .command = command },
					   .set = &settings,
					   .session = session };
	memset(asked, 0, sizeof asked);
	memset(rescoped, 0, sizeof rescoped);
	for (size_t i = 0; i < MODULES; i++)
		answer[i] = CA_OBJECTS_PENDING;
	counted = 0;
	said[0] = scope_told[0] = '\0';
	return ca_scope_new(&conductor.scope, &(struct ca_scope_spec){ 0 }, NULL) ||
	       ca_conductor_scope_open(&conductor, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	ca_conductor_scope_free(&conductor);
	ca_scope_free(conductor.scope);
	ca_sweep_free(conductor.opt.sweep);
	free(session);
	return 0;
}

/* `inner` was called by `outer`, 0: by nobody. */
static void sample(uint32_t inner, uint32_t outer, unsigned weight, bool waiting)
{
	ca_place frame[] = { CA_PLACE(inner, 16), CA_PLACE(outer, 32) };

	ca_conductor_scope_sample(&conductor, frame, outer ? 2 : 1, weight, waiting ? CA_SAMPLE_WAITING : 0);
}

static void has(uint32_t module, uint64_t own, uint64_t through)
{
	const struct ca_follow_object *object =
		ca_follow_find(ca_sweep_follow(conductor.opt.sweep), path[module]);

	assert_non_null(object);
	assert_int_equal(object->own, own);
	assert_int_equal(object->through, through);
}

static void test_counts(void **state)
{
	(void)state;
	sample(APP, 0, 2, false);
	sample(APP, 0, 5, false);
	sample(ONE, APP, 3, false);
	sample(LIBC, ONE, 4, false); /* speaks for the one that called it, too */
	sample(LIBC, APP, 1, false);
	sample(ONE, TWO, 1, false);  /* has code of its own to offer */
	sample(TWO, APP, 100, true); /* uses no CPU */
	ca_conductor_scope_close(&conductor);
	has(APP, 7, 1);
	has(ONE, 4, 4);
	has(LIBC, 5, 0);
	assert_null(ca_follow_find(ca_sweep_follow(conductor.opt.sweep), path[TWO]));
	assert_int_equal(ca_sweep_follow(conductor.opt.sweep)->total, 16);
	assert_int_equal(ca_sweep_follow(conductor.opt.sweep)->samples, 6);
}

/* System calls are the kernel's own time, and speak for the library that makes them. */
static void test_kernel(void **state)
{
	const ca_place from_one[] = { CA_PLACE(LIBC, 16), CA_PLACE(ONE, 32) },
		       from_two[] = { CA_PLACE(TWO, 16) };
	const struct ca_follow_object *kernel;

	(void)state;
	sample(APP, 0, 1, false);
	ca_conductor_scope_sample(&conductor, from_one, 2, 40, CA_SAMPLE_IN_KERNEL);
	ca_conductor_scope_sample(&conductor, from_two, 1, 4, CA_SAMPLE_IN_KERNEL);
	ca_conductor_scope_close(&conductor);
	kernel = ca_follow_find(ca_sweep_follow(conductor.opt.sweep), CA_KERNEL);
	assert_non_null(kernel);
	assert_int_equal(kernel->own, 44);
	has(ONE, 0, 40);
	has(TWO, 0, 4);
	has(APP, 1, 0);
	assert_null(ca_follow_find(ca_sweep_follow(conductor.opt.sweep), path[LIBC]));
}

/* Who waits for his team in OpenMP's code does nothing for who has called that, in system calls neither. */
static void test_team(void **state)
{
	const ca_place waits[] = { CA_PLACE(TWO, 16), CA_PLACE(ONE, 32), CA_PLACE(APP, 32) };

	(void)state;
	session->module[TWO].openmp = 1;
	sample(APP, 0, 1, false);
	assert_true(ca_conductor_scope_sample(&conductor, waits, 3, 40, 0));
	assert_true(ca_conductor_scope_sample(&conductor, waits, 3, 4, CA_SAMPLE_IN_KERNEL));
	ca_conductor_scope_close(&conductor);
	has(TWO, 44, 0);
	has(APP, 1, 0);
	assert_null(ca_follow_find(ca_sweep_follow(conductor.opt.sweep), path[ONE]));
	assert_null(ca_follow_find(ca_sweep_follow(conductor.opt.sweep), CA_KERNEL));
}

/* Code that the program has made itself is in no file, and speaks for the library that calls it. */
static void test_made(void **state)
{
	const ca_place from_one[] = { CA_PLACE(CA_MODULE_MADE, 16), CA_PLACE(CA_MODULE_MADE, 64),
				      CA_PLACE(ONE, 32) };
	const struct ca_follow_object *made;

	(void)state;
	sample(APP, 0, 1, false);
	ca_conductor_scope_sample(&conductor, from_one, 3, 40, 0);
	ca_conductor_scope_close(&conductor);
	made = ca_follow_find(ca_sweep_follow(conductor.opt.sweep), CA_MADE);
	assert_non_null(made);
	assert_int_equal(made->own, 40);
	has(ONE, 0, 40);
	has(APP, 1, 0);
	assert_int_equal(ca_sweep_follow(conductor.opt.sweep)->samples, 2);
}

/* For the run file: of all CPU samples, those that are left out included. */
static void test_shares(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		sample(APP, 0, 6, false);
		sample(LIBC, APP, 2, false);
	}
	conductor.results = (struct ca_results *)&conductor; /* only asked whether it is there */
	ca_conductor_scope_close(&conductor);
	conductor.results = NULL;
	has(APP, 30, 10);
	assert_string_equal(scope_told, "/bin/app 75 in, /lib/libc.so.6 25 out");
}

/* All that are taken are asked for, and nothing goes on before each of them is there. */
static void test_taking(void **state)
{
	(void)state;
	for (unsigned i = 0; i < LEAST; i++) {
		sample(APP, 0, 1, false);
		sample(ONE, APP, 1, false);
		sample(TWO, APP, 1, false);
		sample(LIBC, APP, 1, false);
	}
	ca_conductor_scope_step(&conductor, 1);
	assert_true(ca_conductor_scope_is_open(&conductor));
	assert_true(asked[ONE] && asked[TWO]);
	assert_true(!asked[APP] && !asked[LIBC]);
	answer[TWO] = CA_OBJECTS_TAKEN;
	ca_conductor_scope_step(&conductor, 2);
	assert_true(ca_conductor_scope_is_open(&conductor));
	assert_int_equal(rescoped[ONE], 0);
	assert_int_equal(rescoped[TWO], 1);
	assert_int_equal(counted, 0);
	answer[ONE] = CA_OBJECTS_FAILED;
	ca_conductor_scope_step(&conductor, 3);
	assert_false(ca_conductor_scope_is_open(&conductor));
	assert_int_equal(rescoped[ONE], 1);
	assert_int_equal(rescoped[TWO], 1);
	assert_true(counted > 0);
	assert_non_null(strstr(said, "libone.so.1 25 % (it cannot be read)"));
	assert_non_null(strstr(said, "scope: app 25 %, libtwo.so.1 25 % of the CPU samples"));
}

/* One that is loaded later is asked for then. */
static void test_late(void **state)
{
	(void)state;
	atomic_store(&session->module[TWO].state, CA_MODULE_CLAIMED);
	for (unsigned i = 0; i < LEAST; i++) {
		sample(APP, 0, 1, false);
		sample(TWO, APP, 1, false);
	}
	ca_conductor_scope_step(&conductor, 1);
	assert_int_equal(asked[TWO], 0);
	assert_false(ca_conductor_scope_is_open(&conductor));
	atomic_store(&session->module[TWO].state, CA_MODULE_REGISTERED);
	ca_conductor_scope_step(&conductor, 2);
	assert_true(asked[TWO] > 0);
	assert_true(ca_conductor_scope_is_open(&conductor));
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(test_counts), TEST(test_kernel), TEST(test_team), TEST(test_made),
		TEST(test_shares), TEST(test_taking), TEST(test_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

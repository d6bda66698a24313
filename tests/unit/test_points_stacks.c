/* SPDX-License-Identifier: MIT */
/* From modules and stacks to code: modules indexed and taken into scope later (binary/objects.c), what
 * of them may be selected (regions.c), and the functions and loops on stacks (point_stacks.c). The
 * session's table of modules is filled here, as a runtime would. */
#include "binary/objects.h"
#include "binary/plan/texts.h"
#include "causal/conductor/regions.h"
#include "causal/points/point_stacks.h"
#include "causal/points/requested.h"
#include "core/session.h"
#include "tests/unit/unit.h"

#include "tests/unit/binary_fixture.h"
#include <time.h>

enum { APP = 1, LIBRARY = 2, MODULES = 3 };

static const char app_a[] =
	"volatile int sink;\n"
	"void other(void);\n"
	"static __attribute__((noinline)) void work(int n) { while (n--) sink += n; }\n"
	"__attribute__((noinline)) void rest(int n) { sink = n; }\n"
	"__asm__(\".text\\n.type begins, @function\\nbegins: mov $5, %ecx\\n2: dec %ecx\\n\"\n"
	"\"jnz 2b\\ndec %edi\\njnz begins\\nret\\n.size begins, . - begins\\n\");\n"
	"int main(int argc, char **argv) { (void)argv; work(argc); other(); return 0; }\n";
static const char app_b[] = "extern volatile int sink;\n"
			    "void rest(int n);\n"
			    "static __attribute__((noinline)) void work(int n)\n"
			    "{\n"
			    "\twhile (n--) rest(n); while (sink--) rest(sink);\n"
			    "}\n"
			    "void other(void) { work(sink); }\n"
			    "__attribute__((noinline)) void alone(int n)\n"
			    "{\n"
			    "\twhile (n--) rest(n);\n"
			    "}\n";
static const char library[] = "volatile int turns;\n"
			      "int busy(int n) { while (n--) turns++; return turns; }\n";

static struct ca_session *session;
static struct ca_scope *scope;
static struct ca_requested *progress;
static struct ca_objects *objects;
static struct ca_texts *texts;

static void wait_ms(int ms)
{
	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

static void add_module(uint32_t id, const char *name, bool main)
{
	struct ca_module *m = &session->module[id];

	strcpy(m->path, fixture_path(name));
	m->main = main;
	atomic_store(&m->state, CA_MODULE_REGISTERED);
	atomic_store(&session->modules_used, id + 1);
	for (int i = 0; i < 20000 && atomic_load(&m->state) == CA_MODULE_REGISTERED; i++) {
		ca_objects_look(objects);
		wait_ms(1);
	}
}

static int set_up(void **state)
{
	struct ca_objects_planner planner;

	if (fixture_make(state))
		return -1;
	fixture_write("a.c", app_a);
	fixture_write("b.c", app_b);
	fixture_write("l.c", library);
	if (fixture_run("%s -g -O1 -o app a.c b.c", fixture_cc()) ||
	    fixture_run("%s -g -O1 -shared -fPIC -o lib.so l.c", fixture_cc()))
		return -1;
	session = aligned_alloc(_Alignof(struct ca_session), sizeof *session);
	if (!session)
		return -1;
	memset(session, 0, sizeof *session);
	if (ca_scope_new(&scope, &(struct ca_scope_spec){ .function_mode = true }, NULL) ||
	    ca_requested_new(&progress, "", scope, NULL))
		return -1;
	ca_requested_join(progress, session, false);
	planner = ca_requested_planner(progress);
	texts = ca_texts_new();
	if (!texts || ca_objects_new(&objects, session, scope, texts, &planner, NULL, NULL, NULL))
		return -1;
	add_module(APP, "app", true);
	add_module(LIBRARY, "lib.so", false);
	return 0;
}

static int tear_down(void **state)
{
	ca_objects_free(objects);
	ca_texts_free(texts);
	ca_requested_free(progress);
	ca_scope_free(scope);
	free(session);
	return fixture_remove(state);
}

/* Which module comes next: the executable, what is awaited, then what was missed most. */
static uint32_t order[4];
static _Atomic unsigned ordered;

static bool want_none(void *context, const char *path, bool main)
{
	(void)context;
	(void)path;
	(void)main;
	return false;
}

static bool note_order(void *context, const struct ca_index *index, uint32_t module)
{
	(void)context;
	(void)index;
	order[atomic_fetch_add(&ordered, 1)] = module;
	return false;
}

static void test_order(void **state)
{
	static const char *const names[] = { "", "lib.so", "other.so", "third.so", "app" };
	static const unsigned missed[] = { 0, 0, 2, 3, 0 }, want[] = { 4, 1, 3, 2 };
	struct ca_objects_planner planner = { .wants = want_none, .is_named = note_order };
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	struct ca_objects *all;

	(void)state;
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	assert_int_equal(fixture_run("cp lib.so other.so && cp lib.so third.so"), 0);
	for (uint32_t i = 1; i <= 4; i++) {
		strcpy(s->module[i].path, fixture_path(names[i]));
		s->module[i].main = i == 4;
		atomic_store(&s->module[i].state, CA_MODULE_REGISTERED);
		for (unsigned k = 0; k < missed[i]; k++)
			assert_null(ca_module_index_path(s, i));
	}
	strcpy(s->awaited, s->module[1].path);
	atomic_store(&s->awaits, 1);
	atomic_store(&s->modules_used, 5);
	assert_int_equal(ca_objects_new(&all, s, scope, texts, &planner, NULL, NULL, NULL), CA_OK);
	for (int i = 0; i < 20000 && atomic_load(&ordered) < 4; i++)
		wait_ms(1);
	ca_objects_free(all);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(order[i], want[i]);
	free(s);
}

/* After the start of a program the indexing thread looks no more, until it is woken: each look would take a CPU. */
static void test_rests(void **state)
{
	struct ca_objects_planner planner = { .wants = want_none, .is_named = note_order };
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	struct ca_objects *one;

	(void)state;
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	atomic_store(&s->modules_used, 1);
	atomic_store(&ordered, 0);
	assert_int_equal(ca_objects_new(&one, s, scope, texts, &planner, NULL, NULL, NULL), CA_OK);
	wait_ms(1000);
	strcpy(s->module[1].path, fixture_path("lib.so"));
	atomic_store(&s->module[1].state, CA_MODULE_REGISTERED);
	ca_objects_look(one);
	atomic_store(&s->modules_used, 2);
	wait_ms(100);
	assert_int_equal(atomic_load(&s->module[1].state), CA_MODULE_REGISTERED);
	ca_objects_look(one);
	for (int i = 0; i < 20000 && atomic_load(&s->module[1].state) == CA_MODULE_REGISTERED; i++)
		wait_ms(1);
	assert_int_equal(atomic_load(&s->module[1].state), CA_MODULE_INDEXED);
	ca_objects_free(one);
	ca_objects_look(NULL);
	free(s);
}

/* The i-th function of that name, an address in it. */
static ca_place in_function(uint32_t module, const char *name, unsigned which)
{
	const struct ca_index *index = ca_objects_index(objects, module);
	struct ca_index_function f;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		if (!strcmp(f.name, name) && !f.part && !which--)
			return CA_PLACE(module, f.low + 1);
	}
	fail_msg("no function %s", name);
	return 0;
}

static void test_take(void **state)
{
	const struct ca_index *before = ca_objects_index(objects, LIBRARY);
	struct ca_catalog catalog = { 0 };
	struct ca_regions *regions;
	char path[CA_PATH];
	ca_place busy;

	(void)state;
	assert_int_equal(atomic_load(&session->module[APP].state), CA_MODULE_INDEXED);
	assert_int_equal(atomic_load(&session->module[LIBRARY].state), CA_MODULE_INDEXED);
	assert_true(ca_objects_in_scope(objects, APP));
	assert_false(ca_objects_in_scope(objects, LIBRARY));
	assert_int_equal(ca_objects_taken(objects, LIBRARY), CA_OBJECTS_NOT_ASKED);
	assert_false(ca_index_has_lines(before));
	busy = in_function(LIBRARY, "busy", 0);
	strcpy(path, session->module[LIBRARY].index_path);
	assert_int_equal(ca_regions_new(&regions, CA_MODE_FUNCTION, scope, objects, &catalog, NULL), CA_OK);
	assert_false(ca_regions_count(regions, &busy, 1, 1, false));
	ca_objects_take(objects, LIBRARY);
	for (int i = 0; i < 20000 && ca_objects_taken(objects, LIBRARY) == CA_OBJECTS_PENDING; i++) {
		ca_objects_look(objects);
		wait_ms(1);
	}
	assert_int_equal(ca_objects_taken(objects, LIBRARY), CA_OBJECTS_TAKEN);
	assert_true(ca_objects_in_scope(objects, LIBRARY));
	assert_true(ca_index_has_lines(ca_objects_index(objects, LIBRARY)));
	/* what others may hold is still there: in this process, and for runtimes that map it later */
	assert_true(ca_index_functions(before) > 0);
	assert_string_equal(session->module[LIBRARY].index_path, path);
	assert_int_equal(access(path, R_OK), 0);
	/* "nothing" has been remembered of the place */
	assert_false(ca_regions_count(regions, &busy, 1, 1, false));
	ca_regions_rescope(regions, LIBRARY);
	assert_true(ca_regions_count(regions, &busy, 1, 1, false));
	assert_int_equal(catalog.regions, 1);
	assert_string_equal(catalog.region[0].name, "busy");
	ca_regions_free(regions);
	ca_catalog_fini(&catalog);
}

/* More places than there is room for at first: each is known again, and counts once a sample. */
static void test_many_places(void **state)
{
	enum { PLACES = 20000 };
	ca_place busy = in_function(APP, "work", 0), place;
	struct ca_catalog catalog = { 0 };
	struct ca_regions *regions;

	(void)state;
	assert_int_equal(ca_regions_new(&regions, CA_MODE_FUNCTION, scope, objects, &catalog, NULL), CA_OK);
	for (unsigned round = 1; round <= 2; round++) {
		for (unsigned i = 0; i < PLACES; i++) {
			ca_place frame[] = { CA_PLACE(APP, UINT64_C(0x1000000) + i), busy };

			assert_true(ca_regions_count(regions, frame, 2, 1, false));
			assert_false(ca_regions_count(regions, frame, 1, 1, false));
		}
		assert_int_equal(ca_regions_samples(regions, 1), round * PLACES);
	}
	place = in_function(APP, "begins", 0);
	assert_true(ca_regions_count(regions, &place, 1, 3, false));
	assert_int_equal(catalog.regions, 2);
	assert_int_equal(ca_regions_samples(regions, 2), 3);
	ca_regions_free(regions);
	ca_catalog_fini(&catalog);
}

static void test_take_fails(void **state)
{
	(void)state;
	add_module(MODULES, "none.so", false);
	assert_int_equal(atomic_load(&session->module[MODULES].state), CA_MODULE_FAILED);
	ca_objects_take(objects, MODULES);
	for (int i = 0; i < 20000 && ca_objects_taken(objects, MODULES) == CA_OBJECTS_PENDING; i++) {
		ca_objects_look(objects);
		wait_ms(1);
	}
	assert_int_equal(ca_objects_taken(objects, MODULES), CA_OBJECTS_FAILED);
	assert_false(ca_objects_in_scope(objects, MODULES));
}

static void drop(struct ca_point_stacks *samples, struct ca_point_stacks_found *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ca_point_name_fini(&out[i].name);
	free(samples->frame);
}

static size_t find(const struct ca_point_stacks *samples, struct ca_point_stacks_found *out)
{
	size_t used;

	return ca_point_stacks_find(samples, session, objects, out, &used);
}

static const struct ca_point_stacks_found *found(const struct ca_point_stacks_found *all, size_t n,
						 const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(all[i].name.text, name))
			return &all[i];
	return NULL;
}

/* All frames of a stack are kept, one stack behind the other, up to a number of stacks. */
static void test_add(void **state)
{
	static const ca_place frame[] = { 11, 12, 13, 14, 15 };
	static const unsigned frames[] = { 3, 1, 0, 5, 2 };
	static struct ca_point_stacks samples;
	size_t first = 0;

	(void)state;
	for (size_t i = 0; i < CA_COUNT(frames); i++) {
		assert_true(ca_point_stacks_add(&samples, frame, frames[i], 7 + (unsigned)i, i % 2));
		assert_int_equal(samples.n, i + 1);
		assert_int_equal(samples.running, i / 2 + 1);
		assert_int_equal(samples.sample[i].first, first);
		assert_int_equal(samples.sample[i].frames, frames[i]);
		assert_int_equal(samples.sample[i].weight, 7 + i);
		assert_int_equal(samples.sample[i].waiting, i % 2);
		assert_int_equal(samples.frames, first + frames[i]);
		first += frames[i];
	}
	for (size_t i = 0; i < CA_COUNT(frames); i++)
		for (unsigned k = 0; k < frames[i]; k++)
			assert_int_equal(samples.frame[samples.sample[i].first + k], frame[k]);
	while (samples.n < CA_CANDIDATE_SAMPLES)
		assert_true(ca_point_stacks_add(&samples, frame, 1, 1, false));
	first = samples.frames;
	assert_false(ca_point_stacks_add(&samples, frame, 1, 1, false));
	assert_int_equal(samples.n, CA_CANDIDATE_SAMPLES);
	assert_int_equal(samples.frames, first);
	free(samples.frame);
}

/* Two functions of one name: a candidate stands for whatever its name counts. */
static void test_same_name(void **state)
{
	static struct ca_point_stacks samples;
	static struct ca_point_stacks_found out[CA_POINT_STACKS_FOUND];
	const struct ca_point_stacks_found *work;
	size_t n;

	(void)state;
	for (unsigned i = 0; i < 100; i++) {
		ca_place frame[] = { in_function(APP, "work", i % 4 == 0), in_function(APP, "main", 0) };

		assert_true(ca_point_stacks_add(&samples, frame, 2, 1, false));
	}
	n = find(&samples, out);
	work = found(out, n, "work");
	assert_non_null(work);
	assert_int_equal(work->samples, 100);
	for (unsigned i = 0; i < 100; i++)
		assert_true(work->inside[i / 64] >> (i % 64) & 1);
	for (size_t i = 0; i < n; i++)
		assert_ptr_equal(found(out, n, out[i].name.text), &out[i]);
	drop(&samples, out, n);
}

/* As if samples lay at all addresses of that line of b.c. */
static void sample_line(struct ca_point_stacks *samples, unsigned number)
{
	const struct ca_index *index = ca_objects_index(objects, APP);
	struct ca_index_line line;
	unsigned n = 0;

	for (size_t i = 0; i < ca_index_lines(index); i++) {
		ca_index_line_at(index, i, &line);
		for (uint64_t at = line.low;
		     line.line == number && strstr(line.file, "b.c") && at < line.high && n < 200;
		     at++, n++) {
			ca_place frame = CA_PLACE(APP, at);

			assert_true(ca_point_stacks_add(samples, &frame, 1, 1, false));
		}
	}
	assert_true(n > 0);
}

/* A loop that has its line for itself is named by it. */
static void test_one_loop(void **state)
{
	static struct ca_point_stacks samples;
	static struct ca_point_stacks_found out[CA_POINT_STACKS_FOUND];
	size_t n;

	(void)state;
	sample_line(&samples, 10);
	n = find(&samples, out);
	assert_non_null(found(out, n, "b.c:10"));
	for (size_t i = 0; i < n; i++)
		assert_null(strstr(out[i].name.text, "+0x"));
	drop(&samples, out, n);
}

/* Two loops on one line: its number would count both, so each has an address. */
static void test_two_loops(void **state)
{
	static struct ca_point_stacks samples;
	static struct ca_point_stacks_found out[CA_POINT_STACKS_FOUND];
	size_t n, loops = 0;

	(void)state;
	sample_line(&samples, 5);
	n = find(&samples, out);
	assert_null(found(out, n, "b.c:5"));
	for (size_t i = 0; i < n; i++)
		loops += !strncmp(out[i].name.text, "work+0x", 7);
	assert_int_equal(loops, 2);
	drop(&samples, out, n);
}

/* Another program in the run (tar, which starts gzip): a name alone would be looked for in the command's own. */
static void test_two_programs(void **state)
{
	static struct ca_point_stacks samples;
	static struct ca_point_stacks_found out[CA_POINT_STACKS_FOUND];
	size_t n;

	(void)state;
	strcpy(session->module[MODULES].path, "/bin/other");
	session->module[MODULES].main = true;
	atomic_store(&session->modules_used, MODULES + 1);
	sample_line(&samples, 10);
	n = find(&samples, out);
	assert_null(found(out, n, "b.c:10"));
	assert_non_null(found(out, n, "app!b.c:10"));
	drop(&samples, out, n);
	atomic_store(&session->modules_used, MODULES);
}

/* A loop that begins its function, in a way that --progress takes. */
static void test_first_instruction(void **state)
{
	static struct ca_point_stacks samples;
	static struct ca_point_stacks_found out[CA_POINT_STACKS_FOUND];
	ca_place frame = in_function(APP, "begins", 0);
	size_t n;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		assert_true(ca_point_stacks_add(&samples, &frame, 1, 1, false));
	n = find(&samples, out);
	assert_non_null(found(out, n, "begins+0x0"));
	drop(&samples, out, n);
}

/* One open text for a module, whoever asks. */
static void test_text(void **state)
{
	struct ca_text *text = ca_objects_text(objects, APP);
	ca_place work = in_function(APP, "work", 0);
	uint64_t low, high;

	(void)state;
	assert_non_null(text);
	assert_ptr_equal(ca_objects_text(objects, APP), text);
	assert_true(ca_text_function(text, CA_PLACE_OFFSET(work), &low, &high));
	assert_int_equal(low, CA_PLACE_OFFSET(work) - 1);
	assert_non_null(ca_objects_text(objects, LIBRARY));
	assert_ptr_not_equal(ca_objects_text(objects, LIBRARY), text);
	/* not indexed, or not a module at all */
	assert_null(ca_objects_text(objects, MODULES));
	assert_null(ca_objects_text(objects, MODULES + 1));
	assert_null(ca_objects_text(objects, CA_MAX_MODULES));
}

/* ... and for all runs of a sweep, as long as it is the same file. */
static void test_texts(void **state)
{
	struct ca_text *text = ca_texts_open(texts, fixture_path("lib.so"), NULL);

	(void)state;
	assert_non_null(text);
	assert_ptr_equal(ca_objects_text(objects, LIBRARY), text);
	assert_ptr_equal(ca_texts_open(texts, fixture_path("lib.so"), NULL), text);
	assert_int_equal(fixture_run("touch -d 2001-01-01 lib.so"), 0);
	assert_ptr_not_equal(ca_texts_open(texts, fixture_path("lib.so"), NULL), text);
	assert_int_equal(fixture_run("cp lib.so copy.so"), 0);
	assert_non_null(ca_texts_open(texts, fixture_path("copy.so"), NULL));
	assert_null(ca_texts_open(texts, fixture_path("missing.so"), NULL));
	assert_null(ca_texts_open(texts, fixture_path("l.c"), NULL));
	assert_null(ca_texts_open(texts, fixture_path("l.c"), NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_take),
		cmocka_unit_test(test_many_places),
		cmocka_unit_test(test_take_fails),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_same_name),
		cmocka_unit_test(test_one_loop),
		cmocka_unit_test(test_two_loops),
		cmocka_unit_test(test_two_programs),
		cmocka_unit_test(test_first_instruction),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}

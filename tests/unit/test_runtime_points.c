/* SPDX-License-Identifier: MIT */
/* causal/runtime/points.c, wanted.c and wrap_rights.c: progress points of notes and of the command
 * line are placed once their library has an index; libraries that come and go; visits of nobody's.
 * Modules, indexes and patching are stood in for. */
#include "causal/runtime/patch.h"
#include "causal/runtime/requested.h"
#include "causal/runtime/wrap.h"
#include "core/log.h"
#include "sampler/modules.h"
#include "tests/unit/runtime.h"
#include <errno.h>

enum { MODULES = 3, PROBES = 6, TEXT = 256 };
#define SECOND UINT64_C(1000000000)

/* ---- what stands in ------------------------------------------------------------------------------------ */
static struct ca_loaded loaded[MODULES];
static unsigned modules_loaded, scans, logs, installs, failures, index_looks;
static bool scan_finds, indexed[MODULES];
static struct ca_index_probe probe[MODULES][PROBES];
static unsigned probes[MODULES];
static struct ca_site installed[32];
static uint64_t scan_takes; /* ns */
static uint32_t install_size[32];
static _Alignas(16) uint8_t text[MODULES][TEXT];

bool ca_modules_scan(void)
{
	uint64_t end = ca_clock_thread_cpu() + scan_takes;

	while (ca_clock_thread_cpu() < end)
		;
	scans++;
	errno = 99;
	return scan_finds;
}

struct ca_loaded *ca_modules_at(unsigned i)
{
	return i < modules_loaded ? &loaded[i] : NULL;
}

const struct ca_index *ca_modules_index(struct ca_loaded *l)
{
	index_looks++;
	return indexed[l - loaded] ? (const struct ca_index *)probe[l - loaded] : NULL;
}

size_t ca_index_probes(const struct ca_index *index)
{
	return probes[(const struct ca_index_probe(*)[PROBES])index -
		      (const struct ca_index_probe(*)[PROBES])probe];
}

void ca_index_probe_at(const struct ca_index *index, size_t i, struct ca_index_probe *out)
{
	assert_true(i < ca_index_probes(index));
	*out = ((const struct ca_index_probe *)index)[i];
}

unsigned ca_patch_install(const struct ca_site *site, size_t n, bool (*bias)(uint32_t, uintptr_t *))
{
	assert_true(bias == ca_modules_bias);
	assert_true(installs < CA_COUNT(installed));
	installed[installs] = *site;
	install_size[installs++] = (uint32_t)n;
	return failures;
}

void ca_log(enum ca_log_level level, const char *format, ...)
{
	assert_int_equal(level, CA_LOG_ERROR);
	assert_non_null(format);
	logs++;
}

/* ---- helpers ------------------------------------------------------------------------------------------- */
static const uint8_t nop5[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
static uint64_t now; /* ahead of the clock; the files' own state goes on from test to test */

static void add_probe(unsigned module, unsigned at, const char *provider, const char *name, bool nop)
{
	if (nop)
		memcpy(text[module] + at, nop5, sizeof nop5);
	probe[module][probes[module]++] =
		(struct ca_index_probe){ .address = at, .provider = provider, .name = name, .arguments = "" };
}

static void set_state(unsigned module, enum ca_module_state state)
{
	atomic_store(&s->module[loaded[module].module].state, state);
}

/* As the conductor does. */
static void want(uint32_t module, uint64_t address, uint32_t number)
{
	s->requested[number] = (struct ca_site){ .module = module, .address = address, .length = 5 };
	atomic_store(&s->requested_used, number + 1);
}

static int set_up(void **state)
{
	if (rt_set_up(state))
		return -1;
	memset(loaded, 0, sizeof loaded);
	memset(text, 0x90, sizeof text);
	memset(probes, 0, sizeof probes);
	memset(indexed, 0, sizeof indexed);
	modules_loaded = MODULES;
	for (unsigned i = 0; i < MODULES; i++) {
		loaded[i].module = 10 + i;
		loaded[i].bias = loaded[i].low = (uintptr_t)text[i];
		loaded[i].high = loaded[i].low + TEXT;
		set_state(i, CA_MODULE_INDEXED);
	}
	scan_finds = false;
	ca_rt.patching = true;
	ca_patch_on_trap = NULL;
	now = now ? now + 100 * SECOND : ca_clock_now() + 1000 * SECOND;
	/* nothing is left over from the test before */
	ca_requested_changed();
	ca_points_follow(now, false);
	now += 100 * SECOND;
	ca_points_follow(now, false);
	now += 100 * SECOND;
	for (unsigned i = 0; i < MODULES; i++)
		loaded[i].mark = false;
	scans = logs = installs = failures = index_looks = 0;
	return 0;
}

/* ---- the notes of causal.h ------------------------------------------------------------------------------ */
static void notes_become_points(void **state)
{
	static const enum ca_point_kind kinds[] = { CA_POINT_THROUGHPUT, CA_POINT_BEGIN, CA_POINT_END };

	(void)state;
	indexed[1] = true;
	add_probe(1, 0, "causal", "request", true);
	add_probe(1, 16, "causal_begin", "item", true);
	add_probe(1, 32, "causal_end", "item", true);
	add_probe(1, 48, "libc", "item", true);
	add_probe(1, 64, "causal", "not a nop", false);
	ca_points_patch_loaded();
	assert_int_equal(installs, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct ca_site *site = &installed[i];
		const struct ca_progress_point *p = &s->point[site->point];

		assert_int_equal(install_size[i], 1);
		assert_int_equal(site->module, 11);
		assert_int_equal(site->kind, CA_SITE_COUNT);
		assert_int_equal(site->address, 16 * i);
		assert_int_equal(site->length, 5);
		assert_memory_equal(site->original, nop5, 5);
		assert_int_equal(site->hooks, 1);
		assert_int_equal(site->hook[0].at, 0);
		/* the times of a latency point's visits are wanted, too */
		assert_int_equal(site->hook[0].kind, i ? CA_SITE_STAMP : CA_SITE_VISIT);
		/* in place of the nop: back to behind it */
		assert_int_equal(site->code_length, 5);
		assert_int_equal(site->code[0], 0xe9);
		assert_int_equal(site->fixups, 1);
		assert_int_equal(site->fixup[0].at, 1);
		assert_int_equal(site->fixup[0].end, 5);
		assert_int_equal(site->fixup[0].type, CA_FIXUP_REL);
		assert_int_equal(site->fixup[0].target, 16 * i + 5);
		assert_int_equal(p->kind, kinds[i]);
		assert_string_equal(p->name, i ? "item" : "request");
	}
	assert_true(installed[1].point != installed[2].point);
	ca_points_patch_loaded(); /* once */
	assert_int_equal(installs, 3);
	assert_int_equal(logs, 0);
}

static void notes_at_the_edges(void **state)
{
	(void)state;
	indexed[0] = true;
	memcpy(text[0] + TEXT - 5, nop5, 5);
	add_probe(0, TEXT - 5, "causal", "last", true);
	add_probe(0, TEXT - 4, "causal", "behind", false);
	ca_points_patch_loaded();
	assert_int_equal(installs, 1);
	loaded[0].mark = false;
	loaded[0].low++;
	probes[0] = 0;
	add_probe(0, 0, "causal", "before", true);
	ca_points_patch_loaded();
	assert_int_equal(installs, 1);
	failures = 1;
	loaded[0].mark = false;
	probes[0] = 0;
	add_probe(0, 100, "causal", "hopeless", true);
	ca_points_patch_loaded();
	assert_int_equal(installs, 2);
	assert_int_equal(logs, 1);
	ca_rt.patching = false; /* there is no way */
	loaded[0].mark = false;
	ca_points_patch_loaded();
	assert_int_equal(installs, 2);
}

static void more_points_than_fit(void **state)
{
	(void)state;
	for (unsigned i = 0; i < CA_MAX_POINTS; i++)
		atomic_store(&s->point[i].state, CA_SLOT_LIVE);
	indexed[0] = true;
	add_probe(0, 0, "causal", "one more", true);
	ca_points_patch_loaded();
	assert_int_equal(installs, 0);
	assert_int_equal(logs, 1);
}

/* ---- libraries --------------------------------------------------------------------------------------------- */
static void index_that_comes_later(void **state)
{
	(void)state;
	add_probe(2, 0, "causal", "late", true);
	set_state(2, CA_MODULE_REGISTERED);
	set_state(0, CA_MODULE_FAILED);
	indexed[1] = true;
	ca_points_patch_loaded();
	assert_int_equal(installs, 0);
	indexed[2] = true;
	set_state(2, CA_MODULE_INDEXED);
	ca_points_follow(now += SECOND, false);
	assert_int_equal(installs, 1);
	assert_int_equal(scans, 0);
	/* now nothing is waited for: the one that failed never comes */
	index_looks = 0;
	ca_points_follow(now += SECOND, false);
	assert_int_equal(index_looks, 0);
	/* not more often than every 25 ms */
	loaded[2].mark = false;
	indexed[2] = false;
	ca_points_patch_loaded();
	ca_points_follow(now += SECOND, false);
	index_looks = 0;
	ca_points_follow(now + 25000000, false);
	assert_int_equal(index_looks, 0);
	ca_points_follow(now + 25000001, false);
	assert_int_equal(index_looks, MODULES);
	indexed[2] = true;
	ca_points_patch_loaded();
}

static void code_in_no_file(void **state)
{
	uint64_t pause = 5000000;
	unsigned n = 0;

	(void)state;
	ca_points_follow(now, false);
	assert_int_equal(scans, 0);
	scan_finds = true; /* which takes patience back to its start */
	ca_points_follow(now += 100 * SECOND, true);
	assert_int_equal(scans, 1);
	scan_finds = false;
	for (; pause < 5 * SECOND; pause *= 2, n++) {
		scans = 0;
		ca_points_follow(now + pause, true);
		assert_int_equal(scans, 0);
		ca_points_follow(now += pause + 1, true); /* and each time in vain it takes longer */
		assert_int_equal(scans, 1);
	}
	assert_int_equal(n, 10);
	ca_points_follow(now + pause, true);
	assert_int_equal(scans, 1);
	ca_points_follow(now += pause + 1, true);
	ca_points_follow(now + pause, true); /* no longer than that */
	ca_points_follow(now += pause + 1, true);
	assert_int_equal(scans, 3);
	/* what is found has its points placed */
	indexed[0] = scan_finds = true;
	add_probe(0, 0, "causal", "found", true);
	ca_points_follow(now += 100 * SECOND, true);
	assert_int_equal(installs, 1);
	ca_points_follow(now += 5000001, true); /* and it is worth looking again soon */
	assert_int_equal(scans, 5);
	/* but not where looks take long */
	scan_takes = 2000000;
	ca_points_follow(now += 100 * SECOND, true);
	ca_points_follow(now + 50 * scan_takes, true);
	assert_int_equal(scans, 6);
	scan_takes = 0;
}

/* The first of all: later on the files' state has been ahead of the clock. */
static void several_looks_for_a_change(void **state)
{
	uint64_t since;

	(void)state;
	indexed[0] = true;
	add_probe(0, 0, "causal", "again", true);
	ca_points_patch_loaded();
	assert_int_equal(installs, 1);
	atomic_store(&ca_rt.on, false);
	ca_points_libraries_change();
	atomic_store(&ca_rt.on, true);
	ca_points_follow(now, false);
	assert_int_equal(scans, 0);
	ca_points_libraries_change();
	since = ca_clock_now();
	ca_points_follow(since, false);
	assert_int_equal(scans, 1);
	assert_int_equal(installs, 2); /* the same library may have been opened anew */
	ca_points_follow(since + 5000000, false);
	assert_int_equal(scans, 1);
	ca_points_follow(since + 5000001, false);
	assert_int_equal(scans, 2);
	assert_int_equal(installs, 3);
	ca_points_follow(since + 20000000, true);
	assert_int_equal(scans, 3);
	ca_points_follow(since + 200000001, false); /* the last look */
	assert_int_equal(scans, 4);
	ca_points_follow(since + 300000000, false);
	assert_int_equal(scans, 4);
	/* where looks take long, as among hundreds of libraries, they take a tenth of the time */
	scan_takes = 4000000;
	installs = 0;
	while (ca_clock_now() < since + 300000000)
		;
	ca_points_libraries_change();
	since = ca_clock_now();
	ca_points_follow(since, false);
	assert_int_equal(scans, 5);
	ca_points_follow(since + 10 * scan_takes, false);
	assert_int_equal(scans, 5);
	ca_points_follow(since + 20 * scan_takes, false); /* other things take some, too */
	assert_int_equal(scans, 6);
	scan_takes = 0;
	ca_points_follow(since + 300000000, false);
	assert_int_equal(scans, 7);
}

/* ---- points of the command line ------------------------------------------------------------------------------ */
static void wanted_points(void **state)
{
	(void)state;
	want(10, 0, 0);
	want(10, 8, 1);
	want(12, 0, 2);
	want(10, 16, 3);
	assert_true(ca_requested_changed());
	assert_false(ca_requested_changed());
	indexed[0] = true;
	ca_points_patch_loaded();
	assert_int_equal(installs, 2); /* in two pieces, as they were published */
	assert_int_equal(install_size[0], 2);
	assert_int_equal(installed[0].address, 0);
	assert_int_equal(install_size[1], 1);
	assert_int_equal(installed[1].address, 16);
	indexed[2] = true;
	ca_points_patch_loaded();
	assert_int_equal(installs, 3);
	assert_int_equal(installed[2].module, 12);
	/* while the program runs */
	want(10, 24, 4);
	ca_points_follow(now += SECOND, false);
	assert_int_equal(installs, 6); /* all anew: those that stand are left as they are */
	ca_points_follow(now += SECOND, false);
	assert_int_equal(installs, 6);
	assert_int_equal(logs, 0);
}

static void wanted_points_that_fail(void **state)
{
	(void)state;
	want(10, 0, 0);
	want(10, 8, 1);
	indexed[0] = true;
	failures = 1;
	ca_points_patch_loaded();
	loaded[0].mark = false;
	ca_points_patch_loaded();
	assert_int_equal(installs, 2);
	assert_int_equal(logs, 1);                              /* said once */
	atomic_store(&s->requested_used, CA_MAX_REQUESTED + 7); /* nonsense is not followed */
	s->requested[CA_MAX_REQUESTED - 1].module = 99;
	loaded[0].mark = false;
	ca_points_patch_loaded();
	assert_int_equal(install_size[2], 2);
}

static void semaphores_of_probes(void **state)
{
	uint16_t *semaphore = (uint16_t *)(void *)(text[0] + 200);

	(void)state;
	memset(semaphore, 0, 8);
	semaphore[1] = 5;
	want(10, 32, 0);
	indexed[0] = true;
	for (unsigned i = 0; i < 4; i++)
		add_probe(0, 30 + 2 * i, "usdt", "x", false); /* at 30, 32, 34, 36: the site has [32, 37) */
	probe[0][0].semaphore = 200 + 4;
	probe[0][1].semaphore = 200;
	probe[0][2].semaphore = 200 + 2;
	probe[0][3].semaphore = 0;
	ca_points_patch_loaded();
	assert_int_equal(semaphore[0], 1); /* else the program would pass the probe by */
	assert_int_equal(semaphore[1], 5); /* somebody else has it on */
	assert_int_equal(semaphore[2], 0); /* not of this site */
	probe[0][0].address = 37;
	loaded[0].mark = false;
	ca_points_patch_loaded();
	assert_int_equal(semaphore[2], 0);
}

static unsigned awaited;

static void *make_index(void *unused)
{
	struct timespec nap = { 0, 3000000 };

	(void)unused;
	ca_real.nanosleep(&nap, NULL);
	set_state(awaited, CA_MODULE_INDEXED);
	return NULL;
}

static void waiting_for_all(void **state)
{
	uint64_t before;
	pthread_t id;

	(void)state;
	awaited = 0;
	set_state(0, CA_MODULE_REGISTERED);
	ca_requested_wait(); /* nobody wants it */
	assert_int_equal(ca_real.pthread_create(&id, NULL, make_index, NULL), 0);
	s->requested_anywhere = 1;
	ca_requested_wait();
	assert_int_equal(atomic_load(&s->module[10].state), CA_MODULE_INDEXED);
	ca_real.pthread_join(id, NULL);
	set_state(1, CA_MODULE_FAILED);
	set_state(0, CA_MODULE_FREE);
	before = ca_clock_now();
	ca_requested_wait();                               /* those will not come */
	assert_true(ca_clock_now() - before < 2 * SECOND); /* of three */
	set_state(1, CA_MODULE_CLAIMED);
	atomic_store(&s->heartbeat, 0);
	s->conductor = 0;
	ca_rt.sees_conductor = false;
	ca_requested_wait(); /* nobody is there to make it */
}

/* ---- visits --------------------------------------------------------------------------------------------------- */
static void visits_of_nobody(void **state)
{
	uint64_t before[CA_MAX_POINTS];

	(void)state;
	atomic_store(&s->points_used, 3);
	ca_points_collect();
	for (unsigned i = 0; i < 4; i++)
		before[i] = atomic_load(&s->point[i].shared);
	ca_patch_nobody[0] += 2;
	ca_patch_nobody[2] += 5;
	ca_patch_nobody[3] += 9; /* there is no such point */
	ca_points_collect();
	ca_points_collect(); /* told once */
	assert_int_equal(atomic_load(&s->point[0].shared) - before[0], 2);
	assert_int_equal(atomic_load(&s->point[1].shared) - before[1], 0);
	assert_int_equal(atomic_load(&s->point[2].shared) - before[2], 5);
	assert_int_equal(atomic_load(&s->point[3].shared) - before[3], 0);
	ca_patch_nobody[2]++;
	ca_points_collect();
	assert_int_equal(atomic_load(&s->point[2].shared) - before[2], 6);
}

static void visits_that_trap(void **state)
{
	(void)state;
	ca_points_patch_loaded();
	assert_non_null(ca_patch_on_trap);
	ca_patch_on_trap(CA_MAX_POINTS - 1);
	ca_patch_on_trap(CA_MAX_POINTS);
	ca_patch_on_trap(CA_MAX_POINTS - 1);
	assert_int_equal(atomic_load(&s->point[CA_MAX_POINTS - 1].trapped), 2);
	assert_int_equal(atomic_load(&s->module[0].state), 0); /* which lies behind */
}

/* ---- Coz's interface -------------------------------------------------------------------------------------------- */
struct counter {
	uint64_t count, backoff;
};
struct counter *_coz_get_counter(int type, const char *name);
void _coz_pre_block(void);
void _coz_post_block(int skip);
void _coz_catch_up(void);

static void programs_for_coz(void **state)
{
	struct counter *c;

	(void)state;
	c = _coz_get_counter(CA_POINT_BEGIN, "x");
	assert_non_null(c);
	c->count += 3;
	assert_int_equal(atomic_load(&ca_points_get(CA_POINT_BEGIN, "x")->shared), 3);
	assert_ptr_equal(_coz_get_counter(CA_POINT_BEGIN, "x"), c);
	assert_true(_coz_get_counter(CA_POINT_END, "x") != c);
	assert_non_null(_coz_get_counter(CA_POINT_THROUGHPUT, "x"));
	assert_null(_coz_get_counter(0, "x"));
	assert_null(_coz_get_counter(CA_POINT_END + 1, "x"));
	assert_null(_coz_get_counter(CA_POINT_BEGIN, NULL));
	me->meets = 0;
	_coz_pre_block();
	_coz_post_block(0);
	_coz_catch_up();
	assert_int_equal(me->meets, 2);
	ca_rt.session = NULL;
	assert_null(_coz_get_counter(CA_POINT_BEGIN, "x"));
}

/* ---- before the program gives up its rights -------------------------------------------------------------------- */
static int real_seteuid(uid_t user)
{
	assert_int_equal(user, 12345);
	assert_int_equal(errno, 5);
	return 7;
}

static void indexes_before_rights_go(void **state)
{
	struct ca_real saved = ca_real;
	uint64_t before;
	pthread_t id;

	(void)state;
	ca_real.seteuid = real_seteuid;
	awaited = 1;
	set_state(1, CA_MODULE_REGISTERED); /* it is being made */
	set_state(2, CA_MODULE_FAILED);
	assert_int_equal(saved.pthread_create(&id, NULL, make_index, NULL), 0);
	errno = 5;
	assert_int_equal(seteuid(12345), 7);
	assert_int_equal(atomic_load(&s->module[11].state), CA_MODULE_INDEXED);
	assert_int_equal(scans, 1);
	assert_int_equal(index_looks, MODULES);
	saved.pthread_join(id, NULL);
	errno = 5;
	before = ca_clock_now();
	assert_int_equal(seteuid(12345), 7); /* nothing is waited for */
	assert_true(ca_clock_now() - before < 2 * SECOND);
	assert_int_equal(scans, 2);
	/* a child of vfork, and who is off */
	ca_rt.pid++;
	seteuid(12345);
	ca_rt.pid--;
	atomic_store(&ca_rt.on, false);
	assert_int_equal(seteuid(12345), 7);
	assert_int_equal(scans, 2);
	/* nobody makes it any more */
	atomic_store(&ca_rt.on, true);
	set_state(1, CA_MODULE_CLAIMED);
	atomic_store(&s->heartbeat, 0);
	seteuid(12345);
	assert_int_equal(scans, 3);
	ca_real = saved;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(several_looks_for_a_change),
		TEST(notes_become_points),
		TEST(notes_at_the_edges),
		TEST(more_points_than_fit),
		TEST(index_that_comes_later),
		TEST(code_in_no_file),
		TEST(wanted_points),
		TEST(wanted_points_that_fail),
		TEST(semaphores_of_probes),
		TEST(waiting_for_all),
		TEST(visits_of_nobody),
		TEST(visits_that_trap),
		TEST(programs_for_coz),
		TEST(indexes_before_rights_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

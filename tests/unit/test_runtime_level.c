/* SPDX-License-Identifier: MIT */
/* causal/runtime/level.c: who is behind in its share of a CPU, and by how much. The session and the thread are made by
 * hand, and standing still is only noted; on which CPU we are, and how long we waited for one, the kernel tells. */
#include "causal/runtime/ledger.h"
#include "causal/runtime/level.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { HALF = 500000, APART = 1000000 };

struct ca_runtime ca_rt;
static struct ca_thread *me;
static unsigned cpu;
static uint64_t stood;

void ca_ledger_stand_still(struct ca_thread *t, uint64_t ns)
{
	t->level.beyond += ns;
	stood += ns;
}

static int set_up(void **state)
{
	cpu_set_t here;

	(void)state;
	ca_rt.session = aligned_alloc(4096, sizeof *ca_rt.session);
	me = calloc(1, sizeof *me);
	if (!ca_rt.session || !me)
		return -1;
	memset(ca_rt.session, 0, sizeof *ca_rt.session);
	cpu = (unsigned)sched_getcpu();
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof here, &here))
		return -1;
	me->experiment = 1;
	me->speedup = HALF;
	me->fine = &ca_rt.session->fine[0];
	stood = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(ca_rt.session);
	free(me);
	return 0;
}

/* Others have used so much of its CPU beyond virtual time. */
static void others(uint64_t ns)
{
	atomic_fetch_add(&ca_rt.session->cpu[cpu].beyond, ns);
	atomic_fetch_add(&ca_rt.session->cpu[cpu].made_up, ns);
}

static void look(void)
{
	me->level.looked = ca_clock_now() - APART;
	ca_level_make_up(me, ca_clock_now());
}

/* It has a CPU for half of the time, and waits for it else. */
static void shares_a_cpu(void)
{
	me->level.on = me->level.off = me->level.waited = 40 * MS;
	look();
}

static void test_behind(void **state)
{
	(void)state;
	shares_a_cpu();
	assert_int_equal(stood, 0);
	others(MS);
	look();
	assert_in_range(stood, MS - 1000, MS); /* as much as they */
	look();
	look();
	assert_in_range(stood, MS - 1000, MS); /* that was enough */
	assert_in_range(atomic_load(&ca_rt.session->cpu[cpu].beyond), 2 * MS - 1000, 2 * MS);
}

static void test_little(void **state)
{
	(void)state;
	shares_a_cpu();
	others(MS / 10);
	look();
	assert_int_equal(stood, 0);
	others(MS / 5);
	look();
	assert_in_range(stood, MS * 3 / 10 - 1000, MS * 3 / 10); /* nothing was forgotten */
}

/* Its own comes first; and the scheduler makes up for it as it waits for others. */
static void test_ahead(void **state)
{
	(void)state;
	shares_a_cpu();
	me->level.beyond += 2 * MS;
	look();
	assert_int_equal(atomic_load(&ca_rt.session->cpu[cpu].beyond), 2 * MS);
	assert_in_range(atomic_load(&ca_rt.session->cpu[cpu].made_up), APART / 2, APART / 2 + 1000);
	for (int i = 0; i < 3; i++)
		look();
	assert_int_equal(atomic_load(&ca_rt.session->cpu[cpu].made_up), 2 * MS);
	others(MS);
	look();
	assert_int_equal(stood, 0);
	others(2 * MS);
	look();
	assert_in_range(stood, MS - 1000, MS);
}

/* Much is made up for bit by bit. */
static void test_much(void **state)
{
	(void)state;
	shares_a_cpu();
	others(15 * MS);
	look();
	assert_int_equal(stood, 10 * MS);
	look();
	look();
	assert_in_range(stood, 15 * MS - 1000, 15 * MS);
}

/* While it slept nobody kept it from the CPU, and of half a wait half counts. */
static void test_asleep(void **state)
{
	(void)state;
	me->level.on = me->level.off = 40 * MS;
	look();
	others(9 * MS);
	look();
	assert_int_equal(stood, 0);
	me->level.waited = 20 * MS;
	others(2 * MS);
	look();
	assert_in_range(stood, MS - 1000, MS);
}

/* Who hardly waits, as it sleeps most of the time, and runs at once when it is woken, shares with others no more of the
 * CPU in those waits. */
static void test_seldom_waits(void **state)
{
	(void)state;
	me->level.on = 80 * MS;
	me->level.off = me->level.waited = 10 * MS;
	look();
	others(MS);
	look();
	assert_in_range(stood, MS - 1000, MS);
}

/* What it has had beyond virtual time is forgotten while it sleeps, as the others catch up with it; nobody has to
 * stand still for that. */
static void test_slept_off(void **state)
{
	(void)state;
	me->level.on = 40 * MS;
	me->level.off = 120 * MS;
	me->level.waited = 30 * MS;
	look();
	me->level.beyond += 2 * MS;
	for (int i = 0; i < 3; i++)
		look();
	assert_int_equal(atomic_load(&ca_rt.session->cpu[cpu].beyond), 2 * MS);
	assert_in_range(atomic_load(&ca_rt.session->cpu[cpu].made_up), MS / 2 - 1000, MS / 2);
	me->level.waited = 0;
	me->level.beyond += 2 * MS;
	for (int i = 0; i < 3; i++)
		look();
	assert_in_range(atomic_load(&ca_rt.session->cpu[cpu].made_up), MS / 2 - 1000, MS / 2);
}

/* Nor is it remembered for ever of who has had the CPU for himself. */
static void test_alone(void **state)
{
	(void)state;
	look();
	me->level.beyond += 500 * MS;
	look();
	shares_a_cpu();
	for (int i = 0; i < 100; i++)
		look();
	assert_int_equal(atomic_load(&ca_rt.session->cpu[cpu].made_up), 10 * MS);
}

static void test_not_now(void **state)
{
	(void)state;
	shares_a_cpu();
	others(MS);
	ca_level_make_up(me, ca_clock_now()); /* it has just looked */
	me->depth = 1;
	look(); /* in S */
	me->depth = 0;
	me->speedup = 0;
	look();
	me->speedup = HALF;
	assert_int_equal(stood, 0);
}

/* Another thread lets all stand still already, or died over it. */
static void test_one_at_a_time(void **state)
{
	(void)state;
	shares_a_cpu();
	atomic_store(&ca_rt.session->still_until, ca_clock_now() + 100 * MS);
	others(MS);
	look();
	assert_int_equal(stood, 0);
	atomic_store(&ca_rt.session->still_until, ca_clock_now());
	look();
	assert_true(stood > 0);
	assert_int_equal(atomic_load(&ca_rt.session->still_until), 0);
}

/* Where the kernel does not tell, others hear of it all the same: a limit of CPU time goes by that. */
static void test_blind(void **state)
{
	(void)state;
	me->level.blind = true;
	look();
	me->level.beyond += MS;
	others(5 * MS);
	look();
	assert_int_equal(stood, 0);
	assert_int_equal(atomic_load(&ca_rt.session->cpu[cpu].beyond), 6 * MS);
}

/* It has shared its CPU, and then slept: others have not kept it from the CPU meanwhile. */
static void test_slept(void **state)
{
	(void)state;
	shares_a_cpu();
	me->level.measured = ca_clock_now() - 3600000 * MS;
	me->level.cpu_at = ca_clock_thread_cpu();
	others(1800000 * MS);
	me->level.looked = ca_clock_now() - 3600000 * MS;
	ca_level_make_up(me, ca_clock_now());
	ca_level_tick(me);
	look();
	assert_int_equal(stood, 0);
	assert_int_equal(me->level.unsure, 0);
}

/* Many others take turns: for 90 of 100 ms it waited. */
static void test_many(void **state)
{
	(void)state;
	ca_level_tick(me);
	if (me->level.blind)
		skip();
	shares_a_cpu();
	others(10 * MS);
	me->level.looked -= 100 * MS;
	ca_level_make_up(me, ca_clock_now());
	assert_int_equal(stood, 0);
	me->level.measured -= 100 * MS;
	me->level.queued_at -= 90 * MS;
	me->level.left--;
	ca_level_tick(me);
	assert_int_equal(me->level.unsure, 0);
	assert_in_range(me->level.behind, MS / 4, 10 * MS); /* by its share, which is a small one by now */
	look();
	assert_true(stood > MS / 4);
}

/* Is the kernel, so long after it was last? */
static bool is_asked(uint64_t ago)
{
	uint64_t at = me->level.measured = ca_clock_now() - ago;

	ca_level_tick(me);
	return me->level.measured != at;
}

/* The kernel is not asked at each tick: that takes up to 30 us. But it is before what happened in a long
 * sleep is due. */
static void test_asks_seldom(void **state)
{
	(void)state;
	ca_level_tick(me);
	if (me->level.blind)
		skip();
	assert_false(is_asked(2 * MS));
	assert_true(is_asked(20 * MS));
}

/* Who has a CPU for himself is asked about more seldom: there is nothing to make up for. */
static void test_own_cpu(void **state)
{
	(void)state;
	ca_level_tick(me);
	if (me->level.blind)
		skip();
	for (uint64_t ago = 8 * MS; ago <= 24 * MS; ago += 16 * MS) {
		me->level.on = me->level.off = 40 * MS;
		me->level.waited = MS;
		assert_int_equal(is_asked(ago), ago != 8 * MS);
	}
}

static void without_files(void)
{
	struct rlimit files, none;

	getrlimit(RLIMIT_NOFILE, &files);
	none = files;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	ca_level_tick(me);
	setrlimit(RLIMIT_NOFILE, &files);
}

/* Who has not left the CPU since then has not waited for one: no file says more. Whoever has, has to be asked about. */
static void test_never_left(void **state)
{
	uint64_t queued = 0, at = 0;

	(void)state;
	ca_level_tick(me);
	if (me->level.blind)
		skip();
	/* others may take the CPU just then */
	for (int i = 0; i < 100; i++) {
		me->level.blind = false;
		queued = me->level.queued_at;
		at = me->level.measured = ca_clock_now() - 20 * MS;
		without_files();
		if (!me->level.blind)
			break;
		me->level.blind = false;
		ca_level_tick(me);
	}
	assert_false(me->level.blind);
	assert_true(me->level.measured > at);
	assert_int_equal(me->level.queued_at, queued);
	me->level.left--;
	me->level.measured = ca_clock_now() - 20 * MS;
	without_files();
	assert_true(me->level.blind);
}

/* What another experiment has left behind is over. */
static void test_another_experiment(void **state)
{
	(void)state;
	shares_a_cpu();
	others(MS);
	me->experiment = 2;
	look();
	me->experiment = 3;
	look();
	look();
	assert_int_equal(stood, 0);
}

/* On another CPU others have had their own. */
static void test_another_cpu(void **state)
{
	(void)state;
	shares_a_cpu();
	me->level.cpu = cpu + 1;
	atomic_fetch_add(&ca_rt.session->cpu[cpu + 1].made_up, MS);
	look();
	assert_int_equal(stood, 0);
	assert_int_equal(me->level.cpu, cpu);
}

static void burn(uint64_t ns)
{
	uint64_t until = ca_clock_thread_cpu() + ns;

	while (ca_clock_thread_cpu() < until)
		;
}

static _Atomic bool over;

static void *another(void *unused)
{
	while (!atomic_load(&over))
		burn(MS);
	return unused;
}

/* Two threads on one CPU: each waits for as long as it runs, about. */
static void test_kernel_tells(void **state)
{
	pthread_t thread;

	(void)state;
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, another, NULL), 0);
	ca_level_tick(me);
	assert_int_equal(me->level.on, 0);
	for (int i = 0; i < 30; i++) {
		burn(4 * MS);
		ca_level_tick(me);
	}
	atomic_store(&over, true);
	pthread_join(thread, NULL);
	if (me->level.blind) {
		print_message("not checked: this kernel has no /proc/thread-self/schedstat\n");
		skip();
	}
	assert_true(me->level.on + me->level.off <= 100 * MS);
	assert_true(me->level.on + me->level.off > 50 * MS);
	assert_true(me->level.waited > me->level.on / 4);
	assert_true(me->level.waited <= me->level.off * 11 / 10 + MS);
}

/* It looks as often as it is worth, and where it cannot see it stops trying. */
static void test_cannot_see(void **state)
{
	(void)state;
	me->level.measured = ca_clock_now();
	ca_level_tick(me);
	assert_int_equal(me->level.queued_at, 0);
	me->level.measured = 0;
	without_files();
	assert_true(me->level.blind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_behind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_little, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ahead, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_much, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asleep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_seldom_waits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_slept_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_alone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_not_now, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_one_at_a_time, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_blind, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_slept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_many, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_asks_seldom, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_own_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_never_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_experiment, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_another_cpu, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_kernel_tells, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cannot_see, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_state.c: which processes have yet to place the sites of the selection, and
 * how much CPU time those have had. This process and a child that sleeps play them. */
#include "causal/conductor/conductor_state.h"
#include "core/clock.h"
#include "tests/unit/unit.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SEQ = 4, WORK = 20000000 };
static struct ca_session *session;
static struct ca_conductor conductor;
static pid_t child;

static int set_up(void **state)
{
	(void)state;
	session = aligned_alloc(4096, sizeof *session);
	child = fork();
	if (!child)
		for (;;)
			pause();
	if (!session || child < 0)
		return -1;
	memset(session, 0, sizeof *session);
	memset(&conductor, 0, sizeof conductor);
	conductor.session = session;
	atomic_store(&session->selection.seq, SEQ);
	for (uint32_t p = 0; p < 2; p++) {
		session->process[p].pid = (uint32_t)(p ? child : getpid());
		session->process[p].started = 1;
		atomic_store(&session->process[p].state, CA_SLOT_LIVE);
	}
	atomic_store(&session->processes_used, 2);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	free(session);
	return 0;
}

static void work(void)
{
	uint64_t until = ca_clock_process_cpu(getpid()) + WORK;

	while (ca_clock_process_cpu(getpid()) < until)
		;
}

static void test_patched(void **state)
{
	(void)state;
	assert_false(ca_conductor_patched(&conductor));
	atomic_store(&session->process[0].patched, SEQ);
	assert_false(ca_conductor_patched(&conductor));
	/* it sleeps, and will when it wakes up */
	usleep(120000);
	assert_true(ca_conductor_patched(&conductor));
	atomic_store(&session->process[0].patched, 0); /* who works is waited for */
	assert_false(ca_conductor_patched(&conductor));
	atomic_store(&session->process[0].patched, SEQ);
	memset(&conductor.asleep, 0, sizeof conductor.asleep);
	assert_false(ca_conductor_patched(&conductor));
	atomic_store(&session->process[1].off, 1); /* it never will */
	assert_true(ca_conductor_patched(&conductor));
	atomic_store(&session->process[1].off, 0);
	atomic_store(&session->process[1].state, CA_SLOT_FREE);
	assert_true(ca_conductor_patched(&conductor));
}

/* Who is blocked has no part in it. */
static void test_cpu_time(void **state)
{
	uint64_t ns;

	(void)state;
	work();
	ca_conductor_unplaced_start(&conductor);
	work();
	ns = ca_conductor_unplaced(&conductor);
	assert_in_range(ns, WORK, 50 * (uint64_t)WORK);
	atomic_store(&session->process[0].patched, SEQ);
	assert_true(ca_conductor_unplaced(&conductor) < WORK);
	/* one that began later: all that it has had */
	atomic_store(&session->process[0].patched, 0);
	session->process[0].started = ca_clock_now();
	assert_true(ca_conductor_unplaced(&conductor) >= 2 * (uint64_t)WORK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_patched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_cpu_time, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/conductor/interference.c: were the run's threads kept from running by other programs? */
#include "causal/conductor/interference.h"
#include "core/clock.h"
#include "core/session.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
enum { WORK = 200, TICKS = 50 }; /* ms of a child's work, of which the kernel's ticks may hide some */

/* Over one second on two CPUs: what all CPUs did, what the run used (the driver: nothing), what its threads
 * waited for a CPU. */
static const struct disturb_case {
	const char *what;
	uint64_t busy, run, queue; /* ms */
	bool known, queue_known, expected;
} cases[] = {
	{ "an idle machine", 0, 0, 0, true, true, false },
	{ "our own load", 2000, 2000, 900, true, true, false },
	{ "others on an idle CPU", 1900, 1000, 0, true, true, false },
	{ "a server and its load, which share the CPUs", 1950, 900, 100, true, true, false },
	{ "one thread that gets half of a CPU", 2000, 500, 500, true, true, true },
	{ "two threads and one of others", 2000, 1333, 667, true, true, true },
	{ "eight threads and one of others", 2000, 1777, 6223, true, true, false },
	{ "eight threads and four of others", 2000, 1333, 6667, true, true, true },
	{ "we waited for each other while others did little", 1150, 1000, 900, true, true, false },
	{ "just enough waiting", 2000, 790, 210, true, true, true },
	{ "not quite enough waiting", 2000, 810, 190, true, true, false },
	{ "hardly any others", 1099, 1000, 500, true, true, false },
	{ "ticks are coarse: more own time than all", 990, 1000, 500, true, true, false },
	{ "blind: half a core of others", 1501, 1000, 0, true, false, true },
	{ "blind: less", 1499, 1000, 999, true, false, false },
	{ "nothing is known", 1900, 1000, 500, false, true, false },
};

static void test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		const struct disturb_case *c = &cases[i];
		struct ca_load a = { .time = 500 * MS,
				     .busy = 70000 * MS,
				     .run = 900 * MS,
				     .own = 950 * MS,
				     .queue = 40 * MS,
				     .ran = 800 * MS,
				     .cpus = 2,
				     .known = true,
				     .queue_known = true },
			       b = a;

		b.time += 1000 * MS;
		b.busy += c->busy * MS;
		b.run += c->run * MS;
		b.own += c->run * MS;
		b.queue += c->queue * MS;
		b.ran += c->run * MS;
		b.known = c->known;
		b.queue_known = c->queue_known;
		if (ca_interference_seen(&a, &b) != c->expected)
			fail_msg("%s", c->what);
		a.known = c->known; /* it is enough that one of the two readings lacks it */
		a.queue_known = c->queue_known;
		b.known = b.queue_known = true;
		if (ca_interference_seen(&a, &b) != c->expected)
			fail_msg("%s, from the start", c->what);
	}
}

/* On one CPU, two threads wait for each other half of the time, and for nobody else. */
static void test_one_cpu(void **state)
{
	struct ca_load a = { .known = true, .queue_known = true, .cpus = 1 }, b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 2000 * MS;
	b.run = b.own = b.ran = b.queue = 1000 * MS;
	assert_false(ca_interference_seen(&a, &b));
	b.run = b.own = b.ran = 600 * MS;
	assert_true(ca_interference_seen(&a, &b));
	assert_int_equal(ca_interference_lost(&a, &b), 400 * MS);
	assert_int_equal(ca_interference_queued(&a, &b), 1000 * MS);
	a.queue = 1001 * MS;
	assert_int_equal(ca_interference_queued(&a, &b), 0); /* threads have ended, and took theirs along */
	a.queue = 0;
	b.queue_known = false;
	assert_int_equal(ca_interference_lost(&a, &b), UINT64_MAX);
	assert_int_equal(ca_interference_queued(&a, &b), UINT64_MAX);
}

/* By the text of a thread's stat file; and three threads of this process on one CPU, of two that it may use. */
static void *busy(void *end)
{
	while (!atomic_load((_Atomic bool *)end))
		;
	return NULL;
}

static void test_idle_beside(void **state)
{
	static const char after[] =
		" 1 1 1 0 -1 4194304 1 0 0 0 1 0 0 0 20 0 3 0 1 2 3 4 5 6 7 8 9 0 0 0 0 0 0 0 17 ";
	struct ca_session *s =
		mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	_Atomic bool end = false;
	char text[200];
	pthread_t thread[2];
	unsigned cpu = 0, most = 0;
	cpu_set_t one, all;

	(void)state;
	snprintf(text, sizeof text, "7 (a) R (b)) R%s5 0", after);
	assert_true(ca_interference_parse_thread(text, &cpu));
	assert_int_equal(cpu, 5);
	snprintf(text, sizeof text, "7 (R) S%s5 0", after);
	assert_false(ca_interference_parse_thread(text, &cpu));
	assert_false(ca_interference_parse_thread("7 (R) R 1 1", &cpu));
	assert_false(ca_interference_parse_thread("", &cpu));
	assert_true(s != MAP_FAILED);
	atomic_store(&s->processes_used, 1);
	s->process[0].pid = (uint32_t)getpid();
	atomic_store(&s->process[0].state, CA_SLOT_LIVE);
	assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
	CPU_ZERO(&one);
	for (cpu = 0; !CPU_ISSET(cpu, &all);)
		cpu++;
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, busy, &end), 0);
	for (int i = 0; i < 1000 && !most; i++)
		most = ca_interference_idle_beside(s, 2);
	assert_int_equal(most, 1);
	assert_int_equal(ca_interference_idle_beside(s, 1), 0);
	atomic_store(&end, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
	assert_int_equal(ca_interference_idle_beside(s, 2), 0);
	munmap(s, sizeof *s);
}

/* A shell's short processes: how long they waited went with them, and others had more than half a core. */
static void test_short_ones(void **state)
{
	struct ca_load a = { .known = true, .queue_known = true, .cpus = 2 }, b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 1900 * MS;
	b.run = b.own = 500 * MS;
	b.ran = 20 * MS;
	b.queue = 1 * MS;
	assert_int_equal(ca_interference_lost(&a, &b), UINT64_MAX);
	assert_true(ca_interference_seen(&a, &b));
	b.busy = 900 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

/* A process of the run ended in between, and its time and its threads went with it. */
static void test_shrinks(void **state)
{
	struct ca_load a = { .run = 5000 * MS,
			     .own = 5000 * MS,
			     .queue = 5000 * MS,
			     .known = true,
			     .queue_known = true },
		       b = a;

	(void)state;
	b.time = 1000 * MS;
	b.busy = 1000 * MS;
	b.own = b.run = 4000 * MS;
	b.queue = 4000 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

static void test_no_time(void **state)
{
	struct ca_load a = { .time = 100, .known = true, .queue_known = true }, b = a;

	(void)state;
	b.busy = b.queue = 50 * MS;
	assert_false(ca_interference_seen(&a, &b));
}

static void work_in_a_child(void)
{
	struct rusage used = { 0 };
	pid_t child = fork();

	if (!child) {
		while (used.ru_utime.tv_sec * 1000 + used.ru_utime.tv_usec / 1000 < WORK)
			getrusage(RUSAGE_SELF, &used);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* One that forks short ones, which come and go between two readings. */
static void test_children(void **state)
{
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	struct ca_load a, b;

	(void)state;
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	atomic_store(&s->processes_used, 1);
	s->process[0].pid = (uint32_t)getpid();
	atomic_store(&s->process[0].state, CA_SLOT_LIVE);
	ca_interference_read(s, &a);
	work_in_a_child();
	ca_interference_read(s, &b);
	assert_true(a.known && b.known);
	assert_true(b.run - a.run >= (WORK - TICKS) * MS);
	assert_true(b.own - a.own >= (WORK - TICKS) * MS);
	s->process[0].pid = CA_PID_UNKNOWN;
	ca_interference_read(s, &b);
	assert_false(b.known);
	free(s);
}

static sem_t is_pinned, may_end;

static void *wait_pinned(void *cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(*(size_t *)cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof set, &set), 0);
	sem_post(&is_pinned);
	sem_wait(&may_end);
	return NULL;
}

/* Threads that are pinned to a CPU each may use all of them together, wherever the first one is. */
static void test_pinned(void **state)
{
	struct ca_session *s = aligned_alloc(_Alignof(struct ca_session), sizeof *s);
	unsigned may = 0, threads = 0;
	pthread_t thread[CPU_SETSIZE];
	size_t cpu[CPU_SETSIZE];
	cpu_set_t before, first;
	struct ca_load load;

	(void)state;
	assert_non_null(s);
	memset(s, 0, sizeof *s);
	assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
	sem_init(&is_pinned, 0, 0);
	sem_init(&may_end, 0, 0);
	CPU_ZERO(&first);
	for (size_t i = 0; i < CPU_SETSIZE; i++) {
		if (!CPU_ISSET(i, &before))
			continue;
		cpu[i] = i;
		if (may++)
			assert_int_equal(pthread_create(&thread[threads++], NULL, wait_pinned, &cpu[i]), 0);
		else
			CPU_SET(i, &first);
	}
	for (unsigned i = 0; i < threads; i++)
		sem_wait(&is_pinned);
	assert_int_equal(sched_setaffinity(0, sizeof first, &first), 0);
	atomic_store(&s->processes_used, 1);
	s->process[0].pid = (uint32_t)getpid();
	atomic_store(&s->process[0].state, CA_SLOT_LIVE);
	ca_interference_read(s, &load);
	assert_int_equal(load.cpus, may);
	assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
	for (unsigned i = 0; i < threads; i++)
		sem_post(&may_end);
	for (unsigned i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	free(s);
}

/* A server's own packets are no other program: with memcached and its client alone on two CPUs, interrupts took half of
 * one. */
static void test_interrupts(void **state)
{
	uint64_t tick = CA_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK), busy;

	(void)state;
	assert_true(ca_interference_parse("cpu  100 20 30 4000 500 60 70 8 0 0\n", &busy));
	assert_int_equal(busy, 158 * tick);
	assert_true(ca_interference_parse("cpu  100 20 30 4000\n", &busy));
	assert_int_equal(busy, 150 * tick);
	assert_false(ca_interference_parse("intr 5\n", &busy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),       cmocka_unit_test(test_one_cpu),
		cmocka_unit_test(test_idle_beside), cmocka_unit_test(test_short_ones),
		cmocka_unit_test(test_shrinks),     cmocka_unit_test(test_no_time),
		cmocka_unit_test(test_children),    cmocka_unit_test(test_pinned),
		cmocka_unit_test(test_interrupts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/conductor/conductor_limit.c: what an experiment inserts in a run that a limit of CPU time holds back. The limit
 * has been looked at just now; CPU time and S time are made up. */
#include "causal/conductor/conductor_state.h"
#include "causal/conductor/sweep.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define T0 (5000 * MS)
enum { HALF = 500000 };

static struct ca_conductor *c;
static struct ca_session *s;
static struct ca_work work;
static struct ca_selection_log_sum seen;

struct ca_work ca_conductor_whole_work(const struct ca_conductor *unused)
{
	(void)unused;
	return work;
}

uint64_t ca_selection_log_read(struct ca_selection_log *log)
{
	(void)log;
	return 0;
}

struct ca_selection_log_sum ca_selection_log_peek(struct ca_selection_log *log, uint64_t start, uint64_t end)
{
	(void)log, (void)start, (void)end;
	return seen;
}

bool ca_sweep_first_time(struct ca_sweep *sweep, enum ca_sweep_topic topic)
{
	(void)sweep, (void)topic;
	return false;
}

void ca_conductor_say(struct ca_conductor *unused, int level, const char *format, ...)
{
	(void)unused, (void)level, (void)format;
}

static int set_up(void **state)
{
	static struct ca_settings set;

	(void)state;
	c = calloc(1, sizeof *c);
	s = aligned_alloc(4096, CA_SESSION_SIZE_OF(1));
	if (!c || !s)
		return -1;
	memset(s, 0, CA_SESSION_SIZE_OF(1));
	memset(&work, 0, sizeof work);
	memset(&seen, 0, sizeof seen);
	c->session = s;
	c->set = &set;
	c->e.record.speedup = HALF;
	atomic_store(&s->processes_used, 1);
	atomic_store(&s->process[0].state, CA_SLOT_LIVE);
	work.processes = 1;
	ca_conductor_limit_begin(c, T0, &work);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	free(c);
	free(s);
	return 0;
}

/* What it adds to D, ns, after 200 ms in which the limit let so much CPU time pass. */
static uint64_t after(double held, uint64_t cpu, uint64_t beyond, uint64_t s_time)
{
	uint64_t head = atomic_load(&s->log_head);
	struct ca_log_entry e = { 0 };

	c->quota = (struct ca_quota){ .last.time = T0 + 200 * MS, .held = held };
	work.ns = cpu - cpu / 4;
	work.paid = cpu / 4;
	atomic_store(&s->cpu[3].beyond, beyond);
	seen.s_time = s_time;
	ca_conductor_limit_make_up(c, T0 + 200 * MS);
	if (atomic_load(&s->log_head) == head)
		return 0;
	assert_int_equal(ca_selection_look(s->log, head, head + 1, &e), CA_LOG_THERE);
	assert_int_equal(e.type, CA_LOG_HELD);
	assert_int_equal(e.time, T0 + 200 * MS);
	seen.still += e.value;
	return e.value / 2;
}

/* One thread, half a CPU: for 100 of 200 ms it runs, in S for 60 of them. Half of that time is to be 60 ms of 200. */
static void test_one_thread(void **state)
{
	(void)state;
	assert_int_equal(after(1, 100 * MS, 30 * MS, 60 * MS), 30 * MS);
	assert_int_equal(after(1, 100 * MS, 30 * MS, 60 * MS), 0); /* that was enough */
}

/* Held back in half of the periods: half of what is missing. */
static void test_now_and_then(void **state)
{
	(void)state;
	assert_int_equal(after(0.5, 100 * MS, 30 * MS, 60 * MS), 15 * MS);
	assert_int_equal(after(0.5, 100 * MS, 30 * MS, 60 * MS), 0);
	assert_int_equal(after(0.1, 100 * MS, 30 * MS, 20 * MS), 0); /* by chance */
}

static void test_nothing_to_make_up(void **state)
{
	(void)state;
	assert_int_equal(after(1, 0, 0, 60 * MS), 0);
	assert_int_equal(after(1, 100 * MS, 10 * MS, 60 * MS), 0);  /* more than that is inserted already */
	assert_int_equal(after(1, 100 * MS, 100 * MS, 60 * MS), 0); /* no time would be left */
	work.processes = 3;                                         /* of whose CPU time? */
	assert_int_equal(after(1, 100 * MS, 30 * MS, 60 * MS), 0);
	work.processes = 1;
	c->e.record.speedup = 0;
	assert_int_equal(after(1, 100 * MS, 30 * MS, 60 * MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_one_thread, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_now_and_then, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_nothing_to_make_up, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

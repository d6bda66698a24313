/* SPDX-License-Identifier: MIT */
/* causal/runtime/catch_up.c: when virtual time may catch up, and how far; what waits say about that. */
#include "causal/runtime/catch_up.h"
#include "causal/runtime/deadline.h"
#include "core/sys.h"
#include "tests/unit/runtime.h"
#include <poll.h>

enum { MS = 1000000, LAG = 5 * MS };

/* Others are in their slots as each test says; at first none is. */
static int set_up(void **state)
{
	int result = rt_set_up(state);

	for (uint32_t i = 0; i < RT_THREADS; i++)
		atomic_store(&s->slot[i].state, i ? CA_SLOT_FREE : CA_SLOT_LIVE);
	return result;
}

static uint64_t in_all(void)
{
	return atomic_load(&s->caught_up);
}

static void alone(void **state)
{
	(void)state;
	assert_int_equal(ca_catch_up(me, 2 * MS, LAG), 2 * MS);
	assert_int_equal(in_all(), 2 * MS);
	assert_int_equal(ca_catch_up(me, 4 * MS, LAG - 2 * MS), 3 * MS); /* no more than there is */
	assert_int_equal(ca_catch_up(me, 4 * MS, 0), 0);
	assert_int_equal(ca_catch_up(me, 500, LAG), 0); /* not worth it */
	me->depth = 1;
	assert_int_equal(ca_catch_up(me, 4 * MS, LAG), 0);
	assert_int_equal(in_all(), 5 * MS);
}

/* Who was asked, and the kernel's timers, would be late. */
static void not_below(void **state)
{
	(void)state;
	atomic_store(&s->asked_lag, 4 * MS);
	assert_int_equal(ca_catch_up(me, LAG, LAG), LAG); /* he has answered */
	atomic_store(&s->asked, 1);
	assert_int_equal(ca_catch_up(me, LAG, LAG), MS);
	ca_catch_up_timed(3 * MS);
	assert_int_equal(ca_catch_up(me, LAG, LAG), MS);
	ca_catch_up_timed(LAG);
	ca_catch_up_timed(MS); /* that of another one holds */
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0);
}

static int ends[2];

static void *read_one(void *tid)
{
	char c;

	*(_Atomic uint32_t *)tid = (uint32_t)ca_sys_gettid();
	while (ca_sys_read(ends[0], &c, 1) < 0)
		;
	return NULL;
}

/* A thread that waits says so, and does not run. */
static void others(void **state)
{
	struct ca_slot *other = &s->slot[1];
	_Atomic uint32_t tid = 0;
	uint64_t caught = 0;
	pthread_t thread_id;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pthread_create(&thread_id, NULL, read_one, (void *)&tid), 0);
	while (!atomic_load(&tid))
		;
	other->pid = (uint32_t)getpid();
	other->tid = tid;
	atomic_store(&other->state, CA_SLOT_LIVE);
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0); /* it does not say so */
	ca_catch_up_waits(&thread[1], 0);
	for (unsigned i = 0; i < 2000 && !caught; i++, usleep(1000)) /* it has yet to come there */
		caught = ca_catch_up(me, LAG, LAG);
	assert_int_equal(caught, LAG);
	ca_catch_up_waits(&thread[1], 3 * MS);
	assert_int_equal(ca_catch_up(me, LAG, LAG), 2 * MS);
	assert_int_equal(ca_catch_up(me, 7000, LAG), 0); /* to look at it costs more */
	ca_catch_up_waits_until(&thread[1], 4 * MS);
	assert_int_equal(ca_catch_up(me, LAG, LAG), MS);
	other->tid = (uint32_t)ca_sys_gettid(); /* it has been woken and is about to come back */
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0);
	other->tid = 1 << 30; /* nobody knows */
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0);
	other->tid = tid;
	ca_catch_up_runs(&thread[1]);
	ca_catch_up_waits_until(&thread[1], MS); /* a look at the clock outside of waits */
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0);
	atomic_store(&other->state, CA_SLOT_FREE);
	atomic_store(&s->threads_out, 1); /* there are more, of whom nothing is known */
	assert_int_equal(ca_catch_up(me, LAG, LAG), 0);
	assert_int_equal(write(ends[1], "", 1), 1);
	pthread_join(thread_id, NULL);
}

/* What the slot says in waits of each kind. */
static void waits_say(void **state)
{
	struct ca_deadline d;
	struct ca_waiting w;

	(void)state;
	s->virtual_clock = 1;
	atomic_store(&s->settled_delay, LAG);
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(atomic_load(&me->slot->waits), 1);
	d = ca_deadline_begin(false);
	assert_int_equal(atomic_load(&me->slot->waits), 1);
	d = ca_deadline_begin(true);
	assert_int_equal(atomic_load(&me->slot->waits), 1 + LAG);
	atomic_store(&s->settled_delay, 2 * LAG);
	assert_true(ca_deadline_moved(&d));
	assert_int_equal(atomic_load(&me->slot->waits), 1 + 2 * LAG);
	ca_wait_end(&w);
	assert_int_equal(atomic_load(&me->slot->waits), 0);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(atomic_load(&me->slot->waits), 1 + 2 * LAG);
	ca_wait_end(&w);
	me->depth = 1;
	w = ca_wait_begin(CA_WAIT_OTHERS, -1);
	assert_int_equal(atomic_load(&me->slot->waits), 1);
	ca_wait_end(&w);
	w = ca_wait_begin(CA_WAIT_EXTERNAL, -1);
	assert_int_equal(atomic_load(&me->slot->waits), 0); /* S goes on */
	ca_wait_end(&w);
}

/* What it says while it polls, with a time limit and without. */
static uint64_t said;

static int look(struct pollfd *fds, nfds_t n, int timeout)
{
	(void)fds;
	(void)timeout;
	said = atomic_load(&me->slot->waits);
	return (int)n;
}

static void polls_say(void **state)
{
	struct pollfd none = { .fd = -1 };

	(void)state;
	s->virtual_clock = 1;
	atomic_store(&s->settled_delay, LAG);
	ca_real.poll = look;
	assert_int_equal(poll(&none, 1, 1000), 1);
	assert_int_equal(said, 1 + LAG);
	assert_int_equal(poll(&none, 1, -1), 1);
	assert_int_equal(said, 1);
	assert_int_equal(atomic_load(&me->slot->waits), 0);
	ca_real.poll = NULL;
	ca_real_resolve();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, rt_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = { TEST(alone), TEST(not_below), TEST(others),
						   TEST(waits_say), TEST(polls_say) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* causal/conductor/handover.c: who writes a word that others spin on, with real breakpoints. */
#include "causal/conductor/handover.h"
#include "core/clock.h"
#include "tests/unit/unit.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MS = 1000000, SPINNER = 0, WRITER, WATCHES = 24 /* in vain */, FEW = 2 };

static struct ca_session *s;
static struct ca_handover *h;
static unsigned in_vain;
static _Atomic uint32_t word, beside;
static _Atomic int writer, writes, stop;

static void __attribute__((noinline)) store(void)
{
	atomic_store_explicit(&word, 0, memory_order_release);
}

static void *write_often(void *p)
{
	struct timespec nap = { 0, MS / 2 };

	atomic_store(&writer, (int)syscall(SYS_gettid));
	while (!atomic_load(&stop)) {
		nanosleep(&nap, NULL);
		atomic_store(&beside, 1);
		if (atomic_load(&writes))
			store();
	}
	return p;
}

static pthread_t thread;

static int set_up(void **state)
{
	(void)state;
	s = aligned_alloc(_Alignof(struct ca_session), sizeof *s + 2 * sizeof(struct ca_slot));
	if (!s)
		return -1;
	memset(s, 0, sizeof *s + 2 * sizeof(struct ca_slot));
	atomic_store(&stop, 0);
	atomic_store(&writer, 0);
	if (pthread_create(&thread, NULL, write_often, NULL))
		return -1;
	while (!atomic_load(&writer))
		usleep(100);
	for (uint32_t i = 0; i < 2; i++)
		atomic_store(&s->slot[i].state, CA_SLOT_LIVE);
	s->slot[WRITER].tid = (uint32_t)atomic_load(&writer);
	s->slot[SPINNER].tid = (uint32_t)syscall(SYS_gettid);
	atomic_store(&s->slots_used, 2);
	in_vain = 0;
	h = ca_handover_new(s, &in_vain);
	return h ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	ca_handover_free(h);
	atomic_store(&stop, 1);
	pthread_join(thread, NULL);
	free(s);
	return 0;
}

static uint64_t spun(void)
{
	return CA_SPUN_ON((uint64_t)(uintptr_t)&word, sizeof word);
}

/* Steps until the runtime is asked; 0: it was not. */
static uint64_t asked(unsigned ms)
{
	ca_place end;

	for (unsigned i = 0; i < ms && !atomic_load(&s->process[0].store); i++) {
		assert_false(ca_handover_step(h, ca_clock_now(), &end));
		usleep(1000);
	}
	return atomic_load(&s->process[0].store);
}

static void test_finds_the_store(void **state)
{
	uintptr_t begin = (uintptr_t)&store;
	ca_place end = 0;
	uint64_t ip;

	(void)state;
	atomic_store(&writes, 1);
	atomic_store(&s->slot[SPINNER].spun_on, spun());
	ip = asked(500);
	if (!ip) {
		print_message("perf events are not allowed here, or there are no breakpoints\n");
		skip();
	}
	assert_true(ip > begin && ip < begin + 32);
	assert_int_equal(atomic_load(&s->slot[SPINNER].spun_on), 0);
	/* the runtime has not answered yet; it has; it is told once */
	assert_false(ca_handover_step(h, ca_clock_now(), &end));
	atomic_store(&s->process[0].store_place, CA_PLACE(3, 0x40));
	assert_true(ca_handover_step(h, ca_clock_now(), &end));
	assert_int_equal(end, CA_PLACE(3, 0x40));
	assert_int_equal(atomic_load(&s->process[0].store), 0);
	assert_int_equal(atomic_load(&s->process[0].store_place), 0);
	assert_false(ca_handover_step(h, ca_clock_now(), &end));
}

/* In no module; and no answer within 60 ms. */
static void test_no_answer(void **state)
{
	ca_place end;

	(void)state;
	atomic_store(&writes, 1);
	for (unsigned late = 0; late < 2; late++) {
		atomic_store(&s->slot[SPINNER].spun_on, spun());
		if (!asked(500))
			skip();
		if (!late)
			atomic_store(&s->process[0].store_place, 1);
		assert_false(ca_handover_step(h, ca_clock_now() + (uint64_t)late * 61 * MS, &end));
		assert_int_equal(atomic_load(&s->process[0].store), 0);
	}
}

static bool is_watched(uint64_t now)
{
	ca_place end;

	atomic_store(&s->slot[SPINNER].spun_on, spun());
	assert_false(ca_handover_step(h, now, &end));
	return !atomic_load(&s->slot[SPINNER].spun_on);
}

/* Nobody writes there: each watch ends, and after some there are no more, but when something new was found. */
static void test_in_vain(void **state)
{
	uint64_t now = ca_clock_now();
	unsigned watches = 0;

	(void)state;
	atomic_store(&writes, 0);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < 3 * WATCHES; i++, now += 61 * MS)
			watches += is_watched(now);
		assert_int_equal(watches, (turn + 1) * WATCHES);
		ca_handover_was_new(h);
	}
	/* the next run */
	in_vain = WATCHES;
	ca_handover_free(h);
	h = ca_handover_new(s, &in_vain);
	watches = 0;
	for (unsigned i = 0; i < 3 * WATCHES; i++, now += 61 * MS)
		watches += is_watched(now);
	assert_int_equal(watches, FEW);
}

/* Threads that have other numbers where they live are left alone. */
static void test_other_namespace(void **state)
{
	(void)state;
	atomic_store(&writes, 1);
	s->process[0].pid_space = 5;
	atomic_store(&s->slot[SPINNER].spun_on, spun());
	assert_int_equal(asked(50), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_finds_the_store, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_no_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_in_vain, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_other_namespace, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

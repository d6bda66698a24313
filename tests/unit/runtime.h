/* SPDX-License-Identifier: MIT */
/* For tests of the runtime's files. They link its objects (libruntime.la); what a test defines
 * itself stands in for what the library has (-z muldefs). The session is memory of the test's
 * own, its threads are records without ticks, of which the first is the calling thread's. */
#ifndef CA_TESTS_RUNTIME_H
#define CA_TESTS_RUNTIME_H
#include "causal/runtime/activation.h"
#include "causal/runtime/cancel.h"
#include "causal/runtime/handler.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/points.h"
#include "causal/runtime/probe.h"
#include "causal/runtime/real.h"
#include "causal/runtime/requested.h"
#include "causal/runtime/rt.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/seccomp.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/start.h"
#include "causal/runtime/thread.h"
#include "causal/runtime/ticks.h"
#include "causal/runtime/wait.h"
#include "tests/unit/unit.h"
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { RT_THREADS = 6, RT_PERIOD = 1000000, RT_PAGE = 4096 };
static struct ca_session *s;
static struct ca_thread thread[RT_THREADS], *const me = &thread[0];
static _Alignas(RT_PAGE) char switch_log[RT_THREADS][2 * RT_PAGE]; /* empty: always on a CPU */

static inline int rt_set_up(void **state)
{
	(void)state;
	ca_real_resolve();
	s = mmap(NULL, CA_SESSION_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		 -1, 0);
	if (s == MAP_FAILED)
		return -1;
	memset(thread, 0, sizeof thread);
	memset(switch_log, 0, sizeof switch_log);
	memset(&ca_rt, 0, sizeof ca_rt);
	s->period = ca_rt.period = RT_PERIOD;
	atomic_store(&s->state, CA_SESSION_OPEN);
	atomic_store(&s->heartbeat, UINT64_MAX / 2); /* the conductor lives */
	atomic_store(&s->slots_ready, RT_THREADS);
	atomic_store(&s->slots_used, RT_THREADS);
	atomic_store(&s->selection.seq, 2);
	for (uint32_t i = 0; i < RT_THREADS; i++) {
		thread[i].number = i;
		thread[i].slot = &s->slot[i];
		thread[i].switches.page = switch_log[i];
		thread[i].selection = 2;
		thread[i].layers = (uint8_t)ca_selection_layers(&s->selection, thread[i].width);
		thread[i].fine = &s->fine[i];
		ca_rng_init(&thread[i].rng, i);
		thread[i].last = ca_clock_now();
		atomic_store(&ca_rt.by_slot[i], &thread[i]);
		atomic_store(&s->slot[i].state, CA_SLOT_LIVE);
	}
	ca_rt.session = s;
	ca_rt.pid = (uint32_t)getpid();
	ca_rt.slots = CA_MAX_THREADS;
	ca_self = me;
	atomic_store(&ca_rt.on, true);
	return 0;
}

static inline int rt_tear_down(void **state)
{
	(void)state;
	ca_self = NULL;
	memset(&ca_rt, 0, sizeof ca_rt);
	return munmap(s, CA_SESSION_SIZE);
}

/* A timeline that wants all events. */
enum { RT_CHUNKS = 16 };
static uint32_t rt_read;

static inline void rt_trace(void)
{
	static _Alignas(RT_PAGE) char memory[(RT_CHUNKS + 2) * RT_PAGE];

	memset(memory, 0, sizeof memory);
	assert_true(ca_rings_size(RT_CHUNKS) <= sizeof memory);
	ca_rt.trace = (struct ca_rings *)(void *)memory;
	ca_rt.trace->chunks = ca_rt.trace->most = RT_CHUNKS;
	atomic_store(&ca_rt.trace->ready, RT_CHUNKS);
	ca_rt.events = UINT64_MAX;
	for (uint32_t i = 0; i < RT_THREADS; i++)
		ca_rings_begin(&thread[i].trace, ca_rt.trace, &(struct ca_source){ 1, 2 + i, 1, 1 + i });
	rt_read = 0;
}

/* What the first thread has raised since the last time; a page at most. */
static inline const struct ca_event *rt_told(size_t *n)
{
	const struct ca_event *event = me->trace.event ? me->trace.event + rt_read : NULL;

	*n = event ? me->trace.count - rt_read : 0;
	rt_read += (uint32_t)*n;
	return event;
}

static inline void rt_open_experiment(uint32_t speedup)
{
	s->experiment.start = ca_clock_now();
	s->experiment.speedup = speedup;
	atomic_fetch_add(&s->experiment.seq, 1);
}

/* The n-th entry of the log: of this type, by this thread. */
static inline const struct ca_log_entry *rt_logged(uint64_t n, enum ca_log_type type, uint32_t number)
{
	const struct ca_log_entry *e = &s->log[n];

	assert_true(atomic_load(&s->log_head) > n);
	assert_int_equal(atomic_load(&e->seq), n + 1);
	assert_int_equal(e->type, type);
	assert_int_equal(e->thread, number);
	return e;
}

#define RT_TEST(f) cmocka_unit_test_setup_teardown(f, rt_set_up, rt_tear_down)

#endif

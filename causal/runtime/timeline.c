/* SPDX-License-Identifier: MIT */
/* Events for the sinks; see timeline.h. */
#include "causal/runtime/timeline.h"

/* By its place in the page, in this process and in all of them: two objects of one place may give a pair that
 * is none, never a wrong access. A wait that was left counts on, and costs whoever wakes others there a few
 * ns. */
static struct ca_meeting *own_meeting(const void *object)
{
	static struct ca_meeting meetings[1024];
	uintptr_t at = (uintptr_t)object;

	return &meetings[(at >> 3 ^ at >> 13 ^ at >> 23) % 1024];
}

static struct ca_meeting *shared_meeting(const void *object)
{
	return &ca_rt.session->meeting[((uintptr_t)object >> 3) % CA_SHARED_MEETINGS];
}

void ca_timeline_begin(struct ca_thread *t)
{
	struct ca_session *s = ca_rt.session;
	struct ca_process *p = &s->process[ca_rt.process];
	struct ca_source owner = { p->pid, (uint32_t)t->tid, p->index, 0 };
	uint64_t now;

	owner.thread_index = 1 + atomic_fetch_add_explicit(&s->threads_begun, 1, memory_order_relaxed);
	t->slot->thread_index = owner.thread_index;
	if (!ca_rt.trace)
		return;
	now = ca_clock_now();
	ca_rings_begin(&t->trace, ca_rt.trace, &owner);
	ca_laps_begin(&t->laps, ca_rt.trace, ca_rt.names, &owner);
	if (t->tid == (pid_t)ca_rt.pid)
		ca_timeline_tell(t, CA_BURST_BEGIN, CA_KEY_PROCESS, now, owner.process);
	ca_timeline_tell(t, CA_BURST_BEGIN, CA_KEY_THREAD, now, owner.thread);
	ca_timeline_tell(t, CA_STATE_BEGIN, CA_KEY_STATE, now, CA_ACTIVITY_RUNNING);
}

void ca_timeline_end(struct ca_thread *t)
{
	uint64_t now;

	if (!ca_rt.trace)
		return;
	t->slot->thread_index = 0;
	ca_timeline_wake(t, (const void *)(uintptr_t)pthread_self(), &now);
	now = ca_clock_now();
	ca_timeline_tell(t, CA_STATE_END, CA_KEY_STATE, now, CA_ACTIVITY_RUNNING);
	ca_timeline_tell(t, CA_BURST_END, CA_KEY_THREAD, now, (uint32_t)t->tid);
	if (t->tid == (pid_t)ca_rt.pid)
		ca_timeline_tell(t, CA_BURST_END, CA_KEY_PROCESS, now, t->trace.owner.process);
	ca_rings_end(&t->trace);
	ca_laps_end(&t->laps);
}

void ca_timeline_delay(struct ca_thread *t, uint64_t began, uint64_t paid, unsigned how)
{
	uint64_t now;

	if (!ca_timeline_wants(CA_KEY_STATE) && !ca_timeline_wants(CA_KEY_DELAY))
		return;
	now = ca_clock_now();
	ca_timeline_tell(t, CA_STATE_BEGIN, CA_KEY_STATE, began, CA_ACTIVITY_DELAYED);
	if (ca_timeline_wants(CA_KEY_DELAY))
		ca_rings_push(&t->trace,
			      &(struct ca_event){ .time = now,
						  .kind = CA_POINT,
						  .flags = (uint16_t)how,
						  .key = CA_KEY_DELAY,
						  .value = paid },
			      1);
	ca_timeline_tell(t, CA_STATE_END, CA_KEY_STATE, now, CA_ACTIVITY_DELAYED);
}

struct ca_timeline_wait ca_timeline_await(const void *object)
{
	struct ca_timeline_wait wait = { .before = UINT64_MAX };

	if (!ca_timeline_wants(CA_KEY_WAKE))
		return wait;
	wait.before = atomic_load_explicit(&ca_rt.trace->links, memory_order_relaxed);
	if (object) {
		ca_timeline_await_at(&wait, own_meeting(object));
		ca_timeline_await_at(&wait, shared_meeting(object));
	}
	return wait;
}

void ca_timeline_await_at(struct ca_timeline_wait *wait, struct ca_meeting *at)
{
	if (!at || wait->before == UINT64_MAX)
		return;
	wait->at[wait->at[0] != NULL] = at;
	if (ca_rt.sampling)
		atomic_store_explicit(&at->since, ca_clock_now(), memory_order_relaxed);
	/* seq_cst, here and in ca_timeline_wake_at: whoever is seen to wait sees who woke it */
	atomic_fetch_add(&at->waiters, 1);
}

uint64_t ca_timeline_awaited(struct ca_thread *t, const struct ca_timeline_wait *wait, uint64_t now)
{
	uint64_t told = 0;

	for (unsigned i = 0; i < 2 && wait->at[i]; i++) {
		uint64_t pair = atomic_load_explicit(&wait->at[i]->pair, memory_order_acquire);

		atomic_fetch_sub(&wait->at[i]->waiters, 1);
		if (pair > wait->before && !told) {
			ca_timeline_tell(t, CA_PTP_END, CA_KEY_WAKE, now, pair);
			told = pair;
		}
	}
	return told;
}

static uint64_t tell_pair(struct ca_thread *t)
{
	uint64_t pair = 1 + atomic_fetch_add_explicit(&ca_rt.trace->links, 1, memory_order_relaxed);

	ca_timeline_tell(t, CA_PTP_BEGIN, CA_KEY_WAKE, ca_clock_fast_now(&t->clock), pair);
	return pair;
}

uint64_t ca_timeline_wake_at(struct ca_thread *t, struct ca_meeting *at, uint64_t *since)
{
	uint64_t pair;

	if (!ca_timeline_wants(CA_KEY_WAKE) || !atomic_load(&at->waiters))
		return 0;
	*since = atomic_load_explicit(&at->since, memory_order_relaxed);
	pair = tell_pair(t);
	/* release: pairs with the acquire in ca_timeline_awaited */
	atomic_store_explicit(&at->pair, pair, memory_order_release);
	return pair;
}

uint64_t ca_timeline_wake(struct ca_thread *t, const void *object, uint64_t *since)
{
	uint64_t pair;

	if (!object || !ca_timeline_wants(CA_KEY_WAKE))
		return 0;
	pair = ca_timeline_wake_at(t, own_meeting(object), since);
	if (!pair && atomic_load_explicit(&ca_rt.session->processes_begun, memory_order_relaxed) > 1)
		pair = ca_timeline_wake_at(t, shared_meeting(object), since);
	return pair;
}

uint64_t ca_timeline_send(void)
{
	struct ca_thread *t = ca_self;
	uint64_t pair = 0;

	if (t && !t->guard && t->trace.trace && ca_timeline_wants(CA_KEY_WAKE)) {
		t->guard++;
		pair = tell_pair(t);
		t->guard--;
	}
	return pair;
}

void ca_timeline_receive(uint64_t pair)
{
	struct ca_thread *t = ca_self;

	if (!t || t->guard || !pair)
		return;
	t->guard++;
	ca_timeline_tell(t, CA_PTP_END, CA_KEY_WAKE, ca_clock_now(), pair);
	t->guard--;
}

static struct ca_process *own_process(void)
{
	return &ca_rt.session->process[ca_rt.process];
}

/* A process that takes part, or did until just now; NULL: it does not. */
static struct ca_process *find_process(pid_t pid)
{
	struct ca_session *s = ca_rt.session;
	const struct ca_process *own = own_process();
	uint32_t used = atomic_load_explicit(&s->processes_used, memory_order_relaxed);

	for (uint32_t i = 0; i < used && i < CA_MAX_PROCESSES; i++)
		if (s->process[i].own_pid == (uint32_t)pid && s->process[i].pid_space == own->pid_space)
			return &s->process[i];
	return NULL;
}

void ca_timeline_exits(void)
{
	struct ca_process *own = own_process();
	struct ca_process *parent = ca_timeline_wants(CA_KEY_WAKE) ? find_process((pid_t)own->parent) : NULL;
	uint64_t pair = parent ? ca_timeline_send() : 0;

	if (!pair)
		return;
	/* release: pairs with the acquire in go_on_from and ca_timeline_executed */
	atomic_store_explicit(&own->ended, pair, memory_order_release);
	atomic_store_explicit(&parent->child_ended, pair, memory_order_release);
}

static void hand_on(_Atomic uint64_t *to)
{
	uint64_t pair = ca_timeline_send();

	if (pair) /* release: as above */
		atomic_store_explicit(to, pair, memory_order_release);
}

void ca_timeline_executes(void)
{
	hand_on(&own_process()->executes);
}

void ca_timeline_makes(void)
{
	if (ca_timeline_wants(CA_KEY_WAKE))
		hand_on(&own_process()->makes);
}

uint64_t ca_timeline_pairs(void)
{
	return ca_timeline_wants(CA_KEY_WAKE)
		       ? atomic_load_explicit(&ca_rt.trace->links, memory_order_relaxed)
		       : 0;
}

static void go_on_from(_Atomic uint64_t *ended)
{
	uint64_t pair = atomic_exchange_explicit(ended, 0, memory_order_acquire);

	if (ca_self && pair > ca_self->waits_from)
		ca_timeline_receive(pair);
}

void ca_timeline_executed(void)
{
	struct ca_process *own = own_process(), *parent;
	uint64_t pair = atomic_exchange_explicit(&own->executes, 0, memory_order_acquire);

	if (!pair && ca_timeline_wants(CA_KEY_WAKE) && (parent = find_process((pid_t)own->parent)))
		pair = atomic_load_explicit(&parent->makes, memory_order_acquire);
	ca_timeline_receive(pair);
}

void ca_timeline_waited(pid_t child)
{
	struct ca_process *p = child > 0 && ca_timeline_wants(CA_KEY_WAKE) ? find_process(child) : NULL;

	if (p)
		go_on_from(&p->ended);
}

void ca_timeline_waited_unknown(void)
{
	if (ca_timeline_wants(CA_KEY_WAKE))
		go_on_from(&own_process()->child_ended);
}

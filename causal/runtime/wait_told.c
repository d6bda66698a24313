/* SPDX-License-Identifier: MIT */
/* What the timeline and samples are told of waits. Ordinary context, apart from what says CA_SIGSAFE. */
#include "causal/runtime/channel.h"
#include "causal/runtime/peers.h"
#include "causal/runtime/sample.h"
#include "causal/runtime/timeline.h"
#include "causal/runtime/wait_parts.h"

enum { SAME_WAIT = 1000000 /* ns between two waits in which a thread hardly works */ };

void ca_wait_is(enum ca_activity doing, const void *object)
{
	struct ca_thread *t = ca_self;

	if (ca_rt.events && t && !t->guard) {
		t->doing = doing;
		t->object = object;
	}
}

static void tell_channel(struct ca_thread *t, enum ca_channel_kind kind, uint64_t now)
{
	if (t->channel)
		ca_timeline_tell(t, CA_SUBSTATE_END, CA_KEY_CHANNEL, now, t->channel);
	t->channel = kind;
	if (kind)
		ca_timeline_tell(t, CA_SUBSTATE_BEGIN, CA_KEY_CHANNEL, now, kind);
}

/* A number for waits that are mostly the same one again: where its stack is, in whose wrapper (to which the word below
 * it returns), and for what. */
static uint64_t place_of(const struct ca_waiting *w)
{
	uint64_t place = w->sp ^ (uint64_t)w->doing << 56 ^ (uint64_t)(unsigned)w->fd << 32;

	return place ^ (uintptr_t)w->thread->object * UINT64_C(0x9e3779b97f4a7c15) ^
	       ((const uintptr_t *)w->sp)[-1] << 16;
}

void ca_wait_told_begin(struct ca_waiting *w)
{
	struct ca_thread *t = w->thread;

	w->outer_doing = t->waits_doing;
	w->outer_channel = t->channel;
	/* that one was left; or it is one whose end is not always told, and in which tasks may run */
	if (w->outer_doing && (w->sp >= t->waiting_sp || w->outer_doing == CA_ACTIVITY_TEAM)) {
		ca_timeline_tell(t, CA_STATE_END, CA_KEY_STATE, w->since, w->outer_doing);
		w->outer_doing = CA_ACTIVITY_NONE;
		w->outer_channel = CA_CHANNEL_NONE;
	}
	w->blocked = t->blocked;
	if (ca_rt.sampling && !t->switches.page)
		w->cpu = ca_clock_thread_cpu();
	w->doing = t->doing;
	if (!w->doing)
		w->doing = w->until != UINT64_MAX                      ? CA_ACTIVITY_SLEEP
			   : w->kind == CA_WAIT_EXTERNAL || w->fd >= 0 ? CA_ACTIVITY_IO
								       : CA_ACTIVITY_OTHERS;
	/* the last one to come ends the others' waits */
	if (w->doing == CA_ACTIVITY_BARRIER || w->doing == CA_ACTIVITY_TEAM)
		ca_sample_wake(t, t->object);
	/* within another one, which is the one to be known should both never end: a cancelled thread cleans up */
	w->is_told = ca_rt.sampling && w->doing != CA_ACTIVITY_YIELD && !w->outer_doing;
	if (w->is_told) {
		ca_sample_waits(t, w->since, w->doing, place_of(w));
		t->open_cpu = w->cpu;
		t->open_blocked = w->blocked;
	}
	if (w->since > t->wait_ended + SAME_WAIT)
		t->waits_from = ca_timeline_pairs();
	w->await = ca_timeline_await(t->object);
	if (w->fd >= 0 && !w->writes && ca_timeline_wants(CA_KEY_WAKE))
		ca_timeline_await_at(&w->await, ca_peers_meeting(w->fd));
	t->doing = CA_ACTIVITY_NONE;
	t->object = NULL;
	t->waits_doing = w->doing;
	ca_timeline_tell(t, CA_STATE_BEGIN, CA_KEY_STATE, w->since, w->doing);
	tell_channel(t,
		     w->doing == CA_ACTIVITY_IO && w->fd >= 0 && ca_timeline_wants(CA_KEY_CHANNEL)
			     ? ca_channel_of_fd(w->fd).kind
			     : CA_CHANNEL_NONE,
		     w->since);
}

CA_SIGSAFE uint64_t ca_wait_told_off_cpu(const struct ca_waiting *w, uint64_t now)
{
	const struct ca_switches *log = &w->thread->switches;
	uint64_t inside = w->thread->blocked - w->blocked, ns = now - w->since;
	struct ca_interval off[CA_WAIT_LOOKS];

	if (ns <= CA_WAIT_NOTHING)
		return 0;
	if (log->page) {
		unsigned n = ca_switches_off(log, w->since, now, off, CA_WAIT_LOOKS);

		ns = 0;
		for (unsigned i = 0; i < n; i++)
			ns += off[i].runnable ? 0 : off[i].to - off[i].from;
	} else {
		uint64_t cpu = ca_clock_thread_cpu() - w->cpu;

		ns = ns > cpu ? ns - cpu : 0;
	}
	return ns > inside ? ns - inside : 0;
}

/* As the driver tells of a thread that it finds dead; no points, which would belong to a sample before them. */
CA_SIGSAFE void ca_wait_left_open(struct ca_thread *t, uint64_t now)
{
	const uint64_t since = atomic_load(&t->slot->wait_since), number = atomic_load(&t->slot->wait_number);
	const struct ca_waiting open = {
		.thread = t, .since = since, .cpu = t->open_cpu, .blocked = t->open_blocked
	};
	struct ca_event event[2] = {
		{ .kind = CA_BURST_END, .key = CA_KEY_BLOCKED, .value = since },
		{ .kind = CA_BURST_END, .key = CA_KEY_WOKEN, .value = number },
	};

	if (!ca_rt.sampling || !since)
		return;
	event[0].time = event[1].time = since + ca_wait_told_off_cpu(&open, now);
	ca_rings_push(&t->trace, event, 2);
	atomic_store(&t->slot->wait_since, 0);
}

void ca_wait_told_end(const struct ca_waiting *w, uint64_t now)
{
	struct ca_thread *t = w->thread;
	uint64_t pair, ns;

	if (w->is_told)
		ca_sample_waits_no_more(t);
	t->wait_ended = now;
	pair = ca_timeline_awaited(t, &w->await, now);
	ns = ca_rt.sampling ? ca_wait_told_off_cpu(w, now) : 0;
	if (ns)
		ca_sample_blocked(t, now, ns, w->doing, pair);
	t->blocked += ns;
	tell_channel(t, w->outer_channel, now);
	if (t->waits_doing == w->doing)
		ca_timeline_tell(t, CA_STATE_END, CA_KEY_STATE, now, w->doing);
	t->waits_doing = w->outer_doing;
	if (now - w->since > CA_WAIT_NOTHING && w->doing != CA_ACTIVITY_SLEEP &&
	    w->doing != CA_ACTIVITY_YIELD)
		ca_timeline_tell(t, CA_POINT, CA_KEY_WAIT, now, w->kind);
}

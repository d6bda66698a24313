/* SPDX-License-Identifier: MIT */
/* Catching up; see catch_up.h. What somebody outside sends comes too early for the dilated world by all
 * that virtual time lags since he was in step with us. The thread that waits for it could wait on; but
 * while all others wait, too, nothing would happen in that time. So it is left out: virtual time goes on
 * by as much at once, and what was inserted is taken back. Nobody outside runs ahead then, and nothing
 * has to be stored for him.
 *
 * Any thread, with its guard held; sigsafe as the ledger is. */
#include "causal/runtime/catch_up.h"
#include "core/fmt.h"
#include "core/sys.h"

enum {
	LEAST = 1000,     /* ns that are worth it ... */
	LOOK_COST = 8000, /* ... for each other thread that has to be looked at */
	PATH = 64,
	LINE = 128
};

CA_SIGSAFE void ca_catch_up_waits(struct ca_thread *t, uint64_t lag)
{
	atomic_store_explicit(&t->slot->waits, 1 + lag, memory_order_relaxed);
}

void ca_catch_up_waits_until(struct ca_thread *t, uint64_t lag)
{
	if (t && atomic_load_explicit(&t->slot->waits, memory_order_relaxed))
		ca_catch_up_waits(t, lag);
}

CA_SIGSAFE void ca_catch_up_runs(struct ca_thread *t)
{
	atomic_store_explicit(&t->slot->waits, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* pairs with rest() in fine.c */
	ca_slot_set_add(&ca_rt.session->timed, t->number);
}

CA_SIGSAFE void ca_catch_up_timed(uint64_t lag)
{
	_Atomic uint64_t *timed = &ca_rt.session->timed_lag;
	uint64_t before = atomic_load_explicit(timed, memory_order_relaxed);

	while (before < lag && !atomic_compare_exchange_weak(timed, &before, lag))
		;
}

/* Below that lag somebody would be late. UINT64_MAX: somebody is at work, or may be. */
static uint64_t lowest(const struct ca_thread *t, uint32_t *others)
{
	struct ca_session *s = ca_rt.session;
	uint64_t low = atomic_load_explicit(&s->timed_lag, memory_order_relaxed), asked;
	uint32_t used;

	*others = 0;
	if (atomic_load_explicit(&s->threads_out, memory_order_relaxed))
		return UINT64_MAX;
	asked = atomic_load_explicit(&s->asked_lag, memory_order_relaxed);
	if (atomic_load_explicit(&s->asked, memory_order_relaxed) && asked > low)
		low = asked;
	/* of two that come here at once, one at least finds that the other one runs */
	atomic_thread_fence(memory_order_seq_cst);
	used = atomic_load_explicit(&s->slots_used, memory_order_relaxed);
	for (uint32_t i = 0; i < used; i++) {
		uint64_t waits = atomic_load_explicit(&s->slot[i].waits, memory_order_relaxed);

		if (i == t->number || !atomic_load_explicit(&s->slot[i].state, memory_order_relaxed))
			continue;
		if (!waits)
			return UINT64_MAX;
		if (waits - 1 > low)
			low = waits - 1;
		++*others;
	}
	return low;
}

/* It may have been woken, and be about to come back from its wait. */
static bool sleeps(const struct ca_slot *slot)
{
	const struct ca_process *process = ca_rt.session->process;
	char path[PATH], line[LINE];
	struct ca_fmt fmt;
	const char *state;
	long n;
	int fd;

	if (process[slot->process].pid_space != process[ca_rt.process].pid_space)
		return false; /* its numbers are others' here */
	ca_fmt_init(&fmt, path, sizeof path);
	ca_fmt_add(&fmt, "/proc/%u/task/%u/stat", slot->pid, slot->tid);
	if ((fd = ca_sys_open(path, O_RDONLY)) < 0)
		return false;
	n = ca_sys_read(fd, line, sizeof line);
	ca_sys_close(fd);
	for (state = n > 0 ? line + n : line; state > line && state[-1] != ')';)
		state--;
	return state > line && line + n - state > 1 && (state[1] == 'S' || state[1] == 'D');
}

static bool all_sleep(const struct ca_thread *t)
{
	struct ca_session *s = ca_rt.session;
	uint32_t used = atomic_load_explicit(&s->slots_used, memory_order_relaxed);

	for (uint32_t i = 0; i < used; i++)
		if (i != t->number && atomic_load_explicit(&s->slot[i].state, memory_order_relaxed) &&
		    !sleeps(&s->slot[i]))
			return false;
	return true;
}

CA_SIGSAFE uint64_t ca_catch_up(struct ca_thread *t, uint64_t owed, uint64_t lag)
{
	uint32_t others = atomic_load_explicit(&ca_rt.session->threads, memory_order_relaxed);
	uint64_t low, by, most = owed < lag ? owed : lag;
	bool at_work =
		t->depth && !(atomic_load_explicit(&t->slot->in_s, memory_order_relaxed) & CA_IN_S_OFF);

	/* with thousands of threads the slots alone take long */
	if (most < LEAST || at_work || (others && most < (others - 1) * (uint64_t)LOOK_COST) ||
	    (low = lowest(t, &others)) >= lag)
		return 0;
	by = owed < lag - low ? owed : lag - low;
	if (by < LEAST || by < (uint64_t)others * LOOK_COST || (others && !all_sleep(t)))
		return 0;
	atomic_fetch_add_explicit(&ca_rt.session->caught_up, by, memory_order_relaxed);
	return by;
}

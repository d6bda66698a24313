/* SPDX-License-Identifier: MIT */
/* Samples; see sample.h. The tick handler and wrappers of waits. */
#include "causal/runtime/sample.h"
#include "causal/runtime/account.h"
#include "causal/runtime/copies.h"
#include "causal/runtime/ledger.h"
#include "causal/runtime/measure.h"
#include "causal/runtime/timeline.h"
#include "core/cpu.h"
#include "core/sys.h"

enum {
	HEAVIEST = 1000,         /* periods that one sample may stand for */
	WAITS_AGAIN = 100000000, /* ns after which the stack of a wait that begins is told again */
	WAITS_APART = 10000000,  /* ns between two such stacks, on average ... */
	WAITS_AT_ONCE = 16       /* ... but so many at once */
};

CA_SIGSAFE void ca_sample_drop(struct ca_thread *t, enum ca_drop why)
{
	atomic_fetch_add_explicit(&t->slot->drop[why], 1, memory_order_relaxed);
}

/* NULL: in none. */
static const struct ca_range *find_range(const struct ca_selection *sel, ca_place place)
{
	uint32_t module = CA_PLACE_MODULE(place), low = 0, high = sel->ranges;
	uint64_t address = CA_PLACE_OFFSET(place);

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct ca_range *r = &sel->range[middle];

		if (r->module < module || (r->module == module && r->high <= address))
			low = middle + 1;
		else
			high = middle;
	}
	return low < sel->ranges && sel->range[low].module == module && sel->range[low].low <= address
		       ? &sel->range[low]
		       : NULL;
}

CA_SIGSAFE bool ca_sample_in_selection(const struct ca_stack *stack, unsigned *outermost, unsigned *part)
{
	const struct ca_selection *sel = &ca_rt.session->selection;
	bool found = false;
	uint64_t seq;

	*part = 0;
	if (ca_rt.is_load || !ca_selection_read(sel, &seq))
		return false;
	for (unsigned i = 0; i < stack->depth; i++) {
		const struct ca_range *range = find_range(sel, stack->place[i]);

		if (!range)
			continue;
		found = true;
		*outermost = i;
		*part = range->part > *part ? range->part : *part;
	}
	*part = *part < CA_PARTS ? *part : CA_PARTS - 1; /* of a selection that is just being written */
	return found && ca_selection_is_still(sel, seq);
}

/* The conductor makes it ready where we cannot, before Linux 5.14; a store into nothing would be the
 * program's death. */
static bool have_ring(struct ca_slot *slot)
{
	/* acquire: pairs with the release in ca_session_back_ring */
	if (atomic_load_explicit(&slot->ring_ready, memory_order_acquire))
		return true;
	if (ca_sys(SYS_madvise, (long)(intptr_t)&slot->ring, sizeof slot->ring, CA_SYS_POPULATE_WRITE, 0, 0,
		   0))
		return false;
	atomic_store_explicit(&slot->ring_ready, 1, memory_order_release);
	return true;
}

/* t->stack as events in t->event; returns how many, 0: they are dropped. */
CA_SIGSAFE static unsigned make_events(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting)
{
	struct ca_event *e = t->event;
	unsigned depth = t->stack.depth, n = depth < CA_SAMPLE_FRAMES ? depth : CA_SAMPLE_FRAMES;
	uint16_t flags =
		(uint16_t)((weight < HEAVIEST ? weight : HEAVIEST) | (waiting        ? CA_SAMPLE_WAITING
								      : t->in_kernel ? CA_SAMPLE_IN_KERNEL
										     : 0));

	if (!n)
		ca_sample_drop(t, CA_DROP_NO_MODULE);
	for (unsigned i = 0; i < n; i++) {
		e[i].time = now;
		e[i].kind = CA_POINT;
		e[i].key = i ? CA_KEY_FRAME : CA_KEY_SAMPLE;
		e[i].flags = i ? 0 : flags;
		/* of deep ones the frames between are left out: who began it all says more */
		e[i].value = t->stack.place[n - i > CA_SAMPLE_OUTERMOST ? i : depth - (n - i)];
	}
	return n;
}

CA_SIGSAFE static unsigned make_sample(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting)
{
	unsigned n = make_events(t, now, weight, waiting);

	if (n && !t->stack.complete)
		ca_sample_drop(t, CA_DROP_UNWIND);
	return n;
}

CA_SIGSAFE void ca_sample_push(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting)
{
	unsigned n = ca_rt.is_load ? 0 : make_sample(t, now, weight, waiting);

	if (!n)
		return;
	if (ca_timeline_wants(CA_KEY_SAMPLE))
		ca_rings_push(&t->trace, t->event, ca_timeline_wants(CA_KEY_FRAME) ? n : 1);
	if (!have_ring(t->slot) || !ca_ring_push(&t->slot->ring, t->event, n))
		ca_sample_drop(t, CA_DROP_RING_FULL);
	ca_slot_set_tell(&ca_rt.session->told, t->number);
}

void ca_sample_stack_here(struct ca_thread *t)
{
	/* what a caller's CFA may be counted from */
	uintptr_t reg[16] = { 0 };
	struct ca_registers r = { .has_bx = true };

	r.fp = (uintptr_t)__builtin_frame_address(0);
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2\n\tmov %%rbx, %3\n\t"
			 "mov %%r12, %4\n\tmov %%r13, %5\n\tmov %%r14, %6\n\tmov %%r15, %7"
			 : "=&r"(r.pc), "=m"(r.sp), "=m"(r.fp), "=m"(reg[3]), "=m"(reg[12]), "=m"(reg[13]),
			   "=m"(reg[14]), "=m"(reg[15]));
	r.bx = reg[3];
	ca_unwind(&r, false, &t->stack);
	if (ca_rt.sampling && ca_rt.session->copies) {
		reg[6] = r.fp;
		reg[7] = r.sp;
		ca_copies_take(t, reg, r.pc);
	}
}

void ca_sample_off_cpu(struct ca_thread *t, uint64_t ns)
{
	uint64_t weight = ns / ca_rt.period;

	if (!weight)
		weight = ca_cpu_cycles() % ca_rt.period < ns; /* in proportion to its length */
	if (!weight)
		return;
	ca_sample_stack_here(t);
	ca_sample_push(t, ca_clock_now(), weight, true);
}

/* ---- for a profile --------------------------------------------------------------------------*/
/* One group: nothing of it is lost alone. */
static bool push_group(struct ca_thread *t, uint64_t now, const struct ca_event *more, unsigned count)
{
	bool is_sample = more->key == CA_KEY_BLOCKED && more->value; /* no wait that begins, and no waker */
	unsigned n;

	ca_sample_stack_here(t);
	n = is_sample ? make_sample(t, now, 0, true) : make_events(t, now, 0, true);
	for (unsigned i = 0; n && i < count; i++)
		t->event[n + i] = more[i];
	if (!n)
		return false;
	n += count;
	if (is_sample) /* the thread's own time */
		n += ca_measure_all(t, now, t->event + n);
	return ca_rings_push(&t->trace, t->event, n);
}

CA_SIGSAFE void ca_sample_push_with(struct ca_thread *t, uint64_t now, uint64_t weight,
				    const struct ca_event *more, unsigned count)
{
	unsigned n = make_sample(t, now, weight, false);

	if (!n)
		return;
	for (unsigned i = 0; i < count; i++)
		t->event[n++] = more[i];
	n += ca_measure_all(t, now, t->event + n);
	ca_rings_push(&t->trace, t->event, n);
}

/* What is shorter than a period stands for one, as often as is right. */
static bool is_drawn(uint64_t *ns)
{
	if (*ns >= ca_rt.period)
		return true;
	if (ca_cpu_cycles() % ca_rt.period >= *ns)
		return false;
	*ns = ca_rt.period;
	return true;
}

void ca_sample_blocked(struct ca_thread *t, uint64_t now, uint64_t ns, enum ca_activity doing, uint64_t pair)
{
	struct ca_event more[2] = {
		{ .time = now, .kind = CA_POINT, .key = CA_KEY_BLOCKED, .flags = (uint16_t)doing },
		{ .time = now, .kind = CA_POINT, .key = CA_KEY_WOKEN, .value = pair },
	};

	if (!t->samplers)
		return;
	t->real += ns; /* no tick's, whether this is drawn or not */
	if (!is_drawn(&ns))
		return;
	more[0].value = ns;
	push_group(t, now, more, pair ? 2 : 1);
}

/* A wait that never ends is in no wrapper's hands any more. So the driver has its stack before: each time would cost
 * too much, but a thread mostly waits where it has waited lately. */
void ca_sample_waits(struct ca_thread *t, uint64_t now, enum ca_activity doing, uint64_t place)
{
	struct ca_event more[2] = {
		{ .time = now, .kind = CA_POINT, .key = CA_KEY_BLOCKED, .flags = (uint16_t)doing },
		{ .time = now, .kind = CA_POINT, .key = CA_KEY_WOKEN, .value = t->told_wait + 1 },
	};
	bool told = place == t->told_place && now < t->told_at + WAITS_AGAIN;

	if (!t->samplers)
		return;
	if (!told && now >= t->told_due) {
		uint64_t first = now - (WAITS_AT_ONCE - 1) * (uint64_t)WAITS_APART;

		t->told_due = (t->told_due > first ? t->told_due : first) + WAITS_APART;
		t->told_place = place;
		t->told_at = now;
		t->told_wait++;
		told = push_group(t, now, more, 2);
	}
	atomic_store_explicit(&t->slot->wait_number, told ? t->told_wait : 0, memory_order_relaxed);
	/* release: pairs with the acquire in conductor_sample.c */
	atomic_store_explicit(&t->slot->wait_since, now, memory_order_release);
}

void ca_sample_waits_no_more(struct ca_thread *t)
{
	atomic_store_explicit(&t->slot->wait_since, 0, memory_order_relaxed);
}

static void push_waker(struct ca_thread *t, uint64_t pair, uint64_t since)
{
	uint64_t now = ca_clock_now(), ns = now > since ? now - since : 0;
	const struct ca_event woken = { .time = now, .kind = CA_POINT, .key = CA_KEY_WOKEN, .value = pair };

	if (is_drawn(&ns))
		push_group(t, now, &woken, 1);
}

void ca_sample_wake(struct ca_thread *t, const void *object)
{
	uint64_t since, pair = ca_timeline_wake(t, object, &since);

	if (pair && ca_rt.sampling)
		push_waker(t, pair, since);
}

void ca_sample_wake_at(struct ca_thread *t, struct ca_meeting *at)
{
	uint64_t since, pair = ca_timeline_wake_at(t, at, &since);

	if (pair && ca_rt.sampling)
		push_waker(t, pair, since);
}

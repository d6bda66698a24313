/* SPDX-License-Identifier: MIT */
/* Samples; see sample.h. The tick handler and wrappers of waits. */
#include "causal/runtime/sample.h"
#include "causal/runtime/timeline.h"
#include "core/cpu.h"
#include "core/sys.h"

enum { HEAVIEST = 1000 }; /* periods that one sample may stand for */

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
	if (!ca_selection_read(sel, &seq))
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

CA_SIGSAFE void ca_sample_push(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting)
{
	struct ca_event *e = t->event;
	unsigned n = t->stack.depth < CA_SAMPLE_FRAMES ? t->stack.depth : CA_SAMPLE_FRAMES;
	uint16_t flags =
		(uint16_t)((weight < HEAVIEST ? weight : HEAVIEST) | (waiting ? CA_SAMPLE_WAITING : 0));

	if (!n) {
		ca_sample_drop(t, CA_DROP_NO_MODULE);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		e[i].time = now;
		e[i].kind = CA_POINT;
		e[i].key = i ? CA_KEY_FRAME : CA_KEY_SAMPLE;
		e[i].flags = i ? 0 : flags;
		e[i].value = t->stack.place[i];
	}
	if (!t->stack.complete)
		ca_sample_drop(t, CA_DROP_UNWIND);
	if (ca_timeline_wants(CA_KEY_SAMPLE))
		ca_rings_push(&t->trace, e, ca_timeline_wants(CA_KEY_FRAME) ? n : 1);
	if (!have_ring(t->slot) || !ca_ring_push(&t->slot->ring, e, n))
		ca_sample_drop(t, CA_DROP_RING_FULL);
	ca_slot_set_tell(&ca_rt.session->told, t->number);
}

void ca_sample_stack_here(struct ca_thread *t)
{
	struct ca_registers r = { 0 };

	r.fp = (uintptr_t)__builtin_frame_address(0);
	__asm__ volatile("lea 0(%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=r"(r.pc), "=r"(r.sp), "=r"(r.fp));
	ca_unwind(&r, false, &t->stack);
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

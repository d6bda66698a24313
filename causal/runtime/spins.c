/* SPDX-License-Identifier: MIT */
/* Spin loops at ticks; see spins.h. */
#include "causal/runtime/spins.h"
#include "causal/runtime/patch.h"
#include "sampler/modules.h"

enum { NOWHERE = 1 };

static uintptr_t address_of(const struct ca_spin *s, const uintptr_t all[16])
{
	uintptr_t at = (uintptr_t)s->disp, bias;

	if (s->base < 16)
		at += all[s->base];
	if (s->index < 16)
		at += all[s->index] * s->scale;
	if (s->base < 16 || s->index < 16)
		return at;
	return ca_modules_bias(s->module, &bias) ? at + bias : 0;
}

void ca_spins_look(struct ca_thread *t, const uintptr_t all[16])
{
	const struct ca_selection *sel = &ca_rt.session->selection;
	uint32_t n = sel->spins < CA_MAX_SPINS ? sel->spins : CA_MAX_SPINS, first;
	uint64_t seq;

	if (!n || !t->stack.depth || !ca_selection_read(sel, &seq))
		return;
	first = (uint32_t)(t->ticks % n); /* of several words in a loop now this one, now that */
	for (uint32_t i = 0; i < n; i++) {
		const struct ca_spin *s = &sel->spin[(first + i) % n];
		uint64_t pc = CA_PLACE_OFFSET(t->stack.place[0]);
		uintptr_t at;

		if (s->module != CA_PLACE_MODULE(t->stack.place[0]) || pc < s->low || pc >= s->high)
			continue;
		at = address_of(s, all) & ~((uintptr_t)s->width - 1);
		if (at && ca_selection_is_still(sel, seq))
			atomic_store_explicit(&t->slot->spun_on, CA_SPUN_ON(at, s->width),
					      memory_order_relaxed);
		return;
	}
}

void ca_spins_answer(void)
{
	struct ca_process *p = &ca_rt.session->process[ca_rt.process];
	uintptr_t pc = (uintptr_t)atomic_load_explicit(&p->store, memory_order_relaxed), original;
	const struct ca_loaded *l;
	intptr_t shift;

	if (!pc || atomic_load_explicit(&p->store_place, memory_order_relaxed))
		return;
	if (ca_patch_translate(pc, &original, &shift)) /* a copy of it has run */
		pc = original;
	l = ca_modules_find(pc);
	atomic_store_explicit(&p->store_place, l ? CA_PLACE(l->module, pc - l->bias) : NOWHERE,
			      memory_order_relaxed);
}

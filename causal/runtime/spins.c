/* SPDX-License-Identifier: MIT */
/* Spin loops at ticks; see spins.h. */
#include "causal/runtime/spins.h"
#include "causal/runtime/patch.h"
#include "sampler/modules.h"

enum { NOWHERE = 1 };

/* 0: not known. */
static uintptr_t address_of(const struct ca_spin *s, const uintptr_t all[16], unsigned known)
{
	uintptr_t at = (uintptr_t)s->disp, bias;

	if ((s->base < 16 && !(known >> s->base & 1)) || (s->index < 16 && !(known >> s->index & 1)))
		return 0;
	if (s->base < 16)
		at += all[s->base];
	if (s->index < 16)
		at += all[s->index] * s->scale;
	if (s->base < 16 || s->index < 16)
		return at;
	return ca_modules_bias(s->module, &bias) ? at + bias : 0;
}

/* False: it is in no module. */
static bool find(uintptr_t pc, uint32_t *module, uint64_t *address)
{
	const struct ca_loaded *l;
	uintptr_t original;
	intptr_t shift;

	if (ca_patch_translate(pc, &original, &shift)) /* in a copy of it */
		pc = original;
	l = ca_modules_find(pc);
	if (!l)
		return false;
	*module = l->module;
	*address = pc - l->bias;
	return true;
}

void ca_spins_look(struct ca_thread *t, uintptr_t pc, const uintptr_t all[16], unsigned known)
{
	const struct ca_selection *sel = &ca_rt.session->selection;
	uint32_t n = sel->spins < CA_MAX_SPINS ? sel->spins : CA_MAX_SPINS, module;
	uint64_t seq, address;

	if (!n || atomic_load_explicit(&t->slot->spun_on, memory_order_relaxed) ||
	    !ca_selection_read(sel, &seq) || !find(pc, &module, &address))
		return;
	t->spin_looks++; /* of several words in a loop now this one, now that */
	for (uint32_t i = 0; i < n; i++) {
		const struct ca_spin *s = &sel->spin[(t->spin_looks + i) % n];
		uintptr_t at;

		if (s->module != module || address < s->low || address >= s->high)
			continue;
		at = address_of(s, all, known) & ~((uintptr_t)s->width - 1);
		if (!at || !ca_selection_is_still(sel, seq))
			continue;
		atomic_store_explicit(&t->slot->spun_on, CA_SPUN_ON(at, s->width), memory_order_relaxed);
		return;
	}
}

void ca_spins_answer(void)
{
	struct ca_process *p = &ca_rt.session->process[ca_rt.process];
	uintptr_t pc = (uintptr_t)atomic_load_explicit(&p->store, memory_order_relaxed);
	uint64_t address;
	uint32_t module;

	if (!pc || atomic_load_explicit(&p->store_place, memory_order_relaxed))
		return;
	atomic_store_explicit(&p->store_place,
			      find(pc, &module, &address) ? CA_PLACE(module, address) : NOWHERE,
			      memory_order_relaxed);
}

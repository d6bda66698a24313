/* SPDX-License-Identifier: MIT */
/* causal/runtime/spins.c: what a thread looked at in a spin loop, from its registers; and where code lies. */
#include "causal/runtime/patch.h"
#include "causal/runtime/spins.h"
#include "sampler/modules.h"
#include "tests/unit/runtime.h"

enum { MODULE = 3, BIAS = 0x10000, COPY = 0x777000, NONE = 0xff };

static struct ca_loaded loaded = { .bias = BIAS, .module = MODULE };

struct ca_loaded *ca_modules_find(uintptr_t pc)
{
	return pc >= BIAS && pc < 2 * BIAS ? &loaded : NULL;
}

bool ca_modules_bias(uint32_t module, uintptr_t *bias)
{
	*bias = BIAS;
	return module == MODULE;
}

bool ca_patch_translate(uintptr_t pc, uintptr_t *original, intptr_t *shift)
{
	*original = BIAS + 0x50;
	*shift = 0;
	return pc == COPY;
}

static uintptr_t all[16];
static unsigned known = 0xffff;

static uint64_t looked_at(const struct ca_spin *spin, unsigned n, ca_place place)
{
	struct ca_selection *sel = &s->selection;

	memcpy(sel->spin, spin, n * sizeof *spin);
	sel->spins = n;
	loaded.module = CA_PLACE_MODULE(place);
	atomic_store(&me->slot->spun_on, 0);
	ca_spins_look(me, BIAS + CA_PLACE_OFFSET(place), all, known);
	return atomic_load(&me->slot->spun_on);
}

static void test_words(void **state)
{
	static const struct {
		struct ca_spin spin;
		uint64_t word; /* 0: it does not spin there */
		uint32_t module;
		uint64_t pc;
	} cases[] = {
		{ { MODULE, 4, 0, NONE, NONE, 0x4100, 10, 20 }, CA_SPUN_ON(BIAS + 0x4100, 4), MODULE, 10 },
		{ { MODULE, 8, 0, 5, NONE, -8, 10, 20 }, CA_SPUN_ON(0x5000 - 8, 8), MODULE, 19 },
		{ { MODULE, 1, 4, 5, 4, 3, 10, 20 }, CA_SPUN_ON(0x5000 + 4 * 7 + 3, 1), MODULE, 15 },
		{ { MODULE, 2, 8, NONE, 4, 0x100, 10, 20 }, CA_SPUN_ON(0x100 + 8 * 7, 2), MODULE, 15 },
		/* of what is not aligned the part that is */
		{ { MODULE, 4, 0, 5, NONE, 2, 10, 20 }, CA_SPUN_ON(0x5000, 4), MODULE, 15 },
		/* elsewhere; in another module; a pointer to nothing; a module that is gone */
		{ { MODULE, 4, 0, 5, NONE, 0, 10, 20 }, 0, MODULE, 20 },
		{ { MODULE, 4, 0, 5, NONE, 0, 10, 20 }, 0, MODULE, 9 },
		{ { MODULE, 4, 0, 5, NONE, 0, 10, 20 }, 0, MODULE + 1, 15 },
		{ { MODULE, 4, 0, 6, NONE, 0, 10, 20 }, 0, MODULE, 15 },
		{ { MODULE + 1, 4, 0, NONE, NONE, 0x4100, 10, 20 }, 0, MODULE + 1, 15 },
	};

	(void)state;
	all[4] = 7;
	all[5] = 0x5000;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		uint64_t word = looked_at(&cases[i].spin, 1, CA_PLACE(cases[i].module, cases[i].pc));

		if (word != cases[i].word)
			fail_msg("case %zu: %#lx", i, (unsigned long)word);
	}
	assert_int_equal(looked_at(&cases[0].spin, 0, CA_PLACE(MODULE, 10)), 0);
	/* a register that is not known; what was found before is still to be read; in a copy */
	known = 0xffff & ~(1u << 5);
	assert_int_equal(looked_at(&cases[1].spin, 1, CA_PLACE(MODULE, 15)), 0);
	assert_int_equal(looked_at(&cases[0].spin, 1, CA_PLACE(MODULE, 15)), cases[0].word);
	known = 0xffff;
	atomic_store(&me->slot->spun_on, 5);
	ca_spins_look(me, BIAS + 15, all, known);
	assert_int_equal(me->slot->spun_on, 5);
	s->selection.spin[0].high = 0x60;
	atomic_store(&me->slot->spun_on, 0);
	loaded.module = MODULE;
	ca_spins_look(me, COPY, all, known);
	assert_int_equal(me->slot->spun_on, cases[0].word);
}

/* Of two words in one loop each has its turn. */
static void test_turns(void **state)
{
	static const struct ca_spin spin[2] = { { MODULE, 4, 0, NONE, NONE, 0x100, 10, 20 },
						{ MODULE, 4, 0, NONE, NONE, 0x200, 10, 20 } };
	unsigned first = 0, second = 0;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		uint64_t at = CA_SPUN_ADDRESS(looked_at(spin, 2, CA_PLACE(MODULE, 15)));

		first += at == BIAS + 0x100;
		second += at == BIAS + 0x200;
	}
	assert_int_equal(first, 2);
	assert_int_equal(second, 2);
}

static void test_answer(void **state)
{
	static const struct {
		uint64_t store;
		ca_place place;
	} cases[] = { { BIAS + 0x40, CA_PLACE(MODULE, 0x40) },
		      { COPY, CA_PLACE(MODULE, 0x50) },
		      { 0x99, 1 },
		      { 0, 0 } };
	struct ca_process *p = &s->process[ca_rt.process];

	(void)state;
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		atomic_store(&p->store_place, 0);
		atomic_store(&p->store, cases[i].store);
		ca_spins_answer();
		assert_int_equal(atomic_load(&p->store_place), cases[i].place);
	}
	/* as long as nobody has taken the answer, it stays */
	atomic_store(&p->store_place, 5);
	atomic_store(&p->store, BIAS);
	ca_spins_answer();
	assert_int_equal(atomic_load(&p->store_place), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_words, rt_set_up, rt_tear_down),
		cmocka_unit_test_setup_teardown(test_turns, rt_set_up, rt_tear_down),
		cmocka_unit_test_setup_teardown(test_answer, rt_set_up, rt_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

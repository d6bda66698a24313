/* SPDX-License-Identifier: MIT */
/* A set of thread slots, one bit each, so that nobody has to look at thousands of slots to find a few. It
 * lies in the session. What is in it is a hint: the slot itself says what holds.
 *
 * Any process, any thread, handlers. */
#ifndef CA_CORE_SLOT_SET_H
#define CA_CORE_SLOT_SET_H
#include "core/slot.h"

enum { CA_SLOT_WORDS = CA_MAX_THREADS / 64 };
struct ca_slot_set {
	_Alignas(64) _Atomic uint64_t word[CA_SLOT_WORDS];
};

/* Where it is likely to be in there, or not, a look is cheaper than a write. */
CA_SIGSAFE static inline void ca_slot_set_add(struct ca_slot_set *set, uint32_t slot)
{
	_Atomic uint64_t *word = &set->word[slot / 64];
	uint64_t bit = UINT64_C(1) << slot % 64;

	if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
		atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
}

CA_SIGSAFE static inline void ca_slot_set_remove(struct ca_slot_set *set, uint32_t slot)
{
	_Atomic uint64_t *word = &set->word[slot / 64];
	uint64_t bit = UINT64_C(1) << slot % 64;

	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		atomic_fetch_and_explicit(word, ~bit, memory_order_relaxed);
}

/* The same for who has written something else before: whoever takes it out, and looks then, finds that. */
CA_SIGSAFE static inline void ca_slot_set_tell(struct ca_slot_set *set, uint32_t slot)
{
	/* seq_cst: were the bit only looked at, it could be an old one, about to be taken out */
	atomic_fetch_or(&set->word[slot / 64], UINT64_C(1) << slot % 64);
}

/* The first one from `slot` on, below `end`; `end`: there is none. */
CA_SIGSAFE static inline uint32_t ca_slot_set_next(const struct ca_slot_set *set, uint32_t slot, uint32_t end)
{
	while (slot < end && slot < CA_MAX_THREADS) {
		uint64_t word =
			atomic_load_explicit(&set->word[slot / 64], memory_order_relaxed) >> slot % 64;

		if (word) {
			slot += (uint32_t)__builtin_ctzll(word);
			return slot < end ? slot : end;
		}
		slot = (slot / 64 + 1) * 64;
	}
	return end;
}

/* for (CA_SLOTS_IN(i, set, end)) */
#define CA_SLOTS_IN(i, set, end)                                                                             \
	uint32_t i = ca_slot_set_next(set, 0, end);                                                          \
	i < (end);                                                                                           \
	i = ca_slot_set_next(set, i + 1, end)

#endif

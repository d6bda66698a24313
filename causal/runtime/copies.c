/* SPDX-License-Identifier: MIT */
/* Copies of stacks; see copies.h. The tick handler and wrappers of waits.
 *
 * No other unwinder runs in the program: they take the loader's lock. The driver has one, and gets the registers
 * and the stack. Of that only the words that can lead to a caller: addresses of code, as ca_place, so that no process
 * needs a table of its own there, and addresses in the stack. All others count as 0. */
#include "causal/runtime/copies.h"
#include "core/sys.h"
#include "sampler/host.h"
#include "sampler/modules.h"
#include <string.h>

enum {
	MOST_WORDS = 8192, /* of a stack: 64 KiB */
	STACK = 8 << 20,   /* so far above the stack pointer an address counts as one of the stack */
	PAGE = 4096
};

static bool translate(uintptr_t *word)
{
	const struct ca_loaded *loaded;
	uintptr_t original;
	intptr_t shift;

	if (ca_sampler_host.translate && ca_sampler_host.translate(*word, &original, &shift))
		*word = original; /* the frame may be off by the shift; then the walk ends there */
	loaded = ca_modules_find(*word);
	if (loaded)
		*word = CA_PLACE(loaded->module, *word - loaded->bias);
	else if (ca_modules_has_range(*word))
		*word = CA_PLACE(CA_MODULE_MADE, *word);
	else
		return false;
	return true;
}

static bool push(struct ca_thread *t, unsigned n)
{
	return !n || ca_rings_push(&t->trace, t->event, n);
}

static unsigned put(struct ca_thread *t, unsigned n, uint64_t now, uint32_t key, uint64_t index,
		    uintptr_t value)
{
	t->event[n] = (struct ca_event){ now, CA_POINT, (uint16_t)index, key, value };
	return n + 1;
}

/* Up to the end of a page: what lies there is readable as a whole, or not at all. */
static unsigned read_some(struct ca_thread *t, uintptr_t from, uintptr_t end)
{
	size_t left = PAGE - (from & (PAGE - 1)), size = sizeof t->stack.copy;
	long got;

	size = left < size ? left : size;
	size = end - from < size ? end - from : size;
	got = ca_sys_peek(from, t->stack.copy, size);
	return got > 0 ? (unsigned)got / sizeof(uintptr_t) : 0;
}

CA_SIGSAFE void ca_copies_take(struct ca_thread *t, const uintptr_t reg[16], uintptr_t pc)
{
	/* below the stack pointer lies what functions that call nobody keep */
	uintptr_t low = (reg[7] & ~(uintptr_t)7) - CA_WORDS_BELOW, end = low + MOST_WORDS * sizeof(uintptr_t),
		  at = low;
	uint64_t now = ca_clock_now();
	unsigned n = 0, words;

	for (unsigned i = 0; i < 17; i++) {
		uintptr_t word = i < 16 ? reg[i] : pc;

		translate(&word);
		n = put(t, n, now, CA_KEY_REGISTER, i, word);
	}
	if (!push(t, n))
		return;
	n = 0;
	while (at < end && (words = read_some(t, at, end))) {
		for (unsigned i = 0; i < words; i++, at += sizeof(uintptr_t)) {
			uintptr_t word;

			memcpy(&word, t->stack.copy + i * sizeof word, sizeof word);
			if (word - low >= STACK && !translate(&word))
				continue;
			n = put(t, n, now, CA_KEY_WORD, (at - low) / sizeof word, word);
			if (n < CA_SAMPLE_FRAMES)
				continue;
			if (!push(t, n))
				return;
			n = 0;
		}
	}
	push(t, put(t, n, now, CA_KEY_WORD, CA_WORDS_END, at));
}

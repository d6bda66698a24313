/* SPDX-License-Identifier: MIT */
/* What patched code calls in these tests: counts, and the bookkeeping that patch.h asks for. */
#ifndef CA_TESTS_PATCH_COUNTS_H
#define CA_TESTS_PATCH_COUNTS_H
#include <stdint.h>

enum { HOOK_FRAMES = 256 };

struct hook_counts {
	uint64_t enters, exits; /* of activations, not of passes */
	uint64_t passes;        /* all calls */
	uint64_t stray;         /* exits that fitted no open activation */
	uintptr_t last;         /* sp of the last call */
	unsigned depth;
	uintptr_t frame[HOOK_FRAMES]; /* sp of the open activations */
};
extern __thread struct hook_counts hook_counts __attribute__((tls_model("initial-exec")));

void counts_set(void);
/* Compiled for general registers only. They spoil all registers that a function may change. */
void counts_enter(uintptr_t sp);
void counts_exit(uintptr_t sp);
void counts_meet(uintptr_t sp);

#endif

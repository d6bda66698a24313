/* SPDX-License-Identifier: MIT */
/* See counts.h. General registers only: the program's vector registers are live. */
#include "tests/patch/counts.h"
#include "causal/runtime/patch.h"

__thread struct hook_counts hook_counts __attribute__((tls_model("initial-exec")));

static void spoil(void)
{
	__asm__ volatile("mov $-1, %%rax\n\tmov %%rax, %%rcx\n\tmov %%rax, %%rdx\n\tmov %%rax, %%rsi\n\t"
			 "mov %%rax, %%rdi\n\tmov %%rax, %%r8\n\tmov %%rax, %%r9\n\tmov %%rax, %%r10\n\t"
			 "mov %%rax, %%r11\n\tadd %%rax, %%rax" ::
				 : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "cc");
}

static void drop_dead(struct hook_counts *c, uintptr_t sp)
{
	while (c->depth && c->frame[c->depth - 1] < sp)
		c->depth--;
}

void counts_enter(uintptr_t sp)
{
	struct hook_counts *c = &hook_counts;

	c->passes++;
	c->last = sp;
	drop_dead(c, sp);
	if ((!c->depth || c->frame[c->depth - 1] != sp) && c->depth < HOOK_FRAMES) {
		c->frame[c->depth++] = sp;
		c->enters++;
	}
	spoil();
}

void counts_exit(uintptr_t sp)
{
	struct hook_counts *c = &hook_counts;

	c->passes++;
	c->last = sp;
	drop_dead(c, sp);
	if (c->depth && c->frame[c->depth - 1] == sp) {
		c->depth--;
		c->exits++;
	} else {
		c->stray++;
	}
	spoil();
}

void counts_meet(uintptr_t sp)
{
	(void)sp;
	hook_counts.passes++;
	spoil();
}

void counts_set(void)
{
	static const struct ca_patch_hooks hooks = { .enter = counts_enter,
						     .exit = counts_exit,
						     .meet = counts_meet };

	ca_patch_set_hooks(&hooks);
}

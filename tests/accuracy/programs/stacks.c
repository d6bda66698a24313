/* SPDX-License-Identifier: MIT */
/* Eight coroutines of one thread, which go on by turns: each takes 300 in region work, in the midst of which
 * it yields, and 200 in region rest, after which it yields. Linked as stacks-HOW:
 *
 *   context  makecontext, swapcontext
 *   own      by a few instructions, as libraries of coroutines do it
 *
 * Expected: nothing runs beside it, and who has yielded in a region is not at work there: work 0.6 X. */
#include "gt.h"
#include <ucontext.h>

enum { COUNT = 8, STACK = 65536 };
GT_DEFINE_REGION(rest)

static ucontext_t context[COUNT + 1];
static void *sp[COUNT + 1];
static char stack[COUNT][STACK] __attribute__((aligned(64)));
static int now = COUNT, own; /* who runs; COUNT: the scheduler */
static volatile uint64_t sink;

void change_stacks(void **from, void *to);
__asm__(".text\n.globl change_stacks\n.type change_stacks, @function\nchange_stacks:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n	mov %rsi, %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n.size change_stacks, . - change_stacks\n");

static void go_to(int next)
{
	int before = now;

	now = next;
	if (own)
		change_stacks(&sp[before], sp[next]);
	else
		swapcontext(&context[before], &context[next]);
}

static GT_NOINLINE void region_work(uint64_t n)
{
	sink = gt_spin(n / 2);
	go_to(COUNT);
	sink = gt_spin(n / 2);
}

static void be_coroutine(void)
{
	uint64_t nw = gt_amount("work", 300), nr = gt_amount("rest", 200);

	for (;;) {
		region_work(nw); /* GT_REGION work */
		region_rest(nr); /* GT_REGION rest */
		GT_VISIT();
		go_to(COUNT);
	}
}

static void start(int i)
{
	void **top = (void **)(void *)(stack[i] + STACK);

	getcontext(&context[i]);
	context[i].uc_stack.ss_sp = stack[i];
	context[i].uc_stack.ss_size = STACK;
	makecontext(&context[i], be_coroutine, 0);
	*--top = NULL; /* as if it had been called */
	*--top = (void *)be_coroutine;
	sp[i] = top - 6;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "work");
	own = !strcmp(gt_variant(), "own");
	for (int i = 0; i < COUNT; i++)
		start(i);
	for (int i = 0; !gt_expired(); i++)
		go_to(i % COUNT);
	return gt_report();
}

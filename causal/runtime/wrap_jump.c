/* SPDX-License-Identifier: MIT */
/* Ways out of S that pass no exit: longjmp, C++ exceptions where they are caught, and to another stack.
 * Without these, the thread is taken out of S at its next meeting, hook or tick. Any context of the program,
 * its signal handlers included. */
#include "causal/runtime/activation.h"
#include "causal/runtime/wrap.h"
#include <errno.h>
#include <setjmp.h>
#include <ucontext.h>

/* ---- x86-64, glibc ---------------------------------------------------------------------------*/
enum { JUMP_SP = 6 }; /* word of a jmp_buf that has the stack pointer, in disguise */

/* Where a longjmp will lead, as a stack pointer. */
static uintptr_t jump_target(const struct __jmp_buf_tag *env)
{
	uintptr_t word = (uintptr_t)env->__jmpbuf[JUMP_SP], guard;

	__asm__("movq %%fs:0x30, %0" : "=r"(guard));
	return (word >> 0x11 | word << (64 - 0x11)) ^ guard;
}

/* A handler of the program's came while we paid, and jumps out of both: nobody lowers our guard. */
static void end_payment(struct ca_thread *t, uintptr_t sp)
{
	bool elsewhere =
		t->stack.own_high && (!ca_rt_on_own_stack(t, t->paying_sp) || !ca_rt_on_own_stack(t, sp));

	if (!t->paying_sp || sp <= t->paying_sp || elsewhere)
		return;
	t->paying_sp = 0;
	t->guard = 0;
}

/* The thread goes on in a frame with this stack pointer. */
static void leaves(uintptr_t sp)
{
	struct ca_thread *t = ca_self;
	int saved = errno;

	if (t)
		end_payment(t, sp);
	if (!t || t->guard || !ca_rt_is_in_s(t) || !atomic_load_explicit(&ca_rt.on, memory_order_relaxed))
		return;
	t->guard++;
	ca_activation_tell(t, ca_clock_now());
	ca_activation_check(t, sp);
	t->guard--;
	errno = saved;
}

/* libc's check that a jump leads outwards looks at the stack pointer: nothing of ours may be on the
 * stack then, and the call is a jump. What setjmp.h makes of these names does not matter here. */
#define JUMP(name)                                                                                           \
	__attribute__((used)) static void *before_##name(const struct __jmp_buf_tag *env)                    \
	{                                                                                                    \
		leaves(jump_target(env));                                                                    \
		ca_signals_jump(jump_target(env), env->__mask_was_saved ? &env->__saved_mask : NULL);        \
		return (void *)(uintptr_t)REAL(name);                                                        \
	}                                                                                                    \
	__asm__(".text\n"                                                                                    \
		".globl " #name "\n"                                                                         \
		".type " #name ", @function\n" #name ":\n"                                                   \
		"	.cfi_startproc\n"                                                                          \
		"	push %rdi\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	push %rsi\n"                                                                               \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	sub $8, %rsp\n"                                                                            \
		"	.cfi_adjust_cfa_offset 8\n"                                                                \
		"	call before_" #name "\n"                                                             \
		"	add $8, %rsp\n"                                                                            \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rsi\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	pop %rdi\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                               \
		"	jmp *%rax\n"                                                                               \
		"	.cfi_endproc\n"                                                                            \
		".size " #name ", . - " #name "\n");
JUMP(longjmp)
JUMP(_longjmp)
JUMP(siglongjmp)
JUMP(__longjmp_chk)

/* ---- other stacks ------------------------------------------------------------------------------*/
/* Whoever comes back does so in this frame, though maybe in another thread. */
CA_EXPORT int swapcontext(ucontext_t *restrict from, const ucontext_t *restrict to)
{
	struct ca_aside aside;
	int r, saved = errno;

	ca_activation_put_aside(&aside);
	errno = saved;
	r = REAL(swapcontext)(from, to);
	saved = errno;
	ca_activation_take_up(&aside);
	errno = saved;
	return r;
}

CA_EXPORT int setcontext(const ucontext_t *to)
{
	leaves((uintptr_t)to->uc_mcontext.gregs[REG_RSP]);
	ca_signals_jump((uintptr_t)to->uc_mcontext.gregs[REG_RSP], &to->uc_sigmask);
	return REAL(setcontext)(to);
}

/* ---- C++ ---------------------------------------------------------------------------------------*/
typedef void *begin_catch(void *);

CA_EXPORT void *__cxa_begin_catch(void *exception);
CA_EXPORT void *__cxa_begin_catch(void *exception)
{
	int saved = errno;
	begin_catch *real;

	leaves((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(uintptr_t));
	*(void **)&real = ca_real_find("__cxa_begin_catch", __builtin_return_address(0));
	errno = saved;
	return real ? real(exception) : exception;
}

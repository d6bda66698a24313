/* SPDX-License-Identifier: MIT */
/* Activations of S on the stack of a thread, as its probes know them. */
#ifndef CA_CAUSAL_RUNTIME_ACTIVATION_H
#define CA_CAUSAL_RUNTIME_ACTIVATION_H
#include "causal/runtime/rt.h"

/* The thread passes an entry, or an exit, of S with this stack pointer. With the guard held. */
CA_HIDDEN void ca_activation_enter(struct ca_thread *t, uintptr_t sp);
CA_HIDDEN void ca_activation_exit(struct ca_thread *t, uintptr_t sp);
/* It was in S before there were probes: frame number `frame` of its stack is the outermost of S, and it is in
 * that part of it. */
CA_HIDDEN CA_SIGSAFE void ca_activation_adopt(struct ca_thread *t, const struct ca_stack *stack,
					      unsigned frame, unsigned part);
/* The thread is, or is about to be, in a frame with this stack pointer: if all its activations of S
 * were left by other ways than exits, it is in S no longer. With the guard held. */
CA_HIDDEN CA_SIGSAFE void ca_activation_check(struct ca_thread *t, uintptr_t sp);
/* Told to a thread that has just got its record: where its stack lies. No system call finds this
 * out, since a sandbox may forbid it. */
CA_HIDDEN void ca_activation_own_stack(uintptr_t top, size_t size);
/* It is in S no longer: left by longjmp or an exception, or the thread ends. */
CA_HIDDEN CA_SIGSAFE void ca_activation_left(struct ca_thread *t);
/* It has left a wait that was found to be in S, by a jump or cancelled, and nobody was told. */
CA_HIDDEN CA_SIGSAFE void ca_activation_wait_left(struct ca_thread *t, uint64_t now);
/* The thread goes over to another stack, and may come back to this one, or another thread may: where it is in S
 * waits there meanwhile. ca_self may be another one at the second call; without the guard. */
struct ca_aside {
	uint64_t selection, outer; /* outer: of timed S */
	unsigned depth;
	uintptr_t frame[CA_FRAMES];
	uint8_t part[CA_FRAMES];
};
CA_HIDDEN void ca_activation_put_aside(struct ca_aside *aside);
CA_HIDDEN void ca_activation_take_up(const struct ca_aside *aside);
/* In a tick: if it is in S, tell of the times off the CPU there so far. The kernel keeps the last
 * ones only, and a window may be summed before it leaves S. */
CA_HIDDEN CA_SIGSAFE void ca_activation_tell(struct ca_thread *t, uint64_t now);

#endif

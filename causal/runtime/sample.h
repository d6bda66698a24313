/* SPDX-License-Identifier: MIT */
/* Samples: the stack of the calling thread, and where it goes. */
#ifndef CA_CAUSAL_RUNTIME_SAMPLE_H
#define CA_CAUSAL_RUNTIME_SAMPLE_H
#include "causal/runtime/rt.h"

/* Does the stack hold a frame of S? *outermost: the number of the outermost one; *part: of those parts of S
 * that it holds the one with the largest speedup. */
CA_HIDDEN CA_SIGSAFE bool ca_sample_in_selection(const struct ca_stack *stack, unsigned *outermost,
						 unsigned *part);
/* Append t->stack to the thread's ring. weight: periods that it stands for; waiting: the thread was
 * not on a CPU. */
CA_HIDDEN CA_SIGSAFE void ca_sample_push(struct ca_thread *t, uint64_t now, uint64_t weight, bool waiting);
/* The same for a profile, with what comes behind it, and what is measured with each sample. */
CA_HIDDEN CA_SIGSAFE void ca_sample_push_with(struct ca_thread *t, uint64_t now, uint64_t weight,
					      const struct ca_event *more, unsigned count);
/* Count a sample that is lost. */
CA_HIDDEN CA_SIGSAFE void ca_sample_drop(struct ca_thread *t, enum ca_drop why);
/* A sample of the code that blocked, taken by the wrapper of a wait of `ns`. */
CA_HIDDEN void ca_sample_off_cpu(struct ca_thread *t, uint64_t ns);
/* The same for a profile: of a wait that has ended now, and took `ns` off a CPU. pair: of whoever ended it; or
 * 0. */
CA_HIDDEN void ca_sample_blocked(struct ca_thread *t, uint64_t now, uint64_t ns, enum ca_activity doing,
				 uint64_t pair);
/* For a profile: a wait begins at that time, to which `place` is what tells such waits apart; it is over. Should it
 * still be open when the run ends, it has a stack. */
CA_HIDDEN void ca_sample_waits(struct ca_thread *t, uint64_t now, enum ca_activity doing, uint64_t place);
CA_HIDDEN void ca_sample_waits_no_more(struct ca_thread *t);
/* As those of timeline.h, and for a profile a sample of who wakes. */
CA_HIDDEN void ca_sample_wake(struct ca_thread *t, const void *object);
CA_HIDDEN void ca_sample_wake_at(struct ca_thread *t, struct ca_meeting *at);
/* Walk the calling thread's own stack into t->stack. */
CA_HIDDEN void ca_sample_stack_here(struct ca_thread *t);

#endif

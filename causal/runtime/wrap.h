/* SPDX-License-Identifier: MIT */
/* What wrappers are made of: the real call as a wait, or after a meeting. */
#ifndef CA_CAUSAL_RUNTIME_WRAP_H
#define CA_CAUSAL_RUNTIME_WRAP_H
#include "causal/runtime/real.h"
#include "causal/runtime/signals.h"
#include "causal/runtime/thread.h"
#include "causal/runtime/wait.h"

/* Call the real function as a wait of this kind. fd: see ca_wait_begin. */
#define WAITING(kind, fd, call)                                                                              \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin((kind), (fd));                                    \
		__typeof__(call) result_ = (call);                                                           \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
/* As WAITING, for calls that return EINTR after any handler, SA_RESTART or not: with the timer
 * back end, whose ticks come in system calls, our signal is kept off. */
#define HELD(kind, fd, call)                                                                                 \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin((kind), (fd));                                    \
		bool held_ = ca_thread_hold();                                                               \
		__typeof__(call) result_ = (call);                                                           \
		ca_thread_release(held_);                                                                    \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
/* Pay, then call. */
#define MEETING(call) (ca_wait_meet(), (call))

#endif

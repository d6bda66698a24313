/* SPDX-License-Identifier: MIT */
/* What wrappers are made of: the real call as a wait, or after a meeting. */
#ifndef CA_CAUSAL_RUNTIME_WRAP_H
#define CA_CAUSAL_RUNTIME_WRAP_H
#include "causal/runtime/deadline.h"
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
/* A read from a descriptor, and a write to it; `call` returns how much, or less than 1. HELD: calls that
 * may have a time limit of the descriptor's. */
#define FROM_FD_AS(hold, release, fd, n, call)                                                               \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin(CA_WAIT_EXTERNAL, (fd));                          \
		hold;                                                                                        \
		__typeof__(call) result_ = (call);                                                           \
		release;                                                                                     \
		waiting_.delivered = result_;                                                                \
		waiting_.wanted = (n);                                                                       \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
#define TO_FD_AS(hold, release, fd, n, call)                                                                 \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin_write((fd), (n));                                 \
		hold;                                                                                        \
		__typeof__(call) result_ = (call);                                                           \
		release;                                                                                     \
		waiting_.written = (ssize_t)result_;                                                         \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
#define FROM_FD(fd, call) FROM_FD_AS(, , fd, 0, call)
#define HELD_FD(fd, call) HELD_FD_N(fd, 0, call)
/* Writes of n bytes; SIZE_MAX: nobody knows, as of vectors, whose lengths are the kernel's to look at. */
#define TO_FD(fd, n, call)      TO_FD_AS(, , fd, n, call)
#define HELD_TO_FD(fd, n, call) TO_FD_AS(bool held_ = ca_thread_hold(), ca_thread_release(held_), fd, n, call)
/* Reads of n bytes at most. */
#define FROM_FD_N(fd, n, call) FROM_FD_AS(, , fd, n, call)
#define HELD_FD_N(fd, n, call)                                                                               \
	FROM_FD_AS(bool held_ = ca_thread_hold(), ca_thread_release(held_), fd, n, call)
/* A wait for others with an absolute time limit of the program's; `call` takes the kernel's from
 * until_, and is made once more as long as `again` (of result_ and deadline_) is true. */
#define WAIT_UNTIL(hold, release, limit, again, call)                                                        \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin(CA_WAIT_OTHERS, -1);                              \
		struct ca_deadline deadline_ = ca_deadline_begin(ca_deadline_ns(limit) != UINT64_MAX);       \
		const struct timespec *until_;                                                               \
		struct timespec real_;                                                                       \
		__typeof__(call) result_;                                                                    \
		hold;                                                                                        \
                                                                                                             \
		do {                                                                                         \
			until_ = ca_deadline_real(&deadline_, (limit), &real_);                              \
			result_ = (call);                                                                    \
		} while (again);                                                                             \
		release;                                                                                     \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
/* Its result is timed_out when the limit has come. */
#define WAITING_UNTIL(limit, timed_out, call)                                                                \
	WAIT_UNTIL(, , limit, result_ == (timed_out) && ca_deadline_moved(&deadline_), call)
/* For calls that are held, as HELD is. */
#define HELD_WHILE(limit, over, call)                                                                        \
	WAIT_UNTIL(bool held_ = ca_thread_hold(), ca_thread_release(held_), limit,                           \
		   (over) && ca_deadline_moved(&deadline_), call)
/* ... and return -1 and this errno. */
#define HELD_UNTIL(limit, timed_out, call) HELD_WHILE(limit, result_ < 0 && errno == (timed_out), call)
/* ... with a limit that is a length of time, ns, UINT64_MAX for none; `call` takes what is left of it
 * from left_, which is NULL where the program's own argument will do. */
#define HELD_FOR(length, timed_out, call)                                                                    \
	__extension__({                                                                                      \
		struct ca_waiting waiting_ = ca_wait_begin(CA_WAIT_OTHERS, -1);                              \
		uint64_t ns_, length_ = (length);                                                            \
		struct ca_deadline deadline_ = ca_deadline_begin(length_ != UINT64_MAX);                     \
		const struct timespec *left_ = NULL;                                                         \
		struct timespec rest_;                                                                       \
		__typeof__(call) result_;                                                                    \
		bool held_ = ca_thread_hold();                                                               \
                                                                                                             \
		while ((result_ = (call)) < 0 && errno == (timed_out) &&                                     \
		       (ns_ = ca_deadline_left(&deadline_, length_))) {                                      \
			rest_ = (struct timespec){ (time_t)(ns_ / CA_NS_PER_S), (long)(ns_ % CA_NS_PER_S) }; \
			left_ = &rest_;                                                                      \
		}                                                                                            \
		ca_thread_release(held_);                                                                    \
		ca_wait_end(&waiting_);                                                                      \
		result_;                                                                                     \
	})
/* Pay, then look at the clock: others may be told of what it said. */
#define LOOKING(call) (ca_wait_pay(), (call))
/* A wait for a child, which returns its number. */
#define WAITED(wait)                                                                                         \
	__extension__({                                                                                      \
		pid_t child_ = DOING(PROCESS, NULL, wait);                                                   \
		ca_timeline_waited(child_);                                                                  \
		child_;                                                                                      \
	})
/* ... whose number only libc knows. */
#define WAITED_UNKNOWN(wait)                                                                                 \
	__extension__({                                                                                      \
		int status_ = DOING(PROCESS, NULL, wait);                                                    \
		ca_timeline_waited_unknown();                                                                \
		status_;                                                                                     \
	})
/* Pay, then call. */
#define MEETING(call) (ca_wait_meet(), (call))
/* ... by which a process is made that executes another program. */
#define MAKING(call) (ca_timeline_makes(), (call))
/* ... by which others that wait for the object may go on. */
#define WAKING(object, call) (ca_wait_meet_at(object), (call))
/* `wait` is a wait that does this, at an object where others end it. */
#define DOING(activity, object, wait) (ca_wait_is(CA_ACTIVITY_##activity, (object)), (wait))

/* A system call by its number, not futex: what may block in it is a wait, as in its wrapper. The
 * arguments may be changed. */
CA_HIDDEN long ca_wrap_raw(long number, long a[6]);

#endif

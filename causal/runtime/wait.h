/* SPDX-License-Identifier: MIT */
/* Meetings and waits: what the wrappers call. */
#ifndef CA_CAUSAL_RUNTIME_WAIT_H
#define CA_CAUSAL_RUNTIME_WAIT_H
#include "causal/runtime/rt.h"
#include "causal/runtime/timeline.h"
#include <sys/types.h>

struct ca_waiting {
	struct ca_thread *thread; /* NULL: nothing to do at the end */
	uint64_t since;
	enum ca_wait kind;   /* what ended it may be known better than what was expected */
	enum ca_wait logged; /* in S: what the log was told */
	uint64_t lag;        /* of virtual time when it began, ns */
	int fd;              /* the descriptor waited for, or -1: `kind` stands */
	bool writes;         /* ... for room to write to it */
	ssize_t delivered;   /* ... and so much was read: if there was data, who wrote it decides */
	size_t wanted;       /* ... of that; 0: not known */
	int held;            /* bytes that nobody has taken so far, before ours ... */
	ssize_t written;     /* ... of so many */
	uint64_t feed;       /* somebody outside may send on it by himself, under that name */
	bool by_itself;      /* ... and, in S, nothing was there: he comes no sooner if S is faster */
	const void *word;    /* somebody outside has woken us there */
	int answers;         /* who is outside and ended it answers on this descriptor; or -1 */
	bool open;           /* an experiment was open at the start */
	bool slept, was_off; /* without a switch log: it has gone to sleep; or others were chosen to run */
	bool in_s;           /* inside S, known exactly ... */
	bool had_waited;     /* ... and had waited there before */
	bool goes_on;        /* inside S, and nothing to wait for: S goes on */
	bool wait_in_s;      /* inside S, known otherwise, and the wait is S's own */
	uint64_t fine_s;     /* inside S, timed: what ca_fine_resume wants; else 0 */
	uint64_t selection;  /* ... and whose S that is */
	const enum ca_wait *outer; /* the wait around this one */
	uintptr_t sp, outer_sp;
	uint64_t until;                      /* a sleep: when it should be over, ns; else UINT64_MAX */
	uint64_t cpu, blocked;               /* for samples: of the thread when it began, ns */
	enum ca_activity doing, outer_doing; /* for the timeline */
	bool is_told;                        /* ... and for a profile, should it never end */
	enum ca_channel_kind outer_channel;
	struct ca_timeline_wait await;
};
/* The wait that begins next is a sleep of this length: what it takes longer is the kernel's, and
 * would not be shorter if the code slept less. UINT64_MAX: not known. */
CA_HIDDEN void ca_wait_sleep(uint64_t ns);
/* The wait that begins next is that, at an object where others may end it (NULL: none); for the timeline. */
CA_HIDDEN void ca_wait_is(enum ca_activity doing, const void *object);
/* Where in the program the wrapper was called that this stands in: what is to be paid for samples has an account for
 * each such place (lumps.h). */
#define CA_WAIT_SITE ((uintptr_t)__builtin_return_address(0))
#define CA_WAIT_HERE static inline __attribute__((always_inline))

/* About to meet other threads: pay first. Cheap when there is nothing to do. object: others may end their wait for
 * that, or NULL. */
CA_HIDDEN void ca_wait_meet_from(const void *object, uintptr_t site);
CA_WAIT_HERE void ca_wait_meet_at(const void *object)
{
	ca_wait_meet_from(object, CA_WAIT_SITE);
}
CA_WAIT_HERE void ca_wait_meet(void)
{
	ca_wait_meet_from(NULL, CA_WAIT_SITE);
}
/* The same where nobody is met, so that it says nothing about how often the thread switches: it looks at the clock. */
CA_HIDDEN void ca_wait_pay(void);
/* From when on can the thread, which is about to wait, not have seen what others have done? Now, or when it began
 * with the look at the clock that it comes from. Cycles. */
CA_HIDDEN uint64_t ca_wait_blind_since(void);
/* Is the calling thread the only one of the run? Then it meets nobody. Not in S, which may have been left. */
static inline bool ca_wait_is_alone(void)
{
	const struct ca_thread *t = ca_self;
	const struct ca_session *s = ca_rt.session;

	return t && atomic_load_explicit(&s->threads, memory_order_relaxed) == 1 &&
	       !atomic_load_explicit(&s->threads_out, memory_order_relaxed) && !t->held_sp &&
	       !ca_rt_is_in_s(t);
}
/* As ca_wait_meet, by a thread that has a record already. Leaves the vector registers alone. site: 0: a pause. */
CA_HIDDEN void ca_wait_meet_known(struct ca_thread *t, uintptr_t site);
/* About to block (pays first), and after it; errno is kept. fd >= 0: who is at its other end decides
 * the kind (peers.h), EXTERNAL being the guess. */
CA_HIDDEN struct ca_waiting ca_wait_begin_from(enum ca_wait kind, int fd, uintptr_t site);
CA_WAIT_HERE struct ca_waiting ca_wait_begin(enum ca_wait kind, int fd)
{
	return ca_wait_begin_from(kind, fd, CA_WAIT_SITE);
}
/* About to wake who waits on a word that other processes may share (pays first); woken there. */
CA_HIDDEN void ca_wait_wake_from(const void *word, uintptr_t site);
CA_WAIT_HERE void ca_wait_wake(const void *word)
{
	ca_wait_wake_from(word, CA_WAIT_SITE);
}
CA_HIDDEN void ca_wait_woken(struct ca_waiting *w, const void *word);
/* The same for a call that reads from fd as often as it takes, and one that comes back when n bytes (SIZE_MAX: not
 * known) have been written to it; this leaves a mark for the reader. */
CA_HIDDEN struct ca_waiting ca_wait_begin_read_all_from(int fd, uintptr_t site);
CA_WAIT_HERE struct ca_waiting ca_wait_begin_read_all(int fd)
{
	return ca_wait_begin_read_all_from(fd, CA_WAIT_SITE);
}
CA_HIDDEN struct ca_waiting ca_wait_begin_write_from(int fd, size_t n, uintptr_t site);
CA_WAIT_HERE struct ca_waiting ca_wait_begin_write(int fd, size_t n)
{
	return ca_wait_begin_write_from(fd, n, CA_WAIT_SITE);
}
CA_HIDDEN void ca_wait_end(struct ca_waiting *w);
/* For a profile: if the thread is in a wait, it was left in another way: by cancellation, or by longjmp. */
CA_HIDDEN CA_SIGSAFE void ca_wait_left_open(struct ca_thread *t, uint64_t now);

#endif

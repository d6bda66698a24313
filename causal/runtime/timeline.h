/* SPDX-License-Identifier: MIT */
/* Events of the program's threads for the sinks: how they are raised. Nothing is written where nobody
 * wants it: an event of a key that is switched off costs a load and a test.
 *
 * Handlers, hooks and wrappers, with the thread's guard held. General registers only. */
#ifndef CA_CAUSAL_RUNTIME_TIMELINE_H
#define CA_CAUSAL_RUNTIME_TIMELINE_H
#include "causal/runtime/rt.h"

_Static_assert(CA_KEY_FIRST_FREE <= 64, "a bit for each in ca_rt.events");

CA_SIGSAFE static inline bool ca_timeline_wants(enum ca_key key)
{
	return __builtin_expect(ca_rt.events >> key & 1, 0);
}

CA_SIGSAFE static inline void ca_timeline_tell(struct ca_thread *t, enum ca_event_kind kind, enum ca_key key,
					       uint64_t time, uint64_t value)
{
	if (!ca_timeline_wants(key))
		return;
	if (ca_rings_has_room(&t->trace))
		ca_rings_push_one(&t->trace, time, kind, key, value);
	else
		ca_rings_push(&t->trace,
			      &(struct ca_event){
				      .time = time, .kind = (uint16_t)kind, .key = key, .value = value },
			      1);
}

/* The calling thread, and perhaps its process, has come to life; it ends. */
CA_HIDDEN void ca_timeline_begin(struct ca_thread *t);
CA_HIDDEN void ca_timeline_end(struct ca_thread *t);
/* Paid, from `began` until now. how: CA_DELAY_* */
CA_HIDDEN CA_SIGSAFE void ca_timeline_delay(struct ca_thread *t, uint64_t began, uint64_t paid, unsigned how);

/* Who ends whose wait. The waiter says when it begins to wait and when it goes on; whoever is about to wake
 * others there tells it before. They meet at what is read from a descriptor (causal/runtime/peers.h), or at
 * an object: an address that stands for what threads wait for; NULL is none. In memory that is shared it may
 * be at another address of another process, and is known by its place in the page. */
struct ca_timeline_wait {
	struct ca_meeting *at[2]; /* NULL: nobody looks */
	uint64_t before;          /* pairs so far */
};
CA_HIDDEN CA_SIGSAFE struct ca_timeline_wait ca_timeline_await(const void *object);
/* It is, or was, for that as well; NULL: it is not known. */
CA_HIDDEN CA_SIGSAFE void ca_timeline_await_at(struct ca_timeline_wait *wait, struct ca_meeting *at);
/* Told so far. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_timeline_pairs(void);
/* Returns the pair that has ended it; 0: it is not known. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_timeline_awaited(struct ca_thread *t, const struct ca_timeline_wait *wait,
						  uint64_t now);
/* Returns the pair; 0: nobody waits there, or nobody looks. *since: ns; when the last one who does began, for
 * samples. */
CA_HIDDEN CA_SIGSAFE uint64_t ca_timeline_wake(struct ca_thread *t, const void *object, uint64_t *since);
CA_HIDDEN CA_SIGSAFE uint64_t ca_timeline_wake_at(struct ca_thread *t, struct ca_meeting *at,
						  uint64_t *since);
/* The same where the one is handed on to the other: 0: nobody looks. Of the calling thread. */
CA_HIDDEN uint64_t ca_timeline_send(void);
CA_HIDDEN void ca_timeline_receive(uint64_t pair);
/* The same from the thread that calls exec, or makes a process that will, to the first one of the new program. */
CA_HIDDEN void ca_timeline_executes(void);
CA_HIDDEN void ca_timeline_makes(void);
CA_HIDDEN void ca_timeline_executed(void);
/* The same from a process that ends to whoever has waited for it. With one that ended while the thread worked, it does
 * not go on. */
CA_HIDDEN void ca_timeline_exits(void);
CA_HIDDEN void ca_timeline_waited(pid_t child);
CA_HIDDEN void ca_timeline_waited_unknown(void); /* for a child whose number only libc knows */

#endif

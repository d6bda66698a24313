/* SPDX-License-Identifier: MIT */
/* Trace rings: how events get from the threads of a run to the sinks. They lie in the session file,
 * behind the slots, and outlive the program.
 *
 * All of it is chunks of one page. A thread takes one, fills it, closes it and takes the next; the
 * driver empties chunks in their order and gives them back (core/rings_reader.h). So there is no
 * fixed number of threads in this layout, a thread that raises little holds one page, and all
 * memory is bounded by the number of chunks. What finds no room is counted, by its cause; nobody
 * ever waits.
 *
 * Writers: one per thread, with the thread's guard held, handlers included. Nothing here takes a
 * lock: a process that is killed between any two instructions loses at most the chunk that it was
 * about to take. */
#ifndef CA_CORE_RINGS_H
#define CA_CORE_RINGS_H
#include "core/event.h"
#include "core/sink.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CA_RINGS_PAGE = 4096, CA_RINGS_EVENTS = CA_RINGS_PAGE / sizeof(struct ca_event) };

/* Why events are missing. */
#define CA_LOSSES(X)                                                                                         \
	X(RING, "the thread's ring was full (--trace-ring)")                                                 \
	X(MEMORY, "there was no memory for a further ring (--trace-memory)")                                 \
	X(OVERWRITTEN, "newer ones took their place (--trace-policy ring)")                                  \
	X(DAMAGED, "they were no events when they were read")                                                \
	X(TASK, "too many of them waited for tasks to go on")
enum ca_loss {
#define X(id, text) CA_LOSS_##id,
	CA_LOSSES(X)
#undef X
		CA_LOSS_COUNT
};

enum ca_rings_chunk_state {
	CA_RINGS_FREE,
	CA_RINGS_OPEN,
	CA_RINGS_CLOSED,
	CA_RINGS_LAPS,     /* core/laps.h; count: laps in it; next: the thread's chunk before it;
			    * given_back, of its first: time of its last event */
	CA_RINGS_LAPS_DONE /* ... of a thread that is over */
};
enum { CA_RINGS_SHORT = 10000 /* ns; what takes longer is not throttled. The usual limit of timemory */ };

/* What is known of a chunk. By the thread that has it, except for given_back and next. */
struct ca_rings_chunk {
	_Alignas(64) _Atomic uint32_t state; /* released after the rest, with CLOSED after the last count */
	_Atomic uint32_t count;              /* events in it: released after them */
	_Atomic uint64_t number;             /* of the thread's, from 0 */
	_Atomic uint64_t given_back; /* so many of the thread's chunks were, by the driver in the open one */
	_Atomic uint32_t next;       /* 1 + index of the next free one; or of the thread's next */
	struct ca_source owner;
};

struct ca_rings {
	/* Written by the driver before any process runs */
	uint32_t chunks;                    /* there are */
	uint32_t most;                      /* that one thread may hold */
	uint32_t keep_last;                 /* full: 1: the oldest of a thread's go, 0: the newest */
	uint32_t laps;                      /* 1: bursts are counted where they are raised: core/laps.h */
	uint64_t throttle;                  /* ... until they have been called so often; 0: all */
	_Alignas(64) _Atomic uint64_t free; /* 1 + index of a free chunk, a count of changes above it */
	_Atomic uint32_t used;              /* chunks that ever were */
	_Atomic uint32_t ready;             /* chunks that have backing store */
	_Alignas(64) _Atomic uint64_t lost[CA_LOSS_COUNT];
	_Atomic uint64_t links;                                /* ids of point-to-point events */
	_Alignas(CA_RINGS_PAGE) struct ca_rings_chunk chunk[]; /* then, from the next page on, the events */
};

/* Bytes of a trace with so many chunks. */
static inline uint64_t ca_rings_size(uint32_t chunks)
{
	uint64_t table = (uint64_t)chunks * sizeof(struct ca_rings_chunk);

	return sizeof(struct ca_rings) + (table + CA_RINGS_PAGE - 1) / CA_RINGS_PAGE * CA_RINGS_PAGE +
	       (uint64_t)chunks * CA_RINGS_PAGE;
}

CA_SIGSAFE static inline struct ca_event *ca_rings_events(struct ca_rings *trace, uint32_t chunk)
{
	uint64_t first = ca_rings_size(trace->chunks) - (uint64_t)trace->chunks * CA_RINGS_PAGE;

	return (struct ca_event *)(void *)((char *)trace + first + (uint64_t)chunk * CA_RINGS_PAGE);
}

/* A thread's end of it. All zeros: nothing is traced. */
struct ca_rings_writer {
	struct ca_rings *trace;
	struct ca_event *event; /* of the chunk that is open; NULL: none */
	uint32_t count, chunk;  /* in it, and which it is */
	uint32_t oldest;        /* keep_last: the thread's oldest chunk */
	uint64_t number;        /* chunks so far */
	uint64_t last;          /* ns; time of the last event */
	uint64_t lost;          /* since the last event that was kept */
	struct ca_source owner;
};

CA_SIGSAFE void ca_rings_begin(struct ca_rings_writer *w, struct ca_rings *trace,
			       const struct ca_source *owner);
/* For core/laps.c: 1 + a chunk, 0: there is none; so many are lost. */
CA_SIGSAFE uint32_t ca_rings_get_chunk(struct ca_rings *trace);
CA_SIGSAFE void ca_rings_count_lost(struct ca_rings *trace, enum ca_loss why, size_t n);
/* A chunk with room for n events; false: there is none, and they are counted as lost. */
CA_SIGSAFE bool ca_rings_more(struct ca_rings_writer *w, uint64_t time, size_t n);
/* Of a process that may map little: `size` bytes of the trace, from its begin on, are what it has. False: that
 * is too little. */
bool ca_rings_use(const struct ca_rings *trace, uint64_t size);
/* It has so many now. */
uint64_t ca_rings_here(const struct ca_rings *trace);
/* What is beyond those in use is unmapped. */
void ca_rings_give_way(struct ca_rings *trace);
/* The thread is over: what it has written is complete. */
CA_SIGSAFE void ca_rings_end(struct ca_rings_writer *w);

/* For one event, without ca_rings_more? */
CA_SIGSAFE static inline bool ca_rings_has_room(const struct ca_rings_writer *w)
{
	return w->event && w->count < CA_RINGS_EVENTS;
}

/* Append all n or none. Time does not run back within a thread: what lies in the past happens now. */
CA_SIGSAFE static inline bool ca_rings_push(struct ca_rings_writer *w, const struct ca_event *event, size_t n)
{
	uint32_t count;

	if (__builtin_expect(!w->event || n > CA_RINGS_EVENTS - w->count, 0) &&
	    !ca_rings_more(w, event->time, n))
		return false;
	count = w->count;
	for (size_t i = 0; i < n; i++) {
		struct ca_event *to = &w->event[count + i];

		*to = event[i];
		if (to->time < w->last)
			to->time = w->last;
		w->last = to->time;
	}
	w->count = count + (uint32_t)n;
	/* release: pairs with the acquire in the reader; publishes the whole group */
	atomic_store_explicit(&w->trace->chunk[w->chunk].count, w->count, memory_order_release);
	return true;
}

/* One for which there is room. Field by field: what is put together elsewhere first, and then copied in larger
 * pieces, has the processor wait for the pieces. */
CA_SIGSAFE static inline void ca_rings_push_one(struct ca_rings_writer *w, uint64_t time,
						enum ca_event_kind kind, uint32_t key, uint64_t value)
{
	uint32_t count = w->count;
	struct ca_event *to = &w->event[count];

	time = time < w->last ? w->last : time;
	to->time = w->last = time;
	to->kind = (uint16_t)kind;
	to->flags = 0;
	to->key = key;
	to->value = value;
	w->count = ++count;
	/* release: as above */
	atomic_store_explicit(&w->trace->chunk[w->chunk].count, count, memory_order_release);
}

#endif

/* SPDX-License-Identifier: MIT */
/* Laps: the call graph of a thread's bursts, counted where they are raised. Where all sinks make do with
 * that (struct ca_sink_ops), bursts are no events on their way through a ring: each is added to its place in
 * a tree of the thread's own, in chunks of the trace (core/rings.h), which outlive the program.
 *
 * Writer: the thread, with its guard held, handlers included; nothing takes a lock. Reader: the driver, for
 * good when the thread is over. What is read from this memory is checked before it is used as a number: the
 * program may have written there. */
#ifndef CA_CORE_LAPS_H
#define CA_CORE_LAPS_H
#include "core/names.h"
#include "core/rings.h"

/* Of key 0: ends without a beginning, only counted. Else a key, and a value of it that is told apart, inside
 * another: numbers are 1 + chunk * CA_LAPS_OF_CHUNK + place, 0 is none. Lengths and times in ns. */
struct ca_lap {
	uint64_t value;
	uint32_t key;
	uint32_t above, first, next, recent; /* recent: the one inside it that was looked for last */
	uint32_t throttled;                  /* 1: it was called too often, and is no more raised */
	uint64_t since;                      /* it is open since then; 0: it is not */
	uint64_t charged; /* up to there its time is in the `inner` of who lies around it */
	uint64_t count, sum, min, max, last;
	uint64_t inner; /* of the sum, what lies in those inside */
	uint64_t begin; /* of the first call */
	uint64_t mark;  /* whose calls these are, told fast; when it is read: when the thread was over */
	uint64_t square_low, square_high; /* the sum of squared lengths */
};
enum { CA_LAPS_OF_CHUNK = CA_RINGS_PAGE / sizeof(struct ca_lap) };
_Static_assert(sizeof(struct ca_lap) == 128, "two lines of the cache, and as many as fit into a chunk");

/* A thread's end of it. All zeros: its bursts are not counted here. */
struct ca_laps {
	struct ca_rings *trace;
	struct ca_lap *base;    /* number 1 */
	struct ca_lap *at;      /* the innermost that is open; NULL: none */
	uint32_t first, recent; /* of those that lie in none */
	uint32_t chunk, used;   /* the thread's last chunk, and how many of it are */
	uint32_t chunks;
	uint32_t missed;        /* open ones that found no place */
	uint64_t now;           /* time does not run back */
	_Atomic uint64_t *over; /* the same for the driver */
	_Atomic uint8_t *off;   /* by the id of a key of the program's: it is no more raised */
	struct ca_source owner;
};

/* Nothing happens where the trace does not want it. */
CA_SIGSAFE void ca_laps_begin(struct ca_laps *l, struct ca_rings *trace, struct ca_names *names,
			      const struct ca_source *owner);
CA_SIGSAFE void ca_laps_end(struct ca_laps *l);

CA_SIGSAFE static inline struct ca_lap *ca_laps_get(const struct ca_laps *l, uint32_t number)
{
	return number - 1 < l->trace->chunks * (uint64_t)CA_LAPS_OF_CHUNK ? &l->base[number - 1] : NULL;
}

/* As the inline functions below, in the cases that they leave. */
CA_SIGSAFE void ca_laps_open_any(struct ca_laps *l, uint32_t key, uint64_t value, uint64_t time);
CA_SIGSAFE struct ca_lap *ca_laps_close_any(struct ca_laps *l, uint32_t key, uint64_t time);

CA_SIGSAFE static inline uint64_t ca_laps_tell_time(struct ca_laps *l, uint64_t time)
{
	l->now = time = time > l->now ? time : l->now;
	atomic_store_explicit(l->over, time, memory_order_relaxed);
	return time;
}

CA_SIGSAFE static inline void ca_laps_open_at(struct ca_laps *l, struct ca_lap *lap, uint64_t time)
{
	lap->since = lap->charged = ca_laps_tell_time(l, time);
	l->at = lap;
}

/* The one that was looked for last where we are; NULL: none. */
CA_SIGSAFE static inline struct ca_lap *ca_laps_recent(const struct ca_laps *l)
{
	return ca_laps_get(l, l->at ? l->at->recent : l->recent);
}

CA_SIGSAFE static inline void ca_laps_open(struct ca_laps *l, uint32_t key, uint64_t value, uint64_t time)
{
	struct ca_lap *lap = ca_laps_recent(l);

	if (__builtin_expect(!lap || lap->key != key || lap->value != value || lap->since || l->missed, 0)) {
		ca_laps_open_any(l, key, value, time);
		return;
	}
	ca_laps_open_at(l, lap, time);
}

/* It has taken until `time`. Returns it. */
CA_SIGSAFE static inline struct ca_lap *ca_laps_add(struct ca_lap *lap, struct ca_lap *around, uint64_t time)
{
	uint64_t length = time - lap->since, low;

	if (around)
		around->inner += time - lap->charged;
	low = lap->square_low;
	if (__builtin_expect(length >> 32 != 0, 0)) {
		unsigned __int128 square = (unsigned __int128)length * length;

		lap->square_high += (uint64_t)(square >> 64);
		lap->square_low += (uint64_t)square;
	} else {
		lap->square_low += length * length;
	}
	lap->square_high += lap->square_low < low;
	if (!lap->count++)
		lap->begin = lap->since;
	lap->sum += length;
	lap->min = length < lap->min ? length : lap->min;
	lap->max = length > lap->max ? length : lap->max;
	lap->last = length;
	lap->since = 0;
	return lap;
}

/* The lap; NULL: there was none of the key, or it has no place. */
CA_SIGSAFE static inline struct ca_lap *ca_laps_close(struct ca_laps *l, uint32_t key, uint64_t time)
{
	struct ca_lap *lap = l->at, *around;

	if (__builtin_expect(!lap || lap->key != key || l->missed, 0))
		return ca_laps_close_any(l, key, time);
	around = lap->above ? ca_laps_get(l, lap->above) : NULL;
	if (__builtin_expect(around && !around->since, 0))
		return ca_laps_close_any(l, key, time);
	time = ca_laps_tell_time(l, time);
	l->at = around;
	return ca_laps_add(lap, around, time);
}

/* Called too often, with the last one? */
CA_SIGSAFE static inline bool ca_laps_is_hot(const struct ca_laps *l, const struct ca_lap *lap)
{
	return __builtin_expect(lap->count == l->trace->throttle, 0) &&
	       lap->sum / lap->count < CA_RINGS_SHORT;
}
/* It is not raised any more. */
CA_SIGSAFE void ca_laps_throttle(struct ca_laps *l, struct ca_lap *lap);

#endif

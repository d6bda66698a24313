/* SPDX-License-Identifier: MIT */
/* Events: what the tracing core carries.
 *
 * An event is {time, kind, key, value}. Samples, experiments, delays, waits and
 * progress travel in this one form, through per-thread rings (core/ring.h), to
 * sinks (core/sink.h). Keys are registered in a dictionary (core/dict.h); key 0
 * is "disabled": raising it does nothing. */
#ifndef CA_CORE_EVENT_H
#define CA_CORE_EVENT_H
#include <stdint.h>

enum ca_event_kind {
	CA_STATE_BEGIN,
	CA_STATE_END,
	CA_SUBSTATE_BEGIN,
	CA_SUBSTATE_END,
	CA_BURST_BEGIN,
	CA_BURST_END,
	CA_PTP_BEGIN,
	CA_PTP_END,
	CA_POINT
};

struct ca_event {
	uint64_t time;  /* ns, CLOCK_MONOTONIC */
	uint16_t kind;  /* enum ca_event_kind */
	uint16_t flags; /* meaning depends on the key; 0 otherwise */
	uint32_t key;   /* enum ca_key or a key from the dictionary */
	uint64_t value;
};

/* Keys known to every part of causal; the dictionary starts with these.
 * X(id, name, description) */
#define CA_KEYS(X)                                                                                           \
	X(DISABLED, "disabled", "raising this key does nothing")                                             \
	X(SAMPLE, "sample", "innermost frame of a sample; value: ca_place; flags: CA_SAMPLE_*")              \
	X(FRAME, "frame", "next outer frame of the sample before it; value: ca_place of the call")           \
	X(EXPERIMENT, "experiment", "burst: an experiment; value: its index; flags at its end")              \
	X(SELECTION, "selection", "the selected region of the experiment; value: region id")                 \
	X(SPEEDUP, "speedup", "virtual speedup of the experiment; value: millionths")                        \
	X(DELAY, "delay", "a thread paid what it owed; value: ns")                                           \
	X(WAIT, "wait", "burst while a thread is blocked in a call we see; value: enum ca_wait")             \
	X(HIT, "hit", "a sample inside the selection; value: ns of CPU time it stands for")                  \
	X(PROGRESS, "progress", "visits of a progress point; value: point << 48 | count")                    \
	X(ARRIVALS, "arrivals", "latency point: items that began; value: point << 48 | count")               \
	X(IN_FLIGHT, "in flight", "latency point: mean number of items; point << 48 | millionths")           \
	X(S_TIME, "S time", "time in which the selection was active; value: ns")                             \
	X(INSERTED, "inserted", "virtual speedup times S time; value: ns")                                   \
	X(PAID, "paid", "what all threads paid in the experiment; value: ns")                                \
	X(OWED, "owed", "what all threads still owed at its end; value: ns")                                 \
	X(ENTRIES, "entries", "entries into the selection, or hits")                                         \
	X(EXACT, "exact", "1: the selection was probed, 0: it was sampled")                                  \
	X(THREAD, "thread", "state: a thread lives; value: kernel thread id")                                \
	X(PROCESS, "process", "state: a process lives; value: process id")                                   \
	X(DROPPED, "dropped", "samples dropped; flags: enum ca_drop; value: how many")

enum ca_key {
#define X(id, name, text) CA_KEY_##id,
	CA_KEYS(X)
#undef X
		CA_KEY_FIRST_FREE
};

/* Flags of a sample: the periods that it stands for, and whether the thread was blocked. */
enum { CA_SAMPLE_PERIODS = 0x7fff, CA_SAMPLE_WAITING = 0x8000 };

/* A code address in any process of a session: module id and offset from that
 * module's load bias (the address as the ELF file states it). */
typedef uint64_t ca_place;
#define CA_PLACE(module, offset) ((uint64_t)(module) << 48 | ((uint64_t)(offset)&0xffffffffffffu))
#define CA_PLACE_MODULE(place)   ((uint32_t)((place) >> 48))
#define CA_PLACE_OFFSET(place)   ((place)&0xffffffffffffu)

/* Why a sample was dropped. */
#define CA_DROPS(X)                                                                                          \
	X(REENTRY, "the handler was already running")                                                        \
	X(RING_FULL, "the thread's event ring was full")                                                     \
	X(UNWIND, "the stack could not be walked to its end")                                                \
	X(OWN_CODE, "the thread was in causal's own code")                                                   \
	X(NO_MODULE, "the address is in no known module")                                                    \
	X(LOST, "the kernel's sample buffer was full")
enum ca_drop {
#define X(id, text) CA_DROP_##id,
	CA_DROPS(X)
#undef X
		CA_DROP_COUNT
};

#endif

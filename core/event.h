/* SPDX-License-Identifier: MIT */
/* Events: what the tracing core carries.
 *
 * An event is {time, kind, key, value}. Samples, experiments, delays, waits and
 * progress travel in this one form, through per-thread rings (core/ring.h), to
 * sinks (core/sink.h). Keys are registered in a dictionary (core/dict.h); key 0
 * is "disabled": raising it does nothing. */
#ifndef CA_CORE_EVENT_H
#define CA_CORE_EVENT_H
#include <stdbool.h>
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

/* Keys known to every part of causal; the dictionary starts with these. LEVEL: see core/dict.h.
 * X(id, name, LEVEL, description) */
#define CA_KEYS(X)                                                                                           \
	X(DISABLED, "disabled", NONE, "raising this key does nothing")                                       \
	X(SAMPLE, "sample", ADVANCED, "innermost frame of a sample; value: ca_place; flags: CA_SAMPLE_*")    \
	X(FRAME, "frame", ADVANCED, "next outer frame of the sample before it; value: ca_place of the call") \
	X(EXPERIMENT, "experiment", DEFAULT, "burst: an experiment; value: its index; flags at its end")     \
	X(SELECTION, "selection", DEFAULT, "the selected region of the experiment; value: region id")        \
	X(SPEEDUP, "speedup", DEFAULT, "virtual speedup of the experiment; value: millionths")               \
	X(DELAY, "delay", DEFAULT, "a thread has paid what it owed; value: ns; flags: CA_DELAY_*")           \
	X(WAIT, "wait", DEFAULT, "who has ended a wait that took some time; value: enum ca_wait")            \
	X(HIT, "hit", DEFAULT, "a sample inside the selection; value: ns of CPU time it stands for")         \
	X(PROGRESS, "progress", DEFAULT, "visits of a progress point; value: point << 48 | count")           \
	X(ARRIVALS, "arrivals", DEFAULT, "latency point: items that began; value: point << 48 | count")      \
	X(IN_FLIGHT, "in flight", DEFAULT, "latency point: mean number of items; point << 48 | millionths")  \
	X(S_TIME, "S time", DEFAULT, "time in which the selection was active; value: ns")                    \
	X(INSERTED, "inserted", DEFAULT, "virtual speedup times S time; value: ns")                          \
	X(PAID, "paid", DEFAULT, "what all threads paid in the experiment; value: ns")                       \
	X(OWED, "owed", DEFAULT, "what all threads still owed at its end; value: ns")                        \
	X(ENTRIES, "entries", DEFAULT, "entries into the selection, or hits")                                \
	X(EXACT, "exact", DEFAULT, "1: the selection was probed, 0: it was sampled")                         \
	X(THREAD, "thread", DEVELOPER, "burst: a thread lives; value: kernel thread id")                     \
	X(PROCESS, "process", DEVELOPER, "burst: a process lives; value: process id")                        \
	X(DROPPED, "dropped", USER, "so many events are missing here, for want of room")                     \
	X(STATE, "state", DEVELOPER, "state: what a thread does; value: enum ca_activity")                   \
	X(CHANNEL, "channel", DEVELOPER,                                                                     \
	  "sub-state: what input or output waits for; value: ca_channel_kind")                               \
	X(WAKE, "wake", DEVELOPER, "point to point: who ended a wait, and whose; value: id of the pair")     \
	X(VISIT, "visit", USER, "a visit of a progress point; value: its number")                            \
	X(IN_S, "in S", DEFAULT, "burst: a thread runs the selected code; value: region id")                 \
	X(TASK, "task", USER, "burst: a task is on the thread; value: its id")                               \
	X(MUTEX, "mutex", USER, "burst: the program waits for a mutex of its own (1), or holds it")          \
	X(BLOCKED, "blocked", ADVANCED,                                                                      \
	  "how long the sample's thread was off a CPU, ns; 0: it begins to wait; flags: activity")           \
	X(WOKEN, "woken", ADVANCED,                                                                          \
	  "a sample of who woke another, or who was woken; value: their pair; where a wait begins: its "     \
	  "number")                                                                                          \
	X(REGISTER, "register", ADVANCED, "of a stack that the driver walks; flags: DWARF number, 16: pc")   \
	X(WORD, "word", ADVANCED,                                                                            \
	  "of that stack; flags: words above the lowest, or CA_WORDS_END: where it ends")                    \
	X(METRIC, "metric", ADVANCED, "counted since the thread's sample before; flags: enum ca_metric")

/* Keys of the program's own events, on their way to the driver: this and the id (core/names.h). */
#define CA_KEY_USER 0x10000u

enum ca_key {
#define X(id, name, level, text) CA_KEY_##id,
	CA_KEYS(X)
#undef X
		CA_KEY_FIRST_FREE
};

/* What a thread does, as far as its calls tell. */
#define CA_ACTIVITIES(X)                                                                                     \
	X(NONE, "unknown")                                                                                   \
	X(RUNNING, "running")                                                                                \
	X(LOCK, "waiting for a lock")                                                                        \
	X(CONDITION, "waiting for a condition")                                                              \
	X(BARRIER, "waiting at a barrier")                                                                   \
	X(TEAM, "waiting for its team")                                                                      \
	X(JOIN, "waiting for a thread to end")                                                               \
	X(PROCESS, "waiting for a process")                                                                  \
	X(OTHERS, "waiting for another thread")                                                              \
	X(IO, "input or output")                                                                             \
	X(SLEEP, "sleeping")                                                                                 \
	X(SIGNAL, "waiting for a signal")                                                                    \
	X(YIELD, "yielding")                                                                                 \
	X(DELAYED, "delayed by an experiment")
enum ca_activity {
#define X(id, text) CA_ACTIVITY_##id,
	CA_ACTIVITIES(X)
#undef X
		CA_ACTIVITY_COUNT
};

/* What a descriptor leads to. X(id, name) */
#define CA_CHANNELS(X)                                                                                       \
	X(NONE, "a timer, a directory or the like")                                                          \
	X(EVENT, "an event descriptor")                                                                      \
	X(WORD, "shared memory")                                                                             \
	X(FILE, "a file")                                                                                    \
	X(PIPE, "a pipe")                                                                                    \
	X(LOCAL, "a local socket")                                                                           \
	X(TCP, "TCP")                                                                                        \
	X(UDP, "UDP")                                                                                        \
	X(LISTENER, "a TCP connection to come")                                                              \
	X(FAR, "another socket")
enum ca_channel_kind {
#define X(id, text) CA_CHANNEL_##id,
	CA_CHANNELS(X)
#undef X
		CA_CHANNEL_COUNT
};

/* Flags of a delay: how it was paid. */
enum { CA_DELAY_SPUN, CA_DELAY_SLEPT };

/* Flags of a sample: the periods that it stands for, and whether the thread was blocked or in a system call. */
enum { CA_SAMPLE_PERIODS = 0x3fff, CA_SAMPLE_IN_KERNEL = 0x4000, CA_SAMPLE_WAITING = 0x8000 };
/* What the kernel does in system calls, as a function or a binary; it counts for the code that makes them. */
#define CA_KERNEL "[kernel]"
/* So is code that the program has made itself, as JIT compilers do: in no file. */
#define CA_MADE "[made at run time]"

/* Frames of a sample; of a deeper stack so many outermost ones, and the innermost. */
enum { CA_SAMPLE_FRAMES = 64, CA_SAMPLE_OUTERMOST = 16 };

/* Of a stack's words: the first lies so many bytes below the stack pointer; flags of the last. */
enum { CA_WORDS_BELOW = 128, CA_WORDS_END = 0xffff };

/* A code address in any process of a session: module id and offset from that
 * module's load bias (the address as the ELF file states it). */
typedef uint64_t ca_place;
#define CA_PLACE(module, offset) ((uint64_t)(module) << 48 | ((uint64_t)(offset)&0xffffffffffffu))
#define CA_PLACE_MODULE(place)   ((uint32_t)((place) >> 48))
#define CA_PLACE_OFFSET(place)   ((place)&0xffffffffffffu)

/* Why a sample was dropped. */
#define CA_DROPS(X)                                                                                          \
	X(REENTRY, "causal itself was at work in the thread")                                                \
	X(RING_FULL, "the thread's event ring was full")                                                     \
	X(UNWIND, "the stack could not be walked to its end")                                                \
	X(OWN_CODE, "the thread was in causal's own code")                                                   \
	X(NO_MODULE, "the address is in no known module")                                                    \
	X(LOST, "the kernel's sample buffer was full")                                                       \
	X(NO_EVENT, "a thread could not get the event of --overflow, or a counter")
enum ca_drop {
#define X(id, text) CA_DROP_##id,
	CA_DROPS(X)
#undef X
		CA_DROP_COUNT
};

/* Is it time of the program that is missing? A tick while a thread pays, or else in the runtime, falls into none, a
 * stack that could not be walked to its end is used as far as it goes, and an event that a thread could not get is no
 * tick. */
static inline bool ca_event_is_loss(unsigned drop)
{
	return drop == CA_DROP_RING_FULL || drop == CA_DROP_NO_MODULE || drop == CA_DROP_LOST;
}

#endif

/* SPDX-License-Identifier: MIT */
/* The selected code S, and the log of what happens to it. The conductor writes the selection under
 * a sequence lock; any thread of the program appends to the log. Both lie in the session. */
#ifndef CA_CORE_SELECTION_H
#define CA_CORE_SELECTION_H
#include "core/site.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	CA_MAX_RANGES = 4096,
	CA_MAX_SITES = 128,    /* of S */
	CA_MAX_MEETINGS = 384, /* behind them: kind MEET */
	CA_SELECTION_SITES = CA_MAX_SITES + CA_MAX_MEETINGS,
	CA_MAX_SPINS = 64,        /* what is looked at in spin loops */
	CA_PARTS = 4,             /* regions that are sped up at once, at most */
	CA_ELSEWHERE = 4,         /* threads that were found on another stack than S so often change stacks */
	CA_LOG_ENTRIES = 1 << 16, /* a power of two */
	/* Entries behind an unpublished one after which its writer counts as dead: more than all
	 * threads append while one that was preempted between its two stores is away. */
	CA_LOG_HOLE = 4096
};

struct ca_range {
	uint32_t module;
	uint32_t part;      /* of the selection */
	uint64_t low, high; /* [low, high), file addresses */
};

struct ca_selection {
	_Atomic uint64_t seq; /* odd while the conductor writes */
	uint32_t region;      /* region id in the conductor's catalog */
	uint32_t ranges, sites;
	uint32_t exact; /* S is known by sites, not by samples ... */
	uint32_t
		fine; /* ... which time it, and take hits of what they add up, in place of logging each visit */
	uint32_t edges; /* ... at edges of the code: who leaves by another way is found out by a tick */
	/* Where S is sampled, for each layer: when a thread was found in it, how many of the others on a CPU,
	 * looked at at the same time, were found there, too; and how many would have been if they knew
	 * nothing of each other, millionths. Added to by the runtimes, set by the conductor. */
	_Atomic uint64_t pairs[CA_PARTS], pairs_expected[CA_PARTS];
	uint64_t log_start; /* first log entry about this selection */
	/* Parts with speedups of their own, slowest first: what each has of the experiment's speedup,
	 * millionths; the last has all of it. 0 parts: it is one. */
	uint32_t parts, weight[CA_PARTS];
	struct ca_range range[CA_MAX_RANGES]; /* sorted by module, then low */
	struct ca_site site[CA_SELECTION_SITES];
	uint32_t spins;
	struct ca_spin spin[CA_MAX_SPINS]; /* of the modules whose meetings are known */
};

/* The conductor alone writes: between these two calls readers keep off. */
static inline void ca_selection_begin(struct ca_selection *sel)
{
	atomic_fetch_add(&sel->seq, 1);
}
static inline void ca_selection_end(struct ca_selection *sel)
{
	atomic_fetch_add(&sel->seq, 1);
}
/* False: it is being written just now. *seq: which one is read. */
CA_SIGSAFE static inline bool ca_selection_read(const struct ca_selection *sel, uint64_t *seq)
{
	*seq = atomic_load_explicit(&sel->seq, memory_order_acquire);
	return !(*seq & 1);
}
/* Was what has been read since then whole? */
CA_SIGSAFE static inline bool ca_selection_is_still(const struct ca_selection *sel, uint64_t seq)
{
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&sel->seq, memory_order_relaxed) == seq;
}

/* S with parts is as many layers as these, one upon the other: layer k is S for all parts from k on, and has
 * so much of the speedup, millionths. Returns how many. */
CA_SIGSAFE static inline unsigned ca_selection_layers(const struct ca_selection *sel,
						      uint32_t width[CA_PARTS])
{
	unsigned n = sel->parts < CA_PARTS ? sel->parts : CA_PARTS;

	for (unsigned k = 0; k < n; k++)
		width[k] = sel->weight[k] - (k ? sel->weight[k - 1] : 0);
	if (!n)
		width[0] = 1000000;
	return n ? n : 1;
}
/* So much of some ns that are a layer's. */
CA_SIGSAFE static inline uint64_t ca_selection_weigh(uint32_t width, uint64_t ns)
{
	return width == 1000000 ? ns : ns / 1000000 * width + ns % 1000000 * width / 1000000;
}

/* ---- the S log: what happened to the selected code S, in order ---------------
 * Appended by any thread with fetch_add on log_head; a reader trusts an entry
 * when its seq is its own number + 1 (released last by the writer) before and after. */
enum ca_log_type {
	CA_LOG_ENTER = 1, /* thread is in S from `time` on; value: in which part; again: in another one */
	CA_LOG_EXIT,      /* ... until `time`; value: in which part it was */
	CA_LOG_OFF,       /* in S but waiting for others from `time` on (time may lie in the past) */
	CA_LOG_ON,        /* back on the CPU from `time` on; also ends CA_LOG_EXTERNAL */
	CA_LOG_EXTERNAL,  /* in S and waiting for the outside world: still counts as S */
	CA_LOG_WAS_OFF,   /* in S but off the CPU from `time` to `value`, both in the past; not a wait */
	CA_LOG_HIT,       /* a sample in S at `time`; value: CA_LOG_HIT_VALUE */
	/* From `time` on all of the run stands still for as long as S of `value` ns delays it ... */
	CA_LOG_STILL,
	CA_LOG_HELD, /* ... and has done so: nobody owes for it. By the conductor, thread 0 */
	CA_LOG_PROBES /* the probes of S took so long that S of `value` ns delays the others by as much, by then */
};
/* Does it change who is at work in S, from its time on? */
CA_SIGSAFE static inline bool ca_selection_moves(uint32_t type)
{
	return type < CA_LOG_WAS_OFF;
}
/* ns of union S time that a hit stands for, in one layer of S. */
#define CA_LOG_HIT_VALUE(ns, layer) ((uint64_t)(layer) << 56 | (ns))
#define CA_LOG_HIT_NS(value)        ((value) & (UINT64_MAX >> 8))
#define CA_LOG_HIT_LAYER(value)     ((unsigned)((value) >> 56))
struct ca_log_entry {
	_Atomic uint64_t seq;
	uint64_t time;   /* ns, CLOCK_MONOTONIC */
	uint32_t thread; /* slot number */
	uint32_t type;   /* enum ca_log_type */
	uint64_t value;
};

#define CA_LOG_WRITING (UINT64_C(1) << 63) /* in seq: not to be read, nor written by others */

/* What stands at `cursor`, when `head` entries have been appended. */
enum ca_log_look {
	CA_LOG_THERE,   /* in *e */
	CA_LOG_NOT_YET, /* its writer is at it */
	CA_LOG_LOST     /* its writer is dead, or the entry has been written over */
};
CA_SIGSAFE static inline enum ca_log_look ca_selection_look(const struct ca_log_entry *log, uint64_t cursor,
							    uint64_t head, struct ca_log_entry *e)
{
	const struct ca_log_entry *from = &log[cursor % CA_LOG_ENTRIES];
	/* acquire: pairs with the release of seq in ca_selection_append */
	uint64_t seq = atomic_load_explicit(&from->seq, memory_order_acquire);

	if (seq == cursor + 1) {
		e->time = from->time;
		e->thread = from->thread;
		e->type = from->type;
		e->value = from->value;
		atomic_thread_fence(memory_order_acquire);
		seq = atomic_load_explicit(&from->seq, memory_order_relaxed);
		return seq == cursor + 1 ? CA_LOG_THERE : CA_LOG_LOST;
	}
	return (seq & ~CA_LOG_WRITING) <= cursor + 1 && head - cursor < CA_LOG_HOLE ? CA_LOG_NOT_YET
										    : CA_LOG_LOST;
}

/* Any thread, for itself; and whoever notices that another one is gone, for that one: all who read
 * the log must come to know of it. A writer that was away for as long as it took the others to fill the
 * log leaves what is newer alone. While one is at an entry, or died over it, the next one's is lost. */
CA_SIGSAFE static inline void ca_selection_append(_Atomic uint64_t *head, struct ca_log_entry *log,
						  enum ca_log_type type, uint32_t thread, uint64_t time,
						  uint64_t value)
{
	uint64_t n = atomic_fetch_add_explicit(head, 1, memory_order_relaxed);
	struct ca_log_entry *e = &log[n % CA_LOG_ENTRIES];
	uint64_t there = atomic_load_explicit(&e->seq, memory_order_relaxed), mine = CA_LOG_WRITING | (n + 1);
	uint64_t last = there & ~CA_LOG_WRITING;

	if (last > n || (last != there && n - last < CA_LOG_ENTRIES) ||
	    !atomic_compare_exchange_strong_explicit(&e->seq, &there, mine, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	atomic_thread_fence(memory_order_release); /* pairs with the fence in ca_selection_look */
	e->time = time;
	e->thread = thread;
	e->type = type;
	e->value = value;
	/* release: readers acquire seq before they look at the rest */
	atomic_compare_exchange_strong_explicit(&e->seq, &mine, n + 1, memory_order_release,
						memory_order_relaxed);
}

#endif

/* SPDX-License-Identifier: MIT */
/* What each thread of the program reports: its slot in the session. */
#ifndef CA_CORE_SLOT_H
#define CA_CORE_SLOT_H
#include "core/event.h"
#include "core/point.h"
#include "core/ring.h"
#include "core/selection.h"
#include <stdatomic.h>
#include <stdint.h>

enum { CA_MAX_THREADS = 16384 }; /* at one time, all processes together */

enum {
	CA_IN_S = 1,
	CA_IN_S_OFF = 2,      /* waits for others */
	CA_IN_S_EXTERNAL = 4, /* for the outside */
	CA_IN_S_PART = 8      /* from this bit on: which part of S */
};
static inline uint32_t ca_slot_in_s(unsigned how, unsigned part)
{
	return how + part * (unsigned)CA_IN_S_PART;
}

/* A word of `width` bytes at a run-time address; CA_SPUN_WIDTH(0) is no word. */
#define CA_SPUN_ON(address, width) ((uint64_t)(width) << 56 | (address))
#define CA_SPUN_ADDRESS(word)      ((word) & (UINT64_MAX >> 8))
#define CA_SPUN_WIDTH(word)        ((unsigned)((word) >> 56))

#define CA_LOOK_LAYERS UINT64_C(7) /* of last_look */
_Static_assert(CA_PARTS <= CA_LOOK_LAYERS, "it has no room for so many");

/* One thread. Written by that thread, read by the conductor. count[] and stamp[]
 * only ever grow, also when the slot passes to another thread. */
struct ca_slot {
	_Atomic uint32_t state; /* enum ca_slot_state */
	uint32_t process;       /* index into process[] */
	uint32_t pid, tid;
	/* For a profile: the thread's index in the run, and the wait that it is in: since when, ns (0: in none; released),
	 * and by which number its stack was told before (0: it was not) */
	uint32_t thread_index;
	_Atomic uint32_t wait_number;
	_Atomic uint64_t wait_since;
	_Atomic uint64_t experiment; /* experiment.seq that owed/paid belong to */
	_Atomic uint64_t owed;       /* ns still to pay */
	_Atomic uint64_t paid;       /* ns paid in this experiment */
	_Atomic uint64_t spun;       /* ns paid on a CPU, in all; only ever grows, like count[]; so do */
	_Atomic uint64_t probed;     /* ns on a CPU that timed S took longer than by itself, and */
	_Atomic uint64_t turns;      /* of the program's own spin loops, as far as seen */
	_Atomic uint64_t met;        /* how often it has met others where S is sampled */
	/* What it looked at when it was last found in a spin loop, see CA_SPUN_ON; set to 0 by the conductor */
	_Atomic uint64_t spun_on;
	_Atomic uint64_t samples;    /* all samples taken */
	_Atomic uint64_t handler_ns; /* time spent in our handler */
	/* How fast the CPUs are that it has: cycles that pieces of work which are always the same took, and their number */
	_Atomic uint64_t yardstick, yardsticks;
	/* ns by ticks that found it in other code of ours, and the part of it that is in the time of S; only ever grow */
	_Atomic uint64_t overhead, overhead_in_s;
	/* Where S is sampled: ns of the last look at the stack, with the number of layers of S that it was in
	 * for the lowest bits; when it has met others last, ns; and for each layer the share of such looks at this
	 * selection, millionths (0: never), how often a look just before a hit of another thread found it there, and how
	 * often that was to be expected by that share, millionths */
	_Atomic uint64_t last_look, last_met;
	/* ... ns between two, while it is on a CPU; 0: the session's period */
	_Atomic uint32_t look_every;
	_Atomic uint32_t share_in_s[CA_PARTS];
	_Atomic uint64_t pairs[CA_PARTS], pairs_expected[CA_PARTS];
	_Atomic uint32_t in_s;   /* inside S now (exact): CA_IN_S and how; 0: not */
	_Atomic uint32_t paying; /* counted in the session's paying */
	/* The thread's own account of S: how long S was active in that experiment, ns, up to s_until;
	 * released with s_until */
	_Atomic uint64_t s_time, s_until;
	_Atomic uint32_t
		s_heard; /* it was told by others since the experiment began, and not by the log alone */
	_Atomic uint64_t drop[CA_DROP_COUNT];
	_Atomic uint64_t stamping;    /* odd while a count and its stamp do not belong together */
	_Atomic uint64_t paying_more; /* ns paid without being counted there */
	_Atomic uint64_t limited;     /* ns by which it has waited longer for a time, which moves with D */
	_Atomic uint64_t limits;      /* waits for a time, or with a time limit, which moves with D */
	_Atomic uint64_t outside;     /* ns that it has waited for somebody outside of the run */
	/* In a wait that we see: 1 + the lag of virtual time with which what it waits for is in step, ns (0
	 * for others of the session); 0: it runs, or nobody knows */
	_Atomic uint64_t waits;
	/* The most by which somebody outside who cannot be held back was ahead of virtual time in that
	 * experiment, ns */
	_Atomic uint64_t ahead;
	_Atomic uint64_t ring_ready; /* 1: by the thread, or the conductor; it stays when the slot is freed */
	_Alignas(64) _Atomic uint64_t count[CA_MAX_POINTS];
	_Atomic uint64_t stamp[CA_MAX_POINTS]; /* begin and end points: sum of the visits' virtual
						* times since their experiment began, ns, mod 2^64 */
	_Atomic uint64_t last[CA_MAX_POINTS];  /* virtual time of the last visit, ns, on the run's clock:
						* CLOCK_MONOTONIC less all delays so far */
	_Atomic uint64_t hot[CA_MAX_POINTS];   /* 1: visited so often that visits are only counted */
	/* In pages of its own, which have backing store once ring_ready is set: most threads of a program that
	 * has thousands are never sampled. See ca_session_ring. */
	_Alignas(4096) struct ca_ring ring;
};

#endif

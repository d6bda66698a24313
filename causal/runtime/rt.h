/* SPDX-License-Identifier: MIT */
/* The runtime's state: the process, its threads, and the switch that turns all of it off.
 * Everything runs in the host program's threads; nothing here is exported.
 *
 * Entry points are of three kinds, and each enters the guard first:
 *   handler.c  the tick handler, in a signal
 *   probe.c    hooks of patched code, anywhere in the program, vector registers unsaved
 *   wrap_*.c   functions that we interpose, in ordinary context
 * While the guard is held, the others return at once (a tick then counts as dropped). */
#ifndef CA_CAUSAL_RUNTIME_RT_H
#define CA_CAUSAL_RUNTIME_RT_H
#include "core/clock.h"
#include "core/laps.h"
#include "core/names.h"
#include "core/rng.h"
#include "core/session.h"
#include "sampler/host.h"
#include "sampler/switches.h"
#include "sampler/tick.h"
#include "sampler/unwind.h"
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#define CA_HIDDEN __attribute__((visibility("hidden")))
#define CA_EXPORT __attribute__((visibility("default")))

/* Our signal: a standard one, so that it never queues up, of which hardly any program takes notice.
 * Where no handler stands it is ignored, as in a program that is just being executed; and debuggers
 * pass it on without a stop. */
#define CA_SIGNAL SIGURG

enum { CA_INSIDE = 256, CA_FRAMES = 32, CA_OFFS = 16, CA_LUMP_SITES = 16, CA_HISTORIES = 16 };
enum { CA_SPIN_GAP = 3000 }; /* ns between two pauses of one wait, at most */

/* Life of a thread record. All transitions are in thread.c. */
enum ca_thread_state { CA_THREAD_NONE, CA_THREAD_LIVE, CA_THREAD_EXITING };

enum ca_wait {
	CA_WAIT_OTHERS,  /* for another thread or process of the session: owes nothing */
	CA_WAIT_EXTERNAL /* for the world outside, which cannot be slowed: owes p x S time */
};

/* A burst or state of the program's own that is open. */
enum { CA_OPENS = 64 };
struct ca_open {
	uint32_t key;
	uint32_t kind; /* enum ca_event_kind: how it begins */
	uint64_t value;
};

/* A place at which a thread meets others, and what it is to pay there for samples of S; see lumps.h. */
struct ca_lump_site {
	uintptr_t place; /* an address in the program; 0: none of its own */
	uint64_t seen;   /* ns; it was there last */
	int64_t due;     /* ns of S; below 0: paid ahead */
	int64_t left;    /* ... of which was left after the last payment */
	int64_t rate;    /* ... that are expected to become due, see lumps.c */
};
struct ca_lumps {
	int64_t fresh; /* ns of S that became due since it has met others */
	uint64_t met;  /* ns; when that was */
	struct ca_lump_site site[CA_LUMP_SITES];
};

/* Its share of a CPU, ns; see level.h. */
struct ca_cpu_share {
	uint64_t beyond;          /* CPU time of experiments so far that is none in virtual time ... */
	uint64_t told;            /* ... of that in the sum of its CPU, and ... */
	uint64_t heard;           /* ... what of that sum is made up for, at the last look ... */
	uint64_t ahead;           /* what of its own is neither made up for to others, nor slept off ... */
	uint64_t looked;          /* ... then ... */
	uint64_t experiment;      /* ... in this one, as in ca_thread */
	uint64_t unsure;          /* others of its CPU have added so much while it slept, or waited */
	int64_t behind;           /* the average of who shares its CPU, in this experiment */
	uint64_t on, off, waited; /* lately: on a CPU; off it, and of that in a run queue ... */
	uint64_t measured, cpu_at, queued_at, left; /* ... and clocks and counters of that at the last tick */
	uint32_t cpu;                               /* on which it was at the last look */
	bool blind;                                 /* the kernel does not tell */
};

/* How often a thread was found in each layer of what is selected, and how often just when another thread was; see
 * history.h. */
struct ca_history {
	uint32_t region; /* 0: of none */
	uint64_t looks, found[CA_PARTS];
	/* those of the slot, while something else is selected */
	uint64_t pairs[CA_PARTS], expected[CA_PARTS];
};

/* What visits have taken with all that is between them, cycles; and what turns were off from the mean, squared, / 256. */
struct ca_fine_turn_sum {
	uint64_t turns, took, visits, squares;
};

/* Visits of timed S are timed in turns, and only counted in the others; see fine.c. */
enum {
	CA_FINE_TIMED,
	CA_FINE_SHORT, /* only counted, as many visits as are timed */
	CA_FINE_LONG   /* ... many more */
};
struct ca_fine_turns {
	uint32_t region;               /* whose they are */
	bool used, counts;             /* most turns count; and this is one of them ... */
	bool compares;                 /* ... which is as long as those that are timed */
	uint32_t visits;               /* fine->visits when it began ... */
	uint64_t from;                 /* ... the cycle counter ... */
	uint64_t spun, others;         /* ... ns that it had paid on a CPU; and ticks, and times off a CPU */
	uint32_t hits;                 /* so far */
	uint32_t counted;              /* visits of the last one that counts, which are in no hit yet */
	uint64_t mass, timed;          /* of those timed lately: ns of S, and how many, << 8 */
	uint32_t begun;                /* turns since the last hit */
	struct ca_fine_turn_sum of[3]; /* by CA_FINE_... */
};

/* One thread. Written by that thread and its handler only. */
struct ca_thread {
	/* hot: ledger */
	volatile int guard; /* > 0: in our code */
	uint32_t number;    /* slot number */
	struct ca_slot *slot;
	uint64_t selection;  /* selection.seq that cursor and inside[] belong to */
	uint64_t experiment; /* experiment.seq as last seen; odd: owed belongs to it */
	uint64_t speedup;    /* ... its speedup, millionths ... */
	uint64_t start;      /* ... its start, ns ... */
	uint64_t settled;    /* D of the experiments up to settled_seq, ns */
	uint64_t settled_seq;
	bool settling;        /* it is over, and D not known yet: late entries of the log count */
	uint64_t cursor;      /* next log entry to read */
	uint64_t last;        /* ns; all before it is accounted for */
	uint64_t owing_since; /* ns; the end of its last wait for others, or its beginning */
	uint64_t last_cpu;    /* ns of thread CPU time at `last`; only without a switch log */
	/* ... and when we were off the CPU, as far as that tells: the last ones, as a ring */
	struct ca_interval off[CA_OFFS];
	uint32_t offs;
	int64_t owed;      /* ns; below 0: paid ahead */
	int64_t left_in_s; /* ns of it for which waits in S have yet to wait on */
	struct ca_lumps lumps;
	uintptr_t routine; /* what it was created to run; 0: not known */
	struct ca_cpu_share level;
	uint64_t s_time; /* ns of the experiment in which S was active, up to `last`; 0 once it
				* is part of `settled` */
	uint64_t seen;   /* ns; when it was the session's seer, or could have been, last */
	uint64_t limit;  /* lag of virtual time when a wait for it ended last, or this experiment began */
	uint64_t last_reading; /* ns; of the clock, while an experiment was open */
	uint32_t readings;     /* one shortly after another, with no data read or written between */
	uint64_t sleep_for;    /* see ca_wait_sleep */
	uint64_t last_look;    /* cycle counter at the last meeting */
	uint64_t looks_from;   /* ... when it began to look at the clock, and has met nobody since; or 0 */
	uint64_t atomics_from; /* ... when the visits below began to be counted */
	uint32_t atomics;      /* visits of sites at atomic operations */
	uint32_t other_meets;  /* meetings of other kinds meanwhile */
	uint64_t spins_since;  /* ns; it spun from then on ... */
	uint64_t spins_until;  /* ... as far as its pauses tell, which come one shortly after another */
	uint32_t pauses, spin_looks; /* so far; and looks at what it spins on */
	uint32_t stamps;             /* visits of points that took the time, since stamps_from (ns) */
	uint64_t stamps_from;
	uint64_t begun[CA_MAX_LATENCIES]; /* virtual time, ns, at which a visit began; 0: none is open */
	uint32_t meets_seen;              /* `meets` after the last such visit */
	uint32_t inside_count;            /* threads in S in our replica of the log, without us */
	uint32_t inside_more;             /* ... those that inside_slot has no room for */
	uint32_t inside_off;              /* ... of those it has, that wait for others */
	bool inside_me, inside_my_off;    /* we are in S; and wait for others there */
	bool heard;                       /* s_time was told by others, since the experiment began */
	uint8_t inside_my_part;
	uint8_t layers;              /* of S ... */
	uint32_t width[CA_PARTS];    /* ... and what each has of the speedup, millionths */
	bool wait_in_s;              /* in a wait that was found to be S when it began (sampled) */
	const enum ca_wait *waiting; /* inside a wait of this kind: nothing is paid */
	uintptr_t waiting_sp;        /* the stack pointer in it; above: it was left by longjmp */
	struct ca_rings_writer trace;
	/* Waits between which it hardly works, as if one: pairs told when it began; ns, when it ended. */
	uint64_t waits_from, wait_ended;
	struct ca_laps laps;        /* where bursts are not events */
	struct ca_clock_fast clock; /* of its own events */
	uint32_t
		opens; /* bursts and states of its own code that are open: no more than open[] has room for */
	uint32_t too_deep; /* ... beyond that */
	enum ca_activity doing,
		waits_doing;          /* what the wait that begins next is; what the one we are in is */
	const void *object;           /* ... and for what */
	enum ca_channel_kind channel; /* of the input or output that we wait for; NONE: of none */
	/* where we are in S (exact) */
	uint32_t depth; /* frames in S on our stack */
	uintptr_t frame[CA_FRAMES];
	uint8_t frame_part[CA_FRAMES];
	uint8_t part;      /* of S: the largest of them, as the log has it */
	uint8_t next_part; /* of the entry that it passes just now */
	bool elsewhere;    /* it was in S, or left it, on other stacks: each tick looks where it is */
	uint64_t entered;  /* ns; in S since then, or: up to there the others know when it was off the CPU */
	uint64_t entered_cpu; /* ns of thread CPU time at that time; only without a switch log */
	/* ns of it when it was last asked for, and when that was (account.h); and when the kernel told, if it has not
	 * slept since, else 0 */
	uint64_t cpu_read, cpu_read_at, cpu_known, cpu_known_at;
	bool waited;  /* blocked in a call we saw since then */
	bool checked; /* looked for frames that entered S before the sites were placed */
	/* where S is timed (fine.c) */
	struct ca_fine *fine;
	uint64_t fine_limit;  /* ns of S that make the next hit */
	uint64_t fine_exempt; /* fine->exempt as accounted for */
	uint32_t fine_visits; /* fine->visits at the last hit ... */
	uint64_t fine_from;   /* ... and the cycle counter */
	uint64_t fine_cost;   /* ns that it took; and all hooks since */
	uint64_t fine_spent;
	uint64_t fine_probes; /* ns that they took, which others have not been told */
	struct ca_fine_turns fine_turns;
	uint64_t fine_cpu; /* ns of thread CPU time then; only without a switch log */
	/* sampling */
	bool sampled_in;        /* S is sampled, and the last look at our stack found it */
	uint64_t paid_in_ticks; /* ns, since the last sample of it */
	uint64_t hit_cpu;       /* thread CPU time at the last sample ... */
	uint64_t hit_spun;      /* ... and what it had paid on a CPU by then, ns */
	bool in_kernel;         /* the last tick found it in a system call ... */
	bool counts;            /* ... and is for a sample ... */
	bool beside;            /* ... and perf's ticks see the rest ... */
	uint64_t of_kernel;     /* ... and it is the kernel's, and stands for so much time, ns; 0: perf's */
	uint64_t handler_cpu;   /* ... when the handler began; 0: a switch log tells more cheaply */
	uint32_t samplers;      /* of this thread: 1 << enum ca_sampler */
	uint64_t cpu_due;       /* periods since the last sample of CPU time */
	uint64_t real;          /* ns: until then real time has its samples */
	uint64_t overflow_seen; /* events of --overflow up to the last sample of them ... */
	uint64_t overflows;     /* ... and those that the handler is called for */
	uint64_t metric[CA_METRIC_COUNT]; /* as counted at the last sample */
	uint32_t told_wait;               /* stacks of waits that begin, so far; the last of them ... */
	uint64_t told_at, told_place;     /* ... at that time, ns, and where; */
	uint64_t open_cpu, open_blocked; /* at the begin of the wait that is open: thread CPU time; blocked */
	uint64_t told_due;               /* ns; the next ones may come so often: see sample.c */
	uint64_t yardstick_least;        /* cycles, of what it took at a tick */
	/* what looks have found at this selection, and at others before: one per region */
	struct ca_history history, histories[CA_HISTORIES];
	uint64_t ticks;
	bool alone;          /* the guard is up because of ca_thread_leave_alone */
	uintptr_t paying_sp; /* it pays in a wrapper or a hook, in this frame: a handler of the program's
			      * may leave that by longjmp */
	volatile uintptr_t clock_sp; /* a wrapper of a clock call is at work, in this frame ... */
	volatile bool late;          /* ... and a tick came meanwhile */
	uintptr_t held_sp;           /* our signal is blocked by a wrapper with this frame; 0: it is not */
	/* cold */
	enum ca_thread_state state;
	pid_t tid;
	_Atomic int readers; /* threads reading `switches` right now */
	/* what is not zeroed when a thread begins */
	uint32_t inside_slot[CA_INSIDE];
	uint64_t inside_until[CA_INSIDE]; /* external wait: ns at which it stops to count as S */
	uint8_t inside_flag[CA_INSIDE];   /* 0 on a CPU, 1 waiting for others, 2 external wait */
	uint8_t inside_part[CA_INSIDE];   /* of S */
	struct ca_open open[CA_OPENS];
	struct ca_tick tick, overflow;
	uint64_t tick_period;     /* ns of CPU time */
	uint64_t tick_length;     /* ... as drawn around it ... */
	uint64_t tick_experiment; /* ... for this experiment */
	uint64_t tick_weight;     /* periods that a tick's sample stands for ... */
	bool tick_drawn;          /* ... but for perf's that come one tick_length after the other ... */
	uint64_t tick_rest;       /* ... ns of which are in no sample yet */
	uint64_t young;           /* ns: it has had no tick so far, and looks then whether it needs one; 0:
				   * it has its sources, see thread.c */
	uint64_t switches_seen;   /* times off a CPU up to the last tick ... */
	uint32_t meets;           /* meetings and waits since then ... */
	uint32_t steadily;        /* ... many at so many ticks, up to the last one ... */
	uint32_t creates;         /* ... and threads that it has created ... */
	uint64_t creates_from;    /* ... which was at that time, ns */
	/* without a switch log: times that it had gone to sleep, and that others were chosen to run, when its last wait was over */
	uint64_t sleeps, preempted;
	uint64_t slept, slept_at; /* times that it has gone to sleep, up to then, ns ... */
	uint64_t was_off;         /* ... and been off a CPU, as its log says ... */
	bool slept_known, hops;   /* ... hops: more often than a log is worth */
	uint64_t blocked;         /* ns off a CPU in waits, for samples */
	struct ca_rng rng;
	struct ca_switches switches;
	struct ca_stack stack;               /* scratch of the handler */
	_Alignas(64) char work_stack[32768]; /* the handler runs here: the program's own signal
					      * stacks are small (8 KiB in Rust and Go) */
	struct ca_event event[CA_SAMPLE_FRAMES + 3 +
			      CA_METRIC_COUNT]; /* ... too: the stack it runs on may be small */
};

/* The process. Written once in the constructor, except where said. */
struct ca_runtime {
	/* false: switched off, wrappers pass through. Alone on a page that becomes zeros in the
	 * child of any fork, also of one that libc knows nothing of */
	_Alignas(4096) _Atomic bool on;
	_Alignas(4096) struct ca_session *session; /* NULL: we are not active here */
	bool joined;                               /* we were on until this process was forked */
	bool sees_conductor;                       /* their pids mean the same as ours */
	bool signal_taken;                         /* CA_SIGNAL is ours, for good */
	char session_path[CA_PATH];
	char own_path[CA_PATH]; /* of this object, for LD_PRELOAD */
	uint32_t process;       /* index in session->process */
	uint32_t pid;
	_Atomic uint32_t slots; /* of the session's, that are mapped here */
	uint64_t period;
	_Atomic(struct ca_thread *) by_slot[CA_MAX_THREADS]; /* threads of this process */
	uintptr_t own_low, own_high;                         /* our own text */
	_Atomic uint64_t lag; /* of virtual time, ns, as somebody here has seen it last */
	bool patching;
	bool is_load; /* we serve the run as its load (--load): S is never here, and no sample counts */
	struct ca_rings *trace; /* NULL: nothing is traced */
	struct ca_names *names; /* of the program's own events; NULL: they stay off */
	uint64_t events;        /* that somebody wants: 1 << enum ca_key; 0 without a trace */
	bool sampling;          /* samples are for a profile (session.h); false without a trace */
};
extern CA_HIDDEN struct ca_runtime ca_rt;
extern CA_HIDDEN __thread struct ca_thread *ca_self __attribute__((tls_model("initial-exec")));

/* The program spins, waiting for others: so many turns more, of some 100 ns each. */
enum { CA_RT_YIELD_TURNS = 5 };
static inline void ca_rt_spins(struct ca_thread *t, uint64_t turns)
{
	if (t)
		atomic_fetch_add_explicit(&t->slot->turns, turns, memory_order_relaxed);
}

/* Is the thread in S, whichever way its probes tell? */
CA_SIGSAFE static inline bool ca_rt_is_in_s(const struct ca_thread *t)
{
	return __builtin_expect(t->depth != 0, 0) ||
	       __builtin_expect(atomic_load_explicit(&t->fine->outer, memory_order_relaxed) != 0, 0);
}

/* Is that address on the stack that the thread was given, and not on one for signals, or a coroutine's? */
CA_SIGSAFE static inline bool ca_rt_on_own_stack(const struct ca_thread *t, uintptr_t at)
{
	return at - t->stack.own_low < t->stack.own_high - t->stack.own_low;
}

/* Rows of the session's slots that may be in use; of other processes not all, where we could not map
 * them. */
CA_SIGSAFE static inline uint32_t ca_rt_slots_used(void)
{
	uint32_t used = atomic_load_explicit(&ca_rt.session->slots_used, memory_order_relaxed);
	uint32_t mapped = atomic_load_explicit(&ca_rt.slots, memory_order_relaxed);

	return used < mapped ? used : mapped;
}

/* One line, then off for good: all debts forgiven, nothing delayed any more. */
CA_HIDDEN CA_SIGSAFE void ca_rt_off(const char *reason);
/* The same in silence: the run is over, or goes on without this process. Was it on? */
CA_HIDDEN CA_SIGSAFE bool ca_rt_quit(void);
/* Now and then, in a handler: is there still a run? */
CA_HIDDEN CA_SIGSAFE void ca_rt_tend(uint64_t now);
/* The conductor's heart has stopped: nothing may be delayed now. Switches us off when its
 * process is dead. */
CA_HIDDEN CA_SIGSAFE bool ca_rt_conductor_is_gone(uint64_t now);
/* Is there a process of that number? */
CA_HIDDEN CA_SIGSAFE bool ca_rt_process_exists(uint32_t pid);

#endif

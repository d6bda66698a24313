/* SPDX-License-Identifier: MIT */
/* The session: memory shared by the conductor (in the driver's process) and the
 * runtime in every process of one run. This file is its layout; what stands in it has headers of
 * its own: core/fine.h, core/latency.h, core/module.h, core/peer.h, core/point.h, core/selection.h, core/site.h, core/slot.h.
 *
 * Who writes what is said at each member. All fields have fixed size and no
 * pointers; any process may die at any moment, so nobody ever waits without a
 * bound for another, and there are no locks. The file is sparse: only the thread
 * slots below slots_ready (their rings once ring_ready is set) have backing store (the conductor allocates ahead, the
 * runtime where that is not enough, so that a full disk can never raise SIGBUS in
 * the host). */
#ifndef CA_CORE_SESSION_H
#define CA_CORE_SESSION_H
#include "core/fine.h"
#include "core/latency.h"
#include "core/module.h"
#include "core/peer.h"
#include "core/point.h"
#include "core/samplers.h"
#include "core/selection.h"
#include "core/slot.h"
#include "core/slot_set.h"
#include "core/status.h"
#include <stdatomic.h>
#include <stdint.h>

#define CA_SESSION_MAGIC 0x31534c5553414331u /* "1CASULS1" */
enum {
	CA_SESSION_VERSION = 1,
	CA_MAX_PROCESSES = 2048,
	CA_MAX_REQUESTED = 512,
	CA_MAX_CPUS = 1024,
	CA_MILLION = 1000000,
	CA_SPEEDUP_PROBES = 1 /* millionth: all that is inserted is for CA_LOG_PROBES */
};
#define CA_PID_UNKNOWN UINT32_C(0x7fffffff) /* no process has it */

/* ---- the experiment: written by the conductor --------------------------------*/
struct ca_experiment {
	_Atomic uint64_t seq; /* odd: open. Released after the other fields */
	uint32_t index;       /* 1-based within the run */
	uint32_t
		speedup; /* millionths; at 0 %, where others are held up for what probes take, CA_SPEEDUP_PROBES */
	uint64_t start;     /* ns */
	uint64_t end;       /* ns; once seq is even */
	uint64_t caught_up; /* of the session, when it began, ns */
};

struct ca_process {
	_Atomic uint32_t state;        /* enum ca_slot_state */
	uint32_t pid;                  /* as the driver sees it; CA_PID_UNKNOWN: it does not, so far */
	uint32_t own_pid;              /* as it sees itself ... */
	uint32_t parent;               /* own_pid of who has made it */
	uint32_t index;                /* sequent from 1, in the order in which processes took part */
	uint64_t pid_space;            /* ... in this namespace, see ca_session_pid_space */
	uint64_t started;              /* ns, CLOCK_MONOTONIC */
	_Atomic uint64_t patched;      /* selection.seq whose sites are in place here (or given up) */
	_Atomic uint32_t patch_failed; /* sites that could not be patched for that seq */
	_Atomic uint64_t ended;        /* id of the pair that was told when it ended; see timeline.h */
	_Atomic uint64_t child_ended;  /* the same of its child that ended last */
	_Atomic uint64_t makes;        /* the same of when it last made one that executes another program */
	_Atomic uint64_t executes;     /* the same of its own exec, until the new program has begun */
	/* Who watches a word (conductor/handover.c) asks where that code lies, a run-time address; and the runtime
	 * says so: a ca_place, or 1, nowhere. 0: neither has been done */
	_Atomic uint64_t store, store_place;
	_Atomic uint32_t off; /* the runtime switched itself off here; reason in off_text */
	char off_text[160];
};

/* In the environment of a run's load (--load), and of all that it starts. */
#define CA_SESSION_LOAD_MARK "CAUSAL_IS_LOAD"
enum { CA_LOAD_APART = 16 };

enum ca_session_state { CA_SESSION_OPEN = 1, CA_SESSION_CLOSED };

struct ca_names;
struct ca_rings;

struct ca_cpu {
	/* What the run's threads have used of it, in experiments, that is no time in virtual time, ns */
	_Alignas(64) _Atomic uint64_t beyond;
	/* ... and of that what the scheduler makes up for to others (causal/runtime/level.c) */
	_Atomic uint64_t made_up;
};

struct ca_session {
	uint64_t magic; /* CA_SESSION_MAGIC; written last at creation */
	uint32_t version;
	uint32_t header_size; /* sizeof(struct ca_session): both sides must agree */
	uint32_t slot_size;   /* sizeof(struct ca_slot) */
	uint32_t conductor;   /* pid */
	uint64_t period;      /* ns of CPU time between samples */
	uint32_t backend;     /* enum ca_backend wanted */
	uint32_t switch_cost; /* ns by which the switch log makes a thread's switch longer; 0: not known */
	uint32_t verbose;     /* as ca_settings_level */
	_Atomic uint32_t backends; /* that threads had ticks from: 1 << enum ca_backend, by the
				    * runtimes */
	uint32_t virtual_clock;    /* 1: what the program sees of time is virtual time */
	uint32_t sampling;         /* 1: there are no experiments; each tick is a sample of a profile, and
				    * so is each wait, with who ended it. They go into the trace rings */
	uint32_t copies; /* 1: with each of these come the registers and the stack; the driver walks it */
	_Atomic uint32_t processes_missed; /* that found no free row */
	_Atomic uint32_t processes_off;    /* in which the runtime has switched itself off */
	_Atomic uint32_t
		wants_stacks; /* progress points and the scope are looked for: every tick counts; by the conductor */
	_Atomic uint32_t quiet;      /* samplers not wanted for now: 1 << enum ca_sampler; by the conductor */
	struct ca_samplers samplers; /* while `sampling` */
	uint64_t pid_space, time_space;   /* the conductor's */
	uint64_t trace_at, trace_size;    /* core/rings.h, in this file; 0: nothing is traced */
	uint64_t names_at;                /* core/names.h, likewise */
	uint64_t events;                  /* that somebody wants: 1 << enum ca_key */
	_Atomic uint32_t processes_begun; /* that ever took part, and ... */
	_Atomic uint32_t threads_begun;   /* ... threads: where their indices come from */
	uint64_t slots;                   /* that there are: CA_MAX_THREADS, or what the conductor may map */
	_Alignas(64) _Atomic uint64_t heartbeat; /* ns; by the conductor, every 20 ms */
	_Atomic uint32_t state;                  /* enum ca_session_state */
	_Atomic uint32_t slots_ready;            /* thread slots that have backing store */
	_Atomic uint32_t threads;                /* that have one: in state live. Read at each mutex, so not
						  * where much is written */
	_Atomic uint32_t threads_missed;         /* threads that found no free slot, ever ... */
	_Atomic uint32_t threads_out;            /* ... and those of them that still run without one */
	/* Progress points of the command line: sites of kind COUNT, by the conductor, which
	 * releases requested_used after the sites; those of a module before it is INDEXED. */
	_Atomic uint32_t requested_used;
	uint32_t requested_anywhere; /* they may lie in any module: wait for all before main. Set
				   * before the first process starts */
	struct ca_site requested[CA_MAX_REQUESTED];
	/* The command's file, and the path by which the user has called it: it may be a link of another name. "": not
	 * found. By the conductor, for itself */
	char command[CA_PATH], called[CA_PATH];
	/* A run that is one experiment: the binary whose code it is about, until that code is selected. Who runs it
	 * waits for that before main, or S would begin unseen. Set before the first process starts; "": none */
	char awaited[CA_PATH];
	_Atomic uint32_t awaits;
	/* For how long processes were held before main so far, until all of that was ready: a word as in paying.h */
	_Atomic uint64_t held;
	_Alignas(64) struct ca_experiment experiment;
	/* D of all experiments up to that of settled_seq (even), ns: by the conductor, which releases
	 * settled_seq last, before it opens the next one. By so much virtual time lags. */
	_Atomic uint64_t settled_delay, settled_seq;
	/* By so much virtual time has caught up, of all that was inserted so far, ns: by the runtimes,
	 * while the whole session waits for somebody outside (causal/runtime/catch_up.h). It cannot catch
	 * up where that would be too early: for those who were asked and have not answered, of whom there
	 * are `asked`, below a lag of asked_lag; for timers below timed_lag. ns, by the runtimes. */
	_Atomic uint64_t caught_up, asked_lag, timed_lag;
	_Atomic uint32_t asked;
	/* So often the load was answered by somebody who is none of the run; from CA_LOAD_APART times on it reaches the
	 * server by way of him (before, he may have told it the server's address). By the runtimes. */
	_Atomic uint32_t load_apart;
	/* Virtual time that some thread has read while an experiment was open, ns: nobody may read
	 * less from then on. By the runtimes. */
	_Alignas(64) _Atomic uint64_t clock_floor;
	_Atomic uint32_t seer; /* a thread that has looked at the log lately: who comes late asks it */
	_Alignas(64) _Atomic uint64_t paying; /* who pays, and for how long: core/paying.h */
	_Alignas(64) _Atomic uint64_t log_head;
	_Alignas(64) _Atomic uint32_t slots_used; /* highest slot ever used + 1 */
	_Atomic uint32_t slot_hint;               /* where a free one may be */
	_Atomic uint32_t modules_used;
	_Atomic uint32_t points_used;
	_Atomic uint32_t processes_used;
	struct ca_cpu cpu[CA_MAX_CPUS]; /* by the kernel's numbers; by the runtimes */
	_Atomic uint64_t
		still_until;     /* some thread lets all stand still, until then at most, ns; one at a time */
	struct ca_slot_set in_s; /* who may be in S, by the threads; all who are, are in there */
	struct ca_slot_set timed; /* who may be in S where it is timed: all but some that wait (fine.c) */
	struct ca_slot_set told;  /* whose rings have something new; taken out by the conductor */
	/* How often a thread with frames of S on one stack was found on another: by the runtimes, up to
	 * CA_ELSEWHERE; set to 0 by the conductor with the selection. */
	_Atomic uint32_t elsewhere;
	_Alignas(64) struct ca_selection selection;
	struct ca_process process[CA_MAX_PROCESSES];
	struct ca_progress_point point[CA_MAX_POINTS];
	_Alignas(64) struct ca_latency latency[CA_MAX_LATENCIES];
	struct ca_module module[CA_MAX_MODULES];
	_Alignas(64) struct ca_peer peer[CA_MAX_PEERS];
	struct ca_meeting meeting[CA_SHARED_MEETINGS]; /* of what lies in memory that processes share */
	struct ca_fine fine[CA_MAX_THREADS];           /* by slot */
	_Alignas(64) struct ca_log_entry log[CA_LOG_ENTRIES];
	_Alignas(4096) struct ca_slot slot[]; /* CA_MAX_THREADS of them */
};

/* Rows of a table are used up to `used`: let that include number `row`. Any thread, any process. */
CA_SIGSAFE static inline void ca_session_use_row(_Atomic uint32_t *used, uint32_t row)
{
	uint32_t now = atomic_load(used);

	while (now < row + 1 && !atomic_compare_exchange_weak(used, &now, row + 1))
		;
}

/* A slot is free again: all that was written into it happens before its next owner. */
CA_SIGSAFE static inline void ca_session_free_slot(struct ca_session *s, uint32_t slot)
{
	if (atomic_exchange_explicit(&s->slot[slot].state, CA_SLOT_FREE, memory_order_acq_rel) ==
	    CA_SLOT_LIVE)
		atomic_fetch_sub_explicit(&s->threads, 1, memory_order_relaxed);
}

/* By how much virtual time lags while no experiment is open, ns. */
CA_SIGSAFE static inline uint64_t ca_session_lag(const struct ca_session *s)
{
	uint64_t inserted = atomic_load_explicit(&s->settled_delay, memory_order_relaxed);
	uint64_t caught_up = atomic_load_explicit(&s->caught_up, memory_order_relaxed);

	return inserted > caught_up ? inserted - caught_up : 0;
}

/* Length of the file and of a mapping, bytes. */
#define CA_SESSION_SIZE_OF(slots) (sizeof(struct ca_session) + (slots) * sizeof(struct ca_slot))
#define CA_SESSION_SIZE           CA_SESSION_SIZE_OF(CA_MAX_THREADS)

/* Create the file at `path` and map it; the caller owns the mapping. */
enum ca_status ca_session_create(const char *path, struct ca_session **session, struct ca_err *err);
/* Make sure that `slots` thread slots have backing store, but for their rings. */
enum ca_status ca_session_grow(int fd, struct ca_session *session, uint32_t slots, struct ca_err *err);
/* ... and the ring of one that has something to say. */
void ca_session_back_ring(int fd, struct ca_session *session, uint32_t slot);
/* Map an existing one (runtime side); checks magic, version and sizes. No malloc. *slots: how many of the
 * thread slots are mapped, fewer where the process may have little address space. */
enum ca_status ca_session_attach(const char *path, struct ca_session **session, uint32_t *slots);
/* How many thread slots fit into 1 / share of what the calling process may map. */
uint32_t ca_session_slots_within(uint32_t share);
/* Unmap those from number `slots` on, where `mapped` are. */
void ca_session_shrink(struct ca_session *session, uint32_t mapped, uint32_t slots);
void ca_session_detach(struct ca_session *session);
/* Map its trace rings, or as many of them as the process has room for; NULL: it has none, or there are none. */
struct ca_rings *ca_session_attach_trace(const char *path, const struct ca_session *session);
/* The same for the names of the program's own events. */
struct ca_names *ca_session_attach_names(const char *path, const struct ca_session *session);
/* What the calling process's number is a number in; 0: it cannot be known (no /proc). */
uint64_t ca_session_pid_space(void);
/* And what its clock is a clock of. */
uint64_t ca_session_time_space(void);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of the model (model.c) share: the simulated machine, and who does what with it. One thread. */
#ifndef CA_TESTS_ACCURACY_MODEL_H
#define CA_TESTS_ACCURACY_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_THREADS = 1024, MAX_OPS = 12, MAX_OBJECTS = 8, QUEUE = 32 };
enum { SLICE = 3000, WAKEUP_GRANULARITY = 1000, WAKE_COST = 5, WORTH_IT = 100 /* as in level.c */ };

enum sim_protocol { NONE, IDEAL, EXACT, SPIN, LEVEL, HITS, OWN, SPREAD, TICKS, COZ, PROTOCOLS };
enum { SPREAD_OVER = 16, LEARN = 4, STALE = 4, PRIOR_OF_ONE = 4 }; /* as in lumps.c and history.c */

enum sim_kind {
	WORK,
	WORK_S,
	LOCK,
	SPIN_LOCK,
	UNLOCK,
	BARRIER,
	PUT,
	GET,
	POST,
	WAIT,
	SPIN_WAIT,
	SLEEP,
	VISIT,
	END
};
struct sim_op {
	enum sim_kind kind;
	int object;  /* lock, barrier, queue or semaphore */
	double time; /* WORK, SLEEP */
};

enum sim_state { READY, RUNNING, BLOCKED, TIMED };
struct sim_thread {
	struct sim_op op[MAX_OPS];
	int pc;
	enum sim_state state;
	int waits_for;    /* object, when BLOCKED */
	double remain;    /* of the current work or sleep; < 0: not begun */
	double owed;      /* to pay, us */
	double account;   /* coz: own delay account */
	double cpu, tick; /* CPU time, and that of the next tick */
	double vruntime, slice;
	double look; /* own: time of the last tick ... */
	bool was_in; /* ... and whether it was in S */
	double ticks, ticks_in;
	double pairs, pairs_expected; /* spread: as below, of this thread ... */
	double met;                   /* ... since then it can be elsewhere */
	double due[MAX_OPS], left[MAX_OPS], rate[MAX_OPS], seen[MAX_OPS]; /* accounts of its meetings */
	double to_pay, paid_in_tick;
	bool in_tick, spins, arrived;
	double slept_s; /* union S time when the sleep began */
	bool paying, off_core_pay;
	double behind; /* level: what it has used of a CPU beyond virtual time, less than those who share it do, us */
	bool still;   /* ... for which all stand still */
	bool checked; /* has paid for the op that it is about to do */
	bool wake_forgives;
};
struct sim_object {
	int count;                          /* lock: held; barrier: arrived; queue and semaphore: tokens */
	int queue[MAX_THREADS], head, tail; /* who waits, in order */
	int parties;
};

/* The machine; times in us. */
extern struct sim {
	struct sim_thread threads[MAX_THREADS];
	struct sim_object objects[MAX_OBJECTS];
	int thread_count, cores, core_thread[MAX_THREADS]; /* -1: nobody */
	enum sim_protocol protocol;
	double p, now, period, window;
	double union_s, hit_s, global; /* S time exactly, by samples, and as Coz counts */
	double stood_still; /* level: time for which all did, what each thread wanted of it added up */
	double pairs, pairs_expected; /* own */
	long visits;
	int in_s; /* threads that run inside S in this step */
	uint64_t rng;
} sim;

struct sim_topology {
	const char *name;
	void (*build)(int cores);
	bool scales; /* has a version with more cores */
};
extern const struct sim_topology sim_topologies[];
extern const size_t sim_topology_count;

/* model_machine.c: scheduler and synchronisation */
double sim_next_period(void);
void sim_make_ready(struct sim_thread *t);
void sim_schedule(void);
bool sim_inside(const struct sim_thread *t);
/* Carries out thread i's current op if it takes no time. True: go on with the next one. */
bool sim_step_op(int i);

/* model_protocols.c */
bool sim_exact(void); /* S is known exactly */
bool sim_by_hits(void);
bool sim_owes_late(void);
void sim_step(void); /* one us */

#endif

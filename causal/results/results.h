/* SPDX-License-Identifier: MIT */
/* Results: the run file, written record by record, and what is made of it.
 * Driver's process, one thread. The format's contract is doc/FORMAT.md. */
#ifndef CA_CAUSAL_RESULTS_RESULTS_H
#define CA_CAUSAL_RESULTS_RESULTS_H
#include "causal/results/catalog.h"
#include "causal/results/estimate.h"
#include "core/status.h"
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Flags of a finished experiment: any of these and it is not used for estimates. */
enum ca_experiment_flag {
	CA_EXPERIMENT_CUT = 1,        /* the program ended, or the run was stopped, inside it */
	CA_EXPERIMENT_NO_VISIT = 2,   /* no progress point was visited */
	CA_EXPERIMENT_STALLED = 4,    /* the conductor was not scheduled in time */
	CA_EXPERIMENT_OVERFLOW = 8,   /* the S log or a ring overflowed: D is not known */
	CA_EXPERIMENT_DISTURBED = 16, /* interference: other programs kept our threads from running */
	CA_EXPERIMENT_UNPLACED = 32,  /* a process ran without the sites of S: D is too small; or without one
				       * of others, and paid too late */
	CA_EXPERIMENT_BOOKS = 64,     /* the threads' accounts of S time differ from the driver's */
	CA_EXPERIMENT_AHEAD = 128,    /* somebody outside was ahead, and what he sends not held back */
	CA_EXPERIMENT_UNSTEADY = 256, /* whole runs say otherwise: the rate that it saw does not stay. Not
				       * in run files: found when all runs are there */
	/* used all the same where there are hardly any others */
	CA_EXPERIMENT_LAST = CA_EXPERIMENT_DISTURBED | CA_EXPERIMENT_BOOKS
};
enum { CA_EXPERIMENT_FLAGS = 8 };
/* What the run file calls them, from the lowest bit on. */
extern const char *const ca_results_flag[CA_EXPERIMENT_FLAGS];

/* The name of the point that stands for the passing of time itself, where a program needs no other. */
#define CA_RESULTS_TIME "(time)"

/* Visits of one progress point during one experiment. */
struct ca_visits {
	uint32_t point;   /* id in the catalog */
	const char *unit; /* the first point that causal chose for the same unit of work; borrowed.
				* NULL: this one */
	const char
		*beside; /* the first point that causal chose, which counts another unit; borrowed, or NULL */
	const char *instead; /* the one it had chosen before, while the program waited; borrowed, or NULL */
	bool refuted;   /* they are no units of work: CPU time is (units.h), here and in experiments before */
	uint64_t delta; /* throughput: visits; latency: departures */
	uint64_t span;  /* throughput: ns of virtual time that these visits took, from the last one
			    * before the experiment on; 0: not known */
	uint64_t before;       /* throughput: visits of its run before these; 0: not known */
	uint64_t arrivals;     /* latency only */
	double in_flight;      /* latency only: mean of arrivals - departures over the experiment */
	const uint32_t *times; /* latency only: CA_LATENCY_BUCKETS numbers of visits, by how long they took;
				* borrowed. NULL: not known */
};

struct ca_experiment_record {
	uint32_t index;      /* 1-based within the run */
	uint32_t region;     /* id in the catalog */
	uint32_t speedup;    /* millionths */
	uint32_t flags;      /* enum ca_experiment_flag */
	uint64_t start, end; /* ns, CLOCK_MONOTONIC */
	uint64_t at;         /* start, ns of virtual time since its run began; 0: not known, or a whole run */
	uint64_t s_time;     /* ns in which at least one thread was in S */
	uint64_t delay;      /* D, ns: time inserted = speedup x s_time + still + probes */
	uint64_t
		still; /* ns for which all of the run stood still: its threads share CPUs, or a limit of CPU time */
	uint64_t probes;  /* ns by which S was held up by its probes, and the others for as long */
	uint64_t paid;    /* ns paid by all threads together */
	uint64_t owed;    /* ns still owed by all threads at the end */
	uint64_t paying;  /* ns in which at least one thread was paying, at most; UINT64_MAX: unknown */
	uint64_t limits;  /* waits for a time, or with a time limit, which moves with D */
	uint64_t outside; /* ns that threads waited for somebody outside of the run, the sum over threads */
	uint64_t hits;    /* samples in S (sampled) or entries into S (exact) */
	uint64_t lost;    /* ns that other programs took from the run's threads; UINT64_MAX: unknown */
	uint64_t queued;  /* ns for which the run's threads waited for a CPU; UINT64_MAX: unknown */
	uint64_t idled;   /* ns for which CPUs were idle while threads of the run waited for one, a CPU */
	uint64_t periods; /* sampled in it, of all threads ... */
	uint64_t inside;  /* ... with the region on the stack */
	uint64_t work;    /* ns of CPU time of all threads, without what was paid; 0: not known */
	uint64_t turns;   /* of spin loops in it, as far as seen */
	uint64_t met;     /* how often its threads have met others, where S is sampled */
	uint64_t overhead,
		overhead_in_s; /* ns in causal's own code, by samples, handlers left out; in S time */
	uint64_t yardstick;    /* thousandths of cycles that the same work takes at each tick, the mean: how
				* slow the CPUs were; 0: not known */
	bool exact;            /* S was known by probes */
	size_t visit_count;
	const struct ca_visits *visits; /* borrowed */
};

/* Of an experiment in which time itself is the unit of work, ns: what the program by itself would not have taken, since
 * other programs had its thread's CPU, or code of causal's. work: CPU time, 0: not known. While one of several threads is at
 * work no time is lost. */
struct ca_results_taken {
	uint64_t all, in_s;
};
static inline struct ca_results_taken ca_results_taken(uint64_t elapsed, uint64_t work, uint64_t s_time,
						       uint64_t lost, uint64_t overhead,
						       uint64_t overhead_in_s)
{
	uint64_t most = elapsed > s_time ? elapsed - s_time : 0, beside;
	struct ca_results_taken taken = { .in_s = overhead_in_s < s_time ? overhead_in_s : s_time };

	if (lost == UINT64_MAX)
		lost = 0;
	if (work)
		lost = elapsed <= work ? 0 : lost < elapsed - work ? lost : elapsed - work;
	beside = lost + (overhead > overhead_in_s ? overhead - overhead_in_s : 0);
	taken.all = taken.in_s + (beside < most ? beside : most);
	return taken;
}

/* Where other programs had the CPU in most experiments: can the effect beside them be told? Not where they and the run
 * wait for each other, nor where threads spin, which costs whoever they wait for his CPU. */
static inline bool ca_results_is_blind(uint64_t elapsed, uint64_t outside, uint64_t work, uint64_t turns)
{
	return 20 * outside > elapsed || 10000 * turns > work;
}

/* Have the run's threads waited for CPUs for more than a quarter of the time that they could have used? lost: of that, for
 * other programs. By timers nobody knows then who had one when. */
static inline bool ca_results_is_crowded(uint64_t queued, uint64_t lost, uint64_t work)
{
	if (queued == UINT64_MAX || !work)
		return false;
	lost = lost == UINT64_MAX ? 0 : lost;
	return queued > lost && 3 * (queued - lost) > work;
}

/* D for what S would take less, ns: while probes take their time the program is not at work. */
static inline uint64_t ca_results_delay(uint64_t delay, uint64_t probes)
{
	return delay > probes ? delay - probes : 0;
}

/* s of that in which somebody was paying, or NAN: it is not known by how much that made a path longer. Where threads share
 * CPUs, or a limit of CPU time, others are slowed by what one of them pays. */
static inline double ca_results_paying(uint64_t paying, uint64_t still, uint64_t delay, uint64_t probes)
{
	bool shared = 20 * still > delay && 100 * paying > delay;
	double part = delay ? (double)ca_results_delay(delay, probes) / (double)delay : 1;

	return paying == UINT64_MAX || shared ? NAN : part * (double)paying / 1e9;
}

/* s of CPU time that is work; 0: it is not known, or all was paid; NAN: more than 1 % of it was spent in spin loops,
 * whose turns take some 100 ns (of next to nothing, in elapsed ns, that cannot be told). */
static inline double ca_results_work(uint64_t work, uint64_t turns, uint64_t elapsed)
{
	double most = fmax((double)work, 0.05 * (double)elapsed);

	return 100.0 * (double)turns > 0.01 * most ? NAN : (double)work / 1e9;
}

/* What the first record of a run file says. All strings borrowed. */
struct ca_run_info {
	unsigned run;               /* 1-based number of the run: run-0001.jsonl */
	unsigned iteration;         /* 1-based */
	const char *const *command; /* NULL-terminated */
	const char *const
		*options;    /* of causal, with which more such runs are made; NULL-terminated, or NULL */
	const char *mode;    /* "function" or "line" */
	const char *backend; /* "perf" or "timer": what it sets out with */
	bool end_to_end;
	const char *speedups; /* the pool of this variant, as text */
	const char *scope; /* what its code was picked by: in runs with the same, the same code is counted */
	uint64_t seed;     /* of the sweep's choices */
};

/* What the last record says: the funnel from samples to experiments. */
struct ca_run_summary {
	int exit_status;           /* as a shell: 0..255, 128+N for a signal */
	uint64_t runtime;          /* ns, from exec to exit */
	uint64_t inserted;         /* ns by which virtual time lagged at its end */
	uint64_t samples;          /* taken */
	uint64_t in_scope;         /* ... of which had a frame in scope */
	uint64_t in_main;          /* ... in main itself, which is no region of function mode */
	uint64_t periods;          /* ... that they stand for; what regions' samples are counted in */
	uint64_t waited;           /* ... of them, not on a CPU: waits for the outside, sleeps */
	uint64_t squares;          /* sum of the squares of what each stands for; 0: not known */
	uint64_t drop[16];         /* by enum ca_drop */
	uint64_t started;          /* experiments opened */
	uint64_t kept;             /* experiments that can be used: no flag but CA_EXPERIMENT_LAST */
	uint64_t visits;           /* of all progress points */
	uint64_t handler_ns;       /* spent in handlers, all threads */
	uint64_t cpu_ns;           /* CPU time of the program */
	unsigned backends;         /* that threads had ticks from: 1 << enum ca_backend */
	bool outside;              /* the runtime was in none of the run's processes */
	bool off;                  /* it switched itself off in one of them */
	struct ca_silence silence; /* of this run; its length 0: not known */
	bool left; /* experiments ended before the program: what it did then was not sampled */
};

struct ca_results; /* one open run file */

/* Creates dir/run-NNNN.jsonl (fails if it exists) and writes the run record. */
enum ca_status ca_results_open(struct ca_results **results, const char *dir, const struct ca_run_info *info,
			       const struct ca_catalog *catalog, struct ca_err *err);
/* Each writes one line with a single write(2), at once. */
enum ca_status ca_results_experiment(struct ca_results *results, const struct ca_experiment_record *record,
				     struct ca_err *err);
/* Where a region stood on the stacks that held it. Borrowed; the lists end with NULL, or are NULL. */
struct ca_region_stacks {
	uint64_t own;                /* samples with the region innermost; UINT64_MAX: not known */
	uint64_t waited;             /* of all, those not on a CPU */
	uint64_t spins;              /* ... in loops that wait for other threads, if it does nothing else */
	const char *const *via;      /* callers that this region stands for as well, outermost last */
	const char *const *contains; /* regions that make up nearly all of this one */
	const char *const *calls;    /* ... of one that is worth a look all the same: others call them, too */
	double since;                /* s of virtual time of the run until its binary came */
	uint64_t silent;             /* samples, on a CPU, while the progress point was not passed */
};
/* count: samples whose stack held that region so far in this run. stacks: NULL, not known. */
enum ca_status ca_results_samples(struct ca_results *results, uint32_t region, uint64_t count,
				  const struct ca_region_stacks *stacks, struct ca_err *err);
/* A stack of n regions, the outermost first, and the periods of this run that were sampled with it. */
enum ca_status ca_results_stack(struct ca_results *results, const char *const *name, size_t n, uint64_t count,
				struct ca_err *err);
/* A binary, its share of the CPU samples in percent, and whether its code could be selected. */
enum ca_status ca_results_scope(struct ca_results *results, const char *binary, double share, bool in_scope,
				struct ca_err *err);
/* A binary of the program, and its build-id. */
enum ca_status ca_results_binary(struct ca_results *results, const char *path, const uint8_t *build_id,
				 size_t length, struct ca_err *err);
enum ca_status ca_results_warning(struct ca_results *results, const char *text, struct ca_err *err);
enum ca_status ca_results_close(struct ca_results *results, const struct ca_run_summary *summary,
				struct ca_err *err);

/* ---- after the runs ---------------------------------------------------------- */
struct ca_profile; /* regions x points x speedups with estimates, read from a directory */

/* Reads every run-*.jsonl in dir; torn last lines are fine (a killed driver). */
enum ca_status ca_profile_load(struct ca_profile **profile, const char *dir, struct ca_err *err);
/* Writes profile.json and profile.coz into dir, each by rename. */
enum ca_status ca_profile_write(const struct ca_profile *profile, const char *dir, struct ca_err *err);
/* The table for the terminal; width: columns available; colours: mark headings and verdicts.
 * Includes the reason and remedy when the profile is empty. false: rows are missing, as there is no memory. */
bool ca_results_print(const struct ca_profile *profile, int fd, unsigned width, bool colours);
/* The options with which the remedy is tried, "-s 0,50 -n 10"; NULL: it is no matter of options. */
const char *ca_funnel_options(const struct ca_profile *profile);
void ca_profile_free(struct ca_profile *profile);

#endif

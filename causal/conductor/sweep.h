/* SPDX-License-Identifier: MIT */
/* What all runs of a sweep share, and how a command name becomes a file. Driver's process. */
#ifndef CA_CAUSAL_CONDUCTOR_SWEEP_H
#define CA_CAUSAL_CONDUCTOR_SWEEP_H
#include "causal/conductor/follow.h"
#include "causal/conductor/plan.h"
#include "causal/conductor/stacks.h"
#include "causal/conductor/steady.h"
#include "causal/points/candidates.h"
#include "causal/results/catalog.h"
#include "causal/results/units.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_sweep;

/* NULL: no memory. */
struct ca_sweep *ca_sweep_new(uint64_t seed);
void ca_sweep_free(struct ca_sweep *sweep);

/* The region that end-to-end runs of this iteration use, so that its variants can be
 * compared; NULL: none chosen yet. Borrowed until the next set. */
const struct ca_region *ca_sweep_get_choice(const struct ca_sweep *sweep, unsigned iteration);
void ca_sweep_set_choice(struct ca_sweep *sweep, unsigned iteration, const struct ca_region *region);

/* All random choices of a sweep come from its seed, one set for each experiment, so that equal
 * seeds give equal ones, however many experiments each run has had time for. */
/* The number that draws the next experiment's region. */
uint64_t ca_sweep_draw(const struct ca_sweep *sweep);
/* The next experiment's speedup, in percent, of a pool. Dealt like cards, so that over a sweep
 * each number comes up in proportion to how often the pool holds it. */
unsigned ca_sweep_deal(struct ca_sweep *sweep, const unsigned *pool, size_t n);
/* That experiment has begun: both are other ones now. */
void ca_sweep_begun(struct ca_sweep *sweep);

/* The regions of all runs so far: a number means the same one in each. Borrowed. */
struct ca_catalog *ca_sweep_catalog(struct ca_sweep *sweep);
/* How often they are entered (ca_regions_keep_heat): it need not be tried in each run. Borrowed. */
struct ca_vec *ca_sweep_heat(struct ca_sweep *sweep);
/* The stores that hand something over, as ca_regions_keep_stores wants them. Borrowed. */
struct ca_vec *ca_sweep_stores(struct ca_sweep *sweep);
/* The binaries that its runs have read. Borrowed. */
struct ca_texts *ca_sweep_texts(struct ca_sweep *sweep);
/* How often they were looked for in vain, as ca_handover_new wants it. Borrowed. */
unsigned *ca_sweep_in_vain(struct ca_sweep *sweep);
/* The plan and the stacks of a variant (from 0), which all its runs share. Borrowed; NULL: no memory. */
struct ca_plan *ca_sweep_plan(struct ca_sweep *sweep, size_t variant, const struct ca_plan_options *options,
			      struct ca_stacks **stacks);
/* Is the answer of all variants there? See ca_plan_is_decided; rows: of the first variant. */
bool ca_sweep_is_decided(struct ca_sweep *sweep, unsigned *rows);
/* As of then, of the first variant: see ca_plan_is_vague. */
bool ca_sweep_is_vague(const struct ca_sweep *sweep);
/* What the next whole run of the variant should be made of; false: nothing is known of its code yet. The
 * region is borrowed, until that run ends. */
bool ca_sweep_next_whole(struct ca_sweep *sweep, size_t variant, const struct ca_region **region,
			 unsigned *percent);
/* Experiments of all runs that can be used. */
void ca_sweep_count_experiment(struct ca_sweep *sweep);
uint64_t ca_sweep_experiments(const struct ca_sweep *sweep);
/* A run had code that can be sped up, or may have some in the next one. */
void ca_sweep_set_useful(struct ca_sweep *sweep);
bool ca_sweep_is_useful(const struct ca_sweep *sweep);
/* Is this the progress point that the variant's plan goes by? The first one that is asked for is. */
bool ca_sweep_is_point(struct ca_sweep *sweep, size_t variant, const char *name);
/* Another point is needed: the plan starts anew with the next one that is asked for. */
void ca_sweep_forget_point(struct ca_sweep *sweep, size_t variant);
/* s of virtual time that a run takes, mean; 0: not known yet. */
double ca_sweep_length(const struct ca_sweep *sweep);
/* Of so many. */
unsigned ca_sweep_lengths(const struct ca_sweep *sweep);
/* A run with experiments in it has come to its end after so many s of virtual time. */
void ca_sweep_add_length(struct ca_sweep *sweep, unsigned run, double seconds);
/* Periods sampled in finished runs of a variant, whose code its stacks count, the squares of what samples stand for,
 * how long those took, and their CPU time, ns; and samples that were lost, of a period each at least. */
struct ca_sweep_time {
	uint64_t periods, squares, elapsed, cpu, lost;
};
void ca_sweep_add_time(struct ca_sweep *sweep, size_t variant, struct ca_sweep_time run);
/* What a finished run of a variant did while its point was not passed, and of that the samples of a region of the
 * sweep's catalogue; and those of all such runs. */
void ca_sweep_add_silence(struct ca_sweep *sweep, size_t variant, const struct ca_silence *run);
void ca_sweep_add_silent(struct ca_sweep *sweep, size_t variant, uint32_t region, uint64_t samples);
uint64_t ca_sweep_silent(const struct ca_sweep *sweep, size_t variant, uint32_t region);
struct ca_sweep_time ca_sweep_time(const struct ca_sweep *sweep, size_t variant);
/* Why the next runs should be measured as a whole, in pairs, and not by experiments inside them: the
 * program is too short for those (*region: NULL, any will do), or what they say of *region is in
 * doubt or known to be wrong (steady.h): then at *percent, 0: at any. NULL: they need not. Static text.
 * To be asked after each ca_conductor_close: a doubt can be over. */
const char *ca_sweep_why_whole(const struct ca_sweep *sweep, const struct ca_region **region,
			       unsigned *percent);
/* From now on, for this reason. The first one stays. why: static text. */
void ca_sweep_use_whole(struct ca_sweep *sweep, const char *why);
/* What experiments and whole runs say about the steadiness of rates. Borrowed. */
struct ca_steady *ca_sweep_steady(struct ca_sweep *sweep);
/* How many runs the conductor has made whole ones by itself. */
unsigned ca_sweep_whole_runs(const struct ca_sweep *sweep);
void ca_sweep_count_whole(struct ca_sweep *sweep);

/* What is said in the first run of a sweep only. */
enum ca_sweep_topic {
	CA_SWEEP_POINTS_CHECK = 1,
	CA_SWEEP_POINTS_REPORT = 2,
	CA_SWEEP_ASKED = 4,  /* progress points were chosen in this sweep */
	CA_SWEEP_UNTIED = 8, /* none of them goes with the work */
	CA_SWEEP_HOT_TRAP = 16,
	CA_SWEEP_BACKEND = 32,   /* it is not the one that was wanted */
	CA_SWEEP_SHORT = 64,     /* whole runs are needed, for the program is short ... */
	CA_SWEEP_UNSTEADY = 128, /* ... or not steady inside a run ... */
	CA_SWEEP_COARSE = 8192,  /* ... or varies there too much */
	CA_SWEEP_REFUTED = 1024, /* the point counts no unit of work */
	CA_SWEEP_LIMITED = 2048, /* a control group limits the run's CPU time, and that holds it back */
	CA_SWEEP_APART = 4096,   /* the load reaches the server by way of others, who are none of the run */
	CA_SWEEP_ALONE = 512,    /* one thread does all ... */
	CA_SWEEP_PAID = 256      /* ... and yet it was delayed: a point is needed */
};
bool ca_sweep_first_time(struct ca_sweep *sweep, enum ca_sweep_topic topic);
/* Will it be the first time? */
bool ca_sweep_is_first(const struct ca_sweep *sweep, enum ca_sweep_topic topic);

/* Does one thread do all, and is it never delayed, so that time itself is the unit of work? */
bool ca_sweep_is_alone(const struct ca_sweep *sweep);

/* A whole run has ended: visits of the n chosen progress points, and its length. tied[i]: what all
 * such runs say about the i-th one. */
void ca_sweep_add_counts(struct ca_sweep *sweep, const double *count, size_t n, double seconds,
			 enum ca_tied *tied);
/* A run that was measured as a whole has ended. Do all of them say that the point which was chosen counts no unit of
 * work (causal/results/units.h)? */
bool ca_sweep_add_unit(struct ca_sweep *sweep, const struct ca_units_run *run);
/* Do the lengths of those runs differ a lot, and the visits of all n points with them? Else it may
 * be the machine, under a program that runs for a given time. */
bool ca_sweep_counts_follow(const struct ca_sweep *sweep, size_t n);

/* What the samples of all runs so far say about the scope. Borrowed. */
struct ca_follow *ca_sweep_follow(struct ca_sweep *sweep);

/* As execvp(3) would find it: the path of the file, or false. */
bool ca_sweep_find_command(const char *name, char *path, size_t size);

#endif

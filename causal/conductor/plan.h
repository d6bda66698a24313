/* SPDX-License-Identifier: MIT */
/* The plan of experiments: it is told what may be tried and how experiments have ended, and says what the
 * next one is. Effort goes where the answer is still open (doc/METHOD.md, section 11).
 * Numbers in, numbers out: no names, no clock, no session. Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_PLAN_H
#define CA_CAUSAL_CONDUCTOR_PLAN_H
#include "causal/results/estimate.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ca_plan;

struct ca_plan_options {
	uint64_t seed;
	double points; /* half width of an interval at 50 % at which a row is decided */
	bool dealt;    /* speedups are dealt by the caller: the plan says only which code */
};
/* NULL: no memory. */
struct ca_plan *ca_plan_new(const struct ca_plan_options *options);
void ca_plan_free(struct ca_plan *plan);

struct ca_plan_offer {
	uint32_t region;
	uint64_t key;   /* from its name: of equal seeds and offers the choice is the same in any order */
	double at_most; /* percent of the elapsed time that it can take */
	double periods; /* sampled with it on the stack, in all runs so far ... */
	double share;   /* ... and of all that were sampled, 0..1 */
	double lump, rate, overlap; /* as in ca_share */
	double since;               /* s of virtual time of a run until its library comes */
	double silent;              /* as in ca_share */
	bool absent;                /* it cannot be tried now: that has not come in this run yet */
};
/* A run takes so long, s of virtual time, and this is the time in it: codes come next that have no experiment
 * in this part of the run. */
void ca_plan_set_length(struct ca_plan *plan, double seconds);
/* ... and of one that is over. Where in it experiments were is where they would be in one of the usual length. */
void ca_plan_set_run(struct ca_plan *plan, uint32_t run, double seconds);
void ca_plan_set_time(struct ca_plan *plan, double seconds);
/* What runs do while the point is not passed. */
void ca_plan_set_silence(struct ca_plan *plan, const struct ca_silence *silence);
/* What may be tried from now on, that with most samples first. What is offered no more rests. sure: there
 * were samples enough to know that this is all that could matter; until then nothing is decided. */
void ca_plan_set_offers(struct ca_plan *plan, const struct ca_plan_offer *offer, size_t n, bool sure);
/* So were the offers when a run ended. What was absent until then is not waited for in the next one. */
void ca_plan_run_ended(struct ca_plan *plan);

struct ca_plan_step {
	uint32_t region;  /* 0: whichever, at 0 % */
	unsigned percent; /* unless speedups are dealt by the caller */
};
/* The next experiment; the same until it has begun. False: nothing is offered. */
bool ca_plan_next(struct ca_plan *plan, struct ca_plan_step *step);
void ca_plan_begun(struct ca_plan *plan);
/* An experiment has ended. Useless: it counts for nothing, and is tried again. Doubtful, or beside other programs: it
 * counts where most are so; the latter tell what is won beside those. */
enum ca_plan_use { CA_PLAN_USELESS, CA_PLAN_DOUBTFUL, CA_PLAN_BESIDE, CA_PLAN_GOOD };
void ca_plan_tell(struct ca_plan *plan, const struct ca_observation *o, enum ca_plan_use use);
/* A whole run, beside experiments inside runs, which are in doubt: a second way to know that code. */
void ca_plan_tell_run(struct ca_plan *plan, const struct ca_observation *o);
/* Asked after that, where causal chose the point: is CPU time the unit of what was told, and will be, since visits of
 * that point are none (ca_units_are_uneven)? */
bool ca_plan_counts_work(struct ca_plan *plan);
/* What was told is of no use any more. */
void ca_plan_forget(struct ca_plan *plan);
/* From now on each experiment is a whole run: what was told before says nothing of those. alone: one thread does all,
 * so that none is needed at 0 %. */
void ca_plan_use_whole(struct ca_plan *plan, bool alone);
/* One of those offered, in proportion to what each can take at most: for runs that are one experiment, which wait for
 * what is absent; else not of those. 0: nothing is offered. */
uint32_t ca_plan_draw(const struct ca_plan *plan, uint64_t number, bool waits);
/* ... at 0 %: as often as each is tried above it, so that what it costs to watch the code is in both. */
uint32_t ca_plan_draw_zero(const struct ca_plan *plan, uint64_t number);

/* Is the answer there? rows: how many of the first rows are decided by then, at most CA_PLAN_TOP; 0: no
 * code matters. */
enum { CA_PLAN_TOP = 3 };
bool ca_plan_is_decided(struct ca_plan *plan, unsigned *rows);
/* What is known, from all that was told: until then some of it may be left for later. */
void ca_plan_estimate(struct ca_plan *plan);
/* As of then: is one of those rows not known as well as is asked for, in a way that more experiments do not change? */
bool ca_plan_is_vague(const struct ca_plan *plan);
/* As of then: do whole runs tell it as well as is asked for? */
bool ca_plan_is_settled(const struct ca_plan *plan, uint32_t region);

/* What is known so far of the codes that were tried, at most `most`, in the order of the table (profile_rank.c). */
struct ca_plan_row {
	uint32_t region;
	double effect, low, high; /* at 50 %, percent */
	enum ca_verdict verdict;
	double rank; /* ca_estimate_rank */
};
size_t ca_plan_top(const struct ca_plan *plan, struct ca_plan_row *row, size_t most);
/* Of the first rows one whose answer is open, and that whole runs, pairs of 0 % and a speedup, would tell sooner than
 * experiments inside runs, and within so many s; each once. 0: none. */
uint32_t ca_plan_find_coarse(struct ca_plan *plan, double left);

#endif

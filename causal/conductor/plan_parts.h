/* SPDX-License-Identifier: MIT */
/* What the plan's files share: plan.c (what may be tried, and what is known of it) and plan_rounds.c (what comes next).
 * Private to them. */
#ifndef CA_CAUSAL_CONDUCTOR_PLAN_PARTS_H
#define CA_CAUSAL_CONDUCTOR_PLAN_PARTS_H
#include "causal/conductor/plan.h"
#include "core/rng.h"
#include "core/vec.h"

enum { CA_PLAN_HALF = 1 }; /* 50 %, in ca_estimate_at */

struct ca_plan_code {
	struct ca_plan_offer offer;
	bool offered, entered, open;
	bool gone;            /* it was not there to the end of the last run */
	bool polls;           /* the longer others are delayed, the longer it takes */
	unsigned tries, lost; /* experiments that were usable; in a row that were not */
	unsigned zeros;       /* those at 0 % in which it was selected */
	bool coarse;          /* ca_plan_find_coarse has told of it */
	bool known, by_runs;  /* the estimate, that of whole runs: */
	struct ca_curve curve;
};
struct ca_plan {
	struct ca_plan_options opt;
	struct ca_rng rng;
	struct ca_plan_code *code;
	size_t codes;
	size_t *order; /* of the offers */
	size_t offers;
	struct ca_observation *seen;
	size_t n, estimated, checked; /* as many as the estimates are made from, or the unit was checked by */
	struct ca_vec run_seen;       /* struct ca_observation: whole runs, beside those */
	size_t runs_estimated;
	bool moved; /* since then: where in a run experiments lie, as runs are longer or shorter than they seemed */
	bool works;          /* CPU time is the unit */
	struct ca_vec round; /* struct ca_plan_step */
	size_t at;           /* in the round */
	unsigned rounds;
	bool decided, sure;
	size_t good, doubtful,
		blind;      /* experiments told; blind: of the doubtful ones, not only beside others */
	bool own;           /* hardly anybody pays, in whichever code */
	bool whole, alone;  /* experiments are whole runs; of one thread, each of which is its own baseline */
	double length, now; /* of a run, s; in it */
	struct ca_silence silence;
	struct ca_vec run; /* double: length of that with this number, s; 0: not known */
	double third;      /* percent: what the last of the first rows brings at least, at 50 % */
	unsigned rows;
	bool vague; /* one of them is not known as well as asked for, and more runs would not change that */
};

/* NULL: it was never offered. */
struct ca_plan_code *ca_plan_find(const struct ca_plan *p, uint32_t region);
/* Can it be tried now? */
bool ca_plan_is_there(const struct ca_plan *p, uint32_t region);
/* Half of its time would be too little to matter. */
bool ca_plan_is_too_small(const struct ca_plan *p, const struct ca_plan_code *code);
/* What half of its time may bring, percent. */
double ca_plan_hope(const struct ca_plan_code *code);
/* For qsort, of pointers to codes: what brings most comes first, what is not known last. */
int ca_plan_by_effect(const void *a, const void *b);
/* The least of these wins a draw with that weight. */
double ca_plan_race(uint64_t draw, uint64_t key, double weight);

static inline bool ca_plan_round_is_over(const struct ca_plan *p)
{
	return p->at >= p->round.n;
}

/* One more experiment of that code in this round. */
void ca_plan_rounds_put(struct ca_plan *p, const struct ca_plan_code *code);
/* The next round; after it is known whose answer is open. */
void ca_plan_rounds_make(struct ca_plan *p);
/* What cannot be tried now, as its library has not come, gives way to the first that can. */
void ca_plan_rounds_skip(struct ca_plan *p);
/* Each code is to be seen in all parts of the run: among those of the round, one that has missed this one. */
void ca_plan_rounds_prefer_missing(struct ca_plan *p);

#endif

/* SPDX-License-Identifier: MIT */
/* What the files of the estimator share; of others only compare.c includes it. See estimate.h. */
#ifndef CA_CAUSAL_RESULTS_ESTIMATE_PARTS_H
#define CA_CAUSAL_RESULTS_ESTIMATE_PARTS_H
#include "causal/results/estimate.h"
#include "core/rng.h"
#include <stdbool.h>

/* Visits an experiment, below which medians of counts are of no use. */
enum { CA_EST_COUNTS = 8 };

/* An experiment in work. Zeros and treated ones (speedup > 0) in one array sorted by time. */
struct ca_est_item {
	double cost, visits, time;
	double counted; /* visits, before ca_estimate_control */
	double elapsed, active, delay, still, paying, limits, work, yardstick, periods, inside, lost,
		idle;            /* as in ca_observation */
	double from, to, before; /* ... */
	double place;            /* s into its run at 0 %, its middle, about; where est->placed */
	double lumps;            /* s in S, as samples tell it, for which others paid */
	bool per_visit;
	bool possible; /* its visits would have taken a time at 0 % that its payments leave room for: no outlier */
	double slip; /* by which the time of its visits may be off because the experiment changes their work, relative,
		      * standard deviation */
	double off; /* by which the effect at 100 % may be off because of phases, standard deviation */
	uint32_t region, speedup;
	size_t observation;             /* its index */
	uint32_t run;                   /* dense, 0..runs-1 */
	double weight;                  /* 0..1: 1 - how much of an outlier it is */
	double base;                    /* cost of one visit at 0 %, at its place and time */
	double residual;                /* relative, of its cell; set once the cell's effect is known */
	uint32_t neighbour, neighbours; /* CA_BASELINE_NEAR, _PLACE: its zeros in near[] */
};

struct ca_est {
	struct ca_est_item *item;
	size_t items;
	uint32_t *zero; /* indexes of the zeros, by time */
	size_t zeros;
	uint32_t *placed; /* ... by their place in the run; NULL: that of some experiment is not known */
	size_t runs;
	double quantum;
	double noise;
	double score; /* mean square of how far zeros are from the baseline that the others make, relative */
	double fence; /* what noise is multiplied with before something is called an outlier */
	enum ca_baseline baseline;
	unsigned k;
	uint32_t *near;                /* indexes of items */
	double *near_weight;           /* ... and how much each counts */
	double *run_cost, *run_visits; /* scratch, per run */
	double control;                /* how much of what CPU time per visit explains is taken out, 0..1 */
	double length;                 /* of a run, s; 0: not known */
	double heard[2]
		    [CA_RUN_PARTS]; /* experiments in it: that tell nothing, as no point is passed; that do */
	double *own;                /* per curve: level of the region's own zeros relative to the baseline */
};

/* estimate_math.c */
double ca_estimate_median(double *value, size_t n); /* reorders; n > 0 */
double ca_estimate_quantile(const double *sorted, size_t n, double q);
int ca_estimate_compare(const void *a, const void *b); /* doubles, for qsort */
double ca_estimate_exponential(struct ca_rng *rng);    /* mean 1 */
/* How far the visits of an item are from what they should be, in robust sigmas; and the
 * weight that goes with it. period: cost of a visit; noise: relative. */
double ca_estimate_weight(const struct ca_est_item *item, double period, double noise, double quantum);
/* sqrt of (noise^2 + counting noise) of one item, relative. */
double ca_estimate_scatter(const struct ca_est_item *item, double period, double noise, double quantum);

/* estimate_work.c: counts visits as many as they are dear by where in their runs' work they lie, which helps if all do
 * the same. counted: out, enough is known for that, and items of which it is not are left out. False: no memory. */
bool ca_estimate_work(struct ca_est *est, bool *counted);

/* estimate_control.c: counts visits as many as they are dear in CPU time. False: no memory. */
bool ca_estimate_control(struct ca_est *est);

/* estimate_baseline.c: screens the zeros, chooses the baseline, sets base of every item.
 * False: no memory. */
bool ca_estimate_baseline(struct ca_est *est);
/* base of every item again with other weights of the zeros, or with their costs multiplied,
 * by item; either may be NULL. The bootstrap's inner loop. base: out, by item. */
void ca_estimate_rebase(struct ca_est *est, const double *weight, const double *factor, double *base);

/* estimate_places.c: where each run does what, if all do the same. placed and places are set where it is known of
 * each item (false: no memory). The zeros nearest in place to item i, k / 2 on either side, itself left out, and
 * how much each counts; returns how many. */
bool ca_estimate_place(struct ca_est *est);
/* How many neighbours in place tell: a quarter of the zeros, at most so many. 0: none do. */
enum { CA_EST_PLACES = 8 };
unsigned ca_estimate_places(const struct ca_est *est);
uint32_t ca_estimate_near_place(const struct ca_est *est, size_t i, unsigned k, uint32_t *out,
				double *weight);
/* Where in the run an experiment lies, used or not; each part of the run counts alike for each region (false: no
 * memory); and intervals of regions that have none in some part. */
void ca_estimate_hear(struct ca_est *est, const struct ca_observation *o, double length);
bool ca_estimate_weigh_parts(struct ca_est *est);
/* Are points passed in all parts of the run? */
bool ca_estimate_is_heard(const struct ca_est *est);
void ca_estimate_miss_parts(const struct ca_est *est, const struct ca_estimate_options *options,
			    struct ca_estimates *out, const size_t *first, const uint32_t *member);

/* estimate_silence.c. Are observations of visits, and is a part of the runs without? Then shares become those in the
 * time that has visits (n of them), and parts of runs count as much as they have of it; and in the end what samples say
 * of the rest is joined with what experiments say. */
bool ca_estimate_is_silent(const struct ca_observation *o, size_t n,
			   const struct ca_estimate_options *options);
void ca_estimate_leave_out_silence(struct ca_share *share, size_t n, const struct ca_silence *silence);
double ca_estimate_saved(const struct ca_est *est);
void ca_estimate_hear_silence(struct ca_est *est, const struct ca_silence *silence);
void ca_estimate_join_silence(const struct ca_observation *o, size_t n,
			      const struct ca_estimate_options *options, struct ca_estimates *out);

/* estimate_phases.c: brings experiments to what they would have shown in phases like those of whole runs.
 * False: no memory. */
bool ca_estimate_phases(struct ca_est *est, const struct ca_estimate_options *options);

/* estimate_boot.c: the intervals of all cells, and the curves. member: items ordered by cell,
 * cell c has member[first[c]..first[c+1]); shrink: by curve, the share of the difference of
 * its own zeros that counts. False: no memory. */
bool ca_estimate_boot(struct ca_est *est, const struct ca_estimate_options *options, struct ca_estimates *out,
		      const size_t *first, const uint32_t *member, const double *shrink);
/* estimate_bounds.c. Ratios (1: 100 %), with 95 % of their own error on the outer side. */
struct ca_est_bound {
	double low, high; /* -INFINITY, INFINITY: none */
};
struct ca_est_own {
	double share; /* of S in the time; 0: not known */
	bool known;   /* hardly anybody paid: the effect at speedup p is p times these */
	bool by_runs; /* ... which are those of whole runs */
	bool timed;   /* the program waits with time limits, which move with D */
	double low, middle, high;
};
/* Of S time, relative, standard deviation; what it is worth in a prediction: doc/ESTIMATE.md. */
extern const double ca_estimate_s_error;
/* bound: by cell, own: by curve. False: no memory. */
bool ca_estimate_bounds(const struct ca_est *est, const struct ca_estimate_options *options,
			const struct ca_estimates *out, const size_t *first, const uint32_t *member,
			struct ca_est_bound *bound, struct ca_est_own *own);
/* estimate_share.c: where the runs' samples know more than the experiments, or these were not like the runs, what is
 * known of own[] becomes what the samples say. */
void ca_estimate_share(const struct ca_est *est, const struct ca_estimate_options *options,
		       const struct ca_estimates *out, const size_t *first, const uint32_t *member,
		       struct ca_est_own *own);

/* estimate_curve.c: one curve from its cells, all of it but the counts; brings the cells into their
 * bounds. */
struct ca_est_spread {
	const double *variance; /* by cell of the curve: of log(ratio to the baseline); NAN: not known */
	double common;          /* of it, what all of them share */
	double df;              /* from which these are known */
};
void ca_estimate_curve(struct ca_cell *cell, const struct ca_est_spread *spread, struct ca_est_bound *bound,
		       const struct ca_est_own *own, struct ca_curve *curve);
#endif

/* SPDX-License-Identifier: MIT */
/* Estimates: from finished experiments to program speedups with 95 % intervals.
 *
 * Pure numbers: no files, no names, no printing. The reasoning is in doc/ESTIMATE.md.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_ESTIMATE_H
#define CA_CAUSAL_RESULTS_ESTIMATE_H
#include "core/status.h"
#include <stddef.h>
#include <stdint.h>

/* One experiment as one progress point saw it. */
struct ca_observation {
	uint32_t region;  /* what was selected; 0: nothing */
	uint32_t speedup; /* millionths; 0: a baseline experiment of any region */
	uint32_t run;     /* experiments with equal numbers come from one process run */
	double time;      /* s, start of the experiment, one axis for all runs */
	double cost;      /* throughput: effective duration in s; latency: times mean in flight */
	double visits;    /* throughput: visits; latency: arrivals. >= 0 */
};

struct ca_estimate_options {
	uint64_t seed;       /* equal seeds, equal intervals */
	unsigned replicates; /* of the bootstrap; 0: 1000 */
	double quantum;      /* variance of the error of one count: 1/6 when both ends of an
				experiment fall between two visits, 0 for end-to-end */
};

/* What stands for "the same time at 0 %". */
enum ca_baseline {
	CA_BASELINE_NONE, /* there was no usable experiment at 0 % */
	CA_BASELINE_ALL,  /* all of them together */
	CA_BASELINE_RUN,  /* those of the same run */
	CA_BASELINE_NEAR  /* the nearest ones in time, of the same run if it has some */
};

/* One region at one speedup. Percent; NAN: not known. */
struct ca_cell {
	uint32_t region, speedup;
	double effect, low, high;
	double visits;      /* all experiments together */
	size_t experiments; /* used */
	size_t outliers;    /* ... of which with next to no weight */
	size_t runs;        /* that they came from */
};

/* One region over all its speedups. NAN: not known. */
struct ca_curve {
	uint32_t region;
	double impact, impact_low, impact_high; /* mean effect over speedups 0..100, percent */
	double slope, slope_low, slope_high;    /* program % gained per % of region speedup */
	double max;                             /* largest trusted effect, percent */
	double max_speedup;                     /* where, percent */
	size_t experiments;
	size_t first, cells; /* its cells: cell[first .. first + cells) */
};

struct ca_estimates {
	enum ca_baseline baseline;
	unsigned neighbours;  /* CA_BASELINE_NEAR: how many */
	size_t zeros;         /* experiments at 0 % used */
	double noise;         /* relative scatter of one experiment at 0 %, robust */
	struct ca_cell *cell; /* sorted by region, then speedup; owned */
	size_t cells;
	struct ca_curve *curve; /* sorted by region; owned */
	size_t curves;
};

/* Fills *out (release with ca_estimate_fini). Observations with no cost are ignored. Without
 * a baseline the cells are there with NAN effects. CA_ERR_NOMEM only. */
enum ca_status ca_estimate(const struct ca_observation *observation, size_t n,
			   const struct ca_estimate_options *options, struct ca_estimates *out);
void ca_estimate_fini(struct ca_estimates *estimates);

#endif

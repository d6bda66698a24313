/* SPDX-License-Identifier: MIT */
/* Two results directories beside each other: how fast the program was, and what its regions are worth. */
#ifndef CA_CAUSAL_RESULTS_COMPARE_H
#define CA_CAUSAL_RESULTS_COMPARE_H
#include "causal/results/profile.h"

/* A progress point that both have, from experiments at 0 %. */
struct ca_compare_rate {
	const struct ca_profile_point *a, *b;
	unsigned percent;         /* of a latency this percentile; 0: the mean */
	size_t runs[2];           /* with such experiments */
	double change, low, high; /* percent by which the time per visit (the latency) has grown; 95 %
				     interval. NAN: not known */
};

/* A row that both have. */
struct ca_compare_row {
	const struct ca_profile_row *a, *b;
	double change, half; /* of the effect at 50 %, in points; half of its 95 % interval */
};

struct ca_compare {
	struct ca_compare_rate *rate; /* owned */
	struct ca_compare_row *row;   /* owned; in the order of b's rows */
	size_t rates, rows;
};

/* Release with ca_compare_fini; the profiles must stay. CA_ERR_NOMEM only. */
enum ca_status ca_compare_make(struct ca_compare *compare, const struct ca_profile *a,
			       const struct ca_profile *b);
void ca_compare_fini(struct ca_compare *compare);
/* Means of two samples of logarithms: percent by which b is more than a, with its 95 % interval by
 * Welch's t test. NAN: a sample has fewer than two. */
void ca_compare_means(const double *a, size_t n_a, const double *b, size_t n_b, double *change, double *low,
		      double *high);

#endif

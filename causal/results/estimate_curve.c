/* SPDX-License-Identifier: MIT */
/* One region along its speedups: the effect at a few fixed ones from all experiments together, and
 * what follows from it. The reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>

const uint32_t ca_estimate_at[CA_AT] = { 250000, 500000, 1000000 };

enum { HALF = 1 }; /* 50 %, in ca_estimate_at */

/* Percent of the program that half of the region's time is worth: from that on it is worth it; below
 * the second it does not matter. */
static const double gain_min = 1, gain_small = 3;

/* A straight line through 0. */
void ca_estimate_fit(struct ca_curve *curve)
{
	for (int i = 0; i < CA_AT; i++) {
		curve->at[i] = curve->slope * ca_estimate_at[i] / 1e4;
		curve->at_low[i] = curve->slope_low * ca_estimate_at[i] / 1e4;
		curve->at_high[i] = curve->slope_high * ca_estimate_at[i] / 1e4;
	}
}

enum ca_verdict ca_estimate_verdict(const struct ca_curve *curve)
{
	if (curve->how == CA_HOW_COMPARED && curve->experiments < 3)
		return CA_VERDICT_NOT_ENOUGH;
	if (curve->at_low[HALF] > 0 && curve->at[HALF] >= gain_min)
		return CA_VERDICT_WORTH;
	if (curve->at_high[HALF] < gain_small)
		return CA_VERDICT_NOT_WORTH;
	return CA_VERDICT_NOT_ENOUGH;
}

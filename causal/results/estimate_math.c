/* SPDX-License-Identifier: MIT */
/* Order statistics, quantiles of t, robust weights: see estimate_parts.h. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>

int ca_estimate_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double ca_estimate_median(double *value, size_t n)
{
	qsort(value, n, sizeof *value, ca_estimate_compare);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

double ca_estimate_quantile(const double *sorted, size_t n, double q)
{
	double at = q * (double)(n - 1);
	size_t i = (size_t)at;

	return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

/* Cornish-Fisher expansion in 1/df (Abramowitz and Stegun 26.7.5); exact values where it is
 * not good enough. */
double ca_estimate_t975(double df)
{
	static const double z = 1.959963985;
	double z2 = z * z;

	if (df < 1.5)
		return 12.7062;
	if (df < 2.5)
		return 4.3027;
	return z + z * (z2 + 1) / (4 * df) + z * (5 * z2 * z2 + 16 * z2 + 3) / (96 * df * df) +
	       z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * df * df * df);
}

double ca_estimate_exponential(struct ca_rng *rng)
{
	return -log1p(-ca_rng_unit(rng));
}

double ca_estimate_scatter(const struct ca_est_item *item, double period, double noise, double quantum)
{
	double expected = item->cost / period;

	return sqrt(noise * noise + quantum / (expected * expected));
}

/* Tukey's bisquare with c = 6: 98 % efficient for normal noise, and an experiment more than
 * six sigmas off has no say. Measured in visits, so that an experiment in which a rare point
 * happened not to be passed is no infinity; one visit more or less is never suspect, since
 * small counts are skewed and dropping their tail would bend the mean. */
double ca_estimate_weight(const struct ca_est_item *item, double period, double noise, double quantum)
{
	double expected = item->cost / period;
	double sigma = sqrt(noise * noise * expected * expected + (quantum > 0));
	double z = (expected - item->visits) / (6 * (sigma > 0 ? sigma : 1e-9 * expected));

	return fabs(z) < 1 ? (1 - z * z) * (1 - z * z) : 0;
}

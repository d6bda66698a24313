/* SPDX-License-Identifier: MIT */
/* Units of work; see units.h. */
#include "causal/results/units.h"
#include <math.h>

enum { FEW = 2 };                /* runs of each kind that tell */
static const double scatter = 2; /* times the range of those at 0 %, which is too small where they are few */
static const double differ = 0.05;  /* of the visits */
static const double lasting = 0.03; /* ... of the length, between any two runs */

bool ca_units_are_refuted(const struct ca_units_run *run, size_t n)
{
	double low = INFINITY, high = 0, shortest = INFINITY, longest = 0, off;
	size_t zeros = 0, outside = 0;

	for (size_t i = 0; i < n; i++) {
		shortest = fmin(shortest, run[i].seconds);
		longest = fmax(longest, run[i].seconds);
		if (!run[i].zero)
			continue;
		zeros++;
		low = fmin(low, run[i].visits);
		high = fmax(high, run[i].visits);
	}
	if (zeros < FEW || !(low > 0) || longest < shortest * (1 + lasting))
		return false;
	off = fmax(scatter * (high / low - 1), differ);
	for (size_t i = 0; i < n; i++)
		outside +=
			!run[i].zero && (run[i].visits > high * (1 + off) || run[i].visits < low / (1 + off));
	return outside >= FEW && 2 * outside >= n - zeros;
}

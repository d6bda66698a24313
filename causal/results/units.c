/* SPDX-License-Identifier: MIT */
/* Units of work; see units.h. */
#include "causal/results/units.h"
#include <math.h>

enum { FEW = 2 };                /* runs of each kind that tell */
static const double scatter = 2; /* times the range of those at 0 %, which is too small where they are few */
static const double differ = 0.05;  /* of the visits */
static const double lasting = 0.03; /* of the length */

/* What runs at 0 % have. */
struct usual {
	double low, high;
	size_t n;
};

static void add(struct usual *u, double value)
{
	u->low = u->n ? fmin(u->low, value) : value;
	u->high = fmax(u->high, value);
	u->n++;
}

static bool is_outside(const struct usual *u, double value, double least)
{
	double off = fmax(scatter * (u->high / u->low - 1), least);

	return value > u->high * (1 + off) || value < u->low / (1 + off);
}

bool ca_units_are_refuted(const struct ca_units_run *run, size_t n)
{
	struct usual visits = { 0 }, seconds = { 0 };
	size_t outside = 0, unlike = 0;

	for (size_t i = 0; i < n; i++)
		if (run[i].zero) {
			add(&visits, run[i].visits);
			add(&seconds, run[i].seconds);
		}
	if (visits.n < FEW || !(visits.low > 0) || !(seconds.low > 0))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!run[i].zero && is_outside(&visits, run[i].visits, differ)) {
			outside++;
			unlike += is_outside(&seconds, run[i].seconds, lasting);
		}
	return outside >= FEW && 2 * outside >= n - visits.n && 2 * unlike >= outside;
}

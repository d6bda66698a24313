/* SPDX-License-Identifier: MIT */
/* Synthetic observations are drawn from one seeded generator; numbers are held against bounds. */
#ifndef CA_TESTS_ESTIMATE_FIXTURE_H
#define CA_TESTS_ESTIMATE_FIXTURE_H
#include "causal/results/estimate.h"
#include "core/rng.h"
#include "tests/unit/unit.h"
#include <math.h>

/* cmocka has none for doubles before 1.1.6. */
#define assert_near(a, b, margin)                                                                            \
	do {                                                                                                 \
		double a_ = (a), b_ = (b);                                                                   \
		if (!(fabs(a_ - b_) <= (margin)))                                                            \
			fail_msg("%s is %g, not %g", #a, a_, b_);                                            \
	} while (0)

static struct ca_rng rng; /* each test seeds it */

static inline double uniform(void)
{
	return ca_rng_unit(&rng);
}

static inline double normal(void)
{
	double radius = sqrt(-2 * log1p(-uniform()));

	return radius * cos(6.283185307179586 * uniform());
}

static inline struct ca_estimates run_on(const struct ca_observation *list, size_t n)
{
	struct ca_estimate_options options = { .seed = 7, .quantum = 1. / 6 };
	struct ca_estimates e;

	assert_int_equal(ca_estimate(list, n, &options, &e), CA_OK);
	return e;
}

static inline const struct ca_cell *find(const struct ca_estimates *e, uint32_t region, uint32_t speedup)
{
	for (size_t c = 0; c < e->cells; c++)
		if (e->cell[c].region == region && e->cell[c].speedup == speedup)
			return &e->cell[c];
	fail_msg("no cell");
	return NULL;
}

#endif

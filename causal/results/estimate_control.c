/* SPDX-License-Identifier: MIT */
/* CPU time per visit as a control variate: much of what makes one experiment slower than another (the
 * place in the input, caches, the machine) makes its visits dearer in CPU time, too, by the same factor.
 * How much of that is taken out depends on how sure it is that the experiment itself has not changed it.
 * The reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>

/* By how much the pauses of an experiment may change the work of a visit, relative, standard deviation, in
 * programs that do not spin: doc/ESTIMATE.md. */
static const double usual_shift = 0.02;

struct region {
	double sum, n; /* of log(work of a visit / what it would be at 0 %), of experiments above 0 % */
};

static double work_of(const struct ca_est_item *item)
{
	double seconds = item->elapsed - item->delay;

	/* the visits' time is not all of the experiment's: from the first to the last */
	return item->work > 0 && seconds > 0 && item->visits > 0 ? item->work / seconds * item->cost : 0;
}

/* With work in the place of cost, what would it be at 0 % at the place of each item? base[]: out. */
static bool find_bases(struct ca_est *est, double *work, double *noise)
{
	bool ok;

	for (size_t i = 0; i < est->items; i++) {
		double cost = est->item[i].cost;

		est->item[i].cost = work[i];
		work[i] = cost;
	}
	ok = ca_estimate_baseline(est);
	*noise = est->noise;
	for (size_t i = 0; i < est->items; i++) {
		double cost = est->item[i].cost;

		est->item[i].cost = work[i];
		work[i] = cost;
		est->item[i].weight = 1;
	}
	free(est->near);
	est->near = NULL;
	return ok;
}

/* How far work per visit is from that at 0 %, where it has moved most: its variance, beyond what chance
 * explains; and that of the best known region. */
static double find_shift(const struct ca_est *est, const struct region *region, size_t regions, double noise,
			 double *known)
{
	double shift = usual_shift * usual_shift, zeros = (double)est->zeros, tried = 0;

	*known = INFINITY;
	for (size_t i = 0; i < regions; i++)
		tried += region[i].n > 0;
	for (size_t i = 0; i < regions; i++) {
		double n = region[i].n, used, variance;

		if (!(n > 0))
			continue;
		used = est->baseline == CA_BASELINE_NEAR ? fmin(zeros, n * est->k) : zeros;
		variance = noise * noise * (1 / n + 1 / used);
		*known = fmin(*known, variance);
		/* the largest of so many is as large by chance alone */
		shift = fmax(shift, pow(region[i].sum / n, 2) - (1 + log(tried)) * variance);
	}
	return shift;
}

bool ca_estimate_control(struct ca_est *est)
{
	double *work = calloc(est->items + 1, sizeof *work), noise = 0, known, shift, mean = 0, n = 0;
	struct region *region = NULL;
	size_t regions = 0;
	bool ok = work, can = est->zeros > 0;

	for (size_t i = 0; i < est->items && ok; i++) {
		work[i] = work_of(&est->item[i]);
		can = can && (work[i] > 0 || !(est->item[i].visits > 0));
		if (est->item[i].region >= regions)
			regions = est->item[i].region + 1;
	}
	if (!ok || !can)
		goto done;
	region = calloc(regions, sizeof *region);
	ok = region && find_bases(est, work, &noise);
	for (size_t i = 0; i < est->items && ok; i++) {
		const struct ca_est_item *item = &est->item[i];

		if (!(work[i] > 0))
			continue;
		mean += log(work[i] / item->visits);
		n++;
		if (!item->speedup)
			continue;
		region[item->region].sum += log(work[i] / item->visits / item->base);
		region[item->region].n++;
	}
	if (!ok || !(n > 0))
		goto done;
	shift = find_shift(est, region, regions, noise, &known);
	est->control = isfinite(known) ? known / (known + shift) : 0;
	est->slip = est->control * sqrt(shift);
	mean /= n;
	for (size_t i = 0; i < est->items; i++)
		if (work[i] > 0)
			est->item[i].cost *= exp(est->control * (mean - log(work[i] / est->item[i].visits)));
done:
	free(work);
	free(region);
	return ok;
}

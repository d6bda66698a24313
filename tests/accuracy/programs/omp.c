/* SPDX-License-Identifier: MIT */
/* OpenMP parallel for, static schedule, imbalanced: the first half of the iterations costs
 * 4 x 200 (region heavy), the second 4 x 120 (region light). Built with gcc (libgomp, which
 * waits by spinning and raw futex calls) as omp, and with clang (libomp) as omp_llvm.
 *
 * Expected with two threads: the period is max(800, 480) and the fork and join, which cost
 * some 10 us. heavy: min(X, 40). light: 0. */
#include "gt.h"
#include <omp.h>

GT_DEFINE_REGION(heavy)
GT_DEFINE_REGION(light)

int main(int argc, char **argv)
{
	gt_start(argc, argv, "heavy");
	uint64_t nh = gt_amount("heavy", 200), nl = gt_amount("light", 120);

	while (!gt_expired()) {
#pragma omp parallel for schedule(static) num_threads(2)
		for (int i = 0; i < 8; i++) {
			if (i < 4)
				region_heavy(nh); /* GT_REGION heavy */
			else
				region_light(nl); /* GT_REGION light */
		}
		GT_VISIT();
	}
	return gt_report();
}

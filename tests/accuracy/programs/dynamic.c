/* SPDX-License-Identifier: MIT */
/* OpenMP parallel for, schedule(dynamic, 1), uneven: 16 iterations, each second one costs 150 to
 * 325 (region heavy), the others 100 (region light). With gcc as dynamic, with clang as
 * dynamic_llvm.
 *
 * Expected: whoever is free takes the next, so the two threads end nearly together and a loop
 * takes half of 1900 + 800. heavy: about 0.70 X; how much is lost at the end of a loop changes
 * with X. light: about 0.30 X. */
#include "gt.h"
#include <omp.h>

GT_DEFINE_REGION(heavy)
GT_DEFINE_REGION(light)

int main(int argc, char **argv)
{
	uint64_t heavy[8], light;

	gt_start(argc, argv, "heavy");
	for (int i = 0; i < 8; i++)
		heavy[i] = gt_amount("heavy", 150 + 25 * ((i * 5) % 8));
	light = gt_amount("light", 100);
	while (!gt_expired()) {
#pragma omp parallel for schedule(dynamic, 1) num_threads(2)
		for (int i = 0; i < 16; i++) {
			if (i % 2)
				region_heavy(heavy[i / 2]); /* GT_REGION heavy */
			else
				region_light(light); /* GT_REGION light */
		}
		GT_VISIT();
	}
	return gt_report();
}

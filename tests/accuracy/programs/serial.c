/* SPDX-License-Identifier: MIT */
/* One thread, three functions with 60, 30 and 10 % of the time.
 *
 * Expected: the period is 1000; a: 0.6 X, b: 0.3 X, c: 0.1 X. No other thread exists, so
 * nothing is ever delayed and D alone carries the answer. */
#include "gt.h"

GT_DEFINE_REGION(a)
GT_DEFINE_REGION(b)
GT_DEFINE_REGION(c)

int main(int argc, char **argv)
{
	gt_start(argc, argv, "a");
	uint64_t na = gt_amount("a", 600), nb = gt_amount("b", 300), nc = gt_amount("c", 100);

	while (!gt_expired()) {
		region_a(na); /* GT_REGION a */
		region_b(nb); /* GT_REGION b */
		region_c(nc); /* GT_REGION c */
		GT_VISIT();
	}
	return gt_report();
}

/* SPDX-License-Identifier: MIT */
/* Deep recursion without frame pointers: region deep (700) works at the bottom of 120 frames
 * of itself and on its way there; region rest takes 300. Built with -fomit-frame-pointer.
 *
 * Expected: one thread; deep: 0.7 X, rest: 0.3 X. A sampler that gives up after fewer frames
 * sees less; one that counts every frame as an entry sees more. */
#include "gt.h"

enum { DEPTH = 120 };
GT_DEFINE_REGION(rest)
static volatile uint64_t sink;

static GT_NOINLINE uint64_t region_deep(int depth, uint64_t n)
{
	uint64_t x = gt_spin(n);

	if (depth > 0)
		x += region_deep(depth - 1, n);
	sink = x;
	return x ^ (uint64_t)depth;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "deep");
	uint64_t n = gt_amount("deep", 700) / (DEPTH + 1), nr = gt_amount("rest", 300);

	while (!gt_expired()) {
		region_deep(DEPTH, n); /* GT_REGION deep */
		region_rest(nr);       /* GT_REGION rest */
		GT_VISIT();
	}
	return gt_report();
}

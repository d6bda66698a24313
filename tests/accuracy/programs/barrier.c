/* SPDX-License-Identifier: MIT */
/* Two threads that meet at a barrier: slow 1000, fast 800.
 *
 * Expected: the period is max(slow, fast) = 1000. slow: min(X, 20), for below 800 the
 * other side leads. fast: 0. */
#include "two.h"

GT_DEFINE_REGION(slow)
GT_DEFINE_REGION(fast)

static void *slow(void *p)
{
	uint64_t n = gt_amount("slow", 1000);

	do {
		region_slow(n); /* GT_REGION slow */
		GT_VISIT();
	} while (two_meet(1));
	return p;
}

static void *fast(void *p)
{
	uint64_t n = gt_amount("fast", 800);

	do {
		region_fast(n); /* GT_REGION fast */
	} while (two_meet(0));
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "slow");
	return two_threads(slow, fast);
}

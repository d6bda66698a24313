/* SPDX-License-Identifier: MIT */
/* A region inside a region, and work done in a shared library on behalf of two callers:
 * outer 400 of its own and 300 in inner, which it calls; remote 150 and local 150 both spend
 * their time in lib_work() of libgtwork.so.
 *
 * Expected: one thread, the period is 1000. outer: 0.7 X (inner's time counts once), inner:
 * 0.3 X, remote: 0.15 X although the same library function also works for local. */
#include "gt.h"

uint64_t lib_work(uint64_t n);

static volatile uint64_t sink;
GT_DEFINE_REGION(inner)

static GT_NOINLINE void region_outer(uint64_t own, uint64_t in)
{
	sink = gt_spin(own);
	region_inner(in); /* GT_REGION inner */
	sink = 0;         /* so that the call is not turned into a jump, which leaves no frame */
}

static GT_NOINLINE void region_remote(uint64_t n)
{
	sink = lib_work(n);
}

static GT_NOINLINE void region_local(uint64_t n)
{
	sink = lib_work(n) + 1;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "outer");
	double outer = strcmp(gt_region_name, "outer") ? 1 : 1 - gt_scale / 100;
	uint64_t own = gt_amount("outer", 400);
	uint64_t in = (uint64_t)((double)gt_amount("inner", 300) * outer);
	uint64_t nr = gt_amount("remote", 150), nl = gt_amount("local", 150);

	while (!gt_expired()) {
		region_outer(own, in); /* GT_REGION outer */
		region_remote(nr);     /* GT_REGION remote */
		region_local(nl);      /* GT_REGION local */
		GT_VISIT();
	}
	return gt_report();
}

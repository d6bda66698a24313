/* SPDX-License-Identifier: MIT */
/* Thread churn: every round creates two threads, one runs 600 (region heavy), the other 400
 * (region light), joins both, then runs 300 itself (region tail). About a thousand threads
 * a second come and go inside every experiment.
 *
 * Expected: the period is 600 + 300 and the creation and join (some 60 us). heavy:
 * min(X, 33) x 600 / 960, so 0.62 X up to 20.8. light: 0. tail: 0.31 X. */
#include "gt.h"

GT_DEFINE_REGION(heavy)
GT_DEFINE_REGION(light)
GT_DEFINE_REGION(tail)
static uint64_t nh, nl;

static void *heavy(void *p)
{
	region_heavy(nh); /* GT_REGION heavy */
	return p;
}

static void *light(void *p)
{
	region_light(nl); /* GT_REGION light */
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "heavy");
	uint64_t nt = gt_amount("tail", 300);

	nh = gt_amount("heavy", 600);
	nl = gt_amount("light", 400);
	while (!gt_expired()) {
		pthread_t a, b;

		if (pthread_create(&a, NULL, heavy, NULL) || pthread_create(&b, NULL, light, NULL))
			return 1;
		pthread_join(a, NULL);
		pthread_join(b, NULL);
		region_tail(nt); /* GT_REGION tail */
		GT_VISIT();
	}
	return gt_report();
}

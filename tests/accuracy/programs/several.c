/* SPDX-License-Identifier: MIT */
/* Independent processes of one thread each, linked as several-HOW_MANY: 300 (region work) and 200 (region
 * rest), as in crowd.c.
 *
 *   two    on two cores both run all the time
 *   four   ... and these take turns: a process does not see when another one is off the CPU in S
 *
 * Expected: as in crowd.c, work 0.6 X. The first process counts for all. */
#include "gt.h"
#include <sys/wait.h>

enum { MOST = 4 };
GT_DEFINE_REGION(work)
GT_DEFINE_REGION(rest)

static void run(void)
{
	uint64_t nw = gt_amount("work", 300), nr = gt_amount("rest", 200);

	while (!gt_expired()) {
		region_work(nw); /* GT_REGION work */
		region_rest(nr); /* GT_REGION rest */
		GT_VISIT();
	}
}

int main(int argc, char **argv)
{
	int n = strcmp(gt_variant(), "two") ? MOST : 2, status;

	gt_start(argc, argv, "work");
	for (int i = 1; i < n; i++)
		if (fork() == 0) {
			run();
			return 0;
		}
	run();
	while (wait(&status) > 0 || errno == EINTR)
		;
	return gt_report();
}

/* SPDX-License-Identifier: MIT */
/* Progress points by causal.h's macros, named once more on the command line; for
 * tests/integration/progress.sh. */
#include <causal.h>
#include <stdint.h>
#include <time.h>

enum { ROUNDS = 2000 };

volatile uint64_t sink;

int main(void)
{
	struct timespec start, now;

	for (int i = 0; i < ROUNDS; i++)
		CAUSAL_PROGRESS_NAMED("item"); /* MARK: macro */
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		sink++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 1);
	return 0;
}

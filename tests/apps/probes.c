/* SPDX-License-Identifier: MIT */
/* USDT probes of two kinds, passed a known number of times; for tests/integration/progress.sh. */
#define _SDT_HAS_SEMAPHORES 1
#include <stdint.h>
#include <sys/sdt.h>
#include <time.h>

enum { ROUNDS = 2000 };

__extension__ unsigned short visits_item_semaphore __attribute__((section(".probes")));
__extension__ unsigned short visits_guarded_semaphore __attribute__((section(".probes")));
volatile uint64_t sink;

int main(void)
{
	struct timespec start, now;

	for (int i = 0; i < ROUNDS; i++) {
		DTRACE_PROBE1(visits, item, i);
		if (visits_guarded_semaphore)
			DTRACE_PROBE1(visits, guarded, i);
	}
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		sink++;
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec - start.tv_sec < 1);
	return 0;
}

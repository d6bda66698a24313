/* SPDX-License-Identifier: MIT */
/* Counters between two places in code:
 *   ./counters [NAMES]                                    prints what was counted, and how it was read
 *   causal trace --sinks print -- ./counters [NAMES]      events: 0 at first, then what came in between
 * NAMES: page-faults,task-clock if not given, which need no right and no hardware. */
#include <causal_measure.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGES = 100, TURNS = 3, READS = 10000 };

static void touch_pages(void)
{
	char *at = mmap(NULL, PAGES << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	madvise(at, PAGES << 12, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		((volatile char *)at)[i << 12] = 1;
	munmap(at, PAGES << 12);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *names = argc > 1 ? argv[1] : "page-faults,task-clock";
	uint64_t before[CAUSAL_COUNTERS], after[CAUSAL_COUNTERS];
	struct causal_counters *counters;
	double begin;
	unsigned n;

	for (int turn = 0; turn < TURNS; turn++) {
		causal_counters_here(names);
		touch_pages();
	}
	causal_counters_here(names);

	counters = causal_counters_open(names);
	if (!counters)
		return 1;
	causal_counters_read(counters, before);
	touch_pages();
	n = causal_counters_read(counters, after);
	for (unsigned i = 0; i < n; i++)
		printf("%s %llu\n", causal_counters_name(counters, i),
		       (unsigned long long)(after[i] - before[i]));
	begin = seconds();
	for (int i = 0; i < READS; i++)
		causal_counters_read(counters, after);
	printf("%.0f ns a reading, by %s\n", (seconds() - begin) / READS * 1e9,
	       causal_counters_way(counters));
	causal_counters_close(counters);
	return 0;
}

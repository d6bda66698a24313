/* SPDX-License-Identifier: MIT */
/* A hand-off through one slot guarded by two semaphores: fill 600, drain 800.
 *
 * Expected: the filler works while the drainer does; the period is max(600, 800) = 800.
 * drain: min(X, 25). fill: 0. */
#include "two.h"
#include <semaphore.h>

GT_DEFINE_REGION(fill)
GT_DEFINE_REGION(drain)
static sem_t empty, full;
static atomic_int over;

static void take(sem_t *s)
{
	while (sem_wait(s) && errno == EINTR)
		;
}

static void *filler(void *p)
{
	uint64_t n = gt_amount("fill", 600);

	while (!atomic_load(&gt_stop)) {
		region_fill(n); /* GT_REGION fill */
		take(&empty);
		sem_post(&full);
	}
	atomic_store(&over, 1);
	sem_post(&full);
	return p;
}

static void *drainer(void *p)
{
	uint64_t n = gt_amount("drain", 800);

	for (;;) {
		take(&full);
		sem_post(&empty);
		if (atomic_load(&over))
			return p;
		region_drain(n); /* GT_REGION drain */
		GT_VISIT();
	}
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "drain");
	sem_init(&empty, 0, 1);
	sem_init(&full, 0, 0);
	return two_threads(filler, drainer);
}

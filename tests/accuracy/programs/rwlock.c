/* SPDX-License-Identifier: MIT */
/* Two threads, each reads (400) under a shared lock, then writes (300) under the exclusive
 * one. The lock prefers writers, so that the pattern is fixed: both read together, one
 * writes, the other writes, both read again.
 *
 * Expected: the period is 400 + 300 + 300 = 1000 for two visits. write: 0.6 X. read: 0.4 X
 * (both are in S at once: union, not sum; with the sum it would come out as 0.8 X). */
#include "two.h"

GT_DEFINE_REGION(read)
GT_DEFINE_REGION(write)
static pthread_rwlock_t rw = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;

static void *worker(void *p)
{
	uint64_t nr = gt_amount("read", 400), nw = gt_amount("write", 300);

	while (!atomic_load(&gt_stop)) {
		pthread_rwlock_rdlock(&rw);
		region_read(nr); /* GT_REGION read */
		pthread_rwlock_unlock(&rw);
		pthread_rwlock_wrlock(&rw);
		region_write(nw); /* GT_REGION write */
		pthread_rwlock_unlock(&rw);
		GT_VISIT();
	}
	return p;
}

int main(int argc, char **argv)
{
	gt_start(argc, argv, "write");
	return two_threads(worker, worker);
}

/* SPDX-License-Identifier: MIT */
/* Contention on a home-made lock over raw futex calls: nothing that a wrapper could see.
 * Expected: see locks.h. */
#include "gt.h"
#include <linux/futex.h>
#include <sys/syscall.h>

static atomic_int lk; /* 0 free, 1 held, 2 held with waiters */

static GT_NOINLINE void lock(void)
{
	int c = 0;

	if (atomic_compare_exchange_strong(&lk, &c, 1))
		return;
	if (c != 2)
		c = atomic_exchange(&lk, 2);
	while (c) {
		syscall(SYS_futex, &lk, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
		c = atomic_exchange(&lk, 2);
	}
}

static GT_NOINLINE void unlock(void)
{
	if (atomic_exchange(&lk, 0) == 2)
		syscall(SYS_futex, &lk, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
#define LOCK()   lock()
#define UNLOCK() unlock()
#include "locks.h"

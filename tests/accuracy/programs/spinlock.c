/* SPDX-License-Identifier: MIT */
/* Contention on a test-and-set spin lock: the waiter burns its CPU. Expected: see locks.h;
 * a thread that spins while the other is in S must not owe in a way that delays the lock. */
#include "gt.h"

static atomic_int lk;

static GT_NOINLINE void lock(void)
{
	while (atomic_exchange_explicit(&lk, 1, memory_order_acquire))
		while (atomic_load_explicit(&lk, memory_order_relaxed))
			__builtin_ia32_pause();
}
#define LOCK()   lock()
#define UNLOCK() atomic_store_explicit(&lk, 0, memory_order_release)
#include "locks.h"

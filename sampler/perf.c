/* SPDX-License-Identifier: MIT */
/* What perf events lock of memory; see perf.h. The kernel counts it on the program's account: of what a user may
 * lock, the buffers of io_uring get what we leave. */
#include "sampler/perf.h"
#include <limits.h>
#include <stdatomic.h>
#include <sys/resource.h>

enum { SHARE = 2, LEAST = 6 /* pages: two threads with all events */ };

static _Atomic long left = LONG_MAX; /* pages */
static long all = LONG_MAX;

void ca_perf_init(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return;
	all = (long)(limit.rlim_cur / CA_PERF_PAGE / SHARE);
	all = all < LEAST ? LEAST : all;
	ca_perf_forget();
}

void ca_perf_forget(void)
{
	atomic_store_explicit(&left, all, memory_order_relaxed);
}

CA_SIGSAFE void *ca_perf_map(int fd, size_t pages)
{
	long at = -1;

	if (atomic_fetch_sub_explicit(&left, (long)pages, memory_order_relaxed) >= (long)pages)
		at = ca_sys_map(NULL, pages * CA_PERF_PAGE, PROT_READ, MAP_SHARED, fd);
	if (at >= 0)
		return (void *)(intptr_t)at;
	atomic_fetch_add_explicit(&left, (long)pages, memory_order_relaxed);
	return NULL;
}

CA_SIGSAFE void ca_perf_unmap(void *at, size_t pages)
{
	ca_sys_unmap(at, pages * CA_PERF_PAGE);
	atomic_fetch_add_explicit(&left, (long)pages, memory_order_relaxed);
}

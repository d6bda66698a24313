/* SPDX-License-Identifier: MIT */
/* What perf events lock of memory; see perf.h. The kernel counts it on the program's account: of what a user may
 * lock, the buffers of io_uring get what we leave. */
#include "sampler/perf.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum {
	SHARE = 2,
	PAGES = 3,           /* of a thread */
	LEAST = 2 * PAGES,   /* pages */
	MOST = 8192 * PAGES, /* ... 96 MiB, and a quarter of vm.max_map_count's mappings */
};

static _Atomic long left = MOST; /* pages */
static long all = MOST;

/* At most a page of a file in /proc; "" if it cannot be read. */
static void read_proc(const char *path, char text[CA_PERF_PAGE])
{
	int fd = ca_sys_open(path, O_RDONLY);
	long n = fd < 0 ? 0 : ca_sys_read(fd, text, CA_PERF_PAGE - 1);

	if (fd >= 0)
		ca_sys_close(fd);
	text[n > 0 ? n : 0] = 0;
}

/* CAP_IPC_LOCK, outside of all user namespaces, where alone the kernel asks for it: only there all users are
 * themselves. Not by capget, which filters (seccomp) seldom allow. */
static bool may_lock_all(void)
{
	unsigned long may = 0, from = 1, to = 1, count = 0;
	char text[CA_PERF_PAGE];
	const char *line;

	read_proc("/proc/self/status", text);
	line = strstr(text, "\nCapEff:");
	if (!line || sscanf(line, " CapEff: %lx", &may) != 1 || !(may >> CAP_IPC_LOCK & 1))
		return false;
	read_proc("/proc/self/uid_map", text);
	return sscanf(text, "%lu %lu %lu", &from, &to, &count) == 3 && !from && !to && count == UINT32_MAX;
}

void ca_perf_init(void)
{
	struct rlimit limit;

	all = MOST;
	if (!getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY && !may_lock_all()) {
		all = (long)(limit.rlim_cur / CA_PERF_PAGE / SHARE);
		all = all < LEAST ? LEAST : all < MOST ? all : MOST;
	}
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

CA_SIGSAFE bool ca_perf_has_room(void)
{
	return atomic_load_explicit(&left, memory_order_relaxed) >= PAGES;
}

/* SPDX-License-Identifier: MIT */
/* perf events of the calling thread, without libc. Their descriptors are closed at once: the
 * mapping keeps an event alive, and the program never sees a descriptor of ours. Any context. */
#ifndef CA_SAMPLER_PERF_H
#define CA_SAMPLER_PERF_H
#include "core/status.h"
#include "core/sys.h"
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { CA_PERF_PAGE = 4096 };

/* A descriptor, or -errno. group: of the one that leads; -1: none does. */
CA_SIGSAFE static inline int ca_perf_open_in(const struct perf_event_attr *attr, int group)
{
	return ca_sys_own(SYS_perf_event_open, (long)(intptr_t)attr, 0, -1, group, PERF_FLAG_FD_CLOEXEC);
}
CA_SIGSAFE static inline int ca_perf_open(const struct perf_event_attr *attr)
{
	return ca_perf_open_in(attr, -1);
}

/* At most half of what the process may lock (RLIMIT_MEMLOCK) is mapped from then on; with CAP_IPC_LOCK, which has no
 * such limit, as much as 8,192 threads need. Once, with libc. */
void ca_perf_init(void);
/* The child of a fork has none of its parent's mappings. */
void ca_perf_forget(void);
/* The event's first pages, to be read only: the kernel overwrites what is oldest. NULL: none. */
CA_SIGSAFE void *ca_perf_map(int fd, size_t pages);
CA_SIGSAFE void ca_perf_unmap(void *at, size_t pages);
/* For one more thread, ticks and switches? */
CA_SIGSAFE bool ca_perf_has_room(void);

#endif

/* SPDX-License-Identifier: MIT */
/* Limits of memory: what we have mapped shall not count. A program that locks all its memory does not
 * mean ours, which is large and mostly unused; and one that limits its address space gets back what we
 * do not need. That holds where we are switched off, too: what is mapped stays.
 *
 * The wrappers' context. */
#include "causal/runtime/patch.h"
#include "causal/runtime/wrap.h"
#include "core/path.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- locked memory -------------------------------------------------------------------------------*/
/* The linker's: where our own variables lie, 5 MB and mostly untouched. */
extern char __bss_start[] __attribute__((visibility("hidden")));
extern char _end[] __attribute__((visibility("hidden")));

static bool is_ours(uintptr_t low, uintptr_t high, const char *name)
{
	size_t n = strlen(name);

	/* the index of a binary: in the cache, or where there is no cache (binary/index/cache.c) */
	return (low < (uintptr_t)_end && high > (uintptr_t)__bss_start) || strstr(name, ca_rt.session_path) ||
	       strstr(name, "[perf_event]") || (n > 4 && !strcmp(name + n - 4, ".idx")) ||
	       strstr(name, "/.causal-index-") || ca_patch_owns(low);
}

/* Of a line of /proc/self/maps. Where nothing can be read, as between guard pages, there is nothing to be
 * locked either; nor in what the kernel maps. */
static int lock_one(char *line, unsigned flags)
{
	unsigned long low, high;
	char rights[5];
	int name = 0;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &low, &high, rights, &name) < 3 || !name)
		return 0;
	ca_path_unescape(line + name);
	if (rights[0] != 'r' || !strncmp(line + name, "[v", 2) || is_ours(low, high, line + name))
		return 0;
	return mlock2((const void *)low, high - low, flags);
}

static int lock_current(unsigned flags)
{
	FILE *maps = fopen("/proc/thread-self/maps", "re");
	size_t room = 0;
	char *line = NULL;
	ssize_t n;
	int r = 0;

	if (!maps)
		return -1;
	while (!r && (n = getline(&line, &room, maps)) > 0) {
		line[n - 1] = 0;
		r = lock_one(line, flags);
	}
	free(line);
	fclose(maps);
	return r;
}

CA_EXPORT int mlockall(int flags)
{
	unsigned on_fault = flags & MCL_ONFAULT ? MLOCK_ONFAULT : 0;

	if (!ca_rt.session || !(flags & MCL_CURRENT) || flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		return REAL(mlockall)(flags);
	if (lock_current(on_fault))
		return -1;
	return flags & MCL_FUTURE ? REAL(mlockall)(flags & ~MCL_CURRENT) : 0;
}

/* ---- address space ---------------------------------------------------------------------------------*/
/* On this machine both structures of limits are the same. */
static void make_room(pid_t pid, int resource, const void *limit)
{
	int saved = errno;
	uint32_t ready, before;

	if (!ca_rt.session || resource != RLIMIT_AS || !limit || (pid && (uint32_t)pid != ca_rt.pid) ||
	    ((const struct rlimit *)limit)->rlim_cur == RLIM_INFINITY)
		return;
	before = atomic_load(&ca_rt.slots);
	/* nobody looks behind what is ready */
	ready = atomic_load(&ca_rt.session->slots_ready);
	if (ready < before) {
		atomic_store(&ca_rt.slots, ready);
		ca_session_shrink(ca_rt.session, before, ready);
	}
	if (ca_rt.trace)
		ca_rings_give_way(ca_rt.trace);
	ca_patch_trim();
	errno = saved;
}

CA_EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	make_room(0, (int)resource, limit);
	return REAL(setrlimit)(resource, limit);
}

CA_EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *limit)
{
	make_room(0, (int)resource, limit);
	return REAL(setrlimit64)(resource, limit);
}

CA_EXPORT int prlimit(pid_t pid, __rlimit_resource_t resource, const struct rlimit *limit, struct rlimit *old)
{
	make_room(pid, (int)resource, limit);
	return REAL(prlimit)(pid, resource, limit, old);
}

CA_EXPORT int prlimit64(pid_t pid, __rlimit_resource_t resource, const struct rlimit64 *limit,
			struct rlimit64 *old)
{
	make_room(pid, (int)resource, limit);
	return REAL(prlimit64)(pid, resource, limit, old);
}

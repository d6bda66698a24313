/* SPDX-License-Identifier: MIT */
/* System calls without libc: no errno, no cancellation point, no wrapper of ours or of anybody
 * else who is preloaded. For what the runtime does in handlers and hooks; ordinary code uses
 * libc. Any context. */
#ifndef CA_CORE_SYS_H
#define CA_CORE_SYS_H
#include "core/status.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

enum { CA_SYS_POPULATE_WRITE = 23 }; /* madvise, from Linux 5.14; libc's headers may be older */

/* Returns -errno on failure. Unused arguments are 0. */
CA_SIGSAFE static inline long ca_sys(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

CA_SIGSAFE static inline void ca_sys_close(int fd)
{
	ca_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Also when the main thread has ended, and with it what the process id leads to. */
CA_SIGSAFE static inline pid_t ca_sys_gettid(void)
{
	return (pid_t)ca_sys(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

/* A system call that opens a descriptor; or -errno. It gets a number that no program takes for its own, where there
 * is room. For a moment it has the lowest free one: whoever puts a file under a number of his choice does that
 * between the two calls below, which wait for that moment to be over, for some 10 ms at most. */
CA_SIGSAFE int ca_sys_own(long number, long a, long b, long c, long d, long e);
void ca_sys_place_begin(void);
void ca_sys_place_end(void);
/* The child of a fork has none of its parent's threads. */
void ca_sys_forget(void);

/* directory: AT_FDCWD for the current one. */
CA_SIGSAFE static inline int ca_sys_open_at(int directory, const char *path, int flags)
{
	return ca_sys_own(SYS_openat, directory, (long)(intptr_t)path, flags | O_CLOEXEC, 0, 0);
}

CA_SIGSAFE static inline int ca_sys_open(const char *path, int flags)
{
	return ca_sys_open_at(AT_FDCWD, path, flags);
}

CA_SIGSAFE static inline long ca_sys_read(int fd, void *data, size_t size)
{
	return ca_sys(SYS_read, fd, (long)(intptr_t)data, (long)size, 0, 0, 0);
}

CA_SIGSAFE static inline pid_t ca_sys_getpid(void)
{
	return (pid_t)ca_sys(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

/* how: SIG_BLOCK, SIG_UNBLOCK; signals are bits, signal 1 the lowest. Returns those that were
 * blocked before. */
CA_SIGSAFE static inline uint64_t ca_sys_sigmask(int how, uint64_t signals)
{
	uint64_t old = 0;

	ca_sys(SYS_rt_sigprocmask, how, (long)(intptr_t)&signals, (long)(intptr_t)&old, sizeof old, 0, 0);
	return old;
}
#define CA_SYS_SIGNAL(number) (UINT64_C(1) << ((number)-1))

/* The start of the mapping, or -errno. */
CA_SIGSAFE static inline long ca_sys_map(const void *at, size_t size, int protection, int flags, int fd)
{
	return ca_sys(SYS_mmap, (long)(intptr_t)at, (long)size, protection, flags, fd, 0);
}

CA_SIGSAFE static inline void ca_sys_unmap(const void *at, size_t size)
{
	ca_sys(SYS_munmap, (long)(intptr_t)at, (long)size, 0, 0, 0, 0);
}

/* Of the calling thread; false: it may not be asked for. */
CA_SIGSAFE static inline bool ca_sys_usage(struct rusage *usage)
{
	return ca_sys(SYS_getrusage, RUSAGE_THREAD, (long)(intptr_t)usage, 0, 0, 0, 0) >= 0;
}

CA_SIGSAFE static inline bool ca_sys_stat(int fd, struct stat *stat)
{
	return ca_sys(SYS_fstat, fd, (long)(intptr_t)stat, 0, 0, 0, 0) == 0;
}

/* Read this process's memory where it may not be mapped; < 0: nothing could be read. */
CA_SIGSAFE static inline long ca_sys_peek(uintptr_t address, void *to, size_t size)
{
	struct {
		uintptr_t base;
		size_t length;
	} local = { (uintptr_t)to, size }, remote = { address, size };

	return ca_sys(SYS_process_vm_readv, ca_sys_gettid(), (long)(intptr_t)&local, 1,
		      (long)(intptr_t)&remote, 1, 0);
}

/* Write there; < 0: nothing could be written. */
CA_SIGSAFE static inline long ca_sys_poke(uintptr_t address, const void *from, size_t size)
{
	struct {
		uintptr_t base;
		size_t length;
	} local = { (uintptr_t)from, size }, remote = { address, size };

	return ca_sys(SYS_process_vm_writev, ca_sys_gettid(), (long)(intptr_t)&local, 1,
		      (long)(intptr_t)&remote, 1, 0);
}

#endif

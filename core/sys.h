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

/* A descriptor that was just opened, or -errno: where there is room, under a number that no program takes
 * for its own. Between the calls another thread may put a file of its own over the low one. */
CA_SIGSAFE static inline int ca_sys_lift(int low)
{
	enum { LEAST = 1000, SAME_FILE = 0 /* KCMP_FILE */ };
	long high = low < 0 ? low : ca_sys(SYS_fcntl, low, F_DUPFD_CLOEXEC, LEAST, 0, 0, 0);
	long self = ca_sys_gettid();
	bool same;

	if (high < 0)
		return low;
	same = ca_sys(SYS_kcmp, self, self, SAME_FILE, low, high, 0) <= 0; /* above 0: they differ */
	if (ca_sys(SYS_fcntl, low, F_GETFD, 0, 0, 0, 0) & FD_CLOEXEC) {
		if (same)
			ca_sys_close(low);
	} else if (same) { /* it was there before we looked: both are its own */
		ca_sys_close((int)high);
		return -EBADF;
	}
	return (int)high;
}

/* directory: AT_FDCWD for the current one. */
CA_SIGSAFE static inline int ca_sys_open_at(int directory, const char *path, int flags)
{
	return ca_sys_lift(
		(int)ca_sys(SYS_openat, directory, (long)(intptr_t)path, flags | O_CLOEXEC, 0, 0, 0));
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

#endif

/* SPDX-License-Identifier: MIT */
/* FOR TESTS ONLY: preloaded into the driver, it makes one call fail, the N-th.
 *
 * FAULT_AT=KIND:N; KIND is "memory" (malloc and its kin, mmap), "text" (of these, what libc itself makes
 * larger or smaller, as at the end of a stream in memory) or "system" (files, processes, perf events,
 * threads), N counts from 1. At the end of the process the number of calls so far goes to the file
 * FAULT_COUNT, if that is set. Counted are calls by the driver itself and by libc for it: json-c and libdw do
 * not bear a lack of memory. Only processes named "causal" are touched; one that they fork goes on
 * counting until it executes something else. Streams are cut at fopen, fwrite, fflush and fclose, since libc's
 * own calls inside do not come by here. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <regex.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { NONE, MEMORY, TEXT, SYSTEM };
enum { BUFFER = 4096 };

struct text {
	uintptr_t low, high;
};

static struct text own, libc;
static enum kind kind;
static long at;
static atomic_long seen;
static _Thread_local bool spared; /* libc does not bear it there */

static int note(struct dl_phdr_info *info, size_t size, void *first)
{
	struct text *text = *(bool *)first ? &own : strstr(info->dlpi_name, "/libc.so") ? &libc : NULL;

	(void)size;
	*(bool *)first = false;
	for (int i = 0; text && i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
			text->low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			text->high = text->low + info->dlpi_phdr[i].p_memsz;
		}
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	bool first = true;
	const char *text = getenv("FAULT_AT");

	if (!text || strcmp(program_invocation_short_name, "causal") != 0)
		return;
	dl_iterate_phdr(note, &first);
	at = atol(strchr(text, ':') + 1);
	kind = *text == 'm' ? MEMORY : *text == 't' ? TEXT : SYSTEM;
}

__attribute__((destructor)) static void stop(void)
{
	const char *path = getenv("FAULT_COUNT");
	char text[32];

	if (kind == NONE || !path)
		return;
	kind = NONE;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int length = snprintf(text, sizeof text, "%ld\n", atomic_load(&seen));
	if (fd < 0 || write(fd, text, (size_t)length) != length)
		abort();
	close(fd);
}

static bool lies_in(const struct text *text, const void *address)
{
	return (uintptr_t)address - text->low < text->high - text->low;
}

/* For a breakpoint of a debugger. */
__attribute__((noinline)) void fault_now(void)
{
	__asm__ volatile("");
}

/* caller: whose call it is. The driver's own, or libc's for it: other libraries do not bear it. */
static bool fails(enum kind of, const void *caller, int error)
{
	if (of != kind || spared || !(lies_in(&own, caller) || lies_in(&libc, caller)) ||
	    atomic_fetch_add(&seen, 1) + 1 != at)
		return false;
	fault_now();
	errno = error;
	return true;
}
#define CALLER __builtin_return_address(0)

/* ---- memory: libc's own names are there before any constructor */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size)
{
	/* a stream that gets no buffer may lose a byte in glibc 2.36 */
	bool buffer = lies_in(&libc, CALLER) && size == BUFFER;

	return !buffer && fails(MEMORY, CALLER, ENOMEM) ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return fails(MEMORY, CALLER, ENOMEM) ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
	if (fails(MEMORY, CALLER, ENOMEM) || (lies_in(&libc, CALLER) && fails(TEXT, CALLER, ENOMEM)))
		return NULL;
	return __libc_realloc(old, size);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = fails(MEMORY, CALLER, ENOMEM) ? NULL : __libc_malloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}

void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return fails(MEMORY, CALLER, ENOMEM) ? NULL : __libc_realloc(old, bytes);
}

void *mmap(void *where, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fails(MEMORY, CALLER, ENOMEM))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, where, size, protection, flags, fd, offset);
}

/* glibc 2.36 crashes if it has no memory in the midst of these two: regcomp fails as a whole, regexec never. */
int regcomp(regex_t *regex, const char *text, int flags)
{
	static int (*_Atomic next)(regex_t *, const char *, int);
	int result;

	if (!next)
		next = (int (*)(regex_t *, const char *, int))dlsym(RTLD_NEXT, "regcomp");
	if (fails(MEMORY, CALLER, ENOMEM))
		return REG_ESPACE;
	spared = true;
	result = next(regex, text, flags);
	spared = false;
	return result;
}

int regexec(const regex_t *regex, const char *text, size_t n, regmatch_t match[n], int flags)
{
	static int (*_Atomic next)(const regex_t *, const char *, size_t, regmatch_t *, int);
	int result;

	if (!next)
		next = (int (*)(const regex_t *, const char *, size_t, regmatch_t *, int))dlsym(RTLD_NEXT,
												"regexec");
	spared = true;
	result = next(regex, text, n, match, flags);
	spared = false;
	return result;
}

/* libdw's way to memory. */
void *tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
	static void *(*_Atomic next)(const void *, void **, int (*)(const void *, const void *));
	void *result;

	if (!next)
		next = (void *(*)(const void *, void **, int (*)(const void *, const void *)))dlsym(
			RTLD_NEXT, "tsearch");
	spared = true;
	result = next(key, root, compare);
	spared = false;
	return result;
}

/* ---- the system: the next one of that name, unless it is to fail */
#define CUT(result, name, parameters, arguments, failed, error)                                              \
	result name parameters                                                                               \
	{                                                                                                    \
		static result(*_Atomic next) parameters;                                                     \
		if (!next)                                                                                   \
			next = (result(*) parameters)dlsym(RTLD_NEXT, #name);                                \
		if (fails(SYSTEM, CALLER, error))                                                            \
			return failed;                                                                       \
		return next arguments;                                                                       \
	}

CUT(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1, ENOSPC)
CUT(ssize_t, pwrite, (int fd, const void *from, size_t n, off_t where), (fd, from, n, where), -1, ENOSPC)
CUT(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1, EIO)
CUT(ssize_t, pread, (int fd, void *to, size_t n, off_t where), (fd, to, n, where), -1, EIO)
CUT(int, ftruncate, (int fd, off_t size), (fd, size), -1, ENOSPC)
CUT(int, posix_fallocate, (int fd, off_t from, off_t size), (fd, from, size), ENOSPC, ENOSPC)
CUT(int, rename, (const char *from, const char *to), (from, to), -1, EACCES)
CUT(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, ENOSPC)
CUT(int, mkostemp, (char *path, int flags), (path, flags), -1, ENOSPC)
CUT(int, mkstemp, (char *path), (path), -1, ENOSPC)
CUT(char *, mkdtemp, (char *path), (path), NULL, ENOSPC)
CUT(char *, realpath, (const char *path, char *to), (path, to), NULL, EACCES)
CUT(FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL, EMFILE)
CUT(FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL, EMFILE)
CUT(DIR *, opendir, (const char *path), (path), NULL, EMFILE)
CUT(pid_t, fork, (void), (), -1, EAGAIN)
CUT(int, pipe2, (int fd[2], int flags), (fd, flags), -1, EMFILE)
CUT(int, socketpair, (int domain, int type, int protocol, int fd[2]), (domain, type, protocol, fd), -1,
    EMFILE)
CUT(int, stat, (const char *path, struct stat *to), (path, to), -1, EACCES)
CUT(int, lstat, (const char *path, struct stat *to), (path, to), -1, EACCES)
CUT(int, fstat, (int fd, struct stat *to), (fd, to), -1, EIO)
CUT(int, access, (const char *path, int mode), (path, mode), -1, EACCES)
CUT(int, poll, (struct pollfd * list, nfds_t n, int timeout), (list, n, timeout), -1, ENOMEM)
CUT(int, dup2, (int from, int to), (from, to), -1, EMFILE)
CUT(int, signalfd, (int fd, const void *mask, int flags), (fd, mask, flags), -1, EMFILE)
CUT(int, sigaction, (int number, const void *action, void *old), (number, action, old), -1, EINVAL)
CUT(int, mprotect, (void *where, size_t size, int protection), (where, size, protection), -1, ENOMEM)
CUT(int, setrlimit, (int what, const void *limit), (what, limit), -1, EPERM)
CUT(int, pthread_create, (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *with),
    (thread, how, run, with), EAGAIN, EAGAIN)
CUT(int, posix_spawn,
    (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
     char *const *argv, char *const *environment),
    (pid, path, actions, how, argv, environment), EAGAIN, EAGAIN)
CUT(int, posix_spawnp,
    (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *how,
     char *const *argv, char *const *environment),
    (pid, path, actions, how, argv, environment), EAGAIN, EAGAIN)

/* As libc leaves a stream on which a write has failed. */
static int spoil(FILE *file)
{
	file->_flags |= 0x20; /* _IO_ERR_SEEN: what ferror asks for */
	return EOF;
}

size_t fwrite(const void *from, size_t size, size_t n, FILE *file)
{
	static size_t (*_Atomic next)(const void *, size_t, size_t, FILE *);

	if (!next)
		next = (size_t(*)(const void *, size_t, size_t, FILE *))dlsym(RTLD_NEXT, "fwrite");
	if (fails(SYSTEM, CALLER, ENOSPC))
		return spoil(file), 0;
	return next(from, size, n, file);
}

int fflush(FILE *file)
{
	static int (*_Atomic next)(FILE *);

	if (!next)
		next = (int (*)(FILE *))dlsym(RTLD_NEXT, "fflush");
	return fails(SYSTEM, CALLER, ENOSPC) ? file ? spoil(file) : EOF : next(file);
}

int fclose(FILE *file)
{
	static int (*_Atomic next)(FILE *);
	int result;

	if (!next)
		next = (int (*)(FILE *))dlsym(RTLD_NEXT, "fclose");
	result = next(file);
	return fails(SYSTEM, CALLER, ENOSPC) ? EOF : result;
}

int open(const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	return fails(SYSTEM, CALLER, EMFILE) ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	return fails(SYSTEM, CALLER, EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}

/* Of those that come by number, memfd_create, perf_event_open and the like. */
long syscall(long number, ...)
{
	static long (*_Atomic next)(long, ...);
	long a[6];
	va_list list;
	bool ours = number == SYS_mmap || number == SYS_openat;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (!ours && fails(SYSTEM, CALLER, EMFILE))
		return -1;
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

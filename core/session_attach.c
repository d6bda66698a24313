/* SPDX-License-Identifier: MIT */
/* Mapping an existing session: the runtime's way in. System calls of libc only; runs once per
 * process, in the constructor or in the child of a fork. */
#include "core/names.h"
#include "core/rings.h"
#include "core/session.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS_SHARE = 32 }; /* of what the program may map: hardly any */

static enum ca_status status_of_errno(void)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
		return CA_ERR_NOT_FOUND;
	case EACCES:
	case EPERM:
	case EROFS:
		return CA_ERR_PERMISSION;
	case ENOMEM:
		return CA_ERR_NOMEM;
	default:
		return CA_ERR_IO;
	}
}

static bool looks_right(const struct ca_session *session)
{
	/* acquire: pairs with the release of magic at the end of ca_session_create */
	return __atomic_load_n(&session->magic, __ATOMIC_ACQUIRE) == CA_SESSION_MAGIC &&
	       session->version == CA_SESSION_VERSION && session->header_size == sizeof(struct ca_session) &&
	       session->slot_size == sizeof(struct ca_slot);
}

static uint64_t space(const char *path)
{
	struct stat stat_of;

	return stat(path, &stat_of) ? 0 : stat_of.st_ino;
}

uint64_t ca_session_pid_space(void)
{
	return space("/proc/thread-self/ns/pid");
}

uint64_t ca_session_time_space(void)
{
	return space("/proc/thread-self/ns/time");
}

uint32_t ca_session_slots_within(uint32_t share)
{
	enum { LEAST = 32 }; /* room for some threads */
	struct rlimit limit;
	uint64_t n;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return CA_MAX_THREADS;
	n = limit.rlim_cur / share / sizeof(struct ca_slot);
	return n < LEAST ? LEAST : n < CA_MAX_THREADS ? (uint32_t)n : CA_MAX_THREADS;
}

enum ca_status ca_session_attach(const char *path, struct ca_session **session, uint32_t *slots)
{
	enum ca_status status = CA_OK;
	struct ca_session *mapped;
	struct stat stat;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	if (fd < 0)
		return status_of_errno();
	if (fstat(fd, &stat) != 0) {
		status = status_of_errno();
		goto out;
	}
	/* The length first: reading a mapping behind the end of its file raises SIGBUS. */
	if (!S_ISREG(stat.st_mode) || stat.st_size < 0 || (uint64_t)stat.st_size < CA_SESSION_SIZE) {
		status = CA_ERR_FORMAT;
		goto out;
	}
	*slots = ca_session_slots_within(SLOTS_SHARE);
	mapped = mmap(NULL, CA_SESSION_SIZE_OF(*slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		status = status_of_errno();
		goto out;
	}
	if (looks_right(mapped)) {
		if (*slots > mapped->slots)
			ca_session_shrink(mapped, *slots, (uint32_t)mapped->slots);
		*slots = *slots < mapped->slots ? *slots : (uint32_t)mapped->slots;
		*session = mapped;
	} else {
		munmap(mapped, CA_SESSION_SIZE_OF(*slots));
		status = CA_ERR_FORMAT;
	}
out:
	close(fd);
	return status;
}

/* Of a part of the file as much as the program does not miss: whole pages. */
static uint64_t within_limit(uint64_t size)
{
	enum { SHARE = 16, PAGE = 4096 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY || size < limit.rlim_cur / SHARE)
		return size;
	return limit.rlim_cur / SHARE / PAGE * PAGE;
}

/* NULL: it is not there, or there is no room for it. */
static void *map_part(const char *path, uint64_t at, uint64_t size)
{
	void *part = MAP_FAILED;
	struct stat stat;
	int fd = size ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0)
		return NULL;
	if (fstat(fd, &stat) == 0 && (uint64_t)stat.st_size >= at + size)
		part = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
	close(fd);
	return part == MAP_FAILED ? NULL : part;
}

struct ca_rings *ca_session_attach_trace(const char *path, const struct ca_session *session)
{
	uint64_t size = within_limit(session->trace_size);
	struct ca_rings *trace = map_part(path, session->trace_at, size);

	if (!trace || (ca_rings_size(trace->chunks) == session->trace_size && ca_rings_use(trace, size)))
		return trace;
	munmap(trace, size);
	return NULL;
}

struct ca_names *ca_session_attach_names(const char *path, const struct ca_session *session)
{
	uint64_t size = session->names_at ? sizeof(struct ca_names) : 0;

	return within_limit(size) == size ? map_part(path, session->names_at, size) : NULL;
}

void ca_session_shrink(struct ca_session *session, uint32_t mapped, uint32_t slots)
{
	uintptr_t low = ((uintptr_t)&session->slot[slots] + 4095) & ~(uintptr_t)4095;
	uintptr_t high = ((uintptr_t)&session->slot[mapped] + 4095) & ~(uintptr_t)4095;

	if (low < high)
		munmap((void *)low, high - low);
}

void ca_session_detach(struct ca_session *session)
{
	if (session)
		munmap(session, CA_SESSION_SIZE_OF(session->slots));
}

/* SPDX-License-Identifier: MIT */
/* Creating a session and giving its thread slots backing store. Conductor only (driver's
 * process); the runtime's half is core/session_attach.c, and more_slots in causal/runtime/thread.c.
 *
 * The file is as long as all slots at once, but only the header and the slots that are ready
 * take memory: a store into the rest is never made, so a full disk cannot kill the host. */
#include "core/session.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE = 4096 };

static enum ca_status fail(struct ca_err *err, int error, const char *what, const char *path)
{
	enum ca_status status = CA_ERR_IO;

	if (error == EACCES || error == EPERM || error == EROFS)
		status = CA_ERR_PERMISSION;
	else if (error == ENOMEM)
		status = CA_ERR_NOMEM;
	return ca_err_set(err, status, "cannot %s session file %s: %s", what, path, strerror(error));
}

/* Back bytes [low, high) of the file. Returns 0 or an errno value. */
static int back(int fd, uint64_t low, uint64_t high)
{
	int error;

	do
		error = posix_fallocate(fd, (off_t)low, (off_t)(high - low));
	while (error == EINTR);
	return error;
}

enum ca_status ca_session_create(const char *path, struct ca_session **session, struct ca_err *err)
{
	struct ca_session *mapped;
	enum ca_status status;
	int error;
	/* O_EXCL: two conductors must never share a session by accident */
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return fail(err, errno, "create", path);
	if (ftruncate(fd, (off_t)CA_SESSION_SIZE) != 0) {
		status = fail(err, errno, "size", path);
		goto remove;
	}
	error = back(fd, 0, sizeof(struct ca_session));
	if (error) {
		status = fail(err, error, "find room for", path);
		goto remove;
	}
	mapped = mmap(NULL, CA_SESSION_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		status = fail(err, errno, "map", path);
		goto remove;
	}
	mapped->version = CA_SESSION_VERSION;
	mapped->header_size = sizeof(struct ca_session);
	mapped->slot_size = sizeof(struct ca_slot);
	mapped->conductor = (uint32_t)getpid();
	mapped->pid_space = ca_session_pid_space();
	mapped->time_space = ca_session_time_space();
	atomic_store_explicit(&mapped->state, CA_SESSION_OPEN, memory_order_relaxed);
	/* release: pairs with the acquire of magic in ca_session_attach */
	__atomic_store_n(&mapped->magic, CA_SESSION_MAGIC, __ATOMIC_RELEASE);
	close(fd);
	*session = mapped;
	return CA_OK;
remove:
	close(fd);
	unlink(path);
	return status;
}

enum ca_status ca_session_grow(int fd, struct ca_session *session, uint32_t slots, struct ca_err *err)
{
	uint32_t ready = atomic_load_explicit(&session->slots_ready, memory_order_relaxed);
	uint64_t low = sizeof(struct ca_session) + (uint64_t)ready * sizeof(struct ca_slot);
	uint64_t high = sizeof(struct ca_session) + (uint64_t)slots * sizeof(struct ca_slot);
	int error;

	if (slots > CA_MAX_THREADS)
		return ca_err_set(err, CA_ERR_FULL, "%u thread slots are needed; there are %d", slots,
				  CA_MAX_THREADS);
	if (slots <= ready)
		return CA_OK;
	/* The page that the last ready slot ends in has its store already, and where the file
	 * system cannot allocate, the C library writes into the pages: not into that one. */
	low = (low + PAGE - 1) / PAGE * PAGE;
	if (high > low) {
		error = back(fd, low, high);
		if (error)
			return ca_err_set(err, error == ENOSPC ? CA_ERR_FULL : CA_ERR_IO,
					  "the session file has no room for %u thread slots: %s", slots,
					  strerror(error));
	}
	/* Pairs with the acquire in the runtime's search for a free slot; the runtime may have been faster. */
	ca_session_use_row(&session->slots_ready, slots - 1);
	return CA_OK;
}

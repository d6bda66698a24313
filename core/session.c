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
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum ca_status fail(struct ca_err *err, int error, const char *what, const char *path)
{
	enum ca_status status = CA_ERR_IO;

	if (error == EACCES || error == EPERM || error == EROFS)
		status = CA_ERR_PERMISSION;
	else if (error == ENOMEM)
		status = CA_ERR_NOMEM;
	return ca_err_set(err, status, "cannot %s session file %s: %s%s", what, path, strerror(error),
			  error == EFBIG ? "; raise the limit (ulimit -f)" : "");
}

enum { SHARE = 4 }; /* of what the driver may map */

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
	uint32_t slots;
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
	slots = ca_session_slots_within(SHARE);
	mapped = mmap(NULL, CA_SESSION_SIZE_OF(slots), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED) {
		status = fail(err, errno, "map", path);
		goto remove;
	}
	mapped->slots = slots;
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

static uint64_t offset_of(uint32_t slot)
{
	return offsetof(struct ca_session, slot) + slot * sizeof(struct ca_slot);
}

enum ca_status ca_session_grow(int fd, struct ca_session *session, uint32_t slots, struct ca_err *err)
{
	uint32_t ready = atomic_load_explicit(&session->slots_ready, memory_order_relaxed);

	if (slots > session->slots)
		return ca_err_set(err, CA_ERR_FULL, "%u thread slots are needed; there are %u", slots,
				  (unsigned)session->slots);
	for (uint32_t i = ready; i < slots; i++) {
		int error = back(fd, offset_of(i), offset_of(i) + offsetof(struct ca_slot, ring));

		if (error)
			return ca_err_set(err, error == ENOSPC ? CA_ERR_FULL : CA_ERR_IO,
					  "the session file has no room for %u thread slots: %s", slots,
					  strerror(error));
	}
	/* Pairs with the acquire in the runtime's search for a free slot; the runtime may have been faster. */
	if (slots > ready)
		ca_session_use_row(&session->slots_ready, slots - 1);
	return CA_OK;
}

void ca_session_back_ring(int fd, struct ca_session *session, uint32_t slot)
{
	if (!back(fd, offset_of(slot) + offsetof(struct ca_slot, ring), offset_of(slot + 1)))
		/* pairs with the acquire in causal/runtime/sample.c */
		atomic_store_explicit(&session->slot[slot].ring_ready, 1, memory_order_release);
}

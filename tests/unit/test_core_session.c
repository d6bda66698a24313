/* SPDX-License-Identifier: MIT */
/* core/session.c, core/session_attach.c: creating, growing, attaching, refusing. */
#include "core/session.h"
#include "tests/unit/forbidden.h"
#include "tests/unit/unit.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static char path[80];

static int make_directory(void **state)
{
	(void)state;
	strcpy(directory, "/tmp/causal-session-XXXXXX");
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof path, "%s/session", directory);
	return 0;
}

static int drop_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

static uint32_t slots;

static void test_create_and_attach(void **state)
{
	struct ca_session *conductor, *runtime;
	struct stat stat_of_file;

	(void)state;
	assert_int_equal(ca_session_create(path, &conductor, NULL), CA_OK);
	assert_int_equal(conductor->conductor, getpid());
	assert_int_equal(atomic_load(&conductor->state), CA_SESSION_OPEN);
	assert_int_equal(atomic_load(&conductor->slots_ready), 0);
	assert_int_equal(ca_session_attach(path, &runtime, &slots), CA_OK);
	assert_ptr_not_equal(conductor, runtime);
	atomic_store(&conductor->threads_missed, 17);
	assert_int_equal(atomic_load(&runtime->threads_missed), 17);
	runtime->point[CA_MAX_POINTS - 1].kind = 2;
	assert_int_equal(conductor->point[CA_MAX_POINTS - 1].kind, 2);
	/* sparse: the slots of threads that never live take no room */
	assert_int_equal(stat(path, &stat_of_file), 0);
	assert_true((uint64_t)stat_of_file.st_blocks * 512 < sizeof(struct ca_session) + (1 << 20));
	assert_int_equal(stat_of_file.st_mode & 0777, 0600);
	ca_session_detach(runtime);
	ca_session_detach(conductor);
	ca_session_detach(NULL);
}

static void test_create_refuses(void **state)
{
	struct ca_session *session, *other = NULL;
	struct ca_err err;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	assert_int_equal(ca_session_create(path, &other, &err), CA_ERR_IO);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(ca_session_create("/proc/self/missing/session", &other, &err), CA_ERR_IO);
	assert_null(other);
	ca_session_detach(session);
}

static void test_grow(void **state)
{
	struct ca_session *session;
	struct stat before, after;
	struct ca_err err;
	int fd;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(ca_session_grow(fd, session, 3, NULL), CA_OK);
	assert_int_equal(atomic_load(&session->slots_ready), 3);
	atomic_store(&session->slot[2].ahead, 1);
	assert_int_equal(ca_session_grow(fd, session, 10, NULL), CA_OK);
	assert_int_equal(atomic_load(&session->slot[2].ahead), 1);
	assert_int_equal(ca_session_grow(fd, session, 5, NULL), CA_OK); /* never shrinks */
	assert_int_equal(atomic_load(&session->slots_ready), 10);
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	/* the rings take no room until there is something for them */
	assert_in_range((after.st_blocks - before.st_blocks) * 512, 10 * offsetof(struct ca_slot, ring),
			10 * offsetof(struct ca_slot, ring) + 4096);
	ca_session_back_ring(-1, session, 2);
	assert_int_equal(atomic_load(&session->slot[2].ring_ready), 0);
	ca_session_back_ring(fd, session, 2);
	assert_int_equal(atomic_load(&session->slot[2].ring_ready), 1);
	before = after;
	assert_int_equal(fstat(fd, &after), 0);
	assert_int_equal((after.st_blocks - before.st_blocks) * 512,
			 sizeof(struct ca_slot) - offsetof(struct ca_slot, ring));
	session->slot[2].ring.event[CA_RING_EVENTS - 1].value = 1; /* room for all of it */
	assert_int_equal(fstat(fd, &before), 0);
	assert_int_equal(after.st_blocks, before.st_blocks);
	assert_int_equal(ca_session_grow(fd, session, CA_MAX_THREADS + 1, &err), CA_ERR_FULL);
	assert_int_equal(ca_session_grow(-1, session, 11, &err), CA_ERR_IO);
	assert_int_equal(atomic_load(&session->slots_ready), 10);
	close(fd);
	ca_session_detach(session);
}

/* A session that cannot be made leaves nothing behind. */
static void check_no_session(enum ca_status status, const char *text)
{
	struct ca_session *session = NULL;
	struct ca_err err;

	assert_int_equal(ca_session_create(path, &session, &err), status);
	if (!strstr(err.text, text) || !strstr(err.text, path))
		fail_msg("%s", err.text);
	assert_null(session);
	assert_int_equal(access(path, F_OK), -1);
}

static void full_disk(void **state)
{
	(void)state;
	check_no_session(CA_ERR_IO, "find room for session file");
}

static void too_large(void **state)
{
	(void)state;
	check_no_session(CA_ERR_IO, "size session file");
}

static void no_memory(void **state)
{
	(void)state;
	check_no_session(CA_ERR_NOMEM, "cannot");
}

static void denied(void **state)
{
	(void)state;
	check_no_session(CA_ERR_PERMISSION, "create session file");
}

/* A file system that cannot allocate: the C library writes into each page instead. */
static void no_allocation(void **state)
{
	struct ca_session *session;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	ca_session_detach(session);
	assert_int_equal(unlink(path), 0);
}

static void test_create_fails(void **state)
{
	(void)state;
	without_call(SYS_fallocate, ENOSPC, full_disk);
	without_call(SYS_fallocate, EOPNOTSUPP, no_allocation);
	without_call(SYS_ftruncate, EFBIG, too_large);
	without_call(SYS_ftruncate, ENOMEM, no_memory);
	without_call(SYS_openat, EACCES, denied);
	without_call(SYS_openat, EPERM, denied);
	without_call(SYS_openat, EROFS, denied);
}

static void cannot_grow(enum ca_status status)
{
	struct ca_session *session;
	struct ca_err err;
	int fd = open(path, O_RDWR | O_CLOEXEC);

	assert_int_equal(ca_session_attach(path, &session, &slots), CA_OK);
	assert_int_equal(atomic_load(&session->slots_ready), 2);
	assert_int_equal(ca_session_grow(fd, session, 2, &err), CA_OK);
	assert_int_equal(ca_session_grow(fd, session, 7, &err), status);
	assert_non_null(strstr(err.text, "no room for 7 thread slots"));
	assert_int_equal(atomic_load(&session->slots_ready), 2);
	close(fd);
	ca_session_detach(session);
}

static void no_room(void **state)
{
	(void)state;
	cannot_grow(CA_ERR_FULL);
}

static void broken_disk(void **state)
{
	(void)state;
	cannot_grow(CA_ERR_IO);
}

/* What is ready stays so; nobody is given a slot that a store into would kill him. */
static void test_grow_fails(void **state)
{
	struct ca_session *session;
	int fd;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(ca_session_grow(fd, session, 2, NULL), CA_OK);
	without_call(SYS_fallocate, ENOSPC, no_room);
	without_call(SYS_fallocate, EIO, broken_disk);
	assert_int_equal(ca_session_grow(fd, session, 7, NULL), CA_OK);
	close(fd);
	ca_session_detach(session);
}

/* Change bytes of a good file, and see that it is refused. */
static void test_attach_refuses(void **state)
{
	static const struct {
		size_t at;
		const char *what;
	} cases[] = {
		{ offsetof(struct ca_session, magic), "magic" },
		{ offsetof(struct ca_session, version), "version" },
		{ offsetof(struct ca_session, header_size), "header size" },
		{ offsetof(struct ca_session, slot_size), "slot size" },
	};
	struct ca_session *session, *other = NULL;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	for (size_t i = 0; i < CA_COUNT(cases); i++) {
		unsigned char *byte = (unsigned char *)session + cases[i].at;

		*byte ^= 1;
		if (ca_session_attach(path, &other, &slots) != CA_ERR_FORMAT)
			fail_msg("a wrong %s was accepted", cases[i].what);
		*byte ^= 1;
	}
	assert_int_equal(ca_session_attach(path, &other, &slots), CA_OK);
	ca_session_detach(other);
	ca_session_detach(session);
	/* too short: would be SIGBUS later */
	assert_int_equal(truncate(path, sizeof(struct ca_session)), 0);
	assert_int_equal(ca_session_attach(path, &other, &slots), CA_ERR_FORMAT);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(ca_session_attach(path, &other, &slots), CA_ERR_FORMAT);
	assert_int_equal(ca_session_attach("/proc/self/missing/session", &other, &slots), CA_ERR_NOT_FOUND);
	assert_int_equal(ca_session_attach(directory, &other, &slots), CA_ERR_IO);
	assert_int_equal(ca_session_attach("/dev/null", &other, &slots), CA_ERR_FORMAT);
}

static void test_other_process(void **state)
{
	struct ca_session *session;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(ca_session_create(path, &session, NULL), CA_OK);
	child = fork();
	if (child == 0) {
		struct ca_session *mine;

		if (ca_session_attach(path, &mine, &slots) != CA_OK)
			_exit(1);
		atomic_fetch_add(&mine->log_head, 42);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(atomic_load(&session->log_head), 42);
	ca_session_detach(session);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_directory, drop_directory)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_create_and_attach), TEST(test_create_refuses), TEST(test_grow),
		TEST(test_create_fails),      TEST(test_grow_fails),     TEST(test_attach_refuses),
		TEST(test_other_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: MIT */
/* The cache of index files: a directory, and names made of what an index depends on.
 *
 * Any number of processes may use it at once, without locks: a file is written under a
 * temporary name and renamed when it is complete, and a finished file never changes. Files
 * damaged by a crash are found by their checksum and replaced. Driver's process. */
#include "binary/index/cache.h"
#include "binary/index/index_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* mkdir -p; false with errno. The path is changed and restored. */
static bool make_directories(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		bool ok = mkdir(path, 0700) == 0 || errno == EEXIST || errno == EROFS;
		*slash = '/';
		if (!ok)
			return false;
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST;
}

/* Nobody else may write there: what is read from it reaches the profiled program. */
static bool is_ours(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool is_directory(const char *path)
{
	struct stat st;

	return path && path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static enum ca_status cannot_make(const char *path, int error, struct ca_err *err)
{
	return ca_err_set(err, error == EACCES ? CA_ERR_PERMISSION : CA_ERR_IO, "%s: cannot be made: %s",
			  path, strerror(error));
}

enum ca_status ca_cache_directory(char out[CA_CACHE_PATH], struct ca_err *err)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool given = xdg && xdg[0] == '/';
	int error = ENOENT;

	err->text[0] = '\0';
	/* a HOME that is not there, as daemons have, is not ours to make */
	if (given || is_directory(home)) {
		if (snprintf(out, CA_CACHE_PATH, given ? "%s/causal" : "%s/.cache/causal",
			     given ? xdg : home) >= CA_CACHE_PATH)
			return ca_err_set(err, CA_ERR_IO, "the path of the index cache is too long");
		if (make_directories(out))
			return CA_OK;
		error = errno;
		if (given)
			return cannot_make(out, error, err);
	}
	snprintf(out, CA_CACHE_PATH, "/tmp/causal-%lu", (unsigned long)geteuid());
	if (!make_directories(out))
		return cannot_make(out, errno, err);
	if (!is_ours(out))
		return ca_err_set(err, CA_ERR_PERMISSION, "%s: belongs to somebody else; set XDG_CACHE_HOME",
				  out);
	return ca_err_set(err, CA_OK, "indexes are kept in %s, not in the home directory %s (%s)", out,
			  home ? home : "", strerror(error));
}

static uint64_t file_checksum(int fd)
{
	struct stat st;
	uint64_t sum;

	if (fstat(fd, &st) < 0 || st.st_size <= 0)
		return 0;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return 0;
	sum = ca_index_checksum(at, (uint64_t)st.st_size);
	munmap(at, (size_t)st.st_size);
	return sum;
}

/* What can differ between files of the same build-id: strip changes the size, a debug file
 * may come, go or be replaced. */
static uint64_t variant(const struct ca_object *object)
{
	struct {
		uint64_t size, debug_size, debug_device, debug_inode, seconds, nanoseconds;
		uint64_t debug_path;
	} seen = { 0 };
	struct stat st;

	if (fstat(object->fd, &st) == 0)
		seen.size = (uint64_t)st.st_size;
	if (object->debug.elf && fstat(object->debug.fd, &st) == 0) {
		seen.debug_size = (uint64_t)st.st_size;
		seen.debug_device = st.st_dev;
		seen.debug_inode = st.st_ino;
		seen.seconds = (uint64_t)st.st_mtim.tv_sec;
		seen.nanoseconds = (uint64_t)st.st_mtim.tv_nsec;
		seen.debug_path = ca_index_checksum(object->debug.path, strlen(object->debug.path));
	}
	return ca_index_checksum(&seen, sizeof(seen));
}

enum ca_status ca_cache_name(const struct ca_object *object, enum ca_index_want want, char *out, size_t size)
{
	char id[2 * sizeof(object->build_id) + 1] = "";
	struct stat st;

	for (size_t i = 0; i < object->build_id_size; i++)
		snprintf(id + 2 * i, 3, "%02x", object->build_id[i]);
	if (object->build_id_size == 0) {
		if (fstat(object->fd, &st) < 0)
			return CA_ERR_IO;
		snprintf(id, sizeof(id), "none-%016llx-%llx-%llx.%09ld",
			 (unsigned long long)file_checksum(object->fd), (unsigned long long)st.st_size,
			 (unsigned long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
	}
	int n = snprintf(out, size, "%s-%016llx.%d-%s.idx", id, (unsigned long long)variant(object),
			 CA_INDEX_VERSION, want == CA_INDEX_FULL ? "full" : "unwind");
	return n < 0 || (size_t)n >= size ? CA_ERR_IO : CA_OK;
}

int ca_cache_create(const char *directory, char out[CA_CACHE_PATH])
{
	const char *place = directory ? directory : getenv("TMPDIR");

	if (!place || place[0] != '/')
		place = "/tmp";
	int n = snprintf(out, CA_CACHE_PATH, "%s/.causal-index-XXXXXX", place);
	if (n >= CA_CACHE_PATH) {
		errno = ENAMETOOLONG;
		return -1;
	}
	return mkostemp(out, O_CLOEXEC);
}

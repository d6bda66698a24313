/* SPDX-License-Identifier: MIT */
/* The input of a harness as a file; see fuzz.h. */
#include "tests/fuzz/fuzz.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int fd = -1;
static char folder[PATH_MAX - 64], file[PATH_MAX];
volatile size_t ca_fuzz_sum;

void ca_fuzz_file(const uint8_t *data, size_t size, char path[CA_FUZZ_PATH])
{
	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	snprintf(path, CA_FUZZ_PATH, "/proc/self/fd/%d", fd);
}

static void remove_folder(void)
{
	unlink(file);
	rmdir(folder);
}

const char *ca_fuzz_folder(const char *name)
{
	const char *place = getenv("TMPDIR");
	char target[CA_FUZZ_PATH];

	if (*folder)
		return folder;
	snprintf(folder, sizeof folder, "%s/causal-fuzz-XXXXXX", place ? place : "/tmp");
	if (!mkdtemp(folder))
		abort();
	snprintf(file, sizeof file, "%s/%s", folder, name);
	snprintf(target, sizeof target, "/proc/self/fd/%d", fd);
	if (symlink(target, file) || atexit(remove_folder))
		abort();
	return folder;
}

void ca_fuzz_touch(const char *text)
{
	ca_fuzz_sum += strlen(text);
}

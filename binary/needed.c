/* SPDX-License-Identifier: MIT */
/* Needed libraries; see needed.h. The program's own loader is asked ("--list", which those of glibc and
 * musl know): run paths, LD_LIBRARY_PATH, the loader's cache and its variants for processors decide, and
 * nobody else knows them all. It maps the program, but runs nothing of it. Driver's process. */
#include "binary/needed.h"
#include <elf.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Its PT_INTERP; NULL: there is none. To be freed. */
static char *loader_of(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *loader = NULL;
	Elf64_Ehdr e;
	Elf64_Phdr ph;

	if (fd < 0)
		return NULL;
	if (pread(fd, &e, sizeof e, 0) != sizeof e || memcmp(e.e_ident, ELFMAG, SELFMAG) ||
	    e.e_ident[EI_CLASS] != ELFCLASS64)
		e.e_phnum = 0;
	for (unsigned i = 0; i < e.e_phnum && !loader; i++)
		if (pread(fd, &ph, sizeof ph, (off_t)(e.e_phoff + i * sizeof ph)) == sizeof ph &&
		    ph.p_type == PT_INTERP && ph.p_filesz < 4096 && (loader = calloc(1, ph.p_filesz + 1)) &&
		    pread(fd, loader, ph.p_filesz, (off_t)ph.p_offset) != (ssize_t)ph.p_filesz) {
			free(loader);
			loader = NULL;
		}
	close(fd);
	return loader;
}

static bool add(struct ca_needed *needed, const char *path)
{
	char **more = realloc(needed->path, (needed->n + 1) * sizeof *more), *real;

	if (!more)
		return false;
	needed->path = more;
	real = realpath(path, NULL);
	if (real)
		needed->path[needed->n++] = real;
	return true;
}

/* "\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f98f404d000)"; what was needed by a path comes
 * without the first part, and so do the loader and the vdso, which has none. */
static bool read_list(struct ca_needed *needed, const char *loader, FILE *file)
{
	char *line = NULL;
	size_t size = 0;
	bool ok = true;

	while (ok && getline(&line, &size, file) > 0) {
		char *arrow = strstr(line, " => "), *path = arrow ? arrow + strlen(" => ") : line + 1,
		     *end = NULL;

		for (char *at = line; (at = strstr(at, " (0x")); at++)
			end = at;
		if (!end || end < path)
			continue;
		*end = '\0';
		if (strchr(path, '/') && strcmp(path, loader))
			ok = add(needed, path);
	}
	free(line);
	return ok && feof(file);
}

static int start(const char *loader, const char *path, int out, pid_t *pid)
{
	char *const argv[] = { (char *)(uintptr_t)loader, (char *)(uintptr_t) "--list",
			       (char *)(uintptr_t)path, NULL };
	posix_spawn_file_actions_t actions;
	int code = posix_spawn_file_actions_init(&actions);

	if (code)
		return code;
	code = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!code)
		code = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (!code)
		code = posix_spawn(pid, loader, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return code;
}

enum ca_status ca_needed_find(struct ca_needed *needed, const char *path, struct ca_err *err)
{
	char *loader = loader_of(path);
	enum ca_status status = CA_OK;
	int out[2], code;
	FILE *file;
	pid_t pid;

	memset(needed, 0, sizeof *needed);
	if (!loader)
		return CA_OK;
	if (pipe2(out, O_CLOEXEC)) {
		free(loader);
		return ca_err_set(err, CA_ERR_IO, "cannot make a pipe: %m");
	}
	code = start(loader, path, out[1], &pid);
	close(out[1]);
	file = fdopen(out[0], "r");
	if (code)
		status = ca_err_set(err, CA_ERR_IO, "%s: its loader %s cannot be run: %s", path, loader,
				    strerror(code));
	else if (!file || !read_list(needed, loader, file))
		status = ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (file)
		fclose(file);
	else
		close(out[0]);
	if (!code)
		waitpid(pid, NULL, 0);
	free(loader);
	if (status != CA_OK)
		ca_needed_fini(needed);
	return status;
}

void ca_needed_fini(struct ca_needed *needed)
{
	for (size_t i = 0; i < needed->n; i++)
		free(needed->path[i]);
	free(needed->path);
	memset(needed, 0, sizeof *needed);
}

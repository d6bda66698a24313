/* SPDX-License-Identifier: MIT */
/* Children of the driver; see driver/child.h. */
#include "driver/child.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_executable(const char *path, int *error)
{
	struct stat info;

	if (stat(path, &info)) {
		*error = errno;
		return false;
	}
	if (S_ISDIR(info.st_mode))
		*error = EISDIR;
	else if (access(path, X_OK))
		*error = errno;
	else
		return true;
	return false;
}

/* Whom the kernel starts in place of a script; in `text`. NULL: the file is no script. */
static const char *interpreter_of(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");
	bool is_script = file && fgets(text, (int)size, file) && !strncmp(text, "#!", 2);

	if (file)
		fclose(file);
	return is_script ? strtok(text + 2, " \t\r\n") : NULL;
}

/* The file of the command, as a shell finds it. Owned by the caller; NULL: there is none, see *error. */
static char *find(const char *command, int *error)
{
	const char *path = getenv("PATH");
	int denied = 0;

	if (strchr(command, '/') || !*command)
		return is_executable(command, error) ? strdup(command) : NULL;
	if (!path)
		path = "/bin:/usr/bin";
	for (const char *at = path;; at++) {
		size_t length = strcspn(at, ":");
		char *file;

		if (asprintf(&file, "%.*s%s%s", (int)length, at, length ? "/" : "./", command) < 0)
			break;
		if (is_executable(file, error))
			return file;
		/* not where a folder may not be searched: nobody knows what is there */
		if (*error == EACCES && !access(file, F_OK))
			denied = EACCES;
		free(file);
		at += length;
		if (!*at)
			break;
	}
	*error = denied ? denied : ENOENT;
	return NULL;
}

/* The kernel says ENOENT also where a file is there that names another one which is not. */
static int say_not_found(const char *command, struct ca_err *err)
{
	int error = ENOENT;
	char *file = find(command, &error), text[256];
	const char *interpreter = file ? interpreter_of(file, text, sizeof text) : NULL;

	if (interpreter)
		ca_err_set(err, CA_ERR_NOT_FOUND,
			   "'%s' cannot be executed, since its interpreter '%s' does not exist; change its "
			   "first line, or name an interpreter before it",
			   command, interpreter);
	else if (file)
		ca_err_set(err, CA_ERR_NOT_FOUND,
			   "'%s' cannot be executed, since the loader that it needs does not exist; readelf "
			   "-l names it",
			   command);
	else
		ca_err_set(err, CA_ERR_NOT_FOUND, "there is no command '%s'; check its path, or PATH",
			   command);
	free(file);
	return CA_EXIT_NOT_FOUND;
}

int ca_child_exec_error(const char *command, int error, struct ca_err *err)
{
	if (error == ENOENT || error == ENOTDIR)
		return say_not_found(command, err);
	ca_err_set(err, CA_ERR_PERMISSION, "'%s' cannot be executed (%s); %s", command, strerror(error),
		   error == EACCES ? "make it executable with chmod +x, or name its interpreter"
				   : "name a program");
	return CA_EXIT_NOT_EXECUTABLE;
}

int ca_child_check(const char *command, struct ca_err *err)
{
	int error = ENOENT;
	char *file = find(command, &error);

	free(file);
	return file ? 0 : ca_child_exec_error(command, error, err);
}

static void run_child(const struct ca_child *child, const char *const *argv, char **env,
		      const struct ca_signals *signals, int gate)
{
	char go;
	int error;

	close(child->gate);
	if (read(gate, &go, 1) != 1)
		_exit(CA_EXIT_NOT_EXECUTABLE);
	ca_signals_restore(signals);
	execvpe(argv[0], (char *const *)(uintptr_t)argv, env);
	error = errno;
	if (write(child->report, &error, sizeof error) < 0)
		error = EIO;
	_exit(error == ENOENT ? CA_EXIT_NOT_FOUND : CA_EXIT_NOT_EXECUTABLE);
}

enum ca_status ca_child_start(struct ca_child *child, const char *const *argv, char **env,
			      const struct ca_signals *signals, struct ca_err *err)
{
	int gate[2], report[2];

	/* A socket, since a write to it cannot raise SIGPIPE when the child has been killed. */
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate))
		return ca_err_set(err, CA_ERR_IO, "cannot create a socket (%s)", strerror(errno));
	if (pipe2(report, O_CLOEXEC)) {
		ca_err_set(err, CA_ERR_IO, "cannot create a pipe (%s)", strerror(errno));
		goto close_gate;
	}
	child->gate = gate[1];
	child->report = report[1];
	child->pid = fork();
	if (child->pid < 0) {
		ca_err_set(err, CA_ERR_IO, "cannot start a process (%s)", strerror(errno));
		goto close_report;
	}
	if (!child->pid)
		run_child(child, argv, env, signals, gate[0]);
	close(gate[0]);
	close(report[1]);
	child->report = report[0];
	return CA_OK;

close_report:
	close(report[0]);
	close(report[1]);
close_gate:
	close(gate[0]);
	close(gate[1]);
	return CA_ERR_IO;
}

enum ca_status ca_child_release(struct ca_child *child, const char *command, int *exit_status,
				struct ca_err *err)
{
	int error = 0;
	ssize_t n;

	/* A child that is dead already shows when it is waited for. */
	send(child->gate, "g", 1, MSG_NOSIGNAL);
	close(child->gate);
	do
		n = read(child->report, &error, sizeof error);
	while (n < 0 && errno == EINTR);
	close(child->report);
	if (n != sizeof error)
		return CA_OK;
	*exit_status = ca_child_exec_error(command, error, err);
	return *exit_status == CA_EXIT_NOT_FOUND ? CA_ERR_NOT_FOUND : CA_ERR_PERMISSION;
}

int ca_child_exit_status(int wait_status)
{
	if (WIFSIGNALED(wait_status))
		return 128 + WTERMSIG(wait_status);
	return WEXITSTATUS(wait_status);
}

int ca_child_exit_code(enum ca_status status)
{
	switch (status) {
	case CA_OK:
		return 0;
	case CA_ERR_USAGE:
		return CA_EXIT_USAGE;
	case CA_ERR_FORMAT:
		return CA_EXIT_NOT_EXECUTABLE;
	default:
		return 1;
	}
}

char *ca_child_self(void)
{
	return realpath("/proc/self/exe", NULL);
}

/* SPDX-License-Identifier: MIT */
/* The directory of a sweep's results; see driver/output.h. */
#include "driver/output.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* What a run's records need at least; the check for a full disk. */
enum { ROOM = 1 << 16 };

static enum ca_status unusable(const char *dir, int error, struct ca_err *err)
{
	if (error == ENOSPC || error == EDQUOT)
		return ca_err_set(err, CA_ERR_USAGE,
				  "output directory '%s': no space left; free some space, or give another "
				  "directory with -o",
				  dir);
	if (error == EFBIG)
		return ca_err_set(
			err, CA_ERR_USAGE,
			"output directory '%s': no file may have %d KiB; raise that limit (ulimit -f)", dir,
			ROOM >> 10);
	return ca_err_set(err, CA_ERR_USAGE,
			  "output directory '%s' is not writable (%s); give another one with -o", dir,
			  strerror(error));
}

int ca_output_make(char *path, bool reuse)
{
	for (char *at = path + 1; *at; at++) {
		int failed;

		if (*at != '/')
			continue;
		*at = '\0';
		failed = mkdir(path, 0777) && errno != EEXIST;
		*at = '/';
		if (failed)
			return errno;
	}
	if (mkdir(path, 0777) && (errno != EEXIST || !reuse))
		return errno;
	return 0;
}

static void time_name(char *buffer, size_t size)
{
	time_t now = time(NULL);
	struct tm local;

	localtime_r(&now, &local);
	strftime(buffer, size, "%Y%m%d-%H%M%S", &local);
}

/* causal-out/<app>-<time>, with -2, -3 ... behind it if that second is taken. */
static enum ca_status make_default(const char *app, const char *suffix, char **dir, struct ca_err *err)
{
	char stamp[32];

	time_name(stamp, sizeof stamp);
	for (unsigned n = 1; n < 1000; n++) {
		char more[16] = "";
		int error;

		if (n > 1)
			snprintf(more, sizeof more, "-%u", n);
		if (asprintf(dir, "causal-out/%s-%s%s%s", app, stamp, suffix, more) < 0)
			return ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
		error = ca_output_make(*dir, false);
		if (!error)
			return CA_OK;
		if (error != EEXIST) {
			unusable(*dir, error, err);
			free(*dir);
			return CA_ERR_USAGE;
		}
		free(*dir);
	}
	return unusable("causal-out", EEXIST, err);
}

static enum ca_status make_given(const struct ca_settings *settings, const char *suffix, char **dir,
				 struct ca_err *err)
{
	char stamp[32] = "";
	int error;

	if (settings->time_output)
		time_name(stamp, sizeof stamp);
	if (asprintf(dir, "%s%s%s%s", settings->output, suffix, *stamp ? "/" : "", stamp) < 0)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a path");
	error = ca_output_make(*dir, true);
	if (!error)
		return CA_OK;
	unusable(*dir, error, err);
	free(*dir);
	return CA_ERR_USAGE;
}

/* Write a little and remove it again: permissions, read-only and full file systems, RLIMIT_FSIZE. */
static int try_write(const char *dir)
{
	static const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction old;
	char *name;
	int fd, error = 0;

	if (asprintf(&name, "%s/.causal-%d.tmp", dir, (int)getpid()) < 0)
		return ENOMEM;
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0) {
		error = errno;
	} else {
		sigaction(SIGXFSZ, &ignore, &old);
		error = posix_fallocate(fd, 0, ROOM);
		sigaction(SIGXFSZ, &old, NULL);
		if (error == EOPNOTSUPP || error == EINVAL)
			error = 0;
		close(fd);
		unlink(name);
	}
	free(name);
	return error;
}

/* The number in run-NNNN.jsonl, else 0. */
static unsigned run_number(const char *name)
{
	unsigned number;
	int end = 0;

	if (sscanf(name, "run-%9u.jsonl%n", &number, &end) != 1 || !end || name[end])
		return 0;
	return number;
}

/* What a sweep writes, and `causal report`. */
static bool is_result(const char *name)
{
	return run_number(name) || !strcmp(name, "profile.json") || !strcmp(name, "progress.json") ||
	       !strcmp(name, "profile.coz") || !strcmp(name, "report.html");
}

static enum ca_status find_last(const char *dir, unsigned *last, struct ca_err *err)
{
	DIR *open_dir = opendir(dir);
	struct dirent *entry;

	if (!open_dir)
		return unusable(dir, errno, err);
	*last = 0;
	while ((entry = readdir(open_dir))) {
		unsigned number = run_number(entry->d_name);

		*last = number > *last ? number : *last;
	}
	closedir(open_dir);
	return CA_OK;
}

enum ca_status ca_output_clear(const char *dir, struct ca_err *err)
{
	DIR *open_dir = opendir(dir);
	struct dirent *entry;
	int error = open_dir ? 0 : errno;

	while (!error && (entry = readdir(open_dir)))
		if (is_result(entry->d_name) && unlinkat(dirfd(open_dir), entry->d_name, 0))
			error = errno;
	if (open_dir)
		closedir(open_dir);
	return error ? unusable(dir, error, err) : CA_OK;
}

enum ca_status ca_output_open(const struct ca_settings *settings, const char *app, char **dir,
			      unsigned *first, struct ca_err *err)
{
	char suffix[32] = "", *made;
	enum ca_status status;
	unsigned last = 0;
	int error;

	if (settings->use_pid)
		snprintf(suffix, sizeof suffix, "-%d", (int)getpid());
	status = *settings->output ? make_given(settings, suffix, &made, err)
				   : make_default(app, suffix, &made, err);
	if (status)
		return status;
	error = try_write(made);
	status = error ? unusable(made, error, err) : CA_OK;
	if (!status && !settings->reset)
		status = find_last(made, &last, err);
	if (status) {
		free(made);
		return status;
	}
	*dir = made;
	*first = last + 1;
	return CA_OK;
}

/* SPDX-License-Identifier: MIT */
/* The file of a sink; see sink_file.h. */
#include "core/sink_file.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FLUSH_AT = 1 << 16 }; /* bytes */

struct end {
	uint32_t at; /* in the data */
	uint32_t events;
};

static uint64_t limit = UINT64_MAX;

void ca_sink_file_limit(uint64_t most)
{
	limit = most ? most : UINT64_MAX;
}

uint64_t ca_sink_file_room(uint64_t size, uint64_t n)
{
	uint64_t room = size < limit ? limit - size : 0;

	return n < room ? n : room;
}

/* How many of n bytes were written before an error, which is noted. */
static size_t write_at(struct ca_sink_file *file, const char *bytes, size_t n, uint64_t at)
{
	size_t done = 0, room = (size_t)ca_sink_file_room(at, n);

	if (room < n)
		file->error = EFBIG;
	while (done < room) {
		ssize_t once = file->seeks ? pwrite(file->fd, bytes + done, room - done, (off_t)(at + done))
					   : write(file->fd, bytes + done, room - done);

		if (once > 0) {
			done += (size_t)once;
		} else if (once == 0 || errno != EINTR) {
			file->error = once ? errno : ENOSPC;
			break;
		}
	}
	return done;
}

/* Only `written` bytes of what was to be written are there: keep the records among them behind which
 * the tail has room, and count the others. */
static void cut(struct ca_sink_file *file, size_t written)
{
	const struct end *end = file->ends.at;
	size_t tail = strlen(file->tail), kept = 0;

	for (size_t i = 0; i < file->ends.n; i++)
		if (end[i].at + tail <= written)
			kept = end[i].at;
		else
			file->lost += end[i].events;
	file->size += kept;
	if (file->seeks) {
		int error = file->error;

		write_at(file, file->tail, tail, file->size);
		file->error = error;
		if (ftruncate(file->fd, (off_t)(file->size + tail)))
			return; /* /dev/full; what is behind the tail stays */
	}
}

void ca_sink_file_flush(struct ca_sink_file *file)
{
	const struct end *end = file->ends.at;
	size_t n = file->ends.n ? end[file->ends.n - 1].at : 0, tail = strlen(file->tail), written = 0;

	if (file->error) {
		for (size_t i = 0; i < file->ends.n; i++)
			file->lost += end[i].events;
	} else {
		/* the tail with it, which the next records overwrite */
		if (file->seeks)
			ca_vec_add(&file->data, file->tail, tail);
		written = write_at(file, file->data.at, file->seeks ? n + tail : n, file->size);
		if (file->error)
			cut(file, written);
		else
			file->size += n;
	}
	file->data.n = 0;
	file->ends.n = 0;
}

static enum ca_status fail(struct ca_err *err, const char *sink, const char *path)
{
	return ca_err_set(err, CA_ERR_USAGE, "the %s sink cannot write %s (%s); give another file", sink,
			  path, strerror(errno));
}

/* What can be executed is no file of a sink: a name too few, and the program to be traced is gone. */
static bool is_spared(const char *sink, const char *path, struct ca_err *err)
{
	enum { EXECUTE = S_IXUSR | S_IXGRP | S_IXOTH };
	struct stat is;

	if (stat(path, &is) || !S_ISREG(is.st_mode) || !(is.st_mode & EXECUTE))
		return false;
	ca_err_set(err, CA_ERR_USAGE,
		   "%s is a program, and the %s sink would write over it; give another file", path, sink);
	return true;
}

FILE *ca_sink_file_stream(const char *sink, const char *path, struct ca_err *err)
{
	FILE *file = is_spared(sink, path, err) ? NULL : fopen(path, "we");

	if (!file && !is_spared(sink, path, err))
		fail(err, sink, path);
	return file;
}

enum ca_status ca_sink_file_open(struct ca_sink_file *file, const char *sink, const char *path,
				 const char *head, const char *tail, struct ca_err *err)
{
	*file = (struct ca_sink_file){
		.sink = sink, .tail = tail, .data = { .size = 1 }, .ends = { .size = sizeof(struct end) }
	};
	if (path && is_spared(sink, path, err))
		return CA_ERR_USAGE;
	file->fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : STDERR_FILENO;
	if (file->fd < 0)
		return fail(err, sink, path);
	file->path = strdup(path ? path : "standard error");
	file->seeks = path && lseek(file->fd, 0, SEEK_CUR) >= 0;
	ca_sink_file_text(file, head);
	ca_sink_file_end(file, 0);
	ca_sink_file_flush(file);
	if (file->path)
		return CA_OK;
	if (path)
		close(file->fd);
	ca_vec_free(&file->data);
	ca_vec_free(&file->ends);
	return ca_err_set(err, CA_ERR_NOMEM, "no memory for the %s sink", sink);
}

void ca_sink_file_put(struct ca_sink_file *file, const void *bytes, size_t n)
{
	if (!ca_vec_add(&file->data, bytes, n) && !file->error)
		file->error = ENOMEM;
}

void ca_sink_file_text(struct ca_sink_file *file, const char *text)
{
	ca_sink_file_put(file, text, strlen(text));
}

void ca_sink_file_print(struct ca_sink_file *file, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	ca_sink_file_text(file, text);
}

void ca_sink_file_end(struct ca_sink_file *file, unsigned events)
{
	struct end *end = ca_vec_push(&file->ends);

	if (!end) {
		file->lost += events;
		file->error = file->error ? file->error : ENOMEM;
	} else {
		*end = (struct end){ (uint32_t)file->data.n, events };
	}
	if (file->data.n >= FLUSH_AT || file->error)
		ca_sink_file_flush(file);
}

enum ca_status ca_sink_file_close(struct ca_sink_file *file, struct ca_err *err)
{
	enum ca_status status = CA_OK;

	ca_sink_file_flush(file);
	if (!file->seeks && !file->error)
		write_at(file, file->tail, strlen(file->tail), 0);
	if (file->fd != STDERR_FILENO && close(file->fd) && !file->error)
		file->error = errno;
	if (file->lost && !file->error)
		file->error = ENOMEM;
	if (file->error)
		status = ca_err_set(err, CA_ERR_IO,
				    "the %s sink could not write all of %s (%s): %" PRIu64
				    " events are missing; what is there can be read",
				    file->sink, file->path, strerror(file->error), file->lost);
	free(file->path);
	ca_vec_free(&file->data);
	ca_vec_free(&file->ends);
	return status;
}

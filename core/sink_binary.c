/* SPDX-License-Identifier: MIT */
/* The binary sink: a folder with one file for each thread (core/trace.h). No file stays open, so that
 * there may be any number of threads. Driver's process, one thread. */
#include "core/map.h"
#include "core/sink_file.h"
#include "core/trace.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

extern const struct ca_sink_ops ca_sink_binary;

enum { BUFFER = 128 /* events of each thread */, FIRST_NAMES = 1000 };

struct thread_file {
	struct ca_trace_header header; /* as it is in the file */
	struct ca_event event[BUFFER];
	unsigned n;
	uint64_t last; /* time of its last event */
	bool full;     /* no more can be written */
};

struct binary {
	char *dir;
	int lock; /* the folder; nobody else writes it meanwhile */
	const struct ca_dict *dict;
	struct ca_map by_index;
	struct thread_file **file;
	size_t files;
	struct ca_vec names;
	uint64_t wall, size, written, names_at, lost; /* size: bytes of events in all files */
	uint64_t back; /* events that were earlier than the one before in their thread */
	int error;
};

static void put_escaped(FILE *file, const char *text)
{
	putc('\t', file);
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == '%')
			fprintf(file, "%%%02X", (unsigned char)*text);
		else
			putc(*text, file);
}

static void put_dict(FILE *file, const struct ca_dict *dict)
{
	for (uint32_t key = 0; key < ca_dict_count(dict); key++) {
		const struct ca_dict_key *of = ca_dict_get(dict, key);
		const char *name;
		uint64_t value;

		fprintf(file, "key\t%" PRIu32 "\t%u\t%d", key, (unsigned)of->level, of->counter);
		put_escaped(file, of->name);
		put_escaped(file, of->description);
		if (of->id)
			fprintf(file, "\t%" PRIu32, of->id);
		putc('\n', file);
		for (size_t i = 0; (name = ca_dict_value_at(dict, key, i, &value)); i++) {
			fprintf(file, "value\t%" PRIu32 "\t%" PRIu64, key, value);
			put_escaped(file, name);
			putc('\n', file);
		}
	}
}

/* The old ones stay until the new ones are there. False: errno says why not. */
static bool write_names(const struct binary *binary)
{
	char path[PATH_MAX], new[PATH_MAX];
	const struct ca_trace_name *name = binary->names.at;
	FILE *file;
	bool ok;
	int error;

	snprintf(path, sizeof path, "%s/names", binary->dir);
	snprintf(new, sizeof new, "%s/names.new", binary->dir);
	file = fopen(new, "we");
	if (!file)
		return false;
	if (binary->dict)
		put_dict(file, binary->dict);
	for (size_t i = 0; i < binary->names.n; i++) {
		fprintf(file, "%s\t%" PRIu32, name[i].process ? "process" : "thread", name[i].index);
		put_escaped(file, name[i].name);
		putc('\n', file);
	}
	ok = !ferror(file);
	ok = fclose(file) == 0 && ok && rename(new, path) == 0;
	error = errno;
	if (!ok)
		unlink(new);
	errno = error;
	return ok;
}

/* An earlier trace in the folder would mix with the new one. */
static void remove_old(const char *dir)
{
	DIR *open_dir = opendir(dir);
	struct dirent *entry;
	unsigned process, thread;
	int end = 0;

	while (open_dir && (entry = readdir(open_dir)))
		if (sscanf(entry->d_name, "thread-%u-%u.bin%n", &process, &thread, &end) == 2 && end &&
		    !entry->d_name[end])
			unlinkat(dirfd(open_dir), entry->d_name, 0);
	if (open_dir)
		closedir(open_dir);
}

static void free_binary(struct binary *binary)
{
	struct ca_trace_name *name = binary->names.at;

	for (size_t i = 0; i < binary->names.n; i++)
		free(name[i].name);
	ca_vec_free(&binary->names);
	for (size_t i = 0; i < binary->files; i++)
		free(binary->file[i]);
	free(binary->file);
	ca_map_free(&binary->by_index);
	if (binary->lock >= 0)
		close(binary->lock);
	free(binary->dir);
	free(binary);
}

/* False: somebody reads or writes a trace there. Where there are no locks we go without. */
static bool lock(struct binary *binary)
{
	binary->lock = open(binary->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return binary->lock >= 0 && (!flock(binary->lock, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK);
}

static enum ca_status open_binary(void **state, const char *target, const struct ca_dict *dict,
				  const void *context, struct ca_err *err)
{
	struct binary *binary = calloc(1, sizeof *binary);

	(void)context;
	if (!binary || !(binary->dir = strdup(target))) {
		free(binary);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the binary sink");
	}
	binary->lock = -1;
	binary->dict = dict;
	binary->names.size = sizeof(struct ca_trace_name);
	binary->wall = (uint64_t)time(NULL);
	binary->names_at = FIRST_NAMES;
	if ((mkdir(target, 0777) && errno != EEXIST) || !lock(binary) || !write_names(binary)) {
		ca_err_set(err, CA_ERR_USAGE,
			   "the binary sink cannot write the folder %s (%s); give another one", target,
			   strerror(errno));
		free_binary(binary);
		return CA_ERR_USAGE;
	}
	remove_old(target);
	*state = binary;
	return CA_OK;
}

/* How many of the bytes were written before an error, which is noted. */
static size_t write_at(struct binary *binary, int fd, const void *bytes, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t once = pwrite(fd, (const char *)bytes + done, n - done, (off_t)(at + done));

		if (once > 0) {
			done += (size_t)once;
		} else if (once == 0 || errno != EINTR) {
			binary->error = once ? errno : ENOSPC;
			break;
		}
	}
	return done;
}

/* The events, then the header, which counts them. What was written only in part is taken back. */
static void append(struct binary *binary, struct thread_file *file, int fd, const struct ca_event *event,
		   size_t n)
{
	uint64_t at = sizeof file->header + file->header.events * sizeof *event;
	size_t room = (size_t)ca_sink_file_room(binary->size, n * sizeof *event) / sizeof *event;
	size_t whole = write_at(binary, fd, event, room * sizeof *event, at) / sizeof *event;

	if (room < n)
		binary->error = EFBIG;

	file->header.events += whole;
	binary->written += whole;
	binary->size += whole * sizeof *event;
	binary->lost += n - whole;
	file->full = whole < n;
	if (file->full && ftruncate(fd, (off_t)(at + whole * sizeof *event)))
		return; /* the reader leaves out what is torn */
	write_at(binary, fd, &file->header, sizeof file->header, 0);
}

static void flush(struct binary *binary, struct thread_file *file, const struct ca_event *event, size_t n)
{
	char path[PATH_MAX];
	int fd = -1;

	if (file->full) {
		binary->lost += n;
		return;
	}
	snprintf(path, sizeof path, "%s/thread-%" PRIu32 "-%" PRIu32 ".bin", binary->dir,
		 file->header.from.process_index, file->header.from.thread_index);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (file->header.events ? 0 : O_TRUNC), 0666);
	if (fd < 0) {
		binary->error = errno;
		binary->lost += n;
		return;
	}
	append(binary, file, fd, event, n);
	if (close(fd))
		binary->error = errno;
	/* so that a trace of which the writer was killed has most of its names */
	if (binary->written >= binary->names_at) {
		binary->names_at *= 2;
		write_names(binary);
	}
}

static struct thread_file *get_file(struct binary *binary, const struct ca_source *from)
{
	bool known;
	uint32_t *at = ca_map_add(&binary->by_index, UINT64_C(1) << 63 | from->thread_index, &known);
	struct thread_file **more;

	if (!at)
		return NULL;
	if (known && *at < binary->files)
		return binary->file[*at];
	*at = UINT32_MAX;
	more = ca_vec_more(binary->file, binary->files, sizeof(struct thread_file *));
	if (!more)
		return NULL;
	binary->file = more;
	more[binary->files] = calloc(1, sizeof **more);
	if (!more[binary->files])
		return NULL;
	more[binary->files]->header = (struct ca_trace_header){
		.magic = CA_TRACE_MAGIC,
		.version = CA_TRACE_VERSION,
		.order = CA_TRACE_ORDER,
		.header_size = sizeof(struct ca_trace_header),
		.event_size = sizeof(struct ca_event),
		.from = *from,
		.wall = binary->wall,
	};
	*at = (uint32_t)binary->files++;
	return more[*at];
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct binary *binary = state;
	struct thread_file *file = get_file(binary, from);

	if (!file) {
		binary->error = ENOMEM;
		binary->lost += n;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct ca_event *to = &file->event[file->n++];

		*to = event[i];
		binary->back += to->time < file->last;
		to->time = file->last = to->time > file->last ? to->time : file->last;
		if (file->n < BUFFER)
			continue;
		flush(binary, file, file->event, file->n);
		file->n = 0;
	}
}

static void keep_name(struct binary *binary, uint32_t index, bool process, const char *name)
{
	struct ca_trace_name *keep = name && index ? ca_vec_push(&binary->names) : NULL;

	if (!keep)
		return;
	*keep = (struct ca_trace_name){ index, process, strdup(name) };
	if (!keep->name)
		binary->names.n--;
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	keep_name(state, from->process_index, true, process_name);
	keep_name(state, from->thread_index, false, thread_name);
}

static enum ca_status close_binary(void *state, struct ca_err *err)
{
	struct binary *binary = state;
	enum ca_status status = CA_OK;

	for (size_t i = 0; i < binary->files; i++)
		if (binary->file[i]->n)
			flush(binary, binary->file[i], binary->file[i]->event, binary->file[i]->n);
	if (!write_names(binary))
		binary->error = errno;
	if (binary->error)
		status = ca_err_set(err, CA_ERR_IO,
				    "the binary sink could not write all of %s (%s): %" PRIu64
				    " events are missing; what is there can be read",
				    binary->dir, strerror(binary->error), binary->lost);
	else if (binary->back)
		status = ca_err_set(err, CA_ERR_FORMAT,
				    "%" PRIu64
				    " events in %s were earlier than the one before in their thread; "
				    "they have its time now",
				    binary->back, binary->dir);
	free_binary(binary);
	return status;
}

const struct ca_sink_ops ca_sink_binary = {
	.name = "binary",
	.description = "events as they are, a file for each thread, into a folder, for causal convert",
	.extension = ".trace",
	.open = open_binary,
	.events = take_events,
	.rename = take_name,
	.close = close_binary,
};

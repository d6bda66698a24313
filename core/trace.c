/* SPDX-License-Identifier: MIT */
/* Reading a trace; see trace.h. */
#include "core/trace.h"
#include "core/heap.h"
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
#include <unistd.h>

void ca_trace_free(struct ca_trace *trace)
{
	struct ca_trace_name *name;

	if (!trace)
		return;
	name = trace->names.at;
	for (size_t i = 0; i < trace->names.n; i++)
		free(name[i].name);
	ca_vec_free(&trace->names);
	for (size_t i = 0; i < trace->threads; i++)
		free(trace->thread[i].path);
	if (trace->lock >= 0)
		close(trace->lock);
	free(trace->thread);
	free(trace->key);
	ca_dict_free(trace->dict);
	free(trace);
}

/* ---- names */

static void unescape(char *text)
{
	char *to = text;
	unsigned byte;

	for (; *text; text++)
		if (*text == '%' && sscanf(text + 1, "%2x", &byte) == 1 && text[1] && text[2]) {
			*to++ = (char)byte;
			text += 2;
		} else {
			*to++ = *text;
		}
	*to = '\0';
}

static bool is_number(const char *text, uint64_t most, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && !errno && *number <= most;
}

/* Keys of a trace are few; this is more than any has. */
enum { MOST_KEYS = 1 << 20 };

static bool take_key(struct ca_trace *trace, char **field, uint32_t key)
{
	uint64_t level, id;
	uint32_t *more;

	if (!is_number(field[2], CA_LEVEL_ADVANCED, &level) || !field[4] || !field[5])
		return false;
	for (; trace->keys <= key; trace->keys++) {
		more = ca_vec_more(trace->key, trace->keys, sizeof *more);
		if (!more)
			return false;
		trace->key = more;
		more[trace->keys] = (uint32_t)trace->keys;
	}
	unescape(field[4]);
	unescape(field[5]);
	if (!key)
		trace->key[key] = CA_KEY_DISABLED;
	else if (field[6] && is_number(field[6], UINT32_MAX, &id) && id)
		trace->key[key] = ca_dict_register_own(trace->dict, field[4], field[5], (uint32_t)id);
	else
		trace->key[key] = ca_dict_register(trace->dict, field[4], field[5], (enum ca_level)level);
	if (*field[3] == '1')
		ca_dict_set_counter(trace->dict, trace->key[key]);
	return true;
}

static bool take_value(struct ca_trace *trace, char **field, uint32_t key)
{
	uint64_t value;

	if (!is_number(field[2], UINT64_MAX, &value) || !field[3] || key >= trace->keys)
		return false;
	unescape(field[3]);
	return ca_dict_name_value(trace->dict, trace->key[key], value, field[3]) == CA_OK;
}

static bool take_name(struct ca_trace *trace, char **field, uint32_t index, bool process)
{
	struct ca_trace_name *name = ca_vec_push(&trace->names);

	if (!name)
		return false;
	unescape(field[2]);
	*name = (struct ca_trace_name){ index, process, strdup(field[2]) };
	return name->name;
}

static bool take_line(struct ca_trace *trace, char *line)
{
	enum { FIELDS = 7 };
	char *field[FIELDS] = { NULL };
	uint64_t number;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < FIELDS && line; i++)
		field[i] = strsep(&line, "\t");
	if (!field[1] || !field[2] || !is_number(field[1], UINT32_MAX, &number))
		return false;
	if (!strcmp(field[0], "key"))
		return field[3] && number < MOST_KEYS && take_key(trace, field, (uint32_t)number);
	if (!strcmp(field[0], "value"))
		return take_value(trace, field, (uint32_t)number);
	if (!strcmp(field[0], "process") || !strcmp(field[0], "thread"))
		return take_name(trace, field, (uint32_t)number, *field[0] == 'p');
	return false;
}

static enum ca_status read_names(struct ca_trace *trace, const char *dir, struct ca_err *err)
{
	enum ca_status status = CA_OK;
	char path[PATH_MAX], *line = NULL;
	size_t size = 0;
	ssize_t length;
	uint64_t offset = 0;
	FILE *file;

	snprintf(path, sizeof path, "%s/names", dir);
	file = fopen(path, "re");
	trace->names_missing = !file;
	while (file && !status && (length = getline(&line, &size, file)) > 0) {
		/* the last line may be torn */
		if (line[length - 1] == '\n' && !take_line(trace, line))
			status = ca_err_set(err, CA_ERR_FORMAT, "%s: offset %" PRIu64 ": this is no name",
					    path, offset);
		offset += (uint64_t)length;
	}
	free(line);
	if (file)
		fclose(file);
	return status;
}

/* ---- events */

static size_t read_at(int fd, void *to, size_t n, uint64_t at)
{
	size_t done = 0;

	while (done < n) {
		ssize_t once = pread(fd, (char *)to + done, n - done, (off_t)(at + done));

		if (once > 0)
			done += (size_t)once;
		else if (once == 0 || errno != EINTR)
			break;
	}
	return done;
}

static void fill(struct ca_trace_cursor *cursor)
{
	uint64_t left = cursor->thread->events - cursor->next;
	size_t wanted = left < CA_TRACE_BUFFER ? (size_t)left : CA_TRACE_BUFFER;
	const struct ca_trace *trace = cursor->trace;
	int fd;

	cursor->at = cursor->n = 0;
	if (!wanted)
		return;
	fd = open(cursor->thread->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	cursor->n =
		(unsigned)(read_at(fd, cursor->event, wanted * sizeof *cursor->event,
				   sizeof(struct ca_trace_header) + cursor->next * sizeof *cursor->event) /
			   sizeof *cursor->event);
	close(fd);
	cursor->next += cursor->n;
	for (unsigned i = 0; i < cursor->n; i++)
		if (cursor->event[i].key < trace->keys)
			cursor->event[i].key = trace->key[cursor->event[i].key];
}

const struct ca_event *ca_trace_peek(struct ca_trace_cursor *cursor)
{
	if (cursor->at == cursor->n)
		fill(cursor);
	return cursor->at < cursor->n ? &cursor->event[cursor->at] : NULL;
}

void ca_trace_skip(struct ca_trace_cursor *cursor)
{
	cursor->at++;
}

static enum ca_status malformed(struct ca_err *err, const char *path, uint64_t offset, const char *text)
{
	return ca_err_set(err, CA_ERR_FORMAT, "%s: offset %" PRIu64 ": %s", path, offset, text);
}

static enum ca_status check_header(const struct ca_trace_header *header, size_t size, const char *path,
				   struct ca_err *err)
{
#define AT(member) offsetof(struct ca_trace_header, member)
	size_t known = size < sizeof header->magic ? size : sizeof header->magic;

	if (memcmp(header->magic, CA_TRACE_MAGIC, known) != 0)
		return malformed(err, path, AT(magic), "this is no file of the binary sink");
	if (size < sizeof *header)
		return CA_OK; /* it holds nothing */
	if (header->version != CA_TRACE_VERSION)
		return malformed(err, path, AT(version), "it is of another version of causal");
	if (header->order != CA_TRACE_ORDER)
		return malformed(err, path, AT(order), "it is of a machine with another order of bytes");
	if (header->header_size != sizeof *header)
		return malformed(err, path, AT(header_size), "headers have another size");
	if (header->event_size != sizeof(struct ca_event))
		return malformed(err, path, AT(event_size), "events have another size");
	return CA_OK;
#undef AT
}

/* Time must not go back. */
static enum ca_status check_events(const struct ca_trace *trace, struct ca_trace_thread *thread,
				   struct ca_err *err)
{
	struct ca_trace_cursor cursor = { .trace = trace, .thread = thread };
	const struct ca_event *event;
	uint64_t n = 0;

	for (; (event = ca_trace_peek(&cursor)); ca_trace_skip(&cursor), n++) {
		if (!n)
			thread->first = event->time;
		else if (event->time < thread->last)
			return malformed(err, thread->path,
					 sizeof(struct ca_trace_header) + n * sizeof *event,
					 "the event is earlier than the one before it");
		thread->last = event->time;
	}
	return n == thread->events ? CA_OK : ca_err_set(err, CA_ERR_IO, "cannot read %s", thread->path);
}

static enum ca_status read_thread(struct ca_trace *trace, const char *path, struct ca_err *err)
{
	static const struct ca_trace_header none;
	struct ca_trace_header header = none;
	struct ca_trace_thread *more, thread = { .path = NULL };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum ca_status status;
	struct stat st;
	uint64_t bytes;
	size_t size;
	bool empty;

	if (fd < 0 || fstat(fd, &st)) {
		status = ca_err_set(err, CA_ERR_IO, "cannot read %s (%s)", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return status;
	}
	size = read_at(fd, &header, sizeof header, 0);
	close(fd);
	/* events are written before it: then the disk was full, or the writer killed */
	empty = !memcmp(&header, &none, sizeof none);
	status = empty ? CA_OK : check_header(&header, size, path, err);
	if (status)
		return status;
	if (empty || size < sizeof header) {
		trace->headless++;
		return CA_OK;
	}
	bytes = (uint64_t)st.st_size - sizeof header;
	thread = (struct ca_trace_thread){
		.from = header.from,
		.events = bytes / sizeof(struct ca_event),
		.torn = (unsigned)(bytes % sizeof(struct ca_event)),
		.wall = header.wall,
	};
	if (header.events > thread.events)
		thread.left_out = header.events - thread.events;
	more = ca_vec_more(trace->thread, trace->threads, sizeof *more);
	thread.path = more ? strdup(path) : NULL;
	trace->thread = more ? more : trace->thread;
	if (!thread.path)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for %s", path);
	trace->thread[trace->threads++] = thread;
	return check_events(trace, &trace->thread[trace->threads - 1], err);
}

static int by_index(const void *a, const void *b)
{
	const struct ca_trace_thread *x = a, *y = b;

	return x->from.thread_index < y->from.thread_index   ? -1
	       : x->from.thread_index > y->from.thread_index ? 1
							     : strcmp(x->path, y->path);
}

static enum ca_status read_threads(struct ca_trace *trace, const char *dir, struct ca_err *err)
{
	DIR *open_dir = opendir(dir);
	enum ca_status status = CA_OK;
	struct dirent *entry;
	char path[PATH_MAX];

	/* kept until it is closed: nobody begins a new trace there meanwhile */
	trace->lock = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (trace->lock >= 0)
		flock(trace->lock, LOCK_SH | LOCK_NB);
	if (!open_dir)
		return ca_err_set(err, CA_ERR_NOT_FOUND, "cannot read the folder %s (%s)", dir,
				  strerror(errno));
	while (!status && (entry = readdir(open_dir))) {
		size_t length = strlen(entry->d_name);

		if (strncmp(entry->d_name, "thread-", 7) != 0 || length < 4 ||
		    strcmp(entry->d_name + length - 4, ".bin") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		status = read_thread(trace, path, err);
	}
	closedir(open_dir);
	if (status)
		return status;
	if (!trace->threads && !trace->headless)
		return ca_err_set(err, CA_ERR_NOT_FOUND, "%s holds no trace (thread-*.bin)", dir);
	if (trace->threads)
		qsort(trace->thread, trace->threads, sizeof *trace->thread, by_index);
	for (size_t i = 1; i < trace->threads; i++)
		if (trace->thread[i].from.thread_index == trace->thread[i - 1].from.thread_index)
			return malformed(err, trace->thread[i].path,
					 offsetof(struct ca_trace_header, from.thread_index),
					 "another file is of the same thread");
	return CA_OK;
}

enum ca_status ca_trace_open(struct ca_trace **trace, const char *dir, struct ca_err *err)
{
	struct ca_trace *made = calloc(1, sizeof *made);
	enum ca_status status;

	if (!made)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a trace");
	made->lock = -1;
	made->names.size = sizeof(struct ca_trace_name);
	made->dict = ca_dict_new();
	if (!made->dict) {
		ca_trace_free(made);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a trace");
	}
	status = read_names(made, dir, err);
	if (!status)
		status = read_threads(made, dir, err);
	if (!status)
		status = ca_dict_select(made->dict, ca_dict_level_name(CA_LEVEL_ADVANCED), err);
	if (status)
		ca_trace_free(made);
	else
		*trace = made;
	return status;
}

/* ---- all of it, in the order of time: a heap of cursors, the earliest at the top */

static bool is_before(void *one, void *other)
{
	struct ca_trace_cursor *a = one, *b = other;
	const struct ca_event *x = ca_trace_peek(a), *y = ca_trace_peek(b);

	return !x ? false : !y || x->time < y->time || (x->time == y->time && a->thread < b->thread);
}

/* What the first has before all others, in one call; events of one time stay together. */
static void feed_first(void **heap, size_t n, struct ca_sinks *sinks, struct ca_vec *batch)
{
	enum { MOST = 256 };
	struct ca_trace_cursor *first = heap[0];
	const struct ca_dict *dict = first->trace->dict;
	const struct ca_event *event = ca_trace_peek(first), *other;
	uint64_t until = UINT64_MAX, time = 0;

	for (size_t i = 1; i < 3 && i < n; i++)
		if ((other = ca_trace_peek(heap[i])) && other->time < until)
			until = other->time;
	until = until > event->time ? until : event->time;
	batch->n = 0;
	for (; (event = ca_trace_peek(first)); ca_trace_skip(first)) {
		const struct ca_dict_key *key = ca_dict_get(dict, event->key);

		if (event->time > until || (batch->n >= MOST && event->time != time))
			break;
		time = event->time;
		if (!key || key->enabled)
			ca_vec_add(batch, event, 1);
	}
	if (batch->n)
		ca_sink_events(sinks, &first->thread->from, batch->at, batch->n);
}

static void feed_names(const struct ca_trace *trace, struct ca_sinks *sinks)
{
	const struct ca_trace_name *name = trace->names.at;

	for (size_t i = 0; i < trace->names.n; i++)
		for (size_t j = 0; j < trace->threads; j++) {
			const struct ca_source *from = &trace->thread[j].from;
			uint32_t index = name[i].process ? from->process_index : from->thread_index;

			if (index != name[i].index)
				continue;
			ca_sink_name(sinks, from, name[i].process ? name[i].name : NULL,
				     name[i].process ? NULL : name[i].name);
			break;
		}
}

enum ca_status ca_trace_feed(const struct ca_trace *trace, struct ca_sinks *sinks, struct ca_err *err)
{
	struct ca_trace_cursor *cursor = calloc(trace->threads, sizeof *cursor);
	void **heap = calloc(trace->threads, sizeof *heap);
	struct ca_vec batch = { .size = sizeof(struct ca_event) };
	enum ca_status status = CA_OK;
	size_t n = 0;

	if (trace->threads && (!cursor || !heap))
		status = ca_err_set(err, CA_ERR_NOMEM, "no memory for so many threads");
	feed_names(trace, sinks);
	for (size_t i = 0; !status && i < trace->threads; i++) {
		cursor[i] = (struct ca_trace_cursor){ .trace = trace, .thread = &trace->thread[i] };
		heap[n++] = &cursor[i];
	}
	ca_heap_make(heap, n, is_before);
	while (n && ca_trace_peek(heap[0])) {
		feed_first(heap, n, sinks, &batch);
		ca_heap_sift(heap, n, is_before);
	}
	if (batch.failed)
		status = ca_err_set(err, CA_ERR_NOMEM, "no memory for events");
	ca_vec_free(&batch);
	free(heap);
	free(cursor);
	return status;
}

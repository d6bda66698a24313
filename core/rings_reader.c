/* SPDX-License-Identifier: MIT */
/* The reading end of trace rings: see core/rings_reader.h. The program may have written into this
 * memory, or died at any instruction: all that is read is checked, and costs events at worst. */
#include "core/rings_reader.h"
#include "core/by_index.h"
#include "core/vec.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	LEAST = 256,           /* chunks of all threads, and ... */
	LEAST_OF_ONE = 2,      /* ... of one */
	AHEAD = 1024,          /* chunks with backing store beyond those in use */
	MOST_THREADS = 1 << 24 /* of a run; more of them have not been counted but scribbled */
};

struct thread {
	uint64_t next;     /* number of the chunk to be read next ... */
	uint32_t position; /* ... and so many events of it have been */
	uint64_t over;     /* ns; when it had told of its last lap */
	bool seen;
};

struct found {
	uint32_t thread, chunk;
	uint64_t number;
};

struct ca_rings_reader {
	struct ca_rings *trace;
	uint64_t at, size;
	int fd; /* borrowed */
	uint32_t chunks;
	struct ca_by_index thread; /* struct thread, by thread_index */
	struct found *found;
	bool *gone; /* by process_index */
	size_t gone_room;
	ca_rings_take_laps take_laps;
	uint32_t held; /* thread whose laps are not complete */
	uint64_t events, damaged;
	uint32_t threads;
};

static int back(int fd, uint64_t low, uint64_t high)
{
	int error;

	do
		error = posix_fallocate(fd, (off_t)low, (off_t)(high - low));
	while (error == EINTR);
	return error;
}

/* Backing store for some chunks more than are in use. Where there is none, events are lost, and counted. */
static int grow(struct ca_rings_reader *r)
{
	uint32_t ready = atomic_load(&r->trace->ready), used = atomic_load(&r->trace->used);
	uint32_t wanted = used < r->chunks - AHEAD / 2 ? used + AHEAD : r->chunks;
	uint64_t first = r->at + r->size - (uint64_t)r->chunks * CA_RINGS_PAGE;
	int error;

	if (wanted > r->chunks)
		wanted = r->chunks;
	if (ready >= wanted || (ready > used && ready - used > AHEAD / 2))
		return 0;
	error = back(r->fd, first + (uint64_t)ready * CA_RINGS_PAGE,
		     first + (uint64_t)wanted * CA_RINGS_PAGE);
	if (error)
		return error;
	while (ready < wanted && !atomic_compare_exchange_weak(&r->trace->ready, &ready, wanted))
		;
	return 0;
}

static uint32_t chunks_of(uint64_t bytes, uint32_t least)
{
	uint64_t chunks = bytes / CA_RINGS_PAGE;

	if (chunks < least)
		return least;
	return chunks < UINT32_MAX / 2 ? (uint32_t)chunks : UINT32_MAX / 2;
}

static enum ca_status make(struct ca_rings_reader *r, const struct ca_rings_options *options,
			   struct ca_err *err)
{
	uint64_t head;
	int error;

	r->chunks = chunks_of(options->memory, LEAST);
	r->size = ca_rings_size(r->chunks);
	head = r->size - (uint64_t)r->chunks * CA_RINGS_PAGE;
	if (ftruncate(r->fd, (off_t)(r->at + r->size)))
		return ca_err_set(err, CA_ERR_IO, "the session file cannot be made longer for the trace: %s",
				  strerror(errno));
	error = back(r->fd, r->at, r->at + head);
	if (error)
		return ca_err_set(err, CA_ERR_FULL, "there is no room for a trace: %s", strerror(error));
	r->trace = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, (off_t)r->at);
	if (r->trace == MAP_FAILED) {
		r->trace = NULL;
		return ca_err_set(err, CA_ERR_NOMEM, "the trace cannot be mapped: %s", strerror(errno));
	}
	r->trace->chunks = r->chunks;
	r->trace->most = chunks_of(options->ring, LEAST_OF_ONE);
	r->trace->keep_last = options->keep_last;
	r->trace->laps = options->laps;
	r->trace->throttle = options->throttle;
	error = grow(r);
	if (error)
		return ca_err_set(
			err, CA_ERR_FULL,
			"there is no room for the rings of a trace (%s); make --trace-memory smaller",
			strerror(error));
	r->found = calloc(r->chunks, sizeof *r->found);
	return r->found ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "no memory for the trace");
}

enum ca_status ca_rings_reader_new(struct ca_rings_reader **reader, int fd, uint64_t at,
				   const struct ca_rings_options *options, uint64_t *size, struct ca_err *err)
{
	struct ca_rings_reader *r = calloc(1, sizeof *r);
	enum ca_status status;

	if (!r)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the trace");
	r->fd = fd;
	r->thread.size = sizeof(struct thread);
	r->at = (at + CA_RINGS_PAGE - 1) / CA_RINGS_PAGE * CA_RINGS_PAGE;
	status = make(r, options, err);
	if (status) {
		ca_rings_reader_free(r);
		return status;
	}
	*size = r->at + r->size - at;
	*reader = r;
	return CA_OK;
}

void ca_rings_reader_free(struct ca_rings_reader *r)
{
	if (!r)
		return;
	if (r->trace)
		munmap(r->trace, r->size);
	ca_by_index_free(&r->thread);
	free(r->found);
	free(r->gone);
	free(r);
}

struct ca_rings *ca_rings_reader_get(const struct ca_rings_reader *r)
{
	return r ? r->trace : NULL;
}

/* Room for number `i` of an array; the rest of it are zeros. */
static bool make_room(void *array, size_t *room, size_t i, size_t size)
{
	size_t wanted = *room ? *room : 64;
	char **at = array, *more;

	if (i < *room)
		return true;
	while (wanted <= i)
		wanted *= 2;
	more = realloc(*at, wanted * size);
	if (!more)
		return false;
	memset(more + *room * size, 0, (wanted - *room) * size);
	*at = more;
	*room = wanted;
	return true;
}

void ca_rings_reader_forget(struct ca_rings_reader *r, uint32_t process_index)
{
	if (r && process_index < MOST_THREADS &&
	    make_room(&r->gone, &r->gone_room, process_index, sizeof *r->gone))
		r->gone[process_index] = true;
}

static int by_thread(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/* The chunks that somebody has, by thread and in its order. */
static size_t look(struct ca_rings_reader *r)
{
	uint32_t used = atomic_load(&r->trace->used);
	size_t n = 0;

	for (uint32_t i = 0; i < used && i < r->chunks; i++) {
		const struct ca_rings_chunk *c = &r->trace->chunk[i];
		/* acquire: pairs with the release in core/rings.c, after its owner and number */
		uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);

		if (state == CA_RINGS_FREE || state > CA_RINGS_LAPS_DONE)
			continue;
		r->found[n++] = (struct found){ c->owner.thread_index, i, atomic_load(&c->number) };
	}
	qsort(r->found, n, sizeof *r->found, by_thread);
	return n;
}

static void give_back(struct ca_rings_reader *r, uint32_t chunk)
{
	struct ca_rings_chunk *c = &r->trace->chunk[chunk];
	uint64_t head = atomic_load_explicit(&r->trace->free, memory_order_relaxed);

	atomic_store_explicit(&c->state, CA_RINGS_FREE, memory_order_relaxed);
	do
		atomic_store_explicit(&c->next, (uint32_t)head, memory_order_relaxed);
	/* release: pairs with the acquire in take_free */
	while (!atomic_compare_exchange_weak_explicit(&r->trace->free, &head,
						      ((head >> 32) + 1) << 32 | (chunk + 1),
						      memory_order_release, memory_order_relaxed));
}

/* Events that are none would be a riddle to every sink. */
static void hand_on(struct ca_rings_reader *r, const struct ca_source *from, const struct ca_event *event,
		    size_t n, ca_rings_take take, void *context)
{
	size_t begin = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && event[i].kind <= CA_POINT)
			continue;
		if (i > begin) {
			take(context, from, &event[begin], i - begin);
			r->events += i - begin;
		}
		r->damaged += i < n;
		begin = i + 1;
	}
}

static bool is_gone(const struct ca_rings_reader *r, uint32_t process_index)
{
	return process_index < r->gone_room && r->gone[process_index];
}

void ca_rings_reader_on_laps(struct ca_rings_reader *r, ca_rings_take_laps take)
{
	r->take_laps = take;
}

/* False: it holds events. */
static bool read_laps(struct ca_rings_reader *r, const struct found *f, bool last, void *context)
{
	struct ca_rings_chunk *c = &r->trace->chunk[f->chunk];
	/* acquire: pairs with the release in core/laps.c */
	uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);
	uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);
	const struct ca_source from = c->owner;
	struct thread *t = ca_by_index_find(&r->thread, f->thread);
	struct ca_lap lap[CA_LAPS_OF_CHUNK];
	bool done = last || state == CA_RINGS_LAPS_DONE || is_gone(r, from.process_index);

	if (state != CA_RINGS_LAPS && state != CA_RINGS_LAPS_DONE)
		return false;
	/* the first chunk of a thread comes first, and is closed last */
	if (!f->number) {
		r->held = done ? UINT32_MAX : f->thread;
		/* a chunk that was taken after we looked for them comes the next time, without this one */
		t->over = atomic_load_explicit(&c->given_back, memory_order_relaxed);
	}
	done = done && r->held != f->thread;
	r->threads += !t->seen;
	t->seen = true;
	if (count > CA_LAPS_OF_CHUNK || !done)
		count = done ? CA_LAPS_OF_CHUNK : 0;
	memcpy(lap, ca_rings_events(r->trace, f->chunk), count * sizeof *lap);
	for (uint32_t i = 0; i < count; i++) {
		r->events += (lap[i].key ? 2 : 1) * lap[i].count;
		if (lap[i].since)
			lap[i].mark = t->over;
	}
	if (r->take_laps)
		r->take_laps(context, &from, lap, f->chunk * CA_LAPS_OF_CHUNK + 1, count);
	if (done)
		give_back(r, f->chunk);
	return true;
}

/* False: the thread's later chunks have to wait. */
static bool read_chunk(struct ca_rings_reader *r, const struct found *f, bool last, ca_rings_take take,
		       void *context)
{
	struct ca_rings_chunk *c = &r->trace->chunk[f->chunk];
	struct thread *t = ca_by_index_find(&r->thread, f->thread);
	const struct ca_source from = c->owner;
	struct ca_event event[CA_RINGS_EVENTS];
	bool over = false;
	/* The state first: with CLOSED the count is final. acquire: as in look */
	bool closed = atomic_load_explicit(&c->state, memory_order_acquire) == CA_RINGS_CLOSED;
	/* acquire: pairs with the release in ca_rings_push */
	uint32_t count = atomic_load_explicit(&c->count, memory_order_acquire);

	closed = closed || last || is_gone(r, from.process_index);
	if (count > CA_RINGS_EVENTS)
		count = CA_RINGS_EVENTS;
	if (f->number != t->next) {
		/* one before it was taken after it was looked for; or it was overwritten, or leaked in a death */
		if (f->number > t->next && !last && !is_gone(r, from.process_index))
			return false;
		t->next = f->number;
		t->position = 0;
	}
	if (count) {
		const struct ca_event *end = ca_rings_events(r->trace, f->chunk) + count - 1;

		/* nothing comes behind it; the first thread of a process tells of that as well */
		over = end->key == CA_KEY_THREAD && end->kind == CA_BURST_END && from.thread != from.process;
	}
	if (count > t->position) {
		size_t n = count - t->position;

		r->threads += !t->seen;
		t->seen = true;
		memcpy(event, ca_rings_events(r->trace, f->chunk) + t->position, n * sizeof *event);
		hand_on(r, &from, event, n, take, context);
		t->position = count;
	}
	if (closed) {
		t->next++;
		t->position = 0;
		give_back(r, f->chunk);
		if (over && !r->trace->laps)
			ca_by_index_drop(&r->thread, f->thread);
	} else {
		/* all before it have been given back */
		atomic_store_explicit(&c->given_back, f->number, memory_order_relaxed);
	}
	return true;
}

void ca_rings_reader_drain(struct ca_rings_reader *r, bool last, ca_rings_take take, void *context)
{
	uint32_t waits = UINT32_MAX;
	size_t n;

	if (!r)
		return;
	grow(r);
	if (r->trace->keep_last && !last)
		return;
	r->held = UINT32_MAX;
	n = look(r);
	for (size_t i = 0; i < n; i++) {
		const struct found *f = &r->found[i];

		if (f->thread == waits || f->thread >= MOST_THREADS ||
		    !ca_by_index_get(&r->thread, f->thread))
			continue;
		if (!read_laps(r, f, last, context) && !read_chunk(r, f, last, take, context))
			waits = f->thread;
	}
}

uint64_t ca_rings_reader_events(const struct ca_rings_reader *r)
{
	return r ? r->events : 0;
}

uint32_t ca_rings_reader_threads(const struct ca_rings_reader *r)
{
	return r ? r->threads : 0;
}

uint64_t ca_rings_reader_lost(const struct ca_rings_reader *r, enum ca_loss why)
{
	if (!r)
		return 0;
	return atomic_load(&r->trace->lost[why]) + (why == CA_LOSS_DAMAGED ? r->damaged : 0);
}

/* SPDX-License-Identifier: MIT */
/* The writing end of trace rings: see core/rings.h. What is read from the shared memory is checked
 * before it is used as an index: the program may have written there. Handlers and any thread. */
#include "core/rings.h"
#include "core/sys.h"

enum {
	AT_ONCE = 64,       /* chunks made ready, where the driver has not */
	ABOUT_TO_BE = 2048, /* that other threads may be about to take */
	LEAST = 256         /* that are worth to be mapped */
};

static _Atomic uint32_t mapped = UINT32_MAX; /* in this process, from the first on */

static uint32_t there_are(const struct ca_rings *trace)
{
	uint32_t here = atomic_load_explicit(&mapped, memory_order_relaxed);

	return here < trace->chunks ? here : trace->chunks;
}

static uint64_t size_without_events(const struct ca_rings *trace)
{
	return ca_rings_size(trace->chunks) - (uint64_t)trace->chunks * CA_RINGS_PAGE;
}

uint64_t ca_rings_here(const struct ca_rings *trace)
{
	return size_without_events(trace) + (uint64_t)there_are(trace) * CA_RINGS_PAGE;
}

bool ca_rings_use(const struct ca_rings *trace, uint64_t size)
{
	uint64_t rest = size_without_events(trace);

	if (size < rest || size - rest < (uint64_t)LEAST * CA_RINGS_PAGE)
		return false;
	atomic_store(&mapped, (uint32_t)((size - rest) / CA_RINGS_PAGE));
	return true;
}

void ca_rings_give_way(struct ca_rings *trace)
{
	uint32_t before = there_are(trace), keep = atomic_load(&trace->ready) + ABOUT_TO_BE;

	if (keep >= before)
		return;
	atomic_store(&mapped, keep);
	ca_sys(SYS_munmap, (long)(intptr_t)ca_rings_events(trace, keep),
	       (long)(before - keep) * CA_RINGS_PAGE, 0, 0, 0, 0);
}

/* One that has been given back. */
static uint32_t take_free(struct ca_rings *trace)
{
	/* acquire: pairs with the release in the reader, after it has written `next` */
	uint64_t head = atomic_load_explicit(&trace->free, memory_order_acquire), next;
	uint32_t chunk;

	do {
		chunk = (uint32_t)head;
		if (!chunk || chunk > there_are(trace))
			return 0;
		next = ((head >> 32) + 1) << 32 |
		       atomic_load_explicit(&trace->chunk[chunk - 1].next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(&trace->free, &head, next, memory_order_acquire,
							memory_order_acquire));
	return chunk;
}

/* A burst, or a driver without a CPU. A store into memory that is not there would be the program's death. */
static bool make_ready(struct ca_rings *trace)
{
	uint32_t ready = atomic_load_explicit(&trace->ready, memory_order_acquire);
	uint32_t n = ready + AT_ONCE < there_are(trace) ? ready + AT_ONCE : there_are(trace);

	if (ready >= n || ca_sys(SYS_madvise, (long)(intptr_t)ca_rings_events(trace, ready),
				 (long)(n - ready) * CA_RINGS_PAGE, CA_SYS_POPULATE_WRITE, 0, 0, 0))
		return false;
	while (ready < n && !atomic_compare_exchange_weak(&trace->ready, &ready, n))
		;
	return true;
}

/* One that never was: 1 + its index, 0: there are no more. */
static uint32_t take_new(struct ca_rings *trace)
{
	uint32_t used = atomic_load_explicit(&trace->used, memory_order_relaxed);

	for (;;) {
		if (used >= there_are(trace))
			return 0;
		/* acquire: pairs with the store of who has made them ready */
		if (used >= atomic_load_explicit(&trace->ready, memory_order_acquire) && !make_ready(trace))
			return 0;
		if (atomic_compare_exchange_weak_explicit(&trace->used, &used, used + 1, memory_order_relaxed,
							  memory_order_relaxed))
			return used + 1;
	}
}

uint32_t ca_rings_get_chunk(struct ca_rings *trace)
{
	uint32_t chunk = take_free(trace);

	return chunk ? chunk : take_new(trace);
}

void ca_rings_count_lost(struct ca_rings *trace, enum ca_loss why, size_t n)
{
	atomic_fetch_add_explicit(&trace->lost[why], n, memory_order_relaxed);
}

static bool lose(struct ca_rings_writer *w, enum ca_loss why, size_t n)
{
	ca_rings_count_lost(w->trace, why, n);
	w->lost += n;
	return false;
}

static void close_chunk(struct ca_rings_writer *w)
{
	if (w->event)
		/* release: pairs with the acquire in the reader; its count is final */
		atomic_store_explicit(&w->trace->chunk[w->chunk].state, CA_RINGS_CLOSED,
				      memory_order_release);
	w->event = NULL;
}

static void open_chunk(struct ca_rings_writer *w, uint32_t chunk)
{
	struct ca_rings_chunk *c = &w->trace->chunk[chunk], *old = &w->trace->chunk[w->chunk];
	bool first = !w->number;

	atomic_store_explicit(&c->count, 0, memory_order_relaxed);
	atomic_store_explicit(&c->given_back,
			      first ? 0 : atomic_load_explicit(&old->given_back, memory_order_relaxed),
			      memory_order_relaxed);
	atomic_store_explicit(&c->number, w->number, memory_order_relaxed);
	if (!first)
		atomic_store_explicit(&old->next, chunk, memory_order_relaxed);
	else
		w->oldest = chunk;
	c->owner = w->owner;
	close_chunk(w);
	/* release: pairs with the acquire in the reader */
	atomic_store_explicit(&c->state, CA_RINGS_OPEN, memory_order_release);
	w->number++;
	w->chunk = chunk;
	w->event = ca_rings_events(w->trace, chunk);
	w->count = 0;
}

/* The thread's oldest chunk becomes its newest. Nobody reads it meanwhile: with keep_last that is done
 * at the end. */
static bool reuse_oldest(struct ca_rings_writer *w)
{
	uint32_t chunk = w->oldest, next = chunk;
	struct ca_rings_chunk *c;

	if (chunk >= w->trace->chunks)
		return false;
	c = &w->trace->chunk[chunk];
	if (chunk != w->chunk)
		next = atomic_load_explicit(&c->next, memory_order_relaxed);
	lose(w, CA_LOSS_OVERWRITTEN, atomic_load_explicit(&c->count, memory_order_relaxed));
	w->lost = 0; /* they are older than all that is there: no gap */
	close_chunk(w);
	open_chunk(w, chunk);
	w->oldest = next;
	return true;
}

/* Where the thread's chunks have a limit, or all of them: how many does it hold? */
static bool holds_most(const struct ca_rings_writer *w)
{
	uint64_t back;

	if (!w->event)
		return false;
	back = atomic_load_explicit(&w->trace->chunk[w->chunk].given_back, memory_order_relaxed);
	return w->number - (back < w->number ? back : w->number) >= w->trace->most;
}

static bool next_chunk(struct ca_rings_writer *w, size_t n)
{
	bool most = holds_most(w);
	uint32_t chunk = most ? 0 : ca_rings_get_chunk(w->trace);

	if (chunk) {
		open_chunk(w, chunk - 1);
		return true;
	}
	if (w->trace->keep_last && w->event)
		return reuse_oldest(w);
	return lose(w, most ? CA_LOSS_RING : CA_LOSS_MEMORY, n);
}

void ca_rings_begin(struct ca_rings_writer *w, struct ca_rings *trace, const struct ca_source *owner)
{
	*w = (struct ca_rings_writer){ .trace = trace, .owner = *owner };
}

bool ca_rings_more(struct ca_rings_writer *w, uint64_t time, size_t n)
{
	struct ca_event gap = { .time = time, .kind = CA_POINT, .key = CA_KEY_DROPPED, .value = w->lost };

	if (!w->trace)
		return false;
	if (n >= CA_RINGS_EVENTS)
		return lose(w, CA_LOSS_RING, n);
	if (!next_chunk(w, n))
		return false;
	if (w->lost) {
		w->lost = 0;
		ca_rings_push(w, &gap, 1);
	}
	return true;
}

void ca_rings_end(struct ca_rings_writer *w)
{
	if (w->trace)
		close_chunk(w);
	w->trace = NULL;
}

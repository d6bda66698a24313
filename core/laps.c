/* SPDX-License-Identifier: MIT */
/* See core/laps.h. Handlers and any thread. */
#include "core/laps.h"

void ca_laps_begin(struct ca_laps *l, struct ca_rings *trace, struct ca_names *names,
		   const struct ca_source *owner)
{
	*l = (struct ca_laps){ .owner = *owner };
	if (!trace || !trace->laps || !names)
		return;
	l->trace = trace;
	l->off = names->off;
	l->base = (struct ca_lap *)(void *)ca_rings_events(trace, 0);
}

/* Its chunks are closed, the first one last: then all may be taken. */
void ca_laps_end(struct ca_laps *l)
{
	uint32_t chunk = l->chunk, n = l->chunks;

	for (; l->trace && n > 0 && chunk < l->trace->chunks; n--) {
		struct ca_rings_chunk *c = &l->trace->chunk[chunk];

		chunk = atomic_load_explicit(&c->next, memory_order_relaxed);
		/* release: pairs with the acquire in the reader; it is complete */
		atomic_store_explicit(&c->state, CA_RINGS_LAPS_DONE, memory_order_release);
	}
	*l = (struct ca_laps){ .owner = l->owner };
}

static bool add_chunk(struct ca_laps *l)
{
	uint32_t chunk = l->chunks < l->trace->most ? ca_rings_get_chunk(l->trace) : 0;
	struct ca_rings_chunk *c;

	if (!chunk) {
		ca_rings_count_lost(l->trace, l->chunks < l->trace->most ? CA_LOSS_MEMORY : CA_LOSS_RING, 2);
		return false;
	}
	c = &l->trace->chunk[--chunk];
	atomic_store_explicit(&c->count, 0, memory_order_relaxed);
	atomic_store_explicit(&c->number, l->chunks, memory_order_relaxed);
	atomic_store_explicit(&c->given_back, 0, memory_order_relaxed);
	atomic_store_explicit(&c->next, l->chunk, memory_order_relaxed);
	c->owner = l->owner;
	/* release: pairs with the acquire in the reader */
	atomic_store_explicit(&c->state, CA_RINGS_LAPS, memory_order_release);
	if (!l->chunks++)
		l->over = &c->given_back;
	l->chunk = chunk;
	l->used = 0;
	return true;
}

static struct ca_lap *new_lap(struct ca_laps *l, uint32_t key, uint64_t value)
{
	uint32_t *first = l->at ? &l->at->first : &l->first;
	struct ca_lap *lap;

	if ((!l->chunks || l->used == CA_LAPS_OF_CHUNK) && !add_chunk(l))
		return NULL;
	lap = &l->base[(uint64_t)l->chunk * CA_LAPS_OF_CHUNK + l->used];
	*lap = (struct ca_lap){ .value = value, .key = key, .next = *first, .min = UINT64_MAX };
	lap->above = l->at ? (uint32_t)(l->at - l->base) + 1 : 0;
	*first = (uint32_t)(lap - l->base) + 1;
	l->used++;
	/* release: pairs with the acquire in the reader, which looks at no more of them */
	atomic_store_explicit(&l->trace->chunk[l->chunk].count, l->used, memory_order_release);
	return lap;
}

/* Who was looked for last stands first. Bounded: what the program has scribbled may be a ring. */
static struct ca_lap *find_lap(struct ca_laps *l, uint32_t key, uint64_t value)
{
	uint32_t *first = l->at ? &l->at->first : &l->first, *link = first, number;
	uint32_t bound = l->chunks * CA_LAPS_OF_CHUNK;
	struct ca_lap *lap;

	for (; (lap = ca_laps_get(l, *link)) && bound-- > 0; link = &lap->next) {
		if (lap->key != key || lap->value != value)
			continue;
		number = *link;
		*link = lap->next;
		lap->next = *first;
		*first = number;
		return lap;
	}
	return new_lap(l, key, value);
}

/* The next outer one that is open. */
static struct ca_lap *open_around(struct ca_laps *l, const struct ca_lap *lap)
{
	uint32_t bound = l->chunks * CA_LAPS_OF_CHUNK;
	struct ca_lap *around = ca_laps_get(l, lap->above);

	while (around && !around->since && bound-- > 0)
		around = ca_laps_get(l, around->above);
	return around;
}

/* Ends of what has been switched off meanwhile do not come. */
static void leave_off(struct ca_laps *l)
{
	struct ca_lap *lap;

	while ((lap = l->at) && lap->key > CA_KEY_USER && lap->key <= CA_KEY_USER + CA_USER_ID_LAST &&
	       atomic_load_explicit(&l->off[lap->key - CA_KEY_USER], memory_order_relaxed)) {
		lap->since = 0;
		l->at = open_around(l, lap);
	}
}

void ca_laps_open_any(struct ca_laps *l, uint32_t key, uint64_t value, uint64_t time)
{
	struct ca_lap *lap;

	leave_off(l);
	lap = l->missed ? NULL : find_lap(l, key, value);
	if (!lap || lap->since) { /* crossing bursts may have left the place open */
		l->missed++;
		return;
	}
	*(l->at ? &l->at->recent : &l->recent) = (uint32_t)(lap - l->base) + 1;
	ca_laps_open_at(l, lap, time);
}

/* Of a burst that did not begin: they are counted as laps of key 0. */
static void count_end(struct ca_laps *l, uint64_t time)
{
	struct ca_lap *at = l->at, *lap;

	l->at = NULL;
	lap = find_lap(l, CA_KEY_DISABLED, 0);
	l->at = at;
	if (!lap)
		return;
	lap->count++;
	ca_laps_tell_time(l, time);
}

/* Bursts may cross: one that ends before what it holds has held that until now. */
struct ca_lap *ca_laps_close_any(struct ca_laps *l, uint32_t key, uint64_t time)
{
	struct ca_lap *lap, *inside = NULL, *around;
	uint32_t bound = l->chunks * CA_LAPS_OF_CHUNK;

	if (l->missed) {
		l->missed--;
		return NULL;
	}
	leave_off(l);
	lap = l->at;
	while (lap && lap->key != key && bound-- > 0) {
		inside = lap;
		lap = open_around(l, lap);
	}
	if (!lap || lap->key != key) {
		count_end(l, time);
		return NULL;
	}
	time = ca_laps_tell_time(l, time);
	around = open_around(l, lap);
	if (inside) {
		lap->inner += time - inside->charged;
		inside->charged = time;
	} else {
		l->at = around;
	}
	return ca_laps_add(lap, around, time);
}

void ca_laps_throttle(struct ca_laps *l, struct ca_lap *lap)
{
	lap->throttled = 1;
	if (lap->key > CA_KEY_USER && lap->key <= CA_KEY_USER + CA_USER_ID_LAST)
		atomic_store_explicit(&l->off[lap->key - CA_KEY_USER], 1, memory_order_relaxed);
}

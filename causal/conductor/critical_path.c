/* SPDX-License-Identifier: MIT */
/* The critical path; see critical_path.h. A path is the time in each node of the profile on it. Threads share one until one of
 * them goes on, so that a wake costs next to nothing; then it is copied. */
#include "causal/conductor/critical_path.h"
#include "causal/results/samples.h"
#include "core/by_index.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

enum {
	WAKES = 8192,    /* paths of who woke others: so many are remembered, ... */
	LEAST = 256,     /* ... or at least so many where they are long: ... */
	PARTS = 1 << 18, /* ... all paths have more nodes than these together, 4 MiB */
	MOST = 4096,     /* nodes on a path; of others it has the one above */
	MANY = 1 << 16   /* records, that are put in order as they are */
};

enum what { SPENT, WAKES_OTHERS, WOKEN, BEGINS, ENDS };
struct record {
	uint64_t time, order;
	uint64_t value; /* ns, or the pair */
	uint32_t thread, node;
	enum what what;
};
struct part {
	uint32_t node;
	uint64_t ns;
};
struct way {
	unsigned refs;
	uint32_t n;
	struct part part[]; /* by node */
};
struct thread {
	struct way *way; /* NULL: nothing */
	uint64_t last;
};
struct wake {
	uint64_t pair;
	struct way *way;
};
struct ca_critical_path {
	struct ca_samples *samples;
	struct ca_vec records;
	struct ca_by_index threads;
	uint64_t earliest; /* of the records */
	uint64_t parts;    /* of all paths */
	uint64_t oldest;   /* pair that may be remembered */
	uint32_t ended;    /* the thread that ended last; 0: none has */
	struct wake wake[WAKES];
};

struct ca_critical_path *ca_critical_path_new(struct ca_samples *samples)
{
	struct ca_critical_path *p = calloc(1, sizeof *p);

	if (p) {
		p->samples = samples;
		p->records.size = sizeof(struct record);
		p->threads.size = sizeof(struct thread);
	}
	return p;
}

static struct way *share(struct way *way)
{
	if (way)
		way->refs++;
	return way;
}

static void leave(struct ca_critical_path *p, struct way *way)
{
	if (!way || --way->refs)
		return;
	p->parts -= way->n;
	free(way);
}

void ca_critical_path_free(struct ca_critical_path *p)
{
	struct thread *t;

	if (!p)
		return;
	for (uint32_t i = 0; (t = ca_by_index_next(&p->threads, &i)); i++)
		leave(p, t->way);
	for (size_t i = 0; i < WAKES; i++)
		leave(p, p->wake[i].way);
	ca_vec_free(&p->records);
	ca_by_index_free(&p->threads);
	free(p);
}

/* ---- what is told ---------------------------------------------------------------------------*/
static void note(struct ca_critical_path *p, enum what what, uint32_t thread, uint64_t time, uint32_t node,
		 uint64_t value)
{
	struct record *r = ca_vec_push(&p->records);

	if (!r)
		return;
	*r = (struct record){ time, p->records.n, value, thread, node, what };
	if (p->records.n == 1 || time < p->earliest)
		p->earliest = time;
}

void ca_critical_path_spent(struct ca_critical_path *p, uint32_t thread, uint64_t time, uint32_t node,
			    uint64_t ns)
{
	note(p, SPENT, thread, time, node, ns);
}

void ca_critical_path_wakes(struct ca_critical_path *p, uint32_t thread, uint64_t time, uint64_t pair)
{
	note(p, WAKES_OTHERS, thread, time, 0, pair);
}

void ca_critical_path_woken(struct ca_critical_path *p, uint32_t thread, uint64_t time, uint64_t pair)
{
	note(p, WOKEN, thread, time, 0, pair);
}

void ca_critical_path_begins(struct ca_critical_path *p, uint32_t thread, uint64_t time)
{
	note(p, BEGINS, thread, time, 0, 0);
}

void ca_critical_path_ends(struct ca_critical_path *p, uint32_t thread, uint64_t time)
{
	note(p, ENDS, thread, time, 0, 0);
}

/* ---- in the order in which it happened ------------------------------------------------------*/
/* Room for one more function, for this thread alone. False: no memory. */
static bool own(struct ca_critical_path *p, struct thread *t)
{
	uint32_t n = t->way ? t->way->n : 0;
	struct way *way;

	if (t->way && t->way->refs == 1) {
		way = realloc(t->way, sizeof *way + (n + 1) * sizeof *way->part);
	} else {
		way = malloc(sizeof *way + (n + 1) * sizeof *way->part);
		if (way && n)
			memcpy(way->part, t->way->part, n * sizeof *way->part);
		if (way) {
			leave(p, t->way);
			p->parts += n;
		}
	}
	if (!way)
		return false;
	way->refs = 1;
	way->n = n;
	t->way = way;
	return true;
}

/* Where it is, or would be. */
static uint32_t find(const struct way *way, uint32_t node)
{
	uint32_t low = 0, high = way->n;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (way->part[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void spend(struct ca_critical_path *p, struct thread *t, uint32_t node, uint64_t ns)
{
	uint32_t i;

	if (!own(p, t))
		return;
	while ((i = find(t->way, node)) == t->way->n || t->way->part[i].node != node) {
		if (t->way->n >= MOST) {
			if (!node)
				return;
			node = p->samples->node[node].parent;
			continue;
		}
		memmove(&t->way->part[i + 1], &t->way->part[i], (t->way->n++ - i) * sizeof *t->way->part);
		t->way->part[i] = (struct part){ node, 0 };
		p->parts++;
	}
	t->way->part[i].ns += ns;
}

static void go_on_with(struct ca_critical_path *p, struct thread *t, struct way *way)
{
	struct way *before = t->way;

	t->way = share(way);
	leave(p, before);
}

static void forget(struct ca_critical_path *p, uint32_t thread)
{
	struct thread *t = ca_by_index_find(&p->threads, thread);

	if (t)
		leave(p, t->way);
	ca_by_index_drop(&p->threads, thread);
}

/* Numbers of pairs rise. Where paths are long, the oldest are forgotten. */
static void remember(struct ca_critical_path *p, uint64_t pair, struct way *way)
{
	struct wake *wake = &p->wake[pair % WAKES];

	share(way);
	leave(p, wake->way);
	*wake = (struct wake){ pair, way };
	if (p->oldest + WAKES <= pair)
		p->oldest = pair - WAKES + 1;
	for (; p->parts > PARTS && p->oldest + LEAST < pair; p->oldest++) {
		wake = &p->wake[p->oldest % WAKES];
		leave(p, wake->way);
		*wake = (struct wake){ 0 };
	}
}

static void apply(struct ca_critical_path *p, const struct record *r)
{
	struct wake *wake = &p->wake[r->value % WAKES];
	struct thread *t = ca_by_index_get(&p->threads, r->thread), *first;

	if (!t)
		return;
	t->last = r->time;
	switch (r->what) {
	case SPENT:
		spend(p, t, r->node, r->value);
		break;
	case WAKES_OTHERS:
		remember(p, r->value, t->way);
		break;
	case WOKEN:
		if (wake->pair == r->value)
			go_on_with(p, t, wake->way);
		break;
	case BEGINS:
		/* who has made it tells so next; of a process it is not known who: of the first one, mostly */
		first = ca_by_index_find(&p->threads, 1);
		if (first)
			go_on_with(p, t, first->way);
		break;
	case ENDS:
		if (p->ended && p->ended != r->thread)
			forget(p, p->ended);
		p->ended = r->thread;
		break;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

void ca_critical_path_step(struct ca_critical_path *p, uint64_t time)
{
	struct record *r = p->records.at;
	size_t n = p->records.n, i = 0;

	if (n > MANY)
		time = UINT64_MAX;
	if (!n || p->earliest >= time)
		return;
	qsort(r, n, sizeof *r, by_time);
	for (; i < n && r[i].time < time; i++)
		apply(p, &r[i]);
	p->records.n = n - i;
	memmove(r, r + i, p->records.n * sizeof *r);
	for (i = 0; i < p->records.n; i++)
		r[i].order = i;
	p->earliest = p->records.n ? r->time : 0;
}

/* If none has ended, the one that was heard of last. */
static const struct thread *find_last(const struct ca_critical_path *p)
{
	const struct thread *t, *found = NULL;

	if (p->ended)
		return ca_by_index_find(&p->threads, p->ended);
	for (uint32_t i = 1; (t = ca_by_index_next(&p->threads, &i)); i++)
		if (!found || t->last > found->last)
			found = t;
	return found;
}

void ca_critical_path_finish(struct ca_critical_path *p)
{
	const struct thread *t;

	ca_critical_path_step(p, UINT64_MAX);
	t = find_last(p);
	for (uint32_t i = 0; t && t->way && i < t->way->n; i++)
		p->samples->node[t->way->part[i].node].path = t->way->part[i].ns;
}

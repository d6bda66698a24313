/* SPDX-License-Identifier: MIT */
/* Reading the S log; see selection_log.h. Entries are kept until their window is summed, sorted by
 * time then (entries about off-CPU times come after the fact), and swept once. */
#include "causal/conductor/selection_log.h"
#include "core/session.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t time, order, value;
	uint32_t thread, type;
};
struct thread_state {
	uint8_t in, external, part;
	int8_t off;
};
struct ca_selection_log {
	struct ca_session *session;
	uint64_t cursor;
	struct ca_vec entries; /* struct entry */
	size_t sorted;         /* so many of them are */
	bool overflow;
	struct thread_state state[CA_MAX_THREADS]; /* at the end of the last window */
};

struct ca_selection_log *ca_selection_log_new(struct ca_session *session)
{
	struct ca_selection_log *log = calloc(1, sizeof *log);

	if (log) {
		log->session = session;
		log->entries.size = sizeof(struct entry);
	}
	return log;
}

void ca_selection_log_free(struct ca_selection_log *log)
{
	if (log)
		ca_vec_free(&log->entries);
	free(log);
}

void ca_selection_log_restart(struct ca_selection_log *log, uint64_t first)
{
	log->cursor = first;
	log->entries.n = log->sorted = 0;
	log->overflow = false;
	memset(log->state, 0, sizeof log->state);
}

static bool keep(struct ca_selection_log *log, uint64_t time, uint32_t thread, uint32_t type, uint64_t value)
{
	struct entry *entry = ca_vec_push(&log->entries);

	if (entry)
		*entry = (struct entry){ time, log->entries.n - 1, value, thread, type };
	return entry;
}

static bool take(struct ca_selection_log *log, const struct ca_log_entry *e)
{
	if (e->type == CA_LOG_WAS_OFF)
		return keep(log, e->time, e->thread, CA_LOG_OFF, 0) &&
		       keep(log, e->value, e->thread, CA_LOG_ON, CA_LOG_OFF);
	return keep(log, e->time, e->thread, e->type, e->value);
}

uint64_t ca_selection_log_read(struct ca_selection_log *log)
{
	struct ca_session *s = log->session;
	uint64_t head = atomic_load_explicit(&s->log_head, memory_order_acquire), taken = 0;

	if (head - log->cursor > CA_LOG_ENTRIES - CA_LOG_HOLE) {
		log->overflow = true;
		taken = head - log->cursor;
		log->cursor = head;
	}
	for (; log->cursor < head; log->cursor++) {
		struct ca_log_entry e;
		enum ca_log_look look = ca_selection_look(s->log, log->cursor, head, &e);

		if (look == CA_LOG_NOT_YET)
			break;
		if (look == CA_LOG_LOST || e.thread >= CA_MAX_THREADS || !take(log, &e)) {
			log->overflow = true;
			continue;
		}
		taken++;
	}
	return taken;
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* What comes after the fact is a little late: all but the end is sorted already. */
static void sort(struct ca_selection_log *log)
{
	struct entry *e = log->entries.at, *first;
	size_t n = log->entries.n, sorted = log->sorted, low = 0, high;

	while (sorted < n && (!sorted || by_time(&e[sorted - 1], &e[sorted]) <= 0))
		sorted++;
	log->sorted = n;
	if (sorted == n)
		return;
	first = &e[sorted];
	for (size_t i = sorted + 1; i < n; i++)
		first = by_time(&e[i], first) < 0 ? &e[i] : first;
	for (high = sorted; low < high;) {
		size_t middle = (low + high) / 2;

		if (by_time(&e[middle], first) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	qsort(e + low, n - low, sizeof *e, by_time);
}

static bool counts(const struct thread_state *t)
{
	return t->in && (t->external || t->off <= 0);
}

static void change(struct thread_state *t, const struct entry *e)
{
	switch (e->type) {
	case CA_LOG_ENTER:
		*t = (struct thread_state){ .in = 1, .part = (uint8_t)e->value };
		break;
	case CA_LOG_EXIT:
		*t = (struct thread_state){ 0 };
		break;
	case CA_LOG_OFF:
		t->off++;
		break;
	case CA_LOG_EXTERNAL:
		t->external = 1;
		break;
	case CA_LOG_ON:
		if (e->value == CA_LOG_EXTERNAL)
			t->external = 0;
		else
			t->off--;
		break;
	default:
		break;
	}
}

/* How many threads are at work in each layer of S; all that is summed over the layers. */
struct layers {
	unsigned n, active[CA_PARTS];
	uint32_t width[CA_PARTS];
};

static void add_thread(struct layers *l, const struct thread_state *t, int by)
{
	if (counts(t))
		for (unsigned k = 0; k < l->n && (!k || k <= t->part); k++)
			l->active[k] += (unsigned)by;
}

static uint64_t active_time(const struct layers *l, uint64_t ns)
{
	uint64_t sum = 0;

	for (unsigned k = 0; k < l->n; k++)
		sum += l->active[k] ? ca_selection_weigh(l->width[k], ns) : 0;
	return sum;
}

static uint64_t hit_time(const struct layers *l, uint64_t value)
{
	unsigned k = CA_LOG_HIT_LAYER(value) < l->n ? CA_LOG_HIT_LAYER(value) : l->n - 1;

	/* while S is active for certain, that time counts as a whole */
	return l->active[k] ? 0 : ca_selection_weigh(l->width[k], CA_LOG_HIT_NS(value));
}

/* state: of each thread at `start`, and from then on at `end`. next: the first entry from there on. */
static struct ca_selection_log_sum sum_up(struct ca_selection_log *log, struct thread_state *state,
					  uint64_t start, uint64_t end, size_t *next)
{
	struct ca_selection_log_sum sum = { .overflow = log->overflow };
	uint64_t at = start;
	struct layers l = { 0 };
	struct entry *entry = log->entries.at;
	size_t i, n = log->entries.n, used = atomic_load(&log->session->slots_used);

	l.n = ca_selection_layers(&log->session->selection, l.width);
	for (i = 0; i < used && i < CA_MAX_THREADS; i++)
		add_thread(&l, &state[i], 1);
	sort(log);
	for (i = 0; i < n && entry[i].time < end; i++) {
		const struct entry *e = &entry[i];
		struct thread_state *t = &state[e->thread];

		if (e->type == CA_LOG_HIT) {
			if (e->time >= start) {
				sum.s_time += hit_time(&l, e->value);
				sum.entries++;
			}
			continue;
		}
		if (e->type == CA_LOG_PROBES) {
			if (e->time >= start)
				sum.probes += hit_time(&l, e->value);
			continue;
		}
		if (e->type == CA_LOG_STILL || e->type == CA_LOG_HELD) {
			if (e->time >= start)
				sum.still += e->value;
			continue;
		}
		if (e->time > at) {
			sum.s_time += active_time(&l, e->time - at);
			at = e->time;
		}
		if (e->type == CA_LOG_ENTER && e->time >= start)
			sum.entries++;
		add_thread(&l, t, -1);
		change(t, e);
		add_thread(&l, t, 1);
	}
	if (end > at)
		sum.s_time += active_time(&l, end - at);
	*next = i;
	return sum;
}

struct ca_selection_log_sum ca_selection_log_sum(struct ca_selection_log *log, uint64_t start, uint64_t end)
{
	size_t i, left = 0;
	struct ca_selection_log_sum sum = sum_up(log, log->state, start, end, &i);
	struct entry *entry = log->entries.at;

	while (i < log->entries.n)
		entry[left++] = entry[i++];
	log->entries.n = log->sorted = left;
	log->overflow = false;
	return sum;
}

struct ca_selection_log_sum ca_selection_log_peek(struct ca_selection_log *log, uint64_t start, uint64_t end)
{
	struct thread_state *state = malloc(sizeof log->state);
	struct ca_selection_log_sum sum = { 0 };
	size_t next;

	if (state) {
		memcpy(state, log->state, sizeof log->state);
		sum = sum_up(log, state, start, end, &next);
	}
	free(state);
	return sum;
}

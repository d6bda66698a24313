/* SPDX-License-Identifier: MIT */
/* Collecting the call graph; see callgraph.h. */
#include "core/callgraph.h"
#include "core/sink_tracks.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A burst that is open. */
struct frame {
	uint64_t begin;
	uint64_t charged; /* time up to here is in the `inner` of who lay around it */
	uint32_t key, row;
};

/* How often a key was called, all threads together. */
struct hot {
	uint64_t count, sum;
	bool throttled;
};

enum { HOT_KEYS = 1 << 20 }; /* others are never throttled */

static uint64_t throttle_at;

void ca_callgraph_throttle(uint64_t calls)
{
	throttle_at = calls;
}

void ca_callgraph_init(struct ca_callgraph *graph, enum ca_callgraph_form form, const struct ca_dict *dict)
{
	*graph = (struct ca_callgraph){
		.form = form,
		.dict = dict,
		.rows = { .size = sizeof(struct ca_callgraph_row) },
		.threads = { .size = sizeof(struct ca_callgraph_thread) },
		.hot = { .size = sizeof(struct hot) },
		.shown = { .size = sizeof(uint32_t) },
		.merged = CA_CALLGRAPH_NONE,
	};
}

void ca_callgraph_fini(struct ca_callgraph *graph)
{
	struct ca_callgraph_thread *thread = graph->threads.at;
	struct ca_callgraph_row *row = graph->rows.at;

	for (size_t i = 0; i < graph->threads.n; i++) {
		free(thread[i].name);
		ca_vec_free(&thread[i].frames);
	}
	for (size_t i = 0; i < graph->rows.n; i++)
		free(row[i].label);
	ca_vec_free(&graph->threads);
	ca_vec_free(&graph->rows);
	ca_vec_free(&graph->hot);
	ca_vec_free(&graph->shown);
	ca_map_free(&graph->by_place);
	ca_map_free(&graph->by_thread);
	ca_map_free(&graph->by_lap);
}

static struct ca_callgraph_thread *get_thread(struct ca_callgraph *graph, const struct ca_source *from)
{
	bool known;
	uint32_t *at = ca_map_add(&graph->by_thread, UINT64_C(1) << 63 | from->thread_index, &known);
	struct ca_callgraph_thread *thread = graph->threads.at;

	if (!at)
		return NULL;
	if (known && *at < graph->threads.n)
		return thread + *at;
	*at = (uint32_t)graph->threads.n;
	thread = ca_vec_push(&graph->threads);
	if (thread)
		*thread = (struct ca_callgraph_thread){ .from = *from,
							.first = CA_CALLGRAPH_NONE,
							.recent = CA_CALLGRAPH_NONE,
							.frames = { .size = sizeof(struct frame) } };
	return thread;
}

/* ---- rows */

static char *make_label(const struct ca_callgraph *graph, uint32_t key, uint64_t value)
{
	char buffer[CA_SINK_KEY_NAME], *text = NULL;
	const char *name = ca_sink_key_name(graph->dict, key, buffer);
	const char *of = value != 1 && graph->dict ? ca_dict_value_name(graph->dict, key, value) : NULL;

	return asprintf(&text, "%s%s%s", name, of ? ": " : "", of ? of : "") < 0 ? NULL : text;
}

static uint32_t add_row(struct ca_callgraph *graph, uint32_t thread, uint32_t above, uint32_t key,
			uint64_t value)
{
	struct ca_callgraph_row *row = ca_vec_push(&graph->rows);

	if (!row)
		return CA_CALLGRAPH_NONE;
	*row = (struct ca_callgraph_row){ .label = make_label(graph, key, value),
					  .above = above,
					  .first = CA_CALLGRAPH_NONE,
					  .next = CA_CALLGRAPH_NONE,
					  .recent = CA_CALLGRAPH_NONE,
					  .thread = thread,
					  .key = key,
					  .value = value,
					  .min = UINT64_MAX };
	if (!row->label) {
		graph->rows.n--;
		graph->rows.failed = true;
		return CA_CALLGRAPH_NONE;
	}
	if (above != CA_CALLGRAPH_NONE)
		row->depth = ca_callgraph_get(graph, above)->depth + 1;
	return (uint32_t)graph->rows.n - 1;
}

/* The row at that place, which may be new. */
static uint32_t find_row(struct ca_callgraph *graph, uint32_t thread, uint32_t above, uint32_t key,
			 uint64_t value)
{
	uint64_t around = above == CA_CALLGRAPH_NONE ? UINT64_C(1) << 32 | thread : above;
	uint64_t id = (around * UINT64_C(0x9e3779b97f4a7c15) ^ key) * UINT64_C(0xff51afd7ed558ccd) ^ value;

	for (;; id++) {
		bool known;
		uint32_t *at = ca_map_add(&graph->by_place, id ? id : 1, &known);
		const struct ca_callgraph_row *row;

		if (!at)
			return CA_CALLGRAPH_NONE;
		if (!known || *at >= graph->rows.n) {
			*at = (uint32_t)graph->rows.n;
			return add_row(graph, thread, above, key, value);
		}
		row = ca_callgraph_get(graph, *at);
		if (row->thread == thread && row->above == above && row->key == key && row->value == value)
			return *at;
	}
}

/* Where the row stands that was found last inside `above`; it moves when rows are added. */
static uint32_t *recent_inside(const struct ca_callgraph *graph, uint32_t thread, uint32_t above)
{
	if (above == CA_CALLGRAPH_NONE)
		return &((struct ca_callgraph_thread *)graph->threads.at)[thread].recent;
	return &((struct ca_callgraph_row *)graph->rows.at)[above].recent;
}

/* As find_row; mostly it is the one that was found there before. */
static uint32_t find_inside(struct ca_callgraph *graph, uint32_t thread, uint32_t above, uint32_t key,
			    uint64_t value)
{
	uint32_t found = *recent_inside(graph, thread, above);
	const struct ca_callgraph_row *row = ca_callgraph_get(graph, found);

	if (row && row->key == key && row->value == value)
		return found;
	found = find_row(graph, thread, above, key, value);
	*recent_inside(graph, thread, above) = found;
	return found;
}

/* Only a value with a name is told apart, and each task is not: there may be any number of them. */
static uint64_t told_apart(const struct ca_callgraph *graph, const struct ca_event *event)
{
	bool named = event->value != 1 && event->key != CA_KEY_TASK && graph->dict &&
		     ca_dict_value_name(graph->dict, event->key, event->value);

	return named ? event->value : 1;
}

/* The innermost frame before `n` that has a row. */
static uint32_t row_around(const struct frame *frame, size_t n)
{
	while (n > 0 && frame[n - 1].row == CA_CALLGRAPH_NONE)
		n--;
	return n ? frame[n - 1].row : CA_CALLGRAPH_NONE;
}

static uint32_t row_of(struct ca_callgraph *graph, const struct ca_callgraph_thread *thread,
		       const struct ca_event *event)
{
	const struct frame *frame = thread->frames.at;
	uint32_t number = (uint32_t)(thread - (struct ca_callgraph_thread *)graph->threads.at);
	uint32_t above = CA_CALLGRAPH_NONE, row;
	uint64_t value = told_apart(graph, event);

	if (graph->form != CA_CALLGRAPH_FLAT)
		above = row_around(frame, thread->frames.n);
	if (graph->rows.n >= CA_CALLGRAPH_ROWS ||
	    (above != CA_CALLGRAPH_NONE && ca_callgraph_get(graph, above)->depth >= CA_CALLGRAPH_DEPTH))
		row = CA_CALLGRAPH_NONE;
	else if (graph->form == CA_CALLGRAPH_TIMELINE)
		row = add_row(graph, number, above, event->key, value);
	else
		row = find_inside(graph, number, above, event->key, value);
	graph->left_out += row == CA_CALLGRAPH_NONE;
	return row;
}

static void add_length(struct ca_callgraph_row *row, uint64_t begin, uint64_t length)
{
	double before = (double)length - row->mean;

	row->begin = row->count ? row->begin : begin;
	row->count++;
	row->sum += length;
	row->last = length;
	row->min = row->min < length ? row->min : length;
	row->max = row->max > length ? row->max : length;
	row->mean += before / (double)row->count;
	row->m2 += before * ((double)length - row->mean);
}

/* ---- throttling */

static struct hot *get_hot(struct ca_callgraph *graph, uint32_t key)
{
	return key < HOT_KEYS ? ca_vec_reach(&graph->hot, key) : NULL;
}

uint64_t ca_callgraph_throttled(const struct ca_callgraph *graph, uint32_t key)
{
	const struct hot *hot = graph->hot.at;

	return key < graph->hot.n && hot[key].throttled ? hot[key].count : 0;
}

/* Its ends may not even be raised from now on. */
static void forget_frames(struct ca_callgraph *graph, uint32_t key)
{
	struct ca_callgraph_thread *thread = graph->threads.at;

	for (size_t i = 0; i < graph->threads.n; i++) {
		struct frame *frame = thread[i].frames.at;
		size_t kept = 0;

		for (size_t k = 0; k < thread[i].frames.n; k++)
			if (frame[k].key != key)
				frame[kept++] = frame[k];
		thread[i].frames.n = kept;
	}
}

static void note_call(struct ca_callgraph *graph, uint32_t key, uint64_t length)
{
	struct hot *hot = throttle_at ? get_hot(graph, key) : NULL;

	if (!hot)
		return;
	hot->count++;
	hot->sum += length;
	if (hot->count < throttle_at || hot->sum / hot->count >= CA_RINGS_SHORT)
		return;
	hot->throttled = true;
	forget_frames(graph, key);
}

/* ---- events */

static void begin(struct ca_callgraph *graph, struct ca_callgraph_thread *thread,
		  const struct ca_event *event)
{
	uint32_t row = row_of(graph, thread, event);
	struct frame *frame = ca_vec_push(&thread->frames);

	if (!frame) {
		graph->rows.failed = true;
		return;
	}
	*frame = (struct frame){ event->time, event->time, event->key, row };
	graph->begin = graph->begin && graph->begin < event->time ? graph->begin : event->time;
}

/* To the one around it, what it has taken since it was charged last. */
static void charge(struct ca_callgraph *graph, struct frame *frame, size_t at, uint64_t time)
{
	struct ca_callgraph_row *row = graph->rows.at;
	uint32_t around = row_around(frame, at);

	if (around != CA_CALLGRAPH_NONE && frame[at].row != CA_CALLGRAPH_NONE)
		row[around].inner += time - frame[at].charged;
	frame[at].charged = time;
}

/* Bursts may cross: one that ends before what it holds has held that until now. */
static void close_frame(struct ca_callgraph *graph, struct ca_callgraph_thread *thread, size_t at,
			uint64_t time)
{
	struct frame *frame = thread->frames.at, closed = frame[at];

	if (at + 1 < thread->frames.n)
		charge(graph, frame, at + 1, time);
	charge(graph, frame, at, time);
	if (closed.row != CA_CALLGRAPH_NONE)
		add_length((struct ca_callgraph_row *)graph->rows.at + closed.row, closed.begin,
			   time - closed.begin);
	thread->frames.n--;
	for (; at < thread->frames.n; at++)
		frame[at] = frame[at + 1];
	note_call(graph, closed.key, time - closed.begin);
}

static void end(struct ca_callgraph *graph, struct ca_callgraph_thread *thread, const struct ca_event *event)
{
	const struct frame *frame = thread->frames.at;
	size_t at = thread->frames.n;

	while (at > 0 && frame[at - 1].key != event->key)
		at--;
	if (at)
		close_frame(graph, thread, at - 1, event->time);
	else
		graph->ends++;
}

void ca_callgraph_take(struct ca_callgraph *graph, const struct ca_source *from, const struct ca_event *event,
		       size_t n)
{
	struct ca_callgraph_thread *thread = get_thread(graph, from);

	for (size_t i = 0; thread && i < n; i++) {
		thread->last = event[i].time;
		/* events are missing: who knows which of what is open has ended among them */
		if (event[i].key == CA_KEY_DROPPED) {
			graph->open += thread->frames.n;
			thread->frames.n = 0;
		}
		/* a thread's life is no call: it is what the calls lie in */
		if (event[i].key == CA_KEY_THREAD || event[i].key == CA_KEY_PROCESS ||
		    ca_callgraph_throttled(graph, event[i].key))
			continue;
		if (event[i].kind == CA_BURST_BEGIN)
			begin(graph, thread, &event[i]);
		else if (event[i].kind == CA_BURST_END)
			end(graph, thread, &event[i]);
	}
}

/* ---- laps */

/* As if the calls of both had been in one row (Chan, Golub and LeVeque 1979). */
static void merge_row(struct ca_callgraph_row *to, const struct ca_callgraph_row *from)
{
	uint64_t n = to->count + from->count;
	double apart = from->mean - to->mean;

	if (!from->count)
		return;
	to->m2 += from->m2 + apart * apart * (double)to->count * (double)from->count / (double)n;
	to->mean += apart * (double)from->count / (double)n;
	to->begin = to->count && to->begin < from->begin ? to->begin : from->begin;
	to->count = n;
	to->sum += from->sum;
	to->inner += from->inner;
	to->last = from->last;
	to->min = to->min < from->min ? to->min : from->min;
	to->max = to->max > from->max ? to->max : from->max;
}

/* The sum of squared distances from the mean, from that of squares: the integers are exact. */
static double squared_distances(const struct ca_lap *lap)
{
	unsigned __int128 squares = (unsigned __int128)lap->square_high << 64 | lap->square_low;
	unsigned __int128 of_sum = (unsigned __int128)lap->sum * lap->sum, whole = of_sum / lap->count;

	if (squares <= whole)
		return 0;
	return (double)(squares - whole) - (double)(of_sum % lap->count) / (double)lap->count;
}

/* Where the lap of that number went; NONE: nowhere. */
static uint32_t *row_of_lap(struct ca_callgraph *graph, const struct ca_source *from, uint32_t number)
{
	bool known;
	uint32_t *row = ca_map_add(&graph->by_lap, (uint64_t)(from->thread_index + 1) << 32 | number, &known);

	if (row && !known)
		*row = CA_CALLGRAPH_NONE;
	return row;
}

static uint32_t add_lap_row(struct ca_callgraph *graph, const struct ca_source *from, uint32_t thread,
			    const struct ca_lap *lap)
{
	uint32_t *around = lap->above ? row_of_lap(graph, from, lap->above) : NULL;
	uint32_t above = around && graph->form == CA_CALLGRAPH_TREE ? *around : CA_CALLGRAPH_NONE;
	const struct ca_event event = { .key = lap->key, .value = lap->value };

	if (graph->rows.n >= CA_CALLGRAPH_ROWS ||
	    (above != CA_CALLGRAPH_NONE && ca_callgraph_get(graph, above)->depth >= CA_CALLGRAPH_DEPTH))
		return CA_CALLGRAPH_NONE;
	return find_inside(graph, thread, above, lap->key, told_apart(graph, &event));
}

static void count_hot(struct ca_callgraph *graph, const struct ca_lap *lap)
{
	struct hot *hot = throttle_at ? get_hot(graph, lap->key) : NULL;

	if (!hot)
		return;
	hot->count += lap->count;
	hot->sum += lap->sum;
	hot->throttled |= lap->throttled;
}

/* What is still open ends where its thread did. The lap around it came before. */
static void end_lap(struct ca_callgraph *graph, const struct ca_source *from, struct ca_lap *lap,
		    uint32_t own)
{
	const uint32_t *above = lap->above ? row_of_lap(graph, from, lap->above) : NULL;
	uint64_t until = lap->mark > lap->charged ? lap->mark : lap->charged, charged = lap->charged;
	struct ca_callgraph_row *row = graph->rows.at;
	uint32_t around = above ? *above : CA_CALLGRAPH_NONE;

	if (!lap->since)
		return;
	ca_laps_add(lap, NULL, until);
	graph->open++;
	if (own != CA_CALLGRAPH_NONE)
		row[own].open = true;
	while (around != CA_CALLGRAPH_NONE && !row[around].open)
		around = row[around].above;
	if (around != CA_CALLGRAPH_NONE)
		row[around].inner += until - charged;
}

static void add_lap(struct ca_callgraph *graph, const struct ca_source *from, uint32_t thread,
		    struct ca_lap *lap, uint32_t number)
{
	uint32_t row = add_lap_row(graph, from, thread, lap), *known = row_of_lap(graph, from, number);

	if (known)
		*known = row;
	graph->left_out += row == CA_CALLGRAPH_NONE ? lap->count : 0;
	end_lap(graph, from, lap, row);
	if (!lap->count)
		return;
	graph->begin = graph->begin && graph->begin < lap->begin ? graph->begin : lap->begin;
	count_hot(graph, lap);
	if (row != CA_CALLGRAPH_NONE)
		merge_row((struct ca_callgraph_row *)graph->rows.at + row,
			  &(struct ca_callgraph_row){ .count = lap->count,
						      .sum = lap->sum,
						      .min = lap->min,
						      .max = lap->max,
						      .last = lap->last,
						      .inner = lap->inner,
						      .begin = lap->begin,
						      .mean = (double)lap->sum / (double)lap->count,
						      .m2 = squared_distances(lap) });
}

void ca_callgraph_add(struct ca_callgraph *graph, const struct ca_source *from, const struct ca_lap *lap,
		      uint32_t first, size_t n)
{
	struct ca_callgraph_thread *thread = get_thread(graph, from);

	for (size_t i = 0; thread && i < n; i++) {
		struct ca_lap own = lap[i];

		if (own.key == CA_KEY_DISABLED)
			graph->ends += own.count;
		else
			add_lap(graph, from,
				(uint32_t)(thread - (struct ca_callgraph_thread *)graph->threads.at), &own,
				first + (uint32_t)i);
	}
}

void ca_callgraph_name(struct ca_callgraph *graph, const struct ca_source *from, const char *name)
{
	struct ca_callgraph_thread *thread = get_thread(graph, from);
	char *text = thread ? strdup(name) : NULL;

	if (!text)
		return;
	free(thread->name);
	thread->name = text;
}

/* ---- the end */

static void merge(struct ca_callgraph *graph)
{
	size_t n = graph->rows.n;
	uint32_t *to = n ? calloc(n, sizeof *to) : NULL;
	struct ca_callgraph_thread *all = to ? ca_vec_push(&graph->threads) : NULL;

	if (!all) {
		graph->rows.failed |= n > 0;
		free(to);
		return;
	}
	*all = (struct ca_callgraph_thread){ .first = CA_CALLGRAPH_NONE };
	graph->merged = (uint32_t)graph->threads.n - 1;
	for (size_t i = 0; i < n; i++) {
		/* who is above has a smaller number */
		const struct ca_callgraph_row *row = ca_callgraph_get(graph, (uint32_t)i);
		uint32_t above = row->above == CA_CALLGRAPH_NONE ? CA_CALLGRAPH_NONE : to[row->above];

		to[i] = find_row(graph, graph->merged, above, row->key, row->value);
		if (to[i] != CA_CALLGRAPH_NONE)
			merge_row((struct ca_callgraph_row *)graph->rows.at + to[i],
				  ca_callgraph_get(graph, (uint32_t)i));
	}
	free(to);
}

static int by_length(const void *a, const void *b)
{
	const struct ca_callgraph_row *x = *(struct ca_callgraph_row *const *)a,
				      *y = *(struct ca_callgraph_row *const *)b;

	return x->sum != y->sum ? (x->sum > y->sum ? -1 : 1) : strcmp(x->label, y->label);
}

/* Rows were made in the order of time. */
static void set_order(struct ca_callgraph *graph)
{
	struct ca_callgraph_thread *thread = graph->threads.at;
	struct ca_callgraph_row *row = graph->rows.at, **order = calloc(graph->rows.n + 1, sizeof *order);

	if (!order) {
		graph->rows.failed = true;
		return;
	}
	for (size_t i = 0; i < graph->rows.n; i++)
		order[i] = &row[i];
	if (graph->form != CA_CALLGRAPH_TIMELINE)
		qsort(order, graph->rows.n, sizeof *order, by_length);
	for (size_t i = 0; i < graph->threads.n; i++)
		thread[i].first = CA_CALLGRAPH_NONE;
	for (size_t i = 0; i < graph->rows.n; i++)
		row[i].first = CA_CALLGRAPH_NONE;
	for (size_t i = graph->rows.n; i-- > 0;) {
		uint32_t *first = order[i]->above == CA_CALLGRAPH_NONE ? &thread[order[i]->thread].first
								       : &row[order[i]->above].first;

		order[i]->next = *first;
		*first = (uint32_t)(order[i] - row);
	}
	free(order);
}

static int by_index(const void *a, const void *b, void *of)
{
	const struct ca_callgraph_thread *thread = of, *x = &thread[*(const uint32_t *)a],
					 *y = &thread[*(const uint32_t *)b];

	return x->from.thread_index < y->from.thread_index ? -1 : x->from.thread_index > y->from.thread_index;
}

/* Those that have rows. */
static void list_threads(struct ca_callgraph *graph)
{
	for (uint32_t i = 0; i < graph->threads.n; i++)
		if (((struct ca_callgraph_thread *)graph->threads.at)[i].first != CA_CALLGRAPH_NONE)
			ca_vec_add(&graph->shown, &i, 1);
	if (graph->shown.n)
		qsort_r(graph->shown.at, graph->shown.n, graph->shown.size, by_index, graph->threads.at);
}

void ca_callgraph_end(struct ca_callgraph *graph)
{
	for (size_t i = 0; i < graph->threads.n; i++) {
		struct ca_callgraph_thread *thread = (struct ca_callgraph_thread *)graph->threads.at + i;

		for (; thread->frames.n; graph->open++)
			close_frame(graph, thread, thread->frames.n - 1, thread->last);
	}
	/* begun, and then forgotten because its key was throttled */
	for (size_t i = 0; i < graph->rows.n; i++) {
		struct ca_callgraph_row *row = (struct ca_callgraph_row *)graph->rows.at + i;

		if (!row->count) {
			row->begin = graph->begin;
			row->min = 0;
		}
	}
	set_order(graph);
	list_threads(graph);
	if (graph->shown.n > 1 && graph->form != CA_CALLGRAPH_TIMELINE) {
		merge(graph);
		set_order(graph);
	}
}

double ca_callgraph_variance(const struct ca_callgraph_row *row)
{
	return row->count > 1 ? row->m2 / (double)(row->count - 1) : 0;
}

double ca_callgraph_self(const struct ca_callgraph_row *row)
{
	if (!row->sum)
		return 100;
	/* what was in calls that have no length, because events are missing, may be more */
	return row->inner < row->sum ? 100 * (1 - (double)row->inner / (double)row->sum) : 0;
}

const struct ca_callgraph_row *ca_callgraph_after(const struct ca_callgraph *graph,
						  const struct ca_callgraph_row *row)
{
	if (row->first != CA_CALLGRAPH_NONE)
		return ca_callgraph_get(graph, row->first);
	while (row && row->next == CA_CALLGRAPH_NONE)
		row = ca_callgraph_get(graph, row->above);
	return row ? ca_callgraph_get(graph, row->next) : NULL;
}

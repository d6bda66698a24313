/* SPDX-License-Identifier: MIT */
/* The records of a .prv; see paraver.h. */
#include "core/heap.h"
#include "core/paraver.h"
#include "core/sink_tracks.h"
#include <inttypes.h>
#include <stdlib.h>

enum stream_kind { STATES, EVENTS, COMMUNICATIONS };

/* Something that has a next record. */
struct stream {
	enum stream_kind kind;
	struct ca_trace_cursor cursor;
	struct ca_sink_track track; /* what is open */
	uint64_t since;             /* STATES: when the present one began */
	uint32_t cpu, record_cpu;
	bool has;                  /* a record: */
	uint64_t time, end, value; /* EVENTS: the time only, the line is made when its turn comes */
};

/* ---- what goes from thread to thread */

static struct ca_paraver_message *communication_of(struct ca_paraver *w, const struct ca_event *event)
{
	bool known;
	uint32_t *at = ca_map_add(&w->flows, ca_sink_flow(event), &known);
	struct ca_paraver_message *more;

	if (!at || known)
		return at && *at < w->sent_count ? &w->sent[*at] : NULL;
	*at = UINT32_MAX;
	more = ca_vec_more(w->sent, w->sent_count, sizeof *more);
	if (!more)
		return NULL;
	w->sent = more;
	*at = (uint32_t)w->sent_count++;
	w->sent[*at] = (struct ca_paraver_message){ .key = event->key };
	return &w->sent[*at];
}

/* Both ends are there: then it is no event. */
static bool is_whole(struct ca_paraver *w, const struct ca_event *event)
{
	const uint32_t *at = ca_map_find(&w->flows, ca_sink_flow(event));

	return at && *at < w->sent_count && w->sent[*at].from && w->sent[*at].to;
}

void ca_paraver_records_survey(struct ca_paraver *w, const struct ca_trace_thread *thread)
{
	struct ca_trace_cursor cursor = { .trace = w->trace, .thread = thread };
	const struct ca_event *event;
	uint32_t cpu = 1;

	for (; (event = ca_trace_peek(&cursor)); ca_trace_skip(&cursor)) {
		bool begin = event->kind == CA_PTP_BEGIN;
		struct ca_paraver_message *one;

		if (w->cpu && event->key == w->cpu && event->value < UINT16_MAX)
			cpu = (uint32_t)event->value + 1;
		w->cpus = w->cpus > cpu ? w->cpus : cpu;
		if ((!begin && event->kind != CA_PTP_END) || !(one = communication_of(w, event)))
			continue;
		*(begin ? &one->send : &one->receive) = event->time;
		*(begin ? &one->from : &one->to) = thread;
		*(begin ? &one->send_cpu : &one->receive_cpu) = cpu;
	}
}

static int by_send(const void *a, const void *b)
{
	const struct ca_paraver_message *x = *(struct ca_paraver_message *const *)a;
	const struct ca_paraver_message *y = *(struct ca_paraver_message *const *)b;

	return x->send < y->send ? -1 : x->send > y->send;
}

bool ca_paraver_records_order(struct ca_paraver *w)
{
	w->order = calloc(w->sent_count + 1, sizeof(struct ca_paraver_message *));
	for (size_t i = 0; w->order && i < w->sent_count; i++)
		if (w->sent[i].from && w->sent[i].to)
			w->order[w->whole++] = &w->sent[i];
	if (w->order)
		qsort(w->order, w->whole, sizeof *w->order, by_send);
	return w->order;
}

/* ---- streams: the next record of each */

static void note_cpu(struct ca_paraver *w, struct stream *s, const struct ca_event *event)
{
	if (w->cpu && event->key == w->cpu && event->value < UINT16_MAX)
		s->cpu = (uint32_t)event->value + 1;
}

static void next_state(struct ca_paraver *w, struct stream *s)
{
	const struct ca_event *event;

	s->has = false;
	while (!s->has && (event = ca_trace_peek(&s->cursor))) {
		bool begin = event->kind == CA_STATE_BEGIN, end = event->kind == CA_STATE_END;

		note_cpu(w, s, event);
		if (event->key != w->state || !(begin || end)) {
			ca_trace_skip(&s->cursor);
			continue;
		}
		s->has = s->track.depth && event->time > s->since;
		if (s->has) {
			s->value = s->track.open[s->track.depth - 1].value;
			s->time = s->since;
			s->end = event->time;
		}
		s->since = event->time;
		if (begin)
			ca_sink_tracks_begin(&s->track, event);
		else if (s->track.depth)
			ca_sink_tracks_close(&s->track, s->track.depth - 1);
		ca_trace_skip(&s->cursor);
		if (!s->has)
			s->record_cpu = s->cpu;
	}
	if (s->has || !s->track.depth)
		return;
	/* the one that does not end */
	s->value = s->track.open[s->track.depth - 1].value;
	s->time = s->since;
	s->end = s->cursor.thread->last;
	s->has = s->end > s->time;
	s->track.depth = 0;
}

/* Is it in a record of events? */
static bool is_event(struct ca_paraver *w, const struct ca_event *event)
{
	bool state = event->kind == CA_STATE_BEGIN || event->kind == CA_STATE_END;
	bool ptp = event->kind == CA_PTP_BEGIN || event->kind == CA_PTP_END;

	return !(state && event->key == w->state && w->state) && !(ptp && is_whole(w, event));
}

static void next_events(struct ca_paraver *w, struct stream *s)
{
	const struct ca_event *event;

	while ((event = ca_trace_peek(&s->cursor)) && !is_event(w, event)) {
		note_cpu(w, s, event);
		ca_trace_skip(&s->cursor);
	}
	s->has = event;
	s->time = event ? event->time : 0;
}

static void next_communication(struct ca_paraver *w, struct stream *s)
{
	s->has = w->order_at < w->whole;
	s->time = s->has ? w->order[w->order_at]->send : 0;
}

static void next(struct ca_paraver *w, struct stream *s)
{
	if (s->kind == STATES)
		next_state(w, s);
	else if (s->kind == EVENTS)
		next_events(w, s);
	else
		next_communication(w, s);
}

/* ---- records */

static void put_place(struct ca_paraver *w, const struct ca_trace_thread *thread, uint32_t cpu)
{
	const struct ca_paraver_place *place = &w->place[thread - w->trace->thread];

	ca_sink_file_print(&w->prv, ":%" PRIu32 ":%u:%u:%u", cpu, place->application, place->task,
			   place->thread);
}

/* Paraver's values have a sign. */
static uint64_t clamp(uint64_t value)
{
	return value < INT64_MAX ? value : INT64_MAX;
}

/* The value that holds after an event: the next outer one of its key where one ends; else 0. */
static uint64_t value_after(struct stream *s, const struct ca_event *event)
{
	struct ca_sink_track *track = &s->track;

	if (ca_sink_is_begin(event->kind)) {
		ca_sink_tracks_begin(track, event);
	} else if (ca_sink_is_end(event->kind)) {
		size_t at = ca_sink_tracks_find(track, event);

		if (at == track->depth)
			return 0;
		ca_sink_tracks_close(track, at);
		at = ca_sink_tracks_find(track, event);
		return at < track->depth ? track->open[at].value : 0;
	}
	return event->value;
}

/* A burst or state that ends as another one of its key begins: no value holds between them. */
static bool is_followed(const struct ca_event *end, const struct ca_event *next)
{
	return ca_sink_is_end(end->kind) && next && next->time == end->time && next->key == end->key &&
	       ca_sink_is_begin(next->kind) && ca_sink_begin_of(end->kind) == next->kind;
}

/* All that the thread did at that time, in one. */
static void put_events(struct ca_paraver *w, struct stream *s)
{
	const struct ca_event *following = ca_trace_peek(&s->cursor);
	struct ca_event event;
	unsigned n = 0;

	while (following && following->time == s->time) {
		bool sub = w->state && following->key == w->state &&
			   (following->kind == CA_SUBSTATE_BEGIN || following->kind == CA_SUBSTATE_END);
		uint64_t value;

		event = *following;
		ca_trace_skip(&s->cursor);
		following = ca_trace_peek(&s->cursor);
		note_cpu(w, s, &event);
		if (!is_event(w, &event))
			continue;
		if (!n++) {
			ca_sink_file_text(&w->prv, "2");
			put_place(w, s->cursor.thread, s->cpu);
			ca_sink_file_print(&w->prv, ":%" PRIu64, s->time - w->first);
		}
		value = value_after(s, &event);
		if (!is_followed(&event, following))
			ca_sink_file_print(&w->prv, ":%" PRIu32 ":%" PRIu64,
					   sub ? (uint32_t)CA_PARAVER_SUBSTATE
					       : ca_paraver_labels_type(w, event.key),
					   clamp(value));
	}
	ca_sink_file_text(&w->prv, "\n");
	ca_sink_file_end(&w->prv, n);
}

static void put_state(struct ca_paraver *w, const struct stream *s)
{
	ca_sink_file_text(&w->prv, "1");
	put_place(w, s->cursor.thread, s->record_cpu);
	ca_sink_file_print(&w->prv, ":%" PRIu64 ":%" PRIu64 ":%" PRIu64 "\n", s->time - w->first,
			   s->end - w->first, clamp(s->value));
	ca_sink_file_end(&w->prv, 1);
}

static void put_communication(struct ca_paraver *w)
{
	const struct ca_paraver_message *one = w->order[w->order_at++];
	uint64_t send = one->send - w->first, receive = one->receive - w->first;

	/* who delivers says so before it is there, but the clock is read twice */
	receive = receive > send ? receive : send;
	ca_sink_file_text(&w->prv, "3");
	put_place(w, one->from, one->send_cpu);
	ca_sink_file_print(&w->prv, ":%" PRIu64 ":%" PRIu64, send, send);
	put_place(w, one->to, one->receive_cpu);
	ca_sink_file_print(&w->prv, ":%" PRIu64 ":%" PRIu64 ":0:%" PRIu32 "\n", receive, receive,
			   ca_paraver_labels_type(w, one->key));
	ca_sink_file_end(&w->prv, 2);
}

static void put_record(struct ca_paraver *w, struct stream *s)
{
	if (s->kind == EVENTS) {
		put_events(w, s);
	} else if (s->kind == STATES) {
		put_state(w, s);
		s->record_cpu = s->cpu;
	} else {
		put_communication(w);
	}
	next(w, s);
}

/* ---- the earliest of all: a heap */

static bool is_before(void *one, void *other)
{
	const struct stream *a = one, *b = other;

	if (!a->has || !b->has)
		return a->has;
	if (a->time != b->time)
		return a->time < b->time;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->cursor.thread < b->cursor.thread;
}

bool ca_paraver_records_put(struct ca_paraver *w)
{
	size_t n = 2 * w->trace->threads + 1;
	struct stream *stream = calloc(n, sizeof *stream), *first;
	void **heap = calloc(n, sizeof *heap);
	bool ok = stream && heap;

	for (size_t i = 0; ok && i < n; i++) {
		stream[i].kind = i == n - 1 ? COMMUNICATIONS : i % 2 ? EVENTS : STATES;
		stream[i].cpu = stream[i].record_cpu = 1;
		if (i < n - 1)
			stream[i].cursor = (struct ca_trace_cursor){ .trace = w->trace,
								     .thread = &w->trace->thread[i / 2] };
		next(w, &stream[i]);
		heap[i] = &stream[i];
	}
	if (ok)
		ca_heap_make(heap, n, is_before);
	while (ok && (first = heap[0])->has) {
		put_record(w, first);
		ca_heap_sift(heap, n, is_before);
	}
	for (size_t i = 0; ok && i < n; i++)
		free(stream[i].track.open);
	free(heap);
	free(stream);
	return ok;
}

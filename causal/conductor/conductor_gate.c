/* SPDX-License-Identifier: MIT */
/* Time windows of a timeline: what lies outside goes to no sink, and what began before a window or goes on after
 * it begins and ends with it. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include <stdlib.h>

/* All that is open begins at that time (outermost first), or ends. */
static void tell_open(struct ca_conductor *c, struct ca_sink_track *track, uint64_t time, bool begin)
{
	struct ca_source from = track->from;

	time = time > track->last ? time : track->last;
	track->last = time;
	for (size_t i = 0; i < track->depth; i++) {
		const struct ca_sink_open *open = &track->open[begin ? i : track->depth - 1 - i];
		struct ca_event event = {
			.time = time,
			.kind = (uint16_t)(open->kind + !begin),
			.key = open->key,
			.value = open->value,
		};

		ca_conductor_trace_pass(c, &from, &event, 1);
		c->cut++;
	}
}

static void leave_window(struct ca_conductor *c, struct ca_sink_track *track)
{
	uint64_t begin, end;

	if (track->shown && ca_windows_find(c->windows, track->window, &begin, &end))
		tell_open(c, track, end, false);
	track->shown = false;
}

static void enter_window(struct ca_conductor *c, struct ca_sink_track *track, uint64_t begin)
{
	if (track->window == begin)
		return;
	leave_window(c, track);
	track->window = begin;
	track->shown = true;
	tell_open(c, track, begin, true);
}

static void note(struct ca_sink_track *track, const struct ca_event *event)
{
	size_t at;

	if (ca_sink_is_begin(event->kind))
		ca_sink_tracks_begin(track, event);
	else if (ca_sink_is_end(event->kind) && (at = ca_sink_tracks_find(track, event)) < track->depth)
		ca_sink_tracks_close(track, at);
}

/* A thread that has ended has nothing open. */
static void forget(struct ca_conductor *c, uint32_t thread_index)
{
	struct ca_sink_track *track = ca_by_index_find(&c->gate, thread_index);

	if (track)
		free(track->open);
	ca_by_index_drop(&c->gate, thread_index);
}

void ca_conductor_gate(struct ca_conductor *c, const struct ca_source *from, const struct ca_event *event,
		       size_t n)
{
	struct ca_sink_track *track = ca_by_index_get(&c->gate, from->thread_index);
	bool ends = false;

	if (track)
		track->from = *from;
	for (size_t i = 0, next; track && i < n; i = next) {
		uint64_t begin, end;
		bool inside = ca_windows_holds(c->windows, event[i].time);

		ca_windows_find(c->windows, event[i].time, &begin, &end);
		next = i + 1;
		if (!inside) {
			leave_window(c, track);
			note(track, &event[i]);
			c->outside++;
			continue;
		}
		enter_window(c, track, begin);
		note(track, &event[i]);
		/* those of one sample stay together */
		for (; next < n && event[next].time < end; next++)
			note(track, &event[next]);
		track->last = event[next - 1].time;
		ca_conductor_trace_pass(c, from, event + i, next - i);
	}
	for (size_t i = 0; i < n; i++)
		ends |= event[i].key == CA_KEY_THREAD && event[i].kind == CA_BURST_END;
	if (track && ends)
		forget(c, from->thread_index);
}

void ca_conductor_gate_free(struct ca_conductor *c)
{
	for (uint32_t i = 0; ca_by_index_next(&c->gate, &i); i++)
		forget(c, i);
	ca_by_index_free(&c->gate);
}

void ca_conductor_gate_follow(struct ca_conductor *c)
{
	struct ca_sink_track *track;
	uint64_t begin, end;

	if (!ca_windows_find(c->windows, UINT64_MAX, &begin, &end))
		return;
	if (begin == c->started && end == UINT64_MAX) /* all was in it */
		return;
	for (uint32_t i = 0; (track = ca_by_index_next(&c->gate, &i)); i++) {
		if (track->depth) /* even if it raises nothing in the window */
			enter_window(c, track, begin);
		if (end != UINT64_MAX)
			leave_window(c, track);
	}
}

/* SPDX-License-Identifier: MIT */
/* What several sinks keep of each thread: which of its bursts and states are open, and what
 * events are called. Driver's process, one thread. */
#ifndef CA_CORE_SINK_TRACKS_H
#define CA_CORE_SINK_TRACKS_H
#include "core/dict.h"
#include "core/map.h"
#include "core/sink.h"
#include <stdbool.h>

struct ca_sink_open {
	uint64_t time, value;
	uint32_t key;
	uint16_t kind; /* CA_*_BEGIN */
};

struct ca_sink_track {
	struct ca_source from;
	uint64_t last;             /* time of its last event, ns */
	uint64_t window;           /* in which all of this was shown last: its beginning, ns ... */
	bool shown;                /* ... and still is; where there are windows */
	struct ca_sink_open *open; /* the outermost first */
	size_t depth;
};

/* Starts as {0}. */
struct ca_sink_tracks {
	struct ca_map by_index;
	struct ca_sink_track *track; /* in the order in which they were seen; they move */
	size_t count;
};

/* Valid until the next new one; NULL: no memory. *known: it was there. */
struct ca_sink_track *ca_sink_tracks_get(struct ca_sink_tracks *tracks, const struct ca_source *from,
					 bool *known);
void ca_sink_tracks_free(struct ca_sink_tracks *tracks);

/* Opens what the event begins. */
bool ca_sink_tracks_begin(struct ca_sink_track *track, const struct ca_event *event);
/* Where what the event ends is open: the innermost of its kind and key; track->depth: nowhere. */
size_t ca_sink_tracks_find(const struct ca_sink_track *track, const struct ca_event *event);
void ca_sink_tracks_close(struct ca_sink_track *track, size_t at);

/* How a sink with nested slices writes them; ca_sink_tracks_put sees to the order. */
struct ca_sink_slices {
	/* flags and events (1): of the event that is told; 0 where a slice is cut in two */
	void (*begin)(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		      uint64_t time, unsigned flags, unsigned events);
	void (*end)(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		    uint64_t time, unsigned flags, unsigned events);
	void (*instant)(void *sink, const struct ca_sink_track *track, const struct ca_event *event,
			const char *more);
	void (*counter)(void *sink, const struct ca_sink_track *track, const struct ca_event *event);
	/* Point to point; NULL: an instant says it. */
	void (*flow)(void *sink, const struct ca_sink_track *track, const struct ca_event *event);
};
void ca_sink_tracks_put(const struct ca_sink_slices *ops, void *sink, const struct ca_dict *dict,
			struct ca_sink_track *track, const struct ca_event *event);

/* States and bursts: the kind at the beginning of what this one ends. */
static inline uint16_t ca_sink_begin_of(uint16_t end)
{
	return (uint16_t)(end - 1);
}
static inline bool ca_sink_is_begin(unsigned kind)
{
	return kind == CA_STATE_BEGIN || kind == CA_SUBSTATE_BEGIN || kind == CA_BURST_BEGIN;
}
static inline bool ca_sink_is_end(unsigned kind)
{
	return kind == CA_STATE_END || kind == CA_SUBSTATE_END || kind == CA_BURST_END;
}

enum { CA_SINK_KEY_NAME = 24 };
/* What a key is called; in the buffer where it has no name. */
const char *ca_sink_key_name(const struct ca_dict *dict, uint32_t key, char buffer[CA_SINK_KEY_NAME]);
/* Values of the program's own keys have a sign; -value is how far below 0 it is. */
bool ca_sink_is_negative(const struct ca_dict *dict, uint32_t key, uint64_t value);
/* The level of the key, as a category. */
const char *ca_sink_category(const struct ca_dict *dict, uint32_t key);
/* One number for key and id of what goes from thread to thread; never 0. */
uint64_t ca_sink_flow(const struct ca_event *event);

#endif

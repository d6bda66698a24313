/* SPDX-License-Identifier: MIT */
/* What is open in each thread; see sink_tracks.h. */
#include "core/sink_tracks.h"
#include "core/vec.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct ca_sink_track *ca_sink_tracks_get(struct ca_sink_tracks *tracks, const struct ca_source *from,
					 bool *known)
{
	uint32_t *at = ca_map_add(&tracks->by_index, UINT64_C(1) << 63 | from->thread_index, known);
	struct ca_sink_track *more;

	if (!at)
		return NULL;
	if (*known && *at < tracks->count)
		return &tracks->track[*at];
	*known = false;
	more = ca_vec_more(tracks->track, tracks->count, sizeof *more);
	if (!more) {
		*at = UINT32_MAX;
		return NULL;
	}
	tracks->track = more;
	*at = (uint32_t)tracks->count++;
	more[*at] = (struct ca_sink_track){ .from = *from };
	return &more[*at];
}

void ca_sink_tracks_free(struct ca_sink_tracks *tracks)
{
	for (size_t i = 0; i < tracks->count; i++)
		free(tracks->track[i].open);
	free(tracks->track);
	ca_map_free(&tracks->by_index);
	*tracks = (struct ca_sink_tracks){ 0 };
}

bool ca_sink_tracks_begin(struct ca_sink_track *track, const struct ca_event *event)
{
	struct ca_sink_open *more = ca_vec_more(track->open, track->depth, sizeof *more);

	if (!more)
		return false;
	track->open = more;
	more[track->depth++] = (struct ca_sink_open){ event->time, event->value, event->key, event->kind };
	return true;
}

size_t ca_sink_tracks_find(const struct ca_sink_track *track, const struct ca_event *event)
{
	for (size_t at = track->depth; at-- > 0;)
		if (track->open[at].key == event->key &&
		    track->open[at].kind == ca_sink_begin_of(event->kind))
			return at;
	return track->depth;
}

void ca_sink_tracks_close(struct ca_sink_track *track, size_t at)
{
	track->depth--;
	for (; at < track->depth; at++)
		track->open[at] = track->open[at + 1];
}

/* Slices are inside one another. What is open inside the one that ends is cut in two. */
static void end(const struct ca_sink_slices *ops, void *sink, struct ca_sink_track *track,
		const struct ca_event *event)
{
	size_t at = ca_sink_tracks_find(track, event);
	bool burst = event->kind == CA_BURST_END;

	if (at == track->depth) {
		ops->instant(sink, track, event, " (end)");
		return;
	}
	for (size_t i = track->depth - 1; burst && i > at; i--)
		if (track->open[i].kind == CA_BURST_BEGIN)
			ops->end(sink, track, &track->open[i], event->time, 0, 0);
	ops->end(sink, track, &track->open[at], event->time, event->flags, 1);
	ca_sink_tracks_close(track, at);
	for (size_t i = at; burst && i < track->depth; i++)
		if (track->open[i].kind == CA_BURST_BEGIN)
			ops->begin(sink, track, &track->open[i], event->time, 0, 0);
}

void ca_sink_tracks_put(const struct ca_sink_slices *ops, void *sink, const struct ca_dict *dict,
			struct ca_sink_track *track, const struct ca_event *event)
{
	const struct ca_dict_key *key = dict ? ca_dict_get(dict, event->key) : NULL;
	bool pair = event->kind == CA_PTP_BEGIN || event->kind == CA_PTP_END;

	if (ca_sink_is_begin(event->kind) && ca_sink_tracks_begin(track, event))
		ops->begin(sink, track, &track->open[track->depth - 1], event->time, event->flags, 1);
	else if (ca_sink_is_end(event->kind))
		end(ops, sink, track, event);
	else if (pair && ops->flow)
		ops->flow(sink, track, event);
	else if (key && key->counter && event->kind == CA_POINT)
		ops->counter(sink, track, event);
	else
		ops->instant(sink, track, event, "");
	track->last = event->time;
}

const char *ca_sink_key_name(const struct ca_dict *dict, uint32_t key, char buffer[CA_SINK_KEY_NAME])
{
	const struct ca_dict_key *known = dict ? ca_dict_get(dict, key) : NULL;

	if (known)
		return known->name;
	snprintf(buffer, CA_SINK_KEY_NAME, "key-%" PRIu32, key);
	return buffer;
}

bool ca_sink_is_negative(const struct ca_dict *dict, uint32_t key, uint64_t value)
{
	const struct ca_dict_key *known = value > INT64_MAX && dict ? ca_dict_get(dict, key) : NULL;

	return known && known->id;
}

const char *ca_sink_category(const struct ca_dict *dict, uint32_t key)
{
	const struct ca_dict_key *known = dict ? ca_dict_get(dict, key) : NULL;

	return known ? ca_dict_level_name(known->level) : "unknown";
}

uint64_t ca_sink_flow(const struct ca_event *event)
{
	uint64_t mixed = (event->value ^ (uint64_t)event->key << 40) * UINT64_C(0x9e3779b97f4a7c15);

	mixed ^= mixed >> 31;
	return mixed ? mixed : 1;
}

/* SPDX-License-Identifier: MIT */
/* The json sink: trace events as Chrome and Perfetto read them ("JSON Array Format"), one line each.
 * Bursts are slices of their thread, states are asynchronous slices beside it (ids: key and thread),
 * points are instants, those of counters are counters, and what goes from thread to thread is an
 * empty slice at both ends with a flow between. Written by hand, not by json-c: an event is a line
 * that is known but for names and numbers. Driver's process, one thread. */
#include "core/sink_file.h"
#include "core/sink_tracks.h"
#include "core/utf8.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_json;

/* More than that is not exact in the readers' floating point numbers. */
#define EXACT (UINT64_C(1) << 53)

struct json {
	struct ca_sink_file file;
	struct ca_sink_tracks tracks;
	const struct ca_dict *dict;
};

static enum ca_status open_json(void **state, const char *target, const struct ca_dict *dict,
				const void *context, struct ca_err *err)
{
	struct json *json = calloc(1, sizeof *json);
	enum ca_status status;

	(void)context;
	if (!json)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the json sink");
	json->dict = dict;
	/* the array begins with something, so that each record can begin with a comma */
	status = ca_sink_file_open(&json->file, ca_sink_json.name, target,
				   "[\n{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"process_name\","
				   "\"args\":{\"name\":\"causal\"}}",
				   "\n]\n", err);
	if (status)
		free(json);
	else
		*state = json;
	return status;
}

/* Without the quotes. Bytes that are not UTF-8 become U+FFFD. */
static void put_text(struct ca_sink_file *file, const char *text)
{
	while (*text) {
		size_t n = ca_utf8_length((const unsigned char *)text);

		if (*text == '"' || *text == '\\')
			ca_sink_file_put(file, "\\", 1);
		if (!n)
			ca_sink_file_text(file, "\\ufffd");
		else if ((unsigned char)*text < ' ')
			ca_sink_file_print(file, "\\u%04x", (unsigned)*text);
		else
			ca_sink_file_put(file, text, n);
		text += n ? n : 1;
	}
}

static void put_value(struct json *json, uint32_t key, uint64_t value)
{
	bool negative = ca_sink_is_negative(json->dict, key, value);
	uint64_t size = negative ? -value : value;
	const char *quote = size <= EXACT ? "" : "\"";

	ca_sink_file_print(&json->file, "\"value\":%s%s%" PRIu64 "%s", quote, negative ? "-" : "", size,
			   quote);
}

static void put_head(struct json *json, const char *phase, const struct ca_source *from, uint64_t time)
{
	ca_sink_file_print(&json->file,
			   ",\n{\"ph\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32 ",\"ts\":%" PRIu64
			   ".%03u",
			   phase, from->process, from->thread, time / 1000, (unsigned)(time % 1000));
}

/* The key, and what its value is called. For states the value alone, where it has a name. */
static void put_name(struct json *json, uint32_t key, uint64_t value, bool state, const char *more)
{
	char buffer[CA_SINK_KEY_NAME];
	const char *name = json->dict ? ca_dict_value_name(json->dict, key, value) : NULL;

	ca_sink_file_print(&json->file, ",\"cat\":\"%s\",\"name\":\"", ca_sink_category(json->dict, key));
	if (!state || !name)
		put_text(&json->file, ca_sink_key_name(json->dict, key, buffer));
	if (name)
		ca_sink_file_text(&json->file, state ? "" : ": ");
	if (name)
		put_text(&json->file, name);
	ca_sink_file_print(&json->file, "%s\"", more);
}

static void put_id(struct json *json, const struct ca_sink_track *track, uint32_t key)
{
	ca_sink_file_print(&json->file, ",\"id\":\"%" PRIu32 ".%" PRIu32 "\"", key, track->from.thread_index);
}

static void put_begin(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		      uint64_t time, unsigned flags, unsigned events)
{
	struct json *json = sink;
	bool burst = open->kind == CA_BURST_BEGIN;

	put_head(json, burst ? "B" : "b", &track->from, time);
	put_name(json, open->key, open->value, !burst, "");
	if (!burst)
		put_id(json, track, open->key);
	ca_sink_file_text(&json->file, ",\"args\":{");
	put_value(json, open->key, open->value);
	if (flags)
		ca_sink_file_print(&json->file, ",\"flags\":%u", flags);
	ca_sink_file_text(&json->file, events ? "}}" : ",\"again\":true}}");
	ca_sink_file_end(&json->file, events);
}

static void put_end(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		    uint64_t time, unsigned flags, unsigned events)
{
	struct json *json = sink;
	bool burst = open->kind == CA_BURST_BEGIN;

	put_head(json, burst ? "E" : "e", &track->from, time);
	if (!burst) {
		put_name(json, open->key, open->value, true, "");
		put_id(json, track, open->key);
	}
	if (flags && events)
		ca_sink_file_print(&json->file, ",\"args\":{\"flags\":%u}}", flags);
	else
		ca_sink_file_text(&json->file, events ? "}" : ",\"args\":{\"goes on\":true}}");
	ca_sink_file_end(&json->file, events);
}

static void put_instant(void *sink, const struct ca_sink_track *track, const struct ca_event *event,
			const char *more)
{
	struct json *json = sink;
	put_head(json, "i", &track->from, event->time);
	put_name(json, event->key, event->value, false, more);
	ca_sink_file_text(&json->file, ",\"s\":\"t\",\"args\":{");
	put_value(json, event->key, event->value);
	ca_sink_file_print(&json->file, event->flags ? ",\"flags\":%u}}" : "}}", event->flags);
	ca_sink_file_end(&json->file, 1);
}

static void put_counter(void *sink, const struct ca_sink_track *track, const struct ca_event *event)
{
	struct json *json = sink;
	put_head(json, "C", &track->from, event->time);
	put_name(json, event->key, event->value, false, "");
	put_id(json, track, event->key);
	ca_sink_file_print(&json->file, ",\"args\":{\"value\":%" PRIu64 "}}", event->value);
	ca_sink_file_end(&json->file, 1);
}

/* A flow needs a slice at both ends. */
static void put_flow(void *sink, const struct ca_sink_track *track, const struct ca_event *event)
{
	struct json *json = sink;
	put_head(json, "X", &track->from, event->time);
	put_name(json, event->key, event->value, false, "");
	ca_sink_file_text(&json->file, ",\"dur\":0,\"args\":{");
	put_value(json, event->key, event->value);
	ca_sink_file_text(&json->file, "}}");
	put_head(json, event->kind == CA_PTP_BEGIN ? "s" : "f", &track->from, event->time);
	put_name(json, event->key, event->value, false, "");
	ca_sink_file_print(&json->file, ",\"id\":\"0x%" PRIx64 "\"%s}", ca_sink_flow(event),
			   event->kind == CA_PTP_BEGIN ? "" : ",\"bp\":\"e\"");
	ca_sink_file_end(&json->file, 1);
}

static const struct ca_sink_slices slices = { put_begin, put_end, put_instant, put_counter, put_flow };

static void put_meta(struct json *json, const struct ca_source *from, const char *what, const char *name)
{
	ca_sink_file_print(&json->file,
			   ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
			   ",\"name\":\"%s\",\"args\":{\"name\":\"",
			   from->process, from->thread, what);
	put_text(&json->file, name);
	ca_sink_file_text(&json->file, "\"}}");
	ca_sink_file_end(&json->file, 0);
}

static struct ca_sink_track *get_track(struct json *json, const struct ca_source *from)
{
	bool known;
	struct ca_sink_track *track = ca_sink_tracks_get(&json->tracks, from, &known);

	if (!track || known)
		return track;
	ca_sink_file_print(&json->file,
			   ",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
			   ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
			   from->process, from->thread, from->thread_index);
	ca_sink_file_end(&json->file, 0);
	return track;
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct json *json = state;
	struct ca_sink_track *track = get_track(json, from);

	for (size_t i = 0; track && i < n; i++)
		ca_sink_tracks_put(&slices, json, json->dict, track, &event[i]);
	if (!track)
		json->file.lost += n;
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	struct json *json = state;

	if (process_name)
		put_meta(json, from, "process_name", process_name);
	if (thread_name)
		put_meta(json, from, "thread_name", thread_name);
}

static enum ca_status close_json(void *state, struct ca_err *err)
{
	struct json *json = state;
	enum ca_status status;

	for (size_t i = 0; i < json->tracks.count; i++) {
		const struct ca_sink_track *track = &json->tracks.track[i];

		for (size_t at = track->depth; at-- > 0;)
			put_end(json, track, &track->open[at], track->last, 0, 0);
	}
	status = ca_sink_file_close(&json->file, err);
	ca_sink_tracks_free(&json->tracks);
	free(json);
	return status;
}

const struct ca_sink_ops ca_sink_json = {
	.name = "json",
	.description = "trace-event JSON for ui.perfetto.dev and chrome://tracing, into a file",
	.extension = ".json",
	.open = open_json,
	.events = take_events,
	.rename = take_name,
	.close = close_json,
};

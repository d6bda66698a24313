/* SPDX-License-Identifier: MIT */
/* The perfetto sink: Perfetto's own trace format (core/perfetto.proto), one packet for each event.
 * A track for each process and thread; bursts are slices on that of their thread, states, sub-states and
 * counters have tracks below it, one for each key. Names stand in the file once. Driver's process, one
 * thread. */
#include "core/sink_file.h"
#include "core/sink_tracks.h"
#include "core/strings.h"
#include "core/utf8.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_perfetto;

#ifdef HAVE_PROTOBUF_C
#include "core/perfetto.pb-c.h"

/* Numbers of the format. */
enum { CLOCK_MONOTONIC_ID = 3 };
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 };
/* Our own: which sequence; what annotations are called; whose track it is */
enum { SEQUENCE = 1 };
enum { NAME_VALUE = 1, NAME_FLAGS, NAME_CUT, NAMES = NAME_CUT };
enum { OF_THREAD, OF_STATE, OF_SUBSTATE, OF_COUNTER };
/* Bytes. A name that is longer is cut; a packet holds one or two. */
enum { NAME_ROOM = 1024, PACKET_ROOM = 3 * NAME_ROOM };

struct perfetto {
	struct ca_sink_file file;
	struct ca_sink_tracks tracks;
	struct ca_map described; /* tracks, by uuid */
	struct ca_strings names;
	const struct ca_dict *dict;
	bool begun;
};

static enum ca_status open_perfetto(void **state, const char *target, const struct ca_dict *dict,
				    const void *context, struct ca_err *err)
{
	struct perfetto *perfetto = calloc(1, sizeof *perfetto);
	enum ca_status status;

	(void)context;
	if (!perfetto)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the perfetto sink");
	perfetto->dict = dict;
	status = ca_sink_file_open(&perfetto->file, ca_sink_perfetto.name, target, "", "", err);
	if (status)
		free(perfetto);
	else
		*state = perfetto;
	return status;
}

static void put(struct perfetto *perfetto, Pf__TracePacket *packet, unsigned events)
{
	uint8_t bytes[PACKET_ROOM];
	Pf__Trace trace = PF__TRACE__INIT;

	trace.n_packet = 1;
	trace.packet = &packet;
	packet->has_trusted_packet_sequence_id = packet->has_sequence_flags = true;
	packet->trusted_packet_sequence_id = SEQUENCE;
	packet->sequence_flags = perfetto->begun ? STATE_NEEDED : STATE_CLEARED | STATE_NEEDED;
	perfetto->begun = true;
	ca_sink_file_put(&perfetto->file, bytes, pf__trace__pack(&trace, bytes));
	ca_sink_file_end(&perfetto->file, events);
}

static void intern(Pf__InternedString *string, uint64_t iid, char *name)
{
	pf__interned_string__init(string);
	string->has_iid = true;
	string->iid = iid;
	string->name = name;
}

/* Which clock it is, and the names that are always the same: of levels and of annotations. */
static void put_first(struct perfetto *perfetto, uint64_t time)
{
	static const char *const texts[NAMES] = { "value", "flags", "cut" };
	Pf__TracePacket packet = PF__TRACE_PACKET__INIT;
	Pf__ClockSnapshot snapshot = PF__CLOCK_SNAPSHOT__INIT;
	Pf__ClockSnapshot__Clock clock = PF__CLOCK_SNAPSHOT__CLOCK__INIT, *clocks = &clock;
	Pf__TracePacketDefaults defaults = PF__TRACE_PACKET_DEFAULTS__INIT;
	Pf__InternedData interned = PF__INTERNED_DATA__INIT;
	Pf__InternedString strings[CA_LEVEL_ADVANCED + 1 + NAMES], *list[CA_LEVEL_ADVANCED + 1 + NAMES];
	size_t n = 0;

	for (int level = 0; level <= CA_LEVEL_ADVANCED; level++, n++)
		intern(list[n] = &strings[n], 1 + (uint64_t)level,
		       (char *)(uintptr_t)ca_dict_level_name((enum ca_level)level));
	interned.event_categories = list;
	interned.n_event_categories = n;
	for (size_t i = 0; i < NAMES; i++, n++)
		intern(list[n] = &strings[n], 1 + i, (char *)(uintptr_t)texts[i]);
	interned.debug_annotation_names = list + interned.n_event_categories;
	interned.n_debug_annotation_names = NAMES;
	packet.interned_data = &interned;
	clock.has_clock_id = clock.has_timestamp = true;
	clock.clock_id = CLOCK_MONOTONIC_ID;
	clock.timestamp = time;
	snapshot.n_clocks = 1;
	snapshot.clocks = &clocks;
	snapshot.has_primary_trace_clock = true;
	snapshot.primary_trace_clock = CLOCK_MONOTONIC_ID;
	packet.clock_snapshot = &snapshot;
	defaults.has_timestamp_clock_id = true;
	defaults.timestamp_clock_id = CLOCK_MONOTONIC_ID;
	packet.trace_packet_defaults = &defaults;
	put(perfetto, &packet, 0);
}

/* Bytes that are not UTF-8 become U+FFFD; what does not fit is cut. */
static char *clean(char to[NAME_ROOM], const char *text)
{
	size_t at = strlen(to);

	while (*text && at + 4 < NAME_ROOM) {
		size_t n = ca_utf8_length((const unsigned char *)text);

		memcpy(to + at, n ? text : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 3;
		text += n ? n : 1;
	}
	to[at] = '\0';
	return to;
}

static uint64_t name_iid(struct perfetto *perfetto, char *name)
{
	size_t before = perfetto->names.text.n;
	uint64_t iid = 1 + (uint64_t)ca_strings_put(&perfetto->names, name);
	Pf__TracePacket packet = PF__TRACE_PACKET__INIT;
	Pf__InternedData interned = PF__INTERNED_DATA__INIT;
	Pf__InternedString string, *strings = &string;

	if (perfetto->names.text.n == before)
		return iid;
	intern(&string, iid, name);
	interned.n_event_names = 1;
	interned.event_names = &strings;
	packet.interned_data = &interned;
	put(perfetto, &packet, 0);
	return iid;
}

/* The key, and what its value is called. For states the value alone, where it has a name. */
static uint64_t event_name(struct perfetto *perfetto, uint32_t key, uint64_t value, bool state,
			   const char *more)
{
	char name[NAME_ROOM] = "", buffer[CA_SINK_KEY_NAME];
	const char *value_name = perfetto->dict ? ca_dict_value_name(perfetto->dict, key, value) : NULL;

	if (!state || !value_name)
		clean(name, ca_sink_key_name(perfetto->dict, key, buffer));
	if (value_name && !state)
		clean(name, ": ");
	if (value_name)
		clean(name, value_name);
	return name_iid(perfetto, clean(name, more));
}

static uint64_t process_uuid(const struct ca_source *from)
{
	return UINT64_C(1) << 63 | from->process_index;
}

/* 0 has a meaning of its own. */
static uint64_t track_uuid(const struct ca_source *from, uint32_t key, unsigned of)
{
	return ((uint64_t)from->thread_index + 1) << 32 | (uint64_t)key << 2 | of;
}

static void put_descriptor(struct perfetto *perfetto, Pf__TrackDescriptor *descriptor, uint64_t uuid)
{
	Pf__TracePacket packet = PF__TRACE_PACKET__INIT;

	descriptor->has_uuid = true;
	descriptor->uuid = uuid;
	packet.track_descriptor = descriptor;
	put(perfetto, &packet, 0);
}

static void describe_process(struct perfetto *perfetto, const struct ca_source *from, const char *name)
{
	Pf__TrackDescriptor descriptor = PF__TRACK_DESCRIPTOR__INIT;
	Pf__ProcessDescriptor process = PF__PROCESS_DESCRIPTOR__INIT;
	char text[NAME_ROOM] = "";

	process.has_pid = true;
	process.pid = (int32_t)from->process;
	process.process_name = name ? clean(text, name) : NULL;
	descriptor.process = &process;
	put_descriptor(perfetto, &descriptor, process_uuid(from));
}

static void describe_thread(struct perfetto *perfetto, const struct ca_source *from, const char *name)
{
	Pf__TrackDescriptor descriptor = PF__TRACK_DESCRIPTOR__INIT;
	Pf__ThreadDescriptor thread = PF__THREAD_DESCRIPTOR__INIT;
	char text[NAME_ROOM] = "";

	thread.has_pid = thread.has_tid = true;
	thread.pid = (int32_t)from->process;
	thread.tid = (int32_t)from->thread;
	thread.thread_name = name ? clean(text, name) : NULL;
	if (from->thread_index) {
		descriptor.thread = &thread;
		descriptor.has_parent_uuid = true;
		descriptor.parent_uuid = process_uuid(from);
	} else {
		descriptor.name = name ? clean(text, name) : clean(text, "causal");
	}
	put_descriptor(perfetto, &descriptor, track_uuid(from, 0, OF_THREAD));
}

static bool is_new(struct perfetto *perfetto, uint64_t uuid)
{
	bool known = true;

	return ca_map_add(&perfetto->described, uuid, &known) && !known;
}

static uint64_t key_track(struct perfetto *perfetto, const struct ca_source *from, uint32_t key, unsigned of)
{
	uint64_t uuid = track_uuid(from, key, of);
	Pf__TrackDescriptor descriptor = PF__TRACK_DESCRIPTOR__INIT;
	Pf__CounterDescriptor counter = PF__COUNTER_DESCRIPTOR__INIT;
	char name[NAME_ROOM] = "", buffer[CA_SINK_KEY_NAME];

	if (!is_new(perfetto, uuid))
		return uuid;
	clean(name, ca_sink_key_name(perfetto->dict, key, buffer));
	descriptor.name = clean(name, of == OF_SUBSTATE ? " (sub-state)" : "");
	descriptor.has_parent_uuid = true;
	descriptor.parent_uuid = track_uuid(from, 0, OF_THREAD);
	descriptor.counter = of == OF_COUNTER ? &counter : NULL;
	put_descriptor(perfetto, &descriptor, uuid);
	return uuid;
}

static uint64_t track_of(struct perfetto *perfetto, const struct ca_sink_track *track,
			 const struct ca_sink_open *open)
{
	if (open->kind == CA_BURST_BEGIN)
		return track_uuid(&track->from, 0, OF_THREAD);
	return key_track(perfetto, &track->from, open->key,
			 open->kind == CA_STATE_BEGIN ? OF_STATE : OF_SUBSTATE);
}

/* An event that its user still fills in. */
struct one {
	Pf__TracePacket packet;
	Pf__TrackEvent event;
	Pf__DebugAnnotation annotation[NAMES], *annotations[NAMES];
	uint64_t category, flow;
};

static void begin_one(struct one *one, uint64_t time, Pf__TrackEvent__Type type, uint64_t uuid)
{
	pf__trace_packet__init(&one->packet);
	pf__track_event__init(&one->event);
	one->packet.has_timestamp = true;
	one->packet.timestamp = time;
	one->packet.track_event = &one->event;
	one->event.has_type = one->event.has_track_uuid = true;
	one->event.type = type;
	one->event.track_uuid = uuid;
	one->event.debug_annotations = one->annotations;
}

static Pf__DebugAnnotation *annotate(struct one *one, unsigned name)
{
	size_t i = one->event.n_debug_annotations++;

	one->annotations[i] = &one->annotation[i];
	pf__debug_annotation__init(&one->annotation[i]);
	one->annotation[i].has_name_iid = true;
	one->annotation[i].name_iid = name;
	return &one->annotation[i];
}

static void annotate_number(struct one *one, unsigned name, uint64_t value)
{
	Pf__DebugAnnotation *annotation = annotate(one, name);

	annotation->has_uint_value = true;
	annotation->uint_value = value;
}

static void annotate_value(const struct perfetto *perfetto, struct one *one, uint32_t key, uint64_t value)
{
	Pf__DebugAnnotation *annotation;

	if (!ca_sink_is_negative(perfetto->dict, key, value)) {
		annotate_number(one, NAME_VALUE, value);
		return;
	}
	annotation = annotate(one, NAME_VALUE);
	annotation->has_int_value = true;
	annotation->int_value = (int64_t)value;
}

static void categorize(struct perfetto *perfetto, struct one *one, uint32_t key)
{
	const struct ca_dict_key *known = perfetto->dict ? ca_dict_get(perfetto->dict, key) : NULL;

	one->category = 1 + (uint64_t)(known ? known->level : CA_LEVEL_NONE);
	one->event.category_iids = &one->category;
	one->event.n_category_iids = 1;
}

static void name_one(struct one *one, uint64_t iid)
{
	one->event.has_name_iid = true;
	one->event.name_iid = iid;
}

/* events: 0 for the second part of a slice that was cut. */
static void put_begin(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		      uint64_t time, unsigned flags, unsigned events)
{
	struct perfetto *perfetto = sink;
	struct one one;

	begin_one(&one, time, PF__TRACK_EVENT__TYPE__SLICE_BEGIN, track_of(perfetto, track, open));
	name_one(&one, event_name(perfetto, open->key, open->value, open->kind != CA_BURST_BEGIN, ""));
	categorize(perfetto, &one, open->key);
	annotate_value(perfetto, &one, open->key, open->value);
	if (flags)
		annotate_number(&one, NAME_FLAGS, flags);
	if (!events)
		annotate_number(&one, NAME_CUT, open->time);
	put(perfetto, &one.packet, events);
}

/* events: 0 for one that goes on, or that did not end. */
static void put_end(void *sink, const struct ca_sink_track *track, const struct ca_sink_open *open,
		    uint64_t time, unsigned flags, unsigned events)
{
	struct perfetto *perfetto = sink;
	struct one one;

	begin_one(&one, time, PF__TRACK_EVENT__TYPE__SLICE_END, track_of(perfetto, track, open));
	if (flags)
		annotate_number(&one, NAME_FLAGS, flags);
	if (!events)
		annotate_number(&one, NAME_CUT, time);
	put(perfetto, &one.packet, events);
}

static void put_instant(void *sink, const struct ca_sink_track *track, const struct ca_event *event,
			const char *more)
{
	struct perfetto *perfetto = sink;
	struct one one;

	begin_one(&one, event->time, PF__TRACK_EVENT__TYPE__INSTANT, track_uuid(&track->from, 0, OF_THREAD));
	name_one(&one, event_name(perfetto, event->key, event->value, false, more));
	categorize(perfetto, &one, event->key);
	annotate_value(perfetto, &one, event->key, event->value);
	if (event->flags)
		annotate_number(&one, NAME_FLAGS, event->flags);
	one.flow = ca_sink_flow(event);
	if (event->kind == CA_PTP_BEGIN) {
		one.event.flow_ids = &one.flow;
		one.event.n_flow_ids = 1;
	} else if (event->kind == CA_PTP_END) {
		one.event.terminating_flow_ids = &one.flow;
		one.event.n_terminating_flow_ids = 1;
	}
	put(perfetto, &one.packet, 1);
}

static void put_counter(void *sink, const struct ca_sink_track *track, const struct ca_event *event)
{
	struct perfetto *perfetto = sink;
	struct one one;

	begin_one(&one, event->time, PF__TRACK_EVENT__TYPE__COUNTER,
		  key_track(perfetto, &track->from, event->key, OF_COUNTER));
	categorize(perfetto, &one, event->key);
	one.event.has_counter_value = true;
	one.event.counter_value = (int64_t)event->value;
	put(perfetto, &one.packet, 1);
}

static const struct ca_sink_slices slices = { put_begin, put_end, put_instant, put_counter, NULL };

static struct ca_sink_track *get_track(struct perfetto *perfetto, const struct ca_source *from)
{
	bool known;
	struct ca_sink_track *track = ca_sink_tracks_get(&perfetto->tracks, from, &known);

	if (!track || known)
		return track;
	if (from->process_index && is_new(perfetto, process_uuid(from)))
		describe_process(perfetto, from, NULL);
	describe_thread(perfetto, from, NULL);
	return track;
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct perfetto *perfetto = state;
	struct ca_sink_track *track;

	if (n && !perfetto->begun)
		put_first(perfetto, event->time);
	track = get_track(perfetto, from);
	for (size_t i = 0; track && i < n; i++)
		ca_sink_tracks_put(&slices, perfetto, perfetto->dict, track, &event[i]);
	if (!track)
		perfetto->file.lost += n;
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	struct perfetto *perfetto = state;

	if (!perfetto->begun)
		put_first(perfetto, 0);
	get_track(perfetto, from);
	if (process_name && from->process_index)
		describe_process(perfetto, from, process_name);
	if (thread_name)
		describe_thread(perfetto, from, thread_name);
}

static enum ca_status close_perfetto(void *state, struct ca_err *err)
{
	struct perfetto *perfetto = state;
	enum ca_status status;

	for (size_t i = 0; i < perfetto->tracks.count; i++) {
		const struct ca_sink_track *track = &perfetto->tracks.track[i];

		for (size_t at = track->depth; at-- > 0;)
			put_end(perfetto, track, &track->open[at], track->last, 0, 0);
	}
	status = ca_sink_file_close(&perfetto->file, err);
	ca_sink_tracks_free(&perfetto->tracks);
	ca_map_free(&perfetto->described);
	ca_strings_free(&perfetto->names);
	free(perfetto);
	return status;
}
#else
static enum ca_status open_perfetto(void **state, const char *target, const struct ca_dict *dict,
				    const void *context, struct ca_err *err)
{
	(void)state, (void)target, (void)dict, (void)context;
	return ca_err_set(err, CA_ERR_UNSUPPORTED,
			  "the perfetto sink is not in this build, which found no protobuf-c (Debian: "
			  "libprotobuf-c-dev protobuf-c-compiler); ui.perfetto.dev reads what the json sink "
			  "writes, too");
}
#endif

const struct ca_sink_ops ca_sink_perfetto = {
	.name = "perfetto",
	.description = "Perfetto's trace format, for ui.perfetto.dev and its tools, into a file",
	.extension = ".pftrace",
	.open = open_perfetto,
#ifdef HAVE_PROTOBUF_C
	.events = take_events,
	.rename = take_name,
	.close = close_perfetto,
#endif
};

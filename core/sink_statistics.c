/* SPDX-License-Identifier: MIT */
/* The statistics sink: a table of each key, in all and of each thread: how many, sum, mean, min, max and
 * standard deviation; of bursts and states these are their lengths, of points their values. Written when
 * the run is over, on stderr or into the file that the target names. Driver's process, one thread. */
#include "core/sink_file.h"
#include "core/sink_tracks.h"
#include "core/utf8.h"
#include "core/vec.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct ca_sink_ops ca_sink_statistics;

/* A row is known by thread, key and part, in one number: their bits. */
enum { PART_BITS = 16, KEY_BITS = 23, THREAD_BITS = 24, ALL = (1 << THREAD_BITS) - 1 };

enum what { LENGTHS, VALUES, COUNTS };

/* Mean and m2 as Welford has them, which needs no second look: m2 is the sum of squared distances. */
struct row {
	uint64_t id;
	enum what what;
	uint32_t key, thread;
	uint64_t part, count;
	long double sum, min, max; /* which hold all values */
	double mean, m2;
};

struct name {
	uint32_t thread_index;
	char *text;
};

struct statistics {
	FILE *file;
	char *target;
	const struct ca_dict *dict;
	struct ca_sink_tracks tracks;
	struct ca_map by_id;
	struct ca_vec rows, names;
	uint64_t events, open, ends; /* ends: without a beginning */
};

static enum ca_status open_statistics(void **state, const char *target, const struct ca_dict *dict,
				      const void *context, struct ca_err *err)
{
	struct statistics *s = calloc(1, sizeof *s);

	(void)context;
	if (!s || (target && !(s->target = strdup(target)))) {
		free(s);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the statistics sink");
	}
	s->dict = dict;
	s->rows.size = sizeof(struct row);
	s->names.size = sizeof(struct name);
	s->file = target ? ca_sink_file_stream("statistics", target, err) : stderr;
	if (!s->file) {
		free(s->target);
		free(s);
		return CA_ERR_USAGE;
	}
	*state = s;
	return CA_OK;
}

static struct row *get_row(struct statistics *s, uint32_t thread, uint32_t key, uint64_t part, enum what what)
{
	uint64_t most = (1 << PART_BITS) - 1, bits = part < most ? part : most;
	uint64_t id = UINT64_C(1) << 63 | (uint64_t)(thread & ALL) << (KEY_BITS + PART_BITS) |
		      (uint64_t)(key & ((1 << KEY_BITS) - 1)) << PART_BITS | bits;
	bool known;
	uint32_t *at = ca_map_add(&s->by_id, id, &known);
	struct row *row;

	if (!at)
		return NULL;
	if (known && *at < s->rows.n)
		return (struct row *)s->rows.at + *at;
	*at = (uint32_t)s->rows.n;
	row = ca_vec_push(&s->rows);
	if (row)
		*row = (struct row){ id, what, key, thread, part, .min = INFINITY, .max = -INFINITY };
	return row;
}

static void add_to(struct row *row, long double value)
{
	double before;

	if (!row)
		return;
	before = (double)value - row->mean;
	row->count++;
	row->sum += value;
	row->min = row->min < value ? row->min : value;
	row->max = row->max > value ? row->max : value;
	row->mean += before / (double)row->count;
	row->m2 += before * ((double)value - row->mean);
}

static void add(struct statistics *s, const struct ca_sink_track *track, uint32_t key, uint64_t part,
		enum what what, long double value)
{
	add_to(get_row(s, ALL, key, part, what), value);
	add_to(get_row(s, track->from.thread_index, key, part, what), value);
}

/* What is told apart of one key. Behind those that are one of a kind, PART_OF + 4 * value + one of OF_*:
 * states, values that have names, progress points. */
enum { PART_POINTS, PART_BURSTS, PART_SENT, PART_RECEIVED, PART_OTHER, PART_OF = 8 };
enum { OF_STATE, OF_SUBSTATE, OF_VALUE, OF_POINT };

static uint64_t part_of(unsigned of, uint64_t value)
{
	return PART_OF + 4 * (value < UINT32_MAX ? value : UINT32_MAX) + of;
}

static void add_length(struct statistics *s, const struct ca_sink_track *track,
		       const struct ca_sink_open *open, uint64_t end)
{
	uint64_t part = PART_BURSTS;

	if (open->kind != CA_BURST_BEGIN)
		part = part_of(open->kind == CA_STATE_BEGIN ? OF_STATE : OF_SUBSTATE, open->value);
	add(s, track, open->key, part, LENGTHS, end - open->time);
}

static void add_point(struct statistics *s, const struct ca_sink_track *track, const struct ca_event *event)
{
	bool of_point = event->key == CA_KEY_PROGRESS || event->key == CA_KEY_ARRIVALS ||
			event->key == CA_KEY_IN_FLIGHT;
	bool place = event->key == CA_KEY_SAMPLE || event->key == CA_KEY_FRAME;

	if (of_point) /* which, and how many */
		add(s, track, event->key, part_of(OF_POINT, event->value >> 48), VALUES,
		    event->value & ((UINT64_C(1) << 48) - 1));
	else if (s->dict && ca_dict_value_name(s->dict, event->key, event->value))
		add(s, track, event->key, part_of(OF_VALUE, event->value), COUNTS, 0);
	else
		add(s, track, event->key, PART_POINTS, place ? COUNTS : VALUES,
		    ca_sink_is_negative(s->dict, event->key, event->value) ? -(long double)-event->value
									   : event->value);
}

/* Events are missing: who knows which of what is open has ended among them. A thread lives on. */
static void leave_open(struct statistics *s, struct ca_sink_track *track)
{
	size_t kept = 0;

	for (size_t i = 0; i < track->depth; i++)
		if (track->open[i].key == CA_KEY_THREAD || track->open[i].key == CA_KEY_PROCESS)
			track->open[kept++] = track->open[i];
	s->open += track->depth - kept;
	track->depth = kept;
}

static void take_event(struct statistics *s, struct ca_sink_track *track, const struct ca_event *event)
{
	size_t at;

	if (event->key == CA_KEY_DROPPED)
		leave_open(s, track);
	if (ca_sink_is_begin(event->kind)) {
		ca_sink_tracks_begin(track, event);
	} else if (ca_sink_is_end(event->kind)) {
		at = ca_sink_tracks_find(track, event);
		s->ends += at == track->depth;
		if (at == track->depth)
			return;
		add_length(s, track, &track->open[at], event->time);
		ca_sink_tracks_close(track, at);
	} else if (event->kind == CA_PTP_BEGIN || event->kind == CA_PTP_END) {
		add(s, track, event->key, event->kind == CA_PTP_BEGIN ? PART_SENT : PART_RECEIVED, COUNTS, 0);
	} else if (event->kind == CA_POINT) {
		add_point(s, track, event);
	} else {
		add(s, track, event->key, PART_OTHER, COUNTS, 0);
	}
}

static void take_events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	struct statistics *s = state;
	bool known;
	struct ca_sink_track *track = ca_sink_tracks_get(&s->tracks, from, &known);

	s->events += n;
	for (size_t i = 0; track && i < n; i++) {
		take_event(s, track, &event[i]);
		track->last = event[i].time;
	}
}

static void take_name(void *state, const struct ca_source *from, const char *process_name,
		      const char *thread_name)
{
	struct statistics *s = state;
	struct name *name = s->names.at;

	(void)process_name;
	for (size_t i = 0; thread_name && i < s->names.n; i++)
		if (name[i].thread_index == from->thread_index) {
			char *text = strdup(thread_name);

			if (text) {
				free(name[i].text);
				name[i].text = text;
			}
			return;
		}
	name = thread_name ? ca_vec_push(&s->names) : NULL;
	if (name)
		*name = (struct name){ from->thread_index, strdup(thread_name) };
}

/* Characters, as put_text counts them. */
static int length_of(const char *text)
{
	int length = 0;

	for (size_t n; *text; text += n ? n : 1, length++)
		n = ca_utf8_length((const unsigned char *)text);
	return length;
}

/* Cleaned, and at least `width` characters. */
static void put_text(FILE *file, const char *text, int width)
{
	for (; *text; width--)
		text = ca_utf8_put(file, text);
	for (; width > 0; width--)
		putc(' ', file);
}

static void label(const struct statistics *s, const struct row *row, char *text, size_t size)
{
	static const char *const parts[] = { [PART_BURSTS] = "",
					     [PART_SENT] = ", sent",
					     [PART_RECEIVED] = ", received",
					     [PART_OTHER] = ", other" };
	char buffer[CA_SINK_KEY_NAME], number[24];
	const char *key = ca_sink_key_name(s->dict, row->key, buffer), *name = NULL;
	unsigned of = row->part % 4;
	uint64_t value = (row->part - PART_OF) / 4;

	if (row->part == PART_POINTS) {
		snprintf(text, size, "%s%s", key, row->what == VALUES ? ", value" : "");
	} else if (row->part < PART_OF) {
		snprintf(text, size, "%s%s", key, parts[row->part]);
	} else {
		snprintf(number, sizeof number, "%" PRIu64, value);
		if (s->dict)
			name = ca_dict_value_name(s->dict, row->key, of == OF_POINT ? value << 48 : value);
		snprintf(text, size, "%s: %s%s", key, name ? name : number,
			 of == OF_SUBSTATE ? " (sub-state)" : "");
	}
}

static void put_row(struct statistics *s, const struct row *row, int width)
{
	char text[256], who[256] = "all";
	const struct name *name = s->names.at;

	label(s, row, text, sizeof text);
	if (row->thread != ALL)
		snprintf(who, sizeof who, "%" PRIu32, row->thread);
	for (size_t i = 0; row->thread != ALL && i < s->names.n; i++)
		if (name[i].thread_index == row->thread && name[i].text)
			snprintf(who, sizeof who, "%" PRIu32 " %s", row->thread, name[i].text);
	put_text(s->file, text, width);
	putc(' ', s->file);
	put_text(s->file, who, 20);
	fprintf(s->file, " %10" PRIu64, row->count);
	if (row->what != COUNTS)
		fprintf(s->file, " %16.0Lf %16.1f %16.0Lf %16.0Lf %16.1f", row->sum, row->mean, row->min,
			row->max, row->count > 1 ? sqrt(row->m2 / (double)(row->count - 1)) : 0);
	putc('\n', s->file);
}

/* By key and part; all before its threads. */
static int by_row(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->thread == ALL || y->thread == ALL)
		return x->thread == ALL ? -1 : 1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void put_table(struct statistics *s)
{
	char text[256];
	const struct row *row;
	int width = 24;

	if (s->rows.n)
		qsort(s->rows.at, s->rows.n, sizeof *row, by_row);
	row = s->rows.at;
	for (size_t i = 0; i < s->rows.n; i++) {
		label(s, &row[i], text, sizeof text);
		width = width > length_of(text) ? width : length_of(text);
	}
	fprintf(s->file, "%" PRIu64 " events of %zu threads; lengths in ns", s->events, s->tracks.count);
	if (s->open)
		fprintf(s->file, "; %" PRIu64 " did not end", s->open);
	if (s->ends)
		fprintf(s->file, "; %" PRIu64 " ended without a beginning", s->ends);
	fprintf(s->file, "\n%-*s %-20s %10s %16s %16s %16s %16s %16s\n", width, "key", "thread", "count",
		"sum", "mean", "min", "max", "stddev");
	for (size_t i = 0; i < s->rows.n; i++)
		put_row(s, &row[i], width);
}

static void close_open(struct statistics *s)
{
	for (size_t i = 0; i < s->tracks.count; i++) {
		const struct ca_sink_track *track = &s->tracks.track[i];

		for (size_t at = track->depth; at-- > 0; s->open++)
			add_length(s, track, &track->open[at], track->last);
	}
}

static enum ca_status close_statistics(void *state, struct ca_err *err)
{
	struct statistics *s = state;
	struct name *name = s->names.at;
	bool ok, memory = true;

	close_open(s);
	put_table(s);
	memory = !s->rows.failed;
	ok = fflush(s->file) == 0 && !ferror(s->file);
	if (s->file != stderr)
		fclose(s->file);
	for (size_t i = 0; i < s->names.n; i++)
		free(name[i].text);
	ca_vec_free(&s->names);
	ca_vec_free(&s->rows);
	ca_map_free(&s->by_id);
	ca_sink_tracks_free(&s->tracks);
	if (!ok || !memory)
		ca_err_set(err, CA_ERR_IO, "the statistics sink could not write all of %s (%s)",
			   s->target ? s->target : "its table", strerror(memory ? errno : ENOMEM));
	free(s->target);
	free(s);
	return ok && memory ? CA_OK : CA_ERR_IO;
}

const struct ca_sink_ops ca_sink_statistics = {
	.name = "statistics",
	.description = "a table of each key, in all and by thread: count, sum, mean, min, max and standard "
		       "deviation, on stderr or into =FILE",
	.open = open_statistics,
	.events = take_events,
	.rename = take_name,
	.close = close_statistics,
};

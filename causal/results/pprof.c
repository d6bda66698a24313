/* SPDX-License-Identifier: MIT */
/* A profile of samples in pprof's format (https://github.com/google/pprof, profile.proto), not compressed, which
 * pprof takes as well. A few messages of one level each: not worth a compiler for them.
 * Driver's process, one thread. */
#include "causal/results/samples.h"
#include "core/memstream.h"
#include "core/utf8.h"
#include <stdlib.h>
#include <string.h>

/* Fields of the messages. */
enum {
	SAMPLE_TYPE = 1,
	SAMPLE,
	MAPPING,
	LOCATION,
	FUNCTION,
	STRING,
	TIME = 9,
	DURATION,
	PERIOD_TYPE,
	PERIOD,
	DEFAULT_TYPE = 14
};
enum { TYPE_TYPE = 1, TYPE_UNIT };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE };
enum { MAPPING_ID = 1, MAPPING_FILE = 5, MAPPING_HAS_FUNCTIONS = 7 };
enum { LOCATION_ID = 1, LOCATION_MAPPING, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE };
enum { FUNCTION_ID = 1, FUNCTION_NAME, FUNCTION_SYSTEM_NAME, FUNCTION_FILE, FUNCTION_START };
/* Strings: these, then name and file of each function, then the binaries. */
enum { EMPTY, SAMPLES, COUNT, WEIGHT, WAIT, UNIT, FIRST };

/* A message that is put together. */
struct message {
	char *text;
	size_t size;
	FILE *file;
};

static bool begin(struct message *m)
{
	m->text = NULL;
	m->file = open_memstream(&m->text, &m->size);
	return m->file;
}

static void put_varint(FILE *file, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		fputc((int)(value & 0x7f) | 0x80, file);
	fputc((int)value, file);
}

static void put_number(FILE *file, unsigned field, uint64_t value)
{
	put_varint(file, field << 3);
	put_varint(file, value);
}

static void put_bytes(FILE *file, unsigned field, const char *bytes, size_t size)
{
	put_varint(file, field << 3 | 2);
	put_varint(file, size);
	fwrite(bytes, 1, size, file);
}

/* Into `file`, as its field. */
static bool end(struct message *m, FILE *file, unsigned field)
{
	bool ok = ca_memstream_end(m->file, &m->text);

	if (ok)
		put_bytes(file, field, m->text, m->size);
	free(m->text);
	return ok;
}

static bool put_type(FILE *file, unsigned field, uint64_t type, uint64_t unit)
{
	struct message m;

	if (!begin(&m))
		return false;
	put_number(m.file, TYPE_TYPE, type);
	put_number(m.file, TYPE_UNIT, unit);
	return end(&m, file, field);
}

/* Bytes that are not UTF-8 become '?': readers refuse them. */
static void put_string(FILE *file, const char *text)
{
	put_varint(file, STRING << 3 | 2);
	put_varint(file, strlen(text));
	while (*text) {
		size_t n = ca_utf8_length((const unsigned char *)text);

		fwrite(n ? text : "?", 1, n ? n : 1, file);
		text += n ? n : 1;
	}
}

static bool put_sample(const struct ca_samples *s, uint32_t node, FILE *file)
{
	uint64_t weight = ca_samples_weight(s, node);
	bool wait = !s->weight && ca_samples_is_wait(s, node);
	struct message m;

	if (!begin(&m))
		return false;
	for (uint32_t at = node; at; at = s->node[at].parent)
		put_number(m.file, SAMPLE_LOCATION, s->node[at].function);
	put_number(m.file, SAMPLE_VALUE, ca_samples_count(s, node));
	put_number(m.file, SAMPLE_VALUE, wait ? 0 : weight);
	if (!s->weight) /* of what is measured, waits are a part */
		put_number(m.file, SAMPLE_VALUE, wait ? weight : 0);
	return end(&m, file, SAMPLE);
}

static bool put_mapping(FILE *file, uint64_t id, uint64_t name)
{
	struct message m;

	if (!begin(&m))
		return false;
	put_number(m.file, MAPPING_ID, id);
	put_number(m.file, MAPPING_FILE, name);
	put_number(m.file, MAPPING_HAS_FUNCTIONS, 1);
	return end(&m, file, MAPPING);
}

/* A location for each function, and of the same number. */
static bool put_function(const struct ca_samples *s, size_t i, uint64_t mapping, FILE *file)
{
	struct message m, line;
	bool ok;

	if (!begin(&m))
		return false;
	if (!begin(&line)) {
		fclose(m.file);
		free(m.text);
		return false;
	}
	put_number(m.file, LOCATION_ID, i + 1);
	put_number(m.file, LOCATION_MAPPING, mapping);
	put_number(line.file, LINE_FUNCTION, i + 1);
	put_number(line.file, LINE_LINE, s->function[i].line);
	ok = end(&line, m.file, LOCATION_LINE);
	ok = end(&m, file, LOCATION) && ok;
	if (!ok || !begin(&m))
		return false;
	put_number(m.file, FUNCTION_ID, i + 1);
	put_number(m.file, FUNCTION_NAME, FIRST + 2 * i);
	put_number(m.file, FUNCTION_SYSTEM_NAME, FIRST + 2 * i);
	put_number(m.file, FUNCTION_FILE, FIRST + 2 * i + 1);
	put_number(m.file, FUNCTION_START, s->function[i].line);
	return end(&m, file, FUNCTION);
}

/* For each function the first one of its binary: its number + 1 is that of the mapping; 0: it is in none. NULL
 * without memory. */
static size_t *find_mappings(const struct ca_samples *s)
{
	size_t *mapping = calloc(s->functions + 1, sizeof *mapping);
	struct ca_map by_binary = { 0 };
	bool known, ok = mapping;

	for (size_t i = 0; ok && i < s->functions; i++) {
		uint32_t *first;

		if (!*s->function[i].binary)
			continue;
		first = ca_map_add(&by_binary, ca_map_key(1, s->function[i].binary), &known);
		if (first && !known)
			*first = (uint32_t)i + 1;
		mapping[i] = first ? *first : 0;
		ok = first;
	}
	ca_map_free(&by_binary);
	if (ok)
		return mapping;
	free(mapping);
	return NULL;
}

static bool put_functions(const struct ca_samples *s, const size_t *mapping, FILE *file)
{
	bool ok = true;

	for (size_t i = 0; ok && i < s->functions; i++) {
		if (mapping[i] == i + 1)
			ok = put_mapping(file, mapping[i], FIRST + 2 * s->functions + i);
		ok = ok && put_function(s, i, mapping[i], file);
	}
	return ok;
}

static void put_strings(const struct ca_samples *s, const size_t *mapping, FILE *file)
{
	struct ca_samples_unit unit = ca_samples_unit(s);
	const char *fixed[FIRST] = { "",      "samples",
				     "count", s->weight ? unit.name : "cpu",
				     "wait",  unit.time ? "nanoseconds" : unit.unit };

	for (size_t i = 0; i < FIRST; i++)
		put_string(file, fixed[i]);
	for (size_t i = 0; i < s->functions; i++) {
		put_string(file, s->function[i].name);
		put_string(file, s->function[i].file);
	}
	for (size_t i = 0; i < s->functions; i++)
		put_string(file, mapping[i] == i + 1 ? s->function[i].binary : "");
}

bool ca_samples_write_pprof(const struct ca_samples *s, FILE *file)
{
	size_t *mapping = find_mappings(s);
	bool ok = mapping && put_type(file, SAMPLE_TYPE, SAMPLES, COUNT) &&
		  put_type(file, SAMPLE_TYPE, WEIGHT, UNIT) &&
		  (s->weight || put_type(file, SAMPLE_TYPE, WAIT, UNIT));

	for (uint32_t i = 1; ok && i < s->nodes; i++)
		ok = !ca_samples_count(s, i) || put_sample(s, i, file);
	ok = ok && put_functions(s, mapping, file);
	if (ok)
		put_strings(s, mapping, file);
	put_number(file, TIME, s->time);
	put_number(file, DURATION, s->runtime);
	if (!s->weight) {
		ok = ok && put_type(file, PERIOD_TYPE, WEIGHT, UNIT);
		put_number(file, PERIOD, s->period);
	}
	put_number(file, DEFAULT_TYPE, WEIGHT);
	free(mapping);
	return ok && !ferror(file);
}

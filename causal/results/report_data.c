/* SPDX-License-Identifier: MIT */
/* What the report shows: the profile, and beside it each experiment on its own, the stacks, and the
 * source of the regions where it can be read. The page that shows it is driver/report/.
 * Driver's process, one thread. */
#include "causal/results/report_data.h"
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	AROUND = 60,        /* lines of source kept on both sides of a region */
	LINES_MAX = 100000, /* a longer file is not source that a person reads */
	LENGTH_MAX = 400    /* bytes kept of one line */
};

/* ---- experiments ----------------------------------------------------------------*/

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

/* The numbers of regions as profile.json has them: in the order of their best row. */
static uint32_t *number_regions(const struct ca_profile *profile)
{
	uint32_t *number = calloc(profile->catalog.regions + 1, sizeof *number), next = 0;

	for (size_t r = 0; number && r < profile->rows; r++) {
		uint32_t id = profile->row[r].region->id;

		if (!number[id])
			number[id] = ++next;
	}
	return number;
}

/* NULL: no memory. */
static struct json_object *experiment_array(const struct ca_profile *profile)
{
	struct json_object *array = json_object_new_array();
	uint32_t *number = number_regions(profile);

	for (size_t i = 0; number && i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		if (e->flags || !e->region || !e->speedup || !number[e->region])
			continue;
		for (size_t v = e->first; v < e->first + e->visits; v++) {
			const struct ca_profile_visits *visits = &profile->visits[v];
			struct json_object *object = json_object_new_object();

			add(object, "region", json_object_new_int64(number[e->region] - 1));
			add(object, "point", ca_results_json_text(profile->point[visits->point].name));
			add(object, "speedup", ca_results_json_rounded(e->speedup / 1e4));
			add(object, "effect", ca_results_json_rounded(visits->effect));
			json_object_array_add(array, object);
		}
	}
	if (!number) {
		json_object_put(array);
		array = NULL;
	}
	free(number);
	return array;
}

/* ---- stacks ---------------------------------------------------------------------*/

static struct json_object *stack_array(const struct ca_profile *profile)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < profile->stacks; i++) {
		struct json_object *object = json_object_new_object(), *frames = json_object_new_array();

		for (char **frame = profile->stack[i].frame; *frame; frame++)
			json_object_array_add(frames, ca_results_json_text(*frame));
		add(object, "frames", frames);
		add(object, "count", json_object_new_uint64(profile->stack[i].count));
		json_object_array_add(array, object);
	}
	return array;
}

/* ---- source ---------------------------------------------------------------------*/

/* The file as the debug information names it, or below `folder` with as much of its path as is there. */
static FILE *open_source(const char *path, const char *folder)
{
	FILE *file = fopen(path, "re");

	for (const char *rest = path; !file && folder && rest;) {
		char *place;

		rest += strspn(rest, "/");
		if (asprintf(&place, "%s/%s", folder, rest) < 0)
			return NULL;
		file = fopen(place, "re");
		free(place);
		rest = strchr(rest, '/');
	}
	return file;
}

struct span {
	unsigned first, last;
};

static struct span span_of(const struct ca_profile *profile, const char *path)
{
	struct span span = { UINT32_MAX, 0 };

	for (size_t r = 0; r < profile->rows; r++) {
		const struct ca_region *region = profile->row[r].region;

		if (!region->line || strcmp(region->file, path) != 0)
			continue;
		span.first = region->line < span.first ? region->line : span.first;
		span.last = region->line > span.last ? region->line : span.last;
	}
	if (span.last) {
		span.first = span.first > AROUND ? span.first - AROUND : 1;
		span.last += AROUND;
	}
	return span;
}

static struct json_object *line_array(FILE *file, struct span span)
{
	struct json_object *lines = json_object_new_array();
	char *line = NULL;
	size_t size = 0;
	ssize_t length;

	for (unsigned n = 1; n <= span.last && n <= LINES_MAX && (length = getline(&line, &size, file)) > 0;
	     n++) {
		if (n < span.first)
			continue;
		length -= line[length - 1] == '\n';
		line[length < LENGTH_MAX ? length : LENGTH_MAX] = '\0';
		json_object_array_add(lines, ca_results_json_text(line));
	}
	free(line);
	return lines;
}

static bool is_newer(const struct ca_profile *profile, FILE *file)
{
	struct stat stat;

	return profile->runs && fstat(fileno(file), &stat) == 0 &&
	       (uint64_t)stat.st_mtime * 1000000000 > profile->run[0].time;
}

static struct json_object *source_object(const struct ca_profile *profile, const char *path,
					 const char *folder)
{
	struct span span = span_of(profile, path);
	struct json_object *object = NULL;
	struct stat stat;
	FILE *file = span.last ? open_source(path, folder) : NULL;

	if (!file)
		return NULL;
	if (fstat(fileno(file), &stat) == 0 && S_ISREG(stat.st_mode)) {
		object = json_object_new_object();
		add(object, "first", json_object_new_int64(span.first));
		add(object, "newer", json_object_new_boolean(is_newer(profile, file)));
		add(object, "lines", line_array(file, span));
	}
	fclose(file);
	return object;
}

static struct json_object *sources_object(const struct ca_profile *profile, const char *folder)
{
	struct json_object *sources = json_object_new_object();

	for (size_t r = 0; r < profile->rows; r++) {
		const char *path = profile->row[r].region->file;
		struct json_object *source;

		if (!*path || ca_results_json_get(sources, path))
			continue;
		source = source_object(profile, path, folder);
		if (source)
			add(sources, path, source);
	}
	return sources;
}

struct json_object *ca_report_data(const struct ca_profile *profile, const char *folder)
{
	struct json_object *object = json_object_new_object(), *experiments = experiment_array(profile);

	if (!experiments) {
		json_object_put(object);
		return NULL;
	}
	add(object, "profile", ca_profile_json(profile));
	add(object, "experiments", experiments);
	add(object, "stacks", stack_array(profile));
	add(object, "sources", sources_object(profile, folder));
	return object;
}

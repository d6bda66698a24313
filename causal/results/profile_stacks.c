/* SPDX-License-Identifier: MIT */
/* The stacks of the samples: read from run files, merged over all runs, and written for other
 * viewers: folded text, and the file format of speedscope. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "core/vec.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading --------------------------------------------------------------------*/

bool ca_profile_read_stack(struct ca_profile *profile, struct json_object *record)
{
	struct ca_profile_stack *grown = ca_vec_more(profile->stack, profile->stacks, sizeof *profile->stack);
	struct json_object *names = ca_results_json_get(record, "frames");
	size_t n = json_object_is_type(names, json_type_array) ? json_object_array_length(names) : 0;
	char **frame = calloc(n + 1, sizeof *frame);
	bool ok = grown && frame;

	if (grown)
		profile->stack = grown;
	for (size_t i = 0; ok && i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(names, i));

		frame[i] = strdup(name ? name : "?");
		ok = frame[i];
	}
	if (!ok || !n) {
		ca_profile_free_names(frame);
		return ok;
	}
	profile->stack[profile->stacks++] =
		(struct ca_profile_stack){ .frame = frame, .count = ca_results_json_u64(record, "count") };
	return true;
}

static int by_frames(const void *a, const void *b)
{
	const struct ca_profile_stack *x = a, *y = b;
	size_t i = 0;

	while (x->frame[i] && y->frame[i] && !strcmp(x->frame[i], y->frame[i]))
		i++;
	if (!x->frame[i] || !y->frame[i])
		return (x->frame[i] != NULL) - (y->frame[i] != NULL);
	return strcmp(x->frame[i], y->frame[i]);
}

void ca_profile_merge_stacks(struct ca_profile *profile)
{
	size_t kept = 0;

	if (profile->stacks)
		qsort(profile->stack, profile->stacks, sizeof *profile->stack, by_frames);
	for (size_t i = 0; i < profile->stacks; i++)
		if (kept && !by_frames(&profile->stack[kept - 1], &profile->stack[i])) {
			profile->stack[kept - 1].count += profile->stack[i].count;
			ca_profile_free_names(profile->stack[i].frame);
		} else {
			profile->stack[kept++] = profile->stack[i];
		}
	profile->stacks = kept;
}

void ca_profile_free_stacks(struct ca_profile *profile)
{
	for (size_t i = 0; i < profile->stacks; i++)
		ca_profile_free_names(profile->stack[i].frame);
	free(profile->stack);
}

/* ---- writing --------------------------------------------------------------------*/

/* Semicolons separate frames, and a newline ends the stack. */
static void put_frame(FILE *file, const char *name)
{
	for (; *name; name++)
		fputc(*name == ';' ? ':' : (unsigned char)*name < ' ' ? ' ' : *name, file);
}

bool ca_profile_write_folded(const struct ca_profile *profile, FILE *file)
{
	for (size_t i = 0; i < profile->stacks; i++) {
		for (char **frame = profile->stack[i].frame; *frame; frame++) {
			if (frame != profile->stack[i].frame)
				fputc(';', file);
			put_frame(file, *frame);
		}
		fprintf(file, " %" PRIu64 "\n", profile->stack[i].count);
	}
	return !ferror(file);
}

/* The number of a name in the table of frames, which grows. `known` maps names to numbers. */
static struct json_object *frame_number(struct json_object *frames, struct json_object *known,
					const char *name)
{
	struct json_object *number = ca_results_json_get(known, name), *frame;

	if (!number) {
		number = json_object_new_int64((int64_t)json_object_array_length(frames));
		json_object_object_add(known, name, number);
		frame = json_object_new_object();
		json_object_object_add(frame, "name", ca_results_json_text(name));
		json_object_array_add(frames, frame);
	}
	return json_object_get(number);
}

static struct json_object *speedscope_profile(const struct ca_profile *profile, struct json_object *frames)
{
	struct json_object *known = json_object_new_object(), *samples = json_object_new_array();
	struct json_object *weights = json_object_new_array(), *object = json_object_new_object();
	uint64_t sum = 0;

	for (size_t i = 0; i < profile->stacks; i++) {
		struct json_object *sample = json_object_new_array();

		for (char **frame = profile->stack[i].frame; *frame; frame++)
			json_object_array_add(sample, frame_number(frames, known, *frame));
		json_object_array_add(samples, sample);
		json_object_array_add(weights, json_object_new_uint64(profile->stack[i].count));
		sum += profile->stack[i].count;
	}
	json_object_put(known);
	json_object_object_add(object, "type", json_object_new_string("sampled"));
	json_object_object_add(object, "name",
			       ca_results_json_text(profile->runs ? profile->run[0].command : ""));
	json_object_object_add(object, "unit",
			       json_object_new_string(profile->stack_unit ? profile->stack_unit : "none"));
	json_object_object_add(object, "startValue", json_object_new_int(0));
	json_object_object_add(object, "endValue", json_object_new_uint64(sum));
	json_object_object_add(object, "samples", samples);
	json_object_object_add(object, "weights", weights);
	return object;
}

/* https://www.speedscope.app/file-format-schema.json */
bool ca_profile_write_speedscope(const struct ca_profile *profile, FILE *file)
{
	struct json_object *object = json_object_new_object(), *shared = json_object_new_object();
	struct json_object *frames = json_object_new_array(), *profiles = json_object_new_array();
	bool ok;

	json_object_array_add(profiles, speedscope_profile(profile, frames));
	json_object_object_add(shared, "frames", frames);
	json_object_object_add(object, "$schema",
			       json_object_new_string("https://www.speedscope.app/file-format-schema.json"));
	json_object_object_add(object, "exporter", json_object_new_string("causal"));
	json_object_object_add(object, "shared", shared);
	json_object_object_add(object, "profiles", profiles);
	ok = fputs(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE), file) >= 0 &&
	     fputc('\n', file) != EOF;
	json_object_put(object);
	return ok && !ferror(file);
}

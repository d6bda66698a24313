/* SPDX-License-Identifier: MIT */
/* Truths that were measured before: the file that --json has written, of whatever mode. A program's
 * truth does not depend on how causal is asked, but it does on a neighbour. */
#include "acc.h"
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static struct json_object *cases; /* lives as long as the process */

static double number(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) && value ? json_object_get_double(value) : NAN;
}

static struct json_object *member(struct json_object *object, const char *key, enum json_type type)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) && json_object_is_type(value, type) ? value
												  : NULL;
}

bool acc_truths_load(const struct acc_options *options, const char *path)
{
	struct json_object *file = json_object_from_file(path), *mode;
	const struct acc_mode *was;

	mode = file ? member(file, "mode", json_type_string) : NULL;
	was = mode ? acc_mode_find(json_object_get_string(mode)) : NULL;
	cases = file ? member(file, "cases", json_type_array) : NULL;
	if (!was || !cases) {
		fprintf(stderr, "run: --truths %s: not a file that --json has written\n", path);
		return false;
	}
	if (was->neighbour != options->mode->neighbour) {
		fprintf(stderr, "run: --truths %s: measured %s a neighbour; --mode %s needs others\n", path,
			was->neighbour ? "beside" : "without", options->mode->name);
		return false;
	}
	return true;
}

static bool take_cell(struct json_object *curve, double speedup, double *truth, double *error)
{
	for (size_t i = 0; i < json_object_array_length(curve); i++) {
		struct json_object *cell = json_object_array_get_idx(curve, i);

		*truth = number(cell, "truth");
		*error = number(cell, "truth_standard_error");
		if (number(cell, "speedup") == speedup && !isnan(*truth))
			return true;
	}
	return false;
}

bool acc_truths_take(const struct acc_options *options, struct acc_result *result)
{
	struct json_object *one = NULL, *name, *curve;
	bool found = false;

	for (size_t i = 0; cases && !found && i < json_object_array_length(cases); i++) {
		one = json_object_array_get_idx(cases, i);
		name = member(one, "case", json_type_string);
		found = name && !strcmp(json_object_get_string(name), result->c->name);
	}
	curve = found ? member(one, "curve", json_type_array) : NULL;
	for (size_t s = 0; curve && s < options->speedups; s++)
		if (!take_cell(curve, options->speedup[s], &result->truth[s], &result->truth_error[s]))
			return false;
	if (curve)
		result->base_rate = number(one, "base_rate");
	return curve != NULL;
}

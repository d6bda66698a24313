/* SPDX-License-Identifier: MIT */
/* The chosen progress points as a file; see choice.h. */
#include "causal/points/choice.h"
#include "causal/results/results_json.h"
#include "core/memstream.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const hows[] = { "auto", "user", "end-to-end" };

void ca_choice_fini(struct ca_choice *choice)
{
	for (size_t i = 0; i < choice->points; i++) {
		free(choice->point[i].name);
		free(choice->point[i].dropped);
	}
	free(choice->program);
	free(choice->reason);
	memset(choice, 0, sizeof *choice);
}

char *ca_choice_names(const struct ca_choice *choice)
{
	char *names = NULL;
	size_t size;
	FILE *out = open_memstream(&names, &size);
	bool any = false;

	if (!out)
		return NULL;
	for (size_t i = 0; i < choice->points; i++) {
		if (choice->point[i].dropped)
			continue;
		fprintf(out, "%s%s", any ? ";" : "", choice->point[i].name);
		any = true;
	}
	ca_memstream_end(out, &names);
	return names;
}

/* ---- writing -----------------------------------------------------------------------------*/
/* A few digits are enough to look at. */
static struct json_object *number(double value)
{
	char text[32];

	snprintf(text, sizeof text, "%.4g", isfinite(value) ? value : 0);
	return json_object_new_double_s(atof(text), text);
}

static struct json_object *point_object(const struct ca_choice_point *p)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "name", ca_results_json_text(p->name));
	json_object_object_add(object, "rate", number(p->rate));
	json_object_object_add(object, "spread", number(p->spread));
	json_object_object_add(object, "coverage", number(p->coverage));
	json_object_object_add(object, "unit", json_object_new_int64((int64_t)p->unit));
	if (p->dropped)
		json_object_object_add(object, "dropped", ca_results_json_text(p->dropped));
	return object;
}

static struct json_object *choice_object(const struct ca_choice *choice)
{
	struct json_object *object = json_object_new_object(), *points = json_object_new_array();

	json_object_object_add(object, "format", json_object_new_string("causal-progress"));
	json_object_object_add(object, "version", json_object_new_int(1));
	json_object_object_add(object, "program", ca_results_json_text(choice->program));
	json_object_object_add(object, "how", json_object_new_string(hows[choice->how]));
	json_object_object_add(object, "run", json_object_new_int64(choice->run));
	if (choice->reason)
		json_object_object_add(object, "reason", ca_results_json_text(choice->reason));
	for (size_t i = 0; i < choice->points; i++)
		json_object_array_add(points, point_object(&choice->point[i]));
	json_object_object_add(object, "points", points);
	return object;
}

enum ca_status ca_choice_write(const struct ca_choice *choice, const char *dir, struct ca_err *err)
{
	struct json_object *object = choice_object(choice);
	char *path = NULL, *fresh = NULL;
	bool ok = object && asprintf(&path, "%s/progress.json", dir) >= 0 &&
		  asprintf(&fresh, "%s/.progress.json.tmp", dir) >= 0;

	if (ok && (json_object_to_file_ext(fresh, object,
					   JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE) ||
		   rename(fresh, path))) {
		int error = errno;

		unlink(fresh);
		ca_err_set(err, CA_ERR_IO, "%s: %s", path, strerror(error));
		ok = false;
	}
	json_object_put(object);
	free(path);
	free(fresh);
	return ok ? CA_OK : CA_ERR_IO;
}

/* ---- reading -----------------------------------------------------------------------------*/
static bool read_point(struct ca_choice *choice, struct json_object *object)
{
	const char *name = ca_results_json_string(object, "name");
	const char *dropped = ca_results_json_string(object, "dropped");
	struct ca_choice_point *p = &choice->point[choice->points];

	if (!*name || choice->points == CA_CANDIDATES_CHOSEN)
		return false;
	*p = (struct ca_choice_point){ .name = strdup(name),
				       .rate = ca_results_json_double(object, "rate"),
				       .spread = ca_results_json_double(object, "spread"),
				       .coverage = ca_results_json_double(object, "coverage"),
				       .unit = choice->points,
				       .dropped = *dropped ? strdup(dropped) : NULL };
	if (ca_results_json_get(object, "unit") && ca_results_json_u64(object, "unit") < choice->points)
		p->unit = ca_results_json_u64(object, "unit");
	choice->points++;
	return p->name;
}

static bool read_choice(struct ca_choice *choice, struct json_object *object)
{
	struct json_object *points = ca_results_json_get(object, "points");
	const char *how = ca_results_json_string(object, "how");
	const char *reason = ca_results_json_string(object, "reason");
	size_t h = 0;

	while (h < sizeof hows / sizeof *hows && strcmp(how, hows[h]))
		h++;
	if (strcmp(ca_results_json_string(object, "format"), "causal-progress") ||
	    ca_results_json_u64(object, "version") != 1 || h == sizeof hows / sizeof *hows ||
	    !json_object_is_type(points, json_type_array))
		return false;
	choice->how = (enum ca_choice_how)h;
	choice->program = strdup(ca_results_json_string(object, "program"));
	choice->reason = *reason ? strdup(reason) : NULL;
	choice->run = (unsigned)ca_results_json_u64(object, "run");
	for (size_t i = 0; i < json_object_array_length(points); i++)
		if (!read_point(choice, json_object_array_get_idx(points, i)))
			return false;
	return choice->program && (choice->points || choice->how == CA_CHOICE_END_TO_END);
}

enum ca_status ca_choice_read(struct ca_choice *choice, const char *dir, struct ca_err *err)
{
	struct json_object *object;
	char *path;
	enum ca_status status = CA_OK;

	memset(choice, 0, sizeof *choice);
	if (asprintf(&path, "%s/progress.json", dir) < 0)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	if (access(path, F_OK)) {
		free(path);
		return ca_err_set(err, CA_ERR_NOT_FOUND, "no progress points are stored in %s", dir);
	}
	object = json_object_from_file(path);
	if (!object || !read_choice(choice, object)) {
		status = ca_err_set(err, CA_ERR_FORMAT,
				    "%s is damaged, or not written by causal; "
				    "remove it",
				    path);
		ca_choice_fini(choice);
	}
	json_object_put(object);
	free(path);
	return status;
}

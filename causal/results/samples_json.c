/* SPDX-License-Identifier: MIT */
/* sample.json, the file of a profile of samples: written and read back. The contract is doc/FORMAT.md.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "causal/results/samples.h"
#include "core/path.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The members that are numbers. X(name) */
#define NUMBERS(X)                                                                                           \
	X(time)                                                                                              \
	X(period)                                                                                            \
	X(delay)                                                                                             \
	X(runtime)                                                                                           \
	X(samples)                                                                                           \
	X(incomplete)                                                                                        \
	X(walked)                                                                                            \
	X(alike)                                                                                             \
	X(user)                                                                                              \
	X(system)                                                                                            \
	X(handler)                                                                                           \
	X(processes)                                                                                         \
	X(threads)

/* ---- writing ------------------------------------------------------------------------------*/
static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, ca_results_json_text(text));
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static struct json_object *four(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct json_object *array = json_object_new_array_ext(4);

	json_object_array_add(array, json_object_new_uint64(a));
	json_object_array_add(array, json_object_new_uint64(b));
	json_object_array_add(array, json_object_new_uint64(c));
	json_object_array_add(array, json_object_new_uint64(d));
	return array;
}

static struct json_object *functions_array(const struct ca_samples *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < s->functions; i++) {
		const struct ca_samples_function *f = &s->function[i];
		struct json_object *object = json_object_new_object();

		add_text(object, "kind", ca_samples_kind_name[f->kind]);
		add_text(object, "name", f->name);
		add_text(object, "file", f->file);
		add_u64(object, "line", f->line);
		add_text(object, "binary", f->binary);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *groups_array(const struct ca_samples *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < s->groups; i++) {
		const struct ca_samples_threads *g = &s->group[i];
		struct json_object *object = json_object_new_object();

		add_text(object, "process", g->process);
		add_text(object, "name", g->name);
		add_u64(object, "threads", g->threads);
		add_u64(object, "lifetime", g->lifetime);
		add_u64(object, "cpu", g->cpu);
		add_u64(object, "waiting", g->waiting);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *metrics_array(const struct ca_samples *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < s->metrics; i++) {
		struct json_object *object = json_object_new_object();

		add_text(object, "name", s->metric[i].name);
		add_text(object, "unit", s->metric[i].unit);
		json_object_object_add(object, "level", json_object_new_boolean(s->metric[i].level));
		if (s->metric[i].missing)
			add_text(object, "missing", s->metric[i].missing);
		json_object_array_add(array, object);
	}
	return array;
}

/* The number of a node, what was measured in it, and in how many samples each; nodes of which nothing was are left out. */
static struct json_object *measured_array(const struct ca_samples *s)
{
	struct json_object *array = json_object_new_array();

	for (uint32_t node = 1; node < s->nodes && node < s->measured_nodes; node++) {
		struct json_object *row = NULL;
		bool any = false;

		for (size_t i = 0; i < s->metrics; i++)
			any |= ca_samples_measured(s, node, i).value != 0;
		if (!any)
			continue;
		row = json_object_new_array();
		json_object_array_add(row, json_object_new_uint64(node));
		for (size_t i = 0; i < s->metrics; i++)
			json_object_array_add(row,
					      json_object_new_uint64(ca_samples_measured(s, node, i).value));
		for (size_t i = 0; i < s->metrics; i++)
			json_object_array_add(row,
					      json_object_new_uint64(ca_samples_measured(s, node, i).count));
		json_object_array_add(array, row);
	}
	return array;
}

/* The number of a node and its time on the critical path; those that are not on it are left out. */
static struct json_object *path_array(const struct ca_samples *s)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 1; i < s->nodes; i++) {
		struct json_object *row = s->node[i].path ? json_object_new_array_ext(2) : NULL;

		if (!row)
			continue;
		json_object_array_add(row, json_object_new_uint64(i));
		json_object_array_add(row, json_object_new_uint64(s->node[i].path));
		json_object_array_add(array, row);
	}
	return array;
}

struct json_object *ca_samples_json(const struct ca_samples *s)
{
	struct json_object *object = json_object_new_object(), *command = json_object_new_array();
	struct json_object *nodes = json_object_new_array(), *wakes = json_object_new_array();
	struct json_object *losses = json_object_new_array();

	add_text(object, "format", "causal-sample");
	add_u64(object, "version", 1);
	for (char **word = s->command; word && *word; word++)
		json_object_array_add(command, ca_results_json_text(*word));
	json_object_object_add(object, "command", command);
	add_text(object, "backend", s->backend);
#define X(name) add_u64(object, #name, s->name);
	NUMBERS(X)
#undef X
	if (s->no_cputime)
		json_object_object_add(object, "cputime", json_object_new_boolean(false));
	json_object_object_add(object, "exit_status", json_object_new_int(s->exit_status));
	json_object_object_add(object, "groups", groups_array(s));
	for (size_t i = 0; i < s->losses; i++) {
		struct json_object *loss = json_object_new_object();

		add_text(loss, "why", s->loss[i].why);
		add_u64(loss, "count", s->loss[i].count);
		json_object_array_add(losses, loss);
	}
	json_object_object_add(object, "losses", losses);
	json_object_object_add(object, "functions", functions_array(s));
	for (size_t i = 1; i < s->nodes; i++)
		json_object_array_add(
			nodes, four(s->node[i].parent, s->node[i].function, s->node[i].ns, s->node[i].count));
	json_object_object_add(object, "nodes", nodes);
	for (size_t i = 0; i < s->wakes; i++)
		json_object_array_add(
			wakes, four(s->wake[i].waiter, s->wake[i].waker, s->wake[i].ns, s->wake[i].count));
	json_object_object_add(object, "wakes", wakes);
	json_object_object_add(object, "path", path_array(s));
	if (s->metrics) {
		json_object_object_add(object, "metrics", metrics_array(s));
		json_object_object_add(object, "measured", measured_array(s));
	}
	return object;
}

bool ca_samples_write_json(const struct ca_samples *samples, FILE *file)
{
	struct json_object *object = ca_samples_json(samples);
	bool ok;

	ok = fputs(json_object_to_json_string_ext(object, JSON_C_TO_STRING_NOSLASHESCAPE), file) >= 0 &&
	     fputc('\n', file) != EOF;
	json_object_put(object);
	return ok && !ferror(file);
}

static bool fill(const void *samples, FILE *file)
{
	return ca_samples_write_json(samples, file);
}

enum ca_status ca_samples_write(const struct ca_samples *samples, const char *dir, struct ca_err *err)
{
	return ca_profile_replace(dir, CA_SAMPLES_FILE, fill, samples, err);
}

/* ---- reading ------------------------------------------------------------------------------*/
static size_t length_of(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
}

/* False: no count, and no time. One that is missing is 0: older files do not have all. */
static bool read_u64(struct json_object *number, uint64_t *value)
{
	*value = json_object_get_uint64(number);
	return !number || (json_object_is_type(number, json_type_int) && json_object_get_int64(number) >= 0);
}

/* False: they are not four numbers. */
static bool read_four(struct json_object *array, size_t i, uint64_t value[4])
{
	struct json_object *row = json_object_array_get_idx(array, i);

	if (length_of(row) < 4)
		return false;
	for (size_t k = 0; k < 4; k++)
		if (!read_u64(json_object_array_get_idx(row, k), &value[k]))
			return false;
	return true;
}

static enum ca_samples_kind kind_of(const char *name)
{
	for (unsigned i = 0; i < sizeof ca_samples_kind_name / sizeof *ca_samples_kind_name; i++)
		if (!strcmp(ca_samples_kind_name[i], name))
			return (enum ca_samples_kind)i;
	return CA_SAMPLES_CODE;
}

/* Numbers in the file are those of the arrays, so that nothing may be put together here. */
static bool read_functions(struct ca_samples *s, struct json_object *array)
{
	size_t n = length_of(array);

	s->function = calloc(n + 1, sizeof *s->function);
	for (size_t i = 0; s->function && i < n; i++) {
		struct json_object *object = json_object_array_get_idx(array, i);
		struct ca_samples_function *f = &s->function[s->functions++];

		f->kind = kind_of(ca_results_json_string(object, "kind"));
		f->name = strdup(ca_results_json_string(object, "name"));
		f->file = strdup(ca_results_json_string(object, "file"));
		f->binary = strdup(ca_results_json_string(object, "binary"));
		f->line = (unsigned)ca_results_json_u64(object, "line");
		if (!f->name || !f->file || !f->binary)
			return false;
	}
	return s->function;
}

static bool read_nodes(struct ca_samples *s, struct json_object *array)
{
	size_t n = length_of(array);
	struct ca_samples_node *node = calloc(n + 1, sizeof *node);
	uint64_t v[4];

	free(s->node);
	s->node = node;
	s->nodes = node != NULL;
	for (size_t i = 0; node && i < n; i++) {
		if (!read_four(array, i, v) || v[0] > i || !v[1] || v[1] > s->functions)
			return false;
		node[s->nodes++] =
			(struct ca_samples_node){ (uint32_t)v[0], (uint32_t)v[1], v[2], v[3],
						  json_object_get_uint64(json_object_array_get_idx(
							  json_object_array_get_idx(array, i), 4)) };
	}
	return node;
}

static bool read_wakes(struct ca_samples *s, struct json_object *array)
{
	size_t n = length_of(array);
	uint64_t v[4];

	s->wake = calloc(n + 1, sizeof *s->wake);
	for (size_t i = 0; s->wake && i < n; i++) {
		if (!read_four(array, i, v) || v[0] >= s->nodes || v[1] >= s->nodes)
			return false;
		s->wake[s->wakes++] = (struct ca_samples_wake){ (uint32_t)v[0], (uint32_t)v[1], v[2], v[3] };
	}
	return s->wake;
}

static bool read_path(struct ca_samples *s, struct json_object *array)
{
	for (size_t i = 0; i < length_of(array); i++) {
		struct json_object *row = json_object_array_get_idx(array, i);
		uint64_t node;

		if (length_of(row) != 2 || !read_u64(json_object_array_get_idx(row, 0), &node) ||
		    node >= s->nodes || !read_u64(json_object_array_get_idx(row, 1), &s->node[node].path))
			return false;
	}
	return true;
}

static bool read_metrics(struct ca_samples *s, struct json_object *metrics, struct json_object *measured)
{
	for (size_t i = 0; i < length_of(metrics) && i < CA_SAMPLES_METRICS; i++) {
		struct json_object *object = json_object_array_get_idx(metrics, i), *level;
		const char *missing = ca_results_json_string(object, "missing");

		level = ca_results_json_get(object, "level");
		ca_samples_add_metric(s, ca_results_json_string(object, "name"),
				      ca_results_json_string(object, "unit"), json_object_get_boolean(level));
		if (*missing && !(s->metric[i].missing = strdup(missing)))
			return false;
	}
	for (size_t i = 0; i < length_of(measured); i++) {
		struct json_object *row = json_object_array_get_idx(measured, i);
		uint64_t node = json_object_get_uint64(json_object_array_get_idx(row, 0));

		if ((length_of(row) != s->metrics + 1 && length_of(row) != 2 * s->metrics + 1) ||
		    node >= s->nodes)
			return false;
		for (size_t k = 1; k <= s->metrics; k++) {
			struct json_object *count = json_object_array_get_idx(row, s->metrics + k);

			/* before November 2026 there was no number of samples: it had all of the node's */
			ca_samples_measure(s, (uint32_t)node, k - 1,
					   json_object_get_uint64(json_object_array_get_idx(row, k)),
					   count ? json_object_get_uint64(count) : s->node[node].count);
		}
	}
	return !s->failed;
}

static bool read_rest(struct ca_samples *s, struct json_object *object)
{
	struct json_object *command = ca_results_json_get(object, "command");
	struct json_object *groups = ca_results_json_get(object, "groups");
	struct json_object *losses = ca_results_json_get(object, "losses");
	struct json_object *cputime = ca_results_json_get(object, "cputime");
	size_t n = length_of(command);

	snprintf(s->backend, sizeof s->backend, "%s", ca_results_json_string(object, "backend"));
	s->command = calloc(n + 1, sizeof *s->command);
	for (size_t i = 0; s->command && i < n; i++) {
		const char *word = json_object_get_string(json_object_array_get_idx(command, i));

		s->command[i] = strdup(word ? word : "");
		if (!s->command[i])
			return false;
	}
#define X(name)                                                                                              \
	if (!read_u64(ca_results_json_get(object, #name), &s->name))                                         \
		return false;
	NUMBERS(X)
#undef X
	s->no_cputime = cputime && !json_object_get_boolean(cputime);
	s->exit_status = (int)ca_results_json_double(object, "exit_status");
	for (size_t i = 0; i < length_of(groups); i++) {
		struct json_object *group = json_object_array_get_idx(groups, i);
		struct ca_samples_threads numbers = {
			.threads = ca_results_json_u64(group, "threads"),
			.lifetime = ca_results_json_u64(group, "lifetime"),
			.cpu = ca_results_json_u64(group, "cpu"),
			.waiting = ca_results_json_u64(group, "waiting"),
		};

		ca_samples_add_threads(s, ca_results_json_string(group, "process"),
				       ca_results_json_string(group, "name"), &numbers);
	}
	for (size_t i = 0; i < length_of(losses); i++) {
		struct json_object *loss = json_object_array_get_idx(losses, i);

		ca_samples_add_loss(s, ca_results_json_string(loss, "why"),
				    ca_results_json_u64(loss, "count"));
	}
	return s->command && !s->failed;
}

static bool is_dir(const char *path)
{
	struct stat status;

	return !stat(path, &status) && S_ISDIR(status.st_mode);
}

/* The file's path into `file`. */
static void find_file(const char *path, char file[PATH_MAX])
{
	snprintf(file, PATH_MAX, is_dir(path) ? "%s/" CA_SAMPLES_FILE : "%s", path);
}

bool ca_samples_is_there(const char *path)
{
	char file[PATH_MAX], run[PATH_MAX];

	find_file(path, file);
	snprintf(run, sizeof run, "%s/run-0001.jsonl", path);
	return !strcmp(ca_path_base(file), CA_SAMPLES_FILE) && !access(file, F_OK) && access(run, F_OK);
}

enum ca_status ca_samples_read(struct ca_samples **samples, const char *path, struct ca_err *err)
{
	char file[PATH_MAX];
	struct json_object *object;
	struct ca_samples *s;
	bool ok;

	find_file(path, file);
	if (access(file, R_OK))
		return ca_err_set(err, errno == ENOENT ? CA_ERR_NOT_FOUND : CA_ERR_IO, "%s: %s", file,
				  strerror(errno));
	object = json_object_from_file(file);
	if (strcmp(ca_results_json_string(object, "format"), "causal-sample") != 0 ||
	    ca_results_json_u64(object, "version") != 1) {
		json_object_put(object);
		return ca_err_set(err, CA_ERR_FORMAT, "%s is no profile of samples that this causal can read",
				  file);
	}
	s = ca_samples_new();
	ok = s && read_functions(s, ca_results_json_get(object, "functions")) &&
	     read_nodes(s, ca_results_json_get(object, "nodes")) &&
	     read_wakes(s, ca_results_json_get(object, "wakes")) &&
	     read_metrics(s, ca_results_json_get(object, "metrics"),
			  ca_results_json_get(object, "measured")) &&
	     read_path(s, ca_results_json_get(object, "path")) && read_rest(s, object);
	json_object_put(object);
	if (!ok) {
		ca_samples_free(s);
		return ca_err_set(err, CA_ERR_FORMAT, "%s is damaged, or there is no memory for it", file);
	}
	*samples = s;
	return CA_OK;
}

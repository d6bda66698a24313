/* SPDX-License-Identifier: MIT */
/* The reader of run files: lines into the profile's arrays. Tolerates what a killed driver
 * leaves behind. Not for: estimates (profile.c). Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include "core/latency.h"
#include "core/vec.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more element, zeroed. */
static void *more(void **array, size_t count, size_t size)
{
	void *grown = ca_vec_more(*array, count, size);

	if (!grown)
		return NULL;
	*array = grown;
	return memset((char *)*array + count * size, 0, size);
}
#define MORE(array, count) more((void **)&(array), (count), sizeof *(array))

static enum ca_status warn(struct ca_profile *profile, const char *text)
{
	for (size_t i = 0; i < profile->warnings; i++)
		if (!strcmp(profile->warning[i], text))
			return CA_OK;
	if (!MORE(profile->warning, profile->warnings))
		return CA_ERR_NOMEM;
	profile->warning[profile->warnings] = strdup(text);
	return profile->warning[profile->warnings] ? (profile->warnings++, CA_OK) : CA_ERR_NOMEM;
}

/* The id of a record's region; 0 for null. False: no memory. */
static bool read_region(struct ca_profile *profile, struct json_object *record, uint32_t *id)
{
	struct json_object *object = ca_results_json_get(record, "region");
	static const char *const key[] = { "name", "file", "function", "binary" };
	char *text[4]; /* borrowed: the catalog makes copies */
	const struct ca_region *added;

	*id = 0;
	if (!object)
		return true;
	for (int i = 0; i < 4; i++)
		text[i] = (char *)(uintptr_t)ca_results_json_string(object, key[i]);
	added = ca_catalog_add_region(&profile->catalog,
				      &(struct ca_region){
					      .kind = !strcmp(ca_results_json_string(object, "kind"), "line")
							      ? CA_REGION_LINE
							      : CA_REGION_FUNCTION,
					      .name = text[0],
					      .file = text[1],
					      .function = text[2],
					      .binary = text[3],
					      .line = (unsigned)ca_results_json_u64(object, "line"),
				      });
	if (added)
		*id = added->id;
	return added;
}

/* Optional. False: no memory. */
static bool read_name(struct json_object *object, const char *key, char **name)
{
	const char *text = ca_results_json_string(object, key);

	*name = *text ? strdup(text) : NULL;
	return *name || !*text;
}

static bool read_point(struct ca_profile *profile, struct json_object *object, uint32_t *number)
{
	const char *name = ca_results_json_string(object, "point");
	const char *kind = ca_results_json_string(object, "kind");
	struct ca_profile_point *point;
	/* time is the same unit in whole runs */
	bool whole =
		profile->run[profile->runs - 1].end_to_end && *kind != 'e' && strcmp(name, CA_RESULTS_TIME);

	for (size_t i = 0; i < profile->points; i++)
		if (profile->point[i].kind == *kind && profile->point[i].whole == whole &&
		    !strcmp(profile->point[i].name, name)) {
			*number = (uint32_t)i;
			return true;
		}
	if (!MORE(profile->point, profile->points))
		return false;
	point = &profile->point[profile->points];
	point->kind = *kind;
	point->whole = whole;
	*number = (uint32_t)profile->points++;
	return (point->name = strdup(name)) && read_name(object, "unit", &point->unit) &&
	       read_name(object, "beside", &point->beside) && read_name(object, "instead", &point->instead);
}

static uint32_t read_flags(struct json_object *record)
{
	struct json_object *flags = ca_results_json_get(record, "flags");
	uint32_t result = 0;

	if (!json_object_is_type(flags, json_type_array))
		return 0;
	for (size_t i = 0; i < json_object_array_length(flags); i++) {
		const char *flag = json_object_get_string(json_object_array_get_idx(flags, i));
		uint32_t bit = CA_EXPERIMENT_CUT; /* a flag we do not know: not to be used */

		for (unsigned k = 0; flag && k < CA_EXPERIMENT_FLAGS; k++)
			if (!strcmp(flag, ca_results_flag[k]))
				bit = 1u << k;
		result |= bit;
	}
	return result;
}

/* Numbers that are none, or name no bucket, are left out. */
static bool read_times(struct ca_profile *profile, struct json_object *object,
		       struct ca_profile_visits *visits)
{
	struct json_object *list = ca_results_json_get(object, "times");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	visits->first_time = profile->time_count;
	for (size_t i = 0; i + 1 < n; i += 2) {
		uint64_t bucket = json_object_get_uint64(json_object_array_get_idx(list, i));
		uint64_t count = json_object_get_uint64(json_object_array_get_idx(list, i + 1));

		if (bucket >= CA_LATENCY_BUCKETS || count > UINT32_MAX)
			continue;
		if (!MORE(profile->times, profile->time_count))
			return false;
		profile->times[profile->time_count++] =
			(struct ca_profile_time){ (uint32_t)bucket, (uint32_t)count };
	}
	visits->times = profile->time_count - visits->first_time;
	return true;
}

static bool read_visits(struct ca_profile *profile, struct json_object *record,
			struct ca_profile_experiment *experiment)
{
	struct json_object *list = ca_results_json_get(record, "progress");
	size_t n = json_object_is_type(list, json_type_array) ? json_object_array_length(list) : 0;

	experiment->first = profile->visit_count;
	for (size_t i = 0; i < n; i++) {
		struct json_object *object = json_object_array_get_idx(list, i);
		struct ca_profile_visits *visits;

		if (!*ca_results_json_string(object, "kind"))
			continue;
		visits = MORE(profile->visits, profile->visit_count);
		if (!visits || !read_point(profile, object, &visits->point))
			return false;
		profile->point[visits->point].works |=
			json_object_get_boolean(ca_results_json_get(object, "refuted"));
		visits->delta = ca_results_json_u64(object, "delta");
		visits->span = ca_results_json_u64(object, "span");
		visits->before = ca_results_json_u64(object, "before");
		visits->arrivals = ca_results_json_u64(object, "arrivals");
		visits->in_flight = ca_results_json_double(object, "in_flight");
		if (!read_times(profile, object, visits))
			return false;
		profile->visit_count++;
	}
	experiment->visits = profile->visit_count - experiment->first;
	return true;
}

/* A number that older files, or some records, do not have. */
static uint64_t known_u64(struct json_object *record, const char *key)
{
	return ca_results_json_get(record, key) ? ca_results_json_u64(record, key) : UINT64_MAX;
}

static bool read_experiment(struct ca_profile *profile, struct json_object *record)
{
	struct ca_profile_experiment *experiment = MORE(profile->experiment, profile->experiments);
	double percent = ca_results_json_double(record, "speedup");
	uint32_t region;

	if (!experiment || !read_region(profile, record, &region))
		return false;
	*experiment = (struct ca_profile_experiment){
		.run = (uint32_t)profile->runs - 1,
		.index = (uint32_t)ca_results_json_u64(record, "index"),
		.region = region,
		.speedup = percent > 0 && percent <= 100 ? (uint32_t)(percent * 1e4 + 0.5) : 0,
		.flags = read_flags(record),
		.start = ca_results_json_u64(record, "start"),
		.end = ca_results_json_u64(record, "end"),
		.at = ca_results_json_u64(record, "at"),
		.duration = ca_results_json_u64(record, "duration"),
		.delay = ca_results_json_u64(record, "delay"),
		.still = ca_results_json_u64(record, "still"),
		.probes = ca_results_json_u64(record, "probes"),
		.hits = ca_results_json_u64(record, "hits"),
		.s_time = ca_results_json_u64(record, "s_time"),
		.lost = known_u64(record, "lost"),
		.queued = known_u64(record, "queued"),
		.idled = ca_results_json_u64(record, "idled"),
		.periods = ca_results_json_u64(record, "periods"),
		.inside = ca_results_json_u64(record, "inside"),
		.work = ca_results_json_u64(record, "work"),
		.turns = ca_results_json_u64(record, "turns"),
		.met = known_u64(record, "met"),
		.overhead = ca_results_json_u64(record, "overhead"),
		.overhead_in_s = ca_results_json_u64(record, "overhead_in_s"),
		.yardstick = ca_results_json_u64(record, "yardstick"),
		.paying = known_u64(record, "paying"),
		.limits = ca_results_json_u64(record, "limits"),
		.outside = ca_results_json_u64(record, "outside"),
		.exact = json_object_get_boolean(ca_results_json_get(record, "exact")),
	};
	if (!read_visits(profile, record, experiment))
		return false;
	profile->experiments++;
	return true;
}

/* The names in an array, or NULL if there is none. False: no memory. */
static bool read_names(struct json_object *record, const char *key, char ***names)
{
	struct json_object *array = ca_results_json_get(record, key);
	size_t n = json_object_is_type(array, json_type_array) ? json_object_array_length(array) : 0;
	char **list = n ? calloc(n + 1, sizeof *list) : NULL;

	for (size_t i = 0; list && i < n; i++) {
		const char *name = json_object_get_string(json_object_array_get_idx(array, i));

		list[i] = strdup(name ? name : "");
		if (!list[i]) {
			ca_profile_free_names(list);
			list = NULL;
		}
	}
	*names = list;
	return list || !n;
}

/* Counts only grow within a run: the last one of a region stands. */
static bool read_samples(struct ca_profile *profile, struct json_object *record)
{
	uint32_t region, run = (uint32_t)profile->runs - 1;
	struct ca_profile_samples *samples = NULL;

	if (!read_region(profile, record, &region))
		return false;
	if (!region)
		return true;
	for (size_t i = profile->sample_count; i-- > 0 && profile->samples[i].run == run && !samples;)
		if (profile->samples[i].region == region)
			samples = &profile->samples[i];
	if (samples) {
		ca_profile_free_names(samples->via);
		ca_profile_free_names(samples->contains);
		ca_profile_free_names(samples->calls);
	} else {
		samples = MORE(profile->samples, profile->sample_count);
		if (!samples)
			return false;
		profile->sample_count++;
	}
	*samples = (struct ca_profile_samples){ .run = run,
						.region = region,
						.count = ca_results_json_u64(record, "count"),
						.own = known_u64(record, "own"),
						.waited = ca_results_json_u64(record, "waited"),
						.spins = ca_results_json_u64(record, "spins"),
						.silent = ca_results_json_u64(record, "silent"),
						.since = ca_results_json_double(record, "since") };
	return read_names(record, "via", &samples->via) &&
	       read_names(record, "contains", &samples->contains) &&
	       read_names(record, "calls", &samples->calls);
}

static bool read_scope(struct ca_profile *profile, struct json_object *record)
{
	const char *binary = ca_results_json_string(record, "binary");
	struct ca_profile_scope *scope = NULL;

	/* the first one of a run: what it does not name had no share in it */
	for (size_t i = 0; i < profile->scopes && profile->scoped != profile->runs; i++)
		profile->scope[i].share = 0;
	profile->scoped = profile->runs;
	for (size_t i = 0; i < profile->scopes && !scope; i++)
		if (!strcmp(profile->scope[i].binary, binary))
			scope = &profile->scope[i];
	if (!scope) {
		scope = MORE(profile->scope, profile->scopes);
		if (!scope || !(scope->binary = strdup(binary)))
			return false;
		profile->scopes++;
	}
	scope->share = ca_results_json_double(record, "share");
	scope->in_scope = json_object_get_boolean(ca_results_json_get(record, "in_scope"));
	return true;
}

static bool read_binary(struct ca_profile *profile, struct json_object *record)
{
	const char *path = ca_results_json_string(record, "binary");
	const char *build_id = ca_results_json_string(record, "build_id");
	struct ca_profile_binary *binary;

	for (size_t i = 0; i < profile->binaries; i++)
		if (!strcmp(profile->binary[i].path, path) && !strcmp(profile->binary[i].build_id, build_id))
			return true;
	binary = MORE(profile->binary, profile->binaries);
	if (!binary)
		return false;
	profile->binaries++;
	binary->path = strdup(path);
	binary->build_id = strdup(build_id);
	return binary->path && binary->build_id;
}

static char *join(char *const *words)
{
	size_t length = 1;
	char *text, *to;

	for (char *const *word = words; word && *word; word++)
		length += strlen(*word) + 1;
	to = text = calloc(length, 1);
	for (char *const *word = words; to && word && *word; word++)
		to = stpcpy(word == words ? to : stpcpy(to, " "), *word);
	return text;
}

static bool read_run(struct ca_profile *profile, struct json_object *record)
{
	struct ca_profile_run *run = MORE(profile->run, profile->runs);

	if (!run)
		return false;
	profile->runs++;
	run->number = (unsigned)ca_results_json_u64(record, "run");
	run->iteration = (unsigned)ca_results_json_u64(record, "iteration");
	if (!read_names(record, "command", &run->word) || !read_names(record, "options", &run->options))
		return false;
	run->command = join(run->word);
	run->mode = strdup(ca_results_json_string(record, "mode"));
	run->backend = strdup(ca_results_json_string(record, "backend"));
	run->speedups = strdup(ca_results_json_string(record, "speedups"));
	run->scope = strdup(ca_results_json_string(record, "scope"));
	run->end_to_end = json_object_get_boolean(ca_results_json_get(record, "end_to_end"));
	run->seed = ca_results_json_u64(record, "seed");
	run->time = ca_results_json_u64(record, "time");
	run->clock = ca_results_json_u64(record, "clock");
	return run->command && run->mode && run->backend && run->speedups && run->scope;
}

static struct ca_silence read_silence(struct json_object *object, const struct ca_run_summary *run)
{
	if (!object || run->runtime <= run->inserted)
		return (struct ca_silence){ 0 };
	return (struct ca_silence){
		.length = (double)(run->runtime - run->inserted) / 1e9,
		.sampled = (double)run->periods,
		.inserted = (double)run->inserted / 1e9,
		.before = (double)ca_results_json_u64(object, "before") / 1e9,
		.after = (double)ca_results_json_u64(object, "after") / 1e9,
		.between = (double)ca_results_json_u64(object, "between") / 1e9,
		.cpu = (double)ca_results_json_u64(object, "cpu") / 1e9,
		.samples = (double)ca_results_json_u64(object, "samples"),
		.early = run->left || json_object_get_boolean(ca_results_json_get(object, "early")),
	};
}

static bool read_end(struct ca_profile *profile, struct json_object *record)
{
	const char *backend = ca_results_json_string(record, "backend");
	struct ca_profile_run *run = &profile->run[profile->runs - 1];
	struct json_object *drops = ca_results_json_get(record, "drops");

	run->ended = true;
	run->summary = (struct ca_run_summary){
		.exit_status = (int)ca_results_json_u64(record, "exit_status"),
		.runtime = ca_results_json_u64(record, "runtime"),
		.inserted = ca_results_json_u64(record, "inserted"),
		.samples = ca_results_json_u64(record, "samples"),
		.in_scope = ca_results_json_u64(record, "in_scope"),
		.in_main = ca_results_json_u64(record, "in_main"),
		.periods = ca_results_json_u64(record, "periods"),
		.waited = ca_results_json_u64(record, "waited"),
		.squares = ca_results_json_u64(record, "squares"),
		.started = ca_results_json_u64(record, "started"),
		.kept = ca_results_json_u64(record, "kept"),
		.visits = ca_results_json_u64(record, "visits"),
		.handler_ns = ca_results_json_u64(record, "handler_ns"),
		.cpu_ns = ca_results_json_u64(record, "cpu_ns"),
		.outside = json_object_get_boolean(ca_results_json_get(record, "outside")),
		.off = json_object_get_boolean(ca_results_json_get(record, "off")),
		.left = json_object_get_boolean(ca_results_json_get(record, "left")),
	};
	for (unsigned i = 0; i < CA_DROP_COUNT; i++)
		run->summary.drop[i] = ca_results_json_u64(drops, ca_results_drop_name(i));
	run->summary.silence = read_silence(ca_results_json_get(record, "silence"), &run->summary);
	/* what the run really had goes before what it set out with */
	if (*backend && strcmp(backend, "none")) {
		free(run->backend);
		run->backend = strdup(backend);
	}
	return run->backend;
}

static enum ca_status read_line(struct ca_profile *profile, struct json_object *record, bool *has_run,
				const char *path, struct ca_err *err)
{
	const char *type = ca_results_json_string(record, "type");
	bool ok = true;

	if (!*has_run) {
		if (strcmp(type, "run") != 0 ||
		    strcmp(ca_results_json_string(record, "format"), "causal-run") != 0)
			return ca_err_set(err, CA_ERR_FORMAT,
					  "%s is not a run file: it does not begin with a run "
					  "record; remove it from the directory",
					  path);
		if (ca_results_json_u64(record, "version") != 1)
			return ca_err_set(err, CA_ERR_FORMAT,
					  "%s has version %llu of the format; this program reads "
					  "version 1: use a newer causal",
					  path, (unsigned long long)ca_results_json_u64(record, "version"));
		*has_run = true;
		ok = read_run(profile, record);
	} else if (!strcmp(type, "experiment")) {
		ok = read_experiment(profile, record);
	} else if (!strcmp(type, "samples")) {
		ok = read_samples(profile, record);
	} else if (!strcmp(type, "scope")) {
		ok = read_scope(profile, record);
	} else if (!strcmp(type, "binary")) {
		ok = read_binary(profile, record);
	} else if (!strcmp(type, "stack")) {
		ok = ca_profile_read_stack(profile, record);
	} else if (!strcmp(type, "warning")) {
		ok = warn(profile, ca_results_json_string(record, "text")) == CA_OK;
	} else if (!strcmp(type, "end")) {
		ok = read_end(profile, record);
	} /* other types: a later minor version may add some */
	return ok ? CA_OK : ca_err_set(err, CA_ERR_NOMEM, "no memory to read %s", path);
}

enum ca_status ca_profile_read(struct ca_profile *profile, const char *path, struct ca_err *err)
{
	FILE *file = fopen(path, "re");
	enum ca_status status = CA_OK;
	bool has_run = false;
	size_t size = 0, bad = 0;
	char *line = NULL;
	ssize_t length;

	if (!file)
		return ca_err_set(err, CA_ERR_IO, "cannot read %s: %s", path, strerror(errno));
	while (status == CA_OK && (length = getline(&line, &size, file)) > 0) {
		/* A line without its end was torn off by a death; its record never happened. */
		bool whole = line[length - 1] == '\n';
		struct json_object *record = whole ? json_tokener_parse(line) : NULL;

		if (!json_object_is_type(record, json_type_object))
			bad += whole;
		else
			status = read_line(profile, record, &has_run, path, err);
		json_object_put(record);
	}
	if (status == CA_OK && !feof(file)) /* an error, or no memory for the line */
		status = ca_err_set(err, CA_ERR_IO, "cannot read %s: %s", path, strerror(errno));
	if (status == CA_OK && bad) {
		char text[600];

		profile->unread += bad;
		snprintf(text, sizeof text, "%s: %zu line%s could not be read and %s left out", path, bad,
			 bad == 1 ? "" : "s", bad == 1 ? "was" : "were");
		if (warn(profile, text))
			status = ca_err_set(err, CA_ERR_NOMEM, "no memory to read %s", path);
	}
	free(line);
	fclose(file);
	return status;
}

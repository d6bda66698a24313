/* SPDX-License-Identifier: MIT */
/* The writer of run files: one JSON object a line, each line one write(2), at once.
 * Not for: reading them (results_read.c) or making anything of them (profile.c).
 * Driver's process, one thread. The format's contract is doc/FORMAT.md. */
#include "causal/results/results.h"
#include "causal/results/results_json.h"
#include "core/clock.h"
#include "core/event.h"
#include "core/latency.h"
#include "core/point.h"
#include "sampler/tick.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ca_results {
	int fd;
	off_t size; /* end of the last whole record */
	const struct ca_catalog *catalog;
	char path[PATH_MAX];
};

static const char *remedy(int error)
{
	switch (error) {
	case ENOSPC:
	case EDQUOT:
		return "free some space or choose another directory with -o; what was written "
		       "before is kept";
	case EFBIG:
		return "raise the file size limit (ulimit -f); what was written before is kept";
	case EACCES:
	case EPERM:
	case EROFS:
		return "choose a directory that you may write to with -o";
	case EEXIST:
		return "choose another directory with -o, or remove earlier results with -r";
	case ENOENT:
	case ENOTDIR:
		return "create the directory or choose another one with -o";
	default:
		return "choose another directory with -o";
	}
}

/* One line, one write. After a short write the file is cut back to the last whole record, so
 * that a full disk never leaves half a line in the middle once there is room again. */
static enum ca_status put(struct ca_results *results, struct json_object *record, struct ca_err *err)
{
	const char *text = json_object_to_json_string_ext(record, JSON_C_TO_STRING_PLAIN |
									  JSON_C_TO_STRING_NOSLASHESCAPE);
	size_t length = text ? strlen(text) : 0;
	char *line = text ? malloc(length + 1) : NULL;
	enum ca_status status = CA_OK;
	ssize_t done;

	if (!line) {
		json_object_put(record);
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for a record of %s", results->path);
	}
	memcpy(line, text, length);
	line[length] = '\n';
	json_object_put(record);
	do
		done = write(results->fd, line, length + 1);
	while (done < 0 && errno == EINTR);
	if (done == (ssize_t)length + 1) {
		results->size += done;
	} else {
		int error = done < 0 ? errno : ENOSPC;

		if (done > 0 && ftruncate(results->fd, results->size) != 0)
			error = errno;
		status = ca_err_set(err, CA_ERR_IO, "cannot write to %s: %s; %s", results->path,
				    strerror(error), remedy(error));
	}
	free(line);
	return status;
}

static struct json_object *new_record(const char *type)
{
	struct json_object *record = json_object_new_object();

	json_object_object_add(record, "type", json_object_new_string(type));
	return record;
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
	json_object_object_add(object, key, ca_results_json_text(text));
}

static void add_u64(struct json_object *object, const char *key, uint64_t value)
{
	json_object_object_add(object, key, json_object_new_uint64(value));
}

static void add_bool(struct json_object *object, const char *key, bool value)
{
	json_object_object_add(object, key, json_object_new_boolean(value));
}

static enum ca_status put_run(struct ca_results *results, const struct ca_run_info *info, struct ca_err *err)
{
	struct json_object *record = new_record("run"), *command = json_object_new_array();
	struct json_object *options = json_object_new_array();

	add_text(record, "format", "causal-run");
	add_u64(record, "version", 1);
	add_u64(record, "run", info->run);
	add_u64(record, "iteration", info->iteration);
	for (const char *const *word = info->command; word && *word; word++)
		json_object_array_add(command, ca_results_json_text(*word));
	json_object_object_add(record, "command", command);
	for (const char *const *word = info->options; word && *word; word++)
		json_object_array_add(options, ca_results_json_text(*word));
	json_object_object_add(record, "options", options);
	add_text(record, "mode", info->mode);
	add_text(record, "backend", info->backend);
	add_bool(record, "end_to_end", info->end_to_end);
	add_text(record, "speedups", info->speedups);
	if (info->scope && *info->scope)
		add_text(record, "scope", info->scope);
	add_u64(record, "seed", info->seed);
	/* Both clocks at one moment: later runs may follow a reboot, and the reader needs one
	 * time axis for all of them. */
	add_u64(record, "time", ca_clock_read(CLOCK_REALTIME));
	add_u64(record, "clock", ca_clock_now());
	return put(results, record, err);
}

enum ca_status ca_results_open(struct ca_results **results, const char *dir, const struct ca_run_info *info,
			       const struct ca_catalog *catalog, struct ca_err *err)
{
	struct ca_results *new = calloc(1, sizeof *new);
	enum ca_status status;

	if (!new)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the results of run %u", info->run);
	new->catalog = catalog;
	snprintf(new->path, sizeof new->path, "%s/run-%04u.jsonl", dir, info->run);
	new->fd = open(new->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
	if (new->fd < 0) {
		status = ca_err_set(err, errno == EACCES || errno == EPERM ? CA_ERR_PERMISSION : CA_ERR_IO,
				    "cannot create %s: %s; %s", new->path, strerror(errno), remedy(errno));
		free(new);
		return status;
	}
	status = put_run(new, info, err);
	if (status) {
		close(new->fd);
		unlink(new->path); /* nothing is in it */
		free(new);
		return status;
	}
	*results = new;
	return CA_OK;
}

static struct json_object *region_object(const struct ca_results *results, uint32_t id)
{
	const struct ca_region *region = ca_catalog_get_region(results->catalog, id);
	struct json_object *object;

	if (!region)
		return NULL; /* written as null: an experiment without a selection */
	object = json_object_new_object();
	add_text(object, "name", region->name);
	add_text(object, "kind", region->kind == CA_REGION_LINE ? "line" : "function");
	add_text(object, "file", region->file);
	add_u64(object, "line", region->line);
	add_text(object, "function", region->function);
	add_text(object, "binary", region->binary);
	return object;
}

const char *const ca_results_flag[CA_EXPERIMENT_FLAGS] = { "cut",       "no-visit", "stalled", "overflow",
							   "disturbed", "unplaced", "books",   "ahead" };

static struct json_object *flag_array(uint32_t flags)
{
	struct json_object *array = json_object_new_array();

	for (unsigned i = 0; i < CA_EXPERIMENT_FLAGS; i++)
		if (flags & 1u << i)
			json_object_array_add(array, json_object_new_string(ca_results_flag[i]));
	return array;
}

/* Bucket and count, bucket and count ...; NULL: not known, or there are none. */
static struct json_object *times_array(const uint32_t *times)
{
	struct json_object *array = json_object_new_array();
	size_t n = 0;

	for (unsigned b = 0; times && b < CA_LATENCY_BUCKETS; b++)
		if (times[b]) {
			json_object_array_add(array, json_object_new_int64(b));
			json_object_array_add(array, json_object_new_int64(times[b]));
			n++;
		}
	if (n)
		return array;
	json_object_put(array);
	return NULL;
}

/* Both halves of a latency point have the same name; one entry stands for them. */
static struct json_object *progress_array(const struct ca_results *results,
					  const struct ca_experiment_record *record)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < record->visit_count; i++) {
		const struct ca_visits *visits = &record->visits[i];
		const struct ca_point_info *point = ca_catalog_get_point(results->catalog, visits->point);
		struct json_object *object, *times;

		if (!point)
			continue;
		object = json_object_new_object();
		add_text(object, "point", point->name);
		add_text(object, "kind",
			 point->kind == 0                     ? "end-to-end"
			 : point->kind == CA_POINT_THROUGHPUT ? "throughput"
							      : "latency");
		if (visits->unit)
			add_text(object, "unit", visits->unit);
		if (visits->beside)
			add_text(object, "beside", visits->beside);
		if (visits->instead)
			add_text(object, "instead", visits->instead);
		if (visits->refuted)
			add_bool(object, "refuted", true);
		add_u64(object, "delta", visits->delta);
		if (visits->span)
			add_u64(object, "span", visits->span);
		if (visits->before)
			add_u64(object, "before", visits->before);
		if (point->kind == CA_POINT_BEGIN || point->kind == CA_POINT_END) {
			add_u64(object, "arrivals", visits->arrivals);
			json_object_object_add(object, "in_flight",
					       json_object_new_double(visits->in_flight));
			times = times_array(visits->times);
			if (times)
				json_object_object_add(object, "times", times);
		}
		json_object_array_add(array, object);
	}
	return array;
}

enum ca_status ca_results_experiment(struct ca_results *results, const struct ca_experiment_record *record,
				     struct ca_err *err)
{
	struct json_object *object = new_record("experiment");
	uint64_t elapsed = record->end > record->start ? record->end - record->start : 0;

	add_u64(object, "index", record->index);
	json_object_object_add(object, "region", region_object(results, record->region));
	json_object_object_add(object, "speedup", json_object_new_double(record->speedup / 1e4));
	add_u64(object, "start", record->start);
	add_u64(object, "end", record->end);
	if (record->at)
		add_u64(object, "at", record->at);
	add_u64(object, "duration", elapsed > record->delay ? elapsed - record->delay : 0);
	add_u64(object, "s_time", record->s_time);
	add_u64(object, "delay", record->delay);
	if (record->still)
		add_u64(object, "still", record->still);
	if (record->probes)
		add_u64(object, "probes", record->probes);
	add_u64(object, "paid", record->paid);
	add_u64(object, "owed", record->owed);
	if (record->paying != UINT64_MAX)
		add_u64(object, "paying", record->paying);
	add_u64(object, "limits", record->limits);
	if (record->lost != UINT64_MAX)
		add_u64(object, "lost", record->lost);
	if (record->queued != UINT64_MAX)
		add_u64(object, "queued", record->queued);
	if (record->idled)
		add_u64(object, "idled", record->idled);
	if (record->outside)
		add_u64(object, "outside", record->outside);
	add_u64(object, "hits", record->hits);
	add_u64(object, "periods", record->periods);
	add_u64(object, "inside", record->inside);
	if (record->work)
		add_u64(object, "work", record->work);
	if (record->turns)
		add_u64(object, "turns", record->turns);
	if (!record->exact)
		add_u64(object, "met", record->met);
	if (record->overhead)
		add_u64(object, "overhead", record->overhead);
	if (record->overhead_in_s)
		add_u64(object, "overhead_in_s", record->overhead_in_s);
	if (record->yardstick)
		add_u64(object, "yardstick", record->yardstick);
	add_bool(object, "exact", record->exact);
	json_object_object_add(object, "flags", flag_array(record->flags));
	json_object_object_add(object, "progress", progress_array(results, record));
	return put(results, object, err);
}

static void add_names(struct json_object *object, const char *key, const char *const *name)
{
	struct json_object *array;

	if (!name || !*name)
		return;
	array = json_object_new_array();
	for (; *name; name++)
		json_object_array_add(array, ca_results_json_text(*name));
	json_object_object_add(object, key, array);
}

enum ca_status ca_results_samples(struct ca_results *results, uint32_t region, uint64_t count,
				  const struct ca_region_stacks *stacks, struct ca_err *err)
{
	struct json_object *record = new_record("samples");

	json_object_object_add(record, "region", region_object(results, region));
	add_u64(record, "count", count);
	if (stacks) {
		if (stacks->own != UINT64_MAX)
			add_u64(record, "own", stacks->own);
		if (stacks->waited)
			add_u64(record, "waited", stacks->waited);
		if (stacks->spins)
			add_u64(record, "spins", stacks->spins);
		if (stacks->silent)
			add_u64(record, "silent", stacks->silent);
		add_names(record, "via", stacks->via);
		add_names(record, "contains", stacks->contains);
		add_names(record, "calls", stacks->calls);
		if (stacks->since > 0)
			json_object_object_add(record, "since", json_object_new_double(stacks->since));
	}
	return put(results, record, err);
}

enum ca_status ca_results_stack(struct ca_results *results, const char *const *name, size_t n, uint64_t count,
				struct ca_err *err)
{
	struct json_object *record = new_record("stack"), *frames = json_object_new_array();

	for (size_t i = 0; i < n; i++)
		json_object_array_add(frames, ca_results_json_text(name[i]));
	json_object_object_add(record, "frames", frames);
	add_u64(record, "count", count);
	return put(results, record, err);
}

enum ca_status ca_results_scope(struct ca_results *results, const char *binary, double share, bool in_scope,
				struct ca_err *err)
{
	struct json_object *record = new_record("scope");

	add_text(record, "binary", binary);
	json_object_object_add(record, "share", json_object_new_double(share));
	add_bool(record, "in_scope", in_scope);
	return put(results, record, err);
}

enum ca_status ca_results_binary(struct ca_results *results, const char *path, const uint8_t *build_id,
				 size_t length, struct ca_err *err)
{
	struct json_object *record = new_record("binary");
	char text[2 * 64 + 1] = "";

	for (size_t i = 0; i < length && i < 64; i++)
		snprintf(text + 2 * i, 3, "%02x", build_id[i]);
	json_object_object_add(record, "binary", ca_results_json_text(path));
	json_object_object_add(record, "build_id", ca_results_json_text(text));
	return put(results, record, err);
}

enum ca_status ca_results_warning(struct ca_results *results, const char *text, struct ca_err *err)
{
	struct json_object *record = new_record("warning");

	add_text(record, "text", text);
	return put(results, record, err);
}

static const char *backends_name(unsigned backends)
{
	unsigned perf = 1u << CA_BACKEND_PERF, timer = 1u << CA_BACKEND_TIMER;

	return backends == (perf | timer) ? "mixed"
	       : backends == perf         ? "perf"
	       : backends == timer        ? "timer"
					  : "none";
}

/* ns, and periods. */
static struct json_object *silence_object(const struct ca_silence *silence)
{
	struct json_object *object = json_object_new_object();

	add_u64(object, "before", (uint64_t)(silence->before * 1e9));
	add_u64(object, "after", (uint64_t)(silence->after * 1e9));
	add_u64(object, "between", (uint64_t)(silence->between * 1e9));
	add_u64(object, "cpu", (uint64_t)(silence->cpu * 1e9));
	add_u64(object, "samples", (uint64_t)silence->samples);
	if (silence->early)
		json_object_object_add(object, "early", json_object_new_boolean(true));
	return object;
}

static enum ca_status put_end(struct ca_results *results, const struct ca_run_summary *summary,
			      struct ca_err *err)
{
	struct json_object *record = new_record("end"), *drops = json_object_new_object();

	add_u64(record, "exit_status", (uint64_t)(unsigned)summary->exit_status);
	add_u64(record, "runtime", summary->runtime);
	add_u64(record, "inserted", summary->inserted);
	add_u64(record, "samples", summary->samples);
	add_u64(record, "in_scope", summary->in_scope);
	if (summary->in_main)
		add_u64(record, "in_main", summary->in_main);
	add_u64(record, "periods", summary->periods);
	if (summary->waited)
		add_u64(record, "waited", summary->waited);
	add_u64(record, "squares", summary->squares);
	for (unsigned i = 0; i < CA_DROP_COUNT; i++)
		add_u64(drops, ca_results_drop_name(i), summary->drop[i]);
	json_object_object_add(record, "drops", drops);
	add_u64(record, "started", summary->started);
	add_u64(record, "kept", summary->kept);
	add_u64(record, "visits", summary->visits);
	add_u64(record, "handler_ns", summary->handler_ns);
	add_u64(record, "cpu_ns", summary->cpu_ns);
	add_text(record, "backend", backends_name(summary->backends));
	if (summary->silence.length > 0)
		json_object_object_add(record, "silence", silence_object(&summary->silence));
	if (summary->outside)
		json_object_object_add(record, "outside", json_object_new_boolean(true));
	if (summary->off)
		json_object_object_add(record, "off", json_object_new_boolean(true));
	if (summary->left)
		json_object_object_add(record, "left", json_object_new_boolean(true));
	return put(results, record, err);
}

enum ca_status ca_results_close(struct ca_results *results, const struct ca_run_summary *summary,
				struct ca_err *err)
{
	enum ca_status status = put_end(results, summary, err);

	if (close(results->fd) != 0 && status == CA_OK)
		status = ca_err_set(err, CA_ERR_IO, "cannot finish %s: %s; %s", results->path,
				    strerror(errno), remedy(errno));
	free(results);
	return status;
}

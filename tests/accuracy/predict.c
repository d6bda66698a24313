/* SPDX-License-Identifier: MIT */
/* causal's prediction, obtained the way a user would: the command line, then profile.json.
 * Also the overhead at 0 %. */
#include "acc.h"
#include <json-c/json.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGS = 40 };

struct command {
	const char *argv[MAX_ARGS];
	size_t n;
	char runs[32], scope[256], speedups[128], dir[ACC_PATH], program[ACC_PATH], seconds[32];
};

static void add(struct command *command, const char *text)
{
	if (command->n + 1 < MAX_ARGS)
		command->argv[command->n++] = text;
	command->argv[command->n] = NULL;
}

/* "barrier.c", 17 -> "barrier\.c:17$"; only the dot needs the escape in these names. */
static void line_scope(char *out, size_t size, const char *source, unsigned line)
{
	const char *dot = strchr(source, '.');

	snprintf(out, size, "%.*s\\%s:%u$", (int)(dot - source), source, dot, line);
}

static void build_command(struct command *command, const struct acc_options *options,
			  const struct acc_result *result, int runs, const char *speedups, double seconds)
{
	const struct acc_case *c = result->c;

	command->n = 0;
	snprintf(command->runs, sizeof command->runs, "%d", runs);
	snprintf(command->speedups, sizeof command->speedups, "%s", speedups);
	snprintf(command->seconds, sizeof command->seconds, "%g", seconds);
	acc_profiled(options, c, command->program);
	if (options->mode->line)
		line_scope(command->scope, sizeof command->scope, c->source, result->line);
	else if (c->function)
		snprintf(command->scope, sizeof command->scope, "%s", c->function);
	else
		snprintf(command->scope, sizeof command->scope, "^region_%s$", c->region);
	add(command, options->causal);
	if (options->mode->plain) {
		snprintf(command->runs, sizeof command->runs, "--budget=%g", runs * seconds);
		add(command, command->runs);
	} else {
		add(command, "-n");
		add(command, command->runs);
		add(command, "-m");
		add(command, options->mode->line ? "line" : "function");
		add(command, "-s");
		add(command, command->speedups);
	}
	if (!options->mode->all) {
		add(command, options->mode->line ? "-S" : "-F");
		add(command, command->scope);
	}
	if (options->mode->option)
		add(command, options->mode->option);
	add(command, "-o");
	add(command, command->dir);
	add(command, "--");
	add(command, command->program);
	add(command, "--seconds");
	add(command, command->seconds);
}

/* ---- profile.json ------------------------------------------------------------------- */

static double number(struct json_object *object, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, key, &value) ||
	    (!json_object_is_type(value, json_type_double) && !json_object_is_type(value, json_type_int)))
		return NAN;
	return json_object_get_double(value);
}

static const char *string(struct json_object *object, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(object, key, &value) ? json_object_get_string(value) : "";
}

static struct json_object *member(struct json_object *array, size_t i, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(json_object_array_get_idx(array, i), key, &value);
	return json_object_is_type(value, json_type_array) ? value : NULL;
}

static void take_curve(const struct acc_options *options, struct json_object *curve,
		       struct acc_result *result, size_t repeat)
{
	for (size_t i = 0; i < json_object_array_length(curve); i++) {
		struct json_object *at = json_object_array_get_idx(curve, i);

		for (size_t s = 0; s < options->speedups; s++) {
			struct acc_estimate *e = &result->ours[s][repeat];

			if (fabs(number(at, "speedup") - options->speedup[s]) > 0.01)
				continue;
			e->effect = number(at, "effect");
			e->low = number(at, "low");
			e->high = number(at, "high");
		}
	}
}

static bool name_matches(const struct acc_case *c, const char *name)
{
	char pattern[256];
	regex_t compiled;
	bool matches;

	snprintf(pattern, sizeof pattern, c->function ? "%s" : "^region_%s$",
		 c->function ? c->function : c->region);
	if (regcomp(&compiled, pattern, REG_EXTENDED | REG_NOSUB))
		return false;
	matches = !regexec(&compiled, name, 0, NULL, 0);
	regfree(&compiled);
	return matches;
}

/* The region is the only one in scope, or the one with our line or name, or the one that stands for it. */
static bool region_matches(const struct acc_options *options, struct json_object *region,
			   const struct acc_result *result, size_t regions)
{
	struct json_object *via;

	if (options->mode->all && json_object_object_get_ex(region, "via", &via))
		for (size_t i = 0; i < json_object_array_length(via); i++)
			if (name_matches(result->c,
					 json_object_get_string(json_object_array_get_idx(via, i))))
				return true;
	if (options->mode->all)
		return name_matches(result->c, string(region, "name"));
	return regions == 1 || !options->mode->line || number(region, "line") == (double)result->line;
}

static bool read_profile(const struct acc_options *options, const char *dir, struct acc_result *result,
			 size_t repeat)
{
	char path[ACC_PATH + 32];
	struct json_object *profile, *regions;
	const char *point = result->c->flags & ACC_LATENCY ? "request" : "work";
	const char *kind = result->c->flags & ACC_LATENCY ? "latency" : "throughput";
	bool found = false;
	size_t before = 0, next = 0;

	snprintf(path, sizeof path, "%s/profile.json", dir);
	profile = json_object_from_file(path);
	if (!profile) {
		snprintf(result->problem, sizeof result->problem, "no profile.json");
		return false;
	}
	snprintf(result->problem, sizeof result->problem, "region or point not in the profile");
	if (!json_object_object_get_ex(profile, "regions", &regions))
		regions = json_object_new_array();
	for (size_t i = 0; i < json_object_array_length(regions); i++) {
		struct json_object *region = json_object_array_get_idx(regions, i);
		struct json_object *points = member(regions, i, "progress");

		/* all regions do their work in the suite's own gt_spin: as typed, that is a row, too, and before them;
		 * or it stands for one of them */
		before = next;
		next += strncmp(string(region, "name"), "gt_", 3) != 0;
		if (!points || !region_matches(options, region, result, json_object_array_length(regions)))
			continue;
		result->first[repeat] |= !before;
		if (options->mode->neighbour && !strcmp(string(region, "verdict"), "cannot-tell")) {
			result->declined++;
			found = true;
			continue;
		}
		for (size_t j = 0; j < json_object_array_length(points); j++) {
			struct json_object *p = json_object_array_get_idx(points, j);
			struct json_object *curve = member(points, j, options->mode->plain ? "at" : "curve");

			if (!curve || strcmp(string(p, "point"), point) || strcmp(string(p, "kind"), kind))
				continue;
			take_curve(options, curve, result, repeat);
			found = true;
		}
	}
	json_object_put(profile);
	if (found)
		result->problem[0] = '\0';
	return found;
}

/* ---- run files: when was the interval +-5 points? ------------------------------------ */

struct tally {
	double period[4096], seconds; /* effective time per visit of each experiment */
	size_t n;
};

static void moments(const struct tally *t, double *mean, double *variance)
{
	double sum = 0, square = 0;

	for (size_t i = 0; i < t->n; i++)
		sum += t->period[i];
	*mean = sum / (double)t->n;
	for (size_t i = 0; i < t->n; i++)
		square += (t->period[i] - *mean) * (t->period[i] - *mean);
	*variance = t->n > 1 ? square / (double)(t->n - 1) / (double)t->n : INFINITY;
}

/* Half of the 95 % interval of 1 - treated / base, in points (first-order error). */
static double half_width(const struct tally *treated, const struct tally *base)
{
	double mt, vt, mb, vb;

	if (treated->n < 3 || base->n < 3)
		return INFINITY;
	moments(treated, &mt, &vt);
	moments(base, &mb, &vb);
	return 100 * 1.96 * mt / mb * sqrt(vt / (mt * mt) + vb / (mb * mb));
}

static double visits_of(struct json_object *experiment, const char *point)
{
	struct json_object *progress;

	if (!json_object_object_get_ex(experiment, "progress", &progress) ||
	    !json_object_is_type(progress, json_type_array))
		return NAN;
	for (size_t i = 0; i < json_object_array_length(progress); i++) {
		struct json_object *v = json_object_array_get_idx(progress, i);

		if (!strcmp(string(v, "point"), point) && !strcmp(string(v, "kind"), "throughput"))
			return number(v, "delta");
	}
	return NAN;
}

static bool is_used(struct json_object *record)
{
	struct json_object *flags;

	return record && !strcmp(string(record, "type"), "experiment") &&
	       json_object_object_get_ex(record, "flags", &flags) &&
	       json_object_is_type(flags, json_type_array) && json_object_array_length(flags) == 0;
}

/* Adds one line of a run file; true if it changed `base` or `treated`. */
static bool add_record(const char *line, double speedup, const char *point, struct tally *base,
		       struct tally *treated)
{
	struct json_object *record = json_tokener_parse(line);
	bool added = false;

	if (is_used(record)) {
		double p = number(record, "speedup"), visits = visits_of(record, point);
		double period = number(record, "duration") * 1e-9 / visits;
		struct tally *t = fabs(p) < 0.01 ? base : fabs(p - speedup) < 0.01 ? treated : NULL;

		if (t && visits > 0 && period > 0 && t->n < 4096) {
			t->period[t->n++] = period;
			t->seconds += (number(record, "end") - number(record, "start")) * 1e-9;
			added = true;
		}
	}
	json_object_put(record);
	return added;
}

/* Experiment time at 0 % and at `speedup`, in order, until the interval of those two is
 * +-5 points: what one region and one speedup alone would need. NAN: never reached. */
static double seconds_to_5(const char *dir, double speedup, const char *point, int runs)
{
	struct tally base = { .n = 0 }, treated = { .n = 0 };

	for (int run = 1; run <= runs; run++) {
		char path[ACC_PATH + 32], *line = NULL;
		size_t size = 0;
		FILE *f;

		snprintf(path, sizeof path, "%s/run-%04d.jsonl", dir, run);
		f = fopen(path, "r");
		while (f && getline(&line, &size, f) > 0) {
			if (!add_record(line, speedup, point, &base, &treated) ||
			    half_width(&treated, &base) > 5)
				continue;
			free(line);
			fclose(f);
			return base.seconds + treated.seconds;
		}
		free(line);
		if (f)
			fclose(f);
	}
	return NAN;
}

static void show_command(const struct acc_options *options, const struct command *command)
{
	for (size_t i = 0; options->verbose && i < command->n; i++)
		fprintf(stderr, "%s%c", command->argv[i], i + 1 < command->n ? ' ' : '\n');
}

/* The sweep of this repeat was done, for another case of the program. */
static bool is_swept(const struct command *command)
{
	char path[ACC_PATH + 32];

	snprintf(path, sizeof path, "%s/profile.json", command->dir);
	return !access(path, R_OK);
}

static void forget(const struct command *command)
{
	char path[ACC_PATH + 32];

	snprintf(path, sizeof path, "%s/profile.json", command->dir);
	unlink(path);
}

bool acc_predict(const struct acc_options *options, struct acc_result *result, size_t repeat)
{
	const struct acc_case *c = result->c;
	struct command command;
	struct acc_run run = { .status = 0 };
	char speedups[128] = "0", log[ACC_PATH];
	double seconds = options->seconds / options->runs;

	for (size_t s = 0; s < options->speedups; s++) {
		size_t at = strlen(speedups);

		snprintf(speedups + at, sizeof speedups - at, ",%g", options->speedup[s]);
		result->ours[s][repeat] = (struct acc_estimate){ NAN, NAN, NAN, NAN };
	}
	snprintf(log, sizeof log, "%s/stderr.log", options->work);
	for (int attempt = 0;; attempt++) {
		snprintf(command.dir, sizeof command.dir, "%s/%s-%s-%zu-%d", options->work, c->program,
			 options->mode->all ? "all" : c->region, repeat, attempt);
		if (options->mode->all && is_swept(&command))
			break; /* for another region of this program */
		build_command(&command, options, result, options->runs, speedups, seconds);
		show_command(options, &command);
		if (!acc_run_once(command.argv, options->seconds * 2 + 60, log, &run)) {
			snprintf(result->problem, sizeof result->problem, "cannot start %s", options->causal);
			return false;
		}
		if (run.others > result->others)
			result->others = run.others;
		if (run.status || run.others <= options->noise)
			break;
		if (attempt >= options->retries / 2) { /* long runs: fewer of them */
			result->noisy++;
			break;
		}
		forget(&command);
	}
	if (run.status)
		snprintf(result->problem, sizeof result->problem, "causal: exit status %d", run.status);
	if (run.status || !read_profile(options, command.dir, result, repeat))
		return false;
	for (size_t s = 0; s < options->speedups; s++)
		result->ours[s][repeat].seconds_to_5 =
			seconds_to_5(command.dir, options->speedup[s], "work", options->runs);
	return true;
}

/* Runs twice as long as for a truth, since a sweep takes a moment to begin; each is compared with the program alone right
 * before and after it. */
bool acc_overhead(const struct acc_options *options, struct acc_result *result)
{
	double overhead[ACC_ROUNDS], length = 2 * options->truth_seconds;
	struct acc_run before, after;
	struct command command;
	char program[ACC_PATH], seconds[32];
	size_t n = 0;

	snprintf(seconds, sizeof seconds, "%g", length);
	const char *plain[] = { acc_program(options, result->c, "plain", program),
				"--region",
				result->c->region,
				"--seconds",
				seconds,
				NULL };
	if (!acc_run_quiet(options, plain, length + 20, &before, &result->noisy))
		return false;
	for (int r = 0; 4 * r < 3 * options->truth_rounds && n < ACC_ROUNDS; r++, before = after) {
		struct acc_run profiled;

		snprintf(command.dir, sizeof command.dir, "%s/%s-%s-zero-%d", options->work,
			 result->c->program, result->c->region, r);
		build_command(&command, options, result, 1, "0", length);
		if (!acc_run_quiet(options, command.argv, length + 40, &profiled, &result->noisy) ||
		    !acc_run_quiet(options, plain, length + 20, &after, &result->noisy))
			return false;
		if (!profiled.status && profiled.rate > 0 && before.rate > 0 && after.rate > 0)
			overhead[n++] = 100 * (1 - 2 * profiled.rate / (before.rate + after.rate));
	}
	result->overhead = acc_median(overhead, n);
	return n > 0;
}

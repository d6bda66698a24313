/* SPDX-License-Identifier: MIT */
/* The progress line; see driver/progress_line.h. */
#include "driver/progress_line.h"
#include "causal/results/plain.h"
#include "causal/results/results_json.h"
#include "core/clock.h"
#include "driver/say.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	REWRITE_NS = 200000000,
	JSON_NS = 1000000000,
	NAME = 24 /* columns */,
	FIRST = 3 /* runs, each with a line */
};
static const uint64_t tell_ns = UINT64_C(2000000000);

void ca_progress_line_init(struct ca_progress_line *progress, size_t total, bool shown)
{
	memset(progress, 0, sizeof *progress);
	progress->total = total;
	progress->shown = shown;
	progress->terminal = isatty(STDERR_FILENO);
}

void ca_progress_line_begin(struct ca_progress_line *progress)
{
	progress->started = ca_clock_now();
	progress->begun = progress->begun ? progress->begun : progress->started;
}

void ca_progress_line_time(double seconds, char *buffer, size_t size)
{
	unsigned long s = seconds > 0 ? (unsigned long)(seconds + 0.5) : 0;

	if (s < 60)
		snprintf(buffer, size, "%lu s", s);
	else if (s < 3600)
		snprintf(buffer, size, "%lu min %lu s", s / 60, s % 60);
	else
		snprintf(buffer, size, "%lu h %lu min", s / 3600, s % 3600 / 60);
}

/* ", 12 experiments (3 dropped)" behind what is there already. */
static void count_text(const struct ca_conductor_status *status, char *buffer, size_t size)
{
	char dropped[40] = "";

	*buffer = '\0';
	if (status->dropped)
		snprintf(dropped, sizeof dropped, " (%llu dropped)", (unsigned long long)status->dropped);
	if (!status->whole)
		snprintf(buffer, size, ", %llu experiment%s%s", (unsigned long long)status->experiments,
			 status->experiments == 1 ? "" : "s", dropped);
}

/* "; work 20 ± 2, parse 5 ± 1": what is known so far, at 50 %. */
static void top_text(const struct ca_conductor_status *status, char *buffer, size_t size)
{
	size_t used = 0;

	*buffer = '\0';
	for (size_t i = 0; i < status->tops && used < size; i++) {
		char *name = ca_plain_fit(status->top[i].region, NAME);
		int n = snprintf(buffer + used, size - used, "%s%s %.0f ± %.0f", i ? ", " : "; ",
				 name ? name : "?", status->top[i].effect,
				 (status->top[i].high - status->top[i].low) / 2);

		used += n > 0 ? (size_t)n : 0;
		free(name);
	}
}

/* s until the sweep ends, at most; NAN: nobody knows. */
static double seconds_to_go(const struct ca_progress_line *progress, uint64_t now, uint64_t elapsed)
{
	uint64_t over = now - progress->begun;
	size_t runs = progress->total ? progress->total : progress->least;
	double budget = progress->budget > over ? (double)(progress->budget - over) : 0, rest = 0;

	if (progress->finished && progress->finished < runs)
		rest = fmax((double)progress->spent / (double)progress->finished *
					    (double)(runs - progress->finished) -
				    (double)elapsed,
			    0);
	if (!progress->total)
		return progress->budget ? fmax(budget, rest) / 1e9 : NAN;
	return progress->finished ? rest / 1e9 : NAN;
}

void ca_progress_line_to_go(const struct ca_progress_line *progress, uint64_t elapsed, char *buffer,
			    size_t size)
{
	double seconds = seconds_to_go(progress, progress->begun + elapsed, elapsed);

	if (isfinite(seconds))
		ca_progress_line_time(seconds, buffer, size);
	else
		snprintf(buffer, size, "unknown time");
}

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

/* doc/FORMAT.md, "Progress". */
static void say_json(const struct ca_progress_line *progress, const struct ca_conductor_status *status,
		     const char *type, size_t run, uint64_t now)
{
	struct json_object *object = json_object_new_object(), *rows = json_object_new_array();

	add(object, "type", json_object_new_string(type));
	add(object, "run", json_object_new_uint64(run));
	add(object, "runs", progress->total ? json_object_new_uint64(progress->total) : NULL);
	add(object, "elapsed", ca_results_json_rounded((double)(now - progress->begun) / 1e9));
	add(object, "to_go", ca_results_json_rounded(seconds_to_go(progress, now, now - progress->started)));
	add(object, "experiments", json_object_new_uint64(progress->experiments + status->experiments));
	add(object, "dropped", json_object_new_uint64(progress->dropped + status->dropped));
	add(object, "region", status->region ? ca_results_json_text(status->region) : NULL);
	add(object, "speedup", status->region ? ca_results_json_rounded(status->speedup) : NULL);
	for (size_t i = 0; i < status->tops; i++) {
		struct json_object *row = json_object_new_object();

		add(row, "region", ca_results_json_text(status->top[i].region));
		add(row, "effect", ca_results_json_rounded(status->top[i].effect));
		add(row, "low", ca_results_json_rounded(status->top[i].low));
		add(row, "high", ca_results_json_rounded(status->top[i].high));
		json_object_array_add(rows, row);
	}
	add(object, "rows", rows);
	ca_say_line("%s", json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
									 JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
}

void ca_progress_line_update(struct ca_progress_line *progress, const struct ca_conductor_status *status)
{
	uint64_t now = ca_clock_now();
	char line[512], to_go[40], count[80], top[200], doing[256] = "";
	double rest = seconds_to_go(progress, now, now - progress->started);

	if (!progress->shown || (!progress->json && !progress->terminal) ||
	    now - progress->last < (progress->json ? JSON_NS : REWRITE_NS))
		return;
	progress->last = now;
	if (progress->json) {
		say_json(progress, status, "progress", progress->finished + 1, now);
		return;
	}
	if (progress->total)
		ca_progress_line_to_go(progress, now - progress->started, to_go, sizeof to_go);
	else
		ca_progress_line_time(rest, to_go, sizeof to_go);
	count_text(status, count, sizeof count);
	top_text(status, top, sizeof top);
	if (status->region)
		snprintf(doing, sizeof doing, ", %s at %.0f %%", status->region, status->speedup);
	if (progress->total)
		snprintf(line, sizeof line, "run %zu/%zu, %s to go%s%s%s", progress->finished + 1,
			 progress->total, to_go, count, top, doing);
	else if (isfinite(rest))
		snprintf(line, sizeof line, "run %zu, at most %s to go%s%s%s", progress->finished + 1, to_go,
			 count, top, doing);
	else
		snprintf(line, sizeof line, "run %zu%s%s%s", progress->finished + 1, count, top, doing);
	ca_say_progress(line);
}

/* A line of a run that has ended, where nothing is rewritten. */
static void tell_run(struct ca_progress_line *progress, const struct ca_conductor_status *status,
		     uint64_t took, uint64_t now)
{
	char time[40], to_go[40], count[80], top[200];
	double rest = seconds_to_go(progress, now, 0);

	if (progress->finished > FIRST && progress->finished != progress->total &&
	    now - progress->told < tell_ns)
		return;
	progress->told = now;
	ca_progress_line_time((double)took / 1e9, time, sizeof time);
	ca_progress_line_time(rest, to_go, sizeof to_go);
	count_text(status, count, sizeof count);
	top_text(status, top, sizeof top);
	if (progress->total)
		ca_say("run %zu/%zu: %s%s, %s to go%s", progress->finished, progress->total, time, count,
		       to_go, top);
	else if (isfinite(rest))
		ca_say("run %zu: %s%s, at most %s to go%s", progress->finished, time, count, to_go, top);
	else
		ca_say("run %zu: %s%s%s", progress->finished, time, count, top);
}

void ca_progress_line_end(struct ca_progress_line *progress, const struct ca_conductor_status *status)
{
	uint64_t now = ca_clock_now(), elapsed = now - progress->started;

	progress->finished++;
	progress->spent += elapsed;
	progress->last = now;
	if (progress->shown && progress->json)
		say_json(progress, status, "run", progress->finished, now);
	else if (progress->shown && !progress->terminal)
		tell_run(progress, status, elapsed, now);
	progress->experiments += status->experiments;
	progress->dropped += status->dropped;
}

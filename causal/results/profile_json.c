/* SPDX-License-Identifier: MIT */
/* profile.json: the merged results for other programs; the contract is doc/FORMAT.md and
 * doc/profile.schema.json. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void add(struct json_object *object, const char *key, struct json_object *value)
{
	json_object_object_add(object, key, value);
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
	add(object, key, ca_results_json_text(text));
}

static void add_count(struct json_object *object, const char *key, uint64_t value)
{
	add(object, key, json_object_new_uint64(value));
}

/* Rounded to `digits` decimals; null for what is not known. */
static void add_number(struct json_object *object, const char *key, double value, int digits)
{
	char text[64];
	size_t n;

	if (!isfinite(value)) {
		add(object, key, NULL);
		return;
	}
	n = (size_t)snprintf(text, sizeof text, "%.*f", digits, value);
	if (strchr(text, '.')) {
		while (text[n - 1] == '0')
			text[--n] = '\0';
		if (text[n - 1] == '.')
			text[--n] = '\0';
	}
	add(object, key, json_object_new_double_s(value, strcmp(text, "-0") ? text : "0"));
}

static struct json_object *curve_array(const struct ca_profile_row *row)
{
	struct json_object *array = json_object_new_array();

	for (size_t c = 0; c < row->curve->cells; c++) {
		const struct ca_cell *cell = &row->point->estimates.cell[row->curve->first + c];
		struct json_object *object;

		if (cell->speedup == 0 || !isfinite(cell->effect))
			continue;
		object = json_object_new_object();
		add_number(object, "speedup", cell->speedup / 1e4, 4);
		add_number(object, "effect", cell->effect, 2);
		add_number(object, "low", cell->low, 2);
		add_number(object, "high", cell->high, 2);
		add_count(object, "experiments", cell->experiments);
		add_count(object, "runs", cell->runs);
		add_count(object, "outliers", cell->outliers);
		add_number(object, "visits", cell->visits, 0);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *at_array(const struct ca_curve *curve)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < CA_AT; i++) {
		struct json_object *object = json_object_new_object();

		add_number(object, "speedup", ca_estimate_at[i] / 1e4, 4);
		add_number(object, "effect", curve->at[i], 2);
		add_number(object, "low", curve->at_low[i], 2);
		add_number(object, "high", curve->at_high[i], 2);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *percentile_array(const struct ca_profile_row *row)
{
	struct json_object *array = json_object_new_array();

	for (int i = 0; i < CA_PERCENTILES; i++) {
		const struct ca_curve *curve = ca_profile_percentile(row, i);
		struct json_object *object;

		if (!curve)
			continue;
		object = json_object_new_object();
		add_count(object, "percentile", ca_profile_percent[i]);
		add_number(object, "time", row->point->percentile[i].time, 0);
		add(object, "at", at_array(curve));
		json_object_array_add(array, object);
	}
	return array;
}

static void add_names(struct json_object *object, const char *key, char *const *name)
{
	struct json_object *array = json_object_new_array();

	for (; name && *name; name++)
		json_object_array_add(array, ca_results_json_text(*name));
	add(object, key, array);
}

static struct json_object *progress_object(const struct ca_profile_row *row)
{
	struct json_object *object = json_object_new_object();
	const struct ca_curve *curve = row->curve;
	const struct ca_estimates *estimates = &row->point->estimates;
	char baseline[32];

	add_text(object, "point", row->point->name);
	add_text(object, "kind", ca_profile_point_kind(row->point));
	if (row->point->whole)
		add(object, "whole", json_object_new_boolean(true));
	if (row->point->works)
		add(object, "refuted", json_object_new_boolean(true));
	add_text(object, "verdict", ca_profile_verdict_key(row->verdict));
	add_text(object, "says", ca_profile_row_text(row));
	add_number(object, "impact", curve->impact, 2);
	add_number(object, "impact_low", curve->impact_low, 2);
	add_number(object, "impact_high", curve->impact_high, 2);
	add_number(object, "slope", curve->slope, 4);
	add_number(object, "slope_low", curve->slope_low, 4);
	add_number(object, "slope_high", curve->slope_high, 4);
	add_number(object, "max", curve->max, 2);
	add_number(object, "max_speedup", curve->max_speedup, 4);
	add_count(object, "experiments", curve->experiments);
	snprintf(baseline, sizeof baseline, "%s", ca_profile_baseline_name(estimates->baseline));
	if (estimates->neighbours)
		snprintf(baseline + strlen(baseline), sizeof baseline - strlen(baseline), "-%u",
			 estimates->neighbours);
	add_text(object, "baseline", baseline);
	add_count(object, "baseline_experiments", estimates->zeros);
	add_number(object, "noise", 100 * estimates->noise, 2);
	add_text(object, "how", ca_profile_how_name(curve->how));
	if (estimates->silent > 0)
		add_number(object, "silent", 100 * estimates->silent, 2);
	if (curve->idle > 0)
		add_number(object, "idle", curve->idle, 4);
	if (curve->sampled > 0)
		add_number(object, "sampled", curve->sampled, 4);
	add(object, "at", at_array(curve));
	if (row->point->kind == 'l')
		add(object, "percentiles", percentile_array(row));
	add(object, "curve", curve_array(row));
	return object;
}

/* Regions in the order of their best row; each has all its points, best first. */
static struct json_object *region_array(const struct ca_profile *profile)
{
	struct json_object *array = json_object_new_array();

	for (size_t i = 0; i < profile->rows; i++) {
		const struct ca_profile_row *row = &profile->row[i];
		struct json_object *object, *progress;

		if (!ca_profile_is_first(profile, i))
			continue;
		object = json_object_new_object();
		progress = json_object_new_array();
		add_text(object, "name", row->region->name);
		add_text(object, "kind", row->region->kind == CA_REGION_LINE ? "line" : "function");
		add_text(object, "file", row->region->file);
		add_count(object, "line", row->region->line);
		add_text(object, "function", row->region->function);
		add_text(object, "binary", row->region->binary);
		add_number(object, "samples", row->samples, 2);
		add_number(object, "own", row->own, 2);
		if (row->waits > 0)
			add_number(object, "waits", row->waits, 2);
		if (row->asked)
			add_count(object, "asked", row->asked);
		add_names(object, "via", row->via);
		add_names(object, "contains", row->contains);
		add_names(object, "calls", row->calls);
		add_text(object, "verdict", ca_profile_verdict_key(row->verdict));
		for (size_t j = i; j < profile->rows; j++)
			if (profile->row[j].region == row->region)
				json_object_array_add(progress, progress_object(&profile->row[j]));
		add(object, "progress", progress);
		json_object_array_add(array, object);
	}
	return array;
}

static struct json_object *funnel_object(const struct ca_funnel *f)
{
	struct json_object *object = json_object_new_object(), *drops = json_object_new_object();

	add_count(object, "runs", f->runs);
	add_count(object, "runs_unfinished", f->unfinished);
	add_count(object, "runs_failed", f->failed);
	add_count(object, "samples", f->samples);
	add_count(object, "samples_dropped", f->dropped);
	add_count(object, "samples_in_scope", f->in_scope);
	add_count(object, "visits", f->visits);
	add_count(object, "experiments_started", f->started);
	add_count(object, "experiments_finished", f->finished);
	add_count(object, "experiments_cut", f->cut);
	add_count(object, "experiments_no_visit", f->no_visit);
	add_count(object, "experiments_stalled", f->stalled);
	add_count(object, "experiments_overflow", f->overflow);
	add_count(object, "experiments_disturbed", f->disturbed);
	add_count(object, "experiments_unplaced", f->unplaced);
	add_count(object, "experiments_books", f->books);
	add_count(object, "experiments_unsteady", f->unsteady);
	add_count(object, "experiments_ahead", f->ahead);
	add_count(object, "experiments_kept", f->kept);
	add_count(object, "experiments_kept_at_0", f->zeros);
	for (unsigned d = 0; d < CA_DROP_COUNT; d++)
		add_count(drops, ca_results_drop_name(d), f->drop[d]);
	add(object, "drops", drops);
	return object;
}

struct json_object *ca_profile_json(const struct ca_profile *profile)
{
	static const struct ca_profile_run nothing;
	const struct ca_profile_run *run = profile->runs ? profile->run : &nothing;
	struct json_object *object = json_object_new_object(), *warnings = json_object_new_array();
	const char *cause = NULL, *remedy = NULL, *backend = run->backend;
	char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];
	size_t notes;

	for (size_t i = 1; i < profile->runs; i++)
		if (strcmp(profile->run[i].backend, backend))
			backend = "mixed";
	add_text(object, "format", "causal-profile");
	add_count(object, "version", 1);
	add_text(object, "command", run->command);
	add_text(object, "mode", run->mode);
	add_text(object, "backend", backend);
	add(object, "end_to_end", json_object_new_boolean(run->end_to_end));
	add_count(object, "seed", run->seed);
	add_number(object, "runtime", (double)profile->funnel.runtime / 1e9, 3);
	add(object, "funnel", funnel_object(&profile->funnel));
	if (ca_funnel_reason(profile, &cause, &remedy)) {
		add_text(object, "cause", cause);
		add_text(object, "remedy", remedy);
	}
	for (size_t i = 0; i < profile->warnings; i++)
		json_object_array_add(warnings, ca_results_json_text(profile->warning[i]));
	notes = ca_funnel_notes(profile, note);
	for (size_t i = 0; i < notes; i++)
		json_object_array_add(warnings, json_object_new_string(note[i]));
	add(object, "warnings", warnings);
	add(object, "regions", region_array(profile));
	return object;
}

bool ca_profile_write_json(const struct ca_profile *profile, FILE *file)
{
	struct json_object *object = ca_profile_json(profile);
	const char *text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
									  JSON_C_TO_STRING_NOSLASHESCAPE);
	bool ok = text && fputs(text, file) >= 0 && fputc('\n', file) != EOF && !ferror(file);

	json_object_put(object);
	return ok;
}

/* SPDX-License-Identifier: MIT */
/* The profile: reads a directory of run files, estimates and judges.
 * Not for: statistics (estimate.c), the order of the rows (profile_rank.c) or any output (profile_json.c, coz.c, table.c).
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/units.h"
#include "causal/results/what_if.h"
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NEW_ROW = 10, /* runs for one of which nothing is known, or bounds alone */
	ENOUGH = 3,   /* experiments, for the least that is said of code without a verdict */
	LITTLE = 6,   /* percent at 50 %: 0 or more, it is not much; --until 3 leaves rows like that */
	RUNS_MOST = 10000
};
static const double mostly = 0.8; /* of half an interval: the rest is little that runs could narrow */

/* ---- loading -------------------------------------------------------------------*/

static int is_run_file(const struct dirent *entry)
{
	return fnmatch("run-[0-9]*.jsonl", entry->d_name, 0) == 0;
}

/* By number, not by name: run-10000 comes after run-9999. */
static int by_run_number(const struct dirent **a, const struct dirent **b)
{
	unsigned long x = strtoul((*a)->d_name + 4, NULL, 10);
	unsigned long y = strtoul((*b)->d_name + 4, NULL, 10);

	return (x > y) - (x < y);
}

static enum ca_status read_dir(struct ca_profile *profile, const char *dir, struct ca_err *err)
{
	struct dirent **entry;
	enum ca_status status = CA_OK;
	int n = scandir(dir, &entry, is_run_file, by_run_number);

	if (n < 0)
		return ca_err_set(err, CA_ERR_IO, "cannot read the directory %s: %s", dir, strerror(errno));
	for (int i = 0; i < n; i++) {
		char path[PATH_MAX];

		snprintf(path, sizeof path, "%s/%s", dir, entry[i]->d_name);
		if (status == CA_OK)
			status = ca_profile_read(profile, path, err);
		free(entry[i]);
	}
	free(entry);
	return status;
}

/* By its build-id: runs that were merged may have it in several places. */
static void mark_program(struct ca_profile *profile)
{
	for (size_t i = 0; i < profile->catalog.regions; i++) {
		struct ca_region *region = &profile->catalog.region[i];

		for (size_t b = 0; b < profile->binaries && !region->program; b++)
			region->program = !strcmp(profile->binary[b].build_id, profile->binary->build_id) &&
					  !strcmp(profile->binary[b].path, region->binary);
	}
}

/* ---- estimating ----------------------------------------------------------------*/

/* The start of an experiment in s, on one axis for all runs (even across a reboot). Not its
 * middle: that depends on how long it took, and neighbours in time would be alike for it. */
static double start_of(const struct ca_profile *profile, const struct ca_profile_experiment *e)
{
	const struct ca_profile_run *run = &profile->run[e->run];
	const struct ca_profile_run *first = &profile->run[0];

	return ((double)run->time - (double)first->time + (double)e->start - (double)run->clock) / 1e9;
}

/* When in the run: by its virtual time, where that one's length is known in parts of it. */
static double when_in_run(const struct ca_profile *profile, const struct ca_profile_experiment *e)
{
	const struct ca_profile_run *run = &profile->run[e->run];
	double at = (double)e->at / 1e9;

	return run->length > 0 ? at * profile->length / run->length : at;
}

struct ca_observation ca_profile_observe(const struct ca_profile *profile,
					 const struct ca_profile_experiment *e,
					 const struct ca_profile_visits *visits)
{
	bool latency = profile->point[visits->point].kind == 'l';
	bool time = !strcmp(profile->point[visits->point].name, CA_RESULTS_TIME);
	double duration = (double)e->duration / 1e9;
	double from = profile->point[visits->point].whole || profile->run[e->run].end_to_end
			      ? 0
			      : when_in_run(profile, e);

	/* Latency by Little's law: time in the system = mean number in it / arrival rate. */
	struct ca_observation o = {
		.region = e->region,
		.speedup = e->speedup,
		.run = e->run,
		.time = start_of(profile, e),
		.cost = latency        ? duration * visits->in_flight
			: visits->span ? (double)visits->span / 1e9
				       : duration,
		.visits = (double)(latency ? visits->arrivals : visits->delta),
		/* what bounds a rate says nothing of a latency, and holds where nobody else has the CPUs: while
		 * others have that of a thread in S, S time stands still */
		.elapsed =
			latency || e->disturbed ? 0 : ((double)(e->end - e->start) - (double)e->probes) / 1e9,
		.active = (double)e->s_time / 1e9,
		.delay = (double)ca_results_delay(e->delay, e->probes) / 1e9,
		.still = (double)e->still / 1e9,
		.paying = ca_results_paying(e->paying, e->still, e->delay, e->probes),
		.limits = (double)e->limits,
		.work = latency || time ? 0 : ca_results_work(e->work, e->turns, e->end - e->start),
		.yardstick = latency || time ? 0 : (double)e->yardstick,
		.periods = latency ? 0 : (double)e->periods,
		.inside = latency ? 0 : (double)e->inside,
		.sampled = ca_estimate_sampled(e->exact, !strcmp(profile->run[e->run].backend, "timer"),
					       e->met, e->work),
		.idle = e->end > e->start ? (double)e->idled / (double)(e->end - e->start) : 0,
		.from = from,
		.to = from > 0 ? from + (double)e->duration / 1e9 : 0,
		.before = from > 0 && !latency && !time ? (double)visits->before : 0,
		.per_visit = !time,
		.counted = !time && !visits->span && profile->point[visits->point].kind != 'e' &&
			   !profile->point[visits->point].whole,
	};

	if (time)
		ca_units_take_off(&o, ca_results_taken(e->end - e->start, e->work, e->s_time, e->lost,
						       e->overhead, e->overhead_in_s));
	return o;
}

/* How long runs are, and where in theirs experiments lie: files of earlier versions do not say. */
static void find_lengths(struct ca_profile *profile)
{
	uint64_t *lag = calloc(profile->runs + 1, sizeof *lag);
	double known = 0;

	for (size_t i = 0; i < profile->experiments && lag; i++) {
		struct ca_profile_experiment *e = &profile->experiment[i];

		if (!e->at && e->start > profile->run[e->run].clock + lag[e->run])
			e->at = e->start - profile->run[e->run].clock - lag[e->run];
		lag[e->run] += e->delay;
	}
	for (size_t i = 0; i < profile->runs && lag; i++) {
		struct ca_profile_run *run = &profile->run[i];

		if (run->summary.inserted)
			lag[i] = run->summary.inserted;
		if (!run->ended || run->summary.left || run->end_to_end || run->summary.runtime <= lag[i])
			continue;
		run->length = (double)(run->summary.runtime - lag[i]) / 1e9;
		profile->length += run->length;
		known++;
	}
	if (known > 0)
		profile->length /= known;
	free(lag);
}

static enum ca_status estimate_point(struct ca_profile *profile, uint32_t point)
{
	struct ca_profile_point *p = &profile->point[point];
	struct ca_observation *list = calloc(profile->visit_count + profile->experiments + 1, sizeof *list);
	struct ca_estimate_options options = { .seed = profile->runs ? profile->run[0].seed : 0,
					       .length = profile->length };
	struct ca_share *share = ca_profile_share(profile, &options.shares);
	struct ca_profile_visits **of = calloc(profile->visit_count + profile->experiments + 1, sizeof *of);
	enum ca_status status = CA_ERR_NOMEM;
	size_t n = 0;

	options.share = share;
	options.silence = ca_profile_silence(profile, p);
	if (!list || !share || !of)
		goto done;
	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];
		double from = e->flags == CA_EXPERIMENT_NO_VISIT ? when_in_run(profile, e) : 0;

		if (from > 0) /* no point is passed there */
			list[n++] = (struct ca_observation){ .from = from,
							     .to = from + (double)e->duration / 1e9 };
		for (size_t v = e->first; v < e->first + e->visits && !e->flags; v++) {
			if (profile->visits[v].point != point)
				continue;
			of[n] = &profile->visits[v];
			list[n] = ca_profile_observe(profile, e, of[n]);
			if (p->works)
				ca_units_count_work(&list[n]);
			if (list[n++].counted)
				options.quantum = CA_ESTIMATE_COUNTED;
		}
	}
	status = ca_estimate(list, n, &options, &p->estimates);
	if (status != CA_OK)
		goto done;
	ca_estimate_add_method_error(&p->estimates);
	for (size_t i = 0; i < n; i++)
		if (of[i])
			of[i]->effect = p->estimates.single[i];
	if (p->kind == 'l')
		status = ca_profile_percentiles(profile, point, options.seed);
done:
	free(list);
	free(share);
	free(of);
	return status;
}

static enum ca_status estimate_points(struct ca_profile *profile)
{
	enum ca_status status = CA_OK;

	for (size_t p = 0; p < profile->points && status == CA_OK; p++) {
		ca_estimate_fini(&profile->point[p].estimates);
		status = estimate_point(profile, (uint32_t)p);
	}
	return status;
}

/* ---- judging -------------------------------------------------------------------*/

/* Do samples tell when it runs? */
static bool is_sampled(const struct ca_profile *profile, uint32_t region)
{
	size_t all = 0, sampled = 0;

	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		if (e->flags || e->region != region)
			continue;
		all++;
		sampled += !e->exact;
	}
	return 2 * sampled > all;
}

/* Other programs held the CPU: comparisons tell what is won beside them, but for times in the system. And no
 * experiment tells of what was over before it. */
static enum ca_verdict judge(const struct ca_profile *profile, const struct ca_profile_point *point,
			     const struct ca_curve *curve)
{
	bool blind = profile->blind || (profile->busy && point->kind == 'l') ||
		     (profile->crowded && is_sampled(profile, curve->region));

	enum ca_verdict verdict = ca_estimate_verdict(curve);

	if (verdict == CA_VERDICT_NOT_WORTH && curve->region && ca_profile_is_early(profile, curve->region))
		blind = true;
	return blind ? CA_VERDICT_CANNOT_TELL : verdict;
}

static void fill_samples(const struct ca_profile *profile, struct ca_profile_row *row)
{
	double whole = profile->whole_of[row->curve->region - 1];
	uint64_t count = 0, own = 0, waited = 0;
	bool known = false, sampled;

	for (size_t i = 0; i < profile->sample_count; i++) {
		const struct ca_profile_samples *samples = &profile->samples[i];

		if (samples->region != row->curve->region)
			continue;
		sampled = profile->run[samples->run].sampled;
		count += sampled ? samples->count : 0;
		waited += sampled ? samples->waited : 0;
		if (samples->own == UINT64_MAX)
			continue;
		own += sampled ? samples->own : 0;
		known = true;
		row->via = samples->via;
		row->contains = samples->contains;
		row->calls = samples->calls;
	}
	/* samples are of one region */
	row->samples = whole > 0 && !row->asked ? 100. * (double)count / whole : NAN;
	row->waits = count ? 100. * (double)waited / (double)count : 0;
	row->own = whole > 0 && known ? 100. * (double)own / whole : NAN;
}

static enum ca_status make_rows(struct ca_profile *profile)
{
	size_t n = 0;

	for (size_t p = 0; p < profile->points; p++)
		n += profile->point[p].estimates.curves;
	profile->row = calloc(n + 1, sizeof *profile->row);
	if (!profile->row)
		return CA_ERR_NOMEM;
	for (size_t p = 0; p < profile->points; p++) {
		const struct ca_profile_point *point = &profile->point[p];

		for (size_t k = 0; k < point->estimates.curves; k++) {
			const struct ca_curve *curve = &point->estimates.curve[k];
			const struct ca_region *region =
				ca_catalog_get_region(&profile->catalog, curve->region);

			if (!region || ca_profile_passes_over(profile, point, curve))
				continue; /* experiments without a selection: baseline only */
			profile->row[profile->rows] = (struct ca_profile_row){
				.region = region,
				.point = point,
				.curve = curve,
				.verdict = judge(profile, point, curve),
				.asked = ca_what_if_of_region(region),
			};
			fill_samples(profile, &profile->row[profile->rows++]);
		}
	}
	ca_profile_rank(profile);
	return CA_OK;
}

/* Experiments with this flag are left out, unless that would be most of them: then all are used, so
 * that there is something to look at. */
static bool use_if_most(struct ca_profile *profile, uint32_t flag)
{
	size_t clean = 0, only = 0;

	for (size_t i = 0; i < profile->experiments; i++) {
		clean += profile->experiment[i].flags == 0;
		only += profile->experiment[i].flags == flag;
	}
	for (size_t i = 0; i < profile->experiments && only > clean; i++)
		profile->experiment[i].flags &= ~flag;
	return only > clean;
}

static bool is_blind(const struct ca_profile *profile)
{
	size_t blind = 0, all = 0;

	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		if (!e->disturbed || e->flags)
			continue;
		all++;
		blind += ca_results_is_blind(e->end - e->start, e->outside, e->work, e->turns);
	}
	return 2 * blind > all;
}

static bool is_crowded(const struct ca_profile *profile)
{
	size_t crowded = 0, all = 0;

	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		if (e->flags)
			continue;
		all++;
		crowded += !strcmp(profile->run[e->run].backend, "timer") &&
			   ca_results_is_crowded(e->queued, e->lost, e->work);
	}
	return 2 * crowded > all;
}

static void settle_flags(struct ca_profile *profile)
{
	for (size_t i = 0; i < profile->experiments; i++) {
		struct ca_profile_experiment *e = &profile->experiment[i];

		e->disturbed = e->flags & CA_EXPERIMENT_DISTURBED;
		e->books = e->flags & CA_EXPERIMENT_BOOKS;
	}
	profile->busy = use_if_most(profile, CA_EXPERIMENT_DISTURBED);
	profile->blind = profile->busy && is_blind(profile);
	use_if_most(profile, CA_EXPERIMENT_BOOKS);
	profile->crowded = is_crowded(profile);
}

enum ca_status ca_profile_load(struct ca_profile **profile, const char *dir, struct ca_err *err)
{
	struct ca_profile *new = calloc(1, sizeof *new);
	enum ca_status status = new ? read_dir(new, dir, err) : CA_ERR_NOMEM;

	if (status == CA_OK) {
		mark_program(new);
		settle_flags(new);
		ca_profile_find_sampled(new);
		find_lengths(new);
		ca_profile_merge_stacks(new);
		status = ca_profile_find_periods(new) && ca_profile_find_early(new) &&
					 ca_profile_find_refuted(new)
				 ? estimate_points(new)
				 : CA_ERR_NOMEM;
		if (status == CA_OK && ca_profile_find_unsteady(new))
			status = estimate_points(new);
		ca_funnel_count(new);
		if (status == CA_OK)
			status = make_rows(new);
	}
	if (status == CA_ERR_NOMEM)
		ca_err_set(err, status, "no memory for the profile of %s", dir);
	if (status) {
		ca_profile_free(new);
		return status;
	}
	*profile = new;
	return CA_OK;
}

/* ---- writing -------------------------------------------------------------------*/

enum ca_status ca_profile_replace(const char *dir, const char *name, bool (*fill)(const void *, FILE *),
				  const void *what, struct ca_err *err)
{
	char path[PATH_MAX], temporary[PATH_MAX];
	FILE *file;
	bool ok;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	snprintf(temporary, sizeof temporary, "%s/.%s.%ld", dir, name, (long)getpid());
	file = fopen(temporary, "we");
	ok = file && fill(what, file);
	if (file && fclose(file) != 0)
		ok = false;
	if (!ok || rename(temporary, path) != 0) {
		int error = errno;

		unlink(temporary);
		return ca_err_set(err, CA_ERR_IO,
				  "cannot write %s: %s; free some space or choose another "
				  "directory with -o",
				  path, strerror(error));
	}
	return CA_OK;
}

static bool fill_json(const void *profile, FILE *file)
{
	return ca_profile_write_json(profile, file);
}

static bool fill_coz(const void *profile, FILE *file)
{
	return ca_profile_write_coz(profile, file);
}

enum ca_status ca_profile_write(const struct ca_profile *profile, const char *dir, struct ca_err *err)
{
	enum ca_status status = ca_profile_replace(dir, "profile.json", fill_json, profile, err);

	return status ? status : ca_profile_replace(dir, "profile.coz", fill_coz, profile, err);
}

/* ---- the rest ------------------------------------------------------------------*/

static const char *verdict_text(enum ca_verdict verdict)
{
	return verdict == CA_VERDICT_WORTH        ? "worth it"
	       : verdict == CA_VERDICT_NOT_WORTH  ? "does not matter"
	       : verdict == CA_VERDICT_NOT_ENOUGH ? "not enough data"
						  : "cannot tell here";
}

bool ca_profile_is_little(const struct ca_profile_row *row)
{
	return row->verdict == CA_VERDICT_NOT_ENOUGH && row->curve->experiments >= ENOUGH &&
	       row->curve->at_high[1] < LITTLE;
}

bool ca_profile_is_vague(const struct ca_profile_row *row)
{
	return row->verdict == CA_VERDICT_NOT_ENOUGH && row->curve->experiments >= ENOUGH &&
	       !ca_profile_is_little(row) &&
	       2 * ca_estimate_lasting_error(row->curve, 0.5) > mostly * ca_estimate_width(row->curve);
}

const char *ca_profile_row_text(const struct ca_profile_row *row)
{
	return ca_profile_is_little(row)  ? "little, if any"
	       : ca_profile_is_vague(row) ? verdict_text(CA_VERDICT_CANNOT_TELL)
					  : verdict_text(row->verdict);
}

const char *ca_profile_verdict_key(enum ca_verdict verdict)
{
	return verdict == CA_VERDICT_WORTH        ? "worth"
	       : verdict == CA_VERDICT_NOT_WORTH  ? "not-worth"
	       : verdict == CA_VERDICT_NOT_ENOUGH ? "not-enough-data"
						  : "cannot-tell";
}

const char *ca_profile_baseline_name(enum ca_baseline baseline)
{
	return baseline == CA_BASELINE_ALL     ? "all"
	       : baseline == CA_BASELINE_RUN   ? "run"
	       : baseline == CA_BASELINE_NEAR  ? "near"
	       : baseline == CA_BASELINE_PLACE ? "place"
					       : "none";
}

const char *ca_profile_how_name(enum ca_how how)
{
	return how == CA_HOW_OWN      ? "own"
	       : how == CA_HOW_SHARE  ? "share"
	       : how == CA_HOW_BOUNDS ? "bounds"
				      : "compared";
}

void ca_profile_free_names(char **names)
{
	for (size_t i = 0; names && names[i]; i++)
		free(names[i]);
	free(names);
}

void ca_profile_free(struct ca_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->runs; i++) {
		free(profile->run[i].command);
		ca_profile_free_names(profile->run[i].word);
		ca_profile_free_names(profile->run[i].options);
		free(profile->run[i].mode);
		free(profile->run[i].backend);
		free(profile->run[i].speedups);
		free(profile->run[i].scope);
	}
	for (size_t i = 0; i < profile->points; i++) {
		free(profile->point[i].name);
		free(profile->point[i].unit);
		free(profile->point[i].beside);
		free(profile->point[i].instead);
		ca_estimate_fini(&profile->point[i].estimates);
		for (int k = 0; k < CA_PERCENTILES; k++)
			ca_estimate_fini(&profile->point[i].percentile[k].estimates);
	}
	for (size_t i = 0; i < profile->sample_count; i++) {
		ca_profile_free_names(profile->samples[i].via);
		ca_profile_free_names(profile->samples[i].contains);
		ca_profile_free_names(profile->samples[i].calls);
	}
	for (size_t i = 0; i < profile->warnings; i++)
		free(profile->warning[i]);
	free(profile->early);
	free(profile->periods_of);
	free(profile->whole_of);
	ca_catalog_fini(&profile->catalog);
	ca_profile_free_stacks(profile);
	for (size_t i = 0; i < profile->scopes; i++)
		free(profile->scope[i].binary);
	free(profile->scope);
	for (size_t i = 0; i < profile->binaries; i++) {
		free(profile->binary[i].path);
		free(profile->binary[i].build_id);
	}
	free(profile->binary);
	free(profile->run);
	free(profile->experiment);
	free(profile->visits);
	free(profile->times);
	free(profile->samples);
	free(profile->point);
	free(profile->row);
	free(profile->warning);
	free(profile);
}

/* To one digit, so that nobody takes it for exact. */
static size_t round_up(double n)
{
	double unit = pow(10, floor(log10(fmax(n, 1))));

	return (size_t)(ceil(n / unit) * unit);
}

size_t ca_profile_runs_wanted(const struct ca_profile *p, double points, const struct ca_profile_row **open)
{
	double most = 0, fresh = 0, widest = 0;
	size_t rows = 0;

	for (size_t r = 0; r < p->rows && rows < CA_PROFILE_FIRST && !p->blind; r++) {
		const struct ca_profile_row *row = &p->row[r];
		double half = (row->curve->at_high[1] - row->curve->at_low[1]) / 2, runs,
		       lasting = ca_estimate_lasting_error(row->curve, 0.5);

		if (ca_profile_holds_others(row) || row->verdict == CA_VERDICT_NOT_WORTH ||
		    row->verdict == CA_VERDICT_CANNOT_TELL)
			continue;
		rows++;
		if (ca_estimate_decided(row->curve, points))
			continue;
		/* an interval halves with four times as many, but for what is known by bounds alone */
		if (isfinite(half) && row->curve->experiments >= ENOUGH)
			runs = (double)p->runs * ((half * half - lasting * lasting) / (points * points) - 1);
		else
			runs = fresh += NEW_ROW;
		most = fmax(most, runs);
		if (!isfinite(half))
			half = INFINITY;
		if (!(half > widest))
			continue;
		widest = half;
		*open = row;
	}
	return most > 0 ? round_up(fmin(most, RUNS_MOST)) : 0;
}

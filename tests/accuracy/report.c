/* SPDX-License-Identifier: MIT */
/* What the runner says: a table while it goes, a summary against the bars, JSON, Markdown. */
#include "acc.h"
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of one speedup of one case, over its repeats. */
struct cell {
	double truth, ours, low, high, error; /* medians; error: |ours - truth| */
	double coz, coz_error, seconds;
	size_t inside, inside_with_truth, intervals; /* repeats whose interval holds the truth */
};

static struct cell make_cell(const struct acc_result *result, size_t s)
{
	double effect[ACC_REPEATS], low[ACC_REPEATS], high[ACC_REPEATS], seconds[ACC_REPEATS];
	struct cell cell = { .truth = result->truth[s] };

	for (size_t r = 0; r < result->repeats; r++) {
		const struct acc_estimate *e = &result->ours[s][r];
		double slack = 1.96 * result->truth_error[s];

		effect[r] = e->effect;
		low[r] = e->low;
		high[r] = e->high;
		seconds[r] = e->seconds_to_5;
		if (isnan(e->low) || isnan(e->high))
			continue;
		cell.intervals++;
		cell.inside += e->low <= cell.truth && cell.truth <= e->high;
		if (isnan(slack))
			slack = 0;
		cell.inside_with_truth += e->low <= cell.truth + slack && cell.truth - slack <= e->high;
	}
	cell.ours = acc_median(effect, result->repeats);
	cell.low = acc_median(low, result->repeats);
	cell.high = acc_median(high, result->repeats);
	cell.seconds = acc_median(seconds, result->repeats);
	cell.coz = acc_median(result->coz[s], result->repeats);
	cell.error = fabs(cell.ours - cell.truth);
	cell.coz_error = fabs(cell.coz - cell.truth);
	return cell;
}

static const char *show(double value, const char *format, char buffer[32])
{
	if (isnan(value))
		snprintf(buffer, 32, "-");
	else
		snprintf(buffer, 32, format, value);
	return buffer;
}

void acc_report_case(const struct acc_options *options, const struct acc_result *result)
{
	char a[32], b[32], c[32], d[32], e[32], f[32], g[32], h[32], i[32];

	if (result->skipped) {
		printf("%-20s skipped: %s\n", result->c->name, result->skipped);
		return;
	}
	for (size_t s = 0; s < options->speedups; s++) {
		struct cell cell = make_cell(result, s);
		double paper = acc_case_expect(result->c, options->speedup[s]);

		printf("%-20s %3g%% paper %5s truth %6s ±%4s  causal %6s [%6s,%6s] error %5s  "
		       "coz %6s error %5s\n",
		       s ? "" : result->c->name, options->speedup[s], show(paper, "%.1f", a),
		       show(cell.truth, "%.1f", b), show(1.96 * result->truth_error[s], "%.1f", c),
		       show(cell.ours, "%.1f", d), show(cell.low, "%.1f", e), show(cell.high, "%.1f", f),
		       show(cell.error, "%.1f", g), show(cell.coz, "%.1f", h),
		       show(cell.coz_error, "%.1f", i));
	}
	if (!isnan(result->overhead))
		printf("%-20s overhead at 0 %%: %.2f %%\n", "", result->overhead);
	if (result->problem[0])
		printf("%-20s no prediction: %s\n", "", result->problem);
	if (result->noisy)
		printf("%-20s %u run(s) kept in spite of other processes\n", "", result->noisy);
	fflush(stdout);
}

struct summary {
	size_t cases, points, missing, within5, coz_points, coz_within5;
	double mean, worst, coz_mean, coz_worst, coverage, coverage_with_truth;
	double overhead, seconds;
	const char *worst_case, *coz_worst_case;
};

static void add_case(struct summary *sum, const struct acc_options *options, const struct acc_result *result,
		     size_t counts[3])
{
	double error[ACC_SPEEDUPS], coz[ACC_SPEEDUPS], mean;

	for (size_t s = 0; s < options->speedups; s++) {
		struct cell cell = make_cell(result, s);

		error[s] = cell.error;
		coz[s] = cell.coz_error;
		sum->points += isnan(cell.error) ? 0 : 1;
		sum->missing += isnan(cell.error) ? 1 : 0;
		sum->within5 += cell.error <= 5;
		sum->coz_points += isnan(cell.coz_error) ? 0 : 1;
		sum->coz_within5 += cell.coz_error <= 5;
		counts[0] += cell.intervals;
		counts[1] += cell.inside;
		counts[2] += cell.inside_with_truth;
	}
	mean = acc_mean(error, options->speedups);
	if (mean > sum->worst || (isnan(sum->worst) && !isnan(mean))) {
		sum->worst = mean;
		sum->worst_case = result->c->name;
	}
	mean = acc_mean(coz, options->speedups);
	if (mean > sum->coz_worst || (isnan(sum->coz_worst) && !isnan(mean))) {
		sum->coz_worst = mean;
		sum->coz_worst_case = result->c->name;
	}
}

static struct summary summarise(const struct acc_options *options, const struct acc_result *result,
				size_t results)
{
	enum { MAX = 1024 };
	double error[MAX] = { 0 }, coz[MAX] = { 0 }, overhead[MAX] = { 0 }, seconds[MAX] = { 0 };
	size_t n = 0, cases = 0, counts[3] = { 0 };
	struct summary sum = { .worst = NAN, .coz_worst = NAN };

	for (size_t i = 0; i < results; i++) {
		if (result[i].skipped)
			continue;
		add_case(&sum, options, &result[i], counts);
		overhead[cases++] = result[i].overhead;
		for (size_t s = 0; s < options->speedups && n < MAX; s++, n++) {
			struct cell cell = make_cell(&result[i], s);

			error[n] = cell.error;
			coz[n] = cell.coz_error;
			seconds[n] = cell.seconds;
		}
	}
	sum.cases = cases;
	sum.mean = acc_mean(error, n);
	sum.coz_mean = acc_mean(coz, n);
	sum.overhead = acc_median(overhead, cases);
	sum.seconds = acc_median(seconds, n);
	sum.coverage = counts[0] ? 100.0 * (double)counts[1] / (double)counts[0] : NAN;
	sum.coverage_with_truth = counts[0] ? 100.0 * (double)counts[2] / (double)counts[0] : NAN;
	return sum;
}

struct bar {
	const char *what, *unit;
	double value, bound, coz;
	bool at_least;
};

/* The bars of the project: medians over repeats, 2 cores, all cases. With the timer back
 * end or a busy neighbour only the mean error has one. */
static size_t make_bars(const struct acc_options *options, const struct summary *sum, struct bar bar[5])
{
	bool timer = options->backend && !strcmp(options->backend, "timer");
	double bound = options->neighbour ? 4 : timer ? 3 : 1.5;

	bar[0] = (struct bar){ "mean absolute error", "points", sum->mean, bound, sum->coz_mean, false };
	if (options->neighbour || timer)
		return 1;
	bar[1] = (struct bar){
		"worst case (mean over its speedups)", "points", sum->worst, 3, sum->coz_worst, false
	};
	bar[2] = (struct bar){ "95 % intervals that contain the truth", "%", sum->coverage, 90, NAN, true };
	bar[3] = (struct bar){ "overhead at 0 %, median", "%", sum->overhead, 1.5, NAN, false };
	bar[4] = (struct bar){ "time to ±5 points, median", "s", sum->seconds, 10, NAN, false };
	return 5;
}

static bool holds(const struct bar *bar)
{
	if (isnan(bar->value))
		return false;
	return bar->at_least ? bar->value >= bar->bound : bar->value <= bar->bound;
}

/* Mean and worst error of each class among the results. */
static void report_classes(const struct acc_options *options, const struct acc_result *result, size_t results)
{
	for (size_t from = 0, to; from < results; from = to) {
		const char *class = result[from].c->class;
		struct summary sum;
		char a[32], b[32];

		for (to = from; to < results && !strcmp(result[to].c->class, class);)
			to++; /* the cases are sorted by class */
		sum = summarise(options, result + from, to - from);
		printf("class %-8s %3zu cases: mean error %s, worst %s (%s)\n", class, sum.cases,
		       show(sum.mean, "%.2f", a), show(sum.worst, "%.2f", b),
		       sum.worst_case ? sum.worst_case : "-");
	}
}

bool acc_report_summary(const struct acc_options *options, const struct acc_result *result, size_t results)
{
	struct summary sum = summarise(options, result, results);
	struct bar bar[5];
	size_t n = make_bars(options, &sum, bar);
	bool all = sum.missing == 0;
	char a[32], b[32];

	printf("\n%zu cases, %zu predictions, %zu missing; within 5 points: %zu (Coz %zu of %zu)\n",
	       sum.cases, sum.points, sum.missing, sum.within5, sum.coz_within5, sum.coz_points);
	for (size_t i = 0; i < n; i++) {
		printf("%-40s %7s %-6s bar %s %g: %s  (Coz %s)\n", bar[i].what, show(bar[i].value, "%.2f", a),
		       bar[i].unit, bar[i].at_least ? ">=" : "<=", bar[i].bound,
		       holds(&bar[i]) ? "holds" : "MISSED", show(bar[i].coz, "%.2f", b));
		all = all && holds(&bar[i]);
	}
	printf("worst case: %s; Coz's: %s; coverage with the truth's own interval: %s %%\n",
	       sum.worst_case ? sum.worst_case : "-", sum.coz_worst_case ? sum.coz_worst_case : "-",
	       show(sum.coverage_with_truth, "%.1f", a));
	report_classes(options, result, results);
	fflush(stdout);
	return all;
}

/* ---- JSON --------------------------------------------------------------------------- */

static void put(struct json_object *object, const char *key, double value)
{
	json_object_object_add(object, key, isfinite(value) ? json_object_new_double(value) : NULL);
}

static struct json_object *cell_json(const struct acc_options *options, const struct acc_result *result,
				     size_t s)
{
	struct json_object *out = json_object_new_object(), *all = json_object_new_array();
	struct cell cell = make_cell(result, s);

	put(out, "speedup", options->speedup[s]);
	put(out, "paper", acc_case_expect(result->c, options->speedup[s]));
	put(out, "truth", cell.truth);
	put(out, "truth_standard_error", result->truth_error[s]);
	put(out, "effect", cell.ours);
	put(out, "low", cell.low);
	put(out, "high", cell.high);
	put(out, "error", cell.error);
	put(out, "coz", cell.coz);
	put(out, "coz_error", cell.coz_error);
	put(out, "seconds_to_5", cell.seconds);
	for (size_t r = 0; r < result->repeats; r++) {
		struct json_object *one = json_object_new_object();

		put(one, "effect", result->ours[s][r].effect);
		put(one, "low", result->ours[s][r].low);
		put(one, "high", result->ours[s][r].high);
		put(one, "coz", result->coz[s][r]);
		json_object_array_add(all, one);
	}
	json_object_object_add(out, "repeats", all);
	return out;
}

static struct json_object *case_json(const struct acc_options *options, const struct acc_result *result)
{
	struct json_object *out = json_object_new_object(), *curve = json_object_new_array();

	json_object_object_add(out, "case", json_object_new_string(result->c->name));
	json_object_object_add(out, "class", json_object_new_string(result->c->class));
	if (result->skipped)
		json_object_object_add(out, "skipped", json_object_new_string(result->skipped));
	put(out, "base_rate", result->base_rate);
	put(out, "overhead", result->overhead);
	json_object_object_add(out, "noisy_runs", json_object_new_int((int)result->noisy));
	if (result->problem[0])
		json_object_object_add(out, "problem", json_object_new_string(result->problem));
	for (size_t s = 0; s < options->speedups && !result->skipped; s++)
		json_object_array_add(curve, cell_json(options, result, s));
	json_object_object_add(out, "curve", curve);
	return out;
}

bool acc_report_json(const struct acc_options *options, const struct acc_result *result, size_t results)
{
	struct json_object *out = json_object_new_object(), *cases = json_object_new_array();
	struct json_object *bars = json_object_new_array();
	struct summary sum = summarise(options, result, results);
	struct bar bar[5];
	size_t n = make_bars(options, &sum, bar);
	bool done;

	json_object_object_add(out, "format", json_object_new_string("causal-accuracy"));
	json_object_object_add(out, "version", json_object_new_int(1));
	json_object_object_add(out, "mode", json_object_new_string(options->mode));
	json_object_object_add(out, "backend",
			       json_object_new_string(options->backend ? options->backend : "auto"));
	json_object_object_add(out, "neighbour", json_object_new_boolean(options->neighbour));
	json_object_object_add(out, "cores", json_object_new_int((int)sysconf(_SC_NPROCESSORS_ONLN)));
	for (size_t i = 0; i < results; i++)
		json_object_array_add(cases, case_json(options, &result[i]));
	json_object_object_add(out, "cases", cases);
	for (size_t i = 0; i < n; i++) {
		struct json_object *b = json_object_new_object();

		json_object_object_add(b, "what", json_object_new_string(bar[i].what));
		put(b, "value", bar[i].value);
		put(b, "bound", bar[i].bound);
		put(b, "coz", bar[i].coz);
		json_object_object_add(b, "holds", json_object_new_boolean(holds(&bar[i])));
		json_object_array_add(bars, b);
	}
	json_object_object_add(out, "bars", bars);
	done = json_object_to_file_ext(options->json, out, JSON_C_TO_STRING_PRETTY) == 0;
	json_object_put(out);
	return done;
}

/* ---- Markdown ----------------------------------------------------------------------- */

static void markdown_case(FILE *f, const struct acc_options *options, const struct acc_result *result)
{
	char a[32], b[32], c[32], d[32], e[32], g[32], h[32], i[32];

	for (size_t s = 0; s < options->speedups; s++) {
		struct cell cell = make_cell(result, s);

		fprintf(f, "| %s | %g | %s | %s | %s to %s | %zu/%zu | %s | %s | %s | %s |\n",
			s ? "" : result->c->name, options->speedup[s], show(cell.truth, "%.1f", a),
			show(cell.ours, "%.1f", b), show(cell.low, "%.1f", c), show(cell.high, "%.1f", d),
			cell.inside, cell.intervals, show(cell.error, "%.1f", e),
			show(cell.coz_error, "%.1f", g), s ? "" : show(result->overhead, "%.1f", h),
			show(cell.seconds, "%.1f", i));
	}
}

bool acc_report_markdown(const struct acc_options *options, const struct acc_result *result, size_t results)
{
	FILE *f = fopen(options->markdown, "w");
	struct summary sum = summarise(options, result, results);
	struct bar bar[5];
	size_t n = make_bars(options, &sum, bar);
	char a[32], b[32];

	if (!f)
		return false;
	fprintf(f, "%s mode, %s back end%s, %ld cores, %g s of profiling a case, median of %d.\n\n",
		options->mode, options->backend ? options->backend : "automatic",
		options->neighbour ? ", a busy neighbour on one core" : "", sysconf(_SC_NPROCESSORS_ONLN),
		options->seconds, options->repeat);
	fprintf(f, "| what | value | bar | holds | Coz |\n|---|---|---|---|---|\n");
	for (size_t i = 0; i < n; i++)
		fprintf(f, "| %s | %s %s | %s %g | %s | %s |\n", bar[i].what, show(bar[i].value, "%.2f", a),
			bar[i].unit, bar[i].at_least ? "≥" : "≤", bar[i].bound, holds(&bar[i]) ? "yes" : "no",
			show(bar[i].coz, "%.1f", b));
	fprintf(f, "\n| case | speedup | truth | causal | interval | inside | error | Coz's error |"
		   " overhead at 0 %% | s to ±5 |\n|---|---|---|---|---|---|---|---|---|---|\n");
	for (size_t i = 0; i < results; i++) {
		if (result[i].skipped)
			fprintf(f, "| %s | | skipped: %s | | | | | | | |\n", result[i].c->name,
				result[i].skipped);
		else
			markdown_case(f, options, &result[i]);
	}
	return fclose(f) == 0;
}

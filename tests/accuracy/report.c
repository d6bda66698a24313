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
	double overhead, overhead_worst, seconds;
	double worst_repeat; /* of one speedup in one repeat */
	double first;        /* percent of programs and repeats with the right first row */
	double answered;     /* percent of the cases' repeats without "cannot tell" */
	const char *worst_case, *coz_worst_case, *worst_repeat_case, *overhead_case;
};

static void add_case(struct summary *sum, const struct acc_options *options, const struct acc_result *result,
		     size_t counts[3])
{
	double error[ACC_SPEEDUPS], coz[ACC_SPEEDUPS], mean;

	for (size_t s = 0; s < options->speedups; s++) {
		struct cell cell = make_cell(result, s);

		for (size_t r = 0; r < result->repeats; r++) {
			double off = fabs(result->ours[s][r].effect - cell.truth);

			if (off > sum->worst_repeat || (isnan(sum->worst_repeat) && !isnan(off))) {
				sum->worst_repeat = off;
				sum->worst_repeat_case = result->c->name;
			}
		}

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

/* Programs in whose repeats the region that really matters most came first, for whichever unit of work; those within
 * 3 points of the best count as the best. counts: right, all. */
static void count_first(const struct acc_options *options, const struct acc_result *result, size_t results,
			size_t from, size_t counts[2])
{
	const char *program = result[from].c->program;
	size_t s = options->speedups - 1;
	double best = 0;

	for (size_t i = 0; i < from; i++)
		if (!strcmp(result[i].c->program, program))
			return; /* the program was counted */
	for (size_t i = from; i < results; i++)
		if (!strcmp(result[i].c->program, program))
			best = fmax(best, result[i].truth[s]);
	for (size_t r = 0; r < result[from].repeats && best > 3; r++) {
		bool right = false;

		for (size_t i = from; i < results; i++)
			right |= !strcmp(result[i].c->program, program) && result[i].first[r] &&
				 result[i].truth[s] > best - 3;
		counts[0] += right;
		counts[1]++;
	}
}

/* Hot code has bars of its own. */
enum part { ALL, COOL, HOT };

static bool is_in(enum part part, const struct acc_case *c)
{
	return part == ALL || (part == HOT) == !strcmp(c->class, "hot");
}

static struct summary summarise(const struct acc_options *options, const struct acc_result *result,
				size_t results, enum part part)
{
	enum { MAX = 1024 };
	double error[MAX] = { 0 }, coz[MAX] = { 0 }, overhead[MAX] = { 0 }, seconds[MAX] = { 0 };
	size_t n = 0, cases = 0, counts[3] = { 0 }, first[2] = { 0 }, asked = 0, declined = 0;
	struct summary sum = { .worst = NAN, .coz_worst = NAN, .worst_repeat = NAN, .overhead_worst = NAN };

	for (size_t i = 0; i < results; i++) {
		if (result[i].skipped || !is_in(part, result[i].c))
			continue;
		add_case(&sum, options, &result[i], counts);
		count_first(options, result, results, i, first);
		asked += result[i].repeats;
		declined += result[i].declined;
		if (result[i].overhead > sum.overhead_worst || isnan(sum.overhead_worst)) {
			sum.overhead_worst = result[i].overhead;
			sum.overhead_case = result[i].c->name;
		}
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
	sum.first = first[1] ? 100.0 * (double)first[0] / (double)first[1] : NAN;
	sum.answered = asked ? 100.0 * (double)(asked - declined) / (double)asked : NAN;
	sum.coverage = counts[0] ? 100.0 * (double)counts[1] / (double)counts[0] : NAN;
	sum.coverage_with_truth = counts[0] ? 100.0 * (double)counts[2] / (double)counts[0] : NAN;
	return sum;
}

struct bar {
	const char *what, *unit;
	double value, bound, coz;
	bool at_least;
};

enum { BARS = 10 };

static struct bar at_most(const char *what, const char *unit, double value, double bound, double coz)
{
	return (struct bar){ what, unit, value, bound, coz, false };
}

static struct bar at_least(const char *what, double percent, double bound)
{
	return (struct bar){ what, "%", percent, bound, NAN, true };
}

/* The bars of the project: medians over repeats, 2 cores, all cases. */
static size_t make_bars(const struct acc_options *options, const struct acc_result *result, size_t results,
			struct bar bar[BARS])
{
	const struct acc_mode *mode = options->mode;
	struct summary all = summarise(options, result, results, ALL);
	struct summary cool = summarise(options, result, results, COOL);
	struct summary hot = summarise(options, result, results, HOT);
	size_t n = 0;

	if (cool.cases)
		bar[n++] = at_most("mean error", "points", cool.mean, mode->mean, cool.coz_mean);
	if (cool.cases && !isnan(mode->worst))
		bar[n++] = at_most("worst case (mean over its speedups)", "points", cool.worst, mode->worst,
				   cool.coz_worst);
	if (hot.cases)
		bar[n++] = at_most("hot code: mean error", "points", hot.mean, fmax(mode->mean, 2),
				   hot.coz_mean);
	if (hot.cases && !isnan(mode->worst))
		bar[n++] = at_most("hot code: worst case", "points", hot.worst, fmax(mode->worst, 5),
				   hot.coz_worst);
	bar[n++] = at_least("intervals that hold the truth (its scatter allowed for)",
			    all.coverage_with_truth, 93);
	if (mode->all)
		bar[n++] = at_least("the region that matters most is first", all.first, 95);
	if (mode->neighbour)
		bar[n++] = at_least("repeats with a verdict", all.answered, 200.0 / 3);
	if (options->overhead) {
		bar[n++] = at_most("overhead at 0 %, median", "%", all.overhead, 1, NAN);
		bar[n++] = at_most("overhead at 0 %, worst", "%", all.overhead_worst, 4, NAN);
	}
	if (!mode->all)
		bar[n++] = at_most("time to ±5 points, median", "s", all.seconds, 10, NAN);
	return n;
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
		sum = summarise(options, result + from, to - from, ALL);
		printf("class %-8s %3zu cases: mean error %s, worst %s (%s)\n", class, sum.cases,
		       show(sum.mean, "%.2f", a), show(sum.worst, "%.2f", b),
		       sum.worst_case ? sum.worst_case : "-");
	}
}

bool acc_report_summary(const struct acc_options *options, const struct acc_result *result, size_t results)
{
	struct summary sum = summarise(options, result, results, ALL);
	struct bar bar[BARS];
	size_t n = make_bars(options, result, results, bar);
	bool all = sum.missing == 0 || options->mode->neighbour;
	char a[32], b[32];

	printf("\n%zu cases, %zu predictions, %zu missing; within 5 points: %zu (Coz %zu of %zu)\n",
	       sum.cases, sum.points, sum.missing, sum.within5, sum.coz_within5, sum.coz_points);
	for (size_t i = 0; i < n; i++) {
		printf("%-56s %7s %-6s bar %s %g: %s  (Coz %s)\n", bar[i].what, show(bar[i].value, "%.2f", a),
		       bar[i].unit, bar[i].at_least ? ">=" : "<=", bar[i].bound,
		       holds(&bar[i]) ? "holds" : "MISSED", show(bar[i].coz, "%.2f", b));
		all = all && holds(&bar[i]);
	}
	printf("worst case: %s; Coz's: %s; worst single prediction: off by %s (%s); most overhead: %s; "
	       "intervals that hold the median truth itself: %s %%\n",
	       sum.worst_case ? sum.worst_case : "-", sum.coz_worst_case ? sum.coz_worst_case : "-",
	       show(sum.worst_repeat, "%.1f", a), sum.worst_repeat_case ? sum.worst_repeat_case : "-",
	       sum.overhead_case ? sum.overhead_case : "-", show(sum.coverage, "%.1f", b));
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
	struct bar bar[BARS];
	size_t n = make_bars(options, result, results, bar);
	bool done;

	json_object_object_add(out, "format", json_object_new_string("causal-accuracy"));
	json_object_object_add(out, "version", json_object_new_int(1));
	json_object_object_add(out, "mode", json_object_new_string(options->mode->name));
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
	struct summary sum = summarise(options, result, results, ALL);
	struct bar bar[BARS];
	size_t n = make_bars(options, result, results, bar);
	char a[32], b[32];

	if (!f)
		return false;
	fprintf(f,
		"%s (%s), %ld cores, %g s of profiling a %s, median of %d; worst single prediction: off by "
		"%s.\n\n",
		options->mode->name, options->mode->what, sysconf(_SC_NPROCESSORS_ONLN), options->seconds,
		options->mode->all ? "program" : "case", options->repeat, show(sum.worst_repeat, "%.1f", a));
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

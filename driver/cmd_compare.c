/* SPDX-License-Identifier: MIT */
/* `causal compare`: the results of two builds beside each other; for people, and for a CI that must notice
 * when a program has become slower. Driver's process, one thread. */
#include "causal/results/compare.h"
#include "causal/results/labels.h"
#include "causal/results/text.h"
#include "driver/arguments.h"
#include "driver/child.h"
#include "driver/commands.h"
#include "driver/say.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 44, POINT_MAX = 14, ROWS = 20 };

static const char *kind_of(const struct ca_compare_rate *rate)
{
	return rate->b->kind == 'l' ? "latency" : rate->b->kind == 'e' ? "run time" : "time per visit";
}

/* Surely slower, and by that much, as far as can be told. A latency by its mean: the more is looked at, the
 * more often something is slower by chance. */
static bool is_slower(const struct ca_compare_rate *rate, double percent)
{
	return !rate->percent && rate->low > 0 && rate->change >= percent;
}

static void print_rate(const struct ca_compare_rate *rate)
{
	char title[16] = "";

	if (rate->percent)
		snprintf(title, sizeof title, "  p%u", rate->percent);
	ca_text_put(stdout, rate->percent ? title : rate->b->name, NAME);
	if (isnan(rate->change))
		printf("  not enough experiments at 0 %%: use more runs (-n)\n");
	else
		printf("  %+.1f %% %s (%+.1f to %+.1f): %s%s\n", rate->change, kind_of(rate), rate->low,
		       rate->high,
		       rate->low > 0    ? "slower"
		       : rate->high < 0 ? "faster"
					: "no sure change",
		       rate->runs[0] < 2 || rate->runs[1] < 2
			       ? "; one run does not show how much runs differ: use -n 5 or more"
			       : "");
}

static void print_effect(const struct ca_curve *curve)
{
	double half = (curve->at_high[1] - curve->at_low[1]) / 2;

	if (isfinite(half))
		printf("%9.1f ± %-5.1f", curve->at[1], half);
	else
		printf("%9s   %-5s", "-", "");
}

static void print_share(double percent)
{
	if (isfinite(percent))
		printf("%6.0f", percent);
	else
		printf("%6s", "-");
}

static bool is_told(const struct ca_compare_row *row)
{
	return row->a->verdict == CA_VERDICT_WORTH || row->b->verdict == CA_VERDICT_WORTH ||
	       fabs(row->change) > row->half;
}

/* Of the column that tells them apart; 0: there is only one. */
static size_t point_width(const struct ca_compare *compare)
{
	size_t width = 0;
	bool several = false;

	for (size_t r = 0; r < compare->rows; r++) {
		const char *name = compare->row[r].b->point->name;

		several = several || strcmp(name, compare->row[0].b->point->name) != 0;
		width = ca_text_width(name) > width ? ca_text_width(name) : width;
	}
	return !several ? 0 : width < POINT_MAX ? width : POINT_MAX;
}

static void print_rows(const struct ca_compare *compare, const struct ca_profile *b)
{
	const struct ca_region **region = calloc(compare->rows + 1, sizeof *region);
	size_t shown = 0, point = point_width(compare), name = point ? NAME - 2 - point : NAME;
	char **label;

	for (size_t r = 0; region && r < compare->rows; r++)
		region[r] = compare->row[r].b->region;
	label = region ? ca_labels_make(region, compare->rows, name) : NULL;
	for (size_t r = 0; label && r < compare->rows && shown < ROWS; r++) {
		const struct ca_compare_row *row = &compare->row[r];

		if (!is_told(row))
			continue;
		if (!shown++)
			printf("\n%-*s  total %%        if it took 50 %% less: program speedup in %%\n"
			       "%-*s  before   now       before             now\n",
			       NAME, "code", NAME, "");
		ca_text_put(stdout, label[r], name);
		printf("  ");
		if (point) {
			ca_text_put(stdout, row->b->point->name, point);
			printf("  ");
		}
		print_share(row->a->samples);
		print_share(row->b->samples);
		print_effect(row->a->curve);
		print_effect(row->b->curve);
		printf("%s\n", fabs(row->change) > row->half ? "  changed" : "");
	}
	if (compare->rows < b->rows)
		printf("%zu of %zu rows have no counterpart.\n", b->rows - compare->rows, b->rows);
	else if (!shown)
		printf("No code is known to be worth it, or to have changed.\n");
	ca_labels_free(label, compare->rows);
	free(region);
}

static int judge(const struct ca_compare *compare, const char *limit, double percent)
{
	for (size_t i = 0; limit && i < compare->rates; i++)
		if (is_slower(&compare->rate[i], percent)) {
			ca_say("compare: '%s' is slower by %.1f %% (%.1f to %.1f), and the limit is %g %%",
			       compare->rate[i].b->name, compare->rate[i].change, compare->rate[i].low,
			       compare->rate[i].high, percent);
			return 1;
		}
	return 0;
}

static int compare_two(const struct ca_profile *a, const struct ca_profile *b, const char *limit,
		       double percent)
{
	struct ca_compare compare;
	int code;

	if (ca_compare_make(&compare, a, b)) {
		ca_say("compare: no memory");
		return 1;
	}
	for (size_t i = 0; i < compare.rates; i++)
		print_rate(&compare.rate[i]);
	print_rows(&compare, b);
	if (a->busy || b->busy)
		ca_say("compare: other programs took the CPU during most experiments: the numbers say "
		       "little");
	code = judge(&compare, limit, percent);
	if (!compare.rates) {
		ca_say("compare: the two have no progress point in common; name the same ones with -P in "
		       "both sweeps");
		code = CA_EXIT_USAGE;
	}
	ca_compare_fini(&compare);
	if (fflush(stdout) || ferror(stdout)) {
		ca_say("compare: cannot write to standard output (%s)", strerror(errno));
		return 1;
	}
	return code;
}

int ca_cmd_compare(int argc, char **argv)
{
	const char *limit = NULL;
	const struct ca_argument list[] = { { "--fail-if-slower", &limit }, { NULL, NULL } };
	int words = ca_arguments_take(argc, argv, list), code = CA_EXIT_USAGE;
	struct ca_profile *a, *b = NULL;
	double percent = 0;

	if (words != 2) {
		if (words >= 0)
			ca_say("compare: name two directories with results, the older one first, as in: "
			       "causal compare causal-out/OLD causal-out/NEW --fail-if-slower 2%%");
		return CA_EXIT_USAGE;
	}
	if (limit && !ca_arguments_number("compare", "--fail-if-slower", limit, 0, 1000, &percent))
		return CA_EXIT_USAGE;
	a = ca_arguments_profile("compare", argv[1]);
	if (a)
		b = ca_arguments_profile("compare", argv[2]);
	if (b)
		code = compare_two(a, b, limit, percent);
	ca_profile_free(a);
	ca_profile_free(b);
	return code;
}

/* SPDX-License-Identifier: MIT */
/* Several regions at once: the answer; see what_if.h. What each of them gives alone comes from experiments of
 * the same sweep, dealt between those with all of them. */
#include "causal/results/profile.h"
#include "causal/results/what_if.h"
#include <math.h>
#include <string.h>

/* By how much the program would be faster, percent. NAN: not known. */
struct effect {
	double effect, low, high;
	size_t experiments;
};
struct answer {
	struct effect part[CA_PARTS], all;
	struct effect sum;  /* of the parts alone */
	struct effect more; /* all less the sum */
};

static struct effect find(const struct ca_profile *profile, const struct ca_profile_point *point,
			  const char *name, unsigned percent)
{
	struct effect found = { NAN, NAN, NAN, 0 };

	for (size_t i = 0; i < point->estimates.cells; i++) {
		const struct ca_cell *cell = &point->estimates.cell[i];
		const struct ca_region *region = ca_catalog_get_region(&profile->catalog, cell->region);

		if (cell->speedup == percent * 10000 && region && !strcmp(region->name, name) &&
		    cell->experiments > found.experiments)
			found = (struct effect){ cell->effect, cell->low, cell->high, cell->experiments };
	}
	return found;
}

static double half(const struct effect *e)
{
	return (e->high - e->low) / 2;
}

static struct effect around(double effect, double half_width)
{
	return (struct effect){ effect, effect - half_width, effect + half_width, 0 };
}

/* As one progress point sees it; text: as it was given, by which name the region of all parts goes. False:
 * nothing is known of any. */
static bool find_answer(const struct ca_profile *profile, const struct ca_profile_point *point,
			const struct ca_what_if *w, const char *text, struct answer *answer)
{
	double sum = 0, squares = 0;
	bool any;

	answer->all = find(profile, point, text, ca_what_if_percent(w));
	any = answer->all.experiments;
	for (unsigned i = 0; i < w->parts; i++) {
		answer->part[i] = find(profile, point, w->part[i].name, w->part[i].percent);
		any |= answer->part[i].experiments > 0;
		sum += answer->part[i].effect;
		squares += pow(half(&answer->part[i]), 2);
	}
	/* what they share, the baseline, makes the difference surer than this says */
	answer->sum = around(sum, sqrt(squares));
	answer->more = around(answer->all.effect - sum, sqrt(squares + pow(half(&answer->all), 2)));
	return any;
}

static void put_line(FILE *out, const char *name, unsigned percent, const struct effect *e)
{
	char title[64];

	if (percent)
		snprintf(title, sizeof title, "%.44s %u %% less", name, percent);
	else
		snprintf(title, sizeof title, "%s", name);
	if (!isfinite(e->effect))
		fprintf(out, "     %-56s       -", title);
	else if (!isfinite(half(e)))
		fprintf(out, "     %-56s %7.1f ± ?", title, e->effect);
	else
		fprintf(out, "     %-56s %7.1f ± %.1f", title, e->effect, half(e));
	if (percent || e->experiments)
		fprintf(out, "   %zu experiment%s", e->experiments, e->experiments == 1 ? "" : "s");
	fputc('\n', out);
}

static void put_verdict(FILE *out, const struct answer *a, bool busy)
{
	const struct effect *more = &a->more;

	if (busy)
		fputs("     Whether they add up cannot be told here: other programs took the CPU.\n", out);
	else if (!isfinite(more->low) || !isfinite(more->high))
		fputs("     Whether they add up is not known yet: more runs, or a longer one, would tell.\n",
		      out);
	else if (more->low > 0)
		fprintf(out,
			"     Together they give more than the sum, by %.1f ± %.1f: each is held up by what "
			"the "
			"others still take.\n",
			more->effect, half(more));
	else if (more->high < 0)
		fprintf(out,
			"     Together they give less than the sum, by %.1f ± %.1f: they win the same "
			"time.\n",
			-more->effect, half(more));
	else
		fprintf(out, "     They add up, as far as can be told: the difference is %.1f ± %.1f.\n",
			more->effect, half(more));
}

void ca_what_if_print(const struct ca_profile *profile, const char *text, FILE *out)
{
	struct ca_what_if w;
	struct answer a;

	if (!text || !*text || ca_what_if_parse(&w, text, NULL) != CA_OK)
		return;
	for (size_t p = 0; p < profile->points; p++) {
		const struct ca_profile_point *point = &profile->point[p];

		if (!find_answer(profile, point, &w, text, &a))
			continue;
		fprintf(out, "\nProgram speedup in %% (± half of the 95 %% interval), %s:\n",
			point->kind == 'e' ? "run time" : point->name);
		for (unsigned i = 0; i < w.parts; i++)
			put_line(out, w.part[i].name, w.part[i].percent, &a.part[i]);
		put_line(out, "all of them at once", 0, &a.all);
		put_line(out, "the sum of each alone", 0, &a.sum);
		put_verdict(out, &a, profile->blind);
	}
}

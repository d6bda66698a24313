/* SPDX-License-Identifier: MIT */
/* Several regions at once; see what_if.h. What each of them gives alone comes from experiments of the same
 * sweep, dealt between those with all of them. */
#include "causal/results/what_if.h"
#include "causal/results/profile.h"
#include "core/err.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was asked ----------------------------------------------------------------*/

/* Names of C++ have commas and equals signs: a part ends with "=", a number, and a comma or the end. */
static const char *end_of_part(const char *text, const char **equals, unsigned long *percent)
{
	for (const char *c = strchr(text, '='); c; c = strchr(c + 1, '=')) {
		char *end;

		if (!isdigit((unsigned char)c[1]))
			continue;
		*percent = strtoul(c + 1, &end, 10);
		if (*end && *end != ',')
			continue;
		*equals = c;
		return *end ? end + 1 : end;
	}
	return NULL;
}

/* Insertion keeps the order of equals. */
static void add(struct ca_what_if *w, const char *name, size_t length, unsigned percent)
{
	unsigned at = w->parts++;

	for (; at && w->part[at - 1].percent > percent; at--)
		w->part[at] = w->part[at - 1];
	memcpy(w->part[at].name, name, length);
	w->part[at].name[length] = '\0';
	w->part[at].percent = percent;
}

enum ca_status ca_what_if_parse(struct ca_what_if *w, const char *text, struct ca_err *err)
{
	static const char form[] = "what-if: '%s' is not of the form NAME=PERCENT,NAME=PERCENT, as in "
				   "'parse=20,render=50', with 1 to 100 %% each";
	const char *from = text, *equals, *next;
	unsigned long percent;

	*w = (struct ca_what_if){ 0 };
	while (*from) {
		next = end_of_part(from, &equals, &percent);
		if (!next || equals == from || (size_t)(equals - from) >= sizeof w->part[0].name ||
		    percent < 1 || percent > 100)
			return ca_err_set(err, CA_ERR_USAGE, form, text);
		if (w->parts == CA_PARTS)
			return ca_err_set(err, CA_ERR_USAGE, "what-if: more than %d names", CA_PARTS);
		add(w, from, (size_t)(equals - from), (unsigned)percent);
		from = next;
	}
	if (w->parts < 2)
		return ca_err_set(err, CA_ERR_USAGE, form, text);
	for (unsigned i = 0; i < w->parts; i++)
		for (unsigned k = 0; k < i; k++)
			if (!strcmp(w->part[i].name, w->part[k].name))
				return ca_err_set(err, CA_ERR_USAGE, "what-if: '%s' is there twice",
						  w->part[i].name);
	return CA_OK;
}

unsigned ca_what_if_percent(const struct ca_what_if *w)
{
	return w->parts ? w->part[w->parts - 1].percent : 0;
}

/* ---- the answer --------------------------------------------------------------------*/

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
		put_verdict(out, &a, profile->busy);
	}
}

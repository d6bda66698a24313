/* SPDX-License-Identifier: MIT */
/* What stands below the rows of the table; see table.h. Driver's process, one thread. */
#include "causal/results/labels.h"
#include "causal/results/plain.h"
#include "causal/results/table.h"
#include "causal/results/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	ROW_TEXT = 48,  /* room for "4 to 7" */
	NAMED = 2,      /* more that are no rows are counted only */
	CONTAINERS = 3, /* codes that only contain others, and are told */
	UNTRIED = 5     /* codes without an experiment that are named */
};

#define S_ERROR 1.02 /* S time is known to 1 %, standard deviation (estimate_bounds.c) */
#define LEAST_OWN                                                                                            \
	5. /* percent of the samples, of code that is worth a word although nothing is known of it */

static double ceiling(const struct ca_profile_row *row)
{
	return fmax(row->curve->at[CA_AT - 1], row->curve->at_high[CA_AT - 1]);
}

/* Percent of the time in which a thread was in that code, from its experiments: the most that there is to
 * be saved. NAN: not known. */
static double s_share(const struct ca_profile *p, uint32_t region)
{
	double active = 0, duration = 0;

	for (size_t i = 0; i < p->experiments; i++) {
		const struct ca_profile_experiment *e = &p->experiment[i];

		if (e->region != region || e->flags)
			continue;
		active += (double)e->s_time;
		duration += (double)e->duration;
	}
	return duration > 0 ? 100 * active / duration : NAN;
}

/* What the rows that do not matter could give together, percent. Each alone may give nothing, and two that
 * run side by side all of their time; but no more than the time in which a thread is in one of them, and that
 * is no more than the sum over them. NAN: not known. */
static double together(const struct ca_table *t)
{
	double sum = 0;

	for (size_t r = t->shown; r < t->rows; r++) {
		bool again = false;

		if (t->row[r]->verdict != CA_VERDICT_NOT_WORTH)
			continue;
		if (t->row[r]->point->kind == 'l') /* whose time it is, S time does not tell */
			return NAN;
		for (size_t k = t->shown; k < r && !again; k++)
			again = t->row[k]->region == t->row[r]->region &&
				t->row[k]->verdict == CA_VERDICT_NOT_WORTH;
		sum += again ? 0 : s_share(t->profile, t->row[r]->region->id);
	}
	return S_ERROR * sum;
}

static void put_little(const struct ca_table *t, size_t rows, double each)
{
	double all = ceil(together(t));

	fprintf(t->out, "%*s%zu other%s:", CA_TABLE_RANK, "", rows, rows == 1 ? "" : "s");
	if (rows == 1)
		fprintf(t->out, " at most %.0f\n", each);
	else if (!(all < 100))
		fprintf(t->out, " at most %.0f each\n", each);
	else if (all <= each)
		fprintf(t->out, " together at most %.0f\n", all);
	else
		fprintf(t->out, " at most %.0f each, together at most %.0f\n", each, all);
}

/* Not known; little: ... but to be little. */
static bool is_unknown(const struct ca_profile_row *row, bool little)
{
	return row->verdict != CA_VERDICT_NOT_WORTH && ca_profile_is_little(row) == little;
}

/* Does another point say something else of it? */
static bool is_disputed(const struct ca_table *t, size_t r, bool little)
{
	for (size_t k = 0; k < t->rows; k++)
		if (t->row[k]->region == t->row[r]->region &&
		    !ca_table_is_same(t->row[k]->point, t->row[r]->point) &&
		    (k < t->shown || !is_unknown(t->row[k], little)))
			return true;
	return false;
}

/* Not shown, and not told yet for another point. */
static bool is_news(const struct ca_table *t, size_t r, bool little)
{
	bool told = false;

	for (size_t k = t->shown; k < r && !told; k++)
		told = t->row[k]->region == t->row[r]->region && is_unknown(t->row[k], little);
	return is_unknown(t->row[r], little) && (!told || is_disputed(t, r, little));
}

/* "3 more `what`: a, b, c": code of rows that are not shown, and not known; little: ... but to be little. */
static void put_unknown(const struct ca_table *t, bool little, const char *what)
{
	size_t left = 0, used;

	for (size_t r = t->shown; r < t->rows; r++)
		left += is_news(t, r, little);
	if (!left)
		return;
	used = (size_t)fprintf(t->out, "%*s%zu more %s:", CA_TABLE_RANK, "", left, what);
	for (size_t r = t->shown; r < t->rows; r++) {
		const char *point = is_disputed(t, r, little) ? t->row[r]->point->name : "";
		const char *of = *point ? " for " : "";
		size_t w = ca_text_width(t->label[r]) + ca_text_width(of) + ca_text_width(point);

		if (!is_news(t, r, little))
			continue;
		if (used + w + 5 > t->width) {
			fputs(" …", t->out);
			break;
		}
		fprintf(t->out, " %s%s%s", t->label[r], of, point);
		if (--left)
			fputc(',', t->out);
		used += w + 2;
	}
	fputc('\n', t->out);
}

/* The rows that are not shown: those that do not matter by their ceiling, the others by name. */
static void put_others(const struct ca_table *t)
{
	size_t little = 0;
	double most = 0;

	for (size_t r = t->shown; r < t->rows; r++)
		if (t->row[r]->verdict == CA_VERDICT_NOT_WORTH) {
			little++;
			most = fmax(most, ceiling(t->row[r]));
		}
	if (little)
		put_little(t, little, ceil(most));
	put_unknown(t, true, "that give little, if any");
	put_unknown(t, false, "without enough data");
}

static bool is_row(const struct ca_table *t, const char *name)
{
	for (size_t r = 0; r < t->shown; r++)
		if (!strcmp(t->region[r]->name, name))
			return true;
	return false;
}

/* Is row r part of it? */
static bool contains_row(const struct ca_table *t, const struct ca_profile_samples *samples, size_t r)
{
	for (char *const *part = samples->contains; r < t->shown && *part; part++)
		if (!strcmp(t->region[r]->name, *part))
			return true;
	return false;
}

/* "2", "4 to 7": the rows that are part of it. */
static size_t name_rows(const struct ca_table *t, const struct ca_profile_samples *samples,
			char part[CA_TABLE_ROWS][ROW_TEXT])
{
	size_t n = 0;

	for (size_t r = 0, end; r < t->shown && n < CA_TABLE_ROWS; r = end) {
		for (end = r; contains_row(t, samples, end);)
			end++;
		if (end - r > 2)
			snprintf(part[n++], ROW_TEXT, "%zu to %zu", r + 1, end);
		else if (end > r)
			snprintf(part[n++], ROW_TEXT, "%zu", r + 1);
		end = end - r > 2 ? end : r + 1;
	}
	return n;
}

static const char *between(size_t put, size_t parts)
{
	return !put ? " " : put + 1 < parts ? ", " : " and ";
}

/* "Containing 1 to 3, 5 and parse: main_loop": code that is no row, since it only calls what is one. */
static void put_containing(const struct ca_table *t, const struct ca_profile_samples *samples)
{
	const struct ca_region *region = ca_catalog_get_region(&t->profile->catalog, samples->region);
	char row[CA_TABLE_ROWS][ROW_TEXT], *name;
	size_t n = name_rows(t, samples, row), others = 0, parts, put = 0;

	for (char *const *part = samples->contains; *part; part++)
		others += !is_row(t, *part);
	parts = n + (others > NAMED ? 1 : others);
	fprintf(t->out, "%*sContaining", CA_TABLE_RANK, "");
	for (; put < n; put++)
		fprintf(t->out, "%s%s", between(put, parts), row[put]);
	if (others > NAMED)
		fprintf(t->out, "%s%zu others", between(put, parts), others);
	for (char *const *part = samples->contains; *part && others <= NAMED; part++) {
		if (is_row(t, *part))
			continue;
		name = ca_plain_fit(*part, t->width / 2);
		fprintf(t->out, "%s%s", between(put++, parts), name ? name : "");
		free(name);
	}
	name = ca_plain_fit(region->name, t->width / 2);
	fprintf(t->out, ": %s\n", name ? name : "");
	free(name);
}

static int by_count(const void *a, const void *b)
{
	const struct ca_profile_samples *x = *(void *const *)a, *y = *(void *const *)b;

	return (x->count < y->count) - (x->count > y->count);
}

/* The largest ones; in a program with many layers there are dozens, and they say the same. */
static void put_containers(const struct ca_table *t)
{
	const struct ca_profile_samples **list = calloc(t->profile->sample_count + 1, sizeof *list);
	size_t n = 0;

	for (size_t i = 0; i < t->profile->sample_count && list; i++) {
		const struct ca_profile_samples *samples = &t->profile->samples[i];
		bool last = samples->contains && *samples->contains;

		for (size_t j = i + 1; last && j < t->profile->sample_count; j++)
			last = t->profile->samples[j].region != samples->region;
		if (last)
			list[n++] = samples;
	}
	if (n)
		qsort(list, n, sizeof *list, by_count);
	for (size_t i = 0; i < n && i < CONTAINERS; i++)
		put_containing(t, list[i]);
	if (n > CONTAINERS)
		fprintf(t->out, "%*s%zu more only contain other code\n", CA_TABLE_RANK, "", n - CONTAINERS);
	free(list);
}

/* ---- what was not tried ---------------------------------------------------------*/

/* Samples of one region, of all runs. */
struct sampled {
	uint32_t region;
	double own; /* percent */
	bool told;  /* a row, the caller of one, or code that only contains others */
	bool waits; /* ... or waits for them, as some run has seen */
};

static bool names(char *const *list, const char *name)
{
	for (; list && *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

static bool is_told(const struct ca_profile *p, const struct ca_region *region)
{
	for (size_t r = 0; r < p->rows; r++)
		if (p->row[r].region->id == region->id || names(p->row[r].via, region->name))
			return true;
	return false;
}

static int by_own(const void *a, const void *b)
{
	const struct sampled *x = a, *y = b;

	return (x->own < y->own) - (x->own > y->own);
}

/* Those that may matter, most samples first. NULL: no memory. */
static struct sampled *find_untried(const struct ca_profile *p, size_t *n)
{
	struct sampled *list = calloc(p->catalog.regions + 1, sizeof *list);

	*n = 0;
	for (size_t i = 0; i < p->sample_count && list; i++) {
		const struct ca_profile_samples *s = &p->samples[i];
		struct sampled *of = &list[s->region - 1];

		of->region = s->region;
		of->told = s->contains && *s->contains;
		of->waits |= s->spins > 0;
		if (p->run[s->run].sampled && s->own != UINT64_MAX)
			of->own += 100. * (double)s->own / p->whole_of[s->region - 1];
	}
	for (size_t i = 0; i < p->catalog.regions && list; i++)
		if (list[i].own >= LEAST_OWN && !list[i].told && !list[i].waits &&
		    !is_told(p, ca_catalog_get_region(&p->catalog, list[i].region)))
			list[(*n)++] = list[i];
	if (list)
		qsort(list, *n, sizeof *list, by_own);
	return list;
}

/* "Not tried yet (own CPU time): parse 20 %, hash 9 %": with few runs, the code that would be next. */
static void put_untried(const struct ca_table *t)
{
	const struct ca_region *region[UNTRIED];
	struct sampled *list;
	char **label;
	size_t n, named;

	if (!(t->profile->periods > 0))
		return;
	list = find_untried(t->profile, &n);
	named = list && n < UNTRIED ? n : UNTRIED;
	for (size_t i = 0; i < named && list; i++)
		region[i] = ca_catalog_get_region(&t->profile->catalog, list[i].region);
	label = list && n ? ca_labels_make(region, named, t->width / 3) : NULL;
	for (size_t i = 0; i < named && label; i++)
		fprintf(t->out, "%*s%s%s %.0f %%", i ? 0 : CA_TABLE_RANK, "",
			i ? ", " : "Not tried yet (own CPU time): ", label[i], list[i].own);
	if (label && n > named)
		fprintf(t->out, ", %zu more", n - named);
	if (label)
		fputc('\n', t->out);
	ca_labels_free(label, named);
	free(list);
}

void ca_table_put_rest(const struct ca_table *t)
{
	put_others(t);
	put_untried(t);
	put_containers(t);
}

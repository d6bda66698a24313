/* SPDX-License-Identifier: MIT */
/* The order of a profile's rows: best first, and what a person can change before what only calls it. Driver's
 * process, one thread. */
#include "causal/results/profile.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { THIN = 10 }; /* a row's time is own time by less than one part in so many: it is what it calls */
static const double near = 0.9; /* of an effect */

static void find_keys(struct ca_profile *profile)
{
	double squares = 0, n = 0;

	for (size_t r = 0; r < profile->rows; r++)
		if (isfinite(profile->row[r].curve->impact)) {
			squares += profile->row[r].curve->impact * profile->row[r].curve->impact;
			n++;
		}
	for (size_t r = 0; r < profile->rows; r++)
		profile->row[r].rank = ca_estimate_rank(profile->row[r].curve, profile->row[r].verdict,
							n > 0 ? squares / n : 0);
}

static int place_of(const struct ca_profile_row *row)
{
	return row->leads ? 2 * CA_VERDICT_NOT_WORTH - 1 : 2 * (int)row->verdict;
}

static int by_rank(const void *a, const void *b)
{
	const struct ca_profile_row *x = a, *y = b;
	int order = place_of(x) - place_of(y);

	if (order)
		return order;
	if (x->rank > y->rank || x->rank < y->rank)
		return x->rank > y->rank ? -1 : 1;
	order = strcmp(x->region->name, y->region->name);
	if (order == 0)
		order = strcmp(x->region->file, y->region->file);
	return order ? order : strcmp(x->point->name, y->point->name);
}

bool ca_profile_holds_others(const struct ca_profile_row *row)
{
	return row->contains && *row->contains;
}

bool ca_profile_is_first(const struct ca_profile *profile, size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (profile->row[i].region == profile->row[row].region)
			return false;
	return true;
}

/* What is not known may matter more than what does not: as many of those as fill the first rows. */
static void let_lead(struct ca_profile *profile)
{
	size_t first = 0;

	for (size_t r = 0; r < profile->rows && first < CA_PROFILE_FIRST; r++) {
		struct ca_profile_row *row = &profile->row[r];

		row->leads = row->verdict == CA_VERDICT_NOT_ENOUGH && !ca_profile_holds_others(row) &&
			     isfinite(row->curve->at_low[1]) && isfinite(row->curve->at_high[1]);
		first += row->leads || (row->verdict == CA_VERDICT_WORTH && !ca_profile_holds_others(row));
	}
	qsort(profile->row, profile->rows, sizeof *profile->row, by_rank);
}

static bool is_thin(const struct ca_profile_row *row)
{
	return row->own * THIN < row->samples;
}

static bool does_call(const struct ca_profile_row *row, const char *name)
{
	for (char *const *called = row->calls; called && *called; called++)
		if (strcmp(*called, name) == 0)
			return true;
	return false;
}

/* Is it as good as the thin one, as far as is known? What that one does not call has to be near it. */
static bool stands_for(const struct ca_profile_row *row, const struct ca_profile_row *thin)
{
	if (row->point != thin->point || place_of(row) != place_of(thin) || ca_profile_holds_others(row) ||
	    is_thin(row) || !(row->curve->impact_high >= thin->curve->impact))
		return false;
	return does_call(thin, row->region->name) || row->curve->impact >= near * thin->curve->impact;
}

/* Which of two comes first that are equal but for chance? The one whose code does the work. */
static void let_work_lead(struct ca_profile *profile)
{
	for (size_t r = 0; r < profile->rows; r++) {
		size_t next = r;

		while (is_thin(&profile->row[r]) && ++next < profile->rows) {
			struct ca_profile_row row = profile->row[next];

			if (!stands_for(&row, &profile->row[r]))
				continue;
			memmove(&profile->row[r + 1], &profile->row[r], (next - r) * sizeof row);
			profile->row[r++] = row;
		}
	}
}

void ca_profile_rank(struct ca_profile *profile)
{
	find_keys(profile);
	qsort(profile->row, profile->rows, sizeof *profile->row, by_rank);
	let_lead(profile);
	let_work_lead(profile);
}

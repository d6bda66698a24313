/* SPDX-License-Identifier: MIT */
/* Suggestions for misspelt names; see core/suggest.h. */
#include "core/suggest.h"
#include <string.h>

enum { LENGTH = 63 };

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned ca_suggest_distance(const char *a, const char *b)
{
	unsigned table[LENGTH + 1][LENGTH + 1];
	size_t m = strnlen(a, LENGTH), n = strnlen(b, LENGTH);

	for (size_t i = 0; i <= m; i++)
		table[i][0] = (unsigned)i;
	for (size_t j = 0; j <= n; j++)
		table[0][j] = (unsigned)j;
	for (size_t i = 1; i <= m; i++)
		for (size_t j = 1; j <= n; j++) {
			unsigned cost = table[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			cost = least(cost, table[i - 1][j] + 1);
			cost = least(cost, table[i][j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost = least(cost, table[i - 2][j - 2] + 1);
			table[i][j] = cost;
		}
	return table[m][n];
}

void ca_suggest_offer(struct ca_suggest *nearest, const char *candidate)
{
	size_t length = strlen(nearest->name);
	/* A third of the letters wrong is a slip; more is another word. A beginning of three
	 * letters or more is an abbreviation. */
	unsigned limit = (unsigned)(length / 3 ? length / 3 : 1);
	unsigned distance = ca_suggest_distance(nearest->name, candidate);

	if (distance > limit) {
		if (length < 3 || strncmp(candidate, nearest->name, length))
			return;
		distance = limit + 1;
	}
	if (nearest->best && distance >= nearest->distance)
		return;
	nearest->best = candidate;
	nearest->distance = distance;
}

/* SPDX-License-Identifier: MIT */
/* The table on the terminal, as its two files share it. Driver's process, one thread. */
#ifndef CAUSAL_RESULTS_TABLE_H
#define CAUSAL_RESULTS_TABLE_H

#include "causal/results/profile.h"
#include <stdio.h>

enum {
	CA_TABLE_RANK = 5,
	CA_TABLE_ROWS = 40 /* at most */
};

struct ca_table {
	FILE *out;
	const struct ca_profile *profile;
	const struct ca_profile_row **row; /* what a person can change: no row that only contains others */
	const struct ca_region **region;   /* of each row */
	char **label;                      /* of each row */
	size_t rows, shown;
	size_t code, point, width; /* columns; point 0: there is only one */
	int first;                 /* of the effects */
	bool shares, colours;
};

/* What counts inside runs and in whole runs is one point to a reader; so is time itself, as long as one thread
 * did all the work, and what counted it afterwards. */
bool ca_table_is_same(const struct ca_profile_point *a, const struct ca_profile_point *b);
/* table_rest.c. What stands below the rows: what does not matter, what is not known, what was not tried, and
 * what only contains others. */
void ca_table_put_rest(const struct ca_table *t);

#endif

/* SPDX-License-Identifier: MIT */
/* What can be a progress point in a binary: --progress=list. Driver's process, one thread. */
#ifndef CA_CAUSAL_POINTS_POINT_LIST_H
#define CA_CAUSAL_POINTS_POINT_LIST_H
#include "binary/index/index.h"
#include <stdio.h>

/* Is the setting's text a wish to see what there is: "list" or "list:REGEX"? *filter: the regular
 * expression, "" for none; borrowed from names. */
bool ca_point_list_is_asked(const char *names, const char **filter);
/* Print what can be named in the index's binary and matches, one per line, as --progress takes it;
 * *printed: how many. main: of the executable, where names need no library's in front. */
enum ca_status ca_point_list_print(FILE *out, const struct ca_index *index, bool main, const char *filter,
				   size_t *printed, struct ca_err *err);

#endif

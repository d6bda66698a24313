/* SPDX-License-Identifier: MIT */
/* What regions are called on the terminal: as they are, and no two of them alike. One thread. */
#ifndef CA_CAUSAL_RESULTS_LABELS_H
#define CA_CAUSAL_RESULTS_LABELS_H
#include "causal/results/catalog.h"

/* One of "parse", "parse (parser.c:120)", "libz.so!inflate" per region; a region may be there several
 * times. At most `width` columns each: what is longer loses what plain.h takes off, where nothing else is called like
 * that, and then a part of its middle in which it does not differ from the others; what the code itself is called stays.
 * Release with ca_labels_free. NULL: no memory. */
char **ca_labels_make(const struct ca_region *const *region, size_t n, size_t width);
void ca_labels_free(char **label, size_t n);

#endif

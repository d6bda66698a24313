/* SPDX-License-Identifier: MIT */
/* Text for a terminal, in columns as it counts them. Names come from the program under test, so nothing
 * of theirs goes out but printable UTF-8: other bytes, controls, and the marks that change the direction
 * of writing become '?'. Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_TEXT_H
#define CA_CAUSAL_RESULTS_TEXT_H
#include <stddef.h>
#include <stdio.h>

/* Columns that it takes: a wide character two, a combining mark none. */
size_t ca_text_width(const char *text);
/* Exactly `width` columns: filled up with spaces, or with its middle cut. */
void ca_text_put(FILE *out, const char *text, size_t width);
/* At most `width` columns, of which `head` are the beginning, then an ellipsis, then the end. Returns how many
 * it took. */
size_t ca_text_put_cut(FILE *out, const char *text, size_t width, size_t head);
/* The same in memory. Owned by the caller; NULL without memory. */
char *ca_text_cut(const char *text, size_t width, size_t head);

#endif

/* SPDX-License-Identifier: MIT */
/* Which of some names a misspelt one was meant to be. */
#ifndef CA_CORE_SUGGEST_H
#define CA_CORE_SUGGEST_H
#include <stddef.h>

/* Insertions, deletions, changes and swaps of neighbours that turn `a` into `b` (the optimal
 * string alignment distance); names longer than 63 are cut. */
unsigned ca_suggest_distance(const char *a, const char *b);

/* Keeps the best of the candidates offered. Start with {name}. */
struct ca_suggest {
	const char *name; /* what was written */
	const char *best; /* NULL: none is near enough */
	unsigned distance;
};
void ca_suggest_offer(struct ca_suggest *nearest, const char *candidate);

#endif

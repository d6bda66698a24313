/* Which of some names a misspelt one was meant to be. */
#ifndef CA_CORE_NEAREST_H
#define CA_CORE_NEAREST_H
#include <stddef.h>

/* Insertions, deletions, changes and swaps of neighbours that turn `a` into `b` (the optimal
 * string alignment distance); names longer than 63 are cut. */
unsigned ca_nearest_distance(const char *a, const char *b);

/* Keeps the best of the candidates offered. Start with {name}. */
struct ca_nearest {
	const char *name; /* what was written */
	const char *best; /* NULL: none is near enough */
	unsigned distance;
};
void ca_nearest_offer(struct ca_nearest *nearest, const char *candidate);

#endif

/* What all runs of a sweep share, and how a command name becomes a file. Driver's process. */
#ifndef CA_CAUSAL_SWEEP_H
#define CA_CAUSAL_SWEEP_H
#include "causal/catalog.h"
#include <stdbool.h>
#include <stddef.h>

struct ca_sweep;

/* The region that end-to-end runs of this iteration use, so that its variants can be
 * compared; NULL: none chosen yet. Borrowed until the next set. */
const struct ca_region *ca_sweep_get_choice(const struct ca_sweep *sweep, unsigned iteration);
void ca_sweep_set_choice(struct ca_sweep *sweep, unsigned iteration, const struct ca_region *region);

/* As execvp(3) would find it: the path of the file, or false. */
bool ca_sweep_find_command(const char *name, char *path, size_t size);

#endif

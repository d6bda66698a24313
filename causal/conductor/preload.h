/* SPDX-License-Identifier: MIT */
/* Can the runtime get into a program at all? */
#ifndef CA_CAUSAL_CONDUCTOR_PRELOAD_H
#define CA_CAUSAL_CONDUCTOR_PRELOAD_H
#include <stdbool.h>

/* Why the loader would not put the runtime into the program at `path`, and what its user can do
 * about it. Both static. NULL, NULL: nothing stands in the way, or it is not known. */
struct ca_preload {
	const char *why;    /* "is ...": continues the program's name */
	const char *remedy; /* an order: "link it ..." */
};

struct ca_preload ca_preload_check(const char *path);

#endif

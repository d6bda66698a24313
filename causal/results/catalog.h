/* SPDX-License-Identifier: MIT */
/* The catalog: what the numbers in events stand for: regions of code that can be
 * selected, and progress points. Filled by the conductor, read by sinks.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_CATALOG_H
#define CA_CAUSAL_RESULTS_CATALOG_H
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ca_region_kind { CA_REGION_FUNCTION, CA_REGION_LINE };

struct ca_region {
	uint32_t id; /* 1-based; position in the catalog + 1 */
	enum ca_region_kind kind;
	char *name;     /* function: demangled name; line: basename(file):line. Owned */
	char *file;     /* full path as in the debug information, or "". Owned */
	char *function; /* enclosing or selected function, or "". Owned */
	char *binary;   /* path of the binary. Owned */
	bool program;   /* that is the program's own one, as far as a profile knows */
	unsigned line;  /* 0 if unknown */
};

struct ca_point_info {
	uint32_t id; /* index in the session's point table */
	int kind;    /* enum ca_point_kind, or 0: end-to-end */
	char *name;  /* owned */
};

struct ca_catalog {
	struct ca_region *region; /* owned array */
	size_t regions;
	struct ca_point_info *point; /* owned array */
	size_t points;
};

/* Returns the region, new or the one already there with the same identity; NULL: no memory. */
const struct ca_region *ca_catalog_add_region(struct ca_catalog *catalog, const struct ca_region *region);
/* The one with the same identity; NULL if there is none. */
const struct ca_region *ca_catalog_find_region(const struct ca_catalog *catalog,
					       const struct ca_region *region);
const struct ca_point_info *ca_catalog_add_point(struct ca_catalog *catalog, uint32_t id, int kind,
						 const char *name);
/* The regions of `from` that come after the last one of `to`, which has those before: numbers stay. */
bool ca_catalog_copy(struct ca_catalog *to, const struct ca_catalog *from);
/* NULL if there is none. */
const struct ca_region *ca_catalog_get_region(const struct ca_catalog *catalog, uint32_t id);
const struct ca_point_info *ca_catalog_get_point(const struct ca_catalog *catalog, uint32_t id);
void ca_catalog_fini(struct ca_catalog *catalog);

#endif

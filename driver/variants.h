/* SPDX-License-Identifier: MIT */
/* Variants: the product of all groups of all axes, repeated by iterations.
 *
 * The first axis of the table varies fastest, speedups slowest, iterations are outermost.
 * Nothing is stored per variant: number K is computed from the groups. */
#ifndef CA_DRIVER_VARIANTS_H
#define CA_DRIVER_VARIANTS_H
#include "driver/options.h"

enum { CA_VARIANTS_MAX = 1000000 };

struct ca_variants {
	char **pattern[CA_PATTERN_AXES];   /* owned, and each string */
	struct ca_speedups *speedups;      /* owned */
	size_t count[CA_AXES];             /* of each axis; 0: it was not given */
	size_t product, iterations, total; /* total = product x iterations, at least 1 */
};

struct ca_variant {
	size_t index;     /* from 0 */
	size_t iteration; /* from 1 */
	/* borrowed; NULL: as in the base settings */
	const char *pattern[CA_PATTERN_AXES];
	const struct ca_speedups *speedups;
};

/* With settings->end_to_end each number of the speedups is a value of its own; then a pool from
 * the environment or a file counts as a group, too. CA_ERR_USAGE: too many. */
enum ca_status ca_variants_init(struct ca_variants *variants, const struct ca_options *options,
				const struct ca_settings *settings, struct ca_err *err);
void ca_variants_fini(struct ca_variants *variants);
/* index < total */
void ca_variants_get(const struct ca_variants *variants, size_t index, struct ca_variant *variant);
/* The settings of one variant, to be ended with ca_settings_fini. */
enum ca_status ca_variants_settings(const struct ca_variant *variant, const struct ca_settings *base,
				    struct ca_settings *settings, struct ca_err *err);
/* One line for --dry-run: number, iteration and the axes as variables. Owned by the caller. */
char *ca_variants_line(const struct ca_variants *variants, const struct ca_variant *variant);

/* Digits of the largest number of a list of `total`: log10(total) + 1. */
int ca_variants_width(size_t total);

#endif

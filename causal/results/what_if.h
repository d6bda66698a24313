/* SPDX-License-Identifier: MIT */
/* Several regions that are sped up at once, each by another amount: 'A=20,B=50'. What was asked, and the
 * answer. Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_WHAT_IF_H
#define CA_CAUSAL_RESULTS_WHAT_IF_H
#include "core/selection.h"
#include <stdbool.h>
#include <stdio.h>

struct ca_profile;
struct ca_region;

struct ca_what_if {
	unsigned parts;
	struct ca_what_if_part {
		char name[400];
		unsigned percent; /* 1 to 100 */
	} part[CA_PARTS];         /* slowest first; else as they were given */
};

/* Two to CA_PARTS of them; a name may hold any character. err may be NULL. */
enum ca_status ca_what_if_parse(struct ca_what_if *what_if, const char *text, struct ca_err *err);
/* Of all parts together. */
unsigned ca_what_if_percent(const struct ca_what_if *what_if);

/* The same, of the region that stands for several at once in the results; 0: it is one region. */
unsigned ca_what_if_of_region(const struct ca_region *region);

/* A table for each progress point. */
void ca_what_if_print(const struct ca_profile *profile, const char *text, FILE *out);

#endif

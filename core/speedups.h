/* SPDX-License-Identifier: MIT */
/* Pools of virtual speedups: "0,10,20-50:10" and the numbers that it stands for. The text is
 * read once, where a setting or an option gets its value; everybody else takes the numbers. */
#ifndef CA_CORE_SPEEDUPS_H
#define CA_CORE_SPEEDUPS_H
#include "core/status.h"
#include <stddef.h>

enum { CA_SPEEDUP_STEP = 5, CA_SPEEDUPS_MAX = 4096 };

struct ca_speedups {
	unsigned *percent; /* each 0..100. Owned; may be NULL when count is 0 */
	size_t count;
};

/* Expand numbers and ranges N-M (step 5) and N-M:K, separated by ',' ';' or white space.
 * Duplicates are kept: they are weights. A range whose M is below N gives N once. */
enum ca_status ca_speedups_parse(struct ca_speedups *pool, const char *text, struct ca_err *err);
enum ca_status ca_speedups_copy(struct ca_speedups *to, const struct ca_speedups *from, struct ca_err *err);
void ca_speedups_fini(struct ca_speedups *pool);
/* The numbers written out, "0,10,20". Owned by the caller; NULL: no memory. */
char *ca_speedups_text(const struct ca_speedups *pool);

#endif

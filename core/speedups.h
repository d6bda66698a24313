/* Pools of virtual speedups: "0,10,20-50:10" and the numbers that it stands for.
 * For: the settings check, the driver's variants, the conductor. */
#ifndef CA_CORE_SPEEDUPS_H
#define CA_CORE_SPEEDUPS_H
#include "core/status.h"
#include <stddef.h>

enum { CA_SPEEDUP_STEP = 5, CA_SPEEDUPS_MAX = 4096 };

/* Expand numbers and ranges N-M (step 5) and N-M:K, separated by ',' ';' or white space.
 * Duplicates are kept: they are weights. A range whose M is below N gives N once. *value is
 * from malloc (NULL when *count is 0, as for ""): percent, each 0..100. */
enum ca_status ca_speedups_parse(const char *text, unsigned **value, size_t *count,
				 struct ca_err *err);
/* The same with the numbers written out, "0,10,20". Owned by the caller; NULL: no memory. */
char *ca_speedups_text(const unsigned *value, size_t count);

#endif

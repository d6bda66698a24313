/* SPDX-License-Identifier: MIT */
/* The code of several regions that are sped up at once, as one selection with parts. Driver's process, one
 * thread. */
#ifndef CA_CAUSAL_CONDUCTOR_REGION_PARTS_H
#define CA_CAUSAL_CONDUCTOR_REGION_PARTS_H
#include "causal/conductor/region_code.h"

/* As ca_region_code_select for one. percent: of each part, in ascending order. It is exact, with visits that
 * are logged, or not at all: false if log or exact was wanted and is not possible. */
bool ca_region_parts_select(const struct ca_region_code *const *part, const unsigned *percent, unsigned parts,
			    bool exact, struct ca_selection *out);

#endif

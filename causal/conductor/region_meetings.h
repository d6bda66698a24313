/* SPDX-License-Identifier: MIT */
/* Where threads meet without a call, in the modules that were selected in: sites that go into every selection, and
 * loops in which threads spin. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_REGION_MEETINGS_H
#define CA_CAUSAL_CONDUCTOR_REGION_MEETINGS_H
#include "causal/conductor/region_code.h"
#include "core/event.h"
#include "core/module.h"
#include "core/settings.h"
#include "core/vec.h"

/* A store that hands something over to threads that spin (handover.h): where it ends, in the file. */
struct ca_region_store {
	char binary[CA_PATH];
	uint64_t end;
};
struct ca_region_meetings {
	bool read[CA_MAX_MODULES]; /* planned */
	struct ca_site site[CA_MAX_MEETINGS];
	size_t sites;
	struct ca_spin spin[CA_MAX_SPINS];
	size_t spins;
	struct ca_vec *stores; /* struct ca_region_store, borrowed */
};

/* Plan those of a module, and its stores, once. */
void ca_region_meetings_read(struct ca_region_meetings *meetings, struct ca_text *text,
			     const struct ca_index *index, uint32_t module);
/* A store of a module that was read ends there. False: that is known, or it cannot be a site. */
bool ca_region_meetings_add_store(struct ca_region_meetings *meetings, struct ca_text *text,
				  const struct ca_index *index, ca_place end);
/* Into the selection, but for sites that share a byte with one of the selected code's. */
void ca_region_meetings_select(const struct ca_region_meetings *meetings,
			       const struct ca_region_code *const *code, unsigned codes,
			       struct ca_selection *out);

#endif

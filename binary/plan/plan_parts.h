/* Shared by plan.c, plan_function.c and plan_line.c only. */
#ifndef CA_BINARY_PLAN_PLAN_PARTS_H
#define CA_BINARY_PLAN_PLAN_PARTS_H
#include "binary/plan/plan.h"
#include "binary/plan/plan_code.h"

struct ca_plan {
	struct ca_text *text;
};

/* Where sites go. */
struct ca_plan_output {
	struct ca_site *site;
	size_t max, n;
	uint32_t module;
};

bool ca_plan_in_ranges(const struct ca_range *range, size_t n, uint64_t address);
/* Does [low, high) touch a site that has been planned already? */
bool ca_plan_overlaps(const struct ca_plan_output *out, uint64_t low, uint64_t high);
/* Displace instructions from insn[at] on until a jump fits, the hooks before the first one being
 * the caller's; ends with the way back. Stops at what cannot be moved, before known targets and
 * at `limit` (an address). */
bool ca_plan_forward(struct ca_site *site, const struct ca_insn *insn, size_t n, size_t at,
		     uint64_t limit);
/* Too short for a jump of its own: rather no site than an int3 that stays. */
void ca_plan_finish(struct ca_plan_output *out, bool rare);

#endif

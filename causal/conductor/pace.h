/* SPDX-License-Identifier: MIT */
/* Of what looks at all threads, so that it does so the more seldom the more there are. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_PACE_H
#define CA_CAUSAL_CONDUCTOR_PACE_H
#include "core/clock.h"
#include <stdbool.h>

struct ca_pace {
	uint64_t last, cost; /* ns */
};

enum { CA_PACE = 50 }; /* 1 / share of a core that it may take */

/* Is it time for the next look, `every` ns after the last one at least? */
static inline bool ca_pace_begin(struct ca_pace *pace, uint64_t now, uint64_t every)
{
	if (now <= pace->last || now - pace->last <= every || now - pace->last <= CA_PACE * pace->cost)
		return false;
	pace->last = ca_clock_now();
	return true;
}

static inline void ca_pace_end(struct ca_pace *pace)
{
	uint64_t now = ca_clock_now();

	pace->cost = now - pace->last;
	pace->last = now;
}

#endif

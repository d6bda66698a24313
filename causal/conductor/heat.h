/* SPDX-License-Identifier: MIT */
/* How often code is entered, which decides how its time is known: each visit logged, timed and
 * sampled finely, or left to ticks. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_HEAT_H
#define CA_CAUSAL_CONDUCTOR_HEAT_H
#include "core/session.h"

enum ca_heat {
	CA_HEAT_UNKNOWN, /* it has to be tried */
	CA_HEAT_COOL,    /* each visit may go into the log */
	CA_HEAT_HOT,     /* probes may time it */
	CA_HEAT_TOO_HOT  /* no probes; or threads change stacks in it, which probes do not see */
};

/* Visits of the selected code at some time. */
struct ca_heat_look {
	uint64_t time;
	uint32_t visits[CA_MAX_THREADS], passes[CA_MAX_THREADS];
};
void ca_heat_begin(struct ca_heat_look *from, const struct ca_session *session, uint64_t now);
/* What the visits since then come to. */
enum ca_heat ca_heat_judge(const struct ca_heat_look *from, const struct ca_session *session, uint64_t now);

#endif

/* SPDX-License-Identifier: MIT */
/* What all parts of the conductor use; see conductor_state.h. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include <stdarg.h>
#include <stdio.h>

void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (c->opt.message)
		c->opt.message(c->opt.context, level, text);
	if (level <= 0 && c->results)
		ca_results_warning(c->results, text, NULL);
}

bool ca_conductor_patched(const struct ca_conductor *c)
{
	struct ca_session *s = c->session;
	uint32_t processes = atomic_load(&s->processes_used);
	uint64_t seq = atomic_load(&s->selection.seq);

	for (uint32_t p = 0; p < processes; p++)
		if (atomic_load(&s->process[p].state) == CA_SLOT_LIVE && !atomic_load(&s->process[p].off) &&
		    atomic_load(&s->process[p].patched) != seq)
			return false;
	return true;
}

/* SPDX-License-Identifier: MIT */
/* What all parts of the conductor use; see conductor_state.h. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"
#include "core/clock.h"
#include <stdarg.h>
#include <stdio.h>

enum { ASLEEP = 100000000 }; /* ns without CPU time, from which on nobody waits for a process to wake up */

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

static bool is_behind(const struct ca_session *s, uint32_t p)
{
	const struct ca_process *process = &s->process[p];

	return atomic_load(&process->state) == CA_SLOT_LIVE && !atomic_load(&process->off) &&
	       atomic_load(&process->patched) != atomic_load(&s->selection.seq);
}

/* A shell that waits for the program, say. */
static bool is_asleep(struct ca_conductor *c, uint32_t p)
{
	uint64_t now = ca_clock_now(), cpu = ca_clock_process_cpu((pid_t)c->session->process[p].pid);

	if (!c->asleep[p].since || c->asleep[p].cpu != cpu) {
		c->asleep[p].cpu = cpu;
		c->asleep[p].since = now;
	}
	return now - c->asleep[p].since > ASLEEP;
}

bool ca_conductor_patched(struct ca_conductor *c)
{
	uint32_t processes = atomic_load(&c->session->processes_used);
	bool all = true;

	for (uint32_t p = 0; p < processes; p++)
		if (is_behind(c->session, p) && !is_asleep(c, p))
			all = false;
	return all;
}

void ca_conductor_unplaced_start(struct ca_conductor *c)
{
	uint32_t processes = atomic_load(&c->session->processes_used);

	c->unplaced_since = ca_clock_now();
	for (uint32_t p = 0; p < processes; p++)
		if (is_behind(c->session, p))
			c->unplaced[p] = ca_clock_process_cpu((pid_t)c->session->process[p].pid);
}

uint64_t ca_conductor_unplaced(const struct ca_conductor *c)
{
	uint32_t processes = atomic_load(&c->session->processes_used);
	uint64_t sum = 0;

	for (uint32_t p = 0; p < processes; p++) {
		const struct ca_process *process = &c->session->process[p];
		uint64_t before = process->started < c->unplaced_since ? c->unplaced[p] : 0, now;

		if (is_behind(c->session, p) && (now = ca_clock_process_cpu((pid_t)process->pid)) > before)
			sum += now - before;
	}
	return sum;
}

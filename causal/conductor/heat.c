/* SPDX-License-Identifier: MIT */
/* How often code is entered; see heat.h. The limits are costs: a visit costs a thread 0.2 us where it is
 * logged, and 4 to 7 ns where it is counted, with a few that are timed (doc/METHOD.md, 3); to pass an exit without having been
 * in S 3.5 and 1.2. */
#include "causal/conductor/heat.h"
#include "sampler/tick.h"
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Visits a second: 1 % of a thread's time where each is logged, 5 % where some are timed. */
#define LOGGED 50000.0
#define TIMED  4000000.0
/* ... up to 10 %, where ticks are a timer's, which tell four times less of code that is not timed. */
#define TIMED_BY_TIMERS 20000000.0
/* ... of all threads together: each of them reads the log, at some 10 ns an entry. */
#define LOGGED_BY_ALL 200000.0
#define LOGGED_PASSES 3000000.0
#define TIMED_PASSES  20000000.0

void ca_heat_begin(struct ca_heat_look *from, const struct ca_session *s, uint64_t now)
{
	uint32_t used = atomic_load(&s->slots_used);

	from->time = now;
	memset(from->visits, 0, sizeof from->visits);
	memset(from->passes, 0, sizeof from->passes);
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS; i++) {
		from->visits[i] = atomic_load_explicit(&s->fine[i].visits, memory_order_relaxed);
		from->passes[i] = atomic_load_explicit(&s->fine[i].passes, memory_order_relaxed);
	}
}

enum ca_heat ca_heat_judge(const struct ca_heat_look *from, const struct ca_session *s, uint64_t now)
{
	double seconds = (double)(now - from->time) / 1e9, most = 0, sum = 0, passes = 0,
	       timed = s->backend == CA_BACKEND_TIMER ? TIMED_BY_TIMERS : TIMED;
	uint32_t used = atomic_load(&s->slots_used);
	static long cpus; /* asked for once: the C library opens a file for it */

	if (!cpus)
		cpus = sysconf(_SC_NPROCESSORS_ONLN);
	for (uint32_t i = 0; i < used && i < CA_MAX_THREADS && seconds > 0; i++) {
		uint32_t visits = atomic_load_explicit(&s->fine[i].visits, memory_order_relaxed);
		uint32_t passed = atomic_load_explicit(&s->fine[i].passes, memory_order_relaxed);
		double rate = (visits - from->visits[i]) / seconds;

		sum += rate;
		most = fmax(rate, most);
		passes = fmax((passed - from->passes[i]) / seconds, passes);
	}
	/* threads that share cores have less time of their own than passes */
	if (atomic_load(&s->elsewhere) >= CA_ELSEWHERE || most > timed || passes > TIMED_PASSES ||
	    sum > timed * (double)(cpus > 1 ? cpus : 1))
		return CA_HEAT_TOO_HOT;
	return most > LOGGED || sum > LOGGED_BY_ALL || passes > LOGGED_PASSES ? CA_HEAT_HOT : CA_HEAT_COOL;
}

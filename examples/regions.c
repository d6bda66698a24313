/* SPDX-License-Identifier: MIT */
/* Regions of a program's own, for the call graph and for timelines:
 *   causal trace --sinks callgraph -- ./regions [CALLS]
 * Two threads simulate, in levels; each level is stepped through a few times, and `tick` is called far too
 * often to be worth a row: after 10,000 calls it is throttled. */
#include <causal_trace.h>
#include <pthread.h>
#include <stdlib.h>

enum { LEVELS = 3, STEPS = 10 };

static volatile unsigned work;
static unsigned calls = 20000;

static void tick(void)
{
	CAUSAL_TRACE_FUNCTION;

	work++;
}

static void step(unsigned n)
{
	CAUSAL_TRACE_FUNCTION;

	for (unsigned i = 0; i < n * 1000; i++)
		work++;
}

static void *simulate(void *name)
{
	CAUSAL_TRACE_THREAD_NAME(name);
	CAUSAL_TRACE_FUNCTION;

	for (unsigned level = 1; level <= LEVELS; level++) {
		CAUSAL_TRACE_SCOPE(level, level);

		for (unsigned i = 0; i < STEPS; i++)
			step(level);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	CAUSAL_TRACE_FUNCTION;
	pthread_t other;

	if (argc > 1)
		calls = (unsigned)strtoul(argv[1], NULL, 10);
	if (pthread_create(&other, NULL, simulate, "second"))
		return 1;
	simulate("first");
	pthread_join(other, NULL);
	for (unsigned i = 0; i < calls; i++)
		tick();
	return 0;
}

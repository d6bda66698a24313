/* SPDX-License-Identifier: MIT */
/* How long visits took: a histogram for each pair of begin and end points, in the session. Times are
 * virtual (doc/METHOD.md, section 8), and of visits that one thread began and ended. */
#ifndef CA_CORE_LATENCY_H
#define CA_CORE_LATENCY_H
#include <stdatomic.h>
#include <stdint.h>

/* Up to 127 ns exact, from there to 2^38 ns (275 s) 64 buckets for each power of two: each is 0.8 to 1.6 %
 * of its time wide. */
enum { CA_LATENCY_STEPS = 64, CA_LATENCY_BUCKETS = 33 * CA_LATENCY_STEPS, CA_MAX_LATENCIES = 16 };

/* One pair; by the runtimes. The name's claim is by compare-and-swap, the rest relaxed. */
struct ca_latency {
	_Atomic uint64_t name; /* of both points, as a hash; 0: free */
	_Atomic uint64_t odd;  /* begins and ends, of all processes, that had no other half in their thread */
	_Atomic uint32_t count[CA_LATENCY_BUCKETS]; /* mod 2^32 */
};

static inline uint32_t ca_latency_bucket(uint64_t ns)
{
	unsigned shift;

	if (ns < CA_LATENCY_STEPS)
		return (uint32_t)ns;
	shift = 57 - (unsigned)__builtin_clzll(ns);
	if (shift > CA_LATENCY_BUCKETS / CA_LATENCY_STEPS - 2)
		return CA_LATENCY_BUCKETS - 1;
	return shift * CA_LATENCY_STEPS + (uint32_t)(ns >> shift);
}

/* Where the bucket begins, ns; that of the next one is where it ends. */
static inline uint64_t ca_latency_low(uint32_t bucket)
{
	unsigned shift = bucket < CA_LATENCY_STEPS ? 0 : bucket / CA_LATENCY_STEPS - 1;

	return (uint64_t)(bucket - shift * CA_LATENCY_STEPS) << shift;
}

#endif

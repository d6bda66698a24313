/* SPDX-License-Identifier: MIT */
/* causal_measure.h: measurements in a program's own code. Link with -lcausal; causal itself is not needed,
 * but under `causal trace` what is measured goes to its sinks, too.
 *
 *   struct causal_bundle *b = causal_bundle_open("solve", "wall,cpu,perf:instructions+page-faults");
 *   causal_bundle_start(b);
 *   solve();
 *   causal_bundle_stop(b);
 *   causal_bundle_print(b, stdout);
 *   causal_bundle_close(b);
 *
 * Nothing here ends the program. What is not known, or not allowed, is said in one line on standard error,
 * and left out; a bundle of nothing can be used all the same, and so can NULL. A bundle or a set of counters
 * is used by the thread that has opened it. */
#ifndef CAUSAL_MEASURE_H
#define CAUSAL_MEASURE_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* ---- components: what can be measured --------------------------------------------------------*/

enum {
	CAUSAL_COMPONENT_LEVEL = 1 /* record: as it is, not how much it has grown */
};

/* All but the label may be missing: a bundle calls what there is. `state` is `size` bytes, zeroed. */
struct causal_component {
	const char *label, *description, *units;
	double scale; /* from what record and get tell to units; 0: 1 */
	unsigned flags;
	size_t size;
	/* 0, or an errno: it is left out. argument: what stands behind "label:", or NULL. */
	int (*open)(void *state, const char *argument);
	void (*close)(void *state);
	/* Where nothing but a number has to be read: the bundle does the rest. */
	double (*record)(void *state);
	void (*start)(void *state);
	void (*stop)(void *state);
	void (*sample)(void *state);
	/* Preferred where the bundle is called with a value. */
	void (*start_value)(void *state, long value);
	void (*stop_value)(void *state, long value);
	void (*sample_value)(void *state, long value);
	/* Of the last start and stop: the name of the i-th value, from 0; NULL: there are not so many. */
	const char *(*get)(const void *state, unsigned i, double *value);
};

/* From now on bundles may have it. Borrowed for ever. 0, EEXIST or EINVAL. Any thread. */
int causal_component_register(const struct causal_component *component);
/* The i-th, ready ones first; NULL: there are not so many. */
const struct causal_component *causal_component_at(unsigned i);

/* ---- bundles: several at once ----------------------------------------------------------------*/

struct causal_bundle;
struct causal_value {
	const char *label, *units;
	double value, sum;       /* of the last stop; of all: of a level, the largest */
	unsigned long long laps; /* so many */
};

/* components: "wall,cpu,perf:instructions+cache-misses"; NULL: the environment's CAUSAL_COMPONENTS, or wall.
 * NULL: no memory. */
struct causal_bundle *causal_bundle_open(const char *label, const char *components);
void causal_bundle_close(struct causal_bundle *bundle);
/* From the last start to the stop is a lap; a stop without a start does nothing. */
void causal_bundle_start(struct causal_bundle *bundle);
void causal_bundle_stop(struct causal_bundle *bundle);
void causal_bundle_sample(struct causal_bundle *bundle);
void causal_bundle_start_value(struct causal_bundle *bundle, long value);
void causal_bundle_stop_value(struct causal_bundle *bundle, long value);
void causal_bundle_sample_value(struct causal_bundle *bundle, long value);
/* The i-th value of all its components, from 0. 0: there are not so many. */
int causal_bundle_get(const struct causal_bundle *bundle, unsigned i, struct causal_value *value);
/* A line for each value. */
void causal_bundle_print(const struct causal_bundle *bundle, FILE *file);

/* ---- counters of the kernel and the processor ------------------------------------------------*/

enum { CAUSAL_COUNTERS = 4 }; /* in one set; they count the same stretches of time */
struct causal_counters;

/* names: "instructions,cache-misses", also with '+' between them, and syscall:NAME for entries into a system
 * call. They count for the calling thread from now on. NULL: that cannot be, as errno and a line say. */
struct causal_counters *causal_counters_open(const char *names);
void causal_counters_close(struct causal_counters *counters);
/* What they are since the opening; in the child of a fork, since the first reading there. How many there
 * are; 0: they can no longer be read. */
unsigned causal_counters_read(struct causal_counters *counters, uint64_t value[CAUSAL_COUNTERS]);
const char *causal_counters_name(const struct causal_counters *counters, unsigned i);
/* "rdpmc": in the processor, without the kernel; "read": by a system call. */
const char *causal_counters_way(const struct causal_counters *counters);
/* An event for each counter in `causal trace`: 0 the first time in this thread, then what was counted since
 * the last time there. The names, a string literal, tell the sets of a thread apart. */
void causal_counters_here(const char *names);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif

/* SPDX-License-Identifier: MIT */
/* What the parts of libcausal.so share. It runs in the program, as part of it: any thread, but no signal
 * handler unless a declaration says so. It shares nothing with the runtime but the places of
 * include/causal_trace.h, which are switched on where causal traces the program. */
#ifndef CA_CAUSAL_LIBRARY_LIBRARY_H
#define CA_CAUSAL_LIBRARY_LIBRARY_H
#include "core/status.h"
#include "include/causal_measure.h"
#include "include/causal_trace.h"
#include <stdbool.h>

/* One line on standard error. errno stays. */
void ca_library_say(const char *format, ...) CA_PRINTF(1, 2);

/* A name that is only known at run time, and what is raised with it. */
struct ca_library_key {
	struct ca_library_key *next;
	struct causal_trace_key_ begin, point;
	char name[];
};
/* The same for the same name, for ever. NULL: no memory. */
const struct ca_library_key *ca_library_key(const char *name);

static inline bool ca_library_is_traced(void)
{
	return causal_trace_is_on_();
}
/* Is the program run under causal, traced or not? */
bool ca_library_is_watched(void);
/* A region begins: is it to be raised, or has the thread, or the program, been told not to? It ends: was its
 * begin? */
bool ca_regions_enter(void);
bool ca_regions_leave(void);
/* The key called `before` and then like the function whose code this is. before: always the same text. */
const struct ca_library_key *ca_functions_key(const void *code, const char *before);
/* One more of the progress point called so, in sweeps. */
void ca_library_count(const char *name);
/* Events, if anybody traces. */
void ca_library_begin(const struct ca_library_key *key, uint64_t value);
void ca_library_end(const struct ca_library_key *key);
void ca_library_point(const char *name, uint64_t value);

/* Ready components: a table that ends with a label of NULL, and single ones. */
extern const struct causal_component ca_ready_components[], ca_perf_component, ca_papi_component;

#endif

/* SPDX-License-Identifier: MIT */
/* The critical path of a run: the chain of stretches, each of which had to end before the next one could begin, up to
 * the end of the thread that ended last. Forwards, as in Hollingsworth, "Critical path profiling of message passing
 * and shared-memory programs" (IEEE TPDS 9/10, 1998): each thread knows the path up to now, and whoever is woken
 * goes on with the path of who woke it. doc/SAMPLING.md, "The critical path".
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_CRITICAL_PATH_H
#define CA_CAUSAL_CONDUCTOR_CRITICAL_PATH_H
#include <stdint.h>

struct ca_critical_path;
struct ca_samples;

/* Of the profile, which is borrowed. NULL: no memory. */
struct ca_critical_path *ca_critical_path_new(struct ca_samples *samples);
void ca_critical_path_free(struct ca_critical_path *path);

/* What threads (by their numbers in the run, from 1) have done; times are ns, in any order between two steps. */
/* So many ns before that time were spent in a node of the profile: on a CPU, or in a wait that no thread of the program ended. */
void ca_critical_path_spent(struct ca_critical_path *path, uint32_t thread, uint64_t time, uint32_t node,
			    uint64_t ns);
/* It let others go on; it went on, since somebody let it. */
void ca_critical_path_wakes(struct ca_critical_path *path, uint32_t thread, uint64_t time, uint64_t pair);
void ca_critical_path_woken(struct ca_critical_path *path, uint32_t thread, uint64_t time, uint64_t pair);
void ca_critical_path_begins(struct ca_critical_path *path, uint32_t thread, uint64_t time);
void ca_critical_path_ends(struct ca_critical_path *path, uint32_t thread, uint64_t time);
/* Nothing is told any more of what was before that time. */
void ca_critical_path_step(struct ca_critical_path *path, uint64_t time);
/* Into the nodes of the profile. */
void ca_critical_path_finish(struct ca_critical_path *path);

#endif

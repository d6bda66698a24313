/* SPDX-License-Identifier: MIT */
/* From stacks to candidates. Shared by the point search and the scope that follows the samples. */
#ifndef CA_CAUSAL_POINTS_POINT_STACKS_H
#define CA_CAUSAL_POINTS_POINT_STACKS_H
#include "binary/objects.h"
#include "causal/points/candidates.h"
#include "causal/points/point_name.h"
#include "core/event.h"

enum { CA_POINT_STACKS_FOUND = 96 };

struct ca_point_stacks {
	ca_place *frame; /* owned; those of all samples */
	size_t frames;
	struct {
		uint32_t first;
		uint16_t frames, weight;
		bool waiting;
	} sample[CA_CANDIDATE_SAMPLES];
	size_t n, running;
};
/* Add a stack, innermost frame first; false: no room. */
bool ca_point_stacks_add(struct ca_point_stacks *samples, const ca_place *frame, unsigned frames,
			 unsigned weight, bool waiting);

/* There are hardly samples of running threads, so that those of waiting ones count, too. */
bool ca_point_stacks_are_waits(const struct ca_point_stacks *samples);

struct ca_point_stacks_found {
	struct ca_point_name name; /* owned */
	bool function;
	size_t samples; /* in it, or below */
	double depth;   /* functions in scope around it, on average */
	uint64_t inside[CA_CANDIDATE_SAMPLES / 64];
};

/* Functions and loops that hold a good share of the samples, those with most first. Samples of
 * waiting threads count only where there are hardly others. *used: how many count. Returns how
 * many were found, at most CA_POINT_STACKS_FOUND. */
size_t ca_point_stacks_find(const struct ca_point_stacks *samples, const struct ca_session *session,
			    struct ca_objects *objects, struct ca_point_stacks_found *out, size_t *used);

#endif

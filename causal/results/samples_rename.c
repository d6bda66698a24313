/* SPDX-License-Identifier: MIT */
/* Functions of a profile get other names when it is over, as of code whose compiler tells them late. Driver's process,
 * one thread. */
#include "causal/results/samples.h"
#include <stdlib.h>
#include <string.h>

static void move_measured(struct ca_samples *s, uint32_t from, uint32_t to)
{
	struct ca_samples_measured *row;

	if (from == to || from >= s->measured_nodes)
		return;
	row = s->measured + (size_t)from * s->metrics;
	for (size_t i = 0; i < s->metrics; i++) {
		ca_samples_measure(s, to, i, row[i].value, row[i].count);
		row[i] = (struct ca_samples_measured){ 0, 0 };
	}
}

/* Nodes that have become the same one are added up. now: numbers by old numbers; zeroed. */
static void rename_nodes(struct ca_samples *s, const uint32_t *function, uint32_t *now)
{
	size_t kept = 1;

	ca_map_free(&s->by_node);
	for (uint32_t i = 1; i < s->nodes; i++) {
		struct ca_samples_node old = s->node[i], *node;
		uint64_t key = (uint64_t)now[old.parent] << 32 | function[old.function - 1];
		bool known = false;
		uint32_t *at = ca_map_add(&s->by_node, key, &known);

		s->failed |= !at;
		now[i] = at && known ? *at : (uint32_t)kept++;
		if (at)
			*at = now[i];
		node = &s->node[now[i]];
		if (!known)
			*node = (struct ca_samples_node){ .parent = now[old.parent],
							  .function = function[old.function - 1] };
		node->ns += old.ns;
		node->count += old.count;
		node->path += old.path;
		move_measured(s, i, now[i]);
	}
	s->nodes = kept;
	for (size_t i = 0; i < s->wakes; i++) {
		s->wake[i].waiter = now[s->wake[i].waiter];
		s->wake[i].waker = now[s->wake[i].waker];
	}
}

/* Those that are others now go; of[] gets the numbers that are left. */
static void drop_functions(struct ca_samples *s, uint32_t *of)
{
	size_t kept = 0;

	for (size_t f = 0; f < s->functions; f++) {
		struct ca_samples_function *function = &s->function[f];

		if (of[f] == f + 1) {
			s->function[kept] = *function;
			of[f] = (uint32_t)++kept;
			continue;
		}
		free(function->name);
		free(function->file);
		free(function->binary);
	}
	s->functions = kept;
	ca_map_free(&s->by_function);
}

void ca_samples_rename(struct ca_samples *s, uint32_t *of)
{
	uint32_t *function = calloc(s->functions + 1, sizeof *function);
	uint32_t *now = calloc(s->nodes + 1, sizeof *now);

	if (function && now) {
		memcpy(function, of, s->functions * sizeof *function);
		drop_functions(s, of);
		for (size_t f = 0; function[f]; f++)
			function[f] = of[function[f] - 1];
		rename_nodes(s, function, now);
	}
	s->failed |= !function || !now;
	free(function);
	free(now);
}

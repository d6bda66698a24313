/* SPDX-License-Identifier: MIT */
/* Two profiles of samples beside each other, by function and by stack. Driver's process, one thread. */
#include "causal/results/samples.h"
#include "core/memstream.h"
#include "core/path.h"
#include "core/vec.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SURE = 2 }; /* standard deviations of the difference */

struct changes {
	struct ca_vec list; /* struct ca_samples_change */
	struct ca_map by_name;
	enum ca_samples_of what;
	bool failed;
};

/* "main;parse;[sleeping]", or the name of the innermost function. Owned. */
static char *name_of(const struct ca_samples *s, uint32_t node, bool stacks)
{
	const char *path[512];
	char *text = NULL;
	size_t size, depth = 0;
	FILE *out;

	if (!stacks)
		return strdup(s->function[s->node[node].function - 1].name);
	out = open_memstream(&text, &size);
	for (; node && depth < sizeof path / sizeof *path; node = s->node[node].parent)
		path[depth++] = s->function[s->node[node].function - 1].name;
	while (out && depth-- > 0)
		fprintf(out, "%s%s", path[depth], depth ? ";" : "");
	if (out)
		ca_memstream_end(out, &text);
	return text;
}

static struct ca_samples_change *find(struct changes *c, const struct ca_samples *s, uint32_t node)
{
	const struct ca_samples_function *f = &s->function[s->node[node].function - 1];
	bool stacks = c->what == CA_SAMPLES_OF_STACKS;
	const char *binary = stacks ? "" : ca_path_base(f->binary);
	char *name = name_of(s, node, stacks);
	struct ca_samples_change *change = NULL;
	bool known;
	uint32_t *at;

	at = name ? ca_map_add(&c->by_name, ca_map_key(ca_map_key(1 + f->kind, name) + 1, binary) | 1, &known)
		  : NULL;
	if (at && known && *at) {
		free(name);
		return (struct ca_samples_change *)c->list.at + (*at - 1);
	}
	change = at ? ca_vec_push(&c->list) : NULL;
	if (!change) {
		c->failed = true;
		free(name);
		return NULL;
	}
	*at = (uint32_t)c->list.n;
	change->name = name;
	change->binary = binary;
	change->wait = f->kind == CA_SAMPLES_WAIT;
	return change;
}

static void add_to(struct changes *c, const struct ca_samples *s, uint32_t node, int side, uint64_t ns,
		   uint64_t count)
{
	struct ca_samples_change *change = count ? find(c, s, node) : NULL;

	if (!change)
		return;
	change->ns[side] += ns;
	change->count[side] += count;
}

/* Does a call on the stack, below this one, lead to the same function? */
static bool is_below(const struct ca_samples *s, uint32_t from, uint32_t node)
{
	while (from != node && s->node[from].function != s->node[node].function)
		from = s->node[from].parent;
	return from != node;
}

/* What a node has on the critical path, with the part of its samples that make it, is also that of its callers. */
static void add_path(struct changes *c, const struct ca_samples *s, uint32_t node, int side)
{
	const struct ca_samples_node *n = &s->node[node];
	/* real time, where CPU time is not sampled */
	uint64_t ns = n->ns ? n->ns : ca_samples_weight(s, node);
	uint64_t count = n->ns ? n->count : ca_samples_count(s, node);
	double share = ns ? fmin(1, (double)n->path / (double)ns) : 0;

	for (uint32_t i = node; n->path && i; i = s->node[i].parent)
		if (s->function[s->node[i].function - 1].kind != CA_SAMPLES_PROCESS && !is_below(s, node, i))
			add_to(c, s, i, side, n->path, (uint64_t)ceil(share * (double)count));
}

static void add(struct changes *c, const struct ca_samples *s, int side)
{
	for (uint32_t i = 1; i < s->nodes; i++)
		if (c->what == CA_SAMPLES_OF_PATH)
			add_path(c, s, i, side);
		else
			add_to(c, s, i, side, ca_samples_weight(s, i), ca_samples_count(s, i));
}

/* Samples come by chance, so that n of them are known to +- their root. */
static double deviation(const struct ca_samples_change *c)
{
	double square = 0;

	for (int side = 0; side < 2; side++)
		if (c->count[side])
			square += (double)c->ns[side] * (double)c->ns[side] / (double)c->count[side];
	return sqrt(square);
}

static double growth(const struct ca_samples_change *c)
{
	return (double)c->ns[1] - (double)c->ns[0];
}

static int by_growth(const void *a, const void *b)
{
	const struct ca_samples_change *x = a, *y = b;
	double more = fabs(growth(y)) - fabs(growth(x));

	return more > 0 ? 1 : more < 0 ? -1 : strcmp(x->name, y->name);
}

struct ca_samples_change *ca_samples_compare(const struct ca_samples *a, const struct ca_samples *b,
					     enum ca_samples_of what, size_t *n)
{
	struct changes c = { .list.size = sizeof(struct ca_samples_change), .what = what };
	struct ca_samples_change *list;

	add(&c, a, 0);
	add(&c, b, 1);
	ca_map_free(&c.by_name);
	list = c.list.at;
	*n = c.list.n;
	for (size_t i = 0; i < *n; i++)
		list[i].sure = fabs(growth(&list[i])) > SURE * deviation(&list[i]);
	if (*n)
		qsort(list, *n, sizeof *list, by_growth);
	if (!c.failed && list)
		return list;
	ca_samples_compare_free(list, *n);
	return c.failed ? NULL : calloc(1, sizeof *list);
}

void ca_samples_compare_free(struct ca_samples_change *change, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(change[i].name);
	free(change);
}

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
	bool stacks, failed;
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
	const char *binary = c->stacks ? "" : ca_path_base(f->binary);
	char *name = name_of(s, node, c->stacks);
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

static void add(struct changes *c, const struct ca_samples *s, int side)
{
	for (uint32_t i = 1; i < s->nodes; i++) {
		struct ca_samples_change *change = s->node[i].count ? find(c, s, i) : NULL;

		if (!change)
			continue;
		change->ns[side] += s->node[i].ns;
		change->count[side] += s->node[i].count;
	}
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
					     bool stacks, size_t *n)
{
	struct changes c = { .list.size = sizeof(struct ca_samples_change), .stacks = stacks };
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

/* SPDX-License-Identifier: MIT */
/* What an experiment should take, from a run without any: the scope, the code and the progress points that a
 * sweep of the same program would choose by itself. Driver's process, one thread. */
#include "causal/conductor/conductor_points_parts.h"
#include "causal/conductor/follow.h"
#include "causal/conductor/sweep.h"
#include "core/memstream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORTH = 3, HEAVIEST = 1000 }; /* percent of the samples; periods */

static void take(void *context, uint32_t thread, const ca_place *frame, unsigned frames, uint64_t ns,
		 unsigned flags)
{
	struct ca_conductor *c = context;
	uint64_t periods = ns / c->session->period;
	unsigned weight = periods < 1 ? 1 : periods < HEAVIEST ? (unsigned)periods : HEAVIEST;

	ca_conductor_take_sample(c, thread, frame, frames, weight, flags);
}

enum ca_status ca_conductor_suggest_open(struct ca_conductor *c, struct ca_err *err)
{
	enum ca_status status = ca_conductor_scope_open(c, err);

	if (!status)
		status = ca_conductor_points_open(c, err);
	if (status)
		return status;
	c->stacks = ca_stacks_new();
	if (!c->stacks)
		return ca_err_set(err, CA_ERR_NOMEM, "out of memory");
	ca_regions_keep_stacks(c->regions, c->stacks);
	ca_sampling_tap(c->sampling, take, c);
	return CA_OK;
}

void ca_conductor_suggest_step(struct ca_conductor *c, uint64_t now)
{
	ca_conductor_scope_step(c, now);
	if (!ca_conductor_scope_is_open(c))
		ca_conductor_points_step(c, now);
}

/* -B, if the scope is more than the executables; ca_scope_follows has chosen it. */
static char *binaries_of(struct ca_conductor *c)
{
	const struct ca_follow *follow = ca_sweep_follow(c->opt.sweep);
	char *text = NULL, pattern[512];
	size_t size, taken = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("MAIN", out);
	for (size_t i = 0; i < follow->n; i++)
		if (!follow->object[i].main &&
		    ca_follow_part(follow, c->scope, &follow->object[i]) == CA_FOLLOW_IN_SCOPE) {
			ca_scope_pattern(follow->object[i].path, pattern, sizeof pattern);
			fprintf(out, ";%s", pattern);
			taken++;
		}
	if (ca_memstream_end(out, &text) && taken)
		return text;
	free(text);
	return NULL;
}

static void name_code(struct ca_conductor *c, struct ca_suggestion *s)
{
	const struct ca_stacks_code *code;
	size_t n = ca_stacks_judge(c->stacks, &code);
	double all = (double)ca_stacks_total(c->stacks);

	for (size_t i = 0; i < n && s->codes < CA_SUGGESTED && all > 0; i++) {
		const struct ca_region *region = ca_catalog_get_region(&c->catalog, code[i].region);
		double total = 100 * (double)code[i].samples / all;

		if (code[i].role != CA_STACKS_ROW || !region || total < WORTH)
			continue;
		s->code[s->codes].name = strdup(region->name);
		s->code[s->codes].own = 100 * (double)code[i].own / all;
		s->code[s->codes].total = total;
		s->codes += s->code[s->codes].name != NULL;
	}
}

void ca_conductor_suggest_close(struct ca_conductor *c, int wait_status)
{
	struct ca_suggestion *s = c->opt.suggestion;
	struct ca_visits_now visits;

	ca_visits_read(c->session, &visits);
	s->own_points = ca_visits_sum(&visits) > 0 && !(c->points && c->points->choice.points);
	ca_conductor_scope_close(c);
	ca_conductor_points_close(c, wait_status, &visits);
	s->binaries = binaries_of(c);
	name_code(c, s);
	s->alone = ca_conductor_points_are_needless(c);
	if (!c->points || s->own_points || s->alone)
		return;
	if (c->points->choice.points)
		s->points = ca_choice_names(&c->points->choice);
	else if (c->points->choice.reason)
		s->reason = strdup(c->points->choice.reason);
}

void ca_conductor_suggestion_fini(struct ca_suggestion *s)
{
	for (size_t i = 0; i < s->codes; i++)
		free(s->code[i].name);
	free(s->binaries);
	free(s->points);
	free(s->reason);
}

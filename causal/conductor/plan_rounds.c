/* SPDX-License-Identifier: MIT */
/* The plan's rounds: each code whose answer is open once, and the one that seems to bring most as often as all others
 * together (of whole runs, which are few: that one and its challenger), one of the rest now and then, and experiments
 * at 0 % spread evenly between them. Driver's process, one thread. */
#include "causal/conductor/plan_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_FIRST = 8, /* codes in the first round ... */
	AND_THEN =
		4, /* ... and new ones in each further round; all codes of the first round of whole runs ... */
	CONTEST = 2, /* ... and of each further one */
	REST = 3,    /* rounds between two looks at a code that is decided, where few are open */
	SPEEDUPS = 4
};
static const unsigned speedup[SPEEDUPS] = { 50, 100, 25, 75 }; /* percent, in this order */

static void put(struct ca_plan *p, uint32_t region, unsigned percent)
{
	struct ca_plan_step *step = ca_vec_push(&p->round);

	if (step)
		*step = (struct ca_plan_step){ region, percent };
}

/* Experiments of that code in the round that are still to come, before the one with that number. */
static size_t put_before(const struct ca_plan *p, uint32_t region, size_t end)
{
	const struct ca_plan_step *step = p->round.at;
	size_t n = 0;

	for (size_t i = p->at; i < end; i++)
		n += step[i].region == region;
	return n;
}

void ca_plan_rounds_put(struct ca_plan *p, const struct ca_plan_code *code)
{
	size_t turn = code->tries + put_before(p, code->offer.region, p->round.n);

	/* of code that polls a whole run at 100 % never ends, or takes twenty times as long */
	put(p, code->offer.region, speedup[code->polls ? turn % 2 * 2 : turn % SPEEDUPS]);
}

struct turn {
	double time;
	struct ca_plan_step step;
};

static int by_time(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

/* At random, but neither by the order of the offers nor by what else is in the round. */
static void shuffle(struct ca_plan *p)
{
	uint64_t number = ca_rng_next(&p->rng);
	struct turn *turn = calloc(p->round.n + 1, sizeof *turn);
	struct ca_plan_step *step = p->round.at;

	for (size_t i = 0; i < p->round.n && turn; i++) {
		uint64_t key = ca_plan_find(p, step[i].region)->offer.key;

		turn[i] = (struct turn){ ca_plan_race(number + put_before(p, step[i].region, i), key, 1),
					 step[i] };
	}
	if (turn && p->round.n)
		qsort(turn, p->round.n, sizeof *turn, by_time);
	for (size_t i = 0; i < p->round.n && turn; i++)
		step[i] = turn[i].step;
	free(turn);
}

/* The more codes share them, the fewer of them each needs: the error of all is least with the root of
 * their number (Dunnett 1955). Evenly, so that drift cancels. */
static void spread_zeros(struct ca_plan *p)
{
	size_t n = p->round.n, zeros = (size_t)(sqrt((double)n) + 0.5), all;
	/* of the first whole runs the first pair has both */
	double phase = p->whole && !p->n ? 0 : ca_rng_unit(&p->rng);
	struct ca_plan_step *step;

	if (p->opt.dealt || (p->whole && p->alone) || (p->own && p->rounds % REST))
		return;
	for (size_t i = 0; i < zeros; i++)
		put(p, 0, 0);
	all = p->round.n;
	step = p->round.at;
	for (size_t i = 0; i < all - n; i++) {
		size_t to = (size_t)(((double)i + phase) * (double)all / (double)(all - n));

		memmove(step + to + 1, step + to, (all - to - 1) * sizeof *step);
		step[to] = (struct ca_plan_step){ 0, 0 };
	}
}

/* Of those that are not open the one that was tried least; the others as the offers have them. */
static struct ca_plan_code *pick_rested(const struct ca_plan *p)
{
	struct ca_plan_code *least = NULL;

	for (size_t i = 0; i < p->offers; i++) {
		struct ca_plan_code *code = &p->code[p->order[i]];

		if (code->entered && !code->open && !code->offer.absent &&
		    (!least || code->tries < least->tries))
			least = code;
	}
	return least;
}

static void enter_new(struct ca_plan *p)
{
	size_t room = p->rounds ? AND_THEN : AT_FIRST;

	for (size_t i = 0; i < p->offers && room; i++) {
		struct ca_plan_code *code = &p->code[p->order[i]];

		if (code->entered || (ca_plan_is_too_small(p, code) && (p->rounds || i)))
			continue;
		code->entered = true;
		room--;
	}
}

/* ... and can be tried now? */
static bool any_open(const struct ca_plan *p)
{
	for (size_t i = 0; i < p->offers; i++) {
		const struct ca_plan_code *code = &p->code[p->order[i]];

		if (code->entered && code->open && !code->offer.absent)
			return true;
	}
	return false;
}

static int by_hope(const void *a, const void *b)
{
	const struct ca_plan_code *x = *(void *const *)a, *y = *(void *const *)b;
	double p = ca_plan_hope(x), q = ca_plan_hope(y);

	return p > q ? -1 : p < q ? 1 : x->offer.key < y->offer.key ? -1 : 1;
}

/* The open one that seems to bring most comes first. False: nothing is known of any. */
static bool put_leader_first(struct ca_plan_code **code, size_t n)
{
	size_t leader = n;

	for (size_t i = 0; i < n; i++)
		if (code[i]->known && (leader == n || ca_plan_by_effect(&code[i], &code[leader]) < 0))
			leader = i;
	for (size_t i = leader < n ? leader : 0; i > 0; i--) {
		struct ca_plan_code *before = code[i - 1];

		code[i - 1] = code[i];
		code[i] = before;
	}
	return leader < n;
}

/* Whole runs are few: they go to the code that seems to bring most, as long as its answer is open, and to that of all
 * others which may bring most, tried before or not (optimism in the face of uncertainty: Lai and Robbins 1985; the
 * best and its challenger: Kalyanakrishnan et al. 2012). As it becomes known better, a code may bring less, and gives
 * way. */
static void put_hopes(struct ca_plan *p)
{
	struct ca_plan_code **code = calloc(p->offers + 1, sizeof *code);
	size_t n = 0, room = AND_THEN;

	for (size_t i = 0; i < p->offers && code; i++) {
		struct ca_plan_code *c = &p->code[p->order[i]];

		if (c->entered ? c->open : !ca_plan_is_too_small(p, c))
			code[n++] = c;
	}
	if (n)
		qsort(code, n, sizeof *code, by_hope);
	if (n && put_leader_first(code, n))
		room = CONTEST;
	for (size_t i = 0; i < n && i < room; i++) {
		code[i]->entered = true;
		ca_plan_rounds_put(p, code[i]);
	}
	free(code);
}

/* All that are open, or all that were tried. */
static void put_tried(struct ca_plan *p)
{
	bool all = !any_open(p);

	for (size_t i = 0; i < p->offers; i++)
		if (p->code[p->order[i]].entered && (p->code[p->order[i]].open || all))
			ca_plan_rounds_put(p, &p->code[p->order[i]]);
}

/* Where there is no time for all answers, there is for that of the first row: of the round's codes the open one that
 * seems to bring most has half of the experiments (the best and its challengers; half is at most twice as slow as the
 * best choice: Russo, Simple Bayesian algorithms for best-arm identification, 2016). */
static void favour_leader(struct ca_plan *p)
{
	const struct ca_plan_step *step = p->round.at;
	struct ca_plan_code *leader = NULL;
	size_t n = 0;

	for (size_t i = 0; i < p->round.n; i++) {
		struct ca_plan_code *code = ca_plan_find(p, step[i].region);
		bool there = ca_plan_is_there(p, step[i].region);

		n += there;
		if (there && code->open && code->known && (!leader || ca_plan_by_effect(&code, &leader) < 0))
			leader = code;
	}
	for (size_t i = 1; leader && i < n; i++)
		ca_plan_rounds_put(p, leader);
}

void ca_plan_rounds_make(struct ca_plan *p)
{
	struct ca_plan_code *rested;

	p->round.n = p->at = 0;
	if (p->whole)
		put_hopes(p);
	else
		enter_new(p);
	if (!p->round.n)
		put_tried(p);
	rested = any_open(p) ? pick_rested(p) : NULL;
	if (rested && (p->round.n >= REST || p->rounds % REST == 0))
		ca_plan_rounds_put(p, rested);
	if (!p->whole)
		favour_leader(p);
	/* the first whole runs may be the only ones: what can give most comes first, as it is offered */
	if (!p->whole || p->n)
		shuffle(p);
	spread_zeros(p);
	p->rounds++;
}

static void bring_forward(struct ca_plan *p, size_t i)
{
	struct ca_plan_step *step = p->round.at, chosen = step[i];

	memmove(step + p->at + 1, step + p->at, (i - p->at) * sizeof *step);
	step[p->at] = chosen;
}

/* It is the next once it is there: libraries that come late in a run leave it little time. */
void ca_plan_rounds_skip(struct ca_plan *p)
{
	const struct ca_plan_step *step = p->round.at;
	size_t i = p->at;

	while (i < p->round.n && step[i].region && !ca_plan_is_there(p, step[i].region))
		i++;
	if (i < p->round.n)
		bring_forward(p, i);
	else
		p->at = p->round.n;
}

/* Has the code no experiment yet in this part of the run? */
static bool is_missing(const struct ca_plan *p, uint32_t region, int part)
{
	const struct ca_observation *o = p->seen;

	for (size_t i = 0; i < p->n && region; i++)
		if (o[i].speedup && o[i].region == region && o[i].to > o[i].from &&
		    ca_estimate_part(o[i].from, p->length) == part)
			return false;
	return region;
}

/* Each code is to be seen in all parts of the run: among those of the round, one that has missed this one. */
void ca_plan_rounds_prefer_missing(struct ca_plan *p)
{
	const struct ca_plan_step *step = p->round.at;
	int part = ca_estimate_part(p->now, p->length);

	for (size_t i = p->at; i < p->round.n; i++)
		if (ca_plan_is_there(p, step[i].region) && is_missing(p, step[i].region, part)) {
			bring_forward(p, i);
			return;
		}
}

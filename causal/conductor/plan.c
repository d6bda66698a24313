/* SPDX-License-Identifier: MIT */
/* The plan of experiments; see plan.h. It goes in rounds: each code whose answer is open once (of whole runs, which
 * are few: the one that seems to bring most, and its challenger), one of the others now and then, and experiments at
 * 0 % spread evenly between them. */
#include "causal/conductor/plan.h"
#include "core/rng.h"
#include "core/vec.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	AT_FIRST = 8, /* codes in the first round ... */
	AND_THEN =
		4, /* ... and new ones in each further round; all codes of the first round of whole runs ... */
	CONTEST = 2,   /* ... and of each further one */
	LEAST = 4,     /* experiments of a code before anything is said of it ... */
	LEAST_OWN = 2, /* ... if each is its own baseline */
	REST = 3,      /* rounds between two looks at a code that is decided, where few are open */
	REPLICATES = 200,
	GROWTH = 20, /* estimates are made anew when there is 1 / GROWTH more to go on */
	FEW = 5,     /* doubtful experiments more than good ones, and they are what there is */
	AGAIN = 2,   /* times that an experiment is tried again */
	SPEEDUPS = 4
};
static const unsigned speedup[SPEEDUPS] = { 50, 100, 25, 75 }; /* percent, in this order */
static const double grows = 1.1; /* S time, for what the program takes without pauses: it polls */
enum { HALF = 1 };               /* 50 %, in ca_estimate_at */

struct code {
	struct ca_plan_offer offer;
	bool offered, entered, open;
	bool polls;           /* the longer others are delayed, the longer it takes */
	unsigned tries, lost; /* experiments that were usable; in a row that were not */
	unsigned zeros;       /* those at 0 % in which it was selected */
	bool known;           /* the estimate: */
	struct ca_curve curve;
};
struct ca_plan {
	struct ca_plan_options opt;
	struct ca_rng rng;
	struct code *code;
	size_t codes;
	size_t *order; /* of the offers */
	size_t offers;
	struct ca_observation *seen;
	size_t n, estimated; /* as many as the estimates are made from */
	struct ca_vec round; /* struct ca_plan_step */
	size_t at;           /* in the round */
	unsigned rounds;
	bool decided, sure;
	size_t good, doubtful; /* experiments told */
	bool own;              /* hardly anybody pays, in whichever code */
	bool whole, alone;  /* experiments are whole runs; of one thread, each of which is its own baseline */
	double length, now; /* of a run, s; in it */
	struct ca_vec run;  /* double: length of that with this number, s; 0: not known */
	double third;       /* percent: what the last of the first rows brings at least, at 50 % */
	unsigned rows;
};

struct ca_plan *ca_plan_new(const struct ca_plan_options *options)
{
	struct ca_plan *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->opt = *options;
	p->round.size = sizeof(struct ca_plan_step);
	p->run.size = sizeof(double);
	ca_rng_init(&p->rng, options->seed);
	return p;
}

void ca_plan_free(struct ca_plan *p)
{
	if (!p)
		return;
	free(p->code);
	free(p->order);
	free(p->seen);
	ca_vec_free(&p->round);
	ca_vec_free(&p->run);
	free(p);
}

/* ---- what may be tried -------------------------------------------------------------------*/
static struct code *find(const struct ca_plan *p, uint32_t region)
{
	for (size_t i = 0; i < p->codes; i++)
		if (p->code[i].offer.region == region)
			return &p->code[i];
	return NULL;
}

static bool is_offered(const struct ca_plan *p, uint32_t region)
{
	const struct code *code = find(p, region);

	return code && code->offered;
}

static struct code *add(struct ca_plan *p, uint32_t region)
{
	struct code *code = find(p, region), *more;

	if (code)
		return code;
	more = ca_vec_more(p->code, p->codes, sizeof *more);
	if (!more)
		return NULL;
	p->code = more;
	p->code[p->codes] = (struct code){ .open = true };
	return &p->code[p->codes++];
}

void ca_plan_set_length(struct ca_plan *p, double seconds)
{
	if (!(p->length > 0)) { /* all that is known was known without */
		p->estimated = 0;
		p->decided = false;
	}
	p->length = seconds;
}

void ca_plan_set_run(struct ca_plan *p, uint32_t run, double seconds)
{
	while (p->run.n <= run)
		if (!ca_vec_push(&p->run))
			return;
	((double *)p->run.at)[run] = seconds;
}

void ca_plan_set_time(struct ca_plan *p, double seconds)
{
	p->now = seconds;
}

void ca_plan_set_offers(struct ca_plan *p, const struct ca_plan_offer *offer, size_t n, bool sure)
{
	size_t *order = realloc(p->order, (n + 1) * sizeof *order);

	if (!order)
		return;
	p->order = order;
	p->offers = 0;
	p->sure = sure;
	for (size_t i = 0; i < p->codes; i++)
		p->code[i].offered = false;
	for (size_t i = 0; i < n; i++) {
		struct code *code = add(p, offer[i].region);

		if (!code)
			continue;
		code->offer = offer[i];
		code->offered = true;
		order[p->offers++] = (size_t)(code - p->code);
	}
}

/* The time at which `key` would win a draw: exponential, at the rate `weight`. Of several keys the first
 * is each in proportion to its weight, and neither their order nor small changes of weight decide. */
static double race(uint64_t draw, uint64_t key, double weight)
{
	struct ca_rng rng;

	ca_rng_init(&rng, draw ^ key);
	return -log1p(-ca_rng_unit(&rng)) / weight;
}

uint32_t ca_plan_draw(const struct ca_plan *p, uint64_t number)
{
	double least = INFINITY;
	uint32_t winner = 0;

	for (size_t i = 0; i < p->offers; i++) {
		const struct ca_plan_offer *o = &p->code[p->order[i]].offer;
		double time = race(number, o->key, o->at_most);

		if (time < least) {
			least = time;
			winner = o->region;
		}
	}
	return winner;
}

/* The highest average, as seats are given to parties (d'Hondt). */
uint32_t ca_plan_draw_zero(const struct ca_plan *p, uint64_t number)
{
	const struct code *best = NULL;

	for (size_t i = 0; i < p->offers; i++) {
		const struct code *c = &p->code[p->order[i]];

		if (c->tries && (!best || (uint64_t)c->tries * (best->zeros + 1) >
						  (uint64_t)best->tries * (c->zeros + 1)))
			best = c;
	}
	return best ? best->offer.region : ca_plan_draw(p, number);
}

/* Half of its time would be too little to matter. */
static bool is_too_small(const struct ca_plan *p, const struct code *code)
{
	return code->offer.at_most / 2 < p->opt.points;
}

/* What half of its time may bring, percent. */
static double hope(const struct code *code)
{
	return code->known ? code->curve.at_high[HALF] : code->offer.at_most / 2;
}

/* ---- what is known -----------------------------------------------------------------------*/
/* As if all runs were equally long. Owned by the caller; NULL: no memory. */
static struct ca_observation *observations(const struct ca_plan *p, double *quantum)
{
	struct ca_observation *list = calloc(p->n + 1, sizeof *list);
	const double *length = p->run.at;

	*quantum = 0;
	for (size_t i = 0; i < p->n && list; i++) {
		struct ca_observation *o = &list[i];

		*o = p->seen[i];
		if (o->counted)
			*quantum = CA_ESTIMATE_COUNTED;
		if (o->run < p->run.n && length[o->run] > 0 && p->length > 0) {
			double spread = o->from * p->length / length[o->run] - o->from;

			o->from += spread;
			o->to += spread;
		}
	}
	return list;
}

static bool estimate(struct ca_plan *p)
{
	struct ca_estimate_options options = { .seed = p->opt.seed,
					       .length = p->length,
					       .replicates = REPLICATES };
	struct ca_observation *list = NULL;
	struct ca_estimates out;
	struct ca_share *share;
	enum ca_status status;

	if (p->n < p->estimated + 1 + p->estimated / GROWTH ||
	    !(options.share = share = calloc(p->codes + 1, sizeof *share)))
		return false;
	if (!(list = observations(p, &options.quantum))) {
		free(share);
		return false;
	}
	for (size_t i = 0; i < p->codes; i++) {
		const struct ca_plan_offer *o = &p->code[i].offer;

		share[options.shares++] =
			(struct ca_share){ o->region, o->periods, o->share, o->lump, o->rate, o->overlap };
	}
	status = ca_estimate(list, p->n, &options, &out);
	free(share);
	free(list);
	if (status != CA_OK)
		return false;
	ca_estimate_add_method_error(&out);
	p->estimated = p->n;
	p->own = out.curves > 0;
	for (size_t i = 0; i < out.curves; i++) {
		struct code *code = find(p, out.curve[i].region);

		if (!code || !code->tries)
			continue;
		code->curve = out.curve[i];
		code->known = isfinite(code->curve.at_low[HALF]) && isfinite(code->curve.at_high[HALF]);
		p->own &= code->curve.how >= CA_HOW_OWN;
	}
	ca_estimate_fini(&out);
	return true;
}

/* Enough to be told by. A whole run has all that one thread does. */
static bool is_known(const struct ca_plan *p, const struct code *code)
{
	unsigned least = code->curve.how == CA_HOW_COMPARED ? LEAST : p->whole && p->alone ? 1 : LEAST_OWN;

	return code->known && code->tries >= least;
}

static int by_effect(const void *a, const void *b)
{
	const struct code *x = *(void *const *)a, *y = *(void *const *)b;
	double p = x->known ? x->curve.at[HALF] : -INFINITY, q = y->known ? y->curve.at[HALF] : -INFINITY;

	return p > q ? -1 : p < q ? 1 : x->offer.key < y->offer.key ? -1 : 1;
}

/* Whose answer is open: all that are not known well enough, but those that surely come after the first
 * rows, or have turned out to take too little: the beginning of a run is not like all of it. */
static void settle(struct ca_plan *p, struct code **code, size_t n)
{
	bool any_worth = false;

	p->third = n >= CA_PLAN_TOP && is_known(p, code[CA_PLAN_TOP - 1])
			   ? code[CA_PLAN_TOP - 1]->curve.at_low[HALF]
			   : -INFINITY;
	p->decided = n > 0 && p->sure && p->doubtful <= p->good; /* else no verdict is given */
	p->rows = 0;
	for (size_t i = 0; i < n; i++) {
		const struct ca_curve *curve = &code[i]->curve;
		bool behind = i >= CA_PLAN_TOP && hope(code[i]) < p->third;

		code[i]->open = !is_known(p, code[i]) || !(behind || (p->sure && is_too_small(p, code[i])) ||
							   ca_estimate_decided(curve, p->opt.points));
		p->decided &= !code[i]->open;
	}
	/* also what this run has no samples of */
	for (size_t i = 0; i < p->codes; i++)
		any_worth |=
			p->code[i].known && ca_estimate_verdict(&p->code[i].curve) != CA_VERDICT_NOT_WORTH;
	if (p->decided && any_worth)
		p->rows = n < CA_PLAN_TOP ? (unsigned)n : CA_PLAN_TOP;
}

static void look(struct ca_plan *p)
{
	struct code **code = calloc(p->offers + 1, sizeof *code);
	size_t n = 0;

	estimate(p);
	for (size_t i = 0; i < p->offers && code; i++)
		if (p->code[p->order[i]].entered)
			code[n++] = &p->code[p->order[i]];
	if (n)
		qsort(code, n, sizeof *code, by_effect);
	if (code)
		settle(p, code, n);
	for (size_t i = 0; i < p->offers; i++) {
		const struct code *c = &p->code[p->order[i]];

		p->decided &= c->entered || is_too_small(p, c) || hope(c) < p->third;
	}
	free(code);
}

static bool round_is_over(const struct ca_plan *p)
{
	return p->at >= p->round.n;
}

bool ca_plan_is_decided(struct ca_plan *p, unsigned *rows)
{
	if (round_is_over(p) && p->n > p->estimated)
		look(p);
	*rows = p->rows;
	return p->decided;
}

/* ---- rounds ------------------------------------------------------------------------------*/
static void put(struct ca_plan *p, uint32_t region, unsigned percent)
{
	struct ca_plan_step *step = ca_vec_push(&p->round);

	if (step)
		*step = (struct ca_plan_step){ region, percent };
}

static void put_code(struct ca_plan *p, const struct code *code)
{
	/* of code that polls a whole run at 100 % never ends, or takes twenty times as long */
	put(p, code->offer.region, speedup[code->polls ? code->tries % 2 * 2 : code->tries % SPEEDUPS]);
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

	for (size_t i = 0; i < p->round.n && turn; i++)
		turn[i] = (struct turn){ race(number, find(p, step[i].region)->offer.key, 1), step[i] };
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
static struct code *pick_rested(const struct ca_plan *p)
{
	struct code *least = NULL;

	for (size_t i = 0; i < p->offers; i++) {
		struct code *code = &p->code[p->order[i]];

		if (code->entered && !code->open && (!least || code->tries < least->tries))
			least = code;
	}
	return least;
}

static void enter_new(struct ca_plan *p)
{
	size_t room = p->rounds ? AND_THEN : AT_FIRST;

	for (size_t i = 0; i < p->offers && room; i++) {
		struct code *code = &p->code[p->order[i]];

		if (code->entered || (is_too_small(p, code) && (p->rounds || i)))
			continue;
		code->entered = true;
		room--;
	}
}

static bool any_open(const struct ca_plan *p)
{
	for (size_t i = 0; i < p->offers; i++)
		if (p->code[p->order[i]].entered && p->code[p->order[i]].open)
			return true;
	return false;
}

static int by_hope(const void *a, const void *b)
{
	const struct code *x = *(void *const *)a, *y = *(void *const *)b;
	double p = hope(x), q = hope(y);

	return p > q ? -1 : p < q ? 1 : x->offer.key < y->offer.key ? -1 : 1;
}

/* The open one that seems to bring most comes first. False: nothing is known of any. */
static bool put_leader_first(struct code **code, size_t n)
{
	size_t leader = n;

	for (size_t i = 0; i < n; i++)
		if (code[i]->known && (leader == n || by_effect(&code[i], &code[leader]) < 0))
			leader = i;
	for (size_t i = leader < n ? leader : 0; i > 0; i--) {
		struct code *before = code[i - 1];

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
	struct code **code = calloc(p->offers + 1, sizeof *code);
	size_t n = 0, room = AND_THEN;

	for (size_t i = 0; i < p->offers && code; i++) {
		struct code *c = &p->code[p->order[i]];

		if (c->entered ? c->open : !is_too_small(p, c))
			code[n++] = c;
	}
	if (n)
		qsort(code, n, sizeof *code, by_hope);
	if (n && put_leader_first(code, n))
		room = CONTEST;
	for (size_t i = 0; i < n && i < room; i++) {
		code[i]->entered = true;
		put_code(p, code[i]);
	}
	free(code);
}

/* All that are open, or all that were tried. */
static void put_tried(struct ca_plan *p)
{
	bool all = !any_open(p);

	for (size_t i = 0; i < p->offers; i++)
		if (p->code[p->order[i]].entered && (p->code[p->order[i]].open || all))
			put_code(p, &p->code[p->order[i]]);
}

static void make_round(struct ca_plan *p)
{
	struct code *rested;

	p->round.n = p->at = 0;
	if (p->whole)
		put_hopes(p);
	else
		enter_new(p);
	if (!p->round.n)
		put_tried(p);
	rested = any_open(p) ? pick_rested(p) : NULL;
	if (rested && (p->round.n >= REST || p->rounds % REST == 0))
		put_code(p, rested);
	/* the first whole runs may be the only ones: what can give most comes first, as it is offered */
	if (!p->whole || p->n)
		shuffle(p);
	spread_zeros(p);
	p->rounds++;
}

/* What is not offered any more, as its library is not loaded in this run. */
static void skip_rested(struct ca_plan *p)
{
	const struct ca_plan_step *step = p->round.at;

	while (!round_is_over(p) && step[p->at].region && !is_offered(p, step[p->at].region))
		p->at++;
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
static void prefer_missing(struct ca_plan *p)
{
	struct ca_plan_step *step = p->round.at, first;
	int part = ca_estimate_part(p->now, p->length);

	for (size_t i = p->at; i < p->round.n; i++)
		if (is_offered(p, step[i].region) && is_missing(p, step[i].region, part)) {
			first = step[i];
			memmove(step + p->at + 1, step + p->at, (i - p->at) * sizeof *step);
			step[p->at] = first;
			return;
		}
}

bool ca_plan_next(struct ca_plan *p, struct ca_plan_step *step)
{
	skip_rested(p);
	if (round_is_over(p)) {
		look(p);
		make_round(p);
	}
	if (round_is_over(p))
		return false;
	if (p->length > 0 && !p->whole)
		prefer_missing(p);
	*step = ((const struct ca_plan_step *)p->round.at)[p->at];
	return true;
}

void ca_plan_begun(struct ca_plan *p)
{
	if (!round_is_over(p))
		p->at++;
}

void ca_plan_forget(struct ca_plan *p)
{
	p->n = p->estimated = 0;
	p->decided = false;
	for (size_t i = 0; i < p->codes; i++) {
		p->code[i].tries = p->code[i].zeros = 0;
		p->code[i].known = false;
		p->code[i].open = true;
	}
}

void ca_plan_use_whole(struct ca_plan *p, bool alone)
{
	if (!p->whole) {
		ca_plan_forget(p);
		p->round.n = p->at = 0;
	}
	p->whole = true;
	p->alone = alone;
}

static bool keep(struct ca_plan *p, const struct ca_observation *o)
{
	struct ca_observation *more = ca_vec_more(p->seen, p->n, sizeof *more);

	if (!more)
		return false;
	p->seen = more;
	p->seen[p->n++] = *o;
	return true;
}

void ca_plan_tell(struct ca_plan *p, const struct ca_observation *o, enum ca_plan_use use)
{
	struct code *any = find(p, o->region), *code = o->speedup ? any : NULL;

	p->good += use == CA_PLAN_GOOD;
	p->doubtful += use == CA_PLAN_DOUBTFUL;
	if (use == CA_PLAN_USELESS || (use == CA_PLAN_DOUBTFUL && p->doubtful <= p->good + FEW)) {
		if (code && code->offered && code->lost++ < AGAIN)
			put_code(p, code);
		if (!(o->cost > 0)) /* it tells where the point is not passed */
			keep(p, o);
		return;
	}
	if (!keep(p, o))
		return;
	if (any)
		any->zeros += !o->speedup;
	if (code) {
		code->tries++;
		code->lost = 0;
		/* longer than the program takes without the pauses: it would not fit into it */
		code->polls |= p->whole && o->elapsed > 0 && o->active > grows * (o->elapsed - o->paying);
	}
}

size_t ca_plan_top(const struct ca_plan *p, struct ca_plan_row *row, size_t most)
{
	size_t n = 0;

	for (size_t i = 0; i < p->codes; i++) {
		const struct ca_curve *curve = &p->code[i].curve;
		size_t at = n;

		if (!p->code[i].known)
			continue;
		while (at && row[at - 1].effect < curve->at[HALF]) {
			if (at < most)
				row[at] = row[at - 1];
			at--;
		}
		if (at < most)
			row[at] = (struct ca_plan_row){ p->code[i].offer.region, curve->at[HALF],
							curve->at_low[HALF], curve->at_high[HALF] };
		n += n < most;
	}
	return n;
}

/* SPDX-License-Identifier: MIT */
/* The plan of experiments; see plan.h: what may be tried, and what is known of it. */
#include "causal/conductor/plan_parts.h"
#include "causal/results/units.h"
#include "core/rng.h"
#include "core/vec.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEAST = 4,     /* experiments of a code before anything is said of it ... */
	LEAST_OWN = 2, /* ... if each is its own baseline */
	REPLICATES = 200,
	GROWTH = 20, /* estimates are made anew when there is 1 / GROWTH more to go on */
	FEW = 5,     /* doubtful experiments more than good ones, and they are what there is */
	AGAIN = 2,   /* times that an experiment is tried again */
	COARSE = 6   /* experiments of a code that show how much they vary */
};
/* By how much whole runs vary, once it is known how fast the CPUs were; and how much longer experiments inside runs
 * should take before runs are spent on that. */
static const double noise_of_runs = 0.03, surely = 1.5;
static const double slightly = 1; /* percent: wider than asked for, and hardly seen */
static const double grows = 1.1;  /* S time, for what the program takes without pauses: it polls */

struct ca_plan *ca_plan_new(const struct ca_plan_options *options)
{
	struct ca_plan *p = calloc(1, sizeof *p);

	if (!p)
		return NULL;
	p->opt = *options;
	p->round.size = sizeof(struct ca_plan_step);
	p->run.size = sizeof(double);
	p->run_seen.size = sizeof(struct ca_observation);
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
	ca_vec_free(&p->run_seen);
	free(p);
}

/* ---- what may be tried -------------------------------------------------------------------*/
struct ca_plan_code *ca_plan_find(const struct ca_plan *p, uint32_t region)
{
	for (size_t i = 0; i < p->codes; i++)
		if (p->code[i].offer.region == region)
			return &p->code[i];
	return NULL;
}

bool ca_plan_is_there(const struct ca_plan *p, uint32_t region)
{
	const struct ca_plan_code *code = ca_plan_find(p, region);

	return code && code->offered && !code->offer.absent;
}

static struct ca_plan_code *add(struct ca_plan *p, uint32_t region)
{
	struct ca_plan_code *code = ca_plan_find(p, region), *more;

	if (code)
		return code;
	more = ca_vec_more(p->code, p->codes, sizeof *more);
	if (!more)
		return NULL;
	p->code = more;
	p->code[p->codes] = (struct ca_plan_code){ .open = true };
	return &p->code[p->codes++];
}

void ca_plan_set_length(struct ca_plan *p, double seconds)
{
	if (!(p->length > 0)) { /* all that is known was known without */
		p->estimated = 0;
		p->decided = false;
	}
	p->moved |= p->length < seconds || p->length > seconds;
	p->length = seconds;
}

void ca_plan_set_run(struct ca_plan *p, uint32_t run, double seconds)
{
	double *length = ca_vec_reach(&p->run, run);

	if (length)
		*length = seconds;
}

void ca_plan_set_time(struct ca_plan *p, double seconds)
{
	p->now = seconds;
}

void ca_plan_set_silence(struct ca_plan *p, const struct ca_silence *silence)
{
	p->silence = *silence;
	p->moved = true;
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
		struct ca_plan_code *code = add(p, offer[i].region);
		double since;

		if (!code || (offer[i].absent && code->gone))
			continue;
		since = code->offer.since;
		code->offer = offer[i];
		code->offer.since = offer[i].absent ? since : offer[i].since;
		code->offered = true;
		order[p->offers++] = (size_t)(code - p->code);
	}
}

void ca_plan_run_ended(struct ca_plan *p)
{
	size_t there = 0;

	for (size_t i = 0; i < p->codes; i++) {
		struct ca_plan_code *code = &p->code[i];

		code->gone = !code->offered || code->offer.absent;
		code->offered = !code->gone;
	}
	for (size_t i = 0; i < p->offers; i++)
		if (p->code[p->order[i]].offered)
			p->order[there++] = p->order[i];
	p->offers = there;
}

/* The time at which `key` would win a draw: exponential, at the rate `weight`. Of several keys the first
 * is each in proportion to its weight, and neither their order nor small changes of weight decide. */
double ca_plan_race(uint64_t draw, uint64_t key, double weight)
{
	struct ca_rng rng;

	ca_rng_init(&rng, draw ^ key);
	return -log1p(-ca_rng_unit(&rng)) / weight;
}

uint32_t ca_plan_draw(const struct ca_plan *p, uint64_t number, bool waits)
{
	double least = INFINITY;
	uint32_t winner = 0;

	for (size_t i = 0; i < p->offers; i++) {
		const struct ca_plan_offer *o = &p->code[p->order[i]].offer;
		double time = ca_plan_race(number, o->key, o->at_most);

		if (time < least && (waits || !o->absent)) {
			least = time;
			winner = o->region;
		}
	}
	return winner;
}

/* The highest average, as seats are given to parties (d'Hondt). */
uint32_t ca_plan_draw_zero(const struct ca_plan *p, uint64_t number)
{
	const struct ca_plan_code *best = NULL;

	for (size_t i = 0; i < p->offers; i++) {
		const struct ca_plan_code *c = &p->code[p->order[i]];

		if (c->tries && (!best || (uint64_t)c->tries * (best->zeros + 1) >
						  (uint64_t)best->tries * (c->zeros + 1)))
			best = c;
	}
	return best ? best->offer.region : ca_plan_draw(p, number, true);
}

bool ca_plan_is_too_small(const struct ca_plan *p, const struct ca_plan_code *code)
{
	return code->offer.at_most / 2 < p->opt.points;
}

double ca_plan_hope(const struct ca_plan_code *code)
{
	return code->known ? code->curve.at_high[CA_PLAN_HALF] : code->offer.at_most / 2;
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

/* Above 0 %. */
static unsigned runs_of(const struct ca_plan *p, uint32_t region)
{
	const struct ca_observation *o = p->run_seen.at;
	unsigned runs = 0;

	for (size_t i = 0; i < p->run_seen.n; i++)
		runs += o[i].region == region && o[i].speedup;
	return runs;
}

static void use_curve(struct ca_plan *p, const struct ca_curve *curve, bool of_runs)
{
	struct ca_plan_code *code = ca_plan_find(p, curve->region);

	if (!code || !code->tries ||
	    (of_runs &&
	     !ca_estimate_prefers_whole(curve, runs_of(p, curve->region), &code->curve, code->tries)))
		return;
	code->curve = *curve;
	code->known = isfinite(curve->at_low[CA_PLAN_HALF]) && isfinite(curve->at_high[CA_PLAN_HALF]);
	code->by_runs = of_runs;
	if (!of_runs)
		p->own &= curve->how >= CA_HOW_OWN;
}

static bool estimate_by(struct ca_plan *p, const struct ca_observation *list, size_t n,
			const struct ca_estimate_options *options, bool of_runs)
{
	struct ca_estimates out;

	if (ca_estimate(list, n, options, &out) != CA_OK)
		return false;
	ca_estimate_add_method_error(&out);
	if (!of_runs)
		p->own = out.curves > 0;
	for (size_t i = 0; i < out.curves; i++)
		use_curve(p, &out.curve[i], of_runs);
	ca_estimate_fini(&out);
	return true;
}

static void estimate(struct ca_plan *p)
{
	struct ca_estimate_options options = { .seed = p->opt.seed,
					       .length = p->length,
					       .replicates = REPLICATES };
	struct ca_observation *list = NULL;
	struct ca_share *share = NULL;

	if (p->n < p->estimated + 1 + p->estimated / GROWTH && p->run_seen.n == p->runs_estimated)
		return;
	options.share = share = calloc(p->codes + 1, sizeof *share);
	if (!share || !(list = observations(p, &options.quantum)))
		goto done;
	for (size_t i = 0; i < p->codes; i++) {
		const struct ca_plan_offer *o = &p->code[i].offer;

		share[options.shares++] = (struct ca_share){ o->region,
							     o->periods,
							     o->share,
							     o->lump,
							     o->rate,
							     o->overlap,
							     p->length > 0 ? o->since / p->length : 0,
							     o->silent };
	}
	if (!p->whole)
		options.silence = p->silence;
	if (!estimate_by(p, list, p->n, &options, false))
		goto done;
	p->estimated = p->n;
	p->moved = false;
	options.quantum = 0;
	options.silence = (struct ca_silence){ 0 };
	if (p->run_seen.n && estimate_by(p, p->run_seen.at, p->run_seen.n, &options, true))
		p->runs_estimated = p->run_seen.n;
done:
	free(share);
	free(list);
}

/* Enough to be told by. A whole run has all that one thread does. */
static bool is_known(const struct ca_plan *p, const struct ca_plan_code *code)
{
	unsigned least = code->curve.how == CA_HOW_COMPARED ? LEAST : p->whole && p->alone ? 1 : LEAST_OWN;

	return code->known && code->tries >= least;
}

int ca_plan_by_effect(const void *a, const void *b)
{
	const struct ca_plan_code *x = *(void *const *)a, *y = *(void *const *)b;
	double p = x->known ? x->curve.at[CA_PLAN_HALF] : -INFINITY,
	       q = y->known ? y->curve.at[CA_PLAN_HALF] : -INFINITY;

	return p > q ? -1 : p < q ? 1 : x->offer.key < y->offer.key ? -1 : 1;
}

/* Whose answer is open: all that are not known well enough, but those that surely come after the first
 * rows, or have turned out to take too little: the beginning of a run is not like all of it. */
static void settle(struct ca_plan *p, struct ca_plan_code **code, size_t n)
{
	bool any_worth = false;

	p->third = n >= CA_PLAN_TOP && is_known(p, code[CA_PLAN_TOP - 1])
			   ? code[CA_PLAN_TOP - 1]->curve.at_low[CA_PLAN_HALF]
			   : -INFINITY;
	p->decided = n > 0 && p->sure &&
		     (p->doubtful <= p->good || 2 * p->blind <= p->doubtful); /* else no verdict is given */
	p->rows = 0;
	p->vague = false;
	for (size_t i = 0; i < n; i++) {
		const struct ca_curve *curve = &code[i]->curve;
		bool behind = i >= CA_PLAN_TOP && ca_plan_hope(code[i]) < p->third;

		code[i]->open =
			!is_known(p, code[i]) || !(behind || (p->sure && ca_plan_is_too_small(p, code[i])) ||
						   ca_estimate_decided(curve, p->opt.points));
		p->decided &= !code[i]->open;
		p->vague |= i < CA_PLAN_TOP && ca_estimate_verdict(curve) != CA_VERDICT_NOT_WORTH &&
			    ca_estimate_width(curve) / 2 > p->opt.points + slightly &&
			    ca_estimate_lasting_error(curve, 0.5) > slightly;
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
	struct ca_plan_code **code = calloc(p->offers + 1, sizeof *code);
	size_t n = 0;

	estimate(p);
	for (size_t i = 0; i < p->offers && code; i++)
		if (p->code[p->order[i]].entered)
			code[n++] = &p->code[p->order[i]];
	if (n)
		qsort(code, n, sizeof *code, ca_plan_by_effect);
	if (code)
		settle(p, code, n);
	for (size_t i = 0; i < p->offers; i++) {
		const struct ca_plan_code *c = &p->code[p->order[i]];

		p->decided &= c->entered || ca_plan_is_too_small(p, c) || ca_plan_hope(c) < p->third;
	}
	free(code);
}

bool ca_plan_is_decided(struct ca_plan *p, unsigned *rows)
{
	if ((ca_plan_round_is_over(p) && p->n > p->estimated) || p->run_seen.n > p->runs_estimated)
		look(p);
	*rows = p->rows;
	return p->decided;
}

void ca_plan_estimate(struct ca_plan *p)
{
	if (p->n == p->estimated && !p->moved)
		return;
	p->estimated = 0;
	look(p);
}

bool ca_plan_is_vague(const struct ca_plan *p)
{
	return p->vague;
}

bool ca_plan_is_settled(const struct ca_plan *p, uint32_t region)
{
	for (size_t i = 0; i < p->codes; i++)
		if (p->code[i].offer.region == region)
			return p->code[i].known && p->code[i].by_runs && !p->code[i].open;
	return false;
}

bool ca_plan_next(struct ca_plan *p, struct ca_plan_step *step)
{
	ca_plan_rounds_skip(p);
	if (ca_plan_round_is_over(p)) {
		look(p);
		ca_plan_rounds_make(p);
		ca_plan_rounds_skip(p);
	}
	if (ca_plan_round_is_over(p))
		return false;
	if (p->length > 0 && !p->whole)
		ca_plan_rounds_prefer_missing(p);
	*step = ((const struct ca_plan_step *)p->round.at)[p->at];
	return true;
}

void ca_plan_begun(struct ca_plan *p)
{
	if (!ca_plan_round_is_over(p))
		p->at++;
}

void ca_plan_forget(struct ca_plan *p)
{
	p->n = p->estimated = p->checked = 0;
	p->run_seen.n = p->runs_estimated = 0;
	p->decided = p->works = false;
	p->silence = (struct ca_silence){ 0 };
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
	p->seen[p->n] = *o;
	if (p->works)
		ca_units_count_work(&p->seen[p->n]);
	p->n++;
	return true;
}

bool ca_plan_counts_work(struct ca_plan *p)
{
	if (p->works || p->whole || p->n < p->checked + 1 + p->checked / GROWTH)
		return p->works;
	p->checked = p->n;
	p->works = ca_units_are_uneven(p->seen, p->n);
	for (size_t i = 0; i < p->n && p->works; i++)
		ca_units_count_work(&p->seen[i]);
	if (p->works)
		p->estimated = 0;
	return p->works;
}

void ca_plan_tell(struct ca_plan *p, const struct ca_observation *o, enum ca_plan_use use)
{
	struct ca_plan_code *any = ca_plan_find(p, o->region), *code = o->speedup ? any : NULL;
	bool doubtful = use == CA_PLAN_DOUBTFUL || use == CA_PLAN_BESIDE;

	p->good += use == CA_PLAN_GOOD;
	p->doubtful += doubtful;
	p->blind += use == CA_PLAN_DOUBTFUL;
	if (use == CA_PLAN_USELESS || (doubtful && p->doubtful <= p->good + FEW)) {
		if (code && code->offered && code->lost++ < AGAIN)
			ca_plan_rounds_put(p, code);
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

void ca_plan_tell_run(struct ca_plan *p, const struct ca_observation *o)
{
	struct ca_observation *more = o->cost > 0 ? ca_vec_push(&p->run_seen) : NULL;

	if (more)
		*more = *o;
}

/* What is not known may matter more than what does not. */
static bool precedes(const struct ca_plan_row *a, const struct ca_plan_row *b)
{
	if (a->verdict == b->verdict)
		return a->rank > b->rank;
	return a->verdict == CA_VERDICT_WORTH || b->verdict == CA_VERDICT_NOT_WORTH;
}

/* The mean square of the impacts that are known. */
static double usual_impact(const struct ca_plan *p)
{
	double squares = 0, n = 0;

	for (size_t i = 0; i < p->codes; i++)
		if (p->code[i].known && isfinite(p->code[i].curve.impact)) {
			squares += p->code[i].curve.impact * p->code[i].curve.impact;
			n++;
		}
	return n > 0 ? squares / n : 0;
}

size_t ca_plan_top(const struct ca_plan *p, struct ca_plan_row *row, size_t most)
{
	double usual = usual_impact(p);
	size_t n = 0;

	for (size_t i = 0; i < p->codes; i++) {
		const struct ca_curve *curve = &p->code[i].curve;
		enum ca_verdict verdict = ca_estimate_verdict(curve);
		const struct ca_plan_row new = { p->code[i].offer.region,
						 curve->at[CA_PLAN_HALF],
						 curve->at_low[CA_PLAN_HALF],
						 curve->at_high[CA_PLAN_HALF],
						 verdict,
						 ca_estimate_rank(curve, verdict, usual) };
		size_t at = n;

		if (!p->code[i].known)
			continue;
		while (at && precedes(&new, &row[at - 1])) {
			if (at < most)
				row[at] = row[at - 1];
			at--;
		}
		if (at < most)
			row[at] = new;
		n += n < most;
	}
	return n;
}

/* s of pairs of whole runs until what brings so much, percent, is known to +- points. */
static double time_by_runs(const struct ca_plan *p, double effect, double points)
{
	double pairs = 2 * pow(1.96 * noise_of_runs * (1 - effect / 100) / (points / 100), 2);

	return 2 * p->length * fmax(pairs, CA_ESTIMATE_WHOLE_RUNS);
}

uint32_t ca_plan_find_coarse(struct ca_plan *p, double left)
{
	struct ca_plan_row row[CA_PLAN_TOP];
	double elapsed = 0;
	size_t n;

	ca_plan_estimate(p); /* a few more may have decided it */
	n = ca_plan_top(p, row, CA_PLAN_TOP);

	for (size_t i = 0; i < p->n; i++)
		elapsed += p->seen[i].elapsed;
	for (size_t i = 0; i < n && p->length > 0 && !p->whole; i++) {
		struct ca_plan_code *code = ca_plan_find(p, row[i].region);
		double points = hypot(p->opt.points, ca_estimate_lasting_error(&code->curve, 0.5)),
		       inside = elapsed * (pow(ca_estimate_width(&code->curve) / 2 / points, 2) - 1),
		       runs = time_by_runs(p, row[i].effect, points);

		if (code->open && !code->coarse && !code->by_runs && code->tries >= COARSE &&
		    code->curve.how == CA_HOW_COMPARED && runs <= left && inside > surely * runs) {
			code->coarse = true;
			return row[i].region;
		}
	}
	return 0;
}

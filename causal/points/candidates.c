/* SPDX-License-Identifier: MIT */
/* Judging candidates; see candidates.h.
 *
 * Units of work nest: where one goes into several others of a fixed number each, all of them show
 * the same effects in percent. So candidates whose visits are in proportion to each other form a
 * group, any of which will do, and the group in which most of the program's time is spent wins. In
 * it the outermost that is frequent enough is the safest: what spins, polls or retries is inside
 * of what it waits for, covers little, and comes in lumps. */
#include "causal/points/candidates.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where numbers come from: doc/PROGRESS.md. Rates are visits a second. */
#define HOTTEST        1e6   /* 0.8 ns a visit: 0.1 % of a CPU ... */
#define LAST_RESORT    10    /* times that, if there is nothing else */
#define WARM           1e4   /* from here on less is better: it may be a detail */
#define RAREST         4.0   /* experiments are made up to 8 s long */
#define FREQUENT       400.0 /* 100 in an experiment of 0.25 s: one more or less is 1 % */
#define FEWEST         12.0  /* visits in all windows together */
#define LUMPY          0.8   /* spread */
#define STEADY         0.3   /* ... that halves the merit */
#define STOPS          0.2   /* visits in the first or last third, as share of the other */
#define PER_STEP       10.0  /* visits in a step of windows, for a spread that means something */
#define IN_PROPORTION  0.08  /* spread of a ratio */
#define HARDLY         0.1   /* of the mean CPU time: a window that says nothing */
#define LEAST_COVERAGE 0.1
#define DEEPER         0.15 /* what a function more around it costs */
#define OFTENER        0.1  /* ten times the rate: a fifth less */
#define ADDS           0.15 /* what a further choice must cover that the others do not */
#define NEAR           4.0  /* ... and how much rarer it may be, if it is not FREQUENT */
#define OTHER_WORK     0.3  /* ... if it goes another way than the best one */
#define APART          0.5  /* what one counts that has hardly a sample in common with its group's first */

enum { STEPS_LEAST = 4, COARSE = 8 };

/* Visits in steps of several windows each, scaled to steps in which the program had the CPU for
 * equally long: that other programs took it is not the candidate's fault. */
struct steps {
	double count[CA_CANDIDATE_WINDOWS];
	unsigned n;
	double mean;
};

static double total_of(const struct ca_candidates *set, const struct ca_candidate *c)
{
	double sum = 0;

	for (unsigned w = 0; w < set->windows; w++)
		sum += c->count[w];
	return sum;
}

static double sum_of(const double *value, unsigned from, unsigned to)
{
	double sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += value[i];
	return sum;
}

static void make_steps(const struct ca_candidates *set, const struct ca_candidate *c, unsigned width,
		       struct steps *out)
{
	const double *length = sum_of(set->cpu, 0, set->windows) > 0 ? set->cpu : set->seconds;
	double mean = sum_of(length, 0, set->windows) / set->windows * width;

	memset(out, 0, sizeof *out);
	for (unsigned w = 0; w + width <= set->windows; w += width) {
		double here = sum_of(length, w, w + width), visits = 0;

		for (unsigned i = w; i < w + width; i++)
			visits += c->count[i];
		/* it hardly ran at all: nothing can be said */
		if (here < HARDLY * mean)
			continue;
		out->count[out->n] = visits * mean / here;
		out->mean += out->count[out->n++];
	}
	if (out->n)
		out->mean /= out->n;
}

/* So many windows that a step has enough visits; 0: then there are too few steps. */
static unsigned width_for(const struct ca_candidates *set, double total, double wanted)
{
	double mean = total / set->windows;
	unsigned width = mean >= wanted ? 1 : (unsigned)ceil(wanted / mean);

	return set->windows / width >= STEPS_LEAST ? width : 0;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *value, size_t n)
{
	if (!n)
		return 0;
	qsort(value, n, sizeof *value, by_value);
	return n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2;
}

/* ---- one candidate -----------------------------------------------------------------------*/
static bool is_empty(const struct steps *s, unsigned i)
{
	return s->count[i] < s->mean / 20;
}

/* From step to step, so that a trend does not count; a few bad moments of the machine do not
 * either. The scatter that any count of independent visits has is taken off. Of visits that come in
 * bursts, far apart, the median sees nothing: most steps are empty, as the ones before are. */
static double spread_of(const struct steps *s)
{
	double off[CA_CANDIDATE_WINDOWS], sum = 0, scatter;
	unsigned empty = 0;

	for (unsigned i = 0; i < s->n; i++)
		empty += is_empty(s, i);
	for (unsigned i = 1; i < s->n; i++) {
		off[i - 1] = fabs(s->count[i] - s->count[i - 1]);
		sum += off[i - 1];
	}
	scatter = 2 * empty > s->n ? 0.8862 * sum / (s->n - 1)        /* sqrt(pi) / 2 */
				   : 1.0484 * median(off, s->n - 1u); /* 1.4826 / sqrt(2) */
	scatter = scatter * scatter - s->mean;
	return scatter > 0 ? sqrt(scatter) / s->mean : 0;
}

/* Visits end, begin, or pause for a quarter of the time. */
static bool stops(const struct steps *s)
{
	unsigned third = s->n / 3, empty = 0, longest = 0;
	double first = 0, last = 0;

	for (unsigned i = 0; i < third; i++) {
		first += s->count[i];
		last += s->count[s->n - 1 - i];
	}
	if (third && fmin(first, last) < STOPS * fmax(first, last))
		return true;
	for (unsigned i = 0; i < s->n; i++) {
		empty = is_empty(s, i) ? empty + 1 : 0;
		longest = empty > longest ? empty : longest;
	}
	return longest > 1 && 4 * longest >= s->n;
}

static size_t bits_of(const uint64_t *bits)
{
	size_t n = 0;

	for (size_t i = 0; i < CA_CANDIDATE_SAMPLES / 64; i++)
		n += (size_t)__builtin_popcountll(bits[i]);
	return n;
}

static double quality_of(double rate)
{
	if (rate < FREQUENT)
		return sqrt(rate / FREQUENT);
	return rate > WARM ? pow(WARM / rate, 0.15) : 1;
}

static void judge_one(const struct ca_candidates *set, struct ca_candidate *c, double hottest)
{
	double total = total_of(set, c), seconds = sum_of(set->seconds, 0, set->windows);
	struct steps s;
	unsigned width;

	c->rate = seconds > 0 ? total / seconds : 0;
	c->coverage = set->samples ? (double)bits_of(c->inside) / (double)set->samples : 0;
	c->spread = c->merit = c->rank = 0;
	c->group = 0;
	c->fault = !(total > 0)                         ? CA_CANDIDATE_NEVER
		   : c->rate > hottest                  ? CA_CANDIDATE_HOT
		   : c->rate < RAREST || total < FEWEST ? CA_CANDIDATE_RARE
		   : !(width = width_for(set, total, fmin(PER_STEP, total / (STEPS_LEAST + 1))))
			   ? CA_CANDIDATE_RARE
			   : CA_CANDIDATE_GOOD;
	if (c->fault != CA_CANDIDATE_GOOD)
		return;
	make_steps(set, c, width, &s);
	if (s.n < STEPS_LEAST || !(s.mean > 0)) {
		c->fault = CA_CANDIDATE_RARE;
		return;
	}
	c->spread = spread_of(&s);
	if (c->spread > LUMPY || stops(&s))
		c->fault = CA_CANDIDATE_ERRATIC;
	else if (c->coverage < LEAST_COVERAGE)
		c->fault = CA_CANDIDATE_UNTIED;
	/* a function's name says more than a line */
	c->merit = c->coverage * quality_of(c->rate) / (1 + pow(c->spread / STEADY, 2)) *
		   (c->function ? 1 : 0.95);
}

/* ---- groups ------------------------------------------------------------------------------*/
static bool in_proportion_by(const struct ca_candidates *set, const struct ca_candidate *a,
			     const struct ca_candidate *b, unsigned width)
{
	double off[CA_CANDIDATE_WINDOWS], ratio, scatter;
	struct steps x, y;

	make_steps(set, a, width, &x);
	make_steps(set, b, width, &y);
	if (!(x.mean > 0) || !(y.mean > 0))
		return false;
	ratio = x.mean / y.mean;
	for (unsigned i = 0; i < x.n; i++)
		off[i] = fabs(x.count[i] - ratio * y.count[i]) / x.mean;
	scatter = 1.4826 * median(off, x.n);
	return scatter <= IN_PROPORTION + sqrt(1 / x.mean + 1 / y.mean);
}

/* At once, or, with a queue in between, over longer times. */
static bool in_proportion(const struct ca_candidates *set, const struct ca_candidate *a,
			  const struct ca_candidate *b)
{
	double least = fmin(total_of(set, a), total_of(set, b));
	unsigned fine = width_for(set, least, PER_STEP), coarse = set->windows / COARSE;

	if (fine && in_proportion_by(set, a, b, fine))
		return true;
	return coarse > (fine ? fine : 1) && in_proportion_by(set, a, b, coarse);
}

static long best_of(const struct ca_candidates *set, unsigned group, const uint64_t *covered, double least,
		    double rate)
{
	long best = -1;

	for (size_t i = 0; i < set->n; i++) {
		const struct ca_candidate *c = &set->candidate[i];
		size_t adds = 0;

		if (c->fault != CA_CANDIDATE_GOOD || c->group != group || c->rate < rate)
			continue;
		for (size_t k = 0; k < CA_CANDIDATE_SAMPLES / 64; k++)
			adds += (size_t)__builtin_popcountll(c->inside[k] & ~(covered ? covered[k] : 0));
		if ((double)adds < least * (double)set->samples || 2 * adds < bits_of(c->inside))
			continue;
		if (best < 0 ||
		    (group ? c->rank > set->candidate[best].rank : c->merit > set->candidate[best].merit))
			best = (long)i;
	}
	return best;
}

/* What one contains of the other is passed in proportion to it because of that. What another thread does may be so by
 * chance: a server under even load, and what it does by the clock. */
static bool is_apart(const struct ca_candidate *a, const struct ca_candidate *b)
{
	size_t both = 0, x = bits_of(a->inside), y = bits_of(b->inside);

	for (size_t k = 0; k < CA_CANDIDATE_SAMPLES / 64; k++)
		both += (size_t)__builtin_popcountll(a->inside[k] & b->inside[k]);
	return 2 * both < (x < y ? x : y);
}

/* The members of a group say the same, so which covers more is not what counts most: the outermost
 * and rarest of those that are frequent enough is farthest from what could be a detail. */
static void rank_group(struct ca_candidates *set, unsigned group, const struct ca_candidate *leader)
{
	double shallowest = INFINITY, rarest = INFINITY;

	for (size_t i = 0; i < set->n; i++) {
		const struct ca_candidate *c = &set->candidate[i];

		if (c->fault != CA_CANDIDATE_GOOD || c->group != group)
			continue;
		shallowest = fmin(shallowest, c->depth);
		rarest = fmin(rarest, fmax(c->rate, FREQUENT));
	}
	for (size_t i = 0; i < set->n; i++) {
		struct ca_candidate *c = &set->candidate[i];

		if (c->fault == CA_CANDIDATE_GOOD && c->group == group)
			c->rank = c->merit / pow(c->coverage, 0.75) / (1 + DEEPER * (c->depth - shallowest)) *
				  pow(rarest / fmax(c->rate, rarest), OFTENER) *
				  (is_apart(c, leader) ? APART : 1);
	}
}

/* The best one that is in no group yet leads the next. Returns how many groups there are. */
static unsigned make_groups(struct ca_candidates *set)
{
	unsigned groups = 0;
	long leader;

	while ((leader = best_of(set, 0, NULL, 0, 0)) >= 0) {
		set->candidate[leader].group = ++groups;
		for (size_t i = 0; i < set->n; i++) {
			struct ca_candidate *c = &set->candidate[i];

			if (c->fault == CA_CANDIDATE_GOOD && !c->group &&
			    in_proportion(set, &set->candidate[leader], c))
				c->group = groups;
		}
		rank_group(set, groups, &set->candidate[leader]);
	}
	return groups;
}

static void cover(const struct ca_candidates *set, unsigned group, uint64_t *covered)
{
	for (size_t i = 0; i < set->n; i++)
		for (size_t k = 0; k < CA_CANDIDATE_SAMPLES / 64 && set->candidate[i].group == group; k++)
			covered[k] |= set->candidate[i].inside[k];
}

/* What the group covers together, weighted with how good its best member is by itself. */
static double worth_of(const struct ca_candidates *set, unsigned group)
{
	uint64_t covered[CA_CANDIDATE_SAMPLES / 64] = { 0 };
	const struct ca_candidate *best = &set->candidate[best_of(set, group, NULL, 0, 0)];

	cover(set, group, covered);
	return (double)bits_of(covered) * best->merit / best->coverage;
}

/* ---- all ---------------------------------------------------------------------------------*/
static unsigned best_group(const struct ca_candidates *set, unsigned groups, const bool * not )
{
	unsigned best = 0;

	for (unsigned g = 1; g <= groups; g++)
		if (!not [g] && (!best || worth_of(set, g) > worth_of(set, best)))
			best = g;
	return best;
}

/* The best of the group, and those that see another part of the program. */
static size_t choose(const struct ca_candidates *set, unsigned group, double least, uint64_t *covered,
		     size_t *chosen, size_t n)
{
	double rate = n ? fmin(FREQUENT, set->candidate[chosen[0]].rate / NEAR) : 0;
	long best;

	while (n < CA_CANDIDATES_CHOSEN && (best = best_of(set, group, covered, least, rate)) >= 0) {
		chosen[n++] = (size_t)best;
		rate = fmin(FREQUENT, set->candidate[chosen[0]].rate / NEAR);
		for (size_t k = 0; k < CA_CANDIDATE_SAMPLES / 64; k++)
			covered[k] |= set->candidate[best].inside[k];
		least = fmax(least, ADDS);
	}
	return n;
}

/* Returns how many groups there are. */
static unsigned judge_each(struct ca_candidates *set, double hottest)
{
	for (size_t i = 0; i < set->n; i++)
		judge_one(set, &set->candidate[i], hottest);
	return make_groups(set);
}

size_t ca_candidates_judge(struct ca_candidates *set, size_t chosen[CA_CANDIDATES_CHOSEN])
{
	uint64_t covered[CA_CANDIDATE_SAMPLES / 64] = { 0 };
	bool done[CA_CANDIDATES + 1] = { false };
	unsigned groups, group;
	size_t n;

	if (set->windows < STEPS_LEAST || set->n > CA_CANDIDATES)
		return 0;
	groups = judge_each(set, HOTTEST);
	if (!groups)
		groups = judge_each(set, LAST_RESORT * HOTTEST);
	if (!(group = best_group(set, groups, done)))
		return 0;
	n = choose(set, group, 0, covered, chosen, 0);
	cover(set, group, covered);
	done[group] = true;
	while (n < CA_CANDIDATES_CHOSEN && (group = best_group(set, groups, done))) {
		n = choose(set, group, OTHER_WORK, covered, chosen, n);
		done[group] = true;
	}
	for (size_t i = 0; i < set->n; i++)
		if (set->candidate[i].fault == CA_CANDIDATE_GOOD &&
		    set->candidate[i].group != set->candidate[chosen[0]].group)
			set->candidate[i].fault = CA_CANDIDATE_UNTIED;
	for (size_t i = 0; i < n; i++)
		set->candidate[chosen[i]].fault = CA_CANDIDATE_GOOD;
	return n;
}

const char *ca_candidates_fault_name(enum ca_candidate_fault fault)
{
	static const char *const name[] = {
		[CA_CANDIDATE_GOOD] = "good",
		[CA_CANDIDATE_NEVER] = "not visited",
		[CA_CANDIDATE_HOT] = "too hot",
		[CA_CANDIDATE_RARE] = "too rare",
		[CA_CANDIDATE_ERRATIC] = "erratic",
		[CA_CANDIDATE_UNTIED] = "not in proportion to most of the work",
	};

	return name[fault];
}

/* ---- over runs ---------------------------------------------------------------------------*/
/* Largest to smallest, less 1. */
static double range_of(const double *value, size_t n)
{
	double low = INFINITY, high = 0;

	for (size_t i = 0; i < n; i++) {
		low = fmin(low, value[i]);
		high = fmax(high, value[i]);
	}
	return low > 0 ? high / low - 1 : INFINITY;
}

enum ca_tied ca_candidates_tied(const double *count, const double *seconds, size_t runs)
{
	double counts, lengths;

	if (runs < 2)
		return CA_TIED_UNKNOWN;
	counts = range_of(count, runs);
	lengths = range_of(seconds, runs);
	if (lengths < 0.03)
		return CA_TIED_UNKNOWN;
	if (counts <= 0.01 || counts < 0.2 * lengths)
		return CA_TIED;
	return counts > 0.02 && counts > 0.5 * lengths ? CA_NOT_TIED : CA_TIED_UNKNOWN;
}

/* SPDX-License-Identifier: MIT */
/* What a program does before it passes its progress point for the first time, after the last time, and in pauses
 * between: experiments there have no visits to tell by. The samples of whole runs tell which code takes how much of
 * that time, and of a program's run it is a part. The reasoning is in doc/ESTIMATE.md. Driver's process, one thread. */
#include "causal/results/estimate_parts.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = CA_RUN_PARTS };
static const double usual = 2; /* as in estimate_share.c */

void ca_estimate_silence_add(struct ca_silence *sum, const struct ca_silence *run)
{
	sum->length += run->length;
	sum->sampled += run->sampled;
	sum->inserted += run->inserted;
	sum->before += run->before;
	sum->after += run->after;
	sum->between += run->between;
	sum->cpu += run->cpu;
	sum->samples += run->samples;
}

static double all_of(const struct ca_silence *s)
{
	return s->before + s->after + s->between;
}

/* CPUs at work in it, on average. */
static double busy(const struct ca_silence *s)
{
	return s->cpu / all_of(s);
}

double ca_estimate_silence_part(const struct ca_silence *s, double saved)
{
	double silent = all_of(s), at_work;

	if (!(s->length > 0) || !(s->samples > 0) || !(silent > 0) || silent >= s->length)
		return 0;
	at_work = silent * fmin(busy(s), 1);
	return at_work / (s->length + saved * s->inserted - silent + at_work);
}

/* Of what is sampled in it. */
static double share_of(const struct ca_share *share, const struct ca_silence *s)
{
	return share ? fmin(share->silent / s->samples, 1) : 0;
}

bool ca_estimate_is_silent(const struct ca_observation *o, size_t n,
			   const struct ca_estimate_options *options)
{
	bool visits = n > 0;

	/* time itself, and that of whole runs, has no pauses */
	for (size_t i = 0; i < n && visits; i++)
		visits = o[i].per_visit || !(o[i].cost > 0);
	return visits && ca_estimate_silence_part(&options->silence, 0) > 0;
}

void ca_estimate_leave_out_silence(struct ca_share *share, size_t n, const struct ca_silence *s)
{
	double part = s->samples / s->sampled;

	for (size_t i = 0; i < n && part < 1; i++) {
		double left = fmax(share[i].share - part * share_of(&share[i], s), 0);

		share[i].periods *= share[i].share > 0 ? left / share[i].share : 0;
		share[i].share = left / (1 - part);
		if (share[i].late <= s->before / s->length)
			share[i].late = 0;
	}
}

void ca_estimate_hear_silence(struct ca_est *est, const struct ca_silence *s)
{
	double before = s->before / s->length, after = s->after / s->length, rest = 1 - before - after,
	       silent = all_of(s) / s->length, heard = 0;

	for (int k = 0; k < PARTS; k++)
		heard += est->heard[1][k];
	for (int k = 0; k < PARTS; k++) {
		double from = (double)k / PARTS, to = from + 1. / PARTS;
		double open = fmax(fmin(to, 1 - after) - fmax(from, before), 0);

		/* as many as there would be, if they were there as often as elsewhere */
		est->heard[0][k] =
			heard / (1 - silent) *
			(1. / PARTS - open + (rest > 0 ? open / rest * s->between / s->length : 0));
	}
}

double ca_estimate_saved(const struct ca_est *est)
{
	double saved = 0, inserted = 0;

	for (size_t i = 0; i < est->items && est->baseline != CA_BASELINE_NONE; i++) {
		const struct ca_est_item *item = &est->item[i];

		if (!item->speedup || !item->per_visit)
			continue;
		saved += item->visits * item->base - item->cost;
		inserted += item->delay;
	}
	return inserted > 0 ? fmin(fmax(saved / inserted, 0), 1) : 0;
}

/* Half of a code's time there saves half of that time, if no other thread is at work meanwhile; where more CPUs are, a
 * part of it may be done beside others. */
struct told {
	double part;   /* of the run, that is silent */
	double saved;  /* of the run, at 100 % */
	double either; /* may be so much more, or less, 95 % */
};

static struct told find_told(const struct ca_share *share, const struct ca_silence *s, double saved)
{
	double of = share_of(share, s), cpus = fmax(busy(s), 1), part = ca_estimate_silence_part(s, saved);
	double most = fmin(of * cpus, 1), least = fmax(of - (1 - 1 / cpus), 0);
	double lump = usual * fmax(share ? share->lump : 1, 1);
	double chance = hypot(sqrt(lump * of * (1 - of) / s->samples), ca_estimate_s_error * of);

	return (struct told){ .part = part,
			      .saved = part * (most + least) / 2,
			      .either = part * hypot((most - least) / 2, 1.96 * chance) };
}

static void join(double *effect, double *low, double *high, double p, double unit, const struct told *told)
{
	double rest = 1 - told->part, saved = unit * p * told->saved, either = unit * p * told->either,
	       all = rest * *effect + saved;

	*low = all - hypot(rest * (*effect - *low), either);
	*high = all + hypot(rest * (*high - *effect), either);
	*effect = all;
}

static void join_curve(struct ca_estimates *out, struct ca_curve *c, const struct told *told)
{
	for (int i = 0; i < CA_AT; i++)
		join(&c->at[i], &c->at_low[i], &c->at_high[i], ca_estimate_at[i] / 1e6, 100, told);
	join(&c->impact, &c->impact_low, &c->impact_high, 0.5, 100, told);
	join(&c->slope, &c->slope_low, &c->slope_high, 1, 1, told);
	c->max = (1 - told->part) * c->max + c->max_speedup * told->saved;
	c->idle *= 1 - told->part;
	c->sampled *= 1 - told->part;
	for (size_t i = c->first; i < c->first + c->cells; i++) {
		struct ca_cell *cell = &out->cell[i];

		if (cell->speedup)
			join(&cell->effect, &cell->low, &cell->high, cell->speedup / 1e6, 100, told);
	}
}

void ca_estimate_join_silence(const struct ca_observation *o, size_t n,
			      const struct ca_estimate_options *options, struct ca_estimates *out)
{
	out->silent = ca_estimate_silence_part(&options->silence, out->saved);
	for (size_t k = 0; k < out->curves; k++) {
		const struct ca_share *share = NULL;
		struct told told;

		for (size_t i = 0; i < options->shares && !share; i++)
			share = options->share[i].region == out->curve[k].region ? &options->share[i] : NULL;
		told = find_told(share, &options->silence, out->saved);
		join_curve(out, &out->curve[k], &told);
		for (size_t i = 0; i < n; i++)
			if (o[i].region == out->curve[k].region)
				out->single[i] =
					(1 - told.part) * out->single[i] + o[i].speedup / 1e4 * told.saved;
	}
}

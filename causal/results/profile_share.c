/* SPDX-License-Identifier: MIT */
/* What the samples of whole runs say of each region's share of the time. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "core/event.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of one that goes on it is not known what is to come. */
void ca_profile_find_sampled(struct ca_profile *profile)
{
	bool any = false;

	for (size_t i = 0; i < profile->runs; i++)
		any |= profile->run[i].ended && !profile->run[i].summary.left;
	for (size_t i = 0; i < profile->runs; i++) {
		struct ca_profile_run *run = &profile->run[i];

		run->sampled = run->ended && !(any && run->summary.left);
		profile->periods += run->sampled ? (double)run->summary.periods : 0;
		profile->squares += run->sampled ? (double)run->summary.squares : 0;
	}
}

/* In runs with another scope a region is not counted: neither do their periods count for it. It is in a scope if one run
 * with that has it. Of a person's 100 % the waits of other code are no part: who sleeps keeps nobody from a CPU, and a
 * main thread that sleeps until two others are done would be a third of all. */
bool ca_profile_find_periods(struct ca_profile *profile)
{
	size_t regions = profile->catalog.regions, *group = calloc(profile->runs + 1, sizeof *group);
	bool *has = calloc(profile->runs * regions + 1, sizeof *has), ok;

	profile->periods_of = calloc(regions + 1, sizeof *profile->periods_of);
	profile->whole_of = calloc(regions + 1, sizeof *profile->whole_of);
	for (size_t i = 0; i < profile->runs && group; i++)
		while (strcmp(profile->run[group[i]].scope, profile->run[i].scope) != 0)
			group[i]++;
	for (size_t i = 0; i < profile->sample_count && has && group; i++)
		has[group[profile->samples[i].run] * regions + profile->samples[i].region - 1] = true;
	for (size_t i = 0; i < profile->experiments && has && group; i++)
		if (profile->experiment[i].region)
			has[group[profile->experiment[i].run] * regions + profile->experiment[i].region - 1] =
				true;
	ok = has && group && profile->periods_of && profile->whole_of;
	for (size_t i = 0; i < profile->runs && ok; i++) {
		const struct ca_run_summary *run = &profile->run[i].summary;

		for (size_t r = 0; r < regions && profile->run[i].sampled; r++) {
			if (!has[group[i] * regions + r])
				continue;
			profile->periods_of[r] += (double)run->periods;
			profile->whole_of[r] += (double)run->periods - (double)run->waited;
		}
	}
	for (size_t i = 0; i < profile->sample_count && ok; i++)
		if (profile->run[profile->samples[i].run].sampled)
			profile->whole_of[profile->samples[i].region - 1] +=
				(double)profile->samples[i].waited;
	free(has);
	free(group);
	return ok;
}

static bool has_silence(const struct ca_profile_run *run)
{
	return run->summary.silence.length > 0 && !run->summary.silence.early;
}

struct ca_share *ca_profile_share(const struct ca_profile *profile, size_t *n)
{
	struct ca_share *share = calloc(profile->catalog.regions + 1, sizeof *share);
	double cpu = 0, runtime = 0, periods = 0, *seen = calloc(profile->catalog.regions + 1, sizeof *seen);

	for (size_t i = 0; i < profile->runs; i++)
		if (profile->run[i].sampled && profile->run[i].summary.cpu_ns) {
			cpu += (double)profile->run[i].summary.cpu_ns;
			runtime += (double)profile->run[i].summary.runtime;
			periods += (double)profile->run[i].summary.periods;
			/* lost: a period each, at least */
			for (unsigned d = 0; d < CA_DROP_COUNT; d++)
				periods += ca_event_is_loss(d) ? (double)profile->run[i].summary.drop[d] : 0;
		}
	*n = profile->catalog.regions;
	for (size_t i = 0; i < *n && share; i++)
		share[i] = (struct ca_share){
			.region = (uint32_t)i + 1,
			.lump = profile->periods > 0 ? profile->squares / profile->periods : 0,
			.rate = runtime > 0 ? periods / (runtime / 1e9) : 0,
			.overlap = cpu > runtime ? 1 - runtime / cpu : 0,
		};
	for (size_t i = 0; i < profile->sample_count && share; i++) {
		const struct ca_profile_samples *s = &profile->samples[i];
		struct ca_share *of = &share[s->region - 1];
		double length = profile->run[s->run].length;

		if (has_silence(&profile->run[s->run]))
			of->silent += (double)s->silent;
		if (!profile->run[s->run].sampled || !(profile->periods_of[s->region - 1] > 0))
			continue;
		of->periods += (double)s->count;
		of->share += (double)s->count / profile->periods_of[s->region - 1];
		if (length > 0 && seen) /* the mean of so many */
			of->late += (s->since / length - of->late) / ++seen[s->region - 1];
	}
	free(seen);
	return share;
}

struct ca_silence ca_profile_silence(const struct ca_profile *profile, const struct ca_profile_point *point)
{
	bool is_unit = point->kind == 't' && !point->whole && !point->beside;
	struct ca_silence all = { 0 };

	for (size_t i = 0; i < profile->runs && is_unit; i++)
		if (has_silence(&profile->run[i]))
			ca_estimate_silence_add(&all, &profile->run[i].summary.silence);
	return all;
}

/* Of runs of which only that is known. cpu: s, of whole runs; sampled: without waits. Empty where others are known. */
static struct ca_silence find_early(const struct ca_profile *profile)
{
	struct ca_silence all = { 0 };

	for (size_t i = 0; i < profile->runs; i++) {
		const struct ca_run_summary *run = &profile->run[i].summary;

		if (has_silence(&profile->run[i]))
			return (struct ca_silence){ 0 };
		if (!run->silence.early)
			continue;
		ca_estimate_silence_add(&all, &run->silence);
		all.cpu += (double)run->cpu_ns / 1e9 - run->silence.cpu;
		all.sampled -= (double)run->waited;
	}
	return all;
}

/* Code that is as much at work later on has experiments that tell of it. */
static void judge_early(struct ca_profile_early *of, const struct ca_silence *all, double early, double rest)
{
	static const double rare = 0.25, sure = 1.96;
	double expected = rest * all->samples / (all->sampled - all->samples), excess = early - expected;

	if (!(excess > sure * sqrt(early + expected)) || expected > rare * early)
		return;
	of->seconds = excess / all->sampled * all->cpu;
	of->then = early / all->samples;
}

bool ca_profile_find_early(struct ca_profile *profile)
{
	struct ca_silence all = find_early(profile);
	size_t n = profile->catalog.regions;
	double *sum = calloc(2 * n + 1, sizeof *sum), *early = sum, *rest = sum ? sum + n : NULL;

	profile->early = calloc(n + 1, sizeof *profile->early);
	profile->before = all.before + all.between;
	profile->seen = all.length;
	for (size_t i = 0; i < profile->sample_count && sum; i++) {
		const struct ca_profile_samples *s = &profile->samples[i];

		if (!profile->run[s->run].summary.silence.early)
			continue;
		early[s->region - 1] += (double)s->silent;
		rest[s->region - 1] += (double)(s->count - s->waited) - (double)s->silent;
	}
	for (size_t r = 0; r < n && sum && profile->early; r++)
		if (all.samples > 0 && all.sampled > all.samples)
			judge_early(&profile->early[r], &all, early[r], rest[r]);
	free(sum);
	return sum && profile->early;
}

bool ca_profile_is_early(const struct ca_profile *profile, uint32_t region)
{
	static const double much = 0.06; /* half of it is what "does not matter" leaves open, 3 points */

	return profile->early && profile->early[region - 1].seconds > much * profile->seen;
}

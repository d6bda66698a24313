/* SPDX-License-Identifier: MIT */
/* The point search; see point_search.h.
 *
 *   GATHERING  stacks, until there are enough of them
 *   SURVEYING  each lot of candidates is counted for a moment
 *   COUNTING   those that are left, in windows
 *   DONE */
#include "causal/points/point_search.h"
#include "causal/points/point_stacks.h"
#include "causal/points/requested.h"
#include "core/clock.h"
#include "core/session.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MS = 1000000,
	STACKS_WANTED = 200,
	STACKS_LEAST = 30,
	GATHER = 400,        /* ms, if the least are there then, of running threads ... */
	GATHER_MOST = 2000,  /* ... or then of waiting ones ... */
	GATHER_WORK = 10000, /* ... if it is known that others work, and seldom where samples are taken */
	SURVEY = 120,        /* ms a lot */
	WINDOW = 50,         /* ms */
	WINDOWS = 30,
	FIRST_ROW = CA_MAX_POINTS - CA_CANDIDATES,
	TOO_HOT = 1000000,  /* visits a second: they slow the program while they are counted ... */
	HOTTEST = 10000000, /* ... and so they are even if there is nothing else */
	RAREST_SEEN = 8     /* ... below which a survey sees nothing */
};

enum phase { GATHERING, SURVEYING, COUNTING, DONE };

struct ca_point_search {
	struct ca_session *session;
	struct ca_objects *objects;
	const struct ca_scope *scope;
	enum phase phase;
	bool placing, works;
	uint64_t since; /* ns; of the phase, the lot or the window */
	struct ca_point_stacks samples;
	struct ca_point_stacks_found found[CA_POINT_STACKS_FOUND];
	double rate[CA_POINT_STACKS_FOUND]; /* as surveyed */
	size_t founds, used;
	size_t lot;                  /* first of the lot that is being surveyed */
	size_t tried[CA_CANDIDATES]; /* numbers in found[] of those that are placed */
	size_t tries;
	uint64_t before[CA_CANDIDATES], cpu_before;
	struct ca_site site[CA_MAX_SITES];
	size_t sites;
	struct ca_candidate candidate[CA_CANDIDATES];
	struct ca_candidates set;
	const char *reason;
	char text[300]; /* of a reason that is made here */
};

struct ca_point_search *ca_point_search_new(struct ca_session *session, struct ca_objects *objects,
					    const struct ca_scope *scope, bool works)
{
	struct ca_point_search *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->session = session;
	s->objects = objects;
	s->scope = scope;
	s->works = works;
	s->set.candidate = s->candidate;
	s->reason = "the run was too short";
	return s;
}

void ca_point_search_free(struct ca_point_search *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->founds; i++)
		ca_point_name_fini(&s->found[i].name);
	free(s->samples.frame);
	free(s);
}

void ca_point_search_sample(struct ca_point_search *s, const ca_place *frame, unsigned frames, bool waiting)
{
	if (s->phase == GATHERING)
		ca_point_stacks_add(&s->samples, frame, frames, 1, waiting);
}

/* ---- sites -------------------------------------------------------------------------------*/
static void plan(struct ca_point_search *s)
{
	uint32_t used = atomic_load(&s->session->modules_used);
	const struct ca_point_name *name[CA_CANDIDATES];
	struct ca_requested *trial;

	for (size_t i = 0; i < s->tries; i++)
		name[i] = &s->found[s->tried[i]].name;
	s->sites = 0;
	trial = ca_requested_try(name, s->tries, s->scope, s->session, FIRST_ROW);
	if (!trial)
		return;
	for (uint32_t m = 1; m < used && m < CA_MAX_MODULES; m++) {
		const struct ca_index *index = ca_objects_index(s->objects, m);

		if (index && (s->session->module[m].main || ca_objects_in_scope(s->objects, m)) &&
		    ca_requested_is_named(trial, index, m))
			s->sites += ca_requested_sites(trial, index, ca_objects_text(s->objects, m), m,
						       s->site + s->sites, CA_MAX_SITES - s->sites);
	}
	ca_requested_free(trial);
}

const struct ca_site *ca_point_search_sites(const struct ca_point_search *s, size_t *n)
{
	*n = s->sites;
	return s->site;
}

static void read_counts(const struct ca_point_search *s, uint64_t *count)
{
	uint32_t slots = atomic_load(&s->session->slots_used);

	memset(count, 0, CA_CANDIDATES * sizeof *count);
	for (uint32_t i = 0; i < slots && i < CA_MAX_THREADS; i++)
		for (size_t k = 0; k < s->tries; k++)
			count[k] += atomic_load_explicit(&s->session->slot[i].count[FIRST_ROW + k],
							 memory_order_relaxed);
}

/* CPU time of all processes, ns. */
static uint64_t read_cpu(const struct ca_point_search *s)
{
	uint32_t used = atomic_load(&s->session->processes_used);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < used && i < CA_MAX_PROCESSES; i++) {
		const struct ca_process *p = &s->session->process[i];
		clockid_t clock;

		if (atomic_load(&p->state) == CA_SLOT_LIVE && !clock_getcpuclockid((pid_t)p->pid, &clock))
			sum += ca_clock_read(clock);
	}
	return sum;
}

void ca_point_search_placed(struct ca_point_search *s, uint64_t now)
{
	s->placing = false;
	s->since = now;
	s->cpu_before = read_cpu(s);
	read_counts(s, s->before);
}

/* Nothing was found: because the work is done in a library? */
static const char *name_elsewhere(struct ca_point_search *s)
{
	size_t in[CA_MAX_MODULES] = { 0 }, most = 0;
	const char *path, *slash;
	char pattern[80];

	for (size_t i = 0; i < s->samples.n; i++) {
		uint32_t module = CA_PLACE_MODULE(s->samples.frame[s->samples.sample[i].first]);

		if (!s->samples.sample[i].waiting && module < CA_MAX_MODULES)
			in[module]++;
	}
	for (size_t m = 1; m < CA_MAX_MODULES; m++)
		most = in[m] > in[most] ? m : most;
	if (2 * in[most] < s->samples.running || ca_objects_in_scope(s->objects, (uint32_t)most) || !in[most])
		return "no function in scope is on enough of the samples";
	path = s->session->module[most].path;
	slash = strrchr(path, '/');
	ca_scope_pattern(path, pattern, sizeof pattern);
	if (ca_scope_use_of(s->scope, path) == CA_SCOPE_EXCLUDED)
		snprintf(s->text, sizeof s->text, "most samples are in %.80s, which cannot be selected",
			 slash ? slash + 1 : path);
	else
		snprintf(s->text, sizeof s->text,
			 "most samples are in %.80s, which is not in scope: -B 'MAIN;%s' adds it",
			 slash ? slash + 1 : path, pattern);
	return s->text;
}

/* ---- phases ------------------------------------------------------------------------------*/
static enum ca_point_search_wish place(struct ca_point_search *s, enum phase phase)
{
	s->phase = phase;
	s->placing = true;
	plan(s);
	return CA_POINT_SEARCH_PLACE;
}

static enum ca_point_search_wish done(struct ca_point_search *s, const char *reason)
{
	s->phase = DONE;
	s->reason = reason;
	return CA_POINT_SEARCH_DONE;
}

static enum ca_point_search_wish survey(struct ca_point_search *s)
{
	s->tries = 0;
	for (size_t i = s->lot; i < s->founds && s->tries < CA_CANDIDATES; i++)
		s->tried[s->tries++] = i;
	return place(s, SURVEYING);
}

static enum ca_point_search_wish start_counting(struct ca_point_search *s)
{
	memset(s->candidate, 0, sizeof s->candidate);
	s->set.n = s->tries;
	s->set.samples = s->used;
	for (size_t i = 0; i < s->tries; i++) {
		const struct ca_point_stacks_found *found = &s->found[s->tried[i]];

		s->candidate[i].name = found->name.text;
		s->candidate[i].function = found->function;
		s->candidate[i].depth = found->depth;
		memcpy(s->candidate[i].inside, found->inside, sizeof found->inside);
	}
	return place(s, COUNTING);
}

static enum ca_point_search_wish step_gathering(struct ca_point_search *s, uint64_t now)
{
	const uint64_t most = (uint64_t)(s->works ? GATHER_WORK : GATHER_MOST) * MS;

	if (!s->since)
		s->since = now;
	if (s->samples.running < STACKS_WANTED &&
	    (now - s->since < (uint64_t)GATHER * MS || s->samples.n < STACKS_LEAST ||
	     (s->samples.running < STACKS_LEAST && now - s->since < most))) {
		if (now - s->since > most)
			s->reason = "too few samples of code in scope";
		return CA_POINT_SEARCH_WAIT;
	}
	s->founds = ca_point_stacks_find(&s->samples, s->session, s->objects, s->found, &s->used);
	if (!s->founds)
		return done(s, name_elsewhere(s));
	s->reason = "the run was too short";
	return survey(s);
}

static void pick_between(struct ca_point_search *s, double least, double most)
{
	for (size_t i = 0; i < s->founds && s->tries < CA_CANDIDATES; i++)
		if (s->rate[i] >= least && s->rate[i] < most)
			s->tried[s->tries++] = i;
}

/* Those with most samples of what is neither too hot nor too rare; of what is too rare to tell by
 * now, the innermost. */
static void pick(struct ca_point_search *s)
{
	s->tries = 0;
	pick_between(s, RAREST_SEEN, TOO_HOT);
	if (!s->tries)
		pick_between(s, TOO_HOT, HOTTEST);
	for (size_t i = s->founds; i-- > 0 && s->tries < CA_CANDIDATES;)
		if (s->rate[i] < RAREST_SEEN)
			s->tried[s->tries++] = i;
}

static enum ca_point_search_wish step_surveying(struct ca_point_search *s, uint64_t now)
{
	uint64_t count[CA_CANDIDATES];

	if (now - s->since < (uint64_t)SURVEY * MS)
		return CA_POINT_SEARCH_WAIT;
	read_counts(s, count);
	for (size_t k = 0; k < s->tries; k++)
		s->rate[s->tried[k]] = (double)(count[k] - s->before[k]) * 1e9 / (double)(now - s->since);
	s->lot += s->tries;
	if (s->lot < s->founds)
		return survey(s);
	pick(s);
	return start_counting(s);
}

static void close_window(struct ca_point_search *s, uint64_t now)
{
	uint64_t count[CA_CANDIDATES], cpu = read_cpu(s);
	unsigned w = s->set.windows++;

	/* less than before: a process has ended */
	s->set.cpu[w] = cpu > s->cpu_before ? (double)(cpu - s->cpu_before) / 1e9 : 0;
	s->cpu_before = cpu;
	read_counts(s, count);
	for (size_t k = 0; k < s->tries; k++) {
		s->candidate[k].count[w] = (uint32_t)(count[k] - s->before[k]);
		s->before[k] = count[k];
	}
	s->set.seconds[w] = (double)(now - s->since) / 1e9;
	s->since = now;
}

enum ca_point_search_wish ca_point_search_step(struct ca_point_search *s, uint64_t now)
{
	if (s->placing)
		return CA_POINT_SEARCH_WAIT;
	switch (s->phase) {
	case GATHERING:
		return step_gathering(s, now);
	case SURVEYING:
		return step_surveying(s, now);
	case COUNTING:
		if (now - s->since >= (uint64_t)WINDOW * MS)
			close_window(s, now);
		return s->set.windows < WINDOWS ? CA_POINT_SEARCH_WAIT
						: done(s, "no function or loop is passed evenly");
	case DONE:
		break;
	}
	return CA_POINT_SEARCH_DONE;
}

size_t ca_point_search_choose(struct ca_point_search *s, const struct ca_candidates **candidates,
			      size_t chosen[CA_CANDIDATES_CHOSEN])
{
	*candidates = &s->set;
	return ca_candidates_judge(&s->set, chosen);
}

bool ca_point_search_gathers(const struct ca_point_search *s)
{
	return s->phase == GATHERING;
}

bool ca_point_search_saw_waits(const struct ca_point_search *s)
{
	return s->founds && ca_point_stacks_are_waits(&s->samples);
}

void ca_point_search_reject(struct ca_point_search *s, size_t candidate)
{
	memset(s->candidate[candidate].count, 0, sizeof s->candidate[candidate].count);
}

struct ca_point_name ca_point_search_take(struct ca_point_search *s, size_t candidate)
{
	struct ca_point_name *from = &s->found[s->tried[candidate]].name, name = *from;

	memset(from, 0, sizeof *from);
	return name;
}

const char *ca_point_search_reason(const struct ca_point_search *s)
{
	return s->reason;
}

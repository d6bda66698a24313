/* SPDX-License-Identifier: MIT */
/* A chosen progress point stands for the work of whole runs. How much of a run passes before its first visit, after
 * its last one, and in pauses between, and what is sampled meanwhile? Where the user names the unit of work its rate is
 * what is asked for, and a server that waits for its load has no such runs. Of a run that is left before its end, or
 * whose point is found in it, what it did before its experiments is remembered as well. Driver's process, one thread. */
#include "causal/conductor/conductor_points_parts.h"
#include "causal/conductor/sweep.h"
#include "core/point.h"
#include <math.h>
#include <string.h>

enum {
	MS = 1000000,
	EVERY = 10 * MS, /* ns between two looks */
	LEAST = 50 * MS, /* ns of a pause ... */
	VISITS = 20      /* ... and of how many visits it has the room */
};

/* The best of those in use; NULL: none of ours was known before the run. */
static const struct ca_choice_point *find_choice(const struct ca_conductor *c)
{
	const struct ca_point_choice *p = c->points;

	for (size_t i = 0; p && p->known && ca_conductor_points_are_ours(c) && i < p->choice.points; i++)
		if (!p->choice.point[i].dropped)
			return &p->choice.point[i];
	return NULL;
}

void ca_conductor_silence_start(struct ca_conductor *c)
{
	const struct ca_choice_point *point = find_choice(c);
	struct ca_silence_watch *w = &c->silence;
	double room = point && point->rate > 0 ? VISITS / point->rate * 1e9 : LEAST;

	w->samples.size = sizeof(uint64_t);
	w->inside.size = sizeof(double);
	w->rate = point ? point->rate : 0;
	w->least = room > LEAST ? room : LEAST;
	w->wanted = c->opt.sweep && !c->set->end_to_end && ca_windows_are_all(c->set) &&
		    !c->set->count_only && !*c->set->load && !ca_conductor_is_what_if(c);
	w->point = point && w->wanted ? point->name : NULL;
}

/* From here on nothing may be passed for a while. at: ns of virtual time. */
static void remember(struct ca_conductor *c, uint64_t at)
{
	struct ca_silence_watch *w = &c->silence;

	w->since = at;
	w->work_then = w->work;
	w->periods = c->sum.periods - c->sum.waited;
	for (uint32_t id = 1; id <= c->catalog.regions; id++) {
		uint64_t *samples = ca_vec_reach(&w->samples, id);

		if (samples)
			*samples = ca_regions_at_work(c->regions, id);
	}
}

/* It went on until then, if it was one. counted: ns of it that experiments with visits before and after it have. */
static void end(struct ca_conductor *c, uint64_t at, double counted, double *sum)
{
	struct ca_silence_watch *w = &c->silence;
	double all = at > w->since ? (double)(at - w->since) : 0, part = (all - counted) / all;

	if (all < w->least || part <= 0)
		return;
	*sum += part * all / 1e9;
	w->sum.cpu += w->work > w->work_then ? part * (double)(w->work - w->work_then) / 1e9 : 0;
	w->sum.samples += part * (double)(c->sum.periods - c->sum.waited - w->periods);
	for (uint32_t id = 1; id <= c->catalog.regions; id++) {
		double *inside = ca_vec_reach(&w->inside, id);
		const uint64_t *then = ca_vec_reach(&w->samples, id);

		if (inside && then)
			*inside += part * (double)(ca_regions_at_work(c->regions, id) - *then);
	}
}

static uint64_t virtual_time(const struct ca_conductor *c, uint64_t now)
{
	uint64_t lag = ca_session_lag(c->session);

	return now - c->started > lag ? now - c->started - lag : 0;
}

static void look_at_work(struct ca_conductor *c)
{
	struct ca_work work = ca_conductor_whole_work(c);

	if (work.processes &&
	    (int64_t)(work.ns - c->silence.work) > 0) /* those that are gone are not in it */
		c->silence.work = work.ns;
}

static void look(struct ca_conductor *c, uint64_t now)
{
	struct ca_silence_watch *w = &c->silence;
	struct ca_visits_now visits;
	uint64_t at;

	look_at_work(c);
	ca_visits_read(c->session, &visits);
	for (unsigned p = 0; p < visits.points; p++) {
		if (strcmp(c->session->point[p].name, w->point) != 0 || visits.total[p] == w->visits)
			continue;
		at = visits.last[p] && !visits.timeless[p] ? visits.last[p] - c->started
							   : virtual_time(c, now);
		if (w->visits)
			end(c, at, c->length + c->warm_up, &w->sum.between);
		else
			end(c, at, 0, &w->sum.before);
		w->visits = visits.total[p];
		remember(c, at);
	}
}

/* The point was found in this run, and all that came before may have been anything. */
static void end_search(struct ca_conductor *c, uint64_t now)
{
	look_at_work(c);
	end(c, virtual_time(c, now), 0, &c->silence.sum.before);
	c->silence.sum.early = true;
}

void ca_conductor_silence_step(struct ca_conductor *c, uint64_t now)
{
	struct ca_silence_watch *w = &c->silence;

	if (w->wanted && !w->point && !w->sum.early && ca_conductor_points_are_ours(c) &&
	    c->points->choice.points)
		end_search(c, now);
	if (!w->point || !ca_pace_begin(&w->pace, now, EVERY))
		return;
	look(c, now);
	ca_pace_end(&w->pace);
}

void ca_conductor_silence_end(struct ca_conductor *c, uint64_t now, bool left)
{
	struct ca_silence_watch *w = &c->silence;
	uint64_t length = virtual_time(c, now);

	if (w->point)
		look(c, now);
	if (!w->visits && !w->sum.early)
		return;
	if (left)
		w->sum.early = true;
	else if (w->point)
		end(c, length, 0, &w->sum.after);
	w->sum.length = (double)length / 1e9;
	w->sum.inserted = (double)ca_session_lag(c->session) / 1e9;
	w->sum.sampled = (double)c->sum.periods;
	c->sum.silence = w->sum;
}

uint64_t ca_conductor_silence_samples(const struct ca_conductor *c, uint32_t region)
{
	const struct ca_vec *inside = &c->silence.inside;

	return c->sum.silence.length > 0 && region < inside->n
		       ? (uint64_t)llround(((const double *)inside->at)[region])
		       : 0;
}

void ca_conductor_silence_free(struct ca_conductor *c)
{
	ca_vec_free(&c->silence.samples);
	ca_vec_free(&c->silence.inside);
}

/* SPDX-License-Identifier: MIT */
/* How long experiments are: as long as visits take, from what was seen before. What an experiment sees
 * itself has no part in its length, which would favour some outcomes. Driver's process, one thread. */
#include "causal/conductor/conductor_state.h"

enum {
	WANTED_VISITS = 40, /* of the busiest point in an experiment, at least ... */
	WANTED_TIMED = 10,  /* ... if it is known when they were */
	WARM_VISITS = 2,    /* in the warm-up: the rate is measured from the last of them on */
	WARM_ALONE = 10, /* ms of it, at most, where one thread does all: there is no queue to be drained */
	LONGEST = 32,    /* times the shortest experiment */
	GROWTH = 4,      /* times the one before: that may have met a pause */
	TOO_LONG = 3,    /* times what is wanted */
	AHEAD = 10       /* s for which a rate is taken to hold */
};

static double limit(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

/* So many visits took so long: how long is the next experiment to be, and its warm-up? */
static void plan_length(struct ca_conductor *c, uint64_t visits, uint64_t ns, bool timed)
{
	double shortest = c->set->experiment_min * 1e9, warm_up = c->set->warm_up * 1e6;
	double period = (double)ns / (visits ? (double)visits : 0.5);
	double wanted = limit((timed ? WANTED_TIMED : WANTED_VISITS) * period, shortest, LONGEST * shortest);

	/* down only where it is far too long: a few visits more or less are chance */
	if (wanted > c->length || TOO_LONG * wanted < c->length)
		c->length = limit(wanted, 0, GROWTH * c->length);
	c->warm_up = limit(limit(WARM_VISITS * period, warm_up, LONGEST * warm_up), 0,
			   GROWTH * (c->warm_up < warm_up ? warm_up : c->warm_up));
}

/* Time can be counted always: there are no visits to wait for. */
static void plan_alone(struct ca_conductor *c)
{
	if (c->set->origin[CA_SETTING_WARM_UP] == CA_ORIGIN_DEFAULT)
		c->warm_up = limit(c->set->warm_up, 0, WARM_ALONE) * 1e6;
}

void ca_conductor_length_init(struct ca_conductor *c)
{
	c->length = c->set->experiment_min * 1e9;
	c->warm_up = c->set->warm_up * 1e6;
}

static bool has_begun_late(const struct ca_conductor *c, uint64_t visits, uint64_t elapsed)
{
	double usual = c->silence.rate * (double)elapsed / 1e9;

	return usual > WANTED_TIMED && 2 * (double)visits < usual;
}

void ca_conductor_length_first(struct ca_conductor *c, uint64_t now)
{
	struct ca_visits_now visits;
	uint64_t most = 0, elapsed = now - ca_conductor_points_since(c);
	bool timed = false;

	if (ca_conductor_points_are_needless(c)) {
		plan_alone(c);
		return;
	}
	ca_visits_read(c->session, &visits);
	for (unsigned p = 0; p < visits.points; p++)
		if (visits.total[p] > most) {
			most = visits.total[p];
			timed = !visits.timeless[p] && visits.last[p];
		}
	/* a program may do other things before its first visit */
	if (has_begun_late(c, most, elapsed))
		plan_length(c, (uint64_t)(AHEAD * c->silence.rate), AHEAD * CA_NS_PER_S, timed);
	else
		plan_length(c, most, elapsed, timed);
}

void ca_conductor_length_adapt(struct ca_conductor *c)
{
	uint64_t most = 0, elapsed = c->e.record.end - c->e.record.start;
	bool timed = false;

	if (ca_conductor_points_are_needless(c)) {
		plan_alone(c);
		return;
	}
	if (!c->e.record.visit_count && ca_conductor_points_are_open(c))
		return; /* there is no point yet */
	for (size_t i = 0; i < c->e.record.visit_count; i++)
		if (c->e.visits[i].delta > most) {
			most = c->e.visits[i].delta;
			timed = c->e.visits[i].span > 0;
		}
	plan_length(c, most, elapsed, timed);
}

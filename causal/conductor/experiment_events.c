/* Experiments as events; see experiment_events.h. */
#include "causal/conductor/experiment_events.h"
#include "core/point.h"
#include <stdlib.h>
#include <string.h>

enum { FIXED = 10, PER_POINT = 3 };

struct group {
	struct ca_event event[FIXED + PER_POINT * (CA_MAX_POINTS + 1)];
	size_t n;
};

static void add(struct group *g, enum ca_event_kind kind, enum ca_key key, uint64_t time, uint64_t value,
		uint32_t flags)
{
	g->event[g->n++] = (struct ca_event){ .time = time, .kind = (uint16_t)kind, .key = key,
					      .value = value, .flags = (uint16_t)flags };
}

void ca_experiment_emit(struct ca_sinks *sinks, const struct ca_experiment_record *r)
{
	static struct group g; /* large; one thread */
	const struct ca_source conductor = { 0, 0 };

	g.n = 0;
	add(&g, CA_BURST_BEGIN, CA_KEY_EXPERIMENT, r->start, r->index, 0);
	add(&g, CA_POINT, CA_KEY_SELECTION, r->start, r->region, 0);
	add(&g, CA_POINT, CA_KEY_SPEEDUP, r->start, r->speedup, 0);
	add(&g, CA_POINT, CA_KEY_S_TIME, r->end, r->s_time, 0);
	add(&g, CA_POINT, CA_KEY_INSERTED, r->end, r->delay, 0);
	add(&g, CA_POINT, CA_KEY_PAID, r->end, r->paid, 0);
	add(&g, CA_POINT, CA_KEY_OWED, r->end, r->owed, 0);
	add(&g, CA_POINT, CA_KEY_ENTRIES, r->end, r->hits, 0);
	add(&g, CA_POINT, CA_KEY_EXACT, r->end, r->exact, 0);
	for (size_t i = 0; i < r->visit_count && i <= CA_MAX_POINTS; i++) {
		const struct ca_visits *v = &r->visits[i];

		add(&g, CA_POINT, CA_KEY_PROGRESS, r->end, CA_OF_POINT(v->point, v->delta), 0);
		if (!v->arrivals)
			continue;
		add(&g, CA_POINT, CA_KEY_ARRIVALS, r->end, CA_OF_POINT(v->point, v->arrivals), 0);
		add(&g, CA_POINT, CA_KEY_IN_FLIGHT, r->end,
		    CA_OF_POINT(v->point, (uint64_t)(v->in_flight * 1e6 + 0.5)), 0);
	}
	add(&g, CA_BURST_END, CA_KEY_EXPERIMENT, r->end, r->index, r->flags);
	ca_sinks_events(sinks, &conductor, g.event, g.n);
}

/* ---- the results sink --------------------------------------------------------------------*/
struct state {
	struct ca_results *results;
	struct ca_experiment_record record; /* being put together */
	struct ca_visits visits[CA_MAX_POINTS + 1];
	struct ca_err err;
};

void *ca_results_sink_new(struct ca_results *results)
{
	struct state *s = calloc(1, sizeof *s);

	if (s)
		s->results = results;
	return s;
}

enum ca_status ca_results_sink_error(void *state, struct ca_err *err)
{
	struct state *s = state;

	*err = s->err;
	s->err.status = CA_OK;
	return err->status;
}

/* The entry of a point; PROGRESS comes first and makes it. */
static struct ca_visits *visits_of(struct state *s, uint32_t point)
{
	for (size_t i = 0; i < s->record.visit_count; i++)
		if (s->visits[i].point == point)
			return &s->visits[i];
	if (s->record.visit_count > CA_MAX_POINTS)
		return NULL;
	s->visits[s->record.visit_count] = (struct ca_visits){ .point = point };
	return &s->visits[s->record.visit_count++];
}

static void take_visits(struct state *s, const struct ca_event *e)
{
	struct ca_visits *v = visits_of(s, CA_POINT_OF(e->value));

	if (!v)
		return;
	if (e->key == CA_KEY_PROGRESS)
		v->delta = CA_NUMBER_OF(e->value);
	else if (e->key == CA_KEY_ARRIVALS)
		v->arrivals = CA_NUMBER_OF(e->value);
	else
		v->in_flight = (double)CA_NUMBER_OF(e->value) / 1e6;
}

static void finish(struct state *s, const struct ca_event *e)
{
	struct ca_err err;

	s->record.end = e->time;
	s->record.flags = e->flags;
	s->record.visits = s->visits;
	if (s->record.index == e->value && ca_results_experiment(s->results, &s->record, &err) != CA_OK &&
	    s->err.status == CA_OK)
		s->err = err;
	s->record.index = 0;
}

static void take(struct state *s, const struct ca_event *e)
{
	struct ca_experiment_record *r = &s->record;

	switch (e->key) {
	case CA_KEY_EXPERIMENT:
		if (e->kind == CA_BURST_BEGIN)
			*r = (struct ca_experiment_record){ .index = (uint32_t)e->value, .start = e->time };
		else
			finish(s, e);
		break;
	case CA_KEY_SELECTION:
		r->region = (uint32_t)e->value;
		break;
	case CA_KEY_SPEEDUP:
		r->speedup = (uint32_t)e->value;
		break;
	case CA_KEY_S_TIME:
		r->s_time = e->value;
		break;
	case CA_KEY_INSERTED:
		r->delay = e->value;
		break;
	case CA_KEY_PAID:
		r->paid = e->value;
		break;
	case CA_KEY_OWED:
		r->owed = e->value;
		break;
	case CA_KEY_ENTRIES:
		r->hits = e->value;
		break;
	case CA_KEY_EXACT:
		r->exact = e->value;
		break;
	case CA_KEY_PROGRESS:
	case CA_KEY_ARRIVALS:
	case CA_KEY_IN_FLIGHT:
		take_visits(s, e);
		break;
	default:
		break;
	}
}

/* Samples, waits and delays of the program's threads pass by. */
static void events(void *state, const struct ca_source *from, const struct ca_event *event, size_t n)
{
	for (size_t i = 0; i < n && !from->process; i++)
		take(state, &event[i]);
}

const struct ca_sink_ops ca_sink_results = {
	.name = "results",
	.description = "the run file; always open",
	.events = events,
	.close = free,
};

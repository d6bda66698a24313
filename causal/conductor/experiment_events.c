/* SPDX-License-Identifier: MIT */
/* Experiments as events; see experiment_events.h. */
#include "causal/conductor/experiment_events.h"
#include "core/dict.h"
#include "core/point.h"

enum { FIXED = 10, PER_POINT = 3 };

struct group {
	struct ca_event event[FIXED + PER_POINT * (CA_MAX_POINTS + 1)];
	size_t n;
};

static struct group group; /* large; one thread */

static void add(struct group *g, enum ca_event_kind kind, enum ca_key key, uint64_t time, uint64_t value,
		uint32_t flags)
{
	g->event[g->n++] = (struct ca_event){
		.time = time, .kind = (uint16_t)kind, .key = key, .value = value, .flags = (uint16_t)flags
	};
}

static void emit(struct ca_sinks *sinks, const struct ca_dict *dict, const struct group *g)
{
	const struct ca_source conductor = { 0 };
	size_t n = 0;
	static struct ca_event wanted[sizeof g->event / sizeof *g->event];

	for (size_t i = 0; i < g->n; i++) {
		const struct ca_dict_key *key = dict ? ca_dict_get(dict, g->event[i].key) : NULL;

		if (!dict || (key && key->enabled))
			wanted[n++] = g->event[i];
	}
	if (n)
		ca_sink_events(sinks, &conductor, wanted, n);
}

void ca_experiment_events_begin(struct ca_sinks *sinks, const struct ca_dict *dict,
				const struct ca_experiment_record *r)
{
	struct group *g = &group;

	g->n = 0;
	add(g, CA_BURST_BEGIN, CA_KEY_EXPERIMENT, r->start, r->index, 0);
	add(g, CA_POINT, CA_KEY_SELECTION, r->start, r->region, 0);
	add(g, CA_POINT, CA_KEY_SPEEDUP, r->start, r->speedup, 0);
	emit(sinks, dict, g);
}

void ca_experiment_events_end(struct ca_sinks *sinks, const struct ca_dict *dict,
			      const struct ca_experiment_record *r)
{
	struct group *g = &group;

	g->n = 0;
	add(g, CA_POINT, CA_KEY_S_TIME, r->end, r->s_time, 0);
	add(g, CA_POINT, CA_KEY_INSERTED, r->end, r->delay, 0);
	add(g, CA_POINT, CA_KEY_PAID, r->end, r->paid, 0);
	add(g, CA_POINT, CA_KEY_OWED, r->end, r->owed, 0);
	add(g, CA_POINT, CA_KEY_ENTRIES, r->end, r->hits, 0);
	add(g, CA_POINT, CA_KEY_EXACT, r->end, r->exact, 0);
	for (size_t i = 0; i < r->visit_count && i <= CA_MAX_POINTS; i++) {
		const struct ca_visits *v = &r->visits[i];

		add(g, CA_POINT, CA_KEY_PROGRESS, r->end, CA_OF_POINT(v->point, v->delta), 0);
		if (!v->arrivals)
			continue;
		add(g, CA_POINT, CA_KEY_ARRIVALS, r->end, CA_OF_POINT(v->point, v->arrivals), 0);
		add(g, CA_POINT, CA_KEY_IN_FLIGHT, r->end,
		    CA_OF_POINT(v->point, (uint64_t)(v->in_flight * 1e6 + 0.5)), 0);
	}
	add(g, CA_BURST_END, CA_KEY_EXPERIMENT, r->end, r->index, r->flags);
	emit(sinks, dict, g);
}

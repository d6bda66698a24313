/* SPDX-License-Identifier: MIT */
/* Visits of progress points; see visits.h. */
#include "causal/points/visits.h"
#include "core/session.h"
#include "core/slot.h"
#include <string.h>
#include <unistd.h>

enum { RETRIES = 200, FEW = 8 };

static bool live(const struct ca_progress_point *p)
{
	/* acquire: pairs with the runtime's release once kind and name are there */
	return atomic_load_explicit(&p->state, memory_order_acquire) == CA_SLOT_LIVE;
}

/* A visit's count and its time belong together: read between two equal, even numbers. A thread
 * that is preempted in between keeps us waiting for a moment, not for ever. */
static void read_slot(const struct ca_slot *slot, struct ca_visits_now *now)
{
	uint64_t count[CA_MAX_POINTS], stamp[CA_MAX_POINTS], last[CA_MAX_POINTS], before;

	for (int i = 0; i < RETRIES; i++) {
		/* acquire: pairs with the release of the second increment in probe.c */
		before = atomic_load_explicit(&slot->stamping, memory_order_acquire);
		for (unsigned p = 0; p < now->points; p++) {
			count[p] = atomic_load_explicit(&slot->count[p], memory_order_relaxed);
			stamp[p] = atomic_load_explicit(&slot->stamp[p], memory_order_relaxed);
			last[p] = atomic_load_explicit(&slot->last[p], memory_order_relaxed);
		}
		atomic_thread_fence(memory_order_acquire);
		if (!(before & 1) && atomic_load_explicit(&slot->stamping, memory_order_relaxed) == before)
			break;
		usleep(20);
	}
	for (unsigned p = 0; p < now->points; p++) {
		now->total[p] += count[p];
		now->stamp[p] += stamp[p];
		if (atomic_load_explicit(&slot->hot[p], memory_order_relaxed))
			now->timeless[p] += count[p];
		else if (last[p] > now->last[p])
			now->last[p] = last[p];
	}
}

void ca_visits_read(const struct ca_session *s, struct ca_visits_now *now)
{
	uint32_t points = atomic_load(&s->points_used), slots = atomic_load(&s->slots_used);

	memset(now, 0, sizeof *now);
	now->points = points < CA_MAX_POINTS ? points : CA_MAX_POINTS;
	for (unsigned p = 0; p < now->points; p++)
		now->total[p] = now->timeless[p] =
			atomic_load_explicit(&s->point[p].shared, memory_order_relaxed);
	for (uint32_t i = 0; i < slots && i < CA_MAX_THREADS; i++)
		read_slot(&s->slot[i], now);
}

uint64_t ca_visits_sum(const struct ca_visits_now *now)
{
	uint64_t sum = 0;

	for (unsigned p = 0; p < now->points; p++)
		sum += now->total[p];
	return sum;
}

/* The end point of a begin point, or -1. */
static int end_of(const struct ca_session *s, unsigned begin, unsigned points)
{
	for (unsigned p = 0; p < points; p++)
		if (live(&s->point[p]) && s->point[p].kind == CA_POINT_END &&
		    !strcmp(s->point[p].name, s->point[begin].name))
			return (int)p;
	return -1;
}

bool ca_visits_have_latency(const struct ca_session *s)
{
	uint32_t points = atomic_load(&s->points_used);

	for (uint32_t p = 0; p < points && p < CA_MAX_POINTS; p++)
		if (live(&s->point[p]) && s->point[p].kind == CA_POINT_BEGIN)
			return true;
	return false;
}

void ca_visits_watch(const struct ca_session *s, const struct ca_visits_now *now, double ns,
		     struct ca_in_flight *flight)
{
	flight->time += ns;
	for (unsigned p = 0; p < now->points; p++) {
		int end;

		if (!live(&s->point[p]) || s->point[p].kind != CA_POINT_BEGIN ||
		    (end = end_of(s, p, now->points)) < 0)
			continue;
		if (now->total[p] > now->total[end])
			flight->area[p] += ns * (double)(now->total[p] - now->total[end]);
	}
}

void ca_visits_times_begin(const struct ca_session *s, struct ca_in_flight *flight)
{
	for (unsigned l = 0; l < CA_MAX_LATENCIES; l++)
		for (unsigned b = 0; b < CA_LATENCY_BUCKETS; b++)
			flight->times[l][b] =
				atomic_load_explicit(&s->latency[l].count[b], memory_order_relaxed);
}

/* Where more than one half in a hundred had no other, begins and ends are not made by the same threads, and
 * those that are tell of the exceptions. Judged over the whole run: windows in which it happens to be less
 * are no better. A few are nothing: visits in which a thread was when the point came, or ended. */
void ca_visits_times_end(const struct ca_session *s, struct ca_in_flight *flight)
{
	for (unsigned l = 0; l < CA_MAX_LATENCIES; l++) {
		uint64_t all = 0;

		for (unsigned b = 0; b < CA_LATENCY_BUCKETS; b++) {
			uint32_t now = atomic_load_explicit(&s->latency[l].count[b], memory_order_relaxed);

			flight->times[l][b] = now - flight->times[l][b];
			all += now;
		}
		flight->partial[l] =
			atomic_load_explicit(&s->latency[l].odd, memory_order_relaxed) > FEW + all / 100;
	}
}

/* Mean number of items between begin and end over the virtual time `span`: those there at the
 * start stay for all of it, each arrival adds what is left of it, each departure takes that
 * away again. */
static double mean_in_flight(const struct ca_visits_now *a, const struct ca_visits_now *b, unsigned begin,
			     int end, uint64_t warm_up, uint64_t span)
{
	double arrivals = (double)(b->total[begin] - a->total[begin]);
	double departures = (double)(b->total[end] - a->total[end]);
	double came = (double)(int64_t)(b->stamp[begin] - a->stamp[begin]);
	double left = (double)(int64_t)(b->stamp[end] - a->stamp[end]);
	double there = (double)(int64_t)(a->total[begin] - a->total[end]);
	double last = (double)(warm_up + span); /* stamps count from the experiment's begin */
	double area = there * (double)span + (arrivals * last - came) - (departures * last - left);

	return span && area > 0 ? area / (double)span : 0;
}

/* From the last visit before a to the last one before b, if it is known and all at one pace. As the first of them is
 * known only if there was one in the warm-up, the last one has to be as near to the end: else pauses would count where
 * an experiment begins in one, and not where it ends in one. */
static uint64_t span_of(const struct ca_visits_now *a, const struct ca_visits_now *b, unsigned point,
			uint64_t warm_up, uint64_t span, uint64_t begin)
{
	if (a->timeless[point] != b->timeless[point] || a->last[point] <= begin ||
	    b->last[point] <= a->last[point] || (warm_up && begin + span > b->last[point]))
		return 0;
	return b->last[point] - a->last[point];
}

size_t ca_visits_between(const struct ca_session *s, const struct ca_visits_now *a,
			 const struct ca_visits_now *b, uint64_t warm_up, uint64_t span, uint64_t begin,
			 const struct ca_in_flight *flight, struct ca_catalog *catalog, struct ca_visits *out)
{
	size_t n = 0;

	for (unsigned p = 0; p < b->points; p++) {
		const struct ca_progress_point *point = &s->point[p];
		struct ca_visits v = { .point = p, .delta = b->total[p] - a->total[p] };

		if (!live(point) || point->kind == CA_POINT_END)
			continue;
		if (point->kind == CA_POINT_THROUGHPUT) {
			v.span = span_of(a, b, p, warm_up, span, begin);
			v.before = a->total[p];
		}
		if (point->kind == CA_POINT_BEGIN) {
			int end = end_of(s, p, b->points);

			v.arrivals = v.delta;
			v.delta = end < 0 ? 0 : b->total[end] - a->total[end];
			if (end >= 0 && b->stamp[p] != a->stamp[p])
				v.in_flight = mean_in_flight(a, b, p, end, warm_up, span);
			else
				v.in_flight = flight->time > 0 ? flight->area[p] / flight->time : 0;
			if (point->latency && !flight->partial[point->latency - 1])
				v.times = flight->times[point->latency - 1];
		}
		if (!v.delta && !v.arrivals)
			continue;
		ca_catalog_add_point(catalog, p, (int)point->kind, point->name);
		out[n++] = v;
	}
	return n;
}

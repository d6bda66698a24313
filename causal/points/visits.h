/* SPDX-License-Identifier: MIT */
/* Visits of progress points, as the conductor sees them. Driver's process, one thread. */
#ifndef CA_CAUSAL_POINTS_VISITS_H
#define CA_CAUSAL_POINTS_VISITS_H
#include "causal/results/results.h"
#include "core/latency.h"
#include "core/point.h"

/* Numbers in the catalog of what is no point of the program: the end of a run; time, where that is all that
 * has to be known. */
enum { CA_POINT_END_TO_END = CA_MAX_POINTS, CA_POINT_TIME };

struct ca_visits_now {
	uint64_t total[CA_MAX_POINTS];    /* visits since the run began, all threads and processes */
	uint64_t stamp[CA_MAX_POINTS];    /* sum of their virtual times, where they are stamped */
	uint64_t last[CA_MAX_POINTS];     /* virtual time of the last one, ns, on the run's clock; 0: none */
	uint64_t timeless[CA_MAX_POINTS]; /* visits that were only counted */
	unsigned points;
};
/* Of latency points. How many items were between begin and end, where visits carry no time (Coz's
 * macros): looked at now and then, and summed over virtual time. */
struct ca_in_flight {
	/* Visits by how long they took, by the point's row in the session: the counts at the beginning, then
	 * what has come since; and whether there are other visits, too, which are not in it */
	uint32_t times[CA_MAX_LATENCIES][CA_LATENCY_BUCKETS];
	bool partial[CA_MAX_LATENCIES];
	double area[CA_MAX_POINTS]; /* items x ns; by the begin point */
	double time;                /* ns */
};

void ca_visits_read(const struct ca_session *session, struct ca_visits_now *now);
/* Visits of all kinds together: has the program made any progress? */
uint64_t ca_visits_sum(const struct ca_visits_now *now);
bool ca_visits_have_latency(const struct ca_session *session);
/* Between these two, visits are sorted by their times. */
void ca_visits_times_begin(const struct ca_session *session, struct ca_in_flight *flight);
void ca_visits_times_end(const struct ca_session *session, struct ca_in_flight *flight);
/* Add a stretch of `ns` with the numbers of items that `now` shows. */
void ca_visits_watch(const struct ca_session *session, const struct ca_visits_now *now, double ns,
		     struct ca_in_flight *flight);
/* What happened between a and b, registered with the catalog; out has room for
 * CA_MAX_POINTS. span: virtual time between them, ns; warm_up: from the experiment's begin to a;
 * begin: that moment on the run's clock: visits before it were at another pace. Returns how many
 * points were visited. */
size_t ca_visits_between(const struct ca_session *session, const struct ca_visits_now *a,
			 const struct ca_visits_now *b, uint64_t warm_up, uint64_t span, uint64_t begin,
			 const struct ca_in_flight *flight, struct ca_catalog *catalog,
			 struct ca_visits *out);

#endif

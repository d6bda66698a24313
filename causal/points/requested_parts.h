/* SPDX-License-Identifier: MIT */
/* The points that were requested, as requested.c and requested_sites.c share them. Private to
 * them. */
#ifndef CA_CAUSAL_POINTS_REQUESTED_PARTS_H
#define CA_CAUSAL_POINTS_REQUESTED_PARTS_H
#include "causal/points/point_name.h"
#include "causal/points/requested.h"
#include <pthread.h>
#include <stdatomic.h>

/* One use of --progress: a throughput point, or the two of a latency. */
struct ca_requested_point {
	char *label;                  /* as it was written. NULL while names are tried out */
	struct ca_point_name name[2]; /* the second one: where it ends */
	bool latency;
	/* by the indexing thread */
	_Atomic unsigned found[2], counted[2]; /* places */
	_Atomic(const char *) why;             /* the last one that is not counted; static text */
};
struct ca_requested {
	pthread_mutex_t lock; /* guards point[], n and the work on them; innermost */
	struct ca_requested_point *point;
	size_t n;
	const struct ca_scope *scope;
	struct ca_session *session;
	int64_t first_row; /* of names that are tried out, and borrowed; -1: they have rows of their
			    * own */
};

static inline unsigned ca_requested_parts_names(const struct ca_requested_point *p)
{
	return p->latency ? 2 : 1;
}

/* Does the name mean code of this binary, by its file's name or by what the user calls it? */
bool ca_requested_parts_apply(const struct ca_requested *progress, const struct ca_point_name *name,
			      const char *path, bool main, bool in_scope);

#endif

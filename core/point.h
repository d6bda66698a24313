/* The session's table of progress points: finding or adding a row. Both sides use it: the
 * runtime for the points that code names itself, the conductor for those of the command line. */
#ifndef CA_CORE_POINT_H
#define CA_CORE_POINT_H
#include "core/session.h"

/* The row of that kind and name, added if need be by compare-and-swap; any thread of any process
 * of the run, at any time. Names are cut to the row's room. NULL: the table is full. */
CA_SIGSAFE struct ca_progress_point *ca_point_get(struct ca_session *session,
						  enum ca_point_kind kind, const char *name);

#endif

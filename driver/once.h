/* SPDX-License-Identifier: MIT */
/* One run of the command without experiments, from its options to its end: what causal trace and causal sample
 * have in common. Driver's process, one thread. */
#ifndef CA_DRIVER_ONCE_H
#define CA_DRIVER_ONCE_H
#include "driver/job.h"
#include <sys/resource.h>

struct ca_conductor_options;
struct ca_conductor;

struct ca_once {
	const char *command; /* of causal, for messages */
	/* Does that setting mean something here? */
	bool (*is_meant)(enum ca_setting_id id);
	/* What the conductor is to do besides; may set job->dir. CA_ERR_USAGE: a mistake of the user's. */
	enum ca_status (*open)(struct ca_job *job, struct ca_conductor_options *options, void *context,
			       struct ca_err *err);
	/* The conductor has made a step; may be NULL. */
	void (*step)(struct ca_job *job, const struct ca_conductor *conductor, void *context);
	/* The run is over; usage: of the command and all that it has waited for. */
	int (*close)(struct ca_job *job, const struct rusage *usage, void *context);
	void *context;
};

/* Settings of every command that runs something: general ones, and those for diagnostics. */
bool ca_once_is_general(enum ca_setting_id id);
/* Returns the exit status of the driver: the command's, unless something went wrong, or `close` says so. */
int ca_once(const struct ca_once *once, char **argv);

#endif

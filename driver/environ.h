/* SPDX-License-Identifier: MIT */
/* The environment of a run's child: what is set, and showing it. */
#ifndef CA_DRIVER_ENVIRON_H
#define CA_DRIVER_ENVIRON_H
#include "core/settings.h"
#include "core/status.h"
#include <stddef.h>

struct ca_environ {
	char **entry; /* owned, NULL-terminated, for execve */
	size_t count;
	char **changed; /* sorted names of what differs from our own environment; owned */
	size_t changes;
};

/* A copy of our environment without the variables of settings that are for the sweep only. */
enum ca_status ca_environ_init(struct ca_environ *environment, struct ca_err *err);
void ca_environ_fini(struct ca_environ *environment);
enum ca_status ca_environ_set(struct ca_environ *environment, const char *name, const char *value,
			      struct ca_err *err);
void ca_environ_unset(struct ca_environ *environment, const char *name);

/* Every setting of a run whose value is not the default, and the recommended variables (unless
 * no_defaults is set, or they are there already). */
enum ca_status ca_environ_add_settings(struct ca_environ *environment, const struct ca_settings *settings,
				       struct ca_err *err);
/* Append to LD_PRELOAD after any value that is there; once. */
enum ca_status ca_environ_preload(struct ca_environ *environment, const char *library, struct ca_err *err);

/* "<prefix>NAME=value" lines: the changed variables (those that were only taken away are not
 * shown); with all, also the unchanged CAUSAL_* ones. CAUSAL_SESSION is the run's own business
 * and shown with all only. */
void ca_environ_print(const struct ca_environ *environment, const char *prefix, bool all);

#endif

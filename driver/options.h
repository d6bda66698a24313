/* SPDX-License-Identifier: MIT */
/* The command line of `causal`: options and the command to run.
 *
 * Parsing is in two steps, since a missing command is reported before a wrong value:
 * ca_options_parse knows names and numbers of arguments only; ca_options_apply checks. */
#ifndef CA_DRIVER_OPTIONS_H
#define CA_DRIVER_OPTIONS_H
#include "core/settings.h"
#include "core/status.h"
#include <stddef.h>

/* The axes are the rows of the combinatorial group, in the table's order. */
enum {
	CA_AXIS_FIRST = CA_SETTING_BINARY_EXCLUDE,
	CA_AXIS_LAST = CA_SETTING_FIXED_SPEEDUP,
	CA_AXES = CA_AXIS_LAST - CA_AXIS_FIRST + 1,
	CA_PATTERN_AXES = CA_AXES - 1 /* all but the last one, the speedups */
};

enum ca_action { CA_ACTION_RUN, CA_ACTION_HELP, CA_ACTION_VERSION };

struct ca_assignment {
	enum ca_setting_id id;
	const char *name; /* as the user wrote it, for errors. Owned */
	char *text;       /* owned */
};

struct ca_axis {
	const char *name; /* as the user wrote it; NULL: not given. Owned */
	char **group;     /* owned, and each string */
	size_t count;
	struct ca_speedups *speedups; /* of each group, after ca_options_apply: the last axis only.
				       * Owned */
};

struct ca_options {
	enum ca_action action;
	const char *topic;                /* of --help=TOPIC, "" for none; borrowed from argv */
	struct ca_assignment *assignment; /* in the order given */
	size_t assignments;
	struct ca_axis axis[CA_AXES];
	char **command; /* into argv, NULL-terminated; NULL: none was given */
};

/* argv as main's; it must outlive the options. CA_ERR_USAGE: one line for the user.
 * ca_options_fini is needed after success only. */
enum ca_status ca_options_parse(struct ca_options *options, char **argv, struct ca_err *err);
/* Store what was given into the settings (axes excepted; each group of them is checked, and
 * speedups are read). Once. */
enum ca_status ca_options_apply(struct ca_options *options, struct ca_settings *settings, struct ca_err *err);
/* The text given for a setting on the command line, the last one; NULL: none. */
const char *ca_options_text(const struct ca_options *options, enum ca_setting_id id);
void ca_options_fini(struct ca_options *options);

#endif

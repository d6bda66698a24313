/* SPDX-License-Identifier: MIT */
/* The kinds of files that `causal diff` knows, each in a file of its own: driver/diff_<kind>.c. */
#ifndef CA_DRIVER_DIFF_H
#define CA_DRIVER_DIFF_H
#include <json-c/json.h>
#include <stdbool.h>

struct ca_diff_kind {
	const char *name; /* of what the file holds, for messages */
	bool (*is)(struct json_object *file);
	/* Of the old one and the new one, which are of this kind, to standard output. The exit status, after a
	 * message. */
	int (*print)(struct json_object *old, struct json_object *now);
};

extern const struct ca_diff_kind ca_diff_callgraph;
/* Two directories of `causal sample`. format: NULL or "folded"; of: as ca_samples_weigh has it. The exit status, after a
 * message. */
int ca_diff_samples(const char *old, const char *now, const char *format, const char *of);

#endif

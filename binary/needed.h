/* SPDX-License-Identifier: MIT */
/* The libraries that a program needs, found as its run would find them. Driver's process only. */
#ifndef CA_BINARY_NEEDED_H
#define CA_BINARY_NEEDED_H
#include "core/status.h"
#include <stddef.h>

struct ca_needed {
	char **path; /* owned, and each string: symbolic links are resolved, as in /proc/PID/maps */
	size_t n;
};

/* Directly or by another library; without the loader and what is not found. A program that is
 * linked statically, or a file that is no program, needs none. */
enum ca_status ca_needed_find(struct ca_needed *needed, const char *path, struct ca_err *err);
void ca_needed_fini(struct ca_needed *needed);

#endif

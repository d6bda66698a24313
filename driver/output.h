/* SPDX-License-Identifier: MIT */
/* The directory of a sweep's results. */
#ifndef CA_DRIVER_OUTPUT_H
#define CA_DRIVER_OUTPUT_H
#include "core/settings.h"
#include "core/status.h"
#include <stdbool.h>

/* Make (or find) the directory that the settings name, and see that files can be written there.
 * app: name of the program, for the default directory. *dir: owned by the caller; *first: number
 * of the next run file, from 1; with settings->reset, 1, as if earlier ones were gone. */
enum ca_status ca_output_open(const struct ca_settings *settings, const char *app, char **dir,
			      unsigned *first, struct ca_err *err);
/* A directory, and its parents where they are missing; it may exist already only if `reuse`. path: is as before
 * afterwards. Returns 0 or an errno. */
int ca_output_make(char *path, bool reuse);
/* Remove the results of earlier sweeps, and nothing else. */
enum ca_status ca_output_clear(const char *dir, struct ca_err *err);

#endif

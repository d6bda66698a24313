/* The directory of a sweep's results. */
#ifndef CA_DRIVER_OUTPUT_H
#define CA_DRIVER_OUTPUT_H
#include "core/settings.h"
#include "core/status.h"

/* Make (or find) the directory that the settings name, see that files can be written there, and
 * with settings->reset remove earlier results. app: name of the program, for the default
 * directory. *dir: owned by the caller; *first: number of the next run file, from 1. */
enum ca_status ca_output_open(const struct ca_settings *settings, const char *app, char **dir,
			      unsigned *first, struct ca_err *err);

#endif

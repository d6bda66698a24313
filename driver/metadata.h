/* SPDX-License-Identifier: MIT */
/* metadata.json and functions.json: in what surroundings a program was measured, and what functions it has.
 * Driver's process, one thread. */
#ifndef CA_DRIVER_METADATA_H
#define CA_DRIVER_METADATA_H
#include "core/settings.h"
#include "core/status.h"

/* Writes both into the directory. program: the name of what is measured, as the command spells it. */
enum ca_status ca_metadata_write(const struct ca_settings *settings, const char *dir, const char *program,
				 const char *const *command, struct ca_err *err);

#endif

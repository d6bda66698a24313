/* SPDX-License-Identifier: MIT */
/* metadata.json and functions.json: in what surroundings a program was measured, and what functions it has.
 * Driver's process, one thread. */
#ifndef CA_DRIVER_METADATA_H
#define CA_DRIVER_METADATA_H
#include "core/settings.h"
#include "core/status.h"
#include <stdint.h>
#include <sys/types.h>

/* Writes both into the directory. program: the name of what is measured, as the command spells it. */
enum ca_status ca_metadata_write(const struct ca_settings *settings, const char *dir, const char *program,
				 const char *const *command, struct ca_err *err);

/* What the program has mapped, known only while it runs: looked at some times, the last one counts. */
struct ca_metadata_maps {
	char *text; /* of /proc/PID/maps; owned */
	unsigned looks;
	uint64_t next; /* ns; not before */
};
void ca_metadata_look(struct ca_metadata_maps *maps, pid_t program);
/* Adds it to what was written, if there is anything; frees it. */
enum ca_status ca_metadata_add_maps(const struct ca_settings *settings, const char *dir,
				    struct ca_metadata_maps *maps, struct ca_err *err);

#endif

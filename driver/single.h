/* SPDX-License-Identifier: MIT */
/* One variant in the driver's own process: --single, and the inner call of a launcher. */
#ifndef CA_DRIVER_SINGLE_H
#define CA_DRIVER_SINGLE_H
#include "driver/job.h"
#include <stdbool.h>

/* Execs the command in place of the driver; a conductor runs in a process of its own beside it
 * and shows the results when the program has ended. Returns only on failure: the exit status. */
int ca_single_run(struct ca_job *job, size_t index);

/* We were put before the program by a driver in launcher mode: its session is in the
 * environment, and our runtime is not loaded yet. */
bool ca_single_is_inner(const struct ca_job *job);
/* Join that session: add the runtime and exec. Returns only on failure. */
int ca_single_join(struct ca_job *job);

#endif

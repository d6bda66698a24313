/* SPDX-License-Identifier: MIT */
/* The runs of a sweep, one after the other, each with a conductor. */
#ifndef CA_DRIVER_RUNS_H
#define CA_DRIVER_RUNS_H
#include "driver/job.h"

/* Returns the exit status of the driver; does not return when a signal ended the sweep. */
int ca_runs_all(struct ca_job *job);

#endif

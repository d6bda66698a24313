/* SPDX-License-Identifier: MIT */
/* What can be named as a progress point in a program: -P list. */
#ifndef CA_DRIVER_LIST_H
#define CA_DRIVER_LIST_H
#include "driver/job.h"

/* Points on standard output, one a line, remarks on standard error. Returns the exit status. */
int ca_list_show(const struct ca_job *job, const char *filter);

#endif

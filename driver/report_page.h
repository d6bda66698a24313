/* SPDX-License-Identifier: MIT */
/* The report's page: the files of driver/report/ put together, with the data in it. One thread. */
#ifndef CA_DRIVER_REPORT_PAGE_H
#define CA_DRIVER_REPORT_PAGE_H
#include <stdbool.h>
#include <stdio.h>

struct json_object;

/* One file that needs no other. False: write error, see errno. */
bool ca_report_page_write(struct json_object *data, FILE *file);
/* The same for a profile of samples (ca_samples_json). */
bool ca_report_page_write_samples(struct json_object *data, FILE *file);

#endif

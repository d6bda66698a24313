/* SPDX-License-Identifier: MIT */
/* What the report shows, as one JSON object for its page. */
#ifndef CA_CAUSAL_RESULTS_REPORT_DATA_H
#define CA_CAUSAL_RESULTS_REPORT_DATA_H
struct ca_profile;
struct json_object;

/* NULL: no memory. Owned by the caller (json_object_put). folder: where to look for sources that are not at the
 * place that the debug information names, or NULL. */
struct json_object *ca_report_data(const struct ca_profile *profile, const char *folder);

#endif

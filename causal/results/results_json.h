/* SPDX-License-Identifier: MIT */
/* Small helpers over json-c shared by the writers and the reader of results.
 * Not for: any format of its own. Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_RESULTS_JSON_H
#define CA_CAUSAL_RESULTS_RESULTS_JSON_H
#include <json-c/json.h>
#include <stddef.h>
#include <stdint.h>

/* A string value; bytes that are not UTF-8 become U+FFFD, since names and paths come from
 * programs and file systems, and JSON must stay readable. NULL counts as "". */
struct json_object *ca_results_json_text(const char *text);
/* A number with two decimals; NULL, which is null, for what is not known. */
struct json_object *ca_results_json_rounded(double value);

/* Borrowed members; NULL or the default when missing or of another type. */
struct json_object *ca_results_json_get(struct json_object *object, const char *key);
const char *ca_results_json_string(struct json_object *object, const char *key);
uint64_t ca_results_json_u64(struct json_object *object, const char *key);
double ca_results_json_double(struct json_object *object, const char *key);

/* The key of a cause of dropped samples (enum ca_drop); static. */
const char *ca_results_drop_name(unsigned drop);

#endif

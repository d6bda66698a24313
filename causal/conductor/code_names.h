/* SPDX-License-Identifier: MIT */
/* The names of the program's own events (core/names.h), as the dictionary and the sinks get them.
 * Driver's process, the conductor's thread. */
#ifndef CA_CAUSAL_CONDUCTOR_CODE_NAMES_H
#define CA_CAUSAL_CONDUCTOR_CODE_NAMES_H
#include "core/dict.h"
#include "core/sink.h"

struct ca_code_names;

/* Makes the table in the session file, from byte `at` (whole pages) on. */
enum ca_status ca_code_names_new(struct ca_code_names **names, int fd, uint64_t at, struct ca_dict *dict,
				 struct ca_err *err);
void ca_code_names_free(struct ca_code_names *names); /* NULL is fine */
/* Look for new names; before events are handed on that may use them. names: NULL is fine. */
void ca_code_names_hand_on_laps(struct ca_code_names *names, struct ca_sinks *sinks,
				const struct ca_source *from, const struct ca_lap *lap, uint32_t first,
				size_t laps);
void ca_code_names_follow(struct ca_code_names *names);
/* Give these events to the sinks, with the dictionary's keys, without those that nobody wants; and what the
 * thread and its process have been called by the program. names: NULL is fine. */
void ca_code_names_hand_on(struct ca_code_names *names, struct ca_sinks *sinks, const struct ca_source *from,
			   const struct ca_event *event, size_t n);
/* Events that went to no sink, as --events has them off. */
uint64_t ca_code_names_left_out(const struct ca_code_names *names);
/* Has the program called the thread, or its process, something? */
bool ca_code_names_has(const struct ca_code_names *names, const struct ca_source *from, bool process);

#endif

/* SPDX-License-Identifier: MIT */
/* Code that a process has made itself and whose compiler has not told its name: until the end of the run it is called
 * by its address in a profile, and then by the name that has come. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_LATE_NAMES_H
#define CA_CAUSAL_CONDUCTOR_LATE_NAMES_H
#include "causal/results/samples.h"
#include "core/vec.h"

struct ca_late_names {
	struct ca_vec list; /* struct late */
};

void ca_late_names_init(struct ca_late_names *late);
void ca_late_names_fini(struct ca_late_names *late);
/* The number of its function in the profile; process: its index. */
uint32_t ca_late_names_add(struct ca_late_names *late, struct ca_samples *samples, uint32_t process,
			   uint64_t address);
/* What is found is its name from now on; NULL: CA_MADE is, of all of these. */
typedef const char *ca_late_names_find(void *context, uint32_t process, uint64_t address);
void ca_late_names_settle(struct ca_late_names *late, struct ca_samples *samples, ca_late_names_find *find,
			  void *context);

#endif

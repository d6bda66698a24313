/* SPDX-License-Identifier: MIT */
/* `causal verify` for programs that do not end by themselves: how often a progress point is passed, old and new in
 * alternation, each for a while. Driver's process, one thread. */
#ifndef CA_DRIVER_VERIFY_RATE_H
#define CA_DRIVER_VERIFY_RATE_H
#include <stdbool.h>

struct ca_profile;
struct ca_profile_row;

struct ca_verify_rate {
	const char
		*dir; /* of the results; runs go to verify-old and verify-new in it, messages to verify.log */
	const struct ca_profile *profile; /* ... */
	const struct ca_profile_row *row; /* its progress point counts */
	char *const *command[2];          /* old, new */
	double seconds;                   /* that each of them runs */
	int runs;                         /* of each */
	double came,
		half; /* the answer: percent by which the time per visit has fallen, and half of its interval */
};
/* False: after a message. */
bool ca_verify_rate(struct ca_verify_rate *v);

#endif

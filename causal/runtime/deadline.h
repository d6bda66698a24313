/* SPDX-License-Identifier: MIT */
/* Time limits of the program's waits, which come by virtual time (virtual_clock.h): they move while
 * experiments insert delays. Ordinary context. */
#ifndef CA_CAUSAL_RUNTIME_DEADLINE_H
#define CA_CAUSAL_RUNTIME_DEADLINE_H
#include "causal/runtime/rt.h"
#include <time.h>

/* A wait with a time limit in virtual time. Between the two ends of a wait for others (wait.h): nothing
 * is owed for it, as the limit itself moves. */
struct ca_deadline {
	uint64_t began; /* ns, real */
	uint64_t first; /* lag then ... */
	uint64_t lag;   /* ... and at the last look */
	uint64_t over;  /* virtual time at which it had come, for certain; 0: it has not */
};
/* limited: there is one. */
CA_HIDDEN struct ca_deadline ca_deadline_begin(bool limited);
/* When an absolute time of the program's comes, by the real clock of that name; in *real, unless
 * until is NULL or makes no sense, then as it is. */
CA_HIDDEN const struct timespec *ca_deadline_real(const struct ca_deadline *d, const struct timespec *until,
						  struct timespec *real);
/* A wait for a time is over that has been by this lag; length: ns, UINT64_MAX: unknown. */
CA_HIDDEN void ca_deadline_over(uint64_t lag, uint64_t length);
/* It seems to be over: has it moved since the last look? Then wait on. errno is kept. */
CA_HIDDEN bool ca_deadline_moved(struct ca_deadline *d);
/* The same for a wait of `length` ns since its beginning: ns that are left, 0: it is over. */
CA_HIDDEN uint64_t ca_deadline_left(struct ca_deadline *d, uint64_t length);
/* What is left whether it has moved or not. */
CA_HIDDEN uint64_t ca_deadline_rest(const struct ca_deadline *d, uint64_t length);

/* A time limit that the program hands to the kernel itself, in *copy; NULL where there is none or it
 * cannot be read: that is for the kernel to say. */
CA_HIDDEN const struct timespec *ca_deadline_peek(long given, struct timespec *copy);
/* ns of a time that is not negative and whose ns are in range; UINT64_MAX else, and for NULL. */
CA_HIDDEN uint64_t ca_deadline_ns(const struct timespec *t);

#endif

/* SPDX-License-Identifier: MIT */
/* The parts of `causal selftest`: can predictions be trusted on this machine? One thread (the
 * workload: two); the driver's process and children of it. */
#ifndef CA_DRIVER_SELFTEST_H
#define CA_DRIVER_SELFTEST_H
#include <stdbool.h>
#include <stddef.h>

enum ca_selftest_grade { CA_SELFTEST_GOOD, CA_SELFTEST_DOUBT, CA_SELFTEST_BAD };

/* One check: what was seen, and what it means for predictions. */
struct ca_selftest_check {
	const char *name;
	enum ca_selftest_grade grade;
	char text[240];
};
enum { CA_SELFTEST_CHECKS = 8 };

/* Looks at permissions, timers, clock, cores and who else is busy; takes about half a second.
 * Returns the number of checks filled in, at most CA_SELFTEST_CHECKS. */
size_t ca_selftest_look(struct ca_selftest_check check[CA_SELFTEST_CHECKS]);
/* CPU seconds that a hypervisor took from all cores together since boot. */
double ca_selftest_stolen(void);

/* Has `self`, a causal, profile the programs whose answer is known, with its files in the folder
 * `scratch`, and prints what came of it. True: all predictions were right. */
bool ca_selftest_predicts(const char *self, const char *scratch);
/* Prints what it all means; the exit status. */
int ca_selftest_verdict(const struct ca_selftest_check *check, size_t checks, bool right);

/* The built-in workloads: runs `name` for `seconds`, returns an exit status. */
int ca_selftest_work(const char *name, double seconds);
#endif

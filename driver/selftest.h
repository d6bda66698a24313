/* SPDX-License-Identifier: MIT */
/* The parts of `causal selftest`: can predictions be trusted on this machine? One thread (the
 * workload: two); the driver's process and children of it. */
#ifndef CA_DRIVER_SELFTEST_H
#define CA_DRIVER_SELFTEST_H
#include "sampler/tick.h"
#include <stdbool.h>
#include <stddef.h>

enum ca_selftest_grade { CA_SELFTEST_GOOD, CA_SELFTEST_DOUBT, CA_SELFTEST_BAD };

/* One check: what was seen, what it means for predictions, and what to do about it. */
struct ca_selftest_check {
	const char *name;
	enum ca_selftest_grade grade;
	bool noise; /* it tells who else uses the machine now, which may change */
	char text[240];
	char to_do[240]; /* "": nothing */
};
enum { CA_SELFTEST_CHECKS = 10 };

/* Looks at the machine and shows each check as it is done; takes about a second. Returns the number
 * of checks filled in, at most CA_SELFTEST_CHECKS. */
size_t ca_selftest_look(struct ca_selftest_check check[CA_SELFTEST_CHECKS]);
void ca_selftest_show(const struct ca_selftest_check *check);
/* selftest_kernel.c: what the kernel lets us do. */
void ca_selftest_perf(struct ca_selftest_check *check);
void ca_selftest_room(struct ca_selftest_check *check);
void ca_selftest_timer(struct ca_selftest_check *check);
void ca_selftest_patching(struct ca_selftest_check *check);
/* CPU seconds that a hypervisor took from all cores together since boot. */
double ca_selftest_stolen(void);
/* Seconds, CLOCK_MONOTONIC. */
double ca_selftest_now(void);
/* Cores that the control groups allow whose names stand in the file `self`, as in
 * /proc/self/cgroup, below the folder `root`; 0: no limit. */
double ca_selftest_quota(const char *self, const char *root);
/* What makes waking a thread on an idle core cheaper, by what the folder `sys` holds, as /sys does. */
const char *ca_selftest_wake_advice(const char *sys);

/* What came of the programs whose answer is known, with one source of samples. */
struct ca_selftest_known {
	bool right;      /* all predictions were */
	unsigned silent; /* programs without a prediction */
	double error;    /* points: the larger of miss and half the interval, of the worst; NAN: none */
	unsigned long finished, disturbed; /* experiments */
};

/* Has `self`, a causal, profile these programs, with its files in the folder `scratch`, and prints
 * what came of it. Whatever is not done at `until` (as ca_selftest_now) is not begun. */
struct ca_selftest_known ca_selftest_predicts(const char *self, const char *scratch, enum ca_backend backend,
					      double until);
/* Prints what it all means; the exit status. perf NULL: it cannot be had. What causal takes when
 * nothing is asked for decides: perf, else timer. */
int ca_selftest_verdict(const struct ca_selftest_check *check, size_t checks,
			const struct ca_selftest_known *perf, const struct ca_selftest_known *timer);

/* The built-in workloads: runs `name` for `seconds`, returns an exit status. */
int ca_selftest_work(const char *name, double seconds);
#endif

/* SPDX-License-Identifier: MIT */
/* What control groups let a process have of the CPUs, as containers are limited (cgroups(7), cpu.max), and whether that
 * holds it back. Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_QUOTA_H
#define CA_CAUSAL_CONDUCTOR_QUOTA_H
#include <stdint.h>

/* Calls `look` with the folder of each group that a process is in, of both versions, and of those that they are in. self:
 * its /proc/PID/cgroup; root: where groups are mounted, /sys/fs/cgroup. In a container groups are often named as
 * outside, and the folders begin at the container's own. */
void ca_quota_each_group(const char *self, const char *root, void (*look)(const char *folder, void *arg),
			 void *arg);

/* Periods of a limit, and those in which a group was held back by it, so far. */
struct ca_quota_count {
	uint64_t time; /* ns, of the reading; 0: there was none */
	uint64_t periods, throttled;
};
struct ca_quota {
	struct ca_quota_count before, last; /* up to a second ago; the last one */
	double held;                        /* since then, see below */
};

/* In which part of the time lately was the process held back by its limit, 0..1? As of 0.1 s ago, at the oldest; of a
 * second where there was no limit. */
double ca_quota_held_back(struct ca_quota *quota, const char *self, const char *root, uint64_t now);

#endif

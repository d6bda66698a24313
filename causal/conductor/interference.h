/* SPDX-License-Identifier: MIT */
/* Other programs on this machine: did they take the CPU away during an experiment?
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_CONDUCTOR_INTERFERENCE_H
#define CA_CAUSAL_CONDUCTOR_INTERFERENCE_H
#include <stdbool.h>
#include <stdint.h>

/* Readings at one moment; all in ns since some fixed past. */
struct ca_session;
struct ca_load {
	uint64_t time;
	uint64_t busy;  /* all CPUs together, steal time of a virtual machine included; not interrupts */
	uint64_t run;   /* CPU time of the run's processes, and of their children that ended */
	uint64_t own;   /* ... and of the driver */
	uint64_t queue; /* time that the run's threads were runnable but not running ... */
	uint64_t ran; /* ... and CPU time of the same ones: what has ended took its time in the queue along */
	unsigned cpus; /* that the run may use */
	bool known;    /* busy could be read */
	bool queue_known;
};

/* `busy`, of the text of /proc/stat. */
bool ca_interference_parse(const char *stat, uint64_t *busy);
void ca_interference_read(const struct ca_session *session, struct ca_load *now);
/* Did others take much of the CPU time that the run's threads could have had between the two readings? What
 * they wait for each other does not count, nor does what others use while nobody of the run waits for it: a
 * load generator beside a server belongs there. Where the kernel does not tell who waited: did others use
 * more than half a core? */
bool ca_interference_seen(const struct ca_load *a, const struct ca_load *b);

/* How much it was, ns of all threads together; UINT64_MAX: not known. */
uint64_t ca_interference_lost(const struct ca_load *a, const struct ca_load *b);

/* For how long the run's threads waited for a CPU, whoever had it, ns of all together; UINT64_MAX: not known. */
uint64_t ca_interference_queued(const struct ca_load *a, const struct ca_load *b);

/* Of the text of /proc/PID/task/TID/stat: does it run, or wait for a CPU, and which one? */
bool ca_interference_parse_thread(const char *stat, unsigned *cpu);
/* CPUs, of so many that the run may use, that none of its threads has at this moment while others of them wait for one
 * that another thread has: the kernel moves threads late. 0 where there are too many to be looked at. */
unsigned ca_interference_idle_beside(const struct ca_session *session, unsigned cpus);

#endif

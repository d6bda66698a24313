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
	uint64_t busy;  /* all CPUs together, steal time of a virtual machine included */
	uint64_t own;   /* CPU time of the run's processes, and of the driver */
	uint64_t queue; /* time that the run's threads were runnable but not running */
	bool known;     /* busy could be read */
	bool queue_known;
};

void ca_interference_read(const struct ca_session *session, struct ca_load *now);
/* Others used more than a tenth of a core between the two readings, and the run's threads were
 * kept waiting for a CPU meanwhile (where the kernel does not tell: more than half a core). */
bool ca_interference_seen(const struct ca_load *a, const struct ca_load *b);

#endif

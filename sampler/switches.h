/* SPDX-License-Identifier: MIT */
/* The switch log: when a thread was on a CPU, as the kernel records it.
 *
 * One perf event per thread writes a PERF_RECORD_SWITCH with a time at every context
 * switch into a small ring in overwrite mode: all records have the same size, nobody
 * consumes them, nothing fills up, and any thread of the process may read another
 * thread's log. Needs no privilege. Opened by the owning thread; read anywhere. */
#ifndef CA_SAMPLER_SWITCHES_H
#define CA_SAMPLER_SWITCHES_H
#include "core/status.h"
#include <stdbool.h>
#include <stdint.h>

struct ca_switches {
	void *page; /* NULL: there is no log */
};

struct ca_interval {
	uint64_t from, to; /* ns, CLOCK_MONOTONIC */
	uint64_t runnable; /* 1: it did not wait, but others were chosen to run; Linux 4.17 */
};

/* For the calling thread. CA_ERR_UNSUPPORTED or CA_ERR_PERMISSION when the kernel declines. */
enum ca_status ca_switches_open(struct ca_switches *log);
void ca_switches_close(struct ca_switches *log);
/* The times in [a, b) at which the thread was off the CPU, clipped, in order; returns how
 * many. What the ring no longer holds counts as on the CPU. */
CA_SIGSAFE unsigned ca_switches_off(const struct ca_switches *log, uint64_t a, uint64_t b,
				    struct ca_interval *out, unsigned max);
/* How often the thread has left the CPU since the log was opened; 0 without one. */
CA_SIGSAFE uint64_t ca_switches_count(const struct ca_switches *log);

#endif

/* SPDX-License-Identifier: MIT */
/* What samples are taken by, and what they measure: as the user writes it, and as the session has it.
 * The driver, except for the struct. */
#ifndef CA_CORE_SAMPLERS_H
#define CA_CORE_SAMPLERS_H
#include "core/status.h"
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Samplers of a thread. */
enum ca_sampler { CA_SAMPLER_CPU, CA_SAMPLER_REAL, CA_SAMPLER_OVERFLOW, CA_SAMPLER_COUNT };

/* What comes with a sample: what has been counted since the thread's one before, but for levels, of which the
 * largest counts. X(id, name, unit, description) */
#define CA_METRICS(X)                                                                                        \
	X(REAL, "real-time", "ns", "time that has passed (--realtime)")                                      \
	X(OVERFLOW, "overflow", "", "events of --overflow")                                                  \
	X(CPU_TIME, "cpu-time", "ns", "CPU time of the thread, in the kernel, too")                          \
	X(MINOR_FAULTS, "minor-faults", "", "page faults without input")                                     \
	X(MAJOR_FAULTS, "major-faults", "", "page faults with input")                                        \
	X(SWITCHES, "switches", "", "context switches of a thread that waits")                               \
	X(PREEMPTIONS, "preemptions", "", "context switches of a thread that could have gone on")            \
	X(PEAK_RSS, "peak-rss", "bytes", "a level: the most memory of the process that was resident so far")
enum ca_metric {
#define X(id, name, unit, text) CA_METRIC_##id,
	CA_METRICS(X)
#undef X
		CA_METRIC_OWN
};
/* Counters of perf stand behind these. */
enum { CA_METRIC_COUNTERS = 4, CA_METRIC_COUNT = CA_METRIC_OWN + CA_METRIC_COUNTERS };

enum { CA_SAMPLER_RANGES = 16 };
struct ca_perf_counter {
	uint32_t type;
	uint64_t config;
};
/* Does it happen in the kernel alone? Without the kernel's part there is none to count, and a signal for each would
 * end the thread's waits. */
static inline bool ca_samplers_of_kernel(uint32_t type, uint64_t config)
{
	return type == PERF_TYPE_SOFTWARE &&
	       (config == PERF_COUNT_SW_CONTEXT_SWITCHES || config == PERF_COUNT_SW_CPU_MIGRATIONS);
}
/* In the session; written before the first process starts. */
struct ca_samplers {
	uint32_t on;      /* 1 << enum ca_sampler */
	uint32_t metrics; /* 1 << enum ca_metric */
	struct {
		uint64_t period; /* ns, or events */
		uint32_t ranges; /* of thread indices; 0: all threads */
		uint32_t first[CA_SAMPLER_RANGES], last[CA_SAMPLER_RANGES];
	} of[CA_SAMPLER_COUNT];
	struct ca_perf_counter overflow, counter[CA_METRIC_COUNTERS];
	uint64_t overflow_frequency; /* Hz; 0: each `period` events */
	uint32_t counters;
};

struct ca_settings;

/* HZ[:DELAY[:DURATION[:THREADS]]], or, of overflow, EVENT[:COUNT[:DELAY[:DURATION[:THREADS]]]], COUNT may be
 * HZ with 'hz' behind it. CA_ERR_USAGE: the text says what may be there. */
enum ca_status ca_samplers_check(enum ca_sampler sampler, const char *text, struct ca_err *err);
/* Names of metrics and counters, separated by commas. */
enum ca_status ca_samplers_check_metrics(const char *text, struct ca_err *err);
/* All of the settings. */
enum ca_status ca_samplers_make(struct ca_samplers *samplers, const struct ca_settings *settings,
				struct ca_err *err);
/* When that one samples, in s: its own, or the settings' --wait and --duration. False: it has none of its own. */
bool ca_samplers_window(const struct ca_settings *settings, enum ca_sampler sampler, double *delay,
			double *duration);

/* The i-th of perf's events by name; NULL: there are not so many. */
const char *ca_samplers_event(size_t i, struct ca_perf_counter *counter, const char **description);
/* What metric number i of these is called, "" for one that is not wanted; and its unit. */
const char *ca_samplers_metric(const struct ca_settings *settings, unsigned i, const char **unit);

#endif

/* SPDX-License-Identifier: MIT */
/* A profile of samples: a tree of calls with the time that was seen in each, on a CPU and off it. What
 * `causal sample` makes, writes (sample.json, doc/FORMAT.md) and others read back.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_SAMPLES_H
#define CA_CAUSAL_RESULTS_SAMPLES_H
#include "core/event.h"
#include "core/map.h"
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CA_SAMPLES_FILE "sample.json"

struct json_object;

enum ca_samples_kind {
	CA_SAMPLES_CODE,
	CA_SAMPLES_PROCESS, /* the frame at the root: the name of a process */
	CA_SAMPLES_WAIT     /* the innermost frame of who is off a CPU: what for */
};
extern const char *const ca_samples_kind_name[3];

struct ca_samples_function {
	enum ca_samples_kind kind;
	char *name, *file, *binary; /* owned; "" unknown */
	unsigned line;              /* of the definition; 0: unknown */
};
/* Callers come before those whom they call. Node 0 is the root, of no function. */
struct ca_samples_node {
	uint32_t parent, function;
	uint64_t ns, count; /* in it, not in what it calls */
	uint64_t path;      /* ns of them on the critical path */
};
/* A wait that was ended by a thread of ours, and where that was; nodes. waker 0: not sampled. */
struct ca_samples_wake {
	uint32_t waiter, waker;
	uint64_t ns, count;
};
/* Threads of one name in processes of one name. */
struct ca_samples_threads {
	char *process, *name;                     /* owned */
	uint64_t threads, lifetime, cpu, waiting; /* ns, of all of them together */
};
/* What was measured with the samples of each node, not of what it calls. */
enum { CA_SAMPLES_METRICS = 16 };
struct ca_samples_metric {
	char *name, *unit; /* owned */
	char *missing;     /* owned; why no thread could count it. NULL: some could */
	bool level;        /* the largest counts, not the sum */
};
struct ca_samples_measured {
	uint64_t value, count; /* count: samples that it comes from */
};
/* What was left out, and why. */
struct ca_samples_loss {
	char *why; /* owned */
	uint64_t count;
};
struct ca_samples {
	char **command;   /* owned; ends with NULL */
	char backend[24]; /* "perf and timers" */
	uint64_t time;    /* ns, CLOCK_REALTIME: when it began */
	uint64_t period, runtime,
		delay; /* ns; the window of the samples is `runtime` long, and began after `delay` */
	uint64_t samples, incomplete; /* of these the stack could not be walked to its end */
	uint64_t walked, alike; /* stacks that libunwind has walked; those that came out as by our rows */
	uint64_t user, system;  /* ns of CPU time, as the kernel says; 0: not known */
	uint64_t handler;       /* ns of CPU time that causal's handlers took */
	uint64_t processes, threads;
	int exit_status;
	bool no_cputime; /* it was not asked for */
	bool partly;     /* ... or of some threads only, or in windows of its own; not in the file */
	uint32_t weight; /* of nodes: 0: their ns, else 1 + the metric; not in the file */
	struct ca_samples_function *function;
	struct ca_samples_node *node;
	struct ca_samples_wake *wake;
	struct ca_samples_threads *group;
	struct ca_samples_loss *loss;
	struct ca_samples_metric metric[CA_SAMPLES_METRICS];
	struct ca_samples_measured *measured; /* by node and metric; those of `measured_nodes` nodes */
	size_t functions, nodes, wakes, groups, losses, metrics, measured_nodes;
	struct ca_map by_function, by_node, by_wake; /* of what is being made */
	bool failed;                                 /* memory ran out: something is missing */
};

/* NULL: no memory. */
struct ca_samples *ca_samples_new(void);
void ca_samples_free(struct ca_samples *samples); /* NULL is fine */

/* Numbers of functions and nodes, new or known; 0: no memory, or no more room. */
uint32_t ca_samples_function(struct ca_samples *samples, enum ca_samples_kind kind, const char *name,
			     const char *file, unsigned line, const char *binary);
uint32_t ca_samples_node(struct ca_samples *samples, uint32_t parent, uint32_t function);
void ca_samples_add(struct ca_samples *samples, uint32_t node, uint64_t ns);
/* A further metric, all of them before the first measurement. */
void ca_samples_add_metric(struct ca_samples *samples, const char *name, const char *unit, bool level);
/* So many samples of it. */
void ca_samples_measure(struct ca_samples *samples, uint32_t node, size_t metric, uint64_t value,
			uint64_t count);
struct ca_samples_measured ca_samples_measured(const struct ca_samples *samples, uint32_t node,
					       size_t metric);
uint64_t ca_samples_measured_sum(const struct ca_samples *samples, size_t metric);
void ca_samples_add_wake(struct ca_samples *samples, uint32_t waiter, uint32_t waker, uint64_t ns);
void ca_samples_add_threads(struct ca_samples *samples, const char *process, const char *name,
			    const struct ca_samples_threads *numbers);
/* At the end: function f (from 1 on) is of[f - 1] from now on, itself or one that stays itself. of is changed. */
void ca_samples_rename(struct ca_samples *samples, uint32_t *of);
void ca_samples_add_loss(struct ca_samples *samples, const char *why, uint64_t count);

/* What nodes weigh from now on, in rows, comparisons and exports: "cputime" (and waits), "realtime", "overflow", or a
 * metric by its name. NULL: CPU time, and where there is none, what others have sampled. CA_ERR_USAGE: there is no such
 * thing in it. */
enum ca_status ca_samples_weigh(struct ca_samples *samples, const char *of, struct ca_err *err);
uint64_t ca_samples_weight(const struct ca_samples *samples, uint32_t node);
uint64_t ca_samples_count(const struct ca_samples *samples, uint32_t node); /* of samples that make it */
/* How people read weights. */
struct ca_samples_unit {
	const char *name, *unit; /* "" for CPU time; "s", "bytes" or "events" */
	double scale;            /* of the unit */
	int width, digits;       /* of a column */
	bool time;
};
struct ca_samples_unit ca_samples_unit(const struct ca_samples *samples);

/* Per node: the weight of it and of all that it calls. By malloc; NULL: no memory. */
uint64_t *ca_samples_totals(const struct ca_samples *samples);
/* Is the innermost frame a wait? */
bool ca_samples_is_wait(const struct ca_samples *samples, uint32_t node);

/* Per function, all times in ns (or what nodes weigh). Sorted: most of its own first, then by wall. */
struct ca_samples_row {
	uint32_t function;
	uint64_t self, total; /* on a CPU; total: with what it calls, once for calls of itself */
	uint64_t wall;        /* total, and the waits in it */
	uint64_t path;        /* of that, on the critical path */
};
/* By malloc; NULL: no memory. Processes and waits are no rows. */
struct ca_samples_row *ca_samples_rows(const struct ca_samples *samples, size_t *n, uint64_t *cpu,
				       uint64_t *waiting);
/* All that is known of the critical path, ns. */
uint64_t ca_samples_path(const struct ca_samples *samples);

/* Of two profiles, before and now: functions by their own time, stacks, or functions by what they and those whom they
 * call have on the critical path. */
enum ca_samples_of { CA_SAMPLES_OF_FUNCTIONS, CA_SAMPLES_OF_STACKS, CA_SAMPLES_OF_PATH };
struct ca_samples_change {
	char *name;         /* of a stack: folded. Owned */
	const char *binary; /* its last part, or "". Borrowed from the profiles */
	uint64_t ns[2], count[2];
	bool wait, sure; /* sure: more than the chance of samples makes */
};
/* Those that changed most first; with ca_samples_compare_free. NULL: no memory. */
struct ca_samples_change *ca_samples_compare(const struct ca_samples *before, const struct ca_samples *now,
					     enum ca_samples_of what, size_t *n);
void ca_samples_compare_free(struct ca_samples_change *change, size_t n);

/* DIR/sample.json, by rename. */
enum ca_status ca_samples_write(const struct ca_samples *samples, const char *dir, struct ca_err *err);
/* path: the file, or the directory that holds it. CA_ERR_NOT_FOUND: there is none. */
enum ca_status ca_samples_read(struct ca_samples **samples, const char *path, struct ca_err *err);
/* What the file holds. Owned by the caller (json_object_put). */
struct json_object *ca_samples_json(const struct ca_samples *samples);
/* Does this directory, or file, hold a profile of samples, and no results of a sweep? */
bool ca_samples_is_there(const char *path);

/* samples_table.c: for a person. `rows` at most (0: all), lines of `width` columns. false: no memory for it. */
bool ca_samples_print(const struct ca_samples *samples, size_t rows, unsigned width, FILE *file);
/* samples_export.c: whole files. False: write error, see errno. */
bool ca_samples_write_json(const struct ca_samples *samples, FILE *file);
bool ca_samples_write_csv(const struct ca_samples *samples, FILE *file);
bool ca_samples_write_markdown(const struct ca_samples *samples, FILE *file);
bool ca_samples_write_tree(const struct ca_samples *samples, FILE *file);
bool ca_samples_write_folded(const struct ca_samples *samples, FILE *file);
bool ca_samples_write_speedscope(const struct ca_samples *samples, FILE *file);
/* pprof.c: https://github.com/google/pprof, profile.proto, not compressed. */
bool ca_samples_write_pprof(const struct ca_samples *samples, FILE *file);

#endif

/* SPDX-License-Identifier: MIT */
/* The profile in memory: what the run files said, and what the estimator made of it.
 * Shared by the files that read, estimate, write and print it; others use results.h.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_PROFILE_H
#define CA_CAUSAL_RESULTS_PROFILE_H
#include "causal/results/estimate.h"
#include "causal/results/results.h"
#include "core/event.h"
#include <stdio.h>

struct json_object;

/* One run file. Strings are owned. */
struct ca_profile_run {
	unsigned number, iteration;
	char *command, *mode, *speedups, *scope;
	char **word;    /* of the command; ends with NULL */
	char **options; /* of causal; ends with NULL, or NULL */
	char *backend;  /* "mixed" if threads had different ones */
	bool end_to_end;
	bool ended;                    /* the end record is there */
	double length;                 /* s of virtual time, to its end; 0: not known */
	bool sampled;                  /* to its end; or none was */
	uint64_t seed, time, clock;    /* ns; time and clock are the same moment */
	struct ca_run_summary summary; /* samples, started and kept also when !ended */
};

struct ca_profile_visits {
	uint32_t point; /* index in ca_profile.point */
	uint64_t delta, arrivals, span, before;
	double in_flight;
	double effect;            /* of the experiment by itself (ca_estimates.single) */
	size_t first_time, times; /* latency: in ca_profile.times */
};

/* So many visits took so long (core/latency.h). */
struct ca_profile_time {
	uint32_t bucket, count;
};

struct ca_profile_experiment {
	uint32_t run; /* index in ca_profile.run */
	uint32_t index, region /* id in the catalog, 0: none */, speedup, flags;
	uint64_t start, end, duration, delay, still, probes, hits, s_time, lost, idled, periods, inside, work,
		turns;
	uint64_t paying; /* UINT64_MAX: unknown */
	uint64_t met;    /* UINT64_MAX: unknown; so is ... */
	uint64_t queued;
	uint64_t at; /* ns of virtual time since its run began */
	uint64_t limits, outside, overhead, overhead_in_s, yardstick;
	bool exact;
	size_t first, visits; /* in ca_profile.visits */
	bool disturbed;       /* by other programs; flags tells whether it is used all the same */
	bool books;           /* the accounts of S time differ; the same */
};

struct ca_profile_samples {
	uint32_t run, region;
	uint64_t count;
	uint64_t own;    /* of them with the region innermost; UINT64_MAX: unknown */
	uint64_t waited; /* of all, those not on a CPU */
	uint64_t spins;  /* ... in loops that wait for other threads, if it does nothing else */
	double since;    /* s of virtual time of the run until its binary came */
	uint64_t silent; /* on a CPU, while the progress point was not passed */
	/* owned; ends with NULL, or NULL */
	char **via;      /* callers that this region stands for as well */
	char **contains; /* regions that make up nearly all of this one */
	char **calls;    /* ... and which others call, too */
};

/* A binary of the program; once for each build-id that it had. */
struct ca_profile_binary {
	char *path, *build_id; /* owned */
};

/* A binary in which the program spent time; as the last run says that has such records. */
struct ca_profile_scope {
	char *binary;
	double share; /* percent of the CPU samples */
	bool in_scope;
};

/* Samples with the same frames, of all runs. */
struct ca_profile_stack {
	char **frame; /* owned; outermost first, ends with NULL */
	uint64_t count;
};

/* A percentile of a latency. */
struct ca_percentile {
	double time; /* ns, at 0 %; NAN or 0: not known */
	struct ca_estimates estimates;
};
enum {
	CA_PERCENTILES = 3,
	CA_PROFILE_FIRST = 3 /* rows that are to be known */
};
extern const unsigned ca_profile_percent[CA_PERCENTILES]; /* 50, 95, 99 */

struct ca_profile_point {
	char *name;
	char kind;    /* 't'hroughput, 'l'atency, 'e'nd-to-end */
	bool whole;   /* in runs that were measured as a whole; not of kind 'e' */
	bool refuted; /* it counts no unit of work (units.h), and each of these runs is one */
	bool works;   /* likewise, inside runs, and CPU time is one */
	/* owned, or NULL: as in struct ca_visits */
	char *unit, *beside, *instead;
	struct ca_estimates estimates;
	struct ca_percentile percentile[CA_PERCENTILES]; /* latency */
};

/* One line of the table: a region as one progress point sees it. Sorted: best first. */
struct ca_profile_row {
	const struct ca_region *region;
	const struct ca_profile_point *point;
	const struct ca_curve *curve; /* its cells lie in point->estimates.cell */
	enum ca_verdict verdict;
	double samples; /* periods with it on the stack, percent of whole_of; NAN unknown */
	double own;     /* ... that had it innermost */
	/* borrowed, of the last run that says so; end with NULL, or NULL */
	char *const *via;      /* callers that this region stands for as well */
	char *const *contains; /* regions that make up nearly all of this one */
	char *const *calls;    /* ... and which others call, too */
	bool leads; /* not known, but by its estimate among the first rows: it stands before those that do not matter */
	unsigned asked; /* several regions at once (what_if.h): by how many percent the largest part, at which
			   the curve is what was asked for; 0: one region */
	double waits;   /* of its samples, percent not on a CPU */
	double rank;    /* rows of one verdict are in its order */
};

/* A region that works before the experiments of a run, and hardly in them. */
struct ca_profile_early {
	double seconds; /* of CPU time, in all such runs; 0: it is none */
	double then;    /* its part of the samples before the experiments, 0..1 */
};

/* Where the samples and the experiments went. */
struct ca_funnel {
	size_t runs, unfinished, failed; /* failed: exit status other than 0 */
	size_t outside;                  /* the runtime was in none of their processes */
	size_t off;                      /* it switched itself off in one of them */
	uint64_t runtime, cpu, samples, in_scope, in_main, dropped, visits, started, finished, kept;
	uint64_t cut, no_visit, stalled, overflow, disturbed, unplaced, books,
		ahead;     /* experiments by flag */
	uint64_t unsteady; /* experiments that whole runs have contradicted */
	uint64_t zeros;    /* kept ones at 0 % */
	uint64_t drop[CA_DROP_COUNT];
};

struct ca_profile {
	struct ca_catalog catalog;
	struct ca_profile_run *run;
	struct ca_profile_experiment *experiment;
	struct ca_profile_visits *visits;
	struct ca_profile_time *times;
	struct ca_profile_samples *samples;
	struct ca_profile_stack *stack;
	const char *stack_unit; /* of their counts, as speedscope calls it; NULL: none. Static */
	struct ca_profile_scope *scope;
	struct ca_profile_binary *binary; /* the program's own is the first, where it has a build-id */
	struct ca_profile_point *point;
	struct ca_profile_row *row;
	char **warning; /* of the runs, without repetitions, and of the reader */
	size_t runs, experiments, visit_count, time_count, sample_count, stacks, scopes, binaries, points,
		rows, warnings;
	size_t unread; /* lines of run files */
	size_t scoped; /* runs, when the last of `scope` was read */
	struct ca_funnel funnel;
	double periods;     /* of the runs that were sampled to their ends ... */
	double *periods_of; /* ... and in whose scope it was, by region, from the first one on. Owned */
	double *whole_of; /* ... of which on a CPU, or waited for in it: what a person takes for 100 %. Owned */
	double length;    /* of a run, s of virtual time, mean; 0: not known */
	double squares;   /* ... and of what each sample stands for */
	struct ca_profile_early *early; /* by region, from the first one on. Owned */
	double before,
		seen; /* s of virtual time: before the experiments, in runs of which the rest is not known to
				its end, and all that was seen of these; 0: there are others */
	bool busy;    /* most experiments were disturbed by other programs ... */
	bool blind;   /* ... and what is won beside them cannot be told */
	bool crowded; /* in most experiments threads shared CPUs, and timers do not tell who had them */
};

/* results_read.c: one run file; what it says is added. A torn last line is fine, other lines
 * that cannot be read become a warning. */
enum ca_status ca_profile_read(struct ca_profile *profile, const char *path, struct ca_err *err);
/* profile_stacks.c. Add a `stack` record; put those with the same frames together. False: no memory. */
bool ca_profile_read_stack(struct ca_profile *profile, struct json_object *record);
void ca_profile_merge_stacks(struct ca_profile *profile);
void ca_profile_free_stacks(struct ca_profile *profile);
/* profile_json.c, coz.c, export.c, profile_stacks.c: whole files. False: write error, see errno. */
bool ca_profile_write_json(const struct ca_profile *profile, FILE *file);
bool ca_profile_write_coz(const struct ca_profile *profile, FILE *file);
bool ca_profile_write_csv(const struct ca_profile *profile, FILE *file);
bool ca_profile_write_markdown(const struct ca_profile *profile, FILE *file);
bool ca_profile_write_folded(const struct ca_profile *profile, FILE *file);
bool ca_profile_write_speedscope(const struct ca_profile *profile, FILE *file);
/* Of those files: a text as a quoted field of CSV, with the comma behind it, and as code in a cell of Markdown. */
void ca_export_csv(FILE *file, const char *text);
void ca_export_markdown(FILE *file, const char *text);
/* DIR/NAME anew, by rename; fill returns false, and errno, where it cannot be written. */
enum ca_status ca_profile_replace(const char *dir, const char *name, bool (*fill)(const void *, FILE *),
				  const void *what, struct ca_err *err);
/* What profile.json holds. Owned by the caller (json_object_put). */
struct json_object *ca_profile_json(const struct ca_profile *profile);
/* profile_share.c: which runs were sampled to their ends; the periods of those in whose scope each region was (false:
 * no memory); and what those say of each region: n of them, owned by the caller. NULL: no memory. */
void ca_profile_find_sampled(struct ca_profile *profile);
bool ca_profile_find_periods(struct ca_profile *profile);
struct ca_share *ca_profile_share(const struct ca_profile *profile, size_t *n);
/* What they do while that point is not passed, where its visits stand for whole runs; else empty. */
struct ca_silence ca_profile_silence(const struct ca_profile *profile, const struct ca_profile_point *point);
/* What worked before the experiments where no run tells how much that is of a whole one; false: no memory. Is it enough
 * to matter, whatever its experiments say? */
bool ca_profile_find_early(struct ca_profile *profile);
bool ca_profile_is_early(const struct ca_profile *profile, uint32_t region);
/* profile_whole.c: whole runs and experiments inside runs. Of the two curves of a region, is this the one
 * that is not used? */
bool ca_profile_passes_over(const struct ca_profile *profile, const struct ca_profile_point *point,
			    const struct ca_curve *curve);
/* Finds points that count no unit of work. False: no memory. */
bool ca_profile_find_refuted(struct ca_profile *profile);
/* Flags experiments that whole runs have contradicted, by what the estimates say. True: there are some, and
 * there should be other estimates without them. */
bool ca_profile_find_unsteady(struct ca_profile *profile);
/* percentiles.c: fills those of a latency point. */
enum ca_status ca_profile_percentiles(struct ca_profile *profile, uint32_t point, uint64_t seed);
/* The logarithm of ca_profile_percent[i] at 0 %, of each run, or of each of so many parts of the one run there
 * is, as far as it has enough visits; `value` has room for one more than there are experiments. Returns how
 * many. */
size_t ca_profile_percentile_sample(const struct ca_profile *profile, const struct ca_profile_point *point,
				    int i, size_t parts, double *value);
/* Of ca_profile_percent[i], what the row's region does to it; NULL: not known. */
const struct ca_curve *ca_profile_percentile(const struct ca_profile_row *row, int i);
/* funnel.c */
void ca_funnel_count(struct ca_profile *profile);
/* What is to be known of all numbers, in whole sentences: whom they hold beside, and what no experiment can tell. How
 * many there are. */
enum { CA_FUNNEL_NOTES = 8, CA_FUNNEL_NOTE = 400 };
size_t ca_funnel_notes(const struct ca_profile *profile, char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE]);
/* Why there is nothing, or nothing sure, to show, and what to do about it; static texts.
 * False: the profile is fine. */
bool ca_funnel_reason(const struct ca_profile *profile, const char **cause, const char **remedy);
/* profile.c */
/* An experiment as one of its progress points saw it. */
struct ca_observation ca_profile_observe(const struct ca_profile *profile,
					 const struct ca_profile_experiment *e,
					 const struct ca_profile_visits *visits);
/* How many more runs would make the first rows known to +- points at 50 %, about; 0: they are, or runs are not
 * what is missing. *open: the one of them that is known least. */
size_t ca_profile_runs_wanted(const struct ca_profile *profile, double points,
			      const struct ca_profile_row **open);
/* For people: the verdict of a row; where none is given and it cannot be much, that. */
const char *ca_profile_row_text(const struct ca_profile_row *row);
bool ca_profile_is_little(const struct ca_profile_row *row);
/* Without a verdict, and more runs would hardly change that. */
bool ca_profile_is_vague(const struct ca_profile_row *row);
const char *ca_profile_verdict_key(enum ca_verdict verdict); /* for programs; does not change */
const char *ca_profile_baseline_name(enum ca_baseline baseline);
const char *ca_profile_how_name(enum ca_how how); /* for programs; does not change */
/* Sorts the rows: the best first. Made by ca_profile_load already. */
void ca_profile_rank(struct ca_profile *profile);
/* Is the row no advice, since it only contains what others are? */
bool ca_profile_holds_others(const struct ca_profile_row *row);
/* Is it the best row of its region? With several points each has one. */
bool ca_profile_is_first(const struct ca_profile *profile, size_t row);
void ca_profile_free_names(char **names); /* NULL is fine */
static inline const char *ca_profile_point_kind(const struct ca_profile_point *point)
{
	return point->kind == 'e' ? "end-to-end" : point->kind == 'l' ? "latency" : "throughput";
}

#endif

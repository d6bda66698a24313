/* SPDX-License-Identifier: MIT */
/* The accuracy suite's runner: what its files share.
 *
 * For: tests/accuracy/run, a program for developers and CI, one thread, that starts the
 * programs with known answers, `causal` and `coz`, one at a time. Not shipped. */
#ifndef ACC_H
#define ACC_H
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { ACC_SPEEDUPS = 12, ACC_REPEATS = 32, ACC_ROUNDS = 32, ACC_PATH = 1024 };

/* ---- the cases (cases.c) ------------------------------------------------------------ */
enum acc_case_flag {
	ACC_LATENCY = 1, /* judged by the latency of "request", not by the rate of "work" */
	ACC_OFF_CPU = 2, /* the region waits: needs off-CPU selection */
	ACC_SHORT = 4    /* part of --short */
};

/* One region of one program. On paper: effect(X) = slope x min(X, knee) + slope2 x
 * max(0, X - knee), all in percent; slope NAN: only the measured truth is known. */
struct acc_case {
	const char *name;    /* program:region, unique */
	const char *program; /* executable */
	const char *source;  /* file, below programs/, with the GT_REGION comment */
	const char *region;
	const char *function; /* extended regular expression for -F; NULL: ^region_NAME$ */
	double slope, knee, slope2;
	unsigned flags;    /* enum acc_case_flag */
	const char *class; /* what it is about: "base", "clock", "outside", "books", "queue", "hot" */
};
extern const struct acc_case acc_cases[];
extern const size_t acc_case_count;

/* The effect on paper, percent; NAN if there is none. */
double acc_case_expect(const struct acc_case *c, double speedup);
/* The line that carries the case's GT_REGION comment; 0: not found. */
unsigned acc_case_line(const struct acc_case *c, const char *program_dir);

/* ---- the ways in which causal is asked (modes.c) -------------------------------------- */
struct acc_mode {
	const char *name, *what;
	bool line;          /* else function mode */
	bool plain;         /* neither runs nor speedups are given: --budget */
	bool all;           /* one sweep over all functions of the program, for all its cases */
	bool stripped;      /* programs without symbols */
	bool neighbour;     /* beside a busy process */
	bool latency;       /* only the cases that are judged by latency */
	const char *option; /* a further option, or NULL */
	double mean, worst; /* bars, points; NAN: none */
};
extern const struct acc_mode acc_modes[];
const struct acc_mode *acc_mode_find(const char *name); /* NULL: there is none */
void acc_mode_list(void);

/* ---- options (run.c) ---------------------------------------------------------------- */
struct acc_options {
	double speedup[ACC_SPEEDUPS];
	size_t speedups;
	double seconds;       /* of prediction, per case and repeat, all runs together */
	double truth_seconds; /* of each single run for the truth */
	int truth_rounds;     /* A B pairs per speedup */
	int repeat, runs;
	const struct acc_mode *mode;
	bool coz, predict, overhead, bars, brief, paper;
	double noise;                            /* largest share of the machine that others may take, 0..1 */
	int retries;                             /* runs that are thrown away for noise, at most, each time */
	const char *causal, *programs, *sources; /* the driver; built programs; their sources */
	const char *work;                        /* scratch directory */
	const char *json, *markdown, *truths;
	unsigned verbose;
};

/* ---- one run of a program (measure.c) ----------------------------------------------- */
struct acc_run {
	double rate, latency; /* visits a second; microseconds or NAN */
	double wall;          /* seconds */
	double others;        /* share of the machine that other processes took, 0..1 */
	int status;           /* as a shell; 124: ran into the time limit */
};

/* Runs argv (argv[0] looked up in PATH), its standard output parsed for progress_rate=,
 * its standard error appended to `log`. False: it could not be started. */
bool acc_run_once(const char *const *argv, double limit, const char *log, struct acc_run *run);
/* The same, again when others took the CPU, at most options->retries times; then the
 * quietest one is given, with *noisy counted up. */
bool acc_run_quiet(const struct acc_options *options, const char *const *argv, double limit,
		   struct acc_run *run, unsigned *noisy);
/* A busy process pinned on one core, until stopped; its CPU time is not "others". */
bool acc_neighbour_start(void);
void acc_neighbour_stop(void);
double acc_now(void); /* seconds, monotonic */

double acc_median(const double *value, size_t n); /* NANs are left out; NAN if none */
double acc_mean(const double *value, size_t n);   /* the same */

/* ---- results of a case -------------------------------------------------------------- */
struct acc_estimate {
	double effect, low, high; /* percent; NAN: no answer */
	double seconds_to_5;      /* until the interval is +-5 points; NAN: unknown */
};

struct acc_result {
	const struct acc_case *c;
	unsigned line;
	const char *skipped;                                   /* why the case was not run; NULL: it was */
	double base_rate;                                      /* visits a second, unprofiled */
	double truth[ACC_SPEEDUPS], truth_error[ACC_SPEEDUPS]; /* median; standard error */
	size_t repeats;
	struct acc_estimate ours[ACC_SPEEDUPS][ACC_REPEATS];
	double coz[ACC_SPEEDUPS][ACC_REPEATS]; /* NAN: no answer */
	double overhead;                       /* percent; NAN: not measured */
	size_t declined;                       /* repeats in which causal said that it cannot tell */
	bool first[ACC_REPEATS];               /* the region is the profile's first */
	double others;                         /* largest share that others had in a run of a prediction */
	unsigned noisy;                        /* runs accepted in spite of others on the CPU */
	char problem[200];                     /* why there is no prediction, or "" */
};

/* The true effect by really shortening the region (truth.c is measure.c's other half). */
bool acc_truth(const struct acc_options *options, const struct acc_case *c, struct acc_result *result);
/* Truths of an earlier run, from what --json has written (truths.c). Load: false and a message if it is none, or one
 * with a neighbour where the mode has none. Take: false if this case is not in it at all speedups. */
bool acc_truths_load(const struct acc_options *options, const char *path);
bool acc_truths_take(const struct acc_options *options, struct acc_result *result);
/* causal's prediction, through its command line and profile.json (predict.c). */
bool acc_predict(const struct acc_options *options, struct acc_result *result, size_t repeat);
/* Overhead at 0 %: causal -s 0 in alternation with the unprofiled program. */
bool acc_overhead(const struct acc_options *options, struct acc_result *result);
/* Coz's prediction for the same region (coz.c), the kindest reading of its data. */
bool acc_coz(const struct acc_options *options, struct acc_result *result, size_t repeat);
bool acc_coz_installed(void);

/* Command lines for the flavours of a program; the text lives in `buffer`. */
const char *acc_program(const struct acc_options *options, const struct acc_case *c, const char *flavour,
			char buffer[ACC_PATH]);
/* The one that causal is asked about. */
const char *acc_profiled(const struct acc_options *options, const struct acc_case *c, char buffer[ACC_PATH]);

/* ---- points that causal chooses (auto.c) ---------------------------------------------- */
/* Each program of the selected cases; true when enough agree. */
bool acc_auto(const struct acc_options *options,
	      bool (*selected)(const void *context, const struct acc_case *c), const void *context);

/* ---- the report (report.c) ---------------------------------------------------------- */
void acc_report_case(const struct acc_options *options, const struct acc_result *result);
/* Prints the summary against the bars; true when all of them hold. */
bool acc_report_summary(const struct acc_options *options, const struct acc_result *result, size_t results);
bool acc_report_json(const struct acc_options *options, const struct acc_result *result, size_t results);
bool acc_report_markdown(const struct acc_options *options, const struct acc_result *result, size_t results);
#endif

/* SPDX-License-Identifier: MIT */
/* The conductor: chooses code and speedups, opens and closes experiments, drains the
 * rings, writes the run file. Driver's process, one thread; never blocks: the driver
 * calls ca_conductor_step when it says so and owns all waiting. */
#ifndef CA_CAUSAL_CONDUCTOR_CONDUCTOR_H
#define CA_CAUSAL_CONDUCTOR_CONDUCTOR_H
#include "core/status.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ca_settings;
struct ca_conductor;
struct ca_region;
struct ca_samples;
struct ca_sweep; /* what all runs of a sweep share: end-to-end choices, the run clock */

/* What a run that is only traced had to say. */
struct ca_conductor_traced {
	uint64_t events, threads, processes;
	uint64_t outside;  /* events that are in no time window, and no sink */
	bool lost;         /* some are missing, which has been said */
	const char *sinks; /* that it went to; borrowed from the settings, or constant */
	char stem[4096];   /* of the names of files without a target */
};

/* What an experiment with the program should take, as a run with samples shows. */
enum { CA_SUGGESTED = 5 };
struct ca_suggestion {
	char *binaries;  /* for -B: the scope; NULL: the executables. Owned, as are these: */
	char *points;    /* for -P; NULL: none was found, or none is needed: */
	bool own_points; /* the program passes some of its own */
	bool alone;      /* one thread does all */
	char *reason;    /* why none was found, or NULL */
	struct {
		char *name;
		double own, total; /* percent of the samples in scope */
	} code[CA_SUGGESTED];      /* what a person can change, that with most samples first */
	size_t codes;
};

struct ca_conductor_options {
	const struct ca_settings *settings; /* of the variant; outlives the conductor */
	const char *dir;                    /* output directory, exists */
	unsigned run;                       /* number of the run file, 1-based */
	unsigned iteration;                 /* 1-based */
	size_t variant;                     /* from 0; runs of one variant share a plan */
	const char *const *command;         /* NULL-terminated, borrowed */
	const char *const *arguments;       /* options of causal, to be recorded; the same */
	struct ca_sweep *sweep;
	/* A line for the user. level 0: always shown, 1: with -v 1 and above, ... */
	void (*message)(void *context, int level, const char *text);
	/* Remove what earlier sweeps left in dir; called when nothing can be wrong any more with what
	 * the user asked for. NULL: the run is added to it. */
	enum ca_status (*clear)(void *context, struct ca_err *err);
	void *context;
	/* Without a number of runs: experiments end when the answer is there, or so many ns after the first
	 * one of this run has begun (0: no limit). The program goes on without us. */
	bool ends;
	uint64_t budget;
	/* The whole run is one experiment, from exec to exit, although the settings do not say so (-e):
	 * `region` at `speedup` percent. Runs at 0 % of the same region belong beside it, in alternation.
	 * The progress points that the run passes are recorded with it; if there are none, its end.
	 * ca_sweep_why_whole (sweep.h) tells after each run whether the next ones should be such;
	 * unless the caller says so here, the conductor makes them such by itself: pairs of a region
	 * and a speedup that the sweep draws. */
	bool whole;
	const struct ca_region *region; /* borrowed; with whole. NULL: the sweep draws it */
	unsigned speedup;               /* with whole and region */
	/* No experiments, no results: events only. Filled in at the end, or when the time windows are over: then
	 * the program goes on without us. Else NULL. */
	struct ca_conductor_traced *traced;
	/* With `traced`: a profile of the samples. Filled in at the same time. Else NULL. */
	struct ca_samples *samples;
	struct ca_suggestion
		*suggestion; /* with `samples`: filled in then, too; ca_conductor_suggestion_fini. Or NULL */
};

/* Why experiments have ended in a run that goes on. */
enum ca_conductor_end {
	CA_CONDUCTOR_GOES_ON,
	CA_CONDUCTOR_DURATION, /* the time that was asked for is over */
	CA_CONDUCTOR_DECIDED,  /* the answer is there */
	CA_CONDUCTOR_SPENT,    /* the budget is */
	CA_CONDUCTOR_ASKED     /* ca_conductor_finish */
};

/* For the progress line. Strings are borrowed until the next step. */
enum { CA_CONDUCTOR_TOP = 3 };
struct ca_conductor_status {
	uint64_t experiments; /* finished and kept so far */
	uint64_t dropped;     /* finished, but not kept */
	bool whole;           /* the run is one experiment: there is nothing to count before it ends */
	/* what is known so far, over all runs: the regions with most effect, at 50 % */
	struct {
		const char *region;
		double effect, low, high; /* percent */
	} top[CA_CONDUCTOR_TOP];
	size_t tops;
	const char *region; /* of the open experiment, or NULL */
	double speedup;     /* of the open experiment, percent */
	uint64_t samples;
	enum ca_conductor_end end;
};

/* Creates the session and indexes the command's binary and what it links. */
enum ca_status ca_conductor_open(struct ca_conductor **conductor, const struct ca_conductor_options *options,
				 struct ca_err *err);
/* The value of CAUSAL_SESSION for the child. */
const char *ca_conductor_session_path(const struct ca_conductor *conductor);
/* The child has been forked (it may not have called exec yet). */
void ca_conductor_started(struct ca_conductor *conductor, pid_t child);
/* Do what is due; returns the ms until the next call (1..20). */
int ca_conductor_step(struct ca_conductor *conductor);
void ca_conductor_status(const struct ca_conductor *conductor, struct ca_conductor_status *status);
/* No new experiments, and nothing for timelines and profiles, until it is taken back; an experiment that is open
 * goes on to its end. False: it cannot, as bursts are counted in the program (core/laps.h). */
bool ca_conductor_pause(struct ca_conductor *conductor, bool pause);
/* No experiments any more in this run: the runtime leaves the program alone from here on. One that is open
 * goes on to its end. */
void ca_conductor_finish(struct ca_conductor *conductor);
void ca_conductor_suggestion_fini(struct ca_suggestion *suggestion);
/* Is all that was asked for there, and the program left alone, before its end? */
bool ca_conductor_has_left(const struct ca_conductor *conductor);
/* The run has ended: close experiment, run file and session; frees. wait_status as
 * from waitpid(2). last: out, what is known then, with names that are the sweep's until its next run; or NULL. */
enum ca_status ca_conductor_close(struct ca_conductor *conductor, int wait_status,
				  struct ca_conductor_status *last, struct ca_err *err);

#endif

/* SPDX-License-Identifier: MIT */
/* Estimates: from finished experiments to program speedups with 95 % intervals.
 *
 * Pure numbers: no files, no names, no printing. The reasoning is in doc/ESTIMATE.md.
 * Driver's process, one thread. */
#ifndef CA_CAUSAL_RESULTS_ESTIMATE_H
#define CA_CAUSAL_RESULTS_ESTIMATE_H
#include "core/status.h"
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One experiment as one progress point saw it. */
struct ca_observation {
	uint32_t region;  /* what was selected; 0: nothing */
	uint32_t speedup; /* millionths; 0: a baseline experiment of any region */
	uint32_t run;     /* experiments with equal numbers come from one process run */
	double time;      /* s, start of the experiment, one axis for all runs */
	double cost;      /* throughput: effective duration in s; latency: times mean in flight */
	double visits;    /* throughput: visits; latency: arrivals. >= 0 */
	/* What bounds the effect without any comparison; elapsed 0: nothing of it is known */
	double elapsed; /* T, s */
	double active;  /* S, s: at least one thread was in the selected code */
	double delay;   /* D, s: what was inserted ... */
	double still;   /* ... of it, what all stood still for: they share CPUs, or a limit of CPU time */
	double paying;  /* U, s: at least one thread was paying, at most; NAN: unknown */
	double limits;  /* waits for a time, or with a time limit, which moves with D */
	double work; /* s of CPU time, without what was paid; 0: not known, or none; NAN: partly spent waiting */
	double yardstick; /* what the same work took in it: how slow the CPUs were, in any unit; 0: not known */
	double lost; /* s: what other programs and causal took, where elapsed and cost are without it; else 0 */
	double entries; /* into the selected code; 0: not known */
	double idle; /* of its time, the part in which a CPU was idle while a thread of the run waited for one, as
			 * long as all CPUs together would have taken for that, 0..1 */
	/* How it is known when it was in the selected code: 0: exactly; up to 1: by samples; up to
	 * CA_ESTIMATE_BY_TIMER: by those of timers */
	double sampled;
	/* Periods that were sampled in it, and those with the region on the stack; 0: not known */
	double periods, inside;
	double from, to; /* s of virtual time since its run began; equal: not known */
	double before;   /* visits of its run before it; 0: not known */
	bool per_visit;  /* the effect on visits is asked for, else that on all of the time */
	bool counted;    /* it begins and ends between two visits, which have no times */
};

/* Lumps of what timers tell are as long as a tick of the kernel's, 4 ms, and those of perf 1 ms. One is late for others
 * only if its thread meets them in that time. met: how often threads did in an experiment, UINT64_MAX: unknown; work: ns
 * of their CPU time, 0: unknown. */
#define CA_ESTIMATE_BY_TIMER 4.

static inline double ca_estimate_sampled(bool exact, bool by_timer, uint64_t met, uint64_t work)
{
	double lump = by_timer ? CA_ESTIMATE_BY_TIMER : 1;

	if (exact)
		return 0;
	return met == UINT64_MAX || !work ? lump : lump * -expm1(-lump * 1e6 * (double)met / (double)work);
}

/* Of the number of visits, where both ends of an experiment fall between two of them. */
#define CA_ESTIMATE_COUNTED (1. / 6)

/* Runs from their beginnings to their ends, added up: what they do while their progress point is not passed. Times in s
 * of virtual time, samples in periods on a CPU. */
struct ca_silence {
	double length, sampled; /* of the runs; 0: nothing is known */
	double inserted;        /* beside that */
	double before, after,
		between;     /* until a run's first visit, after its last one, and in longer pauses */
	double cpu, samples; /* CPU time in these, and what was sampled */
	bool early; /* of one run, which was left, or whose point was found in it: of all this only what came before
		       the point was found, or before its first visit, is known */
};
void ca_estimate_silence_add(struct ca_silence *sum, const struct ca_silence *run);
/* Of the time in which runs as they are would be at work, 0..1; saved: the part of what was inserted by which they have
 * become shorter. */
double ca_estimate_silence_part(const struct ca_silence *silence, double saved);

/* A region in whole runs, from their samples. */
struct ca_share {
	uint32_t region;
	double periods; /* with it on the stack */
	double share;   /* of all that were sampled, 0..1 */
	double lump;    /* periods that a sample stands for, on average over periods; below 1: 1 */
	double rate;    /* periods a second, in all threads; 0: as in the experiments */
	double overlap; /* of the runs' CPU time, what threads had beside others, at least, 0..1 */
	double late;    /* of a run, until its library comes, 0..1 */
	double silent;  /* periods on a CPU with it on the stack, in all of ca_estimate_options.silence */
};

struct ca_estimate_options {
	uint64_t seed;       /* equal seeds, equal intervals */
	unsigned replicates; /* of the bootstrap; 0: 1000 */
	double quantum;      /* variance of the error of one count, if any is: CA_ESTIMATE_COUNTED; or 0 */
	const struct ca_share *share; /* of whole runs; NULL: nothing is known of them */
	size_t shares;
	double length; /* of a run, s of virtual time; 0: not known */
	/* Where effects on whole runs are asked for, and visits stand for them; else empty. Observations of time itself
	 * have none. */
	struct ca_silence silence;
};

/* What stands for "the same time at 0 %". */
enum ca_baseline {
	CA_BASELINE_NONE, /* there was no usable experiment at 0 % */
	CA_BASELINE_ALL,  /* all of them together */
	CA_BASELINE_RUN,  /* those of the same run */
	CA_BASELINE_NEAR, /* the nearest ones in time, of the same run if it has some */
	CA_BASELINE_PLACE /* the nearest ones in place: at about the same time of their runs */
};

/* One region at one speedup. Percent; NAN: not known. */
struct ca_cell {
	uint32_t region, speedup;
	double effect, low, high;
	double visits;      /* all experiments together */
	size_t experiments; /* used */
	size_t outliers;    /* ... of which with next to no weight */
	size_t runs;        /* that they came from */
};

/* What an answer stands on. */
enum ca_how {
	CA_HOW_COMPARED, /* experiments were compared with those at 0 % */
	CA_HOW_BOUNDS,   /* the bounds of the experiments are the interval, at least at 50 % */
	CA_HOW_OWN,      /* hardly anybody paid: each experiment is its own baseline */
	CA_HOW_SHARE /* likewise, but the share of the code is that of the runs' samples, which know more of
			  * it than the experiments */
};

/* From NOT_ENOUGH on, nothing is sure. */
enum ca_verdict {
	CA_VERDICT_WORTH,
	CA_VERDICT_NOT_WORTH,
	CA_VERDICT_NOT_ENOUGH,
	CA_VERDICT_CANNOT_TELL /* other programs took the CPU most of the time */
};

/* In so many parts of a run, equally long, experiments of each region are to lie. That of a run of this length
 * in which a time lies: */
enum { CA_RUN_PARTS = 4 };
int ca_estimate_part(double seconds, double length);

enum { CA_AT = 3 };
extern const uint32_t ca_estimate_at[CA_AT]; /* millionths: 25, 50 and 100 % */

/* One region over all its speedups. NAN: not known. */
struct ca_curve {
	uint32_t region;
	/* The effect at the speedups ca_estimate_at, percent, from all experiments of the region
	 * together; the last is the ceiling: no speedup of this code gives more */
	double at[CA_AT], at_low[CA_AT], at_high[CA_AT];
	enum ca_how how;
	double impact, impact_low, impact_high; /* mean effect over speedups 0..100, percent */
	double slope, slope_low, slope_high;    /* program % gained per % of region speedup */
	double max;                             /* largest trusted effect, percent */
	double max_speedup;                     /* where, percent */
	double idle; /* mean of its experiments, those at 0 % included; 0 where each is its own baseline */
	/* ... of those above 0 %, the part of the time in S as samples tell it and others pay for it, 0..1; 0 where each
	 * is its own baseline */
	double sampled;
	size_t experiments;
	size_t first, cells; /* its cells: cell[first .. first + cells) */
};

struct ca_estimates {
	enum ca_baseline baseline;
	unsigned neighbours;  /* CA_BASELINE_NEAR, _PLACE: how many */
	size_t zeros;         /* experiments at 0 % used */
	double noise;         /* relative scatter of one experiment at 0 %, robust */
	struct ca_cell *cell; /* sorted by region, then speedup; owned */
	size_t cells;
	struct ca_curve *curve; /* sorted by region; owned */
	size_t curves;
	double saved;  /* of what was inserted, the part by which visits came sooner, 0..1 */
	double silent; /* part of a run as it is without visits, of which samples tell, 0..1 */
	/* By observation: the effect that it has by itself, against 0 % in its place and within its own bounds, percent;
	 * NAN: none. Owned */
	double *single;
};

/* Fills *out (release with ca_estimate_fini). Observations with no cost are ignored, but for
 * their place in the run: the progress point is not passed there. Without a baseline the cells are there with NAN effects. CA_ERR_NOMEM only. */
enum ca_status ca_estimate(const struct ca_observation *observation, size_t n,
			   const struct ca_estimate_options *options, struct ca_estimates *out);
void ca_estimate_fini(struct ca_estimates *estimates);
/* Intervals say what experiments leave open. From now on also what the method is off by, as the accuracy suite shows
 * it: 0.3 points and 1 % of the effect, standard deviations; and what the two functions below tell. Once, before they
 * are shown or judged. */
void ca_estimate_add_method_error(struct ca_estimates *estimates);
/* Of a curve's effects at a speedup p (0..1), half width of 95 %, points: CPUs that are idle while threads wait may
 * be so for longer or for less long, once the code is faster. No experiment tells. */
double ca_estimate_idle_error(const struct ca_curve *curve, double p);
/* The same for S that samples tell: it is paid for in lumps, which some wait for and others miss. */
double ca_estimate_sampled_error(const struct ca_curve *curve, double p);
/* Both: what more experiments do not narrow. */
double ca_estimate_lasting_error(const struct ca_curve *curve, double p);
/* Of a curve's interval at 50 %, points; NAN: not known. */
double ca_estimate_width(const struct ca_curve *curve);
/* One code by so many whole runs above 0 %, and by experiments inside runs: are the former to be told? If there are more
 * of them, or they say more, which a few may seem to by chance; or where the two contradict each other. */
bool ca_estimate_prefers_whole(const struct ca_curve *whole, size_t runs, const struct ca_curve *inside,
			       size_t experiments);
/* Student's t, 97.5 %. */
double ca_estimate_t975(double df);
/* Experiments that a verdict needs where they are compared; whole runs above 0 % that an interval needs. */
enum { CA_ESTIMATE_TRIES = 3, CA_ESTIMATE_WHOLE_RUNS = 4 };
/* What the curve says by itself: never CANNOT_TELL, which is a matter of the machine. */
enum ca_verdict ca_estimate_verdict(const struct ca_curve *curve);
/* What rows of one verdict are sorted by, the largest first. Those not worth it by the lower end: there, a high middle
 * mostly means few experiments. All others by what is to be expected: the largest of several estimates is so by chance
 * as well, and the more so the wider it is (empirical Bayes; Efron and Morris, JASA 1973). usual: the mean square of the
 * impacts; 0: not known. */
double ca_estimate_rank(const struct ca_curve *curve, enum ca_verdict verdict, double usual);
/* More experiments would not say more: the effect at 50 % is known to +- points, but for what no experiment tells,
 * or surely too small to matter. */
bool ca_estimate_decided(const struct ca_curve *curve, double points);

#endif

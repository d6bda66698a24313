/* SPDX-License-Identifier: MIT */
/* The conductor's state, shared by its files: conductor.c (the state machine),
 * conductor_experiment.c (an experiment while it is open), conductor_limit.c (beside a limit of CPU time), conductor_watch.c (the program's threads), conductor_plan.c (which experiments), conductor_points.c
 * (points chosen here), conductor_scope.c (a scope that follows the samples), conductor_length.c (how
 * long experiments are), conductor_whole.c (runs measured as a whole) and conductor_open.c (everything
 * before and after). Private to them. */
#ifndef CA_CAUSAL_CONDUCTOR_CONDUCTOR_STATE_H
#define CA_CAUSAL_CONDUCTOR_CONDUCTOR_STATE_H
#include "binary/objects.h"
#include "causal/conductor/conductor.h"
#include "causal/conductor/handover.h"
#include "causal/conductor/host.h"
#include "causal/conductor/interference.h"
#include "causal/conductor/pace.h"
#include "causal/conductor/quota.h"
#include "causal/conductor/regions.h"
#include "causal/conductor/sampling.h"
#include "causal/conductor/selection_log.h"
#include "causal/conductor/set_aside.h"
#include "causal/points/point_search.h"
#include "causal/points/requested.h"
#include "causal/points/visits.h"
#include "causal/results/what_if.h"
#include "core/by_index.h"
#include "core/rng.h"
#include "core/session.h"
#include "core/settings.h"
#include "core/sink.h"
#include "core/sink_tracks.h"
#include "core/windows.h"
#include "sampler/tick.h"
#include <stdbool.h>

enum { CA_SLOTS_AHEAD = 64, CA_SLOTS_MOST = 512 }; /* thread slots with backing store beyond those in use */
enum { CA_NAMED = 8 }; /* regions that are tried without a sample, as the user names them */

enum ca_conductor_phase { WAITING, PREPARING, TRYING, WARMING_UP, RUNNING, SETTLING, FINISHED };

struct ca_work {
	uint64_t time,
		ns; /* at that time; of CPU time, without what was paid and probes took: only differences count ... */
	uint64_t paid;                    /* ... and that */
	uint64_t turns;                   /* of spin loops */
	uint64_t met;                     /* meetings of threads where S is sampled */
	uint64_t overhead, overhead_in_s; /* see core/slot.h; so is ... */
	uint64_t yardstick, yardsticks;
	uint32_t processes; /* says which ones these are */
};

/* Where a limit of CPU time holds the run back, since it was opened or its measurement began. */
struct ca_limited {
	struct ca_work work; /* by then ... */
	uint64_t from;       /* ... ns */
	uint64_t beyond;     /* ns of CPU time that the run's threads had used beyond virtual time */
	uint64_t more;       /* S time for D that the limit makes longer, ns */
	uint64_t next;       /* look, ns */
};

struct ca_open_experiment {
	struct ca_experiment_record record;
	struct ca_visits_now before, after;
	struct ca_visits visits[CA_MAX_POINTS];
	struct ca_in_flight flight;
	uint64_t opened;                        /* ns; the measured part begins at record.start */
	uint32_t missed;                        /* the session's threads_missed then */
	uint64_t began;                         /* the same on the run's virtual clock */
	uint64_t paid_before;                   /* in the warm-up */
	uint64_t periods_before, inside_before; /* sampled in the run so far, and in the region */
	uint64_t early; /* of a whole run: samples in the region before it was selected */
	uint64_t looked_at_work, looked_s_time,
		looked_unplaced;                               /* of S, when its probes were looked at last */
	uint64_t paying_before, limits_before, outside_before; /* core/paying.h, at the start */
	uint64_t limited_before, limited;                      /* ... and until the end */
	uint64_t inserted_before;                              /* ns, in the warm-up */
	uint64_t caught_up_before, caught_up; /* of the session, at the start and at the end, ns */
	uint64_t planned_end;
	uint64_t warm_up;    /* virtual time of it */
	uint64_t part;       /* end to end: since when its later window is open; 0: the first */
	bool paused;         /* end to end: its window is over, and its end is not that of the run */
	bool ended;          /* with the program, by itself */
	bool given_up;       /* end to end: it took too long, and there is no further one in this run */
	uint64_t next_look;  /* ... whether it does */
	bool lumpy;          /* D grows by whole samples, or hits of timed S */
	struct ca_work work; /* at its start */
	struct ca_limited limit;
	struct ca_load load;      /* when it was opened */
	struct ca_work last_work; /* while its processes were still there */
	struct ca_load last_load; /* ... */
	unsigned looks;           /* at where threads are ... */
	unsigned idle_beside;     /* ... and CPUs that were idle beside some that waited, the sum */
};

/* conductor_silence.c */
struct ca_silence_watch {
	const char *point; /* the chosen one; borrowed. NULL: none was when the run began */
	bool wanted;       /* if it is for causal to choose one */
	struct ca_pace pace;
	double rate;     /* visits a second, where it was chosen; 0: not known */
	double least;    /* ns of a pause */
	uint64_t visits; /* so far, as of the last look */
	uint64_t work;   /* ns of CPU time, likewise */
	uint64_t since, work_then,
		periods;               /* the last visit: virtual time of the run; and what there was then */
	struct ca_vec samples, inside; /* by region: uint64_t, then; double, in all that was silent */
	struct ca_silence sum;
};

struct ca_conductor {
	struct ca_conductor_options opt;
	struct ca_quota quota; /* of the run */
	const struct ca_settings *set;
	struct ca_settings own_set; /* a copy with other values, strings shared; when set points to it */
	struct ca_session *session;
	int session_fd;
	char session_path[CA_PATH];
	struct ca_scope *scope;
	enum ca_backend backend;              /* wanted, once it is known what can be had */
	struct ca_conductor_scope *following; /* while no binaries are named, else NULL */
	struct ca_requested *progress;
	struct ca_point_choice *points; /* while points are to be chosen by us, else NULL */
	struct ca_objects *objects;
	struct ca_texts *own_texts; /* NULL: they are the sweep's */
	struct ca_regions *regions;
	struct ca_catalog catalog;
	struct ca_handover *handover; /* NULL: a trace, --single, no perf or no memory */
	struct ca_selection_log *log;
	struct ca_results *results;
	struct ca_dict *dict;
	struct ca_sinks *sinks;
	struct ca_conductor_trace *trace; /* NULL: no sink */
	struct ca_walks *walks;           /* NULL: stacks come walked */
	struct ca_by_index
		gate; /* struct ca_sink_track: what is open in each thread, and in which window it is shown */
	uint64_t outside, cut;          /* events: of no window; made where windows begin and end */
	struct ca_host *host;           /* NULL: nobody asked */
	struct ca_sampling *sampling;   /* while a profile of the samples is made, else NULL */
	struct ca_set_aside *set_aside; /* NULL: they are added up at once */
	struct ca_rng rng;              /* for the times of steps; choices are the sweep's */
	struct ca_speedups pool;
	uint64_t came[CA_MAX_MODULES]; /* ns of the run's virtual time, of the first so many: */
	uint32_t modules;
	struct ca_plan *plan; /* of the sweep, as are these; NULL without one */
	struct ca_stacks *stacks;
	uint64_t offered;          /* periods on the stacks when the plan was offered what they show, ... */
	bool has_offers;           /* in this run */
	uint64_t missing_since;    /* ns; not all of that is there; 0: it is */
	uint32_t named[CA_NAMED];  /* what the filters name, samples or not, */
	size_t nameds;             /* if that is so little */
	unsigned asked_names;      /* how often that was looked for */
	uint64_t first_experiment; /* ns; when it began */
	enum ca_conductor_end end; /* why there are no more experiments, if there are none */
	uint64_t ran[CA_MAX_THREADS], ran_all;                          /* periods in user code, by slot */
	struct ca_what_if what_if;                                      /* parts 0: not asked */
	struct ca_windows *own_windows[CA_SAMPLER_COUNT];               /* NULL: the sampler has none */
	const struct ca_windows *sampler_windows[CA_SAMPLER_COUNT + 1]; /* these, or the run's; the run's */
	struct ca_windows *windows; /* when experiments begin, and events and samples count */
	bool asked_to_end;
	bool left;      /* the program goes on without us, and the run file is closed */
	bool planned;   /* the next experiment is the plan's */
	unsigned group; /* end to end: runs of a group use the same region; else the iteration */
	bool whole;     /* the run is one experiment, which also records the visits of points ... */
	bool doubt;     /* ... and only checks what experiments inside of others have said */

	enum ca_conductor_phase state;
	pid_t child;
	uint64_t started; /* ns */
	uint64_t state_since;
	uint64_t last_step, last_reap;
	struct ca_pace cpu, watch, load, work, places;
	uint32_t selected;        /* region of the current selection, 0: none */
	uint32_t region;          /* of the experiment being prepared or run */
	uint32_t speedup;         /* ... millionths */
	double length;            /* ns of the next experiment ... */
	double warm_up;           /* ... after so many that are not measured */
	struct ca_heat_look heat; /* visits at the beginning of the trial, or lately */
	struct ca_open_experiment e;
	struct ca_silence_watch silence;
	struct ca_run_summary sum;
	uint64_t kept, dropped; /* experiments */
	uint64_t unplaced_since;
	uint64_t unplaced[CA_MAX_PROCESSES]; /* ns of CPU time of each process then */
	struct {
		uint64_t cpu, since; /* so much CPU time (ns) it had then, and not more since */
	} asleep[CA_MAX_PROCESSES];
	struct {
		uint32_t index;
		uint64_t ns;
	} used[CA_MAX_PROCESSES]; /* of each process that was seen to use some, and ... */
	uint64_t used_before;     /* ... of those before them in the row */
	const char *warned_why;
	bool off_told, unplaced_told;
	bool handed_over; /* a store has come to light, before which nobody has paid in this experiment */
};

/* A line for the user; level 0 goes into the run file as well. */
void ca_conductor_say(struct ca_conductor *c, int level, const char *format, ...) CA_PRINTF(3, 4);
/* Tell of progress points of the command line that were not found, once per sweep; and, to those
 * who ask for details, how often each was visited. */
void ca_conductor_report_points(struct ca_conductor *c);
/* Have all processes put the selection's sites in place? Those do not count that have slept for long: they do it
 * when they wake up. */
bool ca_conductor_patched(struct ca_conductor *c);
/* From here on, see what those that have not do without them. */
void ca_conductor_unplaced_start(struct ca_conductor *c);
/* ns of CPU time that they have had since then: S is not seen there. */
uint64_t ca_conductor_unplaced(const struct ca_conductor *c);

static inline void ca_conductor_enter(struct ca_conductor *c, enum ca_conductor_phase state, uint64_t now)
{
	c->state = state;
	c->state_since = now;
}

/* conductor_experiment.c: an experiment of what is selected begins, ... */
void ca_conductor_experiment_open(struct ca_conductor *c, uint64_t now);
/* ... is measured from here on, ... */
void ca_conductor_experiment_measure(struct ca_conductor *c, uint64_t now);
/* ... and is over. */
void ca_conductor_experiment_close(struct ca_conductor *c, uint64_t now, uint32_t flags);
/* Of a run that is one: its window is over, and its next one begins. */
void ca_conductor_experiment_pause(struct ca_conductor *c, uint64_t now);
void ca_conductor_experiment_resume(struct ca_conductor *c, uint64_t now);
/* Look at what is in flight; and, of a run that is one, also between its windows, at load and CPU time. */
void ca_conductor_experiment_watch(struct ca_conductor *c, uint64_t now);
void ca_conductor_experiment_look(struct ca_conductor *c, uint64_t now);
/* Does a run that is measured as a whole take several times as long as it would without the delays? */
bool ca_conductor_experiment_crawls(struct ca_conductor *c, uint64_t now);
/* Is S entered in ways that its probes do not see? */
bool ca_conductor_experiment_is_unseen(struct ca_conductor *c, uint64_t now);

/* conductor_record.c: an experiment that is over, once what is owed in it has been paid. Adds D of what has run
 * since its beginning, or since its last window's; */
void ca_conductor_sum_up(struct ca_conductor *c);
/* ... and writes it down. */
void ca_conductor_record(struct ca_conductor *c);

/* conductor.c: of the run, and of samplers of their own. */
void ca_conductor_step_windows(struct ca_conductor *c, uint64_t now);

/* conductor_end.c: may further runs show more than this one? A scope that follows has seen at a run's end what
 * it takes for them. */
bool ca_conductor_is_useful(const struct ca_conductor *c, uint64_t now);
/* The program goes on at full speed, and new processes of it start without the runtime: of a sweep, ... */
void ca_conductor_leave(struct ca_conductor *c, uint64_t now);
/* ... of a timeline or a profile of samples. */
void ca_conductor_leave_traced(struct ca_conductor *c, uint64_t now, int wait_status);

/* conductor_host.c: --host. Nothing happens where nobody asked for it. */
void ca_conductor_host_start(struct ca_conductor *c);
void ca_conductor_host_step(struct ca_conductor *c);
void ca_conductor_host_close(struct ca_conductor *c);

/* conductor_watch.c: the program's processes and threads. */
/* Take in what their rings hold; make more slots ready. */
void ca_conductor_drain(struct ca_conductor *c);
/* A sample of `weight` periods, the innermost frame first; flags: CA_SAMPLE_. Is it in scope? */
bool ca_conductor_take_sample(struct ca_conductor *c, uint32_t thread, const ca_place *frame, unsigned frames,
			      unsigned weight, unsigned flags);
/* ns of CPU time of all its processes, those that are gone included. */
uint64_t ca_conductor_cpu_time(struct ca_conductor *c);
/* Now and then: slots of processes and threads that died without a word (SIGKILL, _exit, exec). */
void ca_conductor_reap(struct ca_conductor *c, uint64_t now);
/* The run is over: which processes of the program are not. */
void ca_conductor_tell_running(struct ca_conductor *c);
/* ns that threads still owe in the experiment that is open, or was last; also what they paid in it,
 * and how many they are. */
uint64_t ca_conductor_owed(const struct ca_conductor *c, uint64_t *paid, unsigned *threads);
/* Has the one thread that does all to tell yet for how long others had its CPU in S? */
bool ca_conductor_is_untold(const struct ca_conductor *c);
/* Do their accounts of S time, from the opening of the experiment that is over to its end, agree with
 * this one? CA_EXPERIMENT_BOOKS or 0. */
uint32_t ca_conductor_compare_books(struct ca_conductor *c, uint64_t s_time);
uint32_t ca_conductor_find_ahead(struct ca_conductor *c);

/* conductor_points.c: progress points that are chosen here. In this order: */
enum ca_status ca_conductor_points_open(struct ca_conductor *c, struct ca_err *err);
void ca_conductor_points_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames, bool waiting);
/* Were those that are in use chosen here, and nobody asked? */
bool ca_conductor_points_are_ours(const struct ca_conductor *c);
/* Is a point yet to be chosen in this run? */
bool ca_conductor_points_are_open(const struct ca_conductor *c);
/* Does one thread do all the work, so that nobody is delayed and no point is needed? */
bool ca_conductor_points_are_needless(const struct ca_conductor *c);
/* Since when visits are counted in this run: a point that was found in it was placed late. CLOCK_MONOTONIC ns. */
uint64_t ca_conductor_points_since(const struct ca_conductor *c);
/* Leaves out the visits of points that others have replaced: they may have been placed after all, too late.
 * Of the others, says which count the same unit of work. Returns how many are left. */
size_t ca_conductor_points_keep(const struct ca_conductor *c, struct ca_visits *visits, size_t n);
/* An experiment passed no point, and none is needed: its visits. 0: one is needed after all. */
size_t ca_conductor_points_time(struct ca_conductor *c, const struct ca_experiment_record *record,
				struct ca_visits *visits);
/* Between experiments. True: not ready for one yet. */
bool ca_conductor_points_step(struct ca_conductor *c, uint64_t now);
/* Does it wait for stacks? */
bool ca_conductor_points_want_stacks(const struct ca_conductor *c);
/* After the summary. */
void ca_conductor_points_close(struct ca_conductor *c, int wait_status, const struct ca_visits_now *visits);
void ca_conductor_points_free(struct ca_conductor *c);
/* Warn of points that cost too much. */
void ca_conductor_report_traps(struct ca_conductor *c, const struct ca_visits_now *visits);

/* conductor_plan.c: which code, at which speedup. After the regions are there. */
/* Has the user said which code? Then all of it is tried, and, if it is little, also without a sample. */
bool ca_conductor_is_named(const struct ca_conductor *c);
enum ca_status ca_conductor_plan_open(struct ca_conductor *c, struct ca_err *err);
/* Set region and speedup of the next experiment; false: not enough is known yet. */
bool ca_conductor_plan_next(struct ca_conductor *c, uint64_t now);
/* Should there be no more experiments? */
enum ca_conductor_end ca_conductor_plan_end(struct ca_conductor *c, uint64_t now);
/* Code for a run that is one experiment; 0: the same. */
uint32_t ca_conductor_plan_draw(struct ca_conductor *c, uint64_t now);
/* Where speedups are dealt, what the plan wants such a run to be made of next; else as above. */
uint32_t ca_conductor_plan_pick(struct ca_conductor *c, uint64_t now);
void ca_conductor_plan_begun(struct ca_conductor *c);
/* What it knows of the best regions. */
void ca_conductor_plan_show(const struct ca_conductor *c, struct ca_conductor_status *status);
void ca_conductor_plan_tell(struct ca_conductor *c, const struct ca_experiment_record *record);
/* Write what was sampled; keep it for the next run. */
void ca_conductor_plan_close(struct ca_conductor *c);

/* conductor_scope.c: a scope that follows the samples. */
enum ca_status ca_conductor_scope_open(struct ca_conductor *c, struct ca_err *err);
/* True: not to be counted: it waits for others in OpenMP's code; or it is held back until it is known what is in scope. */
bool ca_conductor_scope_sample(struct ca_conductor *c, const ca_place *frame, unsigned frames,
			       unsigned weight, unsigned flags);
void ca_conductor_scope_step(struct ca_conductor *c, uint64_t now);
/* Is it yet to be seen what is in scope? Then nothing should be chosen. */
bool ca_conductor_scope_is_open(const struct ca_conductor *c);
/* At the end of the run, for the next ones. */
void ca_conductor_scope_close(struct ca_conductor *c);
void ca_conductor_scope_free(struct ca_conductor *c);

/* conductor_length.c: the length of the next experiment and of its warm-up, before the first one of a run,
 * and after each one. */
void ca_conductor_length_init(struct ca_conductor *c);
void ca_conductor_length_first(struct ca_conductor *c, uint64_t now);
void ca_conductor_length_adapt(struct ca_conductor *c);

/* conductor_whole.c: runs that are measured as a whole. Before the run file is opened: should this one be? */
enum ca_status ca_conductor_whole_open(struct ca_conductor *c, struct ca_err *err);
/* At the end of a run that `runtime` ns of virtual time took: should the next ones be? */
void ca_conductor_whole_close(struct ca_conductor *c, uint64_t runtime);
/* A whole run's visits are counted from its beginning on. */
void ca_conductor_whole_begin(struct ca_conductor *c, uint64_t now);
/* Its code was at work before it was selected: D is that of a part of the run. */
bool ca_conductor_whole_is_late(const struct ca_conductor *c);
/* The run is over: what has it done if it has passed no point, and how much of its end belongs to the last
 * visit? */
void ca_conductor_whole_end(struct ca_conductor *c);
/* An experiment has been recorded: is its rate one that stays? */
void ca_conductor_whole_watch(struct ca_conductor *c);
/* What the run's processes have done so far. */
struct ca_work ca_conductor_whole_work(const struct ca_conductor *c);

/* conductor_silence.c: what the run does while the point that causal has chosen is not passed. From its start on, at each
 * step, and when it has come to its end by itself, or is left; what was sampled in a region then is known afterwards. */
void ca_conductor_silence_start(struct ca_conductor *c);
void ca_conductor_silence_step(struct ca_conductor *c, uint64_t now);
void ca_conductor_silence_end(struct ca_conductor *c, uint64_t now, bool left);
uint64_t ca_conductor_silence_samples(const struct ca_conductor *c, uint32_t region);
void ca_conductor_silence_free(struct ca_conductor *c);

/* conductor_limit.c: an experiment has been opened, or is measured from here on; and while it is: does a limit of its CPU time hold the run back? */
void ca_conductor_limit_begin(struct ca_conductor *c, uint64_t now, const struct ca_work *work);
void ca_conductor_limit_make_up(struct ca_conductor *c, uint64_t now);

/* conductor_trace.c: the timeline. Before the first process starts: dictionary, sinks, rings if there is a
 * sink. */
enum ca_status ca_conductor_trace_open(struct ca_conductor *c, struct ca_err *err);
/* Hand on what has been raised since the last time. */
void ca_conductor_trace_drain(struct ca_conductor *c);
/* Are bursts counted in the program (core/laps.h)? Then there are no windows. */
bool ca_conductor_trace_has_laps(const struct ca_conductor *c);
/* A row of the session's processes: it is gone. */
void ca_conductor_trace_forget(struct ca_conductor *c, uint32_t process);
/* A region is about to be selected: call it by its name. */
void ca_conductor_trace_name_region(struct ca_conductor *c, uint32_t number);
/* The rest, what was lost, and the sinks. */
void ca_conductor_trace_close(struct ca_conductor *c);
void ca_conductor_trace_free(struct ca_conductor *c);

/* From the gate to the sinks. */
void ca_conductor_trace_pass(struct ca_conductor *c, const struct ca_source *from,
			     const struct ca_event *event, size_t n);

/* conductor_gate.c: what of the timeline lies in a window, on to the sinks. Events of one thread. */
void ca_conductor_gate(struct ca_conductor *c, const struct ca_source *from, const struct ca_event *event,
		       size_t n);
/* All have been handed on that there are: what is open ends with its window. */
void ca_conductor_gate_follow(struct ca_conductor *c);
void ca_conductor_gate_free(struct ca_conductor *c);

/* conductor_sample.c: a profile of the samples of a run without experiments. Before the rings are made: ... */
enum ca_status ca_conductor_sample_open(struct ca_conductor *c, struct ca_err *err);
/* The program starts. */
void ca_conductor_sample_started(struct ca_conductor *c);
void ca_conductor_sample_step(struct ca_conductor *c, uint64_t now);
/* The slot's thread has ended without a word. */
void ca_conductor_sample_thread_died(struct ca_conductor *c, uint32_t slot, uint64_t now);
/* The run is over, and summed up. */
void ca_conductor_sample_close(struct ca_conductor *c, uint64_t now, int wait_status);

/* conductor_suggest.c: its samples say what an experiment should take. After the sampling is opened. */
enum ca_status ca_conductor_suggest_open(struct ca_conductor *c, struct ca_err *err);
void ca_conductor_suggest_step(struct ca_conductor *c, uint64_t now);
/* When all samples are there. */
void ca_conductor_suggest_close(struct ca_conductor *c, int wait_status);

/* conductor_what_if.c: several regions at once. Before the run: false is a mistake of the user's. */
enum ca_status ca_conductor_what_if_open(struct ca_conductor *c, struct ca_err *err);
bool ca_conductor_is_what_if(const struct ca_conductor *c);
/* Set region and speedup of the next experiment; false: not all regions have been seen yet. */
bool ca_conductor_what_if_next(struct ca_conductor *c);
/* At the end of the run: what was never seen. */
void ca_conductor_what_if_close(struct ca_conductor *c);
/* After the last records: is a name that no code has a mistake for one that some has? */
enum ca_status ca_conductor_what_if_check(struct ca_conductor *c, struct ca_err *err);

/* Free everything; removes the session. */
void ca_conductor_dispose(struct ca_conductor *c);

#endif

/* SPDX-License-Identifier: MIT */
/* The funnel from samples to experiments kept, and from its narrowest place to a cause and a
 * remedy, so that an empty profile never leaves its user without a next step.
 * Driver's process, one thread. */
#include "causal/results/plain.h"
#include "causal/results/profile.h"
#include "core/path.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ca_funnel_count(struct ca_profile *profile)
{
	struct ca_funnel *f = &profile->funnel;
	uint64_t seen = 0;

	memset(f, 0, sizeof *f);
	f->runs = profile->runs;
	for (size_t i = 0; i < profile->experiments; i++) {
		const struct ca_profile_experiment *e = &profile->experiment[i];

		f->finished++;
		f->kept += e->flags == 0;
		f->cut += (e->flags & CA_EXPERIMENT_CUT) != 0;
		f->no_visit += (e->flags & CA_EXPERIMENT_NO_VISIT) != 0;
		f->stalled += (e->flags & CA_EXPERIMENT_STALLED) != 0;
		f->overflow += (e->flags & CA_EXPERIMENT_OVERFLOW) != 0;
		f->disturbed += e->disturbed;
		f->books += e->books;
		f->unsteady += (e->flags & CA_EXPERIMENT_UNSTEADY) != 0;
		f->ahead += (e->flags & CA_EXPERIMENT_AHEAD) != 0;
		f->unplaced += (e->flags & CA_EXPERIMENT_UNPLACED) != 0;
		f->zeros += e->flags == 0 && e->speedup == 0;
		for (size_t v = e->first; v < e->first + e->visits; v++)
			seen += profile->visits[v].delta + profile->visits[v].arrivals;
	}
	for (size_t i = 0; i < profile->runs; i++) {
		const struct ca_profile_run *run = &profile->run[i];

		f->unfinished += !run->ended;
		f->failed += run->ended && run->summary.exit_status != 0;
		f->outside += run->ended && run->summary.outside;
		f->off += run->ended && run->summary.off;
		f->runtime += run->summary.runtime;
		f->cpu += run->summary.cpu_ns;
		f->samples += run->summary.samples;
		f->in_scope += run->summary.in_scope;
		f->in_main += run->summary.in_main;
		f->visits += run->summary.visits;
		f->started += run->summary.started;
		for (unsigned d = 0; d < CA_DROP_COUNT; d++) {
			f->drop[d] += run->summary.drop[d];
			f->dropped += ca_event_is_loss(d) ? run->summary.drop[d] : 0;
		}
	}
	if (f->started < f->finished) /* runs without an end record */
		f->started = f->finished;
	if (f->visits < seen)
		f->visits = seen;
}

static bool end_to_end(const struct ca_profile *profile)
{
	return profile->runs && profile->run[0].end_to_end;
}

static bool line_mode(const struct ca_profile *profile)
{
	return profile->runs && !strcmp(profile->run[0].mode, "line");
}

static bool ended(const struct ca_profile *p)
{
	return p->funnel.unfinished == 0;
}

static bool no_run(const struct ca_profile *p)
{
	return p->runs == 0;
}

static bool outside(const struct ca_profile *p)
{
	return p->funnel.outside == p->runs;
}

static bool no_sample(const struct ca_profile *p)
{
	return ended(p) && p->funnel.finished == 0 && p->funnel.samples == 0;
}

/* Some ticks may have come all the same; as is_idle in conductor_end.c. */
static bool idle(const struct ca_profile *p)
{
	return ended(p) && p->funnel.finished == 0 && p->funnel.samples < 10 * p->runs &&
	       33 * p->funnel.cpu < p->funnel.runtime && p->funnel.runtime > p->runs * UINT64_C(500000000);
}

static bool switched_off(const struct ca_profile *p)
{
	/* a shell before it may have been seen for a moment, with a tick each ms while points are sought */
	return p->funnel.off && !p->funnel.started && p->funnel.in_scope <= 2 * p->runs;
}

static bool failed_at_once(const struct ca_profile *p)
{
	return no_sample(p) && p->funnel.dropped == 0 && p->funnel.failed == p->runs;
}

static bool failed_early(const struct ca_profile *p)
{
	return p->runs && !p->funnel.started && p->funnel.failed == p->runs;
}

static bool all_dropped(const struct ca_profile *p)
{
	return no_sample(p) && p->funnel.dropped > 0;
}

/* Samples whose innermost frame is in no file do not count as taken. */
static bool no_file(const struct ca_profile *p)
{
	return ended(p) && p->funnel.finished == 0 && p->funnel.in_scope < 10 * p->runs &&
	       p->funnel.drop[CA_DROP_NO_MODULE] > p->funnel.samples;
}

static bool no_scope(const struct ca_profile *p)
{
	return ended(p) && p->funnel.finished == 0 && p->funnel.in_scope == 0;
}

/* Their callers may be in scope. */
static bool no_callers(const struct ca_profile *p)
{
	return no_scope(p) && p->funnel.samples > 0 &&
	       2 * p->funnel.drop[CA_DROP_UNWIND] >= p->funnel.samples;
}

static bool no_scope_line(const struct ca_profile *p)
{
	return no_scope(p) && line_mode(p);
}

static bool all_in_main(const struct ca_profile *p)
{
	return no_scope(p) && 2 * p->funnel.in_main > p->funnel.samples;
}

/* ... although it needed no progress point any more. */
static bool over_at_once(const struct ca_profile *p)
{
	return ended(p) && p->funnel.finished == 0 && p->funnel.unfinished < p->runs &&
	       p->run[p->runs - 1].end_to_end;
}

static bool no_progress(const struct ca_profile *p)
{
	return !end_to_end(p) && ended(p) && p->funnel.kept == 0 && p->funnel.visits == 0;
}

static bool killed(const struct ca_profile *p)
{
	return p->funnel.finished == 0 && p->funnel.unfinished == p->runs;
}

static bool none_finished(const struct ca_profile *p)
{
	return p->funnel.finished == 0;
}

static bool mostly(const struct ca_profile *p, uint64_t count)
{
	return p->funnel.kept == 0 && 2 * count >= p->funnel.finished;
}

static bool all_cut(const struct ca_profile *p)
{
	return mostly(p, p->funnel.cut);
}

static bool all_no_visit(const struct ca_profile *p)
{
	return mostly(p, p->funnel.no_visit);
}

static bool all_overflow(const struct ca_profile *p)
{
	return mostly(p, p->funnel.overflow);
}

static bool none_kept(const struct ca_profile *p)
{
	return p->funnel.kept == 0;
}

static bool none_sure(const struct ca_profile *p)
{
	for (size_t i = 0; i < p->rows; i++)
		if (p->row[i].verdict < CA_VERDICT_NOT_ENOUGH)
			return false;
	return true;
}

static bool crowded(const struct ca_profile *p)
{
	return p->crowded && none_sure(p);
}

/* Speedups that were asked for: more than the five of the plan. */
static bool none_sure_of_many(const struct ca_profile *p)
{
	enum { PLANNED = 5 };
	unsigned n = 1;

	for (const char *at = p->runs ? p->run[0].speedups : NULL; at && (at = strchr(at, ',')); at++)
		n++;
	return n > PLANNED && none_sure(p);
}

/* Are experiments at 0 % among those that were to be made? */
static bool deals_zero(const struct ca_profile *p)
{
	for (const char *at = p->runs ? p->run[0].speedups : NULL; at; at = strchr(at, ','))
		if (strtod(at += *at == ',', NULL) == 0)
			return true;
	return false;
}

/* Bounds need none. */
static bool no_zero(const struct ca_profile *p)
{
	return p->funnel.zeros == 0 && none_sure(p) && !deals_zero(p);
}

static bool only_zero(const struct ca_profile *p)
{
	return p->funnel.kept == p->funnel.zeros;
}

static bool only_zero_wanted(const struct ca_profile *p)
{
	bool wanted = p->runs && only_zero(p);

	for (size_t i = 0; i < p->runs; i++)
		wanted &= p->run[i].speedups && !strcmp(p->run[i].speedups, "0");
	return wanted;
}

static bool only_counted(const struct ca_profile *p)
{
	bool counted = p->runs;

	for (size_t i = 0; i < p->runs; i++) {
		char **option = p->run[i].options;

		while (option && *option && strncmp(*option, "--count-only", strlen("--count-only")) != 0)
			option++;
		counted &= option && *option;
	}
	return counted;
}

static bool all_ahead(const struct ca_profile *p)
{
	return p->funnel.ahead && p->funnel.kept == p->funnel.zeros;
}

static bool mostly_disturbed(const struct ca_profile *p)
{
	return p->blind;
}

/* The first that applies is printed: from the mouth of the funnel to its end. */
static const struct reason {
	bool (*applies)(const struct ca_profile *profile);
	const char *cause, *remedy;
	const char *options; /* that the remedy names; NULL: none, or it depends */
} reasons[] = {
	{ no_run, "there is no run in this directory",
	  "name the directory that causal wrote (it holds run-0001.jsonl)" },
	{ outside, "the runtime could not be preloaded into the program, which ran without it",
	  "see the warning at the start: programs that are statically linked, set-user-ID or "
	  "written in Go cannot be profiled" },
	{ switched_off, "the runtime switched itself off in the program, which ran on without it",
	  "see the warning that says why" },
	{ failed_at_once, "the program failed before it did any work",
	  "see the program's own messages, and try the command without causal" },
	{ no_file,
	  "most samples fell into code that is in no file, as just-in-time compilers make it (Java, "
	  ".NET, JavaScript)",
	  "such code cannot be selected; native libraries can: -B NAME, as in -B libjvm" },
	{ idle, "the program used hardly any CPU time: it waited nearly all the time",
	  "give it work to do, or profile the program that it waits for" },
	{ all_dropped, "every sample was dropped", "try the other sample source: -b timer or -b perf" },
	{ no_sample, "no sample was taken: the program used hardly any CPU time",
	  "give it a longer input, or try -b timer" },
	{ no_callers,
	  "samples fell into code outside the scope whose callers cannot be told: it has no unwind tables",
	  "build it with -fasynchronous-unwind-tables, or take it into the scope: -B NAME for a library" },
	{ no_scope_line, "no sample fell on a line in scope",
	  "build with -g, widen -B, -S or -F (for a library: -B NAME), or use -m function" },
	{ all_in_main, "nearly all samples are in main itself, which as a whole is the program",
	  "try its lines, which needs a build with -g: -m line" },
	{ no_scope, "no sample fell into code in scope", "widen -B, -S or -F; for a library: -B NAME" },
	{ failed_early, "the program failed before an experiment began",
	  "see the program's own messages, and try the command without causal" },
	{ over_at_once, "the program was over before an experiment could begin",
	  "give it more to do; or, if it has much to do elsewhere, widen -B, -S or -F" },
	{ no_progress, "no progress point was passed",
	  "add CAUSAL_PROGRESS where a unit of work is done, or use -e (end to end)" },
	{ killed, "the runs were killed before an experiment had ended", "let the program run longer" },
	{ none_finished, "the program ended before an experiment was finished",
	  "give it a longer input, use more runs (-n), or use -e (end to end)" },
	{ all_cut, "the program ended during its experiments",
	  "give it a longer input, or use -e (end to end)" },
	{ all_no_visit, "no progress point was passed during the experiments",
	  "put CAUSAL_PROGRESS where the program passes more often, or use -e (end to end)" },
	{ all_overflow, "the selection log overflowed in every experiment",
	  "narrow the scope (-F, -S) to code that is called less often" },
	{ mostly_disturbed, "cannot tell here: other programs took the CPU during most of the experiments",
	  "stop them, or give the program CPUs of its own (taskset -c ...); if they are a server's clients, "
	  "let causal start them: --load 'CLIENT ...'" },
	{ all_ahead,
	  "cannot tell here: data comes from outside, and could not be held back while other threads were at "
	  "work",
	  "start the program that sends it under causal, too, or give the data in a file" },
	{ none_kept, "no experiment could be used: the machine was too busy to time them",
	  "stop other programs, or use more runs (-n)" },
	{ no_zero, "no experiment ran at 0 %, so there is nothing to compare with",
	  "use few speedups, 0 among them, and more runs: -s 0,50 -n 10", "-s 0,50 -n 10" },
	{ only_counted, "points were only counted, as --count-only says",
	  "compare their rates with those of another build: causal compare DIR OTHER" },
	{ only_zero_wanted, "all experiments ran at 0 %, as -s says", "use other speedups, too: -s 0,50",
	  "-s 0,50" },
	{ only_zero, "all experiments that could be used ran at 0 %",
	  "add runs to these (causal resume), or give it more time: --budget 120" },
	{ crowded,
	  "cannot tell here: threads of the program waited for CPUs that others of them had, and without "
	  "perf events nobody knows who had one when",
	  "let it have no more busy threads than CPUs, or allow perf events: causal selftest says how" },
	{ none_sure_of_many, "there are too few experiments for a verdict, spread over many speedups",
	  "use fewer speedups (-s 0,25,50), more runs (-n) or a narrower scope (-F, -S)", "-s 0,25,50" },
	{ none_sure, "there are too few experiments for a verdict",
	  "add runs to these (causal resume), as the last lines say, or narrow the scope (-F, -S)" },
};

static const struct reason *reason(const struct ca_profile *profile)
{
	for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
		if (reasons[i].applies(profile))
			return &reasons[i];
	return NULL;
}

bool ca_funnel_reason(const struct ca_profile *profile, const char **cause, const char **remedy)
{
	const struct reason *found = reason(profile);

	if (!found)
		return false;
	*cause = found->cause;
	*remedy = found->remedy;
	return true;
}

const char *ca_funnel_options(const struct ca_profile *profile)
{
	const struct reason *found = reason(profile);

	return found ? found->options : NULL;
}

/* ---- notes ---------------------------------------------------------------------------------*/

static bool note_others(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	double lost = 0, had = 0;

	if (!p->busy || p->blind)
		return false;
	for (size_t i = 0; i < p->experiments; i++)
		if (p->experiment[i].disturbed && p->experiment[i].lost != UINT64_MAX) {
			lost += (double)p->experiment[i].lost;
			had += (double)p->experiment[i].work;
		}
	snprintf(
		note, CA_FUNNEL_NOTE,
		"Other programs had CPUs that this one waited for, for %.0f %% of the CPU time that it could "
		"have had: this is what is won beside them. Without them it may be something else.",
		had > 0 ? 100 * lost / (lost + had) : 0);
	return true;
}

static bool note_idle(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	double idle = 0, error = 0;

	for (size_t r = 0; r < p->rows && !(idle > 0); r++)
		if (p->row[r].verdict != CA_VERDICT_NOT_WORTH) {
			idle = p->row[r].curve->idle;
			error = ca_estimate_idle_error(p->row[r].curve, 0.5);
		}
	if (error < 1 || p->blind)
		return false;
	snprintf(note, CA_FUNNEL_NOTE,
		 "For %.0f %% of the time CPUs were idle while threads waited for one, as the kernel moves "
		 "threads late. What faster code changes in that is not known: ± %.0f at 50 %% for it are in "
		 "the intervals, which more runs do not narrow; more CPUs would.",
		 100 * idle, error);
	return true;
}

static bool note_crowded(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	if (!p->crowded || none_sure(p))
		return false;
	snprintf(note, CA_FUNNEL_NOTE,
		 "Threads of the program waited for CPUs that others of them had, and without perf events "
		 "nobody knows who had one when: of code that only samples tell of nothing can be told, and "
		 "the rest may be too low. Let it have no more busy threads than CPUs, or allow perf events, "
		 "which causal selftest tells of.");
	return true;
}

/* Where that is a good part of the interval, which more runs would not narrow by as much as they seem to. */
static bool note_sampled(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	double most = 0;
	size_t rows = 0;
	bool timers = p->runs && p->run[0].backend && !strcmp(p->run[0].backend, "timer");

	for (size_t r = 0; r < p->rows; r++) {
		const struct ca_curve *curve = p->row[r].curve;
		double error = ca_estimate_sampled_error(curve, 0.5);

		if (p->row[r].verdict == CA_VERDICT_NOT_WORTH || error < 1 ||
		    !(4 * error >= curve->at_high[1] - curve->at_low[1]))
			continue;
		rows++;
		most = fmax(most, error);
	}
	if (!rows || p->blind || p->crowded)
		return false;
	snprintf(note, CA_FUNNEL_NOTE,
		 "In %zu row%s only samples tell when the code runs: up to ± %.0f at 50 %% for that stay, "
		 "however many runs%s.",
		 rows, rows == 1 ? "" : "s", most,
		 timers ? "; with perf events, which causal selftest tells of, a quarter of that at most"
			: "");
	return true;
}

/* A user can do something about that, though no code of his is faster for it. */
static bool note_openmp(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	enum { MUCH = 10 };
	double share = 0;

	for (size_t i = 0; i < p->scopes; i++)
		if (!p->scope[i].in_scope && ca_path_is_openmp(p->scope[i].binary))
			share += p->scope[i].share;
	if (share < MUCH)
		return false;
	snprintf(note, CA_FUNNEL_NOTE,
		 "For %.0f %% of the CPU time OpenMP's threads wait for each other. If there are more of "
		 "them than CPUs, fewer are faster: try OMP_THREAD_LIMIT=$(nproc); else their work is "
		 "uneven, or too little for so many.",
		 share);
	return true;
}

struct spinner {
	uint32_t region;
	double share; /* percent of the CPU time */
};

static int by_share(const void *a, const void *b)
{
	const struct spinner *x = a, *y = b;

	return (x->share < y->share) - (x->share > y->share);
}

/* Code that is no row since it waits for other threads; those with the largest share first. */
static bool note_spins(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	enum { MUCH = 5, NAMED = 3, NAME = 40 };
	struct spinner *list = calloc(p->catalog.regions + 1, sizeof *list);
	size_t n = 0, used = 0;
	double all = 0;
	bool in_openblas;

	for (size_t i = 0; i < p->sample_count && list && p->periods > 0; i++) {
		const struct ca_profile_samples *s = &p->samples[i];
		struct spinner *of = &list[s->region - 1];

		of->region = s->region;
		if (p->run[s->run].sampled)
			of->share += 100. * (double)s->spins / p->whole_of[s->region - 1];
	}
	for (size_t i = 0; i < p->catalog.regions && list; i++)
		if (list[i].share > 0) {
			all += list[i].share;
			list[n++] = list[i];
		}
	if (n)
		qsort(list, n, sizeof *list, by_share);
	in_openblas = n && ca_path_is_openblas(ca_catalog_get_region(&p->catalog, list[0].region)->binary);
	if (all >= MUCH)
		used = (size_t)snprintf(
			note, CA_FUNNEL_NOTE,
			"For %.0f %% of the CPU time threads spin, waiting for each other:", all);
	for (size_t i = 0; i < n && i < NAMED && used; i++) {
		char *name = ca_plain_fit(ca_catalog_get_region(&p->catalog, list[i].region)->name, NAME);

		used += (size_t)snprintf(note + used, CA_FUNNEL_NOTE - used, "%s %s", i ? "," : "",
					 name ? name : "?");
		free(name);
	}
	free(list);
	if (used)
		snprintf(
			note + used, CA_FUNNEL_NOTE - used,
			". Nothing is won there: whoever they wait for comes late, as the work is uneven, or "
			"too little for so many.%s",
			in_openblas ? " Matrices may be too small for OpenBLAS's threads: try "
				      "OPENBLAS_NUM_THREADS=1."
				    : "");
	return used;
}

/* Runs of which none is longer, though much was faster in some: nothing that is measured end to end says what else
 * was done in that time. */
static bool note_set_time(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	enum { LEAST = 3, MUCH = 20, ALIKE = 200 }; /* runs; 1 / shares */
	uint64_t shortest = UINT64_MAX, longest = 0;
	size_t runs = 0;
	bool much = false;

	for (size_t i = 0; i < p->experiments; i++) {
		const struct ca_profile_experiment *e = &p->experiment[i];

		if (!e->visits || p->point[p->visits[e->first].point].kind != 'e')
			continue;
		runs++;
		shortest = e->duration < shortest ? e->duration : shortest;
		longest = e->duration > longest ? e->duration : longest;
		much |= ca_results_delay(e->delay, e->probes) > e->duration / MUCH;
	}
	if (runs < LEAST || !much || longest - shortest > longest / ALIKE)
		return false;
	snprintf(note, CA_FUNNEL_NOTE,
		 "All runs took %.2f s of the program's own time, whatever was faster: it works for a set "
		 "time, and would do more in it. How much more is counted where you say what: -P FUNCTION, "
		 "or -P FILE:LINE.",
		 (double)longest / 1e9);
	return true;
}

static uint64_t own_of(const struct ca_profile *p, uint32_t region)
{
	uint64_t own = 0;

	for (size_t i = 0; i < p->sample_count; i++)
		if (p->samples[i].region == region && p->samples[i].own != UINT64_MAX)
			own += p->samples[i].own;
	return own;
}

/* Of what was over before the first experiment; the most of it, and who calls it only if it does more. */
static bool note_early(const struct ca_profile *p, char note[CA_FUNNEL_NOTE])
{
	enum { NAME = 60 };
	static const double alike = 0.9;
	uint32_t first = 0;
	char *name;

	for (uint32_t r = 1; r <= p->catalog.regions; r++)
		if (ca_profile_is_early(p, r) &&
		    (!first || alike * p->early[r - 1].seconds > p->early[first - 1].seconds ||
		     (p->early[r - 1].seconds > alike * p->early[first - 1].seconds &&
		      own_of(p, r) > own_of(p, first))))
			first = r;
	if (!first)
		return false;
	name = ca_plain_fit(ca_catalog_get_region(&p->catalog, first)->name, NAME);
	snprintf(note, CA_FUNNEL_NOTE,
		 "These numbers are of what came after the first %.1f of %.1f s: before that %s was at work "
		 "for %.0f %% of the CPU time, and hardly since. What that is of a whole run is known once a "
		 "second one has come to its end: -n 2, or a longer --budget.",
		 p->before, p->seen, name ? name : "?", 100 * p->early[first - 1].then);
	free(name);
	return true;
}

size_t ca_funnel_notes(const struct ca_profile *p, char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE])
{
	size_t n = 0;

	n += note_early(p, note[n]);
	n += note_others(p, note[n]);
	n += note_idle(p, note[n]);
	n += note_crowded(p, note[n]);
	n += note_sampled(p, note[n]);
	n += note_openmp(p, note[n]);
	n += note_spins(p, note[n]);
	n += note_set_time(p, note[n]);
	return n;
}

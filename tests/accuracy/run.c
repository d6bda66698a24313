/* SPDX-License-Identifier: MIT */
/* The accuracy suite: truth by really shortening a region, causal's prediction for it, Coz's
 * where installed, and the project's bars.
 *
 * --short is the version for CI: a few cases, one speedup, bounds so wide that noise passes
 * and a broken method does not: the error must be at most SHORT_BOUND points. Retry policy:
 * a case that misses is measured again, truth included, up to SHORT_TRIES times in all, and
 * holds if any try does. A method that is broken the way a lost delay or a double payment
 * breaks it is off by 15 points and more every time. A case that misses on a quiet machine fails.
 * One of whose tries each had other programs on the CPU is tried for longer, then "not judged": the
 * last lines say so. */
#include "acc.h"
#include <errno.h>
#include <getopt.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SHORT_TRIES = 3, MAX_CASE_PATTERNS = 16 };
#define SHORT_BOUND   8.0 /* points */
#define SHORT_SECONDS 120 /* of tries on a quiet machine: after that none is begun */
#define NOISY_SECONDS 300 /* the same, where other programs take the CPU */

static const char usage[] =
	"usage: run [options]\n"
	"  --case REGEX        only these cases (may be repeated); --list shows them\n"
	"  --class NAME        only these: base, clock, outside, books, queue, hot\n"
	"  --speedups LIST     percent, default 25,50,75\n"
	"  --seconds N         of profiling per case and repeat, default 20\n"
	"  --runs N            ... in so many runs of the program (causal -n), default 4\n"
	"  --repeat K          whole measurement of the prediction, default 1; medians count\n"
	"  --truth-seconds N   of one run for the truth, default 0.6\n"
	"  --truth-rounds N    alternations per speedup for the truth, default 8; up to 32 where it "
	"scatters\n"
	"  --truths FILE       the truth from an earlier --json FILE, for the cases in it\n"
	"  --paper             a quick look: take the truth from paper, leave out cases without\n"
	"  --mode NAME         how causal is asked, default line; --modes lists them\n"
	"  --no-coz, --no-predict, --no-overhead   leave that part out\n"
	"  --noise PERCENT     of the machine that others may take in a run, default 4\n"
	"  --retries N         runs thrown away for noise at most, default 4\n"
	"  --json FILE, --markdown FILE\n"
	"  --short             two minutes, wide bounds, for CI\n"
	"  --auto              progress points that causal chooses, against those in the code\n"
	"  --bars              exit status 1 when a bar is missed\n"
	"  --causal PATH --programs DIR --sources DIR --work DIR\n"
	"  -v                  show the commands\n";

enum {
	OPT_CASE = 256,
	OPT_CLASS,
	OPT_SPEEDUPS,
	OPT_SECONDS,
	OPT_RUNS,
	OPT_REPEAT,
	OPT_TRUTH_SECONDS,
	OPT_TRUTH_ROUNDS,
	OPT_TRUTHS,
	OPT_MODE,
	OPT_MODES,
	OPT_NO_COZ,
	OPT_NO_PREDICT,
	OPT_NO_OVERHEAD,
	OPT_NOISE,
	OPT_RETRIES,
	OPT_JSON,
	OPT_MARKDOWN,
	OPT_SHORT,
	OPT_BARS,
	OPT_CAUSAL,
	OPT_AUTO,
	OPT_PAPER,
	OPT_PROGRAMS,
	OPT_SOURCES,
	OPT_WORK,
	OPT_LIST
};

static const struct option long_options[] = {
	{ "case", required_argument, NULL, OPT_CASE },
	{ "class", required_argument, NULL, OPT_CLASS },
	{ "speedups", required_argument, NULL, OPT_SPEEDUPS },
	{ "seconds", required_argument, NULL, OPT_SECONDS },
	{ "runs", required_argument, NULL, OPT_RUNS },
	{ "repeat", required_argument, NULL, OPT_REPEAT },
	{ "truth-seconds", required_argument, NULL, OPT_TRUTH_SECONDS },
	{ "truth-rounds", required_argument, NULL, OPT_TRUTH_ROUNDS },
	{ "truths", required_argument, NULL, OPT_TRUTHS },
	{ "mode", required_argument, NULL, OPT_MODE },
	{ "modes", no_argument, NULL, OPT_MODES },
	{ "no-coz", no_argument, NULL, OPT_NO_COZ },
	{ "no-predict", no_argument, NULL, OPT_NO_PREDICT },
	{ "no-overhead", no_argument, NULL, OPT_NO_OVERHEAD },
	{ "noise", required_argument, NULL, OPT_NOISE },
	{ "retries", required_argument, NULL, OPT_RETRIES },
	{ "json", required_argument, NULL, OPT_JSON },
	{ "markdown", required_argument, NULL, OPT_MARKDOWN },
	{ "short", no_argument, NULL, OPT_SHORT },
	{ "bars", no_argument, NULL, OPT_BARS },
	{ "auto", no_argument, NULL, OPT_AUTO },
	{ "paper", no_argument, NULL, OPT_PAPER },
	{ "causal", required_argument, NULL, OPT_CAUSAL },
	{ "programs", required_argument, NULL, OPT_PROGRAMS },
	{ "sources", required_argument, NULL, OPT_SOURCES },
	{ "work", required_argument, NULL, OPT_WORK },
	{ "list", no_argument, NULL, OPT_LIST },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

struct selection {
	regex_t pattern[MAX_CASE_PATTERNS];
	size_t n;
	const char *class;  /* NULL: all */
	bool chosen_points; /* --auto */
};

static bool parse_speedups(struct acc_options *options, const char *text)
{
	options->speedups = 0;
	while (*text) {
		char *end;
		double x = strtod(text, &end);

		if (end == text || x <= 0 || x >= 100 || options->speedups == ACC_SPEEDUPS)
			return false;
		options->speedup[options->speedups++] = x;
		text = *end == ',' ? end + 1 : end;
		if (*end && *end != ',')
			return false;
	}
	return options->speedups > 0;
}

static int bounded(const char *text, int low, int high)
{
	int x = atoi(text);

	return x < low ? low : x > high ? high : x;
}

static void set_short(struct acc_options *options)
{
	options->brief = true;
	options->coz = options->overhead = false;
	options->speedup[0] = 50;
	options->speedups = 1;
	options->seconds = 6;
	options->runs = 2;
	options->truth_seconds = 0.8;
	options->truth_rounds = 2;
	options->retries = 1;
}

static void list_cases(void)
{
	for (size_t i = 0; i < acc_case_count; i++) {
		const struct acc_case *c = &acc_cases[i];

		printf("%-20s %-8s %s\n", c->name, c->class,
		       isnan(c->slope) ? "measured truth only" : "known on paper");
	}
}

/* Returns -1 to go on, else an exit status. */
static int set_option(struct acc_options *o, struct selection *selection, int id)
{
	switch (id) {
	case OPT_CASE:
		if (selection->n == MAX_CASE_PATTERNS ||
		    regcomp(&selection->pattern[selection->n], optarg, REG_EXTENDED | REG_NOSUB)) {
			fprintf(stderr, "run: --case %s: not a regular expression\n", optarg);
			return 2;
		}
		selection->n++;
		break;
	case OPT_CLASS:
		selection->class = optarg;
		break;
	case OPT_SPEEDUPS:
		if (!parse_speedups(o, optarg)) {
			fprintf(stderr, "run: --speedups %s: want numbers in 0..100\n", optarg);
			return 2;
		}
		break;
	case OPT_SECONDS:
		o->seconds = atof(optarg);
		break;
	case OPT_RUNS:
		o->runs = bounded(optarg, 1, 9999);
		break;
	case OPT_REPEAT:
		o->repeat = bounded(optarg, 1, ACC_REPEATS);
		break;
	case OPT_TRUTH_SECONDS:
		o->truth_seconds = atof(optarg);
		break;
	case OPT_TRUTH_ROUNDS:
		o->truth_rounds = bounded(optarg, 1, ACC_ROUNDS);
		break;
	case OPT_TRUTHS:
		o->truths = optarg;
		break;
	case OPT_MODE:
		o->mode = acc_mode_find(optarg);
		if (!o->mode) {
			fprintf(stderr, "run: --mode %s: there is none; see --modes\n", optarg);
			return 2;
		}
		break;
	case OPT_MODES:
		acc_mode_list();
		return 0;
	case OPT_NO_COZ:
		o->coz = false;
		break;
	case OPT_NO_PREDICT:
		o->predict = o->overhead = false;
		break;
	case OPT_NO_OVERHEAD:
		o->overhead = false;
		break;
	case OPT_NOISE:
		o->noise = atof(optarg) / 100;
		break;
	case OPT_RETRIES:
		o->retries = bounded(optarg, 0, 100);
		break;
	case OPT_JSON:
		o->json = optarg;
		break;
	case OPT_MARKDOWN:
		o->markdown = optarg;
		break;
	case OPT_SHORT:
		set_short(o);
		break;
	case OPT_BARS:
		o->bars = true;
		break;
	case OPT_PAPER:
		o->paper = true;
		break;
	case OPT_AUTO:
		selection->chosen_points = true;
		break;
	case OPT_CAUSAL:
		o->causal = optarg;
		break;
	case OPT_PROGRAMS:
		o->programs = optarg;
		break;
	case OPT_SOURCES:
		o->sources = optarg;
		break;
	case OPT_WORK:
		o->work = optarg;
		break;
	case OPT_LIST:
		list_cases();
		return 0;
	case 'v':
		o->verbose++;
		break;
	case 'h':
		fputs(usage, stdout);
		return 0;
	default:
		fputs(usage, stderr);
		return 2;
	}
	return -1;
}

static bool selected(const struct acc_options *options, const struct selection *selection,
		     const struct acc_case *c)
{
	if (selection->class && strcmp(c->class, selection->class))
		return false;
	if (options->mode->latency && !(c->flags & ACC_LATENCY))
		return false;
	if (selection->n == 0)
		return !options->brief || c->flags & ACC_SHORT;
	for (size_t i = 0; i < selection->n; i++)
		if (!regexec(&selection->pattern[i], c->name, 0, NULL, 0))
			return true;
	return false;
}

static bool is_selected(const void *selection, const struct acc_case *c)
{
	static const struct acc_options all = { .brief = false, .mode = &acc_modes[0] };

	return selected(&all, selection, c);
}

static const char *why_skipped(const struct acc_options *options, struct acc_result *result)
{
	char path[ACC_PATH];

	result->line = acc_case_line(result->c, options->sources);
	if (!result->line)
		return "no GT_REGION comment in the source (see --sources)";
	if (access(acc_program(options, result->c, "plain", path), X_OK))
		return "the program was not built here (compiler or library missing?)";
	if (options->paper && isnan(result->c->slope))
		return "its effect is not known on paper";
	if (options->predict && access(acc_profiled(options, result->c, path), X_OK))
		return "the program was not built with causal.h (or, for --mode stripped, not stripped)";
	return NULL;
}

static void measure_case(const struct acc_options *options, struct acc_result *result)
{
	char path[ACC_PATH];
	bool coz = options->coz && !access(acc_program(options, result->c, "coz", path), X_OK);

	for (size_t s = 0; s < options->speedups && options->paper; s++) {
		result->truth[s] = acc_case_expect(result->c, options->speedup[s]);
		result->truth_error[s] = 0;
	}
	if (!options->paper && !acc_truths_take(options, result) && !acc_truth(options, result->c, result)) {
		result->skipped = "the program failed";
		return;
	}
	for (size_t r = 0; r < (size_t)options->repeat; r++) {
		result->repeats = r + 1;
		for (size_t s = 0; s < options->speedups; s++) {
			result->coz[s][r] = NAN;
			result->ours[s][r] = (struct acc_estimate){ NAN, NAN, NAN, NAN };
		}
		if (options->predict)
			acc_predict(options, result, r);
		if (coz)
			acc_coz(options, result, r);
	}
	if (options->predict && options->overhead)
		acc_overhead(options, result);
}

static bool short_holds(const struct acc_options *options, const struct acc_result *result)
{
	for (size_t s = 0; s < options->speedups; s++)
		if (!(fabs(result->ours[s][0].effect - result->truth[s]) <= SHORT_BOUND))
			return false;
	return true;
}

enum outcome { PASSED, FAILED, NOT_JUDGED, SKIPPED };

/* One case with the retry policy of --short. */
static enum outcome measure_short(const struct acc_options *options, struct acc_result *result, double from)
{
	struct acc_result fresh = *result;
	int quiet = 0;

	for (int try = 1;; try++) {
		*result = fresh;
		measure_case(options, result);
		acc_report_case(options, result);
		if (result->skipped)
			return SKIPPED;
		if (short_holds(options, result))
			return PASSED;
		quiet += result->noisy == 0;
		if (quiet == SHORT_TRIES || (quiet && acc_now() > from + SHORT_SECONDS))
			return FAILED;
		if (try >= 2 * SHORT_TRIES || acc_now() > from + NOISY_SECONDS)
			return quiet ? FAILED : NOT_JUDGED;
		printf("%-20s off by more than %g points%s: again\n", "", SHORT_BOUND,
		       result->noisy ? ", while other programs took the CPU" : "");
	}
}

/* The last lines of --short, and its exit status. */
static int short_summary(const size_t count[], double others)
{
	printf("\n%zu passed, %zu failed, %zu not judged, %zu skipped\n", count[PASSED], count[FAILED],
	       count[NOT_JUDGED], count[SKIPPED]);
	if (count[NOT_JUDGED])
		printf("not judged: other programs took up to %.0f %% of the machine in each try; run "
		       "make accuracy-short again on a quiet one\n",
		       100 * others);
	return count[FAILED] || count[PASSED] + count[NOT_JUDGED] == 0;
}

static void write_files(const struct acc_options *options, const struct acc_result *result, size_t n)
{
	if (options->json && !acc_report_json(options, result, n))
		fprintf(stderr, "run: cannot write %s\n", options->json);
	if (options->markdown && !acc_report_markdown(options, result, n))
		fprintf(stderr, "run: cannot write %s: %s\n", options->markdown, strerror(errno));
}

static int run_all(const struct acc_options *options, const struct selection *selection)
{
	struct acc_result *result = calloc(acc_case_count, sizeof *result);
	double from = acc_now(), others = 0;
	size_t n = 0, count[4] = { 0 };
	bool bars;
	int status;

	if (!result)
		return 2;
	for (size_t i = 0; i < acc_case_count; i++) {
		struct acc_result *r = &result[n];

		if (!selected(options, selection, &acc_cases[i]))
			continue;
		*r = (struct acc_result){ .c = &acc_cases[i], .overhead = NAN };
		n++;
		r->skipped = why_skipped(options, r);
		if (r->skipped || !options->brief) {
			if (!r->skipped)
				measure_case(options, r);
			acc_report_case(options, r);
			count[SKIPPED] += r->skipped != NULL;
		} else {
			count[measure_short(options, r, from)]++;
			others = fmax(others, r->others);
		}
		write_files(options, result, n); /* each finished case survives an interruption */
	}
	if (options->brief) {
		status = short_summary(count, others);
		free(result);
		return status;
	}
	bars = acc_report_summary(options, result, n);
	free(result);
	if (n == 0)
		fprintf(stderr, "run: no case selected; see --list\n");
	return n == 0 ? 2 : options->bars && !bars;
}

int main(int argc, char **argv)
{
	struct acc_options options = {
		.speedup = { 25, 50, 75 },
		.speedups = 3,
		.seconds = 20,
		.truth_seconds = 0.6,
		.truth_rounds = 8,
		.repeat = 1,
		.runs = 4,
		.mode = &acc_modes[0],
		.coz = true,
		.predict = true,
		.overhead = true,
		.noise = 0.04,
		.retries = 4,
		.causal = "causal",
		.programs = "tests/accuracy/programs",
		.sources = "tests/accuracy/programs",
	};
	struct selection selection = { .n = 0 };
	char work[] = "/tmp/causal-accuracy-XXXXXX";
	int id, status;

	while ((id = getopt_long(argc, argv, "hv", long_options, NULL)) != -1) {
		status = set_option(&options, &selection, id);
		if (status >= 0)
			return status;
	}
	if (optind < argc || options.seconds <= 0 || options.truth_seconds < 0.4) {
		fputs(usage, stderr);
		return 2;
	}
	if (options.truths && !acc_truths_load(&options, options.truths))
		return 2;
	if (options.work)
		mkdir(options.work, 0755);
	else
		options.work = mkdtemp(work);
	if (!options.work || access(options.work, W_OK)) {
		fprintf(stderr, "run: cannot write to the scratch directory\n");
		return 2;
	}
	if (options.coz && !acc_coz_installed()) {
		printf("Coz is not installed: its columns stay empty\n");
		options.coz = false;
	}
	printf("scratch files: %s\n", options.work);
	if (options.mode->neighbour && !acc_neighbour_start())
		return 2;
	status = selection.chosen_points ? !acc_auto(&options, is_selected, &selection)
					 : run_all(&options, &selection);
	acc_neighbour_stop();
	return status;
}

/* SPDX-License-Identifier: MIT */
/* Coz's prediction for the same region, from its own profile file, on the kindest reading.
 *
 * Coz keeps each experiment's effective duration and visits. Two readings are made: the sums
 * (what its viewer does), and the median over experiments without those that saw fewer than
 * five visits (cut short by the end of the program). The one with the smaller mean error
 * over the case's speedups counts. */
#include "acc.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_EXPERIMENTS = 2048, FEW_VISITS = 5 };

struct reading {
	double total, median; /* time per visit, or latency, in any unit; NAN: no data */
};

bool acc_coz_installed(void)
{
	return system("command -v coz >/dev/null 2>&1") == 0;
}

static double field(const char *line, const char *key)
{
	const char *at = strstr(line, key);

	return at ? atof(at + strlen(key)) : NAN;
}

static struct reading read_coz(const char *path, bool latency)
{
	static double each[MAX_EXPERIMENTS];
	double duration = NAN, time = 0, visits = 0;
	size_t n = 0;
	char line[1024];
	FILE *f = fopen(path, "r");
	struct reading reading = { NAN, NAN };

	if (!f)
		return reading;
	while (fgets(line, sizeof line, f)) {
		double v = NAN, t = duration;

		if (!strncmp(line, "experiment", 10)) {
			duration = field(line, "duration=");
		} else if (!latency && !strncmp(line, "throughput-point", 16)) {
			v = field(line, "delta=");
		} else if (latency && !strncmp(line, "latency-point", 13)) {
			/* Little's law: W = L / rate */
			v = field(line, "arrivals=");
			t = duration * field(line, "difference=");
		}
		if (isnan(v) || isnan(t) || !(v > 0))
			continue;
		time += t;
		visits += v;
		if (v >= FEW_VISITS && n < MAX_EXPERIMENTS)
			each[n++] = t / v;
	}
	fclose(f);
	if (visits > 0)
		reading.total = time / visits;
	reading.median = acc_median(each, n);
	return reading;
}

static struct reading run_coz(const struct acc_options *options, const struct acc_result *result,
			      double speedup, double seconds)
{
	char program[ACC_PATH], out[ACC_PATH], fixed[160], percent[16], time[32], log[ACC_PATH];
	const struct acc_case *c = result->c;
	struct acc_run run;

	snprintf(out, sizeof out, "%s/%s-%s.coz", options->work, c->program, c->region);
	snprintf(fixed, sizeof fixed, "%s:%u", c->source, result->line);
	snprintf(percent, sizeof percent, "%g", speedup);
	snprintf(time, sizeof time, "%g", seconds);
	snprintf(log, sizeof log, "%s/coz.log", options->work);
	acc_program(options, c, "coz", program);
	const char *argv[] = {
		"coz",   "run", "--output", out,         "--fixed-line", fixed, "--fixed-speedup",
		percent, "---", program,    "--seconds", time,           NULL
	};
	for (int attempt = 0; attempt <= options->retries; attempt++) {
		unlink(out); /* Coz appends */
		if (!acc_run_once(argv, seconds * 3 + 20, log, &run))
			return (struct reading){ NAN, NAN };
		if (run.status || run.others <= options->noise)
			break;
	}
	return read_coz(out, c->flags & ACC_LATENCY);
}

bool acc_coz(const struct acc_options *options, struct acc_result *result, size_t repeat)
{
	double seconds = options->seconds / (double)(options->speedups + 1);
	double total[ACC_SPEEDUPS], median[ACC_SPEEDUPS], miss[2][ACC_SPEEDUPS];
	struct reading base;

	if (seconds < 2.5)
		seconds = 2.5; /* its experiments take half a second */
	base = run_coz(options, result, 0, seconds);
	for (size_t s = 0; s < options->speedups; s++) {
		struct reading r = run_coz(options, result, options->speedup[s], seconds);

		total[s] = 100 * (1 - r.total / base.total);
		median[s] = 100 * (1 - r.median / base.median);
		miss[0][s] = fabs(total[s] - result->truth[s]);
		miss[1][s] = fabs(median[s] - result->truth[s]);
	}
	bool use_total = isnan(acc_mean(miss[1], options->speedups)) ||
			 acc_mean(miss[0], options->speedups) < acc_mean(miss[1], options->speedups);
	for (size_t s = 0; s < options->speedups; s++)
		result->coz[s][repeat] = use_total ? total[s] : median[s];
	return !isnan(result->coz[0][repeat]);
}

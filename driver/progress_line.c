/* SPDX-License-Identifier: MIT */
/* The progress line; see driver/progress_line.h. */
#include "driver/progress_line.h"
#include "core/clock.h"
#include "driver/say.h"
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { REWRITE_NS = 200000000 };

void ca_progress_line_init(struct ca_progress_line *progress, size_t total, bool shown, bool uncounted)
{
	memset(progress, 0, sizeof *progress);
	progress->total = total;
	progress->shown = shown;
	progress->uncounted = uncounted;
	progress->terminal = isatty(STDERR_FILENO);
}

void ca_progress_line_begin(struct ca_progress_line *progress)
{
	progress->started = ca_clock_now();
}

void ca_progress_line_time(double seconds, char *buffer, size_t size)
{
	unsigned long s = seconds > 0 ? (unsigned long)(seconds + 0.5) : 0;

	if (s < 60)
		snprintf(buffer, size, "%lu s", s);
	else if (s < 3600)
		snprintf(buffer, size, "%lu min %lu s", s / 60, s % 60);
	else
		snprintf(buffer, size, "%lu h %lu min", s / 3600, s % 3600 / 60);
}

void ca_progress_line_to_go(const struct ca_progress_line *progress, uint64_t elapsed, char *buffer,
			    size_t size)
{
	double mean, rest;

	if (!progress->finished) {
		snprintf(buffer, size, "unknown time");
		return;
	}
	mean = (double)progress->spent / (double)progress->finished;
	rest = mean * (double)(progress->total - progress->finished);
	if (rest > (double)elapsed)
		rest -= (double)elapsed;
	else
		rest = 0;
	ca_progress_line_time(rest / 1e9, buffer, size);
}

/* ", 12 experiments" behind what is there already. */
static void count_text(const struct ca_progress_line *progress, uint64_t experiments, char *buffer,
		       size_t size)
{
	*buffer = '\0';
	if (!progress->uncounted)
		snprintf(buffer, size, ", %llu experiment%s", (unsigned long long)experiments,
			 experiments == 1 ? "" : "s");
}

void ca_progress_line_update(struct ca_progress_line *progress, const struct ca_conductor_status *status)
{
	uint64_t now = ca_clock_now();
	char line[400], to_go[40], count[48], doing[256] = "";

	if (!progress->shown || !progress->terminal || now - progress->last < REWRITE_NS)
		return;
	progress->last = now;
	ca_progress_line_to_go(progress, now - progress->started, to_go, sizeof to_go);
	count_text(progress, status->experiments, count, sizeof count);
	if (status->region)
		snprintf(doing, sizeof doing, ", %s at %.0f %%", status->region, status->speedup);
	if (progress->total)
		snprintf(line, sizeof line, "run %zu/%zu, %s to go%s%s", progress->finished + 1,
			 progress->total, to_go, count, doing);
	else
		snprintf(line, sizeof line, "run %zu%s%s", progress->finished + 1, count, doing);
	ca_say_progress(line);
}

void ca_progress_line_end(struct ca_progress_line *progress, const struct ca_conductor_status *status)
{
	uint64_t elapsed = ca_clock_now() - progress->started;
	char took[40], to_go[40], count[48];

	progress->finished++;
	progress->spent += elapsed;
	if (!progress->shown || progress->terminal)
		return;
	ca_progress_line_time((double)elapsed / 1e9, took, sizeof took);
	ca_progress_line_to_go(progress, 0, to_go, sizeof to_go);
	count_text(progress, status->experiments, count, sizeof count);
	if (progress->total)
		ca_say("run %zu/%zu: %s%s, %s to go", progress->finished, progress->total, took, count,
		       to_go);
	else
		ca_say("run %zu: %s%s", progress->finished, took, count);
}

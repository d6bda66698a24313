/* SPDX-License-Identifier: MIT */
/* Time windows; see windows.h. */
#include "core/windows.h"
#include "core/clock.h"
#include "core/settings.h"
#include "core/vec.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { KEPT = 8192 /* windows that are remembered one by one */, FIELDS = 4 };
#define BETWEEN  " \t\r\n;,"
#define LONGEST  1e9 /* s */
#define SHORTEST 1e-3

static const struct {
	const char *name;
	clockid_t clock;
} clocks[] = {
	{ "realtime", CLOCK_REALTIME },
	{ "monotonic", CLOCK_MONOTONIC },
	{ "process_cputime", CLOCK_PROCESS_CPUTIME_ID },
	{ "cputime", CLOCK_PROCESS_CPUTIME_ID },
	{ "monotonic_raw", CLOCK_MONOTONIC_RAW },
	{ "realtime_coarse", CLOCK_REALTIME_COARSE },
	{ "monotonic_coarse", CLOCK_MONOTONIC_COARSE },
	{ "boottime", CLOCK_BOOTTIME },
};
enum { CLOCKS = sizeof clocks / sizeof *clocks };

/* NaN: it takes the settings' own. */
struct group {
	double delay, duration; /* s; a duration of 0 has no end */
	uint64_t cycles;        /* 0: for ever */
	clockid_t clock;
	bool has_clock;
};

struct window {
	uint64_t from, to; /* to: UINT64_MAX while it is open */
	uint64_t before;   /* ns of those before it */
};

struct ca_windows {
	struct group *group;
	size_t groups, at;
	uint64_t cycle; /* of the group, from 0 */
	uint64_t since; /* by the group's clock: the beginning of the delay or duration */
	uint64_t due;
	bool begun, collects, paused, over; /* collects: in a duration */
	struct ca_vec window;               /* struct window */
	uint64_t first;
	ca_windows_cpu *cpu;
	void *context;
};

/* ---- what the user writes -------------------------------------------------------------------*/
enum ca_status ca_windows_clock(const char *name, clockid_t *clock, struct ca_err *err)
{
	size_t from = strncasecmp(name, "CLOCK_", 6) ? 0 : 6, length = strlen(name + from);
	char *end;
	long number = strtol(name, &end, 10);

	if (from && length > 3 && !strcasecmp(name + from + length - 3, "_ID"))
		length -= 3;
	for (size_t i = 0; i < CLOCKS; i++)
		if ((strlen(clocks[i].name) == length && !strncasecmp(clocks[i].name, name + from, length)) ||
		    (*name && !*end && number == clocks[i].clock)) {
			*clock = clocks[i].clock;
			return CA_OK;
		}
	return ca_err_set(err, CA_ERR_USAGE,
			  "there is no clock '%s'; choose from: realtime monotonic process_cputime cputime "
			  "monotonic_raw realtime_coarse monotonic_coarse boottime",
			  name);
}

static bool is_number(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && !*end && isfinite(*value);
}

static enum ca_status read_time(const char *text, double *value, struct ca_err *err)
{
	*value = (double)NAN;
	if (!*text)
		return CA_OK;
	return is_number(text, value) && *value >= 0 && *value <= LONGEST
		       ? CA_OK
		       : ca_err_set(err, CA_ERR_USAGE, "'%s' is no time in seconds, 0 to %.0f", text,
				    LONGEST);
}

/* "a:b:c" into its fields, "" for those that are missing. False: there are more. */
static bool cut(char *text, char *field[FIELDS])
{
	for (unsigned i = 0; i < FIELDS; i++)
		field[i] = text ? strsep(&text, ":") : (char *)"";
	return !text;
}

static enum ca_status read_group(char *text, struct group *group, struct ca_err *err)
{
	char *field[FIELDS], *delay, *duration, *cycles, *clock;
	enum ca_status status = CA_OK;
	double number;

	*group = (struct group){ .cycles = 1 };
	if (!cut(text, field))
		return ca_err_set(err, CA_ERR_USAGE, "a group has four fields at most");
	if (!*field[0] || is_number(field[0], &number)) {
		delay = field[0], duration = field[1], cycles = field[2], clock = field[3];
	} else {
		clock = field[0], delay = field[1], duration = field[2], cycles = field[3];
	}
	if (*clock && (status = ca_windows_clock(clock, &group->clock, err)) == CA_OK)
		group->has_clock = true;
	if (!status && (status = read_time(delay, &group->delay, err)) == CA_OK)
		status = read_time(duration, &group->duration, err);
	if (status || !*cycles)
		return status;
	if (!is_number(cycles, &number) || number < 0 || number > 1e15 || number != floor(number))
		return ca_err_set(err, CA_ERR_USAGE, "'%s' is no number of cycles (0: for ever)", cycles);
	group->cycles = (uint64_t)number;
	return CA_OK;
}

/* By malloc. */
static enum ca_status read_groups(const char *text, struct group **group, size_t *n, struct ca_err *err)
{
	char *copy = strdup(text), *rest = NULL, *one;
	enum ca_status status = CA_OK;
	struct ca_err why;

	*group = NULL;
	*n = 0;
	if (!copy)
		return ca_err_set(err, CA_ERR_NOMEM, "no memory for the periods");
	for (one = strtok_r(copy, BETWEEN, &rest); one && !status; one = strtok_r(NULL, BETWEEN, &rest)) {
		struct group *more = ca_vec_more(*group, *n, sizeof **group);
		char whole[80];

		snprintf(whole, sizeof whole, "%s", one);
		if (!more) {
			status = ca_err_set(err, CA_ERR_NOMEM, "no memory for the periods");
			break;
		}
		*group = more;
		status = read_group(one, &more[(*n)++], &why);
		if (status)
			ca_err_set(err, status,
				   "'%s': %s; write DELAY:DURATION[:CYCLES[:CLOCK]] or "
				   "CLOCK:DELAY:DURATION:CYCLES",
				   whole, why.text);
	}
	free(copy);
	return status;
}

enum ca_status ca_windows_check(const char *periods, struct ca_err *err)
{
	struct group *group;
	size_t n;
	enum ca_status status = read_groups(periods, &group, &n, err);

	free(group);
	return status;
}

/* ---- from settings --------------------------------------------------------------------------*/
/* Without periods the delay and the duration are a group of their own; else they fill what is left out. */
static bool make_groups(const struct ca_settings *set, struct group **group, size_t *n)
{
	clockid_t clock = CLOCK_REALTIME;

	if (read_groups(set->periods, group, n, NULL))
		return false;
	if (!*n) {
		free(*group);
		*group = calloc(1, sizeof **group);
		if (!*group)
			return false;
		*n = 1;
		**group = (struct group){ .delay = (double)NAN,
					  .duration = (double)NAN,
					  .cycles = 1,
					  .clock = CLOCK_MONOTONIC,
					  .has_clock =
						  set->origin[CA_SETTING_PERIOD_CLOCK] == CA_ORIGIN_DEFAULT };
	}
	ca_windows_clock(set->period_clock, &clock, NULL);
	for (size_t i = 0; i < *n; i++) {
		struct group *g = &(*group)[i];

		g->delay = isnan(g->delay) ? set->delay : g->delay;
		g->duration = isnan(g->duration) ? set->duration : g->duration;
		g->clock = g->has_clock ? g->clock : clock;
		if (g->duration > 0 && g->duration < SHORTEST)
			g->duration = SHORTEST; /* cycles are gone through one by one */
	}
	return true;
}

bool ca_windows_do_end(const struct ca_settings *set)
{
	struct group *group;
	size_t n;
	bool ends = make_groups(set, &group, &n);

	for (size_t i = 0; i < n && ends; i++)
		ends = group[i].duration > 0 && group[i].cycles;
	free(group);
	return ends;
}

bool ca_windows_are_all(const struct ca_settings *set)
{
	return !*set->periods && set->delay <= 0 && set->duration <= 0 && !set->paused;
}

struct ca_windows *ca_windows_new(const struct ca_settings *set, ca_windows_cpu *cpu, void *context)
{
	struct ca_windows *w = calloc(1, sizeof *w);

	if (!w)
		return NULL;
	w->window.size = sizeof(struct window);
	w->cpu = cpu;
	w->context = context;
	w->paused = set->paused;
	w->due = UINT64_MAX;
	if (make_groups(set, &w->group, &w->groups))
		return w;
	ca_windows_free(w);
	return NULL;
}

void ca_windows_free(struct ca_windows *w)
{
	if (!w)
		return;
	free(w->group);
	ca_vec_free(&w->window);
	free(w);
}

/* ---- the windows that there were ------------------------------------------------------------*/
static struct window *last_of(const struct ca_windows *w)
{
	return w->window.n ? (struct window *)w->window.at + w->window.n - 1 : NULL;
}

static uint64_t length_of(const struct window *window, uint64_t until)
{
	uint64_t to = window->to < until ? window->to : until;

	return to > window->from ? to - window->from : 0;
}

static void open_one(struct ca_windows *w, uint64_t when)
{
	struct window *last = last_of(w), *next;
	uint64_t before = last ? last->before + length_of(last, last->to) : 0;

	if (last && last->to == UINT64_MAX)
		return;
	if (last && when <= last->to) { /* at once, after a delay of 0 */
		last->to = UINT64_MAX;
		return;
	}
	if (w->window.n >= KEPT) {
		w->window.n = KEPT / 2;
		memmove(w->window.at, (struct window *)w->window.at + KEPT / 2,
			KEPT / 2 * sizeof(struct window));
	}
	next = ca_vec_push(&w->window);
	if (next)
		*next = (struct window){ when, UINT64_MAX, before };
	w->first = w->first ? w->first : when;
}

static void close_one(struct ca_windows *w, uint64_t when)
{
	struct window *last = last_of(w);

	if (last && last->to == UINT64_MAX)
		last->to = when > last->from ? when : last->from;
}

/* The last one that began by then; NULL: none that is remembered. */
static const struct window *find(const struct ca_windows *w, uint64_t time)
{
	const struct window *window = w->window.at;
	size_t low = 0, high = w->window.n;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (window[middle].from <= time)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &window[low - 1] : NULL;
}

bool ca_windows_find(const struct ca_windows *w, uint64_t time, uint64_t *from, uint64_t *to)
{
	const struct window *window = find(w, time);

	*from = window ? window->from : 0;
	*to = window ? window->to : 0;
	return window;
}

bool ca_windows_holds(const struct ca_windows *w, uint64_t time)
{
	const struct window *window = find(w, time);

	return window && time < window->to;
}

uint64_t ca_windows_until(const struct ca_windows *w, uint64_t time)
{
	const struct window *window = find(w, time);

	return window ? window->before + length_of(window, time) : 0;
}

uint64_t ca_windows_first(const struct ca_windows *w)
{
	return w->first;
}

/* ---- as time goes by ------------------------------------------------------------------------*/
static bool is_cpu(const struct group *group)
{
	return group->clock == CLOCK_PROCESS_CPUTIME_ID;
}

/* What the group's clock shows at that time, which is now or just before it. */
static uint64_t reading(const struct ca_windows *w, const struct group *group, uint64_t now, uint64_t when)
{
	uint64_t shown;

	if (group->clock == CLOCK_MONOTONIC)
		return when;
	if (is_cpu(group))
		return w->cpu(w->context);
	shown = ca_clock_read(group->clock);
	return shown > now - when ? shown - (now - when) : 0;
}

/* The delay or the duration is over: what follows, from that time on. False: nothing. */
static bool next_part(struct ca_windows *w)
{
	const struct group *group = &w->group[w->at];

	w->collects = !w->collects;
	if (w->collects)
		return true;
	w->cycle++;
	if (!group->cycles || w->cycle < group->cycles)
		return true;
	w->cycle = 0;
	return ++w->at < w->groups;
}

static void follow(struct ca_windows *w, uint64_t when)
{
	if (w->collects && !w->paused && !w->over)
		open_one(w, when);
	else
		close_one(w, when);
}

void ca_windows_step(struct ca_windows *w, uint64_t now)
{
	w->due = UINT64_MAX;
	while (w->begun && !w->over) {
		const struct group *group = &w->group[w->at];
		uint64_t length = (uint64_t)((w->collects ? group->duration : group->delay) * 1e9);
		uint64_t shown = reading(w, group, now, now), passed, when;

		if (w->collects && !length)
			return; /* without an end */
		passed = shown > w->since ? shown - w->since : 0;
		if (passed < length) {
			if (!is_cpu(group))
				w->due = now + (length - passed);
			return;
		}
		/* CPU time has no time of day: it is seen now. Of a clock that was set, no more is made up for
		 * than there was. */
		when = is_cpu(group) || passed - length > now ? now : now - (passed - length);
		w->since += length;
		if (!next_part(w))
			w->over = true;
		else if (w->group[w->at].clock != group->clock)
			w->since = reading(w, &w->group[w->at], now, when);
		follow(w, when);
	}
}

void ca_windows_begin(struct ca_windows *w, uint64_t now)
{
	w->begun = true;
	w->since = reading(w, &w->group[0], now, now);
	ca_windows_step(w, now);
}

bool ca_windows_is_open(const struct ca_windows *w)
{
	return w->collects && !w->paused && !w->over;
}

bool ca_windows_is_over(const struct ca_windows *w)
{
	return w->over;
}

uint64_t ca_windows_due(const struct ca_windows *w)
{
	return w->due;
}

void ca_windows_pause(struct ca_windows *w, bool pause, uint64_t now)
{
	ca_windows_step(w, now);
	w->paused = pause;
	follow(w, now);
}

void ca_windows_end(struct ca_windows *w, uint64_t now)
{
	w->over = true;
	w->due = UINT64_MAX;
	follow(w, now);
}

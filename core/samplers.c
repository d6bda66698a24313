/* SPDX-License-Identifier: MIT */
/* Samplers and metrics by name; see samplers.h. */
#include "core/samplers.h"
#include "core/numbers.h"
#include "core/settings.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct event {
	const char *name, *description, *of_kernel;
	struct ca_perf_counter counter;
} events[] = {
#define CA_PERF_EVENT(name, TYPE, CONFIG, text)                                                              \
	{ name, text, "PERF_COUNT_" #CONFIG, { PERF_TYPE_##TYPE, PERF_COUNT_##CONFIG } },
#include "core/perf_events.def"
};
enum { EVENTS = sizeof events / sizeof *events, ROOM = 256, HIGHEST = 100000 /* Hz */ };

static const struct {
	const char *name, *unit;
} metrics[] = {
#define X(id, name, unit, text) { name, unit },
	CA_METRICS(X)
#undef X
};

/* One sampler, as it is written; NaN, 0 or "": as the others. */
struct spec {
	double frequency, delay, duration;
	uint64_t count; /* of overflow; 0: as the default */
	bool in_hz;     /* ... frequency says it */
	char event[64], threads[ROOM];
};

/* What PAPI and libpfm4 call them: PAPI's library counts by perf, too. */
static const char prefix[] = "perf::";
static const struct {
	const char *papi, *name;
} presets[] = {
	{ "PAPI_TOT_CYC", "cpu-cycles" },
	{ "PAPI_TOT_INS", "instructions" },
	{ "PAPI_BR_INS", "branch-instructions" },
	{ "PAPI_BR_MSP", "branch-misses" },
};

static bool has_prefix(const char *name)
{
	return !strncasecmp(name, prefix, strlen(prefix));
}

/* Characters of the event's name at the beginning of a text that goes on with ':'. */
static size_t length_of(const char *text)
{
	size_t from = has_prefix(text) ? strlen(prefix) : 0;

	return from + strcspn(text + from, ":");
}

static const struct event *find_event(const char *name)
{
	name += has_prefix(name) ? strlen(prefix) : 0;
	for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
		if (!strcasecmp(presets[i].papi, name))
			name = presets[i].name;
	for (size_t i = 0; i < EVENTS; i++)
		if (!strcasecmp(events[i].name, name) || !strcasecmp(events[i].of_kernel, name))
			return &events[i];
	return NULL;
}

const char *ca_samplers_event(size_t i, struct ca_perf_counter *counter, const char **description)
{
	if (i >= EVENTS)
		return NULL;
	*counter = events[i].counter;
	*description = events[i].description;
	return events[i].name;
}

/* "a, b and c" */
static const char *list_events(char text[1024])
{
	text[0] = '\0';
	for (size_t i = 0; i < EVENTS; i++) {
		strcat(text, i ? " " : "");
		strcat(text, events[i].name);
	}
	return text;
}

static bool read_real(const char *text, double low, double high, double *value)
{
	char *end;

	if (!*text)
		return true;
	*value = strtod(text, &end);
	return end != text && !*end && *value >= low && *value <= high;
}

static enum ca_status read_times(char *rest, struct spec *spec, const char *whole, struct ca_err *err)
{
	const char *delay = strsep(&rest, ":"), *duration = strsep(&rest, ":");
	enum ca_status status;

	if (!read_real(delay ? delay : "", 0, 1e9, &spec->delay) ||
	    !read_real(duration ? duration : "", 0, 1e9, &spec->duration))
		return ca_err_set(err, CA_ERR_USAGE,
				  "'%s': DELAY and DURATION are seconds, 0 to 1e9; leave one empty for what "
				  "-w and -d say",
				  whole);
	if (!rest)
		return CA_OK;
	status = ca_numbers_check(rest, 1, INT32_MAX, err);
	if (!status)
		snprintf(spec->threads, sizeof spec->threads, "%s", rest);
	return status;
}

static enum ca_status read_overflow(char *text, struct spec *spec, const char *whole, struct ca_err *err)
{
	char *event = text, list[1024];
	struct ca_perf_counter of;
	char *count;
	double number = 0;
	size_t digits;

	text += length_of(text);
	strsep(&text, ":"); /* ends the name */
	count = strsep(&text, ":");

	if (!find_event(event))
		return ca_err_set(err, CA_ERR_USAGE, "'%s': there is no event '%s'; choose from: %s", whole,
				  event, list_events(list));
	of = find_event(event)->counter;
	if (ca_samplers_of_kernel(of.type, of.config))
		return ca_err_set(
			err, CA_ERR_USAGE,
			"'%s': the kernel has '%s' within the program's waits, which the signal for a "
			"sample would end; have it counted (--metrics), or choose another event",
			whole, event);
	snprintf(spec->event, sizeof spec->event, "%s", event);
	digits = count ? strspn(count, "0123456789.") : 0;
	spec->in_hz = count && !strcasecmp(count + digits, "hz");
	if (spec->in_hz)
		count[digits] = '\0';
	if (!read_real(count ? count : "", spec->in_hz ? 0 : 1, spec->in_hz ? HIGHEST : 1e15,
		       spec->in_hz ? &spec->frequency : &number))
		return ca_err_set(err, CA_ERR_USAGE,
				  "'%s': COUNT is the number of events between two samples, 1 to 1e15; or "
				  "HZ and 'hz', from 0hz (as --frequency) to %dhz",
				  whole, HIGHEST);
	spec->count = (uint64_t)number;
	return read_times(text, spec, whole, err);
}

static enum ca_status read_spec(enum ca_sampler sampler, const char *text, struct spec *spec,
				struct ca_err *err)
{
	char copy[ROOM], *rest = copy;
	const char *frequency;

	*spec = (struct spec){ .delay = (double)NAN, .duration = (double)NAN };
	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return ca_err_set(err, CA_ERR_USAGE, "'%s' is too long", text);
	if (sampler == CA_SAMPLER_OVERFLOW)
		return *text ? read_overflow(rest, spec, text, err) : CA_OK;
	frequency = strsep(&rest, ":");
	if (!read_real(frequency, 0, HIGHEST, &spec->frequency))
		return ca_err_set(
			err, CA_ERR_USAGE,
			"'%s': write HZ[:DELAY[:DURATION[:THREADS]]], HZ from 0 (as --frequency) to %d", text,
			HIGHEST);
	return read_times(rest, spec, text, err);
}

enum ca_status ca_samplers_check(enum ca_sampler sampler, const char *text, struct ca_err *err)
{
	struct spec spec;

	return read_spec(sampler, text, &spec, err);
}

/* ---- metrics --------------------------------------------------------------------------------*/
/* Number of the metric; of a counter, CA_METRIC_OWN; -1: there is none. */
static int find_metric(const char *name)
{
	for (int i = CA_METRIC_CPU_TIME; i < CA_METRIC_OWN; i++)
		if (!strcmp(metrics[i].name, name))
			return i;
	return find_event(name) ? CA_METRIC_OWN : -1;
}

/* The i-th word between commas, NULL: there are not so many. */
static const char *word_of(const char *text, unsigned i, char word[64])
{
	while (text && *text) {
		size_t n = strcspn(text, ", ");

		if (n && !i--) {
			snprintf(word, 64, "%.*s", (int)n, text);
			return word;
		}
		text += n + (text[n] != '\0');
	}
	return NULL;
}

/* An event may be called by several names. */
static bool is_same_metric(const char *a, const char *b)
{
	return find_metric(a) == find_metric(b) && find_event(a) == find_event(b);
}

enum ca_status ca_samplers_check_metrics(const char *text, struct ca_err *err)
{
	char word[64], other[64], list[1024];
	unsigned counters = 0;

	for (unsigned i = 0; word_of(text, i, word); i++) {
		int metric = find_metric(word);

		for (unsigned k = 0; k < i && metric >= 0; k++)
			if (is_same_metric(word, word_of(text, k, other)))
				return ca_err_set(err, CA_ERR_USAGE, "'%s' is named twice; name it once",
						  word);
		if (metric < 0)
			return ca_err_set(err, CA_ERR_USAGE,
					  "there is no metric '%s'; choose from: cpu-time minor-faults "
					  "major-faults switches preemptions peak-rss, and up to %d of: %s",
					  word, CA_METRIC_COUNTERS, list_events(list));
		counters += metric == CA_METRIC_OWN;
	}
	return counters <= CA_METRIC_COUNTERS
		       ? CA_OK
		       : ca_err_set(err, CA_ERR_USAGE, "at most %d counters of perf come with a sample",
				    CA_METRIC_COUNTERS);
}

static const char *counter_name(const struct ca_settings *set, unsigned i)
{
	static char word[64];

	for (unsigned k = 0; word_of(set->metrics, k, word); k++)
		if (find_metric(word) == CA_METRIC_OWN && !i--)
			return word;
	return "";
}

static bool is_wanted(const struct ca_settings *set, unsigned metric)
{
	char word[64];

	if (metric == CA_METRIC_REAL)
		return *set->realtime;
	if (metric == CA_METRIC_OVERFLOW)
		return *set->overflow;
	for (unsigned k = 0; word_of(set->metrics, k, word); k++)
		if (find_metric(word) == (int)metric)
			return true;
	return false;
}

const char *ca_samplers_metric(const struct ca_settings *set, unsigned i, const char **unit)
{
	static char event[80];

	*unit = i < CA_METRIC_OWN ? metrics[i].unit : "";
	if (i >= CA_METRIC_OWN)
		return counter_name(set, i - CA_METRIC_OWN);
	if (!is_wanted(set, i))
		return "";
	if (i != CA_METRIC_OVERFLOW)
		return metrics[i].name;
	snprintf(event, sizeof event, "overflow-%.*s", (int)length_of(set->overflow), set->overflow);
	return event;
}

/* ---- all of it ------------------------------------------------------------------------------*/
static const char *text_of(const struct ca_settings *set, enum ca_sampler sampler)
{
	return sampler == CA_SAMPLER_CPU    ? set->cputime
	       : sampler == CA_SAMPLER_REAL ? set->realtime
					    : set->overflow;
}

static void fill_threads(struct ca_samplers *s, enum ca_sampler sampler, const char *threads)
{
	uint32_t n = 0;

	while (n < CA_SAMPLER_RANGES &&
	       ca_numbers_range(threads, n, &s->of[sampler].first[n], &s->of[sampler].last[n]))
		n++;
	s->of[sampler].ranges = n;
}

enum ca_status ca_samplers_make(struct ca_samplers *s, const struct ca_settings *set, struct ca_err *err)
{
	uint64_t period =
		set->frequency > 0 ? (uint64_t)(1000000000 / set->frequency) : (uint64_t)set->period;
	const char *unit;

	memset(s, 0, sizeof *s);
	for (unsigned i = 0; i < CA_SAMPLER_COUNT; i++) {
		enum ca_sampler sampler = (enum ca_sampler)i;
		const char *text = text_of(set, sampler);
		struct spec spec;
		enum ca_status status = read_spec(sampler, text, &spec, err);

		if (status)
			return status;
		if (*text)
			s->on |= 1u << i;
		s->of[i].period = sampler == CA_SAMPLER_OVERFLOW ? (spec.count ? spec.count : 10000)
				  : spec.frequency > 0           ? (uint64_t)(1e9 / spec.frequency)
								 : period;
		if (sampler == CA_SAMPLER_OVERFLOW && *text)
			s->overflow = find_event(spec.event)->counter;
		if (spec.in_hz)
			s->overflow_frequency =
				(uint64_t)(spec.frequency >= 1 ? spec.frequency : 1e9 / (double)period);
		fill_threads(s, sampler, *spec.threads ? spec.threads : set->tids);
	}
	if (!s->on)
		s->on = 1u << CA_SAMPLER_CPU;
	for (unsigned i = 0; i < CA_METRIC_COUNT; i++)
		s->metrics |= (uint32_t)(*ca_samplers_metric(set, i, &unit) != '\0') << i;
	for (; s->counters < CA_METRIC_COUNTERS && *counter_name(set, s->counters); s->counters++)
		s->counter[s->counters] = find_event(counter_name(set, s->counters))->counter;
	return CA_OK;
}

bool ca_samplers_window(const struct ca_settings *set, enum ca_sampler sampler, double *delay,
			double *duration)
{
	struct spec spec;

	if (read_spec(sampler, text_of(set, sampler), &spec, NULL) ||
	    (isnan(spec.delay) && isnan(spec.duration)))
		return false;
	*delay = isnan(spec.delay) ? set->delay : spec.delay;
	*duration = isnan(spec.duration) ? set->duration : spec.duration;
	return true;
}

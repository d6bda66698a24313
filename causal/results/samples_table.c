/* SPDX-License-Identifier: MIT */
/* A profile of samples on the terminal: what it stands on, the table of functions, the waits.
 * Driver's process, one thread. */
#include "causal/results/plain.h"
#include "causal/results/samples.h"
#include "causal/results/text.h"
#include "core/path.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	PERCENTS = 27, /* columns of the table but for function, binary and three that the unit says */
	BINARY = 20,   /* at most */
	NAME_LEAST = 20,
	WAIT_NUMBERS = 22,
	WAIT_WHAT = 30,
	WAITS = 8 /* rows */
};

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static const char *s_if(uint64_t n, const char *plural)
{
	return n == 1 ? "" : plural;
}

static void put(FILE *file, const char *text)
{
	ca_text_put(file, text, ca_text_width(text));
}

/* "parse (parser.c:120)"; owned by the caller. */
static char *label_of(const struct ca_samples_function *f)
{
	char *label;
	int length = f->line ? asprintf(&label, "%s (%s:%u)", f->name, ca_path_base(f->file), f->line)
			     : asprintf(&label, "%s", f->name);

	return length < 0 ? NULL : label;
}

static void put_label(FILE *file, const struct ca_samples_function *f, size_t width)
{
	char *label = label_of(f), *cut = label ? ca_plain_fit(label, width) : NULL;

	ca_text_put(file, cut ? cut : f->name, width);
	free(label);
	free(cut);
}

/* Most of what is missing, where it is. */
static const char *not_asked(const struct ca_samples *s)
{
	return s->partly ? "threads and times that were not asked for, " : "";
}

/* ---- what it stands on ----------------------------------------------------------------------*/
static void put_head(const struct ca_samples *s, FILE *file)
{
	uint64_t lifetime = 0, ticks = 0, cpu = 0, waiting = 0;
	bool sampled; /* with --realtime or --overflow alone it is not */

	for (uint32_t i = 1; i < s->nodes; i++) {
		bool wait = ca_samples_is_wait(s, i);

		*(wait ? &waiting : &cpu) += s->node[i].ns;
		ticks += wait ? 0 : s->node[i].count;
	}
	for (size_t i = 0; i < s->groups; i++)
		lifetime += s->group[i].lifetime;
	sampled = !s->no_cputime && (cpu || !ticks);
	fprintf(file, "%.3g s, %" PRIu64 " thread%s in %" PRIu64 " process%s; %" PRIu64 " samples from %s",
		seconds(s->runtime), s->threads, s_if(s->threads, "s"), s->processes,
		s_if(s->processes, "es"), ticks, s->backend);
	if (sampled)
		fprintf(file, ", about one each %.2g ms of CPU time",
			ticks ? (double)cpu / (double)ticks / 1e6 : (double)s->period / 1e6);
	fprintf(file, ", and %" PRIu64 " of waits.\n", s->samples - ticks);
	if (sampled)
		fprintf(file, "CPU time: %.3g s in samples", seconds(cpu));
	else
		fputs("CPU time: not sampled (--cputime)", file);
	if (s->user || s->system)
		fprintf(file, ", %.3g s by the kernel's account, of which %.3g s in the kernel itself",
			seconds(s->user + s->system), seconds(s->system));
	fputs(".\n", file);
	if (lifetime && sampled)
		fprintf(file,
			"Threads lived for %.3g s together: %.3g s on a CPU, %.3g s in waits that have a "
			"stack, "
			"%.3g s neither (%sready to run, short waits, threads that are left alone).\n",
			seconds(lifetime), seconds(cpu), seconds(waiting),
			lifetime > cpu + waiting ? seconds(lifetime - cpu - waiting) : 0, not_asked(s));
}

/* What was asked for and is not there comes before all that is. */
static void put_missing(const struct ca_samples *s, FILE *file)
{
	for (size_t i = 0; i < s->metrics; i++)
		if (s->metric[i].missing)
			fprintf(file,
				"No thread could get the event of %s: %s. causal avail counters lists what "
				"there is; "
				"--overflow task-clock:1000000 counts CPU time.\n",
				s->metric[i].name, s->metric[i].missing);
}

static void put_losses(const struct ca_samples *s, FILE *file)
{
	if (s->incomplete)
		fprintf(file, "Of %.3g %% of the samples the stack could not be walked to its end.\n",
			percent(s->incomplete, s->walked ? s->walked : s->samples));
	if (s->walked)
		fprintf(file,
			"libunwind walked %" PRIu64 " stacks; %.3g %% came out as by causal's own rows.\n",
			s->walked, percent(s->alike, s->walked));
	if (!s->losses)
		return;
	fputs("Left out: ", file);
	for (size_t i = 0; i < s->losses; i++)
		fprintf(file, "%s%" PRIu64 " (%s)", i ? ", " : "", s->loss[i].count, s->loss[i].why);
	fputs(".\n", file);
}

/* ---- the critical path ----------------------------------------------------------------------*/
static void put_path(const struct ca_samples *s, FILE *file)
{
	uint64_t all = ca_samples_path(s), *wait = all ? calloc(s->functions, sizeof *wait) : NULL;

	if (!wait)
		return;
	for (uint32_t i = 1; i < s->nodes; i++)
		if (ca_samples_is_wait(s, i))
			wait[s->node[i].function - 1] += s->node[i].path;
	fprintf(file,
		"The critical path is known for %.3g s of the %.3g s (the rest: %sready to run, page faults, "
		"short waits)",
		seconds(all), seconds(s->runtime), not_asked(s));
	for (size_t i = 0; i < s->functions; i++)
		if (percent(wait[i], all) >= 1)
			fprintf(file, ", %.0f %% %s", percent(wait[i], all), s->function[i].name);
	fputs(".\n", file);
	free(wait);
}

/* ---- functions ------------------------------------------------------------------------------*/
static void put_row(const struct ca_samples *s, const struct ca_samples_row *row, uint64_t all, uint64_t path,
		    size_t name, FILE *file)
{
	const struct ca_samples_function *f = &s->function[row->function - 1];
	struct ca_samples_unit u = ca_samples_unit(s);

	fprintf(file, "%*.*f %6.1f %*.*f %6.1f ", u.width, u.digits, (double)row->self / u.scale,
		percent(row->self, all), u.width, u.digits, (double)row->total / u.scale,
		percent(row->total, all));
	if (u.time)
		fprintf(file, "%*.*f ", u.width, u.digits, (double)row->wall / u.scale);
	fprintf(file, "%6.1f  ", percent(row->path, path));
	put_label(file, f, name);
	fputs("  ", file);
	put(file, ca_path_base(f->binary));
	fputc('\n', file);
}

/* Columns for the names, where the lines have `width`. */
static size_t name_width(const struct ca_samples *s, const struct ca_samples_row *row, size_t n, size_t width)
{
	struct ca_samples_unit u = ca_samples_unit(s);
	size_t numbers = PERCENTS + (u.time ? 3 : 2) * (size_t)u.width, binary = 0;

	for (size_t i = 0; i < n; i++) {
		size_t one = ca_text_width(ca_path_base(s->function[row[i].function - 1].binary));

		binary = one > binary && one <= BINARY ? one : binary;
	}
	return width > numbers + 2 + binary + NAME_LEAST ? width - numbers - 2 - binary : NAME_LEAST;
}

static void put_rows(const struct ca_samples *s, const struct ca_samples_row *row, size_t n, size_t most,
		     uint64_t all, size_t name, FILE *file)
{
	struct ca_samples_unit u = ca_samples_unit(s);
	uint64_t path = ca_samples_path(s);
	size_t shown = 0;

	if (s->weight)
		fprintf(file, "\nBy %s (%s):", u.name, u.unit);
	fprintf(file, "\n%*s %6s %*s %6s ", u.width, u.time ? "self s" : "self", "%", u.width,
		u.time ? "total s" : "total", "%");
	if (u.time)
		fprintf(file, "%*s ", u.width, "wall s");
	fprintf(file, "%6s  ", "path %");
	ca_text_put(file, "function", name);
	fputs("  binary\n", file);
	for (; shown < n && (!most || shown < most); shown++) {
		put_row(s, &row[shown], all, path, name, file);
	}
	if (shown < n)
		fprintf(file, "%zu more function%s\n", n - shown, s_if(n - shown, "s"));
}

/* ---- waits ----------------------------------------------------------------------------------*/
struct wait {
	uint32_t what, where; /* functions; where 0: not known */
	uint32_t by;          /* function of those who ended it, mostly; 0: not known */
	uint64_t ns, count, by_ns, known;
};

static uint32_t caller_of(const struct ca_samples *s, uint32_t node)
{
	uint32_t f = s->node[s->node[node].parent].function;

	return f && s->function[f - 1].kind == CA_SAMPLES_CODE ? f : 0;
}

static int by_ns(const void *a, const void *b)
{
	const struct wait *x = a, *y = b;

	return x->ns != y->ns ? (x->ns < y->ns ? 1 : -1) : 0;
}

static struct wait *find_wait(struct wait *wait, size_t n, uint32_t what, uint32_t where)
{
	for (size_t i = 0; i < n; i++)
		if (wait[i].what == what && wait[i].where == where)
			return &wait[i];
	return NULL;
}

/* Whoever ended most of its time; the numbers of functions are few. */
static void find_wakers(const struct ca_samples *s, struct wait *wait, uint64_t *by)
{
	memset(by, 0, (s->functions + 1) * sizeof *by);
	for (size_t i = 0; i < s->wakes; i++) {
		uint32_t node = s->wake[i].waiter, f = s->node[s->wake[i].waker].function;

		if (s->node[node].function != wait->what || caller_of(s, node) != wait->where)
			continue;
		wait->known += s->wake[i].ns;
		if (f && (by[f] += s->wake[i].ns) > wait->by_ns) {
			wait->by = f;
			wait->by_ns = by[f];
		}
	}
}

static void put_wait(const struct ca_samples *s, const struct wait *wait, size_t width, FILE *file)
{
	size_t name = (width - WAIT_NUMBERS - WAIT_WHAT) / 2 - 2;

	fprintf(file, "%9.3f %9" PRIu64 "  ", seconds(wait->ns), wait->count);
	ca_text_put(file, s->function[wait->what - 1].name, WAIT_WHAT);
	fputc(' ', file);
	if (wait->where)
		put_label(file, &s->function[wait->where - 1], name);
	else
		ca_text_put(file, "?", name);
	fputs("  ", file);
	if (wait->by) {
		char *label = label_of(&s->function[wait->by - 1]);

		put(file, label ? label : "?");
		free(label);
		fprintf(file, ", %.0f %%", percent(wait->by_ns, wait->ns));
	}
	fputc('\n', file);
}

static void put_waits(const struct ca_samples *s, size_t width, FILE *file)
{
	struct wait *wait = calloc(s->nodes, sizeof *wait), *found;
	uint64_t *by = calloc(s->functions + 1, sizeof *by);
	size_t n = 0;

	for (uint32_t i = 1; wait && by && i < s->nodes; i++) {
		if (!ca_samples_is_wait(s, i))
			continue;
		found = find_wait(wait, n, s->node[i].function, caller_of(s, i));
		if (!found) {
			found = &wait[n++];
			found->what = s->node[i].function;
			found->where = caller_of(s, i);
		}
		found->ns += s->node[i].ns;
		found->count += s->node[i].count;
	}
	if (n) {
		qsort(wait, n, sizeof *wait, by_ns);
		fprintf(file, "\n%9s %9s  ", "waits s", "samples");
		ca_text_put(file, "what for", WAIT_WHAT + 1);
		ca_text_put(file, "in", (width - WAIT_NUMBERS - WAIT_WHAT) / 2);
		fputs("ended by\n", file);
	}
	for (size_t i = 0; i < n && i < WAITS; i++) {
		find_wakers(s, &wait[i], by);
		put_wait(s, &wait[i], width, file);
	}
	if (n > WAITS)
		fprintf(file, "%zu more\n", n - WAITS);
	free(wait);
	free(by);
}

/* ---- metrics --------------------------------------------------------------------------------*/
/* Of each function, without what it calls; those first that have most of the first metric. */
struct metric_row {
	uint32_t function;
	uint64_t value[CA_SAMPLES_METRICS];
};

static int by_metric(const void *a, const void *b)
{
	const struct metric_row *x = a, *y = b;

	for (size_t i = 0; i < CA_SAMPLES_METRICS; i++)
		if (x->value[i] != y->value[i])
			return x->value[i] < y->value[i] ? 1 : -1;
	return x->function < y->function ? -1 : x->function > y->function;
}

/* What the table above has is not told again. */
static bool is_column(const struct ca_samples *s, size_t metric)
{
	return metric + 1 != s->weight && !s->metric[metric].missing;
}

static void put_metric_rows(const struct ca_samples *s, const struct metric_row *row, size_t rows, FILE *file)
{
	fputc('\n', file);
	for (size_t k = 0; k < s->metrics; k++) {
		const char *name = s->metric[k].name,
			   *unit = s->metric[k].unit; /* NULL: there was no memory */

		if (!is_column(s, k))
			continue;
		unit = unit ? unit : "";
		fprintf(file, "%*s%s%s  ", *unit ? 14 - (int)strlen(unit) : 15, name ? name : "?",
			*unit ? " " : "", unit);
	}
	fputs("function\n", file);
	for (size_t i = 0; i < rows && row[i].function; i++) {
		for (size_t k = 0; k < s->metrics; k++)
			if (is_column(s, k))
				fprintf(file, "%15" PRIu64 "  ", row[i].value[k]);
		put_label(file, &s->function[row[i].function - 1],
			  ca_text_width(s->function[row[i].function - 1].name) + BINARY);
		fputc('\n', file);
	}
}

static void put_metrics(const struct ca_samples *s, size_t rows, FILE *file)
{
	struct metric_row *row = NULL;
	bool any = false;

	for (size_t k = 0; k < s->metrics; k++)
		any |= is_column(s, k);
	if (any)
		row = calloc(s->functions + 1, sizeof *row);
	for (uint32_t i = 1; row && i < s->nodes; i++) {
		struct metric_row *r = &row[s->node[i].function - 1];

		for (size_t k = 0; k < s->metrics; k++) {
			uint64_t value = is_column(s, k) ? ca_samples_measured(s, i, k).value : 0;

			if (value)
				r->function = s->node[i].function;
			r->value[k] = !s->metric[k].level   ? r->value[k] + value
				      : value > r->value[k] ? value
							    : r->value[k];
		}
	}
	if (row) {
		qsort(row, s->functions, sizeof *row, by_metric);
		put_metric_rows(s, row, rows && rows < s->functions ? rows : s->functions, file);
	}
	free(row);
}

bool ca_samples_print(const struct ca_samples *s, size_t rows, unsigned width, FILE *file)
{
	struct ca_samples view = *s;
	uint64_t all, waiting;
	struct ca_samples_row *row;
	size_t n;

	ca_samples_weigh(&view, NULL, NULL);
	row = ca_samples_rows(&view, &n, &all, &waiting);
	if (!row)
		return false;
	put_missing(s, file);
	put_head(s, file);
	put_path(s, file);
	put_losses(s, file);
	if (n && (all || !s->no_cputime))
		put_rows(&view, row, n, rows, all, name_width(&view, row, rows && rows < n ? rows : n, width),
			 file);
	put_metrics(&view, rows, file);
	put_waits(s, width < 110 ? 110 : width, file);
	free(row);
	return true;
}

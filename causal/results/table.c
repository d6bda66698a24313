/* SPDX-License-Identifier: MIT */
/* The table on the terminal: one line per region and progress point, best first.
 * Driver's process, one thread. */
#include "causal/results/table.h"
#include "causal/results/labels.h"
#include "causal/results/plain.h"
#include "causal/results/profile.h"
#include "causal/results/text.h"
#include "core/event.h"
#include "core/memstream.h"
#include "core/path.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	EFFECT = 12, /* " -12.3 ± 0.4" */
	SHARE = 6,
	NOT_WORTH_ROWS = 8,
	UNSURE_ROWS = 10,
	NAME_MIN = 12,
	NAME_ENOUGH = 24, /* columns of numbers are not worth a shorter one */
	POINT_MAX = 18,
	VERDICT = 16, /* "cannot tell here" */
	MOSTLY = 50,  /* percent of a row's samples */
	KERNEL = 2,   /* times the share of the samples, and more: it is in the kernel */
	SILENT = 2,   /* percent of the run: less is not worth a word */
	NO_TERMINAL = 200
};

/* ---- lay-out -------------------------------------------------------------------*/

static size_t more_than(size_t a, size_t b)
{
	return a > b ? a : b;
}

static bool has_shares(const struct ca_table *t)
{
	for (size_t r = 0; r < t->shown; r++)
		if (isfinite(t->row[r]->samples))
			return true;
	return false;
}

static bool is_time(const struct ca_profile_point *point)
{
	return !strcmp(point->name, CA_RESULTS_TIME);
}

bool ca_table_is_same(const struct ca_profile_point *a, const struct ca_profile_point *b)
{
	if (is_time(a) || is_time(b))
		return a->kind != 'l' && b->kind != 'l';
	return a->kind == b->kind && !strcmp(a->name, b->name);
}

/* The one to tell of, where they are the same. */
static const struct ca_profile_point *point_of_rows(const struct ca_table *t)
{
	for (size_t r = 0; r < t->shown; r++)
		if (!is_time(t->row[r]->point))
			return t->row[r]->point;
	return t->row[0]->point;
}

static size_t point_width(const struct ca_table *t)
{
	size_t width = 5;
	bool several = false;

	for (size_t r = 0; r < t->shown; r++) {
		several = several || !ca_table_is_same(t->row[r]->point, point_of_rows(t));
		width = more_than(width, ca_text_width(t->row[r]->point->name));
	}
	return !several ? 0 : width < POINT_MAX ? width : POINT_MAX;
}

/* All but the name. */
static size_t fixed_width(const struct ca_table *t)
{
	return CA_TABLE_RANK + (t->point ? 2 + t->point : 0) + (size_t)(CA_AT - t->first) * EFFECT +
	       (t->shares ? 2 * SHARE : 0) + 3 + VERDICT;
}

/* Names first: with little room the columns go that say least beside the others. */
static bool lay_out(struct ca_table *t, unsigned width)
{
	size_t longest = NAME_MIN, room;

	t->width = width ? width : NO_TERMINAL;
	t->point = point_width(t);
	t->shares = has_shares(t);
	t->first = 0;
	if (fixed_width(t) + NAME_ENOUGH > t->width)
		t->first = 1;
	if (fixed_width(t) + NAME_ENOUGH > t->width)
		t->shares = false;
	if (fixed_width(t) + NAME_MIN > t->width && t->point > 8)
		t->point = 8;
	room = more_than(t->width > fixed_width(t) ? t->width - fixed_width(t) : 0, NAME_MIN);
	t->label = ca_labels_make(t->region, t->rows, room);
	for (size_t r = 0; t->label && r < t->shown; r++)
		longest = more_than(longest, ca_text_width(t->label[r]));
	t->code = longest;
	return t->label;
}

/* With a mark of ECMA-48 (SGR), on terminals. */
static void put_marked(const struct ca_table *t, const char *mark, const char *text)
{
	if (t->colours)
		fprintf(t->out, "\033[%sm%s\033[0m", mark, text);
	else
		fputs(text, t->out);
}

/* ---- rows ----------------------------------------------------------------------*/

/* As many digits as are known. Where only the bounds are known (no experiment at 0 % to compare with), the upper one. */
static void put_number(FILE *out, double effect, double low, double high, int width)
{
	double half = (high - low) / 2;
	char text[64];
	int digits = half < 0.95 ? 1 : 0, n;

	if (fabs(effect) < (digits ? 0.05 : 0.5)) /* no "-0" */
		effect = 0;
	if (!isfinite(effect) && isfinite(high))
		n = snprintf(text, sizeof text, "≤ %.*f", high < 9.5 ? 1 : 0, fmax(high, 0)) -
		    2; /* ≤ has three */
	else if (!isfinite(effect))
		n = snprintf(text, sizeof text, "-");
	else if (!isfinite(half))
		n = snprintf(text, sizeof text, "%.0f ± ?", effect) - 1; /* ± has two bytes */
	else
		n = snprintf(text, sizeof text, "%.*f ± %.*f", digits, effect, digits, fmin(half, 999)) - 1;
	fprintf(out, "%*s%s", n < width ? width - n : 1, "", text);
}

static void put_effect(FILE *out, double effect, double low, double high)
{
	put_number(out, effect, low, high, EFFECT);
}

static void put_share(FILE *out, double percent)
{
	if (isfinite(percent))
		fprintf(out, "%*.0f", SHARE, percent);
	else
		fprintf(out, "%*s", SHARE, "-");
}

/* Why it is not known, where there is room for it, or where that alone keeps an effect from being worth it. */
static void put_verdict(const struct ca_table *t, const struct ca_profile_row *row)
{
	static const char *const marks[] = {
		[CA_VERDICT_WORTH] = "1;32",    /* bold green */
		[CA_VERDICT_NOT_WORTH] = "2",   /* faint */
		[CA_VERDICT_NOT_ENOUGH] = "33", /* yellow */
		[CA_VERDICT_CANNOT_TELL] = "33",
	};
	size_t used = fixed_width(t) + t->code, tries = row->curve->experiments;
	const char *text = ca_profile_row_text(row);
	char why[64] = "", few[64];

	if (row->verdict == CA_VERDICT_NOT_ENOUGH && !ca_profile_is_little(row) && !ca_profile_is_vague(row))
		snprintf(why, sizeof why, ": %zu experiment%s", tries, tries == 1 ? "" : "s");
	if (used + strlen(why) > t->width) {
		*why = '\0';
		/* however sure its interval seems */
		if (row->verdict == CA_VERDICT_NOT_ENOUGH && tries < CA_ESTIMATE_TRIES &&
		    row->curve->how == CA_HOW_COMPARED) {
			snprintf(few, sizeof few, "too few tries: %zu", tries);
			text = few;
		}
	}
	put_marked(t, marks[row->verdict], text);
	fprintf(t->out, "%s\n", why);
}

/* "via a ← b", "calls a, b"; each name has at most so many columns. */
static char *join_names(const char *how, char *const *names, const char *between, size_t width)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	for (char *const *name = names; out && *name; name++) {
		char *plain = ca_plain_fit(*name, width);

		fprintf(out, "%s%s", name == names ? how : between, plain ? plain : "");
		free(plain);
	}
	if (out)
		ca_memstream_end(out, &text);
	return text;
}

static void put_names(const struct ca_table *t, const char *how, char *const *names, const char *between)
{
	size_t room = t->width > CA_TABLE_RANK + 10 ? t->width - CA_TABLE_RANK : 10;
	char *text = join_names(how, names, between, room), *cut;

	if (text && ca_text_width(text) > room) {
		free(text);
		text = join_names(how, names, between, room / 2);
	}
	cut = text ? ca_text_cut(text, room, room / 2) : NULL;
	if (cut) {
		fprintf(t->out, "%*s", CA_TABLE_RANK, "");
		put_marked(t, "2", cut);
		fputc('\n', t->out);
	}
	free(cut);
	free(text);
}

/* What half the time would do to the slow visits. */
static void put_percentiles(const struct ca_table *t, const struct ca_profile_row *row)
{
	bool any = false;

	for (int i = 0; i < CA_PERCENTILES; i++) {
		const struct ca_curve *curve = ca_profile_percentile(row, i);

		if (!curve)
			continue;
		fprintf(t->out, any ? "," : "%*s50 %% less:", CA_TABLE_RANK, "");
		fprintf(t->out, " p%u", ca_profile_percent[i]);
		put_number(t->out, curve->at[1], curve->at_low[1], curve->at_high[1], 1);
		any = true;
	}
	if (any)
		fputc('\n', t->out);
}

static void put_row(const struct ca_table *t, size_t r)
{
	const struct ca_profile_row *row = t->row[r];

	fprintf(t->out, "%*zu  ", CA_TABLE_RANK - 2, r + 1);
	ca_text_put(t->out, t->label[r], t->code);
	if (t->point) {
		fputs("  ", t->out);
		ca_text_put(t->out, row->point->name, t->point);
	}
	for (int i = t->first; i < CA_AT; i++)
		put_effect(t->out, row->curve->at[i], row->curve->at_low[i], row->curve->at_high[i]);
	if (t->shares) {
		put_share(t->out, row->own);
		put_share(t->out, row->samples);
	}
	fputs("   ", t->out);
	put_verdict(t, row);
	put_percentiles(t, row);
	if (t->shares && row->waits >= MOSTLY) {
		fprintf(t->out, "%*s", CA_TABLE_RANK, "");
		put_marked(t, "2", "mostly waits: sleeps, files, other programs");
		fputc('\n', t->out);
	}
	if (row->via && *row->via)
		put_names(t, "via ", row->via, " ← ");
	if (row->calls && *row->calls)
		put_names(t, "calls ", row->calls, ", ");
}

static void put_header(const struct ca_table *t)
{
	static const char *const titles[CA_AT] = { "25 % less", "50 % less", "at most" };

	if (t->colours)
		fputs("\033[1m", t->out);
	fprintf(t->out, "%*s", CA_TABLE_RANK, "");
	ca_text_put(t->out, t->code < 21 ? "code" : "if this code took ...", t->code);
	if (t->point)
		fprintf(t->out, "  %-*s", (int)t->point, "point");
	for (int i = t->first; i < CA_AT; i++)
		fprintf(t->out, "%*s", EFFECT, titles[i]);
	if (t->shares)
		fprintf(t->out, "%*s%*s", SHARE, "own", SHARE, "total");
	fprintf(t->out, "%s\n", t->colours ? "\033[0m" : "");
}

/* ---- what is above -----------------------------------------------------*/

static void put_scope(const struct ca_table *t)
{
	for (int in_scope = 1; in_scope >= 0; in_scope--) {
		bool any = false;

		for (size_t i = 0; i < t->profile->scopes; i++) {
			const struct ca_profile_scope *scope = &t->profile->scope[i];
			char *name;

			if (scope->in_scope != in_scope || scope->share < 0.5)
				continue;
			name = ca_text_cut(ca_path_base(scope->binary), 40, 20);
			fprintf(t->out, "%s%s %.0f %%%s",
				any        ? ", "
				: in_scope ? "CPU time: "
					   : "; left out: ",
				name ? name : "", scope->share,
				!in_scope && ca_path_is_openmp(scope->binary)
					? " (OpenMP's threads, which wait for each other)"
				: strcmp(scope->binary, CA_KERNEL) && strcmp(scope->binary, CA_MADE)
					? ""
					: " (counts for the code that calls it)");
			any = true;
			free(name);
		}
		if (in_scope && !any)
			return;
	}
	fputs(".\n", t->out);
}

/* "At 0 %: p50 4.1 ms, p95 7.9 ms." */
static void put_times(FILE *out, const struct ca_profile_point *point)
{
	bool any = false;

	for (int i = 0; i < CA_PERCENTILES; i++) {
		double ns = point->percentile[i].time;
		double scale = ns < 1e3 ? 1 : ns < 1e6 ? 1e3 : ns < 1e9 ? 1e6 : 1e9;
		const char *unit = ns < 1e3 ? "ns" : ns < 1e6 ? "us" : ns < 1e9 ? "ms" : "s";

		if (!(ns > 0))
			continue;
		fprintf(out, "%s p%u %.*f %s", any ? "," : "At 0 %:", ca_profile_percent[i],
			ns / scale < 10 ? 1 : 0, ns / scale, unit);
		any = true;
	}
	if (any)
		fputs(".\n", out);
}

/* What one visit is worth the reader has to know: from the experiments at 0 %. */
static void put_unit(const struct ca_table *t)
{
	const struct ca_profile *p = t->profile;
	const struct ca_profile_point *point = point_of_rows(t);
	double visits = 0, seconds = 0, silent = 100 * point->estimates.silent;
	char *name;

	if (t->point)
		return;
	if (point->kind == 'e') {
		fputs("Unit of work: a run.\n", t->out);
		return;
	}
	for (size_t i = 0; i < p->experiments; i++) {
		const struct ca_profile_experiment *e = &p->experiment[i];

		for (size_t v = e->first; v < e->first + e->visits && !e->flags && !e->speedup; v++)
			if (ca_table_is_same(&p->point[p->visits[v].point], point) &&
			    !is_time(&p->point[p->visits[v].point])) {
				visits += (double)p->visits[v].delta;
				seconds += (double)e->duration / 1e9;
			}
	}
	if (is_time(point)) {
		fputs("Unit of work: time itself, since no other thread had to be delayed.\n", t->out);
		return;
	}
	name = ca_text_cut(point->name, t->width / 2, t->width / 4);
	if (point->works) {
		fprintf(t->out, "Unit of work: CPU time; visits of %s are none.\n", name ? name : "");
		free(name);
		return;
	}
	fprintf(t->out, "%s %s", point->kind == 'l' ? "Latency:" : "Unit of work: one visit of",
		name ? name : "");
	if (seconds > 0)
		fprintf(t->out, ", %.*f a second", visits < 100 * seconds ? 1 : 0, visits / seconds);
	if (silent >= SILENT)
		fprintf(t->out, ", in %.0f %% of the run; samples tell of the rest", 100 - silent);
	fputs(".\n", t->out);
	put_times(t->out, point);
	free(name);
}

static void put_title(const struct ca_table *t)
{
	const struct ca_funnel *f = &t->profile->funnel;

	fprintf(t->out, "\n%zu run%s, %" PRIu64 " experiment%s used", f->runs, f->runs == 1 ? "" : "s",
		f->kept, f->kept == 1 ? "" : "s");
	if (f->finished > f->kept)
		fprintf(t->out, " of %" PRIu64, f->finished);
	if (f->runtime >= UINT64_C(1000000000))
		fprintf(t->out, ", %.0f s", (double)f->runtime / 1e9);
	if (f->unfinished)
		fprintf(t->out, ", %zu run%s cut short", f->unfinished, f->unfinished == 1 ? "" : "s");
	fputs(".\n", t->out);
}

/* As binary/index/symbols.c calls code that no symbol covers. */
static bool is_unnamed(const struct ca_region *region)
{
	return !strncmp(region->name, "sub_", 4) &&
	       strspn(region->name + 4, "0123456789abcdef") == strlen(region->name + 4);
}

static bool any_unnamed(const struct ca_table *t)
{
	for (size_t r = 0; r < t->shown; r++)
		if (is_unnamed(t->region[r]))
			return true;
	return false;
}

static void put_reason(const struct ca_table *t)
{
	const struct ca_funnel *f = &t->profile->funnel;
	const char *cause, *remedy;

	if (!ca_funnel_reason(t->profile, &cause, &remedy))
		return;
	put_marked(t, "1", t->profile->rows ? "No verdict" : "No result");
	fprintf(t->out, ": %s.\n", cause);
	fprintf(t->out, "To do: %s.\n", remedy);
	fprintf(t->out,
		"Funnel: %" PRIu64 " samples, %" PRIu64 " dropped, %" PRIu64 " in scope; %" PRIu64
		" visits; experiments: %" PRIu64 " started, %" PRIu64 " finished, %" PRIu64
		" disturbed by other programs, ",
		f->samples, f->dropped, f->in_scope, f->visits, f->started, f->finished, f->disturbed);
	if (f->books)
		fprintf(t->out, "%" PRIu64 " with accounts that differ, ", f->books);
	if (f->unsteady)
		fprintf(t->out, "%" PRIu64 " not steady, ", f->unsteady);
	if (f->ahead)
		fprintf(t->out, "%" PRIu64 " with somebody outside ahead, ", f->ahead);
	fprintf(t->out, "%" PRIu64 " kept.\n", f->kept);
}

/* How many rows are shown: all that are worth it or lead, some that do not matter; when nothing is sure, the best
 * guesses are still worth a look. */
static size_t choose_rows(const struct ca_table *t)
{
	size_t first = 0, sure, shown;
	bool any = false;

	for (; first < t->rows && (t->row[first]->verdict == CA_VERDICT_WORTH || t->row[first]->leads);
	     first++)
		any |= !t->row[first]->leads;
	for (sure = first; sure < t->rows && t->row[sure]->verdict == CA_VERDICT_NOT_WORTH; sure++)
		any = true;
	if (any)
		shown = sure < first + NOT_WORTH_ROWS ? sure : first + NOT_WORTH_ROWS;
	else
		shown = t->rows < UNSURE_ROWS ? t->rows : UNSURE_ROWS;
	/* a row without a number is a name, and those are told below the table */
	while (!any && shown > 1 && isnan(t->row[shown - 1]->curve->at[0]) &&
	       isnan(t->row[shown - 1]->curve->at[CA_AT - 1]))
		shown--;
	return shown < CA_TABLE_ROWS ? shown : CA_TABLE_ROWS;
}

/* Does another row stand for it? It was tried before samples said so. */
static bool is_stood_for(const struct ca_profile *p, const struct ca_profile_row *row)
{
	for (size_t r = 0; r < p->rows; r++)
		for (char *const *via = p->row[r].via; via && *via && &p->row[r] != row; via++)
			if (!strcmp(*via, row->region->name))
				return true;
	return false;
}

/* Several regions at once are no rows: ca_what_if_print tells of them. */
static bool collect_rows(struct ca_table *t)
{
	const struct ca_profile *p = t->profile;

	t->row = calloc(p->rows + 1, sizeof *t->row);
	t->region = calloc(p->rows + 1, sizeof *t->region);
	for (size_t r = 0; t->row && t->region && r < p->rows; r++)
		if (!ca_profile_holds_others(&p->row[r]) && !p->row[r].asked &&
		    !is_stood_for(p, &p->row[r])) {
			t->region[t->rows] = p->row[r].region;
			t->row[t->rows++] = &p->row[r];
		}
	return t->row && t->region;
}

/* Does one thread take much more time for it than its samples say? */
static bool is_in_kernel(const struct ca_profile_row *row)
{
	return row->curve->how >= CA_HOW_OWN && row->curve->at_low[CA_AT - 1] > KERNEL * row->samples;
}

/* By timers samples are taken there, too. */
static bool is_by_perf(const struct ca_profile *p)
{
	for (size_t i = 0; i < p->runs; i++)
		if (strcmp(p->run[i].backend, "perf"))
			return false;
	return p->runs;
}

static void put_kernel(const struct ca_table *t)
{
	const char *before =
		"Time in the kernel, where no samples are taken, is in the effects, and not in own and "
		"total: ";

	for (size_t r = 0; r < t->shown && t->shares; r++)
		if (is_in_kernel(t->row[r]) && is_by_perf(t->profile)) {
			fprintf(t->out, "%s%zu", before, r + 1);
			before = ", ";
		}
	if (*before == ',')
		fputs(".\n", t->out);
}

static void put_notes(const struct ca_table *t)
{
	char note[CA_FUNNEL_NOTES][CA_FUNNEL_NOTE];
	size_t n = ca_funnel_notes(t->profile, note);

	for (size_t i = 0; i < n; i++)
		fprintf(t->out, "%s\n", note[i]);
}

static void put_rows(struct ca_table *t)
{
	put_scope(t);
	put_unit(t);
	fputs("Program speedup in % (± half of the 95 % interval):\n\n", t->out);
	put_header(t);
	for (size_t r = 0; r < t->shown; r++)
		put_row(t, r);
	ca_table_put_rest(t);
	put_kernel(t);
	put_notes(t);
	if (any_unnamed(t))
		fputs("sub_...: code without a symbol, named by its address in the file; symbols (a -dbgsym "
		      "package, or debuginfod-find debuginfo FILE) give it a name.\n",
		      t->out);
}

static bool put_table(struct ca_table *t, unsigned width)
{
	bool ok;

	put_title(t);
	ok = collect_rows(t) && (!(t->shown = choose_rows(t)) || lay_out(t, width));
	if (ok && t->shown)
		put_rows(t);
	put_reason(t);
	ca_labels_free(t->label, t->rows);
	free(t->region);
	free(t->row);
	return ok;
}

bool ca_results_print(const struct ca_profile *profile, int fd, unsigned width, bool colours)
{
	char *text = NULL;
	size_t size = 0, done = 0;
	struct ca_table t = { .out = open_memstream(&text, &size), .profile = profile, .colours = colours };
	bool ok;

	if (!t.out)
		return false;
	ok = put_table(&t, width);
	if (!ca_memstream_end(t.out, &text))
		return false;
	while (done < size) {
		ssize_t n = write(fd, text + done, size - done);

		if (n <= 0)
			break; /* a closed terminal: the files hold everything */
		done += (size_t)n;
	}
	free(text);
	return ok;
}

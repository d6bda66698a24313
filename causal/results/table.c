/* SPDX-License-Identifier: MIT */
/* The table on the terminal: one line a region and progress point, best first.
 * Names come from the program under test, so nothing of theirs reaches the terminal but
 * printable UTF-8. Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/results_json.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	COLUMN = 11, /* "-12.3 ±10  " */
	COLUMNS_MAX = 21,
	ROWS_MAX = 40,
	NOT_WORTH_ROWS = 8,
	UNSURE_ROWS = 10,
	NAME_MIN = 8,
	POINT_MAX = 18,
	TAIL = 1 + 7 + 2 + 15, /* a gap before the columns; experiments, gap, verdict */
	LABEL = 512            /* of a region, at most */
};

struct table {
	FILE *out;
	const struct ca_profile *profile;
	size_t code, point; /* widths */
	uint32_t speedup[COLUMNS_MAX];
	size_t columns;
	size_t rows; /* shown */
	bool colours;
};

/* ---- text ----------------------------------------------------------------------*/

/* Bytes of the printable character at s; 0: show '?' instead of that byte. C1 controls count
 * as controls, and so do the marks that change the direction of writing. */
static size_t printable(const char *s)
{
	const unsigned char *u = (const unsigned char *)s;
	size_t n = ca_results_json_utf8(u);

	if (n == 0 || *u < 0x20 || *u == 0x7f || (n == 2 && *u == 0xc2 && u[1] < 0xa0))
		return 0;
	if (n == 3 && u[0] == 0xe2 && u[1] == 0x80 &&
	    ((u[2] >= 0x8b && u[2] <= 0x8f) || (u[2] >= 0xa8 && u[2] <= 0xae)))
		return 0;
	return n;
}

static size_t text_width(const char *s)
{
	size_t width = 0;

	while (*s) {
		size_t n = printable(s);

		s += n ? n : 1;
		width++;
	}
	return width;
}

static const char *put_characters(FILE *out, const char *s, size_t many)
{
	for (size_t i = 0; i < many; i++) {
		size_t n = printable(s);

		if (out && n)
			fwrite(s, 1, n, out);
		else if (out)
			fputc('?', out);
		s += n ? n : 1;
	}
	return s;
}

/* Exactly `width` columns: filled up with spaces, or cut with an ellipsis. Of "libz.so!sub_5d80" the
 * end tells one from the other. */
static void put_text(FILE *out, const char *s, size_t width)
{
	size_t have = text_width(s);

	if (have <= width) {
		put_characters(out, s, have);
		fprintf(out, "%*s", (int)(width - have), "");
	} else if (strchr(s, '!')) {
		fputs("…", out);
		put_characters(out, put_characters(NULL, s, have - width + 1), width - 1);
	} else {
		put_characters(out, s, width - 1);
		fputs("…", out);
	}
}

/* The same name may stand in several binaries: "libz.so!deflate", as --progress takes it. */
static const char *label(const struct ca_region *region, char text[LABEL])
{
	const char *slash = strrchr(region->binary, '/'), *file = slash ? slash + 1 : region->binary;
	const char *so = strstr(file, ".so");

	if (!so || (so[3] && so[3] != '.'))
		return region->name;
	snprintf(text, LABEL, "%.*s!%s", (int)(so + 3 - file), file, region->name);
	return text;
}

/* As binary/index/symbols.c calls code that no symbol covers. */
static bool is_unnamed(const struct ca_region *region)
{
	return !strncmp(region->name, "sub_", 4) &&
	       strspn(region->name + 4, "0123456789abcdef") == strlen(region->name + 4);
}

static size_t count_unnamed(const struct table *t)
{
	size_t n = 0;

	for (size_t r = 0; r < t->rows; r++)
		n += is_unnamed(t->profile->row[r].region);
	return n;
}

/* ---- lay-out -------------------------------------------------------------------*/

static const struct ca_cell *row_cells(const struct ca_profile_row *row)
{
	return row->point->estimates.cell + row->curve->first;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* All speedups of the rows shown, sorted; returns how many. */
static size_t measured(const struct table *t, uint32_t **level)
{
	uint32_t *list;
	size_t n = 0, room = 1, kept = 0;

	for (size_t r = 0; r < t->rows; r++)
		room += t->profile->row[r].curve->cells;
	*level = list = calloc(room, sizeof *list);
	for (size_t r = 0; list && r < t->rows; r++)
		for (size_t c = 0; c < t->profile->row[r].curve->cells; c++)
			if (row_cells(&t->profile->row[r])[c].speedup)
				list[n++] = row_cells(&t->profile->row[r])[c].speedup;
	if (list)
		qsort(list, n, sizeof *list, by_number);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || list[i] != list[kept - 1])
			list[kept++] = list[i];
	return kept;
}

/* With more speedups than columns, those next to a few round ones. */
static void choose_columns(struct table *t, size_t room)
{
	static const uint32_t wanted[][5] = {
		{ 50 }, { 25, 75 }, { 25, 50, 75 }, { 25, 50, 75, 100 }, { 10, 25, 50, 75, 100 },
	};
	uint32_t *level;
	size_t n = measured(t, &level), most = room < COLUMNS_MAX ? room : COLUMNS_MAX;

	if (n > most && most > 5)
		most = 5;
	if (n > 10 && most > 5) /* readable beats complete: the rest is in profile.json */
		most = 5;
	t->columns = 0;
	for (size_t c = 0; c < n && c < most; c++) {
		uint32_t nearest = level[c];

		for (size_t i = 0; n > most && i < n; i++) {
			int64_t want = (int64_t)wanted[most - 1][c] * 10000;

			if (llabs(level[i] - want) < llabs(nearest - want))
				nearest = level[i];
		}
		/* two wishes may meet in one speedup; the list is sorted */
		if (!t->columns || nearest != t->speedup[t->columns - 1])
			t->speedup[t->columns++] = nearest;
	}
	free(level);
}

static void lay_out(struct table *t, unsigned width)
{
	size_t code = NAME_MIN, point = 5, fixed;
	char text[LABEL];

	for (size_t r = 0; r < t->rows; r++) {
		size_t w = text_width(label(t->profile->row[r].region, text));
		size_t p = text_width(t->profile->row[r].point->name);

		code = w > code ? w : code;
		point = p > point ? p : point;
	}
	if (width == 0)
		width = 200;
	if (point > POINT_MAX)
		point = POINT_MAX;
	if (code > width / 3 && width / 3 > NAME_MIN)
		code = width / 3;
	fixed = code + 1 + point + TAIL;
	if (fixed + 4 * COLUMN > width) { /* four speedups are worth a shorter name */
		size_t excess = fixed + 4 * COLUMN - width;
		size_t give = code > 16 ? code - 16 : 0;

		code -= excess < give ? excess : give;
		if (point > 8 && code <= 16)
			point = 8;
		fixed = code + 1 + point + TAIL;
	}
	t->code = code;
	t->point = point;
	choose_columns(t, width > fixed + COLUMN ? (width - fixed) / COLUMN : 1);
}

/* With a mark of ECMA-48 (SGR), on terminals. */
static void put_marked(const struct table *t, const char *mark, const char *text)
{
	if (t->colours)
		fprintf(t->out, "\033[%sm%s\033[0m", mark, text);
	else
		fputs(text, t->out);
}

/* ---- lines ---------------------------------------------------------------------*/

static void put_effect(FILE *out, const struct ca_cell *cell)
{
	char text[48], error[24];
	double half = (cell->high - cell->low) / 2;

	snprintf(text, sizeof text, "%.*f", fabs(cell->effect) < 99.95 ? 1 : 0,
		 fabs(cell->effect) < 0.05 ? 0 : cell->effect);
	if (!isfinite(half))
		snprintf(error, sizeof error, "?");
	else
		snprintf(error, sizeof error, "%.*f", half < 9.95 ? 1 : 0, fmin(half, 999));
	/* ± has two bytes and one column */
	fprintf(out, "%*s ±%-3s ", COLUMN - 6, text, error);
}

static void put_row(const struct table *t, const struct ca_profile_row *row)
{
	static const char *const marks[] = {
		[CA_VERDICT_WORTH] = "1;32",    /* bold green */
		[CA_VERDICT_NOT_WORTH] = "2",   /* faint */
		[CA_VERDICT_NOT_ENOUGH] = "33", /* yellow */
		[CA_VERDICT_CANNOT_TELL] = "33",
	};
	const struct ca_cell *cell = row_cells(row);
	char text[LABEL];

	put_text(t->out, label(row->region, text), t->code);
	fputc(' ', t->out);
	put_text(t->out, row->point->name, t->point);
	fputc(' ', t->out);
	for (size_t i = 0; i < t->columns; i++) {
		size_t c = 0;

		while (c < row->curve->cells && cell[c].speedup != t->speedup[i])
			c++;
		if (c < row->curve->cells && isfinite(cell[c].effect))
			put_effect(t->out, &cell[c]);
		else
			fprintf(t->out, "%*s", COLUMN, "-    ");
	}
	fprintf(t->out, "%6zu  ", row->curve->experiments);
	put_marked(t, marks[row->verdict], ca_profile_verdict_text(row->verdict));
	fputc('\n', t->out);
}

static void put_header(const struct table *t)
{
	if (t->colours)
		fputs("\033[1m", t->out);
	put_text(t->out, "code", t->code);
	fputc(' ', t->out);
	put_text(t->out, "point", t->point);
	fputc(' ', t->out);
	for (size_t i = 0; i < t->columns; i++) {
		char text[24];

		snprintf(text, sizeof text, "%.4g %%", t->speedup[i] / 1e4);
		fprintf(t->out, "%*s  ", COLUMN - 2, text);
	}
	fprintf(t->out, "  exps  verdict%s\n", t->colours ? "\033[0m" : "");
}

/* The rows without enough data: a count and the first few names. */
static void put_rest(const struct table *t, size_t from, unsigned width)
{
	const struct ca_profile *p = t->profile;
	size_t n = p->rows - from, used;
	char text[LABEL];

	if (!n)
		return;
	used = (size_t)fprintf(t->out, "%zu more without enough data: ", n);
	for (size_t i = from; i < p->rows; i++) {
		size_t w = text_width(label(p->row[i].region, text));

		if (i > from && used + w + 5 > (width ? width : 200)) {
			fputs(", …", t->out);
			break;
		}
		if (i > from)
			fputs(", ", t->out);
		w = w > 40 ? 40 : w;
		put_text(t->out, label(p->row[i].region, text), w);
		used += w + 2;
	}
	fputc('\n', t->out);
}

static void put_title(const struct table *t)
{
	const struct ca_funnel *f = &t->profile->funnel;

	fprintf(t->out, "\n%zu run%s, %" PRIu64 " experiment%s used", f->runs, f->runs == 1 ? "" : "s",
		f->kept, f->kept == 1 ? "" : "s");
	if (f->finished > f->kept)
		fprintf(t->out, " of %" PRIu64, f->finished);
	if (f->unfinished)
		fprintf(t->out, ", %zu run%s cut short", f->unfinished, f->unfinished == 1 ? "" : "s");
	fputs("\n", t->out);
}

static void put_reason(const struct table *t)
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
	fprintf(t->out, "%" PRIu64 " kept.\n", f->kept);
}

static void put_table(struct table *t, unsigned width)
{
	const struct ca_profile *p = t->profile;
	size_t sure = 0, worth = 0, rows;

	while (worth < p->rows && p->row[worth].verdict == CA_VERDICT_WORTH)
		worth++;
	while (sure < p->rows && p->row[sure].verdict < CA_VERDICT_NOT_ENOUGH)
		sure++;
	/* When nothing is sure, the best guesses are still worth a look. */
	rows = sure ? sure : p->rows < UNSURE_ROWS ? p->rows : UNSURE_ROWS;
	t->rows = rows < ROWS_MAX ? rows : ROWS_MAX;
	if (sure && t->rows > worth + NOT_WORTH_ROWS)
		t->rows = worth + NOT_WORTH_ROWS;
	put_title(t);
	if (t->rows) {
		lay_out(t, width);
		fputs("Program speedup in % (± 95 % interval) if code took this much less time:\n", t->out);
		put_header(t);
		for (size_t r = 0; r < t->rows; r++)
			put_row(t, &p->row[r]);
		if (rows > t->rows)
			fprintf(t->out, "%zu more %sin profile.json\n", rows - t->rows,
				worth <= t->rows && sure ? "not worth it, " : "");
		put_rest(t, rows, width);
		if (count_unnamed(t))
			fputs("sub_...: code without a symbol, named by its address in the file; "
			      "symbols (Debian: a -dbgsym package) give it a name.\n",
			      t->out);
	}
	put_reason(t);
}

void ca_results_print(const struct ca_profile *profile, int fd, unsigned width, bool colours)
{
	char *text = NULL;
	size_t size = 0, done = 0;
	struct table t = { .out = open_memstream(&text, &size), .profile = profile, .colours = colours };

	if (!t.out)
		return;
	put_table(&t, width);
	if (fclose(t.out) == 0)
		while (done < size) {
			ssize_t n = write(fd, text + done, size - done);

			if (n <= 0)
				break; /* a closed terminal: the files hold everything */
			done += (size_t)n;
		}
	free(text);
}

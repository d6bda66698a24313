/* SPDX-License-Identifier: MIT */
/* The table for other programs: CSV for spreadsheets and scripts, Markdown for people's notes.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include <math.h>

/* ---- CSV (RFC 4180): a line per region, point and speedup -------------------------*/

/* Quoted where it must be. A leading =, + or - would be a formula in a spreadsheet. */
void ca_export_csv(FILE *file, const char *text)
{
	fputc('"', file);
	if (*text == '=' || *text == '+' || *text == '@' || *text == '-')
		fputc('\'', file);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', file);
		fputc(*text, file);
	}
	fputs("\",", file);
}

static void put_number(FILE *file, double value)
{
	if (isfinite(value))
		fprintf(file, "%.2f", value);
	fputc(',', file);
}

static void put_csv_line(FILE *file, const struct ca_profile_row *row, const char *what, double speedup,
			 double effect, double low, double high, size_t experiments)
{
	ca_export_csv(file, row->region->name);
	ca_export_csv(file, row->region->file);
	fprintf(file, "%u,", row->region->line);
	ca_export_csv(file, row->region->binary);
	ca_export_csv(file, row->point->name);
	fprintf(file, "%s,%s,", ca_profile_point_kind(row->point), ca_profile_verdict_key(row->verdict));
	put_number(file, row->own);
	put_number(file, row->samples);
	fprintf(file, "%s,%.4g,", what, speedup);
	put_number(file, effect);
	put_number(file, low);
	put_number(file, high);
	fprintf(file, "%zu\n", experiments);
}

/* What is known of a latency's percentile. */
static void put_csv_percentile(FILE *file, const struct ca_profile_row *row, int p)
{
	const struct ca_curve *curve = ca_profile_percentile(row, p);
	char what[16];

	snprintf(what, sizeof what, "p%u", ca_profile_percent[p]);
	for (int i = 0; curve && i < CA_AT; i++)
		put_csv_line(file, row, what, ca_estimate_at[i] / 1e4, curve->at[i], curve->at_low[i],
			     curve->at_high[i], curve->experiments);
}

bool ca_profile_write_csv(const struct ca_profile *profile, FILE *file)
{
	fputs("code,file,line,binary,point,kind,verdict,own,total,from,speedup,effect,low,high,"
	      "experiments\n",
	      file);
	for (size_t r = 0; r < profile->rows; r++) {
		const struct ca_profile_row *row = &profile->row[r];
		const struct ca_curve *curve = row->curve;
		const struct ca_cell *cell = row->point->estimates.cell + curve->first;

		for (int i = 0; i < CA_AT && !row->asked; i++)
			put_csv_line(file, row, "curve", ca_estimate_at[i] / 1e4, curve->at[i],
				     curve->at_low[i], curve->at_high[i], curve->experiments);
		for (int p = 0; p < CA_PERCENTILES; p++)
			put_csv_percentile(file, row, p);
		for (size_t c = 0; c < curve->cells; c++)
			if (cell[c].speedup)
				put_csv_line(file, row, "cell", cell[c].speedup / 1e4, cell[c].effect,
					     cell[c].low, cell[c].high, cell[c].experiments);
	}
	return !ferror(file);
}

/* ---- Markdown --------------------------------------------------------------------*/

/* As code in a cell: a pipe would end it, and nothing else may act. */
void ca_export_markdown(FILE *file, const char *text)
{
	fputs("<code>", file);
	for (; *text; text++)
		switch (*text) {
		case '|':
			fputs("&#124;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '&':
			fputs("&amp;", file);
			break;
		case '*':
		case '_':
		case '`':
		case '[':
		case '\\':
			fprintf(file, "&#%d;", *text);
			break;
		default:
			fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
		}
	fputs("</code>", file);
}

static void put_share(FILE *file, double percent)
{
	if (isfinite(percent))
		fprintf(file, " %.1f |", percent);
	else
		fputs(" - |", file);
}

static void put_effect(FILE *file, const struct ca_curve *curve, int i)
{
	if (!isfinite(curve->at[i]))
		fputs(" - |", file);
	else if (!isfinite(curve->at_high[i] - curve->at_low[i]))
		fprintf(file, " %.1f |", curve->at[i]);
	else
		fprintf(file, " %.1f ± %.1f |", curve->at[i], (curve->at_high[i] - curve->at_low[i]) / 2);
}

/* Percentile p of a latency, or, with CA_PERCENTILES, the point itself; the row's own numbers stand in that
 * line. */
static void put_line(FILE *file, const struct ca_profile_row *row, int p)
{
	const struct ca_curve *curve = p < CA_PERCENTILES ? ca_profile_percentile(row, p) : row->curve;
	bool own = p == CA_PERCENTILES;

	if (!curve)
		return;
	fputs("| ", file);
	ca_export_markdown(file, row->region->name);
	fputs(" | ", file);
	if (*row->region->file && row->region->line) {
		ca_export_markdown(file, row->region->file);
		fprintf(file, ":%u", row->region->line);
	}
	fputs(" | ", file);
	ca_export_markdown(file, row->point->name);
	if (!own)
		fprintf(file, " p%u", ca_profile_percent[p]);
	fputs(" |", file);
	put_share(file, own ? row->own : NAN);
	put_share(file, own ? row->samples : NAN);
	for (int i = 0; i < CA_AT; i++)
		put_effect(file, curve, i);
	fprintf(file, " %zu | %s |\n", curve->experiments, own ? ca_profile_row_text(row) : "");
}

bool ca_profile_write_markdown(const struct ca_profile *profile, FILE *file)
{
	fputs("Program speedup in % (± half of the 95 % interval) if the code took this much less time.\n\n"
	      "| code | place | point | own % | total % | 25 % less | 50 % less | at most | experiments "
	      "| verdict |\n|---|---|---|--:|--:|--:|--:|--:|--:|---|\n",
	      file);
	for (size_t r = 0; r < profile->rows; r++) {
		if (profile->row[r].asked) /* several at once, each by what was asked: in no column */
			continue;
		put_line(file, &profile->row[r], CA_PERCENTILES);
		for (int p = 0; p < CA_PERCENTILES; p++)
			put_line(file, &profile->row[r], p);
	}
	return !ferror(file);
}

/* SPDX-License-Identifier: MIT */
/* Profiles of samples for other programs: stacks by the exports that sweeps have, and the table.
 * Driver's process, one thread. */
#include "causal/results/profile.h"
#include "causal/results/samples.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- stacks ---------------------------------------------------------------------------------*/
static const struct ca_samples_function *function_of(const struct ca_samples *s, uint32_t node)
{
	return &s->function[s->node[node].function - 1];
}

static char **names_of(const struct ca_samples *s, uint32_t node)
{
	size_t depth = 0;
	char **frame;

	for (uint32_t at = node; at; at = s->node[at].parent)
		depth++;
	frame = calloc(depth + 1, sizeof *frame);
	for (uint32_t at = node; frame && at; at = s->node[at].parent) {
		frame[--depth] = strdup(function_of(s, at)->name);
		if (!frame[depth]) {
			for (; frame[depth + 1]; depth++)
				free(frame[depth + 1]);
			free(frame);
			return NULL;
		}
	}
	return frame;
}

/* As far as the exports look at it. */
static bool write_stacks(const struct ca_samples *s, FILE *file,
			 bool (*write)(const struct ca_profile *profile, FILE *file))
{
	struct ca_samples_unit unit = ca_samples_unit(s);
	const char *command = s->command && *s->command ? *s->command : "";
	struct ca_profile_run run = { .command = NULL };
	struct ca_profile profile = { .run = &run,
				      .runs = 1,
				      .stack_unit = unit.time                     ? "nanoseconds"
						    : !strcmp(unit.unit, "bytes") ? "bytes"
										  : "none" };
	bool ok;

	if (asprintf(&run.command, *unit.name ? "%s: %s" : "%s%s", command, unit.name) < 0)
		return false;
	profile.stack = calloc(s->nodes, sizeof *profile.stack);
	for (uint32_t i = 1; profile.stack && i < s->nodes; i++) {
		if (!ca_samples_weight(s, i))
			continue;
		profile.stack[profile.stacks] =
			(struct ca_profile_stack){ names_of(s, i), ca_samples_weight(s, i) };
		if (!profile.stack[profile.stacks].frame)
			break;
		profile.stacks++;
	}
	ca_profile_merge_stacks(&profile);
	ok = profile.stack && write(&profile, file);
	ca_profile_free_stacks(&profile);
	free(run.command);
	return ok;
}

bool ca_samples_write_folded(const struct ca_samples *s, FILE *file)
{
	return write_stacks(s, file, ca_profile_write_folded);
}

bool ca_samples_write_speedscope(const struct ca_samples *s, FILE *file)
{
	return write_stacks(s, file, ca_profile_write_speedscope);
}

/* ---- the tree of calls ----------------------------------------------------------------------*/
struct child {
	uint32_t node;
	uint64_t total;
};

static int by_total(const void *a, const void *b)
{
	const struct child *x = a, *y = b;

	return x->total != y->total ? (x->total < y->total ? 1 : -1) : x->node < y->node ? -1 : 1;
}

/* Callees of each node, next to each other: those of node i are child[first[i]] to child[first[i + 1] - 1]. */
static bool find_children(const struct ca_samples *s, const uint64_t *total, struct child *child,
			  uint32_t *first)
{
	uint32_t *next = calloc(s->nodes + 1, sizeof *next);

	if (!next)
		return false;
	for (size_t i = 1; i < s->nodes; i++)
		first[s->node[i].parent + 1]++;
	for (size_t i = 0; i < s->nodes; i++)
		next[i + 1] = first[i + 1] += first[i];
	for (uint32_t i = 1; i < s->nodes; i++)
		child[next[s->node[i].parent]++] = (struct child){ i, total[i] };
	free(next);
	for (size_t i = 0; i < s->nodes; i++)
		qsort(child + first[i], first[i + 1] - first[i], sizeof *child, by_total);
	return true;
}

enum { DEEP = 512 };

bool ca_samples_write_tree(const struct ca_samples *s, FILE *file)
{
	uint64_t *total = ca_samples_totals(s);
	struct child *child = calloc(s->nodes, sizeof *child);
	uint32_t *first = calloc(s->nodes + 1, sizeof *first), at[DEEP], end[DEEP];
	bool ok = total && child && first && find_children(s, total, child, first);
	struct ca_samples_unit unit = ca_samples_unit(s);
	const char *second = unit.time ? " s" : "";
	int depth = 0;

	if (*unit.name)
		fprintf(file, "%s\n", unit.name);
	fprintf(file, "%*s%s       %%  %*s%s  calls\n", unit.width + 2 - (int)strlen(second), "total", second,
		unit.width - (int)strlen(second), "self", second);
	at[0] = ok ? first[0] : 0;
	end[0] = ok ? first[1] : 0;
	while (depth >= 0) {
		const struct child *c = &child[at[depth]];

		if (at[depth] == end[depth]) {
			depth--;
			continue;
		}
		at[depth]++;
		fprintf(file, "%*.*f  %6.2f  %*.*f  %*s%s\n", unit.width + 2, unit.digits,
			(double)c->total / unit.scale,
			100.0 * (double)c->total / (double)(total[0] ? total[0] : 1), unit.width, unit.digits,
			(double)ca_samples_weight(s, c->node) / unit.scale, 2 * depth, "",
			function_of(s, c->node)->name);
		if (depth + 1 == DEEP)
			continue;
		depth++;
		at[depth] = first[c->node];
		end[depth] = first[c->node + 1];
	}
	free(total);
	free(child);
	free(first);
	return ok && !ferror(file);
}

/* ---- the table ------------------------------------------------------------------------------*/
/* "self_s", "self_real-time_s", "self_overflow-page-faults" */
static void put_title(FILE *file, const char *what, char between, struct ca_samples_unit unit)
{
	fputs(what, file);
	if (*unit.name)
		fprintf(file, "%c%s", between, unit.name);
	if (unit.time)
		fprintf(file, "%cs", between);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

bool ca_samples_write_csv(const struct ca_samples *s, FILE *file)
{
	struct ca_samples_unit unit = ca_samples_unit(s);
	uint64_t all, waiting, path = ca_samples_path(s);
	size_t n;
	struct ca_samples_row *row = ca_samples_rows(s, &n, &all, &waiting);
	int digits = unit.time ? 6 : 0;
	bool ok;

	fputs("function,file,line,binary,", file);
	put_title(file, "self", '_', unit);
	fputs(",self_percent,", file);
	put_title(file, "total", '_', unit);
	fputs(",total_percent,", file);
	put_title(file, "wall", '_', unit);
	fputs(",path_percent\n", file);
	for (size_t i = 0; row && i < n; i++) {
		const struct ca_samples_function *f = &s->function[row[i].function - 1];

		ca_export_csv(file, f->name);
		ca_export_csv(file, f->file);
		fprintf(file, "%u,", f->line);
		ca_export_csv(file, f->binary);
		fprintf(file, "%.*f,%.2f,%.*f,%.2f,%.*f,%.2f\n", digits, (double)row[i].self / unit.scale,
			percent(row[i].self, all), digits, (double)row[i].total / unit.scale,
			percent(row[i].total, all), digits, (double)row[i].wall / unit.scale,
			percent(row[i].path, path));
	}
	ok = row && !ferror(file);
	free(row);
	return ok;
}

bool ca_samples_write_markdown(const struct ca_samples *s, FILE *file)
{
	struct ca_samples_unit unit = ca_samples_unit(s);
	uint64_t all, waiting, path = ca_samples_path(s);
	size_t n;
	struct ca_samples_row *row = ca_samples_rows(s, &n, &all, &waiting);
	bool ok;

	fputs("| function | binary | ", file);
	put_title(file, "self", ' ', unit);
	fputs(" | self % | ", file);
	put_title(file, "total", ' ', unit);
	fputs(" | total % | ", file);
	put_title(file, "wall", ' ', unit);
	fputs(" | path % |\n|---|---|--:|--:|--:|--:|--:|--:|\n", file);
	for (size_t i = 0; row && i < n; i++) {
		const struct ca_samples_function *f = &s->function[row[i].function - 1];

		fputs("| ", file);
		ca_export_markdown(file, f->name);
		fputs(" | ", file);
		ca_export_markdown(file, f->binary);
		fprintf(file, " | %.*f | %.1f | %.*f | %.1f | %.*f | %.1f |\n", unit.digits,
			(double)row[i].self / unit.scale, percent(row[i].self, all), unit.digits,
			(double)row[i].total / unit.scale, percent(row[i].total, all), unit.digits,
			(double)row[i].wall / unit.scale, percent(row[i].path, path));
	}
	ok = row && !ferror(file);
	free(row);
	return ok;
}

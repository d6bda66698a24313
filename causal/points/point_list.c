/* SPDX-License-Identifier: MIT */
/* The list of progress points; see point_list.h. */
#include "causal/points/point_list.h"
#include "binary/plan/loops.h"
#include "binary/plan/text.h"
#include "causal/points/point_name.h"
#include "core/path.h"
#include "core/regex.h"
#include "core/vec.h"
#include <stdlib.h>
#include <string.h>

enum { LOOPS = 64 }; /* of one function */

struct list {
	char **line; /* owned, and each string */
	size_t n;
	FILE *out;
	const regex_t *filter;
	const char *binary; /* its name, for those that need it in front */
	bool main;
	size_t printed;
	bool failed; /* no memory for one of them */
};

bool ca_point_list_is_asked(const char *names, const char **filter)
{
	if (strncmp(names, "list", 4) || (names[4] && names[4] != ':'))
		return false;
	*filter = names[4] ? names + 5 : "";
	return true;
}

static void add(struct list *list, char *line)
{
	char **more = line ? ca_vec_more(list->line, list->n, sizeof *more) : NULL;

	if (!more) {
		free(line);
		list->failed = true;
		return;
	}
	list->line = more;
	list->line[list->n++] = line;
}

static char *join(const char *format, const char *a, const char *b)
{
	char *text;

	return asprintf(&text, format, a, b) < 0 ? NULL : text;
}

/* By name, and lines of one file by number. */
static int by_text(const void *a, const void *b)
{
	return strverscmp(*(char *const *)a, *(char *const *)b);
}

/* What is in a library, and what would be read as something else, stands behind the binary's name. */
static void print_line(struct list *list, const char *line)
{
	bool bare = list->main && (ca_point_name_is_plain(line) || !strncmp(line, "usdt:", 5));
	char *name = bare ? strdup(line) : join("%s!%s", list->binary, line);

	if (name && (!regexec(list->filter, line, 0, NULL, 0) || !regexec(list->filter, name, 0, NULL, 0))) {
		fprintf(list->out, "%s\n", name);
		list->printed++;
	}
	list->failed |= !name;
	free(name);
}

static void print(struct list *list)
{
	if (list->n)
		qsort(list->line, list->n, sizeof *list->line, by_text);
	for (size_t i = 0; i < list->n; i++)
		if (!i || strcmp(list->line[i], list->line[i - 1]))
			print_line(list, list->line[i]);
	for (size_t i = 0; i < list->n; i++)
		free(list->line[i]);
	free(list->line);
	list->line = NULL;
	list->n = 0;
}

static void list_probes(struct list *list, const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_probes(index); i++) {
		struct ca_index_probe p;

		ca_index_probe_at(index, i, &p);
		add(list, join("usdt:%s:%s", p.provider, p.name));
	}
}

static void list_functions(struct list *list, const struct ca_index *index)
{
	struct ca_index_function f;
	struct ca_index_inline in;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		if (!f.part)
			add(list, strdup(f.name));
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		ca_index_inline_at(index, i, &in);
		add(list, strdup(in.name));
	}
}

/* Where there are no lines to name a loop by. */
static void list_loops(struct list *list, const struct ca_index *index)
{
	static struct ca_loop loop[LOOPS];
	struct ca_index_function f;
	struct ca_index_line line;
	struct ca_text *text;

	if (ca_text_open(&text, ca_index_binary(index), NULL) != CA_OK)
		return;
	for (size_t i = 0; i < ca_index_functions(index); i++) {
		size_t n;

		ca_index_function_at(index, i, &f);
		n = f.part || ca_index_find_line(index, f.low, &line)
			    ? 0
			    : ca_loops_find(text, f.low, f.high, loop, LOOPS);
		for (size_t k = 0; k < n; k++) {
			char number[20];

			snprintf(number, sizeof number, "%lx", (unsigned long)(loop[k].head - f.low));
			add(list, join("%s+0x%s", f.name, number));
		}
	}
	ca_text_close(text);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The file's name if that says which, else its whole path. */
static const char *shortest(const char *path, const char *const *file, size_t files)
{
	const char *base = ca_path_base(path);
	size_t same = 0;

	for (size_t i = 0; i < files; i++)
		same += ca_point_name_is_file(file[i], base);
	return same == 1 ? base : path;
}

static void list_lines(struct list *list, const struct ca_index *index)
{
	size_t n = ca_index_lines(index), files = 0;
	const char **file = calloc(n + 1, sizeof *file), *last = NULL, *name = NULL;

	for (size_t i = 0; i < n && file; i++) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		file[i] = l.file;
	}
	list->failed |= !file;
	if (file && n)
		qsort(file, n, sizeof *file, by_path);
	for (size_t i = 0; i < n && file; i++)
		if (!i || strcmp(file[i], file[files - 1]))
			file[files++] = file[i];
	for (size_t i = 0; i < n && file; i++) {
		struct ca_index_line l;
		char number[16];

		ca_index_line_at(index, i, &l);
		if (!l.line || !*l.file)
			continue;
		if (l.file != last)
			name = shortest(l.file, file, files);
		last = l.file;
		snprintf(number, sizeof number, "%u", l.line);
		add(list, join("%s:%s", name, number));
	}
	free(file);
}

enum ca_status ca_point_list_print(FILE *out, const struct ca_index *index, bool main, const char *filter,
				   size_t *printed, struct ca_err *err)
{
	regex_t regex;
	struct list list = {
		.out = out, .filter = &regex, .binary = ca_path_base(ca_index_binary(index)), .main = main
	};
	char reason[128];
	int code = ca_regex_compile(&regex, filter);

	if (code) {
		regerror(code, &regex, reason, sizeof reason);
		return ca_err_set(err, CA_ERR_USAGE, "-P 'list:%s': bad regular expression: %s", filter,
				  reason);
	}
	list_probes(&list, index);
	print(&list);
	list_functions(&list, index);
	print(&list);
	list_loops(&list, index);
	print(&list);
	list_lines(&list, index);
	print(&list);
	regfree(&regex);
	*printed = list.printed;
	return list.failed ? ca_err_set(err, CA_ERR_NOMEM, "no memory for all of the points") : CA_OK;
}

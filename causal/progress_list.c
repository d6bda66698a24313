/* What can be a progress point in a binary: --progress=list. Driver's process, one thread. */
#include "causal/progress.h"
#include "causal/progress_name.h"
#include <stdlib.h>
#include <string.h>

struct list {
	char **line; /* owned, and each string */
	size_t n;
};

bool ca_progress_is_list(const char *names, const char **filter)
{
	if (strncmp(names, "list", 4) || (names[4] && names[4] != ':'))
		return false;
	*filter = names[4] ? names + 5 : "";
	return true;
}

static void add(struct list *list, char *line)
{
	if (!line)
		return;
	if (!(list->n & (list->n - 1))) {
		char **more = realloc(list->line, (list->n ? 2 * list->n : 1) * sizeof *more);

		if (!more) {
			free(line);
			return;
		}
		list->line = more;
	}
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

static void print(FILE *out, struct list *list, const regex_t *filter)
{
	if (list->n)
		qsort(list->line, list->n, sizeof *list->line, by_text);
	for (size_t i = 0; i < list->n; i++)
		if ((!i || strcmp(list->line[i], list->line[i - 1])) &&
		    !regexec(filter, list->line[i], 0, NULL, 0))
			fprintf(out, "%s\n", list->line[i]);
	for (size_t i = 0; i < list->n; i++)
		free(list->line[i]);
	free(list->line);
	memset(list, 0, sizeof *list);
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
		if (!f.part && !f.synthetic)
			add(list, strdup(f.name));
	}
	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		ca_index_inline_at(index, i, &in);
		add(list, strdup(in.name));
	}
}

static int by_path(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file's name if that says which, else its whole path. */
static const char *shortest(const char *path, const char *const *file, size_t files)
{
	const char *base = base_name(path);
	size_t same = 0;

	for (size_t i = 0; i < files; i++)
		same += ca_progress_is_file(file[i], base);
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

enum ca_status ca_progress_list(FILE *out, const struct ca_index *index, const char *filter,
				struct ca_err *err)
{
	struct list list = { 0 };
	regex_t regex;
	char reason[128];
	int code = regcomp(&regex, filter, REG_EXTENDED | REG_NOSUB);

	if (code) {
		regerror(code, &regex, reason, sizeof reason);
		return ca_err_set(err, CA_ERR_USAGE, "-P 'list:%s': bad regular expression: %s", filter, reason);
	}
	list_probes(&list, index);
	print(out, &list, &regex);
	list_functions(&list, index);
	print(out, &list, &regex);
	list_lines(&list, index);
	print(out, &list, &regex);
	regfree(&regex);
	return CA_OK;
}

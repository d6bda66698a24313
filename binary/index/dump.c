/* SPDX-License-Identifier: MIT */
/* causal-index: print the index of a binary. For tests and debugging, not installed.
 * causal-index [-u] [-m] functions|ranges|lines|inlines|rows|probes|summary|at:ADDRESS FILE
 * -u: want unwind rows only; -m: FILE is an index file. */
#include "binary/index/index.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_functions(const struct ca_index *index)
{
	struct ca_index_function f;

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		ca_index_function_at(index, i, &f);
		printf("%" PRIx64 "\t%" PRIx64 "\t%s%s%s\t%s\t%s:%u\n", f.low, f.high, f.name,
		       f.synthetic ? "\tsynthetic" : "", f.part ? "\tpart" : "", f.linkage, f.file, f.line);
	}
}

static void print_ranges(const struct ca_index *index)
{
	struct ca_index_function f;
	struct ca_index_span span[64];

	for (size_t i = 0; i < ca_index_functions(index); i++) {
		size_t n = ca_index_function_ranges(index, i, span, 64);
		ca_index_function_at(index, i, &f);
		printf("%s", f.name);
		for (size_t k = 0; k < n && k < 64; k++)
			printf("\t%" PRIx64 "-%" PRIx64, span[k].low, span[k].high);
		putchar('\n');
	}
}

static void print_lines(const struct ca_index *index)
{
	struct ca_index_line l;

	for (size_t i = 0; i < ca_index_lines(index); i++) {
		ca_index_line_at(index, i, &l);
		printf("%" PRIx64 "\t%" PRIx64 "\t%s:%u%s\n", l.low, l.high, l.file, l.line,
		       l.is_stmt ? "\tstmt" : "");
	}
}

static void print_inline(const struct ca_index_inline *l)
{
	printf("%" PRIx64 "\t%" PRIx64 "\t%u\t%s\t%s:%u\t%s:%u\n", l->low, l->high, l->depth, l->name,
	       l->file, l->line, l->call_file, l->call_line);
}

static void print_inlines(const struct ca_index *index)
{
	struct ca_index_inline l;

	for (size_t i = 0; i < ca_index_inlines(index); i++) {
		ca_index_inline_at(index, i, &l);
		print_inline(&l);
	}
}

static void print_row(uint64_t base, const struct ca_unwind_row *row)
{
	static const char *const kind[] = { "none",   "sp",  "fp",    "reg",    "deref", "plt",
					    "signal", "sp8", "sp/fp", "reg/fp", "*sp" };

	printf("%" PRIx64 "\t%s\tcfa%+d\tfp%+d\tbx%+d\tra%+d\treg %u\n", base + row->address,
	       row->kind < sizeof(kind) / sizeof(*kind) ? kind[row->kind] : "?", row->cfa_offset,
	       row->fp_offset, 8 * row->bx_words, row->ra_offset, row->reg);
}

static void print_rows(const struct ca_index *index)
{
	for (size_t i = 0; i < ca_index_rows(index); i++)
		print_row(ca_index_base(index), ca_index_row_at(index, i));
}

static void print_probes(const struct ca_index *index)
{
	struct ca_index_probe p;

	for (size_t i = 0; i < ca_index_probes(index); i++) {
		ca_index_probe_at(index, i, &p);
		printf("%" PRIx64 "\t%s:%s\t%s\t%" PRIx64 "\n", p.address, p.provider, p.name, p.arguments,
		       p.semaphore);
	}
}

static void print_summary(const struct ca_index *index)
{
	printf("functions %zu lines %zu inlines %zu rows %zu probes %zu\n", ca_index_functions(index),
	       ca_index_lines(index), ca_index_inlines(index), ca_index_rows(index), ca_index_probes(index));
	printf("%s\n", ca_index_path(index));
}

static void print_at(const struct ca_index *index, const char *text)
{
	uint64_t address = strtoull(text, NULL, 16);
	const struct ca_unwind_row *row = ca_index_find_row(index, address);
	struct ca_index_function f;
	struct ca_index_line l;
	struct ca_index_inline chain[64];
	size_t n = ca_index_find_inlines(index, address, chain, 64);

	if (ca_index_find_function(index, address, &f))
		printf("%s\t%s:%u\n", f.name, f.file, f.line);
	for (size_t i = 0; i < n; i++)
		print_inline(&chain[i]);
	if (ca_index_find_line(index, address, &l))
		printf("%s:%u\n", l.file, l.line);
	if (row)
		print_row(ca_index_base(index), row);
}

static void print_what(const struct ca_index *index, const char *what)
{
	static const struct {
		const char *name;
		void (*print)(const struct ca_index *index);
	} known[] = {
		{ "functions", print_functions }, { "ranges", print_ranges }, { "lines", print_lines },
		{ "inlines", print_inlines },     { "rows", print_rows },     { "probes", print_probes },
		{ "summary", print_summary },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(what, known[i].name) == 0)
			known[i].print(index);
	if (strncmp(what, "at:", 3) == 0)
		print_at(index, what + 3);
}

static void warn(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "warning: %s\n", text);
}

int main(int argc, char **argv)
{
	enum ca_index_want want = CA_INDEX_FULL;
	struct ca_index *index;
	struct ca_err err = { .text = "damaged" };
	enum ca_status status;
	bool map = false;
	int option;

	while ((option = getopt(argc, argv, "um")) != -1) {
		if (option == 'u')
			want = CA_INDEX_UNWIND;
		else if (option == 'm')
			map = true;
		else
			return 2;
	}
	if (argc - optind != 2) {
		fprintf(stderr, "usage: %s [-u] [-m] WHAT FILE\n", argv[0]);
		return 2;
	}
	const char *file = argv[optind + 1];
	status = map ? ca_index_map(&index, file) : ca_index_open(&index, file, want, warn, NULL, &err);
	if (status != CA_OK) {
		fprintf(stderr, "%s: %s\n", argv[0], err.text);
		return 1;
	}
	print_what(index, argv[optind]);
	ca_index_close(index);
	return 0;
}

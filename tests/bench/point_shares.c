/* SPDX-License-Identifier: MIT */
/* How many lines and functions of real binaries can be progress points, and at which cost:
 *   tests/bench/point_shares BINARY...
 * jump: the displaced instructions make room for one. short: they do not; the runtime then tries
 * a jump made with the bytes behind them, else a breakpoint stays. none: they cannot be moved.
 * Not a test. */
#include "binary/index/index.h"
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include <stdio.h>
#include <string.h>

enum { JUMP_LENGTH = 5, MOST = 20000 };

struct share {
	unsigned n, jump, brief, none;
};

static void try(struct share *s, struct ca_text *text, uint64_t address)
{
	struct ca_site site;

	s->n++;
	if (ca_plan_count(text, 1, address, 0, &site, NULL) != CA_OK)
		s->none++;
	else if (site.length >= JUMP_LENGTH)
		s->jump++;
	else
		s->brief++;
}

static void print(const char *path, const char *what, const struct share *s)
{
	double n = s->n ? s->n : 1;

	printf("%-40s %-10s %7u  jump %5.1f %%  short %5.1f %%  none %5.1f %%\n", path, what, s->n,
	       100 * s->jump / n, 100 * s->brief / n, 100 * s->none / n);
}

static int measure(const char *path)
{
	struct share functions = { 0 }, lines = { 0 };
	struct ca_index *index;
	struct ca_text *text;
	struct ca_err err;
	size_t step;

	if (ca_index_open(&index, path, CA_INDEX_FULL, NULL, NULL, &err) != CA_OK) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (ca_text_open(&text, path, &err) != CA_OK) {
		fprintf(stderr, "%s\n", err.text);
		ca_index_close(index);
		return 1;
	}
	step = ca_index_functions(index) / MOST + 1;
	for (size_t i = 0; i < ca_index_functions(index); i += step) {
		struct ca_index_function f;

		ca_index_function_at(index, i, &f);
		if (!f.part)
			try(&functions, text, f.low);
	}
	step = ca_index_lines(index) / MOST + 1;
	for (size_t i = 0; i < ca_index_lines(index); i += step) {
		struct ca_index_line l;

		ca_index_line_at(index, i, &l);
		if (l.is_stmt && l.line)
			try(&lines, text, l.low);
	}
	print(path, "functions", &functions);
	if (lines.n)
		print(path, "lines", &lines);
	ca_text_close(text);
	ca_index_close(index);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= measure(argv[i]);
	return failed;
}

/* SPDX-License-Identifier: MIT */
/* Prints how long indexing takes: cold, warm, and one look-up of an unwind row. Not a test.
 * bench_index [BINARY...]; without arguments its own file. Medians of several rounds. */
#include "binary/index/index.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 7, LOOKUPS = 1000000 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int order(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *sample)
{
	qsort(sample, ROUNDS, sizeof(*sample), order);
	return sample[ROUNDS / 2];
}

static struct ca_index *open_or_exit(const char *path)
{
	struct ca_index *index;
	struct ca_err err;

	if (ca_index_open(&index, path, CA_INDEX_FULL, NULL, NULL, &err) == CA_OK)
		return index;
	fprintf(stderr, "%s\n", err.text);
	exit(1);
}

/* Of random addresses in the text, each known only when the one before has been looked up. */
static double time_lookup(const struct ca_index *index)
{
	size_t n = ca_index_rows(index);
	uint64_t first = ca_index_base(index) + ca_index_row_at(index, n > 1)->address;
	uint64_t size = ca_index_base(index) + ca_index_row_at(index, n - 1)->address - first;
	uint64_t random = 88172645463325252u;
	double start = now();

	for (int i = 0; i < LOOKUPS; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		const struct ca_unwind_row *row = ca_index_find_row(index, first + random % size);
		random += row ? row->kind : 0;
	}
	return (now() - start) / LOOKUPS * 1e9 + (random == 0);
}

static void bench(const char *path)
{
	double cold[ROUNDS], warm[ROUNDS], lookup[ROUNDS];
	struct stat st = { 0 };
	struct ca_index *index = NULL;

	stat(path, &st);
	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		index = open_or_exit(path);
		unlink(ca_index_path(index));
		cold[i] = now() - start;
		ca_index_close(index);
	}
	index = open_or_exit(path);
	for (int i = 0; i < ROUNDS; i++) {
		double start = now();
		ca_index_close(open_or_exit(path));
		warm[i] = now() - start;
		lookup[i] = ca_index_rows(index) > 1 ? time_lookup(index) : 0;
	}
	printf("%s: %.1f MB; %zu functions, %zu lines, %zu inlined, %zu rows; cold %.1f ms, "
	       "warm %.2f ms, row %.0f ns\n",
	       path, (double)st.st_size / 1e6, ca_index_functions(index), ca_index_lines(index),
	       ca_index_inlines(index), ca_index_rows(index), median(cold) * 1e3, median(warm) * 1e3,
	       median(lookup));
	unlink(ca_index_path(index));
	ca_index_close(index);
}

int main(int argc, char **argv)
{
	char cache[] = "/tmp/causal-bench-XXXXXX";

	if (!mkdtemp(cache))
		return 1;
	setenv("XDG_CACHE_HOME", cache, 1);
	if (argc < 2)
		bench("/proc/self/exe");
	for (int i = 1; i < argc; i++)
		bench(argv[i]);
	char inner[sizeof(cache) + 8];
	snprintf(inner, sizeof(inner), "%s/causal", cache);
	rmdir(inner);
	rmdir(cache);
	return 0;
}

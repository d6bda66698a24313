/* SPDX-License-Identifier: MIT */
/* `causal diff` of two profiles of samples, one beside the other. Driver's process, one thread. */
#include "causal/results/plain.h"
#include "causal/results/samples.h"
#include "causal/results/text.h"
#include "driver/child.h"
#include "driver/diff.h"
#include "driver/say.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 20, STACKS = 10, NAME = 56 };
static const struct ca_samples_unit in_seconds = { "", "s", 1e9, 9, 3, true };

static const char *name_of(struct ca_samples_unit u)
{
	return *u.name ? u.name : "CPU time";
}

static void print_sum(const char *what, const struct ca_samples_change *c, struct ca_samples_unit u)
{
	double before = (double)c->ns[0] / u.scale, now = (double)c->ns[1] / u.scale;

	printf("%s: %.*f %s before, %.*f %s now (%+.*f)\n", what, u.digits, before, u.unit, u.digits, now,
	       u.unit, u.digits, now - before);
}

static void print_sums(const struct ca_samples_change *c, size_t n, struct ca_samples_unit u)
{
	struct ca_samples_change sum[2] = { { .name = NULL }, { .name = NULL } };

	for (size_t i = 0; i < n; i++)
		for (int side = 0; side < 2; side++)
			sum[c[i].wait].ns[side] += c[i].ns[side];
	print_sum(name_of(u), &sum[0], u);
	if (u.time)
		print_sum("Waits", &sum[1], u);
}

static void print_path_sum(const struct ca_samples *a, const struct ca_samples *b)
{
	struct ca_samples_change sum = { .ns = { ca_samples_path(a), ca_samples_path(b) } };

	print_sum("Critical path", &sum, in_seconds);
}

/* The end of a stack says more than its beginning. */
static void print_name(const struct ca_samples_change *c, bool stack)
{
	char *name = stack ? NULL : ca_plain_fit(c->name, NAME);

	if (stack)
		ca_text_put_cut(stdout, c->name, NAME + 40, 8);
	else
		ca_text_put(stdout, name ? name : c->name, NAME);
	free(name);
	if (*c->binary)
		printf("  %s", c->binary);
	putchar('\n');
}

static void print_changes(const struct ca_samples_change *c, size_t n, size_t most, enum ca_samples_of what,
			  struct ca_samples_unit u)
{
	static const char *const title[] = { "function", "stack",
					     "on the critical path, with what it calls" };
	bool stacks = what == CA_SAMPLES_OF_STACKS;
	size_t shown = 0, chance = 0;

	printf("\n%*s %*s %*s  %s\n", u.width, u.time ? "before s" : "before", u.width,
	       u.time ? "now s" : "now", u.width, "change", title[what]);
	for (size_t i = 0; i < n; i++) {
		chance += !c[i].sure;
		if (!c[i].sure || shown == most)
			continue;
		shown++;
		printf("%*.*f %*.*f %+*.*f  ", u.width, u.digits, (double)c[i].ns[0] / u.scale, u.width,
		       u.digits, (double)c[i].ns[1] / u.scale, u.width, u.digits,
		       ((double)c[i].ns[1] - (double)c[i].ns[0]) / u.scale);
		print_name(&c[i], stacks);
	}
	if (n - chance > shown)
		printf("%zu more have changed\n", n - chance - shown);
	printf("%zu %s have not changed by more than chance\n", chance, stacks ? "stacks" : "functions");
}

/* What difffolded.pl writes, and flamegraph.pl reads. */
static void print_folded(const struct ca_samples_change *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		for (const char *at = c[i].name; *at; at++)
			putchar((unsigned char)*at < ' ' ? ' ' : *at);
		printf(" %" PRIu64 " %" PRIu64 "\n", c[i].ns[0], c[i].ns[1]);
	}
}

static bool print(const struct ca_samples *a, const struct ca_samples *b, bool folded)
{
	static const size_t rows[] = { ROWS, STACKS, ROWS };
	struct ca_samples_unit unit = ca_samples_unit(a);
	struct ca_samples_change *of[3];
	size_t n[3];
	bool ok = true;

	for (int what = 0; what < 3; what++)
		ok &= (of[what] = ca_samples_compare(a, b, (enum ca_samples_of)what, &n[what])) != NULL;
	if (ok && folded) {
		print_folded(of[CA_SAMPLES_OF_STACKS], n[CA_SAMPLES_OF_STACKS]);
	} else if (ok) {
		print_sums(of[CA_SAMPLES_OF_FUNCTIONS], n[CA_SAMPLES_OF_FUNCTIONS], unit);
		print_path_sum(a, b);
		for (int what = 0; what < 3; what++)
			print_changes(of[what], n[what], rows[what], (enum ca_samples_of)what,
				      what == CA_SAMPLES_OF_PATH ? in_seconds : unit);
	}
	for (int what = 0; what < 3; what++)
		if (of[what])
			ca_samples_compare_free(of[what], n[what]);
	return ok;
}

int ca_diff_samples(const char *old, const char *now, const char *format, const char *of)
{
	struct ca_samples *samples[2] = { NULL, NULL };
	int code = CA_EXIT_USAGE;
	struct ca_err err;

	if (format && strcmp(format, "folded") != 0)
		ca_say("diff: --format %s is not known; folded writes stacks for flamegraph.pl", format);
	else if (ca_samples_read(&samples[0], old, &err) || ca_samples_read(&samples[1], now, &err))
		ca_say("diff: %s", err.text);
	else if (ca_samples_weigh(samples[0], of, &err))
		ca_say("diff: %s: %s", old, err.text);
	else if (ca_samples_weigh(samples[1], of, &err))
		ca_say("diff: %s: %s", now, err.text);
	else if (strcmp(ca_samples_unit(samples[0]).name, ca_samples_unit(samples[1]).name) != 0)
		ca_say("diff: %s has %s, and %s has %s: choose what both have with --of (cputime, realtime, "
		       "overflow, or a metric)",
		       old, name_of(ca_samples_unit(samples[0])), now, name_of(ca_samples_unit(samples[1])));
	else if (!print(samples[0], samples[1], format) && (code = 1))
		ca_say("diff: no memory");
	else
		code = 0;
	ca_samples_free(samples[0]);
	ca_samples_free(samples[1]);
	return code;
}

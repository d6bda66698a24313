/* SPDX-License-Identifier: MIT */
/* What one visit costs, in ns over the same loop unpatched: medians of 15 turns. Not a test:
 * its numbers are this machine's. The hooks are those of the tests, which do little. */
#include "binary/plan/plan.h"
#include "binary/plan/text.h"
#include "causal/runtime/patch.h"
#include "tests/patch/counts.h"
#include <causal.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TURNS = 15, VISITS = 1000000, TRAP_VISITS = 20000, POINT = 5 };

static uintptr_t bias;
static struct ca_text *text;
extern char bench_point_at[], bench_plain_at[], bench_short_at[], bench_short_end[];
extern char bench_call_at[], bench_call_end[];

/* A dormant point, another instruction of 5 bytes, a call, and a function of one byte with bytes
 * behind it that no jump can be made of. */
void bench_point(void);
void bench_plain(void);
void bench_short(void);
void bench_call(void);
uint64_t bench_body(uint64_t a, uint64_t b);
__asm__(".text\n.p2align 4\n.globl bench_point\n.type bench_point, @function\nbench_point:\n.cfi_startproc\n"
	".globl bench_point_at\nbench_point_at: .byte 0x0f, 0x1f, 0x44, 0, 0\nret\n.cfi_endproc\n"
	".size bench_point, . - bench_point\n.p2align 4\n"
	".globl bench_plain\n.type bench_plain, @function\nbench_plain:\n.cfi_startproc\n"
	".globl bench_plain_at\nbench_plain_at: movl $1, %eax\nret\n.cfi_endproc\n"
	".size bench_plain, . - bench_plain\n.p2align 4\n"
	".globl bench_call\n.type bench_call, @function\nbench_call:\n.cfi_startproc\nsubq $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n.globl bench_call_at\nbench_call_at: call bench_plain\n"
	".globl bench_call_end\nbench_call_end: addq $8, %rsp\n.cfi_adjust_cfa_offset -8\nret\n.cfi_endproc\n"
	".size bench_call, . - bench_call\n.p2align 4\n"
	".globl bench_short\n.type bench_short, @function\nbench_short:\n.cfi_startproc\n"
	".globl bench_short_at\nbench_short_at: ret\n.cfi_endproc\n"
	".size bench_short, . - bench_short\n.globl bench_short_end\nbench_short_end: .byte 0, 0, 0, 0\n"
	".p2align 4\n");

__attribute__((noinline)) uint64_t bench_body(uint64_t a, uint64_t b)
{
	return a * b + (a >> 3);
}

static bool the_bias(uint32_t module, uintptr_t *out)
{
	*out = bias;
	return module == 1;
}

static int first(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	bias = info->dlpi_addr;
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double visit_ns(void (*f)(void), unsigned visits)
{
	double turn[TURNS];

	for (unsigned t = 0; t < TURNS; t++) {
		double start = now();

		for (unsigned i = 0; i < visits; i++)
			f();
		turn[t] = (now() - start) / visits;
	}
	qsort(turn, TURNS, sizeof *turn, by_value);
	return turn[TURNS / 2];
}

static void call_body(void)
{
	static volatile uint64_t a = 3;

	a = bench_body(a, 5);
}

/* 1000 turns of about a ns */
static void loop(void)
{
	for (uint64_t i = 0, a = 1; i < 1000; i++)
		__asm__ volatile("imul $3, %0, %0" : "+r"(a));
}

static void loop_point(void)
{
	for (uint64_t i = 0, a = 1; i < 1000; i++) {
		__asm__ volatile("imul $3, %0, %0" : "+r"(a));
		CAUSAL_PROGRESS_NAMED("dormant");
	}
}

static void measure(const char *what, void (*f)(void), unsigned visits, const struct ca_site *site, size_t n)
{
	double before = visit_ns(f, visits), with;
	uint64_t counted;
	unsigned failed = ca_patch_install(site, n, the_bias);
	struct ca_patch_stats stats = ca_patch_stats();

	counted = ca_patch_nobody[POINT] + hook_counts.enters + hook_counts.exits;
	with = visit_ns(f, visits);
	counted = ca_patch_nobody[POINT] + hook_counts.enters + hook_counts.exits - counted;
	printf("%-28s %8.2f ns  (%.2f, unpatched %.2f; %u jumps, %u traps, %.1f hooks a visit%s)\n", what,
	       with - before, with, before, stats.jumps, stats.traps, (double)counted / TURNS / visits,
	       failed ? ", NOT PLACED" : "");
	ca_patch_remove_all();
}

static struct ca_range range_of(uintptr_t low, uintptr_t high)
{
	return (struct ca_range){ .module = 1, .low = low - bias, .high = high - bias };
}

static struct ca_fine account = { .limit = INT64_MAX };

static void time_only(struct ca_site *site, size_t n)
{
	ca_patch_fine = &account;
	for (size_t i = 0; i < n; i++)
		for (unsigned h = 0; h < site[i].hooks; h++)
			site[i].hook[h].kind = site[i].hook[h].kind == CA_SITE_ENTER ? CA_SITE_FINE_ENTER
										     : CA_SITE_FINE_EXIT;
}

int main(void)
{
	struct ca_range body, line;
	struct ca_site site[8];
	struct ca_err err;
	const char *why;
	bool self;
	size_t n;

	dl_iterate_phdr(first, NULL);
	counts_set();
	if (!ca_patch_init(&why) || ca_text_open(&text, "/proc/self/exe", &err) != CA_OK)
		return 1;
	if (ca_plan_count(text, 1, (uintptr_t)bench_point_at - bias, POINT, site, &err) == CA_OK)
		measure("count, at a point's nop", bench_point, VISITS, site, 1);
	if (ca_plan_count(text, 1, (uintptr_t)bench_plain_at - bias, POINT, site, &err) == CA_OK)
		measure("count, at an instruction", bench_plain, VISITS, site, 1);
	body = range_of((uintptr_t)bench_body, (uintptr_t)bench_body + 1);
	for (body.high = body.low + 4; body.high < body.low + 64; body.high++) /* its ret */
		if (ca_plan_function(text, 1, &body, 1, site, 8, &n, &err) == CA_OK)
			break;
	measure("function: enter and exit", call_body, VISITS, site, n);
	time_only(site, n);
	measure("function: timed", call_body, VISITS, site, n);
	account.counting = UINT32_MAX;
	measure("function: counted in between", call_body, VISITS, site, n);
	line = range_of((uintptr_t)bench_call_at, (uintptr_t)bench_call_end);
	if (ca_plan_line(text, 1, &line, 1, site, 8, &n, &self, &err) == CA_OK)
		measure("call: enter and exit", bench_call, VISITS, site, n);
	if (ca_plan_count(text, 1, (uintptr_t)bench_short_at - bias, POINT, site, &err) == CA_OK) {
		measure("count, at one byte", bench_short, TRAP_VISITS, site, 1);
	}
	printf("%-28s %8.2f ns\n", "a dormant point",
	       visit_ns(loop_point, 1000) / 1000 - visit_ns(loop, 1000) / 1000);
	return 0;
}

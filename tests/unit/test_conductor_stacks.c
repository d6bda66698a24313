/* SPDX-License-Identifier: MIT */
/* causal/conductor/stacks.c: which code of a few programs is tried, and what stands for what. */
#include "causal/conductor/stacks.h"
#include "tests/unit/unit.h"
#include <stdlib.h>
#include <string.h>

enum { MOST = 6 };

/* Stacks as letters, the outermost first. */
struct program {
	const char *name;
	struct {
		const char *stack;
		unsigned count;
	} sample[8];
	const char *role; /* per letter from A on: row, via, contains, small */
	const char *row;  /* ... of a via: whose */
};

static const struct program programs[] = {
	{ "one leaf", { { "A", 100 } }, "r", "-" },
	{ "a chain", { { "ABC", 97 }, { "AB", 3 } }, "vvr", "CC-" },
	{ "a chain whose parts have some of their own", { { "AB", 80 }, { "A", 20 } }, "rr", "--" },
	/* a worker's loop with two stages */
	{ "a loop", { { "ABCD", 50 }, { "ABCE", 45 }, { "ABC", 5 } }, "vvcrr", "CC---" },
	/* handlers that share what they call: how often they do can be changed */
	{ "a shared leaf", { { "ABD", 50 }, { "ACD", 50 } }, "vrrr", "D---" },
	{ "a part of its own beside it", { { "ABD", 25 }, { "ABCD", 20 }, { "AED", 55 } }, "vrrrr", "D----" },
	{ "shared leaves", { { "ABD", 30 }, { "ABE", 30 }, { "ACD", 20 }, { "ACE", 20 } }, "crrrr", "-----" },
	{ "a shared helper", { { "ABD", 40 }, { "AB", 10 }, { "ACD", 45 }, { "AC", 5 } }, "crrr", "----" },
	/* a sort's threads and its main thread come into the same recursion, each by a function of its own */
	{ "entries", { { "ABD", 40 }, { "ABE", 10 }, { "CBD", 35 }, { "CBE", 15 } }, "cccrr", "-----" },
	/* a search that calls itself: one thread comes into it by a function of its own */
	{ "an entry", { { "ABCD", 50 }, { "AC", 5 }, { "ACD", 45 } }, "vcvr", "D-D-" },
	/* a wrapper with a little more in it than the one that does the work */
	{ "a wrapper", { { "AB", 85 }, { "AC", 12 }, { "A", 3 } }, "crr", "---" },
	/* an interpreter: the loop does little, and its many functions hold most of it */
	{ "an interpreter", { { "AB", 12 }, { "ABC", 30 }, { "ABD", 30 }, { "ABE", 28 } }, "vcrrr", "B----" },
	/* it waits most of the time, and that is no reason to look at it */
	{ "an event loop", { { "-AB", 900 }, { "ABC", 50 }, { "ABD", 50 } }, "vcrr", "B---" },
	{ "a function that waits", { { "-AB", 80 }, { "A", 20 } }, "rr", "--" },
	{ "code that calls itself", { { "AB", 50 }, { "ABA", 50 } }, "rr", "--" },
	{ "too little to matter", { { "A", 995 }, { "B", 5 } }, "rs", "--" },
	{ "two threads", { { "AB", 60 }, { "CD", 40 } }, "vrvr", "B-D-" },
	/* a server whose processes are idle nearly always: what it does, when it does something */
	{ "idle processes",
	  { { "-AC", 99000 }, { "AB", 30 }, { "AD", 60 }, { "AE", 10 } },
	  "vrrrr",
	  "C----" },
	/* B has a team make D and E, itself and in threads of the runtime F, which nobody can change */
	{ "a team", { { "ABFD", 25 }, { "ABFE", 25 }, { "FD", 25 }, { "FE", 25 } }, "vcsrrc", "B-----" },
	/* ... A hands out a body B, in which C and D share a helper E: they are rows */
	{ "a team whose parts share a helper",
	  { { "AFBCE", 40 }, { "AFBDE", 10 }, { "FBCE", 10 }, { "FBDE", 40 } },
	  "cvrrrv",
	  "-E---E" },
	/* C has the team of F do D, whose threads begin in E, at no depth */
	{ "a team's threads", { { "ABCFD", 20 }, { "ED", 16 }, { "A", 64 } }, "rvvrcc", "-FF---" },
	{ "a team, and much else", { { "ABFD", 25 }, { "AB", 25 }, { "FD", 50 } }, "vrsrsv", "B----D" },
	{ "a wait", { { "*AB", 36 }, { "AB", 4 }, { "AC", 60 } }, "cwr", "---" },
	{ "a wait and work", { { "*AB", 30 }, { "AB", 10 }, { "AC", 60 } }, "crr", "---" },
	{ "a wait and what it calls", { { "*AB", 36 }, { "AC", 40 }, { "ABD", 24 } }, "ccrr", "----" },
	/* ... that others call, too: a team's threads, and who gives them work */
	{ "threads that wait for work",
	  { { "*A", 14 }, { "AC", 32 }, { "BC", 40 }, { "BD", 14 } },
	  "crrr",
	  "----" },
	{ "functions that main calls, and share a helper", { { "AC", 32 }, { "BC", 40 } }, "rrr", "---" },
	{ "callers of a wait", { { "*DAB", 40 }, { "DC", 60 } }, "vwrc", "B---" },
};

/* "-": the thread waits; "*": it spins. */
static void add(struct ca_stacks *s, const char *stack, unsigned count)
{
	uint32_t region[MOST];
	bool waiting = *stack == '-', spinning = *stack == '*';
	unsigned n = 0;

	stack += waiting || spinning;
	/* from the innermost on, each where it stands innermost */
	for (size_t i = strlen(stack); i-- > 0;) {
		bool known = false;

		for (unsigned k = 0; k < n; k++)
			known |= region[k] == (uint32_t)(stack[i] - 'A' + 1);
		if (!known)
			region[n++] = (uint32_t)(stack[i] - 'A' + 1);
	}
	ca_stacks_add(s, region, n, count, waiting, spinning);
}

static void test_roles(void **state)
{
	static const char letter[] = { 's', 'r', 'v', 'c', 'w' };

	(void)state;
	for (size_t i = 0; i < CA_COUNT(programs); i++) {
		const struct program *p = &programs[i];
		struct ca_stacks *s = ca_stacks_new();
		const struct ca_stacks_code *code;
		char role[] = "ssssss", row[] = "------";
		size_t n, length = strlen(p->role);

		for (size_t k = 0; p->sample[k].stack; k++)
			add(s, p->sample[k].stack, p->sample[k].count);
		if (!strncmp(p->name, "a team", 6))
			ca_stacks_set_team(s, 6);
		if (!strcmp(p->name, "a team's threads"))
			ca_stacks_set_team(s, 5);
		n = ca_stacks_judge(s, &code);
		for (size_t k = 0; k < n; k++) {
			role[code[k].region - 1] = letter[code[k].role];
			row[code[k].region - 1] = (char)(code[k].row ? 'A' + (int)code[k].row - 1 : '-');
		}
		role[length] = row[length] = '\0';
		if (strcmp(role, p->role) || strcmp(row, p->row))
			fail_msg("%s: %s %s, not %s %s", p->name, role, row, p->role, p->row);
		ca_stacks_free(s);
	}
}

/* A compiler's passes: one calls them all, does nothing itself, and most of them are too small for a row. */
static void test_dispatcher(void **state)
{
	enum { FIRST_SMALL = 10, SMALL_ONES = 70 };
	struct ca_stacks *s = ca_stacks_new();
	const struct ca_stacks_code *code;
	size_t n;

	(void)state;
	ca_stacks_add(s, (uint32_t[]){ 3, 2, 1 }, 3, 200, false, false);
	ca_stacks_add(s, (uint32_t[]){ 4, 1 }, 2, 450, false, false);
	for (uint32_t i = 0; i < SMALL_ONES; i++)
		ca_stacks_add(s, (uint32_t[]){ FIRST_SMALL + i, 2, 1 }, 3, 5, false, false);
	n = ca_stacks_judge(s, &code);
	for (size_t k = 0; k < n; k++)
		if (code[k].region <= 4)
			assert_int_equal(code[k].role,
					 code[k].region <= 2 ? CA_STACKS_CONTAINS : CA_STACKS_ROW);
	ca_stacks_free(s);
}

static void test_counts(void **state)
{
	struct ca_stacks *s = ca_stacks_new();
	const struct ca_stacks_code *code;

	(void)state;
	add(s, "AB", 60);
	add(s, "AC", 30);
	add(s, "A", 10);
	assert_int_equal(ca_stacks_judge(s, &code), 3);
	assert_int_equal(code[0].region, 1);
	assert_int_equal(code[0].samples, 100);
	assert_int_equal(code[0].own, 10);
	assert_int_equal(ca_stacks_inside(s, 1, 2), 60);
	assert_int_equal(ca_stacks_inside(s, 2, 1), 0);
	assert_int_equal(ca_stacks_inside(s, 2, 77), 0);
	ca_stacks_begin_run(s);
	add(s, "AB", 5);
	assert_int_equal(ca_stacks_own(s, 2, false), 5);
	assert_int_equal(ca_stacks_own(s, 1, false), 0);
	assert_int_equal(ca_stacks_own(s, 2, true), 0);
	add(s, "*AB", 7);
	assert_int_equal(ca_stacks_own(s, 2, true), 7);
	ca_stacks_begin_run(s);
	assert_int_equal(ca_stacks_own(s, 2, true), 0);
	assert_int_equal(ca_stacks_total(s), 112);
	ca_stacks_free(s);
}

static unsigned told;
static uint64_t told_last;

static void tell(void *context, const uint32_t *region, size_t n, uint64_t count)
{
	assert_ptr_equal(context, &told);
	assert_true(!told || count <= told_last);
	assert_int_equal(region[0], 1);
	assert_true(n == 2 || count == 3);
	told++;
	told_last = count;
}

static void test_tell(void **state)
{
	struct ca_stacks *s = ca_stacks_new();

	(void)state;
	told = 0;
	add(s, "AB", 60);
	add(s, "AC", 30);
	add(s, "A", 3);
	ca_stacks_tell(s, 9, tell, &told);
	assert_int_equal(told, 3);
	told = 0;
	ca_stacks_tell(s, 2, tell, &told);
	assert_int_equal(told, 2);
	ca_stacks_free(s);
}

/* A tree that is full keeps counting: by the part of the stack that is there. */
static void test_full(void **state)
{
	struct ca_stacks *s = ca_stacks_new();
	const struct ca_stacks_code *code;

	(void)state;
	for (uint32_t i = 0; i < 50000; i++) {
		uint32_t region[] = { 2 + i, 1 };

		ca_stacks_add(s, region, 2, 1, false, false);
	}
	assert_int_equal(ca_stacks_judge(s, &code), 1);
	assert_int_equal(code[0].region, 1);
	assert_int_equal(code[0].samples, 50000);
	ca_stacks_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roles),  cmocka_unit_test(test_dispatcher),
		cmocka_unit_test(test_counts), cmocka_unit_test(test_tell),
		cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
